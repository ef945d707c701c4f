"""States on a tree: each depends on the others through its neighbours alone."""

from __future__ import annotations

import functools
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from pdp_calibrate.arrays import FloatArray, read_only
from pdp_calibrate.core.model import (
    Domain,
    checked_domain,
    checked_laws,
    named_domains,
)
from pdp_calibrate.core.schema_parts import DOMAINS, Schema
from pdp_calibrate.core.table import Law, Laws, child_domain, family_array
from pdp_calibrate.errors import ModelError
from pdp_calibrate.families.network.edges import Links
from pdp_calibrate.families.network.network import Network


@dataclass(frozen=True, kw_only=True, eq=False, init=False, repr=False)
class MarkovTree(Network):
    """Discrete tuples along the edges of a tree, each drawn given its parent's value.

    Pedigrees of one line, organisations, river networks, the spread of something from one source.
    Which tuple is called the root makes no difference to the distribution.

    Parameters
    ----------
    domains
        The values of each tuple; numbers if a sum is to be released.
    parents
        For each tuple the position of its parent; None for the root, of which there is one.
    tables
        For the root its law; for every other tuple an array whose row v is its law when the parent
        holds the parent's v-th value. A zero is an assumption: adversaries never condition on an
        event of probability zero.
    names, provenance
        One name per tuple, x1 … xn by default; and ``assumed``, ``public``, ``dp`` or ``private``.

    Examples
    --------
    >>> alike = [[0.9, 0.1], [0.2, 0.8]]
    >>> tree = MarkovTree(
    ...     domains=[[0, 1]] * 3, parents=[None, 0, 0], tables=[[0.5, 0.5], alike, alike]
    ... )
    >>> tree
    MarkovTree(3 tuples, assumed)
    >>> tree.marginals[2].round(4).tolist()
    [0.55, 0.45]
    """

    defined_by = ("domains", "parents", "tables")
    dependence = "states on a tree: an entry depends on its neighbours only"
    json_fields: ClassVar[Mapping[str, Schema]] = {
        "domains": DOMAINS,
        "parents": {"type": "array"},
        "tables": {"type": "array"},
    }

    parents: tuple[int | None, ...]
    """The position of each tuple's parent."""
    tables: tuple[FloatArray, ...]
    """The law of each tuple given its parent, read-only."""

    def __init__(
        self,
        *,
        domains: Iterable[Iterable[Hashable]],
        parents: Iterable[int | None],
        tables: Iterable[npt.ArrayLike],
        names: Iterable[Hashable] | None = None,
        provenance: str = "assumed",
    ) -> None:
        found_names, found_domains = named_domains(domains, names)
        links = _checked_parents(tuple(parents), len(found_names))
        laws = _checked_tables(tuple(tables), links, found_domains, found_names)
        scopes = tuple(
            (place,) if parent is None else (parent, place) for place, parent in enumerate(links)
        )
        law = {"scopes": scopes, "factors": laws, "parents": links, "tables": laws}
        self._settle_law(found_names, found_domains, provenance, **law)

    @classmethod
    def from_conditionals(
        cls,
        root: Laws,
        children: Mapping[Hashable, tuple[Hashable, Mapping[Any, Law]]],
        *,
        provenance: str = "assumed",
    ) -> MarkovTree:
        """Build a tree from the law of one tuple and one conditional table for each other tuple.

        Parameters
        ----------
        root
            The name of the root and its law ``{value: probability}``.
        children
            For each other tuple ``(parent, {parent value: law})``.
        provenance
            Where the numbers come from.

        Examples
        --------
        >>> passed_on = {0: {0: 0.95, 1: 0.05}, 1: {0: 0.5, 1: 0.5}}
        >>> tree = MarkovTree.from_conditionals(
        ...     {"grandmother": {0: 0.9, 1: 0.1}},
        ...     {"mother": ("grandmother", passed_on), "child": ("mother", passed_on)},
        ... )
        >>> tree.parents
        (None, 0, 1)
        """
        if len(root) != 1:
            raise ModelError(f"a tree has one root, got laws of {len(root)}.")
        names = (*root, *children)
        if len(set(names)) < len(names):
            raise ModelError("the root must not have a parent.")
        domains = {name: checked_domain(law, name) for name, law in root.items()}
        domains |= {name: child_domain(name, table) for name, (_, table) in children.items()}
        for name, (parent, _) in children.items():
            if parent not in domains:
                raise ModelError(f"{name} has a parent without a law of its own: {parent}.")
        tables = [family_array(name, (), {(): law}, domains) for name, law in root.items()]
        tables += [
            family_array(name, (parent,), table, domains)
            for name, (parent, table) in children.items()
        ]
        places = {name: place for place, name in enumerate(names)}
        return cls(
            domains=[domains[name] for name in names],
            parents=[None, *(places[parent] for parent, _ in children.values())],
            tables=tables,
            names=names,
            provenance=provenance,
        )

    @property
    def tree(self) -> MarkovTree:
        """Itself."""
        return self

    @functools.cached_property
    def order(self) -> tuple[int, ...]:
        """All positions, parents before their children."""
        children: list[list[int]] = [[] for _ in self.parents]
        for place, parent in enumerate(self.parents):
            if parent is not None:
                children[parent].append(place)
        found = [self.parents.index(None)]
        for place in found:  # grows while it is read
            found += children[place]
        return tuple(found)

    @functools.cached_property
    def kernels(self) -> tuple[FloatArray, ...]:
        """The tables with rows that sum to 1 up to rounding."""
        return tuple(read_only(table / table.sum(axis=-1, keepdims=True)) for table in self.tables)

    @functools.cached_property
    def supports(self) -> tuple[npt.NDArray[np.bool_], ...]:
        """Which values of each tuple are possible, however rare."""
        found: dict[int, npt.NDArray[np.bool_]] = {}
        for place in self.order:
            parent, links = self.parents[place], self.kernels[place] > 0
            found[place] = links if parent is None else np.any(links[found[parent]], axis=0)
        return tuple(found[place] for place in range(len(self.parents)))

    @functools.cached_property
    def marginals(self) -> tuple[FloatArray, ...]:
        """The law of each tuple, every entry accurate relative to itself.

        Where a probability is too small for a float it is 0, or has lost digits: `supports` tells
        what is possible.
        """
        found: dict[int, FloatArray] = {}
        for place in self.order:
            parent, kernel = self.parents[place], self.kernels[place]
            found[place] = read_only(kernel if parent is None else found[parent] @ kernel)
        return tuple(found[place] for place in range(len(self.parents)))

    @functools.cached_property
    def course(self) -> dict[int, int]:
        """Possible values of all tuples, by position."""
        course: dict[int, int] = {}
        for place in self.order:
            parent, kernel = self.parents[place], self.kernels[place]
            course[place] = int((kernel if parent is None else kernel[course[parent]]).argmax())
        return course

    @functools.cached_property
    def links(self) -> Links:
        """Its edges, seen from either end."""
        return Links(self)

    def log_rarest(self) -> float:
        """Return a lower bound on the log-probability of anything possible."""
        return math.fsum(math.log(float(kernel[kernel > 0].min())) for kernel in self.kernels)

    def __repr__(self) -> str:
        return f"MarkovTree({len(self.names)} tuples, {self.provenance})"


