"""Four yearly answers of one child are correlated: how much noise a count of them needs.

The table is the Ohio children's wheeze study (Fitzmaurice and Laird 1993), 537 children, ages 7 to
10. An earlier, published table plays the public data that the correlation is learned from.
"""

import pdp_calibrate as pdp
from pdp_calibrate.cli.ohio import wheeze

children = wheeze()
model = children.pdp.fit(pdp.TableEstimator(source="public")).model_
print("correlation of the last two years:", round(model.correlation("age 9", "age 10"), 2))

cal = children.pdp.calibrate(pdp.Count(values={1}), model=model, epsilon=1.0)
print()
print(pdp.explain(cal))

ledger = pdp.Ledger(model, epsilon=2.0)  # counts both answers below together
release = children.pdp.release(cal, ledger=ledger)
print()
print("released:", release.value, "with 95 % interval", release.interval())

share = children.pdp.mean("age 10", model=model, epsilon=1.0, ledger=ledger)
print("share of ten-year-olds who wheeze:", round(share.value, 3))
print(f"both together leak {ledger.spent:.2f}")

print()
print("ε      scale   ±95 %")
for epsilon in (0.2, 0.5, 1.0, 2.0, 5.0):
    cal = children.pdp.calibrate(pdp.Count(values={1}), model=model, epsilon=epsilon)
    print(f"{epsilon:<5}  {cal.scale:6.2f}  {cal.accuracy():5.0f}")
