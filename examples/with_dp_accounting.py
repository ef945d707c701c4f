"""Keep Google's accountant for plain DP, and see what it does not count when siblings are alike."""

import numpy as np
from dp_accounting import DpEvent, pld
from dp_accounting.dp_event import DiscreteLaplaceDpEvent
from siblings import attack, model, query

import pdp_calibrate as pdp
from pdp_calibrate_integrations import dp_accounting as for_dp_accounting


def plain_dp(event: DpEvent) -> float:
    """Return what the accountant says that a release costs."""
    accountant = pld.PLDAccountant()
    accountant.compose(event)
    return accountant.get_epsilon(target_delta=1e-10)


# Before: whole numbers with noise of scale 1, worth ε = 1 to the accountant.
before = DiscreteLaplaceDpEvent(noise_parameter=1.0, sensitivity=1)

# After: the scale for siblings; the accountant gets what that costs in plain DP.
cal = pdp.calibrate(model, query, epsilon=1.0)  # changed
after = for_dp_accounting.laplace_event(cal)  # changed

noise = np.random.default_rng(seed=7)  # a seed is for examples only
for name, event, scale in (("before", before, 1.0), ("after", after, cal.scale)):  # changed

    def count(family: dict[int, int], scale: float = scale) -> int:
        """Count tall children with the discrete Laplace, a difference of geometric variables."""
        up, down = noise.geometric(-np.expm1(-1 / scale), size=2)
        return sum(family.values()) + int(up - down)

    print(f"{name:<6} the accountant says {plain_dp(event):.2f};", attack(count, scale=scale))
