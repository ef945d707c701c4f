"""Lines: leakage against scale, leakage by knowledge, scale against a parameter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from pdp_calibrate.families.stream.refresh import period_words
from pdp_calibrate.show.drawing.canvas import Theme, canvas, in_unit, legend, theme_called
from pdp_calibrate.show.views import UNIT, KnowledgeCurve, RefreshCurve, ScaleCurve

_PLAIN = FuncFormatter(lambda value, _: f"{value:.4g}")


_SCALES = {"laplace": "Laplace scale λ", "gaussian": "standard deviation σ"}


LEAKAGE_AXIS = "leakage (nats of log-odds)"


_SAME = 0.02  # scales as near as this share one label


_WIDE = 6.0  # a scale axis over more than this ratio is logarithmic


def leakage_by_scale(curve: ScaleCurve, theme: str) -> Figure:
    """Draw the curve, the budget, the chosen point and plain DP."""
    colours = theme_called(theme)
    figure, axes = canvas(colours)
    _line(axes, curve.scales, curve.values, colours.blue)
    if any(high - low > 1e-6 * high for low, high in zip(curve.lowers, curve.values, strict=True)):
        axes.fill_between(
            curve.scales, curve.lowers, curve.values, color=colours.blue, alpha=0.15, linewidth=0
        )
    _scale_axis(axes, curve.scales)
    _level(axes, curve.epsilon, colours)
    _note(axes, f"budget ε = {curve.epsilon:.3g}", curve.epsilon, colours.muted)
    symbol = "λ" if curve.noise == "laplace" else "σ"
    label = f"this release: {symbol} = {curve.scale:.3g}"
    if curve.plain_scale is not None and curve.plain_leakage is not None:
        leaks = "really leaks" if curve.plain_exact else "leaks up to"
        plain = f"plain DP: {symbol} = {curve.plain_scale:.3g}\n{leaks} {curve.plain_leakage:.3g}"
        if abs(curve.plain_scale / curve.scale - 1) < _SAME:
            label = f"this release, as plain DP: {symbol} = {curve.scale:.3g}"
        else:
            _point(axes, curve.plain_scale, curve.plain_leakage, colours.orange, "s", colours)
            _call(axes, plain, curve.plain_scale, curve.plain_leakage, colours.orange)
    _point(axes, curve.scale, curve.leakage, colours.green, "o", colours)
    corner = "right"
    if curve.scale > 0.6 * max(curve.scales):
        corner = "below" if curve.leakage > 0.14 * max(curve.values) else "left"
    _call(axes, label, curve.scale, curve.leakage, colours.green, corner)
    axes.set_ylim(0, max(curve.values) * 1.08)
    axes.set_xlabel(f"{_SCALES[curve.noise]}{in_unit(curve.unit)}")
    beside = f"ε at δ = {curve.delta:g}" if curve.delta else "nats of log-odds"
    axes.set_ylabel(f"leakage ({beside})")
    return figure


def leakage_by_knowledge(curve: KnowledgeCurve, theme: str) -> Figure:
    """Draw the worst leakage for each number of known tuples."""
    colours = theme_called(theme)
    figure, axes = canvas(colours)
    if curve.plain:
        label = "with the noise of plain DP"
        _line(axes, curve.known, curve.plain, colours.orange, label, marker="s", dashed=True)
    label = "with the noise of this release"
    _line(axes, curve.known, curve.values, colours.blue, label, marker="o")
    _level(axes, curve.epsilon, colours, label=f"budget ε = {curve.epsilon:.3g}")
    worst = max(range(len(curve.values)), key=lambda k: (curve.values[k], curve.lowers[k]))
    axes.plot(
        [curve.known[worst]],
        [curve.values[worst]],
        marker="o",
        markersize=13,
        markerfacecolor="none",
        markeredgecolor=colours.green,
        markeredgewidth=2.2,
        linestyle="none",
        label="worst adversary",
    )
    axes.set_ylim(0, max(*curve.values, *curve.plain, curve.epsilon) * 1.12)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel(f"number of {curve.among} that the adversary knows")
    axes.set_ylabel(LEAKAGE_AXIS)
    legend(figure, axes, colours)
    return figure


def what_if(curve: Any, theme: str) -> Figure:
    """Draw the scale that is needed against a parameter of the model."""
    colours = theme_called(theme)
    figure, axes = canvas(colours)
    values = list(curve.values)
    if not all(isinstance(value, int | float) for value in values):
        values = [str(value) for value in values]  # drawn side by side
    _line(axes, values, curve.scales, colours.blue, marker="o")
    axes.set_xlabel(f"{curve.parameter}, if it were so")
    unit = getattr(curve, "unit", UNIT)  # curves of others have no unit
    axes.set_ylabel(f"Laplace scale λ needed\n({unit})")
    axes.set_ylim(0, max(curve.scales) * 1.1)
    return figure


def refresh(curve: RefreshCurve, theme: str) -> Figure:
    """Draw what a refreshed budget tells, beside what is claimed and what counting says."""
    colours = theme_called(theme)
    figure, axes = canvas(colours)
    chosen, period = curve.chosen, period_words(curve.chosen.every)
    period = f"a {period}" if period.isalpha() else period
    _line(axes, curve.persistence, curve.leakage, colours.blue, "nobody learns more, for ever")
    label = "temporal privacy leakage"
    _line(axes, curve.persistence, curve.temporal, colours.orange, label, dashed=True)
    label = "every period counted, one year"
    _level(axes, chosen.counted_for_a_year, colours, label=label, dashes=(1, 2))
    _level(axes, chosen.epsilon, colours, label=f"claimed: ε = {chosen.epsilon:.3g}")
    _point(axes, chosen.persistence, chosen.leakage, colours.green, "o", colours)
    _call(
        axes,
        f"here: {chosen.leakage:.3g}",
        chosen.persistence,
        chosen.leakage,
        colours.green,
        "left",
    )
    highest = max(
        chosen.counted_for_a_year, chosen.leakage, min(curve.leakage[-1], 8 * chosen.epsilon)
    )
    axes.set_ylim(0, highest * 1.08)
    axes.set_xlabel(f"probability that a record stays as it was over {period}")
    axes.set_ylabel("ε about any one record")
    legend(figure, axes, colours)
    return figure


def _line(
    axes: Axes,
    x: Sequence[float] | Sequence[str],
    y: Sequence[float],
    colour: str,
    label: str = "",
    *,
    marker: str = "",
    dashed: bool = False,
) -> None:
    """Draw a curve: dashed and thinner where it is there to compare with."""
    width, style = (1.6, (0, (4, 2))) if dashed else (2.2, "-")
    axes.plot(x, y, color=colour, marker=marker, linewidth=width, linestyle=style, label=label)


def _level(
    axes: Axes, height: float, colours: Theme, *, label: str = "", dashes: Any = (5, 3)
) -> None:
    """Draw a dashed line across, at what is claimed or allowed."""
    axes.axhline(height, color=colours.muted, linewidth=1.2, linestyle=(0, dashes), label=label)


def _scale_axis(axes: Axes, scales: tuple[float, ...]) -> None:
    """Logarithmic where scales are far apart; plain numbers either way."""
    if max(scales) / min(scales) <= _WIDE:
        axes.xaxis.set_major_formatter(_PLAIN)
        return
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(_PLAIN)
    ticks = [
        mantissa * 10.0**power
        for power in range(-9, 10)
        for mantissa in (1, 2, 5)
        if min(scales) <= mantissa * 10.0**power <= max(scales)
    ]
    axes.set_xticks(ticks[:: max(1, len(ticks) // 6)], minor=False)
    axes.minorticks_off()


def _point(axes: Axes, x: float, y: float, colour: str, marker: str, colours: Theme) -> None:
    axes.plot(
        [x],
        [y],
        marker=marker,
        markersize=9,
        color=colour,
        markeredgecolor=colours.paper,
        markeredgewidth=1.2,
        linestyle="none",
        zorder=5,
    )


def _call(axes: Axes, text: str, x: float, y: float, colour: str, corner: str = "right") -> None:
    """Write beside a point; the curve falls, so above to the right and below to the left are free.

    Low on the page there is no space below, but the curve is flat there.
    """
    shift = {"right": (11, 7), "below": (-8, -8), "left": (4, 14)}[corner]
    axes.annotate(
        text,
        (x, y),
        xytext=shift,
        horizontalalignment="left" if corner == "right" else "right",
        verticalalignment="top" if corner == "below" else "bottom",
        textcoords="offset points",
        color=colour,
        fontsize=10,
        fontweight="bold",
    )


def _note(axes: Axes, text: str, height: float, colour: str) -> None:
    axes.annotate(
        text,
        (0.01, height),
        xycoords=("axes fraction", "data"),
        xytext=(0, -4),
        textcoords="offset points",
        color=colour,
        fontsize=10,
        verticalalignment="top",
        horizontalalignment="left",
    )
