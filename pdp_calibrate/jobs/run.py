"""Run a plan: all of it fits the budget, or nothing is released."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pdp_calibrate.calibration.calibrate import calibrate
from pdp_calibrate.calibration.release import Layout, checked_layout
from pdp_calibrate.calibration.result import AnyCalibration, AnyRelease, Calibration, Release
from pdp_calibrate.core.adversary import Adversaries
from pdp_calibrate.core.model import Model, header
from pdp_calibrate.errors import BudgetExceededError, LedgerError
from pdp_calibrate.frames.answers import Sizes
from pdp_calibrate.jobs.asking import check_before_learning, frame_columns, prepared
from pdp_calibrate.jobs.grammar import Asked
from pdp_calibrate.jobs.plan import Plan
from pdp_calibrate.jobs.settings import ModelSettings
from pdp_calibrate.jobs.verbs import Resolved, release_rest
from pdp_calibrate.ledger.learning import has_model, learned_ledger
from pdp_calibrate.ledger.ledger import Ledger


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
            **header("Outcome"),
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


@dataclass(frozen=True, kw_only=True)
class PlannedCheck:
    """One answer of a plan, as far as it can be told without reading a secret value."""

    name: str
    """What it is called."""
    text: str
    """The query as written."""
    epsilon: float
    """What it may leak alone."""
    calibration: Calibration | None
    """The scale, or None if the model must be learned from secret rows first.

    Learning would spend privacy that nobody counts, so the scale is known when the plan is run.
    """

    def to_dict(self) -> dict[str, Any]:
        """Describe the check for JSON."""
        found = self.calibration
        return {
            "name": self.name,
            "query": self.text,
            "epsilon": self.epsilon,
            "calibration": None if found is None else found.to_dict(),
        }


def check_plan(plan: Plan) -> tuple[PlannedCheck, ...]:
    """Check a plan and calibrate its queries without reading a secret value; write nothing.

    Columns, the number of rows and the sizes of groups are public and are looked at; values are
    not, so data that a run refuses may pass. A model to be learned from secret rows is not
    learned: queries, columns and budget are checked, and the scales stay open. Where the ledger of
    the plan holds that model already, it is used.
    """
    found: Sequence[Calibration | None]
    if plan.settings.learns_from_secrets and not _has_begun(plan):
        check_before_learning(plan.source.header(), _asked(plan), plan.settings)
        _check_budget(plan)
        found = [None] * len(plan.queries)
    else:
        found = _calibrated(plan, plan.source.read(), _stored_model(plan))
    return tuple(
        PlannedCheck(name=planned.name, text=planned.text, epsilon=planned.epsilon, calibration=one)
        for planned, one in zip(plan.queries, found, strict=True)
    )


def run_plan(plan: Plan) -> Outcome:
    """Calibrate every query alone at its ε, and release all of them if they fit the budget.

    Everything that the data could make fail is done for all queries before the first is written
    down, and all of them are written down at once, before the first noise is drawn. A model that
    is learned under differential privacy is learned once: its ε is in the ledger before a row is
    read for it, and later runs on the same ledger take the model from there.

    Raises
    ------
    BudgetExceededError
        If all of them together would pass the budget. Nothing was released.
    """
    frame = plan.source.read()
    begun = _learned_ledger(plan, frame)
    calibrations = _calibrated(plan, frame, None if begun is None else begun.model)
    ready = []
    for calibration, planned in zip(calibrations, plan.queries, strict=True):
        columns = frame_columns(planned.asked, plan.settings, calibration.model)
        layout = checked_layout(**columns)
        draw, sizes = calibration.answered(frame, layout)
        ready.append(_Ready(calibration=calibration, layout=layout, sizes=sizes, draw=draw))
    ledger = begun or _ledger(plan, ready[0].calibration.model)
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
    calibration: AnyCalibration,
    frame: Any,
    asked: Sequence[Asked],
    settings: ModelSettings,
    *,
    ledger: Ledger | None,
) -> AnyRelease:
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


def _asked(plan: Plan) -> list[Asked]:
    return [one.asked for one in plan.queries]


def _calibrated(plan: Plan, frame: Any, model: Model | None) -> list[Calibration]:
    """Calibrate every query, about the model given or the one that the plan says."""
    stored = plan.ledger if plan.ledger is not None and plan.ledger.exists() else None
    about = prepared(
        frame,
        _asked(plan),
        plan.settings,
        model=model,
        otherwise=None if stored is None else lambda: Ledger.open(stored, anchor=plan.anchor).model,
    )
    return [
        calibrate(
            one.model,
            one.query,
            epsilon=planned.epsilon,
            adversaries=plan.adversaries,
            rows=one.rows,
            time_limit=plan.time_limit,
        )
        for one, planned in zip(about, plan.queries, strict=True)
    ]


def _has_begun(plan: Plan) -> bool:
    """Whether the ledger of the plan holds the model that was learned for it."""
    learned = plan.settings.epsilon is not None
    return learned and plan.ledger is not None and has_model(plan.ledger, anchor=plan.anchor)


def _stored_model(plan: Plan) -> Model | None:
    """Return the model that was learned for this plan before, if it was."""
    if plan.settings.epsilon is None or not _has_begun(plan):
        return None
    model = Ledger.open(plan.ledger or "", anchor=plan.anchor).model
    if model.estimation_epsilon != plan.settings.epsilon:
        raise LedgerError(
            f"the ledger {plan.ledger} holds a model that was not learned with epsilon ="
            f" {plan.settings.epsilon:.6g}, as the plan says. Learning another would spend more:"
            " begin a new ledger, or leave model.epsilon as it was."
        )
    return model


def _learned_ledger(plan: Plan, frame: Any) -> Ledger | None:
    """Begin the ledger, then learn; or open it, where the model was learned before."""
    if not plan.settings.learns or plan.settings.epsilon is None:
        return None
    stored = _stored_model(plan)
    if stored is not None:
        return _ledger(plan, stored)
    check_before_learning(frame, _asked(plan), plan.settings)
    _check_budget(plan)
    named = plan.queries[0].asked.columns
    about = plan.settings.about(named[0] if named else None)
    return learned_ledger(
        lambda: about.learned(frame),
        estimation_epsilon=plan.settings.epsilon,
        epsilon=plan.epsilon,
        path=plan.ledger,
        anchor=plan.anchor,
        adversaries=plan.adversaries,
        draw=plan.draw or "first",
        time_limit=plan.time_limit,
    )


def _check_budget(plan: Plan) -> None:
    """Refuse answers that cannot fit, whatever the model will be: learning comes on top."""
    learning = plan.settings.epsilon or 0.0
    largest = max(plan.queries, key=lambda one: one.epsilon)
    if learning + largest.epsilon > plan.epsilon:
        how = f" beside the {learning:.6g} of learning the model" if learning else ""
        raise BudgetExceededError(
            f"{largest.name} may leak {largest.epsilon:.6g} alone, which does not fit into the"
            f" budget {plan.epsilon:.6g}{how}. Nothing was learned or released."
        )


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
