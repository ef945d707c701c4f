"""A checklist of what can undermine a promise of differential privacy, answered as far as known.

The points are those that NIST SP 800-226, "Guidelines for Evaluating Differential Privacy
Guarantees" (2025), asks an evaluator to consider, from the top of its pyramid (ε) to its base (how
data are collected), in our words. What a library cannot know is left to the person who signs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pdp_calibrate.calibration.release import Layout
from pdp_calibrate.calibration.result import AnyCalibration, AnyRelease, Release
from pdp_calibrate.core.coverage import learned_as
from pdp_calibrate.core.model import Model
from pdp_calibrate.core.numbers import at_most, ordinary
from pdp_calibrate.frames.long_answers import LongFrame
from pdp_calibrate.ledger.ledger import Ledger
from pdp_calibrate.ledger.people import PeopleLedger
from pdp_calibrate.show.words import (
    coverage_in_full,
    is_clamped,
    kind_of_noise,
    miss_of,
    source,
)

Status = Literal["settled", "stated", "open"]
"""Proved or done by the library; true if what was stated is true; for the person who signs."""


@dataclass(frozen=True, kw_only=True)
class Hazard:
    """One point of the checklist."""

    name: str
    """What can go wrong."""
    status: Status
    """Whether it is settled."""
    answer: str
    """What is known about it here."""


def checklist(
    subject: AnyCalibration | AnyRelease | Ledger | PeopleLedger,
    *,
    layout: Layout | None = None,
    total: float,
    counted: bool,
) -> list[Hazard]:
    """Answer every point about a release, a calibration or a ledger.

    The layout says which columns of the table it is about, where that is known. Nobody learns more
    than `total`, everything counted, if a ledger has `counted` all releases about these people.
    """
    found = subject.calibration if isinstance(subject, Release) else subject
    calibration = None if isinstance(found, Ledger | PeopleLedger) else found
    model = None if isinstance(found, PeopleLedger) else found.model
    return [
        _strength(total, _delta_of(found)),
        _unit(layout),
        Hazard(
            name="Neighbouring data sets",
            status="settled",
            answer="Two data sets are neighbours if one entry is substituted by another of its"
            " possible values (“bounded”): the number of rows is public. Whether somebody is in the"
            " table at all is not protected.",
        ),
        Hazard(
            name="Correlated people, several rows per person",
            status="stated",
            answer="Counted in: the noise is set for the worst case over the model below, and not"
            " as if rows were independent. It holds if the model, and the independence of groups,"
            " does.",
        ),
        _learning(model, calibration),
        _composition(counted=counted),
        _ranges(calibration),
        _noise(calibration),
        Hazard(
            name="Bias and fairness",
            status="open",
            answer="Noise weighs more on answers about few people. The interval beside each answer"
            " says how much; whether that treats small groups fairly is to be judged.",
        ),
        Hazard(
            name="Processing after the noise",
            status="settled",
            answer="Anything computed from the published numbers alone costs no privacy."
            " Anything computed from the table again does.",
        ),
        Hazard(
            name="Side channels",
            status="open",
            answer="Time and memory of the computation, and error messages about values outside"
            " their domain, depend on the data. Hide them from those who see the answers.",
        ),
        Hazard(
            name="Trust: who sees the raw data",
            status="open",
            answer="The central model: the person who runs this library sees the table. Only what"
            " is published is protected.",
        ),
        Hazard(
            name="Access control and storage",
            status="open",
            answer="Not known here: who may read the table, its copies and its backups, and who may"
            " put back an old copy of a ledger.",
        ),
        Hazard(
            name="Collection of the data",
            status="open",
            answer="Not known here: whether the data had to be collected, and what the people in"
            " them were told.",
        ),
    ]


def _delta_of(found: AnyCalibration | Ledger | PeopleLedger) -> float:
    if isinstance(found, PeopleLedger):
        return 0.0
    return found.delta if isinstance(found, Ledger) else found.total_delta


def _strength(total: float, delta: float) -> Hazard:
    beside = f" and δ = {ordinary(delta)}" if delta else ", pure (δ = 0)"
    return Hazard(
        name="Strength: the choice of ε",
        status="stated",
        answer=f"ε = {ordinary(total)} in total{beside}: the logarithm of the factor by which odds"
        " may shift. The first paragraph says what that does to a belief; whether it is acceptable"
        " for these people is a decision.",
    )


def _unit(layout: Layout | None) -> Hazard:
    groups = layout.groups if isinstance(layout, LongFrame) else None
    inside = "" if groups is None else f" Rows of one {groups} are treated as correlated."
    return Hazard(
        name="Unit of privacy",
        status="stated",
        answer="One entry: the value of one row in one column, with all that correlated entries"
        f" reveal about it.{inside} If a person has several rows, name the column that identifies"
        " persons.",
    )


def _learning(model: Model | None, calibration: AnyCalibration | None) -> Hazard:
    name = "Parameters that were learned from the data"
    if model is None:
        return Hazard(
            name=name,
            status="stated",
            answer="Ranges, possible values and correlations were stated, and nothing was learned.",
        )
    coverage = learned_as(model)
    said = "" if coverage is None else " ".join(_covered(model, calibration))
    if model.provenance == "private":
        return Hazard(
            name=name,
            status="open",
            answer="The model was learned from the secret rows without differential privacy, so the"
            f" amount of noise reveals something about them. That is not counted in ε. {said}",
        )
    budget = model.estimation_epsilon
    spent = "" if budget is None else f" That cost ε = {ordinary(budget)}, which the total counts."
    status: Status = "settled" if model.provenance == "dp" else "stated"
    return Hazard(
        name=name,
        status="open" if coverage is not None and coverage.is_open else status,
        answer=f"The model was {source(model)}.{spent} {said}".rstrip(),
    )


def _covered(model: Model, calibration: AnyCalibration | None) -> list[str]:
    if calibration is None:
        return coverage_in_full(model)
    return coverage_in_full(model, miss=miss_of(calibration), delta=calibration.delta)


def _composition(*, counted: bool) -> Hazard:
    answer = (
        "A ledger counts all releases about these people together, by what they leak jointly, and"
        " refuses what would exceed the budget. It holds if nothing is released without it."
        if counted
        else "This release alone. A second one about the same people leaks more, and not simply the"
        " sum: use a ledger."
    )
    return Hazard(name="Several releases", status="stated", answer=answer)


def _ranges(calibration: AnyCalibration | None) -> Hazard:
    name = "Ranges and clamping"
    if calibration is None or is_clamped(calibration):
        return Hazard(
            name=name,
            status="stated",
            answer="Values are moved into a public range that was stated, not read from the data."
            " Where values lie outside, the answer is biased, and the interval does not show it.",
        )
    return Hazard(
        name=name,
        status="stated",
        answer="Possible values were stated, or belong to the model; data outside are refused.",
    )


def _noise(calibration: AnyCalibration | None) -> Hazard:
    kind = "Noise" if calibration is None else f"{kind_of_noise(calibration).capitalize()} noise"
    return Hazard(
        name="Randomness and floating point",
        status="settled",
        answer=f"{kind} is drawn by OpenDP from the operating system's generator, without a seed,"
        " on a grid that hides rounding. Rounding of the exact answer is charged to ε"
        f"{_charge(calibration)}, and every bound is rounded up.",
    )


def _charge(calibration: AnyCalibration | None) -> str:
    if calibration is None or calibration.leakage.value <= 0:
        return ""
    return f" (certified: at most {at_most(calibration.leakage.value, digits=4)})"
