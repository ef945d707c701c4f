"""How long a CSV file takes whose lines are checked against its header, against pandas alone.

Run `python -m tests.benchmarks.text_files` from the project root. CPU time; the files are cached.
"""

from __future__ import annotations

import csv
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pdp_calibrate.frames.files import Source
from tests.benchmarks.heading import heading, keep

ROWS = 2_000_000
FILES = {
    "no quotes": {},
    "quotes around text": {"quoting": csv.QUOTE_NONNUMERIC},
    "quotes around text, delimiters and newlines inside": {"quoting": csv.QUOTE_NONNUMERIC},
    "inch marks inside fields": {},
}


def people(kind: str) -> pd.DataFrame:
    """Households of four with an income, an age, a city and a yes/no."""
    rng = np.random.default_rng(0)
    cities = ["Oslo", "Bergen", "Voss"]
    if "inside" in kind:
        cities = ['5" pipe', "Bergen", "Voss"] if "inch" in kind else ["Oslo, N", "Ber\ngen", "V"]
    return pd.DataFrame(
        {
            "home": np.arange(ROWS) // 4,
            "income": rng.normal(4e4, 1e4, ROWS).round(2),
            "age": rng.integers(0, 100, ROWS),
            "city": rng.choice(cities, ROWS),
            "sick": rng.random(ROWS) < 0.1,
        }
    )


def seconds(work: Callable[[], Any]) -> float:
    """CPU seconds, best of three."""
    found = []
    for _ in range(3):
        begun = time.process_time()
        work()
        found.append(time.process_time() - begun)
    return min(found)


def main() -> None:
    """Print and store the ratios."""
    lines = [*heading("text_files", "pandas", "numpy"), f"{ROWS} rows, CPU seconds"]
    with tempfile.TemporaryDirectory() as folder:
        for kind, how in FILES.items():
            place = Path(folder) / "people.csv"
            text = people(kind).to_csv(index=False, **how)  # type: ignore[call-overload]
            place.write_text(text.replace('"5"" pipe"', '5" pipe'), encoding="utf-8")
            pandas = seconds(lambda: pd.read_csv(place, low_memory=False))  # noqa: B023
            ours = seconds(Source(file=place).read)
            lines.append(f"{kind:52s}pandas {pandas:.2f}, checked {ours:.2f}: {ours / pandas:.2f}")
    keep("text_files", lines)


if __name__ == "__main__":
    main()
