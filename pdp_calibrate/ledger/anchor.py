"""A second place, outside, that must agree with a ledger: it notices old copies and new beginnings.

It holds the checksum of the ledger's last state. Before the ledger is written, the state to come is
noted beside the present one; afterwards it stands alone, and only then is anything released. So a
process may be killed at any moment: until the end both states are accepted, and nothing was
released on the strength of the second; from then on the first is refused.
"""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

from pdp_calibrate.core.model import SCHEMA
from pdp_calibrate.errors import LedgerError, damage_refused
from pdp_calibrate.ledger.files import SafeFile

_KIND = "LedgerAnchor"


class DisagreementError(LedgerError):
    """A ledger and its anchor do not agree; for a moment they do not while both are written."""


class Anchor:
    """The last state of one ledger, and the next one while that is being written."""

    def __init__(self, path: str | os.PathLike[str], *, ledger: Path) -> None:
        self._file = SafeFile.at(path, what="anchor")
        if self._file.path == ledger:
            raise LedgerError("an anchor is a second file: it cannot be the ledger itself.")

    @property
    def path(self) -> Path:
        """Where it is."""
        return self._file.path

    def locked(self) -> contextlib.AbstractContextManager[None]:
        """Keep copies of the ledger, which have locks of their own, from using it meanwhile."""
        return self._file.locked()

    def check_new(self) -> None:
        """Refuse one that a ledger was begun with; a beginning that was cut short may go on."""
        if self._file.exists and self._states()[0] is not None:
            raise LedgerError(
                f"the anchor {self.path} belongs to a ledger that was begun already: go on with"
                " that one. If it was lost, what it had spent cannot be spent again: restore its"
                " latest state, or begin anew, with another anchor, about other data."
            )

    def check(self, state: str, *, ledger: Path) -> None:
        """Refuse a state that is neither the last one nor the one that was being written."""
        if state not in self._states():
            raise DisagreementError(
                f"the ledger {ledger} is not in the state that its anchor {self.path} holds: an"
                " old copy, or another ledger, was put in the place of one of them. Restore the"
                " latest state of both."
            )

    def announce(self, *, present: str | None, coming: str) -> None:
        """Note a state that is about to be written; durable when it returns."""
        self._write(present, coming)

    def settle(self, state: str) -> None:
        """Accept the state that was written, and no other; durable when it returns."""
        self._write(state, None)

    def _write(self, state: str | None, coming: str | None) -> None:
        described = {"schema": SCHEMA, "type": _KIND, "state": state, "next": coming}
        self._file.write((json.dumps(described, indent=2) + "\n").encode())

    def _states(self) -> tuple[str | None, str | None]:
        content = self._file.read()
        with damage_refused(f"the anchor {self.path}", kind=LedgerError):
            described = json.loads(content)
            if (described["schema"], described["type"]) == (SCHEMA, _KIND):
                return described["state"], described["next"]
        raise LedgerError(f"{self.path} is not the anchor of a ledger.")
