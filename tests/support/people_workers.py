"""Processes that share a ledger about people: some race, some are killed."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pandas as pd

import pdp_calibrate as pdp

SAID: dict[str, Any] = {
    "groups": "home", "bounds": {"pay": (0, 10)}, "domains": {"city": ["a", "b"]}, "epsilon": 2.0,
}  # fmt: skip


def small_table() -> pd.DataFrame:
    """Three households of at most three."""
    return pd.DataFrame(
        {
            "home": [1, 1, 1, 2, 2, 3],
            "pay": [1.5, 7.25, -3.0, 4.0, 12.0, 9.0],
            "sick": [True, False, False, True, True, False],
            "city": ["a", "a", "b", "c", "b", "a"],
            "unasked": [1, 0, 1, 0, 1, 0],
        }
    )


def race(folder: str, rounds: int, barrier: Any, won: Any) -> None:
    """Go for the last ε of each ledger at the same moment as the other worker."""
    pdp.People(small_table(), **SAID).count({"sick": True}, epsilon=0.1)  # loads all
    for number in range(rounds):
        people = pdp.People.open(small_table(), Path(folder) / f"{number}.json")
        barrier.wait(timeout=60)
        try:
            people.sum("pay", epsilon=0.35, correlation=0.5)
            won.put(number)
        except pdp.BudgetExceededError:
            pass


def be_killed(path: str, times: int) -> None:
    """Fork children that release without end, and kill each in the middle of it.

    Prints how many answers each child and those before had given away, and what was written.
    """
    rng = random.Random(0)  # noqa: S311
    people = pdp.People(small_table(), **(SAID | {"epsilon": 99.0}), ledger=path)
    people.count({"sick": True}, epsilon=0.1)
    given = 1
    for _ in range(times):
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            own = pdp.People.open(small_table(), path)
            while True:
                own.count({"sick": True}, epsilon=0.001)
                os.write(write, b"x")
        os.close(write)
        os.read(read, 1)
        given += 1
        time.sleep(rng.uniform(0.0, 0.08))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        while more := os.read(read, 4096):
            given += len(more)
        os.close(read)
        print(given, len(people.history), flush=True)  # noqa: T201


if __name__ == "__main__":
    be_killed(sys.argv[1], int(sys.argv[2]))
