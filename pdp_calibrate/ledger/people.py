"""One budget for releases about all columns of the same people, counted column by column.

Theorem 24 (docs/theory).

An *entry* of column c is one person's value in it. Entries of column c are the targets, and other
entries of c are what an adversary may know. Two kinds of releases are about them:

- Those of column c alone, calibrated for a stated model of c. They leak what they leak together
  under that model; see `composition.joint`.
- All others. Let Δ be the largest change of such an answer (in L1, over all its parts) when all
  entries of a household change, and λ its scale. For every database its likelihood lies between m
  and e^(Δ/λ)·m, m its smallest value over all entries of one household, all other households fixed.
  So it multiplies the ratio of likelihoods under two secrets by at most e^(Δ/λ), however the
  columns depend on each other. The rest, m, depends on other households alone, and those can be
  known in the bound of the first kind. Δ/λ is the household price.

So what is spent on column c is the joint leakage of its own releases plus the household prices
of all others, **never** their own leakage about another column, which says nothing about this one.
A release that no model of one column covers is of the second kind for every column. All this holds
for adaptive choices, as for every ledger. After Gaussian noise, releases chosen from its outputs
have no bound under a model of finitely many states (see `composition.joint`): Laplace noise is then
for whole households too.

Adversaries know entries of the column that they attack. For somebody who knows other columns as
well, the model of one column need not hold: against them only releases for whole households hold.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

from pdp_calibrate.arrays import checked_epsilon, damage_refused
from pdp_calibrate.calibration.release import Layout, sizes_from
from pdp_calibrate.calibration.result import AnyCalibration
from pdp_calibrate.calibration.solve import certified_leakage
from pdp_calibrate.composition.joint import NoisyAnswers, Spending
from pdp_calibrate.core.adversary import EVERYONE
from pdp_calibrate.core.cards import card
from pdp_calibrate.core.composite import Blocks
from pdp_calibrate.core.gaussian_dp import precision_of
from pdp_calibrate.core.model import Model, field_of, header
from pdp_calibrate.core.noise import Noise
from pdp_calibrate.core.query import lower
from pdp_calibrate.core.rounding import sum_rounded_up
from pdp_calibrate.core.row_query import ANY_RECORD, RowQuery
from pdp_calibrate.errors import BudgetExceededError, LedgerError
from pdp_calibrate.families.any_dependence import Unknown
from pdp_calibrate.families.network.mixing_chain import MixingChain
from pdp_calibrate.frames.answers import Sizes
from pdp_calibrate.ledger.accounts import CLOSE, Accounts, Budget, Entry, largest_fitting, write
from pdp_calibrate.ledger.allowance import Allowance
from pdp_calibrate.ledger.store import FileStore, MemoryStore, Pages, State, Store

_DRAW = "first"


@dataclass(frozen=True, kw_only=True)
class Charge:
    """What one release costs."""

    column: str | None
    """The column whose model it was calibrated for; None for whole households."""
    price: float
    """The household price: what it costs every other column; a μ for Gaussian noise."""
    noise: Noise = "laplace"
    """What is drawn."""


def charge_of(calibration: AnyCalibration) -> Charge:
    """Return the column that a release is about, and its household price, rounded up."""
    model, queries = calibration.model, calibration.queries
    if not isinstance(model, Blocks) or not all(isinstance(one, RowQuery) for one in queries):
        raise LedgerError("a ledger about people counts questions about rows in groups.")
    if calibration.adversaries != EVERYONE:
        raise LedgerError("a ledger about people holds against everyone: leave adversaries= out.")
    household = Blocks(
        models=[Unknown(size=len(block.names), bounds=ANY_RECORD) for block in model.models],
        counts=model.counts,
    )
    found = certified_leakage(
        household,
        [lower(query, household) for query in queries],
        calibration.scales,
        EVERYONE,
        rows=calibration.rows,
        measure=calibration.measure.everywhere,
    )
    if model.covers_any_dependence:
        return Charge(column=None, price=found.value, noise=calibration.noise)
    (column,) = {name for query in queries for name in cast("RowQuery", query).secret}
    return Charge(column=column, price=found.value, noise=calibration.noise)


class PeopleLedger(Budget):
    """A budget ε for every column of a table, for all releases together.

    Parameters
    ----------
    declared
        What was declared about the table, as JSON holds it; never anything read from secrets.
    columns
        The secret columns of the table; the budget holds for all of them.
    sizes
        How many groups of each size it has.
    epsilon
        The budget of each column.
    delta, noise, pure
        The δ that goes with it for Gaussian noise, the default noise of releases, and the part of ε
        for Laplace noise then, 0 by default: see `Ledger`.
    path
        Where to store the ledger; None to keep it in memory, for one process. An entry is on disk
        before its noise is drawn.
    anchor
        A second path, elsewhere, that must agree with it: see `Ledger`.
    """

    kind = "PeopleLedger"

    def __init__(
        self,
        declared: Mapping[str, Any],
        *,
        columns: Sequence[str],
        sizes: Sizes,
        epsilon: float = 2.0,
        delta: float | None = None,
        noise: Noise = "laplace",
        pure: float | None = None,
        path: str | os.PathLike[str] | None = None,
        anchor: str | os.PathLike[str] | None = None,
    ) -> None:
        if path is None and anchor is not None:
            raise LedgerError("an anchor is for a ledger in a file: give ledger= too.")
        store: Store = MemoryStore() if path is None else _file(path, anchor)
        allowance = people_allowance(epsilon=epsilon, delta=delta, noise=noise, pure=pure)
        heading = {
            **header("PeopleLedger"),
            **allowance.to_dict(),
            "declared": dict(declared),
            "columns": list(columns),
            "sizes": [list(pair) for pair in sizes],
            "models": {},
        }
        self._settle(Pages(store), heading)
        self._pages.start(heading, _DRAW, [])

    def _settle(self, pages: Pages, heading: Mapping[str, Any]) -> None:
        self._pages = pages
        self._allowance = Allowance.from_dict(heading)
        self._epsilon = self._allowance.epsilon
        self._declared = field_of(heading, "declared")
        self._columns = tuple(field_of(heading, "columns"))
        self._sizes = sizes_from(field_of(heading, "sizes")) or ()
        self._accounts: dict[str, tuple[Model, Accounts]] = {}

    @classmethod
    @damage_refused("the ledger", kind=LedgerError)
    def open(
        cls, path: str | os.PathLike[str], *, anchor: str | os.PathLike[str] | None = None
    ) -> PeopleLedger:
        """Continue with a ledger on disk."""
        pages = Pages(_file(path, anchor))
        ledger = cls.__new__(cls)
        cls._settle(ledger, pages, pages.read())
        return ledger

    @property
    def declared(self) -> Mapping[str, Any]:
        """What was declared about the table when the ledger was started, as JSON holds it."""
        return dict(self._declared)

    @property
    def columns(self) -> tuple[str, ...]:
        """The secret columns of the table."""
        return self._columns

    @property
    def sizes(self) -> Sizes:
        """How many groups of each size it has."""
        return self._sizes

    @property
    def models(self) -> dict[str, Model]:
        """The model of each column that has one; a column keeps its first model."""
        return _models_of(self._pages.read())

    @property
    def spent_by_column(self) -> dict[str, float]:
        """The most that everything released leaks about each column."""
        return self._spent_in(self._pages.read())

    @property
    def spent(self) -> float:
        """The largest of these: a bound on what anybody learns about any entry."""
        return max(self.spent_by_column.values())

    @property
    def delta(self) -> float:
        """The δ that goes with ε; 0 for a ledger of pure ε."""
        return self._allowance.delta

    @property
    def allowance(self) -> Allowance:
        """The budget of each column, as it is divided."""
        return self._allowance

    def _repr_html_(self) -> str:
        rows: list[tuple[object, object]] = [
            ("budget ε of each column", f"{self.epsilon:.6g}"),
            ("spent", f"{self.spent:.6g}"),
            *((f"on {name}", f"{spent:.6g}") for name, spent in self.spent_by_column.items()),
            ("releases", f"{len(self.history)}"),
        ]
        return card("People", rows)

    def check_same(
        self,
        *,
        declared: Mapping[str, Any],
        columns: Sequence[str],
        sizes: Sizes,
        epsilon: float,
        **noise: Any,
    ) -> None:
        """Refuse a table that is not the one that the ledger was started for.

        The numbers of rows and groups are not shown: after filtering they may be secret.
        """
        if tuple(columns) != self._columns:
            raise LedgerError(
                "the ledger is about a table with other secret columns"
                f" ({', '.join(self._columns)}), and this one has {', '.join(columns)}."
            )
        self._check_sizes(sizes)
        for name in sorted({*declared, *self._declared}):
            if declared.get(name) != self._declared.get(name):
                raise LedgerError(
                    f"the ledger was begun with {name} = {self._declared.get(name)!r}, got"
                    f" {declared.get(name)!r}. What was declared about the people cannot change."
                )
        if people_allowance(epsilon=epsilon, **noise).to_dict() != self._allowance.to_dict() and (
            epsilon == self._epsilon
        ):
            raise LedgerError(
                "the ledger was begun with another delta, noise or part for Laplace noise:"
                f" {self._allowance.to_dict()}."
            )
        if epsilon != self._epsilon:
            raise LedgerError(
                f"the ledger has the budget {self._epsilon:.6g} for each column, got {epsilon:.6g}."
            )

    def _check_sizes(self, sizes: Sizes | None) -> None:
        if sizes is None or tuple(sizes) != self._sizes:
            raise LedgerError(
                "the ledger is about a table with another number of rows or groups than this one."
                " If rows are chosen by a secret column, their number is secret too: use where="
                " instead. Independent data, such as data about other people, get their own ledger."
            )

    def charge(self, calibration: AnyCalibration) -> Charge:
        """Return what one more release would cost."""
        return _charge_after(_charges_in(self._pages.read()), calibration)

    def would_spend(self, calibration: AnyCalibration) -> dict[str, float]:
        """Return what would be spent on each column after one more release."""
        return self._spent_in(self._after(self._pages.read(), [calibration]))

    def largest(self, alone: AnyCalibration, *, time_limit: float | None) -> AnyCalibration:
        """Return a release with the least noise that fits, where `alone` spends all of ε."""
        if self.remaining <= self._epsilon * CLOSE:
            raise BudgetExceededError(f"the budget {self._epsilon:.6g} is spent.")
        return largest_fitting(
            alone,
            lambda louder: max(self.would_spend(louder).values()),
            self._epsilon,
            time_limit=time_limit,
        )

    def spend(
        self,
        calibration: AnyCalibration,
        *,
        layout: Layout | None = None,
        sizes: Sizes | None = None,
    ) -> None:
        """Record one release that is about to be made; raise if it does not fit."""
        del layout
        self.spend_together([(calibration, sizes)])

    def spend_together(self, releases: Sequence[tuple[AnyCalibration, Sizes | None]]) -> None:
        """Record several releases that are about to be made: all of them, or none.

        Raises
        ------
        BudgetExceededError
            If more than the budget would be spent on any column. Nothing was written.
        """
        for _, sizes in releases:
            self._check_sizes(sizes)
        write(self._pages, lambda state: self._fitting(state, [one for one, _ in releases]))

    def _fitting(self, state: State, releases: Sequence[AnyCalibration]) -> State:
        """Return the state after releases, or raise if they do not fit."""
        before, written = self._spent_in(state), self._after(state, releases)
        after = self._spent_in(written)
        column = max(after, key=after.__getitem__)
        if not after[column] <= self._epsilon:
            what = "all of these together" if len(releases) > 1 else "this"
            last = Entry.from_dict(written["entries"][-1])
            costs = "" if last.column in (None, column) else (
                f" A release for the model of {last.column} costs other columns {last.price:.6g};"
                " without a correlation it costs every column its epsilon."
            )  # fmt: skip
            if last.column is None:
                costs = (
                    " An answer without a correlation is for whole households, and costs every"
                    " column its epsilon."
                )
            raise BudgetExceededError(
                f"{what} would bring what is spent on column {column} to"
                f" {after[column]:.6g}, above the budget {self._epsilon:.6g}; {before[column]:.6g}"
                f" is spent. Nothing was released.{costs}"
            )
        return written

    def _after(self, state: State, releases: Sequence[AnyCalibration]) -> State:
        """Return the state with all releases recorded, whether they fit or not."""
        entries, models = [*state["entries"]], _models_of(state)
        charges = _charges_in(state)
        drawn = [
            scale for one in entries if one.get("noise") == "gaussian" for scale in one["scales"]
        ]
        totals = {
            column: self._account(column, model).total(_about(state, column), _DRAW)
            for column, model in models.items()
        }
        for calibration in releases:
            self._allowance.check_takes(calibration.noise)
            charge = _charge_after(charges, calibration)
            charges.append(charge)
            drawn += calibration.scales if charge.noise == "gaussian" else ()
            if charge.column is not None:
                column, model = charge.column, calibration.model
                _check_model(column, model, models.setdefault(column, model))
                account = self._account(column, model)
                totals[column] = account.after(totals.get(column, Spending()), calibration)
            own = {
                column: self._account(column, model).pure_bound(totals[column])
                for column, model in models.items()
            }
            pure = {
                name: _added(own[name].value if name in own else 0.0, name, charges)
                for name in self._columns
            }
            strengths = {
                name: self._strength(name, models.get(name), totals.get(name), charges)
                for name in self._columns
            }
            choices = sum(one.noise == "gaussian" for one in charges)
            spent = {
                name: self._allowance.spent(
                    pure[name],
                    strengths[name],
                    NoisyAnswers(
                        precisions=tuple(precision_of(scale) * (1 + 1e-12) for scale in drawn),
                        rounding=totals[name].noisy.rounding if name in totals else 0.0,
                        choices=choices,
                    ),
                    0.0,
                )
                for name in self._columns
            }
            noisy: dict[str, Any] = {}
            if calibration.mu is not None:
                noisy = {"noise": "gaussian", "delta": calibration.delta, "mu": calibration.mu}
            if self._allowance.takes_gaussian:
                noisy["joint_mu"] = max(strengths.values())
            entry = Entry(
                draw=_DRAW,
                kind="release",
                at=datetime.now(UTC).isoformat(timespec="microseconds"),
                spent=max(spent.values()),
                method="household" if charge.column is None else own[charge.column].method,
                queries=tuple(calibration.queries),
                scales=tuple(calibration.scales),
                rows=calibration.rows,
                epsilon=calibration.epsilon,
                column=charge.column,
                price=charge.price,
                spent_by_column=spent,
                **noisy,
            )
            entries.append(entry.to_dict())
        described = {column: model.to_dict() for column, model in models.items()}
        return state | {"entries": entries, "models": described}

    def _strength(
        self,
        column: str,
        model: Model | None,
        total: Spending | None,
        charges: Sequence[Charge],
    ) -> float:
        """Return the joint μ of a column: its own, and household prices, in squares."""
        own = 0.0
        if model is not None and total is not None:
            own = self._account(column, model).joint_mu(total) or 0.0
        others = [one.price for one in charges if one.noise == "gaussian" and one.column != column]
        return math.hypot(own, *others) * (1 + 1e-12) if others else own

    def _account(self, column: str, model: Model) -> Accounts:
        """Return the accounts that add up a column's own releases, which cache their results."""
        known = self._accounts.get(column)
        if known is None or known[0] != model:
            known = (
                model,
                Accounts(model, EVERYONE, allowance=self._allowance, time_limit=None),
            )
            self._accounts[column] = known
        return known[1]

    def _spent_in(self, state: State) -> dict[str, float]:
        entries = state["entries"]
        if not entries:
            return dict.fromkeys(self._columns, 0.0)
        found = Entry.from_dict(entries[-1]).spent_by_column or {}
        if set(found) != set(self._columns):
            raise LedgerError("an entry of the ledger is about other columns.")
        return {name: float(found[name]) for name in self._columns}


