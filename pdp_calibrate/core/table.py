"""A joint distribution of discrete tuples, written out cell by cell.

It is given as such, or multiplied out of marginal laws and conditional tables.
"""

from __future__ import annotations

import dataclasses
import functools
import graphlib
import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from pdp_calibrate.arrays import FloatArray, frozen_array
from pdp_calibrate.core.model import (
    MAXIMAL_TUPLES,
    Domain,
    Model,
    check_probabilities,
    checked_domain,
    named_domains,
    numeric_domain,
    position_of,
)
from pdp_calibrate.core.schema_parts import DOMAINS, NESTED
from pdp_calibrate.errors import ModelError, printable

if TYPE_CHECKING:
    from pdp_calibrate.core.problem import Bracket, Limits, Problem

Law = Mapping[Hashable, float]
"""A law of one tuple: value → probability."""

Laws = Mapping[Hashable, Law]
"""Laws of tuples by their names."""

Conditionals = Mapping[Hashable, tuple[Sequence[Hashable], Mapping[Any, Law]]]
"""By the name of a tuple, its parents, and its law for their values."""


def joint_law(
    marginals: Laws, conditionals: Conditionals, check_sizes: Callable[[Sequence[int]], None]
) -> tuple[tuple[Hashable, ...], tuple[Domain, ...], FloatArray]:
    """Multiply the factors; return names (marginals first), domains and the joint array."""
    names, found, families = conditional_arrays(marginals, conditionals)
    domains = dict(zip(names, found, strict=True))
    check_sizes([len(domains[name]) for name in names])
    factors = [_spread(family, array, names, domains) for family, array in families]
    joint = functools.reduce(np.multiply, factors, np.ones(()))
    possible = functools.reduce(np.logical_and, [factor > 0 for factor in factors])
    if np.any(joint < np.finfo(np.float64).tiny, where=possible):
        # A product that underflows would turn "rare" into "impossible", which is unsound.
        raise ModelError("a cell of the joint table is positive but below 2.2e-308.")
    return names, found, joint


def conditional_arrays(
    marginals: Laws, conditionals: Conditionals
) -> tuple[tuple[Hashable, ...], tuple[Domain, ...], list[tuple[tuple[Hashable, ...], FloatArray]]]:
    """Check marginal laws and conditional tables, and write each as an array.

    Returns
    -------
    tuple
        The names (marginals first), their domains, and for each tuple the names of its parents and
        its own, with an array that has an axis for each of them.
    """
    _check_shapes(marginals, conditionals)
    both = set(marginals) & set(conditionals)
    if both:
        raise ModelError(f"{min(map(str, both))} has both a marginal and a conditional law.")
    names = (*marginals, *conditionals)
    domains = {name: checked_domain(law, name) for name, law in marginals.items()}
    domains |= {name: child_domain(name, table) for name, (_, table) in conditionals.items()}
    _check_parents(names, conditionals)
    families: list[tuple[tuple[Hashable, ...], FloatArray]] = [
        ((name,), family_array(name, (), {(): law}, domains)) for name, law in marginals.items()
    ]
    for name, (parents, table) in conditionals.items():
        families.append(((*parents, name), family_array(name, parents, table, domains)))
    return names, tuple(domains[name] for name in names), families


def _check_shapes(marginals: object, conditionals: object) -> None:
    """Raise unless laws are stated by name, value and values of parents, as mappings."""
    if not isinstance(marginals, Mapping) or not isinstance(conditionals, Mapping):
        raise ModelError(
            "marginals and conditionals must be mappings by the names of tuples, got"
            f" {type(marginals).__name__} and {type(conditionals).__name__}."
        )
    laws = list(marginals.items())
    for name, stated in conditionals.items():
        listed = isinstance(stated, Sequence) and not isinstance(stated, str) and len(stated) == 2
        parents, table = stated if listed else (None, None)
        if isinstance(parents, str) or not isinstance(parents, Sequence):
            raise ModelError(
                f"{name} needs (parents, table), as in (['parent'], {{0: {{0: 0.9, 1: 0.1}}, …}});"
                f" got {_shape_of(stated)}."
            )
        if not isinstance(table, Mapping):
            raise ModelError(
                f"the table of {name} must be a mapping from the values of its parents to laws,"
                f" {{parent value: {{value: probability}}}}; got {_shape_of(table)}."
            )
        laws += [(name, law) for law in table.values()]
    for name, law in laws:
        if not isinstance(law, Mapping):
            raise ModelError(
                f"a law of {name} must be a mapping {{value: probability}}, got {_shape_of(law)}."
            )


