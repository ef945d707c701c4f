"""Several answers about the same data, released together under one ε."""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pdp_calibrate.calibration.proof import (
    PROVING_SECONDS,
    certified_leakage,
    checked_epsilon,
    number_in,
    parsed,
    proof_of,
    proved_again,
    scaled_rounding,
    stated_law,
    stored_model,
    total_of,
    whole_number_in,
)
from pdp_calibrate.calibration.release import (
    Account,
    add_noise,
    checked_answer,
    checked_layout,
    exact_answers,
    labelled,
    note_release,
    unlabelled,
)
from pdp_calibrate.calibration.solve import certified_scale
from pdp_calibrate.core import noise
from pdp_calibrate.core.adversary import Adversaries
from pdp_calibrate.core.bracket import Leakage
from pdp_calibrate.core.cards import card
from pdp_calibrate.core.checks import check_number, checked_share
from pdp_calibrate.core.contributions import Contributions
from pdp_calibrate.core.leakage import checked_scales
from pdp_calibrate.core.model import Model, field_of, header
from pdp_calibrate.core.problem import split
from pdp_calibrate.core.query import Query, frozen, lower
from pdp_calibrate.errors import CalibrationError, PdpError, QueryError, damage_refused

_MAXIMAL_STEPS = 60


@dataclass(frozen=True, kw_only=True)
class JointCalibration:
    """Scales proved to keep every allowed adversary at or below ε, for one joint release.

    The leakage is that of all answers seen together; it is neither the sum of the single ones
    nor bounded by it.
    """

    model: Model = field(repr=False)
    """The θ or Θ that the proof is about."""
    queries: tuple[Query, ...]
    """What is released, in order; a function as the table of its values."""
    adversaries: Adversaries
    """Against whom."""
    epsilon: float
    """The joint leakage that nobody exceeds."""
    scales: tuple[float, ...]
    """The Laplace scale of each answer."""
    leakage: Leakage = field(repr=False)
    """The joint leakage at these scales; `value` ≤ `epsilon`."""
    rows: int = 1
    """Number of independent instances that each answer is about."""
    contributions: tuple[Contributions, ...] = field(default=(), repr=False, compare=False)
    """The lowered queries: what was proved, and what is released. If not given, lowered here."""
    estimation_epsilon: float | None = field(init=False, default=None)
    """What learning the model under differential privacy leaks on top; None if it was not."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "estimation_epsilon", self.model.estimation_epsilon)
        queries = tuple(frozen(query, self.model) for query in self.queries)
        object.__setattr__(self, "queries", queries)
        if not self.contributions:
            parts = tuple(lower(query, self.model, rows=self.rows) for query in queries)
            object.__setattr__(self, "contributions", parts)

    @property
    def total_epsilon(self) -> float:
        """What nobody learns more than, learning of the model included: ε + estimation ε.

        It holds for an answer about the very data that the model was learned from; about other,
        independent data nobody learns more than `epsilon`.
        """
        return total_of(self.epsilon, self.estimation_epsilon)

    def accuracy(self, *, alpha: float = 0.05) -> tuple[float, ...]:
        """Return for each answer the half-width h with P(|noise| > h) ≤ alpha."""
        checked_share(alpha, "alpha", error=PdpError)
        return tuple(
            noise.half_width(scale, alpha, integer=part.is_integer)
            for scale, part in zip(self.scales, self.contributions, strict=True)
        )

    def release(
        self,
        data: Any,
        *,
        value: Hashable | None = None,
        by: Hashable | None = None,
        order_by: Hashable | None = None,
        time_format: str | None = None,
        ledger: Account | None = None,
    ) -> JointRelease:
        """Answer all queries with noise; data, columns and ledger as in `Calibration.release`."""
        layout = checked_layout(value=value, by=by, order_by=order_by, time_format=time_format)
        found = exact_answers(
            data,
            self.queries,
            self.contributions,
            self.model,
            rows=self.rows,
            layout=layout,
            adversaries=self.adversaries,
        )
        if ledger is not None:
            ledger.spend(self, layout=layout, sizes=found[0].sizes)
        note_release(self, counted=ledger is not None)
        values = []
        for place, (part, scale) in enumerate(zip(self.contributions, self.scales, strict=True)):
            (noisy,) = add_noise([found[place].answer], part, scale)
            values.append(labelled(noisy, self.queries[place], self.model))
        return JointRelease(values=tuple(values), calibration=self)

    def _repr_html_(self) -> str:
        widths = self.accuracy()
        each = [
            (query, f"scale λ {scale:.6g}, 95 % of the noise within ±{width:.4g}")
            for query, scale, width in zip(self.queries, self.scales, widths, strict=True)
        ]
        law = stated_law(self.model).items()
        return card("JointCalibration", [("ε", f"{self.total_epsilon:.6g}"), *each, *law])

    def to_dict(self) -> dict[str, Any]:
        """Describe the calibration for JSON; nothing of a private model but its names."""
        return {
            **header("JointCalibration"),
            "epsilon": self.epsilon,
            "total_epsilon": self.total_epsilon,
            "scales": list(self.scales),
            "rows": self.rows,
            "queries": [query.to_dict() for query in self.queries],
        } | proof_of(self.model, self.adversaries, self.leakage)

    def to_json(self) -> str:
        """Return the calibration as JSON text."""
        return json.dumps(self.to_dict(), indent=2)

    @classmethod
    @damage_refused("the joint calibration", kind=CalibrationError)
    def from_json(
        cls,
        text: str,
        *,
        model: Model | None = None,
        time_limit: float | None = PROVING_SECONDS,
    ) -> JointCalibration:
        """Read a joint calibration, and prove it again, as `Calibration.from_json` does."""
        described = parsed(text, "JointCalibration")
        used = stored_model(described, model)
        queries = [frozen(Query.from_dict(query), used) for query in field_of(described, "queries")]
        adversaries = Adversaries.from_dict(field_of(described, "adversaries"))
        epsilon = checked_epsilon(number_in(described, "epsilon"))
        scales = checked_scales(field_of(described, "scales"), len(queries))
        rows = whole_number_in(described, "rows")
        parts = tuple(lower(query, used, rows=rows) for query in queries)
        leakage = proved_again(
            used,
            parts,
            scales,
            adversaries,
            epsilon=epsilon,
            rows=rows,
            time_limit=time_limit,
        )
        return cls(
            model=used,
            queries=tuple(queries),
            adversaries=adversaries,
            epsilon=epsilon,
            scales=tuple(scales),
            leakage=leakage,
            rows=rows,
            contributions=parts,
        )


@dataclass(frozen=True, kw_only=True)
class JointRelease:
    """Noisy answers released together. The true answers are nowhere in it."""

    values: tuple[Any, ...]
    """One noisy answer per query: int, float, or a Series by category."""
    calibration: JointCalibration = field(repr=False)
    """How they were made."""

    def intervals(self, *, alpha: float = 0.05) -> tuple[tuple[Any, Any], ...]:
        """Return, for each answer, bounds that contain the truth with probability 1 − alpha."""
        widths = self.calibration.accuracy(alpha=alpha)
        return tuple(
            (value - width, value + width) for value, width in zip(self.values, widths, strict=True)
        )

    def to_dict(self) -> dict[str, Any]:
        """Describe the release for JSON; the counts of a histogram are a list."""
        return {
            **header("JointRelease"),
            "values": [unlabelled(value) for value in self.values],
            "calibration": self.calibration.to_dict(),
        }

    def to_json(self) -> str:
        """Return the release as JSON text; `from_json` reads it back."""
        return json.dumps(self.to_dict(), indent=2)

    @classmethod
    @damage_refused("the joint release", kind=CalibrationError)
    def from_json(
        cls,
        text: str,
        *,
        model: Model | None = None,
        time_limit: float | None = PROVING_SECONDS,
    ) -> JointRelease:
        """Read a joint release, and prove it again, as `Calibration.from_json` does."""
        described = parsed(text, "JointRelease")
        inner = json.dumps(field_of(described, "calibration"))
        calibration = JointCalibration.from_json(inner, model=model, time_limit=time_limit)
        stored = [checked_answer(value) for value in field_of(described, "values")]
        values = tuple(
            labelled(value if isinstance(value, list) else [value], query, calibration.model)
            for value, query in zip(stored, calibration.queries, strict=True)
        )
        return cls(values=values, calibration=calibration)

    def _repr_html_(self) -> str:
        answers = list(zip(self.calibration.queries, self.values, strict=True))
        law = stated_law(self.calibration.model).items()
        return card(
            "JointRelease", [*answers, ("ε", f"{self.calibration.total_epsilon:.6g}"), *law]
        )


def calibrate_jointly(
    model: Model,
    queries: Sequence[Query],
    *,
    epsilon: float,
    adversaries: Adversaries,
    shares: Sequence[float] | None,
    rows: int,
    deadline: float,
) -> JointCalibration:
    """Find the smallest common factor t with scales t·GS_m/share_m that keeps ε."""
    fixed = tuple(frozen(query, model) for query in queries)
    parts = tuple(lower(query, model, rows=rows) for query in fixed)
    local = [float(part.tuple_ranges().max()) for part in parts]
    if min(local) == 0:
        raise QueryError("a query in the list gives the same answer whatever the data are.")
    units = [gs / share for gs, share in zip(local, _checked_shares(shares, parts), strict=True)]

    joined = split(model, Contributions.joined(parts, units), adversaries)
    rounding = scaled_rounding(model, parts, units, rows)
    factor, _ = certified_scale(joined, epsilon, rounding=rounding, deadline=deadline)
    step = 1e-13
    for _ in range(_MAXIMAL_STEPS):
        scales = [factor * unit for unit in units]  # rounded, so proved again as they are
        leakage = certified_leakage(model, parts, scales, adversaries, rows=rows, deadline=deadline)
        if leakage.value <= epsilon:
            return JointCalibration(
                model=model,
                queries=fixed,
                adversaries=adversaries,
                epsilon=epsilon,
                scales=tuple(scales),
                leakage=leakage,
                rows=rows,
                contributions=parts,
            )
        factor, step = factor * (1 + step), 2 * step
    raise CalibrationError(f"no scales could be certified for epsilon = {epsilon}.")


def _checked_shares(shares: Sequence[float] | None, parts: Sequence[Contributions]) -> list[float]:
    if shares is None:
        return [1 / len(parts)] * len(parts)
    for share in shares:
        check_number(share, "a share", error=PdpError)
    found = [float(share) for share in shares]
    if len(found) != len(parts) or not all(0 < share < math.inf for share in found):
        raise PdpError(f"shares must be one positive number per query ({len(parts)}).")
    return [share / sum(found) for share in found]
