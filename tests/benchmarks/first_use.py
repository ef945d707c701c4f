"""What the first minute costs: fresh processes with no compiled code, against ``import pandas``.

Run by hand: ``python -m tests.benchmarks.first_use``. CPU time, children included, the best of a
few interleaved rounds: wall time, and the mean, tell more about what else runs on a machine. Every
process has an empty cache of compiled code (NUMBA_CACHE_DIR). OpenDP's own import is measured
apart, and taken off what commands that draw noise cost.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from tests.benchmarks.heading import heading

ROUNDS = 3
PANDAS, OPENDP = "import pandas", "import opendp (as a release does)"
BARE = {
    PANDAS: ["-c", "import pandas"],
    OPENDP: ["-c", "import pandas\nfrom opendp.measurements import make_laplace"],
}
IMPORT = "import pdp_calibrate"
_CALIBRATE = "import numpy as np, pdp_calibrate as pdp\npdp.calibrate({model}, {query})"
MODELS = {
    "a table of 4 columns": (
        "pdp.JointTable(probabilities=np.arange(16).reshape([2] * 4) / 120, domains=[[0, 1]] * 4)",
        "pdp.Sum()",
    ),
    "a household": (
        "pdp.GaussianGroup(size=4, correlation=(0, 0.4), bounds=(0, 100))",
        "pdp.Sum(clamp=True)",
    ),
    "a chain of 100": (
        "pdp.MarkovChain(transition=[[0.9, 0.1], [0.2, 0.8]], length=100)",
        "pdp.Sum()",
    ),
    "a Gaussian of 10": (
        "pdp.Gaussian(covariance=0.5 + np.diag(np.arange(10) + 1.0), bounds=(0, 1))",
        "pdp.Sum()",
    ),
    "a group of 8": (
        "pdp.BinaryGroup(count_probabilities=np.linspace(1, 2, 9) / 13.5)",
        "pdp.Sum()",
    ),
}
ROWS = 20_000
GROUPED = ["--groups", "household", "--bounds", "income=0:100000"]
STATED = [*GROUPED, "--correlation", "0:0.4"]
COMMANDS = {
    "release, a mean with a correlation": ["release", "-q", "mean(income)", "-e", "1", *STATED],
    "release, a count": ["release", "-q", "count()", "--where", "sick=true", "-e", "1",
                         *GROUPED[:2]],
    "calibrate": ["calibrate", "-q", "mean(income)", "-e", "1", *STATED],
    "leakage": ["leakage", "-q", "mean(income)", "--scale", "1000", *STATED],
    "fit, groups of public rows": ["fit", "--kind", "groups", "--value", "income", *GROUPED,
                                   "--public"],
}  # fmt: skip
DRAWS_NOISE = ("release, a mean with a correlation", "release, a count")


def cpu_seconds(words: list[str], folder: Path) -> float:
    """Run Python with an empty cache of compiled code; return the CPU time it took."""
    with tempfile.TemporaryDirectory(dir=folder) as cache:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(  # noqa: S603
            [sys.executable, *words],
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | {"NUMBA_CACHE_DIR": cache},
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(f"{words} failed:\n{done.stderr}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def cases(folder: Path) -> dict[str, tuple[list[str], float | None]]:
    """Return what is run, and what it may cost, in CPU seconds."""
    rng = np.random.default_rng(0)
    people = folder / "people.csv"
    pd.DataFrame(
        {
            "household": np.sort(rng.integers(0, 8000, ROWS)),
            "income": rng.uniform(0, 100_000, ROWS).round(2),
            "sick": rng.random(ROWS) < 0.1,
        }
    ).to_csv(people, index=False)
    command = ["-c", "from pdp_calibrate.cli.main import main; main()"]
    found: dict[str, tuple[list[str], float | None]] = {
        name: (one, None) for name, one in BARE.items()
    }
    found[IMPORT] = (["-c", "import pdp_calibrate"], None)
    for name, (model, query) in MODELS.items():
        written = _CALIBRATE.format(model=model, query=query)
        found[f"calibrate {name}"] = (["-c", written], 2.5)
    found["pdp-calibrate demo"] = ([*command, "demo"], 5.0)
    for name, (verb, *rest) in COMMANDS.items():
        found[f"pdp-calibrate {name}"] = ([*command, verb, str(people), *rest], 3.0)
    return found


def main() -> None:
    """Measure and print."""
    print("\n".join(heading("first_use", "numpy", "pandas", "numba", "opendp")))
    print(f"CPU seconds of fresh processes, no compiled code; the best of {ROUNDS} rounds")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        asked = cases(folder)
        for words, _ in asked.values():
            cpu_seconds(words, folder)  # files into memory, bytecode onto the disk
        times = {
            name: min(cpu_seconds(words, folder) for _ in range(ROUNDS))
            for name, (words, _) in asked.items()
        }
    noise = max(0.0, times[OPENDP] - times[PANDAS])
    for name, (_, limit) in asked.items():
        line = f"{name:52} {times[name]:6.2f}   {times[name] / times[PANDAS]:6.2f} x import pandas"
        if name == IMPORT:
            line += (
                f"   wanted <= 1.5 x: {'kept' if times[name] <= 1.5 * times[PANDAS] else 'MISSED'}"
            )
        elif limit is not None:
            apart = noise if name.removeprefix("pdp-calibrate ") in DRAWS_NOISE else 0.0
            kept = "kept" if times[name] - apart <= limit else "MISSED"
            line += f"   wanted <= {limit} s: {kept}" + (
                " (OpenDP's import apart)" if apart else ""
            )
        print(line)


if __name__ == "__main__":
    main()
