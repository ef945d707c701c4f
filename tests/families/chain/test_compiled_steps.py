"""Small chains are walked in NumPy, large ones in compiled code: both say the same."""

import numpy as np
import pytest

import pdp_calibrate as pdp
from pdp_calibrate.core.mixtures import DEFICITS, DENSITIES, LOGS
from pdp_calibrate.families.chain import kernels, windows


def random_noise(rng, form, points):
    step = rng.uniform(0.001, 0.02) if form == DEFICITS else rng.uniform(0.1, 3)
    gaps = np.arange(points + 1) * step
    lack = -np.expm1(-gaps) if form == DEFICITS else np.zeros(points + 1)
    return windows.Noise(step, -gaps if form == LOGS else np.exp(-gaps), lack, form)


@pytest.mark.bounds
@pytest.mark.parametrize("form", [DEFICITS, DENSITIES, LOGS])
@pytest.mark.parametrize("seed", range(8))
def test_compiled_steps_equal_those_in_numpy(seed, form):
    rng = np.random.default_rng(seed)
    states, sides, size = int(rng.integers(2, 5)), int(rng.integers(1, 4)), int(rng.integers(1, 9))
    masses = rng.dirichlet(np.ones(states), size=(states, sides)).transpose(0, 2, 1).copy()
    if seed % 2:
        masses[0, 0, 0] = 0.0  # an impossible secret
    densities = masses[..., np.newaxis] * rng.uniform(0.1, 0.9, (states, states, sides, size))
    matrix, points = rng.dirichlet(np.ones(states), size=states), rng.integers(0, 4, states)
    if seed % 3 == 0:
        matrix[0] = np.eye(states)[1]
    if form == LOGS:
        with np.errstate(divide="ignore"):
            densities, masses, matrix = np.log(densities), np.log(masses), np.log(matrix)
    noise = random_noise(rng, form, 8)
    plain = windows.advance(densities, masses, points, matrix, noise)
    compiled = kernels.advance(
        densities.reshape(states, -1, size), masses.reshape(states, -1), points, matrix, *noise
    )
    for one, other in zip(plain, compiled, strict=True):
        np.testing.assert_allclose(other.reshape(one.shape), one, rtol=4e-15)
    for one, other in zip(
        windows.compare(densities, masses, form),
        kernels.compare_densities(densities, masses, form),
        strict=True,
    ):
        np.testing.assert_allclose(other, one, rtol=4e-15, atol=1e-16)


@pytest.mark.parametrize("length", [15, 230])
@pytest.mark.parametrize("seed", range(4))
def test_whole_searches_agree(seed, length, monkeypatch):
    rng = np.random.default_rng(seed)
    states = int(rng.integers(2, 4))
    chain = pdp.MarkovChain(
        transition=rng.dirichlet(np.ones(states), size=states), length=length, states=range(states)
    )
    who = [pdp.Adversaries.all(), pdp.Adversaries.weakest()][seed % 2]
    for scale in (0.05, 1.0, 300.0):
        found = []
        for most in (np.inf, 0.0):
            monkeypatch.setattr(windows, "COMPILED_CHAIN_STEPS", most)
            found.append(pdp.leakage(chain, pdp.Sum(), scale=scale, adversaries=who))
        plain, compiled = found
        assert plain.value == pytest.approx(compiled.value, rel=1e-14)
        assert plain.lower == pytest.approx(compiled.lower, rel=1e-14)
