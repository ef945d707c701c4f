"""How much anybody learns about a tuple, proved one unknown tuple at a time.

Let L_i(x_K; U) bound the log-ratio about target i for whoever knows x_K and ignores U. For an
empty U it is LS_i/λ. Otherwise fix the output, write g for the density of the output in a
cell, and choose j in U. What g is expected to be, with the value a of tuple j known as well, obeys
two bounds with one unknown tuple less:

    E[g | v, a] ≤ e^{L_i(x_K, a; U∖j)}·E[g | w, a],    y_a = E[g | w, a] ≤ κ·y_b,
    κ = max over w of e^{L_j(x_K, x_i = w; U∖j)}.

The law of tuple j given a secret averages them, so for two secrets v and w

    E[g | v] / E[g | w] ≤ Σ_a P(a | v)·e^{L_i(x_K, a; U∖j)}·y_a / Σ_a P(a | w)·y_a.

The y_a lie between some number and κ times it. A quotient of two linear functions is largest at a
corner of that cube: y_a = κ on some set of values, 1 elsewhere. All sets and secrets are tried, and
of several j in U the one that proves most is taken. It holds for every output and every additive
query, and uses nothing of the table but its marginals.

A value of j that one secret allows and another excludes leaves nothing to compare: then j proves
nothing, and the group bound stands, Σ LS/λ over the target and U. Masses too small for the floats
used here count as excluded.

All events (x_i's law given x_K) of one set of unknown tuples are one array. The numbers are e^L in
single precision, and each step is charged for its rounding.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from pdp_calibrate.core.workers import Clock, load_kernels, run
from pdp_calibrate.families.table.events import Case, Events, Some, every_secret

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pdp_calibrate.arrays import FloatArray
    from pdp_calibrate.families.table.setting import Setting

Singles = npt.NDArray[np.float32]
Shape = tuple[int, int, int, int, int]
_WIDTH = 5  # values of a tuple at most: see `chained_kernels.WIDTH`
_STATES = 62_000_000  # every tuple known with a value, or unknown: ten tuples of five values
_FURTHEST = 40.0  # in scales: (e^L)² is a number of single precision
_SCALED = 2.0**100  # what all masses together are multiplied by
_LEAST_MASS = 1e-20  # of those: smaller ones may have lost digits


# Fewer than 60 operations in single precision stand behind each number of one step, and fewer than
# 40 behind each of the sums of masses that it divides.
_CHARGE = 1 + 2.0**-16


# Of so few tuples, the target included, not all pairs are tried: their events are the many.
_FEWEST, _FEW = 4, 5
_SIDE_BY_SIDE = 25  # events that are copied together
_SMALL_LEVEL = 2**16  # events of one level that need no second thread


def is_chained(setting: Setting) -> bool:
    """Return whether the bound can be taken."""
    sizes = setting.sizes
    states = math.prod(size + 1.0 for size in sizes)
    return (
        setting.is_additive
        and len(sizes) > 1
        and max(sizes) <= _WIDTH
        and states <= _STATES
        and sum(setting.diameters) <= _FURTHEST
    )


class Marginals:
    """The table with every set of tuples summed out, in single precision; no scale changes it."""

    def __init__(self, probabilities: FloatArray) -> None:
        self._places = range(probabilities.ndim)
        self._tables: dict[tuple[int, ...], Singles] = {}
        self._fill((probabilities * _SCALED).astype(np.float32), ())

    def _fill(self, table: Singles, gone: tuple[int, ...]) -> None:
        self._tables[gone] = table
        if table.ndim == 2:
            return
        for place in self._places[gone[-1] + 1 if gone else 0 :]:
            axis = place - len(gone)  # all that is gone stood before it
            self._fill(table.sum(axis=axis), (*gone, place))

    def of_two(self, first: int, second: int, gone: tuple[int, ...]) -> tuple[Singles, Shape]:
        """Return the masses of two tuples and all that are not gone, flat, and how they stand.

        The shape: all before the first tuple, the first, all between, the second, all after it.
        """
        table = self._tables[gone]
        left = [place for place in self._places if place not in gone]
        one, other = left.index(first), left.index(second)
        sizes = table.shape
        shape = (
            math.prod(sizes[:one]),
            sizes[one],
            math.prod(sizes[one + 1 : other]),
            sizes[other],
            math.prod(sizes[other + 1 :]),
        )
        return table.reshape(-1), shape


class ChainedBound:
    """e^L of every adversary at one scale; sets of tuples not reached in time have none.

    `prove` is called with 1, 2, … unknown tuples; what is lowered between makes the next tighter.
    """

    def __init__(self, setting: Setting, clock: Clock) -> None:
        self._setting = setting
        self._clock = clock
        self._own = setting.diameters
        self._proved: dict[Case, Singles] = {}
        for target in range(len(setting.sizes)):
            bound = np.float32(math.exp(self._own[target]) * _CHARGE)
            self._proved[Case(target, ())] = np.full(self._events((target,)), bound)
        self._kernels = load_kernels("pdp_calibrate.families.table.chained_kernels")

    def work(self, number: int) -> float:
        """Return how many events are compared to bound all who ignore this number of tuples."""
        places = range(len(self._setting.sizes))
        moving = list(itertools.combinations(places, number + 1))
        return float(sum(map(self._events, moving))) * len(list(_pairs(moving[0])))

    def prove(self, number: int) -> None:
        """Bound everybody who ignores this number of tuples."""
        _ = self._setting.prepared.cells.marginals  # before the threads ask for them
        places = range(len(self._setting.sizes))
        moving = list(itertools.combinations(places, number + 1))
        few = len(moving) * self._events(moving[0]) <= _SMALL_LEVEL
        run(moving, self._prove, self._clock, what="bounding adversaries", small=few)

    def above(self, case: Case, cutoff: float) -> Some:
        """Return the events whose bounds are above a cutoff, for all secrets."""
        bounds = self._proved.get(case, np.empty(0, dtype=np.float32))
        events = np.flatnonzero(bounds > np.float32(math.exp(cutoff)))
        every = every_secret(self._setting.sizes[case.target])
        return Some(
            events,
            np.log(bounds[events].astype(np.float64)),
            np.full(len(events), every, dtype=np.int32),
        )

    def lower(self, case: Case, events: Events, log_bounds: FloatArray) -> None:
        """Take over smaller bounds on some events."""
        bounds = self._proved[case]
        proved = (np.exp(log_bounds) * _CHARGE).astype(np.float32)
        bounds[events] = np.minimum(bounds[events], proved)

    def largest(self, case: Case) -> float:
        """Return the largest of them, infinite if there are none."""
        found = self._proved.get(case)
        return math.inf if found is None else math.log(float(found.max())) * (1 + 1e-15)

    def _prove(self, moving: tuple[int, ...]) -> None:
        """Bound everyone for whom these tuples are the target and the unknown ones."""
        for i, j in itertools.permutations(moving, 2):
            if Case(i, _without(moving, i, j)) not in self._proved:
                return
        marginals = self._setting.prepared.cells.marginals
        found = {target: self._group(target, _without(moving, target)) for target in moving}
        charge, least = np.float32(_CHARGE), np.float32(_LEAST_MASS)
        block = np.ones(self._kernels.ROWS * self._kernels.BLOCK, dtype=np.float32)
        for i, j in _pairs(moving):
            gone = _without(moving, i, j)
            masses, shape = marginals.of_two(i, j, gone)
            self._kernels.lower_bounds(
                *_side_by_side(
                    masses, shape, self._proved[Case(i, gone)], self._proved[Case(j, gone)]
                ),
                charge,
                least,
                found[i],
                found[j],
                block,
            )
        for target, bounds in found.items():
            self._proved[Case(target, _without(moving, target))] = bounds

    def _group(self, target: int, unknown: tuple[int, ...]) -> Singles:
        """Return the group bound for every event."""
        bound = math.exp(sum(self._own[place] for place in (target, *unknown)))
        return np.full(self._events((target, *unknown)), bound * _CHARGE, dtype=np.float32)

    def _events(self, moving: tuple[int, ...]) -> int:
        """Count the values of all tuples but these."""
        sizes = self._setting.sizes
        return math.prod(size for place, size in enumerate(sizes) if place not in moving)


def _without(moving: tuple[int, ...], *gone: int) -> tuple[int, ...]:
    return tuple(place for place in moving if place not in gone)


def _pairs(moving: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    """Yield the pairs of tuples that are tried: a chain, then circles, where events are many."""
    if len(moving) <= _FEW:
        yield from itertools.pairwise(moving)
    if len(moving) > _FEW:
        yield from itertools.combinations(moving, 2)
    elif len(moving) > _FEWEST:
        yield moving[0], moving[-1]


def _side_by_side(
    masses: Singles, shape: Shape, one: Singles, other: Singles
) -> tuple[Singles, Shape, Singles, Singles]:
    """Move the two tuples to the front where few events stand side by side: that is slow."""
    before, first, between, second, after = shape
    if after >= _SIDE_BY_SIDE:
        return masses, shape, one, other
    events = before * between * after
    masses = masses.reshape(shape).transpose(1, 3, 0, 2, 4)
    one = one.reshape(before * between, second, after).transpose(1, 0, 2)
    other = other.reshape(before, first, between * after).transpose(1, 0, 2)
    return masses.ravel(), (1, first, 1, second, events), one.ravel(), other.ravel()
