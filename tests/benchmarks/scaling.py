"""How CPU time and memory grow with tuples, values, steps and rows.

    python -m tests.benchmarks.scaling

writes `results/scaling.csv`, `results/scaling.txt` (fitted exponents) and `results/scaling.png`.
Every point runs in a forked process, compilation warm, so that its peak memory is its own; time is
the CPU time of that process. Leakage is over all adversaries, all 2^(n−1) sets K for each target.
"""

from __future__ import annotations

import itertools
import multiprocessing
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.spatial import Delaunay

import pdp_calibrate as pdp
from pdp_calibrate.core.model import Model
from tests.benchmarks.heading import heading

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Curve:
    """One way to grow: the sizes, the work at a size, and whether growth is a power or a base."""

    name: str
    axis: str
    sizes: tuple[int, ...]
    work: Callable[[int], object]
    exponential: bool = False


def table(tuples: int, values: int) -> pdp.JointTable:
    """Return a table drawn uniformly."""
    cells = np.random.default_rng(tuples * 100 + values).dirichlet(np.ones(values**tuples))
    domains = [list(range(values))] * tuples
    return pdp.JointTable(probabilities=cells.reshape((values,) * tuples), domains=domains)


def gaussian(size: int) -> pdp.Gaussian:
    """Return a random covariance of full rank."""
    rng = np.random.default_rng(size)
    factors = rng.normal(size=(size, 2 * size))
    return pdp.Gaussian(mean=np.zeros(size), covariance=factors @ factors.T / size, bounds=(0, 1))


def chain(length: int) -> pdp.MarkovChain:
    """Return the stationary chain .2/.8."""
    return pdp.MarkovChain(transition=[[0.8, 0.2], [0.2, 0.8]], length=length)


def group(size: int) -> pdp.BinaryGroup:
    """Return a group whose number of ones is uniform."""
    return pdp.BinaryGroup(count_probabilities=np.full(size + 1, 1 / (size + 1)))


def plane(size: int) -> pdp.Network:
    """Return yes/no tuples on the triangulation of random points."""
    triangles = Delaunay(np.random.default_rng(size).random((size, 2))).simplices
    edges = sorted(
        {
            (int(min(pair)), int(max(pair)))
            for triangle in triangles
            for pair in itertools.combinations(triangle, 2)
        }
    )
    return pdp.Network(
        factors=[(edge, [[1.1, 1.0], [1.0, 1.1]]) for edge in edges],
        domains={place: [0, 1] for place in range(size)},
    )


