"""From the form of the page to a job: what was typed, chosen and moved."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from pdp_calibrate.arrays import damage_refused
from pdp_calibrate.calibration.calibrate import calibrate_to_accuracy
from pdp_calibrate.core.model import SCHEMA, Model
from pdp_calibrate.errors import ModelError, PdpError, QueryError
from pdp_calibrate.explore.subject import Subject
from pdp_calibrate.jobs.grammar import parse_query, parse_values
from pdp_calibrate.jobs.job import Job, Learning, Options
from pdp_calibrate.jobs.run import Task, model_of, task_of
from pdp_calibrate.jobs.written import question_text

DEFAULTS = {
    "kind": "mean", "column": "", "values": "", "also": "", "by": "", "by_domain": "",
    "groups": "", "order_by": "", "max_group_size": "", "low": "", "high": "", "domain": "",
    "missing": "", "alike": "unknown", "correlation": "0.3", "persistence": "0.9",
    "learning": "0.5", "model": "", "strength": "epsilon", "epsilon": "1", "before": "1",
    "after": "3", "half_width": "", "rows": "1", "ledger": "", "budget": "", "sure": "",
}  # fmt: skip
"""Every field of the form, and what it holds where nothing was said."""

_LONGEST = 5_000_000


@dataclass(frozen=True, kw_only=True, eq=False)
class Asked:
    """What the answers ask for."""

    job: Job
    """Questions, options and learning; its ε is settled."""
    texts: tuple[str, ...]
    """The questions as text."""
    model: Model | None
    """The model that was opened or uploaded; None where rows and answers make one."""
    task: Task | None
    """The job in the terms of a model; None where that is learned from secret rows first."""


def completed(given: Mapping[str, str], subject: Subject) -> dict[str, str]:
    """Return every field of the form; what is unknown is refused."""
    for name, value in given.items():
        if name not in DEFAULTS:
            raise QueryError(f"the form has no field {name}.")
        if len(value) > _LONGEST:
            raise QueryError(f"{name} is too long.")
    return {**DEFAULTS, **subject.answers, **{name: text.strip() for name, text in given.items()}}


def asked_by(answers: Mapping[str, str], subject: Subject) -> Asked:
    """Turn the answers into a job, and settle what it means about the rows or the model."""
    _refuse_open(answers, subject)
    texts = _questions(answers)
    questions = tuple(map(parse_query, texts))
    learning = _learning(answers, subject)
    options = _options(answers, subject)
    model = subject.model
    if answers["alike"] == "model":
        model = _uploaded(answers["model"])
        options["model"] = model
    strength, wanted = _strength(answers)

    def job(more: Mapping[str, Any]) -> Job:
        said = cast("Options", {**options, **more})
        return Job(questions=questions, options=said, learning=cast("Learning", learning))

    if answers["alike"] == "dp":
        if wanted is not None:
            raise QueryError("how accurate an answer is can be told once the model is learned.")
        return Asked(job=job(strength), texts=texts, model=None, task=None)
    settled = job(strength or {"epsilon": 1.0})
    if subject.frame is None:
        rows = _whole(answers["rows"], "the number of rows")
        task = task_of(settled, None, model, rows=rows)
    else:
        task = task_of(settled, subject.frame, model or model_of(settled, subject.frame))
    if wanted is not None:
        if len(task.queries) > 1:
            raise QueryError("an accuracy is of one answer: ask one question.")
        found = calibrate_to_accuracy(
            task.model, task.queries[0], half_width=wanted, rows=task.rows
        )
        settled = job({"epsilon": _rounded_up(found.epsilon)})
    return Asked(job=settled, texts=texts, model=model, task=task)


def _refuse_open(answers: Mapping[str, str], subject: Subject) -> None:
    """Say which answer is needed next, in the words of the page."""
    if subject.frame is None:
        return
    together = answers["groups"] or answers["order_by"]
    if answers["alike"] in ("unknown", "correlation", "persistence") and not together:
        raise QueryError(
            "Choose in step 1 who belongs together: the column of households, or of times. If every"
            " row stands alone, or the rows are public, say so in step 2."
        )
    numbers = answers["kind"] in ("sum", "mean") and answers["alike"] not in ("public", "model")
    if numbers and not (answers["low"] and answers["high"]):
        raise QueryError(
            f"Type in step 1 the lowest and the highest value that {answers['column'] or 'they'}"
            " can have: their public range, not the one in the file."
        )


def _rounded_up(epsilon: float) -> float:
    """Return ε with four digits, no smaller, so that the accuracy is reached."""
    digits = 3 - math.floor(math.log10(epsilon))
    found = math.ceil(epsilon * 10.0**digits - 1e-9) / 10.0**digits
    return max(found, epsilon)


def _questions(answers: Mapping[str, str]) -> tuple[str, ...]:
    kind, column = answers["kind"], answers["column"]
    if kind not in ("sum", "mean", "count", "histogram"):
        raise QueryError(f"a question is a sum, mean, count or histogram, got {kind!r}.")
    values = None
    if kind == "count":
        if not answers["values"]:
            raise QueryError("say which values count, such as true, or 1.")
        values = parse_values(answers["values"])
    first = question_text(kind, [column] if column else [], values)
    others = [text for text in answers["also"].split(";") if text.strip()]
    return (first, *(text.strip() for text in others))


def _options(answers: Mapping[str, str], subject: Subject) -> dict[str, Any]:
    said: dict[str, Any] = {}
    alike = answers["alike"]
    if subject.frame is None:
        return said
    if alike == "independent":
        said["independent"] = True
    else:
        said |= {name: answers[name] for name in ("groups", "order_by") if answers[name]}
        if answers["max_group_size"]:
            said["max_group_size"] = _whole(answers["max_group_size"], "members of a group")
    column = answers["column"]
    if alike != "model":
        if answers["kind"] in ("sum", "mean") and (answers["low"] or answers["high"]):
            ends = (
                _number(answers["low"], "the lowest value"),
                _number(answers["high"], "the highest value"),
            )
            said["bounds"] = {column: ends} if column else ends
        domains = {}
        if answers["domain"] and column and answers["kind"] in ("count", "histogram"):
            domains[column] = parse_values(answers["domain"])
        if answers["by"] and answers["by_domain"]:
            domains[answers["by"]] = parse_values(answers["by_domain"])
        if domains:
            said["domains"] = domains
    if alike == "correlation":
        most = _number(answers["correlation"], "the correlation")
        said["correlation"] = most if answers["order_by"] else (0.0, most)
        said["assume"] = "gaussian"
    elif alike == "persistence":
        said["persistence"] = _number(answers["persistence"], "the persistence")
    if answers["by"]:
        said["by"] = (answers["by"],)
    if answers["missing"]:
        said["missing"] = "zero"
    return said


def _learning(answers: Mapping[str, str], subject: Subject) -> dict[str, Any]:
    if answers["alike"] not in ("public", "dp") or subject.frame is None:
        return {}
    numbers = answers["kind"] in ("sum", "mean") and bool(answers["low"])
    if answers["order_by"]:
        kind = "series" if numbers else "chain"
    elif answers["groups"]:
        kind = "groups"
    else:
        kind = "gaussian" if numbers else "table"
    if answers["alike"] == "public":
        return {"kind": kind, "public": True}
    return {"kind": kind, "epsilon": _number(answers["learning"], "the ε of learning")}


def _strength(answers: Mapping[str, str]) -> tuple[dict[str, Any], float | None]:
    """Return ε or a belief as options; or the accuracy wanted."""
    if answers["strength"] == "belief":
        before = _number(answers["before"], "the belief before") / 100
        after = _number(answers["after"], "the belief after") / 100
        return {"belief": (before, after)}, None
    if answers["strength"] == "accuracy":
        return {}, _number(answers["half_width"], "the accuracy wanted")
    return {"epsilon": _number(answers["epsilon"], "ε")}, None


def _uploaded(text: str) -> Model:
    if not text:
        raise ModelError("choose the file of a model, in JSON.")
    try:
        described = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ModelError("the file of the model is not JSON.") from error
    if not isinstance(described, dict) or described.get("schema") != SCHEMA:
        raise ModelError(f"the file is not a model of this library: it lacks the schema {SCHEMA}.")
    with damage_refused("the file of the model"):
        found = Model.from_dict(described)
    if found is None:
        raise ModelError("the file withholds the numbers of its model.")
    if found.provenance == "private":
        raise ModelError("a model learned from private rows is not shown here.")
    return found


def _number(text: str, what: str) -> float:
    try:
        found = float(text)
    except ValueError:
        raise PdpError(f"{what} must be a number, got {text[:40]!r}.") from None
    if not math.isfinite(found):
        raise PdpError(f"{what} must be finite.")
    return found


def _whole(text: str, what: str) -> int:
    found = _number(text, what)
    if found != int(found) or found < 1:
        raise PdpError(f"{what}: a whole number above 0 is needed.")
    return int(found)
