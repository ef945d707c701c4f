"""The range of a correlation inside groups covers the truth, whatever the sizes of the groups."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import pdp_calibrate as pdp
from pdp_calibrate.frames.products import GroupMoments
from pdp_calibrate.learning.intraclass import intraclass_of, ratio_probability

FEW_LARGE = [2] * 20 + [40] * 2
MANY_SINGLES = [1] * 40 + [2] * 30 + [8] * 5


def drawn(sizes, rho, rng):
    """Sums of squares of Gaussian groups, drawn from their laws."""
    numbers = np.array(sizes)
    means = rng.normal(size=len(numbers)) * np.sqrt((1 + (numbers - 1) * rho) / numbers)
    middle = float(numbers @ means) / numbers.sum()
    return GroupMoments(
        sizes=Counter(numbers.tolist()),
        between=float(numbers @ (means - middle) ** 2),
        within=float((1 - rho) * rng.chisquare((numbers - 1).sum())),
    )


@pytest.mark.parametrize("sizes", [FEW_LARGE, MANY_SINGLES])
@pytest.mark.parametrize("rho", [-0.02, 0.3, 0.9])
def test_the_law_of_the_ratio_is_exact_for_sizes_that_differ(sizes, rho):
    rng = np.random.default_rng(len(sizes))
    levels = []
    for _ in range(250):
        found = intraclass_of(drawn(sizes, rho, rng))
        levels.append(ratio_probability(found.sizes, rho, found.ratio))
    assert stats.kstest(levels, "uniform").pvalue > 1e-3


def test_groups_of_one_size_have_the_law_of_fisher():
    for ratio in (0.5, 1.0, 3.0):
        fisher = stats.f.cdf(ratio * 0.7 / 1.6, 59, 120)
        assert ratio_probability({3: 60}, 0.3, ratio) == pytest.approx(fisher, abs=1e-9)


@pytest.mark.parametrize("sizes", [FEW_LARGE, MANY_SINGLES, [3] * 40])
def test_the_interval_covers(sizes):
    rng = np.random.default_rng(3)
    misses = 0
    for _ in range(60):
        low, high = intraclass_of(drawn(sizes, 0.6, rng)).interval(0.8)
        assert low < high
        misses += not low <= 0.6 <= high
    assert misses <= 22  # 12 expected; more than 22 has probability 0.001


def test_an_average_size_would_not_cover():
    rng = np.random.default_rng(4)
    misses = 0
    for _ in range(400):
        found = intraclass_of(drawn(FEW_LARGE, 0.7, rng))
        tails = stats.f.ppf([0.975, 0.025], found.between, found.within)
        low, high = ((found.ratio / tail) for tail in tails)
        limits = [(r - 1) / (r + found.average_size - 1) for r in (low, high)]
        misses += not limits[0] <= 0.7 <= limits[1]
    assert misses > 50


def test_the_ends_of_the_interval_stand_where_the_tails_are():
    found = intraclass_of(drawn(FEW_LARGE, 0.4, np.random.default_rng(5)))
    low, high = found.interval(0.9)
    assert ratio_probability(found.sizes, low, found.ratio) == pytest.approx(0.95, abs=1e-6)
    assert ratio_probability(found.sizes, high, found.ratio) == pytest.approx(0.05, abs=1e-6)
    none = intraclass_of(GroupMoments(sizes=Counter({2: 9, 5: 3}), between=1e-9, within=10.0))
    assert none.interval(0.9)[0] == pytest.approx(-1 / 4, abs=1e-6)


def test_households_of_a_frame_get_a_range_and_calibrate_with_its_upper_end():
    rng = np.random.default_rng(6)
    homes = np.repeat(np.arange(60), np.resize([2, 3, 5], 60))
    values = rng.normal(size=60)[homes] * np.sqrt(0.5) + rng.normal(size=len(homes)) * np.sqrt(0.5)
    frame = pd.DataFrame({"home": homes, "income": values})
    estimator = pdp.GroupEstimator(
        by="home", value="income", bounds=(-9, 9), confidence=0.95, source="public"
    ).fit(frame)
    low, high = estimator.model_.models[0].correlation
    assert low < estimator.intraclass_.correlation < high
    leak = pdp.leakage(estimator.model_, pdp.Sum())
    assert leak.value == pytest.approx(18 * (1 + 4 * high), rel=1e-9)
