"""From data to noisy numbers: exact answers, checks, noise, and post-processing."""

from __future__ import annotations

import contextlib
import warnings
import weakref
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, Protocol, Unpack, runtime_checkable

import numpy as np
import pandas as pd

from pdp_calibrate.arrays import damage_refused, named_groups, plain
from pdp_calibrate.calibration.solve import covered_rows
from pdp_calibrate.core import noise
from pdp_calibrate.core.adversary import Adversaries
from pdp_calibrate.core.contributions import Contributions
from pdp_calibrate.core.model import Model, field_of, from_json_value, json_value
from pdp_calibrate.core.query import Custom, Histogram, Mean, Query
from pdp_calibrate.core.row_query import RowQuery
from pdp_calibrate.errors import (
    CalibrationError,
    LedgerError,
    ModelError,
    PdpError,
    QueryError,
    SecondReleaseWarning,
    UnsupportedQueryError,
)
from pdp_calibrate.frames.answers import (
    Answer,
    FrameAnswer,
    Sizes,
    instance_answer,
    row_answers,
    total_answer,
    wide_sizes,
)
from pdp_calibrate.frames.columns import refuse_discrete_columns
from pdp_calibrate.frames.long_answers import (
    LongFrame,
    ReleaseColumns,
    check_groups,
    largest_group,
    long_answer,
)
from pdp_calibrate.frames.open import check_roles, column_name, refuse_changed, under_name
from pdp_calibrate.frames.order import times_of
from pdp_calibrate.frames.rows import read_rows
from pdp_calibrate.learning.private_sums import nearest_with_sum

EVERY_COLUMN: Hashable = ()
"""In place of a column of values, where a release is about whole records, of any dependence."""


Layout = LongFrame | Literal["wide"]
"""Which values of a frame are the tuples: those of one column of a long frame, or the columns of a
wide frame that have the tuples' names."""


_COLUMNS = {"value": "value", "by": "groups", "order_by": "order_by"}
"""What JSON calls the columns of a layout; how times are written changes nothing."""


def stored_layout(layout: Layout) -> Any:
    """Describe a layout for JSON: names of columns, or that the frame is wide."""
    if not isinstance(layout, LongFrame):
        return layout
    return {key: json_value(plain(getattr(layout, name))) for key, name in _COLUMNS.items()}


def layout_from(described: Any, *, error: type[PdpError] = LedgerError) -> Layout | None:
    """Undo `stored_layout`; None where nothing was stored, for example by an earlier version."""
    if described is None or described == "wide":
        return described  # type: ignore[no-any-return]  # one of the two
    if not isinstance(described, Mapping):
        raise error("a layout is a table of columns, or wide.")
    value, groups, order_by = (from_json_value(field_of(described, key)) for key in _COLUMNS)
    return LongFrame(value=value, groups=groups, order_by=order_by)


def sizes_from(described: Any, *, error: type[PdpError] = LedgerError) -> Sizes | None:
    """Read sizes from JSON; None where nothing was stored, for example by an earlier version."""
    if described is None:
        return None
    with damage_refused("the size of a frame", kind=error):
        sizes = tuple((size, number) for size, number in described)
    if not all(type(number) is int and number > 0 for pair in sizes for number in pair):
        raise error("sizes of groups, and how many there are, are positive whole numbers.")
    return sizes


class Account(Protocol):
    """Where releases are recorded before they are made: a ledger."""

    def spend(
        self, calibration: Any, *, layout: Layout | None = None, sizes: Sizes | None = None
    ) -> None:
        """Write the release down durably, or raise if it does not fit the budget."""


@dataclass(frozen=True)
class Moment:
    """The step that a release about a model without an end is of."""

    step: int | str
    """Its number, or when it begins."""
    every: str | None
    """How long a step is; None where steps are numbers."""
    number: int
    """Its number, counted from 1970 where steps have a length."""


@runtime_checkable
class StreamAccount(Protocol):
    """A ledger about a model without an end, or about any other."""

    def moment(self, step: object) -> Moment | None:
        """Return the step as releases carry it, None where the model has an end; or raise."""

    def spend(
        self,
        calibration: Any,
        *,
        layout: Layout | None = None,
        sizes: Sizes | None = None,
        step: object = None,
    ) -> None:
        """Write the release down durably, or raise if it does not fit the budget."""


def moment_in(ledger: object, model: Model, step: object) -> Moment | None:
    """Return the step of a release, or raise where there should be one, or none."""
    if model.is_endless and (not isinstance(ledger, StreamAccount) or step is None):
        raise QueryError(
            "a model without an end is about the record of a step, and releases about all steps add"
            " up: release with ledger= and step=."
        )
    if not model.is_endless and step is not None:
        raise QueryError("step= is for a model without an end: length=None.")
    return ledger.moment(step) if model.is_endless and isinstance(ledger, StreamAccount) else None


