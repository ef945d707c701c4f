"""What several releases leak together: the smallest of all bounds that are sound.

Theorem 12 (docs/theory).

Leakages of correlated data do not add up, so every release so far counts at once. Sound are

- the exact search of the joint answer, for tables whose grid of outputs is not too large, and for
  Gaussian tuples always (there the leakages of one adversary do add up);
- the dual program, on tables: costs |f − f'|/λ of all answers and ε₀ of all other mechanisms;
- windows, on Markov chains and trees whose releases all are of one query (or multiples of it);
- Birkhoff's contraction, on Markov chains and trees: plain-DP budgets per tuple, added up;
- the group bound: all tuples that depend on each other move at once.

**Learning the model.** A mechanism that is ε-DP for substituting the whole draw adds just ε: its
output θ̂ has a likelihood p(θ̂|x) between m and e^ε·m for every draw x, m the smallest. So, however
the tuples of the draw are correlated, Σ_u P(u|x_i,x_K)·p(θ̂|x)·p(r|x) lies between m and e^ε·m times
what it is without p(θ̂|x), for either secret; and so it does draw by draw where the output depends
on other, independent draws as well.

**Beside Gaussian noise.** Let L be all that has a pure ε and was released before there was
any, E its joint ε, and N everything later. Given the output of L, whatever it makes
likely of the unknown tuples, N compares two databases among those possible: mixtures over them of
pairs, each of which N keeps μ-GDP apart, and its own pure part E', if both are taken as far as the
answers move *at all*. So δ(ε) ≤ δ_μ(ε − E − E') with the range of the answers in μ, and the group
bound in E'. A coupling of what was likely before L does not do (each half of a one-time pad tells
nothing): nor does a joint ε of what was chosen after seeing Gaussian outputs. Gaussian tuples move
by a fixed shift, the same for all answers: there nothing needs to be kept apart.

**Adaptive releases.** Let queries and scales be chosen from what came out before. On each course r
of outputs the choices are fixed, so the density of r is the product of the Laplace densities of the
queries and scales *on that course*, and its ratio under two secrets is at most the joint leakage of
exactly those. So if no course is continued past the budget, whatever the course, nobody learns more
than the budget. It must not be continued for other reasons that depend on the data.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import numpy as np

from pdp_calibrate.composition.spending import NoisyAnswers, Spending, nothing_about
from pdp_calibrate.core.adversary import Adversaries
from pdp_calibrate.core.composer import Composer, Releases, composer_of
from pdp_calibrate.core.composite import Blocks, ModelSet
from pdp_calibrate.core.contributions import Contributions
from pdp_calibrate.core.model import Model
from pdp_calibrate.core.problem import LAPLACE, Bound, Measure, Problem, split, worst
from pdp_calibrate.core.rounding import ROUND_UP, UNIT_ROUNDOFF
from pdp_calibrate.core.table import SMALL_TABLE, JointTable, Writable
from pdp_calibrate.core.tuning import SEARCHED_RELEASES
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
        If given, only whether the bound exceeds this matters, which is found out sooner.
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
            separate=None,
            budgets=np.array([budgets[name] for name in problem.names]),
            dp_epsilon=later.dp_epsilon,
            threshold=None,
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
    """Bound what one plain-DP budget, spent anew at every step, tells about any step."""
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

    Never the root of the sum of their own μ²: one answer may tell what blurs another. Engines are
    asked about all of them at once. Rounding of the answers is left out.

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
    scales = [(1 - 8 * UNIT_ROUNDOFF) / math.sqrt(one) for one in answers.precisions]
    joined = Contributions.joined(parts, scales) if parts else nothing_about(model)
    measure = Measure(noise="gaussian", unit="mu", data_counts=data_counts)
    found = 0.0
    for problem in split(model, joined, adversaries, measure=measure if parts else LAPLACE):
        own = worst([problem], 1.0, deadline=deadline)[0].everywhere if parts else 0.0
        moved = composer_of(problem.model).moved_tuples(problem) if answers.outside else 0
        together = math.sqrt(own * own + moved * moved * answers.outside)
        found = max(found, together * (1 + 8 * UNIT_ROUNDOFF) if moved else own)
    if math.isnan(found):
        raise PdpError("the leakage is not a number: nothing can be certified.")
    return found


def _single(model: Model, spending: Spending, adversaries: Adversaries, deadline: float) -> Bound:
    """Search one answer just as its calibration did."""
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
    alone = small and 0 < len(spending.parts) <= SEARCHED_RELEASES and not spending.dp_epsilon
    apart = split(model, spending.joined(model), adversaries, expand=False) if alone else leaves
    budgets = dict(zip(model.names, spending.tuple_budgets(model), strict=True))
    found = Bound(value=0.0, method="nothing")
    for problem, separate in zip(leaves, apart, strict=True):
        releases = Releases(
            problem=problem,
            separate=separate if alone else None,
            budgets=None if small else np.array([budgets[name] for name in problem.names]),
            dp_epsilon=spending.dp_epsilon,
            threshold=threshold,
        )
        found = found.or_worse(_block_bound(releases, deadline))
    if alone and any(problem.hidden_noise for problem in leaves):
        whole = split(model, spending.joined(model), adversaries)
        if all(_is_searchable(problem) for problem in whole):
            searched, _ = worst(whole, 1.0, deadline=deadline)
            found = found.or_better(Bound(value=searched.upper, method="exact"))
    if apart_by:
        found = dataclasses.replace(found, value=(found.value + apart_by) * ROUND_UP)
    return found


def _mixes_clamping(model: Model, spending: Spending) -> bool:
    return model.is_continuous and len({part.clamped for part in spending.parts}) > 1


def _added(model: Model, spending: Spending, adversaries: Adversaries, deadline: float) -> Bound:
    """Clamped and unclamped answers about continuous tuples: one coupling, so costs add up."""
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
    """All tuples that the adversary does not know move at once; no use on unbounded tuples."""
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
    problem = releases.separate
    if problem is None:
        return None
    if problem.contributions.coordinates > 1:
        problem = _as_table(problem) or problem
    if not _is_searchable(problem):
        return None
    found, _ = worst([problem], 1.0, deadline=deadline)
    return found.upper


def _windows(composer: Composer, releases: Releases, deadline: float) -> float | None:
    """Look through windows, where all releases are of one query."""
    if releases.budgets is not None or releases.dp_epsilon:
        return None
    return composer.windows(releases, deadline)


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
    ("windows", _windows),
    ("dual", lambda composer, *about: composer.counted(*about)),
    ("dual", _dual),
)


def _as_table(problem: Problem) -> Problem | None:
    """Return the same problem about a joint table, where there is one of reasonable size.

    None also where a cell would be too rare for a float; other bounds hold there.
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
