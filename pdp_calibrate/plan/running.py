"""Run a plan: all of it fits the budget, or nothing is released."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pdp_calibrate.adversaries import Adversaries
from pdp_calibrate.answers import Sizes
from pdp_calibrate.calibration import (
    Calibration,
    JointCalibration,
    JointRelease,
    Release,
    calibrate,
)
from pdp_calibrate.calibration.releasing import Layout, checked_layout
from pdp_calibrate.errors import LedgerError
from pdp_calibrate.ledger import Ledger
from pdp_calibrate.models import Model
from pdp_calibrate.models.base import SCHEMA
from pdp_calibrate.plan.asking import frame_columns, prepared
from pdp_calibrate.plan.reading import Plan
from pdp_calibrate.plan.settings import ModelSettings
from pdp_calibrate.queries.grammar import Asked
from pdp_calibrate.verbs import Resolved, release_rest


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
    remembered: bool
    """Whether the budget is kept in a file; without one, every run begins with all of it."""

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
                "remembered": self.remembered,
            },
        }


def check_plan(plan: Plan) -> tuple[Calibration, ...]:
    """Read and check the data and calibrate every query; release nothing and write nothing."""
    return tuple(one.calibration for one in _ready(plan))


def run_plan(plan: Plan) -> Outcome:
    """Calibrate every query alone at its ε, and release all of them if they fit the budget.

    Everything that the data could make fail is done for all queries before the first is written
    down, and all of them are written down at once, before the first noise is drawn.

    Raises
    ------
    BudgetExceededError
        If all of them together would pass the budget. Nothing was released.
    """
    ready = _ready(plan)
    ledger = _ledger(plan, ready[0].calibration.model)
    ledger.spend_together([(one.calibration, one.layout, one.sizes) for one in ready])
    return Outcome(
        releases=tuple(
            PlannedRelease(name=planned.name, text=planned.text, release=one.draw())
            for planned, one in zip(plan.queries, ready, strict=True)
        ),
        ledger=ledger,
        remembered=plan.ledger is not None,
    )


def released(
    calibration: Calibration | JointCalibration,
    frame: Any,
    asked: Sequence[Asked],
    settings: ModelSettings,
    *,
    ledger: Ledger | None,
) -> Release | JointRelease:
    """Release the answers over a frame, wide or long."""
    columns = frame_columns(asked[0], settings, calibration.model)
    return calibration.release(frame, ledger=ledger, **columns)


def released_rest(
    found: Resolved,
    frame: Any,
    asked: Asked,
    settings: ModelSettings,
    *,
    ledger: Ledger,
    adversaries: Adversaries | None,
) -> Release:
    """Release one answer over a frame, wide or long, with as much as still fits the ledger."""
    columns = frame_columns(asked, settings, found.model)
    return release_rest(frame, found, ledger, adversaries=adversaries, **columns)


@dataclass(frozen=True, kw_only=True)
class _Ready:
    """An answer that only waits for being written down, and for its noise."""

    calibration: Calibration
    layout: Layout
    sizes: Sizes | None
    draw: Callable[[], Release]


def _ready(plan: Plan) -> list[_Ready]:
    """Calibrate every query and check the data for it."""
    frame = plan.source.read()
    ledger = plan.ledger
    about = prepared(
        frame,
        [one.asked for one in plan.queries],
        plan.settings,
        otherwise=(lambda: Ledger.open(ledger, anchor=plan.anchor).model)
        if ledger and ledger.exists()
        else None,
    )
    ready = []
    for one, planned in zip(about, plan.queries, strict=True):
        calibration = calibrate(
            one.model,
            one.query,
            epsilon=planned.epsilon,
            adversaries=plan.adversaries,
            rows=one.rows,
            time_limit=plan.time_limit,
        )
        columns = frame_columns(planned.asked, plan.settings, one.model)
        layout = checked_layout(**columns)
        draw, sizes = calibration.answered(frame, layout)
        ready.append(_Ready(calibration=calibration, layout=layout, sizes=sizes, draw=draw))
    return ready


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
            anchor=plan.anchor,
        )
    options: dict[str, Any] = {
        "model": model,
        "time_limit": plan.time_limit,
        "anchor": plan.anchor,
    }
    ledger = Ledger.open(plan.ledger, **options)
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
    return Ledger.open(plan.ledger, draw=plan.draw, **options)
