"""The entries of a ledger, what they add up to, and what still fits.

Releases are recorded before they are made: all of them fit the budget, or nothing is written.

**Entries.** One line of a ledger records what was released, never the output. It also records which
values of a frame the release is about: a model describes how the values of one column are
correlated, or those of the columns that its tuples are named after. It says nothing about another
column of the same people, nor about the same column in other groups.
"""

from __future__ import annotations

import abc
import dataclasses
import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar, Literal

from pdp_calibrate.arrays import FloatArray, deadline_after
from pdp_calibrate.calibration.calibrate import CalibrationOptions, calibrate, leakage_of
from pdp_calibrate.calibration.release import (
    EVERY_COLUMN,
    Layout,
    layout_from,
    sizes_from,
    stored_layout,
)
from pdp_calibrate.calibration.result import AnyCalibration
from pdp_calibrate.calibration.solve import rounding_error
from pdp_calibrate.composition.joint import Spending, joint_mu, repeated, repeats_of, spent
from pdp_calibrate.core.adversary import Adversaries
from pdp_calibrate.core.contributions import Contributions
from pdp_calibrate.core.model import Model, field_of
from pdp_calibrate.core.noise import Noise
from pdp_calibrate.core.problem import Bound, Problem
from pdp_calibrate.core.query import Query, lower
from pdp_calibrate.core.rounding import sum_rounded_up
from pdp_calibrate.errors import BudgetExceededError, LedgerError, PdpError
from pdp_calibrate.frames.answers import Sizes
from pdp_calibrate.frames.long_answers import LongFrame
from pdp_calibrate.ledger.allowance import Allowance
from pdp_calibrate.ledger.store import FileStore, Pages, State

_ATTEMPTS = 3  # to search while others may write


CLOSE = 1e-6
"""How near to the whole budget, relative to it, the largest release comes."""


class Budget(abc.ABC):
    """What every ledger reports about its budget and its releases."""

    kind: ClassVar[str]
    """What its file says that it is."""
    _epsilon: float
    _pages: Pages

    @property
    def epsilon(self) -> float:
        """The budget: of each draw, or of each column of a table."""
        return self._epsilon

    @property
    @abc.abstractmethod
    def spent(self) -> float:
        """What everything released leaks together, certified."""

    @property
    def remaining(self) -> float:
        """What is left of the budget; a release of this ε alone may still not fit."""
        return self._epsilon - self.spent

    def keep_in(
        self, path: str | os.PathLike[str], *, anchor: str | os.PathLike[str] | None = None
    ) -> None:
        """Let the first entry of a ledger in memory begin its file: what is refused leaves none."""
        self._pages.later = FileStore(path, anchor=anchor, kind=self.kind)

    @property
    def history(self) -> tuple[Entry, ...]:
        """Everything that was released, about all draws, in order; no answers."""
        return tuple(Entry.from_dict(entry) for entry in self._pages.read()["entries"])


@dataclass(frozen=True, kw_only=True)
class Ask:
    """What is to be released, before its scale is found."""

    query: Query | Sequence[Query]
    """What is asked; a list is answered together."""
    rows: int
    """Number of independent instances that one answer is about."""
    noise: Noise
    """What is drawn."""
    delta: float | None = None
    """For Gaussian noise, the δ beside the ε of this release alone; the ledger's if None."""
    step: object = None
    """About a model without an end, the step it is about."""

    def options(
        self, epsilon: float, allowance: Allowance, time_limit: float | None
    ) -> CalibrationOptions:
        """Return how to calibrate it, so that it leaks ε alone."""
        delta = self.delta
        if self.noise == "gaussian" and delta is None:
            delta = allowance.delta
        return {
            "epsilon": epsilon,
            "rows": self.rows,
            "noise": self.noise,
            "delta": delta,
            "time_limit": time_limit,
        }


