"""Sets Θ of tables: every conditional law near that of a centre, or of a sample."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from pdp_calibrate.arrays import check_number, checked_share
from pdp_calibrate.core.composite import Around
from pdp_calibrate.core.model import (
    Domain,
    Model,
    named_domains,
)
from pdp_calibrate.core.schema_parts import DOMAINS, NESTED, NUMBER, ref
from pdp_calibrate.core.table import JointTable, checked_cells
from pdp_calibrate.errors import ModelError, printable

_LARGEST_COUNT = 2**53


@dataclass(frozen=True, kw_only=True, eq=False, init=False, repr=False)
class ConditionalBall(Around):
    """All tables whose conditional laws lie within total variation τ of a centre's.

    These are the laws of what the unknown tuples add to the answer, given any value of a target
    and any values of known tuples; each may differ from the centre's independently. A zero of the
    centre is not trusted: given an event of probability zero there, any law at all is possible. The
    leakage lies between the centre's (τ = 0) and that of group privacy (τ = 1): knowing less costs
    noise, never privacy. A ball around the joint table would be something else: small changes of
    rare cells change the laws given them a lot.

    Parameters
    ----------
    center
        The central table.
    radius
        τ, from 0 to 1.
    provenance
        The centre's by default.

    Examples
    --------
    >>> pair = JointTable(probabilities=[[0.3, 0.2], [0.2, 0.3]], domains=[[0, 1], [0, 1]])
    >>> ConditionalBall(center=pair, radius=0.1)
    ConditionalBall(JointTable(x1, x2; 2×2 cells, assumed))
    """

    defined_by = ("center", "radius")
    dependence = "any joint table whose conditional laws are within the stated distance"
    json_fields: ClassVar = {"center": ref("JointTable"), "radius": NUMBER}
    engine = "pdp_calibrate.families.table.set_search:TableSetEngine"
    gaussian_noise_engine = "pdp_calibrate.families.table.set_gaussian_noise:TableSetNoiseEngine"
    composer = "pdp_calibrate.families.table.composed:TableComposer"
    only_additive = True

    center: JointTable
    """The central table."""
    radius: float
    """How far every conditional law may be off, in total variation."""

    def __init__(self, *, center: JointTable, radius: float, provenance: str | None = None) -> None:
        if not isinstance(center, JointTable):
            raise ModelError(f"center must be a JointTable, got {type(center).__name__}.")
        check_number(radius, "radius")
        if not 0 <= radius <= 1:
            raise ModelError(f"radius must lie between 0 and 1, got {radius}.")
        self._settle_around(center, provenance, radius=float(radius))

    def parameters(self) -> dict[str, Any]:
        """Return centre and radius, and a digest where that is what JSON holds of the centre."""
        stored = super().parameters()
        return stored | ({"digest": self.digest} if "digest" in stored["center"] else {})

    def __repr__(self) -> str:
        return f"ConditionalBall({self.center!r})"


@dataclass(frozen=True, kw_only=True, eq=False, init=False, repr=False)
class SampledTable(Model):
    """Every table that independent rows do not rule out, at a stated confidence.

    Around each conditional law as counted (nothing smoothed) stands a ball in total variation. Its
    radius follows from how many rows match the condition, how many values the answer *can* take on
    the declared domains, and how many conditions are judged together. A condition that no row
    matches says nothing: any law is possible. So too few rows never weaken the promise; in the
    extreme they lead to the noise of group privacy. The answer fails with probability at most
    1 − confidence over the sample, for the query asked (a list asked together counts as one), if
    the rows are independent draws of one law; where several samples make up one model, their
    probabilities add up.

    Parameters
    ----------
    counts
        How many rows fell into each cell: whole numbers, one axis per tuple.
    domains
        The values along each axis: all that are possible, seen or not.
    confidence
        Probability, over the sample, with which all balls hold; 0.95 by default.
    names, provenance
        One name per tuple, x1 … xn by default; and ``assumed``, ``public``, ``dp`` or ``private``.
    noise_scale
        If positive, each cell carries independent discrete Laplace noise of this scale, added to
        keep the rows private; counts may then be negative. Half of the failure probability is kept
        for the noise. With n_s + W_s rows seen at value s, the law max(n_s + W_s, 0), normalised
        by its sum C, is within D/C of the raw one, where D bounds the noise of every set of
        values, and at least Σ(n_s + W_s) − D rows match; both enter the radius.

    Examples
    --------
    >>> SampledTable(counts=[[40, 10], [10, 40]], domains=[[0, 1], [0, 1]])
    SampledTable(x1, x2; 2×2 cells, 0.95 confidence, assumed)
    """

    defined_by = ("domains", "counts", "confidence", "noise_scale")
    dependence = "any joint table that the sample does not rule out"
    at_group_privacy = (
        "There are too few rows to rule anything out: this is the noise of group privacy, which"
        " needs no model. More rows, fewer values or a lower confidence help."
    )
    json_fields: ClassVar = {
        "domains": DOMAINS, "counts": NESTED, "confidence": NUMBER, "noise_scale": NUMBER,
    }  # fmt: skip
    cells = "counts"
    engine = "pdp_calibrate.families.table.set_search:TableSetEngine"
    gaussian_noise_engine = "pdp_calibrate.families.table.set_gaussian_noise:TableSetNoiseEngine"
    composer = "pdp_calibrate.families.table.composed:TableComposer"
    only_additive = True

    counts: npt.NDArray[np.int64]
    """Rows per cell, read-only; noisy where `noise_scale` is positive."""
    confidence: float
    """Probability that all balls hold."""
    noise_scale: float
    """Scale of the discrete Laplace noise on each cell; 0 for none."""
    _domains: tuple[Domain, ...]

    def __init__(
        self,
        *,
        counts: npt.ArrayLike,
        domains: Iterable[Iterable[Hashable]],
        confidence: float = 0.95,
        names: Iterable[Hashable] | None = None,
        provenance: str = "assumed",
        noise_scale: float = 0.0,
    ) -> None:
        found_names, found_domains = named_domains(domains, names)
        share = checked_share(confidence, "confidence")
        check_number(noise_scale, "noise_scale")
        if not 0 <= noise_scale < math.inf:
            raise ModelError(f"noise_scale must be zero or more and finite, got {noise_scale}.")
        whole = _checked_counts(counts, found_domains, noisy=noise_scale > 0)
        self._settle(
            counts=whole,
            _domains=found_domains,
            confidence=share,
            noise_scale=float(noise_scale),
            names=found_names,
            provenance=provenance,
        )

    @property
    def domains(self) -> tuple[Domain, ...]:
        """The values along each axis."""
        return self._domains

    @property
    def certainty(self) -> str:
        """How certain the promise is over the sample."""
        return (
            "The error of the sample is covered: over the rows counted, the promise fails with"
            f" probability at most {1 - self.confidence:.2g}, for one query and independent rows."
        )

    @property
    def events(self) -> int:
        """How many conditions (x_i, x_K) are judged together: Σ_i d_i·Π_{j≠i} (1 + d_j)."""
        sizes = self.counts.shape
        together = math.prod(size + 1 for size in sizes)
        return sum(size * (together // (size + 1)) for size in sizes)

    def __repr__(self) -> str:
        sizes = "×".join(map(str, self.counts.shape))
        names = printable(", ".join(map(str, self.names)))
        return (
            f"SampledTable({names}; {sizes} cells, {self.confidence:.4g} confidence,"
            f" {self.provenance})"
        )


def _checked_counts(
    counts: npt.ArrayLike, domains: Sequence[Domain], *, noisy: bool
) -> npt.NDArray[np.int64]:
    """Return the counts as whole numbers, read-only; messages never hold one of them."""
    found = checked_cells(counts, "counts", domains)
    if np.any(found != np.floor(found)):
        raise ModelError("counts must be whole numbers of rows, got fractions.")
    if np.abs(found).sum() > _LARGEST_COUNT:
        raise ModelError("counts must add up to at most 2^53 rows.")
    if not noisy and np.any(found < 0):
        raise ModelError(
            "counts must not be negative unless noise was added to them; then pass noise_scale=."
        )
    if not noisy and not found.any():
        raise ModelError("counts must hold at least one row, got none.")
    whole = found.astype(np.int64)
    whole.setflags(write=False)
    return whole
