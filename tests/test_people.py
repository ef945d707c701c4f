"""People: several columns of the same households over one budget."""

import copy
import itertools
import json
import multiprocessing
import os
import pickle
import subprocess
import sys

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest
from jsonschema import Draft202012Validator

import pdp_calibrate as pdp
from pdp_calibrate.core import noise
from pdp_calibrate.frames import rows
from tests.benchmarks.households import CITIES as BENCHMARK_CITIES, opendp_scale
from tests.oracles.people import farthest, leaked
from tests.support.frames_of_any_kind import watching_collects
from tests.support.marks import slow_after
from tests.support.people_workers import SAID, race, small_table

CITIES = ["a", "b"]


def people(frame=None, **said):
    """People of a small table, their budget in memory."""
    return pdp.People(small_table() if frame is None else frame, **(SAID | said))


# What is spent, against brute force.


def table(rng, largest):
    """Households of up to `largest` members, with a public column and one nobody asks about."""
    sizes = [largest, *rng.integers(1, largest + 1, 3)]
    number = int(sum(sizes))
    return pd.DataFrame(
        {
            "home": np.repeat(np.arange(4), sizes),
            "pay": rng.uniform(-2, 12, number),
            "sick": rng.random(number) < 0.5,
            "city": rng.choice(["a", "b", "elsewhere"], number),
            "other": rng.normal(size=number),
        }
    )


QUESTIONS = [
    lambda to, eps, rho: to.sum("pay", epsilon=eps, correlation=rho),
    lambda to, eps, rho: to.mean("pay", epsilon=eps, correlation=rho),
    lambda to, eps, rho: to.sum("pay", epsilon=eps, correlation=rho),
    lambda to, eps, _: to.sum("pay", epsilon=eps),
    lambda to, eps, _: to.sum("pay", where={"sick": True}, epsilon=eps),
    lambda to, eps, _: to.count({"sick": True}, epsilon=eps),
    lambda to, eps, _: to.count({"sick": True, "city": "a"}, epsilon=eps),
    lambda to, eps, _: to.histogram("city", epsilon=eps),
    lambda to, eps, _: to.mean("pay", missing="zero", epsilon=eps),
]


def asked(rng, size):
    """Release some answers about random people; return them with what was asked."""
    low, rho = float(rng.choice([-4.0, 0.0, 3.0])), float(rng.choice([0.0, 0.2, 0.5, 0.9]))
    said = {"groups": "home", "bounds": {"pay": (low, 9.0)}, "domains": {"city": CITIES}}
    found = pdp.People(table(rng, size), epsilon=50.0, **said)
    for place in rng.choice(len(QUESTIONS), rng.integers(1, 4), replace=False):
        QUESTIONS[place](found, float(rng.uniform(0.2, 1.5)), rho)
    queries = [one.queries[0] for one in found.history]
    return found, queries, [one.scales[0] for one in found.history], (low, 9.0), rho


def records(bounds, *, missing):
    """All records at the ends of what is possible."""
    pays = [*bounds, *([None] if missing else [])]
    cells = itertools.product(pays, [True, False], ["a", "b", "elsewhere"])
    return [{"pay": pay, "sick": sick, "city": city} for pay, sick, city in cells]


@pytest.mark.parametrize("seed", slow_after(60, range(300)))
def test_what_is_spent_is_never_below_brute_force(seed):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 4))
    found, queries, scales, bounds, rho = asked(rng, size)
    spent = found.spent_by_column
    gaps = all("pay" in one.missing for one in queries if one.value == "pay")
    cells = records(bounds, missing=gaps)
    homes = [[cells[k] for k in rng.integers(len(cells), size=size)] for _ in range(150)]
    homes += [[cell] * size for cell in cells]
    # Of a column that nobody asks about, or an attribute outside: it may decide everything.
    apart, one, other = farthest(queries, scales, homes)
    assert apart <= spent["other"] * (1 + 1e-12)
    sure = leaked(queries, scales, [(1.0, homes[one])], [(1.0, homes[other])])
    assert sure == pytest.approx(apart, rel=1e-9)
    # Of one's own illness, which depends in any way on all cells of the household.
    for _ in range(3):
        worlds = []
        for sick in (True, False):
            chosen = [homes[k] for k in rng.integers(len(homes), size=4)]
            chosen = [[cell | {"sick": sick if p == 0 else cell["sick"]}
                       for p, cell in enumerate(home)] for home in chosen]  # fmt: skip
            worlds.append(list(zip(rng.dirichlet(np.full(4, 0.3)) + 1e-12, chosen, strict=True)))
        assert leaked(queries, scales, *worlds) <= spent["sick"] * (1 + 1e-9)
    # Of one's own pay, knowing some others': the rest follow it as far as the correlation says,
    # and every other column in any way at all.
    for known in range(size):
        slope = rho / (1 + known * rho)
        means, shifts = rng.uniform(*bounds, size), rng.normal(0, rng.choice([0, 4]), (2, size))
        worlds = []
        for pay in bounds:
            moved = means + slope * (pay - sum(bounds) / 2) + shifts
            moved[:, :known] = means[:known]
            pays = [[pay, *others[: size - 1]] for others in np.clip(moved, *bounds)]
            drawn = [homes[k] for k in rng.integers(len(homes), size=2)]
            worlds.append(
                [
                    (0.5, [cell | {"pay": p} for cell, p in zip(home, own, strict=True)])
                    for home, own in zip(drawn, pays, strict=True)
                ]
            )
        assert leaked(queries, scales, *worlds) <= spent["pay"] * (1 + 1e-9)


