"""Pearson correlations of the columns of a frame, with Fisher intervals."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.query import Linear, Mean, Query, Sum
from pdp_calibrate.errors import PdpError, QueryError, UnsupportedQueryError
from pdp_calibrate.frames.products import centred_products

Pattern = Literal["positive", "negative", "hybrid", "independent"]


class Interval(NamedTuple):
    """Both ends of an interval for every pair of columns."""

    lower: pd.DataFrame
    upper: pd.DataFrame


@dataclass(frozen=True, kw_only=True, eq=False)
class Correlations:
    """Sample correlations of the columns of one frame."""

    names: tuple[str, ...]
    """The columns."""
    coefficients: FloatArray
    """Pearson's r of every pair, a symmetric array with ones on the diagonal."""
    rows: int
    """How many rows they were computed from."""

    @property
    def matrix(self) -> pd.DataFrame:
        """The coefficients, with the columns' names on both sides."""
        return self._labelled(self.coefficients)

    def interval(self, confidence: float = 0.95) -> Interval:
        """Return Fisher's interval tanh(artanh r ± z/√(N−3)) of each pair, taken alone.

        It is approximate, for independent and roughly normal rows, and needs at least four.
        """
        if not 0 < confidence < 1:
            raise PdpError(f"confidence must lie between 0 and 1, got {confidence}.")
        if self.rows < 4:
            raise PdpError(f"Fisher's interval needs at least 4 rows, got {self.rows}.")
        half = float(stats.norm.ppf((1 + confidence) / 2)) / math.sqrt(self.rows - 3)
        with np.errstate(divide="ignore"):
            centre = np.arctanh(self.coefficients)
        return Interval(
            self._labelled(np.tanh(centre - half)), self._labelled(np.tanh(centre + half))
        )

    def pattern(self, query: Query | None = None, *, confidence: float = 0.95) -> Pattern:
        """Return the sign pattern of the correlations, as the paper distinguishes them.

        Parameters
        ----------
        query
            A linear query with weights a_j: the pattern is then that of the terms a_j·x_j, whose
            correlations are ρ'_ij = sign(a_i·a_j)·ρ_ij. None for the columns themselves.
        confidence
            Only pairs whose interval excludes 0 count.

        Returns
        -------
        str
            ``"positive"`` or ``"negative"`` if all pairs that count have that sign, ``"hybrid"``
            if both signs occur, ``"independent"`` if no pair counts. The last means that the rows
            show no correlation, not that there is none: never base a calibration on it.
        """
        lower, upper = self.interval(confidence)
        weights = _weights(query, self.names)
        above = np.triu(np.ones_like(self.coefficients, dtype=np.bool_), 1)
        excludes = (lower.to_numpy() > 0) | (upper.to_numpy() < 0)
        signs = np.sign(np.outer(weights, weights) * self.coefficients)[above & excludes]
        positive, negative = bool(np.any(signs > 0)), bool(np.any(signs < 0))
        if positive and negative:
            return "hybrid"
        if positive:
            return "positive"
        return "negative" if negative else "independent"

    def partial(self, i: str, j: str, *, given: Sequence[str] = ()) -> float:
        """Return the correlation of two columns once the linear effect of others is removed."""
        chosen = [self._position(name) for name in (i, j, *given)]
        if len(set(chosen)) != len(chosen):
            raise PdpError("a partial correlation needs columns that differ.")
        block = self.coefficients[np.ix_(chosen, chosen)]
        if np.linalg.cond(block) > 1e12:
            raise PdpError("the columns are linearly dependent: no partial correlation exists.")
        precision = np.linalg.inv(block)
        return float(-precision[0, 1] / math.sqrt(precision[0, 0] * precision[1, 1]))

    def _position(self, name: str) -> int:
        if name not in self.names:
            raise PdpError(f"unknown column {name!r}; there are {', '.join(self.names)}.")
        return self.names.index(name)

    def _labelled(self, values: FloatArray) -> pd.DataFrame:
        return pd.DataFrame(values, index=list(self.names), columns=list(self.names))


def pearson(frame: Any) -> Correlations:
    """Return the Pearson correlations of the columns of a frame.

    Parameters
    ----------
    frame
        Any frame that narwhals reads (pandas, polars, DuckDB, …), one numeric or boolean column per
        tuple, one row per instance. No cell may be missing and no column constant.

    Examples
    --------
    >>> import pandas as pd
    >>> found = pearson(pd.DataFrame({"a": [1, 2, 3, 4], "b": [2, 1, 4, 3]}))
    >>> round(float(found.matrix.loc["a", "b"]), 12)
    0.6
    >>> found.pattern()
    'independent'
    """
    found = centred_products(frame)
    spread = np.sqrt(np.diagonal(found.centred))
    coefficients = np.clip(found.centred / np.outer(spread, spread), -1.0, 1.0)
    np.fill_diagonal(coefficients, 1.0)
    coefficients.setflags(write=False)
    return Correlations(names=found.names, coefficients=coefficients, rows=found.rows)


def _weights(query: Query | None, names: tuple[str, ...]) -> FloatArray:
    """Return the weight of each column in a linear query."""
    if query is None:
        return np.ones(len(names))
    weights: Mapping[Hashable, float]
    if isinstance(query, Linear):
        given = query.weights
        if not isinstance(given, Mapping) and len(given) != len(names):
            raise QueryError(f"weights must be one per column ({len(names)}), got {len(given)}.")
        weights = given if isinstance(given, Mapping) else dict(zip(names, given, strict=True))
    elif isinstance(query, Sum | Mean):
        weights = dict.fromkeys(names if query.over is None else query.over, 1.0)
    else:
        raise UnsupportedQueryError("a sign pattern needs Sum, Mean or Linear.")
    unknown = [str(name) for name in weights if name not in names]
    if unknown:
        raise QueryError(f"the frame has no column {', '.join(unknown)}.")
    return np.array([weights.get(name, 0.0) for name in names])
