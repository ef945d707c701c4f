"""Ledgers on Windows and macOS, as far as stand-ins for their calls can show it on Linux."""

import errno
import os
import re
import sys
import threading
import time
import types
from pathlib import Path

import pytest

import pdp_calibrate as pdp
from pdp_calibrate.ledger.store import FileStore

if sys.platform != "linux":
    pytest.skip("stand-ins are for Linux", allow_module_level=True)

import fcntl

from tests.support.other_systems import Msvcrt, Sharing, systems_on

COUPLE = pdp.JointTable(
    probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, 1]] * 2, names=["a", "b"]
)
HERE = {"a": 1, "b": 0}
FILES = ["ledger.json", "ledger.json.lock"]


@pytest.fixture
def msvcrt():
    return Msvcrt()


@pytest.fixture
def windows(monkeypatch, msvcrt):
    """Let ledgers do what they do on Windows."""
    return systems_on("win32", monkeypatch, msvcrt=msvcrt)


def files(path):
    return sorted(one.name for one in path.parent.iterdir())


@pytest.mark.usefixtures("windows")
def test_windows_writes_syncs_and_replaces(path, msvcrt, monkeypatch):
    sharing = Sharing(monkeypatch)
    synced = []
    fsync = os.fsync

    def noting(handle):
        synced.append(Path(f"/proc/self/fd/{handle}").readlink().name)
        assert fcntl.fcntl(handle, fcntl.F_GETFL) & (os.O_WRONLY | os.O_RDWR)  # else EBADF there
        fsync(handle)

    monkeypatch.setattr(os, "fsync", noting)
    ledger = pdp.Ledger(COUPLE, epsilon=2.0, path=path)
    synced.clear()
    ledger.release(pdp.Sum(), HERE, epsilon=0.5)
    aside, last = synced  # no folder, which Windows cannot open
    assert re.fullmatch(r"ledger\.json\.[0-9a-f]{16}\.tmp", aside)
    assert last == "ledger.json"
    assert pdp.Ledger.open(path).spent == ledger.spent
    assert files(path) == FILES
    assert not msvcrt.held
    assert sharing.replaced == 2


@pytest.mark.usefixtures("windows")
def test_windows_waits_for_readers_of_the_file(path, monkeypatch):
    ledger = pdp.Ledger(COUPLE, epsilon=2.0, path=path)
    sharing = Sharing(monkeypatch)
    begun = threading.Event()

    def scan():
        with sharing.holding(path):
            begun.set()
            while sharing.refused < 3:
                time.sleep(0.001)

    scanner = threading.Thread(target=scan)
    scanner.start()
    assert begun.wait(10)
    spent = ledger.charge(0.1)
    scanner.join()
    assert sharing.refused >= 3
    assert pdp.Ledger.open(path).spent == spent


def test_windows_gives_up_on_a_file_that_stays_open(path, windows, monkeypatch):
    ledger = pdp.Ledger(COUPLE, epsilon=2.0, path=path)
    sharing = Sharing(monkeypatch)
    monkeypatch.setattr(windows, "PATIENCE", 0.05)
    drawn = []
    monkeypatch.setattr(
        "pdp_calibrate.core.noise.add_laplace_to_integers", lambda *_: drawn.append(1)
    )
    with (
        sharing.holding(path),
        pytest.raises(pdp.LedgerError, match=r"Access is denied.*Nothing was released"),
    ):
        ledger.release(pdp.Sum(), HERE, epsilon=0.5)
    assert not drawn
    assert files(path) == FILES
    assert ledger.history == ()
    ledger.charge(0.1)


def test_windows_reads_again_while_the_file_is_replaced(path, windows, monkeypatch):
    ledger = pdp.Ledger(COUPLE, epsilon=2.0, path=path)
    spent = ledger.charge(0.1)
    read, attempts, needed = Path.read_bytes, [], [4]

    def in_between(file):
        attempts.append(file)
        if len(attempts) < needed[0]:
            raise PermissionError(errno.EACCES, "Permission denied")
        return read(file)

    monkeypatch.setattr(Path, "read_bytes", in_between)
    assert ledger.spent == spent
    assert len(attempts) == 4
    needed[0] = 10**9
    monkeypatch.setattr(windows, "PATIENCE", 0.05)
    with pytest.raises(pdp.LedgerError, match="cannot be read"):
        _ = ledger.spent


