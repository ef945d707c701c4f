"""Head to head: the noise of every published method over ours, for the same ε and adversaries.

    python tests/benchmarks/compare.py

writes `results/compare.csv` (every case), `results/compare.md` (one line per family) and
`results/compare.png`. Where a method adds less noise than we do, the exact engine shows what it
really leaks: an attained value above ε means that its promise is broken.
"""

from __future__ import annotations

import platform
import sys
import time
from importlib.metadata import version
from pathlib import Path

import pandas as pd

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

import pdp_calibrate as pdp
from tests.benchmarks.cases import Case, cases

RESULTS = Path(__file__).parent / "results"
COMMAND = "python tests/benchmarks/compare.py"
UNSOUND = ("plain DP", "paper's chain rule")
"""They promise less than PDP; shown for what they would leak."""


WHY = """
**Where we tie.** Tuples that are independent (P(0→1) = P(1→1)) need plain DP, and Markov Quilt,
Wasserstein and Lange et al. say so too. Under negative dependence the strongest adversary is the
worst and plain DP is enough, for one release; Wasserstein sees that as well.

**Other promises.** Lange et al. cover every matrix of correlations up to the stated one, not one
common correlation; Ghosh-Kleinberg cover every mechanism. Markov Quilt and, on chains, Wasserstein
protect against adversaries who know no step: our scale for those adversaries stands beside the one
for all in `compare.csv`. *Markov Quilt, every K* is the same idea with influences that hold against
everyone; it is not published. Ten releases: Markov Quilt at ε/10 each, ours by the joint leakage of
all.
"""


def rows_of(case: Case) -> list[dict[str, object]]:
    """Compare one case: a row for each ε, set of adversaries and method."""
    rows = []
    kinds = {"all": (pdp.Adversaries.all(), case.everyone)}
    if case.weakest:
        kinds["weakest"] = (pdp.Adversaries.weakest(), case.weakest)
    for epsilon in case.epsilons:
        for kind, (adversaries, methods) in kinds.items():
            cal = pdp.calibrate(case.model, case.query, epsilon=epsilon, adversaries=adversaries)
            about = {
                "family": case.group,
                "case": case.name,
                "epsilon": epsilon,
                "adversaries": kind,
                "releases": 1,
            }
            rows.append({**about, "method": "ours", "scale": cal.scale, "ratio": 1.0})
            for method, scale_for in methods.items():
                scale = scale_for(epsilon)
                row = {**about, "method": method, "scale": scale}
                if scale is not None:
                    row["ratio"] = scale / cal.scale
                    if scale < cal.scale * (1 - 1e-9):
                        leak = pdp.leakage(
                            case.model,
                            case.evidence or case.query,
                            scale=scale,
                            adversaries=adversaries,
                        )
                        row["leaks"] = leak.lower
                rows.append(row)
        if case.composed:
            joint = pdp.calibrate(case.model, [case.query] * 10, epsilon=epsilon)
            about = {
                "family": case.group,
                "case": case.name,
                "epsilon": epsilon,
                "adversaries": "all",
                "releases": 10,
            }
            ours = joint.scales[0]
            rows.append({**about, "method": "ours", "scale": ours, "ratio": 1.0})
            for method, scale_for in case.composed.items():
                scale = scale_for(epsilon)
                rows.append({**about, "method": method, "scale": scale, "ratio": scale / ours})
    return rows


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """One line for each family, ε, number of releases and method: the range of ratios."""
    found = []
    keys = ["family", "releases", "adversaries", "epsilon", "method"]
    for key, rows in table[table["method"] != "ours"].groupby(keys, sort=False):
        ratios = rows["ratio"].dropna()
        found.append(
            {
                **dict(zip(keys, key, strict=True)),
                "cases": len(rows),
                "applies": len(ratios),
                "least": ratios.min(),
                "median": ratios.median(),
                "most": ratios.max(),
                "less noise, and leaks more than ε": int((rows["leaks"] > rows["epsilon"]).sum()),
            }
        )
    return pd.DataFrame(found)


def headline(table: pd.DataFrame) -> pd.DataFrame:
    """Return the median ratio at ε = 1 by family and method, and how many leak more than ε."""
    chosen = table[(table["epsilon"] == 1) & (table["method"] != "ours")]
    order = list(chosen.groupby("method")["ratio"].median().sort_values().index)
    rows = []
    for (family, releases), part in chosen.groupby(["family", "releases"], sort=False):
        name = family if releases == 1 else f"{family}, ten releases"
        row = {"data": name, "cases": part["case"].nunique()}
        for method in order:
            own = part[part["method"] == method]
            ratio, broken = own["ratio"].median(), int((own["leaks"] > own["epsilon"]).sum())
            shown = "—" if ratio != ratio else f"{ratio:.3g}"  # NaN
            row[method] = f"{shown} ({broken} leak)" if broken else shown
        rows.append(row)
    return pd.DataFrame(rows)