def _shape_of(given: object) -> str:
    if isinstance(given, tuple):
        return f"({', '.join(type(one).__name__ for one in given)})"
    return type(given).__name__


def child_domain(name: Hashable, table: Mapping[Any, Law]) -> Domain:
    """Return all values that the laws of a conditional table name, in their order."""
    values: dict[Hashable, None] = {}
    for law in table.values():
        values |= dict.fromkeys(law)
    return checked_domain(values, name)


def _check_parents(names: Sequence[Hashable], conditionals: Conditionals) -> None:
    for name, (parents, _) in conditionals.items():
        unknown = [str(parent) for parent in parents if parent not in names]
        if unknown:
            raise ModelError(f"{name} has parents without a law of their own: {unknown}.")
        if not parents or len(set(parents)) != len(parents):
            raise ModelError(f"the parents of {name} must be at least one and differ.")
    try:
        graph = {name: parents for name, (parents, _) in conditionals.items()}
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        raise ModelError("conditional tables must not depend on each other in a circle.") from error


def _spread(
    family: Sequence[Hashable],
    array: FloatArray,
    names: Sequence[Hashable],
    domains: Mapping[Hashable, Domain],
) -> FloatArray:
    """Write P(name | parents) as an array that broadcasts over all axes."""
    order = sorted(range(len(family)), key=lambda axis: names.index(family[axis]))
    shape = [len(domains[member]) if member in family else 1 for member in names]
    return array.transpose(order).reshape(shape)


def family_array(
    name: Hashable,
    parents: Sequence[Hashable],
    table: Mapping[Any, Law],
    domains: Mapping[Hashable, Domain],
) -> FloatArray:
    """Write P(name | parents) as an array with an axis per parent and a last one of its own."""
    family = [*parents, name]
    array = np.full([len(domains[member]) for member in family], np.nan)
    for key, law in table.items():
        values = key if len(parents) != 1 else (key,)
        try:
            place = tuple(
                domains[parent].index(value) for parent, value in zip(parents, values, strict=True)
            )
        except (TypeError, ValueError) as error:
            raise ModelError(f"a key of the table of {name} is no value of its parents.") from error
        try:
            array[place] = [law.get(value, 0.0) for value in domains[name]]
        except (TypeError, ValueError) as error:
            raise ModelError(f"a probability in a law of {name} is not a number.") from error
    if np.any(np.isnan(array)):
        raise ModelError(f"the table of {name} must have a law for every value of its parents.")
    if np.any(array < 0) or np.any(np.abs(array.sum(axis=-1) - 1) > 1e-9):
        raise ModelError(f"the laws of {name} must be non-negative and sum to 1.")
    return np.asarray(array / array.sum(axis=-1, keepdims=True))


MAXIMAL_TABLE = 2**24  # cells of a table that somebody has: 128 MB


@runtime_checkable
class Writable(Protocol):
    """A model that can be written out as one joint table, where that is small enough."""

    def to_table(self) -> JointTable:
        """Write it out; raises `ModelError` where cells would be too many or too rare."""


