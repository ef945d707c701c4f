"""What every model has: named tuples, a provenance, equality by value, JSON.

This module also holds the checks that models share (names, domains, bounds, probability laws), the
warning about models learned from private rows, and `TableLimit`, which decides for all families
which models are small enough to be written out as a joint table.
"""

from __future__ import annotations

import abc
import copy
import functools
import inspect
import itertools
import json
import math
import warnings
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self, cast, get_args

import numpy as np
import numpy.typing as npt

from pdp_calibrate.arrays import (
    FloatArray,
    checked_positive,
    damage_refused,
    digest_of,
    frozen_array,
    plain,
)
from pdp_calibrate.core.coverage import Coverage, together
from pdp_calibrate.errors import ModelError, PrivacyLeakWarning, UnsupportedQueryError

if TYPE_CHECKING:
    from pdp_calibrate.core.problem import Composer, Engine, Problem
    from pdp_calibrate.core.schema_parts import Schema

Domain = tuple[Hashable, ...]
"""The values that a tuple can take; for a continuous tuple the two ends of its public range."""

Provenance = Literal["assumed", "public", "dp", "private"]

SCHEMA = "pdp-calibrate/1"
FORMAT = 2
"""The version of what is written. Version 1, which 0.1.0 wrote, did not say so."""


STORED_CELLS = 10_000
"""In JSON, tables of more cells are identified by a digest, in place of their cells."""


_PROVENANCES: tuple[Provenance, ...] = get_args(Provenance)  # from harmless to secret


