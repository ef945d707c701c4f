"""Covariances of groups inside groups."""

import itertools

import numpy as np
import pytest

import pdp_calibrate as pdp
from tests.oracles import gaussian as oracle


def random_levels(rng, size):
    outer = rng.integers(0, 3, size)
    return [outer.tolist(), rng.integers(0, 2, size).tolist(), rng.integers(0, 3, size).tolist()]


@pytest.mark.parametrize("seed", range(10))
def test_two_entries_are_correlated_by_the_innermost_group_they_share(seed):
    rng = np.random.default_rng(seed)
    levels = random_levels(rng, 9)
    shares = np.sort(rng.uniform(0, 0.95, 3)).tolist()
    found = pdp.nested_covariance(levels, correlations=shares, variance=4.0)
    for i, j in itertools.product(range(9), repeat=2):
        expected = 0.0
        for level, share in enumerate(shares):
            if all(levels[k][i] == levels[k][j] for k in range(level + 1)):
                expected = share
        assert found[i, j] == pytest.approx(4.0 * (1.0 if i == j else expected))
    assert np.linalg.eigvalsh(found)[0] >= 4.0 * (1 - shares[-1]) * (1 - 1e-9)


def test_it_is_the_covariance_of_a_sum_of_independent_effects():
    levels = [["a", "a", "a", "b"], [1, 1, 2, 1]]
    design = np.zeros((4, 0))
    for groups, part in (([levels[0]], 0.2), (levels, 0.3)):
        keys = list(zip(*groups, strict=True))
        names = sorted(set(keys))
        columns = np.array([[key == name for name in names] for key in keys]) * np.sqrt(part)
        design = np.hstack([design, columns])
    effects = design @ design.T + 0.5 * np.eye(4)
    assert np.allclose(pdp.nested_covariance(levels, correlations=[0.2, 0.5]), effects)


def test_one_level_is_a_gaussian_group():
    covariance = pdp.nested_covariance([[0] * 5], correlations=[0.3])
    model = pdp.Gaussian(covariance=covariance, bounds=(0, 1))
    group = pdp.GaussianGroup(size=5, correlation=0.3, bounds=(0, 1), variance=1.0)
    for clamp in (False, True):
        query = pdp.Sum(clamp=clamp)
        found = pdp.calibrate(model, query, epsilon=1.0).scale
        assert found == pytest.approx(pdp.calibrate(group, query, epsilon=1.0).scale, rel=1e-6)


def test_pupils_in_classes_in_schools():
    levels = [["N"] * 6 + ["S"] * 2, [1, 1, 1, 2, 2, 2, 1, 1]]
    covariance = pdp.nested_covariance(levels, correlations=[0.2, 0.5])
    model = pdp.Gaussian(covariance=covariance, bounds=(0, 1))
    truth = max(oracle.leakages(covariance, np.ones((1, 8)), np.ones(8), [1.0]).values())
    assert truth == pytest.approx(1 + 2 * 0.5 + 3 * 0.2)
    assert pdp.leakage(model, pdp.Sum()).value == pytest.approx(truth, rel=1e-9)
    # More schools, renamed groups and another order change nothing.
    more = [[*levels[0], *["T"] * 4], [*levels[1], 1, 1, 2, 2]]
    order = np.random.default_rng(0).permutation(12)
    renamed = [[f"school {one[k]}" for k in order] for one in more]
    twelve = pdp.Gaussian(
        covariance=pdp.nested_covariance(renamed, correlations=[0.2, 0.5]), bounds=(0, 1)
    )
    assert pdp.leakage(twelve, pdp.Sum()).value == pytest.approx(truth, rel=1e-9)


@pytest.mark.parametrize(
    ("levels", "changes", "message"),
    [
        ([], {}, "at least one"),
        ([[1, 1]], {"correlations": [0.1, 0.2]}, "one number for each"),
        ([[1, 1], [1]], {"correlations": [0.1, 0.2]}, "every entry"),
        ([[]], {}, "every entry"),
        ([[1, 1]], {"correlations": [-0.1]}, "between 0 and below 1"),
        ([[1, 1]], {"correlations": [1.0]}, "between 0 and below 1"),
        ([[1, 1]], {"correlations": [float("nan")]}, "correlations"),
        ([[1, 1], [1, 2]], {"correlations": [0.5, 0.2]}, "never fall"),
        ([[1, None]], {}, "missing"),
        ([[1.0, float("nan")]], {}, "missing"),
        ([[1, 1]], {"variance": 0.0}, "variance"),
    ],
)
def test_what_is_no_nesting_is_refused(levels, changes, message):
    with pytest.raises(pdp.ModelError, match=message):
        pdp.nested_covariance(levels, **({"correlations": [0.3]} | changes))
