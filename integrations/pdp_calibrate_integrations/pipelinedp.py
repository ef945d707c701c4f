"""PipelineDP, aggregations on Beam, Spark or locally: ``pip install "pdp-calibrate[pipelinedp]"``.

Neighbours: PipelineDP protects adding or removing a privacy unit with all its records; the
sensitivity of its sum is the larger of abs(min_value) and abs(max_value) per contribution
(`pipeline_dp.dp_computations.compute_sensitivities_for_sum`), as in Google's library
(arXiv 1909.01917), whose noise it draws. So a budget is handed over as ``add-remove``: half.
`laplace` and `aggregation` set the scale itself, to which no relation matters.

The privacy unit must be the tuple of the model: extract an id per person, not per family. δ is 0,
so partitions must be public and the noise Laplace; PipelineDP refuses anything else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pdp_calibrate import Calibration, Ledger
from pdp_calibrate.core.model import Model
from pdp_calibrate_integrations.handover import (
    GRID_ROUNDING,
    budget,
    checked_ledger,
    gaussian_scale,
    laplace_parameters,
    sum_parameters,
)
from pdp_calibrate_integrations.requiring import require


@dataclass(frozen=True, kw_only=True)
class Aggregation:
    """What a `DPEngine` needs for one calibrated sum."""

    params: Any
    """The `AggregateParams`: one SUM with Laplace noise, clamped to the bounds of the model."""
    accountant: Any
    """A `NaiveBudgetAccountant` with the budget of exactly this aggregation."""


def laplace(calibration: Calibration, *, ledger: Ledger | None = None) -> Any:
    """Return PipelineDP's Laplace mechanism at the calibrated scale, for one release.

    Parameters
    ----------
    calibration, ledger
        As in `laplace` of the adapter for PyDP.

    Returns
    -------
    pipeline_dp.dp_computations.LaplaceMechanism
        Whose `noise_parameter` is the scale.
    """
    computations = require("pipeline_dp.dp_computations", extra="pipelinedp")
    handed = laplace_parameters(calibration, slack=GRID_ROUNDING, ledger=ledger)
    return computations.LaplaceMechanism.create_from_epsilon(handed.epsilon, handed.sensitivity)


def gaussian(calibration: Calibration, *, ledger: Ledger | None = None) -> Any:
    """Return PipelineDP's Gaussian mechanism at the calibrated σ, for one release.

    Parameters
    ----------
    calibration
        What will be released, with ``noise="gaussian"``. Every number of its answer gets
        `add_noise` once. The proof is about normal noise; Google's sampler draws a binomial law on
        a grid that is close to it, and rounds the answer to that grid, which is charged.
    ledger
        Where the release is recorded first; it refuses what does not fit.

    Returns
    -------
    pipeline_dp.dp_computations.GaussianMechanism
        Whose `std` is at least σ.
    """
    computations = require("pipeline_dp.dp_computations", extra="pipelinedp")
    scale = gaussian_scale(calibration, slack=GRID_ROUNDING, ledger=ledger)
    return computations.GaussianMechanism.create_from_std_deviation(scale, 1.0)


def aggregation(calibration: Calibration, *, ledger: Ledger | None = None) -> Aggregation:
    """Return parameters and accountant of a SUM with noise of exactly the calibrated scale.

    Parameters
    ----------
    calibration, ledger
        As in `bounded_sum` of the adapter for PyDP, which draws the same noise.

    Returns
    -------
    Aggregation
        For one `DPEngine.aggregate` with public partitions. The value extractor returns what a
        tuple *adds* to the answer: for a sum its value, for a count 0 or 1. Tuples that are
        correlated with each other must lie in the same partition, so that each partition holds
        independent blocks of its own.
    """
    library = require("pipeline_dp", extra="pipelinedp")
    lower, upper, dp_epsilon = sum_parameters(calibration, ledger=ledger)
    return Aggregation(
        params=library.AggregateParams(
            metrics=[library.Metrics.SUM],
            noise_kind=library.NoiseKind.LAPLACE,
            max_partitions_contributed=1,
            max_contributions_per_partition=1,
            min_value=lower,
            max_value=upper,
        ),
        accountant=library.NaiveBudgetAccountant(
            total_epsilon=dp_epsilon, total_delta=0, num_aggregations=1
        ),
    )


def budget_accountant(model: Model, *, epsilon: float, ledger: Ledger | None = None) -> Any:
    """Return an accountant with the plain-DP budget that keeps ε for correlated tuples.

    Parameters
    ----------
    model
        How the tuples are correlated; each is one privacy unit.
    epsilon
        The most that anyone may learn from everything that the accountant pays for.
    ledger
        Where the whole budget is charged first; it refuses what does not fit.

    Returns
    -------
    pipeline_dp.NaiveBudgetAccountant
        For one `DPEngine` and any number of aggregations: plain-DP budgets add up.
    """
    library = require("pipeline_dp", extra="pipelinedp")
    checked_ledger(model, ledger)
    dp_epsilon = budget(model, epsilon=epsilon, neighbours="add-remove")
    if ledger is not None:
        ledger.charge(dp_epsilon, neighbours="add-remove", note="PipelineDP")
    return library.NaiveBudgetAccountant(total_epsilon=dp_epsilon, total_delta=0)