@dataclass(frozen=True, kw_only=True, eq=False, init=False, repr=False)
class JointTable(Model):
    """Any joint distribution θ of discrete tuples.

    Parameters
    ----------
    probabilities
        Array with one axis per tuple; entries are non-negative and sum to 1 (within 1e-9).
        A zero is an assumption: adversaries never condition on an event of probability zero.
    domains
        The values along each axis. Any hashable values; numbers if a sum is to be released.
    names, provenance
        One name per tuple, x1 … xn by default; and ``assumed``, ``public``, ``dp`` or ``private``.

    Examples
    --------
    >>> table = JointTable(probabilities=[[0.3, 0.2], [0.2, 0.3]], domains=[[0, 1], [0, 1]])
    >>> round(table.correlation("x1", "x2"), 12)
    0.2
    """

    defined_by = ("domains", "probabilities")
    cells = "probabilities"
    engine = "pdp_calibrate.families.table.search:TableEngine"
    gaussian_noise_engine = "pdp_calibrate.families.table.gaussian_noise:TableNoiseEngine"
    composer = "pdp_calibrate.families.table.composed:TableComposer"
    dependence = "a joint table: any dependence, with a zero cell taken as impossible"
    json_fields: ClassVar = {"domains": DOMAINS, "probabilities": NESTED}

    probabilities: FloatArray
    """The cells, read-only."""
    _domains: tuple[Domain, ...]

    def __init__(
        self,
        *,
        probabilities: npt.ArrayLike,
        domains: Iterable[Iterable[Hashable]],
        names: Iterable[Hashable] | None = None,
        provenance: str = "assumed",
    ) -> None:
        found_names, found_domains = named_domains(domains, names)
        array = checked_cells(probabilities, "probabilities", found_domains)
        check_probabilities(array, "probabilities")
        total = math.fsum(array.ravel())
        if abs(total - 1) > 1e-9:
            raise ModelError(f"probabilities must sum to 1, got {total}.")
        self._settle(
            probabilities=array,
            _domains=found_domains,
            names=found_names,
            provenance=provenance,
        )

    @classmethod
    def from_conditionals(
        cls, marginals: Laws, conditionals: Conditionals, *, provenance: str = "assumed"
    ) -> JointTable:
        """Multiply marginal laws and conditional tables into the joint table.

        Parameters
        ----------
        marginals
            For each tuple without parents, its law ``{value: probability}``.
        conditionals
            For each other tuple ``(parents, {parent value: law})``; with several parents the key
            is the tuple of their values, in the order of ``parents``.
        provenance
            Where the numbers come from.

        Examples
        --------
        >>> family = JointTable.from_conditionals(
        ...     {"parent": {0: 0.9, 1: 0.1}},
        ...     {"child": (["parent"], {0: {0: 0.95, 1: 0.05}, 1: {0: 0.5, 1: 0.5}})},
        ... )
        >>> family.names
        ('parent', 'child')
        >>> round(float(family.probabilities[1, 1]), 12)
        0.05
        """
        names, domains, probabilities = joint_law(marginals, conditionals, refuse_too_many_cells)
        return cls(probabilities=probabilities, domains=domains, names=names, provenance=provenance)

    @property
    def domains(self) -> tuple[Domain, ...]:
        """The values along each axis."""
        return self._domains

    def correlation(
        self, i: Hashable, j: Hashable, *, given: Mapping[Hashable, Hashable] | None = None
    ) -> float:
        """Return Pearson's ρ of two tuples, given exact values of others (paper: ρ_{ij,K}).

        Raises `ModelError` where it does not exist: text values, an impossible condition, or a
        tuple that does not vary under it.
        """
        first, second = position_of(i, self.names), position_of(j, self.names)
        if first == second:
            return 1.0
        fixed = {position_of(name, self.names): value for name, value in (given or {}).items()}
        if first in fixed or second in fixed:
            raise ModelError("a correlation cannot be given the value of one of its own tuples.")
        index: list[Any] = [slice(None)] * len(self.names)
        for axis, value in fixed.items():
            if value not in self.domains[axis]:
                raise ModelError(f"the value given for {self.names[axis]} is not in its domain.")
            index[axis] = slice(*(self.domains[axis].index(value) + step for step in (0, 1)))
        others = tuple(axis for axis in range(len(self.names)) if axis not in (first, second))
        pair = self.probabilities[tuple(index)].sum(axis=others, keepdims=True)
        pair = np.moveaxis(pair, (first, second), (0, 1)).reshape(pair.shape[first], -1)
        if pair.sum() == 0:
            raise ModelError("the condition given has probability zero.")
        return _pearson(pair / pair.sum(), self._numbers(first), self._numbers(second))

    def pearson_matrix(self) -> FloatArray | None:
        """Return `correlation` of all pairs, NaN where it does not exist; None if it never does."""
        size = len(self.names)
        matrix = np.eye(size)
        for i, first in enumerate(self.names):
            for j, second in enumerate(self.names[:i]):
                try:
                    matrix[i, j] = matrix[j, i] = self.correlation(first, second)
                except ModelError:  # categories that are no numbers, or a tuple that does not vary
                    matrix[i, j] = matrix[j, i] = np.nan
        pairs = matrix[~np.eye(size, dtype=np.bool_)]
        return None if size > 1 and np.isnan(pairs).all() else matrix

    def draws(
        self, number: int, *, given: Mapping[int, Any], target: int, rng: np.random.Generator
    ) -> FloatArray:
        """Draw cells among those that agree with what is given; see `Model.draws`."""
        del target
        fixed, shape = self._places(given), self.probabilities.shape
        unknown = [axis for axis in range(len(shape)) if axis not in fixed]
        cells = tuple(fixed.get(axis, slice(None)) for axis in range(len(shape)))
        masses = np.asarray(self.probabilities[cells]).ravel()
        drawn = np.empty((number, len(shape)))
        for axis, place in fixed.items():
            drawn[:, axis] = place
        if unknown:
            flat = rng.choice(len(masses), size=number, p=masses / masses.sum())
            sizes = [shape[axis] for axis in unknown]
            drawn[:, unknown] = np.array(np.unravel_index(flat, sizes)).T
        return drawn

    def _numbers(self, axis: int) -> FloatArray:
        return numeric_domain(self.domains[axis], self.names[axis])

    def __repr__(self) -> str:
        sizes = "×".join(map(str, self.probabilities.shape))
        names = printable(", ".join(map(str, self.names)))
        return f"JointTable({names}; {sizes} cells, {self.provenance})"


