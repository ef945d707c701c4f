"""What one coupling passes on: a ⊗ b, never below its exact value."""

from __future__ import annotations

import math

import mpmath  # type: ignore[import-untyped]
import numpy as np
import pytest

from pdp_calibrate.core.contraction import contracted, contractions


def _exactly(one, other):
    with mpmath.workdps(60):
        return 4 * mpmath.atanh(mpmath.tanh(mpmath.mpf(one) / 4) * mpmath.tanh(other / 4))


def test_it_is_rounded_up_and_close():
    rng = np.random.default_rng(1)
    ones = 10 ** rng.uniform(-9, 2, 300)
    others = np.where(rng.random(300) < 0.5, ones, 10 ** rng.uniform(-9, 2, 300))
    for one, other, image in zip(ones, others, contractions(ones, others), strict=True):
        truth = _exactly(float(one), mpmath.mpf(float(other)))
        for found in (contracted(float(one), float(other)), image):
            assert truth * (1 - mpmath.mpf(10) ** -18) <= found <= truth * (1 + 2e-14)


@pytest.mark.parametrize(
    ("one", "other", "image"),
    [(math.inf, math.inf, math.inf), (math.inf, 3.0, 3.0), (0.0, math.inf, 0.0), (0.0, 2.0, 0.0)],
)
def test_ends(one, other, image):
    assert contracted(one, other) == contracted(other, one) == image
    assert contractions(np.array([one]), np.array([[other]]))[0, 0] == image


def test_tiny_numbers_do_not_vanish():
    assert 0 < contracted(1e-200, 1e-200) <= 1e-200
    assert 0 < contractions(np.array([1e-320]), np.array([1e-320]))[0] <= 1e-320


def test_it_is_at_most_either():
    for large in (50.0, 1e3, 1e300):
        assert contracted(1.5, large) <= 1.5
        assert contracted(large, large) <= large
        assert contractions(np.array([1.5]), np.array([large]))[0] <= 1.5
