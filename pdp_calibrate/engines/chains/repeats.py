"""One query about a chain, released again and again.

The likelihood of M outputs of one query is Π_m e^{−|r_m − s|/λ_m}, a function of the answer s whose
logarithm changes by at most Σ_m 1/λ_m per unit. So in a window of the chain no two secrets can be
told apart further than by the worst likelihood that changes so slowly along the line of answers,
however many releases share the sum Σ_m 1/λ_m. That is a recursion along the law of the window's
sum, and windows are walked as for a single release. Where the worst likelihood climbs or falls all
the way, as for states that follow each other, it is also the limit r → ±∞ of one release with all
of the budget, and nothing is lost.
"""

from __future__ import annotations

import math
import time

import numpy as np

from pdp_calibrate.engines.additive import ROUND_UP
from pdp_calibrate.engines.chains.around import walk_around
from pdp_calibrate.engines.chains.kernels import NOT
from pdp_calibrate.engines.chains.placing import Place
from pdp_calibrate.engines.chains.setup import Setup, setup_of
from pdp_calibrate.engines.chains.single import one_window
from pdp_calibrate.engines.chains.walk import Walk
from pdp_calibrate.engines.chains.windows import Rules
from pdp_calibrate.engines.problem import Problem
from pdp_calibrate.models import MarkovChain

_WORK = 3e8  # elementary steps: about a second
_PASSES = 4  # recursions per comparison
_SHORTEST = 4  # windows worth walking


def repeated_bound(
    problem: Problem, *, incumbent: float = 0.0, deadline: float = math.inf
) -> float | None:
    """Bound what all releases of one query about a chain leak together.

    Parameters
    ----------
    problem
        A chain and the query, in the unit 1/Σ_m 1/λ_m.
    incumbent
        Windows that leak no more than this need not be told apart.
    deadline
        Value of `time.monotonic()` after which no further window is walked.

    Returns
    -------
    float or None
        None where windows are out of reach: several coordinates, or numbers too far apart.
    """
    chain, contributions = problem.model, problem.contributions
    additive = contributions.table is None and contributions.coordinates == 1
    if not isinstance(chain, MarkovChain) or not additive:
        return None
    setup = setup_of(chain, contributions)
    knowledge, bounds = problem.knowledge, setup.bounds(1.0)
    worst = 0.0
    if knowledge.admits_strongest and not problem.hidden_noise:
        worst = float(setup.ranges.max()) * ROUND_UP
    if knowledge.known is not None:
        found = _one_adversary(problem, setup)
        return None if found is None else min(found, float(bounds[knowledge.targets[0]]))
    targets: list[int | None] = [None]
    if not setup.homogeneous:
        targets = sorted(range(setup.length), key=lambda position: -float(bounds[position]))
    reach = _reach(setup, len(targets))
    if reach < setup.length - 1 and setup.diameters[reach] >= bounds.max():
        return float(bounds.max())  # what lies out of reach alone could be worse
    seen: set[object] = set()
    for target in targets:
        bound = float(bounds.max() if target is None else bounds[target])
        if bound <= max(incumbent, worst) or time.monotonic() > deadline:
            return max(worst, bound)  # bounds fall from target to target
        view = None if target is None else setup.view(target, reach)
        if view is None or view not in seen:
            seen.add(view)
            found = _around(problem, setup, target, reach, max(incumbent, worst), deadline)
            if found is None:
                return None
            worst = max(worst, min(bound, found))
    return worst


def _around(
    problem: Problem,
    setup: Setup,
    target: int | None,
    reach: int,
    incumbent: float,
    deadline: float,
) -> float | None:
    """Bound the windows around one target; None for all of them at once."""
    knowledge = problem.knowledge
    rules = Rules(setup, knowledge, hidden=problem.hidden_noise, target=target, reach=reach)
    walk = Walk(
        setup, setup.lattice(reach), 1.0, target=target,
        left=rules.most_left, right=rules.most_right, laws=True,
    )  # fmt: skip
    if walk.is_deep:
        return None
    outcome = walk_around(walk, rules, incumbent, deadline)
    found = max(0.0, outcome.upper, outcome.pruned) * ROUND_UP
    return found if outcome.finished else math.inf


def _one_adversary(problem: Problem, setup: Setup) -> float | None:
    knowledge = problem.knowledge
    (target,), known = knowledge.targets, knowledge.known or frozenset()
    place = Place.nearest(setup.length, target, known)
    if place.inside == 0:
        return float(setup.ranges[target]) * ROUND_UP
    left, right = place.sides(setup.length, _reach(setup, 1))
    walk = Walk(
        setup, setup.lattice(_reach(setup, 1)), 1.0, target=target,
        left=left.distance, right=right.distance, laws=True,
    )  # fmt: skip
    if walk.is_deep:
        return None
    return max(0.0, one_window(walk, place, left, right, code=NOT).upper) * ROUND_UP


def _reach(setup: Setup, targets: int) -> int:
    """Return how far windows are walked: as far as the work allowed goes."""
    reach = setup.reach(1.0)
    ends = setup.states * (setup.states + 1) * setup.states**2
    while reach > _SHORTEST:
        lattice = setup.lattice(reach)
        tops = np.sort(lattice.points.max(axis=1))[-2 * reach - 1 :]
        if targets * reach**2 * ends * _PASSES * float(tops.sum() + 1) <= _WORK:
            break
        reach = max(_SHORTEST, reach * 7 // 8)
    return reach
