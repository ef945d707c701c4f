"""A weekly release with a ledger that grows: this week tells about the next.

A clinic publishes, every week, how many of its patients have a cold. Who has one this week often
has one the next, so a budget that begins anew every week promises less than it says. The ledger
holds one budget about the record of any one week, whatever is released in all the others, for ever.
"""

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

import pdp_calibrate as pdp

weekly = 0.4
verdict = pdp.refresh(epsilon=weekly, every="w", persistence=0.7)
print(f"refreshed: {weekly} a week is up to {verdict.leakage:.3f} about any one week")
print(
    f"(without hints {verdict.temporal:.3f}; counted for a year {verdict.counted_for_a_year:.1f})"
)

patient = pdp.MarkovChain(transition=[[0.7, 0.3], [0.3, 0.7]], length=None)  # 0 well, 1 a cold
kept = pdp.dp_budget(patient, epsilon=weekly)
print(f"to keep {weekly} about any week, spend {kept:.4f} a week, for ever")

rng = np.random.default_rng(46)
weeks = pd.period_range("2026-11-09", periods=12, freq="W-SUN")
sick = rng.random(200) < 0.5
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "budget.json"
    pdp.Ledger(patient, epsilon=weekly, path=path, every="W", promise=0.8 * kept)
    counted = pdp.calibrate(patient, pdp.EachStep(pdp.Sum()), epsilon=0.8 * weekly)
    truth, releases = [], []
    for week in weeks:
        ledger = pdp.Ledger.open(path)  # a new process, as every week
        data = pd.DataFrame({"cold": sick.astype(int)})
        releases.append(counted.release(data, value="cold", ledger=ledger, step=week))
        truth.append(int(sick.sum()))
        sick = np.where(sick, rng.random(200) < 0.7, rng.random(200) < 0.3)
    print(f"{len(releases)} weeks: {ledger.spent:.3f} of {weekly} spent about any week, with what")
    print(f"is promised; a week goes on gaining for {ledger.still_gains()} weeks")

    ledger.charge(0.005, note="partner's tool", step=weeks[-1])
    print(f"a partner's tool of plain ε = 0.005 this week; spent {ledger.spent:.3f}")
    try:
        ledger.release(pdp.Sum(), data, value="cold", epsilon=0.3, step=weeks[3])
    except pdp.BudgetExceededError:
        print("0.3 more about a week of last month does not fit: nothing was released")

    smoothed = releases[0].estimate(releases[1:])
    noisy = np.array([release.value for release in releases])
    error = np.sqrt(np.mean((noisy - truth) ** 2))
    better = np.sqrt(np.mean((smoothed["value"] - truth) ** 2))
    print(f"typical error {error:.1f} as released, {better:.1f} smoothed with the public model")
    print()
    print(pdp.explain(pdp.Ledger.open(path)))
