"""Stand-ins for what Windows and macOS have and Linux lacks, as their documentation says."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import importlib.util
import os
import sys
import threading
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pdp_calibrate.ledger import store

_DIFFERENT = ("lock", "unlock", "sync", "patiently", "put_in_place")


class Msvcrt(types.ModuleType):
    """``msvcrt.locking``: one byte at the position of the handle, mandatory, per handle."""

    LK_UNLCK, LK_LOCK, LK_NBLCK, LK_RLCK, LK_NBRLCK = range(5)

    def __init__(self) -> None:
        super().__init__("msvcrt")
        self.held: set[int] = set()
        self.waited = 0
        self.failure: int | None = None

    def locking(self, handle: int, mode: int, size: int) -> None:
        """Lock or unlock, or fail as the C library does."""
        if self.failure is not None:
            raise OSError(self.failure, os.strerror(self.failure))
        if os.lseek(handle, 0, os.SEEK_CUR) != 0 or size != 1:
            raise OSError(errno.EINVAL, "another byte than the one that the others lock")
        if mode == self.LK_UNLCK:
            if handle not in self.held:
                raise PermissionError(errno.EACCES, "Permission denied")
            self.held.remove(handle)
            fcntl.flock(handle, fcntl.LOCK_UN)
        elif mode == self.LK_NBLCK:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)  # per handle, as there
            except BlockingIOError:
                self.waited += 1
                raise PermissionError(errno.EACCES, "Permission denied") from None
            self.held.add(handle)
        else:
            raise OSError(errno.EINVAL, "a mode that this library does not use")


class Sharing:
    """Windows refuses to replace a file that is open, and Python opens files so."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._open: dict[str, int] = {}
        self._guard = threading.Lock()
        self.refused = 0
        self.replaced = 0
        read, replace, opened = Path.read_bytes, Path.replace, Path.open

        def read_bytes(path: Path) -> bytes:
            with self.holding(path):
                return read(path)

        def replaced(path: Path, target: Path) -> Path:
            with self._guard:
                if self._open.get(os.fspath(path), 0) or self._open.get(os.fspath(target), 0):
                    self.refused += 1
                    raise PermissionError(errno.EACCES, "Access is denied")
                self.replaced += 1
                return replace(path, target)

        def open_file(path: Path, *arguments: Any, **options: Any) -> Any:
            if path.is_dir():
                raise PermissionError(errno.EACCES, "Permission denied")
            return opened(path, *arguments, **options)

        patch.setattr(Path, "read_bytes", read_bytes)
        patch.setattr(Path, "replace", replaced)
        patch.setattr(Path, "open", open_file)

    @contextlib.contextmanager
    def holding(self, path: Path) -> Iterator[None]:
        """Keep a file open."""
        name = os.fspath(path)
        with self._guard:
            self._open[name] = self._open.get(name, 0) + 1
        try:
            yield
        finally:
            with self._guard:
                self._open[name] -= 1


def systems_on(
    platform: str, patch: pytest.MonkeyPatch, **modules: types.ModuleType
) -> types.ModuleType:
    """Load what the library does on another system, and let ledgers use it."""
    with pytest.MonkeyPatch.context() as there:
        there.setattr(sys, "platform", platform)
        for name, module in modules.items():
            there.setitem(sys.modules, name, module)
        spec = importlib.util.spec_from_file_location(f"systems_on_{platform}", store.__file__)
        assert spec is not None
        assert spec.loader is not None
        loaded = importlib.util.module_from_spec(spec)
        there.setitem(sys.modules, spec.name, loaded)  # where dataclasses look for it
        spec.loader.exec_module(loaded)
    for name in _DIFFERENT:
        patch.setattr(store, name, getattr(loaded, name))
    return loaded
