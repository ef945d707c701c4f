"""Tables that others write to while they are read: one reading, or nothing is released."""

import re
from contextlib import contextmanager
from fractions import Fraction

import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest

import pdp_calibrate as pdp
from pdp_calibrate.accessor import PdpAccessor
from pdp_calibrate.calibration.release import exact_answer
from pdp_calibrate.frames.long_answers import LongFrame

COUPLE = pdp.Unknown(size=2, bounds=(0.0, 5.0))
ILL = pdp.Unknown(size=2, domain=[0, 1])
PEOPLE = pd.DataFrame(
    {
        "home": [1, 1, 2, 2],
        "role": [1, 2, 1, 2],
        "x": [1.0, 2.0, 3.0, 4.0],
        "ill": [0, 1, 1, 1],
        "shift": [1, 2, 1, 2],
    }
)
MORE = pd.DataFrame(
    {"home": 1, "role": np.arange(3, 503), "x": 5.0, "ill": 1, "shift": np.arange(500) % 12 + 1}
)


class DuckTable:
    """A table of DuckDB."""

    def __init__(self):
        self.connection = duckdb.connect()
        self.connection.execute("create table people as select * from PEOPLE")
        self.frame = self.connection.table("people")

    def write(self, rows):
        self.connection.register("more", rows)
        self.connection.execute("insert into people select * from more")


class TextFile:
    """A text file that polars scans anew with every query."""

    def __init__(self, path):
        self.path, self.rows = path, PEOPLE
        PEOPLE.to_csv(path, index=False)
        self.frame = pl.scan_csv(path)

    def write(self, rows):
        self.rows = pd.concat([self.rows, rows], ignore_index=True)
        self.rows.to_csv(self.path, index=False)


LIVE = {
    "duckdb": lambda _: DuckTable(),
    "polars lazy": lambda folder: TextFile(folder / "people.csv"),
}


@contextmanager
def writing(table, rows, *, after):
    """Let others write to the table after this many queries; yield the list of queries."""
    collect, asked = nw.LazyFrame.collect, []

    def hooked(self, *args, **kwargs):
        found = collect(self, *args, **kwargs)
        asked.append(self)
        if len(asked) == after:
            table.write(rows)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nw.LazyFrame, "collect", hooked)
        yield asked


_REFUSED = re.compile("changed while|groups of size|rows that count|could not compute")
"""The last: sums on the grid of four rows that no longer fit 64 bits."""
WAYS = {
    "sum": lambda f: pdp.calibrate(COUPLE, pdp.Sum(clamp=True)).release(f, value="x", by="home"),
    "count": lambda f: pdp.calibrate(ILL, pdp.Count(values={1})).release(f, value="ill", by="home"),
    "sum by place": lambda f: pdp.calibrate(
        pdp.GaussianGroup(size=2, correlation=0.2, bounds=(0, 5)),
        pdp.Linear(weights=[1, 2], clamp=True),
    ).release(f, value="x", by="home", order_by="role"),
    "count by place": lambda f: pdp.calibrate(
        pdp.JointTable(probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, 1]] * 2, names=[0, 1]),
        pdp.Linear(weights=[5, 2]),
    ).release(f, value="ill", by="home", order_by="role"),
    "assumed sum": lambda f: PdpAccessor(f).sum("x", groups="home", bounds=(0, 5), epsilon=1.0),
    "assumed histogram": lambda f: PdpAccessor(f).histogram(
        "ill", groups="home", domain=[0, 1], epsilon=1.0
    ),
    "filtered count": lambda f: PdpAccessor(f).count(
        {"ill": 1, "x": [3.0, 4.0]}, groups="home", epsilon=1.0
    ),
    "mean by a secret": lambda f: PdpAccessor(f).mean(
        "x", groups="home", bounds=(0, 5), by="ill", domains=[0, 1], epsilon=1.0
    ),
    "mean by a public column": lambda f: PdpAccessor(f).mean(
        "x",
        groups="home",
        bounds=(0, 5),
        by="shift",
        public=["shift"],
        domains={"shift": [*range(1, 13)]},
        correlation=0.2,
        epsilon=1.0,
    ),
    "ledger": lambda f: pdp.Ledger(COUPLE, epsilon=2.0).release(
        pdp.Sum(clamp=True), f, epsilon=1.0, value="x", by="home"
    ),
    "joint": lambda f: pdp.calibrate(
        COUPLE, [pdp.Sum(clamp=True), pdp.Mean(clamp=True)], rows=2
    ).release(f, value="x", by="home"),
}


def values_of(found):
    return [one.tolist() if isinstance(one, pd.Series) else one for one in found.values]


@pytest.mark.usefixtures("bare_answers")
@pytest.mark.parametrize("engine", LIVE)
@pytest.mark.parametrize("way", WAYS)
def test_a_family_that_grows_while_it_is_read_is_not_released(way, engine, tmp_path):
    """500 rows are inserted into a household of two after the first query, the second, …"""
    with writing(None, MORE, after=0) as queries:
        expected = values_of(WAYS[way](LIVE[engine](tmp_path).frame))
    assert expected == values_of(WAYS[way](PEOPLE.copy()))
    for after in range(1, len(queries) + 1):
        table = LIVE[engine](tmp_path)
        with writing(table, MORE, after=after):
            if after == len(queries):  # everything had been read before the others wrote
                assert values_of(WAYS[way](table.frame)) == expected
                continue
            with pytest.raises(pdp.PdpError, match=_REFUSED):
                WAYS[way](table.frame)


@pytest.mark.parametrize("by", ["home", None])
def test_sizes_and_sums_come_from_the_same_query(by):
    """Besides it there is one for the number of rows, on which the grid depends."""
    model = pdp.Unknown(size=2 if by else 4, bounds=(0.0, 5.0))
    cal = pdp.calibrate(model, pdp.Sum(clamp=True))
    layout = LongFrame(value="x", groups=by)
    with writing(None, MORE, after=0) as asked:
        found = exact_answer(
            DuckTable().frame, cal.query, cal.contributions[0], model, rows=1, layout=layout
        )
    assert found.answer == (Fraction(10),)
    assert found.sizes == (((2, 2),) if by else ((4, 1),))
    assert len(asked) == 2


def test_rows_that_move_between_families_are_seen_though_their_number_stays():
    table = DuckTable()
    table.write = lambda _: table.connection.execute("update people set home = 1")
    with (
        writing(table, None, after=1),
        pytest.raises(pdp.ModelError, match="groups of size 4"),
    ):
        WAYS["sum"](table.frame)


def test_columns_that_are_counted_one_by_one_are_compared():
    """Weights that cancel in a row do not cancel where half of the row is missing."""
    model = pdp.Unknown(size=13, domain=[0, 1])
    rows = pd.DataFrame(1, index=range(4), columns=[str(name) for name in model.names])
    weights = {name: (-1) ** place for place, name in enumerate(model.names[:12])}
    cal = pdp.calibrate(model, pdp.Linear(weights=weights | {model.names[12]: 1}))
    table = DuckTable()
    table.connection.register("wide_rows", rows)
    table.connection.execute("create table wide as select * from wide_rows")
    table.frame = table.connection.table("wide")
    table.write = lambda _: table.connection.execute("insert into wide select * from wide")
    with (
        writing(table, None, after=1),
        pytest.raises(pdp.FrameError, match="changed while it was read"),
    ):
        cal.release(table.frame)
