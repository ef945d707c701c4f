"""A survey of 20,000 people in 8,000 households: three columns, per city, one budget, a report.

The same from the shell, with the table in people.csv:

    pdp-calibrate people create budget.json people.csv --groups household -e 2 \
        --bounds income=0:100000 --domain city=Bergen,Oslo,Voss --max-group-size 8
    pdp-calibrate people price budget.json people.csv -q "mean(income)" -e 0.4 --correlation 0:0.4
    pdp-calibrate people release budget.json people.csv -q "mean(income)" -e 0.4 --correlation 0:0.4
    pdp-calibrate people release budget.json people.csv -q "count(sick=true)" -e 0.4 \
        --by city --missing zero
    pdp-calibrate people release budget.json people.csv -q "histogram(city)" -e 0.3 \
        --missing city=category --report people.html
"""

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

import pdp_calibrate as pdp


def survey(*, households: int = 8000, people: int = 20_000) -> pd.DataFrame:
    """Make up people: members of a household earn alike, live together and fall ill together."""
    rng = np.random.default_rng(8)
    home = np.concatenate([np.arange(households), rng.integers(0, households, 3 * people)])
    place = pd.Series(home).groupby(home).cumcount()
    home = np.sort(home[place < 8][:people])  # nobody lives with more than seven others
    wealth, ill = rng.normal(0, 0.5, households), rng.random(households) < 0.08
    cities = rng.choice(["Bergen", "Oslo", "Voss"], households, p=[0.3, 0.6, 0.1])
    frame = pd.DataFrame({"household": home, "city": cities[home]})
    frame["income"] = np.exp(10.3 + wealth[home] + rng.normal(0, 0.6, people)).round(2)
    frame["sick"] = pd.array(ill[home] & (rng.random(people) < 0.7), dtype="boolean")
    frame["born"] = pd.Timestamp("1940-01-01") + pd.to_timedelta(
        rng.integers(0, 30_000, people), "D"
    )
    for column in ("city", "sick"):
        frame.loc[rng.random(people) < 0.03, column] = None
    return frame


frame, folder = survey(), Path(tempfile.mkdtemp())

people = pdp.People(
    frame,
    groups="household",
    bounds={"income": (0, 100_000)},
    domains={"city": ["Bergen", "Oslo", "Voss"]},
    max_group_size=8,
    epsilon=2.0,
    ledger=folder / "budget.json",
)
print(people.calibrate.mean("income", epsilon=0.4, correlation=(0, 0.4)))
income = people.mean("income", epsilon=0.4, correlation=(0, 0.4))
sick = people.count({"sick": True}, by="city", missing="zero", epsilon=0.4)
cities = people.histogram("city", missing={"city": "category"}, epsilon=0.3)
page = people.report(folder / "people.html")

print(f"\nMean income {income.value:,.0f} (±{income.half_widths()[0]:,.0f} in 95 % of releases)")
print(pd.DataFrame({"people": cities.value, "sick": sick.value}).rename(index={None: "not known"}))
print("Spent by column:", {name: round(spent, 3) for name, spent in people.spent_by_column.items()})
try:
    people.histogram("sick", missing={"sick": "category"}, epsilon=1.0)
except pdp.BudgetExceededError as refusal:
    print("Refused:", refusal)
