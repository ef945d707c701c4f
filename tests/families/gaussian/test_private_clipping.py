"""The set of a private wide fit covers what clipping changes, or the fit is refused."""

import numpy as np
import pandas as pd
import pytest
from scipy import integrate, stats

import pdp_calibrate as pdp
from pdp_calibrate.families.gaussian import private_moments

NAMES = ["a", "b", "c"]
TRUTH = np.full((3, 3), 0.4) + 0.6 * np.eye(3)


def ratio(near, far):
    """Return (near bound − E Y)/sd Y for Y = a standard normal variable clipped to both bounds."""

    def expected(power):
        inside, _ = integrate.quad(lambda z: z**power * stats.norm.pdf(z), -far, near)
        return inside + near**power * stats.norm.sf(near) + (-far) ** power * stats.norm.cdf(-far)

    return (near - expected(1)) / np.sqrt(expected(2) - expected(1) ** 2)


@pytest.mark.parametrize("near", [-3.0, -1.0, -0.3, 0.2, 0.6, 1.0])
def test_near_bounds_are_never_taken_for_far_ones(near):
    fars = [abs(near) + step for step in (0.01, 0.1, 0.5, 1.0, 2.0, 6.0)]
    assert max(ratio(near, far) for far in fars) < 1.5
    assert private_moments.distance_of_bounds(1.5) is None


@pytest.mark.parametrize("near", [1.1, 1.5, 2.0, 3.0, 5.0])
def test_the_distance_of_the_bounds_is_a_lower_limit(near):
    for far in (near, near + 0.3, near + 1.0, near + 6.0):
        found = private_moments.distance_of_bounds(ratio(near, far))
        assert found is None or 1 <= found <= near + 1e-6
    assert private_moments.distance_of_bounds(ratio(5.0, 5.0)) > 4.99  # and a tight one


def without_noise(rows, bound):
    """Return the moments of clipped rows as a private fit with a huge budget sees them."""
    return private_moments.private_moments(rows, [(-bound, bound)] * rows.shape[1], epsilon=1e7)


@pytest.mark.parametrize("bound", [1.5, 2.0, 3.0])
def test_what_is_cut_off_is_no_more_than_the_bound_says(bound):
    rng = np.random.default_rng(1)
    for _ in range(20):
        rows = rng.normal(size=(5000, 2))
        cut = private_moments.cut_off(without_noise(rows, bound), 0.05, noise_failure=0.05)
        true = (rows - rows.clip(-bound, bound)).std(axis=0, ddof=1)
        assert true.max() < cut
        assert bound < 2 or cut < 0.6  # a bound worth having


def drawn(rng, rows):
    return rng.normal(size=(rows, 3)) @ np.linalg.cholesky(TRUTH).T


def missed(ball):
    """Whether no multiple of the truth lies in the ball."""
    root = np.linalg.cholesky(np.linalg.inv(TRUTH))
    relative = 1 / np.linalg.eigvalsh(root.T @ ball.center.covariance @ root)
    return (relative.max() - relative.min()) / (relative.max() + relative.min()) > ball.radius


@pytest.mark.parametrize("epsilon", [1.0, 1e7])
def test_bounds_that_cut_off_much_are_refused(epsilon):
    frame = pd.DataFrame(drawn(np.random.default_rng(2), 20_000), columns=NAMES)
    estimator = pdp.GaussianEstimator(bounds=(-0.7, 0.7), epsilon=epsilon)
    with pytest.raises(pdp.ModelError, match="the bounds cut off too much"):
        estimator.fit(frame)


@pytest.mark.parametrize("bound", [2.0, 2.5, 3.0, 5.0])
def test_the_set_covers_the_truth_whatever_was_clipped(bound):
    """Without noise the set is wider than the sample explains, and holds the truth."""
    rng = np.random.default_rng(3)
    estimator = pdp.GaussianEstimator(bounds=(-bound, bound), epsilon=1e7)
    for _ in range(10):
        model = estimator.fit(pd.DataFrame(drawn(rng, 20_000), columns=NAMES)).model_
        assert not missed(model)
        assert model.coverage.kind == "covered"
        assert not model.coverage.notes
    sampled = pdp.LoewnerBall.radius_for(rows=20_000, tuples=3, confidence=0.975)
    assert model.radius > sampled


def test_one_column_beside_its_bound_is_enough_to_be_refused():
    frame = pd.DataFrame(drawn(np.random.default_rng(4), 20_000), columns=NAMES)
    bounds = {"a": (-5, 5), "b": (-5, 5), "c": (0, 10)}  # half of all values of c are below 0
    with pytest.raises(pdp.ModelError, match="the bounds cut off too much"):
        pdp.GaussianEstimator(bounds=bounds, epsilon=1e7).fit(frame)
