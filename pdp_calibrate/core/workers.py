"""Run compiled searches on all cores the process may use, stop them in time, show their progress.

Nothing assumes a number of cores: it is asked of the system each time, and it respects limits set
on the process (`taskset`, job schedulers, containers with their own cores). Only speed and memory
depend on it, for every thread has work space of its own. Progress is shown on a terminal only.
"""

from __future__ import annotations

import contextlib
import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
import numpy.typing as npt

_REFRESH_SECONDS = 0.2


_T = TypeVar("_T")


_R = TypeVar("_R")


@dataclass(frozen=True)
class Clock:
    """When to stop, and the flag that compiled code reads."""

    deadline: float
    """Value of `time.monotonic()`."""
    stop: npt.NDArray[np.bool_] = field(default_factory=lambda: np.zeros(1, dtype=np.bool_))
    """stop[0] is set when time is up."""
    enough: float = math.inf
    """A leakage that, once found, makes further search needless."""

    @property
    def is_over(self) -> bool:
        """Whether time is up; sets the flag if so."""
        if not self.stop[0] and time.monotonic() > self.deadline:
            self.stop[0] = True
        return bool(self.stop[0])


def run(
    tasks: Sequence[_T], work: Callable[[_T], _R], clock: Clock, *, what: str, small: bool
) -> list[_R | None]:
    """Apply `work` to every task; None for tasks not begun in time.

    `work` releases the interpreter lock, so that threads share memory and use all cores. Small work
    stays in this thread.
    """
    if small:
        return [None if clock.is_over else work(task) for task in tasks]
    return _in_threads(tasks, work, clock, what)


def cores() -> int:
    """Return how many cores this process may use."""
    if sys.version_info >= (3, 13):
        return os.process_cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):  # not on macOS and Windows, where nothing limits a process
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _in_threads(
    tasks: Sequence[_T], work: Callable[[_T], _R], clock: Clock, what: str
) -> list[_R | None]:
    def unless_over(task: _T) -> _R | None:
        return None if clock.stop[0] else work(task)

    with ThreadPoolExecutor(max_workers=max(1, min(cores(), len(tasks)))) as pool:
        futures = [pool.submit(unless_over, task) for task in tasks]
        try:
            with progress(what, total=len(tasks)) as show:
                _watch(futures, clock, show)
        except BaseException:
            clock.stop[0] = True  # let the threads end before the error goes on
            raise
        return [future.result() for future in futures]


def _watch(futures: Sequence[Future[_R | None]], clock: Clock, show: Callable[[int], None]) -> None:
    """Wait for all futures, setting the flag when time is up."""
    pending = set(futures)
    while pending:
        remaining = max(0.0, clock.deadline - time.monotonic())
        patience = _REFRESH_SECONDS if clock.stop[0] else min(_REFRESH_SECONDS, remaining)
        _, pending = wait(pending, timeout=patience, return_when=FIRST_COMPLETED)
        if pending and not clock.is_over:
            show(len(futures) - len(pending))


_announced = False


def announce_compiling() -> None:
    """Say on a terminal, before compiled code is used, that it is being compiled if it is.

    Says so once, when the compiler starts on something that is not in its cache on disk.
    """
    global _announced  # one listener per process
    if _announced or not sys.stderr.isatty():
        return
    _announced = True
    from numba.core import event

    class Announcer(event.Listener):  # type: ignore[misc]
        """Speaks at the first function that is compiled."""

        def on_start(self, _event: object) -> None:
            if not said:
                said.append(True)
                sys.stderr.write("compiling once for this machine, 4 to 15 s\n")
                sys.stderr.flush()

        def on_end(self, _event: object) -> None:
            """Say nothing more."""

    said: list[bool] = []
    event.register("numba:compile", Announcer())


SILENT_SECONDS = 2.0  # shorter work shows nothing


@contextlib.contextmanager
def progress(what: str, *, total: int | None = None) -> Iterator[Callable[[int], None]]:
    """Yield a function that shows the number done, once the work has taken a while.

    Parameters
    ----------
    what
        What is being done.
    total
        How much there is to do; None if nobody knows.
    """
    if not sys.stderr.isatty():
        yield lambda _done: None
        return
    from rich.console import Console
    from rich.progress import Progress

    bar = Progress(console=Console(stderr=True), transient=True)
    begun = time.monotonic()
    task = bar.add_task(what, total=total)

    def show(done: int) -> None:
        if time.monotonic() - begun > SILENT_SECONDS:
            bar.start()
            bar.update(task, completed=done)

    try:
        yield show
    finally:
        bar.stop()
