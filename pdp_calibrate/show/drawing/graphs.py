"""The weighted hierarchical graph: every adversary a node, every forgotten entry an edge."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Hashable

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pdp_calibrate.show.drawing.canvas import DPI, WIDTH, Picture, Theme, theme_called
from pdp_calibrate.show.plots import ALL_PANELS
from pdp_calibrate.show.views import AdversaryGraph
from pdp_calibrate.show.words import entry

Node = tuple[Hashable, frozenset[Hashable]]


def adversary_graph(found: AdversaryGraph, theme: str) -> Figure:
    """Draw one panel per target, from those who know everyone else down to who knows nobody.

    Of more than four entries, only the panel of the one about whom most can be learned.
    """
    colours = theme_called(theme)
    names = found.names
    size = len(names)
    targets = names
    if size > ALL_PANELS:
        targets = names[:1] if found.worst is None else (found.worst[0],)
    columns = 1 if len(targets) == 1 else 3 if size == 3 else 2
    rows = math.ceil(len(targets) / columns)
    below, above, tall = 0.5, 0.35, 0.82 * size  # inches
    height = below + (above + tall) * rows
    figure = Picture(figsize=(WIDTH, height), dpi=DPI, facecolor=colours.paper)
    for place, target in enumerate(targets):
        row, column = divmod(place, columns)
        bottom = (height - (row + 1) * (above + tall)) / height
        axes = figure.add_axes((column / columns, bottom, 1 / columns, tall / height))
        axes.set_facecolor("none")
        axes.set_axis_off()
        _panel(axes, found, target, colours)
    what = f"boxes: what the adversary knows, and what they learn ({found.unit})"
    if size > ALL_PANELS:
        letters = ", ".join(f"{_short(name, names)} = {entry(name)}" for name in names)
        what += f"\n{textwrap.shorten(letters, 90, placeholder=' …')}"
    elif found.graph is not None:
        what += "\nlines: the paper's impact of forgetting one entry"
    else:
        what += "\nlines: one entry forgotten"
    figure.text(0.5, 0.02, what, color=colours.muted, fontsize=9, ha="center", va="bottom")
    return figure


def _panel(axes: Axes, found: AdversaryGraph, target: Hashable, colours: Theme) -> None:
    names = found.names
    places: dict[frozenset[Hashable], tuple[float, float]] = {}
    widest = 1
    for layer in range(1, len(names) + 1):
        size = len(names) - layer
        known_sets = [k for one, k in found.leakages if one == target and len(k) == size]
        widest = max(widest, len(known_sets))
        for index, known in enumerate(known_sets):
            places[known] = (index - (len(known_sets) - 1) / 2, -float(layer))
    for known in places:
        for forgotten in known:
            _edge(axes, found, target, known, forgotten, places, colours)
    for known, (x, y) in places.items():
        worst = found.worst == (target, known)
        letters = "".join(_short(name, names) for name in names if name in known) or "∅"
        axes.text(
            x,
            y,
            f"{letters}\n{found.leakages[target, known]:.2f}",
            ha="center",
            va="center",
            fontsize=9,
            color=colours.ink,
            fontweight="bold" if worst else "normal",
            bbox={
                "boxstyle": "round,pad=0.3",
                "facecolor": colours.paper,
                "edgecolor": colours.green if worst else colours.muted,
                "linewidth": 2.4 if worst else 1.0,
            },
            zorder=4,
        )
    axes.set_xlim(-widest / 2 - 0.1, widest / 2 + 0.1)
    axes.set_ylim(-len(names) - 0.5, -0.5)
    legend = f"{_short(target, names)} = {entry(target)}"
    axes.set_title(f"attacking {legend}", color=colours.ink, fontsize=10)


def _edge(
    axes: Axes,
    found: AdversaryGraph,
    target: Hashable,
    known: frozenset[Hashable],
    forgotten: Hashable,
    places: dict[frozenset[Hashable], tuple[float, float]],
    colours: Theme,
) -> None:
    fewer = known - {forgotten}
    if found.graph is None:
        (x0, y0), (x1, y1) = places[known], places[fewer]
        axes.plot([x0, x1], [y0, y1], color=colours.muted, linewidth=1.0, zorder=1)
        return
    low, high = found.graph.edge(target, forgotten, known=fewer)
    weight = high if abs(high) >= abs(low) else low
    colour = colours.blue if weight >= 0 else colours.orange
    (x0, y0), (x1, y1) = places[known], places[fewer]
    axes.plot([x0, x1], [y0, y1], color=colour, linewidth=1.4, zorder=1)
    if len(found.names) > ALL_PANELS:
        return  # too many for a number each
    # Labels of crossing edges would meet in the middle: nearer to the upper end they do not.
    crossing = 1 < len(known) < len(found.names) - 1
    share = (0.62 if x0 == x1 else 0.3) if crossing else 0.5
    axes.text(
        x0 + share * (x1 - x0),
        y0 + share * (y1 - y0),
        f"{weight:+.2f}".replace("-", "−"),
        ha="center",
        va="center",
        fontsize=8,
        color=colour,
        bbox={"boxstyle": "square,pad=0.08", "facecolor": colours.paper, "linewidth": 0},
        zorder=2,
    )


def _short(name: Hashable, names: tuple[Hashable, ...]) -> str:
    """Call the tuples A, B, C, and so on."""
    return "ABCDEF"[names.index(name)]