class Accounts:
    """Adds up entries and bounds what they leak together; caches what it has computed."""

    def __init__(
        self,
        model: Model,
        adversaries: Adversaries,
        *,
        allowance: Allowance,
        time_limit: float | None,
    ) -> None:
        deadline_after(time_limit)
        if allowance.pure and adversaries.is_restricted and not all(model.continuous_tuples):
            raise LedgerError(
                "Laplace noise together with Gaussian noise is counted against everyone: against"
                " fewer adversaries, independent tuples act as noise until other answers reveal"
                " them. Leave adversaries= or pure= out."
            )
        self._model, self._adversaries, self._time_limit = model, adversaries, time_limit
        self._allowance, self._is_divided = allowance, allowance.takes_gaussian
        self._parts: dict[tuple[str, int], tuple[Contributions, FloatArray, float]] = {}
        self._added: tuple[str, int, Spending] = ("", 0, Spending())
        self._joint: tuple[tuple[Any, ...], float] | None = None
        self._errors: dict[int, float] = {}
        self._repeats: dict[tuple[int, float], list[Problem]] = {}
        self._settled: dict[tuple[int, float, float], float] = {}

    def check_takes(self, noise: Noise) -> None:
        """Refuse noise that the budget is not for; a pure one is for Laplace noise."""
        if self._is_divided or noise != "laplace":
            self._allowance.check_takes(noise)

    def total(self, state: Mapping[str, Any], draw: str) -> Spending:
        """Add up the entries of one draw, continuing from what was added up before.

        The sum is kept here and, where there are too many entries to read them one by one, in the
        state itself, under its checksum.
        """
        entries: Sequence[dict[str, Any]] = state["entries"]
        added, done, total = self._added
        if added != draw or done > len(entries):
            done, total = 0, Spending()
        kept = state.get("total")
        if kept is not None and kept.get("draw") == draw and kept.get("entries", 0) > done:
            done, total = kept["entries"], self._kept(kept, len(entries))
        for described in entries[done:]:
            if described.get("draw") == draw:
                entry = Entry.from_dict(described)
                if entry.kind != "release":
                    total = _plus_charge(total, entry)
                total = self._after(
                    total, entry.queries, entry.scales, rows=entry.rows, noise=entry.noise
                )
        self._added = (draw, len(entries), total)
        return total

    def _kept(self, kept: Mapping[str, Any], entries: int) -> Spending:
        try:
            total = Spending.from_dict(kept)
        except (KeyError, TypeError, ValueError) as error:
            raise LedgerError("what the ledger adds up to is not what it should be.") from error
        budgets = total.budgets
        if budgets is None or len(budgets) != len(self._model.names) or kept["entries"] > entries:
            raise LedgerError("what the ledger adds up to is about another model.")
        return total

    def keep(self, state: dict[str, Any], draw: str, total: Spending) -> None:
        """Store the sum of all entries so far, where that saves adding them up again."""
        if total.only_budgets and total.noisy.is_empty:
            place = {"draw": draw, "entries": len(state["entries"])}
            state["total"] = place | total.to_dict()

    def after(self, before: Spending, released: AnyCalibration) -> Spending:
        """Return the spending after one more release, using the lowered query that was proved."""
        return self._after(
            before,
            released.queries,
            released.scales,
            rows=released.rows,
            noise=released.noise,
            parts=released.contributions,
        )

    def _after(
        self,
        before: Spending,
        queries: Sequence[Query],
        scales: Sequence[float],
        *,
        rows: int,
        noise: Noise,
        parts: Sequence[Contributions] | None = None,
    ) -> Spending:
        noisy = before.noisy.chosen() if noise == "gaussian" else before.noisy
        for place, (query, scale) in enumerate(zip(queries, scales, strict=True)):
            key = json.dumps(query.to_dict(), sort_keys=True), rows
            if key not in self._parts:
                part = parts[place] if parts else lower(query, self._model, rows=rows)
                error = rounding_error(part, rows, self._model)
                self._errors[id(part)] = error
                self._parts[key] = part, part.exact_ranges(), error
            part, ranges, error = self._parts[key]
            if noise == "gaussian":
                noisy = noisy.plus(part, scale, rounding=error)
            else:
                before = before.plus(part, scale, ranges=ranges, rounding=error)
        return dataclasses.replace(before, noisy=noisy)

    def bound(self, spending: Spending, *, threshold: float | None = None) -> Bound:
        """Return the smallest sound bound on what was released together, as `spent` does."""
        found = self.pure_bound(spending, threshold=threshold)
        share = self.share_of_repeats(spending)
        if share and spending.noisy.is_repeated:
            own = self._repeated(spending.noisy.precisions[0], spending, share)
            return Bound(value=sum_rounded_up(found.value, own), method="repeats")
        if share == 1 and spending.noisy.parts:
            return Bound(value=math.inf, method="repeats")
        mu = self.joint_mu(spending)
        if mu is None:
            return found
        used = self._allowance.spent(
            found.value, mu, spending.noisy, spending.draw_epsilon, 1 - share
        )
        return Bound(value=used, method="filter" if mu else found.method)

    def share_of_repeats(self, spending: Spending) -> float:
        """Return the share of δ for repeats of one query alone, which the first release fixes.

        0 where it asked several queries at once; all of δ where it needs more than its share.
        """
        noisy, share = spending.noisy, self._allowance.repeats
        if not share or len(noisy.first) != 1:
            return 0.0 if noisy.first else share
        key = id(noisy.parts[0]), noisy.first[0], spending.draw_epsilon
        if key not in self._settled:
            alone = self._repeated(noisy.first[0], spending, share)
            fits = sum_rounded_up(spending.draw_epsilon, alone) <= self._allowance.epsilon
            self._settled[key] = share if fits else 1.0
        return self._settled[key]

    def _repeated(self, precision: float, spending: Spending, share: float) -> float:
        """Return the ε of repeats of the first query at a share of δ."""
        part = spending.noisy.parts[0]  # parts are kept: their ids stay theirs
        delta = self._allowance.delta_after(spending.draw_epsilon, share)
        key = id(part), delta
        if key not in self._repeats:
            self._repeats[key] = repeats_of(self._model, part, self._adversaries, delta=delta)
        return repeated(
            self._repeats[key],
            precision,
            rounding=self._errors[id(part)],
            deadline=deadline_after(self._time_limit),
        )

    def limit(self, spending: Spending) -> float | None:
        """Return the μ within which Gaussian noise stays; None where it stays within δ alone."""
        share = self.share_of_repeats(spending)
        return None if share == 1 else self._allowance.limit(spending.draw_epsilon, 1 - share)

    def pure_bound(self, spending: Spending, *, threshold: float | None = None) -> Bound:
        """Return the same for what has a pure ε alone."""
        deadline = deadline_after(self._time_limit)
        return spent(
            self._model, spending, self._adversaries, threshold=threshold, deadline=deadline
        )

    def joint_mu(self, spending: Spending) -> float | None:
        """Return the joint μ of all Gaussian noise; None for a ledger of pure ε."""
        if not self._is_divided:
            return None
        noisy = spending.noisy
        key = tuple(map(id, noisy.parts)), noisy.precisions, noisy.outside
        if self._joint is None or self._joint[0] != key:  # parts are kept: their ids stay theirs
            mu = joint_mu(
                self._model,
                noisy,
                self._adversaries,
                data_counts=self._allowance.data_counts,
                deadline=deadline_after(self._time_limit),
            )
            self._joint = key, mu
        return self._joint[1]

    def calibrate(self, ask: Ask, epsilon: float) -> AnyCalibration:
        """Find the scale of a release that leaks ε alone, or (ε, δ) for Gaussian noise."""
        self.check_takes(ask.noise)
        if ask.noise != "gaussian" and ask.delta is not None:
            raise PdpError("delta= is about noise='gaussian'.")
        options = ask.options(epsilon, self._allowance, self._time_limit)
        options["adversaries"] = self._adversaries
        return calibrate(self._model, ask.query, **options)

    def largest(self, before: Spending, ask: Ask) -> AnyCalibration:
        """Find the smallest scale at which one more release fits into the budget."""
        budget = self._allowance.epsilon
        if budget - self.bound(before).value <= budget * CLOSE:
            raise BudgetExceededError(f"the budget {budget:.6g} of this draw is spent.")
        alone = self.calibrate(ask, budget)

        def joint(louder: AnyCalibration) -> float:
            return self.bound(self.after(before, louder), threshold=budget).value

        return largest_fitting(alone, joint, budget, time_limit=self._time_limit)


