"""Files that results are written to: opened before anything is spent on what goes into them.

A name that cannot be written is refused while nothing has happened yet. The content goes to a
temporary file beside it, which takes its place once it is complete: an earlier file is there until
then, and stays where that fails. A ledger is never replaced, under whatever name: it is recognised
by its content.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from pathlib import Path

from pdp_calibrate.errors import PdpError
from pdp_calibrate.ledger.store import check_path, is_ledger

_NO_LINK = getattr(os, "O_NOFOLLOW", 0)  # Windows has none


class OutputFile:
    """A file that will be written as a whole; leaving the context removes what was not written.

    Parameters
    ----------
    path
        Where it is to be.
    overwrite
        Whether a file that is there may be replaced. A ledger never is.
    how
        How people allow that, for messages.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, overwrite: bool, how: str = "overwrite=True"
    ) -> None:
        check_path(path, what="file to write")
        self.path = self._target = Path(path)
        self._placeholder: os.stat_result | None = None
        self._aside: Path | None = None
        self._handle = -1
        try:
            self._check(overwrite=overwrite, how=how)
            self._target = Path(os.path.realpath(self.path))
            self._handle = self._opened()
        except OSError as error:
            self.close()
            raise self._unwritable(error) from error

    def _check(self, *, overwrite: bool, how: str) -> None:
        path = self.path
        if "\0" in str(path):
            raise PdpError("the name of a file has no NUL character in it.")
        if not path.parent.is_dir():
            raise PdpError(f"there is no folder {path.parent} to write {path.name} into.")
        if path.is_dir():
            raise PdpError(f"{path} is a folder: name a file to write.")
        if is_ledger(path):
            raise PdpError(
                f"{path} is a ledger, or belongs to one, and is never overwritten: name another"
                " file to write."
            )
        if os.path.lexists(path) and not overwrite:
            raise PdpError(f"{path} exists already: {how} overwrites it.")
        if path.exists() and not os.access(path, os.W_OK):
            raise PdpError(f"{path} cannot be written: permission denied.")

    def _opened(self) -> int:
        """Open the file that the content is written to; a device or pipe is that file itself."""
        new = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK
        if not os.path.lexists(self._target):
            handle = os.open(self._target, new, 0o666)  # less what the umask says
            self._placeholder = os.fstat(handle)
            os.close(handle)
        elif not stat.S_ISREG(self._target.stat().st_mode):
            return os.open(self._target, os.O_WRONLY)
        aside = self._target.with_name(f".{self._target.name[:64]}.{secrets.token_hex(8)}.tmp")
        handle = os.open(aside, new, 0o666)
        self._aside = aside
        return handle

    def write(self, text: str | bytes) -> None:
        """Write all of it, durably, and put it in its place."""
        content = text.encode() if isinstance(text, str) else text
        try:
            with os.fdopen(os.dup(self._handle), "wb") as file:
                file.write(content)
                file.flush()
                if self._aside is not None:
                    os.fsync(file.fileno())
            if self._aside is not None:
                self._put_in_place(self._aside, content)
        except OSError as error:
            raise self._unwritable(error) from error
        self._placeholder = None  # it is the file that was asked for
        self.close()

    def _put_in_place(self, aside: Path, content: bytes) -> None:
        if self._placeholder is None:  # who may read and write it stays as it was
            with contextlib.suppress(OSError):
                aside.chmod(stat.S_IMODE(self._target.stat().st_mode))
        elif not self._is_ours():
            raise OSError(None, "another process has written it meanwhile")
        if is_ledger(self._target):
            raise OSError(None, "a ledger was begun there meanwhile")
        os.close(self._handle)  # Windows moves no file that is open
        self._handle = -1
        try:
            aside.replace(self._target)
        except OSError:  # such as a single file that is mounted into a container
            with self._target.open("wb") as file:
                file.write(content)

    def _is_ours(self) -> bool:
        try:
            there = os.lstat(self._target)
        except OSError:
            return False
        return self._placeholder is not None and os.path.samestat(there, self._placeholder)

    def close(self) -> None:
        """Remove what was opened and not written."""
        handle, self._handle = self._handle, -1
        with contextlib.suppress(OSError):
            if handle >= 0:
                os.close(handle)
        with contextlib.suppress(OSError):
            if self._aside is not None:
                self._aside.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            if self._is_ours():
                self._target.unlink()

    def __enter__(self) -> OutputFile:
        """Return the file, open."""
        return self

    def __exit__(self, *_: object) -> None:
        """Remove what was not written."""
        self.close()

    def _unwritable(self, error: OSError) -> PdpError:
        return PdpError(f"{self.path} cannot be written: {error.strerror}.")
