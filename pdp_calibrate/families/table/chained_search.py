"""Large tables and vectors of answers: everybody bounded by `ChainedBound`, the worst evaluated.

Upper end: the bound of everyone who is not evaluated. Lower end: the largest leakage of those who
are. Adversaries are evaluated where the answer counts (histograms): the law of the counts given
what is known, blurred along each coordinate, gives the density of every output of the product grid
at once. They are taken in the order of falling bounds; before that, somebody who leaks much is
sought by changing one tuple at a time, for the more is known to leak, the fewer are left.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.mixtures import DENSITIES, rounding_error
from pdp_calibrate.core.workers import Clock, best_first, load_kernels
from pdp_calibrate.families.table.chained_bound import ChainedBound, is_chained
from pdp_calibrate.families.table.odds_bound import odds_bound
from pdp_calibrate.families.table.setting import (
    NOTHING,
    Attack,
    Outcome,
    Setting,
    bracket,
    group_bound,
)

_TIGHT = 0.004  # of the leakage found: closer bounds are not sought


_WORK = 1.5e9  # numbers visited to evaluate adversaries


_CLIMBED = 6e8  # … of them while somebody who leaks much is sought


_EACH = 3e5  # … that one evaluation takes as long as, however few numbers it visits


_WIDE = 1.05  # upper over lower end: the bound from the odds is tried as well


_ROUNDS = 3  # of changing every tuple


class _Case(NamedTuple):
    """All who attack a target and ignore some tuples."""

    target: int
    unknown: tuple[int, ...]


def can_search(setting: Setting) -> bool:
    """Return whether everybody can be bounded here, and whoever seems worst evaluated."""
    is_whole = setting.fits_linear_space and not setting.tails_only
    return is_whole and is_chained(setting) and _bins(setting) is not None


def search_chained(setting: Setting, incumbent: float, clock: Clock) -> Outcome:
    """Return a bracket for all adversaries but those who know everyone else."""
    groups = [
        (group_bound(setting, (target, *unknown)), _Case(target, unknown))
        for target, unknown in setting.prepared.cases()
    ]
    if not groups:
        return NOTHING
    search = _Search(setting, incumbent, clock)
    widest = max(bound for bound, _ in groups)
    if widest > incumbent:
        search.climb([case for bound, case in groups if bound == widest])
    if widest <= incumbent or search.attained.lower > clock.enough:
        return search.attained.or_worse(Outcome(upper=widest, lower=0.0, attack=None))
    search.bound = ChainedBound(setting, setting.prepared.cells.marginals, clock)
    cases = [(min(group, search.bound.largest(*case)), case) for group, case in groups]
    found = best_first(
        cases,
        search.judge,
        start=search.attained,
        unjudged=lambda largest, _: Outcome(upper=largest, lower=0.0, attack=None),
        cutoff=lambda found: max(incumbent, found.lower * (1 + _TIGHT)),
        is_over=lambda: clock.is_over or search.is_over,
        enough=clock.enough,
        what="comparing adversaries",
    )
    if found.upper <= max(incumbent, found.lower * _WIDE) or clock.is_over:
        return found
    ceiling = max(odds_bound(setting, target) for target in setting.knowledge.targets)
    return Outcome(
        upper=max(min(found.upper, ceiling), search.attained.upper),
        lower=found.lower,
        attack=found.attack,
    )


class _Search:
    """What was found so far, and the work done for it."""

    def __init__(self, setting: Setting, incumbent: float, clock: Clock) -> None:
        self.setting, self.incumbent, self.clock = setting, incumbent, clock
        self.bins = _bins(setting)
        self.bound: ChainedBound | None = None
        self.attained = NOTHING
        self._spent = 0.0
        self._kernels = load_kernels("pdp_calibrate.families.table.chained_kernels")
        self._places_of = functools.cache(self._grid_places)
        self._evaluated = functools.cache(self._evaluate)

    @property
    def is_over(self) -> bool:
        """Whether the work allowed is done, or nobody can be evaluated."""
        return self.bins is None or self._spent >= _WORK

    def judge(self, largest: float, case: _Case) -> Outcome:
        """Evaluate everyone of a case whose bound is larger than what is known to leak."""
        bounds = None if self.bound is None else self.bound.log_bounds(*case)
        if bounds is None:
            events = math.prod(self.setting.sizes[place] for place in self._known(case))
            bounds = np.full(events, largest)
        outcome = NOTHING
        for event in np.argsort(-bounds, kind="stable"):
            here = min(largest, float(bounds[event]))
            cutoff = max(self.incumbent, self.attained.lower * (1 + _TIGHT))
            if here <= cutoff or self.is_over or self.clock.is_over:
                return outcome.or_worse(Outcome(upper=here, lower=0.0, attack=None))
            outcome = outcome.or_worse(self._evaluated(case, int(event)))
        return outcome

    def climb(self, starts: list[_Case]) -> None:
        """From the worst of some cases, change what is known of one tuple while that leaks more."""
        setting = self.setting
        sizes, (fewest, most) = setting.sizes, setting.prepared.known_limits
        likeliest, best, start, chosen = setting.prepared.cells.likeliest, -1.0, starts[0], {}
        for case in starts:
            if self._spent > _CLIMBED or self.clock.is_over:
                return
            known = {place: likeliest[place] for place in self._known(case)}
            found = self._leaks(case.target, known)
            if found > best:
                best, start, chosen = found, case, known
        others = setting.prepared.cells.orders[start.target]
        permissions = list(zip(others, *setting.prepared.permissions(others), strict=True))
        for _ in range(_ROUNDS):
            before = best
            for place, may_know, may_hide in permissions:
                options = [*range(sizes[place])] * bool(may_know) + [sizes[place]] * bool(may_hide)
                for value in options:
                    changed = {p: v for p, v in chosen.items() if p != place}
                    if value < sizes[place]:
                        changed[place] = value
                    if changed == chosen or not fewest <= len(changed) <= most:
                        continue
                    if self._spent > _CLIMBED or self.clock.is_over:
                        return
                    found = self._leaks(start.target, changed)
                    if found > best:
                        best, chosen = found, changed
            if best <= before:
                return

    def _leaks(self, target: int, known: dict[int, int]) -> float:
        places = range(len(self.setting.sizes))
        case = _Case(target, tuple(p for p in places if p != target and p not in known))
        sizes = [self.setting.sizes[place] for place in self._known(case)]
        values = [known[place] for place in self._known(case)]
        event = int(np.ravel_multi_index(values, sizes)) if sizes else 0
        return self._evaluated(case, event).lower

    def _known(self, case: _Case) -> tuple[int, ...]:
        places = range(len(self.setting.sizes))
        return tuple(p for p in places if p != case.target and p not in case.unknown)

    def _evaluate(self, case: _Case, event: int) -> Outcome:
        """Compare the densities of all secrets at every output, given the values of an event."""
        if self.bins is None:
            raise ValueError("only counts are evaluated at every output.")
        setting, (target, unknown) = self.setting, case
        known, sizes = self._known(case), setting.sizes
        values = np.unravel_index(event, [sizes[place] for place in known]) if known else ()
        given = dict(zip(known, map(int, values), strict=True))
        index = tuple(given.get(place, slice(None)) for place in range(len(sizes)))
        left = [place for place in range(len(sizes)) if place not in given]
        masses = np.moveaxis(setting.probabilities[index], left.index(target), 0)
        masses = masses.reshape(sizes[target], -1)
        totals = masses.sum(axis=1)
        possible = np.flatnonzero(totals > 0)
        levels, coordinates = len(unknown) + 2, setting.coordinates
        size = levels**coordinates
        self._spent += _EACH + sizes[target] * (4.0 * masses.shape[1] + coordinates * size)
        if len(possible) < 2:
            return NOTHING
        places = self._places_of(unknown, levels)
        own = _steps(self.bins[target], levels, coordinates)
        grids = np.stack(
            [
                np.bincount(
                    places + own[secret], weights=masses[secret] / totals[secret], minlength=size
                )
                for secret in possible
            ]
        )
        factors = np.exp(-self._unit * np.ones(coordinates))
        self._kernels.blur(grids, levels, factors)
        most, least = grids.max(axis=0), grids.min(axis=0)
        ratios = most / least
        output = int(ratios.argmax())
        operations = 2.0 * masses.shape[1] + 8.0 * coordinates * levels + 8
        error = rounding_error(
            DENSITIES,
            width=float(self._unit.max()) * levels * coordinates,
            operations=operations,
            distance_operations=8.0,
        )
        counts = np.array(np.unravel_index(output, (levels,) * coordinates), dtype=np.float64)
        place = counts * self._unit
        for other, value in given.items():
            place = place + setting.parts[other][value]
        attack = Attack(
            target=target,
            known=given,
            secrets=(
                int(possible[grids[:, output].argmax()]),
                int(possible[grids[:, output].argmin()]),
            ),
            output=place,
        )
        found = bracket(math.log(float(ratios[output])), 0.0, error, attack)
        self.attained = self.attained.or_worse(found)
        return found

    @functools.cached_property
    def _unit(self) -> FloatArray:
        """What one more in a bin adds to each coordinate, in scales."""
        parts = np.concatenate(self.setting.parts)
        return np.asarray(parts.max(axis=0))

    def _grid_places(self, unknown: tuple[int, ...], levels: int) -> npt.NDArray[np.intp]:
        """Return where each cell of the unknown tuples stands on the grid of counts."""
        places = np.zeros(1, dtype=np.intp)
        for place in unknown:
            steps = _steps((self.bins or ())[place], levels, self.setting.coordinates)
            places = np.add.outer(places, steps).ravel()
        return places


def _bins(setting: Setting) -> tuple[npt.NDArray[np.intp], ...] | None:
    """Return the coordinate that each value of each tuple counts in, −1 for none.

    None if the query is not one that counts: a value adds the same one number in every tuple, to
    one coordinate or none.
    """
    parts = setting.prepared.cells.parts
    added = np.concatenate(parts)
    unit = float(added.max())
    if not np.all((added == 0) | (added == unit)) or np.any((added > 0).sum(axis=1) > 1):
        return None
    return tuple(np.where(part.any(axis=1), part.argmax(axis=1), -1) for part in parts)


def _steps(bins: npt.NDArray[np.intp], levels: int, coordinates: int) -> npt.NDArray[np.intp]:
    """Return how far each value moves along the flat grid."""
    strides = levels ** np.arange(coordinates - 1, -1, -1)
    return np.asarray(np.where(bins >= 0, strides[bins], 0), dtype=np.intp)