class Model(abc.ABC):
    """A distribution θ of the tuples, or a set Θ of them. Frozen data; no search lives here.

    Attributes
    ----------
    names : tuple
        One name per tuple.
    provenance : str
        Where the numbers come from: ``assumed``, ``public``, ``dp`` (learned under differential
        privacy) or ``private`` (learned from secret rows without it).
    """

    names: tuple[Hashable, ...]
    provenance: Provenance
    _estimation_epsilon: float | None = None
    _coverage: Coverage | None = None

    _families: ClassVar[dict[str, type[Model]]] = {}

    defined_by: ClassVar[tuple[str, ...]] = ()
    """The fields that define the model apart from names and provenance: arrays, numbers, values
    and inner models. Equality, the digest and JSON follow from them, in this order."""
    cells: ClassVar[str | None] = None
    """The field, if any, that JSON replaces by a digest if it has more than 10⁴ numbers."""
    engine: ClassVar[str | type[Engine] | None] = None
    """The engine that searches models of this family: ``"module:Class"``, or the class itself."""
    gaussian_noise_engine: ClassVar[str | type[Engine] | None] = None
    """The same for Gaussian noise, bracketing μ; None if only Laplace noise is supported."""
    composer: ClassVar[str | type[Composer] | None] = None
    """The bounds of this family on several releases, named as engines are; None if it has none."""
    dependence: ClassVar[str] = ""
    """The kind of dependence that the family allows, in one line; see `in_words`."""
    at_group_privacy: ClassVar[str | None] = None
    """What is said where it needs the noise of group privacy: why, and what helps; None if nothing.
    """
    json_fields: ClassVar[Mapping[str, Schema]] = {}
    """The JSON Schema of the fields in `defined_by`; a field without one may have any form."""
    exact_knowledge_is_worst: ClassVar[bool] = False
    """Whether knowing entries with Gaussian error reveals no more than knowing them exactly."""
    is_endless: bool = False
    """Whether it has no end: its one tuple then represents the record of any step."""

    def __init_subclass__(cls) -> None:
        if cls.defined_by:  # others are shared bases, not families
            Model._families[cls.__name__] = cls

    @staticmethod
    def named(kind: object) -> type[Model]:
        """Return the class of models of this name."""
        if not isinstance(kind, str) or kind not in Model._families:
            raise ModelError(f"unknown type of model {kind!r}.")
        return Model._families[kind]

    @property
    @abc.abstractmethod
    def domains(self) -> tuple[Domain, ...]:
        """The values that each tuple can take, in the order of `names`."""

    is_gaussian: ClassVar[bool] = False
    """Whether the model itself says that its tuples are Gaussian."""

    @property
    def is_continuous(self) -> bool:
        """Whether the tuples are real numbers; `domains` then holds the ends of their ranges."""
        return False

    @property
    def continuous_tuples(self) -> tuple[bool, ...]:
        """Whether each tuple is continuous."""
        return (self.is_continuous,) * len(self.names)

    @property
    def gaussian_tuples(self) -> tuple[bool, ...]:
        """Whether each tuple is assumed to be Gaussian."""
        if not self.inner_models:
            return (self.is_gaussian,) * len(self.names)
        flags = (inner.gaussian_tuples for inner in self.inner_models)
        return tuple(any(one) for one in zip(*flags, strict=True))

    @property
    def assuming(self) -> str | None:
        """The law that the guarantee assumes for the values; None if the model is the law."""
        return "jointly Gaussian values" if any(self.gaussian_tuples) else None

    @property
    def copies(self) -> tuple[int, ...]:
        """How many independent copies of each named tuple the database holds."""
        return (1,) * len(self.names)

    def place_of(self, name: Hashable) -> int:
        """Return the position of a tuple in the database: those with names, then further copies.

        ``(name, k)`` is the k-th further copy of a named tuple, from 1 on.
        """
        if name not in self.names and isinstance(name, tuple) and len(name) == 2:
            first, further = name
            if first in self.names and isinstance(further, int):
                own, copies = self.names.index(first), self.copies
                if 1 <= further < copies[own]:
                    before = sum(min(number, further) for number in copies)
                    return before + sum(number > further for number in copies[:own])
        return position_of(name, self.names)

    def name_at(self, place: int) -> Hashable:
        """Return the name of a position in the database: see `place_of`."""
        start, there = 0, list(range(len(self.names)))
        for further in itertools.count():
            if place - start < len(there):
                name = self.names[there[place - start]]
                return (name, further) if further else name
            start += len(there)
            there = [own for own in there if self.copies[own] > further + 1]
            if not there:
                break
        raise IndexError(f"the database has {start} tuples, and no position {place}.")

    @property
    def instances(self) -> int:
        """How many independent groups of tuples the database holds."""
        return 1

    @property
    def is_anonymous(self) -> bool:
        """Whether the tuples carry only default names: x1 … xn, or their positions."""
        size = len(self.names)
        return self.names in (default_names(size), tuple(range(size)))

    @property
    def runs_along_time(self) -> bool:
        """Whether it describes how a value depends on the one before."""
        return any(inner.runs_along_time for inner in self.inner_models)

    @property
    def lasting(self) -> float:
        """The most by which an error in every step's answer is multiplied for any one step."""
        return 1.0

    @property
    def only_additive(self) -> bool:
        """Whether it is a set given by bounds, for which only additive answers are bounded."""
        return any(inner.only_additive for inner in self.inner_models)

    @property
    def covers_any_dependence(self) -> bool:
        """Whether it contains every distribution of the tuples of a group: nothing is assumed."""
        return self._throughout(lambda inner: inner.covers_any_dependence)

    @property
    def moves_one_way(self) -> bool:
        """Whether no value is expected to fall when another rises, whatever is known."""
        return self._throughout(lambda inner: inner.moves_one_way)

    @property
    def covers_subsets(self) -> bool:
        """Whether what is proved for a clamped total holds for the sum of some of its tuples."""
        return self._throughout(lambda inner: inner.covers_subsets)

    @property
    def covers_parts(self) -> bool:
        """Whether what is proved for a clamped total holds for sums of its parts, all released.

        That is so where the proof moves every value u by at most some Δ_u and charges Σ|Δ_u|.
        """
        return self._throughout(lambda inner: inner.covers_parts)

    @property
    def covers_any_answer(self) -> bool:
        """Whether proofs use only how far a single tuple can move the answer."""
        return self._throughout(lambda inner: inner.covers_any_answer)

    @property
    def certainty(self) -> str | None:
        """How certain it is that the truth is in the set, as a sentence; None if not stated."""
        said = {inner.digest: inner.certainty for inner in self.inner_models if inner.certainty}
        together = ["The probabilities of several samples add up."] if len(said) > 1 else []
        return " ".join([*dict.fromkeys(filter(None, said.values())), *together]) or None

    @property
    def inner_models(self) -> tuple[Model, ...]:
        """The models that this one is made of."""
        return ()

    def _throughout(self, holds: Callable[[Model], bool]) -> bool:
        """Whether something holds for every model that this one is made of, and there are some."""
        return bool(self.inner_models) and all(map(holds, self.inner_models))

    def parts_of(self, problem: Problem, *, expand: bool) -> list[Problem]:
        """Return problems whose largest leakage is that of `problem`, which is about this model.

        Most models are searched as a whole. See `core.problem.split` for `expand`.
        """
        del expand
        return [problem]

    def dominates(self, _problem: Problem, _smaller: Problem) -> bool:
        """Whether nobody learns more in `smaller` than in `problem`, which is about this model."""
        return False

    @property
    def covers_hints(self) -> bool:
        """Whether adversaries may also hold independent hints about single tuples."""
        return False

    def in_words(self) -> str:
        """Describe the kind of dependence that the model allows."""
        kind = self.dependence or type(self).__name__
        return f"{kind}, step after step without an end" if self.is_endless else kind

    def pearson_matrix(self) -> FloatArray | None:
        """Return the correlations of all pairs of tuples; None where they do not exist."""
        return None

    def coupled_pairs(self) -> Mapping[tuple[int, int], float] | None:
        """Return how strongly pairs k < m depend on each other given the rest; None if no network.

        Pairs that are left out, and those of strength 0, are not joined where it is drawn.
        """
        return None

    def normal_marginals(self) -> tuple[FloatArray, FloatArray] | None:
        """Return means and standard deviations of normal tuples; None where they are not stated."""
        return None

    def beginning(self, _number: int) -> Model:
        """Return the model of the first tuples alone, where all others are like them."""
        return self

    def draws(
        self, number: int, *, given: Mapping[int, Any], target: int, rng: np.random.Generator
    ) -> FloatArray:
        """Draw databases for an audit: a row each, a column per tuple.

        Columns of discrete tuples hold positions in the domain, of continuous ones the values.

        Parameters
        ----------
        number
            How many.
        given
            Values of some tuples, by position: what the adversary knows, and the secret.
        target
            The position of the secret; a set of laws draws from one that is bad for it.
        rng
            The source of randomness.
        """
        del number, given, target, rng
        raise UnsupportedQueryError(f"no audit draws databases of {type(self).__name__}.")

    def _places(self, given: Mapping[int, Any]) -> dict[int, int]:
        """Return values as positions in the domains."""
        return {axis: self.domains[axis].index(value) for axis, value in given.items()}

    @property
    def estimation_epsilon(self) -> float | None:
        """The differential-privacy budget spent on learning the numbers; None if there is none.

        It protects whole draws (a row, a household, a series), so it also bounds what the numbers
        reveal about any single tuple, however the tuples of a draw are correlated. A model made of
        others spends what they spent together, unless it was learned as a whole.
        """
        if self._estimation_epsilon is not None:
            return self._estimation_epsilon
        # By identity: two fits that happen to be equal were still two releases.
        learned = {id(model): model for model in self.inner_models if model.provenance == "dp"}
        budgets = [model.estimation_epsilon for model in learned.values()]
        if None in budgets:
            return None  # if one inner model has none, the total is not known
        if len(budgets) < 2:
            return budgets[0] if budgets else None
        return math.nextafter(math.fsum(filter(None, budgets)), math.inf)

    def learned_with(self, epsilon: float) -> Self:
        """Return the same model, marked as learned by an ε-DP mechanism in whole draws.

        Estimators with ``epsilon=`` do this. Do it by hand for a model that another library
        learned, if its mechanism is ε-DP (pure, δ = 0) for substituting a whole draw.

        Examples
        --------
        >>> from pdp_calibrate.core.table import JointTable
        >>> table = JointTable(probabilities=[[0.3, 0.2], [0.2, 0.3]], domains=[[0, 1], [0, 1]])
        >>> table.learned_with(0.5).provenance, table.learned_with(0.5).estimation_epsilon
        ('dp', 0.5)
        """
        budget = checked_positive(epsilon, "epsilon")
        if self.provenance == "private":
            raise ModelError("a model learned from private rows without noise has no epsilon.")
        twin = copy.copy(self)
        twin.__dict__.pop("digest", None)
        object.__setattr__(twin, "_estimation_epsilon", budget)
        object.__setattr__(twin, "provenance", "dp")
        return twin

    @property
    def coverage(self) -> Coverage | None:
        """How it was learned, and what is covered of its error; None if no part was learned.

        Estimators say so. A model made of others covers what they cover together, unless it was
        learned as a whole.
        """
        if self._coverage is not None:
            return self._coverage
        return together(inner.coverage for inner in self.inner_models)

    @property
    def covering(self) -> Model | None:
        """For a law that is a point estimate, the set that covers its error; None if unknown."""
        return None if self._coverage is None else self._coverage.upper

    def with_coverage(self, coverage: Coverage) -> Self:
        """Return the same model, marked with what is known about its error, as estimators do."""
        twin = copy.copy(self)
        twin.__dict__.pop("digest", None)
        object.__setattr__(twin, "_coverage", coverage)
        return twin

    def marked_like(self, source: Model) -> Self:
        """Return the same model, marked as learned as another one was: budget and coverage."""
        spent, coverage = source.estimation_epsilon, source.coverage
        twin = self if spent is None else self.learned_with(spent)
        return twin if coverage is None else twin.with_coverage(coverage)

    def _settle(self, *, provenance: str, **fields: object) -> None:
        """Set all fields of a frozen model, once, when it is made."""
        self.__dict__.update(fields, provenance=checked_provenance(provenance))

    def _settle_numbered(
        self, names: Iterable[Hashable] | None, size: int, provenance: str, /, **fields: object
    ) -> None:
        """Set all fields of a model whose tuples are called 0 … size − 1 by default."""
        self._settle(names=numbered_names(names, size), provenance=provenance, **fields)

    def content(self) -> tuple[object, ...]:
        """Return what defines the model, apart from names and provenance, to compare models."""
        return tuple(part for field in self.defined_by for part in _hashed(getattr(self, field)))

    def parameters(self) -> dict[str, Any]:
        """Return what defines the model, ready for JSON."""
        stored: dict[str, Any] = {}
        for field in self.defined_by:
            value = getattr(self, field)
            if field == self.cells and value.size > STORED_CELLS:
                stored["digest"] = self.digest
            else:
                stored[field] = json_value(value)
        return stored

    @classmethod
    def from_parameters(cls, described: Mapping[str, Any]) -> Self:
        """Undo `to_dict`, by passing what it holds to the constructor."""
        names = tuple(names_of(described))
        held = {"size": len(names), "length": len(names), **described, "names": names}
        given = {}
        for argument in inspect.signature(cls).parameters:
            if argument in held:
                given[argument] = _stored(held[argument])
            elif argument == cls.cells and "digest" in held:
                raise _WithheldError
            elif argument in cls.defined_by:
                field_of(held, argument)
        make: Any = cls
        return cast("Self", make(**given))

    @functools.cached_property
    def digest(self) -> str:
        """SHA-256 of everything that defines the model."""
        stated = self._estimation_epsilon
        learned: tuple[object, ...] = ()
        if stated is not None:
            learned += (("estimation_epsilon", stated),)
        if self._coverage is not None:
            learned += (self._coverage.content(),)
        return digest_of(
            type(self).__name__, self.names, self.provenance, *self.content(), *learned
        )

    def to_dict(self) -> dict[str, Any]:
        """Describe the model for JSON; a private model withholds its parameters."""
        described: dict[str, Any] = {
            **header(type(self).__name__),
            "names": json_value(self.names),
            "provenance": self.provenance,
        }
        if self.provenance == "private":
            return described
        if self._estimation_epsilon is not None:
            described["estimation_epsilon"] = self._estimation_epsilon
        if self._coverage is not None:
            described["coverage"] = self._coverage.to_dict()
        return described | self.parameters()

    @staticmethod
    @damage_refused("the description of a model", kind=ModelError)
    def from_dict(described: Mapping[str, Any]) -> Model | None:
        """Rebuild a model from its JSON description; None where it withholds the parameters."""
        if is_later(described):
            raise ModelError(f"the description of a model {LATER}")
        family = model_named(field_of(described, "type"))
        if field_of(described, "provenance") == "private":
            return None
        try:
            model = family.from_parameters(described)
        except _WithheldError:
            return None
        epsilon, coverage = described.get("estimation_epsilon"), described.get("coverage")
        if epsilon is not None:
            model = model.learned_with(epsilon)
        return model if coverage is None else model.with_coverage(Coverage.from_dict(coverage))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Model):
            return NotImplemented
        return self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)