@pytest.mark.parametrize("place", range(len(QUESTIONS)))
def test_a_household_price_is_attained(place):
    rng = np.random.default_rng(place)
    found = pdp.People(
        table(rng, 2), groups="home", bounds={"pay": (-4.0, 9.0)}, domains={"city": CITIES}
    )
    QUESTIONS[place](found, 0.7, 0.3)
    (entry,) = found.history
    cells = records((-4.0, 9.0), missing="pay" in entry.queries[0].missing)
    homes = [list(home) for home in itertools.product(cells, repeat=2)]
    apart, _, _ = farthest(entry.queries, entry.scales, homes)
    assert entry.price == pytest.approx(apart, rel=1e-6)
    assert entry.price >= apart * (1 - 1e-12)
    assert found.spent == pytest.approx(entry.price)


@pytest.mark.parametrize(
    "case", slow_after(2, [(2, (-4.0, 9.0)), (1, (-5.0, 5.0)), (2, (2.0, 3.0))])
)
def test_a_household_price_of_gaussian_noise_is_the_longest_change_in_l2(case):
    size, bounds = case
    said = {"bounds": {"pay": bounds}, "domains": {"city": CITIES}, "epsilon": 99.0}
    homes = {
        gaps: [list(home) for home in itertools.product(records(bounds, missing=gaps), repeat=size)]
        for gaps in (False, True)
    }
    frame = table(np.random.default_rng(size), size)
    together = pdp.People(frame, groups="home", delta=1e-6, noise="gaussian", **said)
    for place, ask in enumerate(QUESTIONS):
        found = pdp.People(frame, groups="home", delta=1e-6, noise="gaussian", **said)
        ask(found, 0.7, 0.3)
        (entry,) = found.history
        allowed = homes["pay" in entry.queries[0].missing]
        apart, _, _ = farthest(entry.queries, entry.scales, allowed, power=2)
        assert entry.price == pytest.approx(apart, rel=1e-6)
        assert entry.price >= apart * (1 - 1e-12)
        if place % 3:
            ask(together, 0.7, 0.3)
    entries = together.history
    queries, scales = [one.queries[0] for one in entries], [one.scales[0] for one in entries]
    apart, _, _ = farthest(queries, scales, homes[False], power=2)
    assert apart <= np.hypot.reduce([one.price for one in entries])
    assert apart <= entries[-1].joint_mu * (1 + 1e-12)


# Prices, as they are told and charged.


def test_the_price_of_a_stated_correlation():
    sizes = [8, *range(1, 9)]
    frame = pd.DataFrame({"home": np.repeat(np.arange(9), sizes), "city": "a"})
    frame["income"] = np.linspace(0.5, 99_999.5, len(frame))
    found = pdp.People(
        frame, groups="home", bounds={"income": (0, 100_000)}, domains={"city": CITIES},
        max_group_size=8,
    )  # fmt: skip
    price = found.calibrate.mean("income", epsilon=0.5, correlation=(0, 0.4))
    assert (price.own, price.others) == (pytest.approx(0.5), pytest.approx(0.5 * 8 / 3.8))
    assert "1.053" in str(price)
    assert "protect='household'" in str(price)
    assert price.fits
    assert price.scale == pytest.approx(100_000 * 3.8 / 0.5)
    assert found.spent == 0.0
    assert found.history == ()
    found.mean("income", epsilon=0.5, correlation=(0, 0.4))
    assert found.spent_by_column == dict(price.spent)
    alike = found.calibrate.mean("income", epsilon=0.5)
    assert alike.charge.column is None
    assert alike.own == alike.others == pytest.approx(0.5)
    assert alike.scale == pytest.approx(100_000 * 8 / 0.5)
    assert not found.calibrate.histogram("city", epsilon=1.5).fits


def test_own_releases_are_counted_together_and_others_by_their_price():
    found = people()
    found.sum("pay", epsilon=0.3, correlation=0.5)
    found.mean("pay", epsilon=0.2, correlation=0.5)
    found.count({"sick": True}, by="city", epsilon=0.4)
    by = found.spent_by_column
    assert set(by) == {"pay", "sick", "city", "unasked"}
    assert by["pay"] == pytest.approx(0.5 + 0.4)
    assert by["sick"] == by["city"] == by["unasked"] == pytest.approx(0.5 * 3 / 2 + 0.4)
    assert found.spent == max(by.values())
    assert found.remaining == found.epsilon - found.spent
    assert found.spent >= sum(one.price for one in found.history)


def test_values_along_time_are_a_series():
    frame = pd.DataFrame(
        {"home": [1] * 4 + [2] * 3, "day": [1, 2, 3, 4, 1, 2, 3], "load": np.arange(7) / 2}
    )
    said = {"groups": "home", "bounds": {"load": (0, 3)}, "epsilon": 9.0}
    along = pdp.People(frame, order_by="day", **said)
    price = along.calibrate.sum("load", epsilon=1.0, correlation=0.5)
    assert price.scale == pytest.approx(3 * (0.5 + 1 + 0.5 + 0.25), rel=1e-6)
    assert set(price.spent) == {"load"}
    members = pdp.People(frame, **said).calibrate.sum("load", epsilon=1.0, correlation=0.5)
    assert members.scale == pytest.approx(3 * (1 + 3 * 0.5), rel=1e-6)


