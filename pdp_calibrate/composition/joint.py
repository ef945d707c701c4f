"""What several releases leak together: the smallest of all sound bounds.

Theorem 12 (docs/theory).

Leakages of correlated data do not add up, so all releases so far are bounded together. Sound are

- the exact search of the joint answer: where all releases are of one query (or multiples of it),
  for tables whose grid of outputs is not too large, and for Gaussian tuples always (there the
  leakages of one adversary do add up);
- the dual program, on tables: costs |f − f'|/λ of all answers and ε₀ of all other mechanisms;
- what chains, trees and networks forget on the way: plain-DP budgets per tuple, added up;
- the group bound: all tuples that depend on each other move at once.

**Learning the model.** A mechanism that is ε-DP for substituting the whole draw adds only ε: its
output θ̂ has a likelihood p(θ̂|x) between m and e^ε·m for every draw x, m the smallest. So, however
the tuples of the draw are correlated, Σ_u P(u|x_i,x_K)·p(θ̂|x)·p(r|x) lies between m and e^ε·m times
what it is without p(θ̂|x), for either secret; the same holds draw by draw where the output depends
on other, independent draws as well.

**Mixed with Gaussian noise.** Let L be everything with a pure ε that was released before any
Gaussian noise, E its joint ε, and N everything later. Given the output of L, whatever it implies
about the unknown tuples, N compares two databases among those possible: mixtures over them of
pairs, which N distinguishes by at most μ-GDP and its own pure part E', if both are computed from
the *whole range* of the answers. So δ(ε) ≤ δ_μ(ε − E − E') with the range of the answers in μ, and
the group bound in E'. A coupling of the law before L is not enough (each half of a one-time pad
reveals nothing), nor is a joint ε of what was chosen after seeing Gaussian outputs. Gaussian tuples
move by a fixed shift, the same for all answers: there no such distinction is needed.

**Adaptive releases.** Let queries and scales be chosen from earlier outputs. On each sequence r of
outputs the choices are fixed, so the density of r is the product of the Laplace densities of the
queries and scales *on that sequence*, and its ratio under two secrets is at most the joint leakage
of exactly those. So if no sequence is continued past the budget, nobody learns more than the
budget. It must not be continued, or stopped, for other reasons that depend on the data.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.adversary import Adversaries
from pdp_calibrate.core.composite import Blocks, ModelSet
from pdp_calibrate.core.contributions import Contributions
from pdp_calibrate.core.gaussian_dp import precision_of
from pdp_calibrate.core.model import SMALL_TABLE, Model
from pdp_calibrate.core.problem import (
    LAPLACE,
    Bound,
    Composer,
    Measure,
    Problem,
    Releases,
    composer_of,
    split,
    worst,
)
from pdp_calibrate.core.rounding import ROUND_UP, UNIT_ROUNDOFF, rounded_up
from pdp_calibrate.core.table import JointTable, Writable
from pdp_calibrate.core.tuning import JOINED_NUMBERS, KEPT_SPENDING, SEARCHED_RELEASES
from pdp_calibrate.errors import ModelError, PdpError, UnsupportedQueryError


def spent(
    model: Model,
    spending: Spending,
    adversaries: Adversaries,
    *,
    threshold: float | None = None,
    deadline: float = math.inf,
) -> Bound:
    """Return the smallest sound bound on what everything together leaks.

    Parameters
    ----------
    model
        How the tuples are correlated.
    spending
        What was released.
    adversaries
        Against whom.
    threshold
        If given, only whether the bound exceeds this matters, which takes less time.
    deadline
        Value of `time.monotonic()` after which searches stop with what they have.

    Examples
    --------
    >>> from pdp_calibrate import Adversaries, JointTable, Sum
    >>> from pdp_calibrate.core.query import lower
    >>> pair = JointTable(probabilities=[[0.3, 0.2], [0.2, 0.3]], domains=[[0, 1]] * 2)
    >>> twice = Spending(parts=(lower(Sum(), pair),) * 2, scales=(2.0, 2.0))
    >>> bound = spent(pair, twice, Adversaries.all())
    >>> round(bound.value, 4), bound.method
    (1.1854, 'exact')
    """
    if model.is_endless:
        return _endless(model, spending)
    if spending.later is not None:
        return _with_later(model, spending, spending.later, adversaries, threshold, deadline)
    on_top = spending.rounding + spending.draw_epsilon
    left = None if threshold is None else threshold - on_top
    if not spending.parts and not spending.only_budgets and spending.dp_epsilon == 0:
        found = Bound(value=0.0, method="whole" if spending.draw_epsilon else "nothing")
    elif len(spending.parts) == 1 and spending.dp_epsilon == 0:
        found = _single(model, spending, adversaries, deadline)
    elif _mixes_clamping(model, spending):
        found = _added(model, spending, adversaries, deadline)
    else:
        found = _together(model, spending, adversaries, left, deadline)
    value = found.value
    if on_top:
        is_sum = value > 0 or spending.rounding > 0
        value = (value + on_top) * ROUND_UP if is_sum else spending.draw_epsilon
    if math.isnan(value):
        raise PdpError("the leakage is not a number: nothing can be certified.")
    return Bound(value=value, method=found.method)


def _with_later(
    model: Model,
    spending: Spending,
    later: Spending,
    adversaries: Adversaries,
    threshold: float | None,
    deadline: float,
) -> Bound:
    """Bound what has a pure ε, some of it released after answers with Gaussian noise."""
    if all(model.continuous_tuples):  # all that is unknown moves by a fixed shift: costs add up
        return spent(model, spending.in_one(), adversaries, threshold=threshold, deadline=deadline)
    group = 0.0
    budgets = dict(zip(model.names, later.tuple_budgets(model), strict=True))
    for problem in split(model, nothing_about(model), adversaries, expand=False):
        releases = Releases(
            problem=problem,
            budgets=np.array([budgets[name] for name in problem.names]),
            dp_epsilon=later.dp_epsilon,
        )
        found = _group(composer_of(problem.model), releases, deadline)
        group = max(group, math.inf if found is None else found)
    group = (group + later.rounding) * ROUND_UP
    before = dataclasses.replace(spending, later=None)
    left = None if threshold is None else threshold - group
    first = spent(model, before, adversaries, threshold=left, deadline=deadline)
    if math.isinf(group):
        raise UnsupportedQueryError(
            "nothing bounds pure epsilon released after Gaussian noise on this model: release what"
            " has Laplace noise first."
        )
    return Bound(value=(first.value + group) * ROUND_UP, method="group")


def _endless(model: Model, spending: Spending) -> Bound:
    """Bound what a plain-DP budget, spent again at every step, leaks about any step."""
    if spending.parts or spending.only_budgets or not spending.noisy.is_empty:
        raise UnsupportedQueryError("releases about a model without an end are added up by step.")
    value = composer_of(model).for_ever(model, spending.dp_epsilon)
    return Bound(value=value, method="stream")


def joint_mu(
    model: Model,
    answers: NoisyAnswers,
    adversaries: Adversaries,
    *,
    data_counts: bool,
    deadline: float = math.inf,
) -> float:
    """Return a μ that nobody exceeds by all answers with Gaussian noise together.

    This is not the root of the sum of their own μ²: one answer may reveal what acts as noise in
    another. Engines evaluate all of them together. Rounding of the answers is left out.

    Parameters
    ----------
    model, adversaries, deadline
        As in `spent`.
    answers
        What was released.
    data_counts
        Whether what adversaries do not know counts as noise: only where nothing else is released.
    """
    if not answers.parts and not answers.outside:
        return 0.0
    parts = answers.parts
    if not model.is_continuous:  # on discrete tuples clamping does nothing
        parts = tuple(dataclasses.replace(part, clamped=False) for part in parts)
    scales = [scale_of(one) for one in answers.precisions]
    joined = Contributions.joined(parts, scales) if parts else nothing_about(model)
    measure = Measure(noise="gaussian", unit="mu", data_counts=data_counts, more_follows=True)
    found = 0.0
    for problem in split(model, joined, adversaries, measure=measure if parts else LAPLACE):
        own = worst([problem], 1.0, deadline=deadline)[0].upper if parts else 0.0
        moved = composer_of(problem.model).moved_tuples(problem) if answers.outside else 0
        together = math.sqrt(own * own + moved * moved * answers.outside)
        found = max(found, together * (1 + 8 * UNIT_ROUNDOFF) if moved else own)
    if math.isnan(found):
        raise PdpError("the leakage is not a number: nothing can be certified.")
    return found


def scale_of(precision: float) -> float:
    """Return the scale of one answer equivalent to answers of this Σ σ^-2, rounded down."""
    return (1 - 8 * UNIT_ROUNDOFF) / math.sqrt(precision)


def repeats_of(
    model: Model, part: Contributions, adversaries: Adversaries, *, delta: float
) -> list[Problem]:
    """Return the problems of one query whose repeats are counted at one δ: see `repeated`."""
    if not model.is_continuous:  # on discrete tuples clamping does nothing
        part = dataclasses.replace(part, clamped=False)
    measure = Measure(noise="gaussian", unit="epsilon", delta=delta)
    return split(model, part, adversaries, measure=measure)


def repeated(
    problems: Sequence[Problem],
    precision: float,
    *,
    rounding: float = 0.0,
    deadline: float = math.inf,
) -> float:
    """Return an ε that all answers to one query keep together, however their scales were chosen.

    Theorem 21 (docs/theory): if Σ σ^-2 is at most `precision` whatever comes out, they reveal no
    more than one answer of that precision, whose ε at one δ is known exactly.

    Parameters
    ----------
    problems
        From `repeats_of`: the query, against whom, and beside which δ.
    precision
        What Σ σ^-2 does not exceed.
    rounding
        How far each answer may be off before its noise; answers off by r each are no further from
        exact ones than one answer of this precision that is off by r.
    deadline
        As in `spent`.
    """
    scale = scale_of(precision)
    found, problem = worst(problems, scale, rounding=rounding, deadline=deadline)
    return problem.measure.leakage(found, scale, None).value


def _single(model: Model, spending: Spending, adversaries: Adversaries, deadline: float) -> Bound:
    """Search one answer exactly as its calibration did."""
    (part,), (scale,) = spending.parts, spending.scales
    found, _ = worst(split(model, part, adversaries), scale, deadline=deadline)
    return Bound(value=found.upper, method="exact")


def _together(
    model: Model,
    spending: Spending,
    adversaries: Adversaries,
    threshold: float | None,
    deadline: float,
) -> Bound:
    """Return the largest, over independent blocks, of the smallest bound on each."""
    merged, apart_by = spending.merged()
    small = merged.is_small(model)
    joined = merged.joined(model) if small else nothing_about(model)
    leaves = split(model, joined, adversaries, expand=False)
    if not leaves:
        raise UnsupportedQueryError("no adversary of the set attacks any tuple of the model.")
    # Repeats of a query reveal what one release of its budget does: Theorem 25 (docs/theory).
    searched = small and 0 < len(merged.parts) <= SEARCHED_RELEASES and not spending.dp_epsilon
    budgets = dict(zip(model.names, spending.tuple_budgets(model), strict=True))
    found = Bound(value=0.0, method="nothing")
    for problem in leaves:
        releases = Releases(
            problem=problem,
            is_searched=searched,
            budgets=None if small else np.array([budgets[name] for name in problem.names]),
            dp_epsilon=spending.dp_epsilon,
            threshold=threshold,
        )
        found = found.or_worse(_block_bound(releases, deadline))
    if searched and any(problem.hidden_noise for problem in leaves):
        whole = split(model, joined, adversaries)
        if all(_is_searchable(problem) for problem in whole):
            bracket, _ = worst(whole, 1.0, deadline=deadline)
            found = found.or_better(Bound(value=bracket.upper, method="exact"))
    if apart_by:
        found = dataclasses.replace(found, value=(found.value + apart_by) * ROUND_UP)
    return found


def _mixes_clamping(model: Model, spending: Spending) -> bool:
    return model.is_continuous and len({part.clamped for part in spending.parts}) > 1


def _added(model: Model, spending: Spending, adversaries: Adversaries, deadline: float) -> Bound:
    """Bound clamped and unclamped answers about continuous tuples: one coupling, costs add up."""
    if isinstance(model, Blocks | ModelSet):
        raise UnsupportedQueryError(
            "on Blocks and ModelSet, queries of one ledger must all clamp, or none of them."
        )
    total = 0.0
    for clamped in (False, True):
        kept = [k for k, part in enumerate(spending.parts) if part.clamped == clamped]
        some = Spending(
            parts=tuple(spending.parts[k] for k in kept),
            scales=tuple(spending.scales[k] for k in kept),
            dp_epsilon=0.0 if clamped else spending.dp_epsilon,
        )  # budgets are left out: they follow from the parts
        total += spent(model, some, adversaries, deadline=deadline).value
    return Bound(value=total * ROUND_UP, method="shift")


def _block_bound(releases: Releases, deadline: float) -> Bound:
    """Return the smallest of the bounds that hold for one block; cheap ones first."""
    found = Bound(value=math.inf, method="group")
    cost = releases.problem.contributions.rounding
    composer = composer_of(releases.problem.model)
    for method, bound in _BOUNDS:
        value = bound(composer, releases, deadline)
        if value is not None and method not in ("exact", "shift") and cost:  # those charge it
            value = (value + cost) * ROUND_UP
        if value is not None:
            found = Bound(value=value, method=method).or_better(found)
        if value is not None and method in ("exact", "shift"):
            break  # nothing is smaller
        if releases.threshold is not None and found.value <= releases.threshold:
            break
    if math.isinf(found.value):
        raise UnsupportedQueryError(
            "no sound bound covers these releases together on this model; release the queries as"
            " one list, or use a joint table."
        )
    return found


def _group(composer: Composer, releases: Releases, deadline: float) -> float | None:
    """Bound by moving all unknown tuples at once; this does not apply to unbounded tuples."""
    del deadline
    problem, knowledge = releases.problem, releases.problem.knowledge
    if not composer.is_bounded(problem):
        return None
    budgets = releases.tuple_budgets
    if knowledge.known is not None:
        moving = budgets[[p for p in range(len(budgets)) if p not in knowledge.known]]
    else:
        moving = np.sort(budgets)[::-1][: knowledge.total - knowledge.fewest]
    together = math.fsum(moving)
    if releases.budgets is None:
        whole = problem.contributions.total_range() + len(moving) * releases.dp_epsilon
        together = min(together, whole)
    return together * ROUND_UP


def _exact(composer: Composer, releases: Releases, deadline: float) -> float | None:
    """Search the joint answer itself."""
    del composer  # of the family, which may be searched as a table
    problem = releases.problem
    if not releases.is_searched:
        return None
    if problem.contributions.coordinates > 1:
        problem = _as_table(problem) or problem
    if not _is_searchable(problem):
        return None
    found, _ = worst([problem], 1.0, deadline=deadline)
    return found.upper


def _dual(composer: Composer, releases: Releases, deadline: float) -> float | None:
    """Solve the dual program of a table, or of a family small enough to be written out."""
    if releases.budgets is not None or releases.problem.model.is_continuous:
        return None
    if composer.is_counted_exactly(releases):
        return None
    from pdp_calibrate.composition.table_dual import dual_bound, is_affordable  # loads numba

    table = _as_table(releases.problem)
    if table is None or not is_affordable(table):
        return None
    limit = releases.threshold
    return dual_bound(
        table,
        dp_epsilon=releases.dp_epsilon,
        incumbent=0.0 if limit is None else limit,
        enough=math.inf if limit is None else limit,
        deadline=deadline,
    )


_Finds = Callable[[Composer, Releases, float], float | None]


_BOUNDS: tuple[tuple[str, _Finds], ...] = (
    ("group", _group),
    ("birkhoff", lambda composer, *about: composer.forgotten(*about)),
    ("shift", lambda composer, *about: composer.shifted(*about)),
    ("exact", _exact),
    ("dual", lambda composer, *about: composer.counted(*about)),
    ("dual", _dual),
)


def _as_table(problem: Problem) -> Problem | None:
    """Return the same problem about a joint table, if that has a reasonable size.

    Also None where a cell would be too rare for a float; other bounds apply there.
    """
    model = problem.model
    if isinstance(model, JointTable):
        return problem
    if not isinstance(model, Writable) or not SMALL_TABLE.admits(list(map(len, model.domains))):
        return None
    try:
        return dataclasses.replace(problem, model=model.to_table())
    except ModelError:
        return None


def _is_searchable(problem: Problem) -> bool:
    """Whether an exact search of the joint answer is within reach."""
    return composer_of(problem.model).is_searchable(problem)


_SUMS = ("rounding", "dp_epsilon", "draw_epsilon")


@dataclass(frozen=True, kw_only=True, eq=False)
class NoisyAnswers:
    """What was released about one draw with Gaussian noise."""

    parts: tuple[Contributions, ...] = ()
    """The lowered queries, each once: σ^-2 of repeated answers add up."""
    precisions: tuple[float, ...] = ()
    """Σ σ^-2 of each, rounded up."""
    rounding: float = 0.0
    """Σ (2r/σ)² over all answers, r how far each may be off before its noise."""
    outside: float = 0.0
    """Σ μ² of other mechanisms, for substituting one tuple."""
    choices: int = 0
    """How often somebody chose what to release, having seen what came before."""
    first: tuple[float, ...] = ()
    """`precisions` after the first choice, which nothing seen could have changed."""

    @property
    def is_repeated(self) -> bool:
        """Whether there are answers, and all to one query."""
        return len(self.parts) == 1 and not self.outside

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing."""
        return not self.parts and not self.outside

    @property
    def scale(self) -> float:
        """The scale of one answer whose drawn noise is as far from Gaussian as all together."""
        return math.inf if not self.precisions else 1 / math.sqrt(math.fsum(self.precisions))

    def plus(self, part: Contributions, scale: float, *, rounding: float) -> NoisyAnswers:
        """Return the same after one more answer; the caller counts the choice."""
        added = precision_of(scale) * (1 + 8 * UNIT_ROUNDOFF)
        off = (2 * rounding / scale) ** 2 * (1 + 8 * UNIT_ROUNDOFF)
        precisions = dict(zip(map(id, self.parts), self.precisions, strict=True))
        precisions[id(part)] = (precisions.get(id(part), 0.0) + added) * ROUND_UP
        parts = self.parts if id(part) in set(map(id, self.parts)) else (*self.parts, part)
        totals = tuple(precisions.values())
        return dataclasses.replace(
            self,
            parts=parts,
            precisions=totals,
            first=totals if self.choices <= 1 else self.first,
            rounding=(self.rounding + off) * ROUND_UP,
        )

    def plus_mechanism(self, mu: float) -> NoisyAnswers:
        """Return the same after one more mechanism of this μ for substituting one tuple."""
        outside = (self.outside + mu * mu) * (1 + 8 * UNIT_ROUNDOFF)
        return dataclasses.replace(self, outside=outside, choices=self.choices + 1)

    def chosen(self) -> NoisyAnswers:
        """Return the same after one more choice."""
        return dataclasses.replace(self, choices=self.choices + 1)


