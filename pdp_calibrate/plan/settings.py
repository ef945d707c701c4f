"""How the rows hang together, as a command line or a plan file says it.

One of four ways: a file with a model; a kind of model to learn from the rows; for rows in groups
an assumption (a correlation, and a public range); or, for groups, nothing at all, which means that
members may depend on each other in any way.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, get_args

import narwhals as nw

from pdp_calibrate.adversaries import Adversaries
from pdp_calibrate.errors import ModelError, PdpError, QueryError
from pdp_calibrate.models import Model
from pdp_calibrate.queries import Query
from pdp_calibrate.queries.grammar import Asked
from pdp_calibrate.schema import load
from pdp_calibrate.verbs import Request, Resolved, is_value_column, query_of, resolve

ModelKind = Literal["table", "gaussian", "groups", "chain", "series"]
MODEL_KINDS: tuple[ModelKind, ...] = get_args(ModelKind)
Range = tuple[float, float]

_ESTIMATORS = {
    "table": ("table", "TableEstimator"),
    "gaussian": ("gaussian", "GaussianEstimator"),
    "groups": ("group", "GroupEstimator"),
    "chain": ("markov", "MarkovChainEstimator"),
    "series": ("gaussian_series", "GaussianSeriesEstimator"),
}
HOW_TO_SAY = (
    "say how the values hang together: with a model file, with a kind of model to learn, or, for"
    " rows in groups, with the column of the groups and the bounds (and a correlation)."
)


@dataclass(frozen=True, kw_only=True)
class ModelSettings:
    """Where a model comes from, and how to read the rows with it."""

    file: Path | None = None
    """A model in JSON."""
    kind: ModelKind | None = None
    """Which kind of model to learn from the rows."""
    public: bool = False
    """Whether the rows that it is learned from are public."""
    epsilon: float | None = None
    """Learn it under differential privacy with this budget."""
    columns: tuple[str, ...] | None = None
    """For a table or Gaussian, the columns that are tuples; every column by default."""
    value: str | None = None
    """For rows in groups, the column of values; by default the one that is asked about."""
    groups: str | None = None
    """The column that tells groups (households, patients, meters) apart."""
    order_by: str | None = None
    """The column that orders the rows of a group."""
    bounds: Mapping[str | None, Range] = field(default_factory=dict)
    """Public ranges by column; under None, for every column."""
    correlation: float | Range | None = None
    """Assumed: one common correlation in a group, or of neighbours in time."""
    domains: Mapping[str, tuple[Hashable, ...]] = field(default_factory=dict)
    """Public lists of possible values, by column."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Further options of the estimator: smoothing, confidence, covariance, structure, …"""

    def __post_init__(self) -> None:
        if self.file is not None and (self.kind is not None or self.correlation is not None):
            raise ModelError("the model comes from a file: leave its kind and correlation out.")
        if self.kind is not None and self.kind not in MODEL_KINDS:
            raise ModelError(f"a kind of model is one of {', '.join(MODEL_KINDS)}.")
        if self.public and self.epsilon is not None:
            raise ModelError("public rows need no differential privacy: leave one of both out.")
        if self.assumes and self.kind in ("table", "gaussian", "chain"):
            raise ModelError(f"a correlation is assumed for groups or series, not a {self.kind}.")
        if self.assumes and self.kind == "series" and self.order_by is None:
            raise ModelError("a series needs the column that orders it.")
        if self.assumes and self.kind == "groups" and self.order_by is not None:
            raise ModelError("members of groups are alike: leave the order out, or say series.")

    @property
    def assumes(self) -> bool:
        """Whether the model is stated and not learned."""
        return self.correlation is not None

    @property
    def learns(self) -> bool:
        """Whether the model is learned from the rows."""
        return self.kind is not None and not self.assumes

    def about(self, column: str | None) -> ModelSettings:
        """Return the settings for this column of values."""
        return self if self.value is not None else replace(self, value=column)

    def bounds_of(self, column: str | None) -> Range | None:
        """Return the public range of a column."""
        return self.bounds.get(column, self.bounds.get(None))

    def model(self, frame: Any) -> Model | None:
        """Return the model that is given or learned; None where it is assumed."""
        if self.file is not None:
            return read_model(self.file)
        if not self.learns:
            return None
        return self.learned(frame)

    def learned(self, frame: Any) -> Model:
        """Learn the model from the rows."""
        module, name = _ESTIMATORS[self.kind or ""]
        estimator = getattr(import_module(f"pdp_calibrate.estimators.{module}"), name)
        given = {key: value for key, value in self._arguments().items() if value is not None}
        known = inspect.signature(estimator).parameters
        unknown = [key for key in given if key not in known]
        if unknown:
            raise ModelError(f"a model of kind {self.kind} takes no {', '.join(unknown)}.")
        rows = _selected(frame, self.columns) if self.kind in ("table", "gaussian") else frame
        model: Model = estimator(**given).fit(rows).model_
        return model

    def _arguments(self) -> dict[str, Any]:
        common = dict(self.options) | {
            "source": "public" if self.public else None,
            "epsilon": self.epsilon,
        }
        if self.kind == "table":
            return common | {"domains": dict(self.domains) or None}
        if self.kind == "gaussian":
            return common | {"bounds": self._gaussian_bounds()}
        if self.value is None:
            raise ModelError(f"a model of kind {self.kind} needs the column of values.")
        common |= {"value": self.value, "by": self.groups}
        if self.kind == "groups":
            if self.groups is None:
                raise ModelError("a model of groups needs the column that tells them apart.")
            bounds = self.bounds_of(self.value)
            return common | {"kind": "gaussian" if bounds else "binary", "bounds": bounds}
        common |= {"order_by": self.order_by}
        if self.kind == "chain":
            return common | {"states": self.domains.get(self.value)}
        if self.bounds_of(self.value) is None:
            raise ModelError(f"a series needs the public range of {self.value}: bounds.")
        return common | {"bounds": self.bounds_of(self.value)}

    def _gaussian_bounds(self) -> Any:
        return self.bounds.get(None) if None in self.bounds else (dict(self.bounds) or None)