def largest_fitting(
    alone: AnyCalibration,
    joint: Callable[[AnyCalibration], float],
    budget: float,
    *,
    time_limit: float | None,
) -> AnyCalibration:
    """Return the release with the least noise that fits into a budget, to a millionth.

    Parameters
    ----------
    alone
        The release that would spend the whole budget by itself.
    joint
        What everything leaks together after the same release with other noise.
    budget
        What that may be.
    time_limit
        Seconds for what it then leaks alone.
    """
    factor = _nearly_smallest(lambda factor: joint(alone.with_noise(factor)), budget)
    fitting = alone.with_noise(factor)
    leakage = leakage_of(fitting, deadline=deadline_after(time_limit))
    epsilon = max(leakage.value, math.ulp(0.0))
    return dataclasses.replace(fitting, epsilon=epsilon, leakage=leakage, mu=leakage.mu)


def _nearly_smallest(joint: Callable[[float], float], budget: float) -> float:
    """Return a factor for all scales at which the joint leakage fits, nearly the smallest one."""
    low = 1.0
    if joint(low) <= budget:
        return low
    high, largest = 2.0, 2.0**40
    while joint(high) > budget:
        low, high = high, 2 * high
        if high > largest:
            raise BudgetExceededError("nothing more fits into the budget of this draw.")
    while high - low > CLOSE * low:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if joint(middle) > budget else (low, middle)
    return high


