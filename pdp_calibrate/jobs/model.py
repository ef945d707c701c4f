"""Where the model of a job comes from: it is given, learned from the rows, or assumed."""

from __future__ import annotations

import inspect
import os
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import pdp_calibrate
from pdp_calibrate.core.composite import Blocks
from pdp_calibrate.core.model import Model, checked_domain, checked_model
from pdp_calibrate.errors import ModelError, QueryError, did_you_mean
from pdp_calibrate.families.any_dependence import Unknown
from pdp_calibrate.families.gaussian.alike import GaussianGroup, GaussianSeries
from pdp_calibrate.frames.columns import GROUPS, SERIES, check_assumed, declared_values
from pdp_calibrate.frames.open import column_name, columns_of, selected
from pdp_calibrate.frames.order import check_series
from pdp_calibrate.jobs.forms import NONE
from pdp_calibrate.jobs.grammar import Kind
from pdp_calibrate.jobs.job import Job
from pdp_calibrate.jobs.load import load

_ESTIMATORS = {
    "table": "TableEstimator",
    "gaussian": "GaussianEstimator",
    "groups": "GroupEstimator",
    "chain": "MarkovChainEstimator",
    "series": "GaussianSeriesEstimator",
}


_ONLY_OF_LEARNING = ("kind", "public", "columns", "options", "value")


def read_model(path: str | os.PathLike[str]) -> Model:
    """Read a model file, or raise if it describes something else."""
    found = load(path)
    if not isinstance(found, Model):
        raise ModelError(f"{path} describes a {type(found).__name__}, not a model.")
    return found


def given_model(job: Job) -> Model | None:
    """Return the model that the job names, or whose file it names."""
    said = job.options.get("model")
    return read_model(said) if isinstance(said, str | os.PathLike) else _checked(said)


def _checked(model: Model | None) -> Model | None:
    return None if model is None else checked_model(model)


def learned_model(job: Job, frame: Any) -> Model:
    """Learn the model from the rows."""
    columns = job.learning.get("columns")
    model: Model = estimator_of(job).fit(frame if columns is None else _only(frame, columns)).model_
    return model


def _only(frame: Any, columns: Sequence[str]) -> Any:
    refuse_absent(frame, columns)
    return selected(frame, columns)


def estimator_of(job: Job) -> Any:
    """Return what will learn the model, its options checked; no row is read."""
    from pdp_calibrate.learning.base import confidence_for

    kind = job.learning.get("kind", "")
    estimator = getattr(pdp_calibrate, _ESTIMATORS[kind])
    given = {name: value for name, value in _arguments(job).items() if value is not None}
    known = inspect.signature(estimator).parameters
    for name, value in given.items():
        if name not in known:
            hint = did_you_mean(name, list(known)) or "."
            raise ModelError(f"a model of kind {kind} takes no {name}{hint}")
        if value == NONE and (name == "confidence" or isinstance(known[name].default, float | int)):
            given[name] = None  # of text it would be the name of a column
    made = estimator(**given)
    if kind != "table" and "covariance" not in given:  # which alone may have no band
        confidence_for(made.confidence, epsilon=made.epsilon)
    return made


def _arguments(job: Job) -> dict[str, Any]:
    learning, kind, value = job.learning, job.learning.get("kind"), job.value
    common: dict[str, Any] = {
        **learning.get("options", {}),
        **{name: said for name, said in learning.items() if name not in _ONLY_OF_LEARNING},
        "source": "public" if "public" in learning else None,
    }
    if kind == "table":
        return common | {"domains": job.options.get("domains")}
    if kind == "gaussian":
        said = job.options.get("bounds")
        return common | {"bounds": said.get(None, said) if isinstance(said, Mapping) else said}
    if value is None:
        raise ModelError(f"a model of kind {kind} needs the column of values.")
    common |= {"value": value, "groups": job.options.get("groups")}
    bounds = job.bounds_of(value)
    if kind == "groups":
        if "groups" not in job.options:
            raise ModelError("a model of groups needs the column that names the group.")
        return common | {"kind": "gaussian" if bounds else "binary", "bounds": bounds}
    common |= {
        "order_by": job.options.get("order_by"),
        "time_format": job.options.get("time_format"),
    }
    if kind == "chain":
        return common | {"states": job.domain_of(value)}
    if bounds is None:
        raise ModelError(f"a series needs the public range of {value}: bounds.")
    return common | {"bounds": bounds}


def assumed_model(job: Job, kind: Kind, column: Hashable, frame: Any, sizes: Counter[int]) -> Model:
    """Make the model of all groups from what is assumed about them.

    It reads the types of columns and, for a series, its times; never a value.

    Parameters
    ----------
    job
        What is assumed.
    kind
        What is asked: counts need the domain of the column of values, sums and means its range.
    column
        The column of values.
    frame
        The rows.
    sizes
        How many groups there are of each size.
    """
    domain: Sequence[Hashable] | None = None
    if kind in ("count", "histogram"):
        if "bounds" in job.options or job.assumes:
            raise QueryError(
                "a correlation does not cover counts: leave bounds= and correlation= out for group"
                " privacy, or give a model= such as BinaryGroup."
            )
        possible = declared_values(frame, column, job.domain_of(column), option="domains")
        domain = checked_domain(possible, column)
    elif job.assumes:
        check_correlation(job, column, frame)
        if "order_by" in job.options:
            check_times_of(job, column, frame)
    kinds = [_group(job, column, size, domain) for size in sorted(sizes)]
    return Blocks(models=kinds, counts=[sizes[size] for size in sorted(sizes)])


def check_correlation(job: Job, column: Hashable, frame: Any) -> None:
    """Refuse a correlation for values of discrete type; no row is read."""
    _group(job, column, 1, None)  # refuses wrong options before anything is read
    order_by = job.options.get("order_by")
    check_assumed(
        frame,
        column,
        domain=job.domain_of(column),
        assume=job.options.get("assume"),
        instead=GROUPS if order_by is None else SERIES,
    )


def check_times_of(job: Job, column: Hashable, frame: Any) -> None:
    """Refuse times that no series has."""
    check_series(
        frame,
        column,
        by=job.options.get("groups"),
        order_by=job.options.get("order_by"),
        time_format=job.options.get("time_format"),
        every=job.options.get("every"),
    )


def _group(job: Job, column: Hashable, size: int, domain: Sequence[Hashable] | None) -> Model:
    """Make a model of one group."""
    if domain is not None:
        return Unknown(size=size, domain=domain)
    bounds, correlation = job.bounds_of(column), job.options.get("correlation")
    if bounds is None:
        raise QueryError("say which public range the values have with bounds=(lo, hi).")
    if correlation is None:
        return Unknown(size=size, bounds=bounds)
    if "order_by" not in job.options:
        return GaussianGroup(size=size, correlation=correlation, bounds=bounds)
    return GaussianSeries(length=size, correlation=correlation, bounds=bounds)


def refuse_absent(frame: Any, columns: Sequence[Hashable | None]) -> None:
    """Raise for columns that are not there; None stands for no column."""
    names = columns_of(frame)
    absent = [str(one) for one in columns if one is not None and column_name(one) not in names]
    if absent:
        raise ModelError(f"the rows have no column {', '.join(absent)}.")
