"""The exact answer about a long frame: a row per value, grouped into households or series.

Every group must be one of the model's: as large as one of its blocks, or as the model itself.
Groups, their sizes and the order inside them are public; values never appear in a message.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from pdp_calibrate.answers import Answer, clamped
from pdp_calibrate.contributions import Contributions
from pdp_calibrate.errors import ModelError, UnsupportedQueryError
from pdp_calibrate.estimators.statistics import (
    column_of,
    contingency,
    group_sizes,
    ranks_in_groups,
    rows_of,
)
from pdp_calibrate.models import Blocks, Model, ModelSet
from pdp_calibrate.models.base import FloatArray


@dataclass(frozen=True, kw_only=True)
class LongAnswer:
    """The exact answer, and the public facts it is checked against."""

    answer: Answer
    """One number per coordinate."""
    groups: int
    """How many groups it is about."""
    values: int
    """How many rows."""


def long_answer(
    contributions: Contributions,
    model: Model,
    frame: Any,
    *,
    value: Hashable,
    by: Hashable | None,
    order_by: Hashable | None,
) -> LongAnswer:
    """Answer about all rows of a long frame.

    Parameters
    ----------
    contributions, model
        The lowered query and what it was lowered for.
    frame
        One row per value.
    value
        The column of values.
    by
        The column that tells groups apart; None if all rows are one group.
    order_by
        The column that orders a group, needed where the query treats its members differently.
    """
    if contributions.table is not None:
        raise UnsupportedQueryError("Custom answers about one instance, not about a long frame.")
    sizes = group_sizes(frame, by)
    starts = _first_positions(model)
    unknown = sorted(set(sizes) - set(starts))
    if unknown:
        raise ModelError(
            f"the frame has groups of size {unknown[0]}, and the model has none of that size;"
            f" it has {', '.join(map(str, sorted(starts)))}."
        )
    alike = _treats_alike(contributions, model)
    if alike:
        positions = None
    elif order_by is None:
        raise UnsupportedQueryError(
            "the query treats members of a group differently: say which column orders them with"
            " order_by=."
        )
    else:
        ranks, own_sizes = ranks_in_groups(frame, by, order_by)
        firsts = np.zeros(max(starts) + 1, dtype=np.int64)
        firsts[list(starts)] = list(starts.values())
        positions = firsts[own_sizes] + ranks
    return LongAnswer(
        answer=_summed(_amounts(contributions, model, frame, value, positions)),
        groups=sum(sizes.values()),
        values=sum(size * number for size, number in sizes.items()),
    )


def sum_over_rows(
    contributions: Contributions, model: Model, frame: Any, value: Hashable
) -> Answer:
    """Add up what the rows add, whatever groups they come from."""
    if contributions.table is not None or not _treats_alike(contributions, model):
        raise UnsupportedQueryError("parts are summed only where all members count alike.")
    return _summed(_amounts(contributions, model, frame, value, None))


def _summed(amounts: FloatArray) -> Answer:
    return tuple(Fraction(math.fsum(column)) for column in amounts.T)


def _first_positions(model: Model) -> dict[int, int]:
    """Return, for each size of a group, where its members stand among the model's names."""
    if isinstance(model, ModelSet):
        found = [_first_positions(member) for member in model.models]
        if any(one != found[0] for one in found):
            raise ModelError("members of the set divide the tuples into different groups.")
        return found[0]
    if not isinstance(model, Blocks):
        return {len(model.names): 0}
    starts: dict[int, int] = {}
    position = 0
    for block in model.models:
        size = len(block.names)
        if size in starts:
            raise ModelError(
                f"the model has two kinds of groups of size {size}: a long frame cannot tell them"
                " apart. Release them one by one."
            )
        starts[size] = position
        position += size
    return starts


def _treats_alike(contributions: Contributions, model: Model) -> bool:
    """Whether every tuple has the same domain and adds the same for the same value."""
    first = contributions.values[0]
    return len(set(model.domains)) == 1 and all(
        array is first or np.array_equal(array, first) for array in contributions.values
    )


def _amounts(
    contributions: Contributions,
    model: Model,
    frame: Any,
    value: Hashable,
    positions: npt.NDArray[np.int64] | None,
) -> FloatArray:
    """Return what each row (or each distinct value, times its count) adds per coordinate."""
    if len(set(model.domains)) > 1 or len(set(model.continuous_tuples)) > 1:
        raise UnsupportedQueryError("a long frame needs a model whose tuples share one domain.")
    domain = model.domains[0]
    if model.continuous_tuples[0]:
        column = clamped(column_of(frame, value), value, domain, clamp=contributions.clamped)
        weights = np.stack(contributions.weights or ())
        factors = weights[:1] if positions is None else weights[positions]
        return np.asarray(column[:, np.newaxis] * factors)
    counts = contingency(frame, [value])
    if any(found not in domain for (found,) in counts):
        raise ModelError(f"a value of column {value} is not in the domain of the model.")
    if positions is None:
        rows = [count * contributions.values[0][domain.index(v)] for (v,), count in counts.items()]
        return np.array(rows)
    code = {v: place for place, v in enumerate(domain)}
    codes = np.array([code[row[0]] for row in rows_of(frame, [value])])
    return np.asarray(np.stack(contributions.values)[positions, codes])