def _file(path: str | os.PathLike[str], anchor: str | os.PathLike[str] | None) -> FileStore:
    return FileStore(path, anchor=anchor, kind=PeopleLedger.kind)


@damage_refused("the ledger", kind=LedgerError)
def _models_of(state: State) -> dict[str, Model]:
    found: dict[str, Model] = {}
    for name, described in field_of(state, "models").items():
        model = Model.from_dict(described)
        if model is None:
            raise LedgerError(f"the ledger withholds its model of column {name}.")
        found[name] = model
    return found


def _charges_in(state: State) -> list[Charge]:
    return [
        Charge(column=one.get("column"), price=one["price"], noise=one.get("noise", "laplace"))
        for one in state["entries"]
    ]


def _charge_after(before: Sequence[Charge], calibration: AnyCalibration) -> Charge:
    """Return what a release costs after others, from whose Gaussian noise it may be chosen."""
    charge = charge_of(calibration)
    is_later = charge.noise == "laplace" and any(one.noise == "gaussian" for one in before)
    if is_later and not all(calibration.model.continuous_tuples):
        return dataclasses.replace(charge, column=None)
    return charge


def _about(state: State, column: str) -> State:
    """Return the state with the releases for the model of one column alone."""
    return {"entries": [one for one in state["entries"] if one.get("column") == column]}


