"""A long comparison of every family with brute force: unsound answers must be 0.

    python -m tests.benchmarks.soak 100000

draws that many models (seeds 0, 1, 2, …), asks for the leakage at a random scale and, for one in
ten, for a calibration, and writes `results/soak.txt`. An answer is unsound if it is below the
truth, loose if it is above by more than 1e-7 of it.
"""

from __future__ import annotations

import math
import multiprocessing
import sys
import time
from collections import Counter

import numpy as np

import pdp_calibrate as pdp
from tests.benchmarks.heading import heading, keep
from tests.support.families import FAMILIES, Family

TOLERANCE = 1e-12  # the oracle's own rounding
LOOSE = 1e-7


def judged(seed: int) -> tuple[str, str, float]:
    """Draw one model, ask, and compare: its family, the verdict, and how far above the truth."""
    name = list(FAMILIES)[seed % len(FAMILIES)]
    try:
        return name, *compared(FAMILIES[name], seed)
    except pdp.PdpError as error:
        return name, f"raised (seed {seed}): {error}", 0.0


def compared(family: Family, seed: int) -> tuple[str, float]:
    """Return the verdict, and how far above the truth the answer is."""
    rng = np.random.default_rng(seed)
    model = family.draw(rng)
    scale = math.exp(rng.uniform(math.log(0.05), math.log(50)))
    if seed // len(FAMILIES) % 10 == 0 and family.truth(model, 1.0) > 0:
        epsilon = math.exp(rng.uniform(math.log(0.05), math.log(5)))
        cal = pdp.calibrate(model, pdp.Sum(), epsilon=epsilon)
        truth, found = family.truth(model, cal.scale), epsilon
        lower = cal.leakage.lower
    else:
        leak = pdp.leakage(model, pdp.Sum(), scale=scale)
        truth, found, lower = family.truth(model, scale), leak.value, leak.lower
    if found < truth * (1 - TOLERANCE) or lower > truth * (1 + 1e-9) + 1e-10:
        return f"unsound (seed {seed})", found / truth - 1
    above = (found - truth) / truth if truth > 1e-3 else 0.0
    return "loose" if family.exact and above > LOOSE else "right", above


def main() -> None:
    """Judge as many models as asked for, on two cores."""
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    begun = time.perf_counter()
    verdicts: Counter[tuple[str, str]] = Counter()
    furthest = dict.fromkeys(FAMILIES, 0.0)
    with multiprocessing.Pool(2) as pool:
        for done, (name, verdict, above) in enumerate(
            pool.imap_unordered(judged, range(number), chunksize=100), start=1
        ):
            verdicts[name, verdict] += 1
            furthest[name] = max(furthest[name], above)
            if done % 10_000 == 0:
                print(done, dict(verdicts), flush=True)
    lines = [
        *heading("soak", "numpy", "scipy", "numba"),
        f"seeds 0 … {number - 1}; {time.perf_counter() - begun:.0f} s",
        "",
        *(
            f"{name:16s} {count:8d} {verdict:10s} furthest above the truth {furthest[name]:.1e}"
            for (name, verdict), count in sorted(verdicts.items())
        ),
        "",
        f"unsound: {sum(n for (_, verdict), n in verdicts.items() if 'unsound' in verdict)}",
    ]
    keep("soak", lines)


if __name__ == "__main__":
    main()
