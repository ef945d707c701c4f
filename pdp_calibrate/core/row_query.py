"""Questions about the rows of a long table: filtered, broken down, of several columns at once.

Every row stands for one person (or reading). A row is in at most one *part*: a cell of the
breakdown, if the row meets the conditions. There it adds 1 to a count, its value to a sum, or both
to a mean. Rows that do not match add nothing; the number of rows never changes.

Columns are secret unless they are said to be public. What a release may claim depends on which
secret columns the contributions depend on:

- On the column of values alone: a row adds x or, by public columns, nothing. That is linear in the
  values, and a model of this one column applies, such as a stated correlation.
- On the states of one column alone: a row is counted or, by public columns, not. A model of the
  column applies if its proof uses only how far one row can move the answer, such as chains that
  forget. Rows that do not count are steps that are skipped, and two steps forget no less than one.
- On several secret columns, or on whether a secret value is missing: no model of one column
  applies. With correlation 0 and "x_2 counts iff x_1 is high" the answer moves twice as far as a
  model of the values would allow. Then any dependence between all columns of a household is
  covered: the price is the largest change of the answer when a whole household changes.

In both cases the proof is about one number per row that dominates: how far the row can move the
answers of all parts together (in L1). Laplace noise on every part then leaks at most the total of
these changes over λ.

For Gaussian noise the length of the change in L2 matters. Let r₂ be the largest that one row makes.
The change by a household is the sum of the changes by its rows, so m rows make at most m·r₂, by the
triangle inequality, and all of them making the same largest change make exactly that. A row that
goes from one part of a count to another takes 1 away here and adds 1 there: r₂ = √2, not the 2 of
L1. Of a sum it takes x away and adds x', √(x² + x'²), or stays and changes x: with L the largest
|x| of the range and W its width, r₂ = max(√2·L, W). Of a mean over noisy counts it moves the sum by
y and the count by 1 in both parts, |y| ≤ 1, or stays and changes y by 2: r₂ = 2, not 4. Where rows
cannot change their part only one number of one part moves, or the sum and the count of a part:
√(1 + 1) < 2, which staying makes; r₂ is the reach of L1. Several answers move at once, by at most
√Σ(m·r₂/σ)² in units of their noise.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal, cast, get_args

import numpy as np

from pdp_calibrate.arrays import FloatArray, plain
from pdp_calibrate.core.contributions import Contributions
from pdp_calibrate.core.model import Model, checked_bounds, field_of, from_json_value, json_value
from pdp_calibrate.core.query import FrozenMapping, Query, listed_values
from pdp_calibrate.core.rounding import UNIT_ROUNDOFF, lengths
from pdp_calibrate.errors import QueryError, UnsupportedQueryError

RowKind = Literal["count", "sum", "mean"]


_KINDS: tuple[RowKind, ...] = get_args(RowKind)


MISSING = ("zero", "category")
"""Rules for missing cells, besides a value that replaces them."""


ANY_RECORD = (0.0, 1.0)
"""A stand-in range for a whole record; the query says how far a record moves its answer."""


_MOST_PARTS = 2**16


_LARGEST_END = 1e250


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column that decides which rows count, and where."""

    name: str
    """Its name."""
    values: tuple[Hashable, ...]
    """For a condition, the values that match; for a breakdown, the labels, in order."""

    def __post_init__(self) -> None:
        values = listed_values(self.values, f"the values of column {self.name}")
        object.__setattr__(self, "values", values)
        if not self.values:
            raise QueryError(f"name at least one value of column {self.name}, got none.")
        if len(set(self.values)) != len(self.values):
            raise QueryError(f"a value of column {self.name} is named twice.")


