"""A sum by PyDP, Google's building blocks, and what it needs when siblings are alike."""

from pydp.algorithms.laplacian import BoundedMean
from pydp.algorithms.numerical_mechanisms import LaplaceMechanism
from siblings import attack, model, query, siblings

import pdp_calibrate as pdp
from pdp_calibrate_integrations import pydp as for_pydp

plain = LaplaceMechanism(epsilon=1.0, sensitivity=1.0)
cal = pdp.calibrate(model, query, epsilon=1.0)  # changed
calibrated = for_pydp.laplace(cal)  # changed


def before(family: dict[int, int]) -> int:
    """Count the tall children of a family with plain DP."""
    return plain.add_noise(sum(family.values()))


def after(family: dict[int, int]) -> int:
    """Count them with noise for siblings."""
    return calibrated.add_noise(sum(family.values()))  # changed


for name, count, scale in (("before", before, 1.0), ("after", after, cal.scale)):
    print(f"{name:<6}", attack(count, scale=scale))

# All families at once: a bounded sum with exactly this noise, and a mean within a smaller budget.
everyone = siblings["tall"].to_list()
print("tall children: about", for_pydp.bounded_sum(cal).quick_result(everyone), "of", len(everyone))
mean = for_pydp.with_budget(BoundedMean, model=model, epsilon=1.0)
share = mean(lower_bound=0.0, upper_bound=1.0, dtype="float")
print(f"their share: {share.quick_result([float(one) for one in everyone]):.2f}", end="")
print(f", made with a plain-DP budget of {mean.dp_epsilon:.2f}")
