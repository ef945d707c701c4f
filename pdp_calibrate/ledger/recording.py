"""Write down what is about to be released: all of it fits the budget, or nothing is written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pdp_calibrate.answers import Sizes
from pdp_calibrate.calibration import Calibration, JointCalibration
from pdp_calibrate.calibration.releasing import Layout
from pdp_calibrate.engines.result import Bound
from pdp_calibrate.engines.spending import Spending
from pdp_calibrate.errors import BudgetExceededError
from pdp_calibrate.ledger.accounts import Accounts, answers_of
from pdp_calibrate.ledger.entries import last_spent
from pdp_calibrate.ledger.layouts import check_same_sizes, check_same_tuples, stored_layout
from pdp_calibrate.ledger.pages import Pages


@dataclass(frozen=True, kw_only=True)
class Step:
    """One line to write, and how it adds to what was spent before."""

    add: Callable[[Spending], Spending]
    """Returns the spending after it."""
    described: dict[str, Any]
    """The line, but for when and what everything amounts to."""
    layout: Layout | None = None
    """Which values of a frame it is about, where that is known."""
    sizes: Sizes | None = None
    """How many groups of each size the frame has, where that is known."""


def charge_step(dp_epsilon: float, note: str) -> Step:
    """Return the line of an outside mechanism with this budget for substituting one tuple."""
    return Step(
        add=lambda before: before.plus_mechanism(dp_epsilon),
        described={"kind": "charge", "dp_epsilon": dp_epsilon, "note": note},
    )


def release_step(
    accounts: Accounts,
    calibration: Calibration | JointCalibration,
    layout: Layout | None,
    sizes: Sizes | None,
) -> Step:
    """Return the line of a release."""
    queries, scales, _ = answers_of(calibration)
    described = {
        "kind": "release",
        "queries": [query.to_dict() for query in queries],
        "scales": list(scales),
        "rows": calibration.rows,
        "epsilon": calibration.epsilon,
        "note": "",
    }
    if layout is not None:
        described["layout"] = stored_layout(layout)
    if sizes is not None:
        described["sizes"] = [list(pair) for pair in sizes]
    return Step(
        add=lambda before: accounts.after(before, calibration),
        described=described,
        layout=layout,
        sizes=sizes,
    )


def record(
    steps: Sequence[Step], pages: Pages, accounts: Accounts, *, draw: str, budget: float
) -> float:
    """Check and write down, while nobody else can, and return what is spent then.

    Everything is durable when it returns; if it raises, nothing was written.
    """
    with pages.changing() as state:
        entries = state["entries"]
        before = last_spent(entries, draw)
        after = accounts.total(state, draw)
        for step in steps:
            check_same_tuples(entries, draw, step.layout)
            check_same_sizes(entries, draw, step.sizes)
            after = step.add(after)
            bound = accounts.bound(after)
            line = {
                "draw": draw,
                "at": datetime.now(UTC).isoformat(timespec="microseconds"),
                "spent": bound.value,
                "method": bound.method,
            }
            entries.append(step.described | line)
        if not bound.value <= budget:
            raise _exceeded(draw, bound, before=before, budget=budget, several=len(steps) > 1)
        accounts.keep(state, draw, after)
    return bound.value


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
