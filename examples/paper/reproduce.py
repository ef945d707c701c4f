"""The paper's examples and simulations, run again, each claim judged.

    python examples/paper/reproduce.py            # everything, several minutes
    python examples/paper/reproduce.py --quick    # small sizes, into a temporary folder

writes tables (CSV), Figures 4 and 5 (PNG) and `claims.md` into `examples/paper/results`.
"""

from __future__ import annotations

import argparse
import platform
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

from claims import claims
from drawings import draw_figure_4, draw_figure_5
from simulations import examples, figure_4, figure_5, too_low


def main() -> None:
    """Run everything and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, nothing kept")
    quick = parser.parse_args().quick
    folder = Path(tempfile.mkdtemp()) if quick else Path(__file__).parent / "results"
    folder.mkdir(exist_ok=True)
    size, repetitions = (8, 5) if quick else (15, 30)
    begun = time.perf_counter()

    printed = examples()
    print(printed.to_string(index=False, float_format="{:.4f}".format))
    by_layer = figure_4(size, repetitions if quick else 10)
    by_search = figure_5(size, repetitions)
    found = claims(by_layer, by_search, too_low(50 if quick else 1000))

    printed.to_csv(folder / "examples.csv", index=False, float_format="%.6f")
    by_layer.to_csv(folder / "figure4.csv", index=False, float_format="%.6g")
    summary = by_search.groupby(["search", "tuples", "correlation"], dropna=False)
    summary = summary.agg(
        mean=("leakage", "mean"),
        variance=("leakage", "var"),
        cpu_seconds=("seconds", "mean"),
        runs=("leakage", "size"),
    )
    summary.to_csv(folder / "figure5.csv", float_format="%.6g")
    draw_figure_4(by_layer, folder / "figure4.png")
    draw_figure_5(by_search, folder / "figure5.png")

    names = ("numpy", "scipy", "numba", "matplotlib")
    versions = ", ".join(f"{name} {version(name)}" for name in names)
    made_by = (
        f"`python examples/paper/reproduce.py`, {time.strftime('%Y-%m-%d')},"
        f" Python {platform.python_version()}, {versions}; {time.perf_counter() - begun:.0f} s."
    )
    lines = [
        "# The claims of the paper's simulations",
        "",
        made_by,
        "",
        "| figure | the paper says | verdict | why |",
        "|---|---|---|---|",
        *(f"| {c.figure} | {c.words} | **{c.verdict}** | {c.why} |" for c in found),
    ]
    (folder / "claims.md").write_text("\n".join(lines) + "\n")
    print("\n" + "\n".join(lines[4:]))
    print(f"\nwritten to {folder}")


if __name__ == "__main__":
    main()