def model_named(kind: str) -> type[Model]:
    """Return the class of models of this name, loading its family."""
    homes: dict[str, str] = import_module("pdp_calibrate.families").MODELS
    if kind in homes:
        import_module(homes[kind])
    return Model.named(kind)


def header(kind: str) -> dict[str, Any]:
    """Return what every JSON object of this library begins with."""
    return {"schema": SCHEMA, "version": FORMAT, "type": kind}


def is_later(described: Mapping[str, Any]) -> bool:
    """Whether a JSON object was written in a later format than this version knows."""
    version = described.get("version", 1)
    return not isinstance(version, int) or version > FORMAT


LATER = "was written by a later version of pdp-calibrate: update it to read this."


def default_names(size: int) -> tuple[str, ...]:
    """Return ("x1", …, "xn")."""
    return tuple(f"x{position}" for position in range(1, size + 1))


def checked_names(names: Iterable[Hashable] | None, size: int) -> tuple[Hashable, ...]:
    """Return the names, or the default ones; refuse duplicates and wrong lengths."""
    if names is None:
        return default_names(size)
    found = tuple(names)
    if any(issubclass(kind, np.generic) for kind in set(map(type, found))):
        found = tuple(map(plain, found))
    if len(found) != size:
        raise ModelError(f"names must be one per tuple ({size}), got {len(found)}.")
    if len(set(found)) != size:
        twice = sorted({str(name) for name in found if found.count(name) > 1})
        raise ModelError(f"names must differ from each other, got {', '.join(twice)} twice.")
    return found


