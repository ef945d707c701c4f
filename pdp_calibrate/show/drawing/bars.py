"""Bars: the scales of all methods, and beliefs before and after an output."""

from __future__ import annotations

from matplotlib.figure import Figure

from pdp_calibrate.show.drawing.canvas import canvas, in_unit, legend, theme_called
from pdp_calibrate.show.simulated import SimulatedAnswers
from pdp_calibrate.show.views import METHODS, BeliefBars, ScaleBars

_MOST_BARS = 12


def scales(bars: ScaleBars, theme: str) -> Figure:
    """Draw one bar per method; ours stands out by colour and hatching."""
    colours, found = theme_called(theme), bars.scales
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
    axes.set_xlabel(f"scale of the noise{in_unit(bars.unit)}")
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
    further = (
        f"\nanswers that move it further have a probability of {bars.beyond:.2g}"
        if bars.beyond
        else ""
    )
    axes.set_xlabel(f"value of {bars.target[:48]}{further}")
    axes.set_ylabel("what the adversary believes")
    legend(figure, axes, colours)
    return figure


def simulated(found: SimulatedAnswers, theme: str) -> Figure:
    """Draw answers about simulated people, and where releases of them would lie."""
    colours = theme_called(theme)
    figure, axes = canvas(colours, height=1.6 + 0.55 * len(found.labels))
    for place, (answer, noisy) in enumerate(zip(found.answers, found.noisy, strict=True)):
        for width, strength, label in (
            (found.half_width, 0.22, "95 % of releases"),
            (found.likely, 0.45, "half of them"),
        ):
            axes.barh(
                place, 2 * width, left=answer - width, height=0.6, color=colours.blue,
                alpha=strength, label=label if place == 0 else None,
            )  # fmt: skip
        spread = [place + 0.22 * (one % 3 - 1) for one in range(len(noisy))]
        drawn, line = ("simulated releases", "without noise") if place == 0 else (None, None)
        axes.plot(noisy, spread, ".", color=colours.orange, markersize=5, label=drawn)
        axes.plot([answer] * 2, [place - 0.34, place + 0.34], color=colours.ink, label=line)
    axes.set_yticks(range(len(found.labels)), found.labels)
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    low, high = min(axes.get_xlim()[0], 0.0), max(axes.get_xlim()[1], 0.0)
    axes.set_xlim(low, high)
    axes.set_xlabel(f"answer about {found.people:,} simulated people")
    figure.legend(
        loc="outside upper center", ncols=2, frameon=False, labelcolor=colours.ink, fontsize=9
    )
    return figure
