"""A series with a range of correlations: the worst one between the ends, and nothing less."""

import itertools

import numpy as np
import pytest

import pdp_calibrate as pdp
from tests.support.marks import slow_after

ADVERSARIES = [
    pdp.Adversaries.all(),
    pdp.Adversaries.weakest(),
    pdp.Adversaries.strongest(),
    pdp.Adversaries.knowing(at_least=0, at_most=1),
]


def regressed(weights, phi, *, clamped, adversaries):
    """The worst adversary by plain regressions, for one correlation: shares no code with engines.

    For clamped values, the coupling of all unknown ones with their signs (unit ranges and secrets).
    """
    size = len(weights)
    matrix = phi ** np.abs(np.subtract.outer(np.arange(size), np.arange(size)))
    fewest, most = {
        ADVERSARIES[0]: (0, size - 1),
        ADVERSARIES[1]: (0, 0),
        ADVERSARIES[2]: (size - 1, size - 1),
        ADVERSARIES[3]: (0, 1),
    }[adversaries]
    worst = 0.0
    for target in range(size):
        others = [k for k in range(size) if k != target]
        for number in range(fewest, min(most, size - 1) + 1):
            for known in itertools.combinations(others, number):
                given = [target, *known]
                unknown = [k for k in others if k not in known]
                inside = np.linalg.inv(matrix[np.ix_(given, given)])
                moved = (matrix[np.ix_(unknown, given)] @ inside)[:, 0] * weights[unknown]
                own = weights[target]
                if clamped:
                    up = own + np.maximum(moved, 0).sum()
                    down = -own + np.maximum(-moved, 0).sum()
                    worst = max(worst, up, down)
                else:
                    worst = max(worst, abs(own + moved.sum()))
    return worst


def weights_of(kind, size, rng):
    if kind == "equal":
        return np.ones(size)
    if kind == "positive":
        return rng.uniform(0, 2, size=size)
    return rng.normal(size=size) * (rng.random(size) < 0.8) + 1e-3


@pytest.mark.parametrize("seed", slow_after(40, range(300)))
@pytest.mark.parametrize("kind", ["equal", "positive", "mixed"])
def test_the_bound_is_above_every_correlation_in_the_range(seed, kind):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 6))
    low, high = np.sort(rng.uniform(-0.95, 0.95, size=2))
    if seed % 3 == 0:
        low, high = np.sort(np.abs([low, high]))
    weights, clamped = weights_of(kind, size, rng), bool(rng.integers(2))
    adversaries = ADVERSARIES[seed % 4]
    model = pdp.GaussianSeries(length=size, correlation=(low, high), bounds=(0, 1))
    query = pdp.Linear(weights=weights.tolist(), clamp=clamped)
    found = pdp.leakage(model, query, scale=1.0, adversaries=adversaries)
    truth = max(
        regressed(weights, phi, clamped=clamped, adversaries=adversaries)
        for phi in np.linspace(low, high, 41)
    )
    assert found.value >= truth * (1 - 1e-12)
    assert found.lower <= truth * (1 + 1e-3)  # the worst correlation may lie between grid points
    if clamped or (low >= 0 and kind != "mixed"):
        assert found.exact
        assert found.value == pytest.approx(truth, rel=1e-9)
    gaussian = pdp.leakage(model, query, scale=1.0, adversaries=adversaries, noise="gaussian",
                           delta=1e-6, )  # fmt: skip
    assert gaussian.mu >= truth * (1 - 1e-9)  # without the data's own noise


def test_of_equal_weights_negative_correlations_move_no_more_than_the_secret():
    for low in (-0.3, -0.95):
        model = pdp.GaussianSeries(length=7, correlation=(low, 0.0), bounds=(0, 1))
        assert pdp.leakage(model, pdp.Sum(), scale=1.0).value == pytest.approx(1.0, rel=1e-9)
        clamped = pdp.leakage(model, pdp.Sum(clamp=True), scale=1.0).value
        alone = pdp.GaussianSeries(length=7, correlation=low, bounds=(0, 1))
        assert clamped == pdp.leakage(alone, pdp.Sum(clamp=True), scale=1.0).value


def test_one_number_and_an_interval_of_no_width_are_the_same_model():
    one = pdp.GaussianSeries(length=5, correlation=0.4, bounds=(0, 1))
    assert pdp.GaussianSeries(length=5, correlation=(0.4, 0.4), bounds=(0, 1)) == one
    wide = pdp.GaussianSeries(length=5, correlation=(0, 0.4), bounds=(0, 1))
    assert wide != one
    assert type(wide).from_dict(wide.to_dict()) == wide
    assert not pdp.GaussianSeries(length=5, correlation=(-0.1, 0.4), bounds=(0, 1)).covers_subsets
    with pytest.raises(pdp.ModelError, match="between -1 and 1"):
        pdp.GaussianSeries(length=5, correlation=(0, 1), bounds=(0, 1))
    with pytest.raises(pdp.ModelError, match="lower end"):
        pdp.GaussianSeries(length=5, correlation=(0.4, 0), bounds=(0, 1))


@pytest.mark.parametrize("noise", [{}, {"noise": "gaussian", "delta": 1e-6}])
def test_without_an_end_the_largest_size_counts(noise):
    def leak(correlation):
        model = pdp.GaussianSeries(
            length=None, correlation=correlation, bounds=(0, 1), variance=1.0
        )
        query = pdp.EachStep(pdp.Sum(clamp=True))
        return pdp.leakage(model, query, scale=9.0, **noise).value

    assert leak((-0.7, 0.4)) == pytest.approx(leak(0.7), rel=1e-9)
    assert leak((0.1, 0.7)) == pytest.approx(leak(0.7), rel=1e-9)
