"""Run a plan: all of it fits the budget, or nothing is released."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pdp_calibrate.calibration import (
    Calibration,
    JointCalibration,
    JointRelease,
    Release,
    calibrate,
)
from pdp_calibrate.errors import BudgetExceededError, LedgerError
from pdp_calibrate.ledger import Ledger
from pdp_calibrate.ledger.accounts import Accounts
from pdp_calibrate.models import Model
from pdp_calibrate.models.base import SCHEMA
from pdp_calibrate.plan.asking import prepared, value_column
from pdp_calibrate.plan.reading import Plan
from pdp_calibrate.plan.settings import ModelSettings
from pdp_calibrate.queries.grammar import Asked


@dataclass(frozen=True, kw_only=True)
class PlannedRelease:
    """One answer of a plan, released."""

    name: str
    """What it is called."""
    text: str
    """The query as written."""
    release: Release
    """The noisy answer."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a plan released."""

    releases: tuple[PlannedRelease, ...]
    """The answers, in order."""
    ledger: Ledger
    """The budget, after them."""

    def to_dict(self) -> dict[str, Any]:
        """Describe the outcome for JSON."""
        return {
            "schema": SCHEMA,
            "type": "Outcome",
            "releases": [
                {"name": one.name, "query": one.text, "release": one.release.to_dict()}
                for one in self.releases
            ],
            "budget": {
                "epsilon": self.ledger.epsilon,
                "spent": self.ledger.spent,
                "remaining": self.ledger.remaining,
                "draw": self.ledger.draw,
            },
        }


def check_plan(plan: Plan) -> tuple[Calibration, ...]:
    """Read the data and calibrate every query; release nothing and write nothing."""
    return _prepared(plan)[1]


def run_plan(plan: Plan) -> Outcome:
    """Calibrate every query alone at its ε, and release all of them if they fit the budget.

    Raises
    ------
    BudgetExceededError
        If all of them together would pass the budget. Nothing was released.
    """
    frame, calibrations = _prepared(plan)
    ledger = _ledger(plan, calibrations[0].model)
    after = _joint(ledger, calibrations, plan.time_limit)
    if not after <= ledger.epsilon:
        raise BudgetExceededError(
            f"the plan would bring the joint leakage of draw {ledger.draw!r} to {after:.6g}, above"
            f" the budget {ledger.epsilon:.6g}; {ledger.spent:.6g} is spent. Nothing was released."
        )
    releases = []
    for planned, calibration in zip(plan.queries, calibrations, strict=True):
        release = released(calibration, frame, [planned.asked], plan.settings, ledger=ledger)
        if isinstance(release, Release):
            one = PlannedRelease(name=planned.name, text=planned.text, release=release)
            releases.append(one)
    return Outcome(releases=tuple(releases), ledger=ledger)


def released(
    calibration: Calibration | JointCalibration,
    frame: Any,
    asked: Sequence[Asked],
    settings: ModelSettings,
    *,
    ledger: Ledger | None,
) -> Release | JointRelease:
    """Release the answers over a frame, wide or long."""
    value = value_column(asked[0], settings, calibration.model)
    if value is None:
        return calibration.release(frame, ledger=ledger)
    return calibration.release(
        frame, value=value, by=settings.groups, order_by=settings.order_by, ledger=ledger
    )


def _prepared(plan: Plan) -> tuple[Any, tuple[Calibration, ...]]:
    frame = plan.source.read()
    ledger = plan.ledger
    about = prepared(
        frame,
        [one.asked for one in plan.queries],
        plan.settings,
        otherwise=(lambda: Ledger.open(ledger).model) if ledger and ledger.exists() else None,
    )
    calibrations = tuple(
        calibrate(
            one.model,
            one.query,
            epsilon=planned.epsilon,
            adversaries=plan.adversaries,
            rows=one.rows,
            time_limit=plan.time_limit,
        )
        for one, planned in zip(about, plan.queries, strict=True)
    )
    return frame, calibrations


def _ledger(plan: Plan, model: Model) -> Ledger:
    """Open the ledger of the plan, or begin it."""
    if plan.ledger is None or not plan.ledger.exists():
        return Ledger(
            model,
            epsilon=plan.epsilon,
            path=plan.ledger,
            adversaries=plan.adversaries,
            draw=plan.draw or "first",
            time_limit=plan.time_limit,
        )
    ledger = Ledger.open(plan.ledger, model=model, time_limit=plan.time_limit)
    if (ledger.epsilon, ledger.adversaries) != (plan.epsilon, plan.adversaries):
        raise LedgerError(
            f"the ledger {plan.ledger} has budget {ledger.epsilon:.6g} against"
            f" {ledger.adversaries!r}; the plan says {plan.epsilon:.6g} against"
            f" {plan.adversaries!r}."
        )
    if plan.draw in (None, ledger.draw):
        return ledger
    with contextlib.suppress(LedgerError):  # it exists already: then opening it succeeds
        ledger.new_draw(plan.draw or "")
    return Ledger.open(plan.ledger, model=model, draw=plan.draw, time_limit=plan.time_limit)


def _joint(ledger: Ledger, calibrations: Sequence[Calibration], time_limit: float | None) -> float:
    """Bound what the draw would have leaked after all of these."""
    accounts = Accounts(ledger.model, ledger.adversaries, time_limit=time_limit)
    total = accounts.total({"entries": [entry.to_dict() for entry in ledger.history]}, ledger.draw)
    for one in calibrations:
        total = accounts.after(total, [one.query], [one.scale], rows=one.rows)
    return accounts.bound(total).value
