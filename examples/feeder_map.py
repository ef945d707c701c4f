"""Meters on a feeder map: who is wired next to whom says whose loads are alike.

Simulated: a transformer feeds 12 streets of 50 homes; neighbours along a street are alike, and some
streets meet at their ends, so the map has loops. The operator publishes the load of the whole
feeder and of one street. The map is public; no home's load should be revealed.
"""

import numpy as np
import pandas as pd

import pdp_calibrate as pdp

STREETS, HOMES = 12, 50
along = [
    (f"s{street}h{home}", f"s{street}h{home + 1}")
    for street in range(STREETS)
    for home in range(HOMES - 1)
]
fed = [("transformer", f"s{street}h0") for street in range(STREETS)]
loops = [
    (f"s{street}h{HOMES - 1}", f"s{street + 1}h{HOMES - 1}") for street in range(0, STREETS, 2)
]
lines = pd.DataFrame(along + fed + loops, columns=["from", "to"])
print(len(lines), "lines between", len(set(lines.to_numpy().ravel())), "meters")

# How strongly a line pulls its ends together is an assumption; this is what it costs.
print()
print("strength   exact scale (kW)   of group privacy")
for strength in (0.0, 0.25, 1.0, 4.0):
    feeder = pdp.GaussianNetwork.from_edges(lines, strength=strength, bounds=(0, 6))
    cal = pdp.calibrate(feeder, pdp.Sum(), epsilon=1.0)
    print(f"{strength:<8g}   {cal.scale:12.2f}   {cal.scale / cal.baselines['group']:19.2%}")

feeder = pdp.GaussianNetwork.from_edges(lines, strength=1.0, bounds=(0, 6))
total = pdp.calibrate(feeder, pdp.Sum(clamp=True), epsilon=1.0)
print()
print(pdp.explain(total))

# Simulated loads; the release sees them once, and forgets them.
rng = np.random.default_rng(1)
loads = pd.Series(np.clip(rng.normal(2.0, 0.8, len(feeder.names)), 0, 6), index=feeder.names)
street = pdp.Sum(over=[name for name in feeder.names if str(name).startswith("s3h")], clamp=True)
ledger = pdp.Ledger(feeder, epsilon=2.0)
whole = ledger.release(pdp.Sum(clamp=True), loads, epsilon=1.0)
part = ledger.release(street, loads, epsilon=1.0)
print()
print(f"feeder {whole.value:.0f} kW, street 3 {part.value:.0f} kW")
print(f"the budget: {ledger.spent:.3f} of 2 spent on the two together")
