"""Figures 4 and 5, redrawn."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from claims import layers
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from simulations import AVERAGES

POSITIVE, NEGATIVE = ["#9ecae1", "#4292c6", "#08519c"], ["#fdae6b", "#f16913", "#a63603", "#4d1a00"]


def draw_figure_4(figure_4: pd.DataFrame, path: Path) -> None:
    """Leakage against layer: the graph's values, Gaussian data, and exact yes/no laws."""
    figure = Figure(figsize=(13, 7), layout="constrained")
    axes = figure.subplots(2, 3, sharex=True)
    kinds = [
        ("graph with beta edges (a + b = 2): not a bound", layers(figure_4, "graph", 2.0)),
        ("Gaussian, one common correlation", layers(figure_4, "Gaussian")),
        ("yes/no tuples, exact", layers(figure_4, "exact, yes/no")),
    ]
    for column, (title, table) in enumerate(kinds):
        _curves(axes[0][column], table[table.index > 0], POSITIVE)
        _curves(axes[1][column], table[table.index < 0][::-1], NEGATIVE)
        axes[0][column].set_title(title, fontsize=11)
        axes[1][column].set_xlabel("layer: tuples the adversary does not know")
    for row, sign in enumerate(("positive", "negative")):
        axes[row][0].set_ylabel(f"leakage at λ = 1, {sign} correlation")
    figure.savefig(path, dpi=130)


def _curves(panel: Axes, table: pd.DataFrame, colours: list[str]) -> None:
    for colour, (correlation, row) in zip(colours, table.iterrows(), strict=False):
        panel.plot(
            row.index, row, color=colour, marker="o", markersize=3, label=f"{correlation:.2g}"
        )
    panel.legend(title="correlation", fontsize=8, title_fontsize=8, frameon=False)
    panel.grid(alpha=0.3)
    panel.spines[["top", "right"]].set_visible(False)


def draw_figure_5(figure_5: pd.DataFrame, path: Path) -> None:
    """Full against fast search, mean and standard deviation; CPU time beside the exact engine."""
    figure = Figure(figsize=(14, 3.8), layout="constrained")
    axes = figure.subplots(1, 4)
    for panel, average in zip(axes, AVERAGES, strict=False):
        for name, colour in (("full", "#0072b2"), ("fast", "#d55e00")):
            rows = figure_5[(figure_5["search"] == name) & (figure_5["correlation"] == average)]
            value = rows.groupby("tuples")["leakage"].agg(["mean", "std"])
            panel.errorbar(
                value.index, value["mean"], yerr=value["std"], color=colour, capsize=2, label=name
            )
        panel.set(title=f"averCorr = {average}", xlabel="tuples", ylabel="the paper's leakage")
        panel.legend(frameon=False)
    cost = figure_5.pivot_table(index="tuples", columns="search", values="seconds")
    for name, colour in (
        ("full", "#0072b2"),
        ("fast", "#d55e00"),
        ("exact, random table", "#009e73"),
    ):
        axes[3].plot(cost.index, cost[name], color=colour, label=name)
    axes[3].set(title="CPU time", xlabel="tuples", ylabel="seconds", yscale="log")
    axes[3].legend(frameon=False)
    for panel in axes:
        panel.grid(alpha=0.3)
        panel.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=130)
