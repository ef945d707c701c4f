"""A heat map of correlations that can be read without its colours."""

from __future__ import annotations

import math

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from pdp_calibrate.show.correlations import CorrelationMap
from pdp_calibrate.show.drawing.canvas import WIDTH, canvas, theme_called

_DEEPEST = 0.72  # of the colour, so that numbers on it stay readable


_MOST_WRITTEN = 10  # tuples, beyond which only the signs fit


def correlations(found: CorrelationMap, theme: str) -> Figure:
    """Draw blue for positive, orange for negative, the stronger the deeper, signs written out."""
    colours = theme_called(theme)
    size = len(found.names)
    side = min(WIDTH, 2.2 + 0.62 * size)
    figure, axes = canvas(colours, height=side * 0.86, width=max(side, 4.9))
    written = size <= _MOST_WRITTEN
    for row in range(size):
        for column in range(size):
            value = found.matrix[row][column]
            missing = math.isnan(value)
            colour = colours.grid if missing else colours.blue if value >= 0 else colours.orange
            alpha = 0.3 if missing else _DEEPEST * min(abs(value), 1.0)
            axes.add_patch(
                Rectangle(
                    (column - 0.48, row - 0.48), 0.96, 0.96, facecolor=colour, alpha=alpha, lw=0
                )
            )
            axes.text(
                column,
                row,
                _label(value, written=written),
                color=colours.ink,
                ha="center",
                va="center",
                fontsize=10 if size <= 6 else 8,
            )
    labels = [name if len(name) <= 16 else f"{name[:15]}…" for name in found.names]
    turned = 0 if size <= 3 else 40 if written else 90
    axes.set_xticks(range(size), labels, rotation=turned, ha="right" if turned == 40 else "center")
    axes.set_yticks(range(size), labels)
    axes.set_xlim(-0.5, size - 0.5)
    axes.set_ylim(size - 0.5, -0.5)
    axes.set_aspect("equal")
    axes.grid(visible=False)
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_xlabel("correlation ρ of each pair (no unit): + together, − against each other")
    axes.xaxis.label.set_fontsize(9)
    return figure


def _label(value: float, *, written: bool) -> str:
    if math.isnan(value):
        return "?"
    sign = "+" if value > 0 else "−" if value < 0 else ""
    if written:
        return f"{sign}{abs(value):.2f}"
    return sign if abs(value) >= 0.005 else ""
