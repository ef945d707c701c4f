"""The accounts of a ledger that grows step by step, about a model without an end."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pdp_calibrate.arrays import checked_positive
from pdp_calibrate.calibration.calibrate import calibrate
from pdp_calibrate.calibration.release import Layout
from pdp_calibrate.calibration.result import AnyCalibration
from pdp_calibrate.calibration.solve import rounding_error
from pdp_calibrate.composition.joint import NoisyAnswers
from pdp_calibrate.core.contributions import Contributions
from pdp_calibrate.core.model import Model
from pdp_calibrate.core.problem import Bound, composer_of
from pdp_calibrate.core.query import EachStep, Query, lower
from pdp_calibrate.core.rounding import ROUND_UP
from pdp_calibrate.errors import BudgetExceededError, LedgerError, PdpError
from pdp_calibrate.families.stream.course import Course
from pdp_calibrate.families.stream.memory import Contracting
from pdp_calibrate.families.stream.noise import noise_memory
from pdp_calibrate.families.stream.search import Correlated, memory_of
from pdp_calibrate.frames.answers import Sizes
from pdp_calibrate.ledger.accounts import CLOSE, Ask, Entry, Step, largest_fitting, release_line
from pdp_calibrate.ledger.allowance import Allowance
from pdp_calibrate.ledger.steps import checked_every, name_of, step_name, step_number

_SMALLEST_SCALE = 1e-150  # from here on what is drawn differs from Gaussian noise by nothing


class _Noisy(NamedTuple):
    """One answer, and how far rounding moves it before its noise."""

    part: Contributions
    scale: float
    error: float
    """Between two values, in units of the scale."""


class StreamAccounts:
    """Adds up what was released at each step, and bounds the leakage about any step.

    Parameters
    ----------
    model
        A model without an end.
    allowance
        The largest leakage allowed about any step.
    every
        The length of a step; None where steps are numbers.
    promise
        The plain-DP budget reserved for every future step.
    time_limit
        Seconds for a calibration.
    """

    def __init__(
        self,
        model: Model,
        allowance: Allowance,
        *,
        every: object = None,
        promise: object = None,
        time_limit: float | None = None,
    ) -> None:
        self.every = checked_every(every)
        self.promise = (
            0.0 if promise is None else checked_positive(promise, "promise", error=PdpError)
        )
        budget = allowance.epsilon
        self._model, self._allowance, self._time_limit = model, allowance, time_limit
        self._start = self._begun()
        leak = self._start.leakage()
        if not leak <= budget:
            raise BudgetExceededError(
                f"a promise of {self.promise:.6g} at every step leaks {leak:.6g} about each, above"
                f" the budget {budget:.6g}; {self._largest_promise(budget)}"
            )

    def _begun(self) -> Course:
        """Return the stream before anything is released."""
        limit = self._allowance.epsilon
        return Course(memory=memory_of(self._model), limit=limit, promise=self.promise)

    def spent_about(self, course: Course, step: int) -> float:
        """Return the leakage about one step."""
        return course.about(step)

    def _largest_promise(self, budget: float) -> str:
        memory = self._start.memory
        if isinstance(memory, Contracting):
            most = composer_of(self._model).budget_for_ever(self._model, budget)
        else:
            most = budget / memory.for_ever(1.0)
        return f"{most:.6g} at every step is the most that fits." if most else "nothing fits."

    def heading(self) -> dict[str, Any]:
        """Describe for JSON what a step is and what is promised."""
        return {"every": self.every, "promise": self.promise}

    def step_number(self, step: object) -> int:
        """Return the number of a step, or raise."""
        if step is None:
            raise LedgerError(
                "the model of this ledger has no end, and releases are about one step: give step=."
            )
        return step_number(step, self.every)

    def total(self, state: Mapping[str, Any], draw: str) -> Course:
        """Continue from the sum stored in the state with the entries written since."""
        course, done = self._start, 0
        kept = state.get("course")
        entries: Sequence[Mapping[str, Any]] = state["entries"]
        if kept is not None:
            try:
                course, done = course.continued(kept), kept["entries"]
            except (KeyError, TypeError, ValueError) as error:
                raise LedgerError("the steps of the ledger are not what they should be.") from error
            if type(done) is not int or not 0 <= done <= len(entries):
                raise LedgerError("the steps of the ledger are about other entries than it has.")
        for described in entries[done:]:
            if described.get("draw") == draw:
                course = self._with_entry(course, Entry.from_dict(described))
        return course

    def _with_entry(self, course: Course, entry: Entry) -> Course:
        if entry.kind == "estimation":
            return course.plus_everywhere(entry.dp_epsilon or 0.0)
        step = self.step_number(entry.step)
        if entry.dp_epsilon is not None:
            return course.plus(step, entry.dp_epsilon)
        parts = [lower(query, self._model, rows=entry.rows) for query in entry.queries]
        return self._plus(course, step, self._noisy(parts, entry.scales, rows=entry.rows))

    def keep(self, state: dict[str, Any], draw: str, course: Course) -> None:
        """Store the sum of all entries so far, with old steps folded."""
        del draw  # there is only one
        state["course"] = course.closed().to_dict() | {"entries": len(state["entries"])}

    def after(self, before: Course, released: AnyCalibration, step: int) -> Course:
        """Return the course after one more release."""
        self._check_open(before, step)
        answers = self._noisy(released.contributions, released.scales, rows=released.rows)
        return self._plus(before, step, answers)

    def after_mechanism(self, before: Course, dp_epsilon: float, step: int) -> Course:
        """Return the course after one more outside mechanism of this plain-DP budget."""
        self._check_open(before, step)
        composer_of(self._model).for_ever(self._model, dp_epsilon)  # raises where nothing is sound
        return before.plus(step, dp_epsilon)

    def _noisy(
        self, parts: Sequence[Contributions], scales: Sequence[float], *, rows: int
    ) -> Iterator[_Noisy]:
        for part, scale in zip(parts, scales, strict=True):
            once = dataclasses.replace(part, every_step=False)
            yield _Noisy(part, scale, 2 * rounding_error(once, rows, self._model) / scale)

    def _plus(self, course: Course, step: int, answers: Iterable[_Noisy]) -> Course:
        """Return the course after answers about one step."""
        amount = rounding = 0.0
        for part, scale, error in answers:
            own = float(part.exact_ranges()[0]) / scale * ROUND_UP
            amount = own if amount == 0 else (amount + own) * ROUND_UP
            rounding = (rounding + error) * ROUND_UP
        if isinstance(course.memory, Contracting):  # errors are part of what the step tells
            return course.plus(step, (amount + rounding) * ROUND_UP if rounding else amount)
        return (
            course.plus(step, amount).plus_everywhere(rounding)
            if rounding
            else course.plus(step, amount)
        )

    def still_gains(self, share: float) -> int:
        """Return for how many steps the leakage about one grows by more than a share of ε."""
        return self._start.memory.fading(share)

    def _check_open(self, course: Course, step: int) -> None:
        first = course.open_from
        if first is not None and step < first:
            name = name_of(first, self.every)
            raise LedgerError(
                f"step {name_of(step, self.every)} is closed: later steps were accounted for as if"
                f" nothing more were released about it. Steps from {name} on are open."
            )

    def bound(self, course: Course, *, threshold: float | None = None) -> Bound:
        """Return the largest leakage about any step, past or future."""
        del threshold
        value = course.leakage()
        if math.isnan(value):
            raise PdpError("the leakage is not a number: nothing can be certified.")
        only_learned = not course.amounts and course.folded is None and not course.promise
        return Bound(value=value, method="whole" if only_learned and value else "stream")

    def joint_mu(self, course: Course) -> float | None:
        """Return the μ of all Gaussian noise; None where it is not drawn."""
        del course
        return None

    def calibrate(self, ask: Ask, epsilon: float) -> AnyCalibration:
        """Find the scale of a release that keeps ε alone, or (ε, δ): once, or for ever."""
        self._check_takes(ask)
        options = ask.options(epsilon, self._allowance, self._time_limit)
        return calibrate(self._model, ask.query, **options)

    def _check_takes(self, ask: Ask) -> None:
        """Refuse noise that the ledger does not count."""
        if ask.noise != "laplace" or ask.delta is not None:
            raise LedgerError("this ledger counts Laplace noise: delta= is for one begun with it.")

    def largest(self, before: Course, ask: Ask) -> AnyCalibration:
        """Find the smallest scale at which one more release about a step fits into the budget."""
        budget, step = self._allowance.epsilon, self.step_number(ask.step)
        self._check_open(before, step)
        if budget - self.spent_about(before.plus(step, 0.0), step) <= budget * CLOSE:
            raise BudgetExceededError(f"the budget {budget:.6g} of this step is spent.")
        alone = self.calibrate(ask, budget)

        def joint(louder: AnyCalibration) -> float:
            return self.bound(self.after(before, louder, step)).value

        return largest_fitting(alone, joint, budget, time_limit=self._time_limit)


class NoisyStreamAccounts(StreamAccounts):
    """The same for Gaussian noise on a Gaussian series: amounts are precisions, and μ is kept."""

    def _begun(self) -> Course:
        model, allowance = self._model, self._allowance
        if not isinstance(model, Correlated) or allowance.pure is not None:
            raise LedgerError(
                "Gaussian noise about a model without an end is for a GaussianSeries, and for"
                " Gaussian noise alone: leave pure= out."
            )
        if self.promise or model.estimation_epsilon is not None:
            raise LedgerError(
                "a ledger of Gaussian noise about a model without an end takes no promise=, and no"
                " model that was learned under differential privacy."
            )
        self._stated = model.variance is not None
        self._width = (model.bounds[1] - model.bounds[0]) * ROUND_UP
        limit = (allowance.limit(0.0) / self._width) ** 2
        return Course(memory=noise_memory(model, clamped=False), limit=limit)

    def after_mechanism(self, before: Course, dp_epsilon: float, step: int) -> Course:
        """Refuse outside mechanisms."""
        del before, dp_epsilon, step
        raise LedgerError("this ledger counts Gaussian noise alone.")

    def _plus(self, course: Course, step: int, answers: Iterable[_Noisy]) -> Course:
        for part, scale, error in answers:
            if part.clamped and self._stated:
                raise LedgerError(
                    "the variance of the series counts as noise, which it does not where values are"
                    " clamped: leave clamp= or variance= out."
                )
            if part.weights is None or not scale > _SMALLEST_SCALE:
                raise LedgerError("a Gaussian series answers sums and means with noise.")
            weight = math.hypot(*part.weights[0]) + part.rounding / self._width
            course = course.plus(step, (weight / scale) ** 2 * (1 + 1e-14))
            course = course.plus_everywhere(error * error * (1 + 1e-14))
        return course

    def bound(self, course: Course, *, threshold: float | None = None) -> Bound:
        """Return how much of the filter is used, as an ε."""
        del threshold
        return Bound(value=self._used(course, self.joint_mu(course)), method="filter")

    def spent_about(self, course: Course, step: int) -> float:
        """Return how much of the filter is used about one step, as an ε."""
        own = dataclasses.replace(course, on_top=0.0).about(step)
        return self._used(course, self._width * math.sqrt(own) * ROUND_UP)

    def joint_mu(self, course: Course) -> float:
        """Return the μ of all Gaussian noise, about the step with the largest leakage."""
        return self._width * math.sqrt(course.by_steps()) * ROUND_UP

    def _used(self, course: Course, mu: float) -> float:
        """Return the part of ε that a μ uses; what rounding adds to it is kept in `on_top`."""
        answers = NoisyAnswers(rounding=course.on_top, choices=2)
        return self._allowance.spent(0.0, mu, answers, 0.0)

    def _check_takes(self, ask: Ask) -> None:
        self._allowance.check_takes(ask.noise)


def charge_at(accounts: StreamAccounts, dp_epsilon: float, note: str, step: object) -> Step:
    """Return the line of an outside mechanism about one step."""
    number = accounts.step_number(step)
    return Step(
        add=lambda before: accounts.after_mechanism(before, dp_epsilon, number),
        described={
            "kind": "charge",
            "dp_epsilon": dp_epsilon,
            "note": note,
            "step": step_name(step, accounts.every),
        },
    )


def release_at(
    accounts: StreamAccounts,
    calibration: AnyCalibration,
    layout: Layout | None,
    sizes: Sizes | None,
    step: object,
) -> Step:
    """Return the line of a release about one step."""
    number, name = accounts.step_number(step), step_name(step, accounts.every)
    line = release_line(calibration, layout, sizes)
    return Step(
        add=lambda before: accounts.after(before, calibration, number),
        described=line | {"step": name},
        layout=layout,
        sizes=sizes,
        check=lambda entries: check_once(entries, calibration.queries, name),
    )


def check_once(
    entries: Sequence[Mapping[str, Any]], queries: Sequence[Query], step: int | str
) -> None:
    """Refuse a second answer at one step to a query that is answered once at each step."""
    asked = [query.to_dict() for query in queries if isinstance(query, EachStep)]
    for entry in entries:
        if entry.get("step") == step and any(one in asked for one in entry.get("queries", ())):
            raise LedgerError(
                f"this query was answered at step {step} already: EachStep is answered once at"
                " each step."
            )
