"""One rule for equal keys and labels: odd values of every type give one answer in every engine.

What is refused depends on types and on public columns, never on a secret cell.
"""

import datetime as dt
import itertools
from decimal import Decimal
from fractions import Fraction

import dask
import dask.dataframe as dd
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import pdp_calibrate as pdp
from pdp_calibrate.core.row_query import Column, RowQuery
from pdp_calibrate.frames.counts import contingency, group_sizes, values_held
from pdp_calibrate.frames.grouped import read_groups
from pdp_calibrate.frames.open import asks_the_engine
from pdp_calibrate.frames.order import clamped_sums_by_rank
from pdp_calibrate.frames.rows import read_rows
from pdp_calibrate.frames.sums import clamped_sums
from pdp_calibrate.jobs.grammar import Question
from pdp_calibrate.jobs.job import Job
from pdp_calibrate.jobs.run import run

ENGINES = {
    "pandas": pa.Table.to_pandas,
    "pandas of Arrow": lambda table: table.to_pandas(types_mapper=pd.ArrowDtype),
    "polars": pl.from_arrow,
    "polars lazy": lambda table: pl.from_arrow(table).lazy(),
    "Arrow": lambda table: table,
    "DuckDB": lambda table: duckdb.connect().from_arrow(table),
}
WITH_DASK = ENGINES | {"Dask": lambda table: dd.from_pandas(table.to_pandas(), npartitions=2)}
BIG = 2**53


def said(ask):
    """Return an answer, or what is said instead."""
    try:
        return ask()
    except pdp.PdpError as error:
        return f"{type(error).__name__}: {error}"


def answers(ask, column, engines=ENGINES):
    table = pa.table({"g": [1, 1, 2, 3], "x": column})
    return {name: said(lambda make=make: ask(make(table))) for name, make in engines.items()}


def the_answer(ask, column, engines=ENGINES):
    found = answers(ask, column, engines)
    assert len(set(map(repr, found.values()))) == 1, found
    return next(iter(found.values()))


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()])
@pytest.mark.parametrize("engine", WITH_DASK)
def test_zero_is_one_key_whatever_its_sign(engine, kind):
    """Two households of a half each would leak 4 for 1."""
    keys = pa.array([0.0, -0.0, 0.0, 1.0], kind)
    frame = WITH_DASK[engine](pa.table({"g": [1, 1, 2, 3], "x": keys, "t": [1, 2, 3, 4]}))
    question = RowQuery(kind="count", where=[Column(name="g", values=(1,))])
    assert group_sizes(frame, "x") == {3: 1, 1: 1}
    assert read_rows(frame, question, groups="x").public.sizes == {3: 1, 1: 1}
    assert contingency(frame, ["x"]) == {(0.0,): 3, (1.0,): 1}
    assert len(values_held(frame, "x", gaps=False)) == 2
    assert read_groups(frame, "g", by="x", domain=(1, 2, 3)).sizes == {3: 1, 1: 1}
    assert read_groups(frame, "g", by="x", bounds=(0, 9), clamp=True).sizes == {3: 1, 1: 1}
    if engine not in ("Dask", "Arrow"):  # which lack window functions
        _, sizes = clamped_sums_by_rank(frame, "g", (0, 9), by="x", order_by="t", clamp=True)
        assert sizes == {3: 1, 1: 1}


def where(label):
    question = RowQuery(
        kind="count", where=[Column(name="x", values=(label,))], missing={"x": "zero"}
    )
    return lambda frame: read_rows(frame, question, groups="g").rows


INTEGERS = pa.array([BIG + 1, BIG, 1, -(2**63)])
UNSIGNED = pa.array([2**63 + 1, 2**64 - 1, 1, 2**63], pa.uint64())
FLOATS = pa.array([0.1, -0.0, float("nan"), None])
NARROW = pa.array([0.1, 0.2, 0.1, 16777216.0], pa.float32())
DECIMALS = pa.array([Decimal("0.10"), Decimal("0.2"), Decimal(1), None], pa.decimal128(10, 2))
DAYS = pa.array([dt.date(2026, 3, 1), dt.date(2026, 3, 2), dt.date(2026, 3, 1), None])
TIMES = pa.array([dt.datetime(2026, 3, 1), dt.datetime(2026, 3, 1, 12), None, None])  # noqa: DTZ001
NATIVE = {name: make for name, make in ENGINES.items() if name != "pandas"}
"""Without pandas, which holds decimals and days as objects."""


