"""An in-house count that only takes an ε, as SmartNoise and Tumult do, kept for siblings."""

import numpy as np
from siblings import attack, model, siblings

import pdp_calibrate as pdp
from pdp_calibrate_integrations.wrapping import wrap

noise = np.random.default_rng(seed=7)  # a seed is for examples only
ledger = pdp.Ledger(model, epsilon=1.0)  # changed


def before(values: list[int], epsilon: float = 1.0) -> int:
    """Count ones: ε-DP for replacing a value, by a difference of geometric variables."""
    up, down = noise.geometric(-np.expm1(-epsilon), size=2)
    return sum(values) + int(up - down)


after = wrap(before, model=model, epsilon=1.0, neighbours="substitution")  # changed

for name, count, scale in (("before", before, 1.0), ("after", after, 1 / after.dp_epsilon)):
    found = attack(lambda family, count=count: count(list(family.values())), scale=scale)
    print(f"{name:<6}", found)

# With a ledger, a call is written down before it is made, and a second one is refused.
charged = wrap(before, model=model, epsilon=1.0, neighbours="substitution", ledger=ledger)
print(f"tall children: about {charged(siblings['tall'].to_list())}; spent {ledger.spent:.2f} of 1")
try:
    charged(siblings["tall"].to_list())
except pdp.BudgetExceededError as refusal:
    print("again:", str(refusal).split(";")[0])
