"""What is said of Gaussian noise at every δ, where the question was about one, against oracles.

    python -m tests.benchmarks.every_delta [models]

writes `results/every_delta.txt`. Each model stands alone, as one of two independent blocks, or in
one table or covariance with tuples independent of it. The μ of leakages, calibrations and entries
of a ledger is tested at ten other δ: at the ε that it gives there, no adversary may exceed that δ.
Every μ is also compared with W∞ of a question about every δ, asked of the same engine.
"""

from __future__ import annotations

import sys
import time
from collections import Counter, defaultdict

import pdp_calibrate as pdp
from tests.benchmarks.heading import heading, keep
from tests.support import every_delta as cases

_MODELS, _KEPT_EVERY = 2_000, 50


class Tally:
    """What was claimed, and what was found."""

    def __init__(self) -> None:
        self.started, self.models = time.process_time(), 0
        self.claimed: Counter[str] = Counter()
        self.above: Counter[str] = Counter()
        self.largest: defaultdict[tuple[str, str], float] = defaultdict(float)
        self.below = self.furthest = 0.0

    def add(self, place: int) -> None:
        """Test all claims about one model."""
        name, arrangement, model, query, truths, rng = cases.random_case(place)
        deltas = cases.other_deltas(rng)
        for claim in cases.claims(model, query, rng, ledger=place % 8 == 0):
            excess = cases.excess(claim, truths, deltas)
            self.claimed[claim.said_by] += 1
            self.above[claim.said_by] += excess > 1
            self.largest[name, arrangement] = max(self.largest[name, arrangement], excess)
            if claim.said_by == "leakage":
                asked = pdp.leakage(model, query, scale=claim.scale, noise="gaussian").value
                self.below = max(self.below, 1 - claim.mu / asked if asked else 0.0)
                self.furthest = max(self.furthest, claim.mu / asked - 1 if asked else 0.0)
        self.models += 1

    def lines(self) -> list[str]:
        """Say what was found so far."""
        seconds = time.process_time() - self.started
        lines = heading("every_delta", "pdp-calibrate", "numpy")
        lines += ["", f"{self.models:,} models, {seconds:.0f} s of CPU time", ""]
        lines += ["claims about every delta, each tested at ten delta from 1e-11 to 0.3"]
        lines += [
            f"  {said:32}{self.claimed[said]:7,}   above: {self.above[said]}"
            for said in self.claimed
        ]
        lines += ["", "mu at one delta against the question about every delta, relatively:"]
        lines += [f"  below by at most {self.below:.1e}, above by at most {self.furthest:.1e}", ""]
        lines += ["largest delta attained, in units of the one claimed (1: the claim is attained)"]
        lines += [f"  {'':18}" + "".join(f"{one:>16}" for one in cases.ARRANGEMENTS)]
        for name in (*cases.DISCRETE, *cases.GAUSSIAN):
            row = [f"{self.largest[name, one]:16.6f}" for one in cases.ARRANGEMENTS]
            lines += [f"  {name:18}" + "".join(row)]
        return lines


def main() -> None:
    number = int(sys.argv[1]) if len(sys.argv) > 1 else _MODELS
    tally = Tally()
    for place in range(number):
        tally.add(place)
        if (place + 1) % _KEPT_EVERY == 0 or place + 1 == number:
            keep("every_delta", tally.lines())


if __name__ == "__main__":
    main()