STATES = ["well", "ill", "gone"]


def readings(length, states, people=3):
    """Readings of the states of some people along time, with a public half of them."""
    frame = pd.DataFrame(
        {"who": np.repeat(np.arange(people), length), "t": np.tile(np.arange(length), people)}
    )
    frame["half"] = frame["t"] % 2
    frame["state"] = [states[k % len(states)] for k in range(len(frame))]
    return frame.assign(load=0.5)


def chain_of(rng, length, states, diameter):
    """A random chain of which no step has a larger diameter: its start and its laws."""
    laws = []
    for _ in range(length - 1):
        logs = rng.normal(size=(states, states)) * 3 + 4 * rng.random() * np.eye(states)
        cross = logs[:, None, :, None] + logs[None, :, None, :]
        cross = cross - logs[:, None, None, :] - logs[None, :, :, None]
        logs *= min(1.0, diameter / cross.max()) * rng.choice([1.0, rng.random()])
        laws.append(np.exp(logs) / np.exp(logs).sum(axis=1, keepdims=True))
    return rng.dirichlet(np.full(states, 0.5)) + 1e-9, laws


STATES_ASKED = [
    lambda to, **said: to.count({"state": "ill"}, **said),
    lambda to, **said: to.histogram("state", **said),
    lambda to, **said: to.count({"state": "ill"}, by="half", **said),
    lambda to, **said: to.count({"state": "well", "half": 1}, **said),
]


def some_states(states):
    return lambda to, **said: to.histogram("state", categories=states[-2:], **said)


def test_two_histograms_tell_apart_what_both_do():
    """The last two states are as far apart in both, and other pairs in one of them alone."""
    stated = {"epsilon": 1.0, "persistence": 1 / 3}  # no memory: only one's own row moves
    said = {"groups": "who", "order_by": "t", "domains": {"state": STATES}, "epsilon": 9.0}
    found = pdp.People(readings(2, STATES), **said)
    found.histogram("state", **stated)
    some_states(STATES)(found, **stated)
    assert found.spent_by_column["state"] == pytest.approx(2.0)
    found = pdp.People(readings(2, STATES), delta=1e-6, noise="gaussian", **said)
    one = found.histogram("state", **stated).calibration
    some_states(STATES)(found, **stated)
    assert one.scale == pytest.approx(2 * 2**0.5 / one.mu, rel=1e-6)  # both rows, one part or other
    assert found.history[-1].joint_mu == pytest.approx(2**0.5 * one.mu, rel=1e-6)


@pytest.mark.parametrize("seed", slow_after(60, range(300)))
def test_states_along_time_never_leak_more_than_is_spent(seed):
    rng = np.random.default_rng(seed)
    length, states = int(rng.integers(1, 5)), STATES[: int(rng.integers(2, 4))]
    persistence = float(rng.uniform(1 / len(states), 0.97))
    frame = readings(length, states)
    found = pdp.People(
        frame, groups="who", order_by="t", domains={"state": states}, public=["half"], epsilon=99.0
    )
    asks = [*STATES_ASKED[: 3 if length == 1 else 4], some_states(states)]
    for place in rng.choice(len(asks), rng.integers(1, 4), replace=False):
        stated = {"persistence": persistence} if rng.random() < 0.8 else {}
        asks[place](found, epsilon=float(rng.uniform(0.2, 2)), **stated)
    entries = found.history
    queries, scales = [one.queries[0] for one in entries], [one.scales[0] for one in entries]
    spent = found.spent_by_column["state"]
    diameter = 2 * np.log(persistence * (len(states) - 1) / (1 - persistence))
    for _ in range(4):
        start, laws = chain_of(rng, length, len(states), diameter)
        target = int(rng.integers(length))
        known = [k for k in range(length) if k != target and rng.random() < 0.3]
        held = rng.integers(len(states), size=length)
        worlds = {}
        for course in itertools.product(range(len(states)), repeat=length):
            if all(course[k] == held[k] for k in known):
                share = start[course[0]] * np.prod(
                    [law[one, two] for law, one, two in zip(laws, course, course[1:], strict=False)]
                )
                rows = [{"state": states[s], "half": t % 2} for t, s in enumerate(course)]
                worlds.setdefault(course[target], []).append((share, rows))
        shares = {s: sum(p for p, _ in some) for s, some in worlds.items()}
        given = {s: [(p / shares[s], rows) for p, rows in some] for s, some in worlds.items()}
        for one, other in itertools.combinations(given, 2):
            assert leaked(queries, scales, given[one], given[other]) <= spent * (1 + 1e-9)


