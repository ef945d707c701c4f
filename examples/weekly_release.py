"""A weekly release with a ledger: leakages of correlated people do not add up.

A clinic publishes, every week, how many of its couples have a cold. The same couples are counted
again for a newspaper, and a partner runs a DP tool of their own on the data. One budget holds for
each week; the ledger says what everything together leaks and refuses what would pass it.
"""

import tempfile
from pathlib import Path

import pandas as pd

import pdp_calibrate as pdp

couple = pdp.JointTable(
    probabilities=[[0.75, 0.05], [0.05, 0.15]], domains=[[0, 1]] * 2, names=["one", "other"]
)
colds = pdp.Count(values={1})
weeks = {
    "week 46": pd.DataFrame({"one": [0, 1, 1, 0] * 25, "other": [0, 1, 0, 0] * 25}),
    "week 47": pd.DataFrame({"one": [1, 1, 0, 0] * 25, "other": [1, 1, 0, 1] * 25}),
}

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "budget.json"
    pdp.Ledger(couple, epsilon=1.0, path=path, draw="week 46")

    for week, answers in weeks.items():
        ledger = pdp.Ledger.open(path)  # a new process, as every week
        if ledger.draw != week:
            ledger.new_draw(week)  # new couples' answers, independent of last week's
        first = ledger.release(colds, answers, epsilon=0.4)
        print(f"{week}: about {first.value} colds; spent {ledger.spent:.3f}")

        second = ledger.release(colds, answers, epsilon=0.4)
        print(f"  once more for the newspaper: {second.value}; spent {ledger.spent:.3f}")
        print(f"  (adding up would have said 0.800; {ledger.history[-1].method} bound)")

        ledger.charge(0.05, note="partner's tool")
        print(f"  a partner's tool of plain ε = 0.05; spent {ledger.spent:.3f}")
        try:
            ledger.release(colds, answers, epsilon=0.4)
        except pdp.BudgetExceededError:
            rest = ledger.release(colds, answers, epsilon=None)
            print(f"  0.4 more does not fit; the most that does: {rest.value} at scale", end=" ")
            print(f"{rest.calibration.scale:.1f}; spent {ledger.spent:.3f}")

    print()
    print(pdp.explain(pdp.Ledger.open(path)))
