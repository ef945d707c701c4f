"""Fit to resampled data: how much a fit hangs on the luck of the sample.

The unit that is drawn with replacement is the one that is independent: a row, a group, a series.
Groups and series are drawn among those of their own size, so every fit has the same tuples. A joint
table needs only its counts: drawing rows is drawing a multinomial over the cells.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from pdp_calibrate.core.composite import Blocks, ModelSet
from pdp_calibrate.core.model import Model, checked_size
from pdp_calibrate.core.table import JointTable
from pdp_calibrate.core.workers import progress
from pdp_calibrate.errors import ModelError, ModelFitWarning
from pdp_calibrate.families.chain.estimator import MarkovChainEstimator
from pdp_calibrate.families.chain.model import MarkovChain
from pdp_calibrate.families.gaussian.estimator import GaussianEstimator
from pdp_calibrate.families.table.estimator import TableEstimator
from pdp_calibrate.frames.counts import contingency
from pdp_calibrate.frames.open import columns_of, rows_of
from pdp_calibrate.learning.base import FrameEstimator
from pdp_calibrate.learning.binning import binned, checked_bins
from pdp_calibrate.learning.smoothing import cell_counts, smoothed_law

Draw = Callable[[np.random.Generator], Model]


def bootstrapped(
    estimator: FrameEstimator, frame: Any, *, draws: int, seed: int | None
) -> ModelSet:
    """Return the fit and as many fits to resamples; see `FrameEstimator.bootstrap`."""
    number = checked_size(draws, "draws")
    for parameter in ("confidence", "epsilon"):
        if getattr(estimator, parameter, None) is not None:
            raise ModelError(
                f"a bootstrap promises nothing, so it does not go together with {parameter}=."
                f" Leave {parameter} out, or fit(frame) for the set that it stands for."
            )
    fitted = clone(estimator).fit(frame)
    draw = _drawer(fitted, frame)
    rng = np.random.default_rng(seed)
    models = [fitted.model_]
    with warnings.catch_warnings(), progress("resampling", total=number) as show:
        warnings.simplefilter("ignore", ModelFitWarning)  # the fit itself has warned already
        for done in range(number):
            models.append(draw(rng))
            show(done + 1)
    return ModelSet(models=models, resampled=True)


def _drawer(fitted: FrameEstimator, frame: Any) -> Draw:
    """Return the function that resamples and fits once."""
    if isinstance(fitted, TableEstimator):
        return _table(fitted, frame)
    if isinstance(fitted, GaussianEstimator):
        columns = _columns(frame, columns_of(frame))
        return lambda rng: _fitted(
            fitted, columns.iloc[rng.integers(len(columns), size=len(columns))]
        )
    return _units(fitted, frame)


def _table(fitted: TableEstimator, frame: Any) -> Draw:
    if isinstance(fitted.model_, Blocks) or fitted.structure == "blocks":
        raise ModelError(
            "structure='blocks' cannot be resampled: every resample may fall into other blocks,"
            " and a set holds models of the same tuples. Use structure='joint' or 'chow-liu'."
        )
    table = fitted.model_
    names, domains = table.names, table.domains
    counts = contingency(binned(frame, checked_bins(fitted.bins)), names)
    if fitted.structure != "joint":
        stated = clone(fitted).set_params(bins=None, domains=dict(zip(names, domains, strict=True)))
        rows, numbers = list(counts), np.array(list(counts.values()))
        columns = pd.DataFrame(rows, columns=list(names))
        return lambda rng: _fitted(stated, columns.loc[_repeated(numbers, rng)])
    cells = cell_counts(counts, names, domains)

    def draw(rng: np.random.Generator) -> Model:
        drawn = rng.multinomial(int(cells.sum()), cells.ravel() / cells.sum())
        return JointTable(
            probabilities=smoothed_law(drawn.reshape(cells.shape), fitted.smoothing),
            domains=domains,
            names=names,
            provenance=fitted.source,
        )

    return draw


def _repeated(numbers: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw as many rows as there were, each kind as often as chance has it."""
    total = int(numbers.sum())
    return np.repeat(np.arange(len(numbers)), rng.multinomial(total, numbers / total))


def _units(fitted: FrameEstimator, frame: Any) -> Draw:
    """Draw whole groups or series, each among those of its own size."""
    by, order_by = fitted.by, getattr(fitted, "order_by", None)
    if by is None:
        raise ModelError(
            "a single series cannot be resampled: its values are not independent. Name the column"
            " that tells several series apart with by=."
        )
    columns = _columns(frame, [by, fitted.value, *([order_by] if order_by else [])])
    places = list(_places(columns[by]))
    sizes = np.array([len(unit) for unit in places])
    if len(places) < 2:
        raise ModelError("resampling needs at least two groups or series, got one.")
    changes: dict[str, Any] = {
        name: None for name in ("person", "role") if name in fitted.get_params()
    }
    if isinstance(fitted, MarkovChainEstimator):
        changes["states"] = _states(fitted.model_)
    again = clone(fitted).set_params(**changes)

    def draw(rng: np.random.Generator) -> Model:
        chosen = np.empty(len(places), dtype=np.intp)
        for size in np.unique(sizes):
            own = np.flatnonzero(sizes == size)
            chosen[own] = rng.choice(own, size=len(own))
        rows = columns.iloc[np.concatenate([places[unit] for unit in chosen])]
        return _fitted(again, rows.assign(**{by: np.repeat(np.arange(len(places)), sizes)}))

    return draw


def _places(units: pd.Series) -> Iterator[np.ndarray]:
    """Yield where the rows of each unit stand, in order."""
    codes, _ = pd.factorize(units)
    order = np.argsort(codes, kind="stable")
    yield from np.split(order, np.flatnonzero(np.diff(codes[order])) + 1)


def _states(model: Model) -> Sequence[Hashable]:
    chain = model.models[0] if isinstance(model, Blocks) else model
    if not isinstance(chain, MarkovChain):
        raise TypeError(f"a chain was expected, got {chain!r}.")
    return chain.states


def _columns(frame: Any, names: Sequence[str]) -> pd.DataFrame:
    return pd.DataFrame(list(rows_of(frame, names)), columns=list(names))


def _fitted(estimator: FrameEstimator, frame: pd.DataFrame) -> Model:
    model: Model = clone(estimator).fit(frame).model_
    return model
