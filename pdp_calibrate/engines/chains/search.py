"""The worst adversary of a Markov chain.

Given what is known, only the nearest known tuple on each side of the target matters, so the 2^{T−1}
known sets come down to windows. Chains of equal contributions look alike everywhere: their windows
are told by two lengths, whatever the target.
"""

from __future__ import annotations

import dataclasses
import math
import time

import numpy as np

from pdp_calibrate.engines.additive import ROUND_UP, as_one, nobody, plain_dp, search_table
from pdp_calibrate.engines.chains.around import Outcome, walk_around
from pdp_calibrate.engines.chains.mixing import birkhoff_bounds, diameters
from pdp_calibrate.engines.chains.placing import Place, likely_course, witness_in
from pdp_calibrate.engines.chains.repeats import repeated_bound
from pdp_calibrate.engines.chains.setup import Setup, setup_of
from pdp_calibrate.engines.chains.single import search_one, with_tail
from pdp_calibrate.engines.chains.walk import Walk
from pdp_calibrate.engines.chains.windows import Rules
from pdp_calibrate.engines.problem import Problem
from pdp_calibrate.engines.result import Found
from pdp_calibrate.models import MarkovChain
from pdp_calibrate.models.table import LOG_SMALLEST, MAXIMAL_CELLS

_WRITTEN_OUT = 12  # tuples up to which a chain may be searched as a joint table
_QUICK_LAWS = 500_000  # up to here a table beats a lattice onto which contributions are rounded


def search(
    problem: Problem, scale: float, *, incumbent: float = 0.0, deadline: float = math.inf
) -> Found:
    """Find the worst adversary of a Markov chain; see `engines.tables.search`.

    Exact for chains of up to 200 tuples whose contributions lie on a lattice. Otherwise a bracket:
    windows are cut where the chain has forgotten, and contributions rounded.
    """
    chain, contributions = problem.model, problem.contributions
    if not isinstance(chain, MarkovChain):
        raise TypeError(f"this engine searches Markov chains, got {chain!r}.")
    if len(chain.states) == 1:
        return nobody(problem)
    several = contributions.table is not None or contributions.values[0].shape[-1] > 1
    if several or (_separated(problem) and chain.length <= _WRITTEN_OUT):
        if contributions.table is not None or _fits_a_table(chain):
            joint = chain.to_table()
            return search_table(problem, joint, scale, incumbent=incumbent, deadline=deadline)
        if several:
            return _bound_only(problem, chain, scale, incumbent, deadline)
    setup = setup_of(chain, contributions)
    if _is_small(chain) and setup.lattice(setup.reach(scale)).errors.any():
        joint = chain.to_table()
        return search_table(problem, joint, scale, incumbent=incumbent, deadline=deadline)
    if problem.knowledge.known is not None:
        return search_one(problem, setup, scale)
    return _search_all(problem, setup, scale, incumbent, deadline)


def _separated(problem: Problem) -> bool:
    """Whether unknown tuples beyond a known one may blur the answer."""
    knowledge, length = problem.knowledge, problem.knowledge.total
    if knowledge.known is None:
        return 0 < knowledge.most < length - 1
    (target,) = knowledge.targets
    place = Place.nearest(length, target, knowledge.known)
    return length - 1 - len(knowledge.known) > place.inside


def _fits_a_table(chain: MarkovChain) -> bool:
    cells = len(chain.states) ** min(chain.length, 64)
    return cells <= MAXIMAL_CELLS and chain.log_rarest() > LOG_SMALLEST


def _is_small(chain: MarkovChain) -> bool:
    """Whether all conditional laws of the joint table are quickly listed."""
    laws = chain.length * (2 * len(chain.states)) ** min(chain.length, 64)
    return laws <= _QUICK_LAWS and _fits_a_table(chain)


