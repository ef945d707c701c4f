"""Prove scales from model, lowered queries and adversaries alone, trusting nothing else."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from pdp_calibrate.calibration.release import rounding_error
from pdp_calibrate.calibration.solve import leakage_with_rounding
from pdp_calibrate.core.adversary import Adversaries
from pdp_calibrate.core.bracket import Leakage
from pdp_calibrate.core.checks import checked_positive
from pdp_calibrate.core.contributions import Contributions
from pdp_calibrate.core.leakage import as_joint_leakage, as_leakage, checked_scale, deadline_after
from pdp_calibrate.core.model import LATER, PRIVATE_MODEL, SCHEMA, Model, field_of, is_later
from pdp_calibrate.core.problem import split
from pdp_calibrate.errors import CalibrationError, PdpError

PROVING_SECONDS = 60.0
"""How long a stored calibration may take to be proved again, unless told otherwise."""


def certified_leakage(
    model: Model,
    parts: Sequence[Contributions],
    scales: Sequence[float],
    adversaries: Adversaries,
    *,
    rows: int,
    deadline: float = math.inf,
) -> Leakage:
    """Return the leakage of releasing the answers together, rounding of them included."""
    for scale in scales:
        checked_scale(scale)
    if len(parts) == 1:
        (part,), (scale,) = parts, scales
        found, _ = leakage_with_rounding(
            split(model, part, adversaries),
            scale,
            rounding=rounding_error(part, rows, model),
            deadline=deadline,
        )
        return as_leakage(found, scale)
    found, _ = leakage_with_rounding(
        split(model, Contributions.joined(parts, scales), adversaries),
        1.0,
        rounding=scaled_rounding(model, parts, scales, rows),
        deadline=deadline,
    )
    return as_joint_leakage(found, parts, scales)


def scaled_rounding(
    model: Model, parts: Sequence[Contributions], units: Sequence[float], rows: int
) -> float:
    """Add up the rounding errors of the answers, each in its unit."""
    return sum(
        rounding_error(part, rows, model) / unit for part, unit in zip(parts, units, strict=True)
    )


def proof_of(model: Model, adversaries: Adversaries, leakage: Leakage) -> dict[str, Any]:
    """Describe for JSON what was proved; nothing of a private model but its names."""
    private = model.provenance == "private"
    shown = leakage.to_dict()
    return (
        {
            "adversaries": adversaries.to_dict(),
            "model": model.to_dict(),
            "leakage": {"value": shown["value"]} if private else shown,
            "estimation_epsilon": model.estimation_epsilon,
        }
        | stated_law(model)
        | ({"warning": PRIVATE_MODEL} if private else {})
    )


def stated_law(model: Model) -> dict[str, str]:
    """Describe for JSON which law of the values the numbers assume; {} where the model says all."""
    return {} if model.assuming is None else {"assuming": model.assuming}


def proved(leakage: Leakage, epsilon: float) -> Leakage:
    """Return the leakage if it keeps ε; raise otherwise."""
    if not leakage.value <= epsilon:
        raise CalibrationError(
            f"scale {leakage.scale} leaks up to {leakage.value}, above the epsilon = {epsilon}"
            " it claims."
        )
    return leakage


def proved_again(
    model: Model,
    parts: Sequence[Contributions],
    scales: Sequence[float],
    adversaries: Adversaries,
    *,
    epsilon: float,
    rows: int,
    time_limit: float | None,
) -> Leakage:
    """Return the leakage of stored scales if it keeps ε; raise otherwise, or if time is up."""
    deadline = deadline_after(time_limit)
    found = certified_leakage(model, parts, scales, adversaries, rows=rows, deadline=deadline)
    if found.lower <= epsilon < found.value and time.monotonic() > deadline:
        raise CalibrationError(
            f"epsilon = {epsilon} could not be proved again within {time_limit} seconds. Nothing"
            " speaks against it: allow a larger time_limit, or None for as long as it takes."
        )
    return proved(found, epsilon)


def total_of(epsilon: float, learning: float | None) -> float:
    """Return what an answer and the learning of its model leak together, rounded up."""
    if learning is None:
        return epsilon
    total = epsilon + learning
    exact = Fraction(epsilon) + Fraction(learning)
    return total if Fraction(total) >= exact else math.nextafter(total, math.inf)


def checked_epsilon(epsilon: object) -> float:
    """Return ε as a float, or raise unless it is positive and finite."""
    return checked_positive(epsilon, "epsilon", error=PdpError)


def parsed(text: str, kind: str) -> dict[str, Any]:
    """Read a JSON object of this library and type."""
    try:
        described = json.loads(text)
    except json.JSONDecodeError as error:
        raise CalibrationError("the text is not JSON.") from error
    if not isinstance(described, dict) or described.get("schema") != SCHEMA:
        raise CalibrationError(f"the JSON must be an object with schema {SCHEMA}.")
    if is_later(described):
        raise CalibrationError(f"the JSON {LATER}")
    if described.get("type") != kind:
        raise CalibrationError(f"the JSON does not describe a {kind}.")
    return described


def stored_model(described: Mapping[str, Any], given: Model | None) -> Model:
    """Return the stored model, or the given one where JSON withholds it; they must agree."""
    inner = field_of(described, "model")
    stored = Model.from_dict(inner)
    if given is None:
        if stored is None:
            raise CalibrationError("the JSON withholds the model: pass it as model=.")
        return stored
    if inner.get("digest", given.digest) != given.digest or stored not in (None, given):
        raise CalibrationError("the model given is not the one this calibration was made for.")
    return given


def number_in(described: Mapping[str, Any], key: str) -> float:
    """Read a number of a JSON object."""
    value = field_of(described, key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise CalibrationError(f"{key} must be a number.")
    return value


def whole_number_in(described: Mapping[str, Any], key: str) -> int:
    """Read a whole number of a JSON object."""
    value = number_in(described, key)
    if not isinstance(value, int):
        raise CalibrationError(f"{key} must be a whole number.")
    return value
