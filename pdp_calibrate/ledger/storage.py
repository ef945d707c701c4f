"""A JSON file that is either the old one or the new one, never half of each.

Whoever changes it holds an operating-system lock on a file beside it, which the system itself
releases when a process dies, so no lock is ever stale. The new content goes to a temporary file,
is synced to disk and takes the place of the old one in one step. A checksum tells a torn or edited
file from a good one; such a file is refused, never repaired.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from pdp_calibrate.errors import LedgerError
from pdp_calibrate.ledger import systems
from pdp_calibrate.models.base import SCHEMA


class Store(Protocol):
    """Where the state of a ledger is kept."""

    def locked(self) -> contextlib.AbstractContextManager[None]:
        """Keep everyone else from changing the state."""

    def read(self) -> dict[str, Any]:
        """Return the state, or raise if it cannot be trusted."""

    def write(self, state: Mapping[str, Any]) -> None:
        """Replace the state, or raise and leave the old one; returns when it is durable."""


class MemoryStore:
    """State that ends with the process."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._text = "{}"

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other threads out."""
        with self._lock:
            yield

    def read(self) -> dict[str, Any]:
        """Return a copy of the state."""
        state: dict[str, Any] = json.loads(self._text)
        return state

    def write(self, state: Mapping[str, Any]) -> None:
        """Replace the state."""
        self._text = json.dumps(state)


class FileStore:
    """State in a file, durable, shared between processes on one machine."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        # One file has one lock and one place to be replaced in, by whichever link it is named.
        self.path = Path(os.path.realpath(path))

    @property
    def exists(self) -> bool:
        """Whether there is a file already."""
        return self.path.exists()

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock file beside the ledger."""
        place = self.path.with_name(self.path.name + ".lock")
        try:
            handle = os.open(place, os.O_RDWR | os.O_CREAT, 0o666)  # less what the umask says
        except OSError as error:
            raise _unwritable(self.path, error) from error
        try:
            try:
                systems.lock(handle)
            except OSError as error:
                raise _unwritable(self.path, error) from error
            try:
                yield
            finally:
                with contextlib.suppress(OSError):  # closing it gives the lock back too
                    systems.unlock(handle)
        finally:
            os.close(handle)

    def read(self) -> dict[str, Any]:
        """Parse the file and check its sum."""
        try:
            content = systems.patiently(self.path.read_bytes)
        except OSError as error:
            raise LedgerError(
                f"the ledger {self.path} cannot be read: {error.strerror}."
            ) from error
        try:
            state = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise _untrustworthy(self.path) from error
        if not isinstance(state, dict) or state.get("schema") != SCHEMA:
            raise _untrustworthy(self.path)
        if state.pop("checksum", None) != _checksum(state) or state.get("type") != "Ledger":
            raise _untrustworthy(self.path)
        return state

    def write(self, state: Mapping[str, Any]) -> None:
        """Write aside, sync, replace, sync the folder."""
        content = _lines({**state, "checksum": _checksum(state)}).encode()
        # Held under the lock, so one name is enough, and what a crash leaves is written over.
        aside = self.path.with_name(self.path.name + ".tmp")
        try:
            mode = self.path.stat().st_mode if self.exists else None
            if mode is not None and not mode & stat.S_IWUSR:
                raise PermissionError(None, "it is marked read-only")
            with aside.open("wb") as file:
                file.write(content)
                file.flush()
                systems.sync(file.fileno())
            if mode is not None:  # who may read and write it stays as it was
                aside.chmod(stat.S_IMODE(mode))
            systems.put_in_place(aside, self.path)
        except OSError as error:
            with contextlib.suppress(OSError):
                aside.unlink(missing_ok=True)
            raise _unwritable(self.path, error) from error


def _checksum(state: Mapping[str, Any]) -> str:
    canonical = json.dumps(state, sort_keys=True, separators=(",", ":"))
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


def _unwritable(path: Path, error: OSError) -> LedgerError:
    return LedgerError(
        f"the ledger {path} cannot be written: {error.strerror}. Nothing was released."
    )
