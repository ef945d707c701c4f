"""The figures of the page in a notebook: ``pdp.explore(model, query)``, with a slider for ε."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

from pdp_calibrate.calibration.calibrate import calibrate
from pdp_calibrate.calibration.result import Calibration
from pdp_calibrate.core.model import Model
from pdp_calibrate.core.query import Query
from pdp_calibrate.errors import PdpError
from pdp_calibrate.exploring.view import facts_of
from pdp_calibrate.show.explain import paragraphs
from pdp_calibrate.show.page import libraries, picture, shown
from pdp_calibrate.show.simulated import simulated_answers
from pdp_calibrate.show.views import leakage_by_knowledge, leakage_by_scale, refuse_private
from pdp_calibrate.show.words import leakage_of_plain_dp

EPSILONS = (0.1, 0.2, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0)
_WORDS = ("promise", "worst", "plain")


@dataclass(frozen=True, kw_only=True)
class Exploration:
    """What several ε cost, all computed beforehand, as one piece of HTML with a slider.

    A notebook shows it when it is the last line of a cell; nothing is loaded from elsewhere, and
    no kernel needs to run.
    """

    calibrations: tuple[Calibration, ...]
    """The calibration of each ε."""
    html: str = field(repr=False)
    """A whole page, to be saved or shown."""

    def _repr_html_(self) -> str:
        """Return an iframe, so that its styles and names do not clash with the notebook's."""
        return (
            '<iframe title="What each ε costs" sandbox="allow-scripts" style="width: 100%;'
            f' height: 48rem; border: 0" srcdoc="{html.escape(self.html)}"></iframe>'
        )


def explore(
    model: Model, query: Query, *, epsilons: Sequence[float] = EPSILONS, rows: int = 1
) -> Exploration:
    """Show in a notebook what the page of ``pdp-calibrate explore`` shows, with a slider for ε.

    Every ε is calibrated and its figures are drawn beforehand; the slider chooses among them. For a
    table, a schema or a plan, and to vary the assumptions, open the page itself.

    Parameters
    ----------
    model
        The distribution θ of the tuples, or a set Θ of them; not one learned from private rows.
    query
        What is released.
    epsilons
        The ε to show, in any order.
    rows
        Number of independent rows that one answer is about.

    Examples
    --------
    >>> import pdp_calibrate as pdp
    >>> home = pdp.GaussianGroup(size=4, correlation=(0, 0.4), bounds=(0, 100))
    >>> found = pdp.explore(home, pdp.Sum(clamp=True), epsilons=[1.0, 0.5])
    >>> [round(one.scale, 6) for one in found.calibrations], "<svg" in found.html
    ([440.0, 220.0], True)
    """
    refuse_private(model)
    if not epsilons:
        raise PdpError("name at least one ε to show.")
    jinja2, canvas = libraries()
    found = [calibrate(model, query, epsilon=one, rows=rows) for one in sorted(set(epsilons))]
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, finalize=shown,
        loader=jinja2.PackageLoader("pdp_calibrate.exploring", "."),
    )  # fmt: skip
    page = environment.get_template("notebook.html.j2").render(
        frames=[_frame(one, place, canvas) for place, one in enumerate(found)],
        first=min(range(len(found)), key=lambda place: abs(found[place].epsilon - 1)),
        style=resources.files("pdp_calibrate.exploring").joinpath("page.css").read_text("utf-8"),
    )
    return Exploration(calibrations=tuple(found), html=page)


def _frame(found: Calibration, place: int, canvas: Any) -> dict[str, Any]:
    """Compute everything that is shown for one ε."""
    plain = leakage_of_plain_dp(found)
    views = {
        "simulated": simulated_answers(found, people=found.rows * sum(found.model.copies)),
        "leakage_by_scale": leakage_by_scale(found, plain=plain),
        "leakage_by_knowledge": leakage_by_knowledge(found),
    }
    pictures = [picture(name, view, canvas) for name, view in views.items() if view is not None]
    for one in pictures:  # all frames are on one page, so names must differ
        one["svg"] = canvas.renamed(one["svg"], one["name"], f"{one['name']}-{place}")
    said = paragraphs(found, plain=plain)
    return {
        "epsilon": f"{found.epsilon:g}",
        "scale": f"{found.scale:.6g}",
        "unit": found.scale_units[0],
        "wide": found.half_widths_in_words(then=" in 95 % of releases")[0],
        "facts": facts_of(found),
        "words": [said[name] for name in _WORDS if said.get(name)],
        "pictures": pictures,
    }
