"""Colours, sizes and the figure that every picture starts from."""

from __future__ import annotations

import io
import re
import warnings
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from matplotlib import rc_context, rcParamsDefault
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from pdp_calibrate.errors import PdpError

WIDTH = 6.0  # inches; 600 pixels at the resolution below


DPI = 100


@dataclass(frozen=True, kw_only=True)
class Theme:
    """The colours of a picture. Hues are from Okabe and Ito: told apart by colour-blind eyes."""

    paper: str
    ink: str
    muted: str
    grid: str
    blue: str
    orange: str
    green: str


_COLOURS = {  # on light paper, on dark paper
    "paper": ("#ffffff", "#14171b"),
    "ink": ("#1b1f24", "#e9ebee"),
    "muted": ("#59626d", "#a9b1bc"),
    "grid": ("#d5dae1", "#3b424c"),
    "blue": ("#0072b2", "#5db6ea"),
    "orange": ("#c85200", "#ffa25c"),
    "green": ("#00795a", "#3fcf9f"),
}
THEMES = {
    theme: Theme(**{name: pair[place] for name, pair in _COLOURS.items()})
    for place, theme in enumerate(("light", "dark"))
}


class Picture(Figure):
    """A figure that notebooks show without any setting up."""

    def _repr_png_(self) -> bytes:
        file = io.BytesIO()
        self.savefig(file, format="png", dpi=DPI)
        return file.getvalue()


def neutral() -> AbstractContextManager[None]:
    """Set the user's own style aside, and take names as they are: a $ starts no formula."""
    return rc_context({**rcParamsDefault, "text.parse_math": False})


def theme_called(name: str) -> Theme:
    """Return a theme, or raise with the names there are."""
    if name not in THEMES:
        raise PdpError(f"theme must be one of {', '.join(THEMES)}, got {name!r}.")
    return THEMES[name]


def canvas(theme: Theme, *, height: float = 3.7, width: float = WIDTH) -> tuple[Picture, Axes]:
    """Return a figure and its one pair of axes."""
    figure = Picture(figsize=(width, height), dpi=DPI, layout="constrained", facecolor=theme.paper)
    axes = figure.add_subplot()
    dress(axes, theme)
    return figure, axes


def in_unit(unit: str) -> str:
    """Write the unit of an axis after its name; a long one on a line of its own."""
    return f"{chr(10) if len(unit) > 40 else ' '}({unit})"


def dress(axes: Axes, theme: Theme) -> None:
    """Give axes the colours of the theme, a light grid, and no frame."""
    axes.set_facecolor("none")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(theme.muted)
    axes.tick_params(which="both", colors=theme.ink, labelsize=10)
    axes.tick_params(axis="both", color=theme.muted)
    axes.grid(visible=True, color=theme.grid, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.xaxis.label.set(color=theme.ink, size=11)
    axes.yaxis.label.set(color=theme.ink, size=11)


_SINGLE = re.compile(r'(\bid="|href="#|url\(#)')
"""Where an element has a name, or is named."""


def renamed(drawn: str, name: str, other: str) -> str:
    """Give the elements of inline SVG the name of another picture."""
    return re.sub(rf"{_SINGLE.pattern}{re.escape(name)}-", rf"\1{other}-", drawn)


def as_svg(figure: Figure, name: str) -> str:
    """Write a figure of the light theme as inline SVG whose colours follow the page.

    Colours become variables of the page (``--ink``, ``--blue`` …), the paper becomes transparent,
    and identifiers get the picture's name, for several pictures share one page.
    """
    file = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": name}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # the browser has fonts of its own
        figure.set_facecolor("none")
        # `savefig` would draw it twice, the first time only to lay it out.
        drawn_once: Any = FigureCanvasSVG(figure)
        drawn_once.print_svg(file, metadata={"Date": None})
    drawn = file.getvalue()
    drawn = drawn[drawn.index("<svg") :]
    drawn = re.sub(r"<metadata>.*?</metadata>", "", drawn, flags=re.DOTALL)
    drawn = _SINGLE.sub(rf"\1{name}-", drawn)
    light = THEMES["light"]
    for variable in ("ink", "muted", "grid", "blue", "orange", "green", "paper"):
        drawn = drawn.replace(getattr(light, variable), f"var(--{variable})")
    drawn = re.sub(r"font: ([^;\"]*?)'[^;\"]*", r"font: \1sans-serif", drawn)
    return re.sub(r'<svg ([^>]*?)width="[^"]*" height="[^"]*"', r"<svg \1", drawn, count=1)


def legend(figure: Figure, axes: Axes, colours: Theme) -> None:
    """Say above the picture what its lines and bars are."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        loc="outside upper left",
        frameon=False,
        labelcolor=colours.ink,
        fontsize=10,
        ncols=2,
    )
