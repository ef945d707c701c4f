"""A count by OpenDP keeps ε = 1 for each child, but not when siblings are alike."""

import opendp.prelude as dp
from siblings import attack, model, query, siblings

import pdp_calibrate as pdp
from pdp_calibrate_integrations import opendp as for_opendp

dp.enable_features("contrib", "honest-but-curious")
tall = dp.vector_domain(dp.atom_domain(bounds=(0, 1)), size=5), dp.symmetric_distance()
cal = pdp.calibrate(model, query, epsilon=1.0)  # changed

before = tall >> dp.t.then_sum() >> dp.m.then_laplace(scale=1.0)
after = tall >> dp.t.then_sum() >> for_opendp.then_pdp_laplace(cal)  # changed

for name, count, scale in (("before", before, 1.0), ("after", after, cal.scale)):
    found = attack(
        lambda family, count=count: count(list(family.values())), scale=scale, draws=3000
    )
    print(f"{name:<6} map {count.map(2):.2f},", found)

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
