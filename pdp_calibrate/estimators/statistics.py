"""What estimators and releases need to know of a frame: counts, mostly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import narwhals as nw
import numpy as np
import numpy.typing as npt

from pdp_calibrate.errors import ModelError
from pdp_calibrate.models.base import FloatArray, plain


def columns_of(frame: Any) -> list[str]:
    """Return the names of the columns of any frame that narwhals understands."""
    return list(_frame(frame).collect_schema().names())


def contingency(frame: Any, columns: Sequence[Hashable]) -> Counter[tuple[Hashable, ...]]:
    """Count how often each combination of values occurs in the columns."""
    chosen, names = complete_rows(frame, columns)
    counted = chosen.group_by(*names).agg(nw.len().alias("__count__"))
    return Counter(
        {
            tuple(plain(value) for value in row[:-1]): int(row[-1])
            for row in counted.select(*names, "__count__").iter_rows()
        }
    )


def column_of(frame: Any, column: Hashable) -> FloatArray:
    """Return one column as floats."""
    chosen, (name,) = complete_rows(frame, [column])
    if not chosen[name].dtype.is_numeric():
        raise ModelError(f"column {name} must hold numbers, got {chosen[name].dtype}.")
    return np.asarray(chosen[name].to_numpy(), dtype=np.float64)


def rows_of(frame: Any, columns: Sequence[Hashable]) -> Iterator[tuple[Hashable, ...]]:
    """Yield the rows of the columns, in order; for releases row by row only."""
    chosen, _ = complete_rows(frame, columns)
    for row in chosen.iter_rows():
        yield tuple(plain(value) for value in row)


def group_sizes(frame: Any, by: Hashable | None) -> Counter[int]:
    """Count how many groups there are of each size."""
    if by is None:
        return Counter({len(_frame(frame)): 1})
    chosen, (name,) = complete_rows(frame, [by])
    sizes = chosen.group_by(name).agg(nw.len().alias("__size__"))
    counted = sizes.group_by("__size__").agg(nw.len().alias("__count__"))
    return Counter(
        {
            int(size): int(count)
            for size, count in counted.select("__size__", "__count__").iter_rows()
        }
    )


def group_totals(frame: Any, by: str, value: str) -> Counter[tuple[int, int]]:
    """Count the groups with each size and number of ones, from a long frame of zeros and ones."""
    rows, _ = complete_rows(frame, [by, value])
    if not (rows[value].dtype.is_numeric() or rows[value].dtype == nw.Boolean):
        raise ModelError(f"column {value} must hold only 0 and 1.")
    rows = rows.with_columns(nw.col(value).cast(nw.Float64).alias("__value__"))
    if not ((rows["__value__"] == 0) | (rows["__value__"] == 1)).all():
        raise ModelError(f"column {value} must hold only 0 and 1.")
    groups = rows.group_by(by).agg(
        nw.len().alias("__size__"), nw.col("__value__").sum().alias("__ones__")
    )
    counted = groups.group_by("__size__", "__ones__").agg(nw.len().alias("__count__"))
    chosen = counted.select("__size__", "__ones__", "__count__").iter_rows()
    return Counter({(int(size), int(ones)): int(count) for size, ones, count in chosen})


def refuse_repeated(frame: Any, person: str, by: str) -> None:
    """Raise if a person stands in two groups, or twice in one."""
    rows, _ = complete_rows(frame, [person, by])
    pairs = rows.unique(subset=[person, by])
    several = len(pairs) - pairs[person].n_unique()
    if several:
        raise ModelError(
            f"{several} of the entries in column {person} put a person into a further group of"
            f" column {by}; everyone may belong to one only. Join such groups first."
        )
    if len(pairs) < len(rows):
        raise ModelError(
            f"column {person} names {len(rows) - len(pairs)} persons more than once within a group."
        )


@dataclass(frozen=True, kw_only=True)
class GroupMoments:
    """Sums of squares of a grouped column."""

    sizes: Counter[int]
    """How many groups there are of each size."""
    between: float
    """Σ n_i·(mean of group i − mean of all)²."""
    within: float
    """Σ (value − mean of its group)²."""

    @property
    def rows(self) -> int:
        """The number of values."""
        return sum(size * number for size, number in self.sizes.items())


def group_moments(frame: Any, *, value: Hashable, by: Hashable) -> GroupMoments:
    """Sum squares between and within groups; values are centred first, to keep their digits."""
    centred = column_of(frame, value)
    if not np.all(np.isfinite(centred)):
        raise ModelError(f"column {value} must be finite.")
    chosen, (name,) = complete_rows(frame, [by])
    centred = centred - centred.mean()
    column = nw.new_series("__value__", centred, backend=nw.get_native_namespace(chosen))
    summed = (
        chosen.with_columns(column, (column * column).alias("__square__"))
        .group_by(name)
        .agg(
            nw.len().alias("__size__"),
            nw.col("__value__").sum().alias("__sum__"),
            nw.col("__square__").sum().alias("__squares__"),
        )
    )
    sizes = summed["__size__"].to_numpy()
    sums = summed["__sum__"].to_numpy()
    by_group = float((sums**2 / sizes).sum())
    numbers = np.bincount(sizes)
    return GroupMoments(
        sizes=Counter({int(size): int(numbers[size]) for size in np.flatnonzero(numbers)}),
        between=by_group - float(sums.sum()) ** 2 / len(centred),
        within=max(0.0, float(summed["__squares__"].to_numpy().sum()) - by_group),
    )


def ranks_in_groups(
    frame: Any, by: Hashable | None, order_by: Hashable
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return for each row its place in its group, in order, and the size of the group."""
    chosen, names = complete_rows(frame, [order_by] if by is None else [order_by, by])
    _, order = np.unique(chosen[names[0]].to_numpy(), return_inverse=True)
    groups = np.zeros(len(order), dtype=np.int64)
    if by is not None:
        _, groups = np.unique(chosen[names[1]].to_numpy(), return_inverse=True)
    rows = np.lexsort((order, groups))
    same_group = np.diff(groups[rows]) == 0
    if np.any(same_group & (np.diff(order[rows]) == 0)):
        raise ModelError(f"column {order_by} has two equal entries in one group.")
    sizes = np.bincount(groups)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    ranks = np.empty(len(rows), dtype=np.int64)
    ranks[rows] = np.arange(len(rows)) - starts[groups[rows]]
    return ranks, sizes[groups]