@dataclass(frozen=True, kw_only=True)
class Spending:
    """Everything released about one draw of the data."""

    parts: tuple[Contributions, ...] = ()
    """The lowered queries; a query released twice is the same object twice."""
    scales: tuple[float, ...] = ()
    """The Laplace scale of each."""
    rounding: float = 0.0
    """What the rounding of the answers before the noise costs, in nats."""
    dp_epsilon: float = 0.0
    """The plain-DP budgets (substitution) of all other mechanisms, added up."""
    draw_epsilon: float = 0.0
    """The budgets of mechanisms that are differentially private in the whole draw, added up.

    Anything that stores a spending must store this too.
    """
    budgets: FloatArray | None = None
    """Per tuple, how far it alone can move the likelihood of all answers: Σ_m LS_j(f_m)/λ_m."""
    only_budgets: bool = False
    """Whether there were too many answers to keep `parts`, and `budgets` represent all of them."""
    noisy: NoisyAnswers = field(default_factory=NoisyAnswers)
    """What was released with Gaussian noise."""
    later: Spending | None = None
    """What was released with a pure ε once there was Gaussian noise, and may depend on it."""

    def plus(
        self, part: Contributions, scale: float, *, ranges: FloatArray, rounding: float
    ) -> Spending:
        """Return the spending after one more answer; `ranges` are its exact LS_j."""
        if not self.noisy.is_empty:
            after = (self.later or Spending()).plus(part, scale, ranges=ranges, rounding=rounding)
            return dataclasses.replace(self, later=after)
        added = ranges / scale * ROUND_UP
        parts, scales = (*self.parts, part), (*self.scales, scale)
        distinct = {id(one): one.apart.coordinates * len(one.values) for one in parts}
        many = self.only_budgets or (not part.real and sum(distinct.values()) > KEPT_SPENDING)
        return dataclasses.replace(
            self,
            parts=() if many else parts,
            scales=() if many else scales,
            rounding=(self.rounding * ROUND_UP) + 2 * rounding / scale,
            budgets=added if self.budgets is None else (self.budgets + added) * ROUND_UP,
            only_budgets=many,
        )

    def plus_mechanism(self, dp_epsilon: float) -> Spending:
        """Return the spending after one more mechanism of this plain-DP budget."""
        if not self.noisy.is_empty:
            after = (self.later or Spending()).plus_mechanism(dp_epsilon)
            return dataclasses.replace(self, later=after)
        total = (self.dp_epsilon + dp_epsilon) * (ROUND_UP if self.dp_epsilon else 1.0)
        return dataclasses.replace(self, dp_epsilon=total)

    def plus_learning(self, epsilon: float) -> Spending:
        """Return the spending after a mechanism that is ε-DP for substituting the whole draw."""
        total = (self.draw_epsilon + epsilon) * (ROUND_UP if self.draw_epsilon else 1.0)
        return dataclasses.replace(self, draw_epsilon=total)

    def in_one(self) -> Spending:
        """Return the same without distinguishing earlier from later releases."""
        later = self.later
        if later is None:
            return self
        budgets = [one for one in (self.budgets, later.budgets) if one is not None]
        return dataclasses.replace(
            self,
            parts=self.parts + later.parts,
            scales=self.scales + later.scales,
            rounding=(self.rounding + later.rounding) * ROUND_UP,
            dp_epsilon=(self.dp_epsilon + later.dp_epsilon) * ROUND_UP,
            budgets=np.asarray(sum(budgets) * ROUND_UP) if budgets else None,
            later=None,
        )

    def to_dict(self) -> dict[str, Any]:
        """Describe for JSON what represents too many answers."""
        budgets = [] if self.budgets is None else self.budgets.tolist()
        return {"budgets": budgets} | {key: getattr(self, key) for key in _SUMS}

    @classmethod
    def from_dict(cls, described: Mapping[str, Any]) -> Spending:
        """Undo `to_dict`."""
        numbers = np.array(described["budgets"], dtype=np.float64)
        sums: dict[str, Any] = {key: float(described[key]) for key in _SUMS}
        smallest = min(*numbers, *sums.values())
        if numbers.ndim != 1 or not np.all(np.isfinite(numbers)) or not smallest >= 0:
            raise ValueError("budgets must be numbers, zero or more.")
        return cls(budgets=numbers, only_budgets=True, **sums)

    def merged(self) -> tuple[Spending, float]:
        """Return the same with repeated queries merged into one whose scale gives equal costs.

        The costs |f − f'|/λ_m of one query add up, so for every bound that uses only costs it
        counts as if released once with scale 1/Σ 1/λ_m. So does a multiple of it, such as the mean
        next to the sum, or the count of all others; the second number is the cost in nats of their
        being multiples only up to rounding.
        """
        rates: dict[int, list[float]] = {}
        for part, scale in zip(self.parts, self.scales, strict=True):
            rates.setdefault(id(part), []).append(1 / scale)
        distinct = {id(part): part for part in self.parts}
        if len(self.parts) <= 1:
            return self, 0.0
        kept: dict[int | bytes, tuple[Contributions, list[float]]] = {}
        moved = 0.0
        for part in distinct.values():
            first, totals = kept.setdefault(_direction(part), (part, []))
            factor, error = _multiple(part, first)
            totals += [factor * rate for rate in rates[id(part)]]
            moved += 2 * error * math.fsum(rates[id(part)])
        scales = tuple(
            1 / one[0] if len(one) == 1 else 1 / (math.fsum(one) * ROUND_UP)
            for _, one in kept.values()
        )
        parts = tuple(part for part, _ in kept.values())
        return dataclasses.replace(self, parts=parts, scales=scales), rounded_up(
            moved, 4 + len(distinct)
        )

    def joined(self, model: Model) -> Contributions:
        """Return one answer in units of the noise."""
        if not self.parts:
            return nothing_about(model)
        parts = self.parts
        if not model.is_continuous:  # on discrete tuples clamping does nothing
            parts = tuple(dataclasses.replace(part, clamped=False) for part in parts)
        return Contributions.joined(parts, self.scales)

    def is_small(self, model: Model) -> bool:
        """Whether all answers can be searched together, rather than by their budgets alone."""
        if self.only_budgets:
            return False
        numbers = sum(part.apart.coordinates for part in self.parts) * len(model.names)
        return numbers <= JOINED_NUMBERS

    def tuple_budgets(self, model: Model) -> FloatArray:
        """Return `budgets`, computed if they were not given."""
        if self.budgets is not None:
            return self.budgets
        total = np.zeros(len(model.names))
        for part, scale in zip(self.parts, self.scales, strict=True):
            total += part.exact_ranges() / scale
        return np.asarray(rounded_up(total, 2 * len(self.parts)))


