"""Finite sets Θ of models."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pdp_calibrate.errors import ModelError
from pdp_calibrate.models.base import (
    Domain,
    Model,
    Provenance,
    checked_provenance,
    field_of,
    models_of,
    most_secret,
)


@dataclass(frozen=True, kw_only=True, eq=False, init=False)
class ModelSet(Model):
    """A finite Θ: the guarantee holds for each member.

    It carries no claim that the truth is among the members; a bootstrap set, for one, has no
    coverage guarantee.

    Parameters
    ----------
    models
        Members with the same names and domains.
    provenance
        The most secret of the members' by default.
    """

    models: tuple[Model, ...]
    """The members, in the order given; a witness names one by its position."""
    names: tuple[Hashable, ...]
    """The names that all members share."""
    provenance: Provenance
    """Where the numbers come from."""

    def __init__(self, *, models: Iterable[Model], provenance: str | None = None) -> None:
        members = tuple(models)
        if not members or not all(isinstance(member, Model) for member in members):
            raise ModelError("ModelSet needs at least one model.")
        first = members[0]
        for member in members[1:]:
            if member.names != first.names or member.copies != first.copies:
                raise ModelError("all members of a ModelSet must have the same tuples.")
            if member.domains != first.domains:
                raise ModelError("all members of a ModelSet must have the same domains.")
        object.__setattr__(self, "models", members)
        object.__setattr__(self, "names", first.names)
        secret = most_secret(members) if provenance is None else checked_provenance(provenance)
        object.__setattr__(self, "provenance", secret)

    @property
    def domains(self) -> tuple[Domain, ...]:
        """The domains that all members share."""
        return self.models[0].domains

    @property
    def inner_models(self) -> tuple[Model, ...]:
        """The members."""
        return self.models

    @property
    def is_continuous(self) -> bool:
        """Whether the members are continuous."""
        return any(member.is_continuous for member in self.models)

    @property
    def copies(self) -> tuple[int, ...]:
        """How often each named tuple occurs in the database."""
        return self.models[0].copies

    def parameters(self) -> dict[str, Any]:
        """Return the members."""
        return {"models": [member.to_dict() for member in self.models]}

    @classmethod
    def from_parameters(cls, described: Mapping[str, Any]) -> ModelSet | None:
        """Rebuild the set; None if a member withholds its parameters."""
        models = models_of(described)
        if models is None:
            return None
        return cls(models=models, provenance=field_of(described, "provenance"))

    def content(self) -> tuple[object, ...]:
        """Return the members."""
        return tuple(member.digest for member in self.models)
