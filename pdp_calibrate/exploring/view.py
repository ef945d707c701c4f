"""What the page shows for the answers of its form: numbers, words and pictures; no browser."""

from __future__ import annotations

import functools
import warnings
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pdp_calibrate.calibration.result import AnyCalibration
from pdp_calibrate.core.problem import Leakage
from pdp_calibrate.errors import ModelFitWarning, PdpError
from pdp_calibrate.exploring.answers import Asked, asked_by, completed
from pdp_calibrate.exploring.handover import Handover, handover, refuse_other_plan
from pdp_calibrate.exploring.subject import Subject
from pdp_calibrate.jobs.advise import Choice, advise
from pdp_calibrate.jobs.grammar import Question
from pdp_calibrate.jobs.run import calibrate_task
from pdp_calibrate.show.explain import paragraphs
from pdp_calibrate.show.page import libraries, picture
from pdp_calibrate.show.simulated import simulated_answers
from pdp_calibrate.show.summary import views_of
from pdp_calibrate.show.words import assumptions_of, leakage_of_plain_dp, learned

T = TypeVar("T")


_LEARNS_LATER = (
    "Learning reads the rows, so nothing is learned before a release; its ε is charged to the"
    " ledger before a row is read. The answer may leak ε = {:g}, and learning {:g} on top of it."
)
_WORDS = ("promise", "worst", "plain", "group", "learning", "interval")
_REMEMBERED = 6  # forms kept, so that going back and forth, and drawing, compute nothing twice


@dataclass(frozen=True, kw_only=True)
class View:
    """Everything in the last step of the page, except its pictures."""

    problem: str = ""
    """Why there is nothing to show, in one sentence."""
    scales: tuple[tuple[str, str, str], ...] = ()
    """For each question its text, its scale, and how far the answer may be off."""
    units: tuple[str, ...] = ()
    """What each scale is measured in."""
    exact_scales: tuple[float, ...] = ()
    """The scales, to the last digit."""
    facts: tuple[tuple[str, str], ...] = ()
    """Names and numbers."""
    words: tuple[str, ...] = ()
    """What they mean."""
    assumed: tuple[str, ...] = ()
    """The assumptions behind the promise."""
    choices: tuple[Choice, ...] = ()
    """Other assumptions about how people are correlated, and what they cost."""
    handover: Handover | None = None
    """The same job for use elsewhere."""


@dataclass(kw_only=True, eq=False)
class Worked:
    """The result of one form's answers."""

    subject: Subject
    """What they are about."""
    answers: Mapping[str, str]
    """The answers."""
    asked: Asked
    """What they ask for."""
    calibration: AnyCalibration | None
    """Its noise; None where a model must be learned first."""
    warned: tuple[str, ...] = ()
    """What `calibrate` warns of."""

    @functools.cached_property
    def plain(self) -> Leakage | None:
        """What the noise of plain DP would really leak."""
        return None if self.calibration is None else leakage_of_plain_dp(self.calibration)

    @functools.cached_property
    def views(self) -> dict[str, Any]:
        """The numbers behind the pictures, by the name of the picture."""
        if self.calibration is None:
            return {}
        found: dict[str, Any] = {}
        questions = self.asked.job.questions
        for place, question in enumerate(questions):
            name = "simulated" if len(questions) == 1 else f"simulated-{place + 1}"
            found[name] = simulated_answers(
                self.calibration,
                people=self._people(self.calibration, question),
                place=place,
                asked="" if len(questions) == 1 else question.text,
            )
        simulated = {name: one for name, one in found.items() if one is not None}
        return simulated | views_of(self.calibration, self.plain)

    def _people(self, found: AnyCalibration, question: Question) -> int:
        """Return how many values enter an answer."""
        named = len(question.columns or ())
        if self.subject.frame is not None:
            wide = not self.asked.job.is_long and not named
            return self.subject.rows * (len(found.model.names) if wide else max(named, 1))
        return found.rows * (named or len(found.model.names))


