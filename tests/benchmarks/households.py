"""Noise for households beside OpenDP's for the same unit, and what each release costs whom.

    python -m tests.benchmarks.households > tests/benchmarks/results/households.txt

The unit is a household of eight, all of whose records change: in OpenDP's terms eight rows leave
and eight enter. Its smallest scale is searched through its own maps; ours is `People.calibrate`.
Its count of rows does not know that as many enter as leave, and so needs twice the noise of ours.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import opendp.prelude as dp
import pandas as pd

import pdp_calibrate as pdp

LARGEST, EPSILON, TOP, CITIES = 8, 0.5, 100_000.0, ["Bergen", "Oslo", "Voss"]


def opendp_scale(question: str, epsilon: float, *, members: int, top: float, rows: int) -> float:
    """Return the smallest scale that OpenDP accepts where a household of this size changes."""
    dp.enable_features("contrib")
    metric = dp.symmetric_distance()
    numbers = dp.vector_domain(dp.atom_domain(bounds=(0.0, top), nan=False), size=rows)
    words = dp.vector_domain(dp.atom_domain(T=str))
    counted: dict[str, Any] = {
        "sum": (numbers, metric) >> dp.t.then_sum(),
        "count": (words, metric) >> dp.t.then_count(),
        "histogram": (words, metric)
        >> dp.t.then_count_by_categories(categories=CITIES, null_category=True),
    }
    found: float = dp.binary_search(
        lambda scale: (counted[question] >> dp.m.then_laplace(scale)).map(2 * members) <= epsilon,
        bounds=(1e-3, 1e9),
    )
    return found


def people() -> pdp.People:
    """Households of one to eight."""
    sizes = np.arange(1, LARGEST + 1).repeat(50)
    rng, number = np.random.default_rng(3), int(sizes.sum())
    frame = pd.DataFrame(
        {
            "home": np.arange(len(sizes)).repeat(sizes),
            "income": rng.gamma(4, 9000, number),
            "sick": rng.random(number) < 0.1,
            "city": rng.choice(CITIES, number),
        }
    )
    said: dict[str, Any] = {"bounds": {"income": (0, TOP)}, "domains": {"city": CITIES}}
    return pdp.People(frame, groups="home", epsilon=9.0, **said)


def main() -> None:
    """Print a line for each question."""
    found = people()
    rows = 50 * sum(range(1, LARGEST + 1))
    ask = found.calibrate
    lines = [
        ("sum(income)", "sum", ask.sum("income", epsilon=EPSILON)),
        ("count(sick)", "count", ask.count({"sick": True}, epsilon=EPSILON)),
        ("histogram(city)", "histogram", ask.histogram("city", epsilon=EPSILON)),
    ]
    for high in (0.0, 0.2, 0.4, 0.8):
        price = ask.sum("income", epsilon=EPSILON, correlation=(0, high))
        lines.append((f"sum(income), correlation ≤ {high:g}", "sum", price))
    print(f"households of {LARGEST}, ε = {EPSILON}")
    print(f"{'question':<32}{'OpenDP':>12}{'ours':>12}{'ratio':>8}{'own':>8}{'others':>8}")
    for name, question, price in lines:
        theirs = opendp_scale(question, EPSILON, members=LARGEST, top=TOP, rows=rows)
        numbers = f"{theirs:>12,.0f}{price.scale:>12,.0f}{price.scale / theirs:>8.3f}"
        print(f"{name:<32}{numbers}{price.own:>8.3f}{price.others:>8.3f}")


if __name__ == "__main__":
    main()
