"""Everything that a report says, as numbers and words; nothing of the data."""

from __future__ import annotations

import dataclasses
import json
import math
import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata
from typing import Any, TypeAlias

from pdp_calibrate.calibration.release import Layout
from pdp_calibrate.calibration.result import (
    AnyCalibration,
    AnyRelease,
    Calibration,
    Release,
    gaussian_claims,
)
from pdp_calibrate.core.model import PRIVATE_MODEL, SCHEMA, Model
from pdp_calibrate.core.problem import Leakage
from pdp_calibrate.errors import LedgerError, PdpError
from pdp_calibrate.ledger.ledger import Ledger
from pdp_calibrate.ledger.people import PeopleLedger, stated
from pdp_calibrate.show import words as costs
from pdp_calibrate.show.correlations import correlations
from pdp_calibrate.show.explain import (
    ONE_RELEASE,
    column_of,
    of_column,
    of_the_release,
    paragraphs,
    people_assumptions,
    table_of,
)
from pdp_calibrate.show.hazards import checklist
from pdp_calibrate.show.networks import network
from pdp_calibrate.show.opening import (
    assumed,
    keeps_promise,
    learns_most,
    ledger_opening,
    opening,
    unprotected,
)
from pdp_calibrate.show.views import (
    adversary_graph,
    beliefs,
    leakage_by_knowledge,
    leakage_by_scale,
    scale_bars,
    scales_of_methods,
)
from pdp_calibrate.show.words import (
    asked,
    assumptions,
    entry,
    is_clamped,
    kind_of_noise,
    listed,
    source,
)

Reportable: TypeAlias = AnyCalibration | AnyRelease | Ledger | PeopleLedger