@dataclass(frozen=True, kw_only=True)
class Step:
    """One line to write, and how it adds to what was spent before."""

    add: Callable[[Any], Any]
    """Returns the spending after it, as the accounts of the ledger keep it."""
    described: dict[str, Any]
    """The line, without its time and the total."""
    layout: Layout | None = None
    """Which values of a frame it is about, where that is known."""
    sizes: Sizes | None = None
    """How many groups of each size the frame has, where that is known."""
    check: Callable[[Sequence[Mapping[str, Any]]], None] = lambda _: None
    """Raises if it may not follow the entries so far."""


def charge_step(dp_epsilon: float, note: str) -> Step:
    """Return the line of an outside mechanism with this budget for substituting one tuple."""
    return Step(
        add=lambda before: before.plus_mechanism(dp_epsilon),
        described={"kind": "charge", "dp_epsilon": dp_epsilon, "note": note},
    )


def noisy_charge_step(note: str, *, mu: float | None, rho: float | None) -> Step:
    """Return the line of an outside mechanism of Gaussian noise, or of zCDP."""
    described = {"kind": "charge", "note": note, "mu" if rho is None else "rho": mu or rho}

    def add(before: Spending) -> Spending:
        strength = mu if rho is None else rho_as_mu(rho)
        return dataclasses.replace(before, noisy=before.noisy.plus_mechanism(strength or 0.0))

    return Step(add=add, described=described)


def rho_as_mu(rho: float) -> float:
    """Return a μ with μ²/2 at least ρ."""
    return math.sqrt(2.0) * math.sqrt(rho) * (1 + 1e-15)


def _plus_charge(before: Spending, entry: Entry) -> Spending:
    """Add an outside mechanism, or learning the model."""
    if entry.dp_epsilon is not None:
        learned = entry.kind == "estimation"
        add = before.plus_learning if learned else before.plus_mechanism
        return add(entry.dp_epsilon)
    strength = entry.mu if entry.rho is None else rho_as_mu(entry.rho)
    return dataclasses.replace(before, noisy=before.noisy.plus_mechanism(strength or 0.0))


def release_step(
    accounts: Accounts,
    calibration: AnyCalibration,
    layout: Layout | None,
    sizes: Sizes | None,
) -> Step:
    """Return the line of a release."""
    return Step(
        add=lambda before: accounts.after(before, calibration),
        described=release_line(calibration, layout, sizes),
        layout=layout,
        sizes=sizes,
    )


def release_line(
    calibration: AnyCalibration, layout: Layout | None, sizes: Sizes | None
) -> dict[str, Any]:
    """Describe for JSON what a release is about, without its time."""
    described = {
        "kind": "release",
        "queries": [query.to_dict() for query in calibration.queries],
        "scales": list(calibration.scales),
        "rows": calibration.rows,
        "epsilon": calibration.epsilon,
        "note": "",
    }
    if calibration.mu is not None:
        described |= {"noise": "gaussian", "delta": calibration.delta, "mu": calibration.mu}
    if layout is not None:
        described["layout"] = stored_layout(layout)
    if sizes is not None:
        described["sizes"] = [list(pair) for pair in sizes]
    return described


def record(
    steps: Sequence[Step], pages: Pages, accounts: Accounts, *, draw: str, budget: float
) -> float:
    """Check and record the steps, and return what is spent then; see `write`."""
    if not steps:
        return last_spent(pages.read()["entries"], draw)
    after = write(
        pages, lambda state: _with_steps(steps, state, accounts, draw=draw, budget=budget)
    )
    return last_spent(after["entries"], draw)


