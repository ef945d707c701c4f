"""Smart meters on one feeder: neighbours share the weather, so their loads rise together.

Simulated: 40 feeders of up to 12 homes, half-hourly load in kW. The grid operator publishes the
load of the region; no household's load should be revealed. All that is known is that homes on a
feeder are correlated by at most 0.3, and that feeders are independent once the weather is public.
"""

import numpy as np
import pandas as pd

import pdp_calibrate as pdp

rng = np.random.default_rng(2024)
homes = []
for feeder in range(40):
    shared = rng.normal()
    for home in range(int(rng.integers(8, 13))):
        load = 2.0 + 0.8 * (np.sqrt(0.3) * shared + np.sqrt(0.7) * rng.normal())
        homes.append({"feeder": feeder, "home": home, "load": float(np.clip(load, 0, 6))})
meters = pd.DataFrame(homes)
print(len(meters), "homes on", meters["feeder"].nunique(), "feeders")

options = {"bounds": (0, 6), "groups": "feeder", "epsilon": 1.0}
print()
print("assumption                     scale (kW)   95 % of the noise")
for words, assumption in (
    ("independent homes", {"correlation": 0.0}),
    ("one correlation, 0 to 0.3", {"correlation": (0, 0.3)}),
    ("any dependence (group)", {}),
):
    cal = meters.pdp.calibrate("sum(load)", **options, **assumption)
    print(f"{words:<30} {cal.scale:8.1f}     ±{cal.accuracy():.0f} kW")

# How the price of caution grows with the assumption.
print()
print("correlation  scale")
for rho in (0.0, 0.1, 0.2, 0.3, 0.5):
    model = pdp.GaussianGroup(size=12, correlation=(0, rho), bounds=(0, 6))
    print(f"{rho:<11}  {pdp.calibrate(model, pdp.Sum(clamp=True), epsilon=1.0).scale:6.1f}")

release = meters.pdp.sum("load", **options, correlation=(0, 0.3))
low, high = release.interval()
print()
print(f"published load: {release.value:.0f} kW (95 %: {low:.0f} to {high:.0f})")
