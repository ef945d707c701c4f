"""Engine for Markov trees: the joint table where there is one, else Birkhoff's contraction.

**Above.** Let tuple j alone move the log-likelihood of everything released by at most ε_j. Seen
from tuple i, a neighbour k and all that lies behind it can say no more about x_i than L(a_k), where
a_k = ε_k + Σ L(a_l) over the neighbours l behind k, and L is the contraction of the edge between
them (`chains.mixing`). The sum at i bounds every adversary. Two passes give it for every tuple:
one towards the root, one away from it. Known tuples say nothing and let nothing through.

**Below.** In the limit r → ±∞ the density is E[e^{±f/λ} | x_i, x_K], in which the branches at x_i
are factors. A branch is left unknown where that helps, and else cut off by knowing the neighbour.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from pdp_calibrate.adversaries import Knowledge, Witness
from pdp_calibrate.engines.additive import nobody, plain_dp, search_table
from pdp_calibrate.engines.chains.mixing import contracted, diameter_of
from pdp_calibrate.engines.laplace import UNIT_ROUNDOFF
from pdp_calibrate.engines.problem import Problem
from pdp_calibrate.engines.result import Found
from pdp_calibrate.models import JointTable, MarkovTree
from pdp_calibrate.models.base import FloatArray
from pdp_calibrate.models.table import MAXIMAL_CELLS

_LIMIT_WORK = 20_000  # tuples that all limits together may go through
_SUM = 1 + 4 * UNIT_ROUNDOFF  # covers an addition


def search(
    problem: Problem, scale: float, *, incumbent: float = 0.0, deadline: float = math.inf
) -> Found:
    """Find the worst adversary of a tree; see `engines.tables.search`.

    Exact where the joint table has at most 2²² cells, within the time allowed. Beyond, a bracket:
    Birkhoff's bound above, plain DP and the limits r → ±∞ below.
    """
    tree, contributions = problem.model, problem.contributions
    if not isinstance(tree, MarkovTree):
        raise TypeError(f"this engine searches Markov trees, got {tree!r}.")
    joint = _table(tree) if _fits_a_table(tree) or contributions.table is not None else None
    if contributions.table is not None and joint is not None:
        return search_table(problem, joint, scale, incumbent=incumbent, deadline=deadline)
    bounds = tree_bounds(tree, contributions.tuple_ranges() / scale, problem.knowledge)
    best = _plain(problem, tree, scale)
    if best is not None and best.value >= bounds[list(problem.knowledge.targets)].max():
        return best
    if joint is None:
        targets = problem.knowledge.targets
        target = max(targets, key=lambda position: bounds[position])
        bound = _bound(problem, bounds, target)
        if contributions.coordinates > 1:
            return bound
        found = _attained(problem, tree, scale, target)
        return bound.with_lower(found if best is None else best.with_lower(found))
    return _in_table(problem, joint, scale, bounds, best, incumbent, deadline)


def _in_table(
    problem: Problem,
    joint: JointTable,
    scale: float,
    bounds: FloatArray,
    best: Found | None,
    incumbent: float,
    deadline: float,
) -> Found:
    """Search the joint table, about those targets only that could be worse than what is known."""
    knowledge = problem.knowledge
    enough = incumbent if best is None else max(incumbent, best.value)
    open_targets = tuple(t for t in knowledge.targets if bounds[t] > enough)
    closed = [t for t in knowledge.targets if bounds[t] <= enough]
    found = best
    if closed:
        covered = _bound(problem, bounds, max(closed, key=lambda position: bounds[position]))
        found = covered if found is None else found.or_worse(covered)
    if open_targets:
        some = dataclasses.replace(
            problem, knowledge=dataclasses.replace(knowledge, targets=open_targets)
        )
        searched = search_table(some, joint, scale, incumbent=enough, deadline=deadline)
        highest = _bound(problem, bounds, max(open_targets, key=lambda t: bounds[t]))
        searched = searched if searched.value <= highest.value else highest.with_lower(searched)
        found = searched if found is None else found.or_worse(searched)
    return nobody(problem) if found is None else found


def _bound(problem: Problem, bounds: FloatArray, target: int) -> Found:
    """Return Birkhoff's bound about one target, as if everyone were unknown who may be."""
    known = problem.knowledge.known or frozenset()
    places = range(len(problem.names))
    return Found(
        value=float(bounds[target]),
        lower=0.0,
        witness=None,
        target=target,
        unknown=tuple(p for p in places if p != target and p not in known),
    )


