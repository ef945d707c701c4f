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
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from pdp_calibrate.errors import LedgerError
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
        self.path = Path(path)

    @property
    def exists(self) -> bool:
        """Whether there is a file already."""
        return self.path.exists()

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock file beside the ledger."""
        place = self.path.with_name(self.path.name + ".lock")
        try:
            handle = os.open(place, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise _unwritable(self.path, error) from error
        try:
            _lock(handle)
            try:
                yield
            finally:
                _unlock(handle)
        finally:
            os.close(handle)

    def read(self) -> dict[str, Any]:
        """Parse the file and check its sum."""
        try:
            content = self.path.read_bytes()
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
            if self.exists and not self.path.stat().st_mode & stat.S_IWUSR:
                raise PermissionError(None, "it is marked read-only")
            with aside.open("wb") as file:
                file.write(content)
                file.flush()
                _sync(file.fileno())
            aside.replace(self.path)
            _sync_folder(self.path.parent)
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


def _sync_folder(folder: Path) -> None:
    """Make the new name durable; Windows does so by itself and cannot open folders."""
    if sys.platform != "win32":
        handle = os.open(folder, os.O_RDONLY)
        try:
            _sync(handle)
        finally:
            os.close(handle)


if sys.platform == "win32":
    import msvcrt
    import time

    def _lock(handle: int) -> None:
        while True:
            try:
                os.lseek(handle, 0, os.SEEK_SET)
                msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
            except OSError:
                time.sleep(0.01)
            else:
                return

    def _unlock(handle: int) -> None:
        os.lseek(handle, 0, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_UNLCK, 1)

    def _sync(handle: int) -> None:
        os.fsync(handle)

else:
    import fcntl

    def _lock(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_EX)

    def _unlock(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_UN)

    def _sync(handle: int) -> None:
        os.fsync(handle)
        if sys.platform == "darwin":  # there fsync leaves data in the cache of the drive
            fcntl.fcntl(handle, fcntl.F_FULLFSYNC)
