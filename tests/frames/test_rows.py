"""Questions about several columns, read by every engine: exact, in one query, and quiet."""

import dask.dataframe as dd
import duckdb
import pandas as pd
import polars as pl
import pytest

import pdp_calibrate as pdp
from pdp_calibrate.core.row_query import Column, RowQuery
from pdp_calibrate.frames.rows import public_rows, read_rows
from tests.support.frames_of_any_kind import watching_collects
from tests.support.marks import slow_after
from tests.support.people import CITY, INCOME, KEPT, PEOPLE, QUESTIONS, SICK, expected

ENGINES = {
    "pandas": lambda frame: frame,
    "polars": pl.from_pandas,
    "polars lazy": lambda frame: pl.from_pandas(frame).lazy(),
    "duckdb": duckdb.from_df,
    "dask": lambda frame: dd.from_pandas(frame, npartitions=3),
}
engines = pytest.mark.parametrize("engine", ENGINES)
SLOW_ENGINE = {"cross table", "mean by a public column"}  # questions that are tried with Dask too
questions = pytest.mark.parametrize(
    ("name", "engine"),
    [(n, e) for e in ENGINES for n in QUESTIONS if e != "dask" or n in SLOW_ENGINE],
)


def check(frame, query):
    groups = None if query.independent else "household"
    rows, sums, counted = expected(query)
    found = read_rows(frame, query, groups=groups)
    assert found.rows == rows
    assert found.public.counted == counted
    for one, other, number in zip(found.totals, sums, rows, strict=True):
        if query.value is not None:
            assert other - number * found.step <= one <= other
    assert public_rows(frame, query, groups=groups) == found.public
    if query.is_public_mean:
        assert found.public.parts == rows


@questions
def test_answers_are_those_of_plain_python(name, engine):
    check(ENGINES[engine](PEOPLE), QUESTIONS[name])


@engines
@pytest.mark.parametrize("name", KEPT)
def test_which_members_count_is_decided_by_a_public_column_alone(name, engine):
    frame = ENGINES[engine](PEOPLE.sample(frac=1, random_state=7, ignore_index=True))
    if engine == "dask":
        with pytest.raises(pdp.FrameError, match="DuckDB, polars or Spark"):
            read_rows(frame, KEPT[name], groups="household")
        return
    check(frame, KEPT[name])


@questions
def test_a_release_reads_the_rows_once_and_takes_none_of_them_out(name, engine):
    query = QUESTIONS[name]
    with watching_collects() as seen:
        read_rows(ENGINES[engine](PEOPLE), query, groups="household")
    assert len(seen) == 2  # the number of rows, which is public, and everything else
    assert max(rows for _, rows in seen) < len(PEOPLE)


@engines
def test_before_a_release_no_secret_cell_is_read(engine):
    """Other secrets, even of no sense at all, change nothing that is seen."""
    frame = PEOPLE.assign(
        income=pd.array([None] * len(PEOPLE), "Float64"),
        sick=False,
        degree=pd.array([7] * len(PEOPLE), "Int64"),
        city=pd.array(["nowhere"] * len(PEOPLE), "str"),
    )
    for name, query in QUESTIONS.items():
        if query.public or (engine == "dask" and name not in SLOW_ENGINE):
            continue
        groups = None if query.independent else "household"
        found = [public_rows(ENGINES[engine](one), query, groups=groups) for one in (PEOPLE, frame)]
        assert found[0] == found[1], name
        if len(query.missing) == len(query.columns):
            read_rows(ENGINES[engine](frame), query, groups=groups)  # no value makes it raise


@engines
def test_infinite_values_count_at_the_bounds(engine):
    frame = pd.DataFrame({"home": [1, 1], "x": [float("inf"), float("-inf")], "sick": [True, True]})
    query = RowQuery(kind="sum", value="x", bounds=(-1, 2), where=[SICK])
    found = read_rows(ENGINES[engine](frame), query, groups="home")
    assert found.totals == (1,)


@engines
def test_missing_cells_need_a_rule(engine):
    query = RowQuery(kind="sum", by=[CITY], missing={"income": "zero"}, **INCOME)
    with pytest.raises(pdp.ModelError, match=r"missing=") as caught:
        read_rows(ENGINES[engine](PEOPLE), query, groups="household")
    assert not any(character.isdigit() for character in str(caught.value))