def _plain(problem: Problem, tree: MarkovTree, scale: float) -> Found | None:
    """Return what those who know everyone else learn, where there are any."""
    knowledge = problem.knowledge
    if not knowledge.admits_strongest or problem.hidden_noise:
        return None
    if problem.contributions.coordinates > 1:
        return None
    ranges = problem.contributions.tuple_ranges()
    widest = max(knowledge.targets, key=lambda position: ranges[position])
    return plain_dp(problem, widest, scale, _likely_course(tree))


def tree_bounds(tree: MarkovTree, budgets: FloatArray, knowledge: Knowledge) -> FloatArray:
    """Bound the leakage about every tuple, for every adversary, in linear time.

    Parameters
    ----------
    tree
        The model.
    budgets
        ε_j of every tuple: Σ_m LS_j(f_m)/λ_m, and the plain-DP budgets of other mechanisms.
    knowledge
        The adversaries; where only one is meant, what lies behind known tuples does not count.
    """
    known: Collection[int] = knowledge.known or ()
    links, parents = _diameters(tree), tree.parents
    totals = np.array(budgets, dtype=np.float64)
    upwards = np.zeros(len(totals))
    for place in reversed(tree.order):
        parent = parents[place]
        if parent is not None and place not in known:
            upwards[place] = contracted(links[place], float(totals[place]))
            totals[parent] = (totals[parent] + upwards[place]) * _SUM
    for place in tree.order:
        parent = parents[place]
        if parent is not None and parent not in known:
            total = float(totals[parent])
            # A difference of sums of up to n terms is off by as many roundings of the sum.
            others = total - upwards[place] + 8 * UNIT_ROUNDOFF * total
            totals[place] = (totals[place] + contracted(links[place], others)) * _SUM
    return totals


@functools.lru_cache(maxsize=8)
def _diameters(tree: MarkovTree) -> tuple[float, ...]:
    """Return the Hilbert diameter of every edge, named by its child; ∞ where zeros forbid one."""
    found: dict[bytes, float] = {}
    diameters = [0.0] * len(tree.parents)
    for place, parent in enumerate(tree.parents):
        if parent is not None:
            kernel = tree.kernels[place][tree.marginals[parent] > 0]
            key = kernel.tobytes() + bytes(str(kernel.shape), "ascii")
            if key not in found:
                found[key] = diameter_of(kernel)
            diameters[place] = found[key]
    return tuple(diameters)


@functools.lru_cache(maxsize=2)
def _table(tree: MarkovTree) -> JointTable:
    return tree.to_table()


def _fits_a_table(tree: MarkovTree) -> bool:
    cells = math.prod(len(domain) for domain in tree.domains[:64])
    small = len(tree.names) <= 64 and cells <= MAXIMAL_CELLS
    return small and tree.log_rarest() > math.log(np.finfo(np.float64).tiny) + 1