def rows_in(frame: Any) -> int:
    """Return the number of rows."""
    return len(_frame(frame))


def parts_of(frame: Any, column: Hashable) -> list[tuple[Hashable, Any]]:
    """Cut the frame by the values of a column: pairs of value and rows, in order of value."""
    values = sorted((value for (value,) in contingency(frame, [column])), key=repr)
    table, name = _frame(frame), cast("str", column)
    return [(value, table.filter(nw.col(name) == value).to_native()) for value in values]


def groups_cross(frame: Any, by: Hashable, column: Hashable) -> bool:
    """Whether some group has rows with different values in the column."""
    chosen, (group, part) = complete_rows(frame, [by, column])
    pairs = chosen.unique([group, part])
    return len(pairs) > pairs[group].n_unique()


def complete_rows(frame: Any, columns: Sequence[Hashable]) -> tuple[nw.DataFrame[Any], list[str]]:
    """Select the columns; refuse absent ones, an empty frame and missing values.

    Messages name the column and how many cells are missing, never a value.
    """
    table = _frame(frame)
    names = [cast("str", column) for column in columns]
    absent = [str(name) for name in names if name not in table.columns]
    if absent:
        raise ModelError(f"the frame has no column {', '.join(absent)}.")
    chosen = table.select(*names)
    if len(chosen) == 0:
        raise ModelError("the frame must have at least one row, got none.")
    for name in names:
        column = chosen[name]
        empty = column.is_null()
        if column.dtype.is_float():
            empty = empty | column.is_nan().fill_null(value=True)
        missing = int(empty.sum())
        if missing:
            raise ModelError(
                f"column {name} has {missing} missing values; drop or recode them first."
            )
    return chosen, names


def _frame(frame: Any) -> nw.DataFrame[Any]:
    try:
        return nw.from_native(frame, eager_only=True)
    except TypeError as error:
        raise ModelError(f"a DataFrame is needed, got {type(frame).__name__}.") from error
