"""The moments of a frame's columns that a Gaussian model is fitted to."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.errors import FrameError
from pdp_calibrate.frames.open import in_memory
from pdp_calibrate.frames.products import Products, Shape, centred_products, shape_of

_TRIPLES_IN_MEMORY, _TRIPLES_ELSEWHERE = 40, 12  # columns up to which all triples are multiplied


_MOST_PRODUCTS = 10**9  # and the most products that are computed for it


@dataclass(frozen=True, kw_only=True)
class Moments(Products):
    """What a Gaussian model needs from the rows; no row is kept."""

    frame: Any = field(repr=False)
    """The frame they come from; read again only for higher moments."""
    private: bool = False
    """Whether nothing that is said may depend on them."""

    @functools.cached_property
    def covariance(self) -> FloatArray:
        """The sample covariance, divisor N − 1."""
        return np.asarray(self.centred / (self.rows - 1))

    @functools.cached_property
    def deviation(self) -> FloatArray:
        """The standard deviation of each column, divisor N − 1."""
        return np.sqrt(np.diagonal(self.covariance))

    @functools.cached_property
    def correlation(self) -> FloatArray:
        """The sample correlation: the covariance of standardised columns, divisor N − 1."""
        return np.asarray(self.covariance / np.outer(self.deviation, self.deviation))

    def in_units(self, correlation: FloatArray) -> FloatArray:
        """Scale a covariance of the standardised columns back to the units of the frame."""
        return np.asarray(correlation * np.outer(self.deviation, self.deviation))

    @functools.cached_property
    def shape(self) -> Shape:
        """Third and fourth moments of the standardised columns, from a second pass on demand.

        The columns are whitened too, unless they are linearly dependent.
        """
        size = len(self.names)
        try:
            factor = np.linalg.cholesky(self.correlation * (self.rows - 1) / self.rows)
        except np.linalg.LinAlgError:
            whitening = None
        else:
            whitening = np.linalg.inv(factor)
        largest = _TRIPLES_ELSEWHERE if in_memory(self.frame) is None else _TRIPLES_IN_MEMORY
        products = self.rows * size * (size + 1) * (size + 2) // 6
        return shape_of(
            self.frame,
            mean=self.mean,
            deviation=self.deviation,
            whitening=whitening,
            triples=whitening is not None and size <= largest and products <= _MOST_PRODUCTS,
        )

    def standardised(self) -> FloatArray:
        """Return the rows of a frame in memory, each column centred, with deviation 1."""
        held = in_memory(self.frame)
        if held is None:
            raise FrameError(
                "cross-validation needs the rows in memory: collect the frame first, or use"
                " covariance='ledoit-wolf'."
            )
        columns = [np.asarray(held[str(n)].to_numpy(), dtype=np.float64) for n in self.names]
        return np.asarray((np.column_stack(columns) - self.mean) / self.deviation)


def moments_of(frame: Any) -> Moments:
    """Compute the moments of all columns of a frame inside its own frame engine.

    Raises `ModelError` naming the column for missing, infinite or non-numeric cells and for a
    column that does not vary. No cell value appears in a message.
    """
    return _moments(frame, centred_products(frame))


def moments_of_any(frame: Any, bounds: Sequence[tuple[float, float]]) -> Moments:
    """Compute the moments of all columns of a frame of private rows, whatever it holds.

    So that no covariance is singular, and none is refused, 1e-10 of each variance is added to it,
    and the square of 1e-12 of the width of the bounds.
    """
    found = centred_products(frame, refuse_constant=False)
    widths = np.array([high / 2 - low / 2 for low, high in bounds]) * 2
    least = np.diagonal(found.centred) * 1e-10 + found.rows * (1e-12 * widths) ** 2
    centred = found.centred + np.diag(least)
    return _moments(frame, dataclasses.replace(found, centred=centred), private=True)


def _moments(frame: Any, found: Products, *, private: bool = False) -> Moments:
    return Moments(
        names=found.names,
        rows=found.rows,
        mean=found.mean,
        centred=found.centred,
        frame=frame,
        private=private,
    )
