"""Small groups are searched in NumPy, large ones in compiled code: both say the same."""

import numpy as np
import pytest

import pdp_calibrate as pdp
from pdp_calibrate.core.mixtures import DEFICITS, DENSITIES, LOGS, log_ratio
from pdp_calibrate.families.exchangeable import events, kernels


@pytest.mark.bounds
@pytest.mark.parametrize("form", [DEFICITS, DENSITIES, LOGS])
@pytest.mark.parametrize("seed", range(20))
def test_compiled_events_equal_those_in_numpy(seed, form):
    rng = np.random.default_rng(seed)
    inside, known, own = (int(rng.integers(0, high)) for high in (6, 5, 2))
    weights, ways = rng.random(inside + known + 2), 1.0 + rng.random(inside + 1)
    weights[rng.random(len(weights)) < 0.3 * (seed % 2)] = 0.0
    step = {DEFICITS: 0.05, DENSITIES: 1.5, LOGS: 200.0}[form]
    if form == LOGS:
        with np.errstate(divide="ignore"):
            weights, ways = np.log(weights), np.log(ways)
    plain = events.worst_event(weights, ways, own, known, step, form)
    compiled = kernels.worst_event(weights, ways, own, known, step, form)
    for one, (gain, *where) in zip(plain, compiled, strict=True):
        assert one.gain == pytest.approx(log_ratio(gain, form), rel=1e-14, abs=1e-16)
        if one.gain > 1e-9:
            assert [one.ones, one.point, one.secret] == where


def test_a_rare_count_does_not_cost_the_digits_of_a_tiny_leakage():
    law = np.full(9, 1 / 8)
    law[3] = 1e-200
    leak = pdp.leakage(pdp.BinaryGroup(count_probabilities=law), pdp.Sum(), scale=1e7)
    assert leak.value - leak.lower <= 1e-9 * leak.value
