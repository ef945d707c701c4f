"""A group whose members may depend on each other in any way at all."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pdp_calibrate.errors import ModelError
from pdp_calibrate.models.base import (
    Domain,
    Model,
    Provenance,
    checked_domain,
    checked_provenance,
    field_of,
    frozen_array,
    json_value,
    names_of,
    values_of,
)
from pdp_calibrate.models.laws import checked_size, numbered_names


@dataclass(frozen=True, kw_only=True, eq=False, init=False, repr=False)
class Unknown(Model):
    """Every distribution of m tuples: what is protected is the group as a whole.

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

    size: int
    """How many tuples there are."""
    domain: Domain
    """The values of each, or the two ends of their range."""
    continuous: bool
    """Whether the domain is a range."""
    names: tuple[Hashable, ...]
    """One name per tuple."""
    provenance: Provenance
    """Where the sizes and ranges come from."""

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
        object.__setattr__(self, "size", number)
        object.__setattr__(self, "domain", values)
        object.__setattr__(self, "continuous", domain is None)
        object.__setattr__(self, "names", numbered_names(names, number))
        object.__setattr__(self, "provenance", checked_provenance(provenance))

    @property
    def domains(self) -> tuple[Domain, ...]:
        """The domain, once per tuple."""
        return (self.domain,) * self.size

    @property
    def is_continuous(self) -> bool:
        """Whether the tuples are real numbers in a range."""
        return self.continuous

    def parameters(self) -> dict[str, Any]:
        """Return size and domain."""
        kind = "bounds" if self.continuous else "domain"
        return {"size": self.size, kind: json_value(self.domain)}

    @classmethod
    def from_parameters(cls, described: Mapping[str, Any]) -> Unknown:
        """Rebuild the group."""
        return cls(
            size=field_of(described, "size"),
            domain=None if described.get("domain") is None else values_of(described, "domain"),
            bounds=described.get("bounds"),
            names=names_of(described),
            provenance=field_of(described, "provenance"),
        )

    def content(self) -> tuple[object, ...]:
        """Return size and domain."""
        return self.size, self.domain, self.continuous

    def __repr__(self) -> str:
        return f"Unknown({self.size} tuples, {self.provenance})"


def _checked_bounds(bounds: object) -> Domain:
    ends = frozen_array(bounds, "bounds")  # type: ignore[arg-type]
    if ends.shape != (2,) or not ends[0] < ends[1]:
        raise ModelError("bounds must be two numbers (lo, hi) with lo < hi.")
    return tuple(ends.tolist())
