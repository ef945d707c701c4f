"""From counts of rows to smoothed probabilities, for estimators of discrete models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence

import numpy as np

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.model import Domain
from pdp_calibrate.core.table import refuse_too_many_cells
from pdp_calibrate.errors import ModelError
from pdp_calibrate.learning.private_sums import IntArray


def cell_counts(
    counts: Counter[tuple[Hashable, ...]],
    names: Sequence[Hashable],
    domains: Sequence[Domain],
    *,
    refuse: bool = True,
) -> IntArray:
    """Write counts of rows into a table with one axis per column.

    A value outside the domain of its column raises, or counts as the first one if not `refuse`.
    """
    sizes = [len(domain) for domain in domains]
    refuse_too_many_cells(sizes)
    cells = np.zeros(sizes, dtype=np.int64)
    places = [{value: place for place, value in enumerate(domain)} for domain in domains]
    for row, count in counts.items():
        for name, place, value in zip(names, places, row, strict=True):
            if refuse and value not in place:
                raise ModelError(f"column {name} holds a value outside its stated domain.")
        cells[tuple(place.get(value, 0) for place, value in zip(places, row, strict=True))] += count
    return cells


def smoothed_law(counts: FloatArray | IntArray, smoothing: float) -> FloatArray:
    """Return (count + smoothing) / total.

    A cell that was never seen is rare, not impossible, so smoothing must be positive: it is the
    weight of a symmetric Dirichlet prior, 0.5 being the Jeffreys prior.
    """
    cells = counts + float(smoothing)
    return np.asarray(cells / cells.sum())


def observed(values: Iterable[Hashable]) -> Domain:
    """Sort the distinct values; values that cannot be compared are sorted as text."""
    distinct = set(values)
    try:
        return tuple(sorted(distinct))  # type: ignore[type-var]
    except TypeError:
        return tuple(sorted(distinct, key=repr))
