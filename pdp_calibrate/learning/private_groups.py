"""Counts of groups and series under differential privacy; the unit is a whole one.

**Yes/no groups.** A group of m members with s ones adds s/m and s(m − s)/C(m, 2), the share of its
pairs that differ. Replacing it moves both together by at most 3/2, as from (0, 0) to (½, 1) for
m = 2. Theorem 31 (docs/theory).

**Chains.** A series of at most L states has L − 1 transitions: 2(L−1), and 2 more for its start.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.errors import ModelError
from pdp_calibrate.learning.private_sums import (
    IntArray,
    Units,
    noisy_sums,
)


def refuse_larger(sizes: Mapping[int, int], largest: int | None) -> None:
    """Raise if a group is larger than the public limit; sizes are public."""
    if largest is not None and max(sizes) > largest:
        raise ModelError(
            f"groups may have at most max_group_size={largest} rows, got one of {max(sizes)}."
            " Raise the limit, or split or leave out larger groups."
        )


def private_transitions(
    states: IntArray,
    series: Units,
    *,
    number: int,
    with_starts: bool,
    longest: int,
    epsilon: float,
) -> tuple[FloatArray, FloatArray | None, float]:
    """Return noisy counts of transitions and, if they are learned, of starts; and the noise scale.

    Only the first states of each series are used, up to the limit. `states` are numbered from 0;
    negative ones are none of the stated states, and are not counted.
    """
    ordered = states[series.order]
    before, after = ordered[:-1], ordered[1:]
    follows = followed(series, longest) & (before >= 0) & (after >= 0)
    pairs = np.zeros((number, number), dtype=np.int64)
    np.add.at(pairs, (before[follows], after[follows]), 1)
    first = ordered[series.begins]
    starts = np.bincount(first[first >= 0], minlength=number) if with_starts else None
    counts = pairs.ravel() if starts is None else np.concatenate([pairs.ravel(), starts])
    sensitivity = 2 * (longest - 1) + (0 if starts is None else 2)
    noisy = noisy_sums(counts, sensitivity=sensitivity, epsilon=epsilon)
    values = noisy.values.astype(np.float64)
    moves = values[: pairs.size].reshape(pairs.shape)
    return moves, None if starts is None else values[pairs.size :], noisy.scale


def followed(series: Units, longest: int) -> npt.NDArray[np.bool_]:
    """Return for each row but the last whether the next one follows it within the limit."""
    return np.asarray((np.diff(series.numbers) == 0) & (series.places[1:] < longest))
