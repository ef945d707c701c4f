"""Discrete tuples on any graph: each factor says how a few of them depend on each other."""

from __future__ import annotations

import functools
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from pdp_calibrate.arrays import FloatArray, check_number, frozen_array
from pdp_calibrate.core.contributions import Contributions
from pdp_calibrate.core.model import (
    ANY_TABLE,
    LOG_SMALLEST,
    Domain,
    Model,
    check_probabilities,
    checked_domain,
    field_of,
    names_of,
    position_of,
    values_of,
)
from pdp_calibrate.core.schema_parts import (
    COUNT,
    DOMAINS,
    VECTOR,
    Schema,
    described,
    items,
    nullable,
)
from pdp_calibrate.core.table import (
    Conditionals,
    JointTable,
    Laws,
    conditional_arrays,
    refuse_too_many_cells,
    refuse_underflow,
    written_out,
)
from pdp_calibrate.errors import ModelError, UnsupportedQueryError
from pdp_calibrate.families.network.couplings import Couplings, Scope, coupled, possible_values
from pdp_calibrate.families.network.elimination import filled, least_fill

if TYPE_CHECKING:
    from pdp_calibrate.families.network.tree import MarkovTree

_WIDEST = 706.0  # log-ratio of the entries of a factor: quotients stay normal numbers


