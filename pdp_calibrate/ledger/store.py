"""The state of a ledger, in memory or in a JSON file.

A checksum tells a torn or edited file from a good one; such a file is refused, never repaired. It
has no key: whoever means to forge a ledger can, and an old copy has a checksum that holds. Against
old copies and new beginnings there is the anchor.

The pages of a ledger: what it is about, its draws, and its entries in order.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from pdp_calibrate.core.model import FORMAT, LATER, SCHEMA, is_later
from pdp_calibrate.errors import LedgerError
from pdp_calibrate.ledger.anchor import Anchor, DisagreementError
from pdp_calibrate.ledger.files import SafeFile

KINDS = {
    "Ledger": "one model: open it with Ledger.open (pdp-calibrate ledger)",
    "PeopleLedger": "people and all their columns: open it with People (pdp-calibrate people)",
}
"""What a ledger may be about, and how it is opened."""


class Store(Protocol):
    """Where the state of a ledger is kept."""

    def locked(self) -> contextlib.AbstractContextManager[None]:
        """Keep everyone else from changing the state."""

    def read(self) -> dict[str, Any]:
        """Return the state, or raise if it cannot be trusted."""

    def write(self, state: Mapping[str, Any]) -> None:
        """Replace the state, or raise; returns when it is durable."""

    def check_new(self) -> None:
        """Refuse to begin a ledger where there is one."""


class MemoryStore:
    """State that ends with the process, and is of no use in another one."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._text = "{}"
        self._process = os.getpid()

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other threads out."""
        self._refuse_copies()  # first: the lock may have been copied while somebody held it
        with self._lock:
            yield

    def read(self) -> dict[str, Any]:
        """Return a copy of the state."""
        self._refuse_copies()
        state: dict[str, Any] = json.loads(self._text)
        return state

    def write(self, state: Mapping[str, Any]) -> None:
        """Replace the state."""
        self._refuse_copies()
        self._text = json.dumps(state)

    def check_new(self) -> None:
        """Allow a beginning: memory holds nothing yet."""

    def _refuse_copies(self) -> None:
        if os.getpid() != self._process:
            raise LedgerError(
                "a ledger in memory belongs to the process that began it: a copy in another one"
                " would spend the same budget again. Keep it in a file, with path=, and open it"
                " in each process."
            )


class FileStore:
    """State in a file, durable, shared between processes on one machine."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        anchor: str | os.PathLike[str] | None = None,
        kind: str = "Ledger",
    ) -> None:
        self._kind = kind
        self._file = SafeFile.at(path, what="ledger")
        self._anchor = None if anchor is None else Anchor(anchor, ledger=self._file.path)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock beside the ledger and, where it has one, the lock beside its anchor."""
        with contextlib.ExitStack() as held:
            held.enter_context(self._file.locked())
            if self._anchor is not None:
                held.enter_context(self._anchor.locked())
            yield

    def check_new(self) -> None:
        """Refuse to begin where a ledger is, or was: its anchor remembers it."""
        if self._file.exists:
            raise LedgerError(
                f"there is a ledger at {self._file.path} already: open it to go on with it."
            )
        if self._anchor is not None:
            self._anchor.check_new()

    def read(self) -> dict[str, Any]:
        """Parse the file, check its sum and compare it with the anchor.

        The sum stays in what is returned: it says which state a later one was made from.
        """
        path, content = self._file.path, self._file.read()
        try:
            state = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise _untrustworthy(path) from error
        if not isinstance(state, dict) or state.get("schema") != SCHEMA:
            raise _untrustworthy(path)
        if state.get("checksum") != _checksum(state) or state.get("type") not in KINDS:
            raise _untrustworthy(path)
        if state["type"] != self._kind:
            raise LedgerError(f"the ledger {path} is about {KINDS[state['type']]}.")
        if is_later(state):
            raise LedgerError(f"the ledger {path} {LATER}")
        self._check_anchor(state)
        return state

    def write(self, state: Mapping[str, Any]) -> None:
        """Replace the file: the anchor first learns what is to come, and last that it came."""
        present = state.get("checksum")
        coming = {key: value for key, value in state.items() if key != "checksum"}
        coming["version"] = FORMAT  # a ledger of an earlier version is upgraded by its first entry
        if self._anchor is not None:
            coming["anchor"] = str(self._anchor.path)
        checksum = _checksum(coming)
        content = _lines({**coming, "checksum": checksum}).encode()
        if self._anchor is not None:
            self._anchor.announce(present=present, coming=checksum)
        self._file.write(content)
        if self._anchor is not None:
            self._anchor.settle(checksum)

    def _check_anchor(self, state: Mapping[str, Any]) -> None:
        path, known = self._file.path, state.get("anchor")
        if self._anchor is not None and known is not None:
            self._anchor.check(state["checksum"], ledger=path)
        elif known is not None:
            raise LedgerError(
                f"the ledger {path} has an anchor at {known}, which must agree with it: give it"
                " with anchor= (--anchor)."
            )
        elif self._anchor is not None:
            raise LedgerError(
                f"the ledger {path} has no anchor, and {self._anchor.path} was given as its anchor:"
                " it is another ledger, or a copy from elsewhere. A ledger gets its anchor when it"
                " is begun."
            )


def _checksum(state: Mapping[str, Any]) -> str:
    summed = {key: value for key, value in state.items() if key != "checksum"}
    canonical = json.dumps(summed, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def _lines(state: Mapping[str, Any]) -> str:
    """Write JSON with one line per entry; `json.dumps` with an indent is slow."""
    fields = []
    for key, value in state.items():
        text = json.dumps(value)
        if key == "entries" and value:
            text = "[\n" + ",\n".join(map(json.dumps, value)) + "\n]"
        fields.append(f"{json.dumps(key)}: {text}")
    return "{\n" + ",\n".join(fields) + "\n}\n"


def _untrustworthy(path: Path) -> LedgerError:
    return LedgerError(
        f"the ledger {path} is damaged or was changed by hand: its checksum does not hold."
        " Restore it from a backup that holds every release since made."
    )


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

    def replace(self, before: State, after: State) -> bool:
        """Write a state that was made from another one, unless others changed that meanwhile.

        Returns whether it was written; then it is durable.
        """
        with self.store.locked():
            if self._read() != before:
                return False
            self.store.write(after)
            self._seen = after["entries"][:]
        return True

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