def test_states_along_time_need_less_noise_than_whole_households_and_attain_their_lower_end():
    said = {"groups": "who", "order_by": "t", "domains": {"state": STATES}, "epsilon": 9.0}
    found = pdp.People(readings(6, STATES), bounds={"load": (0, 1)}, **said)
    nothing = found.calibrate.count({"state": "ill"}, epsilon=0.5, persistence=1 / 3)
    assert nothing.scale == pytest.approx(2.0)
    for ask in STATES_ASKED[:2]:
        stated = ask(found.calibrate, epsilon=0.5, persistence=0.7)
        household = ask(found.calibrate, epsilon=0.5)
        assert stated.scale < 0.7 * household.scale
        assert stated.others == pytest.approx(0.5 * household.scale / stated.scale)
        leak = stated.calibration.leakage
        assert 0.7 * 0.5 < leak.lower <= leak.value <= 0.5
    sure = 1 - 1e-11  # noise takes no seed; 25 standard deviations to the lower end
    counted = STATES_ASKED[0](found.calibrate, epsilon=0.5, persistence=0.7).calibration
    audit = pdp.audit(counted, draws=60_000, confidence=sure, seed=3)
    assert 0.1 < audit.lower_bound <= 0.5
    ask(found, epsilon=0.5, persistence=0.7)
    with pytest.raises(pdp.LedgerError, match=r"persistence 0\.7 of 3 states"):
        ask(found, epsilon=0.5, persistence=0.6)
    assert "persistence 0.7 of 3 states" in str(found)


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (
            lambda to: to.sum("load", persistence=0.7, epsilon=1.0),
            "none of them missing, which are counted",
        ),
        (lambda to: to.count({"state": "ill"}, persistence=1.0, epsilon=1.0), "to below 1"),
        (
            lambda to: to.count({"state": "ill"}, persistence=0.1, epsilon=1.0),
            "nothing is remembered",
        ),
        (
            lambda to: to.count({"state": "dead"}, persistence=0.7, epsilon=1.0),
            "no possible value of column state",
        ),
        (
            lambda to: to.count({"state": "ill", "load": 0.5}, persistence=0.7, epsilon=1.0),
            "one secret column",
        ),
        (
            lambda to: to.histogram("state", missing="category", persistence=0.7, epsilon=1.0),
            "missing",
        ),
        (lambda to: to.count({"state": "ill"}, persistence=0.7, correlation=0.2), "no correlation"),
    ],
)
def test_persistence_is_for_states_that_are_counted(ask, words):
    said = {"groups": "who", "order_by": "t", "domains": {"state": STATES}}
    found = pdp.People(readings(4, STATES), bounds={"load": (0, 1)}, **said)
    with pytest.raises(pdp.PdpError, match=words):
        ask(found)
    assert not found.history


def test_persistence_needs_an_order():
    found = pdp.People(readings(4, STATES), groups="who", domains={"state": STATES})
    with pytest.raises(pdp.QueryError, match="give order_by too"):
        found.count({"state": "ill"}, persistence=0.7)
    gaps = readings(8, STATES).query("t != 2")
    said = {"groups": "who", "order_by": "t", "domains": {"state": STATES}}
    with pytest.raises(pdp.ModelError, match=r"gaps|steps"):
        pdp.People(gaps, **said).count({"state": "ill"}, persistence=0.7, epsilon=1.0)
    pdp.People(gaps, every=1, **said).count({"state": "ill"}, persistence=0.7, epsilon=1.0)


def test_a_release_reads_the_rows_in_one_pass():
    found = people(duckdb.from_df(small_table()), epsilon=9.0)
    for ask in (
        lambda to: to.sum("pay", epsilon=0.3, correlation=0.5),
        lambda to: to.mean("pay", epsilon=0.3),
        lambda to: to.count({"sick": True}, by="city", epsilon=0.2),
        lambda to: to.histogram("city", epsilon=0.2),
    ):
        with watching_collects() as seen:
            ask(found)
        assert len(seen) == 1


ALONG_TIME = {"groups": "who", "order_by": "t", "epsilon": 9.0}
ENGINES = {
    "pandas": lambda frame: frame,
    "polars lazy": lambda frame: pl.from_pandas(frame).lazy(),
    "duckdb": duckdb.from_df,
}


def written(form):
    """Readings of a day each, of which the days are written in one of several ways."""
    frame = readings(4, STATES)
    days = pd.Timestamp("2024-02-27") + pd.to_timedelta(frame["t"], unit="D")
    return frame.assign(t=frame["t"] if form is None else days.dt.strftime(form))