def _attained(problem: Problem, tree: MarkovTree, scale: float, target: int) -> Found:
    """Return the best limit r → ±∞ found, moving from a target to its neighbours while it helps."""
    best, tried = nobody(problem), {target}
    if problem.knowledge.known is not None:
        return best
    most = max(1, _LIMIT_WORK // len(tree.names))
    ahead = [target]
    while ahead and len(tried) <= most:
        before = best.lower
        for place in ahead:
            for sign in (1, -1):
                limit = _limit(problem, tree, scale, place, sign)
                if limit is not None and limit.lower > best.lower:
                    best = limit
        tried.update(ahead)
        near = _neighbours(tree, best.target) if best.lower > before else []
        ahead = [place for place in near if place not in tried][:most]
    return best


def _neighbours(tree: MarkovTree, place: int) -> list[int]:
    above = tree.parents[place]
    below = [child for child, parent in enumerate(tree.parents) if parent == place]
    return below if above is None else [above, *below]


class _Branch(NamedTuple):
    """What one neighbour of the target, and all behind it, say about the target."""

    neighbour: int
    kernel: FloatArray
    """P(x_k | x_i)."""
    gains: FloatArray
    """log E[e^{±f/λ} over the branch | x_i], up to a constant."""


def _limit(
    problem: Problem, tree: MarkovTree, scale: float, target: int, sign: int
) -> Found | None:
    """Compare two secrets at r → ±∞, each branch unknown or cut off, whichever tells more."""
    values = problem.contributions.values
    tilts = [sign * (array[:, 0] - array[:, 0].min()) / scale for array in values]
    branches, per_step = _branches(tree, tilts, target)
    fewest, most = problem.knowledge.fewest, problem.knowledge.most
    best: tuple[float, tuple[int, int], dict[int, int]] | None = None
    secrets = np.flatnonzero(tree.marginals[target] > 0).tolist()
    for one in secrets:
        for other in secrets:
            gain = float(tilts[target][one] - tilts[target][other])
            cut: dict[int, int] = {}
            for branch in branches:
                step = float(branch.gains[one] - branch.gains[other])
                shared = (branch.kernel[one] > 0) & (branch.kernel[other] > 0)
                if step < 0 and len(cut) < most and shared.any():
                    cut[branch.neighbour] = int((branch.kernel[one] * shared).argmax())
                else:
                    gain += step
            if one != other and len(cut) >= fewest and (best is None or gain > best[0]):
                best = gain, (one, other), cut
    if best is None:
        return None
    gain, (one, other), cut = best
    error = 8 * UNIT_ROUNDOFF * ((len(tree.names) + 4) * per_step + abs(gain))
    domains = tree.domains
    return Found(
        value=0.0,
        lower=max(0.0, gain - error),
        witness=Witness(
            target=problem.names[target],
            known={problem.names[place]: domains[place][value] for place, value in cut.items()},
            secrets=(domains[target][one], domains[target][other]),
            output=sign * math.inf,
            model=tree,
            index=problem.index,
        ),
        target=target,
        unknown=(),
    )


def _branches(
    tree: MarkovTree, tilts: list[FloatArray], target: int
) -> tuple[list[_Branch], float]:
    """Carry log-weights from the leaves to the target; also bound the size of one step."""
    towards = list(tree.parents)  # the neighbour on the way to the target
    kernels = list(tree.kernels)  # P(x_k | that neighbour)
    path = [target]
    while (above := tree.parents[path[-1]]) is not None:
        path.append(above)
    for below, above in itertools.pairwise(path):
        towards[above] = below
        weighed = tree.kernels[below] * tree.marginals[above][:, np.newaxis]
        sums = weighed.sum(axis=0)
        kernels[above] = np.divide(weighed, sums, out=np.zeros_like(weighed), where=sums > 0).T
    on_path = {place: rank for rank, place in enumerate(path)}
    inner = [np.array(tilt) for tilt in tilts]
    found, largest = [], 0.0
    # Away from the path children come before parents; then along it, the remotest first.
    order = [place for place in reversed(tree.order) if place not in on_path]
    order += sorted(on_path, key=lambda place: -on_path[place])
    for place in order:
        nearer = towards[place]
        if place == target or nearer is None:
            continue
        kernel = kernels[place]
        with np.errstate(divide="ignore"):
            terms = np.log(kernel) + inner[place]
        peaks = terms.max(axis=1)
        possible = np.isfinite(peaks)
        safe = np.where(possible, peaks, 0.0)
        gains = np.full(len(kernel), -np.inf)
        gains[possible] = (safe + np.log(np.exp(terms - safe[:, np.newaxis]).sum(axis=1)))[possible]
        gains -= gains[possible].max() if possible.any() else 0.0
        largest = max(largest, float(np.abs(terms[np.isfinite(terms)]).max(initial=0.0)))
        if nearer == target:
            found.append(_Branch(place, kernel, gains))
        else:
            inner[nearer] = inner[nearer] + gains
    states = max(len(domain) for domain in tree.domains)
    return found, states + 12 + 4 * largest


def _likely_course(tree: MarkovTree) -> dict[int, int]:
    """Return possible values of all tuples, by position."""
    course: dict[int, int] = {}
    for place in tree.order:
        parent, kernel = tree.parents[place], tree.kernels[place]
        course[place] = int((kernel if parent is None else kernel[course[parent]]).argmax())
    return course
