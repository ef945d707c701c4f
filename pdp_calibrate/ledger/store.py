"""The state of a ledger, in memory or in a JSON file: what it is about, its draws, its entries.

A checksum detects a torn or edited file, which is refused, never repaired. It has no key: anybody
who wants to forge a ledger can, and an old copy has a valid checksum. The anchor protects against
old copies and ledgers that were started over.

**Files** are either the old one or the new one, never half of each, and have one name. A process
that changes one holds an operating-system lock on a file beside it, which the system itself
releases when a process dies, so no lock is ever stale. The new content goes to a temporary file, is
synced to disk and replaces the old one atomically. Neither that file nor the lock is ever opened
through a symbolic link that somebody planted in the folder.

Somebody may delete the file of the lock while it is held: the next process then makes another one,
and both would hold "the" lock. So the ledger itself is locked too, and a lock counts only if, once
it is held, its path still leads to what was locked; else it is taken again. Windows deletes and
replaces no file that is open, so there the file of the lock is enough.

**The anchor** is a second file, elsewhere, that must agree with a ledger: it detects old copies and
ledgers that were started over. It holds the checksum of the ledger's last state. Before the ledger
is written, the next state is noted beside the present one; afterwards only the new one is kept, and
only then is anything released. So a process may be killed at any moment: until the end both states
are accepted, and nothing was released that relies on the second; from then on the first is refused.

**Operating systems** differ in locks, syncing, and replacing a file that others read. Windows
refuses to replace a file that anybody has open, be it a reader of the ledger for a moment or a
virus scanner, and refuses to open one that is being replaced: both are tried again for a while. It
cannot sync folders. On macOS, `fsync` leaves data in the cache of the drive, and the call that
empties that cache is not there on every file system.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
import secrets
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

from pdp_calibrate.arrays import damage_refused
from pdp_calibrate.core.model import FORMAT, LATER, SCHEMA, is_later
from pdp_calibrate.errors import LedgerError, PdpError

T = TypeVar("T")

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

    def begin(self, state: Mapping[str, Any]) -> None:
        """Write the first state; refuse to begin a ledger where there is one."""

    def holds(self, state: Mapping[str, Any]) -> bool:
        """Whether the state is certain to be one that was read, and is still there, unchanged."""


class MemoryStore:
    """State that ends with the process, and cannot be used in another one."""

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

    begin = write  # memory holds nothing yet

    def holds(self, state: Mapping[str, Any]) -> bool:
        """Whether the state is the one in memory."""
        return self.read() == state

    def __reduce__(self) -> Any:
        """Refuse to be copied or pickled: each copy would have the whole budget."""
        raise LedgerError(_ONE_MEMORY)

    def _refuse_copies(self) -> None:
        if os.getpid() != self._process:
            raise LedgerError(_ONE_MEMORY)


_ONE_MEMORY = (
    "a ledger in memory belongs to the process that began it, and has no copies: a copy would spend"
    " the same budget again. Keep it in a file, with path= (People: ledger=), and open it where it"
    " is needed."
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
        self._summed = b"", ""  # the last content whose sum was found to hold, and that sum

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock beside the ledger and, where it has one, the lock beside its anchor."""
        with contextlib.ExitStack() as held:
            held.enter_context(self._file.locked())
            if self._anchor is not None:
                held.enter_context(self._anchor.locked())
            yield

    def begin(self, state: Mapping[str, Any]) -> None:
        """Write the first state, where there is no ledger, nor was one: its anchor remembers it."""
        self._file.check_new()
        if self._anchor is not None:
            self._anchor.check_new()
        self._write(state, new=True)

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
        # The same bytes have the same sum: a release reads what it, or the last one, knows already.
        if content != self._summed[0] and state.get("checksum") != _checksum(state):
            raise _untrustworthy(path)
        self._summed = content, state["checksum"]
        if state.get("type") not in KINDS:
            raise _untrustworthy(path)
        if state["type"] != self._kind:
            raise LedgerError(f"the ledger {path} is about {KINDS[state['type']]}.")
        if is_later(state):
            raise LedgerError(f"the ledger {path} {LATER}")
        self._check_anchor(state)
        return state

    def holds(self, state: Mapping[str, Any]) -> bool:
        """Whether the file has the bytes that a state was read from, and the anchor agrees.

        Bytes and sum are of one reading: another thread may have read other bytes since.
        """
        content, checksum = self._summed
        if state.get("checksum") != checksum or self._file.read() != content:
            return False
        self._check_anchor(state)
        return True

    def write(self, state: Mapping[str, Any]) -> None:
        """Replace the file; the anchor notes the new state first, and accepts it last."""
        self._write(state, new=False)

    def _write(self, state: Mapping[str, Any], *, new: bool) -> None:
        present = state.get("checksum")
        coming = {key: value for key, value in state.items() if key != "checksum"}
        coming["version"] = FORMAT  # a ledger of an earlier version is upgraded by its first entry
        if self._anchor is not None:
            coming["anchor"] = str(self._anchor.path)
        checksum = _checksum(coming)
        content = _lines({**coming, "checksum": checksum}).encode()
        if self._anchor is not None:
            self._anchor.announce(present=present, coming=checksum)
        self._file.write(content, new=new)
        self._summed = content, checksum
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
        " Restore it from a backup that holds every release made so far."
    )


