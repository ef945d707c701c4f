"""What the JSON of a calibration or a release must hold, read back piece by piece."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pandas as pd

from pdp_calibrate.arrays import checked_positive, checked_share
from pdp_calibrate.calibration.release import (
    Moment,
    by_part,
    checked_answer,
    labelled,
    labelled_rows,
)
from pdp_calibrate.core.model import LATER, SCHEMA, Model, field_of, is_later
from pdp_calibrate.core.problem import LAPLACE, Measure
from pdp_calibrate.core.query import Histogram, Query
from pdp_calibrate.core.row_query import RowQuery
from pdp_calibrate.errors import CalibrationError, PdpError


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


def stored_moment(described: Mapping[str, Any], model: Model) -> Moment | None:
    """Return the step that a release is about; None where the model has an end."""
    if not model.is_endless:
        return None
    step, every, number = (field_of(described, key) for key in ("step", "every", "number"))
    if type(step) not in (int, str) or not isinstance(every, str | None) or type(number) is not int:
        raise CalibrationError("a step is a whole number, or text with its number.")
    return Moment(step, every, number)


def stored_measure(described: Mapping[str, Any]) -> tuple[Measure, float | None]:
    """Return the noise of a stored calibration and its δ, and the μ that it claims."""
    named = described.get("noise", "Laplace")
    laws = set(named) if isinstance(named, list) else {named}
    if "Gaussian" not in laws:
        return LAPLACE, None
    if laws != {"Gaussian"}:
        raise CalibrationError("answers released together all have Gaussian noise, or none.")
    delta = checked_share(number_in(field_of(described, "delta"), "delta"), "delta", error=PdpError)
    mu = checked_positive(number_in(field_of(described, "mu"), "mu"), "mu", error=PdpError)
    return Measure(noise="gaussian", delta=delta), mu


def parsed(text: str, kind: str) -> dict[str, Any]:
    """Read a JSON object of this library and type."""
    try:
        described = json.loads(text)
    except json.JSONDecodeError as error:
        raise CalibrationError("the text is not JSON.") from error
    return checked_header(described, kind)


def checked_header(described: Any, kind: str) -> dict[str, Any]:
    """Return a JSON object of this library and type; old names are replaced by today's."""
    if not isinstance(described, dict) or described.get("schema") != SCHEMA:
        raise CalibrationError(f"the JSON must be an object with schema {SCHEMA}.")
    if is_later(described):
        raise CalibrationError(f"the JSON {LATER}")
    if described.get("type") == f"Joint{kind}":  # what version 1 called that of a list
        renamed = {"queries": "query", "scales": "scale", "values": "value"}
        lists = {new: field_of(described, old) for old, new in renamed.items() if old in described}
        if not all(isinstance(found, list) for found in lists.values()):
            raise CalibrationError(f"a Joint{kind} holds lists.")
        return {**described, **lists, "type": kind}
    if described.get("type") != kind:
        raise CalibrationError(f"the JSON does not describe a {kind}.")
    return described


def checked_behind(numbers: Any, query: Query) -> list[float]:
    """Return the noisy numbers behind a mean of rows, as a file holds them."""
    if isinstance(query, RowQuery):
        wanted = query.parts * (2 if query.is_ratio else 1)
        if not isinstance(numbers, list) or len(numbers) != wanted:
            raise CalibrationError(f"behind this mean are {wanted} noisy numbers.")
    return [float(number) for number in checked_answer(numbers)]


def restored(value: Any, query: Query, model: Model) -> Any:
    """Undo `unlabelled`: a number, a Series by category or by row, or a frame of both."""
    if isinstance(query, RowQuery):
        return by_part(value if isinstance(value, list) else [value], query)
    if not isinstance(query, Histogram):
        return pd.Series(value) if isinstance(value, list) else value
    if value and isinstance(value[0], list):
        return labelled_rows(value, query, model, None)
    return labelled(value, query, model)


def number_in(value: Any, what: str) -> float:
    """Return a number of a JSON object."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise CalibrationError(f"{what} must be a number.")
    return value