@pytest.mark.parametrize("form", [None, "%Y-%m-%d", "%d/%m/%Y"])
@pytest.mark.parametrize("engine", ENGINES)
def test_a_series_is_read_in_one_pass_too(engine, form):
    said = ALONG_TIME | ({"time_format": form} if form == "%d/%m/%Y" else {})
    found = pdp.People(
        ENGINES[engine](written(form)), domains={"state": STATES}, bounds={"load": (0, 1)}, **said
    )
    for ask in (
        lambda: found.sum("load", epsilon=0.3, correlation=0.5),
        lambda: found.histogram("state", epsilon=0.3, persistence=0.7),
    ):
        with watching_collects() as seen:
            ask()
        assert len(seen) == 1
        assert seen[0][1] <= 6  # parts, never rows
    assert len(found.history) == 2
    alone = readings(1, STATES)
    found = pdp.People(ENGINES[engine](alone), bounds={"load": (0, 1)}, **said)
    if form is None:  # nobody has two readings
        assert found.sum("load", epsilon=0.3, correlation=0.5).calibration.scale


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda frame: frame[frame["t"] != 2], "column t has gaps"),
        (lambda frame: frame.assign(t=frame["t"] // 2), "column t has two equal times"),
        (lambda frame: frame.assign(t=frame["t"].where(frame["t"] != 1)), "column t has missing"),
        (lambda frame: frame.assign(t=frame["t"] ** 0.5), "column t has gaps"),  # shorter steps
        (
            lambda frame: frame.assign(t=[None, *["2024-01-02"] * (len(frame) - 1)]),
            "missing values",
        ),
        (
            lambda frame: frame.assign(
                t=pd.to_datetime(frame["t"].where(frame["t"] != 1), unit="D")
            ),
            "missing values",
        ),
        (
            lambda frame: frame.assign(
                t=pd.to_timedelta(frame["t"].where(frame["t"] != 1), unit="D")
            ),
            "missing values",
        ),
        (lambda frame: frame.assign(t="day " + frame["t"].astype(str)), "ISO 8601"),
        (lambda frame: frame.assign(load=frame["load"].where(frame["t"] != 1)), "missing values"),
    ],
)
@pytest.mark.parametrize("engine", ENGINES)
def test_times_that_no_series_has_are_refused_and_cost_nothing(engine, spoil, words, monkeypatch):
    monkeypatch.setattr(noise, "add_laplace_to_floats", None)
    spoiled = ENGINES[engine](spoil(readings(8, STATES)))
    found = pdp.People(spoiled, bounds={"load": (0, 1)}, **ALONG_TIME)
    with pytest.raises(pdp.ModelError, match=words):
        found.sum("load", epsilon=0.3, correlation=0.5)
    with pytest.raises(pdp.ModelError, match="missing values" if "missing" in words else words):
        found.calibrate.sum("load", epsilon=0.3, correlation=0.5)
    assert found.spent == 0
    assert not found.history


@pytest.mark.parametrize("every", [None, "D", "us"])
@pytest.mark.parametrize("engine", ENGINES)
def test_times_too_close_to_be_told_apart_are_no_whole_number_of_steps(engine, every):
    """No step at all is a multiple of every step; microseconds of our era are no floats."""
    frame = readings(4, STATES)
    apart = frame["t"] * (100 if every == "us" or engine != "pandas" else 1000)
    start = pd.Timestamp("2024-02-27")
    close = frame.assign(t=start + pd.to_timedelta(apart, unit="ns"))
    said = ALONG_TIME | ({} if every is None else {"every": every})
    found = pdp.People(ENGINES[engine](close), bounds={"load": (0, 1)}, **said)
    with pytest.raises(pdp.ModelError, match=r"too close to be told apart|whole number"):
        found.sum("load", epsilon=0.3, correlation=0.5)
    assert found.spent == 0


def test_times_that_change_their_form_are_refused():
    held = {"frame": written("%Y-%m-%d")}
    connection = duckdb.connect()
    connection.register("readings", held["frame"])
    connection.execute("create table kept as select * from readings")
    found = pdp.People(connection.table("kept"), bounds={"load": (0, 1)}, **ALONG_TIME)
    connection.execute("update kept set t = replace(t, '-', '/')")
    with pytest.raises(pdp.FrameError, match=r"changed|could not compute") as caught:
        found.sum("load", epsilon=0.3, correlation=0.5)
    assert "2024" not in str(caught.value)
    assert not found.history


def test_public_conditions_keep_one_model_of_a_column():
    found = people(public=["unasked"], epsilon=9.0)
    condition = {"where": {"unasked": 1}, "missing": {}}
    found.sum("pay", epsilon=0.3, correlation=0.5, **condition)
    found.sum("pay", epsilon=0.3, correlation=0.5)
    assert set(found.spent_by_column) == {"pay", "sick", "city"}
    assert found.spent_by_column["pay"] == pytest.approx(0.6)


def test_as_much_as_still_fits():
    found = people(epsilon=1.0)
    found.count({"sick": True}, epsilon=0.4)
    release = found.sum("pay", epsilon=None, correlation=0.5)
    assert release.calibration.epsilon == pytest.approx(0.6 * 2 / 3, rel=1e-5)
    assert 1 - 1e-5 <= found.spent <= 1.0


def test_nothing_fits_into_a_spent_budget():
    found = people(epsilon=1.0)
    found.sum("pay", epsilon=None)
    before = found.history
    with pytest.raises(pdp.BudgetExceededError, match="the budget 1 is spent"):
        found.sum("pay", epsilon=None)
    assert found.history == before


def test_columns_may_have_numbers_for_names_and_domains_be_sets(tmp_path):
    frame = pd.DataFrame({0: [1, 1, 2], 1: [0.5, 0.2, 0.1], 2: ["u", "v", "w"]})
    said = {"groups": 0, "bounds": {1: (0, 1)}, "domains": {2: {"v", "u", "w"}}}
    found = pdp.People(frame, ledger=tmp_path / "b.json", **said)
    found.sum(1, epsilon=0.5, correlation=0.5)
    assert list(found.histogram(2, epsilon=0.5).value.index) == ["u", "v", "w"]
    assert "2 independent groups" in repr(pdp.People.open(frame, tmp_path / "b.json"))
    again = pdp.People(frame, ledger=tmp_path / "b.json", **(said | {"domains": {2: list("uvw")}}))
    assert again.spent_by_column == found.spent_by_column


def test_everything_for_whole_households():
    found = people(protect="household", epsilon=9.0)
    found.sum("pay", epsilon=0.5)
    with pytest.raises(pdp.QueryError, match="protect='household'"):
        found.sum("pay", epsilon=0.5, correlation=0.5)
    assert set(found.spent_by_column.values()) == {found.spent}
    assert "it does not matter what anyone knows" in str(found)


