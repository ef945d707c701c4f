"""The correlation matrix that a model implies, for a heat map."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.model import Model
from pdp_calibrate.learning.pearson import Correlations
from pdp_calibrate.show.views import refuse_private
from pdp_calibrate.show.words import entry

MOST_TUPLES = 24  # beyond this a heat map is not readable


_FIRST = 10  # tuples of a long chain or series, whose others are like them


@dataclass(frozen=True, kw_only=True)
class CorrelationMap:
    """Pearson correlations of all pairs of tuples."""

    names: tuple[str, ...]
    """What to call each tuple."""
    matrix: tuple[tuple[float, ...], ...]
    """The correlation of every pair; NaN where it does not exist."""


def correlations(source: Model | Correlations) -> CorrelationMap | None:
    """Return the correlations that a model implies; None where it has none or is too large."""
    if isinstance(source, Correlations):
        return _map(source.names, source.coefficients)
    refuse_private(source)
    if len(source.names) > MOST_TUPLES:
        source = source.beginning(_FIRST)
    matrix = None if len(source.names) > MOST_TUPLES else source.pearson_matrix()
    return None if matrix is None else _map(source.names, matrix)


def _map(names: tuple[Hashable, ...], matrix: FloatArray) -> CorrelationMap:
    labels = tuple(
        ".".join(map(str, name)) if isinstance(name, tuple) else entry(name) for name in names
    )
    return CorrelationMap(names=labels, matrix=tuple(tuple(row) for row in matrix.tolist()))