def _checked_parents(parents: Sequence[object], size: int) -> tuple[int | None, ...]:
    if len(parents) != size or not size:
        raise ModelError(f"parents must be one per tuple ({size}), got {len(parents)}.")
    found: list[int | None] = []
    for parent in parents:
        if parent is None:
            found.append(None)
        elif isinstance(parent, bool) or not hasattr(parent, "__index__"):
            raise ModelError("a parent must be the position of a tuple, or None for the root.")
        elif not 0 <= parent.__index__() < size:
            raise ModelError(f"a parent must be a position below {size}, got {parent}.")
        else:
            found.append(int(parent.__index__()))
    if found.count(None) != 1:
        raise ModelError(f"a tree has one root, got {found.count(None)}.")
    reached = {found.index(None)}
    for start in range(size):
        path, place = [], start
        while place not in reached:
            path.append(place)
            if len(path) > size:
                raise ModelError("tuples must not be each other's parents in a circle.")
            above = found[place]
            place = place if above is None else above
        reached.update(path)
    return tuple(found)


def _checked_tables(
    tables: Sequence[npt.ArrayLike],
    parents: Sequence[int | None],
    domains: Sequence[Domain],
    names: Sequence[Hashable],
) -> tuple[FloatArray, ...]:
    if len(tables) != len(parents):
        raise ModelError(f"tables must be one per tuple ({len(parents)}), got {len(tables)}.")
    found = []
    for table, parent, domain, name in zip(tables, parents, domains, names, strict=True):
        laws = checked_laws(table, f"the table of {name}")
        above = () if parent is None else (len(domains[parent]),)
        if laws.shape != (*above, len(domain)):
            raise ModelError(
                f"the table of {name} must have one row per value of its parent and one entry per"
                f" value of its own, shape {(*above, len(domain))}, got {laws.shape}."
            )
        found.append(laws)
    return tuple(found)