def checked_provenance(provenance: str) -> Provenance:
    """Return a known provenance or raise."""
    if provenance not in _PROVENANCES:
        raise ModelError(f"provenance must be one of {_PROVENANCES}, got {provenance!r}.")
    return provenance


def most_secret(models: Iterable[Model]) -> Provenance:
    """Return the most secret provenance among the models."""
    return max((model.provenance for model in models), key=_PROVENANCES.index)


def checked_domain(values: Iterable[Hashable], name: Hashable) -> Domain:
    """Return the values as plain Python objects; refuse empty domains, duplicates and NaN."""
    try:
        domain = tuple(plain(value) for value in values)
        distinct = len(set(domain))
    except TypeError as error:
        raise ModelError(f"the domain of {name} must be a list of hashable values.") from error
    if not domain:
        raise ModelError(f"the domain of {name} must have at least one value, got none.")
    if any(isinstance(value, float) and not np.isfinite(value) for value in domain):
        raise ModelError(f"the domain of {name} must not contain NaN or infinity.")
    if distinct != len(domain):
        raise ModelError(f"the domain of {name} must not repeat a value.")
    return domain


def named_domains(
    domains: Iterable[Iterable[Hashable]], names: Iterable[Hashable] | None
) -> tuple[tuple[Hashable, ...], tuple[Domain, ...]]:
    """Return the names and the domains, one of each per tuple, all checked."""
    given = tuple(domains)
    found = checked_names(names, len(given))
    return found, tuple(map(checked_domain, given, found))