@dataclass(frozen=True, kw_only=True, eq=False)
class Page:
    """One subject, and the results of the last forms about it."""

    subject: Subject
    """What it is about."""
    _recent: OrderedDict[Any, Worked] = field(default_factory=OrderedDict, init=False, repr=False)
    _drawn: dict[str, tuple[Any, dict[str, str]]] = field(
        default_factory=dict, init=False, repr=False
    )

    def __post_init__(self) -> None:
        if self.subject.plan is not None:
            found = self.worked({})
            refuse_other_plan(found.asked, found.subject, self.subject.plan)

    def worked(self, given: Mapping[str, str]) -> Worked:
        """Compute what the answers ask for, and its noise."""
        answers = completed(given, self.subject)
        key = frozenset(answers.items())
        found = self._recent.pop(key, None) or self._work(answers)
        self._recent[key] = found
        while len(self._recent) > _REMEMBERED:
            self._recent.popitem(last=False)
        return found

    def _work(self, answers: Mapping[str, str]) -> Worked:
        subject = self.subject.about(answers)
        asked = asked_by(answers, subject)
        calibration, warned = None, []
        if asked.task is not None:
            with warnings.catch_warnings(record=True) as warned:
                warnings.simplefilter("ignore")
                warnings.simplefilter("always", ModelFitWarning)  # private models are refused
                calibration = calibrate_task(asked.job, asked.task)
        return Worked(
            subject=subject,
            answers=answers,
            asked=asked,
            calibration=calibration,
            warned=tuple(f"Careful: {one.message}" for one in warned),
        )

    def view(self, given: Mapping[str, str]) -> View:
        """Return numbers and words; invalid answers give a sentence that says why."""
        return in_a_sentence(lambda: _view(self.worked(given)), lambda words: View(problem=words))

    def pictures(self, given: Mapping[str, str]) -> Mapping[str, Any]:
        """Return the numbers behind all pictures, by name; none for invalid answers."""
        return in_a_sentence(lambda: self.worked(given).views, lambda _: {})

    def picture(self, given: Mapping[str, str], name: str) -> dict[str, str] | None:
        """Draw one picture as SVG, with its title and caption; None where there is none.

        A picture whose numbers have not changed is not drawn again.
        """
        view = self.pictures(given).get(name)
        if view is None:
            return None
        last = self._drawn.get(name)
        if last is not None and last[0] == view:
            return last[1]
        _, canvas = libraries()
        found = picture(name, view, canvas)
        self._drawn[name] = (view, found)
        return found


def _view(worked: Worked) -> View:
    asked, found = worked.asked, worked.calibration
    choices = _choices(worked)
    if found is None:
        chosen = next(iter(choices), None)
        return View(
            facts=(("noise", "known when the model is learned"),),
            words=(_LEARNS_LATER.format(asked.job.epsilon, asked.job.learning.get("epsilon")),),
            assumed=() if chosen is None else (chosen.assumes,),
            choices=choices,
            handover=handover(asked, worked.subject),
        )
    said = paragraphs(found, plain=worked.plain)
    scales = tuple(
        (text, f"{scale:.6g}", wide)
        for text, scale, wide in zip(
            asked.texts,
            found.scales,
            found.half_widths_in_words(then=" in 95 % of releases"),
            strict=True,
        )
    )
    return View(
        scales=scales,
        units=found.scale_units,
        exact_scales=tuple(float(one) for one in found.scales),
        facts=facts_of(found),
        words=(*worked.warned, *(said[name] for name in _WORDS if said.get(name))),
        assumed=tuple(assumptions_of(found)),
        choices=choices,
        handover=handover(asked, worked.subject),
    )


def facts_of(found: AnyCalibration) -> tuple[tuple[str, str], ...]:
    """Return the names and numbers shown below the scales."""
    facts = [
        ("ε, the most that anyone learns", f"{found.total_epsilon:.4g}"),
        ("certified leakage", f"{found.leakage.value:.4g}"),
        ("what that does to a belief", str(found.risk(prior=0.01))),
    ]
    how = learned(found.model)
    if how is not None:
        facts.append(("the model", how))
    names = {"dp": "scale of plain DP", "group": "scale of group privacy"}
    for name, label in names.items():
        scale = found.baselines[name]
        scales = scale if isinstance(scale, tuple) else (scale,)
        if all(scales):
            each = zip(scales, found.scale_units, strict=True)
            facts.append((label, ", ".join(f"{one:.6g} ({unit})" for one, unit in each)))
    return tuple(facts)


def _choices(worked: Worked) -> tuple[Choice, ...]:
    """Return what `advise` recommends for the same answers; empty where it does not apply."""
    asked, subject, answers = worked.asked, worked.subject, worked.answers
    options: dict[str, Any] = asked.job.options  # type: ignore[assignment]
    plain = {"by", "missing", "model"} & set(options)
    if subject.frame is None or plain or len(asked.texts) > 1:
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
            subject.frame,
            query=asked.texts[0],
            epsilon=asked.job.epsilon or 1.0,
            file=subject.file,
            learn=learn,
            **said,
        )
    except PdpError:  # the form reports the problem elsewhere
        return ()
    return () if found.choice is None else (found.choice, *found.alternatives)


def in_a_sentence(work: Callable[[], T], refused: Callable[[str], T]) -> T:
    """Do the work; where the library refuses, pass its message to `refused` instead."""
    try:
        return work()
    except PdpError as error:
        return refused(str(error))
    except OverflowError:
        return refused("a number is too large: change the unit of the values, or narrow a range.")
    except OSError as error:
        return refused(f"{error.filename or 'a file'}: {error.strerror or type(error).__name__}.")
