"""Frames in memory are added up and counted by other code than engines: to the same numbers."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import example, given, settings, strategies as st

import pdp_calibrate as pdp
from pdp_calibrate.core.row_query import Column, RowQuery
from pdp_calibrate.frames.counts import group_sizes
from pdp_calibrate.frames.grouped import read_groups
from pdp_calibrate.frames.order import clamped_sums_by_rank
from pdp_calibrate.frames.rows import read_rows
from pdp_calibrate.frames.sums import clamped_sums

LONG = 40_000  # rows: more than are added at once
KINDS = {
    "pandas": pd.DataFrame,
    "pandas, nullable": lambda columns: pd.DataFrame(columns).convert_dtypes(),
    "pandas, Arrow": lambda columns: pd.DataFrame(columns).convert_dtypes(dtype_backend="pyarrow"),
    "polars": pl.DataFrame,
    "Arrow": pa.table,
}
kinds = pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)


def _of_an_engine(columns):
    return pl.DataFrame(columns).lazy()


@settings(max_examples=100, deadline=None)
@given(
    values=st.lists(st.floats(), min_size=1, max_size=30),
    ends=st.tuples(
        st.floats(-1e300, 1e300, allow_subnormal=False),
        st.floats(-1e300, 1e300, allow_subnormal=False),
    ).filter(lambda pair: max(map(abs, pair)) > 1e-250),
    clamp=st.booleans(),
)
@example(values=[-1.7e308, 1.7e308], ends=(0.0, 1.0), clamp=True)
@example(values=[float("inf"), float("nan")], ends=(0.0, 1.0), clamp=True)
def test_sums_and_refusals_are_those_of_an_engine(values, ends, clamp):
    """Sums to the last bit; missing values are named before infinite ones, these before others."""
    bounds = {"x": (min(ends), max(ends))}

    def said(frame):
        try:
            return clamped_sums(frame, bounds, clamp=clamp)
        except pdp.ModelError as error:
            return str(error)

    assert said(pd.DataFrame({"x": values})) == said(_of_an_engine({"x": values}))


@kinds
def test_every_piece_of_a_long_column_counts(make):
    values = np.random.default_rng(0).normal(scale=3.0, size=LONG)
    sums, rows = clamped_sums(make({"x": values}), {"x": (-4.0, 5.0)}, clamp=True)
    exact = sum(map(Fraction, np.clip(values, -4.0, 5.0).tolist()))
    assert rows == LONG
    assert sums["x"].total <= exact < sums["x"].total + LONG * sums["x"].step
    assert sums == clamped_sums(_of_an_engine({"x": values}), {"x": (-4.0, 5.0)}, clamp=True)[0]


@kinds
@pytest.mark.parametrize("place", [0, LONG // 2, LONG - 1])
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (float("nan"), "has missing values"),
        (float("-inf"), "not a finite number"),
        (3.1, "outside the bounds"),
        (-0.1, "outside the bounds"),
    ],
)
def test_one_wrong_value_anywhere_is_refused(make, place, wrong, message):
    values = np.linspace(0.0, 3.0, LONG)
    values[place] = wrong
    with pytest.raises(pdp.ModelError, match=message):
        clamped_sums(make({"x": values}), {"x": (0.0, 3.0)}, clamp=False)


@pytest.mark.parametrize("kind", ["Int64", "boolean", "Float32"])
def test_nulls_are_missing_whatever_the_type(kind):
    frame = pd.DataFrame({"x": pd.array([1, 0, None], dtype=kind)})
    with pytest.raises(pdp.ModelError, match="column x has missing"):
        clamped_sums(frame, {"x": (0.0, 1.0)}, clamp=True)
    sums, _ = clamped_sums(frame.iloc[:2], {"x": (0.0, 1.0)}, clamp=True)
    assert sums["x"].total == 1


@kinds
@pytest.mark.parametrize("kind", ["int64", "uint64"])
def test_whole_numbers_beyond_floats_are_clamped_like_any_others(make, kind):
    """Arrow does not cast them to floats: its refusal would say that a secret is so large."""
    values = np.array([2**53 + 1, 3, np.iinfo(kind).max, np.iinfo(kind).min], dtype=kind)
    frame = make({"home": [1, 1, 2, 2], "x": values})
    sums, _ = clamped_sums(frame, {"x": (-1.0, 10.0)}, clamp=True)
    assert sums["x"].total == 23 + max(-1, int(values[3]))
    wide, _ = clamped_sums(frame, {"x": (-1.0, 2.0**60)}, clamp=True)
    exact = 2**53 + 3 + 2**60 + max(-1, int(values[3]))  # 2^53 + 1 is no float
    assert 0 <= exact - wide["x"].total < len(values) * wide["x"].step
    query = RowQuery(kind="sum", value="x", bounds=(-1, 10))
    assert read_rows(frame, query, groups="home").totals == (sums["x"].total,)
    with pytest.raises(pdp.ModelError, match="outside the bounds"):
        clamped_sums(frame, {"x": (-1.0, 10.0)}, clamp=False)


@pytest.mark.parametrize("make", [KINDS["pandas"], KINDS["pandas, Arrow"]])
def test_whole_numbers_beyond_floats_are_clamped_by_their_place(make):
    frame = make(
        {"home": [1, 1, 2, 2], "t": [1, 2, 1, 2], "x": [2**53 + 1, 3, 2**63 - 1, -(2**63)]}
    )
    found, _ = clamped_sums_by_rank(frame, "x", (-1.0, 10.0), by="home", order_by="t", clamp=True)
    assert {place: one.total for (_, place), one in found.items()} == {0: 20, 1: 2}


@kinds
def test_unsigned_numbers_beyond_signed_ones_are_compared_with_any_labels(make):
    frame = make({"home": [1, 1, 2], "code": np.array([2**64 - 1, 1, 2**63], dtype=np.uint64)})
    query = RowQuery(kind="count", by=[Column(name="code", values=(-1, 1, 300))])
    assert read_rows(frame, query, groups="home").rows == (0, 1, 0)


def test_groups_named_by_numbers_of_128_bits_are_counted():
    frame = pl.DataFrame({"home": pl.Series([1, 1, 2], dtype=pl.Int128)})
    assert group_sizes(frame, "home") == Counter({2: 1, 1: 1})


@settings(max_examples=100, deadline=None)
@given(data=st.data(), kind=st.sampled_from(["int8", "uint8", "int32", "int64", "uint64"]))
def test_groups_named_by_whole_numbers_are_counted(data, kind):
    """Whether near each other or far apart, and at both ends of what the type can hold."""
    least, most = np.iinfo(kind).min, np.iinfo(kind).max
    first = data.draw(st.sampled_from([least, most - 20, 0, 7]))
    keys = st.integers(first, first + 20) | st.sampled_from([first, first + 20, least, most])
    named = data.draw(st.lists(keys, min_size=1, max_size=60))
    frame = pd.DataFrame({"home": np.array(named, dtype=kind)})
    assert group_sizes(frame, "home") == Counter(Counter(named).values())


@pytest.mark.parametrize("kind", ["int8", "uint8", "int16", "int64", "uint64"])
def test_groups_named_by_numbers_at_both_ends_of_a_type_are_counted(kind):
    """All numbers of a narrow type have names in 300 rows; those of a wide one lie far apart."""
    least, most = int(np.iinfo(kind).min), int(np.iinfo(kind).max)
    step = max(1, (most - least) // 255)
    for named in ([least, 0, 5, 5], [most, 0, 0], [least, most, most], [most - 1, most, most]):
        frame = pd.DataFrame({"home": np.array(named, dtype=kind)})
        assert group_sizes(frame, "home") == Counter(Counter(named).values())
    named = [least + step * place for place in range(256)] + [most] * 44
    frame = pd.DataFrame({"home": np.array(named, dtype=kind)})
    assert group_sizes(frame, "home") == Counter(Counter(named).values())


@kinds
def test_groups_without_a_name_are_refused(make):
    with pytest.raises(pdp.ModelError, match="column home has missing"):
        group_sizes(make({"home": [1, 1, None, 2]}), "home")
    with pytest.raises(pdp.ModelError, match="at least one row"):
        group_sizes(make({"home": np.array([], dtype=np.int64)}), "home")


@kinds
@pytest.mark.parametrize("named", ["numbers", "far numbers", "words", "floats", "nobody"])
@pytest.mark.parametrize("bounds", [None, (0.0, 2.0)])
def test_groups_are_read_as_engines_read_them(make, named, bounds):
    rng = np.random.default_rng(1)
    homes = rng.integers(0, 300, size=1000)
    keys = {
        "far numbers": homes * 10**15,
        "words": [f"home {one}" for one in homes],
        "floats": homes / 4,
    }
    columns = {"home": keys.get(named, homes), "x": rng.choice([0.0, 0.5, 2.0], size=1000)}
    by = None if named == "nobody" else "home"
    expected = read_groups(_of_an_engine(columns), "x", by=by, bounds=bounds)
    assert read_groups(make(columns), "x", by=by, bounds=bounds) == expected


def test_the_column_of_values_may_also_name_the_groups():
    frame = pd.DataFrame({"x": [1, 1, 2]})
    assert read_groups(frame, "x", by="x").sizes == Counter({2: 1, 1: 1})


@pytest.mark.parametrize("column", ["__size__", "absent"])
def test_columns_are_refused_before_they_are_read(column):
    frame = pd.DataFrame({"home": [1.0, None], "__size__": [1.0, 2.0]})
    with pytest.raises(pdp.ModelError, match=column):
        read_groups(frame, column, by="home", bounds=(0.0, 2.0))


def test_a_column_may_be_named_by_a_number():
    frame = pd.DataFrame({0: [1, 1, 2, 2], 1: [0.0, 0.5, 0.5, 1.0]})
    found = read_groups(frame, 1, by=0, bounds=(0.0, 1.0))
    assert (found.sizes, found.sum.total) == (Counter({2: 2}), 2)
    assert clamped_sums(frame, {1: (0.0, 1.0)}, clamp=False)[0][1] == found.sum
    model = pdp.GaussianGroup(size=2, correlation=0.5, bounds=(0, 1))
    released = pdp.calibrate(model, pdp.Sum(), epsilon=1.0).release(frame, value=1, groups=0)
    assert np.isfinite(released.value)


def test_columns_of_one_name_are_refused_by_name():
    frame = pd.DataFrame([[1, 0, 1]], columns=["home", "x", "x"])
    with pytest.raises(pdp.ModelError, match="must have different names"):
        read_groups(frame, "x", by="home")
