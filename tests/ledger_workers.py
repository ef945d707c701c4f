"""Processes that share a ledger file: two that race, and one that is killed."""

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


if __name__ == "__main__":
    be_killed(sys.argv[1], int(sys.argv[2]))
