"""The stand-alone checker beside the engines, on random calibrations of every family it covers.

    python -m tests.benchmarks.check 2000

calibrates that many random models, asks the checker about each file and about the same file with
1e-5 less noise, and writes `results/check.txt`. A file that was calibrated must never be called
broken; one with less noise must never be proved where the engine is exact and reaches ε.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np

from pdp_calibrate.check import BROKEN, PROVED, check
from tests.benchmarks.heading import heading
from tests.support.check_cases import calibration, shrunk

WORDS = ("proved", "broken", "undecided")


def main() -> None:
    """Compare as many calibrations as asked for."""
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    rng = np.random.default_rng(0)
    tally: Counter[str] = Counter()
    spent, wrong, count = 0.0, [], 0
    begun = time.process_time()
    while count < wanted:
        found = calibration(rng)
        if found is None:
            continue
        count += 1
        described = json.loads(found.to_json())
        start = time.process_time()
        code, _ = check(described)
        spent = max(spent, time.process_time() - start)
        less, _ = check(shrunk(described))
        tight = found.leakage.exact and found.leakage.lower > found.epsilon * (1 - 1e-7)
        exact = "exact" if tight else "bound"
        kind = f"{type(found.model).__name__}, {found.noise}, {exact}"
        tally[f"{kind:36} {WORDS[code]:10} with less noise {WORDS[less]}"] += 1
        if code == BROKEN or (tight and less == PROVED):
            wrong.append(json.dumps(described))
    lines = [
        *heading("check", "numpy"),
        f"{count} calibrations, {time.process_time() - begun:.0f} CPU s, check <= {spent:.2f} s",
        "",
        f"disagreements: {len(wrong)}",
        *wrong[:5],
        *(f"{number:5} {line}" for line, number in sorted(tally.items())),
    ]
    text = "\n".join(lines) + "\n"
    (Path(__file__).parent / "results" / "check.txt").write_text(text)
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
