"""What the page exports: Python, a command, a plan; and the release that a plan makes."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from pdp_calibrate.errors import LedgerError, ModelError, PdpError, PlanError
from pdp_calibrate.exploring.answers import Asked
from pdp_calibrate.exploring.subject import Subject
from pdp_calibrate.jobs.job import Job, Options
from pdp_calibrate.jobs.plan import Plan, plan_from, problem_of
from pdp_calibrate.jobs.run import Outcome, run_plan
from pdp_calibrate.jobs.written import command_line, python_call, toml_text

_SECTIONS = {
    "groups": "data", "order_by": "data", "max_group_size": "data", "independent": "data",
    "bounds": "model", "domains": "model", "correlation": "model", "assume": "model",
    "persistence": "model",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Handover:
    """The same job for use elsewhere."""

    code: str
    """As Python."""
    command: str
    """As a command."""
    plan: str
    """As a plan; empty where there can be none."""
    without_plan: str = ""
    """Why there is no plan."""


def handover(asked: Asked, subject: Subject) -> Handover:
    """Write a job as Python, as a command and as a plan."""
    plan, why = "", ""
    try:
        plan = toml_text(plan_contents(asked, subject))
    except PdpError as error:
        why = str(error)
    try:
        command = _command(asked, subject)
    except PdpError as error:
        command = f"# {error}"
    return Handover(code=_code(asked, subject), command=command, plan=plan, without_plan=why)


def _said(asked: Asked) -> dict[str, Any]:
    """Return the options of a job as they are written, with a file name in place of a model."""
    said: dict[str, Any] = {**asked.job.options, "epsilon": asked.job.epsilon}
    if asked.model is not None:
        said["model"] = asked.model_file
    return said


def _command(asked: Asked, subject: Subject) -> str:
    said = _said(asked)
    if subject.frame is None:
        said.pop("model")
        rows = "" if asked.task is None or asked.task.rows == 1 else f" --rows {asked.task.rows}"
        return command_line("calibrate", subject.file, asked.texts, said) + rows
    if asked.task is None:
        return "pdp-calibrate plan plan.toml"
    return command_line("calibrate", subject.file, asked.texts, said, asked.job.learning)


def _code(asked: Asked, subject: Subject) -> str:
    head = "import pdp_calibrate as pdp\n\n"
    if asked.task is None:
        return head + (
            'plan = pdp.read_plan("plan.toml")\n'
            "outcome = pdp.run_plan(plan)  # learns the model, and releases\n"
            "print([one.release.value for one in outcome.releases])\n"
        )
    said = _said(asked)
    if subject.frame is None:
        asks = [repr(query) for query in asked.task.queries]
        query = asks[0] if len(asks) == 1 else f"[{', '.join(asks)}]"
        return head + (
            f"model = pdp.load({subject.file!r})\n"
            "calibration = pdp.calibrate(\n"
            f"    model, {_public(query)}, epsilon={said['epsilon']!r}, rows={asked.task.rows}\n)\n"
            "print(calibration.scale)\n"
        )
    lines = [f"import pandas as pd\n{head}{_rows(subject)}"]
    if asked.job.learns:
        lines.append(_learning(asked))
        said = {"model": _Name("model"), "epsilon": said["epsilon"]} | {
            name: said[name] for name in ("groups", "order_by") if name in said
        }
    elif asked.model is not None:
        lines.append(f"model = pdp.load({asked.model_file!r})")
        said["model"] = _Name("model")
    texts = asked.texts[0] if len(asked.texts) == 1 else list(asked.texts)
    lines.append(python_call("calibration = people.pdp.calibrate", repr(texts), said))
    lines.append("print(calibration.scale)\n")
    return "\n".join(lines)


def _rows(subject: Subject) -> str:
    """Write the Python that reads the rows."""
    if subject.stand_in is not None:
        return subject.stand_in.code()
    reader, more = "read_csv", ""
    if subject.file.endswith((".parquet", ".pq")) or (subject.folder / subject.file).is_dir():
        reader = "read_parquet"
    elif subject.file.endswith((".tsv", ".tab")):
        more = ', sep="\\t"'
    return f"people = pd.{reader}({subject.file!r}{more})"


class _Name(str):
    """A variable name, written without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _public(query: str) -> str:
    return f"pdp.{query}"