class _WithheldError(Exception):
    """A description withholds some of the numbers that define the model."""


def _hashed(value: object) -> Iterable[object]:
    """Yield what a digest is made of: inner models by their digests, arrays one by one."""
    if isinstance(value, tuple) and value and isinstance(value[0], Model | np.ndarray):
        for part in value:
            yield from _hashed(part)
    else:
        yield value.digest if isinstance(value, Model) else value


def json_value(value: object) -> Any:
    """Return a field, a name or a domain value as JSON can hold it; tuples become lists."""
    if isinstance(value, tuple):
        return [json_value(part) for part in value]
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Model):
        return value.to_dict()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise ModelError(
        f"JSON holds only text, numbers, booleans and None, got {type(value).__name__}."
        " Rename the tuple or recode the domain."
    )


def _stored(value: Any) -> Any:
    """Undo `json_value`."""
    if isinstance(value, list):
        return tuple(_stored(part) if isinstance(part, list | dict) else part for part in value)
    if isinstance(value, Mapping):
        value = Model.from_dict(value)
        if value is None:
            raise _WithheldError
    return value


def from_json_value(value: Any) -> Hashable:
    """Undo `json_value` for a name or a value of a domain."""
    if isinstance(value, list):
        return tuple(map(from_json_value, value))
    return cast("Hashable", value)


def values_of(described: Mapping[str, Any], key: str) -> list[Any]:
    """Read a list of names, values or domains of a JSON object."""
    values = field_of(described, key)
    if list not in set(map(type, values)):
        return [*values]
    return [from_json_value(value) if isinstance(value, list) else value for value in values]


def names_of(described: Mapping[str, Any]) -> list[Hashable]:
    """Read the names of a JSON object."""
    return values_of(described, "names")


