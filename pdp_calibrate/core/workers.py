"""How searches run: largest bound first, on all cores, until time is up, and showing progress.

Nothing assumes a number of cores: the system is asked each time, which respects limits set on the
process (`taskset`, job schedulers, containers with their own cores). Only speed and memory depend
on it, because every thread has its own work space. Progress is shown on a terminal only.

`best_first` judges cases in the order of falling bounds until no bound is left that matters.
"""

from __future__ import annotations

import contextlib
import functools
import heapq
import importlib.util
import itertools
import math
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple, Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.tuning import (
    COMPILING_SECONDS,
    REFRESH_SECONDS,
    SEARCHES_TO_HALF,
    SILENT_SECONDS,
)
from pdp_calibrate.errors import CalibrationError

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
        patience = REFRESH_SECONDS if clock.stop[0] else min(REFRESH_SECONDS, remaining)
        _, pending = wait(pending, timeout=patience)
        if pending and not clock.is_over:
            show(len(futures) - len(pending))


class _Bar:
    """One progress bar on the terminal, for all work until it is closed."""

    def __init__(self, what: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f}%"),
            TimeElapsedColumn(),  # what is left nobody knows
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._bar.add_task(what, total=1.0)
        self._done = 0.0
        self.searches = 0
        # From a thread of its own, so that one long step does not keep the terminal silent.
        self._timer = threading.Timer(SILENT_SECONDS, self._bar.start)
        self._timer.daemon = True
        self._timer.start()

    def show(self, done: float) -> None:
        """Move the bar to a share of the whole; it never moves back."""
        self._done = max(self._done, done)
        self._bar.update(self._task, completed=self._done)

    def say(self, what: str, *, at_once: bool = False) -> None:
        """Say what is being done."""
        self._bar.update(self._task, description=what)
        if at_once:
            self._timer.cancel()
            self._bar.start()

    def close(self) -> None:
        """Take the bar away."""
        self._timer.cancel()
        self._timer.join()
        self._bar.stop()


_shown: _Bar | None = None  # the bar on the terminal: there is never more than one


def one_bar(what: str) -> contextlib.AbstractContextManager[None]:
    """Show one bar for all searches inside, instead of one for each of them.

    The number of searches is not known in advance, so each moves the bar less than the one before:
    half of it is left after three of them, a tenth after 27. Shown on a terminal only, once the
    work has taken `SILENT_SECONDS`; inside another bar nothing is added.

    Examples
    --------
    >>> with one_bar("calibrating"), progress("comparing adversaries", total=2) as show:
    ...     show(1)
    """
    return under_one_bar(what) if _is_bar_missing() else contextlib.nullcontext()


def _is_bar_missing() -> bool:
    """Whether work that begins now may show a bar."""
    return _shown is None and sys.stderr.isatty()


@contextlib.contextmanager
def under_one_bar(what: str) -> Iterator[None]:
    """Do as `one_bar`, as a decorator: whoever calls the function later may see a terminal."""
    global _shown
    if not _is_bar_missing():
        yield
        return
    _shown = _Bar(what)
    try:
        yield
    finally:
        _shown.close()
        _shown = None


def progress(
    what: str, *, total: int | None = None
) -> contextlib.AbstractContextManager[Callable[[int], None]]:
    """Yield a function that shows the number done, on a terminal only.

    Parameters
    ----------
    what
        What is being done.
    total
        How much there is to do; None if that is not known.
    """
    if _shown is None and not sys.stderr.isatty():
        return contextlib.nullcontext(_show_nothing)
    return _progress(what, total)


@contextlib.contextmanager
def _progress(what: str, total: int | None) -> Iterator[Callable[[int], None]]:
    is_alone = _shown is None
    with one_bar(what):
        bar = _shown
        if bar is None:
            yield _show_nothing
            return
        begun = bar.searches
        bar.say(what)

        def move(share: float) -> None:
            searched = begun + share
            # While work goes on, never show 100 %.
            bar.show(share if is_alone else min(0.99, searched / (searched + SEARCHES_TO_HALF)))

        def show(done: int) -> None:
            if total:
                move(min(1.0, done / total))  # cases may fall into more cases than there were

        yield show
        move(1.0)
        bar.searches = max(bar.searches, begun + 1)


_interpreting = threading.local()  # whether a module of kernels is being read, not compiled


def njit(**options: Any) -> Any:
    """Compile a function with numba; leave it as it is where its module is interpreted."""
    if getattr(_interpreting, "now", False):
        return lambda function: function
    import numba

    return numba.njit(**options)


@functools.cache
def _interpreted_kernels(module: str) -> ModuleType:
    """Read a module of kernels once more, as plain Python: the same formulas, the same bits."""
    found = importlib.util.find_spec(module)
    if found is None or found.loader is None:
        raise ModuleNotFoundError(module)
    read = importlib.util.module_from_spec(found)
    _interpreting.now = True
    try:
        found.loader.exec_module(read)
    finally:
        _interpreting.now = False
    return read


def load_kernels(module: str, *, compiled: bool = True) -> ModuleType:
    """Import a module of compiled functions, when a problem is first large enough to need it.

    On a terminal, the first function that numba really compiles, rather than loads from its cache,
    is announced at once.
    """
    if not compiled:
        return _interpreted_kernels(module)
    found = sys.modules.get(module)
    if found is None:
        announce_compiling()
        found = import_module(module)
    return found


