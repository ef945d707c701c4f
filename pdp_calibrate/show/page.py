"""One self-contained HTML page about a calibration, a release or a ledger."""

from __future__ import annotations

import dataclasses
import json
import math
import os
from importlib import import_module, resources
from pathlib import Path
from typing import Any

from pdp_calibrate.core.cards import printable
from pdp_calibrate.errors import MissingLibraryError, PdpError
from pdp_calibrate.ledger.ledger import Ledger
from pdp_calibrate.show import plots
from pdp_calibrate.show.summary import Reportable, Summary, summarise

_PARAGRAPHS = ("promise", "spent", "worst", "plain", "group", "learning", "interval")


_TITLES = {
    "leakage_by_scale": "Leakage against scale",
    "leakage_by_knowledge": "Leakage by what the adversary knows",
    "scales": "Scales of all methods",
    "beliefs": "Belief before and after",
    "correlations": "Correlations in the model",
    "adversary_graph": "Every adversary",
    "network": "About whom most could be learned",
}


_CAPTIONS = {
    "leakage_by_scale": "More noise leaks less. The curve is the worst case over every allowed"
    " adversary; the square is the noise that plain differential privacy would have used.",
    "leakage_by_knowledge": "The worst case among adversaries who already know some number of the"
    " other entries.",
    "scales": "The noise that each method needs for the same promise; plain DP ignores"
    " correlation.",
    "beliefs": "What the worst adversary believes about one entry before and after the output"
    " that helps them most.",
    "correlations": "Pairs of entries: together (+) or against each other (−).",
    "adversary_graph": "Each box is an adversary: the entries known, and the exact leakage. Edge"
    " weights are those of the paper; no guarantee rests on them.",
    "network": "Lines join entries that depend on each other given all others; the deeper its"
    " colour, the more somebody could learn about an entry.",
}


def report(
    subject: Reportable,
    path: str | os.PathLike[str],
    *,
    ledger: Ledger | None = None,
    title: str = "Privacy report",
) -> Path:
    """Write one HTML page that explains a calibration, a release or a ledger.

    It needs no network and no script, prints, and reads on a phone and in the dark. It holds the
    guarantee in words and symbols, model and provenance, worst adversary, pictures, baselines,
    ledger, versions, and all its numbers as JSON; never a true answer, a record, or a parameter of
    a model learned from private rows.

    Parameters
    ----------
    subject
        A calibration or release, also of several queries; or a ledger.
    path
        Where to write the page.
    ledger
        The ledger that the release was counted in, to be shown too; any other is refused.
    title
        The heading of the page.

    Returns
    -------
    Path
        Where the page is.
    """
    page = render(summarise(subject, ledger=ledger), title=title)
    target = Path(path)
    try:
        target.write_text(page, encoding="utf-8")
    except OSError as error:
        raise PdpError(f"the report cannot be written to {target}: {error.strerror}.") from error
    return target


def render(summary: Summary, *, title: str) -> str:
    """Fill the page with what a summary says."""
    jinja2, canvas = libraries()
    template = resources.files("pdp_calibrate.show").joinpath("page.html.j2").read_text("utf-8")
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        finalize=_shown,
    )  # fmt: skip
    environment.filters["number"] = written
    pictures = [
        {
            "name": name,
            "title": _TITLES[name],
            "caption": _CAPTIONS[name],
            "svg": canvas.as_svg(plots.draw(name, view), name),
        }
        for name, view in summary.views.items()
    ]
    facts = summary.facts | {"views": {name: _plain(v) for name, v in summary.views.items()}}
    page: str = environment.from_string(template).render(
        title=title,
        facts=facts,
        words=dict.fromkeys(_PARAGRAPHS, "") | summary.words,
        pictures=pictures,
        embedded=_embedded(facts),
    )
    return page


def libraries() -> tuple[Any, Any]:
    """Return jinja2 and the canvas that pictures are drawn on, or raise if one is missing."""
    try:
        import_module("matplotlib")
        return import_module("jinja2"), import_module("pdp_calibrate.show.drawing.canvas")
    except ImportError as error:
        reason = "a report needs jinja2 and matplotlib"
        raise MissingLibraryError.needed_for(reason, extra="report") from error


def written(value: Any) -> str:
    """Write a number as the page shows it: four digits, whole numbers in full."""
    if value is None:
        return "–"
    if isinstance(value, int):
        return str(value)
    return f"{value:.4g}"


def _shown(value: Any) -> Any:
    """Write out characters that would turn the order of what is shown, also in pictures."""
    if not isinstance(value, str):
        return value
    return type(value)(printable(value, lines=True))  # what is safe markup stays so


def _embedded(facts: dict[str, Any]) -> str:
    """Return JSON that cannot end the script element it stands in."""
    text = json.dumps(facts, indent=1, allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _plain(view: Any) -> Any:
    """Return what was drawn as JSON holds it."""
    if dataclasses.is_dataclass(view) and not isinstance(view, type):
        if hasattr(view, "leakages"):
            return [
                {"target": str(target), "known": sorted(map(str, known)), "leakage": leakage}
                for (target, known), leakage in view.leakages.items()
            ]
        return {field.name: _plain(getattr(view, field.name)) for field in dataclasses.fields(view)}
    if isinstance(view, dict):
        return {str(key): _plain(value) for key, value in view.items()}
    if isinstance(view, tuple | list):
        return [_plain(one) for one in view]
    if isinstance(view, float) and not math.isfinite(view):
        return None
    return view