def write(pages: Pages, next_of: Callable[[State], State]) -> State:
    """Write the state that follows from the present one, and return it.

    The search for the joint leakage may take long, so it runs without the lock: it is about the
    state that was read, and its result is written only if, under the lock, the ledger is still in
    that state. If others wrote meanwhile it starts again; where that happens repeatedly, the last
    attempt searches while it holds the lock.

    Everything is durable when it returns; if `next_of` raises, nothing was written.
    """
    for _ in range(_ATTEMPTS):
        before = pages.read()
        after = next_of(before)
        if pages.replace(before, after):
            return after
    with pages.changing() as state:
        state.update(next_of(state))
    return state


def _with_steps(
    steps: Sequence[Step], state: State, accounts: Accounts, *, draw: str, budget: float
) -> State:
    """Return the state with all steps recorded; raise if they do not fit the budget."""
    entries = [*state["entries"]]
    before = last_spent(entries, draw)
    after = accounts.total(state, draw)
    for step in steps:
        step.check(entries)
        check_same_tuples(entries, draw, step.layout)
        time = step.described.get("step")  # who takes part may differ from one step to the next
        there = [one for one in entries if one.get("step") == time]
        check_same_sizes(there, draw, step.sizes)
        after = step.add(after)
        bound = accounts.bound(after)
        line: dict[str, Any] = {
            "draw": draw,
            "at": datetime.now(UTC).isoformat(timespec="microseconds"),
            "spent": bound.value,
            "method": bound.method,
        }
        mu = accounts.joint_mu(after)
        if mu is not None:
            line["joint_mu"] = mu
        entries.append(step.described | line)
    if not bound.value <= budget:
        raise _exceeded(draw, bound, before=before, budget=budget, several=len(steps) > 1)
    written = state | {"entries": entries}
    accounts.keep(written, draw, after)
    return written


def _exceeded(
    draw: str, bound: Bound, *, before: float, budget: float, several: bool
) -> BudgetExceededError:
    what = "all of these together" if several else "this"
    hint = "" if several else " epsilon=None (--rest) releases the most that fits."
    if math.isinf(bound.value) and bound.method == "repeats":
        return BudgetExceededError(
            f"all of delta is reserved for repeats of the first query of draw {draw!r}, and this is"
            " another query: the ledger was begun with repeats=1, or its first release took more"
            " than their share. Nothing was released."
        )
    return BudgetExceededError(
        f"{what} would bring the joint leakage of draw {draw!r} to {bound.value:.6g} (bound:"
        f" {bound.method}), above the budget {budget:.6g}; {before:.6g} is spent,"
        f" {budget - before:.6g} is left. Nothing was released.{hint}"
    )


def check_same_tuples(
    entries: Sequence[Mapping[str, Any]], draw: str, layout: Layout | None
) -> None:
    """Refuse a release about other values than those of the draw so far.

    The first entry with a layout fixes it; entries without one, of outside mechanisms and of
    earlier versions, agree with all. An order may be named later, once a query needs it.
    """
    if layout is None:
        return
    wanted = layout_from(stored_layout(layout))  # as it will be read
    for entry in entries:
        found = layout_from(entry.get("layout")) if entry.get("draw") == draw else None
        if found is not None and not _agree(found, wanted):
            raise LedgerError(
                f"draw {draw!r} of this ledger is about {_words(found)}, and this release is about"
                f" {_words(wanted)}: the model does not cover both together. For several columns"
                " use People (pdp-calibrate people); or make one model of everything asked, or a"
                " ledger for each, which assumes that the data of one are independent of the other."
            )


def check_same_sizes(entries: Sequence[Mapping[str, Any]], draw: str, sizes: Sizes | None) -> None:
    """Refuse a frame with another number of rows or groups than the draw had so far.

    The first entry with sizes fixes them; entries without, such as those about a single instance,
    agree with all. The numbers themselves are not shown: after filtering they may be secret.
    """
    if sizes is None:
        return
    for entry in entries:
        found = sizes_from(entry.get("sizes")) if entry.get("draw") == draw else None
        if found is not None and found != sizes:
            raise LedgerError(
                f"draw {draw!r} of this ledger is about a frame with another number of rows or"
                " groups than this one. If rows are chosen by a secret column, their number is"
                " secret too: release about all of them. Independent data, such as data about other"
                " people, get their own draw: new_draw (ledger draw)."
            )


