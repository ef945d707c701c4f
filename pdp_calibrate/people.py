"""People: one table, one unit, one budget. No mathematics."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar, Unpack, cast

from pdp_calibrate.calibration.result import Calibration, Release
from pdp_calibrate.core.cards import card
from pdp_calibrate.core.model import header
from pdp_calibrate.core.noise import Noise
from pdp_calibrate.core.row_query import RowQuery
from pdp_calibrate.errors import printable
from pdp_calibrate.frames.open import names_of
from pdp_calibrate.jobs.forms import Range
from pdp_calibrate.jobs.grammar import Kind, Question, conditions_of
from pdp_calibrate.jobs.job import File, Job, Options
from pdp_calibrate.jobs.people import PeopleTable
from pdp_calibrate.jobs.signature import ASKED, with_options
from pdp_calibrate.ledger.accounts import Entry
from pdp_calibrate.ledger.people import Charge
from pdp_calibrate.show.explain import explain, table_of
from pdp_calibrate.show.page import report
from pdp_calibrate.show.words import asked

Answer = TypeVar("Answer")


_OWN = {
    "column": "The column of values.",
    "columns": "The column that is counted by value, or several, for every combination of theirs.",
    "conditions": "Which rows count: the values of columns that a row must have, all of them,"
    " such as {'sick': True}; all rows without.",
    "categories": "The values that are counted, each by itself; by default every one declared.",
}


_verb = with_options("people", _OWN, ASKED)


class Verbs(ABC, Generic[Answer]):
    """The questions that can be asked about people."""

    _table: PeopleTable

    def _ask(
        self, kind: Kind, columns: Any, options: Options, values: Iterable[Hashable] | None = None
    ) -> Answer:
        named = None if columns is None else names_of(columns, "columns")
        question = Question(kind=kind, columns=named, values=values)
        return self._answer(self._table.job(question, options))

    @abstractmethod
    def _answer(self, job: Job) -> Answer:
        """Answer a question that was put together with what is said about the table."""

    @_verb
    def mean(self, column: Hashable, **options: Unpack[Options]) -> Answer:
        """Ask for the mean of a column."""
        return self._ask("mean", column, options)

    @_verb
    def sum(self, column: Hashable, **options: Unpack[Options]) -> Answer:
        """Ask for the sum of a column."""
        return self._ask("sum", column, options)

    @_verb
    def count(
        self, conditions: Mapping[Hashable, Any] | None = None, **options: Unpack[Options]
    ) -> Answer:
        """Ask how many rows there are that meet conditions."""
        options["where"] = conditions_of(conditions, options)
        return self._ask("count", None, options)

    @_verb
    def histogram(
        self,
        columns: Hashable | Sequence[Hashable],
        *,
        categories: Iterable[Hashable] | None = None,
        **options: Unpack[Options],
    ) -> Answer:
        """Ask how many rows there are of each value of a column."""
        return self._ask("histogram", columns, options, categories)


@dataclass(frozen=True, kw_only=True, repr=False)
class Price:
    """What an answer would cost, and how accurate it would be; nothing was spent."""

    calibration: Calibration
    """The noise, and what is proved about it."""
    charge: Charge
    """The column whose model it was calibrated for, and what it costs the others."""
    spent: Mapping[str, float]
    """What would be spent on each column then."""
    budget: float
    """What may be spent on each."""

    @property
    def scale(self) -> float:
        """The scale of the noise."""
        return self.calibration.scale

    @property
    def own(self) -> float:
        """What it leaks by itself about its own column, or about all columns alike."""
        return self.calibration.leakage.value

    @property
    def others(self) -> float:
        """What it costs all other columns: its household price."""
        return self.charge.price

    @property
    def fits(self) -> bool:
        """Whether the budget allows it."""
        return max(self.spent.values()) <= self.budget

    def accuracy(self, *, alpha: float = 0.05, count: float | None = None) -> float:
        """Return how far the answer may be off, except in a share alpha of releases.

        As `Calibration.accuracy`: in the unit of the answer; a mean over a secret number of rows
        takes `count`, about how many there are, here or in the question.
        """
        return self.calibration.accuracy(alpha=alpha, count=count)

    def to_dict(self) -> dict[str, Any]:
        """Describe the price for JSON."""
        return {
            **header("Price"),
            "calibration": self.calibration.to_dict(),
            "column": self.charge.column,
            "own": self.own,
            "others": self.others,
            "spent_by_column": dict(self.spent),
            "epsilon": self.budget,
            "fits": self.fits,
        }

    def __str__(self) -> str:
        return printable("\n".join(f"{name}: {value}" for name, value in self.facts()), lines=True)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return card("Price", self.facts())

    def facts(self) -> list[tuple[str, str]]:
        """Describe what it asks, how accurate it is, and what each column pays."""
        symbol = "μ = " if self.calibration.mu is not None else ""
        column, query = self.charge.column, cast("RowQuery", self.calibration.query)
        if column is None:
            costs = f"every column {symbol}{self.others:.4g}, whatever an adversary knows of others"
        else:
            costs = (
                f"{column} {self.own:.4g}, every other column {symbol}{self.others:.4g} (a whole"
                f" household moves it further). Who knows other columns than {column} as well is"
                " not covered: that takes protect='household', or no correlation"
            )
        (within,) = self.calibration.half_widths_in_words()
        most = max(self.spent.values())
        fits = "" if self.fits else ", which is refused"
        return [
            ("answer", asked(query)),
            ("noise", f"{self.calibration.noise.title()}, 95 % of answers within {within}"),
            ("costs", costs),
            ("spent then", f"{most:.4g} of {self.budget:.4g}{fits}"),
        ]


def price_of(table: PeopleTable, job: Job) -> Price:
    """Return what a question about a table of people would cost; nothing is spent."""
    calibration, _ = table.calibrated(job)
    return Price(
        calibration=calibration,
        charge=table.ledger.charge(calibration),
        spent=table.ledger.would_spend(calibration),
        budget=table.ledger.epsilon,
    )


class Pricing(Verbs[Price]):
    """The same questions, answered with the price only."""

    def __init__(self, table: PeopleTable) -> None:
        self._table = table

    def _answer(self, job: Job) -> Price:
        return price_of(self._table, job)


class People(Verbs[Release]):
    """A table of people, and one budget for everything that is released about them.

    Every row is a person (or a reading), every group a household (or another unit of people).
    A question about one secret column may state how its values are correlated inside a household,
    and then needs less noise. Any other (several secret columns, a count, missing values) is
    calibrated for whole households, under any dependence between all columns.

    The budget is that of **each column**. A release for the model of a column costs this column
    what it leaks, and all other columns its household price: the largest change of the answer by a
    whole household, over the scale. A release for whole households costs every column the same.
    `calibrate` returns the price before anything is spent.

    Parameters
    ----------
    frame
        One row per person, in any frame library: pandas, polars, DuckDB, Spark, Dask.
    groups
        The column that names the household; households are independent. Who is in which
        of them, and how many there are, is public.
    order_by
        The public column that orders the rows of a group: then values along it are a series, and a
        correlation is that of neighbours. Without it members of a group are alike.
    bounds
        The public range of numbers, by column, to which they are clamped.
    domains
        The possible values of columns that break answers down, by column; ``"dtype"`` takes them
        from a type that lists them.
    public
        Columns that are not secret, besides those of groups and order.
    max_group_size
        How many rows a group has at most.
    epsilon
        The budget of each column: nobody's log-odds about any entry move by more.
    delta
        The δ that goes with it, for Gaussian noise.
    noise
        The default noise of answers: ``"laplace"`` or ``"gaussian"``.
    pure
        With a δ, the part of ε for Laplace noise, fixed beforehand; 0 by default.
    ledger
        The file of the budget; None keeps it in memory. One that is there is opened, and must be
        about a table of the same columns, rows, groups and bounds.
    protect
        ``"household"`` makes every release one for whole households, and refuses correlations.
        Only such releases cover adversaries who also know *other columns* of the people: a model of
        one column covers those who know other entries of that column.
    independent
        Instead of groups: every row is a person independent of the others.
    time_format, every
        How the column of `order_by` is written where it is text, and how long a step is where there
        are gaps.
    large, keep_by, keep_seed
        ``large="keep"`` lets only `max_group_size` rows of a larger group count, the first by the
        public column `keep_by`, or at random by a hash of it: with a number, or with one that
        ``"draw"`` draws when the ledger is begun and finds there later.
    anchor
        A second file, elsewhere, that must agree with the ledger: see `Ledger`.

    Examples
    --------
    >>> import pandas as pd, pdp_calibrate as pdp
    >>> frame = pd.DataFrame(
    ...     {"home": [1, 1, 2, 3], "pay": [10.0, 20.0, 5.0, 30.0], "sick": [True, False] * 2}
    ... )
    >>> people = pdp.People(frame, groups="home", bounds={"pay": (0, 100)}, epsilon=2.0)
    >>> print(people.calibrate.sum("pay", epsilon=0.5, correlation=(0, 0.4)))
    answer: the sum of pay (moved into 0 to 100)
    noise: Laplace, 95 % of answers within ±840
    costs: pay 0.5, every other column 0.7143 (a whole household moves it further). Who knows ...
    spent then: 0.7143 of 2
    >>> release = people.sum("pay", epsilon=0.5, correlation=(0, 0.4))
    >>> release = people.count({"sick": True}, epsilon=0.3)
    >>> {name: round(spent, 4) for name, spent in people.spent_by_column.items()}
    {'pay': 0.8, 'sick': 1.0143}
    """

    def __init__(
        self,
        frame: Any,
        *,
        groups: Hashable | None = None,
        order_by: Hashable | None = None,
        bounds: Range | Mapping[Any, Range] | None = None,
        domains: Mapping[Any, Sequence[Hashable] | str] | None = None,
        public: Sequence[Hashable] = (),
        max_group_size: int | None = None,
        epsilon: float = 2.0,
        delta: float | None = None,
        noise: Noise = "laplace",
        pure: float | None = None,
        ledger: File | None = None,
        protect: Literal["column", "household"] = "column",
        independent: bool = False,
        time_format: str | None = None,
        every: str | float | None = None,
        large: Literal["refuse", "keep"] = "refuse",
        keep_by: Hashable | None = None,
        keep_seed: int | Literal["draw"] | None = None,
        anchor: File | None = None,
    ) -> None:
        said = {
            "groups": groups, "order_by": order_by, "bounds": bounds, "domains": domains,
            "public": public, "max_group_size": max_group_size, "protect": protect,
            "independent": independent, "time_format": time_format, "every": every, "large": large,
            "keep_by": keep_by, "keep_seed": keep_seed,
        }  # fmt: skip
        budget: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "noise": noise, "pure": pure}
        self._settle(PeopleTable(frame, said, ledger=ledger, anchor=anchor, **budget))

    @classmethod
    def open(cls, frame: Any, ledger: File, *, anchor: File | None = None) -> People:
        """Continue with a budget on disk, with what was declared when it was started.

        Parameters
        ----------
        frame
            The table that it is about.
        ledger
            The file of the budget.
        anchor
            The second file that must agree with it, if it was started with one.
        """
        people = cls.__new__(cls)
        cls._settle(people, PeopleTable.open(frame, ledger, anchor=anchor))
        return people

    def _settle(self, table: PeopleTable) -> None:
        self._table = table

    def _answer(self, job: Job) -> Release:
        (release,) = self._table.release([job])
        return release

    @property
    def calibrate(self) -> Pricing:
        """The same questions, answered with the noise, the accuracy and the price.

        Nothing is released or spent: ``people.calibrate.mean("income", epsilon=0.5)``.
        """
        return Pricing(self._table)

    @property
    def epsilon(self) -> float:
        """The budget of each column."""
        return self._table.ledger.epsilon

    @property
    def spent(self) -> float:
        """The bound on what anybody learns about any entry: the most that is spent on a column."""
        return self._table.ledger.spent

    @property
    def spent_by_column(self) -> dict[str, float]:
        """What is spent on each secret column of the table, asked about or not."""
        return self._table.ledger.spent_by_column

    @property
    def remaining(self) -> float:
        """What is left for a release for whole households."""
        return self._table.ledger.remaining

    @property
    def history(self) -> tuple[Entry, ...]:
        """Everything that was released, in order; no answers."""
        return self._table.ledger.history

    def report(self, path: File, *, overwrite: bool = False) -> Path:
        """Write one HTML page about the budget and everything released; it holds no answers.

        A file that is there is replaced only with `overwrite`, and a ledger never.
        """
        return report(self._table.ledger, path, overwrite=overwrite)

    def __repr__(self) -> str:
        table = printable(table_of(self._table.ledger))
        return f"People({table}; {self.spent:.4g} of {self.epsilon:.4g} spent)"

    def __str__(self) -> str:
        return explain(self._table.ledger)

    def _repr_html_(self) -> str:
        return self._table.ledger._repr_html_()
