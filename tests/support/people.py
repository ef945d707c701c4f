"""People in households, with gaps, and questions about several of their columns."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

from pdp_calibrate.core.row_query import Column, RowQuery
from tests.oracles.rows import part_of, value_of

_rng = np.random.default_rng(20)
_SIZES = _rng.integers(1, 7, 60)
_PEOPLE = int(_SIZES.sum())
_PRIME = 2**31 - 1


def _with_gaps(values: Any, share: float) -> list[Any]:
    return [
        None if gap else one for one, gap in zip(values, _rng.random(_PEOPLE) < share, strict=True)
    ]


PEOPLE = pd.DataFrame(
    {
        "household": np.repeat(np.arange(60), _SIZES),
        "person": _rng.permutation(_PEOPLE),
        "income": pd.array(
            _with_gaps(_rng.normal(40, 30, _PEOPLE).round(3).tolist(), 0.1), "Float64"
        ),
        "sick": _rng.random(_PEOPLE) < 0.3,
        "degree": pd.array(_with_gaps(_rng.integers(0, 3, _PEOPLE).tolist(), 0.1), "Int64"),
        "city": pd.Series(
            _with_gaps(_rng.choice(["Oslo", "Bergen", "Voss"], _PEOPLE).tolist(), 0.1)
        ),
    }
).sample(frac=1, random_state=3, ignore_index=True)  # fmt: skip
"""Three secret columns have gaps; two are complete."""

CITY = Column(name="city", values=("Oslo", "Bergen"))
SICK = Column(name="sick", values=(True,))
DEGREE = Column(name="degree", values=(0, 1, 2))

INCOME: dict[str, Any] = {"value": "income", "bounds": (-5.0, 60.0)}
QUESTIONS: dict[str, RowQuery] = {
    "count of two conditions": RowQuery(
        kind="count",
        where=[SICK, Column(name="degree", values=(1, 2))],
        missing={"degree": "zero"},
    ),
    "cross table": RowQuery(
        kind="count",
        by=[CITY, DEGREE, Column(name="sick", values=(False, True))],
        missing={"city": "category", "degree": 0},
    ),
    "filtered sum": RowQuery(kind="sum", where=[SICK], missing={"income": 12.5}, **INCOME),
    "sum by a secret": RowQuery(
        kind="sum", by=[CITY], missing={"city": "zero", "income": "zero"}, **INCOME
    ),
    "mean by a secret": RowQuery(
        kind="mean", by=[CITY], where=[SICK],
        missing={"city": "Bergen", "income": "zero"}, **INCOME,
    ),
    "mean by a public column": RowQuery(
        kind="mean", by=[CITY], where=[SICK], public=["city", "sick"],
        missing={"city": "category", "income": 0}, **INCOME,
    ),
    "independent people": RowQuery(
        kind="mean", where=[SICK], public=["sick"], missing={"income": "zero"}, independent=True,
        **INCOME,
    ),
}  # fmt: skip
KEPT = {
    "at most three": RowQuery(
        kind="sum", where=[SICK], public=["sick"], missing={"income": "zero"}, most=3,
        keep_by="person", **INCOME,
    ),
    "at most two at random": RowQuery(
        kind="count", where=[SICK], most=2, keep_by="person", seed=6_283_185_307_179_586
    ),
    "at most two by text": RowQuery(
        kind="count", by=[CITY], missing={"city": "category"}, most=2, keep_by="key"
    ),
}  # fmt: skip
PEOPLE["key"] = ["p" + str(number) for number in PEOPLE["person"]]


def expected(query: RowQuery) -> tuple[tuple[int, ...], list[Fraction], Counter[tuple[int, int]]]:
    """Return the rows and sums of each part, and the public groups, from plain Python."""
    cells = list(query.cells())
    rows = dict.fromkeys(cells, 0)
    sums = dict.fromkeys(cells, Fraction(0))
    groups: Counter[tuple[int, int]] = Counter()
    columns = [name for name in PEOPLE.columns if name != "household"]
    parts = [pd.DataFrame([row]) for _, row in PEOPLE.iterrows()] if query.independent else [
        group for _, group in PEOPLE.groupby("household")
    ]  # fmt: skip
    for group in parts:
        if query.keep_by is not None:
            order = group[query.keep_by]
            if query.seed is not None:
                factor, more = query.seed % (_PRIME - 1) + 1, query.seed // _PRIME % _PRIME
                order = order.map(lambda key, a=factor, b=more: (int(key) * a + b) % _PRIME)
            kept = group.loc[order.sort_values().index].head(query.most)
        else:
            kept = group
        counted = 0
        for row in kept[columns].itertuples(index=False):
            record = {
                name: None if pd.isna(value) else value
                for name, value in zip(columns, row, strict=True)
            }
            counted += _is_open(query, record)
            part = part_of(query, record)
            if part is not None:
                rows[part] += 1
                if query.value is not None:
                    sums[part] += Fraction(value_of(query, record))
        groups[len(group), counted] += 1
    return tuple(rows.values()), list(sums.values()), groups


def _is_open(query: RowQuery, record: dict[str, Any]) -> bool:
    """Say whether a record counts as far as public columns tell."""
    for condition in query.where:
        if condition.name in query.public and record[condition.name] not in condition.values:
            return False
    for column, labels in zip(query.by, query.labels, strict=True):
        if column.name in query.public:
            held = record[column.name]
            rule = query.missing.get(column.name)
            if held is None and rule not in ("zero", "category"):
                held = rule
            if held not in labels:
                return False
    return True