def test_repeated_or_missing_keys_do_not_say_who_counts():
    query = RowQuery(kind="count", where=[SICK], most=1, keep_by="key")
    for keys in ([1, 1], [None, 2]):
        frame = pd.DataFrame({"home": [1, 1], "key": keys, "sick": [True, False]})
        with pytest.raises(pdp.ModelError, match="equal entries"):
            read_rows(frame, query, groups="home")


def test_a_seed_chooses_evenly_and_needs_whole_numbers():
    frame = pd.DataFrame(
        {"home": 1, "key": [-5, 0, 7, 10**12], "sick": [True, False, False, False]}
    )
    chosen = 0
    for seed in range(0, 2**62, 2**56):
        query = RowQuery(kind="count", where=[SICK], most=1, keep_by="key", seed=seed)
        chosen += read_rows(frame, query, groups="home").rows[0]
    assert 6 <= chosen <= 28  # of 64, the same in every run
    with pytest.raises(pdp.ModelError, match="whole numbers"):
        read_rows(frame.astype({"key": str}), query, groups="home")


@engines
@pytest.mark.parametrize(
    ("column", "value"), [("city", 1), ("sick", "yes"), ("degree", "1"), ("income", "much")]
)
def test_values_of_another_type_are_refused_by_the_type(column, value, engine):
    query = RowQuery(kind="count", where=[Column(name=column, values=(value,))])
    for frame in (PEOPLE, PEOPLE.head(1)):
        with pytest.raises(pdp.ModelError, match=f"column {column} holds"):
            read_rows(ENGINES[engine](frame), query, groups="household")


def test_categories_yes_no_codes_and_text_are_compared_as_what_they_are():
    frame = pd.DataFrame(
        {
            "home": [1, 2, 3],
            "text": pd.Categorical(["u", "v", "u"]),
            "code": pd.Categorical([1, 2, 1]),
            "bit": [0, 1, 1],
            "flag": [False, True, True],
        }
    )
    for column, value, number in [
        ("text", "u", 2),
        ("text", "w", 0),
        ("code", 1, 2),
        ("bit", True, 2),
        ("flag", 1, 2),
    ]:
        query = RowQuery(kind="count", where=[Column(name=column, values=(value,))])
        assert read_rows(frame, query, groups="home").rows == (number,)


@pytest.mark.parametrize("engine", slow_after(1, ["polars lazy", "pandas", "duckdb"]))
def test_breakdowns_may_have_a_thousand_labels(engine):
    frame = pd.DataFrame({"home": range(3), "code": [0, 999, 7]})
    query = RowQuery(kind="count", by=[Column(name="code", values=tuple(range(1000)))])
    found = read_rows(ENGINES[engine](frame), query, groups="home")
    assert [place for place, rows in enumerate(found.rows) if rows] == [0, 7, 999]


@pytest.mark.parametrize(
    ("held", "labels"),
    [(pd.Categorical([1]), (1, "1")), ([2.0**53], (2**53, 2**53 + 1))],
)
def test_labels_that_are_the_same_in_a_column_are_refused(held, labels):
    frame = pd.DataFrame({"home": [1], "code": held})
    query = RowQuery(kind="count", by=[Column(name="code", values=labels)])
    with pytest.raises(pdp.ModelError, match="are the same"):
        read_rows(frame, query, groups="home")


def test_absent_columns_and_empty_frames_are_refused():
    query = RowQuery(kind="count", where=[SICK])
    with pytest.raises(pdp.ModelError, match="no column sick"):
        public_rows(pd.DataFrame({"home": [1]}), query, groups="home")
    with pytest.raises(pdp.ModelError, match="at least one row"):
        public_rows(pd.DataFrame({"home": [], "sick": []}), query, groups="home")
    with pytest.raises(pdp.ModelError, match="column home has missing"):
        public_rows(pd.DataFrame({"home": [1, None], "sick": [True] * 2}), query, groups="home")


@pytest.mark.parametrize("name", ["__group__", "__kept__", "__nobody__", "__rank__"])
def test_columns_named_like_those_of_a_reading_are_refused(name):
    """A reading adds such columns to the table, and answered about its own instead."""
    frame = PEOPLE.rename(columns={"income": name})
    asked = RowQuery(kind="sum", value=name, bounds=(0, 100), most=2, keep_by="number")
    with pytest.raises(pdp.ModelError, match="two underscores"):
        read_rows(frame.assign(number=range(len(frame))), asked, groups="household")