def _added(own: float, column: str, charges: Sequence[Charge]) -> float:
    """Add the household prices of all releases but the column's own, rounded up."""
    prices = [
        charge.price for charge in charges if charge.column != column and charge.noise == "laplace"
    ]
    return functools.reduce(sum_rounded_up, prices, own)


def people_allowance(
    *,
    epsilon: float,
    delta: float | None = None,
    noise: Noise = "laplace",
    pure: float | None = None,
) -> Allowance:
    """Return the budget of each column; unknown data never count as noise here.

    Other columns may reveal them. So answers with Gaussian noise are counted by how far they are
    shifted, and those about other columns by how far a whole household shifts them, in squares.
    """
    part = 0.0 if delta is not None and pure is None else pure
    return Allowance.of(
        epsilon=checked_epsilon(epsilon), delta=delta, pure=part, mu=None, rho=None, noise=noise
    )


def _check_model(column: str, model: Model, stored: Model) -> None:
    if model != stored:
        raise LedgerError(
            f"releases about column {column} assumed {stated(stored)}, and a column keeps its first"
            f" assumption, got {stated(model)}: state the first again, or none, which covers any"
            " dependence."
        )


def stated(model: Model) -> str:
    """Return the correlation or persistence that a model of groups or series states, in words."""
    largest = model.models[-1] if isinstance(model, Blocks) else model
    if isinstance(largest, MixingChain):
        return f"persistence {largest.persistence:.4g} of {len(largest.states)} states"
    found = getattr(largest, "correlation", None)
    ends = found if isinstance(found, tuple) else (found,)
    return f"correlation {' to '.join(f'{end:.4g}' for end in ends)}"