def release(rows: int) -> object:
    """Release a sum about a long frame of households of five."""
    rng = np.random.default_rng(rows)
    frame = pd.DataFrame({"home": np.arange(rows) // 5, "load": rng.uniform(0, 10, size=rows)})
    begun = time.process_time()
    frame.pdp.sum("load", bounds=(0, 10), groups="home", correlation=(0, 0.4), epsilon=1.0)
    return time.process_time() - begun


def leak(model: Model) -> object:
    """Ask for the worst of all adversaries."""
    return pdp.leakage(model, pdp.Sum(), scale=2.0)


CURVES = [
    Curve(
        "table of yes/no tuples",
        "tuples",
        (6, 8, 10, 11, 12, 13, 14, 15, 16),
        lambda size: leak(table(size, 2)),
        exponential=True,
    ),
    Curve(
        "table of four tuples", "values each", (2, 3, 4, 6, 8, 10, 12), lambda k: leak(table(4, k))
    ),
    Curve("Gaussian", "tuples", (10, 20, 30, 40, 60, 80), lambda size: leak(gaussian(size))),
    Curve(
        "Markov chain",
        "steps",
        (100, 300, 1000, 3000, 10_000, 30_000),
        lambda size: leak(chain(size)),
    ),
    Curve("exchangeable group", "members", (25, 50, 100, 200, 400), lambda size: leak(group(size))),
    Curve(
        "network on a plane",
        "tuples",
        (50, 100, 200, 500, 1000, 2000),
        lambda size: leak(plane(size)),
    ),
    Curve("release of a long frame", "rows", (10_000, 100_000, 1_000_000, 5_000_000), release),
]


def measured(curve: Curve, size: int) -> tuple[float, float]:
    """Return CPU seconds and MiB of additional peak memory, in a process of its own."""
    receiver, sender = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(
        target=_measure, args=(curve, size, sender)
    )
    process.start()
    seconds, memory = receiver.recv()
    process.join()
    return seconds, memory


def _measure(curve: Curve, size: int, sender: multiprocessing.connection.Connection) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begun = time.process_time()
    own = curve.work(size)
    seconds = own if isinstance(own, float) else time.process_time() - begun
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    sender.send((seconds, max(0, peak - before) / 1024))


def growth(curve: Curve, sizes: np.ndarray, seconds: np.ndarray) -> str:
    """Fit the larger half of the points: a factor per tuple, or a power."""
    half = len(sizes) // 2
    places = sizes[half:] if curve.exponential else np.log(sizes[half:])
    slope = float(np.polyfit(places, np.log(seconds[half:]), 1)[0])
    return f"× {np.exp(slope):.2f} each" if curve.exponential else f"power {slope:.2f}"


def picture(table: pd.DataFrame, fits: dict[str, str], path: Path) -> None:
    """Draw a panel per curve; tables beside the paper's n⁴·2^(n−1), fixed at the first point."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(16, 6.6), layout="constrained")
    panels = figure.subplots(2, 4).ravel()
    for panel in panels[len(CURVES) :]:
        panel.set_axis_off()
    for curve, panel in zip(CURVES, panels[: len(CURVES)], strict=True):
        rows = table[table["curve"] == curve.name]
        sizes = rows["size"].to_numpy(dtype=float)
        (line,) = panel.plot(sizes, rows["cpu_seconds"], "o-", color="#0072b2")
        line.set_label(f"CPU time, {fits[curve.name]}")
        if curve.exponential:
            paper = sizes**4 * 2 ** (sizes - 1)
            first = rows["cpu_seconds"].iloc[0]
            panel.plot(sizes, paper / paper[0] * first, "--", color="#999999", label="n⁴·2ⁿ⁻¹")
        memory = panel.twinx()
        memory.plot(sizes, rows["peak_mib"], "s:", color="#d55e00", markersize=3)
        memory.set(ylabel="peak memory, MiB", ylim=(0, 2 * rows["peak_mib"].max()))
        memory.yaxis.label.set_color("#d55e00")
        panel.set(title=curve.name, xlabel=curve.axis, ylabel="CPU seconds", yscale="log")
        if not curve.exponential:
            panel.set_xscale("log")
        panel.set_xticks(curve.sizes, [f"{size:,}" for size in curve.sizes], fontsize=8)
        panel.minorticks_off()
        panel.yaxis.set_major_formatter("{x:g}")
        panel.legend(frameon=False, fontsize=8)
        panel.grid(alpha=0.3)
        for axes in (panel, memory):
            axes.spines["top"].set_visible(False)
    figure.savefig(path, dpi=130)


def main() -> None:
    """Measure all curves and write the results."""
    rows = []
    fits = {}
    for curve in CURVES:
        for size in curve.sizes[:3]:
            curve.work(size)  # compile, where that is not needed for the smallest
        for size in curve.sizes:
            seconds, memory = measured(curve, size)
            rows.append((curve.name, size, seconds, memory))
            print(curve.name, size, f"{seconds:.3f} s", f"{memory:.0f} MiB", flush=True)
        own = pd.DataFrame(rows, columns=["curve", "size", "cpu_seconds", "peak_mib"])
        own = own[own["curve"] == curve.name]
        fits[curve.name] = growth(curve, own["size"].to_numpy(), own["cpu_seconds"].to_numpy())
    table = pd.DataFrame(rows, columns=["curve", "size", "cpu_seconds", "peak_mib"])
    table.to_csv(RESULTS / "scaling.csv", index=False, float_format="%.4g")
    picture(table, fits, RESULTS / "scaling.png")
    lines = [
        *heading("scaling", "numpy", "scipy", "numba"),
        "",
    ]
    for curve in CURVES:
        last = table[table["curve"] == curve.name].iloc[-1]
        lines.append(
            f"{curve.name:26s}{fits[curve.name]:>14s} in {curve.axis}; {last['size']:,} take"
            f" {last['cpu_seconds']:.2f} CPU s and {last['peak_mib']:.0f} MiB"
        )
    (RESULTS / "scaling.txt").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
