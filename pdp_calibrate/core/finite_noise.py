"""Gaussian noise on answers with finitely many values: the search that these families share.

Theorem 21 (docs/theory).

A family lists the mixtures its adversaries compare, in `Mixtures`: laws of the answer given what is
known, one per secret. Everything else happens here.

**At one δ** (`measure.unit` is ε) every pair of laws is compared exactly, as
`core.gaussian_mixtures` describes. Pairs are tested at the ε reached so far; a pair that exceeds δ
there is solved for, and raises it.
Brackets are on the scale of μ, as in `core.problem`: an ε is represented by the μ of normal laws
with that ε at this δ.

**At every δ** (μ, ρ) the result is an upper bound from a coupling: the largest W∞ of two laws
(`core.couplings`), or how far the answer moves when one tuple changes, for adversaries who know
everyone else, where it is exact. Vectors of different numbers are always bounded that way, by the
L2 range. At one δ the same coupling may leave out a trace of mass, which is charged to δ: that is
the upper end for adversaries who cannot be searched, and what `Bracket.coupled` holds for all.

**Far apart.** Atoms more than `_APART` deviations from each other do not interact: whatever h is
around the others, it is below 1e-300 around this one. Wider gaps are narrowed to that, so that
noise far smaller than the steps of the answer is compared as well as any other.

**Rounding.** Atoms that may be off by m deviations change a density by a factor of at most
e^{±κ}, κ = m·T + m²/2, wherever the output lies within T of them; so δ at ε + 2κ is at most
e^κ·δ(ε), and what lies further out is charged: κ costs 2κ of ε and 2κ·δ of δ.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core import gaussian_dp
from pdp_calibrate.core.adversary import Witness
from pdp_calibrate.core.couplings import (
    RandomMove,
    are_within,
    epsilon_of_moves,
    furthest_quantiles,
    joint_range,
    moves_but_for,
    tuple_moves,
)
from pdp_calibrate.core.gaussian_mixtures import LARGEST_EPSILON, deltas, epsilon_at
from pdp_calibrate.core.problem import Bracket, Limits, Problem
from pdp_calibrate.core.rounding import ROUND_DOWN, ROUND_UP, UNIT_ROUNDOFF
from pdp_calibrate.core.tuning import FEW_EXCEED, KEPT_NUMBERS, SAMPLED_PAIRS

IntArray = npt.NDArray[np.intp]

_REACH = 39.0  # deviations within which moved atoms are followed
_SMALLEST_DELTA = 1e-60  # below it, what lies beyond that could matter
_LARGEST_COST = 0.25
_WIDEST = 1e6  # deviations: exponents of densities so far apart lose their digits
_SAME = 512 * UNIT_ROUNDOFF  # atoms closer than this, times the range, become one
_APART = 100.0  # deviations: e^500 times a normal law has less than 1e-300 beyond half of it
_LEFT_OUT = 1e-4  # share of δ that a coupling may leave out; it costs some millionths of the noise


@dataclass(frozen=True, kw_only=True, eq=False)
class Mixtures:
    """The laws of the answer that some adversaries compare."""

    atoms: FloatArray
    """Where the answers lie, ascending."""
    laws: FloatArray
    """P(atom | event, secret), shape (events, secrets, atoms)."""
    possible: npt.NDArray[np.bool_]
    """Whether a secret can occur beside an event, shape (events, secrets)."""
    adversary: Callable[[int, tuple[int, int], float], Named]
    """Names the adversary of an event, two secrets, and an output."""
    error: float
    """Bound on the relative error of the probabilities."""
    moved: float = 0.0
    """How far an atom may be from where it truly lies."""
    extra: float = 0.0
    """What to add to ε, for mixtures that represent others."""
    attained: bool = True
    """Whether this is what the adversaries see, and not a bound on it."""
    log_laws: FloatArray | None = None
    """Logarithms of the laws, where some are too small for a float."""
    radius: FloatArray | None = None
    """How far, in total variation, a true law may be from the one given; shape (events, secrets).

    P(E) then grows by at most that, and Q(E) falls by at most that: δ grows by τ_P + e^ε·τ_Q.
    """

    @property
    def points(self) -> FloatArray:
        """The atoms as vectors."""
        return self.atoms.reshape(len(self.atoms), -1)


class Named(NamedTuple):
    """The adversary who compares two laws."""

    witness: Witness | None
    target: int
    unknown: tuple[int, ...]


class Case(NamedTuple):
    """Adversaries whose mixtures are listed together."""

    move: float
    """How far their answers can move at all: a bound on every coupling."""
    target: int
    unknown: tuple[int, ...]
    mixtures: Callable[[], Iterable[Mixtures]]


class Source(Protocol):
    """What a family provides."""

    def cases(self) -> Iterator[Case]:
        """List all adversaries except those who know everyone else."""


class _Pair(NamedTuple):
    """Two laws that are furthest apart so far."""

    value: float
    mixtures: Mixtures
    event: int
    secrets: tuple[int, int]

    @property
    def named(self) -> Named:
        """The adversary who compares them; at an output far out, where the first is likeliest."""
        laws, atoms = self.mixtures.laws[self.event], self.mixtures.atoms
        first, second = (float(laws[secret] @ atoms) for secret in self.secrets)
        output = math.inf if first >= second else -math.inf
        return self.mixtures.adversary(self.event, self.secrets, output)


class _Coupled(NamedTuple):
    """How far couplings move the answer, for every adversary."""

    move: float
    """How far all of the mass moves."""
    nearly: float
    """How far all but the share that is left out moves."""
    target: int
    """The target of the adversary for whom all of the mass moves that far."""
    unknown: tuple[int, ...]
    """What this adversary does not know."""
    extra: float = 0.0
    """What to add to the ε of the second, for mixtures that represent others."""


def _unsettled(case: Case, best: _Coupled) -> _Coupled:
    """Bound this case, and those after it, by how far answers can move: there is no time left.

    It is not kept, for a later call may have more time.
    """
    return _Coupled(max(case.move, best.move), case.move, case.target, case.unknown)


class FiniteSearch:
    """Searches the mixtures of one problem, at many scales.

    Parameters
    ----------
    problem
        What was asked, about an answer of one number.
    source
        Lists the mixtures.
    strongest
        Returns what those who know everyone else learn at a scale, in μ; None if there are none.
    rounding
        How far answers may be off for reasons specific to the family.
    unlisted
        How far answers can move for adversaries whom the source does not list.
    move
        How far a coupling moves the answer at most, at every δ, where the mixtures do not say.
    """

    def __init__(
        self,
        problem: Problem,
        source: Source,
        *,
        strongest: Callable[[float], Bracket] | None,
        rounding: float = 0.0,
        unlisted: float = 0.0,
        move: float | None = None,
    ) -> None:
        self.problem, self._source, self._strongest = problem, source, strongest
        self._rounding, self._unlisted = rounding, unlisted
        self._cases: list[Case] | None = None
        self._proved: dict[tuple[int, int, tuple[int, int]], _Proved] = {}
        self._listed: dict[int, list[Mixtures]] = {}
        self._kept_numbers = 0
        self._coupled: _Coupled | None = None
        self._left_out = _LEFT_OUT * problem.measure.law_delta
        self._move = move
        if not problem.measure.data_counts:  # a coupling of the law before any other release
            move = joint_range(problem.contributions)
            self._coupled = _Coupled(move, move, *problem.knowledge.knowing_least)

    @property
    def cases(self) -> list[Case]:
        """All of them, those whose answers move furthest first."""
        if self._cases is None:
            self._cases = sorted(self._source.cases(), key=lambda case: -case.move)
        return self._cases

    def _mixtures(self, number: int) -> Iterable[Mixtures]:
        """Return the mixtures of a case; while they are few, they are listed once."""
        if number in self._listed:
            return self._listed[number]
        return self._listing(number)

    def _listing(self, number: int) -> Iterator[Mixtures]:
        kept: list[Mixtures] | None = []
        for mixtures in self.cases[number].mixtures():
            if kept is not None:
                kept.append(mixtures)
                if sum(one.laws.size for one in kept) + self._kept_numbers > KEPT_NUMBERS:
                    kept = None
            yield mixtures
        if kept is not None:
            self._listed[number] = kept
            self._kept_numbers += sum(one.laws.size for one in kept)

    def search(self, scale: float, limits: Limits) -> Bracket:
        """Find the worst adversary at one scale; see `core.problem.Engine`."""
        off = limits.rounding + self._rounding
        best = self.problem.nobody()
        if self._strongest is not None:
            best = self._strongest(scale)
            best = dataclasses.replace(
                best,
                upper=(best.upper + off / scale) * ROUND_UP,
                lower=max(0.0, best.lower - off / scale) * ROUND_DOWN,
            )
        coupled, measure = self._coupling(limits.deadline), self.problem.measure
        everywhere = max(best.upper, (coupled.move + off) / scale * ROUND_UP)
        if measure.unit != "epsilon":
            bound = dataclasses.replace(
                best, upper=everywhere, everywhere=everywhere, lower=0.0, witness=None
            )
            if everywhere > best.upper:
                bound = dataclasses.replace(bound, target=coupled.target, unknown=coupled.unknown)
            return bound.with_lower(best)
        nearly = self._at_one_delta((coupled.nearly + off) / scale * ROUND_UP, coupled.extra)
        nearly = min(everywhere, max(best.upper, nearly))
        found = self._at_delta(scale, off, best, limits, nearly)
        if self._unlisted:
            unlisted = (self._unlisted + off) / scale * ROUND_UP
            found = dataclasses.replace(found, upper=max(found.upper, unlisted))
        return dataclasses.replace(found, everywhere=everywhere, coupled=nearly).at_most(nearly)

    def _at_one_delta(self, mu: float, extra: float) -> float:
        """Return the μ that represents the coupling without the mass left out, rounded up."""
        measure = self.problem.measure
        share = measure.law_delta - self._left_out
        epsilon = gaussian_dp.epsilon_of(mu, share) if share > 0 else math.inf
        epsilon += extra * ROUND_UP
        return measure.mu_above(epsilon) if math.isfinite(epsilon) else math.inf

    def _coupling(self, deadline: float) -> _Coupled:
        """Return the largest moves that couplings need, and the adversary of the first of them."""
        if self._coupled is not None:
            return self._coupled
        least = self.problem.knowledge.knowing_least
        best = _Coupled(max(self._unlisted, self._move or 0.0), self._unlisted, *least)
        at_one_delta = self.problem.measure.unit == "epsilon"
        if not at_one_delta and self._move is not None:
            return best
        for number, case in enumerate(self.cases):
            if case.move <= (min(best.nearly, best.move) if at_one_delta else best.move):
                break
            if time.monotonic() > deadline:
                return _unsettled(case, best)
            wanted = self._move is None and case.move > best.move
            for mixtures in self._mixtures(number):
                for pair in _pairs(mixtures):
                    if time.monotonic() > deadline:
                        return _unsettled(case, best)
                    found, nearly = self._moves(mixtures, pair, best.nearly, wanted=wanted)
                    if found is not None and found.value > best.move:
                        who = found.named
                        best = _Coupled(found.value, best.nearly, who.target, who.unknown)
                    nearly, extra = max(best.nearly, nearly), max(best.extra, mixtures.extra)
                    best = best._replace(nearly=nearly, extra=extra)
        self._coupled = best
        return best

    def _moves(
        self, mixtures: Mixtures, pair: _Rows, above: float, *, wanted: bool
    ) -> tuple[_Pair | None, float]:
        """Return the furthest of some pairs of laws, if `wanted`, and what moves all but a trace.

        The second need not be exact where it is no larger than `above`.
        """
        (first, second), events = pair
        off, span = 2 * mixtures.moved, float(np.ptp(mixtures.atoms))
        if mixtures.radius is not None:  # some of the mass may lie anywhere
            value = (span + off) * ROUND_UP
            return _Pair(value, mixtures, int(events[0]), (first, second)), value
        strict: _Pair | None = None
        error, nearest = mixtures.error, (above - off) * ROUND_DOWN
        if nearest > 0:  # no further than what was found before: nothing to report
            laws = mixtures.laws[events, first], mixtures.laws[events, second]
            events = events[~are_within(mixtures.atoms, *laws, nearest, error=error)]
            if not len(events):
                return None, above
        laws = mixtures.laws[events, first], mixtures.laws[events, second]
        if wanted:
            found = furthest_quantiles(mixtures.atoms, *laws, error=error)
            place = int(found.argmax())
            value = (float(found[place]) + off) * ROUND_UP
            strict = _Pair(value, mixtures, int(events[place]), (first, second))
            further = np.flatnonzero((found + off) * ROUND_UP > above)
            laws = laws[0][further], laws[1][further]
        if not len(laws[0]) or self.problem.measure.unit != "epsilon":
            return strict, above
        moves = moves_but_for(mixtures.atoms, *laws, self._left_out, error=error)
        return strict, (float(moves.max()) + off) * ROUND_UP

    def _at_delta(
        self, scale: float, off: float, strongest: Bracket, limits: Limits, everywhere: float
    ) -> Bracket:
        """Find the largest ε at the δ that is asked about, on the scale of μ."""
        measure = self.problem.measure
        if measure.law_delta < _SMALLEST_DELTA:
            return self._bound_only(strongest, everywhere)
        # What a coupling settles is not searched: nobody learns more than somebody is known to
        # learn or than the incumbent, or anything at all.
        settled = everywhere <= max(limits.incumbent, strongest.upper)
        if settled or gaussian_dp.epsilon_of(everywhere, measure.law_delta) == 0:
            return self._bound_only(strongest, everywhere)
        level = measure.epsilon_below(max(limits.incumbent, strongest.lower))
        asked = _Asked(
            scale=scale,
            off=off,
            delta=measure.delta,
            law_delta=measure.law_delta,
            everywhere=everywhere,
            deadline=limits.deadline,
        )
        upper: _Pair | None = None
        lower: _Pair | None = None
        # Pairs below the level sought need not be tested again with more noise. If most exceed it,
        # there is too little noise, and only the worst of them matters.
        sought, tested, exceeding = (level if limits.incumbent > 0 else None), 0, 0
        enough = math.inf if math.isinf(limits.enough) else measure.epsilon_below(limits.enough)
        several = len(self.cases) > 1
        harmless = self._harmless(level, scale, off) if several else 0.0
        for number, case in enumerate(self.cases):
            if case.move <= harmless:
                break
            these = enumerate(self._mixtures(number))
            listed = ((place, one, pair) for place, one in these for pair in _pairs(one))
            for place, mixtures, (secrets, events) in listed:
                if time.monotonic() > limits.deadline or level > LARGEST_EPSILON:
                    return self._bound_only(self._combined(strongest, upper, lower), everywhere)
                attains = mixtures.attained and not self.problem.hidden_noise
                before = self._proved.get((number, place, secrets))
                begun = level if sought is None else sought
                if before is not None and before.holds(begun, scale, off):
                    events = before.left
                left: list[IntArray] = []
                for over, attained in asked.exceeding(
                    mixtures, (secrets, events), begun, level, left
                ):
                    level = max(level, over.value)
                    if upper is None or over.value > upper.value:
                        upper = over
                    if attains and (lower is None or attained > lower.value):
                        lower = over._replace(value=attained)
                tested, exceeding = tested + len(events), exceeding + sum(map(len, left[:1]))
                if exceeding > FEW_EXCEED * tested:
                    sought = None
                if lower is not None and lower.value > enough and tested > SAMPLED_PAIRS:
                    found = self._combined(strongest, upper, lower)
                    return dataclasses.replace(found, upper=max(found.upper, everywhere))
                if left:
                    self._proved[number, place, secrets] = _Proved(begun, scale, off, left[0])
            if several and upper is not None and math.isfinite(level):
                harmless = self._harmless(level, scale, off)
        return self._combined(strongest, upper, lower)

    def _harmless(self, level: float, scale: float, off: float) -> float:
        """Return how far answers may move without exceeding δ at a level of ε."""
        mu = gaussian_dp.mu_of(level, self.problem.measure.law_delta)
        return (mu * scale * ROUND_DOWN - off) * ROUND_DOWN

    def _combined(self, strongest: Bracket, upper: _Pair | None, lower: _Pair | None) -> Bracket:
        """Combine what was found with those who know everyone else."""
        found, measure = strongest, self.problem.measure
        if upper is not None:
            who = upper.named
            mu = measure.mu_above(upper.value) if math.isfinite(upper.value) else math.inf
            found = found.or_worse(
                Bracket(upper=mu, lower=0.0, witness=None, target=who.target, unknown=who.unknown)
            )
        if lower is not None:
            who = lower.named
            attained = dataclasses.replace(
                found, lower=measure.mu_below(lower.value) if lower.value > 0 else 0.0,
                witness=who.witness,
            )  # fmt: skip
            if who.witness is not None and attained.lower > found.lower:
                found = attained
        return found

    def _bound_only(self, found: Bracket, everywhere: float) -> Bracket:
        if self._coupled is None:
            return dataclasses.replace(found, upper=everywhere)
        who = self._coupled
        return dataclasses.replace(found, upper=everywhere, target=who.target, unknown=who.unknown)


class _Proved(NamedTuple):
    """What is known of some pairs of laws: more noise never leaks more."""

    level: float
    """The ε at which they were tested."""
    scale: float
    """The scale of the noise."""
    off: float
    """How far answers may be off."""
    left: IntArray
    """The events that exceeded δ there; no other did."""

    def holds(self, level: float, scale: float, off: float) -> bool:
        """Whether it still holds at other values."""
        return level >= self.level and scale >= self.scale and off <= self.off


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """A question about pairs of laws."""

    scale: float
    """The standard deviation of the noise."""
    off: float
    """How far answers may be off, besides what the mixtures say."""
    delta: float
    """The δ that lower ends exceed."""
    law_delta: float
    """The δ that upper ends keep."""
    everywhere: float
    """A μ that nobody exceeds, from a coupling."""
    deadline: float
    """Value of `time.monotonic()` after which the coupling answers."""

    @functools.cached_property
    def most(self) -> float:
        """An ε that nobody exceeds, from the same."""
        return gaussian_dp.epsilon_of(self.everywhere, self.law_delta)

    def exceeding(
        self, mixtures: Mixtures, pair: _Rows, begun: float, level: float, left: list[IntArray]
    ) -> Iterator[tuple[_Pair, float]]:
        """Yield pairs that exceed δ at the level, each worse than all before: both ends of ε.

        All events that exceed it at `begun`, which is no larger, are put into `left`.
        """
        (first, second), events = pair
        atoms, laws, moved = _joined_atoms(mixtures)
        atoms, moved = self._narrowed(atoms, moved)
        # The last term is for probabilities of less than 1e-80 that may be missing.
        cost = 2 * (moved * _REACH + moved * moved / 2) * ROUND_UP + 4 * UNIT_ROUNDOFF
        is_over = time.monotonic() > self.deadline
        if is_over or cost > _LARGEST_COST or atoms[-1] > _WIDEST:
            yield _Pair(self.most, mixtures, int(events[0]), (first, second)), 0.0
            return
        extra, radii = mixtures.extra + cost, self._radii(mixtures, pair)
        limits = self.law_delta * (1 - cost) - radii
        while len(events):
            tested = level if left else begun
            start = max(0.0, tested - extra)
            p, q = laws[events, first], laws[events, second]
            found = deltas(
                atoms, p, q, start, error=mixtures.error, enough=limits, deadline=self.deadline
            ).upper
            over = np.flatnonzero((found > limits) | (extra > tested))
            left.append(events[over])
            if not len(over):
                return
            if tested < level:
                events, limits = events[over], limits[over]
                continue
            worst = int(over[(found - limits)[over].argmax()])
            above, below = float(limits[worst]), self.delta * (1 + cost)
            upper, lower = math.inf, 0.0
            if above > 0:
                upper, lower = epsilon_at(
                    atoms, p[worst], q[worst], above=above, below=below, start=start,
                    error=mixtures.error, deadline=self.deadline,
                )  # fmt: skip
            value = upper + extra if upper + extra <= LARGEST_EPSILON else max(self.most, level)
            level = max(level, value)
            found_pair = _Pair(value, mixtures, int(events[worst]), (first, second))
            yield found_pair, max(0.0, lower - cost)
            if level > LARGEST_EPSILON:
                return
            rest = over[over != worst]
            events, limits = events[rest], limits[rest]

    def _narrowed(self, atoms: FloatArray, moved: float) -> tuple[FloatArray, float]:
        """Return atoms in units of the noise, wide gaps narrowed, and how far they may be off."""
        atoms, moved = (atoms - atoms[0]) / self.scale, (moved + self.off) / self.scale
        gaps = np.diff(atoms)
        off = 4 * UNIT_ROUNDOFF * float(atoms[-1])
        if len(gaps) and gaps.max() > 2 * _APART and off + 2 * moved < _APART / 2:
            near = np.flatnonzero(gaps <= 2 * _APART)
            off = 4 * UNIT_ROUNDOFF * float(atoms[near + 1].max()) if len(near) else 0.0
            atoms = np.concatenate([[0.0], np.cumsum(np.where(gaps > 2 * _APART, _APART, gaps))])
            off += 4 * UNIT_ROUNDOFF * len(atoms) * float(atoms[-1]) if len(near) else 0.0
        return atoms, moved + off

    def _radii(self, mixtures: Mixtures, pair: _Rows) -> FloatArray:
        """Return how much of δ the distance from estimated laws may take."""
        (first, second), events = pair
        if mixtures.radius is None:
            return np.zeros(len(events))
        level = math.exp(min(self.most, 700.0)) * ROUND_UP
        radii = mixtures.radius[events]
        return np.asarray((radii[:, first] + level * radii[:, second]) * ROUND_UP)


_Rows = tuple[tuple[int, int], IntArray]
"""Two secrets, and the events beside which both can occur."""


def _pairs(mixtures: Mixtures) -> Iterator[_Rows]:
    """Yield all ordered pairs of secrets."""
    for first, second in itertools.permutations(range(mixtures.possible.shape[1]), 2):
        both = mixtures.possible[:, first] & mixtures.possible[:, second]
        if both.any():
            yield (first, second), np.flatnonzero(both)


def _joined_atoms(mixtures: Mixtures) -> tuple[FloatArray, FloatArray, float]:
    """Make one atom of those that differ by rounding only."""
    atoms, laws = mixtures.atoms, mixtures.laws
    same = _SAME * float(atoms[-1] - atoms[0])
    starts = np.flatnonzero(np.concatenate([[True], np.diff(atoms) > same]))
    if len(starts) == len(atoms):
        return atoms, laws, mixtures.moved
    ends = np.append(starts[1:], len(atoms)) - 1
    moved = float((atoms[ends] - atoms[starts]).max())
    return atoms[starts], np.add.reduceat(laws, starts, axis=2), mixtures.moved + moved


class VectorBound:
    """Bounds answers of several different numbers: one coupling must move all of them.

    Parameters
    ----------
    problem
        What was asked.
    move
        How far a coupling moves all answers in L2, where the family knows; the range otherwise.
    random
        A coupling with random moves, for a question about one δ.
    """

    def __init__(
        self, problem: Problem, move: float | None = None, *, random: RandomMove | None = None
    ) -> None:
        self.problem, self._random = problem, random
        self._moves, self._secrets = tuple_moves(problem.contributions)
        self._move = joint_range(problem.contributions) if move is None else move

    def search(self, scale: float, limits: Limits) -> Bracket:
        """Bound all adversaries at once; see `core.problem.Engine`."""
        problem, knowledge = self.problem, self.problem.knowledge
        target = max(knowledge.targets, key=lambda place: self._moves[place])
        upper = (max(self._move, float(self._moves[target])) + limits.rounding) / scale * ROUND_UP
        known = knowledge.known or frozenset()
        others = (place for place in range(knowledge.total) if place not in (target, *known))
        found = Bracket(
            upper=upper, lower=0.0, witness=None, target=target, unknown=tuple(others),
            everywhere=upper,
        )  # fmt: skip
        nearly = self._at_one_delta(scale, limits.rounding)
        if nearly < upper:
            found = dataclasses.replace(found, upper=nearly, coupled=nearly)
        moves, custom = self._moves[target], problem.contributions.table is not None
        if not problem.admits_strongest or not moves or custom:
            return found
        rest = {place: 0 for place in range(len(problem.names)) if place != target}
        first, second = self._secrets[target]
        values = problem.contributions.values[target]
        far_out = np.sign(values[first] - values[second]).tolist()
        output = tuple(side * math.inf if side else 0.0 for side in far_out)
        witness = problem.witness(target, rest, (first, second), output)
        least = max(0.0, float(self._moves[target]) * ROUND_DOWN**2 - limits.rounding) / scale
        return dataclasses.replace(found, lower=min(least * ROUND_DOWN, upper), witness=witness)

    def _at_one_delta(self, scale: float, rounding: float) -> float:
        """Return the ε of a coupling with random moves, on the scale of μ, rounded up."""
        measure, random = self.problem.measure, self._random
        if random is None or measure.unit != "epsilon" or measure.law_delta < _SMALLEST_DELTA:
            return math.inf
        further = random._replace(moves=(random.moves + rounding) * ROUND_UP)
        epsilon = epsilon_of_moves(further, scale, measure.law_delta)
        return measure.mu_above(epsilon) if math.isfinite(epsilon) else math.inf