def markdown(lines: pd.DataFrame) -> str:
    """Return the summary as a Markdown table, numbers to three digits."""

    def cell(value: object) -> str:
        if isinstance(value, float):
            return "—" if value != value else f"{value:.3g}"  # NaN
        return str(value)

    rows = [list(lines.columns), ["---"] * len(lines.columns)]
    rows += [[cell(value) for value in row] for row in lines.itertuples(index=False)]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows) + "\n"


def picture(table: pd.DataFrame, path: Path) -> None:
    """Draw every ratio at ε = 1: one panel per promise, one row per method, one dot per case."""
    from matplotlib.figure import Figure

    panels = [
        ("one release, every adversary", 1, "all"),
        ("one release, adversaries who know nobody", 1, "weakest"),
        ("ten releases together", 10, "all"),
    ]
    families = list(dict.fromkeys(table["family"]))
    colours = dict(
        zip(
            families,
            ["#0072b2", "#56b4e9", "#009e73", "#999999", "#d55e00", "#cc79a7", "#f0e442"],
            strict=True,
        )
    )
    chosen = table[(table["epsilon"] == 1) & (table["method"] != "ours")].dropna(subset="ratio")
    parts = [
        chosen[(chosen["releases"] == releases) & (chosen["adversaries"] == kind)]
        for _, releases, kind in panels
    ]
    heights = [part["method"].nunique() + 0.6 for part in parts]
    figure = Figure(figsize=(8, 0.42 * sum(heights) + 1.6), layout="constrained")
    axes = figure.subplots(len(panels), 1, sharex=True, height_ratios=heights)
    for (title, _, _), part, panel in zip(panels, parts, axes, strict=True):
        methods = list(part.groupby("method")["ratio"].median().sort_values().index)
        for row, method in enumerate(methods):
            dots = part[part["method"] == method]
            spread = [0.5 * ((place * 0.618) % 1 - 0.5) for place in range(len(dots))]
            panel.scatter(
                dots["ratio"],
                [row + shift for shift in spread],
                s=22,
                c=[colours[family] for family in dots["family"]],
                alpha=0.8,
                linewidths=0,
            )
        panel.axvline(1, color="black", linewidth=1)
        panel.axvspan(0.1, 1, color="#d62728", alpha=0.08, linewidth=0)
        panel.set(yticks=range(len(methods)), yticklabels=methods, ylim=(-0.6, len(methods) - 0.4))
        panel.set_title(title, fontsize=10, loc="left")
        panel.grid(axis="x", alpha=0.3)
        panel.spines[["top", "right"]].set_visible(False)
    axes[-1].set(xscale="log", xlim=(0.12, 200), xlabel="noise of the method ÷ ours, at ε = 1")
    axes[-1].set_xticks([0.2, 0.5, 1, 2, 5, 10, 20, 50, 100])
    axes[-1].set_xticklabels(["0.2", "0.5", "1", "2", "5", "10", "20", "50", "100"])
    axes[-1].minorticks_off()
    for family, colour in colours.items():
        axes[0].scatter([], [], c=colour, s=22, label=family)
    axes[0].text(0.13, -0.45, "leaks more than ε", fontsize=8, color="#a01010")
    figure.legend(loc="outside upper center", ncols=3, fontsize=8, frameon=False)
    figure.savefig(path, dpi=150)


def main() -> None:
    """Compare all cases and write the results."""
    begun = time.perf_counter()
    rows = []
    for case in cases():
        print(case.group, "·", case.name, flush=True)
        rows += rows_of(case)
    table = pd.DataFrame(rows)
    worse = table[(table["ratio"] < 1 - 1e-9) & ~(table["leaks"] > table["epsilon"])]
    table.to_csv(RESULTS / "compare.csv", index=False, float_format="%.6g")
    names = ("numpy", "scipy", "numba", "matplotlib")
    versions = ", ".join(f"{name} {version(name)}" for name in names)
    head = (
        f"`{COMMAND}`, {time.strftime('%Y-%m-%d')}, pdp-calibrate {pdp.__version__}, Python"
        f" {platform.python_version()}, {versions}; {time.perf_counter() - begun:.0f} s.\n\n"
        "Noise of the method ÷ ours, for the same ε and the same adversaries. Ten releases are"
        " compared against every adversary for us and the weakest for Markov Quilt.\n"
        f"Methods with less noise than ours and no leak above ε shown: {len(worse)}.\n\n"
    )
    (RESULTS / "compare.md").write_text(
        f"{head}{markdown(headline(table))}\nMedians at ε = 1; in brackets, how many cases leak"
        f" more than ε. In full:\n\n{markdown(summary(table))}{WHY}"
    )
    picture(table, RESULTS / "compare.png")
    print(worse.to_string())


if __name__ == "__main__":
    main()