State = dict[str, Any]


@dataclass
class Pages:
    """Reads and appends entries; detects entries that went missing."""

    store: Store
    later: Store | None = None
    """Where the state goes with its first entry, and stays from then on; it must not be begun."""
    _seen: list[State] = field(default_factory=list)

    def start(self, heading: State, draw: str, entries: list[State]) -> None:
        """Open a new ledger with its first entries, where there is none."""
        with self.store.locked():
            self.store.begin({**heading, "draws": [_draw_name(draw)], "entries": entries})
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
        _refuse_lost(entries, seen)
        # Nothing that was seen is forgotten: these go on from it, or are more than others saw.
        if self._seen is seen or len(entries) > len(self._seen):
            self._seen = entries[:]
        return state

    @contextlib.contextmanager
    def changing(self) -> Iterator[State]:
        """Let the caller read the state and change it, while nobody else can.

        If the caller raises, nothing is written; when this ends, the change is durable.
        """
        with self._kept().locked():
            state = self._read()
            yield state
            self._write(state)

    def _kept(self) -> Store:
        return self.store if self.later is None else self.later

    def _write(self, state: State) -> None:
        """Write a state under the lock; the first entry of a ledger may begin its file."""
        if self.later is None:
            self.store.write(state)
        else:
            self.later.begin(state)
            self.store, self.later = self.later, None
        self._seen = state["entries"][:]

    def replace(self, before: State, after: State) -> bool:
        """Write a state that was made from another one, unless others changed that meanwhile.

        Returns whether it was written; then it is durable.
        """
        with self._kept().locked():
            # The same bytes as before need not be read again, unless more was seen meanwhile.
            if not self.store.holds(before) and self._read() != before:
                return False
            _refuse_lost(before["entries"], self._seen)
            self._write(after)
        return True

    def add_draw(self, name: str) -> None:
        """Begin a draw of its own name."""
        with self.changing() as state:
            if name in state["draws"]:
                raise LedgerError(f"the ledger has a draw {name!r} already; its budget counts on.")
            state["draws"].append(_draw_name(name))


def _refuse_lost(entries: list[State], seen: list[State]) -> None:
    """Raise unless everything that was seen stands where it stood."""
    if entries[: len(seen)] != seen:
        raise LedgerError(
            "the ledger on disk has lost entries since it was last read: an old copy was put"
            " in its place. Restore the latest one."
        )


def _draw_name(draw: str) -> str:
    if not isinstance(draw, str) or not draw:
        raise LedgerError("a draw needs a name, such as '2026-11-17'.")
    return draw


_NO_LINK = getattr(os, "O_NOFOLLOW", 0)  # Windows has none; links are checked for there too


_BYTES = getattr(os, "O_BINARY", 0)  # of Windows


def check_path(path: object, *, what: str, error: type[PdpError] = PdpError) -> None:
    """Refuse what is no path; a number would name an open file of the process."""
    if not isinstance(path, str | os.PathLike):
        raise error(f"the {what} is given by the path of its file, got {type(path).__name__}.")


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
        check_path(path, what=what, error=LedgerError)
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
        """Hold the lock file beside it, and the lock of the file itself where there is one."""
        with contextlib.ExitStack() as held:
            try:
                held.enter_context(_locked(lock_of(self.path), create=True))
                if sys.platform != "win32":
                    held.enter_context(_locked(self.path, create=False))
            except OSError as error:
                raise self._unwritable(error) from error
            yield

    def read(self) -> bytes:
        """Return the content."""
        try:
            content = patiently(self.path.read_bytes)
            self._refuse_second_name()
        except OSError as error:
            raise LedgerError(
                f"the {self.what} {self.path} cannot be read: {error.strerror}."
            ) from error
        return content

    def check_new(self) -> None:
        """Refuse to begin a file where there is one."""
        if os.path.lexists(self.path):
            raise LedgerError(
                f"there is a {self.what} at {self.path} already: open it to go on with it."
            )

    def write(self, content: bytes, *, new: bool = False) -> None:
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
                sync(file.fileno())
            if mode is not None:  # who may read and write it stays as it was
                aside.chmod(stat.S_IMODE(mode))
            if new:  # there was no file to lock: once more, since its lock may have been deleted
                self.check_new()
            put_in_place(aside, self.path)
        except OSError as error:
            raise self._unwritable(error) from error
        finally:
            with contextlib.suppress(OSError):
                aside.unlink(missing_ok=True)

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
                f"the {self.what} {self.path} has a second name, a hard link: each would continue"
                " with its own budget. Remove the other one; if two names are needed, use a"
                " symbolic link, and for backups use copies."
            )

    def _unwritable(self, error: OSError) -> LedgerError:
        return LedgerError(
            f"the {self.what} {self.path} cannot be written: {error.strerror}. Nothing was"
            " released."
        )