def checked_layout(**columns: Unpack[ReleaseColumns]) -> Layout:
    """Return how to read a frame: as a long one where its column of values is named."""
    for name in columns:
        if name not in ReleaseColumns.__annotations__:
            raise TypeError(f"release() got an unexpected keyword argument {name!r}")
    unit = named_groups(columns.get("groups"), columns.get("by"))
    value, order_by = columns.get("value"), columns.get("order_by")
    time_format = columns.get("time_format")
    if time_format is not None and order_by is None:
        raise QueryError("time_format= says how the column of order_by= is read: name it.")
    if value is not None:
        check_roles(value, groups=unit, order_by=order_by)
        return LongFrame(value=value, groups=unit, order_by=order_by, time_format=time_format)
    if unit is not None or order_by is not None:
        raise QueryError("groups= and order_by= describe a long frame, which needs value= too.")
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
    """Return the exact answer, after checking that the scale was proved for such data."""
    if model.is_endless and isinstance(layout, LongFrame):
        if layout.groups is not None or layout.order_by is not None:
            raise QueryError(
                "a step has one record of each person, in no order: give value= alone."
            )
        data, layout = under_name(data, layout.value, model.names[0]), "wide"
    if isinstance(query, RowQuery):
        return _answer_about_rows(
            data, query, contributions, model, layout=layout, adversaries=adversaries
        )
    if isinstance(layout, LongFrame):
        found = long_answer(contributions, model, data, layout)
        check_groups(dict(found.sizes or ()), model, adversaries or Adversaries.all())
        check_long(found, query, contributions, model, rows=rows)
        return found
    if isinstance(data, pd.Series | Mapping):
        own = instance_answer(contributions, model, data)
        found = FrameAnswer(answer=own, instances=1, values=1)
    else:
        found = total_answer(contributions, model, data)
    check_rows(query, calibrated=rows, found=found.instances)
    _check_rounding(found, contributions, covered=covered_rows(rows, model))
    return found


def _answer_about_rows(
    data: Any,
    query: RowQuery,
    contributions: Contributions,
    model: Model,
    *,
    layout: Layout,
    adversaries: Adversaries | None,
) -> FrameAnswer:
    """Answer a question about rows, if no group has more counted rows than the proof allows.

    Fewer counted rows move the answer less, and members that do not count are covered by those that
    do: only the largest group matters. Where values move against each other, and their parts do not
    cancel, the size of groups matters, whichever of their rows count.
    """
    if not isinstance(layout, LongFrame):
        raise QueryError("a question about rows is asked of a long frame: give value= and groups=.")
    if adversaries is not None and adversaries.is_restricted:
        raise UnsupportedQueryError(
            f"to {adversaries!r} other groups are noise, and how much depends on which rows"
            " count: ask questions about rows for Adversaries.all() or strongest()."
        )
    times = None
    if not model.covers_any_dependence:
        (secret,) = query.secret  # else it would not have been lowered for this model
        if secret != column_name(layout.value):
            raise QueryError(
                f"the model is about the values of one column, value={layout.value}, and says"
                f" nothing of {secret}: ask about both without a correlation."
            )
        if any(model.gaussian_tuples):
            refuse_discrete_columns(data, [secret])
        if layout.order_by is not None and model.runs_along_time:
            times = layout.times or times_of(data, layout.order_by, time_format=layout.time_format)
    groups = None if query.independent else layout.groups
    found = read_rows(data, query, groups=groups, rows=layout.rows, times=times)
    if query.sizes is not None:
        refuse_changed(query.sizes, found.public.parts)
    most, allowed = found.public.most, largest_group(model)
    if query.parts > 1 and any(model.gaussian_tuples) and not model.moves_one_way:
        most = max(found.public.sizes)
    if most > allowed:
        raise ModelError(
            f"the frame has a group with {most} rows that count, and the model is about at most"
            f" {allowed}."
        )
    answer = FrameAnswer(
        answer=query.answer(found.rows, found.totals),
        instances=sum(found.public.sizes.values()),
        values=sum(size * number for size, number in found.public.sizes.items()),
        grid=most * found.step / (query.half if query.is_ratio else 1),
        sizes=tuple(sorted(found.public.sizes.items())),
    )
    _check_rounding(answer, contributions, covered=covered_rows(1, model))
    return answer


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
    for one in found[1:]:
        refuse_changed((found[0].instances, found[0].sizes), (one.instances, one.sizes))
    return found


