"""What operating systems do differently: locks, syncing, and replacing a file that others read.

Windows refuses to replace a file that anybody has open, be it a reader of the ledger for a moment
or a virus scanner, and refuses to open one that is being replaced: both are tried again for a
while. It cannot sync folders. On macOS, `fsync` leaves data in the cache of the drive, and the call
that empties that cache is not there on every file system.
"""

from __future__ import annotations

import errno
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")


PATIENCE = 5.0
"""Seconds for which others may keep a file open on Windows."""


_PAUSE = 0.01


if sys.platform == "win32":
    import msvcrt

    _TAKEN = (errno.EACCES, errno.EDEADLK)

    def lock(handle: int) -> None:
        """Wait until nobody else holds the lock, then hold it."""
        while True:
            os.lseek(handle, 0, os.SEEK_SET)
            try:
                msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
            except OSError as error:
                if error.errno not in _TAKEN:
                    raise
                time.sleep(_PAUSE)
            else:
                return

    def unlock(handle: int) -> None:
        """Let others have the lock."""
        os.lseek(handle, 0, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_UNLCK, 1)

    def sync(handle: int) -> None:
        """Return when what was written is on the disk."""
        os.fsync(handle)

    def patiently(work: Callable[[], T]) -> T:
        """Do something with a file that others may have open for a moment."""
        end = time.monotonic() + PATIENCE
        while True:
            try:
                return work()
            except PermissionError:
                if time.monotonic() > end:
                    raise
                time.sleep(_PAUSE)

    def put_in_place(aside: Path, path: Path) -> None:
        """Let a file take the place of another, durably.

        Folders cannot be synced; syncing the file under its new name writes the log of the file
        system, and with it the new name.
        """
        patiently(lambda: aside.replace(path))
        with patiently(lambda: path.open("rb+")) as file:
            sync(file.fileno())

else:
    import fcntl

    _NOT_THERE = (errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOTTY)

    def lock(handle: int) -> None:
        """Wait until nobody else holds the lock, then hold it."""
        fcntl.flock(handle, fcntl.LOCK_EX)

    def unlock(handle: int) -> None:
        """Let others have the lock."""
        fcntl.flock(handle, fcntl.LOCK_UN)

    def sync(handle: int) -> None:
        """Return when what was written is on the disk."""
        os.fsync(handle)
        if sys.platform == "darwin":
            try:
                fcntl.fcntl(handle, fcntl.F_FULLFSYNC)
            except OSError as error:  # of network and foreign file systems fsync is all there is
                if error.errno not in _NOT_THERE:
                    raise

    def patiently(work: Callable[[], T]) -> T:
        """Do something with a file, which others may have open."""
        return work()

    def put_in_place(aside: Path, path: Path) -> None:
        """Let a file take the place of another, durably."""
        aside.replace(path)
        handle = os.open(path.parent, os.O_RDONLY)
        try:
            sync(handle)
        finally:
            os.close(handle)
