"""Processes that share a ledger: some race, some are killed, some are forks of its owner."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pdp_calibrate as pdp

HERE = {"a": 1, "b": 0}


def race(folder: str, rounds: int, barrier: Any, won: Any) -> None:
    """Go for the last ε of each ledger at the same moment as the other worker."""
    table = pdp.Ledger.open(Path(folder) / "0.json").model
    calibration = pdp.calibrate(table, pdp.Sum(), epsilon=0.35)
    calibration.release(HERE)  # loads all that takes time
    for number in range(rounds):
        ledger = pdp.Ledger.open(Path(folder) / f"{number}.json")
        barrier.wait(timeout=60)
        try:
            calibration.release(HERE, ledger=ledger)
            won.put(number)
        except pdp.BudgetExceededError:
            pass


def search_slowly(path: str, epsilon: float, searching: Any, go_on: Any, met: Any) -> None:
    """Charge a ledger, and search for the joint leakage until the other process has charged too."""
    from pdp_calibrate.ledger import accounts

    real, waited = accounts.spent, []

    def slow(*about: Any, **options: Any) -> Any:
        if not waited:
            searching.set()
            waited.append(go_on.wait(timeout=60))
        return real(*about, **options)

    accounts.spent = slow
    try:
        met.put((waited, pdp.Ledger.open(path).charge(epsilon)))
    except pdp.BudgetExceededError as error:
        met.put((waited, str(error)))


def charge_while_held(
    path: str, anchor: str | None, epsilon: float, held: Any, go_on: Any, met: Any
) -> None:
    """Charge a ledger, and search for the joint leakage while holding its lock."""
    from pdp_calibrate.ledger import accounts

    real = accounts.spent

    def slow(*about: Any, **options: Any) -> Any:
        held.set()
        go_on.wait(timeout=60)
        return real(*about, **options)

    accounts.spent, accounts._ATTEMPTS = slow, 0  # so that it searches under the lock
    try:
        met.put(pdp.Ledger.open(path, anchor=anchor).charge(epsilon))
    except pdp.PdpError as error:
        met.put(str(error))


def be_killed(path: str, times: int) -> None:
    """Fork children that release without end, and kill each in the middle of it.

    Prints how many answers each child had given away.
    """
    rng = random.Random(0)  # noqa: S311
    pdp.Ledger(pdp.Ledger.open(path).model, epsilon=9).release(pdp.Sum(), HERE, epsilon=0.1)
    for _ in range(times):
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            ledger = pdp.Ledger.open(path)
            while True:
                ledger.release(pdp.Sum(), HERE, epsilon=0.001)
                os.write(write, b"x")
        os.close(write)
        os.read(read, 1)
        time.sleep(rng.uniform(0.0, 0.08))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        given = 1
        while more := os.read(read, 4096):
            given += len(more)
        os.close(read)
        print(given, len(pdp.Ledger.open(path).history), flush=True)  # noqa: T201


def share(path: str, anchor: str, times: int, failures: Any) -> None:
    """Charge and read a ledger with an anchor while others do the same."""
    try:
        ledger = pdp.Ledger.open(path, anchor=anchor)
        for _ in range(times):
            ledger.charge(0.01)
            pdp.Ledger.open(path, anchor=anchor).spent  # noqa: B018
    except Exception as error:  # noqa: BLE001 - shown by the test
        failures.put(repr(error))


def be_killed_between(folder: str) -> None:
    """Be killed around each of the writes of a release, and of a beginning, in a ledger each.

    The ledgers stay in folders that say what was going on. Prints what was being done when, and
    whether noise was drawn.
    """
    from pdp_calibrate.ledger import store

    real = store.put_in_place
    table = pdp.JointTable(
        probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, 1]] * 2, names=["a", "b"]
    )
    pdp.calibrate(table, pdp.Sum(), epsilon=0.5).release(HERE)  # loads all that takes time
    for what in ("release", "begin"):
        for write in range(3):
            for moment in ("before", "after"):
                place = Path(folder) / f"{what}-{write}-{moment}"
                (place / "outside").mkdir(parents=True)
                path, anchor = place / "ledger.json", place / "outside" / "anchor.json"
                if what == "release":
                    pdp.Ledger(table, epsilon=1.0, path=path, anchor=anchor).charge(0.1)
                done = 0

                def die(aside: Path, path: Path, write: int = write, moment: str = moment) -> None:
                    nonlocal done
                    done += 1
                    if done == write + 1 and moment == "before":
                        os.kill(os.getpid(), signal.SIGKILL)
                    real(aside, path)
                    if done == write + 1:
                        os.kill(os.getpid(), signal.SIGKILL)

                read, pipe = os.pipe()
                child = os.fork()
                if child == 0:
                    store.put_in_place = die  # type: ignore[assignment]
                    if what == "release":
                        ledger = pdp.Ledger.open(path, anchor=anchor)
                        ledger.release(pdp.Sum(), HERE, epsilon=0.5)
                    else:
                        pdp.Ledger(table, epsilon=1.0, path=path, anchor=anchor)
                    os.write(pipe, b"x")
                    os._exit(0)
                os.close(pipe)
                _, status = os.waitpid(child, 0)
                killed = os.WIFSIGNALED(status)
                print(place.name, killed, len(os.read(read, 1)), flush=True)  # noqa: T201
                os.close(read)


def fork_memory(workers: int) -> None:
    """Let forks of the owner of a ledger in memory release; print what each of them met."""
    table = pdp.JointTable(
        probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, 1]] * 2, names=["a", "b"]
    )
    ledger = pdp.Ledger(table, epsilon=1.0)
    calibration = pdp.calibrate(table, pdp.Sum(), epsilon=1.0)
    pdp.Ledger(table, epsilon=9.0).release(pdp.Sum(), HERE, epsilon=1.0)  # loads all
    for _ in range(workers):
        child = os.fork()
        if child == 0:
            for use in (
                lambda: calibration.release(HERE, ledger=ledger),
                lambda: ledger.charge(0.1),
                lambda: ledger.spent,
            ):
                try:
                    use()
                    print("allowed", flush=True)  # noqa: T201
                except pdp.LedgerError as error:
                    print(error, flush=True)  # noqa: T201
            os._exit(0)
        os.waitpid(child, 0)
    ledger.release(pdp.Sum(), HERE, epsilon=1.0)
    print("owner", len(ledger.history), flush=True)  # noqa: T201


if __name__ == "__main__":
    {"be_killed": be_killed, "be_killed_between": be_killed_between, "fork_memory": fork_memory}[
        sys.argv[1]
    ](*(int(word) if word.isdigit() else word for word in sys.argv[2:]))
