"""From the form of the page to a job: what was typed, chosen and set with sliders."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from pdp_calibrate.arrays import damage_refused
from pdp_calibrate.core.model import SCHEMA, Model
from pdp_calibrate.errors import ModelError, QueryError
from pdp_calibrate.exploring.schema import Column, number_in, records_from, whole_in
from pdp_calibrate.exploring.subject import Asking, Subject
from pdp_calibrate.jobs.forms import NONE
from pdp_calibrate.jobs.grammar import parse_query, parse_values
from pdp_calibrate.jobs.job import Job, Learning, Options
from pdp_calibrate.jobs.model import estimator_of
from pdp_calibrate.jobs.run import Task, calibrate_task_to_accuracy, model_of, task_of
from pdp_calibrate.jobs.written import question_text

DEFAULTS = {
    "schema": "", "people": "", "groups": "", "order_by": "", "max_group_size": "",
    "kind": "mean", "column": "", "values": "", "also": "[]", "by": "", "missing": "",
    "alike": "unknown", "correlation": "0.3", "persistence": "0.9", "learning": "0.5",
    "confidence": "", "model": "", "model_name": "", "strength": "epsilon", "epsilon": "1",
    "before": "1", "after": "3", "half_width": "", "count": "", "large": "", "rows": "1",
    "ledger": "", "budget": "", "sure": "",
}  # fmt: skip
"""Every field of the form, and its default."""

_LONGEST = 5_000_000
_STATES_NOTHING = ("public", "model")  # ranges come from the rows, or from the model
_PLAIN_NAME = re.compile(r"\w[\w .-]{0,80}\.json", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True, eq=False)
class Asked:
    """What the form asks for."""

    job: Job
    """Questions, options and learning; its ε is fixed."""
    texts: tuple[str, ...]
    """The questions as text."""
    model: Model | None
    """The model that was opened or uploaded; None where it follows from rows and answers."""
    task: Task | None
    """The job applied to a model; None where the model is first learned from secret rows."""
    model_file: str = "model.json"
    """The name of an uploaded model's file."""


def completed(given: Mapping[str, str], subject: Subject) -> dict[str, str]:
    """Return every field of the form; unknown fields are refused."""
    for name, value in given.items():
        if name not in DEFAULTS:
            raise QueryError(f"the form has no field {name}.")
        if len(value) > _LONGEST:
            raise QueryError(f"{name} is too long.")
    names = ("column", "groups", "order_by", "by")  # of columns, in which spaces count
    said = {name: text if name in names else text.strip() for name, text in given.items()}
    return {**DEFAULTS, **subject.answers, **said}


def asked_by(answers: Mapping[str, str], subject: Subject) -> Asked:
    """Turn the answers into a job, and resolve it against the rows or the model."""
    askings = questions_in(answers)
    columns = {column.name: column for column in subject.columns}
    _refuse_open(answers, askings, columns, subject)
    texts = tuple(map(_text, askings))
    questions = tuple(map(parse_query, texts))
    options = _options(answers, askings, columns, subject)
    if answers["count"]:
        options["count"] = number_in(answers["count"], "about how many rows count")
    learning = _learning(answers, options, subject)
    model = subject.model
    if answers["alike"] == "model":
        model = _uploaded(answers["model"])
        options["model"] = model
    strength, wanted = _strength(answers)
    name = answers["model_name"]
    file = name if _PLAIN_NAME.fullmatch(name) else Asked.model_file

    def job(more: Mapping[str, Any]) -> Job:
        said = cast("Options", {**options, **more})
        return Job(questions=questions, options=said, learning=cast("Learning", learning))

    if answers["alike"] == "dp":
        if wanted is not None:
            raise QueryError(
                "the accuracy of an answer is known only once the model is learned: choose ε."
            )
        later = job(strength)
        estimator_of(later)  # so that what it refuses is said now, and not when ε is charged
        return Asked(job=later, texts=texts, model=None, task=None)
    settled = job(strength or {"epsilon": 1.0})
    if subject.frame is None:
        rows = whole_in(answers["rows"], "the number of rows")
        task = task_of(settled, None, model, rows=rows)
    else:
        task = task_of(settled, subject.frame, model or model_of(settled, subject.frame))
    if wanted is not None:
        large = bool(answers["large"])
        found = calibrate_task_to_accuracy(settled, task, wanted, allow_large_epsilon=large)
        settled = job({"epsilon": _rounded_up(found.epsilon)})
    return Asked(job=settled, texts=texts, model=model, task=task, model_file=file)


def questions_in(answers: Mapping[str, str]) -> tuple[Asking, ...]:
    """Return everything that is asked, in order."""
    first = {name: answers[name] for name in ("kind", "column", "values")}
    others = records_from(answers["also"], Asking.__dataclass_fields__, "questions")
    return tuple(Asking(**one) for one in (first, *others))


def _refuse_open(
    answers: Mapping[str, str],
    askings: Sequence[Asking],
    columns: Mapping[str, Column],
    subject: Subject,
) -> None:
    """Raise for the first answer that is still needed, in the words of the page."""
    if subject.frame is None:
        return
    together, alike = answers["groups"] or answers["order_by"], answers["alike"]
    if alike in ("unknown", "correlation", "persistence") and not together:
        raise QueryError(
            "Choose in step 1 who belongs together: the column of households, or of times. If the"
            " rows are independent, or public, say so in step 2."
        )
    if alike == "public" and subject.typed:
        raise QueryError("There are no rows to learn from: open a file, with explore FILE.")
    if alike in _STATES_NOTHING:
        return
    for column in _needing_values(answers, askings, columns):
        if column.kind != "yes/no" and column.domain is None and alike != "dp":
            raise QueryError(
                f"Type in step 1 which values {column.name} can have: those that are possible, not"
                " those in the file."
            )
    for one in askings:
        if one.kind not in ("sum", "mean"):
            continue
        for column in _asked_about(one, columns):
            if not column.is_number:
                raise QueryError(
                    f"{column.name} has no numbers: ask for a count or a histogram of it, or say"
                    " in step 1 that it is a number."
                )
            if column.bounds is None:
                raise QueryError(
                    f"Type in step 1 the lowest and the highest value that {column.name} can have:"
                    " their public range, not the one in the file."
                )


