"""One self-contained HTML page about a calibration, a release or a ledger."""

from __future__ import annotations

import dataclasses
import json
import math
import os
from importlib import import_module, resources
from pathlib import Path
from typing import Any

from pdp_calibrate.calibration.result import Calibration, Release
from pdp_calibrate.check import PROVED, check
from pdp_calibrate.core.numbers import beside_noise, ordinary, width
from pdp_calibrate.errors import MissingLibraryError, PdpError, printable
from pdp_calibrate.ledger.ledger import Ledger
from pdp_calibrate.show import plots
from pdp_calibrate.show.output_file import OutputFile
from pdp_calibrate.show.summary import Document, Reportable, Summary, summarise

_PARAGRAPHS = ("promise", "spent", "worst", "plain", "group", "learning", "interval")


_TITLES = {
    "leakage_by_scale": "Leakage against scale",
    "leakage_by_knowledge": "Leakage by what the adversary knows",
    "scales": "Scales of all methods",
    "beliefs": "Belief before and after",
    "simulated": "What an answer would look like",
    "correlations": "Correlations in the model",
    "adversary_graph": "Every adversary",
    "network": "About whom most could be learned",
}


_FOR_EVERYBODY = ("leakage_by_scale", "scales", "beliefs")
"""Pictures that need no mathematics; the others are folded with it."""


_CAPTIONS = {
    "simulated": "Simulated people, every value drawn evenly from those that are possible; nothing"
    " of the data is in it. The noise is that of a release.",
    "leakage_by_scale": "More noise leaks less. The curve is the worst case over every allowed"
    " adversary; the square is the noise that plain differential privacy would have used. Noise to"
    " the left of the round point breaks the promise.",
    "leakage_by_knowledge": "The worst case among adversaries who already know some number of the"
    " others; of groups, in the one where most can be learned.",
    "scales": "The noise that each method asks for. Plain differential privacy ignores correlation:"
    " where its bar is shorter than ours, it does not keep the promise.",
    "beliefs": "What the worst adversary believes about one entry before the release, and after"
    " the answer that helps them most. What they already know is subtracted from the answer.",
    "correlations": "Pairs of entries: together (+) or against each other (−).",
    "adversary_graph": "",  # depends on what is drawn
    "network": "Lines join entries that depend on each other given all others; the deeper its"
    " colour, the more somebody could learn about an entry.",
}


def report(
    subject: Reportable,
    path: str | os.PathLike[str],
    *,
    ledger: Ledger | None = None,
    title: str = Document.title,
    data: str | None = None,
    purpose: str | None = None,
    author: str | None = None,
    date: str | None = None,
    sign: bool = False,
    checked: bool = False,
    overwrite: bool = False,
) -> Path:
    """Write one HTML page about a calibration, a release or a ledger, for the person who signs.

    It opens with one paragraph: what was released about whom, what was assumed, what is promised,
    in odds. Then the answer, what it rests on, who could learn most, other methods, what is not
    protected, a checklist of hazards, and the mathematics, folded. It needs no network and no
    script, prints on A4, and reads on a phone and in the dark. It never holds a true answer, a
    record, or a parameter of a model learned from private rows.

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
    data
        The name of the table, such as "Household survey 2025".
    purpose
        What the answer is published for.
    author
        Who wrote the report.
    date
        Its date; by default today.
    sign
        Whether the page ends with a signature line.
    checked
        Whether the stand-alone checker is to prove the calibration first, so that the page says
        "independently checked". What it cannot prove raises, and no page is written.
    overwrite
        Whether a file that is there may be replaced; a ledger never is.

    Returns
    -------
    Path
        Where the page is.
    """
    with OutputFile(path, overwrite=overwrite) as file:
        answer = _proved(subject) if checked else None
        document = Document(
            title=title, data=data, purpose=purpose, author=author, date=date, sign=sign,
            checked=answer,
        )  # fmt: skip
        file.write(render(summarise(subject, ledger=ledger, document=document)))
    return file.path


def _proved(subject: Reportable) -> str:
    """Return what the stand-alone checker says about a calibration or release, if it is a proof."""
    if not isinstance(subject, Calibration | Release):
        raise PdpError("only a calibration or a release can be checked independently.")
    code, answer = check(subject.to_dict())
    if code != PROVED:
        raise PdpError(f"the independent check does not prove it. {answer}")
    return answer


def render(summary: Summary) -> str:
    """Fill the page with what a summary says."""
    jinja2, canvas = libraries()
    template = resources.files("pdp_calibrate.show").joinpath("page.html.j2").read_text("utf-8")
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        finalize=shown,
    )  # fmt: skip
    environment.filters |= {"number": ordinary, "width": width, "beside": beside_noise}
    pictures = [picture(name, view, canvas) for name, view in summary.views.items()]
    facts = summary.facts | {"views": {name: _plain(v) for name, v in summary.views.items()}}
    page: str = environment.from_string(template).render(
        facts=facts,
        words=dict.fromkeys(_PARAGRAPHS, "") | summary.words,
        pictures=[one for one in pictures if one["name"] in _FOR_EVERYBODY],
        diagrams=[one for one in pictures if one["name"] not in _FOR_EVERYBODY],
        embedded=_embedded(facts),
    )
    return page


def picture(name: str, view: Any, canvas: Any) -> dict[str, str]:
    """Return one picture as a page holds it: drawn, with its title and what it says."""
    title, caption = caption_of(name, view)
    drawn = canvas.as_svg(plots.draw(kind_of_picture(name), view), name)
    return {"name": name, "title": title, "caption": caption, "svg": drawn}


def caption_of(name: str, view: Any) -> tuple[str, str]:
    """Return the title of a picture, and what it says.

    With Gaussian noise no answer is the one that helps most.
    """
    kind = kind_of_picture(name)
    caption, beyond = _CAPTIONS[kind], getattr(view, "beyond", 0.0)
    if name == "beliefs" and beyond:
        caption = (
            "What the worst adversary believes about one entry before the release, and after a"
            f" telling answer. Answers that reveal more have a probability of {beyond:.2g}: after"
            " these a belief can move further, and the rarer they are the further, as Gaussian"
            " noise has no limit. What they already know is subtracted from the answer."
        )
    if name == "adversary_graph":
        caption = "Each box is an adversary: the entries known, and what they could learn at most."
        if view.graph is not None:
            caption += " Lines have the weights of the paper; no guarantee rests on them."
        if len(view.names) > plots.ALL_PANELS:
            caption += " Of all entries, the one about whom most can be learned is attacked."
    about = getattr(view, "asked", "")
    return f"{_TITLES[kind]}: {about}" if about else _TITLES[kind], caption


def kind_of_picture(name: str) -> str:
    """Return what a picture is of: ``simulated-2`` is the second such."""
    return name.partition("-")[0]


def libraries() -> tuple[Any, Any]:
    """Return jinja2 and the canvas that pictures are drawn on, or raise if one is missing."""
    try:
        import_module("matplotlib")
        return import_module("jinja2"), import_module("pdp_calibrate.show.drawing.canvas")
    except ImportError as error:
        reason = "a report needs jinja2 and matplotlib"
        raise MissingLibraryError.needed_for(reason, extra="report") from error


def shown(value: Any) -> Any:
    """Escape characters that would reverse the order of text, also in pictures."""
    if not isinstance(value, str):
        return value
    return type(value)(printable(value, lines=True))  # what is safe markup stays so


def _embedded(facts: dict[str, Any]) -> str:
    """Return JSON that cannot end the script element around it."""
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