def _learning(asked: Asked) -> str:
    from pdp_calibrate.jobs.model import estimator_of

    made = estimator_of(asked.job)
    given = ", ".join(f"{name}={value!r}" for name, value in sorted(_changed(made).items()))
    return f"model = people.pdp.fit(pdp.{type(made).__name__}({given})).model_"


def _changed(estimator: Any) -> dict[str, Any]:
    """Return the arguments of an estimator that differ from its defaults."""
    import inspect

    defaults = inspect.signature(type(estimator)).parameters
    return {
        name: getattr(estimator, name)
        for name, one in defaults.items()
        if getattr(estimator, name) != one.default
    }


def plan_contents(
    asked: Asked, subject: Subject, *, ledger: str = "", budget: float | None = None
) -> dict[str, Any]:
    """Return the contents of a plan that releases the answer."""
    if subject.frame is None:
        raise ModelError("a plan releases answers about rows: open a file with rows.")
    data: dict[str, Any] = {"file": subject.file}
    model: dict[str, Any] = {name: _plain(one) for name, one in asked.job.learning.items()}
    texts = asked.texts[0] if len(asked.texts) == 1 else list(asked.texts)
    query: dict[str, Any] = {"query": texts, "epsilon": asked.job.epsilon}
    for name, value in asked.job.options.items():
        if name == "model":
            model["file"] = asked.model_file
        elif name in _SECTIONS:
            (data if _SECTIONS[name] == "data" else model)[name] = _plain(value)
        elif name in ("by", "missing", "count"):
            query[name] = _plain(value)
    epsilon = asked.job.epsilon or 1.0
    total = epsilon + (asked.job.learning.get("epsilon") or 0.0)
    contents: dict[str, Any] = {"data": data}
    if model:
        contents["model"] = model
    contents["budget"] = {"epsilon": total if budget is None else budget}
    if ledger:
        contents["budget"]["ledger"] = ledger
    return contents | {"queries": [query]}


def refuse_other_plan(asked: Asked, subject: Subject, plan: Plan) -> None:
    """Raise where the form cannot express all that a plan says: its noise would differ."""
    (wanted,) = plan.jobs
    (found,) = plan_from(plan_contents(asked, subject), folder=subject.folder).jobs
    same = (_without_epsilon(found), found.learning, found.questions) == (
        _without_epsilon(wanted), wanted.learning, wanted.questions
    )  # fmt: skip
    if not (same and math.isclose(found.epsilon or 0, wanted.epsilon or 0, rel_tol=1e-9)):
        raise PlanError(
            "the page cannot express everything in the plan, and would show different noise: check"
            " the plan with pdp-calibrate plan --check."
        )


def _without_epsilon(job: Job) -> dict[str, Any]:
    return {name: _plain(one) for name, one in job.options.items() if name != "epsilon"}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(one) for name, one in value.items()}
    return list(value) if isinstance(value, tuple) else value


def release(asked: Asked, subject: Subject, answers: Mapping[str, str]) -> Outcome:
    """Release the answer, or all answers together, if the user confirmed it and named a ledger.

    Raises
    ------
    LedgerError
        Without a ledger, or without the confirmation that a number is to be published.
    """
    if not answers["sure"]:
        raise LedgerError(
            "nothing was released: tick the box to confirm that a number is to be published."
        )
    if not answers["ledger"]:
        raise LedgerError(
            "nothing was released: name a ledger, the file that keeps the budget. Without one"
            " nothing counts what this answer leaks together with the next."
        )
    if subject.typed:
        raise ModelError("nothing was released: there are no rows. Open a file, with explore FILE.")
    try:
        budget = float(answers["budget"])
    except ValueError:
        raise LedgerError("give the total ε of the ledger, such as 2.") from None
    contents = plan_contents(asked, subject, ledger=answers["ledger"], budget=budget)
    problem = problem_of(contents)
    if problem:
        raise PlanError(problem)
    if answers["alike"] != "model":
        return run_plan(plan_from(contents, folder=subject.folder))
    del contents["model"]  # the browser uploaded it: its path is not known here
    plan = plan_from(contents, folder=subject.folder)
    (job,) = plan.jobs
    options = cast("Options", {**job.options, "model": asked.model})
    return run_plan(dataclasses.replace(plan, jobs=(dataclasses.replace(job, options=options),)))
