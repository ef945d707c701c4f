"""From data to noisy numbers: exact answers, checks, noise, and harmless cleaning."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, Protocol

import numpy as np
import pandas as pd

from pdp_calibrate.core import noise
from pdp_calibrate.core.adversary import Adversaries
from pdp_calibrate.core.contributions import Contributions
from pdp_calibrate.core.model import Model
from pdp_calibrate.core.query import Custom, Histogram, Mean, Query
from pdp_calibrate.errors import CalibrationError, FrameError, QueryError, SecondReleaseWarning
from pdp_calibrate.frames.answers import Answer, FrameAnswer, Sizes, instance_answer, total_answer
from pdp_calibrate.frames.long_answers import check_groups, long_answer
from pdp_calibrate.frames.open import check_roles
from pdp_calibrate.learning.private_sums import nearest_with_sum

ROWS_COVERED = 2**20
"""A scale for real-valued answers covers the rounding of a sum over so many rows, or `rows`."""


@dataclass(frozen=True, kw_only=True)
class LongFrame:
    """How to read a long frame: a row per value."""

    value: Hashable
    """The column of values."""
    by: Hashable | None = None
    """The column that tells groups apart; None if all rows are one group."""
    order_by: Hashable | None = None
    """The column that orders a group."""
    time_format: str | None = None
    """How text in that column is written; ISO 8601 if None."""


Layout = LongFrame | Literal["wide"]
"""Which values of a frame are the tuples: those of one column, or of the columns of their names."""


class Account(Protocol):
    """Where releases are written down before they are made: a ledger."""

    def spend(
        self, calibration: Any, *, layout: Layout | None = None, sizes: Sizes | None = None
    ) -> None:
        """Write the release down durably, or raise if it does not fit the budget."""


def checked_layout(
    *,
    value: Hashable | None = None,
    by: Hashable | None = None,
    order_by: Hashable | None = None,
    time_format: str | None = None,
) -> Layout:
    """Return how to read a frame: as a long one where its column of values is named."""
    if time_format is not None and order_by is None:
        raise QueryError("time_format= says how the column of order_by= is read: name it.")
    if value is not None:
        check_roles(value, by=by, order_by=order_by)
        return LongFrame(value=value, by=by, order_by=order_by, time_format=time_format)
    if by is not None or order_by is not None:
        raise QueryError("by= and order_by= describe a long frame, which needs value= too.")
    return "wide"


def exact_answer(
    data: Any,
    query: Query,
    contributions: Contributions,
    model: Model,
    *,
    rows: int,
    layout: Layout,
    adversaries: Adversaries | None = None,
) -> FrameAnswer:
    """Return the exact answer, having checked that the scale was proved for data like these."""
    if isinstance(layout, LongFrame):
        found = long_answer(
            contributions,
            model,
            data,
            value=layout.value,
            by=layout.by,
            order_by=layout.order_by,
            time_format=layout.time_format,
        )
        check_groups(dict(found.sizes or ()), model, adversaries or Adversaries.all())
        check_long(found, query, contributions, model, rows=rows)
        return found
    if isinstance(data, pd.Series | Mapping):
        own = instance_answer(contributions, model, dict(data))
        found = FrameAnswer(answer=own, instances=1, values=1)
    else:
        found = total_answer(contributions, model, data)
    check_rows(query, calibrated=rows, found=found.instances)
    _check_rounding(found, contributions, covered=covered_rows(rows, model))
    return found


def exact_answers(
    data: Any,
    queries: Sequence[Query],
    contributions: Sequence[Contributions],
    model: Model,
    *,
    rows: int,
    layout: Layout,
    adversaries: Adversaries,
) -> list[FrameAnswer]:
    """Return the exact answers of queries that are released together, about the same rows."""
    found = [
        exact_answer(data, query, part, model, rows=rows, layout=layout, adversaries=adversaries)
        for query, part in zip(queries, contributions, strict=True)
    ]
    if any((one.instances, one.sizes) != (found[0].instances, found[0].sizes) for one in found):
        raise FrameError("the frame changed while it was read: nothing can be said about it.")
    return found


def check_long(
    found: FrameAnswer, query: Query, contributions: Contributions, model: Model, *, rows: int
) -> None:
    """Refuse an answer about a long frame that the scale was not proved for."""
    expected = rows * sum(model.copies)
    if isinstance(query, Mean) and found.values != expected:
        raise QueryError(f"the mean was calibrated over {expected} values, got {found.values}.")
    _check_rounding(found, contributions, covered=covered_rows(rows, model))


def _check_rounding(found: FrameAnswer, contributions: Contributions, *, covered: int) -> None:
    check_size(contributions, covered=covered, found=found.instances)
    check_grid(contributions, covered=covered, grid=found.grid)


_made: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
"""Calibrations that released something, by identity: copies and equal ones are others."""


def note_release(calibration: Any, *, counted: bool) -> None:
    """Warn, before noise is drawn, of a release that nothing counts together with earlier ones."""
    if not counted and id(calibration) in _made:
        warnings.warn(
            "this calibration has made a release before, and no ledger counts both: about the same"
            " data two releases leak more than one, and not simply the sum. Pass ledger= to each"
            " of them. If the data are independent of those before, ignore this"
            " SecondReleaseWarning.",
            SecondReleaseWarning,
            stacklevel=3,
        )
    _made[id(calibration)] = calibration


def add_noise(
    answers: Sequence[Answer], contributions: Contributions, scale: float
) -> list[list[Any]]:
    """Add independent noise to every number of every answer, in one call."""
    width = contributions.coordinates
    numbers = [number for answer in answers for number in answer]
    noisy: list[Any]
    if contributions.is_integer:
        noisy = list(noise.add_laplace_to_integers([int(number) for number in numbers], scale))
    else:
        noisy = list(noise.add_laplace_to_floats([float(number) for number in numbers], scale))
    return [noisy[start : start + width] for start in range(0, len(noisy), width)]


def labelled(noisy: Sequence[Any], query: Query, model: Model) -> Any:
    """Return a number as it is, and the counts of a histogram by category."""
    if isinstance(query, Histogram):
        return pd.Series(noisy, index=list(query.of(model)))
    return noisy[0]


def unlabelled(value: Any) -> Any:
    """Return an answer as JSON can hold it: a number, or the numbers of a Series or frame."""
    return value if isinstance(value, int | float) else value.to_numpy().tolist()


def checked_answer(value: Any) -> Any:
    """Return a stored answer, or raise unless its numbers are finite."""
    if not np.all(np.isfinite(np.asarray(value, dtype=np.float64))):
        raise CalibrationError("the answer of a release must be finite.")
    return value


def check_rows(query: Query, *, calibrated: int, found: int) -> None:
    """Refuse an answer over other rows than the scale was proved for."""
    if isinstance(query, Mean | Custom) and found != calibrated:
        raise QueryError(
            f"the scale is for an answer over {calibrated} rows, got {found};"
            f" calibrate with rows={found}."
        )


def check_size(contributions: Contributions, *, covered: int, found: int) -> None:
    """Refuse sums whose rounding the scale does not cover."""
    if contributions.is_integer:
        if found * contributions.magnitude >= 2.0**62:
            raise QueryError("the answer may not fit into a 64-bit whole number.")
    elif found > covered:
        raise QueryError(
            f"the scale covers the rounding of sums over up to {covered} rows or groups,"
            f" got {found}; calibrate with rows={found}."
        )


def check_grid(contributions: Contributions, *, covered: int, grid: Fraction) -> None:
    """Refuse real values summed on a coarser grid than the scale covers."""
    if grid > noise.covered_grid(contributions.magnitude * covered):
        raise QueryError(
            "the frame has too many values for a sum of whole numbers in 64 bits: release it in"
            " parts, or calibrate for more rows."
        )


def rounding_error(contributions: Contributions, rows: int, model: Model) -> float:
    """Bound the rounding of the answer before noise; whole numbers are exact."""
    if contributions.is_integer:
        return 0.0
    return noise.summation_error(contributions.magnitude * covered_rows(rows, model))


def covered_rows(rows: int, model: Model) -> int:
    """Return the number of rows or groups whose summation error a scale covers."""
    return max(rows * model.instances, ROWS_COVERED)


def nearest_counts(noisy: pd.Series[Any], total: int) -> pd.Series[Any]:
    """Return the whole, non-negative counts nearest to the noisy ones that sum to the total."""
    if not hasattr(total, "__index__") or not 0 <= int(total) < 2**62:
        raise QueryError("total must be a whole number, zero or more and below 2^62.")
    real = nearest_with_sum(noisy.to_numpy(dtype=np.float64), int(total))
    whole = np.floor(real).astype(np.int64)
    missing = int(total) - int(whole.sum())
    whole[np.argsort(whole - real, kind="stable")[:missing]] += 1
    return pd.Series(whole, index=noisy.index)
