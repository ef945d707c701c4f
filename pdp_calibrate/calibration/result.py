"""A proved scale, and the releases made with it."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

from pdp_calibrate import noise
from pdp_calibrate.adversaries import Adversaries
from pdp_calibrate.answers import instance_answer, row_answers, total_answer
from pdp_calibrate.baselines import scales, sensitivity
from pdp_calibrate.contributions import Contributions
from pdp_calibrate.engines import Leakage, as_leakage, checked_scale
from pdp_calibrate.engines.problem import split
from pdp_calibrate.engines.solve import leakage_with_rounding
from pdp_calibrate.errors import CalibrationError, PdpError, QueryError
from pdp_calibrate.models import Model
from pdp_calibrate.models.base import SCHEMA, field_of
from pdp_calibrate.queries import Custom, Mean, Query, lower

ROWS_COVERED = 2**20
"""A scale for real-valued answers covers the rounding of a sum over so many rows, or `rows`."""

PRIVATE_MODEL = (
    "the model was learned from private rows without differential privacy, and the scale depends"
    " on it: publishing the scale, or a release made with it, may reveal something about those"
    " rows. Learn the model from public or earlier data, or state it as an assumption."
)


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """A scale proved to keep every allowed adversary at or below ε, for one release.

    A second release about the same people leaks more, and not simply the sum: do not add up the
    ε of correlated releases.
    """

    model: Model = field(repr=False)
    """The θ or Θ that the proof is about."""
    query: Query
    """What is released."""
    adversaries: Adversaries
    """Against whom."""
    epsilon: float
    """The leakage that nobody exceeds."""
    scale: float
    """The Laplace scale λ."""
    leakage: Leakage = field(repr=False)
    """The leakage at that scale, rounding of the answer included; `value` ≤ `epsilon`."""
    rows: int = 1
    """Number of independent instances that one answer is about."""

    @functools.cached_property
    def contributions(self) -> Contributions:
        """The lowered query."""
        return lower(self.query, self.model, rows=self.rows)

    @property
    def is_integer(self) -> bool:
        """Whether answers are whole numbers with discrete noise."""
        return self.contributions.is_integer

    @functools.cached_property
    def baselines(self) -> dict[str, float | None]:
        """Scales that plain DP, group DP and the Wasserstein mechanism need for the same ε."""
        problems = split(self.model, self.contributions, self.adversaries)
        return scales(problems, self.epsilon)

    @property
    def dp_epsilon(self) -> float:
        """The plain-DP budget that has this scale: GS(f)/λ."""
        return sensitivity(self.model, self.query, rows=self.rows).overall / self.scale

    def accuracy(self, *, alpha: float = 0.05) -> float:
        """Return the half-width h with P(|noise| > h) ≤ alpha, of the law actually drawn."""
        if not 0 < alpha < 1:
            raise PdpError(f"alpha must lie between 0 and 1, got {alpha}.")
        return noise.half_width(self.scale, alpha, integer=self.is_integer)

    def release(self, data: Any) -> Release:
        """Answer with noise: one instance (a mapping or Series), or all rows of a wide frame.

        Parameters
        ----------
        data
            ``{name: value}``, or a frame with a column per tuple that enters the answer. Rows are
            independent instances; one answer over all of them needs the scale of one.

        Returns
        -------
        Release
            The noisy answer and how it was made; never the true answer.

        Raises
        ------
        ModelError
            If a value lies outside the model's domain. The message names the column, so the
            error itself tells something about the data: keep it from the public.
        """
        if isinstance(data, pd.Series | Mapping):
            answer, rows = instance_answer(self.contributions, self.model, dict(data)), 1
        else:
            answer, rows = total_answer(self.contributions, self.model, data)
        self._check_rows(rows)
        return Release(value=self._noisy([answer])[0], calibration=self)

    def release_rows(self, frame: Any) -> Release:
        """Answer for each row of a wide frame by itself; `value` is a Series on its index."""
        self._check_rows(1)
        noisy = self._noisy(row_answers(self.contributions, self.model, frame))
        index = frame.index if isinstance(frame, pd.DataFrame) else None
        return Release(value=pd.Series(noisy, index=index), calibration=self)

    def _noisy(self, answers: list[Fraction]) -> list[int] | list[float]:
        if self.is_integer:
            return noise.add_laplace_to_integers([int(a) for a in answers], self.scale)
        return noise.add_laplace_to_floats([float(a) for a in answers], self.scale)

    def _check_rows(self, rows: int) -> None:
        if isinstance(self.query, Mean | Custom) and rows != self.rows:
            raise QueryError(
                f"the scale is for an answer over {self.rows} rows, got {rows};"
                f" calibrate with rows={rows}."
            )
        if self.is_integer:
            if rows * self.contributions.magnitude >= 2.0**62:
                raise QueryError("the answer may not fit into a 64-bit whole number.")
        elif rows > covered_rows(self.rows):
            raise QueryError(
                f"the scale covers the rounding of sums over up to {covered_rows(self.rows)} rows,"
                f" got {rows}; calibrate with rows={rows}."
            )

    def to_dict(self) -> dict[str, Any]:
        """Describe the calibration for JSON; nothing of a private model but its names."""
        private = self.model.provenance == "private"
        query = self.query.tabulate(self.model) if isinstance(self.query, Custom) else self.query
        leakage = self.leakage.to_dict()
        return {
            "schema": SCHEMA,
            "type": "Calibration",
            "epsilon": self.epsilon,
            "scale": self.scale,
            "noise": "discrete Laplace" if self.is_integer else "Laplace",
            "rows": self.rows,
            "query": query.to_dict(),
            "adversaries": self.adversaries.to_dict(),
            "model": self.model.to_dict(),
            "leakage": {"value": leakage["value"]} if private else leakage,
        } | ({"warning": PRIVATE_MODEL} if private else {})

    def to_json(self) -> str:
        """Return the calibration as JSON text; `from_json` reads it back."""
        return json.dumps(self.to_dict(), indent=2)

    @classmethod
    def from_json(cls, text: str, *, model: Model | None = None) -> Calibration:
        """Read a calibration, and prove it again before returning it.

        Parameters
        ----------
        text
            What `to_json` returned.
        model
            The model, where the JSON withholds it (private, or over 10⁴ cells).
        """
        described = _parsed(text)
        stored = Model.from_dict(field_of(described, "model"))
        digest = described["model"].get("digest")
        if model is not None and digest not in (None, model.digest):
            raise CalibrationError("the model given is not the one this calibration was made for.")
        if stored is not None and model is not None and stored != model:
            raise CalibrationError("the model given is not the one stored with this calibration.")
        used = stored or model
        if used is None:
            raise CalibrationError("the JSON withholds the model: pass it as model=.")
        scale = _number(described, "scale")
        claim = cls(
            model=used,
            query=Query.from_dict(field_of(described, "query")),
            adversaries=Adversaries.from_dict(field_of(described, "adversaries")),
            epsilon=_number(described, "epsilon"),
            scale=scale,
            leakage=Leakage(value=math.inf, lower=0.0, scale=scale, witness=None),
            rows=int(_number(described, "rows")),
        )
        return replace(claim, leakage=verify(claim))


@dataclass(frozen=True, kw_only=True)
class Release:
    """A noisy answer and the calibration behind it. The true answer is nowhere in it.

    For this one release nobody learns more than ``calibration.epsilon``.
    """

    value: Any
    """The noisy answer: int or float, or a Series for `release_rows`."""
    calibration: Calibration = field(repr=False)
    """How it was made."""

    def interval(self, *, alpha: float = 0.05) -> tuple[Any, Any]:
        """Return bounds that contain the true answer with probability at least 1 − alpha."""
        width = self.calibration.accuracy(alpha=alpha)
        if self.calibration.is_integer:
            return self.value - int(width), self.value + int(width)
        return self.value - width, self.value + width

    def to_dict(self) -> dict[str, Any]:
        """Describe the release for JSON."""
        value = self.value.tolist() if isinstance(self.value, pd.Series) else self.value
        calibration = self.calibration.to_dict()
        return {"schema": SCHEMA, "type": "Release", "value": value, "calibration": calibration}

    def to_json(self) -> str:
        """Return the release as JSON text."""
        return json.dumps(self.to_dict(), indent=2)


def verify(calibration: Calibration) -> Leakage:
    """Prove a calibration again from its model, query and scale alone.

    Returns the leakage at its scale; raises `CalibrationError` if that is above its ε.
    """
    checked_scale(calibration.scale)
    checked_epsilon(calibration.epsilon)
    problems = split(calibration.model, calibration.contributions, calibration.adversaries)
    error = rounding_error(calibration.contributions, calibration.rows)
    found, _ = leakage_with_rounding(problems, calibration.scale, rounding=error)
    if not found.value <= calibration.epsilon:
        raise CalibrationError(
            f"scale {calibration.scale} leaks up to {found.value}, above the"
            f" epsilon = {calibration.epsilon} it claims."
        )
    return as_leakage(found, calibration.scale)


def checked_epsilon(epsilon: float) -> float:
    """Return ε as a float, or raise unless it is positive and finite."""
    if isinstance(epsilon, bool) or not isinstance(epsilon, int | float | np.number):
        raise PdpError(f"epsilon must be a number, got {type(epsilon).__name__}.")
    if not 0 < epsilon < math.inf:
        raise PdpError(f"epsilon must be positive and finite, got {epsilon}.")
    return float(epsilon)


def rounding_error(contributions: Contributions, rows: int) -> float:
    """Bound the rounding of the answer before noise; whole numbers are exact."""
    if contributions.is_integer:
        return 0.0
    return noise.summation_error(contributions.magnitude * covered_rows(rows))


def covered_rows(rows: int) -> int:
    """Return the number of rows whose summation error a scale covers."""
    return max(rows, ROWS_COVERED)


def _parsed(text: str) -> dict[str, Any]:
    try:
        described = json.loads(text)
    except json.JSONDecodeError as error:
        raise CalibrationError("the text is not JSON.") from error
    if not isinstance(described, dict) or described.get("schema") != SCHEMA:
        raise CalibrationError(f"the JSON must be an object with schema {SCHEMA}.")
    if described.get("type") != "Calibration":
        raise CalibrationError("the JSON does not describe a Calibration.")
    return described


def _number(described: Mapping[str, Any], key: str) -> float:
    value = field_of(described, key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise CalibrationError(f"{key} must be a number.")
    return value