def test_a_single_question_may_be_for_whole_households():
    said = {"bounds": (0, 10), "groups": "home", "epsilon": 0.5}
    release = small_table().pdp.sum("pay", protect="household", **said)
    assert release.calibration.scale == pytest.approx(60.0)
    assert small_table().pdp.sum("pay", protect="column", correlation=0.5, **said)
    with pytest.raises(pdp.QueryError, match="protect='household'"):
        small_table().pdp.sum("pay", protect="household", correlation=0.5, **said)


def test_independent_people_are_households_of_one():
    frame = small_table().drop(columns="home")
    with pytest.raises(pdp.ModelError, match="at least one row"):
        pdp.People(frame[:0], independent=True)
    found = pdp.People(frame, independent=True, bounds={"pay": (0, 10)})
    found.sum("pay", epsilon=0.5)
    assert found.history[0].scales[0] == pytest.approx(20.0)


# Refusals.


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda to: to.count({"sick": True}, epsilon=1.6), "to 2.1, above the budget 2"),
        (lambda to: to.sum("pay", epsilon=1.1, correlation=0.5), "costs other columns 1.65"),
        (lambda to: to.sum("pay", epsilon=0.1, correlation=0.4), "first assumption"),
        (lambda to: to.count({"sick": True}, correlation=0.5, epsilon=1), "does not cover counts"),
        (lambda to: to.sum("pay", where={"sick": True}, correlation=0.5, epsilon=1), "one secret"),
        (lambda to: to.histogram("sick", epsilon=0.1, adversaries=None), "no argument"),
        (lambda to: to.sum("salary", epsilon=0.1), "bounds"),
        (lambda to: to.sum("pay", bounds=(0, 1)), "no argument 'bounds'"),
        (lambda to: to.histogram("unasked", epsilon=0.1), "domains"),
        (lambda to: to.count({"sick": True}, where={"sick": False}), "counted already"),
        (lambda to: to.count({"gap": 1.0}, epsilon=0.1), "no column"),
        (lambda to: to.sum("pay", epsilon=-1.0), "epsilon"),
        (lambda to: to.sum("home", epsilon=0.1), "bounds"),
    ],
)  # fmt: skip
def test_a_refusal_charges_nothing(ask, words):
    found = people(epsilon=2.0)
    found.sum("pay", epsilon=0.5)
    found.sum("pay", epsilon=1e-9, correlation=0.5)
    before = found.spent_by_column, found.history
    with pytest.raises(pdp.PdpError, match=words):
        ask(found)
    assert (found.spent_by_column, found.history) == before


def test_missing_cells_without_a_rule_are_refused_and_charge_nothing():
    frame = small_table()
    frame.loc[2, "pay"] = None
    found = people(frame)
    with pytest.raises(pdp.ModelError, match="missing"):
        found.sum("pay", epsilon=0.5)
    assert found.spent == 0.0
    found.mean("pay", missing="zero", epsilon=0.5)
    assert found.spent == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"groups": None}, "which rows belong together"),
        ({"groups": "hom"}, "no column hom"),
        ({"bounds": {"pai": (0, 1)}}, "no column pai"),
        ({"public": ["cty"]}, "no column cty"),
        ({"public": ["pay", "sick", "city", "unasked"]}, "every column is public"),
        ({"max_group_size": 2}, "at most 2"),
        ({"protect": "person"}, "protect is"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"every": "1D"}, "order_by"),
        ({"anchor": "anchor.json"}, "anchor is for a ledger in a file"),
    ],
)
def test_what_cannot_be_said_about_people(said, words):
    with pytest.raises(pdp.PdpError, match=words):
        people(**said)


# The file.


def test_a_ledger_goes_on_and_must_be_about_the_same_table(tmp_path):
    path = tmp_path / "budget.json"
    people(ledger=path).sum("pay", epsilon=0.5, correlation=0.5)
    again = people(ledger=path)
    assert again.spent_by_column["pay"] == pytest.approx(0.5)
    assert len(again.history) == 1
    opened = pdp.People.open(small_table(), path)
    opened.count({"sick": True}, by="city", epsilon=0.1)
    assert again.spent_by_column == opened.spent_by_column
    with pytest.raises(pdp.LedgerError, match="first assumption"):
        opened.sum("pay", epsilon=0.1, correlation=(0, 0.5))
    frame = small_table()
    for change, words in [
        ({"bounds": {"pay": (0, 11)}}, "begun with bounds"),
        ({"domains": {"city": ["a"]}}, "begun with domains"),
        ({"protect": "household"}, "begun with protect"),
        ({"epsilon": 3.0}, "budget 2"),
        ({"frame": frame.drop(columns="unasked")}, "other secret columns"),
        ({"frame": frame[frame["home"] > 1]}, "another number of rows"),
        ({"groups": "unasked"}, "other secret columns"),
        ({"public": ["city"]}, "other secret columns"),
    ]:
        with pytest.raises(pdp.LedgerError, match=words):
            people(ledger=path, **change)
    with pytest.raises(pdp.LedgerError, match="open it with People"):
        pdp.Ledger.open(path)
    pdp.Ledger(pdp.Unknown(size=2, domain=[0, 1]), path=tmp_path / "other.json")
    with pytest.raises(pdp.LedgerError, match="about one model"):
        people(ledger=tmp_path / "other.json")


