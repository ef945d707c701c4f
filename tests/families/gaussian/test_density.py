"""The closed form is the supremum: numerical densities of the released answer."""

import math

import numpy as np
import pytest

import pdp_calibrate as pdp
from tests.oracles import gaussian as oracle
from tests.support.gaussian_draws import draw, joint_search
from tests.support.marks import slow_after


@pytest.mark.parametrize("seed", slow_after(4, range(12)))
def test_the_density_ratio_reaches_the_closed_form_and_never_exceeds_it(seed):
    problem = draw(3000 + seed, smallest=2, largest=5, exponents=0)
    rng = np.random.default_rng(seed)
    covariance, weights = problem.model.covariance, problem.weights
    target = int(rng.integers(len(weights)))
    others = [k for k in range(len(weights)) if k != target]
    known = [k for k in others if rng.random() < 0.5]
    width = float(problem.model.widths[target])
    scale = float(rng.uniform(0.5, 3.0)) * math.sqrt(weights @ covariance @ weights)
    names = problem.model.names
    one = pdp.Adversaries.exactly(names[target], known=[names[k] for k in known])
    leak = pdp.leakage(problem.model, problem.query, scale=scale, adversaries=one)
    far = 12 * math.sqrt(weights @ covariance @ weights) + 5 * scale + 3 * width
    outputs = np.linspace(-far, far, 401)
    log_ratio = [
        np.log(oracle.release_density(covariance, weights, scale, target, known, secret, outputs))
        for secret in (0.0, width)
    ]
    gap = np.abs(log_ratio[0] - log_ratio[1])
    assert gap.max() <= leak.value * (1 + 1e-6) + 1e-7
    assert gap.max() >= leak.value * (1 - 1e-4) - 1e-7
    assert min(gap[0], gap[-1]) == pytest.approx(gap.max(), rel=1e-4, abs=1e-7)  # in both tails


def joint_density(outputs, secret, covariance, first, second, scales):
    """Density of two answers about (x1 = secret, x2 unknown), each with its own noise."""
    slope = covariance[0, 1] / covariance[0, 0]
    spread = math.sqrt(covariance[1, 1] - slope * covariance[0, 1])
    grid = np.linspace(-12, 12, 8001)
    mass = np.exp(-(grid**2) / 2) / math.sqrt(2 * math.pi) * (grid[1] - grid[0])
    other = slope * secret + spread * grid
    total = np.ones((*outputs.shape[:-1], len(grid)))
    for coordinate, (weights, scale) in enumerate(zip((first, second), scales, strict=True)):
        answer = weights[0] * secret + weights[1] * other
        distance = np.abs(outputs[..., coordinate, np.newaxis] - answer)
        total = total * np.exp(-distance / scale) / (2 * scale)
    return total @ mass


@pytest.mark.parametrize("correlation", [-0.6, 0.7])
def test_leakages_of_one_adversary_add_up_over_answers(correlation):
    covariance = np.array([[1.0, correlation], [correlation, 1.5]])
    first, second, scales, width = [1.0, 0.8], [0.5, -1.2], [1.5, 2.5], 1.3
    model = pdp.Gaussian(covariance=covariance, bounds=(0, width))
    found = joint_search(
        model,
        [pdp.Linear(weights=first), pdp.Linear(weights=second)],
        scales,
        adversaries=pdp.Adversaries.exactly("x1"),
    )
    by_hand = sum(
        abs(oracle.coefficient(covariance, np.array(weights), 0, ())[0]) * width / scale
        for weights, scale in zip((first, second), scales, strict=True)
    )
    assert found.upper == pytest.approx(by_hand, rel=1e-9)
    axis = np.concatenate([[-60.0], np.linspace(-8, 8, 15), [60.0]])
    outputs = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1)
    densities = [
        joint_density(outputs, secret, covariance, first, second, scales) for secret in (0.0, width)
    ]
    gap = np.abs(np.log(densities[0]) - np.log(densities[1]))
    assert gap.max() <= by_hand * (1 + 1e-6)
    assert gap.max() == pytest.approx(by_hand, rel=1e-4)
    assert gap[[0, 0, -1, -1], [0, -1, 0, -1]].max() == pytest.approx(by_hand, rel=1e-4)