@pytest.mark.parametrize(
    ("column", "label", "expected"),
    [
        *((INTEGERS, label, 1) for label in (BIG, float(BIG), BIG + 1, 1.0, True, -(2**63))),
        *((INTEGERS, label, 0) for label in (0.5, 1e300, float("inf"), 2**64, -(2**64), 10**400)),
        *((UNSIGNED, label, 1) for label in (2**63 + 1, 2**64 - 1, 1, 1.0, 2.0**63)),
        *((UNSIGNED, label, 0) for label in (-1, 2**64, 0.5, 1e300, 0)),
        *(
            (pa.array([1, 2, 1, 3], pa.int8()), label, n)
            for label, n in ((1, 2), (300, 0), (-129, 0))
        ),
        *((FLOATS, label, 1) for label in (0.1, 0, 0.0, -0.0, False)),
        *((FLOATS, label, 0) for label in (1, 10**400, float("inf"), BIG + 1)),
        *((NARROW, label, n) for label, n in ((0.1, 2), (16777217, 1), (1e300, 0), (0, 0))),
        *((pa.array([True, False, True, None]), label, 2) for label in (True, 1, 1.0)),
    ],
)
def test_numbers_are_equal_as_the_column_holds_them(column, label, expected):
    assert the_answer(where(label), column) == (expected,)


@pytest.mark.parametrize(
    ("column", "label", "expected"),
    [
        *((DECIMALS, label, 1) for label in (0.1, Decimal("0.1"), Decimal("0.100"), 1, 1.0, 0.2)),
        *((DECIMALS, label, 0) for label in (0.101, 1e300, 1e-300, 10**9, 10**400, 0)),
        *((DAYS, label, 2) for label in (dt.date(2026, 3, 1), "2026-03-01")),
        (DAYS, dt.datetime(2026, 3, 1), 2),  # noqa: DTZ001
        *((TIMES, label, 1) for label in (dt.date(2026, 3, 1), "2026-03-01", "2026-03-01T12:00")),
    ],
)
def test_decimals_and_days_are_equal_as_the_column_holds_them(column, label, expected):
    assert the_answer(where(label), column, NATIVE) == (expected,)


@pytest.mark.parametrize(
    ("column", "label"),
    [
        (INTEGERS, "1"),
        (FLOATS, dt.date(2026, 3, 1)),
        (pa.array([True, False, True, None]), 2),
        (pa.array(["1", "2", "1", None]), 1),
        (TIMES, "soon"),
        (TIMES, 1),
        (TIMES, dt.datetime(2026, 3, 1, tzinfo=dt.UTC)),
    ],
)
def test_labels_of_another_type_are_refused_in_the_same_words(column, label):
    words = the_answer(where(label), column, NATIVE)
    assert "is none of that" in words
    assert the_answer(where(label), pa.array([None] * 4, column.type), NATIVE) == words


def test_days_are_no_numbers():
    assert "holds Date, and 1 is none of that" in the_answer(where(1), DAYS, NATIVE)
    assert "holds Date" in the_answer(where("2026-03-01T12:00"), DAYS, NATIVE)