def test_a_seed_is_drawn_when_the_ledger_is_begun(tmp_path):
    frame = small_table().assign(key=range(len(small_table())))
    said = {"large": "keep", "max_group_size": 1, "keep_by": "key", "keep_seed": "draw"}
    path = tmp_path / "budget.json"
    seeds = set()
    for _ in range(2):
        begun = people(frame, ledger=path, **said)
        seeds |= {begun.count({"sick": True}, epsilon=0.1).calibration.query.seed}
    reopened = pdp.People.open(frame, path)
    seeds |= {reopened.calibrate.count({"sick": True}, epsilon=0.1).calibration.query.seed}
    assert len(seeds) == 1
    assert seeds == {json.loads(path.read_text())["declared"]["keep_seed"]}
    with pytest.raises(pdp.LedgerError, match="keep_seed"):
        people(frame, ledger=path, **said | {"keep_seed": 3})
    other = people(frame, **said)
    assert other.calibrate.count({"sick": True}, epsilon=1.0).calibration.query.seed not in seeds


def test_the_file_follows_the_schema_and_holds_no_cell(tmp_path):
    path = tmp_path / "budget.json"
    frame = small_table().assign(unasked="sesame")
    found = people(frame, ledger=path)
    found.sum("pay", epsilon=0.5, correlation=0.5)
    found.histogram("city", epsilon=0.1)
    text = path.read_text()
    assert "sesame" not in text
    assert "7.25" not in text
    schema = pdp.json_schema()
    Draft202012Validator(schema).validate(json.loads(text))
    named = {"$ref": "#/$defs/PeopleLedger", "$defs": schema["$defs"]}
    Draft202012Validator(named).validate(json.loads(text))
    price = found.calibrate.sum("pay", epsilon=0.1, correlation=0.5).to_dict()
    Draft202012Validator({"$ref": "#/$defs/Price", "$defs": schema["$defs"]}).validate(price)
    page = found.report(tmp_path / "report.html").read_text()
    for words in ("correlation 0.5", "unasked", "any dependence", "to other columns"):
        assert words in page
    assert "sesame" not in page
    assert "{{" not in page
    assert "sesame" not in pdp.explain(pdp.load(path))
    pdp.report(pdp.load(path), tmp_path / "again.html")


def test_a_damaged_or_old_file_is_refused(tmp_path):
    path, anchor = tmp_path / "budget.json", tmp_path / "anchor.json"
    found = people(ledger=path, anchor=anchor)
    found.sum("pay", epsilon=0.2)
    old = path.read_text()
    found.sum("pay", epsilon=0.2)
    path.write_text(old)
    with pytest.raises(pdp.LedgerError):
        people(ledger=path, anchor=anchor)
    path.write_text(old.replace('"price": 0.2', '"price": 0.1').replace("0.19999", "0.09999"))
    with pytest.raises(pdp.LedgerError, match="damaged or was changed"):
        people(ledger=path, anchor=anchor)


def test_the_entry_is_on_disk_before_noise_is_drawn(tmp_path, monkeypatch):
    path = tmp_path / "budget.json"
    seen = []

    def draw(answers, _scale):
        seen.append(json.loads(path.read_text())["entries"][-1]["price"])
        return answers

    monkeypatch.setattr(noise, "add_laplace_to_integers", draw)
    people(ledger=path).count({"sick": True}, epsilon=0.3)
    assert seen == [pytest.approx(0.3)]


def test_two_processes_race_for_the_last_epsilon(tmp_path):
    rounds = 6
    for number in range(rounds):
        people(ledger=tmp_path / f"{number}.json", epsilon=1.0).count({"sick": True}, epsilon=0.4)
    context = multiprocessing.get_context("spawn")
    barrier, won = context.Barrier(2), context.Queue()
    workers = [
        context.Process(target=race, args=(str(tmp_path), rounds, barrier, won)) for _ in range(2)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(timeout=120)
        assert worker.exitcode == 0
    assert sorted(won.get(timeout=5) for _ in range(rounds)) == list(range(rounds))
    assert won.empty()
    for number in range(rounds):
        assert people(ledger=tmp_path / f"{number}.json", epsilon=1.0).spent <= 1.0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="children are forked")
def test_nothing_is_released_that_is_not_in_the_ledger_when_killed(tmp_path):
    path = tmp_path / "budget.json"
    run = subprocess.run(  # noqa: S603
        [sys.executable, "-m", "tests.support.people_workers", str(path), "6"],
        capture_output=True, text=True, timeout=240, check=True,
    )  # fmt: skip
    lines = [tuple(map(int, line.split())) for line in run.stdout.splitlines()]
    assert len(lines) == 6
    for given, written in lines:
        assert given <= written


# Any engine, one reading.


@pytest.mark.parametrize("kind", ["pandas", "polars", "lazy", "duckdb"])
def test_any_engine_says_the_same_in_one_reading(kind, monkeypatch):
    frame = small_table()
    connection = duckdb.connect()
    table = {
        "pandas": lambda: frame,
        "polars": lambda: pl.from_pandas(frame),
        "lazy": lambda: pl.from_pandas(frame).lazy(),
        "duckdb": lambda: connection.from_df(frame),
    }[kind]()
    found, expected = people(table), people(frame)
    readings = []
    real = rows._collected
    monkeypatch.setattr(rows, "_collected", lambda *a, **k: readings.append(1) or real(*a, **k))
    for one in (found, expected):
        readings.clear()
        release = one.sum("pay", epsilon=0.3, correlation=0.5)
        one.count({"sick": True}, by="city", epsilon=0.2)
        one.mean("pay", missing="zero", epsilon=0.2)
        assert len(readings) == 3
    low, high = release.interval(alpha=1e-11)
    assert low <= frame["pay"].clip(0, 10).sum() <= high
    assert found.spent_by_column == expected.spent_by_column


