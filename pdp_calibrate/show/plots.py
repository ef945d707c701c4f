"""Pictures of what is leaked, to whom, and at what cost.

``pip install "pdp-calibrate[plot]"``. Every function takes a calibration (or the numbers behind its
picture) and returns a matplotlib figure that a notebook shows and ``savefig`` writes; ``theme`` is
``"light"`` or ``"dark"``. Nothing is drawn of a model learned from private rows.

>>> import pdp_calibrate as pdp
>>> pair = pdp.JointTable(probabilities=[[0.3, 0.2], [0.2, 0.3]], domains=[[0, 1], [0, 1]])
>>> figure = pdp.plots.leakage_by_scale(pdp.calibrate(pair, pdp.Sum(), epsilon=1.0))
>>> figure.axes[0].get_xlabel()
'Laplace scale λ (units of the answer)'
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from pdp_calibrate.calibration.result import AnyCalibration, Calibration
from pdp_calibrate.core.model import Model
from pdp_calibrate.core.posterior import Beliefs
from pdp_calibrate.errors import MissingLibraryError, PdpError
from pdp_calibrate.families.stream.refresh import Refresh
from pdp_calibrate.learning.pearson import Correlations
from pdp_calibrate.show import views
from pdp_calibrate.show.correlations import CorrelationMap, correlations as correlations_of
from pdp_calibrate.show.networks import NetworkMap, network as network_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure


Theme = Literal["light", "dark"]


_MODULES = {
    "leakage_by_scale": "curves",
    "leakage_by_knowledge": "curves",
    "what_if": "curves",
    "refresh": "curves",
    "scales": "bars",
    "beliefs": "bars",
    "simulated": "bars",
    "correlations": "maps",
    "adversary_graph": "graphs",
    "network": "networks",
}


ALL_PANELS = 4
"""Of more entries than this, the graph of adversaries shows those who attack the worst of them."""


def draw(picture: str, view: Any, *, theme: Theme = "light") -> Figure:
    """Draw one picture from the numbers behind it."""
    if view is None:
        raise PdpError(f"there is nothing to draw for {picture} here.")
    try:
        import_module("matplotlib")
    except ImportError as error:
        raise MissingLibraryError.needed_for("pictures need matplotlib", extra="plot") from error
    canvas = import_module("pdp_calibrate.show.drawing.canvas")
    module = import_module(f"pdp_calibrate.show.drawing.{_MODULES[picture]}")
    with canvas.neutral():
        figure: Figure = getattr(module, picture)(view, theme)
    return figure


def _seen(
    picture: str, view: Callable[[AnyCalibration], Any], subject: Any, theme: Theme
) -> Figure:
    """Draw a calibration, or the numbers behind its picture."""
    numbers = view(subject) if isinstance(subject, Calibration) else subject
    return draw(picture, numbers, theme=theme)


def leakage_by_scale(
    subject: AnyCalibration | views.ScaleCurve, *, theme: Theme = "light"
) -> Figure:
    """Draw the leakage against the scale, with the chosen point and plain DP."""
    return _seen("leakage_by_scale", views.leakage_by_scale, subject, theme)


def leakage_by_knowledge(
    subject: AnyCalibration | views.KnowledgeCurve, *, theme: Theme = "light"
) -> Figure:
    """Draw the worst leakage by the number of known tuples (the paper's Figure 4)."""
    return _seen("leakage_by_knowledge", views.leakage_by_knowledge, subject, theme)


def scales(
    subject: AnyCalibration | views.ScaleBars | dict[str, float], *, theme: Theme = "light"
) -> Figure:
    """Draw the scales of all methods as bars; numbers by name are in units of the answer."""
    bars = views.ScaleBars(scales=subject) if isinstance(subject, dict) else subject
    return _seen("scales", views.scale_bars, bars, theme)


def correlations(
    subject: Model | Correlations | AnyCalibration | CorrelationMap, *, theme: Theme = "light"
) -> Figure:
    """Draw the correlations of all pairs as a heat map with signs."""
    if isinstance(subject, CorrelationMap):
        return draw("correlations", subject, theme=theme)
    source = subject.model if isinstance(subject, Calibration) else subject
    return draw("correlations", correlations_of(source), theme=theme)


def adversary_graph(
    subject: AnyCalibration | views.AdversaryGraph, *, theme: Theme = "light"
) -> Figure:
    """Draw the paper's weighted hierarchical graph of up to six tuples (Figure 3)."""
    return _seen("adversary_graph", views.adversary_graph, subject, theme)


def network(subject: AnyCalibration | NetworkMap, *, theme: Theme = "light") -> Figure:
    """Draw the graph of a network, with how much could be learned about each entry."""
    return _seen("network", network_of, subject, theme)


def beliefs(
    subject: AnyCalibration | Beliefs | views.BeliefBars, *, theme: Theme = "light"
) -> Figure:
    """Draw an adversary's beliefs before and after an output (the paper's Example 1)."""
    if isinstance(subject, Beliefs):
        return draw("beliefs", views.bars_of(subject), theme=theme)
    return _seen("beliefs", views.beliefs, subject, theme)


def refresh(subject: Refresh | views.RefreshCurve, *, theme: Theme = "light") -> Figure:
    """Draw what a refreshed budget tells about any one record, against how long people stay."""
    view = views.refresh_curve(subject) if isinstance(subject, Refresh) else subject
    return draw("refresh", view, theme=theme)


def what_if(curve: Any, *, theme: Theme = "light") -> Figure:
    """Draw the scale needed against a parameter of the model.

    Parameters
    ----------
    curve
        Anything with ``parameter`` (a name), ``values`` and ``scales``.
    theme
        ``"light"`` or ``"dark"``.
    """
    return draw("what_if", curve, theme=theme)