_LIBRARIES = ("pdp-calibrate", "opendp", "numpy", "scipy", "pandas", "numba")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Summary:
    """What a page shows: facts that are numbers, words about them, and what is to be drawn."""

    facts: dict[str, Any]
    """The numbers, ready for JSON; every number on the page is one of these."""
    words: dict[str, str]
    """The paragraphs of `explain`."""
    views: dict[str, Any]
    """What is to be drawn, by the name of the picture; empty for a private model."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Document:
    """What the people who use a report say about it; all of it may be left out."""

    title: str = "Privacy report"
    """The heading."""
    data: str | None = None
    """What the table is called."""
    purpose: str | None = None
    """What the answer is published for."""
    author: str | None = None
    """Who wrote the report."""
    date: str | None = None
    """When; by default the day on which it is made."""
    sign: bool = False
    """Whether there is a signature line."""
    checked: str | None = None
    """What the stand-alone checker answered; None if it was not asked."""


def summarise(
    subject: Reportable,
    *,
    ledger: Ledger | None = None,
    document: Document | None = None,
    layout: Layout | None = None,
) -> Summary:
    """Collect what a report about a calibration, release or ledger says.

    The ledger is the one that a release was counted in. The layout says which columns of the table
    a calibration is about; a release says it itself.
    """
    if not isinstance(subject, Calibration | Release | Ledger | PeopleLedger):
        raise PdpError(
            f"a report is about a calibration, a release or a ledger, got {type(subject).__name__}."
        )
    facts: dict[str, Any] = {
        "schema": SCHEMA,
        "type": "Report",
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": versions(),
        "document": dataclasses.asdict(document or Document()),
    }
    data = facts["document"]["data"]
    if isinstance(subject, PeopleLedger):
        facts |= _of_people(subject)
        facts["opening"] = ledger_opening(subject, data=data)
        facts |= _for_the_reader(subject, layout=None, total=subject.spent, counted=True)
        return Summary(facts=facts, words=paragraphs(subject), views={})
    if isinstance(subject, Release):
        layout = subject.layout
    calibration = subject.calibration if isinstance(subject, Release) else subject
    plain = _plain_dp(calibration)
    words = paragraphs(subject, plain=plain)
    if isinstance(calibration, Ledger):
        ledger = calibration
        facts["about"] = f"Releases about draw {ledger.draw}"
        facts["assumptions"] = assumptions(ledger.model, ledger.adversaries)
        facts["model"] = _of_model(ledger.model)
        if ledger.model.provenance == "private":
            facts["warning"] = PRIVATE_MODEL
        views: dict[str, Any] = {}
    else:
        release = subject if isinstance(subject, Release) else None
        facts |= _of_calibration(calibration, plain, layout, release)
        views = views_of(calibration, plain)
    if isinstance(subject, Release):
        facts["answers"] = _of_release(subject)
    facts["source"] = _source(subject)
    if ledger is not None and not isinstance(calibration, Ledger):
        ledger.check_model(calibration.model)
    if ledger is not None and isinstance(subject, Release):
        facts["total_epsilon"] = max(_spent_with(subject, ledger), subject.calibration.epsilon)
        facts["total_of"] = "everything in the ledger below about the same draw"
    if isinstance(subject, Ledger):
        total = subject.epsilon if subject.delta else subject.spent
        facts["opening"] = ledger_opening(subject, data=data)
    else:
        total = facts["total_epsilon"]
        facts["odds_factor"] = math.exp(min(total, 700.0))
        facts["opening"] = opening(subject, data=data, layout=layout, total=total)
    counted = ledger is not None
    facts |= _for_the_reader(subject, layout=layout, total=total, counted=counted)
    if ledger is not None:
        facts["ledger"] = _of_ledger(ledger)
        facts["assumptions"] = [
            *(one for one in facts["assumptions"] if one != ONE_RELEASE),
            "Every release about these people is in the ledger below.",
        ]
    return Summary(facts=facts, words=words, views=views)


def _for_the_reader(
    subject: Reportable, *, layout: Layout | None, total: float, counted: bool
) -> dict[str, Any]:
    """Collect what is not protected, and what else can undo a promise."""
    hazards = checklist(subject, layout=layout, total=total, counted=counted)
    return {
        "unprotected": unprotected(subject, layout),
        "hazards": [dataclasses.asdict(one) for one in hazards],
    }


def _spent_with(subject: AnyRelease, ledger: Ledger) -> float:
    """Return what everything that the ledger holds about the draw of a release leaks together.

    Raises if the release is not in the ledger, which then is about other data.
    """
    calibration = subject.calibration
    wanted = (
        [query.to_dict() for query in calibration.queries],
        list(calibration.scales),
        calibration.rows,
    )
    draws = {
        entry.draw
        for entry in ledger.history
        if entry.kind == "release" and _written(entry.to_dict()) == _plain_json(wanted)
    }
    if not draws:
        raise LedgerError(
            "the release is not in this ledger: no entry has its query, scale and number of rows."
            " Give the ledger that it was counted in."
        )
    draw = ledger.draw if ledger.draw in draws else max(draws)
    return [entry.spent for entry in ledger.history if entry.draw == draw][-1]


def _written(entry: Mapping[str, Any]) -> Any:
    return _plain_json((entry["queries"], entry["scales"], entry["rows"]))


def _plain_json(value: Any) -> Any:
    """Return what JSON keeps of it."""
    return json.loads(json.dumps(value))


def versions() -> dict[str, str]:
    """Return the versions of Python and of the libraries that decide numbers."""
    found = {"Python": platform.python_version()}
    for library in _LIBRARIES:
        try:
            found[library] = metadata.version(library)
        except metadata.PackageNotFoundError:  # run from a checkout
            continue
    return found


def _plain_dp(calibration: AnyCalibration | Ledger) -> Leakage | None:
    if isinstance(calibration, Ledger) or calibration.model.provenance == "private":
        return None
    return costs.leakage_of_plain_dp(calibration)


def _of_calibration(
    calibration: AnyCalibration,
    plain: Leakage | None,
    layout: Layout | None,
    release: AnyRelease | None,
) -> dict[str, Any]:
    private = calibration.model.provenance == "private"
    column, clamped = column_of(layout), is_clamped(calibration)
    leak = calibration.leakage
    widths: Sequence[float | None] = (
        calibration.known_half_widths() if release is None else release.half_widths()
    )
    facts = {
        "about": "; ".join(asked(query, column=column) for query in calibration.queries),
        "epsilon": calibration.epsilon,
        "total_epsilon": calibration.total_epsilon,
        "total_of": "the answer and the learning of the model",
        **gaussian_claims(calibration),
        "leakage": {"value": leak.value} | ({} if private else {"lower": leak.lower}),
        "exact": leak.exact,
        "rows": calibration.rows,
        "estimation_epsilon": calibration.estimation_epsilon,
        "adversaries": repr(calibration.adversaries),
        "model": _of_model(calibration.model),
        "assumptions": [
            f"The model is right: {assumed(calibration.model, layout, clamped=clamped)}.",
            *costs.assumptions_of(calibration)[1:],
            *of_the_release(calibration),
        ],
        "queries": [
            {
                "about": asked(query, column=column),
                "scale": scale,
                "unit": unit,
                "noise": kind_of_noise(calibration),
                "half_width": width,
            }
            for query, scale, unit, width in zip(
                calibration.queries,
                calibration.scales,
                calibration.scale_units,
                widths,
                strict=True,
            )
        ],
        "dp_epsilon": calibration.dp_epsilon,
        "clamping_bias": None if private else _bias(calibration),
        "methods": _methods(calibration, plain, release),
        "who": "" if private else learns_most(calibration, column),
    }
    return facts | ({"warning": PRIVATE_MODEL} if private else {})


def _bias(calibration: AnyCalibration) -> float | None:
    return costs.clamping_bias(calibration) if is_clamped(calibration) else None


def _methods(
    calibration: AnyCalibration, plain: Leakage | None, release: AnyRelease | None
) -> list[dict[str, Any]]:
    leaks: dict[str, float | None] = {
        "plain DP": None if plain is None else plain.value,
        "this release": calibration.leakage.value,
    }
    found = []
    for name, scale in scales_of_methods(calibration).items():
        other = dataclasses.replace(calibration, scale=scale)
        found.append(
            {
                "name": name,
                "scale": scale,
                "ratio": other.scales[0] / calibration.scales[0],
                "half_width": _half_width(other, release),
                "leakage": leaks.get(name),
                "keeps": _keeps(calibration, other, leaks.get(name)),
            }
        )
    return found


def _half_width(other: AnyCalibration, release: AnyRelease | None) -> Any:
    """Return how far an answer of another method may be off, None where that is not known.

    Beside a release, what its own answer would say of itself if it had been made with that noise.
    """
    same = None if release is None else dataclasses.replace(release, calibration=other)
    widths = other.known_half_widths() if same is None else same.half_widths()
    return widths[0] if len(widths) == 1 else list(widths)


def _keeps(own: AnyCalibration, other: AnyCalibration, leaked: float | None) -> str:
    if own.model.provenance == "private" and other.scales != own.scales:
        return "withheld: the model is private"
    return keeps_promise(other.scales[0], own.scales[0], leaked, own.epsilon)


def _of_model(model: Model) -> dict[str, Any]:
    described = {
        "family": type(model).__name__,
        "words": model.in_words(),
        "assuming": model.assuming,
        "provenance": model.provenance,
        "source": source(model),
        "tuples": sum(model.copies),
        "names": listed((entry(name, model) for name in model.names), most=12),
    }
    return described if model.provenance == "private" else described | {"digest": model.digest}


def _of_release(release: AnyRelease) -> list[dict[str, Any]]:
    found = []
    column = column_of(release.layout)
    for query, value, (low, high), reach in zip(
        release.calibration.queries,
        release.values,
        release.intervals(alpha=0.05),
        release.reaches(alpha=0.05),
        strict=True,
    ):
        about = asked(query, column=column)
        if isinstance(value, int | float):
            found.append((about, value, low, high, reach))
        elif value.ndim == 1:
            found += [
                (f"{about}: {label}", *numbers)
                for label, *numbers in zip(value.index, value, low, high, reach, strict=True)
            ]
    names = ("value", "low", "high", "half_width")
    return [
        {"about": about} | dict(zip(names, map(_plain, numbers), strict=True))
        for about, *numbers in found[:200]
    ]


def _plain(value: Any) -> int | float:
    found: int | float = value.item() if hasattr(value, "item") else value
    return found


def _of_ledger(ledger: Ledger) -> dict[str, Any]:
    return {
        "epsilon": ledger.epsilon,
        **({"delta": ledger.delta} if ledger.delta else {}),
        **({} if ledger.mu is None else {"mu": ledger.mu}),
        **({"repeats": ledger.repeats} if ledger.repeats else {}),
        "draw": ledger.draw,
        "spent": ledger.spent,
        "remaining": ledger.remaining,
        "adversaries": repr(ledger.adversaries),
        "entries": [one.to_dict() | {"about": _about(one)} for one in ledger.history],
    }


def _of_people(ledger: PeopleLedger) -> dict[str, Any]:
    """Collect what a report about people says: the table, its columns, and what was released."""
    models = ledger.models
    return {
        "about": f"Releases about {table_of(ledger)}",
        "table": {"words": f"The table has {table_of(ledger)}."},
        "assumptions": people_assumptions(ledger),
        "source": {"type": "PeopleLedger", "declared": dict(ledger.declared)},
        "ledger": {
            "epsilon": ledger.epsilon,
            "spent": ledger.spent,
            "remaining": ledger.remaining,
            "columns": [
                {
                    "name": name,
                    "spent": spent,
                    "remaining": ledger.epsilon - spent,
                    "assumed": stated(models[name]) if name in models else "any dependence",
                }
                for name, spent in ledger.spent_by_column.items()
            ],
            "entries": [one.to_dict() | {"about": _about(one)} for one in ledger.history],
        },
    }


def _about(one: Any) -> str:
    if one.kind == "estimation":
        return "learning the model"
    if one.kind == "charge":
        return f"outside mechanism {one.note}".strip()
    return "; ".join(asked(query) for query in one.queries) + of_column(one)


def _source(subject: AnyCalibration | AnyRelease | Ledger) -> dict[str, Any]:
    """Describe the subject as its own JSON does."""
    if isinstance(subject, Ledger):
        return {"type": "Ledger", "model": subject.model.to_dict()}
    return subject.to_dict()


def views_of(calibration: AnyCalibration, plain: Leakage | None) -> dict[str, Any]:
    """Return the numbers behind every picture there is; none of a private model.

    `plain` is what the scale of plain DP leaks, if it has been computed.
    """
    if calibration.model.provenance == "private":
        return {}
    found: Mapping[str, Any] = {"correlations": correlations(calibration.model)}
    if len(calibration.queries) == 1:
        found = {
            "leakage_by_scale": leakage_by_scale(calibration, plain=plain),
            "leakage_by_knowledge": leakage_by_knowledge(calibration),
            "scales": scale_bars(calibration),
            **found,
        }
    if len(calibration.queries) == 1:
        found = {
            **found,
            "beliefs": beliefs(calibration),
            "adversary_graph": adversary_graph(calibration),
            "network": network(calibration),
        }
    return {name: view for name, view in found.items() if view is not None}