def _agree(found: Layout, wanted: Layout | None) -> bool:
    if not isinstance(found, LongFrame) or not isinstance(wanted, LongFrame):
        return found == wanted
    orders = {found.order_by, wanted.order_by} - {None}
    return (found.value, found.groups) == (wanted.value, wanted.groups) and len(orders) < 2


def _words(layout: Layout | None) -> str:
    if not isinstance(layout, LongFrame):
        return "the columns that the model names"
    words = "whole records" if layout.value == EVERY_COLUMN else f"column {layout.value}"
    if layout.groups is not None:
        words += f" in groups by {layout.groups}"
    return words if layout.order_by is None else f"{words} in order of {layout.order_by}"


_STRENGTHS = ("delta", "mu", "rho", "joint_mu")


@dataclass(frozen=True, kw_only=True)
class Entry:
    """What was released or charged, and what everything together amounted to then."""

    draw: str
    """The draw of the data it is about."""
    kind: Literal["release", "charge", "estimation"]
    """Answers with noise; an outside mechanism, or learning the model, by its budget."""
    at: str
    """When it was written, UTC."""
    spent: float
    """The certified joint leakage of the draw so far, this entry included."""
    method: str
    """The bound in force: ``exact``, ``dual``, ``birkhoff``, ``shift``, ``group``,
    ``stream``, ``filter``, ``repeats`` or ``whole``."""
    queries: tuple[Query, ...] = ()
    """What was answered."""
    scales: tuple[float, ...] = ()
    """The scale of each answer, λ of Laplace noise or σ of Gaussian."""
    rows: int = 1
    """Number of independent instances that each answer is about."""
    epsilon: float | None = None
    """What the release leaks alone."""
    dp_epsilon: float | None = None
    """The plain-DP budget charged, for substituting one tuple; for learning, the whole draw."""
    noise: Noise = "laplace"
    """What was drawn."""
    delta: float | None = None
    """For Gaussian noise, the δ that goes with `epsilon`."""
    mu: float | None = None
    """For Gaussian noise, what the release keeps alone; or the μ charged, for one tuple."""
    rho: float | None = None
    """The ρ of zCDP charged, for one tuple."""
    joint_mu: float | None = None
    """How much of the filter for Gaussian noise was used then; the claim is the budget."""
    note: str = ""
    """A note by the user."""
    layout: Layout | None = None
    """Which column of a long frame a release is about, or ``wide``; None if that is not known."""
    sizes: Sizes | None = None
    """How many groups of each size the frame has, or rows; None if that is not known."""
    step: int | str | None = None
    """In a ledger of a model without an end, the step it is about."""
    column: str | None = None
    """In a ledger about people, the column whose model the release was calibrated for; None for
    whole households, of any dependence between all columns."""
    price: float | None = None
    """In a ledger about people, what it costs all other columns."""
    spent_by_column: Mapping[str, float] | None = None
    """In a ledger about people, what is spent on each column."""

    def __post_init__(self) -> None:
        by_column = (self.spent_by_column or {}).values()
        strengths = [self.delta, self.mu, self.rho, self.joint_mu]
        asked = [self.epsilon, self.dp_epsilon, self.price, *strengths]
        budgets = [self.spent, *(one or 0 for one in asked), *by_column]
        if not all(0 <= float(budget) < math.inf for budget in budgets) or self.rows < 1:
            raise LedgerError("the budgets of an entry must be finite, and none negative.")
        if self.noise not in ("laplace", "gaussian"):
            raise LedgerError(f"an entry has Laplace or Gaussian noise, not {self.noise!r}.")
        if len(self.scales) != len(self.queries) or not all(0 < s < math.inf for s in self.scales):
            raise LedgerError("an entry needs one positive scale for each answer.")

    def to_dict(self) -> dict[str, Any]:
        """Describe the entry for JSON."""
        described: dict[str, Any] = {
            "draw": self.draw,
            "kind": self.kind,
            "at": self.at,
            "spent": self.spent,
            "method": self.method,
            "note": self.note,
            **({} if self.step is None else {"step": self.step}),
        }
        strengths = {name: getattr(self, name) for name in _STRENGTHS}
        described |= {name: value for name, value in strengths.items() if value is not None}
        if self.kind != "release":
            charged = {} if self.dp_epsilon is None else {"dp_epsilon": self.dp_epsilon}
            return described | charged
        if self.noise == "gaussian":
            described["noise"] = self.noise
        about: dict[str, Any] = {}
        if self.layout is not None:
            about["layout"] = stored_layout(self.layout)
        if self.sizes is not None:
            about["sizes"] = [list(pair) for pair in self.sizes]
        if self.price is not None:
            about |= {"column": self.column, "price": self.price}
            about["spent_by_column"] = dict(self.spent_by_column or {})
        return described | {
            "queries": [query.to_dict() for query in self.queries],
            "scales": list(self.scales),
            "rows": self.rows,
            "epsilon": self.epsilon,
            **about,
        }

    @classmethod
    def from_dict(cls, described: Mapping[str, Any]) -> Entry:
        """Undo `to_dict`."""
        try:
            common: dict[str, Any] = {
                key: field_of(described, key)
                for key in ("draw", "kind", "at", "spent", "method", "note")
            }
            common["step"] = _step_from(described.get("step"))
            common |= {name: float(described[name]) for name in _STRENGTHS if name in described}
            if common["kind"] in ("charge", "estimation"):
                if not {"mu", "rho"} & set(common):
                    common["dp_epsilon"] = float(field_of(described, "dp_epsilon"))
                return cls(**common)
            return cls(
                **common,
                queries=tuple(Query.from_dict(query) for query in field_of(described, "queries")),
                scales=tuple(float(scale) for scale in field_of(described, "scales")),
                rows=int(field_of(described, "rows")),
                epsilon=float(field_of(described, "epsilon")),
                noise=described.get("noise", "laplace"),
                layout=layout_from(described.get("layout")),
                sizes=sizes_from(described.get("sizes")),
                column=described.get("column"),
                price=described.get("price"),
                spent_by_column=described.get("spent_by_column"),
            )
        except (PdpError, TypeError, ValueError, OverflowError, AttributeError) as error:
            raise LedgerError("an entry of the ledger is not what it should be.") from error


