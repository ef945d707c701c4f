"""How far answers may be off: tails, regions and quotients against what they are by definition."""

import itertools

import numpy as np
import pytest
from scipy import integrate, stats

from pdp_calibrate.core import accuracy
from pdp_calibrate.core.row_query import Column, RowQuery
from pdp_calibrate.errors import PdpError, QueryError

SICK = Column(name="sick", values=(True,))
MEAN = RowQuery(kind="mean", where=[SICK], value="income", bounds=(-3.0, 7.0))
LAWS = {"laplace": stats.laplace, "gaussian": stats.norm}
NOISES = list(LAWS)


def tail(noise, reach, share):
    """P(|X + a·Y| > x), by integrating over Y."""
    law = LAWS[noise]

    def outside(y):
        return (law.sf(reach - share * y) + law.cdf(-reach - share * y)) * law.pdf(y)

    kinks = [0.0, *([] if share == 0 else [reach / share, -reach / share])]
    ends = sorted({-60.0, 60.0, *(one for one in kinks if abs(one) < 60)})
    return sum(
        integrate.quad(outside, low, high, epsabs=1e-13)[0]
        for low, high in itertools.pairwise(ends)
    )


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("share", [0.0, 1e-9, 0.02, 0.4, 0.9, 1 - 1e-5, 1 - 1e-10, 1.0])
@pytest.mark.parametrize("reach", [0.0, 0.3, 2.0, 9.0])
def test_the_tail_of_two_noises(noise, share, reach):
    found = accuracy._TAILS[noise](np.array([reach]), np.array([share]))[0]
    assert found == pytest.approx(tail(noise, reach, share), rel=1e-6, abs=1e-11)


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("alpha", [1e-9, 0.01, 0.05, 0.5, 0.9])
def test_quantiles_rise_more_slowly_than_the_quotient_needs(noise, alpha):
    """q(|m|) rises, by less than q(1) for each unit: then the region has one upper end."""
    shares = np.linspace(0, 1, 201)
    low, high = np.zeros(201), np.full(201, 200.0)
    for _ in range(60):
        middle = (low + high) / 2
        beyond = accuracy._TAILS[noise](middle, shares) > alpha
        low, high = np.where(beyond, middle, low), np.where(beyond, high, middle)
    slopes = np.diff(high) / np.diff(shares)
    assert (slopes > -1e-9).all()
    assert slopes.max() < 0.6 * high[-1]


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("seed", range(40))
def test_the_interval_of_a_quotient_is_the_region_of_means_that_fit(noise, seed):
    rng = np.random.default_rng([25, seed])
    scale, alpha = float(10.0 ** rng.uniform(-2, 2)), float(rng.choice([0.3, 0.05, 1e-4]))
    number = int(rng.integers(1, 400))
    noisy = [number * rng.uniform(-1.1, 1.1) + scale * rng.normal(), number + scale * rng.normal()]
    (low,), (high,) = accuracy.mean_intervals(MEAN, noisy, scale, alpha=alpha, noise=noise)
    (value,) = MEAN.values(noisy)
    assert -3 <= low <= value <= high <= 7
    means = np.linspace(-1, 1, 4001)
    reach = np.abs(noisy[0] - means * noisy[1]) / scale
    fits = accuracy._TAILS[noise](reach, np.abs(means)) >= alpha
    inside = means[fits] * 5 + 2
    if len(inside):  # nothing that fits is left out
        assert low - 1e-9 <= inside.min()
        assert inside.max() <= high + 1e-9
    usable = noisy[1] > 0 and tail(noise, noisy[1] / scale, 1.0) < alpha
    if not usable:
        assert (low, high) == (-3, 7)
    elif fits.any() and abs(noisy[0]) < noisy[1] and noisy[1] > 1:  # and little else is in it
        assert low >= inside.min() - 0.01
        assert high <= inside.max() + 0.01


def covered(noise, count, scale, within, mean, draws, rng):
    """The share of quotients within a distance of the mean: by simulation."""
    drawn = rng.laplace(size=(2, draws)) if noise == "laplace" else rng.normal(size=(2, draws))
    sums, counts = mean * count + scale * drawn[0], count + scale * drawn[1]
    values = np.clip(sums / np.maximum(counts, 1), -1, 1)
    return np.mean(np.abs(values - mean) <= within)


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize(("count", "scale"), [(4, 2.7), (14, 2.7), (60, 2.7), (1, 0.1), (5000, 9)])
def test_the_half_width_of_a_quotient_covers_every_mean_and_the_worst_one_tightly(
    noise, count, scale
):
    rng, draws = np.random.default_rng([7, count]), 100_000
    within = accuracy._quotient_error(count, scale, 0.05, noise)
    means = [*np.linspace(-1, 1, 9), abs(1 - within) - 1e-9, min(1.0, abs(1 - within) + 0.01)]
    found = [covered(noise, count, scale, within, one, draws, rng) for one in means]
    assert min(found) > 0.95 - 6 * 0.0007
    assert min(found) < 0.95 + 6 * 0.0007
    if 0.05 * count > scale:  # with many rows, the others are not far from it either
        assert max(found) < 0.995


def test_a_count_is_asked_for_whatever_the_data_are():
    part = type("Part", (), {"is_integer": False})()
    with pytest.raises(QueryError, match="count="):
        accuracy.half_width(MEAN, part, 1.0, alpha=0.05, noise="laplace")
    with pytest.raises(QueryError, match=r"at least 1, got 0\.5"):
        accuracy.count_for([MEAN], 0.5)
    with pytest.raises(QueryError, match="does not depend on it"):
        accuracy.count_for([RowQuery(kind="count", where=[SICK])], 10)
    with pytest.raises(PdpError, match="public range"):
        accuracy.scale_within(MEAN, part, 11.0, alpha=0.05, noise="laplace", count=10)


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("mean", [-1.0, -0.7, 0.0, 0.3, 0.95, 1.0])
@pytest.mark.parametrize("rows", [8, 40, 1000])
def test_intervals_of_quotients_cover_and_hardly_more(noise, mean, rows):
    """As many parts as draws, so that all of them are computed at once."""
    draws, scale, rng = 20_000, 1.3, np.random.default_rng([11, rows])
    parts = Column(name="city", values=tuple(range(draws)))
    query = RowQuery(kind="mean", by=[parts], value="income", bounds=(-3.0, 7.0))
    law = rng.laplace if noise == "laplace" else rng.normal
    noisy = [*(mean * rows + scale * law(size=draws)), *(rows + scale * law(size=draws))]
    low, high = accuracy.mean_intervals(query, noisy, scale, alpha=0.05, noise=noise)
    truth = 2 + 5 * mean
    share = np.mean((low <= truth + 1e-9) & (truth - 1e-9 <= high))
    assert 0.95 - 6 * 0.0016 < share < 0.99