def refuse_too_many_cells(sizes: Sequence[int]) -> None:
    """Raise before a table of more than 2²⁴ cells, or of more than 63 tuples, is built."""
    if len(sizes) > MAXIMAL_TUPLES and min(sizes) == 1:
        raise ModelError(
            f"a joint table may have at most {MAXIMAL_TUPLES} tuples, got {len(sizes)}. Leave out"
            " those that can hold one value only."
        )
    cells = math.prod(sizes)
    if cells > MAXIMAL_TABLE:
        raise ModelError(
            f"a joint table may have at most 2^24 = {MAXIMAL_TABLE} cells (128 MB), got {cells}."
            " Split independent columns into Blocks, or merge rare values."
        )


def checked_cells(values: npt.ArrayLike, what: str, domains: Sequence[Domain]) -> FloatArray:
    """Return a read-only array with an axis per tuple and an entry per domain value, or raise."""
    sizes = tuple(map(len, domains))
    refuse_too_many_cells(sizes)
    cells = frozen_array(values, what)
    if not sizes or cells.shape != sizes:
        raise ModelError(
            f"{what} must have one axis per tuple and one entry per domain value,"
            f" shape {sizes}, got shape {cells.shape}."
        )
    return cells


def refuse_underflow(*, underflows: bool) -> None:
    """Raise before a product that underflows turns "rare" into "impossible": that is unsound."""
    if underflows:
        raise ModelError("a cell of the joint table would be positive but below 2.2e-308.")


def written_out(model: Model, probabilities: FloatArray) -> JointTable:
    """Return the model as a joint table with these cells."""
    table = JointTable(
        probabilities=probabilities,
        domains=model.domains,
        names=model.names,
        provenance=model.provenance,
    )
    return table.marked_like(model)


def _pearson(joint: FloatArray, rows: FloatArray, columns: FloatArray) -> float:
    by_row, by_column = joint.sum(axis=1), joint.sum(axis=0)
    rows, columns = rows - by_row @ rows, columns - by_column @ columns
    variance = (by_row @ rows**2) * (by_column @ columns**2)
    if variance == 0:
        raise ModelError("a tuple that does not vary has no correlation.")
    return float(rows @ joint @ columns / math.sqrt(variance))


@dataclass(frozen=True, eq=False)
class WrittenOut:
    """A problem about a model that is small enough to be searched as a joint table."""

    problem: Problem
    """The problem about the model itself."""
    about_table: Problem
    """The same problem about its joint table."""

    @classmethod
    def of(cls, problem: Problem, joint: JointTable) -> WrittenOut:
        """Write a problem out; `joint` is its model as a table."""
        return cls(problem, dataclasses.replace(problem, model=joint))

    def against(self, problem: Problem) -> WrittenOut:
        """Return the same against the adversaries of `problem`."""
        if problem is self.problem:
            return self
        return WrittenOut(problem, self.about_table.against(problem.knowledge))

    def search(self, scale: float, limits: Limits) -> Bracket:
        """Search the table; the witness is about the model itself."""
        engine = self.about_table.engine
        found = engine.bracket(
            scale, incumbent=limits.incumbent, deadline=limits.deadline, rounding=limits.rounding
        )
        if found.witness is None:
            return found
        witness = dataclasses.replace(found.witness, model=self.problem.model)
        return dataclasses.replace(found, witness=witness)