@dataclass(frozen=True, kw_only=True, eq=False, init=False, repr=False)
class Network(Model):
    """Discrete tuples whose law is a product of factors, each about a few of them.

    Pedigrees with loops, neighbours on a map, people in contact, Bayesian networks
    (`from_conditionals`), surveys of many items. Two tuples that share no factor are independent
    given all others.

    Parameters
    ----------
    factors
        Pairs of the names a factor is about and an array with one axis for each, non-negative and
        not all zero. Only proportions matter: the law is the product of all factors, normalised. A
        zero is an assumption: adversaries never condition on an event of probability zero.
    domains
        The values of each tuple, ``{name: values}``, in the order of the tuples; numbers where a
        sum is asked for.
    provenance
        ``assumed``, ``public``, ``dp`` or ``private``.

    Examples
    --------
    >>> alike = [[3, 1], [1, 3]]
    >>> ring = Network(
    ...     factors=[(pair, alike) for pair in ("ab", "bc", "cd", "da")],
    ...     domains={name: [0, 1] for name in "abcd"},
    ... )
    >>> ring
    Network(4 tuples, 4 couplings, assumed)
    >>> round(ring.couplings.strengths[0, 1], 6)  # log 9
    2.197225
    """

    defined_by: ClassVar[tuple[str, ...]] = ("domains", "scopes", "factors", "influences")
    engine = "pdp_calibrate.families.network.search:NetworkEngine"
    gaussian_noise_engine = "pdp_calibrate.families.network.gaussian_noise:NetworkNoiseEngine"
    composer = "pdp_calibrate.families.network.composed:NetworkComposer"
    dependence = "a network: an entry depends on those it shares a factor with only"
    json_fields: ClassVar[Mapping[str, Schema]] = {
        "domains": DOMAINS,
        "scopes": described("The positions each factor is about.", items(items(COUNT))),
        "factors": {"type": "array"},
        "influences": nullable(described("Pairs of positions, and D.", items(VECTOR))),
    }

    scopes: tuple[Scope, ...]
    """The positions of the tuples that each factor is about."""
    factors: tuple[FloatArray, ...]
    """The factors, read-only, an axis for each tuple of their scope."""
    influences: tuple[tuple[int, int, float], ...] | None
    """Of a set: which tuples are coupled and how strongly at most; None if factors are given."""
    _domains: tuple[Domain, ...]

    def __init__(
        self,
        *,
        factors: Iterable[tuple[Iterable[Hashable], npt.ArrayLike]],
        domains: Mapping[Hashable, Iterable[Hashable]],
        provenance: str = "assumed",
    ) -> None:
        names, found = _checked_domains(domains)
        places = {name: place for place, name in enumerate(names)}
        if not isinstance(factors, Iterable):
            raise ModelError(
                f"factors must be a list of pairs (names, array), got {type(factors).__name__}."
            )
        checked = [_checked_factor(one, places, found) for one in factors]
        scopes, cells = (tuple(one[k] for one in checked) for k in (0, 1))
        self._settle_law(names, found, provenance, scopes=scopes, factors=cells)
        if any(len(possible) == 0 for possible in self.possible):
            raise ModelError("together the factors rule out every value of some tuple.")

    @classmethod
    def from_conditionals(
        cls, marginals: Laws, conditionals: Conditionals, *, provenance: str = "assumed"
    ) -> Network:
        """Build a Bayesian network from marginal laws and conditional tables.

        Parameters
        ----------
        marginals, conditionals, provenance
            As for `JointTable.from_conditionals`: laws of tuples without parents, and for each
            other tuple ``(parents, {parent values: law})``.

        Examples
        --------
        >>> yes = {0: {0: 0.9, 1: 0.1}, 1: {0: 0.3, 1: 0.7}}
        >>> both = {(a, b): yes[max(a, b)] for a in (0, 1) for b in (0, 1)}
        >>> Network.from_conditionals(
        ...     {"mother": {0: 0.8, 1: 0.2}, "father": {0: 0.8, 1: 0.2}},
        ...     {"child": (["mother", "father"], both)},
        ... )
        Network(3 tuples, 3 couplings, assumed)
        """
        names, domains, families = conditional_arrays(marginals, conditionals)
        return cls(
            factors=families,
            domains=dict(zip(names, domains, strict=True)),
            provenance=provenance,
        )

    @classmethod
    def from_influences(
        cls,
        influences: Mapping[tuple[Hashable, Hashable], float],
        domains: Mapping[Hashable, Iterable[Hashable]],
        *,
        provenance: str = "assumed",
    ) -> Network:
        """Return the set of all laws that couple no two tuples more strongly than stated.

        The coupling of two tuples is the largest |log cross-ratio| of the law in their values,
        whatever the others hold: if it is at most D, learning one of them changes the odds of two
        values of the other by a factor of at most e^D, given everyone else. Two tuples that are not
        named together are independent given all others.

        Parameters
        ----------
        influences
            D, zero or more, for every two tuples that may be coupled.
        domains
            The values of each tuple, in the order of the tuples.
        provenance
            Where the numbers come from.

        Examples
        --------
        >>> contacts = {("ann", "bob"): 1.2, ("bob", "eve"): 0.7, ("eve", "ann"): 0.7}
        >>> people = {name: [0, 1] for name in ("ann", "bob", "eve")}
        >>> Network.from_influences(contacts, people)
        Network(all laws of 3 tuples with 3 couplings, assumed)
        """
        names, found = _checked_domains(domains)
        if not isinstance(influences, Mapping):
            raise ModelError(
                "influences must be a mapping {(name, other name): strength}, got"
                f" {type(influences).__name__}."
            )
        strengths: dict[tuple[int, int], float] = {}
        for pair, strength in influences.items():
            if not isinstance(pair, tuple) or len(pair) != 2:
                raise ModelError("influences must be stated for pairs of tuples.")
            first, second = sorted(position_of(name, names) for name in pair)
            if first == second or (first, second) in strengths:
                raise ModelError("influences must be stated once for every two different tuples.")
            check_number(strength, "an influence")
            if not 0 <= strength < math.inf:
                raise ModelError(f"an influence must be zero or more and finite, got {strength}.")
            strengths[first, second] = float(strength)
        network = object.__new__(cls)
        stated = tuple((k, m, strengths[k, m]) for k, m in sorted(strengths))
        network._settle_law(names, found, provenance, influences=stated)
        return network

    def _settle_law(
        self,
        names: tuple[Hashable, ...],
        domains: tuple[Domain, ...],
        provenance: str,
        **law: object,
    ) -> None:
        """Set all fields: the factors of a law, or how strongly tuples are coupled at most."""
        law = {"scopes": (), "factors": (), "influences": None, **law}
        self._settle(names=names, _domains=domains, provenance=provenance, **law)

    @staticmethod
    def families(
        names: Sequence[Hashable], edges: Iterable[tuple[Hashable, Hashable]]
    ) -> list[tuple[int, tuple[int, ...]]]:
        """Complete a graph with chords; return each tuple with those it is then drawn given.

        Parameters
        ----------
        names
            The tuples.
        edges
            Pairs of them that depend on each other.

        Examples
        --------
        >>> Network.families("abcd", ["ab", "bc", "cd", "da"])
        [(3, ()), (2, (3,)), (1, (2, 3)), (0, (1, 3))]
        """
        pairs: dict[tuple[int, int], float] = {}
        for edge in edges:
            ends = tuple(edge)
            if len(ends) != 2 or ends[0] == ends[1]:
                raise ModelError("an edge must be a pair of two different tuples.")
            first, second = sorted(position_of(name, names) for name in ends)
            pairs[first, second] = 1.0
        graph = Couplings(len(names), pairs)
        order = least_fill(graph, range(len(names)))
        rank = {place: number for number, place in enumerate(order)}
        later = filled([{rank[k] for k in graph.neighbours[place]} for place in order])
        families = [
            (place, tuple(sorted(order[member] for member in near.tolist())))
            for place, near in zip(order, later, strict=True)
        ]
        return families[::-1]

    @classmethod
    def from_parameters(cls, described: Mapping[str, Any]) -> Self:
        """Undo `to_dict`."""
        if cls is not Network:
            return super().from_parameters(described)
        names = tuple(names_of(described))
        domains = dict(zip(names, values_of(described, "domains"), strict=True))
        provenance = field_of(described, "provenance")
        influences = described.get("influences")
        if influences is not None:
            stated = {(names[k], names[m]): strength for k, m, strength in influences}
            return cls.from_influences(stated, domains, provenance=provenance)  # type: ignore[return-value]
        scopes = [[names[place] for place in scope] for scope in field_of(described, "scopes")]
        factors = zip(scopes, field_of(described, "factors"), strict=True)
        return cls(factors=factors, domains=domains, provenance=provenance)

    @property
    def domains(self) -> tuple[Domain, ...]:
        """The values of each tuple."""
        return self._domains

    @property
    def only_additive(self) -> bool:
        """Whether it is a set, in which only answers that add up are bounded."""
        return self.influences is not None

    @property
    def covers_hints(self) -> bool:
        """True for a set given by how strongly tuples are coupled."""
        return self.only_additive

    def in_words(self) -> str:
        """Say what kind of dependence the model allows."""
        if self.influences:
            return "any law whose couplings between entries are at most as strong as stated"
        return super().in_words()

    def draws(
        self, number: int, *, given: Mapping[int, Any], target: int, rng: np.random.Generator
    ) -> FloatArray:
        """Draw tuple after tuple, given those drawn before; see `Model.draws`."""
        from pdp_calibrate.families.network.moments import Sums

        if self.fits_a_table:
            return self.to_table().draws(number, given=given, target=target, rng=rng)
        sums = Sums(self, self._places(given))
        if self.only_additive and sums.order:
            raise UnsupportedQueryError(
                "databases cannot be drawn from a set of laws, only from one law of it."
            )
        if not sums.is_affordable:
            raise UnsupportedQueryError(
                "the network is too closely connected for databases to be drawn from it."
            )
        return sums.draws(number, rng)

    @functools.cached_property
    def possible(self) -> list[npt.NDArray[np.intp]]:
        """The values of each tuple, by position, that no single factor rules out."""
        return possible_values(list(map(len, self.domains)), self.scopes, self.factors)

    def coupled_pairs(self) -> Mapping[tuple[int, int], float]:
        """Return the couplings of all pairs."""
        return self.couplings.strengths

    @functools.cached_property
    def couplings(self) -> Couplings:
        """Which tuples are coupled, and how strongly at most."""
        if self.influences is not None:
            return Couplings(len(self.names), {(k, m): d for k, m, d in self.influences})
        return coupled(list(map(len, self.domains)), self.scopes, self.factors)

    def member(self, contributions: Contributions) -> Model | None:
        """Return one law of a set that leaks much through these answers; None for a single law.

        Every two coupled tuples tend to hold both the values that add most to the answer, or both
        those that add least.
        """
        if self.influences is None:
            return None
        factors = []
        for first, second, strength in self.influences:
            signs = [extremes(contributions.values[place][:, 0]) for place in (first, second)]
            # Four such weights make a cross-ratio of e^D.
            weights = min(strength * (1 - 1e-12) / 4, 100.0) * np.multiply.outer(*signs)
            factors.append(((self.names[first], self.names[second]), np.exp(weights)))
        member = Network(
            factors=factors,
            domains=dict(zip(self.names, self.domains, strict=True)),
            provenance=self.provenance,
        )
        return member.marked_like(self)

    @property
    def tree(self) -> MarkovTree | None:
        """The same law along the edges of a tree, where it is one."""
        return None

    @functools.cached_property
    def course(self) -> dict[int, int]:
        """Values of all tuples, by position, none of which a single factor rules out."""
        if self.influences is not None:
            return dict.fromkeys(range(len(self.names)), 0)
        return {place: int(values[0]) for place, values in enumerate(self.possible)}

    @property
    def fits_a_table(self) -> bool:
        """Whether it is small enough to be searched as a joint table."""
        if self.influences is not None:
            return False
        return ANY_TABLE.admits(list(map(len, self.domains)), self.log_rarest())

    def to_table(self) -> JointTable:
        """Write the network out as a joint table, if that has at most 2²⁴ cells."""
        if self.influences is not None:
            raise ModelError("a set of laws cannot be written out as one joint table.")
        sizes = [len(domain) for domain in self.domains]
        refuse_too_many_cells(sizes)
        refuse_underflow(underflows=self.log_rarest() < LOG_SMALLEST)
        joint = np.ones([1] * len(sizes))
        for scope, factor in zip(self.scopes, self.factors, strict=True):
            axes = sorted(range(len(scope)), key=scope.__getitem__)
            shape = [size if place in scope else 1 for place, size in enumerate(sizes)]
            joint = joint * (factor / factor.max()).transpose(axes).reshape(shape)
        joint = np.broadcast_to(joint, sizes)
        if not joint.any():
            raise ModelError("together the factors rule out all values.")
        return written_out(self, joint / joint.sum())

    def log_rarest(self) -> float:
        """Return a lower bound on the log-probability of anything possible."""
        spans = [math.log(cells[cells > 0].min()) - math.log(cells.max()) for cells in self.factors]
        return math.fsum(spans) - math.fsum(math.log(len(domain)) for domain in self.domains)

    def __repr__(self) -> str:
        size, number = len(self.names), len(self.couplings.strengths)
        if self.influences is not None:
            return f"Network(all laws of {size} tuples with {number} couplings, {self.provenance})"
        if self.provenance == "private":
            return f"Network({size} tuples, {self.provenance})"
        return f"Network({size} tuples, {number} couplings, {self.provenance})"