def lock_of(path: Path) -> Path:
    """Return where the lock of a file is."""
    return path.with_name(path.name + _LOCK)


@contextlib.contextmanager
def _locked(place: Path, *, create: bool) -> Iterator[None]:
    """Hold the lock of what a path leads to; without `create` nothing is held if there is none."""
    while True:
        handle = _opened(place, create=create)
        if handle is None:
            yield
            return
        try:
            lock(handle)
            try:
                if _is_at(handle, place):
                    yield
                    return
            finally:
                with contextlib.suppress(OSError):  # closing it gives the lock back too
                    unlock(handle)
        finally:
            os.close(handle)


def _opened(place: Path, *, create: bool) -> int | None:
    if place.is_symlink():
        raise OSError(None, "its lock file is a symbolic link")
    flags = os.O_RDWR | _NO_LINK
    if create:
        return os.open(place, flags | os.O_CREAT, 0o666)  # less what the umask says
    try:
        return os.open(place, flags)
    except FileNotFoundError:
        return None
    except PermissionError:  # locks of a local disk need no more
        return os.open(place, os.O_RDONLY | _NO_LINK)


def _is_at(handle: int, place: Path) -> bool:
    """Whether a path still leads to a file that was opened there; on Windows it always does."""
    try:
        return sys.platform == "win32" or os.path.samestat(os.fstat(handle), os.lstat(place))
    except FileNotFoundError:
        return False


_ANCHOR = "LedgerAnchor"


class DisagreementError(LedgerError):
    """A ledger and its anchor do not agree, which is normal for a moment while both are written."""


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
        """Refuse an anchor of a ledger that was started; an interrupted start may continue."""
        if self._file.exists and self._states()[0] is not None:
            raise LedgerError(
                f"the anchor {self.path} belongs to a ledger that was begun already: continue with"
                " that one. If it was lost, what it had spent cannot be spent again: restore its"
                " latest state, or begin a new one, with another anchor, about other data."
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
        described = {"schema": SCHEMA, "type": _ANCHOR, "state": state, "next": coming}
        self._file.write((json.dumps(described, indent=2) + "\n").encode())

    def _states(self) -> tuple[str | None, str | None]:
        content = self._file.read()
        with damage_refused(f"the anchor {self.path}", kind=LedgerError):
            described = json.loads(content)
            if (described["schema"], described["type"]) == (SCHEMA, _ANCHOR):
                return described["state"], described["next"]
        raise LedgerError(f"{self.path} is not the anchor of a ledger.")


def is_ledger(path: str | os.PathLike[str]) -> bool:
    """Whether a path leads to a ledger, also a damaged one, to its anchor, or to the lock of one.

    Content decides, not the name; an `OSError` says that it cannot be read. The copy that
    `Ledger.certified` returns has no checksum, and cannot be opened as a ledger: it is none.
    """
    place = Path(os.path.realpath(path))
    if place.name.endswith(_LOCK):
        return is_ledger(place.with_name(place.name.removesuffix(_LOCK)))
    if not place.is_file():  # a device or pipe is not read
        return False
    with place.open("rb") as file:
        start = file.read(_HEADING)
        if not _BEGINS.search(start):
            return False
        content = start + file.read()
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):  # damaged, and perhaps to be mended by hand
        return True
    return isinstance(found, dict) and (found.get("type") == _ANCHOR or "checksum" in found)


_LOCK = ".lock"
_HEADING = 4096  # bytes, in which a file says what it is
_BEGINS = re.compile(rb'"type"\s*:\s*"(%s)"' % "|".join([*KINDS, _ANCHOR]).encode())


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
