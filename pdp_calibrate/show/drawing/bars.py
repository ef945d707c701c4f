"""Bars: the scales of all methods, and beliefs before and after an output."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.figure import Figure

from pdp_calibrate.show.drawing.canvas import canvas, theme_called
from pdp_calibrate.show.views import METHODS, BeliefBars

_MOST_BARS = 12


def scales(found: Mapping[str, float], theme: str) -> Figure:
    """Draw one bar per method; ours stands out by colour and hatching."""
    colours = theme_called(theme)
    figure, axes = canvas(colours, height=1.3 + 0.5 * len(found))
    ours = METHODS["pdp"]
    labels = sorted(found, key=lambda name: (found[name], name == ours))
    drawn = axes.barh(
        labels,
        [found[name] for name in labels],
        color=[colours.green if name == ours else colours.blue for name in labels],
        height=0.62,
    )
    numbers = [f"{found[name]:.4g}" for name in labels]
    axes.bar_label(drawn, numbers, padding=5, color=colours.ink, fontsize=10)
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.set_xlim(0, max(found.values()) * 1.16)
    axes.set_xlabel("scale of the noise (units of the answer)")
    return figure


def beliefs(bars: BeliefBars, theme: str) -> Figure:
    """Draw what the adversary believes about the target before and after the output."""
    colours = theme_called(theme)
    figure, axes = canvas(colours, height=3.9)
    shown = sorted(range(len(bars.values)), key=lambda place: -bars.after[place])[:_MOST_BARS]
    shown.sort()
    places = range(len(shown))
    for offset, numbers, colour, label in (
        (-0.2, bars.before, colours.muted, "before the release"),
        (0.2, bars.after, colours.orange, f"after {bars.output}"),
    ):
        drawn = axes.bar(
            [place + offset for place in places],
            [numbers[place] for place in shown],
            width=0.38,
            color=colour,
            label=label,
        )
        if len(shown) <= 6:
            shares = [f"{100 * numbers[place]:.0f} %" for place in shown]
            axes.bar_label(drawn, shares, padding=2, color=colours.ink, fontsize=10)
    axes.set_xticks(list(places), [bars.values[place] for place in shown])
    axes.grid(visible=False, axis="x")
    axes.set_ylim(0, 1.08)
    axes.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0 %", "25 %", "50 %", "75 %", "100 %"])
    axes.set_xlabel(f"value of {bars.target[:48]}")
    axes.set_ylabel("what the adversary believes")
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        loc="outside upper left",
        ncols=2,
        frameon=False,
        labelcolor=colours.ink,
        fontsize=10,
    )
    return figure
