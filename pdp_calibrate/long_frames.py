"""The exact answer about a long frame: a row per value, grouped into households or series.

Every group must be one of the model's: as large as one of its blocks, or as the model itself.
Groups, their sizes and the order inside them are public; values never appear in a message.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from pdp_calibrate.answers import (
    Answer,
    FrameAnswer,
    added,
    bounds_of,
    fractions_of,
    grid_of,
    times,
    weighted,
)
from pdp_calibrate.contributions import Contributions
from pdp_calibrate.errors import ModelError, UnsupportedQueryError
from pdp_calibrate.estimators.gaussianity import refuse_discrete_columns
from pdp_calibrate.estimators.statistics import (
    check_series,
    clamped_sums,
    clamped_sums_by_rank,
    contingency,
    contingency_by_rank,
    group_sizes,
)
from pdp_calibrate.models import (
    Blocks,
    GaussianSeries,
    MarkovChain,
    MixingChain,
    Model,
    ModelSet,
)
from pdp_calibrate.models.base import Domain


def long_answer(
    contributions: Contributions,
    model: Model,
    frame: Any,
    *,
    value: Hashable,
    by: Hashable | None,
    order_by: Hashable | None,
    time_format: str | None = None,
) -> FrameAnswer:
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
        The column that orders a group, needed where the query treats its members differently. Of a
        model of series or chains it must have no gaps and no two equal times in a group.
    time_format
        How text in that column is written; ISO 8601 by default.
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
    if any(model.gaussian_tuples):
        refuse_discrete_columns(frame, [value])
    order: dict[str, Any] = {"by": by, "order_by": order_by, "time_format": time_format}
    if order_by is not None and _runs_along_time(model):
        check_series(frame, value, **order)
    if _treats_alike(contributions, model):
        answer, grid = _alike(contributions, model, frame, value)
    elif order_by is None:
        raise UnsupportedQueryError(
            "the query treats members of a group differently: say which column orders them with"
            " order_by=."
        )
    else:
        answer, grid = _by_rank(contributions, model, frame, value, order=order, starts=starts)
    return FrameAnswer(
        answer=answer,
        instances=sum(sizes.values()),
        values=sum(size * number for size, number in sizes.items()),
        grid=grid,
    )


def instances_in(sizes: Mapping[int, int], model: Model) -> int:
    """Return how many instances of the model a long frame holds, given its groups by size.

    Blocks stand for all groups together; any other model stands for one of them.
    """
    member = model.models[0] if isinstance(model, ModelSet) else model
    return 1 if isinstance(member, Blocks) else sum(sizes.values())


def sum_over_rows(
    contributions: Contributions, model: Model, frame: Any, value: Hashable
) -> tuple[Answer, Fraction]:
    """Add up what the rows add, whatever groups they come from; return the grid of a group too."""
    if contributions.table is not None or not _treats_alike(contributions, model):
        raise UnsupportedQueryError("parts are summed only where all members count alike.")
    return _alike(contributions, model, frame, value)


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


def _runs_along_time(model: Model) -> bool:
    """Whether the model says how a value depends on the one before."""
    return isinstance(model, GaussianSeries | MarkovChain | MixingChain) or any(
        map(_runs_along_time, model.inner_models)
    )


def _treats_alike(contributions: Contributions, model: Model) -> bool:
    """Whether every tuple has the same domain and adds the same for the same value."""
    first = contributions.values[0]
    return len(set(model.domains)) == 1 and all(
        array is first or np.array_equal(array, first) for array in contributions.values
    )


def _alike(
    contributions: Contributions, model: Model, frame: Any, value: Hashable
) -> tuple[Answer, Fraction]:
    """Add up all rows; every one adds the same for the same value."""
    domain = _shared_domain(model)
    if model.continuous_tuples[0]:
        ranges = {value: bounds_of(domain)}
        found = clamped_sums(frame, ranges, clamp=contributions.clamped)[0][value]
        total = weighted(found.total, 0, contributions)
        return total, len(model.names) * grid_of(found, 0, contributions)
    counts = contingency(frame, [value])
    own = contributions.values[0]
    return added(
        [times(n, fractions_of(own[_place(v, domain, value)])) for (v,), n in counts.items()]
    ), Fraction(0)


def _by_rank(
    contributions: Contributions,
    model: Model,
    frame: Any,
    value: Hashable,
    *,
    order: dict[str, Any],
    starts: dict[int, int],
) -> tuple[Answer, Fraction]:
    """Add up all rows; what one adds depends on its group's size and its place there."""
    domain = _shared_domain(model)
    if not model.continuous_tuples[0]:
        counts = contingency_by_rank(frame, value, **order)
        return added(
            [
                times(n, fractions_of(contributions.values[starts[size] + rank][cell]))
                for (size, rank, held), n in counts.items()
                for cell in (_place(held, domain, value),)
            ]
        ), Fraction(0)
    sums = clamped_sums_by_rank(
        frame, value, bounds_of(domain), **order, clamp=contributions.clamped
    )
    amounts = [
        weighted(found.total, starts[size] + rank, contributions)
        for (size, rank), found in sums.items()
    ]
    coarsest = max(sums.values(), key=lambda found: found.step)
    steps = (grid_of(coarsest, place, contributions) for place in range(len(model.names)))
    return added(amounts), sum(steps, start=Fraction(0))


def _shared_domain(model: Model) -> Domain:
    if len(set(model.domains)) > 1 or len(set(model.continuous_tuples)) > 1:
        raise UnsupportedQueryError("a long frame needs a model whose tuples share one domain.")
    return model.domains[0]


def _place(held: Hashable, domain: Domain, value: Hashable) -> int:
    if held not in domain:
        raise ModelError(f"a value of column {value} is not in the domain of the model.")
    return domain.index(held)
