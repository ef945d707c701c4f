"""A count by IBM's diffprivlib keeps ε = 1 for each child, but not when siblings are alike."""

import diffprivlib
from siblings import attack, model, query, siblings

import pdp_calibrate as pdp
from pdp_calibrate_integrations import diffprivlib as for_diffprivlib


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
    print(f"{name:<6}", attack(count, scale=scale))

# Tools that only take an ε get a smaller one; their accountant and our ledger write it down.
accountant, ledger = diffprivlib.BudgetAccountant(), pdp.Ledger(model, epsilon=1.0)
mean = for_diffprivlib.with_budget(diffprivlib.tools.mean, model=model, epsilon=1.0, ledger=ledger)
share = mean(siblings["tall"].to_numpy(), bounds=(0, 1), accountant=accountant)
print(f"share of tall children: {share:.2f}, plain-DP budget {accountant.total()[0]:.2f}", end="")
print(f", leakage of all siblings {ledger.spent:.2f}")
