"""Groups that share a rate: their search against a table, and laws learned over all sizes."""

import itertools
import math
from collections import Counter

import numpy as np
import pandas as pd
import pytest

import pdp_calibrate as pdp
from pdp_calibrate.families.exchangeable.rate_fits import (
    NoisySums,
    beta_limits,
    free_mixture,
    noisy_limits,
    shape_of,
)
from tests.support.families import draw_rates


def leakage_by_hand(model, scale):
    """Every known set, value, pair of secrets and output, from the definition."""
    cells = model.to_table().probabilities
    worst = 0.0
    for known in range(model.size):
        for ones in range(known + 1):
            fixed = cells[(1,) * ones + (0,) * (known - ones)]
            for output in [-math.inf, math.inf, *range(model.size - known + 1)]:
                seen = []
                for secret in (0, 1):
                    law = np.atleast_1d(fixed[secret])
                    sums = secret + np.array(
                        [sum(one) for one in np.ndindex(np.shape(fixed[secret]))]
                    )
                    away = np.abs(output - sums) if math.isfinite(output) else 0.0
                    pull = math.copysign(1, output) * sums if math.isinf(output) else -away
                    seen.append(float((law.ravel() * np.exp(pull / scale)).sum() / law.sum()))
                worst = max(worst, abs(math.log(seen[0] / seen[1])))
    return worst


@pytest.mark.parametrize("seed", range(40))
def test_the_quick_search_is_the_definition(seed):
    rng = np.random.default_rng(seed)
    model, scale = draw_rates(rng), float(np.exp(rng.normal()))
    leak = pdp.leakage(model, pdp.Sum(), scale=scale)
    truth = leakage_by_hand(model, scale)
    assert truth <= leak.value * (1 + 1e-12)
    assert leak.value == pytest.approx(truth, rel=1e-8)
    assert leak.lower <= truth * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(10))
def test_a_smaller_group_leaks_no_more(seed):
    rng = np.random.default_rng(100 + seed)
    law = {"beta": np.exp(rng.normal(size=2))}
    if seed % 2:
        law = {"rates": rng.uniform(0.01, 0.99, 4), "weights": rng.dirichlet(np.ones(4))}
    models = [pdp.RateGroup(size=size, **law) for size in range(1, 9)]
    for noise, scale in itertools.product((pdp.Sum(), pdp.Count(values={0})), (0.5, 3.0)):
        leaks = [pdp.leakage(model, noise, scale=scale).value for model in models]
        assert all(one <= two * (1 + 1e-9) for one, two in itertools.pairwise(leaks))
        together = pdp.leakage(pdp.Blocks(models=models), noise, scale=scale)
        assert together.value == pytest.approx(leaks[-1], rel=1e-9)


def test_a_rare_count_is_not_impossible():
    """Of 900 members with a rate of .001, 900 ones have probability e^-6217: possible all the same.

    A group of such rates is independent, which plain DP covers; floats of the counts would vanish.
    """
    model = pdp.RateGroup(size=900, rates=[0.001], weights=[1.0])
    assert pdp.leakage(model, pdp.Sum(), scale=2.0).value == pytest.approx(0.5, rel=1e-6)


def test_bad_rates_are_refused():
    for given, message in (
        ({}, "give rates="),
        ({"beta": (1, -1)}, "positive"),
        ({"rates": [0.0, 0.5], "weights": [0.5, 0.5]}, "strictly between"),
        ({"rates": [0.5], "weights": [0.5, 0.5]}, "one length"),
    ):
        with pytest.raises(pdp.ModelError, match=message):
            pdp.RateGroup(size=3, **given)


def drawn(rng, *, sizes, shape):
    rates = rng.beta(*shape, size=len(sizes))
    return Counter(zip(sizes, rng.binomial(sizes, rates).tolist(), strict=True))


def frame_of(totals):
    rows = [
        (f"{size}-{ones}-{copy}", int(place < ones))
        for (size, ones), number in totals.items()
        for copy in range(number)
        for place in range(size)
    ]
    return pd.DataFrame(rows, columns=["home", "ill"])


def test_the_mixture_is_the_likeliest():
    """No direction towards another of the 41 rates raises the likelihood (Lindsay 1983)."""
    totals = drawn(np.random.default_rng(0), sizes=[3, 4, 7] * 40, shape=(0.5, 1.0))
    rates, weights = free_mixture(totals)
    slopes = np.zeros(41)
    for (size, ones), number in totals.items():
        each = rates**ones * (1 - rates) ** (size - ones)
        slopes += number * each / (each @ weights)
    assert slopes.max() / sum(totals.values()) <= 1 + 1e-5