def read_model(path: Path) -> Model:
    """Read a model file, or raise if it describes something else."""
    found = load(path)
    if not isinstance(found, Model):
        raise ModelError(f"{path} describes a {type(found).__name__}, not a model.")
    return found


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
        groups=settings.groups,
        order_by=settings.order_by,
    )


def resolved(
    frame: Any, asked: Sequence[Asked], settings: ModelSettings, model: Model | None
) -> list[Resolved]:
    """Settle model, query and rows of queries that are about one model."""
    requests = [request_for(one, settings, model) for one in asked]
    if model is None and any(not request.is_long for request in requests):
        raise ModelError(HOW_TO_SAY)
    about = {one.columns for one in requests if one.is_long}
    if len(about) > 1:
        raise QueryError(
            "several answers about the same people need one model of everything asked: these are"
            f" about different columns of a long table ({', '.join(sorted(map(str, about)))})."
        )
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
    otherwise: Callable[[], Model] | None = None,
) -> list[Resolved]:
    """Find the model, learning it if so asked, and settle the queries about a frame.

    `otherwise` gives the model, a ledger's for instance, where nothing is said about it.
    """
    named = asked[0].columns
    about = settings.about(named[0] if named else None)
    model = about.model(frame)
    states = about.groups is not None and (about.assumes or about.bounds)
    if model is None and otherwise is not None and not states:
        model = otherwise()
    return resolved(frame, asked, about, model)


def assumed_model(frame: Any, settings: ModelSettings) -> Model:
    """Return the model that the assumptions make of the groups, or the series, of a frame."""
    if settings.value is None:
        raise ModelError("name the column of values.")
    asked = Asked(kind="sum", columns=(settings.value,))
    return resolved(frame, [asked], settings, None)[0].model


def query_about(asked: Asked, settings: ModelSettings, model: Model) -> Query:
    """Return the query that a text means for a model without data."""
    return query_of(request_for(asked, settings, model))


def value_column(asked: Asked, settings: ModelSettings, model: Model | None) -> str | None:
    """Return the column of values if the rows are those of a long table, else None."""
    request = request_for(asked, settings, model)
    return request.columns if request.is_long else None


def adversaries_from(text: str) -> Adversaries:
    """Read who may attack.

    Examples
    --------
    >>> adversaries_from("weakest")
    Adversaries.weakest()
    >>> adversaries_from("knowing:1:3"), adversaries_from("knowing::2")
    (Adversaries.knowing(at_least=1, at_most=3), Adversaries.knowing(at_least=0, at_most=2))
    >>> adversaries_from("exactly:child:mother,father")
    Adversaries.exactly('child', known=['mother', 'father'])
    """
    name, *rest = text.split(":")
    if name in ("all", "weakest", "strongest") and not rest:
        made: Adversaries = getattr(Adversaries, name)()
        return made
    if name == "knowing" and len(rest) == 2:
        least, most = rest
        if all(limit.isdigit() or not limit for limit in rest):
            return Adversaries.knowing(
                at_least=int(least or 0), at_most=int(most) if most else None
            )
    if name == "exactly" and rest and len(rest) <= 2:
        return Adversaries.exactly(rest[0], known=rest[1].split(",") if rest[1:] else ())
    raise PdpError(
        "adversaries are all, weakest, strongest, knowing:AT_LEAST:AT_MOST or"
        f" exactly:TARGET:NAME,NAME; got {text!r}."
    )


def _columns(asked: Asked, settings: ModelSettings, model: Model | None) -> Any:
    """Return one column for a long table, the tuples' own names for a wide one."""
    one = asked.columns[0] if asked.columns and len(asked.columns) == 1 else None
    is_long = settings.groups is not None or settings.order_by is not None
    if is_long or (model is not None and is_value_column(one, model)):
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
    _refuse_absent(frame, [*named, *(name for name in others if name is not None)])


def _refuse_absent(frame: Any, columns: Iterable[Any]) -> None:
    names = nw.from_native(frame).collect_schema().names()
    absent = [str(name) for name in columns if name not in names]
    if absent:
        raise ModelError(f"the rows have no column {', '.join(absent)}.")


def _selected(frame: Any, columns: Sequence[str] | None) -> Any:
    if columns is None:
        return frame
    _refuse_absent(frame, columns)
    return nw.from_native(frame).select(*columns).to_native()