@pytest.mark.parametrize("bounds", [(0.0, 1.0), (0.0, float(BIG)), (-1e17, 1e17), (-1e19, 2e19)])
@pytest.mark.parametrize("kind", ["int64", "uint64"])
def test_sums_of_large_whole_numbers_are_those_of_their_floats(kind, bounds):
    rng = np.random.default_rng(3)
    ends = np.iinfo(kind)
    if kind == "uint64" and bounds[1] > 2**63:
        words = the_answer(lambda frame: clamped_sums(frame, {"x": bounds}, clamp=True), UNSIGNED)
        assert "must lie below 2^63" in words
        assert words == the_answer(
            lambda frame: read_groups(frame, "x", by="g", bounds=bounds, clamp=True), UNSIGNED
        )
        return
    values = [ends.min, ends.max, ends.max - 1024, BIG + 1, 0]
    values += rng.integers(ends.min, ends.max, 40, dtype=kind).tolist()
    table = pa.table({"g": range(len(values)), "x": pa.array(values, kind)})
    question = RowQuery(kind="sum", value="x", bounds=bounds)
    clipped = sum(Fraction(min(max(float(value), bounds[0]), bounds[1])) for value in values)
    found = set()
    for make in ENGINES.values():
        frame = make(table)
        read = read_rows(frame, question, groups="g")
        found.add(read.totals[0])
        found.add(clamped_sums(frame, {"x": bounds}, clamp=True)[0]["x"].total)
        found.add(read_groups(frame, "x", by="g", bounds=bounds, clamp=True).sum.total)
    (total,) = found
    assert total <= clipped < total + len(values) * read.step


@pytest.mark.parametrize("keys", [[1, "1", 1, 2], ["1", 1, "x", "y"], [1.5, "a", "b", "c"]])
def test_public_keys_of_several_types_are_refused(keys):
    frame = pd.DataFrame({"x": pd.Series(keys, dtype=object), "t": [1, 2, 3, 4], "y": 1.0})
    said = {"bounds": (0, 1), "epsilon": 1.0}
    for ask in (
        lambda: frame.pdp.sum("y", groups="x", **said),
        lambda: frame.pdp.sum("y", groups="x", missing="zero", **said),
        lambda: frame.pdp.sum("y", groups="x", order_by="t", correlation=0.1, **said),
        lambda: frame.pdp.sum("y", groups="t", by="x", public=["x"], **said),
        lambda: frame.pdp.sum("y", groups="t", where={"x": 1}, public=["x"], **said),
        lambda: pdp.People(frame, groups="x", epsilon=1.0),
        lambda: frame.assign(y=[0, 1, 0, 1]).pdp.fit(
            pdp.GroupEstimator(groups="x", value="y", kind="binary", source="public")
        ),
    ):
        with pytest.raises(pdp.ModelError, match="entries of several types"):
            ask()
    fine = frame.assign(x=pd.Series([1, 2.5, None, 1], dtype=object))
    asked = {"by": "x", "public": ["x"], "missing": "zero", "groups": "t", "epsilon": 1e6}
    assert fine.pdp.count({"y": 1.0}, **asked).value.to_dict() == {1: 2, 2.5: 1}


class Unwilling:
    """An object that cannot be hashed, compared or shown."""

    def __eq__(self, other):
        raise ValueError("record 9731")

    __hash__ = None
    __repr__ = __bool__ = __eq__


def of_pandas(column):
    return pd.DataFrame({"g": [1, 1, 2, 3], "x": column})


def of_dask(column):
    with dask.config.set({"dataframe.convert-string": False}):
        return dd.from_pandas(of_pandas(column), npartitions=2)


def count_of(label):
    return Question(kind="count", columns=("x",), values=(label,))


def asked(frame, *questions, **options):
    return run(Job(questions=questions, options={"groups": "g", "epsilon": 1e6, **options}), frame)


