"""Values and sizes of groups from one query of an engine."""

from collections import Counter

import dask.dataframe as dd
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest

import pdp_calibrate as pdp
from pdp_calibrate.frames import grouped
from pdp_calibrate.frames.grouped import read_groups
from tests.support.marks import slow_after

ENGINES = {
    "polars lazy": lambda frame: pl.from_pandas(frame).lazy(),
    "duckdb": duckdb.from_df,
    "dask": lambda frame: dd.from_pandas(frame, npartitions=2),
}
engines = pytest.mark.parametrize("make", slow_after(2, ENGINES.values()), ids=ENGINES)


@pytest.fixture
def pairs_are_not_counted(monkeypatch):
    """Fail where a query counts pairs of a group and a value."""
    original = grouped._collected

    def watched(*args, values, **kwargs):
        assert not values
        return original(*args, values=values, **kwargs)

    monkeypatch.setattr(grouped, "_collected", watched)


@engines
@pytest.mark.usefixtures("pairs_are_not_counted")
@pytest.mark.parametrize("by", ["home", None])
@pytest.mark.parametrize(
    ("kind", "domain"),
    [
        ("bool", [False, True]),
        ("bool", [0, 1]),
        ("int8", [0, 1, 300, -300]),
        ("int64", [1, 0]),
        ("uint8", [0, 1, -1, 2**30]),
        ("Int32", [False, True]),
    ],
)
def test_a_few_whole_numbers_are_counted_one_by_one(make, by, kind, domain):
    rng = np.random.default_rng(0)
    held = rng.integers(0, 2, size=500)
    homes = rng.integers(0, 200, size=500)
    frame = pd.DataFrame({"home": homes, "x": pd.array(held, dtype=kind)})
    found = read_groups(make(frame), "x", by=by, domain=domain)
    assert found.counts == Counter(held.tolist())
    expected = Counter(Counter(homes.tolist()).values()) if by else Counter({500: 1})
    assert found.sizes == expected


@engines
@pytest.mark.usefixtures("pairs_are_not_counted")
def test_values_outside_a_short_domain_are_refused(make):
    """As others they are counted, as none of the model's refused."""
    frame = pd.DataFrame({"home": [1, 1, 2, 2], "x": [0, 1, 2, 7]})
    found = read_groups(make(frame), "x", by="home", domain=[0, 1])
    assert found.counts == Counter({None: 2, 0: 1, 1: 1})
    cal = pdp.calibrate(pdp.Unknown(size=2, domain=[0, 1]), pdp.Count(values={1}))
    with pytest.raises(pdp.ModelError, match="column x is none of those that are possible"):
        cal.release(make(frame), value="x", groups="home")


@engines
@pytest.mark.usefixtures("pairs_are_not_counted")
def test_missing_values_and_groups_are_refused(make):
    whole = pd.array([0, 1, None, None], dtype="Int64")
    frame = pd.DataFrame({"home": [1, 1, 2, 2], "x": whole})
    with pytest.raises(pdp.ModelError, match="column x has missing"):
        read_groups(make(frame), "x", by="home", domain=[0, 1])
    frame = pd.DataFrame({"home": pd.array([1, 1, 2, None], dtype="Int64"), "x": [0, 1, 0, 1]})
    with pytest.raises(pdp.ModelError, match="column home has missing"):
        read_groups(make(frame), "x", by="home", domain=[0, 1])
    with pytest.raises(pdp.ModelError, match="at least one row"):
        read_groups(make(frame.iloc[:0]), "x", by="home", domain=[0, 1])


def test_text_in_some_part_is_no_number():
    first = pd.DataFrame({"home": [1, 1], "x": [0, 1]})
    second = pd.DataFrame({"home": [2, 2], "x": ["0", "1"]})
    frame = dd.from_map(lambda part: part, [first, second], meta=first, enforce_metadata=False)
    assert read_groups(frame, "x", by="home", domain=[0, 1]).counts[None] == 2


@engines
@pytest.mark.parametrize(
    ("column", "domain"),
    [
        ([0.5, 0.25, 0.5, 0.5], [0.25, 0.5]),
        (["a", "b", "a", "a"], ["b", "a"]),
        ([0, 1, 0, 0], list(range(20))),
        ([0, 2**40, 0, 0], [0, 2**40]),
        (np.array([0, 2**63, 0, 0], dtype=np.uint64), [0, 2**63]),
    ],
    ids=["floats", "text", "many", "large", "unsigned"],
)
def test_other_values_are_counted_as_they_are(make, column, domain):
    frame = pd.DataFrame({"home": [1, 1, 2, 2], "x": column})
    found = read_groups(make(frame), "x", by="home", domain=domain)
    assert found.counts == Counter(list(column))
    assert found.sizes == Counter({2: 2})


@engines
@pytest.mark.parametrize(
    ("wrong", "clamp", "message"),
    [
        ([float("nan"), float("inf"), 9.0], True, "column x has missing"),
        ([float("-inf"), 9.0, 1.0], True, "not a finite number"),
        ([-1.0, 1.0, 1.0], False, "outside the bounds"),
        ([1.0, 9.0, 1.0], False, "outside the bounds"),
    ],
)
def test_values_that_cannot_be_added_up_are_refused(make, wrong, clamp, message):
    """What is missing is told before what is infinite, and that before what is outside."""
    frame = pd.DataFrame({"home": [1, 2, 3, 3, 3], "x": [0.0, 2.0, *wrong]})
    with pytest.raises(pdp.ModelError, match=message):
        read_groups(make(frame), "x", by="home", bounds=(0.0, 2.0), clamp=clamp)


@engines
def test_values_outside_are_moved_to_the_nearest_bound(make):
    frame = pd.DataFrame({"home": [1, 2, 2], "x": [-3.0, 0.5, 9.0]})
    found = read_groups(make(frame), "x", by="home", bounds=(-1.0, 2.0), clamp=True)
    assert found.sum is not None
    assert found.sum.total == -1 + 0.5 + 2
    assert found.sizes == Counter({1: 1, 2: 1})