def field_of(described: Mapping[str, Any], key: str) -> Any:
    """Read a field of a JSON object, or say that it is missing."""
    if key not in described:
        raise ModelError(f"the JSON object lacks {json.dumps(key)}.")
    return described[key]


def checked_model(model: object) -> Model:
    """Return the model, or raise with what was given instead; for an estimator, name `model_`."""
    if isinstance(model, Model):
        return model
    if hasattr(type(model), "fit"):
        _ = model.model_  # type: ignore[attr-defined]  # one that was never fitted says so itself
        raise ModelError(f"a model is needed, got {type(model).__name__}: pass its model_.")
    raise ModelError(f"a model is needed, got {type(model).__name__}.")


def position_of(name: Hashable, names: Sequence[Hashable]) -> int:
    """Return where a name stands, or raise with the names there are."""
    if name not in names:
        raise ModelError(f"unknown tuple {name!r}; the model has {', '.join(map(str, names))}.")
    return names.index(name)


_SMALLEST_NORMAL = float(np.finfo(np.float64).tiny)

_MOST_TUPLES = 10**9  # every tuple has a name in memory


def checked_laws(values: npt.ArrayLike, what: str) -> FloatArray:
    """Return a read-only array whose last axis is a probability law, or raise."""
    laws = frozen_array(values, what)
    check_probabilities(laws, what)
    if laws.ndim == 0 or laws.shape[-1] == 0:
        raise ModelError(f"{what} must be a list of probabilities, got a single number or none.")
    totals = laws.sum(axis=-1)
    off = np.abs(totals - 1)
    if off.max(initial=0.0) > 1e-9:
        furthest = totals.flat[off.argmax()]
        rows = "each row of " if laws.ndim > 1 else ""
        raise ModelError(f"{rows}{what} must sum to 1, got {furthest}.")
    return laws


def check_probabilities(values: FloatArray, what: str) -> None:
    """Raise for numbers that are negative, or positive but below the normal floats."""
    if values.min(initial=_SMALLEST_NORMAL) >= _SMALLEST_NORMAL:
        return
    if np.any(values < 0):
        raise ModelError(f"{what} must not be negative, got {values.min()}.")
    if np.any((values > 0) & (values < _SMALLEST_NORMAL)):
        # Below the normal range a float keeps too few digits to certify a ratio.
        raise ModelError(f"{what} must be 0 or at least {_SMALLEST_NORMAL:.2g}.")


def checked_size(size: object, what: str) -> int:
    """Return a positive whole number, or raise."""
    if isinstance(size, bool) or not hasattr(size, "__index__") or int(size) < 1:
        raise ModelError(f"{what} must be a positive whole number, got {size!r}.")
    if int(size) > _MOST_TUPLES:
        raise ModelError(f"{what} must be at most {_MOST_TUPLES:,}.")
    return int(size)


def numbered_names(names: Iterable[Hashable] | None, size: int) -> tuple[Hashable, ...]:
    """Return the names, by default the positions 0 … size − 1."""
    return tuple(range(size)) if names is None else checked_names(names, size)


_WORDS = (
    "the model was learned from private rows without differential privacy, and the {what} depends"
    " on it: publishing the {what}, or a release made with it, may reveal something about those"
    " rows. Learn the model from public or earlier data, or state it as an assumption."
)

PRIVATE_MODEL = _WORDS.format(what="scale")


def warn_if_private(model: Model, what: str) -> None:
    """Warn once that what is about to be computed depends on private rows.

    Parameters
    ----------
    model
        What it is computed from; anything but a model is refused.
    what
        The number that the caller, to whose own caller the warning points, returns: a scale, a
        budget, a bound.
    """
    if checked_model(model).provenance == "private":
        warnings.warn(_WORDS.format(what=what), PrivacyLeakWarning, stacklevel=3)


def public_structure(model: Model) -> dict[str, Any]:
    """Return what may be stored about a private model, to distinguish models of other shapes.

    Its family, how many values each tuple can take, and how many copies of each tuple there are:
    all of that counts as public. It holds nothing that was learned from the values, nor a digest of
    it: somebody who guesses the parameters of a small model could confirm the guess with a digest.

    Examples
    --------
    >>> from pdp_calibrate.families.chain.model import MarkovChain
    >>> chain = MarkovChain(transition=[[0.7, 0.3], [0.4, 0.6]], length=365, provenance="private")
    >>> public_structure(chain)
    {'family': 'MarkovChain', 'domain_sizes': [[2, 365]], 'real': [[False, 365]], \
'copies': [[1, 365]]}
    """
    return {
        "family": type(model).__name__,
        "domain_sizes": _runs(len(domain) for domain in model.domains),
        "real": _runs(model.continuous_tuples),
        "copies": _runs(model.copies),
        **({"endless": True} if model.is_endless else {}),
    }


