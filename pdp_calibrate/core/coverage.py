"""What is known about the error of a learned model: covered by a set, or open."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from pdp_calibrate.arrays import checked_share
from pdp_calibrate.errors import ModelError

if TYPE_CHECKING:
    from pdp_calibrate.core.model import Model

CoverageKind = Literal["covered", "point", "no band"]
Over = Literal["sampling", "sampling and noise"]

_KINDS: tuple[CoverageKind, ...] = get_args(CoverageKind)  # from certain to open


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """How a model was learned, and what the set that it describes covers.

    `covered`: the set holds the truth, except with probability at most 1 − confidence. `point`: a
    single law, the best estimate. `no band`: whatever it is, no band is known for this fit.
    """

    kind: CoverageKind
    """Whether the error of learning is covered."""
    confidence: float | None = None
    """With which probability; None unless covered."""
    over: Over | None = None
    """Over what: the rows that were sampled, and with `epsilon` the noise of the fit too."""
    notes: tuple[str, ...] = ()
    """What else it assumes, a sentence each: nothing that depends on a secret row."""
    upper: Model | None = None
    """For a point, the set that covers: what the scale of the point leaks under it is checked."""

    def __post_init__(self) -> None:
        if self.kind not in _KINDS:
            raise ModelError(f"the kind of a coverage must be one of {_KINDS}, got {self.kind!r}.")
        covers = self.kind == "covered"
        if covers != (self.confidence is not None) or covers != (self.over is not None):
            raise ModelError("a covering set has a confidence and says over what; no other has.")
        if self.over not in (None, *get_args(Over)):
            raise ModelError(f"over must be one of {get_args(Over)}, got {self.over!r}.")
        if self.confidence is not None:
            checked_share(self.confidence, "confidence")
        object.__setattr__(self, "notes", tuple(map(str, self.notes)))

    @property
    def is_open(self) -> bool:
        """Whether nothing covers the error of learning."""
        return self.kind != "covered"

    @property
    def in_words(self) -> str:
        """How it was learned and what is covered, as a phrase.

        Examples
        --------
        >>> Coverage(kind="covered", confidence=0.95, over="sampling and noise").in_words
        'learned, covered at 0.95 over sampling and noise'
        >>> Coverage(kind="no band").in_words
        'learned, no band (open)'
        """
        if self.confidence is None:
            return f"learned, {self.kind} (open)"
        return f"learned, covered at {self.confidence:.4g} over {self.over}"

    @property
    def beta(self) -> float | None:
        """The probability, at most, that the truth is outside the set; None unless covered."""
        return None if self.confidence is None else 1 - self.confidence

    def content(self) -> tuple[object, ...]:
        """Return everything, for the digest of a model."""
        upper = None if self.upper is None else self.upper.digest
        return ("coverage", self.kind, self.confidence, self.over, *self.notes, upper)

    def to_dict(self) -> dict[str, Any]:
        """Describe it for JSON."""
        described: dict[str, Any] = {"kind": self.kind}
        if self.kind == "covered":
            described |= {"confidence": self.confidence, "over": self.over}
        if self.notes:
            described["notes"] = list(self.notes)
        if self.upper is not None:
            described["upper"] = self.upper.to_dict()
        return described

    @classmethod
    def from_dict(cls, described: Mapping[str, Any]) -> Coverage:
        """Rebuild it from its JSON description."""
        from pdp_calibrate.core.model import Model

        upper = described.get("upper")
        return cls(
            kind=described["kind"],
            confidence=described.get("confidence"),
            over=described.get("over"),
            notes=tuple(described.get("notes", ())),
            upper=None if upper is None else Model.from_dict(upper),
        )


def together(found: Iterable[Coverage | None]) -> Coverage | None:
    """Return what is covered of a model made of others; None if none of them was learned.

    Each part may be a sample of its own, so the probabilities of missing the truth add up.
    """
    learned = [one for one in found if one is not None]
    if len(learned) < 2:
        return learned[0] if learned else None
    notes = tuple(dict.fromkeys(note for one in learned for note in one.notes))
    worst = max((one.kind for one in learned), key=_KINDS.index)
    if worst == "covered":
        sure = 1 - math.fsum(1 - (one.confidence or 0.0) for one in learned)
        noisy = any(one.over == "sampling and noise" for one in learned)
        if sure > 0:
            over: Over = "sampling and noise" if noisy else "sampling"
            return Coverage(kind="covered", confidence=sure, over=over, notes=notes)
        worst = "no band"
    return Coverage(kind=worst, notes=notes)


def learned_as(model: Model) -> Coverage | None:
    """Return what is covered of a model's error; None if nothing of it was learned.

    A model that was learned under differential privacy, or from private rows, and does not say
    what it covers, as in files of earlier versions, covers nothing.
    """
    if model.coverage is not None or model.certainty is not None:
        return model.coverage
    return Coverage(kind="no band") if model.provenance in ("dp", "private") else None
