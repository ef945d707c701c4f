"""The exact answer about a long frame: a row per value, grouped into households or series.

Every group must be one of the model's: as large as one of its blocks, or as the model itself.
Groups, their sizes and the order inside them are public; values never appear in a message. The
sizes that are checked and the values that are added up come from one query: others may be writing
to the table.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypedDict, TypeVar

import numpy as np

from pdp_calibrate.core.adversary import Adversaries
from pdp_calibrate.core.composite import Blocks, ModelSet
from pdp_calibrate.core.contributions import Contributions
from pdp_calibrate.core.model import Domain, Model
from pdp_calibrate.errors import ModelError, UnsupportedQueryError
from pdp_calibrate.frames.answers import (
    Answer,
    FrameAnswer,
    added,
    bounds_of,
    fractions_of,
    grid_of,
    times,
    weighted,
)
from pdp_calibrate.frames.columns import refuse_discrete_columns
from pdp_calibrate.frames.grouped import read_groups
from pdp_calibrate.frames.order import (
    Times,
    check_series,
    clamped_sums_by_rank,
    contingency_by_rank,
)

Method = TypeVar("Method", bound=Callable[..., Any])


@dataclass(frozen=True, kw_only=True)
class LongFrame:
    """How to read a long frame: a row per value."""

    value: Hashable
    """The column of values."""
    groups: Hashable | None = None
    """The column that names the group; None if all rows are one group."""
    order_by: Hashable | None = None
    """The column that orders a group."""
    time_format: str | None = None
    """How text in that column is written; ISO 8601 if None."""
    rows: int | None = None
    """The (public) number of rows, if it was read before; otherwise it is read first."""
    times: Times | None = None
    """How the ordering column is read, if that was determined before."""


class LongColumns(TypedDict, total=False):
    """Which columns of a table with a row per value define groups and order."""

    groups: Hashable | None
    order_by: Hashable | None
    time_format: str | None


class ReleaseColumns(LongColumns, total=False):
    """The columns of a long frame, as releases name them."""

    value: Hashable | None
    by: Hashable | None


def with_columns(method: Method) -> Method:
    """Show in the signature of a method which columns its ``**columns`` are."""
    own = list(inspect.signature(method).parameters.values())[:-1]
    needed = [one for one in own if one.default is one.empty]
    columns = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=ReleaseColumns.__annotations__[name].__forward_arg__,
        )
        for name in ("value", "groups", "order_by", "time_format", "by")
    ]
    others = [one for one in own if one not in needed]
    shown = inspect.signature(method).replace(parameters=[*needed, *columns, *others])
    method.__signature__ = shown  # type: ignore[attr-defined]
    return method


def long_answer(
    contributions: Contributions, model: Model, frame: Any, layout: LongFrame
) -> FrameAnswer:
    """Answer about all rows of a long frame, with the query lowered for the model.

    The layout must say what orders a group where the query treats its members differently. Times
    of a model of series or chains must have no gaps, and no two may be equal in a group.
    """
    if contributions.table is not None:
        raise UnsupportedQueryError("Custom answers about one instance, not about a long frame.")
    starts = _first_positions(model)
    if any(model.gaussian_tuples):
        refuse_discrete_columns(frame, [layout.value])
    if layout.order_by is not None and model.runs_along_time:
        check_series(frame, layout.value, **_order(layout))
    if _treats_alike(contributions, model):
        return _alike(contributions, model, frame, layout.value, by=layout.groups)
    if layout.order_by is None:
        raise UnsupportedQueryError(
            "the query treats members of a group differently: give order_by=, the column that"
            " orders them."
        )
    return _by_rank(contributions, model, frame, layout, starts)


def _order(layout: LongFrame) -> dict[str, Any]:
    """Return groups and order as the arguments of functions that read ordered rows."""
    return {
        "by": layout.groups,
        "order_by": layout.order_by,
        "time_format": layout.time_format,
    }


def _alike(
    contributions: Contributions, model: Model, frame: Any, value: Hashable, *, by: Hashable | None
) -> FrameAnswer:
    """Add up all rows, which are treated alike; sizes and values come from one query."""
    domain, own = _shared_domain(model), contributions.values[0]
    bounds = bounds_of(domain) if model.continuous_tuples[0] else None
    read = read_groups(
        frame, value, by=by, bounds=bounds, clamp=contributions.clamped, domain=domain
    )
    check_sizes(read.sizes, model)
    if read.sum is not None:
        grid = len(model.names) * grid_of(read.sum, 0, contributions)
        return _about(read.sizes, weighted(read.sum.total, 0, contributions), grid)
    counted = [
        times(n, fractions_of(own[_place(held, domain, value)])) for held, n in read.counts.items()
    ]
    return _about(read.sizes, added(counted), Fraction(0))


def check_sizes(sizes: Mapping[int, int], model: Model) -> None:
    """Refuse groups of a size that the model does not have."""
    known = _first_positions(model)
    unknown = sorted(set(sizes) - set(known))
    if unknown:
        raise ModelError(
            f"the frame has groups of size {unknown[0]}, and the model has none of that size;"
            f" it has {', '.join(map(str, sorted(known)))}."
        )


def _about(sizes: Mapping[int, int], answer: Answer, grid: Fraction) -> FrameAnswer:
    return FrameAnswer(
        answer=answer,
        instances=sum(sizes.values()),
        values=sum(size * number for size, number in sizes.items()),
        grid=grid,
        sizes=tuple((int(size), int(number)) for size, number in sorted(sizes.items())),
    )


def instances_in(sizes: Mapping[int, int], model: Model) -> int:
    """Return how many instances of the model a long frame holds, given its groups by size.

    Blocks describe all groups together; any other model describes one of them.
    """
    member = model.models[0] if isinstance(model, ModelSet) else model
    return 1 if isinstance(member, Blocks) else sum(sizes.values())


def check_groups(groups: Mapping[int, int], model: Model, adversaries: Adversaries) -> None:
    """Refuse numbers of groups other than those of the proof, where they matter."""
    if not adversaries.is_restricted:
        return
    for stated in stated_groups(model):
        if stated != dict(groups):
            raise ModelError(
                f"to {adversaries!r} other groups are noise, so the frame must have as many of"
                f" each size as the model: {_counted(stated)}; got {_counted(groups)}. Calibrate"
                " for Blocks(models=…, counts=…) with the counts of this frame, or against"
                " Adversaries.all(), to whom their number does not matter."
            )


def stated_groups(model: Model) -> list[dict[int, int]]:
    """Return how many groups of each size the model is about; of a set, by each of its members.

    Empty where the model describes one group, however many there are.
    """
    members = model.models if isinstance(model, ModelSet) else (model,)
    return [
        {len(block.names): count for block, count in zip(one.models, one.counts, strict=True)}
        for one in members
        if isinstance(one, Blocks)
    ]


def _counted(groups: Mapping[int, int]) -> str:
    return ", ".join(f"{number} of size {size}" for size, number in sorted(groups.items()))


def largest_group(model: Model) -> int:
    """Return how many tuples the largest group of the model has."""
    return max(_first_positions(model))


def _first_positions(model: Model) -> dict[int, int]:
    """Return, for each group size, the position of its first member among the model's names."""
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


