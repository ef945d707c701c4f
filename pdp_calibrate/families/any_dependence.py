"""A group whose members may depend on each other in any way: model and engine.

Θ holds every distribution. For an adversary who does not know the tuples U, the answer moves by at
most Σ_{j ∈ U ∪ {i}} LS_j, and some θ attains it: let x_i decide whether all of them have their
largest or their smallest value. For extreme outputs, r → ±∞, the log-ratio is then exactly
Σ LS_j/λ, with or without other independent noise.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from pdp_calibrate.arrays import FloatArray, frozen_array
from pdp_calibrate.core.couplings import joint_range, tuple_moves
from pdp_calibrate.core.model import (
    Domain,
    Model,
    checked_domain,
    checked_size,
    json_value,
)
from pdp_calibrate.core.problem import Bracket, Composer, Engine, Limits, Problem
from pdp_calibrate.core.rounding import ROUND_DOWN, ROUND_UP, UNIT_ROUNDOFF
from pdp_calibrate.core.schema_parts import COUNT
from pdp_calibrate.errors import ModelError, UnsupportedQueryError


@dataclass(frozen=True, kw_only=True, eq=False, init=False, repr=False)
class Unknown(Model):
    """Every distribution of m tuples: the group is protected as a whole.

    Parameters
    ----------
    size
        The number m of tuples.
    domain
        The values that each of them can take.
    bounds
        Instead of a domain, the public range (lo, hi) of real numbers.
    names
        One name per tuple, 0 … m−1 by default.
    provenance
        ``assumed`` by default: nothing is learned from data here.

    Examples
    --------
    >>> Unknown(size=4, domain=[0, 1])
    Unknown(4 tuples, assumed)
    """

    defined_by = ("size", "domain", "continuous")
    engine = "pdp_calibrate.families.any_dependence:AnyDependenceEngine"
    gaussian_noise_engine = "pdp_calibrate.families.any_dependence:AnyDependenceNoiseEngine"
    composer = "pdp_calibrate.families.any_dependence:AnyDependenceComposer"
    dependence = "members who may depend on each other in any way at all (group privacy)"
    json_fields: ClassVar = {"size": COUNT}
    only_additive = exact_knowledge_is_worst = True

    size: int
    """How many tuples there are."""
    domain: Domain
    """The values of each, or the two ends of their range."""
    continuous: bool
    """Whether the domain is a range."""

    def __init__(
        self,
        *,
        size: int,
        domain: Iterable[Hashable] | None = None,
        bounds: tuple[float, float] | None = None,
        names: Iterable[Hashable] | None = None,
        provenance: str = "assumed",
    ) -> None:
        number = checked_size(size, "size")
        if (domain is None) == (bounds is None):
            raise ModelError("Unknown needs either domain= or bounds=, and not both.")
        values = _checked_bounds(bounds) if domain is None else checked_domain(domain, "each tuple")
        self._settle_numbered(
            names, number, provenance, size=number, domain=values, continuous=domain is None
        )

    @property
    def domains(self) -> tuple[Domain, ...]:
        """The domain, once per tuple."""
        return (self.domain,) * self.size

    @property
    def is_continuous(self) -> bool:
        """Whether the tuples are real numbers in a range."""
        return self.continuous

    @property
    def covers_any_dependence(self) -> bool:
        """Yes."""
        return True

    def draws(
        self, number: int, *, given: Mapping[int, Any], target: int, rng: np.random.Generator
    ) -> FloatArray:
        """Draw from the worst law: all unknown tuples follow the target; see `Model.draws`."""
        del rng
        row = [given.get(axis, given[target]) for axis in range(self.size)]
        if not self.continuous:
            row = [self.domain.index(held) for held in row]
        return np.tile(np.array(row, dtype=np.float64), (number, 1))

    def parameters(self) -> dict[str, Any]:
        """Return the size, and the domain or the bounds."""
        kind = "bounds" if self.continuous else "domain"
        return {"size": self.size, kind: json_value(self.domain)}

    @classmethod
    def from_parameters(cls, described: Mapping[str, Any]) -> Self:
        """Undo `to_dict`."""
        return super().from_parameters({"domain": None, **described})

    def __repr__(self) -> str:
        return f"Unknown({self.size} tuples, {self.provenance})"


class AnyDependenceComposer(Composer):
    """Composes releases about tuples of any dependence: they leak as if all moved at once."""

    def is_searchable(self, problem: Problem) -> bool:
        """Yes: the search is the group bound."""
        del problem
        return True

    def is_bounded(self, problem: Problem) -> bool:
        """Yes: values stay in their range."""
        del problem
        return True


def _checked_bounds(bounds: object) -> Domain:
    ends = frozen_array(bounds, "bounds")  # type: ignore[arg-type]
    if ends.shape != (2,) or not ends[0] < ends[1]:
        raise ModelError("bounds must be two numbers (lo, hi) with lo < hi.")
    return tuple(ends.tolist())


class AnyDependenceEngine(Engine):
    """Bounds everyone by the group bound of who knows least, which some θ attains."""

    def __init__(self, problem: Problem) -> None:
        contributions = problem.contributions
        if contributions.table is not None:
            raise UnsupportedQueryError(
                "Custom needs a JointTable; on Unknown use Sum, Mean, Count or Linear."
            )
        ranges = contributions.tuple_ranges().tolist()
        self.target, self.unknown = _least_knowing(problem, ranges)
        moving = [self.target, *self.unknown]
        self.reach = self.attained = math.fsum(ranges[p] for p in moving)
        own = contributions.values[self.target]
        # Several coordinates add up only if all tuples can move the same way.
        several = contributions.coordinates > 1
        if several and not all(np.array_equal(contributions.values[p], own) for p in moving):
            self.attained = max(ranges[p] for p in moving)
        hidden = set(moving)
        known = {p: 0 for p in range(problem.knowledge.total) if p not in hidden}
        secrets = int(own[:, 0].argmax()), int(own[:, 0].argmin())
        if secrets[0] == secrets[1]:
            secrets = (0, len(own) - 1)
        self.witness = problem.witness_at(self.target, known, secrets, math.inf)

    def search(self, scale: float, limits: Limits) -> Bracket:
        """Divide by the scale; see `core.problem.Engine`."""
        del limits
        return Bracket(
            upper=self.reach / scale * ROUND_UP,
            lower=self.attained / scale * ROUND_DOWN,
            witness=self.witness,
            target=self.target,
            unknown=self.unknown,
        )


class AnyDependenceNoiseEngine(AnyDependenceEngine):
    """The same for Gaussian noise: the answers of such a group move together, measured in L2."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        contributions = problem.contributions
        if contributions.coordinates > 1:
            moving = [self.target, *self.unknown]
            moves, _ = tuple_moves(contributions)
            alike = self.attained == self.reach
            rounding = 4 * (len(moving) + contributions.coordinates + 4) * UNIT_ROUNDOFF
            together = math.fsum(moves[moving])
            self.reach = min(together, joint_range(contributions.select(moving))) * (1 + rounding)
            self.attained = (together if alike else float(moves[moving].max())) * (1 - rounding)

    def search(self, scale: float, limits: Limits) -> Bracket:
        """Bound every coupling by the range: that holds at every δ."""
        found = super().search(scale, limits)
        return dataclasses.replace(found, everywhere=found.upper)


def _least_knowing(problem: Problem, ranges: list[float]) -> tuple[int, tuple[int, ...]]:
    """Return the adversary for whom the unknown part of the answer is largest."""
    knowledge = problem.knowledge
    positions = range(knowledge.total)
    if knowledge.known is not None:
        (target,) = knowledge.targets
        known = knowledge.known
        return target, tuple(p for p in positions if p != target and p not in known)
    by_range = sorted(positions, key=ranges.__getitem__)
    *unknown, target = by_range[knowledge.fewest :]
    return target, tuple(sorted(unknown))
