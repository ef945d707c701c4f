"""From queries written as text, and settings, to queries about a model and rows of a frame."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pdp_calibrate.core.model import Model
from pdp_calibrate.core.query import Query
from pdp_calibrate.errors import ModelError, QueryError
from pdp_calibrate.jobs.grammar import Asked
from pdp_calibrate.jobs.settings import ModelSettings, refuse_absent
from pdp_calibrate.jobs.verbs import (
    Request,
    Resolved,
    columns_of,
    is_value_column,
    query_of,
    resolve,
)

_HOW_TO_SAY = (
    "say how the values are correlated: with a model file, with a kind of model to learn, or, for"
    " rows in groups, with the column of the groups and the bounds (and a correlation)."
)


_ONE_COLUMN = (
    "several answers about the same people need one model of everything asked: these are about"
    " different columns of a long table ({})."
)


def request_for(asked: Asked, settings: ModelSettings, model: Model | None) -> Request:
    """Translate a query written as text into a request about a frame."""
    columns = _columns(asked, settings, model)
    assumed = model is None
    column = columns if isinstance(columns, str) else None
    return Request(
        kind=asked.kind,
        columns=columns,
        values=asked.values,
        weights=asked.weights,
        model=model,
        bounds=settings.bounds_of(column) if assumed and asked.kind in ("sum", "mean") else None,
        correlation=settings.correlation if assumed else None,
        assume=settings.assume if assumed else None,
        domain=settings.domains.get(column or "") if assumed else None,
        groups=settings.groups,
        order_by=settings.order_by,
        time_format=settings.time_format,
    )


def resolved(
    frame: Any, asked: Sequence[Asked], settings: ModelSettings, model: Model | None
) -> list[Resolved]:
    """Settle model, query and rows of queries that are about one model."""
    requests = [request_for(one, settings, model) for one in asked]
    if model is None and any(not request.is_long for request in requests):
        raise ModelError(_HOW_TO_SAY)
    about = {one.columns for one in requests if one.is_long}
    if len(about) > 1:
        raise QueryError(_ONE_COLUMN.format(", ".join(sorted(map(str, about)))))
    for request in requests:
        _check_columns(frame, request)
    found = [resolve(frame, request) for request in requests]
    if len({one.model.digest for one in found}) > 1:
        raise QueryError(
            "sums and counts of a column need different assumptions, so they cannot share a"
            " budget: ask one by one, about different data, or give a model."
        )
    return found


def prepared(
    frame: Any,
    asked: Sequence[Asked],
    settings: ModelSettings,
    *,
    model: Model | None = None,
    otherwise: Callable[[], Model] | None = None,
) -> list[Resolved]:
    """Find the model, learning it if so asked, and settle the queries about a frame.

    `model` is the one that the settings mean, where it was learned before; `otherwise` gives the
    model, a ledger's for instance, where nothing is said about it.
    """
    named = asked[0].columns
    about = settings.about(named[0] if named else None)
    model = about.model(frame) if model is None else model
    states = about.groups is not None and (about.assumes or about.bounds)
    if model is None and otherwise is not None and not states:
        model = otherwise()
    return resolved(frame, asked, about, model)


def check_before_learning(frame: Any, asked: Sequence[Asked], settings: ModelSettings) -> None:
    """Refuse what cannot work whatever the rows hold: by the names of the columns alone."""
    named = asked[0].columns
    about = settings.about(named[0] if named else None)
    about.estimator()
    if about.kind in ("table", "gaussian"):
        columns = [*(about.columns or ()), *(name for one in asked for name in one.columns or ())]
    else:
        columns = [_columns(one, about, None) for one in asked]
        if len(set(columns)) > 1:
            raise QueryError(_ONE_COLUMN.format(", ".join(sorted(set(columns)))))
        columns += [name for name in (about.value, about.groups, about.order_by) if name]
    refuse_absent(frame, columns)


def assumed_model(frame: Any, settings: ModelSettings) -> Model:
    """Return the model that the assumptions make of the groups, or the series, of a frame."""
    if settings.value is None:
        raise ModelError("name the column of values.")
    asked = Asked(kind="sum", columns=(settings.value,))
    return resolved(frame, [asked], settings, None)[0].model


def query_about(asked: Asked, settings: ModelSettings, model: Model) -> Query:
    """Return the query that a text means for a model without data."""
    return query_of(request_for(asked, settings, model))


def frame_columns(asked: Asked, settings: ModelSettings, model: Model | None) -> dict[str, Any]:
    """Return how to read the rows of a long table, as `Calibration.release` takes it; else {}."""
    return columns_of(request_for(asked, settings, model))


def _columns(asked: Asked, settings: ModelSettings, model: Model | None) -> Any:
    """Return one column for a long table, the tuples' own names for a wide one."""
    one = asked.columns[0] if asked.columns and len(asked.columns) == 1 else None
    if settings.is_long or (model is not None and is_value_column(one, model)):
        column = one if asked.columns else settings.value
        if column is None:
            raise QueryError("rows in groups have one column of values: name it in the query.")
        if settings.value not in (None, column) and settings.learns:
            raise QueryError(f"the model is learned from {settings.value}, not from {column}.")
        return column
    return None if asked.columns is None else asked.matched(model.names if model else ())


def _check_columns(frame: Any, request: Request) -> None:
    """Refuse columns that are not there, also where only groups are looked at."""
    named = [request.columns] if request.is_long else list(request.columns or ())
    others = [request.groups, request.order_by]
    refuse_absent(frame, [*named, *(name for name in others if name is not None)])