def _by_rank(
    added_by: Contributions, model: Model, frame: Any, layout: LongFrame, starts: dict[int, int]
) -> FrameAnswer:
    """Add up all rows; what one adds depends on the size of its group and its place in it."""
    domain, value, order = _shared_domain(model), layout.value, _order(layout)
    if not model.continuous_tuples[0]:
        counts, sizes = contingency_by_rank(frame, value, **order)
        check_sizes(sizes, model)
        amounts = [
            times(n, fractions_of(added_by.values[starts[size] + rank][cell]))
            for (size, rank, held), n in counts.items()
            for cell in (_place(held, domain, value),)
        ]
        return _about(sizes, added(amounts), Fraction(0))
    sums, sizes = clamped_sums_by_rank(
        frame, value, bounds_of(domain), **order, clamp=added_by.clamped
    )
    check_sizes(sizes, model)
    amounts = [
        weighted(found.total, starts[size] + rank, added_by) for (size, rank), found in sums.items()
    ]
    coarsest = max(sums.values(), key=lambda found: found.step)
    steps = (grid_of(coarsest, place, added_by) for place in range(len(model.names)))
    return _about(sizes, added(amounts), sum(steps, start=Fraction(0)))


def _shared_domain(model: Model) -> Domain:
    if len(set(model.domains)) > 1 or len(set(model.continuous_tuples)) > 1:
        raise UnsupportedQueryError("a long frame needs a model whose tuples share one domain.")
    return model.domains[0]


def _place(held: Hashable, domain: Domain, value: Hashable) -> int:
    if held not in domain:
        raise ModelError(
            f"a value of column {value} is none of those that are possible by domains=, the type of"
            " the column or the model."
        )
    return domain.index(held)
