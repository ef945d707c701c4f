"""Frames whose parts do not fit together, and engines that go away: refused, nothing half-done."""

import dask
import dask.dataframe as dd
import duckdb
import pandas as pd
import polars as pl
import pytest

import pdp_calibrate as pdp
from pdp_calibrate.core import noise
from pdp_calibrate.frames.counts import group_sizes
from pdp_calibrate.frames.open import rows_in

HOMES = pd.DataFrame({"home": [1.0, 1.0, None, 2.0], "x": [0.25, 1.5, 2.0, 3.0]})
ENGINES = {
    "polars lazy": lambda frame: pl.from_pandas(frame).lazy(),
    "duckdb": duckdb.from_df,
    "dask": lambda frame: dd.from_pandas(frame, npartitions=2),
}
engines = pytest.mark.parametrize("make", ENGINES.values(), ids=ENGINES)


def _of_parts(*parts: pd.DataFrame) -> dd.DataFrame:
    """Make a Dask frame that takes the word of its first part for the types of all."""
    pieces = [dask.delayed(lambda frame: frame)(part) for part in parts]
    return dd.from_delayed(pieces, meta=parts[0].iloc[:0], verify_meta=False)


@pytest.fixture
def nothing_is_drawn(monkeypatch):
    def forbidden(*_):
        raise AssertionError("noise was drawn")

    monkeypatch.setattr(noise, "add_laplace_to_integers", forbidden)
    monkeypatch.setattr(noise, "add_laplace_to_floats", forbidden)


def _group(**changes):
    given = {"by": "home", "value": "x", "bounds": (0, 9), "source": "public"} | changes
    return pdp.GroupEstimator(**given)


@engines
def test_missing_groups_and_values_are_counted(make):
    with pytest.raises(pdp.ModelError, match="column home has missing"):
        _group().fit(make(HOMES))
    with pytest.raises(pdp.ModelError, match="column home has missing"):
        group_sizes(make(HOMES), "home")
    with pytest.raises(pdp.ModelError, match="column home has missing"):
        _group(value="y", kind="binary").fit(make(HOMES.assign(y=1)))
    full = HOMES.assign(home=[1, 1, 2, 2])
    for column in ([0.0, None, 1.0, None], [0.0, float("nan"), 1.0, float("nan")]):
        with pytest.raises(pdp.ModelError, match="column x has missing"):
            _group().fit(make(full.assign(x=column)))
        with pytest.raises(pdp.ModelError, match="column x has missing"):
            pdp.TableEstimator(source="public").fit(make(full.assign(x=column)))
        with pytest.raises(pdp.ModelError, match="column x has missing"):
            pdp.pearson(make(full.assign(x=column)))
    with pytest.raises(pdp.ModelError, match="infinite"):
        pdp.pearson(make(full.assign(x=[0.0, float("inf"), 1.0, -float("inf")])))
    with pytest.raises(pdp.ModelError, match=r"infinite|must be finite"):
        _group().fit(make(full.assign(x=[0.0, float("inf"), 1.0, -float("inf")])))
    with pytest.raises(pdp.ModelError, match="too large"):
        pdp.pearson(make(full.assign(x=[1e200, 0, -1e200, 3])))


def test_numbers_that_are_not_numbers_hide_in_no_engine():
    """NaN among floats is no null in polars; it must not pass for a value."""
    frame = pl.LazyFrame({"home": [1, 1, 2, 2], "x": [0.0, float("nan"), 1.0, 2.0]})
    for call in (_group().fit, pdp.pearson, pdp.TableEstimator(source="public").fit):
        with pytest.raises(pdp.ModelError, match="column x has missing"):
            call(frame)


@engines
def test_empty_frames_are_refused(make):
    none = HOMES.astype({"home": float}).iloc[:0]
    for call in (_group().fit, pdp.pearson, pdp.TableEstimator().fit):
        with pytest.raises(pdp.ModelError, match="at least one row"):
            call(make(none))


def test_an_empty_partition_changes_nothing(tmp_path):
    full = HOMES.assign(home=[1, 1, 2, 2])
    expected = _group().fit(full).model_
    assert _group().fit(_of_parts(full, full.iloc[:0])).model_ == expected
    assert _group().fit(_of_parts(full.iloc[:0], full)).model_ == expected
    pl.from_pandas(full).write_parquet(tmp_path / "a.parquet")
    pl.from_pandas(full.iloc[:0]).write_parquet(tmp_path / "b.parquet")
    places = f"{tmp_path}/*.parquet"
    assert _group().fit(pl.scan_parquet(places)).model_ == expected
    assert _group().fit(duckdb.read_parquet(places)).model_ == expected