def _runs(values: Iterable[int]) -> list[list[int]]:
    """Write equal values that follow each other as [value, how many]."""
    return [[value, len(list(run))] for value, run in itertools.groupby(values)]


FOR_EVER: dict[str, Any] = {
    "length": None,
    "is_endless": True,
    "engine": "pdp_calibrate.families.stream.search:StreamEngine",
    "gaussian_noise_engine": None,
    "composer": "pdp_calibrate.families.stream.search:StreamComposer",
}
"""What a model along time without an end uses in place of its family's own; see `Model`."""


def refuse_endless(models: Iterable[Model], what: str) -> None:
    """Raise where something is made of models that must have an end."""
    if any(checked_model(model).is_endless for model in models):
        raise ModelError(f"{what} needs a model with an end: give it a length.")


Bounds = tuple[float, float] | Sequence[tuple[float, float]]
"""One public range for every tuple, or one per tuple."""


def checked_bounds(bounds: Bounds, size: int) -> tuple[tuple[float, float], ...]:
    """Return one finite, increasing range per tuple, or raise."""
    try:
        array = np.array(bounds, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ModelError("bounds must be (lo, hi) or one such pair per tuple.") from error
    shared = array.shape == (2,)
    if shared:
        array = array[np.newaxis]
    elif array.shape != (size, 2):
        raise ModelError(
            f"bounds must be (lo, hi) or one such pair per tuple ({size}), got shape {array.shape}."
        )
    with np.errstate(over="ignore", invalid="ignore"):
        widths = array[:, 1] - array[:, 0]
    if not np.isfinite(widths).all():  # nor are they where an end is not
        raise ModelError("bounds must be finite; a secret without a range cannot be protected.")
    if (widths <= 0).any():
        lo, hi = array[int(np.argmin(widths))]
        raise ModelError(f"bounds must have lo < hi, got ({lo}, {hi}).")
    ranges = tuple((lo, hi) for lo, hi in array.tolist())
    return ranges * size if shared else ranges  # one object: what it adds is computed once


def numeric_domain(domain: Domain, name: Hashable) -> FloatArray:
    """Return the domain as floats, or raise if it is not made of numbers."""
    if not all(isinstance(value, bool | int | float) for value in domain):
        raise ModelError(f"the values of {name} are not all numbers.")
    try:
        return np.array(domain, dtype=np.float64)
    except OverflowError as error:
        raise ModelError(f"a value of {name} is too large for a floating-point number.") from error


MAXIMAL_CELLS = 2**22  # of what is written out as a table, or counted like one
MAXIMAL_TUPLES = 63  # an array has at most 64 axes, and answers need one for their coordinates
LOG_SMALLEST = math.log(np.finfo(np.float64).tiny) + 1  # rarer cells might underflow


class TableLimit(NamedTuple):
    """Which models may become a joint table: the one place where that is decided."""

    tuples: int
    """How many tuples it may have."""
    cells: int
    """How many cells it may have."""

    def admits(self, sizes: Sequence[int], log_rarest: float = 0.0) -> bool:
        """Whether a table of these sizes may be written out.

        A product that underflows would turn "rare" into "impossible", so no cell may be rarer than
        a float can represent; `log_rarest` bounds the logarithm of the rarest cell from below.

        Examples
        --------
        >>> SHORT_TABLE.admits([2] * 12), SHORT_TABLE.admits([2] * 13)
        (True, False)
        """
        few = len(sizes) <= self.tuples and math.prod(sizes) <= self.cells
        return few and log_rarest > LOG_SMALLEST


ANY_TABLE = TableLimit(MAXIMAL_TUPLES, MAXIMAL_CELLS)
"""Whatever the exact search of tables can take."""

SHORT_TABLE = TableLimit(12, MAXIMAL_CELLS)
"""For models with a search of their own, where only a table accounts exactly for the noise that
unknown tuples add: beyond this, a bracket is faster."""

SMALL_TABLE = TableLimit(10, 2**10)
"""For the linear programs of several releases, one per adversary and pair of secrets."""