def _step_from(step: Any) -> int | str | None:
    if step is not None and type(step) not in (int, str):
        raise LedgerError("a step is a whole number, or text.")
    return step  # type: ignore[no-any-return]  # one of the two


def last_spent(entries: Sequence[Mapping[str, Any]], draw: str) -> float:
    """Return what was spent after the last entry of the draw."""
    own = (entry for entry in reversed(entries) if entry.get("draw") == draw)
    last = next(own, None)
    return 0.0 if last is None else Entry.from_dict(last).spent


def learning_entries(model: Model, draw: str, budget: float) -> list[dict[str, Any]]:
    """Return the first entry of a ledger whose model was learned from the draw, if it was.

    Learning under ε-DP in whole draws leaks at most ε about any tuple, on top of all releases.
    """
    spent = model.estimation_epsilon
    if spent is None and model.provenance == "dp":
        raise LedgerError(
            "the model was learned under differential privacy, but its epsilon is not known: give"
            " it with model.learned_with(epsilon), or learned_here=False if it was learned from"
            " other, independent data."
        )
    if spent is None:
        return []
    if not spent <= budget:
        raise BudgetExceededError(
            f"learning the model leaked {spent:.6g}, above the budget {budget:.6g}."
            " If it was learned from other, independent data, give learned_here=False."
        )
    return estimation_entries([], spent, draw, budget)


def estimation_entries(
    before: Sequence[Mapping[str, Any]], epsilon: float, draw: str, budget: float
) -> list[dict[str, Any]]:
    """Return the entry of learning a model with this ε, after others that did so; or refuse it."""
    spent = sum_rounded_up(epsilon, last_spent(before, draw))
    if not spent <= budget:
        raise BudgetExceededError(
            f"learning the model would bring what is spent to {spent:.6g}, above the budget"
            f" {budget:.6g}. Nothing was learned."
        )
    entry = Entry(
        draw=draw,
        kind="estimation",
        at=datetime.now(UTC).isoformat(timespec="microseconds"),
        spent=spent,
        method="whole",
        dp_epsilon=epsilon,
    )
    return [entry.to_dict()]