@functools.cache
def announce_compiling() -> None:
    """Have the first real compilation of this process announced on a terminal."""
    from numba.core import event

    class Announcer(event.Listener):  # type: ignore[misc]
        said = False

        def on_start(self, _event: object) -> None:
            if self.said or not sys.stderr.isatty():
                return
            self.said = True
            what = f"compiling once for this machine, about {COMPILING_SECONDS} s"
            if _shown is None:
                sys.stderr.write(f"{what}\n")
                sys.stderr.flush()
            else:
                _shown.say(what, at_once=True)

        def on_end(self, _event: object) -> None:
            """Leave the announcement; the next search says what it does."""

    event.register("numba:compile", Announcer())


class Judged(Protocol):
    """What is known about some cases: a bracket of the worst of them."""

    @property
    def lower(self) -> float:
        """What somebody among them attains."""

    def or_worse(self, other: Self) -> Self:
        """Return what is known about these cases and the others together."""


_Case = TypeVar("_Case")


_Found = TypeVar("_Found", bound=Judged)


def best_first(
    cases: Iterable[tuple[float, _Case]],
    judge: Callable[[float, _Case], _Found],
    *,
    start: _Found,
    unjudged: Callable[[float, _Case], _Found],
    cutoff: Callable[[_Found], float],
    is_over: Callable[[], bool],
    enough: float = math.inf,
    what: str | None = None,
    parts: Callable[[_Case], Iterable[tuple[float, _Case]]] | None = None,
) -> _Found:
    """Return a bracket of the worst of all cases, judging as few of them as possible.

    Sound for every cutoff and whenever it stops: the cases are taken by falling bound, so the
    first one that is not judged has a bound that covers all that are left, and this bound goes into
    the result. The cutoff only decides how tight the result is. At `max(incumbent, found.lower)`
    the upper end exceeds neither the incumbent nor what the judged cases were found to leak, unless
    the search was stopped.

    Parameters
    ----------
    cases
        A bound on what each case leaks, and the case; in any order.
    judge
        Brackets one case, given its bound.
    start
        What is known before; the result covers it too.
    unjudged
        The bracket for a case, and all with smaller bounds, that is not judged: its bound as upper
        end.
    cutoff
        Cases with a bound up to this, which may depend on what was found so far, are not judged.
    is_over
        Whether time is up.
    enough
        No further case is judged once somebody is found to leak more than this.
    what
        What to call the work while its progress is shown; None to show nothing.
    parts
        Splits a case that was just judged into cases with a bound on each: judging it gave no upper
        end for them. None if every case is judged as a whole.

    Examples
    --------
    >>> from pdp_calibrate.core.problem import Bracket
    >>> def between(lower, upper):
    ...     return Bracket(upper=upper, lower=lower, witness=None, target=0, unknown=())
    >>> found = best_first(
    ...     [(1.0, "one"), (3.0, "three"), (2.0, "two")],
    ...     lambda bound, case: between(1.5, 1.6),
    ...     start=between(0.0, 0.0),
    ...     unjudged=lambda bound, case: between(0.0, bound),
    ...     cutoff=lambda found: found.upper,
    ...     is_over=lambda: False,
    ... )
    >>> found.upper  # "three" and "two" were judged, "one" cannot be worse
    1.6
    """
    found, numbers = start, itertools.count()  # of equal bounds, the case that came first
    falling = [_entry(bound, next(numbers), case) for bound, case in cases]
    heapq.heapify(falling)
    shown = (
        contextlib.nullcontext(_show_nothing)
        if what is None
        else progress(what, total=len(falling))
    )
    with shown as show:
        for done in itertools.count(1):
            if not falling:
                return found
            minus_bound, _, case = heapq.heappop(falling)
            bound = -minus_bound
            if bound <= cutoff(found) or found.lower > enough or is_over():
                return found.or_worse(unjudged(bound, case))
            found = found.or_worse(judge(bound, case))
            for part_bound, part in () if parts is None else parts(case):
                heapq.heappush(falling, _entry(part_bound, next(numbers), part))
            show(done)
    return found


class _Largest(NamedTuple):
    """The largest of some bounds: lowering others below it gains nothing."""

    lower: float

    def or_worse(self, other: _Largest) -> _Largest:
        """Return the larger one."""
        return max(self, other)


def lower_largest(
    bounds: FloatArray,
    targets: Iterable[int],
    lowered: Callable[[int], float | None],
    *,
    enough: float = 0.0,
    is_over: Callable[[], bool] = lambda: False,
) -> None:
    """Lower bounds in place, the largest first, until those of all targets are below a lowered one.

    Parameters
    ----------
    bounds
        A certified bound for each place.
    targets
        The places whose largest bound matters.
    lowered
        Returns another bound of a place; None where no more work on it is worthwhile.
    enough
        Bounds up to this need not be lowered.
    is_over
        Whether time is up.

    Examples
    --------
    >>> bounds = np.array([5.0, 3.0, 1.0])
    >>> lower_largest(bounds, range(3), lambda place: 2.0)
    >>> bounds
    array([2., 2., 1.])
    """
    given_up = False

    def judge(bound: float, target: int) -> _Largest:
        nonlocal given_up
        found = lowered(target)
        given_up = found is None
        if found is not None:
            bounds[target] = min(bound, found)
        return _Largest(float(bounds[target]))

    best_first(
        [(float(bounds[target]), target) for target in targets],
        judge,
        start=_Largest(enough),
        unjudged=lambda bound, _target: _Largest(bound),
        cutoff=lambda found: found.lower,
        is_over=lambda: given_up or is_over(),
    )


def _entry(bound: float, number: int, case: _Case) -> tuple[float, int, _Case]:
    """Return a case as the heap holds it: the largest bound on top."""
    if math.isnan(bound):
        raise CalibrationError("a bound on the leakage is not a number: it covers nobody.")
    return -bound, number, case


def _show_nothing(_done: int) -> None:
    """Do nothing, where no progress is shown."""
