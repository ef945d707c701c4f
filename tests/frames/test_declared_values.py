"""Which values are possible is declared, by an option or a type: it is never read off the cells."""

import dask.dataframe as dd
import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import pdp_calibrate as pdp
import pdp_calibrate_integrations.polars  # noqa: F401 - registers the namespace
from pdp_calibrate.accessor import PdpAccessor
from pdp_calibrate.frames.columns import declared_values

pytestmark = pytest.mark.filterwarnings("ignore::pdp_calibrate.SecondReleaseWarning")

DIAGNOSES = ["none", "flu", "HIV"]
WITH = pd.DataFrame({"home": [1, 1, 2, 3], "dx": ["none", "flu", "HIV", "none"]})
WITHOUT = WITH.assign(dx=["none", "flu", "none", "none"])  # one person differs
SAME = WITH.assign(dx="none")


def words(call):
    with pytest.raises(pdp.PdpError) as caught:
        call()
    return type(caught.value), str(caught.value)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.from_pandas, lambda f: pl.from_pandas(f).lazy()])
@pytest.mark.parametrize(
    "ask",
    [
        lambda f: f.pdp.histogram("dx", groups="home", epsilon=1.0),
        lambda f: f.pdp.histogram("dx", categories=["HIV"], groups="home", epsilon=1.0),
        lambda f: f.pdp.count("dx", values={"HIV"}, groups="home", epsilon=1.0),
        lambda f: f.pdp.count("dx", values={"HIV"}, groups="home", domain="dtype", epsilon=1.0),
        lambda f: f.pdp.count(
            "dx", values={"HIV"}, groups="home", domain=["none", "flu"], epsilon=1.0
        ),
    ],
)
def test_what_is_not_declared_is_refused_in_the_same_words_whatever_the_values(make, ask):
    kind, found = words(lambda: ask(make(WITH)))
    assert issubclass(kind, pdp.QueryError)
    assert "HIV" not in found
    assert [words(lambda f=f: ask(make(f))) for f in (WITHOUT, SAME)] == [(kind, found)] * 2


def test_numbers_are_declared_too():
    frame = pd.DataFrame({"home": [1, 1, 2], "sick": [0, 1, 0]})
    for held in ("int64", "float64", "Int8"):
        with pytest.raises(pdp.QueryError, match=r"column sick with domains=\[\.\.\.\]"):
            frame.astype({"sick": held}).pdp.count("sick", values={1}, groups="home", epsilon=1.0)
    stated = frame.pdp.count("sick", values={1}, groups="home", domain=[0, 1], epsilon=1.0)
    assert stated.calibration.model.domains[0] == (0, 1)


def test_every_declared_value_is_a_key_in_the_order_stated():
    for frame in (WITH, WITHOUT, SAME):
        found = frame.pdp.histogram("dx", groups="home", domain=DIAGNOSES, epsilon=1.0)
        assert found.value.index.tolist() == DIAGNOSES
        assert isinstance(
            frame.pdp.count(
                "dx", values={"HIV"}, groups="home", domain=DIAGNOSES, epsilon=1.0
            ).value,
            int,
        )


def test_values_outside_the_declared_ones_raise_as_with_a_model():
    stated = words(
        lambda: WITH.pdp.histogram("dx", groups="home", domain=["none", "flu"], epsilon=1.0)
    )
    model = pdp.Blocks(
        models=[pdp.Unknown(size=size, domain=["none", "flu"]) for size in (1, 2)], counts=[2, 1]
    )
    assert stated == words(
        lambda: WITH.pdp.histogram("dx", groups="home", model=model, epsilon=1.0)
    )
    kind, said = stated
    assert kind is pdp.ModelError
    assert said.startswith("a value of column dx is none of those that are possible")


@pytest.mark.parametrize("domain", ["HIV", "none,flu", ["none", "none"], []])
def test_a_domain_is_a_list_of_different_values(domain):
    with pytest.raises(pdp.PdpError, match="must"):
        WITH.pdp.histogram("dx", groups="home", domain=domain, epsilon=1.0)


def enum_table(values, kind="enum ('none', 'flu', 'HIV')"):
    connection = duckdb.connect()
    connection.execute(f"create table people (home int, dx {kind})")
    connection.executemany(
        "insert into people values (?, ?)",
        [[int(h), v] for h, v in zip(WITH["home"], values, strict=True)],
    )
    return connection.table("people")


