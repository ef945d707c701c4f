"""What the entries of a ledger amount to, and what still fits.

Write down what is about to be released: all of it fits the budget, or nothing is written.
"""

from __future__ import annotations

import abc
import dataclasses
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pdp_calibrate.arrays import FloatArray, deadline_after
from pdp_calibrate.calibration.calibrate import calibrate, leakage_of
from pdp_calibrate.calibration.release import Layout, stored_layout
from pdp_calibrate.calibration.result import AnyCalibration
from pdp_calibrate.calibration.solve import rounding_error
from pdp_calibrate.composition.joint import joint_mu, spent
from pdp_calibrate.composition.spending import Spending
from pdp_calibrate.core.adversary import Adversaries
from pdp_calibrate.core.contributions import Contributions
from pdp_calibrate.core.model import Model
from pdp_calibrate.core.noise import Noise
from pdp_calibrate.core.problem import Bound
from pdp_calibrate.core.query import Query, lower
from pdp_calibrate.errors import BudgetExceededError, LedgerError, PdpError
from pdp_calibrate.frames.answers import Sizes
from pdp_calibrate.ledger.allowance import Allowance
from pdp_calibrate.ledger.entries import (
    Entry,
    check_same_sizes,
    check_same_tuples,
    last_spent,
)
from pdp_calibrate.ledger.store import Pages, State

_ATTEMPTS = 3  # to search while others may write


CLOSE = 1e-6
"""How near to the whole budget, relative to it, the largest release comes."""


class Budget(abc.ABC):
    """What every ledger says about its budget and what was released over it."""

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

    @property
    def history(self) -> tuple[Entry, ...]:
        """Everything that was released, about all draws, in order; no answers."""
        return tuple(Entry.from_dict(entry) for entry in self._pages.read()["entries"])


class Accounts:
    """Adds up entries and bounds what they leak together; remembers what it has worked out."""

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
                "Laplace noise beside Gaussian noise is counted against everyone: to some only,"
                " independent tuples are noise until the other answers tell of them. Leave"
                " adversaries= or pure= out."
            )
        self._model, self._adversaries, self._time_limit = model, adversaries, time_limit
        self._allowance, self._is_divided = allowance, allowance.takes_gaussian
        self._parts: dict[tuple[str, int], tuple[Contributions, FloatArray, float]] = {}
        self._added: tuple[str, int, Spending] = ("", 0, Spending())
        self._joint: tuple[tuple[Any, ...], float] | None = None

    def check_takes(self, noise: Noise) -> None:
        """Refuse noise that the budget is not for; a pure one is for Laplace noise."""
        if self._is_divided or noise != "laplace":
            self._allowance.check_takes(noise)

    def total(self, state: Mapping[str, Any], draw: str) -> Spending:
        """Add up the entries of one draw, going on from what was added up before.

        Here or in the state itself: where entries are too many to be looked at one by one, it
        holds what they add up to, under the same checksum.
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
        """Write down what all entries so far add up to, where that spares adding them up again."""
        if total.only_budgets and total.noisy.is_empty:
            place = {"draw": draw, "entries": len(state["entries"])}
            state["total"] = place | total.to_dict()

    def after(self, before: Spending, released: AnyCalibration) -> Spending:
        """Return the spending after one more release: of what was proved, not lowered again."""
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
        mu = self.joint_mu(spending)
        if mu is None:
            return found
        used = self._allowance.spent(found.value, mu, spending.noisy, spending.draw_epsilon)
        return Bound(value=used, method="filter" if mu else found.method)

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

    def calibrate(
        self,
        query: Query | Sequence[Query],
        epsilon: float,
        *,
        rows: int,
        noise: Noise = "laplace",
        delta: float | None = None,
    ) -> AnyCalibration:
        """Find the scale of a release that leaks ε alone, beside a δ for Gaussian noise."""
        self.check_takes(noise)
        options: dict[str, Any] = {
            "epsilon": epsilon,
            "adversaries": self._adversaries,
            "rows": rows,
            "time_limit": self._time_limit,
        }
        if noise == "gaussian":
            options |= {"noise": noise, "delta": self._allowance.delta if delta is None else delta}
        elif delta is not None:
            raise PdpError("delta= is about noise='gaussian'.")
        return calibrate(self._model, query, **options)

    def largest(
        self,
        before: Spending,
        query: Query | Sequence[Query],
        *,
        rows: int,
        noise: Noise,
        delta: float | None,
    ) -> AnyCalibration:
        """Find the smallest scale at which one more release fits into the budget."""
        budget = self._allowance.epsilon
        if budget - self.bound(before).value <= budget * CLOSE:
            raise BudgetExceededError(f"the budget {budget:.6g} of this draw is spent.")
        alone = self.calibrate(query, budget, rows=rows, noise=noise, delta=delta)

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
    """The line, but for when and what everything amounts to."""
    layout: Layout | None = None
    """Which values of a frame it is about, where that is known."""
    sizes: Sizes | None = None
    """How many groups of each size the frame has, where that is known."""
    check: Callable[[Sequence[Mapping[str, Any]]], None] = lambda _: None
    """Refuses it after certain entries."""


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
    """Describe for JSON what a release is about, but for when."""
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
    """Check and write down, and return what is spent then; see `write`."""
    if not steps:
        return last_spent(pages.read()["entries"], draw)
    after = write(
        pages, lambda state: _with_steps(steps, state, accounts, draw=draw, budget=budget)
    )
    return last_spent(after["entries"], draw)


def write(pages: Pages, next_of: Callable[[State], State]) -> State:
    """Write the state that follows from the present one, and return it.

    The search for the joint leakage may take long, and keeps nobody waiting: it is about the state
    that was read, and what it found is written only if the ledger is still in that state once
    nobody else can change it. If others wrote meanwhile it starts again; where that happens again
    and again, it ends with a search during which nobody else can write.

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
    """Return the state with all steps written down; raise if they do not fit the budget."""
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
    return BudgetExceededError(
        f"{what} would bring the joint leakage of draw {draw!r} to {bound.value:.6g} (bound:"
        f" {bound.method}), above the budget {budget:.6g}; {before:.6g} is spent,"
        f" {budget - before:.6g} is left. Nothing was released.{hint}"
    )