def _bound_only(
    problem: Problem, chain: MarkovChain, scale: float, incumbent: float, deadline: float
) -> Found:
    """Answers of several numbers: Birkhoff's bound or, for repeats of one, windows; below, none."""
    ranges = problem.contributions.tuple_ranges() / scale
    bounds = birkhoff_bounds(ranges, float(diameters(chain.kernel, 1)[0][1]))
    target = max(problem.knowledge.targets, key=lambda position: bounds[position])
    known = problem.knowledge.known or frozenset()
    unknown = tuple(p for p in range(chain.length) if p != target and p not in known)
    value = float(bounds[target])
    together = as_one(problem.contributions, scale)
    if together is not None:
        once, rounding = together
        repeated = dataclasses.replace(problem, contributions=once)
        windows = repeated_bound(repeated, incumbent=incumbent, deadline=deadline)
        value = value if windows is None else min(value, (windows + rounding) * ROUND_UP)
    return dataclasses.replace(nobody(problem), value=value, target=target, unknown=unknown)


def _search_all(
    problem: Problem, setup: Setup, scale: float, incumbent: float, deadline: float
) -> Found:
    knowledge = problem.knowledge
    best = nobody(problem)
    if knowledge.admits_strongest and not problem.hidden_noise:
        target = int(setup.ranges.argmax())
        best = plain_dp(problem, target, scale, likely_course(setup))
        if knowledge.fewest == setup.length - 1:
            return best
    bounds = setup.bounds(scale)
    if setup.homogeneous:
        highest = float(bounds.max())
        if highest <= max(incumbent, best.value) or time.monotonic() > deadline:
            return _at_least(best, highest, int(bounds.argmax()), setup)
        return best.or_worse(
            _around(problem, setup, scale, None, highest, max(incumbent, best.value), deadline)
        )
    seen: set[object] = set()
    reach = setup.reach(scale)
    for target in sorted(range(setup.length), key=lambda position: -bounds[position]):
        bound = float(bounds[target])
        if bound <= max(incumbent, best.value) or time.monotonic() > deadline:
            # Bounds fall from target to target, so this one covers all that follow.
            return _at_least(best, bound, target, setup)
        view = setup.view(target, reach)
        if view not in seen:
            seen.add(view)
            best = best.or_worse(
                _around(problem, setup, scale, target, bound, max(incumbent, best.value), deadline)
            )
    return best


def _at_least(best: Found, bound: float, target: int, setup: Setup) -> Found:
    """Raise the upper end to a bound; if it stands above, the bound's target is behind it."""
    if bound <= best.value:
        return best
    unknown = tuple(position for position in range(setup.length) if position != target)
    return dataclasses.replace(best, value=bound, target=target, unknown=unknown)


def _around(
    problem: Problem,
    setup: Setup,
    scale: float,
    target: int | None,
    bound: float,
    incumbent: float,
    deadline: float,
) -> Found:
    """Search the windows around one target; None for all of them at once."""
    reach = setup.reach(scale)
    knowledge = problem.knowledge
    rules = Rules(setup, knowledge, hidden=problem.hidden_noise, target=target, reach=reach)
    walk = Walk(
        setup,
        setup.lattice(reach),
        scale,
        target=target,
        left=rules.most_left,
        right=rules.most_right,
    )
    outcome = walk_around(walk, rules, incumbent - walk.error, deadline)
    place = Place.of(setup, knowledge, target, *outcome.upper_sides)
    value = max(outcome.upper, outcome.pruned) + walk.error
    value = min(bound, max(0.0, value) * ROUND_UP) if outcome.finished else bound
    found = Found(
        value=value,
        lower=0.0,
        witness=None,
        target=place.target,
        unknown=place.unknown(setup.length, knowledge.most),
    )
    if outcome.lower > -np.inf:
        found = found.or_worse(_attained(problem, setup, walk, target, outcome))
    if any(side.kind == "far" for side in outcome.upper_sides):
        found = with_tail(problem, setup, scale, place, found)
    return found


def _attained(
    problem: Problem, setup: Setup, walk: Walk, target: int | None, outcome: Outcome
) -> Found:
    """Name the window behind the lower end."""
    knowledge = problem.knowledge
    place = Place.of(setup, knowledge, target, *outcome.lower_sides)
    unknown = place.unknown(setup.length, knowledge.most)
    hidden = problem.hidden_noise or len(unknown) > place.inside
    witness = witness_in(problem, walk, place, outcome.lower_sides, unknown, hidden=hidden)
    lower = max(0.0, outcome.lower - walk.error)
    return Found(value=0.0, lower=lower, witness=witness, target=place.target, unknown=unknown)