@pytest.mark.usefixtures("windows")
def test_windows_locks_keep_threads_apart(path, msvcrt, monkeypatch):
    Sharing(monkeypatch)
    pdp.Ledger(COUPLE, epsilon=50.0, path=path)
    failures = []

    def work():
        try:
            own = pdp.Ledger.open(path)
            for _ in range(15):
                own.charge(0.01)
        except Exception as error:  # noqa: BLE001 - shown below
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert len(pdp.Ledger.open(path).history) == 45
    assert msvcrt.waited > 0  # they did meet
    assert not msvcrt.held


@pytest.mark.usefixtures("windows")
@pytest.mark.parametrize("failure", [errno.EBADF, errno.EINVAL])
def test_a_lock_that_fails_for_another_reason_is_not_waited_for(path, msvcrt, failure):
    ledger = pdp.Ledger(COUPLE, epsilon=2.0, path=path)
    msvcrt.failure = failure
    with pytest.raises(pdp.LedgerError, match="Nothing was released"):
        ledger.charge(0.1)
    msvcrt.failure = None
    assert ledger.history == ()
    ledger.charge(0.1)


def test_a_file_system_without_locks_is_refused(path, monkeypatch):
    ledger = pdp.Ledger(COUPLE, epsilon=2.0, path=path)

    def none(*_arguments):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", none)
    with pytest.raises(pdp.LedgerError, match=r"No locks available.*Nothing was released"):
        ledger.charge(0.1)


def mac(monkeypatch, failure=None):
    """Let ledgers do what they do on macOS, whose drive may refuse to empty its cache."""
    emptied = []

    def control(handle, command):
        assert command == 51
        emptied.append(handle)
        if failure is not None:
            raise OSError(failure, os.strerror(failure))
        return 0

    there = types.ModuleType("fcntl")
    there.LOCK_EX, there.LOCK_UN, there.F_FULLFSYNC = fcntl.LOCK_EX, fcntl.LOCK_UN, 51
    there.flock, there.fcntl = fcntl.flock, control
    loaded = systems_on("darwin", monkeypatch, fcntl=there)
    monkeypatch.setattr(loaded, "sys", types.SimpleNamespace(platform="darwin"))
    return emptied


@pytest.mark.parametrize("failure", [None, errno.ENOTSUP, errno.EINVAL, errno.ENOTTY])
def test_macos_empties_the_cache_of_the_drive_where_it_can(path, monkeypatch, failure):
    emptied = mac(monkeypatch, failure)
    ledger = pdp.Ledger(COUPLE, epsilon=2.0, path=path)
    emptied.clear()
    spent = ledger.charge(0.1)
    assert len(emptied) == 2  # the file and its folder
    assert pdp.Ledger.open(path).spent == spent


def test_macos_believes_a_drive_that_reports_an_error(path, monkeypatch):
    ledger = pdp.Ledger(COUPLE, epsilon=2.0, path=path)
    mac(monkeypatch, errno.EIO)
    with pytest.raises(pdp.LedgerError, match="Nothing was released"):
        ledger.charge(0.1)
    assert ledger.history == ()
    assert files(path) == FILES


def test_two_names_of_one_file_are_one_ledger(tmp_path):
    (tmp_path / "books").mkdir()
    (tmp_path / "link").mkdir()
    real, link = tmp_path / "books" / "ledger.json", tmp_path / "link" / "budget.json"
    first = pdp.Ledger(COUPLE, epsilon=1.0, path=real)
    link.symlink_to(real)
    second = pdp.Ledger.open(link)
    second.release(pdp.Sum(), HERE, epsilon=0.9)
    assert link.is_symlink()
    assert first.spent == second.spent > 0
    with pytest.raises(pdp.BudgetExceededError):
        first.release(pdp.Sum(), HERE, epsilon=0.9)
    assert files(real) == FILES
    assert files(link) == ["budget.json"]  # and no second lock
    to_come = tmp_path / "link" / "new.json"
    to_come.symlink_to(tmp_path / "books" / "new.json")
    pdp.Ledger(COUPLE, epsilon=1.0, path=to_come)
    assert (tmp_path / "books" / "new.json").is_file()


def test_a_relative_path_means_the_same_file_from_everywhere(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    ledger = pdp.Ledger(COUPLE, epsilon=1.0, path="ledger.json")
    monkeypatch.chdir("elsewhere")
    spent = ledger.charge(0.1)
    assert pdp.Ledger.open(tmp_path / "ledger.json").spent == spent


def test_who_may_read_the_file_stays_as_it_was(path):
    ledger = pdp.Ledger(COUPLE, epsilon=2.0, path=path)
    for mode in (0o600, 0o660):
        path.chmod(mode)
        ledger.charge(0.1)
        assert path.stat().st_mode & 0o777 == mode
    assert FileStore(path).read()["entries"]
