"""How much of what its event could show an attack proves, over every family.

    python -m tests.benchmarks.audits

writes `results/audits.txt`: for each calibrated release of the tests (ε = 1) the proved lower bound
(99 %), the true log-ratio of the event that the attack chose, from 300,000 fresh outputs under each
secret, and their quotient; at least 0.8 is asked for where the event shows anything.
"""

from __future__ import annotations

import math
import time
from pathlib import Path

import numpy as np

import pdp_calibrate as pdp
from tests.auditing.test_auditing import CASES, chance_of_event


def main() -> None:
    """Attack every case and write the results."""
    rng = np.random.default_rng(5)
    lines = [
        "python -m tests.benchmarks.audits",
        f"{time.strftime('%Y-%m-%d')}, 100,000 draws each, confidence 0.99, epsilon 1",
        "",
        f"{'release':40s}{'proved':>8s}{'event':>8s}{'reached':>9s}",
    ]
    for name, (model, query, options) in CASES.items():
        cal = pdp.calibrate(model, query, epsilon=1.0, **options)
        audit = pdp.audit(cal, draws=100_000, seed=1)
        chances = [chance_of_event(cal, audit, secret, rng) for secret in audit.secrets]
        event = math.log(chances[0] / chances[1])
        reached = audit.lower_bound / event if event > 0 else math.nan
        lines.append(f"{name:40s}{audit.lower_bound:8.3f}{event:8.3f}{reached:9.2f}")
        print(lines[-1], flush=True)
    path = Path(__file__).parent / "results" / "audits.txt"
    path.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
