"""A file that is either the old one or the new one, never half of each, and has one name.

Whoever changes it holds an operating-system lock on a file beside it, which the system itself
releases when a process dies, so no lock is ever stale. The new content goes to a temporary file,
is synced to disk and takes the place of the old one in one step. Neither that file nor the lock is
ever opened through a symbolic link that somebody planted in the folder.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pdp_calibrate.errors import LedgerError
from pdp_calibrate.ledger import platform as systems

_NO_LINK = getattr(os, "O_NOFOLLOW", 0)  # Windows has none; links are looked for there too


_BYTES = getattr(os, "O_BINARY", 0)  # of Windows


@dataclass(frozen=True)
class SafeFile:
    """A file that is read as a whole and replaced as a whole, shared between processes."""

    what: str
    """What messages call it."""
    path: Path
    """Where it is, links resolved: one file has one lock and one place to be replaced in."""

    @classmethod
    def at(cls, path: str | os.PathLike[str], *, what: str) -> SafeFile:
        """Name a file by any path that leads to it."""
        try:
            return cls(what, Path(os.path.realpath(path)))
        except ValueError as error:  # a NUL in it
            raise LedgerError(f"the path of the {what} is none: {error}.") from error

    @property
    def exists(self) -> bool:
        """Whether there is a file already."""
        return self.path.exists()

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock file beside it."""
        place = self.path.with_name(self.path.name + ".lock")
        flags = os.O_RDWR | os.O_CREAT | _NO_LINK
        try:
            if place.is_symlink():
                raise OSError(None, "its lock file is a symbolic link")  # noqa: TRY301
            handle = os.open(place, flags, 0o666)  # less what the umask says
        except OSError as error:
            raise self._unwritable(error) from error
        try:
            try:
                systems.lock(handle)
            except OSError as error:
                raise self._unwritable(error) from error
            try:
                yield
            finally:
                with contextlib.suppress(OSError):  # closing it gives the lock back too
                    systems.unlock(handle)
        finally:
            os.close(handle)

    def read(self) -> bytes:
        """Return the content."""
        try:
            content = systems.patiently(self.path.read_bytes)
            self._refuse_second_name()
        except OSError as error:
            raise LedgerError(
                f"the {self.what} {self.path} cannot be read: {error.strerror}."
            ) from error
        return content

    def write(self, content: bytes) -> None:
        """Write aside, sync, replace, sync the folder; called under the lock."""
        aside = self.path.with_name(f"{self.path.name}.{secrets.token_hex(8)}.tmp")
        try:
            mode = self.path.stat().st_mode if self.exists else None
            if mode is not None:
                self._refuse_second_name()
                if not mode & stat.S_IWUSR:
                    raise PermissionError(None, "it is marked read-only")
            self._tidy()
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK | _BYTES
            with os.fdopen(os.open(aside, flags, 0o666), "wb") as file:
                file.write(content)
                file.flush()
                systems.sync(file.fileno())
            if mode is not None:  # who may read and write it stays as it was
                aside.chmod(stat.S_IMODE(mode))
            systems.put_in_place(aside, self.path)
        except OSError as error:
            with contextlib.suppress(OSError):
                aside.unlink(missing_ok=True)
            raise self._unwritable(error) from error

    def _tidy(self) -> None:
        """Remove what killed processes left aside; links are removed, never followed."""
        ours = re.compile(re.escape(self.path.name) + r"\.[0-9a-f]{16}\.tmp")
        with contextlib.suppress(OSError):
            for one in list(self.path.parent.iterdir()):
                if ours.fullmatch(one.name):
                    one.unlink()

    def _refuse_second_name(self) -> None:
        if self.path.stat().st_nlink > 1:
            raise LedgerError(
                f"the {self.what} {self.path} has a second name, a hard link: each would go on with"
                " a budget of its own. Remove the other one; where two names are needed, use a"
                " symbolic link, and for backups copies."
            )

    def _unwritable(self, error: OSError) -> LedgerError:
        return LedgerError(
            f"the {self.what} {self.path} cannot be written: {error.strerror}. Nothing was"
            " released."
        )
