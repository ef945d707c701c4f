"""Which values of a frame a release is about, as ledgers write it down and compare it.

A model says how the values of one column are correlated, or those of the columns that its tuples
are named after. It says nothing of another column of the same people, nor of the same column in
other groups.

One line of a ledger: what was released, never what came out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from pdp_calibrate.calibration.release import (
    EVERY_COLUMN,
    Layout,
    LongFrame,
    layout_from,
    sizes_from,
    stored_layout,
)
from pdp_calibrate.core.model import Model, field_of
from pdp_calibrate.core.noise import Noise
from pdp_calibrate.core.query import Query
from pdp_calibrate.core.rounding import sum_rounded_up
from pdp_calibrate.errors import BudgetExceededError, LedgerError, PdpError
from pdp_calibrate.frames.answers import Sizes


def check_same_tuples(
    entries: Sequence[Mapping[str, Any]], draw: str, layout: Layout | None
) -> None:
    """Refuse a release about other values than those that the draw was about so far.

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
                f"draw {draw!r} of this ledger is about {_words(found)}, and this release about"
                f" {_words(wanted)}: the model says nothing of both together. For several"
                " columns there is People (pdp-calibrate people); or make one model of everything"
                " asked, or a ledger for each, which states that what one is about says nothing of"
                " the other."
            )


def check_same_sizes(entries: Sequence[Mapping[str, Any]], draw: str, sizes: Sizes | None) -> None:
    """Refuse a frame with another number of rows or groups than the draw was about so far.

    The first entry with sizes fixes them; entries without, about one instance for instance, agree
    with all. The numbers themselves are not named: after filtering they may be secret.
    """
    if sizes is None:
        return
    for entry in entries:
        found = sizes_from(entry.get("sizes")) if entry.get("draw") == draw else None
        if found is not None and found != sizes:
            raise LedgerError(
                f"draw {draw!r} of this ledger is about a frame with another number of rows or"
                " groups than this one. Rows chosen by a secret column make their number a secret:"
                " release about all of them. Data that are independent of those, about other"
                " people for instance, get a draw of their own: new_draw (ledger draw)."
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
    """The bound in force: ``exact``, ``windows``, ``dual``, ``birkhoff``, ``shift``, ``group``,
    ``stream`` or ``whole``."""
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
    """For Gaussian noise, the δ beside `epsilon`."""
    mu: float | None = None
    """For Gaussian noise, what the release keeps alone; or the μ charged, for one tuple."""
    rho: float | None = None
    """The ρ of zCDP charged, for one tuple."""
    joint_mu: float | None = None
    """How much of the filter for Gaussian noise was used then; the claim is the budget."""
    note: str = ""
    """What the user wrote beside it."""
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
    """In a ledger about people, what it costs records of all other columns."""
    spent_by_column: Mapping[str, float] | None = None
    """In a ledger about people, what is spent on records of each column."""

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
    """Return the first entry of a ledger whose model was learned from the draw, if it was so.

    Learning under ε-DP in whole draws leaks at most ε about any tuple, on top of all releases.
    """
    spent = model.estimation_epsilon
    if spent is None and model.provenance == "dp":
        raise LedgerError(
            "the model was learned under differential privacy, but not with which epsilon: say so"
            " with model.learned_with(epsilon), or learned_here=False if it was learned from other,"
            " independent data."
        )
    if spent is None:
        return []
    if not spent <= budget:
        raise BudgetExceededError(
            f"learning the model leaked {spent:.6g}, above the budget {budget:.6g}."
            " If it was learned from other, independent data, say learned_here=False."
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
