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

NO_COVERAGE = "resampled: no coverage guarantee"


@dataclass(frozen=True, kw_only=True, eq=False, init=False, repr=False)
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
    resampled
        Whether the members come from resampling rows (a bootstrap). They show how much the scale
        hangs on chance, and carry no coverage guarantee, which JSON and words then say.

    Examples
    --------
    >>> from pdp_calibrate.models import BinaryGroup
    >>> laws = [[0.5, 0.1, 0.4], [0.4, 0.3, 0.3]]
    >>> ModelSet(models=[BinaryGroup(count_probabilities=law) for law in laws])
    ModelSet(2 models, assumed)
    """

    models: tuple[Model, ...]
    """The members, in the order given; a witness names one by its position."""
    names: tuple[Hashable, ...]
    """The names that all members share."""
    provenance: Provenance
    """Where the numbers come from."""
    resampled: bool
    """Whether the members come from a bootstrap."""

    def __init__(
        self,
        *,
        models: Iterable[Model],
        provenance: str | None = None,
        resampled: bool = False,
    ) -> None:
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
        object.__setattr__(self, "resampled", bool(resampled))

    @property
    def domains(self) -> tuple[Domain, ...]:
        """The domains that all members share."""
        return self.models[0].domains

    @property
    def inner_models(self) -> tuple[Model, ...]:
        """The members."""
        return self.models

    @property
    def certainty(self) -> str | None:
        """Nothing at all for resampled members."""
        if not self.resampled:
            return super().certainty
        return (
            "The models come from resampled data. They show how much the scale hangs on chance and"
            " carry no coverage guarantee: nothing says that the truth is among them."
        )

    @property
    def is_continuous(self) -> bool:
        """Whether the members are continuous."""
        return any(member.is_continuous for member in self.models)

    @property
    def copies(self) -> tuple[int, ...]:
        """How often each named tuple occurs in the database."""
        return self.models[0].copies

    @property
    def continuous_tuples(self) -> tuple[bool, ...]:
        """Whether each tuple is continuous."""
        return self.models[0].continuous_tuples

    @property
    def instances(self) -> int:
        """How many independent groups of tuples the database holds, at most."""
        return max(member.instances for member in self.models)

    def parameters(self) -> dict[str, Any]:
        """Return the members, and that they promise nothing if they were resampled."""
        members = {"models": [member.to_dict() for member in self.models]}
        return members | ({"resampled": True, "note": NO_COVERAGE} if self.resampled else {})

    @classmethod
    def from_parameters(cls, described: Mapping[str, Any]) -> ModelSet | None:
        """Rebuild the set; None if a member withholds its parameters."""
        models = models_of(described)
        if models is None:
            return None
        return cls(
            models=models,
            provenance=field_of(described, "provenance"),
            resampled=described.get("resampled", False),
        )

    def content(self) -> tuple[object, ...]:
        """Return the members, and whether they were resampled."""
        members = tuple(member.digest for member in self.models)
        return (*members, NO_COVERAGE) if self.resampled else members

    def __repr__(self) -> str:
        note = f"; {NO_COVERAGE}" if self.resampled else ""
        return f"ModelSet({len(self.models)} models, {self.provenance}{note})"
