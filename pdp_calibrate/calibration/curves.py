"""What if: how the scale depends on what is assumed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import pandas as pd

from pdp_calibrate.calibration.calibrate import calibrate
from pdp_calibrate.calibration.proof import certified_leakage
from pdp_calibrate.core.adversary import Adversaries
from pdp_calibrate.core.leakage import checked_scale, deadline_after
from pdp_calibrate.core.model import Model
from pdp_calibrate.core.query import Query
from pdp_calibrate.errors import PdpError


@dataclass(frozen=True, kw_only=True, repr=False)
class SensitivityCurve:
    """The scale that each assumption asks for, and what one scale leaks under each."""

    parameter: str
    """What is varied."""
    values: tuple[Any, ...]
    """The assumptions, in the order given."""
    scales: tuple[float, ...]
    """For each of them, the calibrated Laplace scale λ."""
    leakages: tuple[float, ...]
    """For each of them, the certified leakage of noise of `reference_scale`."""
    epsilon: float
    """The leakage that each scale keeps."""
    reference_scale: float
    """One scale, whatever the assumption: by default the smallest on the curve."""

    def to_frame(self) -> pd.DataFrame:
        """Return a row per assumption, with columns for it, ``scale`` and ``leakage``."""
        return pd.DataFrame(
            {
                self.parameter: list(self.values),
                "scale": list(self.scales),
                "leakage": list(self.leakages),
            }
        )

    def __repr__(self) -> str:
        first, last = self.values[0], self.values[-1]
        return (
            f"SensitivityCurve({self.parameter} {first} … {last}: scale {min(self.scales):.4g} to"
            f" {max(self.scales):.4g} for epsilon {self.epsilon:.4g}; at scale"
            f" {self.reference_scale:.4g} up to {max(self.leakages):.4g} leaks)"
        )


def sensitivity_curve(
    model_family: Callable[[Any], Model],
    query: Query,
    *,
    values: Iterable[Any],
    epsilon: float = 1.0,
    parameter: str = "parameter",
    reference_scale: float | None = None,
    adversaries: Adversaries | None = None,
    rows: int = 1,
    time_limit: float | None = None,
) -> SensitivityCurve:
    """Calibrate the same query under several assumptions: correlation, group size, confidence.

    Parameters
    ----------
    model_family
        Gives the model for each value.
    query
        What is to be released.
    values
        The assumptions to compare; at least one.
    epsilon, adversaries, rows
        As in `calibrate`.
    parameter
        What to call the thing varied.
    reference_scale
        The scale whose leakage is shown under every assumption. By default the smallest of the
        calibrated ones: what leaks if noise is set for the mildest assumption and another holds.
    time_limit
        Seconds for each calibration.

    Examples
    --------
    >>> import pdp_calibrate as pdp
    >>> curve = sensitivity_curve(
    ...     lambda rho: pdp.GaussianGroup(size=4, correlation=rho, bounds=(0, 1)),
    ...     pdp.Sum(clamp=True),
    ...     values=[0.0, 0.1, 0.2],
    ...     parameter="correlation",
    ... )
    >>> [round(scale, 3) for scale in curve.scales]
    [1.0, 1.3, 1.6]
    >>> [round(leakage, 3) for leakage in curve.leakages]
    [1.0, 1.3, 1.6]
    """
    assumed = tuple(values)
    if not assumed:
        raise PdpError("values must hold at least one assumption, got none.")
    if not isinstance(query, Query):
        raise PdpError(f"a single query such as Sum() is needed, got {type(query).__name__}.")
    if not isinstance(parameter, str) or parameter in ("scale", "leakage"):
        raise PdpError(f"parameter must be a name other than scale and leakage, got {parameter!r}.")
    everyone = Adversaries.all() if adversaries is None else adversaries
    found = [
        calibrate(
            model_family(value),
            query,
            epsilon=epsilon,
            adversaries=everyone,
            rows=rows,
            time_limit=time_limit,
        )
        for value in assumed
    ]
    scale = (
        min(one.scale for one in found)
        if reference_scale is None
        else checked_scale(reference_scale)
    )
    leakages = tuple(
        one.leakage.value
        if one.scale == scale
        else certified_leakage(
            one.model,
            [one.contributions],
            [scale],
            everyone,
            rows=rows,
            deadline=deadline_after(time_limit),
        ).value
        for one in found
    )
    return SensitivityCurve(
        parameter=parameter,
        values=assumed,
        scales=tuple(one.scale for one in found),
        leakages=leakages,
        epsilon=found[0].epsilon,
        reference_scale=scale,
    )