DECLARING = {
    "polars": lambda f: pl.from_pandas(f).with_columns(pl.col("dx").cast(pl.Enum(DIAGNOSES))),
    "polars lazy": lambda f: DECLARING["polars"](f).lazy(),
    "duckdb": lambda f: enum_table(f["dx"]),
}


@pytest.mark.parametrize("engine", DECLARING)
def test_types_that_list_their_values_declare_them(engine):
    for frame in (WITH, WITHOUT):
        assert (
            list(declared_values(DECLARING[engine](frame), "dx", None, option="domain"))
            == DIAGNOSES
        )
        found = PdpAccessor(DECLARING[engine](frame)).histogram("dx", groups="home", epsilon=1.0)
        assert found.value.index.tolist() == DIAGNOSES


@pytest.mark.parametrize("make", [pd.DataFrame, pl.from_pandas, duckdb.from_df, pa.table])
def test_booleans_declare_their_values(make):
    frame = pd.DataFrame({"home": [1, 1, 2], "sick": [True, True, True]})
    assert list(declared_values(make(frame), "sick", None, option="domain")) == [False, True]
    found = frame.pdp.histogram("sick", groups="home", epsilon=1.0).value
    assert found.index.tolist() == [False, True]


CATEGORIES = pd.CategoricalDtype(DIAGNOSES)
CATEGORICAL = {
    "pandas": lambda f: f.astype({"dx": CATEGORIES}),
    "pandas, ordered": lambda f: f.astype({"dx": pd.CategoricalDtype(DIAGNOSES, ordered=True)}),
    "arrow": lambda f: pa.table(f.astype({"dx": CATEGORIES})),
    "pandas of arrow": lambda f: pa.table(f.astype({"dx": CATEGORIES})).to_pandas(
        types_mapper=pd.ArrowDtype
    ),
    "dask": lambda f: dd.from_pandas(f.astype({"dx": CATEGORIES}), npartitions=2),
    "duckdb of pandas": lambda f: duckdb.from_df(f.astype({"dx": CATEGORIES})),
}


@pytest.mark.parametrize("engine", CATEGORICAL)
def test_categories_count_only_where_they_are_stated_to_be_public(engine):
    """They come from the data: `astype("category")` lists the values that occur."""
    for frame in (WITH, WITHOUT):
        held = CATEGORICAL[engine](frame)
        with pytest.raises(pdp.QueryError, match="come from the data") as caught:
            declared_values(held, "dx", None, option="domain")
        assert "HIV" not in str(caught.value)
        assert list(declared_values(held, "dx", "dtype", option="domain")) == DIAGNOSES
        found = PdpAccessor(held).histogram("dx", groups="home", domain="dtype", epsilon=1.0)
        assert found.value.index.tolist() == DIAGNOSES


def test_categories_of_other_polars_columns_are_not_taken():
    """All columns of the process share the categories of polars."""
    for frame in (pl.from_pandas(WITHOUT), pl.from_pandas(WITHOUT).lazy()):
        other = pl.Series("name", ["Ann", "Bob", "Cyd", "Dan"], dtype=pl.Categorical)
        held = frame.with_columns(pl.col("dx").cast(pl.Categorical), other)
        with pytest.raises(pdp.QueryError, match="come from the data"):
            held.pdp.histogram("dx", groups="home", epsilon=1.0)
        found = held.pdp.histogram("dx", groups="home", domain="dtype", epsilon=1.0)
        assert found.value.index.tolist() == ["flu", "none"]


def test_numbers_as_categories_stay_numbers():
    frame = pd.DataFrame({"home": [1, 1, 2], "stage": pd.Categorical([2, 2, 3], [1, 2, 3])})
    found = frame.pdp.histogram("stage", groups="home", domain="dtype", epsilon=1.0)
    assert found.value.index.tolist() == [1, 2, 3]


def test_categories_that_are_not_known_are_asked_for():
    lazy = dd.from_pandas(WITH, npartitions=2)
    with pytest.raises(pdp.QueryError, match="list them with domain="):
        declared_values(lazy.astype({"dx": "category"}), "dx", "dtype", option="domain")