def exact_row_answers(
    frame: Any,
    queries: Sequence[Query],
    contributions: Sequence[Contributions],
    model: Model,
    *,
    rows: int,
) -> tuple[list[list[Answer]], Sizes]:
    """Return the exact answers of each query about every row of a wide frame, and its size."""
    found = []
    for query, part in zip(queries, contributions, strict=True):
        check_rows(query, calibrated=rows, found=1)
        found.append(row_answers(part, model, frame))
    for answers in found[1:]:
        refuse_changed(len(found[0]), len(answers))
    return found, wide_sizes(model, len(found[0]))


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
"""Calibrations that have made a release, and frames that `df.pdp` has answered about, by identity:
copies and equal ones do not count."""


def note_release(calibration: Any, *, counted: bool) -> None:
    """Warn, before noise is drawn, if no ledger counts a release together with earlier ones."""
    warn_of_second(calibration, "this calibration has made", counted=counted, stacklevel=4)
    remember_release(calibration)


def remember_release(subject: Any) -> None:
    """Remember that a release was made from a calibration, or about a frame."""
    with contextlib.suppress(TypeError):  # a frame that cannot be referred to weakly
        _made[id(subject)] = subject


def has_released(subject: Any) -> bool:
    """Whether a release was made from a calibration, or about a frame."""
    return id(subject) in _made


def warn_of_second(subject: Any, what: str, *, counted: bool, stacklevel: int) -> None:
    """Warn if there was a release before, and no ledger counts both together."""
    if not counted and has_released(subject):
        warnings.warn(
            f"{what} a release before, and no ledger counts both: two releases about the same data"
            " leak more than one, and not simply the sum. Pass ledger= to each of them, or ask"
            " pdp.People, which keeps one budget for a table. If these data are independent of the"
            " earlier ones, ignore this SecondReleaseWarning.",
            SecondReleaseWarning,
            stacklevel=stacklevel,
        )


def add_noise(
    answers: Sequence[Answer], contributions: Contributions, scale: float, kind: noise.Noise
) -> list[list[Any]]:
    """Add independent noise of a kind to every number of every answer, in one call."""
    width = len(answers[0])
    numbers = [number for answer in answers for number in answer]
    noisy: list[Any]
    if kind == "gaussian":
        noisy = list(noise.add_gaussian_to_floats([float(number) for number in numbers], scale))
        if contributions.is_integer:  # integer Gaussian noise keeps no μ; rounding it after does
            noisy = [round(number) for number in noisy]
    elif contributions.is_integer:
        noisy = list(noise.add_laplace_to_integers([int(number) for number in numbers], scale))
    else:
        noisy = list(noise.add_laplace_to_floats([float(number) for number in numbers], scale))
    return [noisy[start : start + width] for start in range(0, len(noisy), width)]


def labelled(noisy: Sequence[Any], query: Query, model: Model) -> Any:
    """Return a number as it is, and the counts of a histogram, or of parts, by category."""
    if isinstance(query, RowQuery):
        return by_part(query.values(noisy), query)
    if isinstance(query, Histogram):
        return pd.Series(noisy, index=list(query.of(model)))
    return noisy[0]


def by_part(values: Sequence[Any], query: RowQuery) -> Any:
    """Return the one answer of a question about rows, or a Series with that of every part."""
    if not query.by:
        return values[0]
    names = [column.name for column in query.by]
    cells = list(query.cells())
    if len(names) == 1:
        labels = [cell[0] for cell in cells]
        kind = object if None in labels else None  # else None would turn into NaN
        return pd.Series(values, index=pd.Index(labels, dtype=kind, name=names[0]))
    return pd.Series(values, index=pd.MultiIndex.from_tuples(cells, names=names))


def labelled_rows(
    noisy: Sequence[Sequence[Any]], query: Query, model: Model, index: pd.Index[Any] | None
) -> Any:
    """Return one answer per row: a Series, or a frame with a column per category."""
    if not isinstance(query, Histogram):
        return pd.Series([row[0] for row in noisy], index=index)
    return pd.DataFrame(list(noisy), index=index, columns=list(query.of(model)))


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
    if isinstance(query, RowQuery):
        raise QueryError("a question about rows is asked of a long frame: give value= and groups=.")
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


def cleaned_counts(noisy: pd.Series[Any], total: int | None) -> pd.Series[Any]:
    """Return counts that are not negative and, where it is public, sum to the total."""
    return noisy.clip(lower=0) if total is None else nearest_counts(noisy, total)


def nearest_counts(noisy: pd.Series[Any], total: int) -> pd.Series[Any]:
    """Return the whole, non-negative counts nearest to the noisy ones that sum to the total."""
    if not hasattr(total, "__index__") or not 0 <= int(total) < 2**62:
        raise QueryError("total must be a whole number, zero or more and below 2^62.")
    real = nearest_with_sum(noisy.to_numpy(dtype=np.float64), int(total))
    whole = np.floor(real).astype(np.int64)
    missing = int(total) - int(whole.sum())
    whole[np.argsort(whole - real, kind="stable")[:missing]] += 1
    return pd.Series(whole, index=noisy.index)