@pytest.mark.parametrize("make", [of_pandas, of_dask])
@pytest.mark.parametrize("rule", [{"missing": "zero"}, {}], ids=["with a rule", "without"])
@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ([1, 1, 1, 2], [3, 0, 1]),
        ([1, "1", 1, 2], [2, 1, 1]),
        (["1", "1", "1", "2"], [0, 3, 0]),
        (["1", 1, b"1", frozenset({1})], [1, 1, 0]),
        ([dt.date(2026, 1, 1), 1, "a", 2.5], [1, 0, 0]),
        ([1, [1], 1, (1,)], [2, 0, 0]),
        ([1, {}, {1}, 2], [1, 0, 1]),
        ([1, np.array([1, 2]), np.array([1]), "1"], [1, 1, 0]),
        ([Decimal("sNaN"), Decimal(1), 1.0, np.int8(2)], [2, 0, 1]),
        ([Unwilling(), 1, pd.Timestamp("2026-01-01", tz="UTC"), 2], [1, 0, 1]),
        ([pd.Series([1, 2]), pd.DataFrame({"a": [1]}), 1, "1"], [1, 1, 0]),
        ([True, 1, Fraction(1), -1], [3, 0, 0]),
        ([None, float("nan"), pd.NA, 1], [1, 0, 0]),
    ],
)  # fmt: skip
def test_objects_are_read_by_the_declared_labels(cells, expected, rule, make):
    """A cell that is none of them counts nowhere, and nothing is said about it."""
    column = pd.Series([None] * 4, dtype=object)
    for place, cell in enumerate(cells):
        column.array[place] = cell
    options = {"domain": [1, "1", 2], **rule}
    gaps = not rule and any(cell is None for cell in cells)
    labels = (1, "1", True) if make is of_pandas else (True,)  # each question takes Dask a second
    for label in labels:
        truth = expected[label == "1"]
        if gaps:
            with pytest.raises(pdp.ModelError, match="no rule was given"):
                asked(make(column), count_of(label), **options)
        else:
            assert asked(make(column), count_of(label), **options).value == truth
    if rule:
        found = asked(make(column), Question(kind="histogram", columns=("x",)), **options)
        assert found.value.to_list() == expected
    with pytest.raises(pdp.QueryError, match="7 is no possible value"):
        asked(make(column), count_of(7), **options)


@pytest.mark.parametrize("labels", [[1], [1, "1"], [1, "1", 2]])
@pytest.mark.parametrize("question", ["count", "histogram"])
def test_the_scale_of_objects_covers_households_that_differ_in_any_cell(question, labels):
    """All frames with two households, of a person and of two, against all of one other household.

    Among the cells are one that no label equals, and one that is of a type of its own.
    """
    cells = [*labels, "none of them", b"1"]
    counted = labels[:1] if question == "count" else labels
    moved = 0
    for size in (1, 2):
        for before, after in itertools.product(itertools.product(cells, repeat=size), repeat=2):
            moved = max(moved, sum(abs(before.count(one) - after.count(one)) for one in counted))
    frame = pd.DataFrame({"g": [1, 2, 2], "x": pd.Series(["none of them", 1, b"1"], dtype=object)})
    asked = "count(x = 1)" if question == "count" else "histogram(x)"
    options = {"groups": "g", "domain": labels, "epsilon": 0.5}
    found = frame.pdp.calibrate(asked, **options)
    assert moved == (2 if len(counted) == 1 else 4)
    assert found.scale == pytest.approx(moved / 0.5)
    assert found.scale * 0.5 >= moved
    ledger = pdp.Ledger(found.model, epsilon=1.0)
    again = {**options, "ledger": ledger}
    if question == "count":
        frame.pdp.count("x", values=[1], **again)
    else:
        frame.pdp.histogram("x", **again)
    assert ledger.spent == pytest.approx(0.5)


def test_a_stated_model_of_objects_keeps_its_domain():
    frame = pd.DataFrame({"g": [1, 1, 2], "x": pd.Series([1, "1", 1], dtype=object)})
    model = pdp.Blocks(models=[pdp.Unknown(size=n, domain=[0, 1]) for n in (1, 2)])
    with pytest.raises(pdp.ModelError, match="none of those that are possible"):
        frame.pdp.count("x", values=[1], groups="g", model=model, epsilon=1.0)


def test_questions_answered_together_count_objects_by_the_declared_labels():
    frame = pd.DataFrame({"g": [1, 1, 2], "x": pd.Series([1, "1", 1], dtype=object)})
    together = asked(
        frame, count_of(1), Question(kind="histogram", columns=("x",)), domain=[1, "1"]
    )
    assert [np.ravel(one).tolist() for one in together.value] == [[2], [2, 1]]


def test_a_function_that_an_engine_lacks_is_named_as_such():
    @asks_the_engine
    def lacking():
        raise NotImplementedError("record 9731")

    with pytest.raises(pdp.FrameError) as caught:
        lacking()
    assert "lacks a function" in str(caught.value)
    assert "polars or DuckDB" in str(caught.value)
    assert "9731" not in str(caught.value)
    assert "connection" not in str(caught.value)