@pytest.mark.parametrize("engine", ["dask", "polars lazy", "duckdb"])
@pytest.mark.usefixtures("nothing_is_drawn")
def test_types_that_differ_between_partitions_are_refused(engine, tmp_path):
    numbers = pd.DataFrame({"x": [1.0, 2.0, 3.0]})
    words = pd.DataFrame({"x": ["0", "secret777", "2"]})
    if engine == "dask":
        frame = _of_parts(numbers, words)
    else:
        pl.from_pandas(numbers).write_parquet(tmp_path / "a.parquet")
        pl.from_pandas(words).write_parquet(tmp_path / "b.parquet")
        scan = duckdb.read_parquet if engine == "duckdb" else pl.scan_parquet
        frame = scan(f"{tmp_path}/*.parquet")
    model = pdp.Gaussian(covariance=[[1]], bounds=(0, 9), names=["x"])
    ledger = pdp.Ledger(model, epsilon=1.0)
    cal = pdp.calibrate(model, pdp.Sum(clamp=True), epsilon=0.5)
    calls = (
        lambda: cal.release(frame, ledger=ledger),
        lambda: pdp.pearson(frame),
        lambda: pdp.TableEstimator().fit(frame),
    )
    for call in calls:
        with pytest.raises(pdp.PdpError) as caught:
            call()
        told, error = "", caught.value
        while error is not None:  # the chain of causes is printed too
            told, error = told + str(error), error.__cause__ or error.__context__
        assert "777" not in told
    assert ledger.spent == 0


def test_categories_that_differ_between_partitions_are_joined():
    one = pd.DataFrame({"y": pd.Categorical(["u", "v", "u"]), "z": [0, 1, 1]})
    other = pd.DataFrame({"y": pd.Categorical(["w", "v", "v"]), "z": [0, 1, 0]})
    expected = pdp.TableEstimator(source="public").fit(
        pd.concat([one.astype({"y": str}), other.astype({"y": str})])
    )
    whole = pl.concat(
        [pl.from_pandas(one.astype({"y": str})), pl.from_pandas(other.astype({"y": str}))]
    )
    for frame in (
        _of_parts(one, other),
        whole.with_columns(pl.col("y").cast(pl.Categorical)).lazy(),
        duckdb.from_df(pd.concat([one, other])),
    ):
        assert pdp.TableEstimator(source="public").fit(frame).model_ == expected.model_


@pytest.mark.usefixtures("nothing_is_drawn")
def test_a_dropped_connection_releases_and_charges_nothing(tmp_path):
    model = pdp.Gaussian(covariance=[[1]], bounds=(0, 9), names=["x"])
    ledger = pdp.Ledger(model, epsilon=1.0, path=tmp_path / "ledger.json")
    cal = pdp.calibrate(model, pdp.Sum(clamp=True), epsilon=0.5)
    connection = duckdb.connect()
    relation = connection.from_df(HOMES)
    assert rows_in(relation) == 4
    connection.close()
    calls = (
        lambda: cal.release(relation, ledger=ledger),
        lambda: ledger.release(pdp.Sum(clamp=True), relation, epsilon=0.5),
        lambda: pdp.pearson(relation),
        lambda: _group().fit(relation),
        lambda: pdp.MarkovChainEstimator(value="x", order_by="home").fit(relation),
    )
    for call in calls:
        with pytest.raises(pdp.FrameError, match="connection is open"):
            call()
    assert ledger.spent == 0
    assert not ledger.history


@engines
@pytest.mark.usefixtures("nothing_is_drawn")
def test_a_frame_that_changes_while_it_is_read_is_refused(make, monkeypatch):
    model = pdp.Gaussian(covariance=[[1]], bounds=(0, 9), names=["x"])
    cal = pdp.calibrate(model, pdp.Sum(clamp=True), epsilon=0.5)
    from pdp_calibrate.frames import sums as exact_sums

    monkeypatch.setattr(exact_sums, "rows_in", lambda _: 5)
    with pytest.raises(pdp.FrameError, match="changed while it was read"):
        cal.release(make(HOMES))
