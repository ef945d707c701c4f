"""A joint table learned from the rows of a frame."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator

from pdp_calibrate.errors import ModelError
from pdp_calibrate.estimators.statistics import columns_of, contingency
from pdp_calibrate.models import JointTable
from pdp_calibrate.models.base import Domain, checked_domain
from pdp_calibrate.models.table import refuse_too_many_cells


def smoothed_table(
    counts: Counter[tuple[Hashable, ...]],
    names: Sequence[Hashable],
    domains: Sequence[Domain],
    *,
    smoothing: float,
    provenance: str,
) -> JointTable:
    """Turn counts of rows into the joint table (count + smoothing) / total.

    A cell that was never seen is rare, not impossible, so smoothing must be positive: it is the
    weight of a symmetric Dirichlet prior, 0.5 being the Jeffreys prior.
    """
    if not 0 < smoothing < float("inf"):
        raise ModelError(f"smoothing must be positive and finite, got {smoothing}.")
    sizes = [len(domain) for domain in domains]
    refuse_too_many_cells(sizes)
    cells = np.full(sizes, float(smoothing))
    places = [{value: place for place, value in enumerate(domain)} for domain in domains]
    for row, count in counts.items():
        for name, place, value in zip(names, places, row, strict=True):
            if value not in place:
                raise ModelError(f"column {name} holds a value outside its stated domain.")
        cells[tuple(place[value] for place, value in zip(places, row, strict=True))] += count
    return JointTable(
        probabilities=cells / cells.sum(), domains=domains, names=names, provenance=provenance
    )


class TableEstimator(BaseEstimator):
    """Learn the joint distribution of discrete columns, each row being one independent draw.

    Parameters
    ----------
    structure
        ``joint``: one cell for every combination of values.
    smoothing
        Added to every count, so that no unseen combination counts as impossible.
    domains
        The possible values of each column, ``{column: values}``. By default the values that
        occur, which are then treated as public.
    source
        ``private`` if the rows are secret (calibrations will warn), ``public`` if not.

    Attributes
    ----------
    model_ : JointTable
        The learned distribution.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"mother": [0, 0, 1, 1], "child": [0, 0, 1, 1]})
    >>> TableEstimator(source="public").fit(frame).model_
    JointTable(mother, child; 2×2 cells, public)
    """

    def __init__(
        self,
        *,
        structure: Literal["joint"] = "joint",
        smoothing: float = 0.5,
        domains: Mapping[Hashable, Iterable[Hashable]] | None = None,
        source: Literal["private", "public"] = "private",
    ) -> None:
        self.structure = structure
        self.smoothing = smoothing
        self.domains = domains
        self.source = source

    def fit(self, frame: Any, y: None = None) -> TableEstimator:
        """Learn from every column of the frame."""
        del y
        if self.structure != "joint":
            raise ModelError(f"structure must be 'joint', got {self.structure!r}.")
        if self.source not in ("private", "public"):
            raise ModelError(f"source must be 'private' or 'public', got {self.source!r}.")
        names = columns_of(frame)
        if not names:
            raise ModelError("the frame must have at least one column, got none.")
        counts = contingency(frame, names)
        stated = self.domains or {}
        domains = [
            checked_domain(stated[name], name)
            if name in stated
            else _observed(row[position] for row in counts)
            for position, name in enumerate(names)
        ]
        self.model_ = smoothed_table(
            counts, names, domains, smoothing=self.smoothing, provenance=self.source
        )
        return self


def _observed(values: Iterable[Hashable]) -> Domain:
    """Sort the distinct values; values that do not compare are sorted as text."""
    distinct = set(values)
    try:
        return tuple(sorted(distinct))  # type: ignore[type-var]
    except TypeError:
        return tuple(sorted(distinct, key=repr))