def _needing_values(
    answers: Mapping[str, str], askings: Sequence[Asking], columns: Mapping[str, Column]
) -> list[Column]:
    """Return the columns whose possible values must be known: answers list or count them."""
    found = [columns[answers["by"]]] if answers["by"] in columns else []
    by_rows = answers["alike"] == "independent" or answers["by"] or answers["missing"]
    for one in askings:
        if one.kind == "histogram" or (one.kind == "count" and not by_rows):
            found += _asked_about(one, columns)
    return found


def _asked_about(one: Asking, columns: Mapping[str, Column]) -> list[Column]:
    if not one.column:
        return list(columns.values())
    if one.column not in columns:
        raise QueryError(f"the rows have no column {one.column}.")
    return [columns[one.column]]


def _rounded_up(epsilon: float) -> float:
    """Return ε with four digits, no smaller, so that the accuracy is reached."""
    digits = 3 - math.floor(math.log10(epsilon))
    found = math.ceil(epsilon * 10.0**digits - 1e-9) / 10.0**digits
    return max(found, epsilon)


def _text(one: Asking) -> str:
    if one.kind not in ("sum", "mean", "count", "histogram"):
        raise QueryError(f"a question is a sum, mean, count or histogram, got {one.kind!r}.")
    values = None
    if one.kind == "count":
        if not one.values.strip():
            raise QueryError("say which values to count, such as true, or 1.")
        values = parse_values(one.values)
    return question_text(one.kind, [one.column] if one.column else [], values)


def _options(
    answers: Mapping[str, str],
    askings: Sequence[Asking],
    columns: Mapping[str, Column],
    subject: Subject,
) -> dict[str, Any]:
    said: dict[str, Any] = {}
    alike = answers["alike"]
    if subject.frame is None:
        return said
    if alike == "independent":
        said["independent"] = True
    else:
        said |= {name: answers[name] for name in ("groups", "order_by") if answers[name]}
        if answers["max_group_size"] and (answers["groups"] or answers["order_by"]):
            said["max_group_size"] = whole_in(answers["max_group_size"], "members of a group")
    if alike != "model":
        said |= _possible(answers, askings, columns)
    if alike == "correlation":
        most = number_in(answers["correlation"], "the correlation")
        said["correlation"] = most if answers["order_by"] else (0.0, most)
        said["assume"] = "gaussian"
    elif alike == "persistence":
        said["persistence"] = number_in(answers["persistence"], "the persistence")
    if answers["by"]:
        said["by"] = (answers["by"],)
    if answers["missing"]:
        said["missing"] = "zero"
    return said


def _possible(
    answers: Mapping[str, str], askings: Sequence[Asking], columns: Mapping[str, Column]
) -> dict[str, Any]:
    """Return the ranges and possible values of the columns that are asked about."""
    bounds, domains = {}, {}
    for one in askings:
        for column in _asked_about(one, columns):
            if one.kind in ("sum", "mean") and column.bounds is not None:
                bounds[column.name] = column.bounds
            if one.kind in ("count", "histogram") and column.domain is not None:
                domains[column.name] = column.domain
    parts = columns.get(answers["by"])
    if parts is not None and parts.domain is not None:
        domains[parts.name] = parts.domain
    found: dict[str, Any] = {}
    if bounds:
        ends = set(bounds.values())
        every = len(askings) == 1 and not askings[0].column and len(ends) == 1
        found["bounds"] = ends.pop() if every else bounds
    if domains:
        found["domains"] = domains
    return found


def _learning(
    answers: Mapping[str, str], options: Mapping[str, Any], subject: Subject
) -> dict[str, Any]:
    if answers["alike"] not in ("public", "dp") or subject.frame is None:
        return {}
    numbers = answers["kind"] in ("sum", "mean") and "bounds" in options
    if answers["order_by"]:
        kind = "series" if numbers else "chain"
    elif answers["groups"]:
        kind = "groups"
    else:
        kind = "gaussian" if numbers else "table"
    said = {} if not answers["confidence"] else {"confidence": _confidence(answers["confidence"])}
    if answers["alike"] == "public":
        return {"kind": kind, "public": True, **said}
    return {"kind": kind, "epsilon": number_in(answers["learning"], "the ε of learning"), **said}


def _confidence(text: str) -> float | str:
    return text if text == NONE else number_in(text, "the probability of covering the error")


def _strength(answers: Mapping[str, str]) -> tuple[dict[str, Any], float | None]:
    """Return ε or a belief as options, or the accuracy that was asked for."""
    if answers["strength"] == "belief":
        before = number_in(answers["before"], "the belief before") / 100
        after = number_in(answers["after"], "the belief after") / 100
        return {"belief": (before, after)}, None
    if answers["strength"] == "accuracy":
        return {}, number_in(answers["half_width"], "the accuracy wanted")
    return {"epsilon": number_in(answers["epsilon"], "ε")}, None


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
