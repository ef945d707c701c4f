"""How the rows are correlated, as a command line or a plan file says it.

One of four ways: a file with a model; a kind of model to learn from the rows; for rows in groups
an assumption (a correlation, and a public range); or, for groups, nothing at all, which means that
members may depend on each other in any way.
"""

from __future__ import annotations

import inspect
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

import narwhals as nw

import pdp_calibrate
from pdp_calibrate.core.adversary import Adversaries
from pdp_calibrate.core.model import Model
from pdp_calibrate.errors import ModelError, PdpError
from pdp_calibrate.jobs.load import load

ModelKind = Literal["table", "gaussian", "groups", "chain", "series"]


MODEL_KINDS: tuple[ModelKind, ...] = get_args(ModelKind)


Range = tuple[float, float]


_ESTIMATORS = {
    "table": "TableEstimator",
    "gaussian": "GaussianEstimator",
    "groups": "GroupEstimator",
    "chain": "MarkovChainEstimator",
    "series": "GaussianSeriesEstimator",
}


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
    time_format: str | None = None
    """How that column is written where it is text; ISO 8601 if None."""
    bounds: Mapping[str | None, Range] = field(default_factory=dict)
    """Public ranges by column; under None, for every column."""
    correlation: float | Range | None = None
    """Assumed: one common correlation in a group, or of neighbours in time, of jointly Gaussian
    values."""
    assume: str | None = None
    """``gaussian`` with a correlation of whole numbers."""
    domains: Mapping[str, tuple[Hashable, ...]] = field(default_factory=dict)
    """Public lists of possible values, by column."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Further options of the estimator: smoothing, confidence, covariance, structure, …"""

    def __post_init__(self) -> None:
        if self.file is not None and self._says_anything:
            raise ModelError(
                "the model comes from a file: leave out what would make another one (kind, bounds,"
                " correlation, …)."
            )
        if self.kind is not None and self.kind not in MODEL_KINDS:
            raise ModelError(f"a kind of model is one of {', '.join(MODEL_KINDS)}.")
        if not self.learns and (self.public or self.epsilon is not None or self.columns):
            raise ModelError(
                "public, epsilon and columns are about learning a model: say its kind, and no"
                " correlation."
            )
        if not self.learns and not self.is_long and (self.bounds or self.assumes):
            raise ModelError(
                "bounds and correlation are for a kind of model to learn, or for rows in groups:"
                " name the column of the groups, or of times."
            )
        if self.assume is not None and not self.assumes:
            raise ModelError("assume says which law a correlation is about: give both.")
        if self.time_format is not None and self.order_by is None:
            raise ModelError("a time format says how the column of times is read: name that too.")
        if self.public and self.epsilon is not None:
            raise ModelError("public rows need no differential privacy: leave one of both out.")
        if self.assumes and self.kind in ("table", "gaussian", "chain"):
            raise ModelError(f"a correlation is assumed for groups or series, not a {self.kind}.")
        if self.assumes and self.kind == "series" and self.order_by is None:
            raise ModelError("a series needs the column that orders it.")
        if self.assumes and self.kind == "groups" and self.order_by is not None:
            raise ModelError("members of groups are alike: leave the order out, or say series.")

    @property
    def _says_anything(self) -> bool:
        """Whether anything is said from which a model could be made."""
        return bool(
            self.kind or self.assumes or self.assume or self.public or self.epsilon or self.columns
            or self.bounds or self.domains or self.options
        )  # fmt: skip

    @property
    def is_long(self) -> bool:
        """Whether the rows are said to be those of a long table."""
        return self.groups is not None or self.order_by is not None

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

    @property
    def learns_from_secrets(self) -> bool:
        """Whether the model is learned from rows that are not public."""
        return self.learns and not self.public

    def learned(self, frame: Any) -> Model:
        """Learn the model from the rows."""
        estimator = self.estimator()
        rows = _selected(frame, self.columns) if self.kind in ("table", "gaussian") else frame
        model: Model = estimator.fit(rows).model_
        return model

    def estimator(self) -> Any:
        """Return what will learn the model, its options checked; no row is read."""
        estimator = getattr(pdp_calibrate, _ESTIMATORS[self.kind or ""])
        given = {key: value for key, value in self._arguments().items() if value is not None}
        known = inspect.signature(estimator).parameters
        unknown = [key for key in given if key not in known]
        if unknown:
            raise ModelError(f"a model of kind {self.kind} takes no {', '.join(unknown)}.")
        return estimator(**given)

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
        common |= {"order_by": self.order_by, "time_format": self.time_format}
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


def refuse_absent(frame: Any, columns: Iterable[Any]) -> None:
    """Raise for columns that are not there."""
    names = nw.from_native(frame).collect_schema().names()
    absent = [str(name) for name in columns if name not in names]
    if absent:
        raise ModelError(f"the rows have no column {', '.join(absent)}.")


def _selected(frame: Any, columns: Sequence[str] | None) -> Any:
    if columns is None:
        return frame
    refuse_absent(frame, columns)
    return nw.from_native(frame).select(*columns).to_native()
