"""What the page says about the answers of its form: numbers, words and pictures; no browser."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from pdp_calibrate.calibration.result import AnyCalibration
from pdp_calibrate.errors import PdpError, PrivacyLeakWarning
from pdp_calibrate.exploring.answers import Asked, asked_by, completed
from pdp_calibrate.exploring.handover import Handover, handover, refuse_other_plan
from pdp_calibrate.exploring.subject import Subject
from pdp_calibrate.jobs.advise import Choice, advise
from pdp_calibrate.jobs.run import calibrate_task
from pdp_calibrate.show.explain import paragraphs
from pdp_calibrate.show.page import libraries, picture
from pdp_calibrate.show.simulated import simulated_answers
from pdp_calibrate.show.summary import Summary, summarise
from pdp_calibrate.show.words import assumptions, is_clamped

T = TypeVar("T")


_LEARNS_LATER = (
    "Learning reads the rows, so nothing is learned before a release; its ε is in the ledger before"
    " a row is read. The answer may leak ε = {:g}, and learning {:g} on top of it."
)
_WORDS = ("promise", "worst", "plain", "group", "learning", "interval")


@dataclass(frozen=True, kw_only=True)
class View:
    """Everything in the last step of the page."""

    problem: str = ""
    """Why there is nothing to show, in one sentence."""
    scales: tuple[tuple[str, str, str], ...] = ()
    """For each question its text, its scale and how far its noise reaches."""
    exact_scales: tuple[float, ...] = ()
    """The scales, to the last digit."""
    facts: tuple[tuple[str, str], ...] = ()
    """Names and numbers."""
    words: tuple[str, ...] = ()
    """What it means."""
    assumed: tuple[str, ...] = ()
    """What carries the promise."""
    choices: tuple[Choice, ...] = ()
    """Other ways to say how people are correlated, and what they cost."""
    handover: Handover | None = None
    """The same job elsewhere."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Page:
    """One subject, asked about again and again."""

    subject: Subject
    """What it is about."""

    def __post_init__(self) -> None:
        if self.subject.plan is not None:
            asked = asked_by(completed({}, self.subject), self.subject)
            refuse_other_plan(asked, self.subject, self.subject.plan)

    def calibrated(self, given: Mapping[str, str]) -> tuple[Asked, AnyCalibration | None]:
        """Return what the answers ask for, and its noise; None where a model is learned first."""
        asked = asked_by(completed(given, self.subject), self.subject)
        if asked.task is None:
            return asked, None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyLeakWarning)  # private models are refused
            return asked, calibrate_task(asked.job, asked.task)

    def view(self, given: Mapping[str, str]) -> View:
        """Return numbers and words; bad answers give a sentence."""
        return in_a_sentence(lambda: self._view(given), lambda words: View(problem=words))

    def _view(self, given: Mapping[str, str]) -> View:
        answers = completed(given, self.subject)
        asked, found = self.calibrated(given)
        choices = self._choices(asked, answers)
        if found is None:
            chosen = next(iter(choices), None)
            return View(
                facts=(("noise", "known when the model is learned"),),
                words=(_LEARNS_LATER.format(asked.job.epsilon, asked.job.learning.get("epsilon")),),
                assumed=() if chosen is None else (chosen.assumes,),
                choices=choices,
                handover=handover(asked, self.subject),
            )
        said = paragraphs(found)
        scales = tuple(
            (text, f"{scale:.6g}", f"±{wide:.6g}")
            for text, scale, wide in zip(
                asked.texts, found.scales, found.half_widths(), strict=True
            )
        )
        return View(
            scales=scales,
            exact_scales=tuple(float(one) for one in found.scales),
            facts=self._facts(found),
            words=tuple(said[name] for name in _WORDS if said.get(name)),
            assumed=tuple(assumptions(found.model, found.adversaries, clamped=is_clamped(found))),
            choices=choices,
            handover=handover(asked, self.subject),
        )

    def _facts(self, found: AnyCalibration) -> tuple[tuple[str, str], ...]:
        facts = [
            ("ε, the most that anyone learns", f"{found.total_epsilon:.4g}"),
            ("certified leakage", f"{found.leakage.value:.4g}"),
            ("what that does to a belief", str(found.risk(prior=0.01))),
        ]
        names = {"dp": "scale of plain DP", "group": "scale of group privacy"}
        for name, label in names.items():
            scale = found.baselines[name]
            first = scale[0] if isinstance(scale, tuple) else scale
            if first:
                facts.append((label, f"{first:.6g}"))
        return tuple(facts)

    def _choices(self, asked: Asked, answers: Mapping[str, str]) -> tuple[Choice, ...]:
        """Return what `advise` says for the same answers; nothing where it does not apply."""
        options: dict[str, Any] = asked.job.options  # type: ignore[assignment]
        plain = {"by", "missing", "model"} & set(options)
        if self.subject.frame is None or plain or len(asked.texts) > 1:
            return ()
        said = {
            name: options[name]
            for name in ("groups", "order_by", "independent", "max_group_size", "bounds",
                         "domains", "correlation", "persistence")
            if name in options
        }  # fmt: skip
        learn: Any = answers["alike"] if answers["alike"] in ("public", "dp") else None
        try:
            found = advise(
                self.subject.frame,
                query=asked.texts[0],
                epsilon=asked.job.epsilon or 1.0,
                file=self.subject.file,
                learn=learn,
                **said,
            )
        except PdpError:  # it is about what the form says elsewhere
            return ()
        return () if found.choice is None else (found.choice, *found.alternatives)

    def pictures(self, given: Mapping[str, str]) -> tuple[dict[str, str], ...]:
        """Return pictures as SVG: an answer about simulated people, and those of the report."""
        return in_a_sentence(lambda: self._pictures(given), lambda _: ())

    def _pictures(self, given: Mapping[str, str]) -> tuple[dict[str, str], ...]:
        _, canvas = libraries()
        asked, found = self.calibrated(given)
        if found is None or asked.task is None:
            return ()
        views: dict[str, Any] = {}
        people = self._people(asked, found)
        simulated = simulated_answers(found, people=people) if people else None
        if simulated is not None:
            views["simulated"] = simulated
        summary: Summary = summarise(found)
        return tuple(picture(name, one, canvas) for name, one in (views | summary.views).items())

    def _people(self, asked: Asked, found: AnyCalibration) -> int:
        """Return how many values enter an answer."""
        (question, *_) = asked.job.questions
        named = len(question.columns or ())
        if self.subject.frame is not None:
            wide = not asked.job.is_long and not named
            return self.subject.rows * (len(found.model.names) if wide else max(named, 1))
        return found.rows * (named or len(found.model.names))


def in_a_sentence(work: Callable[[], T], told: Callable[[str], T]) -> T:
    """Do the work; where the library refuses, tell its sentence instead."""
    try:
        return work()
    except PdpError as error:
        return told(str(error))
    except OverflowError:
        return told("a number is too large: change the unit of the values, or narrow a range.")
    except OSError as error:
        return told(f"{error.filename or 'a file'}: {error.strerror or type(error).__name__}.")