@dataclass(frozen=True, kw_only=True)
class RowQuery(Query):
    """A count, sum or mean of the rows that meet conditions, in every part of a breakdown.

    Examples
    --------
    >>> sick = Column(name="sick", values=(True,))
    >>> city = Column(name="city", values=("Oslo", "Bergen"))
    >>> RowQuery(kind="count", where=[sick]).reach, RowQuery(kind="count", by=[city]).reach
    (1.0, 2.0)
    >>> RowQuery(kind="sum", value="income", bounds=(-10, 30), by=[city]).reach
    60.0
    >>> RowQuery(kind="count", where=[sick], by=[city], public=["city"]).reach
    1.0
    """

    kind: RowKind
    """Which answer."""
    value: str | None = None
    """The column that is added up, of a sum or mean."""
    bounds: tuple[float, float] | None = None
    """Its public range; values outside are moved to the nearest end."""
    where: Sequence[Column] = ()
    """The conditions that a row must meet, all of them, to count."""
    by: Sequence[Column] = ()
    """The columns whose labels define the parts; a value that is no label is in no part."""
    missing: Mapping[str, Hashable] = field(default_factory=dict)
    """What a missing cell of a column means. ``zero``: the row does not count. ``category``: one
    more label, None, of a breakdown. Any other value replaces the cell."""
    public: Iterable[str] = ()
    """Which of these columns are not secret; other columns may be named, and change nothing."""
    sizes: Sequence[int] | None = None
    """The public number of rows in each part, for a mean where nothing secret decides it."""
    most: int | None = None
    """The most rows of a group that count: the first ones by `keep_by`."""
    keep_by: str | None = None
    """The public column that decides which rows are kept."""
    seed: int | None = None
    """If given, the first ones by a hash of that column with this number: a random choice."""
    independent: bool = False
    """Whether every row is a group by itself: people who are independent of each other."""
    every: str | float | None = None
    """How long a step of a series is, where there may be gaps between its rows."""

    def __post_init__(self) -> None:
        for name in ("where", "by"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        object.__setattr__(self, "public", tuple(sorted(set(self.public) & set(self.columns))))
        rules = {column: plain(rule) for column, rule in self.missing.items()}
        object.__setattr__(self, "missing", FrozenMapping(rules))
        if self.kind not in _KINDS:
            raise QueryError(f"kind must be one of {', '.join(_KINDS)}, got {self.kind!r}.")
        if (self.kind == "count") != (self.value is None and self.bounds is None):
            raise QueryError("a sum or mean needs a column of values and bounds; a count neither.")
        if self.bounds is not None:
            object.__setattr__(self, "bounds", _checked_ends(self.bounds))
        self._check_columns()
        self._check_missing()
        if self.parts > _MOST_PARTS:
            raise QueryError(f"a breakdown has at most {_MOST_PARTS:,} parts, got {self.parts:,}.")
        if not self.columns:
            raise QueryError("name a condition or a breakdown: the number of rows is public.")
        if not self.secret:
            raise QueryError(
                "every column of the question is public, so the answer is too: leave the column to"
                " be protected out of public=."
            )
        if self.sizes is not None:
            object.__setattr__(self, "sizes", tuple(int(number) for number in self.sizes))
            if not self.is_public_mean or len(self.sizes) != self.parts:
                raise QueryError("public numbers of rows are for means, one for each part.")
        if (self.most is None) != (self.keep_by is None):
            raise QueryError("most= and keep_by= say together which rows of a group count.")
        seed: Any = self.seed
        whole = hasattr(seed, "__index__") and not isinstance(seed, bool)
        if seed is not None and not (self.keep_by is not None and whole and seed >= 0):
            raise QueryError(
                "a seed, a whole number from 0, makes the choice of keep_by a random one."
            )
        if self.most is not None and self.most < 1:
            raise QueryError(f"at least one row of a group must count, got {self.most}.")

    def _check_columns(self) -> None:
        for role, columns in (("where", self.where), ("by", self.by)):
            names = [column.name for column in columns]
            if len(set(names)) != len(names):
                raise QueryError(f"{role} must not name a column twice.")
            if self.value in names:
                raise QueryError(
                    f"column {self.value} is added up, and cannot decide which rows count as well."
                )
        for column in (*self.where, *self.by):
            if any(map(_is_no_value, column.values)):
                raise QueryError(
                    f"a missing value of column {column.name} matches no condition and is no label:"
                    " count the missing with by= and missing='category'."
                )

    def _check_missing(self) -> None:
        labels = {column.name: column.values for column in self.by}
        for name, rule in self.missing.items():
            if name not in self.columns:
                raise QueryError(f"missing= names column {name}, which is not asked about.")
            if rule == "zero":
                continue
            if name == self.value:
                number = isinstance(rule, int | float) and not isinstance(rule, bool)
                if not (number and math.isfinite(cast("float", rule))):
                    raise QueryError(
                        f"what stands for a missing value of {name} is added up: 'zero' (the row"
                        f" does not count) or a finite number, got {rule!r}."
                    )
            elif name not in labels:
                raise QueryError(
                    f"a row whose {name} is missing does not meet a condition on it:"
                    f" missing='zero' is the only rule, got {rule!r}."
                )
            elif rule != "category" and rule not in labels[name]:
                raise QueryError(f"what stands for a missing {name} must be one of its labels.")

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column that the answer depends on."""
        named = [*(one.name for one in (*self.where, *self.by))]
        return tuple(dict.fromkeys([*([] if self.value is None else [self.value]), *named]))

    @property
    def secret(self) -> tuple[str, ...]:
        """The secret ones among them."""
        return tuple(name for name in self.columns if name not in cast("tuple[str]", self.public))

    @property
    def labels(self) -> tuple[tuple[Hashable, ...], ...]:
        """The labels of each column of the breakdown, with None where missing is a category."""
        return tuple(
            (*column.values, None) if self.missing.get(column.name) == "category" else column.values
            for column in self.by
        )

    @property
    def parts(self) -> int:
        """How many parts there are: one without a breakdown."""
        return math.prod(len(labels) for labels in self.labels)

    def cells(self) -> Iterator[tuple[Hashable, ...]]:
        """Yield the labels of every part, in order."""
        return itertools.product(*self.labels)

    @property
    def moves(self) -> bool:
        """Whether a row can be in one part or another, depending on a secret."""
        secret = [
            len(labels)
            for column, labels in zip(self.by, self.labels, strict=True)
            if column.name in self.secret
        ]
        return math.prod(secret) > 1

    @property
    def leaves(self) -> bool:
        """Whether a row can count or not count, depending on a secret."""
        decides = {column.name for column in (*self.where, *self.by)} & set(self.secret)
        return bool(decides) or self._drops_missing_values

    @property
    def _drops_missing_values(self) -> bool:
        return self.value in self.secret and self.missing.get(self.value or "") == "zero"

    @property
    def needs_household(self) -> bool:
        """Whether no model of one column covers it: only any dependence in a household does."""
        return self.kind == "count" or self.secret != (self.value,) or self.value in self.missing

    @property
    def counts_states(self) -> bool:
        """Whether it counts rows by one secret column alone, whose cells are never missing."""
        return self.kind == "count" and len(self.secret) == 1 and self.secret[0] not in self.missing

    @property
    def reason(self) -> str:
        """Why no model of one column applies to the answer, in words."""
        if self.kind == "count":
            return "a correlation does not cover counts"
        if len(self.secret) > 1:
            return (
                f"the answer depends on more than one secret column ({', '.join(self.secret)}), and"
                " a correlation says how the values of one are correlated"
            )
        return "whether a secret value is missing may say something about others"

    @property
    def is_public_mean(self) -> bool:
        """Whether it is a mean over numbers of rows that no secret decides."""
        return self.kind == "mean" and not (self.moves or self.leaves)

    @property
    def is_ratio(self) -> bool:
        """Whether it is a mean of a noisy sum over a noisy count."""
        return self.kind == "mean" and (self.moves or self.leaves)

    @property
    def _span(self) -> tuple[float, float]:
        """Two numbers as far from each other as one row can move all parts together, in L1."""
        if self.kind == "count":
            return (0.0, 2.0) if self.moves else (0.0, 1.0)
        if self.is_ratio:
            # The sum is counted in half widths of the range from its middle: a row adds at most 1
            # to it and 1 to the count. Leaving a part takes both away, entering another adds both.
            return (-2.0, 2.0) if self.moves else (-1.0, 1.0)
        low, high = self._ends
        if self.moves:  # |x| leaves one part, and |x'| enters another
            largest = max(abs(low), abs(high))
            return -largest, largest
        return (min(low, 0.0), max(high, 0.0)) if self.leaves else (low, high)

    @property
    def reach(self) -> float:
        """The largest L1 change of the answer when one row changes arbitrarily."""
        low, high = self._span
        return high - low

    @property
    def length(self) -> float:
        """The largest L2 change of the answer when one row changes arbitrarily, rounded up.

        Examples
        --------
        >>> city = Column(name="city", values=("Oslo", "Bergen"))
        >>> round(RowQuery(kind="count", by=[city]).length, 6)
        1.414214
        """
        return float(lengths(self._change)) * (1 + 4 * UNIT_ROUNDOFF)

    @property
    def _change(self) -> FloatArray:
        """A change of as many numbers as are needed that is as long in L1 and L2 as any is."""
        if not self.moves:
            return np.array([self.reach])
        if self.kind == "count":
            return np.ones(2)
        if self.is_ratio:
            return np.ones(4)
        low, high = self._ends
        largest, width = max(abs(low), abs(high)), high - low
        share = width / largest  # whose square is never too large or small for a float
        if share * share <= 2:
            return np.array([largest, largest])
        # a + b = 2L and a² + b² = W² where W is the longer one; rounded up.
        half = largest * math.sqrt(share * share / 2 - 1) * (1 + 8 * UNIT_ROUNDOFF)
        return np.array([largest + half, largest - half]) * (1 + 8 * UNIT_ROUNDOFF)

    def farthest_records(self) -> FloatArray:
        """Return what two possible records add to the noisy numbers, as far apart as `reach`.

        A row each. Nobody moves the answer further in L1 than by changing from one to the other.
        """
        found = np.zeros((2, self.parts * (2 if self.is_ratio else 1)))
        if self.kind == "count" or self.is_ratio:  # a member, of a mean one with a high value
            adds = (1.0 if self.moves else 0.0, 1.0)
        else:
            adds = (max(self._ends, key=abs),) * 2 if self.moves else self._span
        places = (0, self._neighbour() if self.moves else 0)
        for row, (place, added) in enumerate(zip(places, adds, strict=True)):
            found[row, place :: self.parts] = added
        return found

    def records_of(self, states: Sequence[Hashable]) -> FloatArray:
        """Return what a row with each state of the one secret column adds, a row each.

        By all other columns it is in the first part that the state allows.
        """
        (column,) = self.secret
        asked = [one.values for one in self.where if one.name == column]
        found = np.zeros((len(states), self.parts))
        places = [place for place, one in enumerate(self.by) if one.name == column]
        for row, state in enumerate(states):
            if all(state in values for values in asked):
                cells = (
                    place
                    for place, cell in enumerate(self.cells())
                    if all(cell[axis] == state for axis in places)
                )
                first = next(cells, None)
                if first is not None:
                    found[row, first] = 1.0
        return found

    def _neighbour(self) -> int:
        """Return a part that only secret columns tell from the first."""
        first, *others = self.cells()
        open_to_all = [place for place, one in enumerate(self.by) if one.name not in self.secret]
        return next(
            place
            for place, cell in enumerate(others, start=1)
            if all(cell[axis] == first[axis] for axis in open_to_all)
        )

    @property
    def _ends(self) -> tuple[float, float]:
        return cast("tuple[float, float]", self.bounds)

    @property
    def middle(self) -> Fraction:
        """The middle of the public range."""
        return (Fraction(self._ends[0]) + Fraction(self._ends[1])) / 2

    @property
    def half(self) -> Fraction:
        """Half the width of the public range."""
        return (Fraction(self._ends[1]) - Fraction(self._ends[0])) / 2

    def contributions(self, model: Model, *, rows: int) -> Contributions:
        """Lower: how far one row can move all parts together, as one number.

        A model of any dependence needs only that. With a stated correlation the row adds its value:
        the proof moves every value u by at most some Δ_u, which bounds the total by Σ|Δ_u| and all
        parts together by the same, where no two move against each other.
        """
        del rows
        if self.is_public_mean and self.sizes is None:
            raise QueryError("a mean over public numbers of rows needs these: sizes=.")
        if any(model.gaussian_tuples):
            return self._of_values(model)
        if model.covers_any_answer:
            return self._of_states(model)
        if not model.covers_any_dependence or any(len(domain) != 2 for domain in model.domains):
            raise UnsupportedQueryError(
                f"{self.reason}: calibrate for any dependence, pdp.Unknown(size=…, bounds=(0, 1)),"
                " or leave where=, by= and missing= out."
            )
        return Contributions.additive(
            [np.array(self._span)] * len(model.names),
            real=self.kind != "count",
            clamped=True,
            roundings=[_rounding(*self._span)] * len(model.names),
            vectors=[np.stack([0 * self._change, self._change])] * len(model.names)
            if self.moves
            else (),
        )

    def _of_values(self, model: Model) -> Contributions:
        if self.needs_household:
            raise UnsupportedQueryError(
                f"{self.reason}: leave correlation= out, which covers any dependence inside a"
                " household."
            )
        if not all(model.gaussian_tuples) or set(model.domains) != {self.bounds}:
            raise UnsupportedQueryError(
                f"the model must be about values in {self._ends}, the bounds of column"
                f" {self.value}, all of them."
            )
        if not model.covers_subsets or (self.parts > 1 and not model.covers_parts):
            raise UnsupportedQueryError(
                "values that move against each other may cancel in the total and not in its parts,"
                " and rows that count make groups of other sizes: state one correlation for all of"
                " them, of at least 0."
            )
        return Contributions.additive(
            [np.array(self._ends)] * len(model.names),
            weights=[1.0] * len(model.names),
            real=True,
            clamped=True,
        )

    def _of_states(self, model: Model) -> Contributions:
        """Lower for a model of the states of one column.

        Two states differ by the whole reach, which is all that the proof for one answer uses. In
        the tails, where it is attained, parts that lose a row count like parts that gain one. For
        several answers together it matters which states each of them distinguishes.
        """
        if not self.counts_states:
            raise UnsupportedQueryError(
                "persistence is about the states of one secret column without gaps, which are"
                " counted: leave it out, which covers any dependence inside a household."
            )
        (column,), states = self.secret, model.domains[0]
        named = [one.values for one in (*self.by, *self.where) if one.name == column]
        if set(model.domains) != {states} or not all(set(one) <= set(states) for one in named):
            raise UnsupportedQueryError(
                f"the model must be about the states of column {column}, all that are named."
            )
        low, high = self._span
        inside = [state for state in states if all(state in values for values in named)]
        if self.moves and len(inside) > 1:
            added = dict.fromkeys(inside, high) | {inside[0]: low}
            values = [added.get(state, (low + high) / 2) for state in states]
        else:
            values = [high if state in inside else low for state in states]
            if min(values) == max(values):  # a value that is no state counts nowhere
                values[0] = low + high - values[0]
        vectors: list[FloatArray] = []
        if self.moves and len(inside) > 1:
            records = self.records_of(states)
            vectors = [records[:, records.any(axis=0)]] * len(model.names)
        return Contributions.additive([np.array(values)] * len(model.names), vectors=vectors)

    def to_dict(self) -> dict[str, Any]:
        """Describe the query for JSON."""
        described: dict[str, Any] = {
            "type": "RowQuery",
            "kind": self.kind,
            "value": self.value,
            "bounds": None if self.bounds is None else list(self.bounds),
            "independent": self.independent,
        }
        for name in ("where", "by"):
            described[name] = [
                {"column": one.name, "values": [json_value(value) for value in one.values]}
                for one in getattr(self, name)
            ]
        described["missing"] = {name: json_value(rule) for name, rule in self.missing.items()}
        described["public"] = list(self.public)
        described["sizes"] = None if self.sizes is None else list(self.sizes)
        kept = {"most": self.most, "keep_by": self.keep_by, "seed": self.seed}
        return described | kept | {"every": self.every}

    @classmethod
    def from_parameters(cls, described: Mapping[str, Any]) -> RowQuery:
        """Undo `to_dict`."""

        def columns(name: str) -> list[Column]:
            return [
                Column(
                    name=field_of(one, "column"),
                    values=tuple(from_json_value(value) for value in field_of(one, "values")),
                )
                for one in field_of(described, name)
            ]

        missing = field_of(described, "missing")
        return cls(
            kind=field_of(described, "kind"),
            value=field_of(described, "value"),
            bounds=field_of(described, "bounds"),
            where=columns("where"),
            by=columns("by"),
            missing={name: from_json_value(rule) for name, rule in missing.items()},
            public=field_of(described, "public"),
            sizes=field_of(described, "sizes"),
            most=field_of(described, "most"),
            keep_by=field_of(described, "keep_by"),
            seed=field_of(described, "seed"),
            independent=bool(field_of(described, "independent")),
            every=field_of(described, "every"),
        )

    def answer(self, rows: Sequence[int], totals: Sequence[Fraction]) -> tuple[Fraction, ...]:
        """Return the exact numbers to which noise is added, from the rows and sums of all parts."""
        if self.kind == "count":
            return tuple(Fraction(number) for number in rows)
        if not self.is_ratio:
            return tuple(totals)
        moved = [
            (total - self.middle * number) / self.half
            for total, number in zip(totals, rows, strict=True)
        ]
        return (*moved, *(Fraction(number) for number in rows))

    def values(self, noisy: Sequence[float]) -> list[float]:
        """Return the answer of every part from the noisy numbers, which costs no privacy."""
        if self.kind != "mean":
            return list(noisy)
        low, high = self._ends
        middle, half = float(self.middle), float(self.half)
        if self.sizes is not None:
            return [
                total / number if number else middle
                for total, number in zip(noisy, self.sizes, strict=True)
            ]
        sums, counts = noisy[: self.parts], noisy[self.parts :]
        return [
            min(max(middle + half * total / max(number, 1.0), low), high)
            for total, number in zip(sums, counts, strict=True)
        ]


def _is_no_value(value: Any) -> bool:
    """Whether a value stands for a missing one: None, NA, and what differs from itself, as NaN."""
    return value is None or type(value).__name__ == "NAType" or bool(value != value)


def _rounding(low: float, high: float) -> float:
    """Bound how far the difference of two floats, as a float, is from exact."""
    error = abs(Fraction(high) - Fraction(low) - Fraction(high - low))
    return math.nextafter(float(error), math.inf) if error else 0.0


def _checked_ends(bounds: Any) -> tuple[float, float]:
    (ends,) = checked_bounds(bounds, 1)
    if max(map(abs, ends)) > _LARGEST_END:
        raise QueryError(f"bounds reach to {_LARGEST_END:.3g} at most: change the unit.")
    return ends
