"""The correlation matrix that a model implies, for a heat map."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.composite import Blocks, ModelSet
from pdp_calibrate.core.model import Model, numeric_domain
from pdp_calibrate.core.table import JointTable
from pdp_calibrate.errors import ModelError
from pdp_calibrate.families.chain.model import MarkovChain
from pdp_calibrate.families.exchangeable.model import BinaryGroup, CategoryGroup
from pdp_calibrate.families.gaussian.alike import GaussianGroup, GaussianSeries
from pdp_calibrate.families.gaussian.model import Gaussian
from pdp_calibrate.families.gaussian.network import GaussianNetwork
from pdp_calibrate.families.gaussian.sets import LoewnerBall, SampledGaussian
from pdp_calibrate.learning.pearson import Correlations
from pdp_calibrate.show.views import refuse_private
from pdp_calibrate.show.words import entry

MOST_TUPLES = 24  # beyond this a heat map is not readable


_FIRST = 10  # of a long chain or series, whose other tuples look alike


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
        source = _shortened(source)
    matrix = None if len(source.names) > MOST_TUPLES else _matrix(source)
    return None if matrix is None else _map(source.names, matrix)


def _map(names: tuple[Hashable, ...], matrix: FloatArray) -> CorrelationMap:
    labels = tuple(
        ".".join(map(str, name)) if isinstance(name, tuple) else entry(name) for name in names
    )
    return CorrelationMap(names=labels, matrix=tuple(tuple(row) for row in matrix.tolist()))


def _shortened(model: Model) -> Model:
    """Cut a long chain, series or group down to its first tuples: the rest looks alike."""
    names = model.names[:_FIRST]
    if isinstance(model, MarkovChain):
        return MarkovChain(
            transition=model.transition,
            length=_FIRST,
            states=model.states,
            initial=model.initial,
            names=names,
            provenance=model.provenance,
        )
    if isinstance(model, GaussianSeries):
        return GaussianSeries(
            length=_FIRST,
            correlation=model.correlation,
            bounds=model.bounds,
            names=names,
            provenance=model.provenance,
        )
    return model


def _matrix(model: Model) -> FloatArray | None:
    match model:
        case LoewnerBall() | SampledGaussian():
            return _matrix(model.center)
        case ModelSet():
            return _matrix(model.models[0])
        case Gaussian():
            spread = np.sqrt(np.diagonal(model.covariance))
            return np.asarray(model.covariance / np.outer(spread, spread))
        case GaussianNetwork():
            return _matrix(model.to_gaussian())
        case GaussianGroup():
            return model.matrix(model.correlation[1])
        case GaussianSeries():
            return model.matrix(model.correlation)
        case BinaryGroup() | CategoryGroup():
            return _of_members(model)
        case MarkovChain():
            return _of_chain(model)
        case JointTable():
            return _of_table(model)
        case Blocks():
            return _of_blocks(model)
        case _:
            return None


def _of_table(model: JointTable) -> FloatArray | None:
    size = len(model.names)
    matrix = np.eye(size)
    for i, first in enumerate(model.names):
        for j, second in enumerate(model.names[:i]):
            try:
                matrix[i, j] = matrix[j, i] = model.correlation(first, second)
            except ModelError:  # categories that are no numbers, or a tuple that does not vary
                matrix[i, j] = matrix[j, i] = np.nan
    return None if size > 1 and np.isnan(matrix[~np.eye(size, dtype=np.bool_)]).all() else matrix


def _of_members(model: BinaryGroup | CategoryGroup) -> FloatArray | None:
    if isinstance(model, CategoryGroup):
        return None
    size = len(model.names)
    ones = np.arange(size + 1)
    share = float(model.count_probabilities @ ones) / size
    both = float(model.count_probabilities @ (ones * (ones - 1))) / max(size * (size - 1), 1)
    variance = share * (1 - share)
    if variance <= 0:
        return None
    common = (both - share * share) / variance
    return np.where(np.eye(size, dtype=np.bool_), 1.0, common)


def _of_chain(model: MarkovChain) -> FloatArray | None:
    try:
        values = numeric_domain(model.states, "the states")
    except ModelError:
        return None
    size, laws = len(model.names), [model.start]
    for _ in range(size - 1):
        laws.append(laws[-1] @ model.kernel)
    means = [float(law @ values) for law in laws]
    spreads = [
        float(law @ (values - mean) ** 2) ** 0.5 for law, mean in zip(laws, means, strict=True)
    ]
    matrix = np.eye(size)
    for i in range(size):
        ahead = np.eye(len(values))
        for j in range(i + 1, size):
            ahead = ahead @ model.kernel
            product = float((laws[i] * (values - means[i])) @ ahead @ (values - means[j]))
            scale = spreads[i] * spreads[j]
            matrix[i, j] = matrix[j, i] = product / scale if scale > 0 else np.nan
    return matrix


def _of_blocks(model: Blocks) -> FloatArray | None:
    matrix, start = np.eye(len(model.names)), 0
    for block in model.models:
        inner, stop = _matrix(block), start + len(block.names)
        if inner is None:
            return None
        matrix[start:stop, start:stop] = inner
        start = stop
    return matrix
