"""A network as a graph: the deeper its colour, the more could be learned about an entry."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from pdp_calibrate.show.drawing.canvas import canvas, theme_called
from pdp_calibrate.show.networks import NetworkMap

_MOST_WRITTEN = 40  # tuples, beyond which names would cover each other


def network(found: NetworkMap, theme: str) -> Figure:
    """Draw couplings as lines, the stronger the thicker, and entries as discs."""
    colours = theme_called(theme)
    figure, axes = canvas(colours, height=5.2)
    places, bounds, size = np.array(found.places), np.array(found.bounds), len(found.names)
    strongest = max((d for _, _, d in found.couplings if d is not None), default=1.0)
    for first, second, strength in found.couplings:
        width = 0.4 + 2.6 * (1.0 if strength is None else strength / strongest)
        ends = places[[first, second]]
        axes.plot(ends[:, 0], ends[:, 1], color=colours.muted, linewidth=width, alpha=0.6, zorder=1)
    lowest, highest = float(bounds.min()), float(bounds.max())
    span = max(highest - lowest, 1e-9 * max(highest, 1e-300))
    shares = 0.15 + 0.85 * (bounds - lowest) / span if highest > lowest else np.ones(size)
    radius = 420 if size <= 12 else 170 if size <= _MOST_WRITTEN else 45
    for place, name in enumerate(found.names):
        x, y = places[place]
        worst, known = name == found.target, name in found.known
        axes.scatter([x], [y], s=radius, color=colours.paper, zorder=2, linewidths=0)
        axes.scatter(
            [x],
            [y],
            s=radius,
            color=colours.blue,
            alpha=float(shares[place]),
            edgecolors=colours.orange if worst else colours.muted,
            linewidths=3.0 if worst else 0.8,
            marker="s" if known and size <= _MOST_WRITTEN else "o",
            zorder=3,
        )
        if size <= _MOST_WRITTEN:
            label = f"{name}\n{bounds[place]:.2f}" if size <= 12 else name
            axes.annotate(
                label,
                (x, y),
                xytext=(0, 11 if size <= 12 else 7),
                textcoords="offset points",
                ha="center",
                va="bottom",
                fontsize=8,
                color=colours.ink,
                zorder=4,
            )
    axes.set_axis_off()
    axes.set_aspect("equal", adjustable="datalim")
    axes.margins(0.12)
    ringed = "" if found.target is None else "\nringed: whom the worst adversary found attacks"
    axes.set_title(
        f"at most {lowest:.3g} (pale) to {highest:.3g} nats (deep) learned about an entry{ringed}",
        color=colours.ink,
        fontsize=9,
    )
    return figure
