"""How fast small tables are calibrated, warm, beside another checkout of the library.

    git worktree add /tmp/old da6183d
    python -m tests.benchmarks.small_tables /tmp/old

Both run in processes of their own, one after the other for every model, compilation warm; CPU time,
the best of five. The last line is the geometric mean of the ratios.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np

ROUNDS = 5
WANTED = 2.0
SHAPES = {
    "2 × 2": (2, 2),
    "2 × 3": (2, 3),
    "3 binary": (2, 2, 2),
    "4 binary": (2, 2, 2, 2),
    "5 binary": (2,) * 5,
    "6 binary": (2,) * 6,
    "3 of three values": (3, 3, 3),
}
QUERIES = ("Sum()", "Mean()", "Histogram()")
MEASURE = """
import json, sys, time
import numpy as np
import pdp_calibrate as pdp
for line in sys.stdin:
    shape, query, seed = json.loads(line)
    cells = np.random.default_rng(seed).dirichlet(np.ones(int(np.prod(shape)))).reshape(shape)
    table = pdp.JointTable(probabilities=cells, domains=[list(range(size)) for size in shape])
    query = getattr(pdp, query.removesuffix("()"))()
    seconds = []
    for _ in range(1 + ROUNDS):
        begun = time.process_time()
        scale = pdp.calibrate(table, query, epsilon=1.0).scale
        seconds.append(time.process_time() - begun)
    print(json.dumps([min(seconds[1:]), scale]), flush=True)
"""


class Library:
    """A checkout of the library in a process of its own."""

    def __init__(self, folder: str) -> None:
        code = f"import sys; sys.path.insert(0, {folder!r})\nROUNDS = {ROUNDS}\n{MEASURE}"
        self._process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def calibrate(self, shape: tuple[int, ...], query: str) -> tuple[float, float]:
        """Return the CPU seconds of one calibration, and its scale."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([shape, query, 0]) + "\n")
        self._process.stdin.flush()
        seconds, scale = json.loads(self._process.stdout.readline())
        return seconds, scale

    def close(self) -> None:
        """Let the process end."""
        self._process.communicate()


def main() -> None:
    """Print one line per model and query."""
    ours, other = Library(str(Path(__file__).parents[2])), Library(sys.argv[1])
    ratios = []
    for name, shape in SHAPES.items():
        for query in QUERIES:
            (now, scale), (before, same) = (
                ours.calibrate(shape, query),
                other.calibrate(shape, query),
            )
            assert abs(scale - same) <= 1e-9 * same, (name, query, scale, same)
            ratios.append(before / now)
            print(
                f"{name:18s} {query:12s} scale {scale:8.4f}  before {1e3 * before:7.2f} ms"
                f"  now {1e3 * now:7.2f} ms  {ratios[-1]:5.2f} times as fast",
                flush=True,
            )
    ours.close()
    other.close()
    mean = float(np.exp(np.mean(np.log(ratios))))
    print(f"geometric mean of {len(ratios)}: {mean:.2f} times as fast (wanted {WANTED:g})")


if __name__ == "__main__":
    main()