def extremes(added: FloatArray) -> FloatArray:
    """Return 1 for the value that adds most, −1 for the one that adds least, 0 for others."""
    signs = np.zeros(len(added))
    if len(added) > 1:
        signs[int(added.argmin())] = -1.0
        top = int(added.argmax())
        signs[top if signs[top] == 0 else 1 - top] = 1.0
    return signs


def _checked_domains(
    domains: Mapping[Hashable, Iterable[Hashable]],
) -> tuple[tuple[Hashable, ...], tuple[Domain, ...]]:
    if not isinstance(domains, Mapping) or not domains:
        raise ModelError("domains must be a mapping from each tuple's name to its values.")
    return tuple(domains), tuple(checked_domain(values, name) for name, values in domains.items())


def _checked_factor(
    given: object, places: Mapping[Hashable, int], domains: Sequence[Domain]
) -> tuple[Scope, FloatArray]:
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise ModelError("a factor must be a pair: the names it is about, and an array.")
    try:
        about = tuple(given[0])
        unknown = [str(name) for name in about if name not in places]
    except TypeError as error:
        raise ModelError("a factor is about a list of names, which must be hashable.") from error
    if unknown:
        raise ModelError(f"a factor is about {', '.join(unknown)}, which has no domain.")
    if not about or len(set(about)) < len(about):
        raise ModelError("a factor must be about at least one tuple, and name none twice.")
    scope = tuple(places[name] for name in about)
    what = f"the factor of {', '.join(map(str, about))}"
    cells = frozen_array(given[1], what)
    sizes = tuple(len(domains[place]) for place in scope)
    if cells.shape != sizes:
        raise ModelError(
            f"{what} must have an axis per tuple and an entry per value, shape {sizes}, got shape"
            f" {cells.shape}."
        )
    check_probabilities(cells, what)
    if not cells.any():
        raise ModelError(f"{what} must have a positive entry, got zeros only.")
    if math.log(cells.max()) - math.log(cells[cells > 0].min()) > _WIDEST:
        raise ModelError(f"the positive entries of {what} must be within a factor of 1e306.")
    return scope, cells