def _direction(part: Contributions) -> int | bytes:
    """Return a key that is equal for answers that are multiples of each other up to rounding."""
    moves = part.moves
    peak = 0.0 if moves is None else float(moves[int(np.abs(moves).argmax())])
    if moves is None or not peak:
        return id(part)
    return (np.round(moves / peak, 12) + 0.0).tobytes()  # no negative zeros


def _multiple(part: Contributions, first: Contributions) -> tuple[float, float]:
    """Return the factor between two answers, and how far they are from multiples at most."""
    if part is first or part.moves is None or first.moves is None:
        return 1.0, 0.0
    place = int(np.abs(first.moves).argmax())
    factor = float(part.moves[place] / first.moves[place])
    apart = np.abs(part.moves - factor * first.moves)
    starts = np.cumsum([0, *part.sizes[:-1]])
    error = float(np.maximum.reduceat(apart, starts).sum())
    error += part.rounding / 2  # the costs of `first` hold for it alone
    size = part.magnitude + first.magnitude
    return abs(factor), (error + 16 * UNIT_ROUNDOFF * size * max(1.0, abs(factor))) * ROUND_UP


def nothing_about(model: Model) -> Contributions:
    """Return the answer to which no tuple adds anything."""
    return _nothing(tuple(len(domain) for domain in model.domains), model.is_continuous)


@functools.lru_cache(maxsize=8)
def _nothing(sizes: tuple[int, ...], continuous: bool) -> Contributions:  # noqa: FBT001
    zeros = [np.zeros(size) for size in sizes]
    weights = [0.0] * len(zeros) if continuous else None
    return Contributions.additive(zeros, weights=weights, real=continuous)
