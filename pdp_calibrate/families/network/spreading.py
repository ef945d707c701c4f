"""How far a difference between two secrets spreads over a network.

Theorem 21 (docs/theory).

Draw the network once under each of two secrets of x_i, given the same known tuples, so that the two
draws differ as rarely as possible. Tuples are drawn one after the other, always a neighbour of a
tuple that differs between the draws. When no such neighbour is left, all others can be drawn equal
in both, because the tuples that separate them from the differences are equal. Whatever was drawn
before, tuple k differs with a probability of at most

- tanh(D/4) in a forest, D being its coupling with the neighbour it is reached from: given x_K, its
  laws under two values of that neighbour have a ratio whose logarithm varies by at most D, and such
  laws are at most tanh(D/4) apart in total variation;
- tanh(Σ_l D_kl/4) in any network, over all its neighbours: its law given what was drawn averages
  its laws given all neighbours.

So the tuples that differ are among those reached from i over open edges, or open tuples, each open
independently with that probability, and the answer moves by no more than these can move it together
(disagreement percolation, van den Berg and Maes 1994). This holds for every known set and value,
and for any queries at once. The law of that move is computed by sums of products of probabilities,
so nothing cancels; moves longer than a few hundred steps count as the longest possible one.

In a network with loops, or one too large, every tuple is treated as if it had as many neighbours as
any tuple has, the strongest couplings and the widest contribution.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.couplings import RandomMove
from pdp_calibrate.core.rounding import ROUND_UP, UNIT_ROUNDOFF
from pdp_calibrate.core.tuning import SPREAD_POINTS, SPREAD_TUPLES
from pdp_calibrate.families.network.couplings import Couplings

_PARTS = 8  # of the widest contribution, where contributions have no common step
_MOST_WAYS = 64  # neighbours beyond which nearly every tuple differs anyway
_SUBCRITICAL = 0.95  # mean number of neighbours that differ in turn; below it, differences die out
_ROUNDED = 1 + 1e-9  # covers rounding: sums of products of some hundred numbers, thousands of times


def random_move(
    couplings: Couplings, ranges: FloatArray, targets: Sequence[int], longest: float
) -> RandomMove:
    """Return how far a coupling moves the answer, for any target, and how likely.

    Parameters
    ----------
    couplings
        Between the tuples that are not known for certain.
    ranges
        How far each tuple alone moves the answer, at most.
    targets
        The tuples that may be attacked.
    longest
        How far all tuples together move it.
    """
    step, steps = _in_steps(ranges)
    if couplings.is_forest and couplings.size <= SPREAD_TUPLES:
        reached = _in_forest(couplings, steps, targets)
    else:
        step, reached = float(ranges.max()) * ROUND_UP, _anywhere(couplings)
    moves = np.append(np.arange(len(reached) - 1) * step * ROUND_UP, longest)
    return RandomMove(np.minimum(moves, longest), np.minimum(reached * _ROUNDED, 1.0))


def _in_steps(ranges: FloatArray) -> tuple[float, list[int]]:
    """Return a step, and how many of them each tuple moves the answer at most."""
    widest = float(ranges.max())
    if widest == 0:
        return 1.0, [0] * len(ranges)
    step = float(ranges[ranges > 0].min())
    parts = ranges / step
    if widest / step > 64 or np.abs(parts - np.rint(parts)).max() > 1e-9:
        step = widest / _PARTS
        parts = ranges / step
    step *= 1 + 1e-8  # so that rounding to the next step never shortens a move
    return step, np.ceil(parts * (1 - 1e-8)).astype(np.int64).tolist()


def _share(strength: float) -> float:
    """Return tanh(D/4), rounded up."""
    return min(1.0, math.tanh(strength / 4) * (1 + 8 * UNIT_ROUNDOFF))


def _nothing() -> FloatArray:
    law = np.zeros(SPREAD_POINTS + 1)
    law[0] = 1.0
    return law


def _joined(one: FloatArray, other: FloatArray) -> FloatArray:
    """Add up two moves; the last point stands for all that is longer."""
    whole = np.convolve(one, other)
    return np.append(whole[:SPREAD_POINTS], whole[SPREAD_POINTS:].sum())


def _behind(share: float, steps: int, law: FloatArray) -> FloatArray:
    """Return the move of a tuple that may differ, and of all behind it."""
    found = np.zeros_like(law)
    cut = min(steps, SPREAD_POINTS)
    found[cut:] = share * law[: len(law) - cut]
    found[-1] += share * law[len(law) - cut :].sum()
    found[0] += 1 - share
    return found


def _in_forest(couplings: Couplings, steps: list[int], targets: Sequence[int]) -> FloatArray:
    """Bound the probability of each move or a longer one, over all targets of a forest.

    Two passes as in `Couplings.forest_bounds`: what lies behind a tuple as seen from its parent,
    then what lies beyond the parent as seen from the tuple.
    """
    reached = np.zeros(SPREAD_POINTS + 1)
    wanted = set(targets)
    for together in couplings.components:
        if not wanted & set(together):
            continue
        parents: dict[int, int] = {}
        children: dict[int, list[int]] = {place: [] for place in together}
        for place in together:
            for other in couplings.neighbours[place]:
                if parents.get(place) != other:
                    parents[other] = place
                    children[place].append(other)
        below: dict[int, FloatArray] = {}
        for place in reversed(together):
            law = _nothing()
            for child in children[place]:
                law = _joined(law, below[child])
            if place in parents:
                share = _share(couplings.neighbours[place][parents[place]])
                below[place] = _behind(share, steps[place], law)
        above: dict[int, FloatArray] = {together[0]: _nothing()}
        for place in together:
            before = [above[place]]
            for child in children[place]:
                before.append(_joined(before[-1], below[child]))
            after = _nothing()
            for number in range(len(children[place]) - 1, -1, -1):
                child = children[place][number]
                share = _share(couplings.neighbours[place][child])
                above[child] = _behind(share, steps[place], _joined(before[number], after))
                after = _joined(after, below[child])
            if place in wanted:
                law = _behind(1.0, steps[place], before[-1])
                reached = np.maximum(reached, np.cumsum(law[::-1])[::-1])
    return reached


def _anywhere(couplings: Couplings) -> FloatArray:
    """Bound the probability that at least this many tuples differ, if all are like the worst."""
    degrees = [len(found) for found in couplings.neighbours]
    most = max(degrees, default=0)
    if couplings.is_forest:
        share = _share(max(couplings.strengths.values(), default=0.0))
    else:
        share = _share(max(math.fsum(found.values()) for found in couplings.neighbours) * ROUND_UP)
    reached = np.ones(SPREAD_POINTS + 1)
    if most > _MOST_WAYS or share >= 1:
        return reached
    # The iteration begins with all tuples different: each round is closer to the truth from above.
    branch = np.zeros(SPREAD_POINTS + 1)
    branch[-1] = 1.0
    for _ in range(SPREAD_POINTS):
        law = _nothing()
        for _ in range(max(most - 1, 0)):
            law = _joined(law, branch)
        branch = _behind(share, 1, law)
        # Moves that do not end are what is left of 1. Where each tuple leads to several others,
        # what rounding adds to them would multiply in every round, until it is no number any more.
        branch[-1] = min(branch[-1], 1 - branch[:-1].sum() + _ROUNDED - 1)
    law = _nothing()
    for _ in range(most):
        law = _joined(law, branch)
    law = _behind(1.0, 1, law)
    reached = np.cumsum(law[::-1])[::-1]
    if share * (most - 1) > _SUBCRITICAL:
        # Moves that never end are likely then, and rounding would lose some in every round. So
        # their probability is 1 minus that of the moves that end, sums of some thousand products.
        ending = np.concatenate([[0.0], np.cumsum(law[:-1])])
        reached = np.maximum(reached, 1 - ending + _ROUNDED - 1)
    return np.minimum(reached, 1.0)
