"""The pages of a ledger: what it is about, its draws, and its entries in order."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from pdp_calibrate.errors import LedgerError
from pdp_calibrate.ledger.anchor import DisagreementError
from pdp_calibrate.ledger.storage import Store

State = dict[str, Any]


@dataclass
class Pages:
    """Reads and appends entries; refuses pages that went missing."""

    store: Store
    _seen: list[State] = field(default_factory=list)

    def start(self, heading: State, draw: str, entries: list[State]) -> None:
        """Open a new ledger with its first entries, where there is none."""
        with self.store.locked():
            self.store.check_new()
            self.store.write({**heading, "draws": [_checked(draw)], "entries": entries})
            self._seen = entries[:]

    def read(self) -> State:
        """Return the state; refuse one that has lost entries that this object has seen."""
        try:
            return self._read()
        except DisagreementError as disagreement:  # or somebody was just writing
            with contextlib.ExitStack() as held:
                try:
                    held.enter_context(self.store.locked())
                except LedgerError:
                    raise disagreement from None
                return self._read()

    def _read(self) -> State:
        seen = self._seen  # before reading: another thread may write and see more meanwhile
        state = self.store.read()
        entries = state.get("entries")
        if not isinstance(entries, list) or not all(isinstance(one, dict) for one in entries):
            raise LedgerError("the entries of the ledger are not what they should be.")
        if entries[: len(seen)] != seen:
            raise LedgerError(
                "the ledger on disk has lost entries since it was last read: an old copy was put"
                " in its place. Restore the latest one."
            )
        if len(entries) > len(self._seen):
            self._seen = entries[:]
        return state

    @contextlib.contextmanager
    def changing(self) -> Iterator[State]:
        """Let the caller look at the state and change it, while nobody else can.

        If the caller raises, nothing is written; when this ends, the change is durable.
        """
        with self.store.locked():
            state = self._read()
            yield state
            self.store.write(state)
            self._seen = state["entries"][:]

    def add_draw(self, name: str) -> None:
        """Begin a draw of its own name."""
        with self.changing() as state:
            if name in state["draws"]:
                raise LedgerError(f"the ledger has a draw {name!r} already; its budget counts on.")
            state["draws"].append(_checked(name))


def _checked(draw: str) -> str:
    if not isinstance(draw, str) or not draw:
        raise LedgerError("a draw needs a name, such as '2026-11-17'.")
    return draw