def test_limits_are_the_edge_of_the_likelihood_region():
    """Against the log-likelihood written with products, at the edge and beyond it."""
    totals = drawn(np.random.default_rng(1), sizes=[2, 5] * 40, shape=(1.0, 2.0))

    def log_likelihood(mean, rho):
        a, b = shape_of(mean, rho)
        found = 0.0
        for (size, ones), number in totals.items():
            law = [(a + k) for k in range(ones)] + [(b + k) for k in range(size - ones)]
            found += number * (sum(map(math.log, law)))
            found -= number * sum(math.log(a + b + k) for k in range(size))
        return found

    grid = [(mu, rho) for mu in np.linspace(0.05, 0.9, 80) for rho in np.linspace(0.01, 0.9, 80)]
    best = max(log_likelihood(*point) for point in grid)
    limits = beta_limits(totals, 0.95)
    for mean, rho in limits[1:-1]:
        assert 2 * (best - log_likelihood(mean, rho)) == pytest.approx(1.6449**2, abs=0.05)
        assert 2 * (best - log_likelihood(mean, rho + 0.02)) > 1.6449**2
    assert max(rho for _, rho in limits) > 0.25  # the truth


def test_more_groups_narrow_the_set_and_sizes_are_shared():
    totals = drawn(np.random.default_rng(2), sizes=[4] * 60, shape=(1.0, 2.0))
    more = Counter({key: 20 * number for key, number in totals.items()})
    assert max(r for _, r in beta_limits(more, 0.95)) < max(r for _, r in beta_limits(totals, 0.95))
    given = {"groups": "home", "value": "ill", "kind": "binary", "source": "public"}
    once = totals + Counter({(3, 1): 1})
    scales = [
        pdp.calibrate(pdp.GroupEstimator(**given).fit(frame_of(one)).model_, pdp.Sum()).scale
        for one in (totals, once)
    ]
    assert scales[1] == pytest.approx(scales[0], rel=0.05)


def test_a_learned_group_says_what_it_covers():
    totals = drawn(np.random.default_rng(3), sizes=[2, 3, 4] * 30, shape=(1.0, 2.0))
    given = {"groups": "home", "value": "ill", "kind": "binary"}
    model = pdp.GroupEstimator(**given, source="public").fit(frame_of(totals)).model_
    assert (model.coverage.kind, model.coverage.confidence) == ("covered", 0.95)
    assert "one law for groups of all sizes" in model.coverage.notes[0]
    private = pdp.GroupEstimator(**given, epsilon=2.0).fit(frame_of(totals)).model_
    assert (private.coverage.over, private.estimation_epsilon) == ("sampling and noise", 2.0)
    point = pdp.GroupEstimator(**given, source="public", confidence=None).fit(frame_of(totals))
    assert point.model_.coverage.kind == "point"
    assert point.model_.covering is not None
    with pytest.raises(pdp.ModelError, match="confidence="):
        pdp.GroupEstimator(**given, epsilon=2.0, confidence=None).fit(frame_of(totals))


def test_nothing_about_private_values_is_refused():
    frame = pd.DataFrame({"home": [1, 1, 2, 2], "ill": [0, 1, 7, 0]})
    given = {"groups": "home", "value": "ill", "kind": "binary"}
    assert pdp.GroupEstimator(**given, epsilon=1.0).fit(frame).model_.provenance == "dp"
    assert pdp.GroupEstimator(**given).fit(frame).model_.provenance == "private"
    with pytest.raises(pdp.ModelError, match="only 0 and 1"):
        pdp.GroupEstimator(**given, source="public").fit(frame)


@pytest.mark.parametrize("size", range(2, 12))
def test_one_group_moves_both_shares_by_at_most_three_halves(size):
    shares = [(s / size, s * (size - s) * 2 / size / (size - 1)) for s in range(size + 1)]
    moved = max(abs(a - c) + abs(b - d) for a, b in shares for c, d in shares)
    assert moved <= 1.5 + 1e-12
    assert size > 2 or moved == 1.5


def test_the_covering_set_covers():
    """Of 60 fits each, at most 27 miss: at a rate of .1 that happens once in 1e11 runs."""
    rng = np.random.default_rng(4)
    for shape, noise in (((1.0, 2.0), None), ((4.0, 8.0), None), ((1.0, 2.0), 3.0)):
        truth = pdp.calibrate(pdp.RateGroup(size=4, beta=shape), pdp.Sum()).scale
        missed = 0
        for _ in range(60):
            totals = drawn(rng, sizes=[4] * 60, shape=shape)
            if noise is None:
                limits = beta_limits(totals, 0.95)
            else:
                ones = sum(n * s / 4 for (_, s), n in totals.items()) + rng.laplace() * noise
                pairs = sum(n * s * (4 - s) / 6 for (_, s), n in totals.items())
                sums = NoisySums(ones, pairs + rng.laplace() * noise, noise, {4: 60})
                limits = noisy_limits(sums, 0.95)
            scales = [
                pdp.calibrate(pdp.RateGroup(size=4, beta=shape_of(*one)), pdp.Sum()).scale
                for one in limits
            ]
            missed += max(scales) < truth
        assert missed <= 27