# Beside OpenDP, with the household as the unit.


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 3.0])
def test_never_more_noise_than_opendp_and_less_with_a_stated_correlation(epsilon):
    found = people(epsilon=99.0, domains={"city": BENCHMARK_CITIES}).calibrate
    theirs = {
        question: opendp_scale(question, epsilon, members=3, top=10.0, rows=6) * (1 + 1e-9)
        for question in ("sum", "count", "histogram")
    }
    assert found.sum("pay", epsilon=epsilon).scale <= theirs["sum"]
    assert found.count({"sick": True}, epsilon=epsilon).scale <= theirs["count"]
    assert found.histogram("city", epsilon=epsilon).scale <= theirs["histogram"]
    stated = found.sum("pay", epsilon=epsilon, correlation=(0, 0.4))
    assert stated.scale == pytest.approx(theirs["sum"] * 1.8 / 3, rel=1e-6)


TABLE = pd.DataFrame({"home": [1, 1, 2, 3] * 5, "pay": [10.0, 20.0, 5.0, 30.0] * 5})


@pytest.mark.parametrize("place", [5, 2.5, b"x", object(), True])
def test_a_budget_is_kept_in_a_file_that_is_named(tmp_path, place):
    unknown = pdp.Unknown(size=2, domain=[0, 1])
    for use in (
        lambda: pdp.People(TABLE, groups="home", bounds={"pay": (0, 100)}, ledger=place),
        lambda: pdp.People(
            TABLE, groups="home", bounds={"pay": (0, 100)}, ledger=tmp_path / "b", anchor=place
        ),
        lambda: pdp.People.open(TABLE, place),
        lambda: pdp.Ledger(unknown, path=place),
        lambda: pdp.Ledger.open(place),
        lambda: pdp.report(pdp.Ledger(unknown), place),
        lambda: pdp.load(place),
        lambda: pdp.read_plan(place),
    ):
        with pytest.raises(pdp.PdpError, match="path of its file, got"):
            use()
    with pytest.raises(pdp.PdpError, match="got Ledger"):
        pdp.People(TABLE, groups="home", ledger=pdp.Ledger(unknown))
    assert list(tmp_path.iterdir()) == []


def test_a_copy_has_no_budget_of_its_own(tmp_path):
    memory = pdp.People(TABLE, groups="home", bounds={"pay": (0, 100)}, epsilon=1.0)
    for use in (copy.deepcopy, pickle.dumps):
        with pytest.raises(pdp.LedgerError, match="would spend the same budget again"):
            use(memory)
    for one in (memory, pdp.Ledger(pdp.Unknown(size=2, domain=[0, 1]))):
        with pytest.raises(pdp.LedgerError, match="has no copies"):
            copy.deepcopy(one)
    copy.copy(memory).sum("pay", epsilon=0.5)
    assert memory.spent == pytest.approx(0.5)  # they share it
    stored = pdp.People(
        TABLE, groups="home", bounds={"pay": (0, 100)}, epsilon=1.0, ledger=tmp_path / "b.json"
    )
    copy.deepcopy(stored).sum("pay", epsilon=0.5)
    assert stored.spent == pytest.approx(0.5)


@pytest.mark.parametrize("high", [1e-200, 1e-160, 1e160, 1e200])
@pytest.mark.parametrize("correlation", [None, (0, 0.4)])
def test_gaussian_noise_whose_square_leaves_the_floats_is_refused_in_words(high, correlation):
    survey = pdp.People(
        TABLE, groups="home", bounds={"pay": (0, high)}, epsilon=2.0, delta=1e-6, noise="gaussian"
    )
    with pytest.raises(pdp.PdpError, match="in another unit"):
        survey.sum("pay", epsilon=1.0, correlation=correlation)
    assert survey.spent == 0
    model = pdp.GaussianGroup(size=2, correlation=0.2, bounds=(0, high))
    ledger = pdp.Ledger(model, epsilon=2.0, delta=1e-6, noise="gaussian")
    with pytest.raises(pdp.PdpError, match="unit"):
        ledger.release(pdp.Sum(clamp=True), {0: 0.0, 1: 0.0}, epsilon=1.0)
    assert ledger.history == ()


def test_a_report_is_not_written_over_its_ledger_nor_another_page(tmp_path):
    book = tmp_path / "b.json"
    survey = pdp.People(TABLE, groups="home", bounds={"pay": (0, 100)}, epsilon=1.0, ledger=book)
    for overwrite in (False, True):
        with pytest.raises(pdp.PdpError, match="never overwritten"):
            survey.report(book, overwrite=overwrite)
    page = survey.report(tmp_path / "page.html")
    with pytest.raises(pdp.PdpError, match="exists already"):
        survey.report(page)
    assert survey.report(page, overwrite=True) == page
    survey.sum("pay", epsilon=0.5)
