"""Run a job: find its model, calibrate, release. Run a plan: several jobs, all of them or none."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from pdp_calibrate.calibration.calibrate import calibrate, calibrate_to_accuracy
from pdp_calibrate.calibration.release import (
    EVERY_COLUMN,
    Layout,
    checked_layout,
    remember_release,
    warn_of_second,
)
from pdp_calibrate.calibration.result import AnyCalibration, AnyRelease, Calibration
from pdp_calibrate.core.accuracy import checked_count, is_over_secret_count
from pdp_calibrate.core.adversary import Adversaries
from pdp_calibrate.core.model import Model, header
from pdp_calibrate.core.noise import Noise
from pdp_calibrate.core.query import Count, Histogram, Linear, Mean, Query, Sum
from pdp_calibrate.core.row_query import ANY_RECORD
from pdp_calibrate.errors import (
    BudgetExceededError,
    LedgerError,
    ModelError,
    PdpError,
    QueryError,
)
from pdp_calibrate.frames.answers import Sizes
from pdp_calibrate.frames.counts import group_sizes
from pdp_calibrate.frames.long_answers import instances_in
from pdp_calibrate.frames.open import check_roles, column_name, is_object, rows_in
from pdp_calibrate.jobs.grammar import Question
from pdp_calibrate.jobs.job import Job, Options
from pdp_calibrate.jobs.model import (
    assumed_model,
    estimator_of,
    given_model,
    learned_model,
    refuse_absent,
)
from pdp_calibrate.jobs.plan import Plan
from pdp_calibrate.jobs.rows import (
    as_assumption,
    known_as,
    model_of_rows,
    rows_of_question,
    with_seeds,
)
from pdp_calibrate.ledger.allowance import Allowance
from pdp_calibrate.ledger.learning import has_model, learned_ledger
from pdp_calibrate.ledger.ledger import Ledger
from pdp_calibrate.ledger.people import PeopleLedger

if TYPE_CHECKING:
    from pdp_calibrate.jobs.people import PeopleTable

_NO_MODEL = (
    "say how the values are correlated. A table with a column per value (a wide frame) needs model="
    " (--model), learned with df.pdp.fit or --kind; a table with a row per value needs the column"
    " of its groups and the bounds, and may assume a correlation."
)


@dataclass(frozen=True, kw_only=True)
class Task:
    """A job applied to a model."""

    model: Model
    """The model given or learned, or the one that the assumptions make."""
    queries: tuple[Query, ...]
    """What is asked of its tuples."""
    rows: int
    """Number of independent instances that one answer is about."""
    columns: dict[str, Any]
    """How to read a table with a row per value, as `Calibration.release` takes it; else empty."""

    @property
    def query(self) -> Query | list[Query]:
        """The query, or the list of them, as `calibrate` takes it."""
        return self.queries[0] if len(self.queries) == 1 else list(self.queries)


def run(job: Job, frame: Any, *, stacklevel: int = 2) -> AnyRelease:
    """Calibrate for a frame and release; what is asked together is released together.

    A second release about the same frame object that no ledger counts gives a warning before
    anything is drawn; `stacklevel` says whose call it shows, as in `warnings.warn`.
    """
    job.check_strength()  # before a row is read
    ledger = ledger_of(job)
    (job,) = with_seeds([job], _past(ledger))
    task = task_of(job, frame, model_of(job, frame, ledger=ledger))
    if job.epsilon is None and ledger is not None:
        ledger.check_model(task.model)
        if job.options.get("adversaries", ledger.adversaries) != ledger.adversaries:
            raise LedgerError(
                f"what still fits is about the ledger's own adversaries, {ledger.adversaries!r}."
            )
        drawn = drawn_by(job, ledger)
        found = ledger.release(task.query, frame, epsilon=None, **drawn, **task.columns)
    else:
        calibration = calibrate_task(job, task, ledger=ledger)
        counted = ledger is not None
        warn_of_second(frame, "this table has had", counted=counted, stacklevel=stacklevel + 1)
        found = calibration.release(frame, ledger=ledger, **task.columns)
    remember_release(frame)
    return found


def ledger_of(job: Job) -> Ledger | None:
    """Return the ledger of a job, opened where its file is named."""
    said = job.options.get("ledger")
    if isinstance(said, str | os.PathLike):
        options = job.options
        return Ledger.open(said, time_limit=options.get("time_limit"), anchor=options.get("anchor"))
    if said is not None and not isinstance(said, Ledger):
        raise LedgerError(f"ledger must be a Ledger or its file, got {type(said).__name__}.")
    return said


def _past(ledger: Ledger | None) -> list[Query]:
    """Return everything that a ledger holds a release of."""
    return [] if ledger is None else [query for one in ledger.history for query in one.queries]


def model_of(job: Job, frame: Any, *, ledger: Ledger | None = None) -> Model | None:
    """Return the model that is given or learned, or the ledger's; None where it is assumed."""
    if job.learns:
        return learned_model(job, frame)
    found = given_model(job)
    if found is None and ledger is not None and job.asks_about_rows and not job.assumes:
        return ledger.model
    states = job.is_long and (job.assumes or "bounds" in job.options)
    return ledger.model if found is None and ledger is not None and not states else found


def task_of(job: Job, frame: Any, model: Model | None, *, rows: int | None = None) -> Task:
    """Resolve which model, queries and number of rows a job means.

    Parameters
    ----------
    job
        What is asked.
    frame
        The rows, of which columns, types, times and group sizes are read, never a value; None to
        ask about a model alone.
    model
        As `model_of` returns it; None where the assumptions of the job make one.
    rows
        Without a frame, how many independent instances an answer will be about.
    """
    if _is_about_rows([job], frame, model):
        return rows_task(job, frame, model)
    value = value_column([job], model)
    columns: dict[str, Any] = {}
    if value is None:
        if model is None:
            raise ModelError(_NO_MODEL)
        if frame is not None:
            refuse_absent(frame, [one for each in job.questions for one in each.columns or ()])
            rows = rows_in(frame)
    else:
        groups, order_by = job.options.get("groups"), job.options.get("order_by")
        check_roles(value, groups=groups, order_by=order_by)
        columns = {
            "value": value,
            "groups": groups,
            "order_by": order_by,
            "time_format": job.options.get("time_format"),
        }
        if frame is not None:
            model, rows = _grouped(job, value, frame, model)
    if model is None:
        raise ModelError(_NO_MODEL)
    return Task(
        model=model,
        queries=tuple(_query(one, model, long=value is not None) for one in job.questions),
        rows=rows or 1,
        columns=columns,
    )


def rows_task(job: Job, frame: Any, model: Model | None, *, whole: bool = False) -> Task:
    """Resolve a job that is about rows with several columns.

    The model is that of the ledger, or None where the assumptions of the job make one: `whole`
    says whether it is about all members of groups, as questions that share a budget need it.
    """
    source = model
    if frame is not None and not job.learns and "model" in job.options:
        stated = as_assumption(job, model)
        job, model = (job, model) if stated is None else (stated, None)
    if frame is None or job.learns or "model" in job.options:
        raise QueryError(
            "where, by, missing, large and independent are about rows, with a stated correlation or"
            " with none: a model of one column does not cover other columns. Of groups or series"
            " with one common correlation, learned elsewhere, state correlation=(0, its upper end):"
            " GaussianGroup(...).correlation[1]."
        )
    (job,) = with_seeds([job])
    asked = [rows_of_question(job, question, frame) for question in job.questions]
    if model is None:
        several = whole or len(asked) > 1
        models = {model_of_rows(job, *one, frame, whole=several) for one in asked}
        _refuse_several(models)
        model = models.pop()
        if source is not None:  # of the learned law, of the members that count
            model = known_as(model, source)
    queries = tuple(query for query, _ in asked)
    value = EVERY_COLUMN
    if not model.covers_any_dependence:
        value = _one_column({name for query in queries for name in query.secret})
    return Task(
        model=model,
        queries=queries,
        rows=1,
        columns={
            "value": value,
            "groups": job.options.get("groups"),
            "order_by": job.options.get("order_by"),
            "time_format": job.options.get("time_format"),
        },
    )


def _grouped(job: Job, value: Hashable, frame: Any, model: Model | None) -> tuple[Model, int]:
    """Return the model of a table with a row per value, and how many instances of it there are."""
    groups = job.options.get("groups")
    refuse_absent(frame, [value, groups, job.options.get("order_by")])
    sizes = group_sizes(frame, groups)
    allowed = job.options.get("max_group_size") or max(sizes)
    if max(sizes) > allowed:
        raise ModelError(f"groups may have at most {allowed} rows, got one of {max(sizes)}.")
    if model is not None:
        return model, instances_in(sizes, model)
    models = {assumed_model(job, one.kind, value, frame, sizes) for one in job.questions}
    _refuse_several(models)
    return models.pop(), 1


def _refuse_several(models: set[Model]) -> None:
    if len(models) > 1:
        raise QueryError(
            "sums and counts of a column need different assumptions, so they cannot share a"
            " budget: ask one by one, about different data, or give a model."
        )


def value_column(jobs: Sequence[Job], model: Model | None) -> Hashable | None:
    """Return the one column of values that all are about, in a table with a row per value.

    None where the table has a column per value.
    """
    return _one_column(
        {_value_column(job, question, model) for job in jobs for question in job.questions}
    )


def _one_column(found: set[Hashable | None]) -> Hashable | None:
    if len(found) > 1:
        raise QueryError(
            "several answers about the same people need one model of everything asked: these are"
            f" about different columns of a table with a row per value"
            f" ({', '.join(sorted(map(str, found)))}). pdp.People (pdp-calibrate people,"
            " budget.people in a plan) keeps one budget for all of them."
        )
    return found.pop()


def _value_column(job: Job, question: Question, model: Model | None) -> Hashable | None:
    named = question.columns or ()
    if not job.is_long and not (len(named) == 1 and _is_of_members(model, named[0])):
        return None
    column = named[0] if len(named) == 1 else None if named else job.value
    if column is None:
        raise QueryError("a table with a row per value has one column of values: name it.")
    if job.learns and job.value != column:
        raise QueryError(f"the model is learned from {job.value}, not from {column}.")
    return column


def _is_of_members(model: Model | None, column: Hashable) -> bool:
    """Whether a column can only be the one of values: tuples of the model are numbered members."""
    if model is None or column in model.names:
        return False
    return not any(isinstance(name, str) for name in model.names)


def _query(question: Question, model: Model, *, long: bool) -> Query:
    """Return what is asked of the tuples; continuous values are always clamped."""
    over = None if long else question.named(model.names)
    if question.kind == "sum":
        return Sum(over=over, clamp=model.is_continuous)
    if question.kind == "mean":
        return Mean(over=over, clamp=model.is_continuous)
    if question.kind == "count":
        return Count(values=question.values or (), over=over)
    if question.kind == "histogram":
        return Histogram(categories=question.values, over=over)
    if over is None:
        raise QueryError("weights tell columns apart; a table with a row per value has one.")
    weights = dict(zip(over, question.weights or (), strict=True))
    return Linear(weights=weights, clamp=model.is_continuous)


def calibrate_task(job: Job, task: Task, *, ledger: Ledger | None = None) -> AnyCalibration:
    """Find the scale for the answers of a job."""
    if job.epsilon is None:
        raise PdpError("epsilon=None means as much as still fits a ledger: give ledger= too.")
    default = None if ledger is None else ledger.adversaries
    found: AnyCalibration = calibrate(
        task.model,
        task.query,
        **_strength(job),
        **drawn_by(job, ledger),
        adversaries=job.options.get("adversaries") or default,
        rows=task.rows,
        time_limit=job.options.get("time_limit"),
    )
    return expecting(job, found)


def calibrate_task_to_accuracy(
    job: Job, task: Task, half_width: float, *, allow_large_epsilon: bool = False
) -> Calibration:
    """Find the scale for a wanted accuracy of the one answer of a job, and the ε that it costs."""
    if len(task.queries) > 1:
        raise QueryError("an accuracy is about a single answer: ask one question.")
    (query,) = task.queries
    return calibrate_to_accuracy(
        task.model,
        query,
        half_width=half_width,
        adversaries=job.options.get("adversaries"),
        rows=task.rows,
        time_limit=job.options.get("time_limit"),
        count=job.options.get("count") if is_over_secret_count(query) else None,
        allow_large_epsilon=allow_large_epsilon,
        **drawn_by(job),
    )


def expecting(job: Job, found: AnyCalibration) -> AnyCalibration:
    """Return a calibration with the number of rows that a job expects to count, if it says one.

    One number may be said for several questions, of which only some are such means.
    """
    if "count" not in job.options:
        return found
    return dataclasses.replace(found, count=checked_count(job.options["count"]))


def _strength(job: Job) -> dict[str, Any]:
    """Return how much may leak, as `calibrate` takes it."""
    said: Mapping[str, Any] = job.options
    given = {name: said[name] for name in ("mu", "rho") if name in said}
    return given or {"epsilon": job.epsilon}


def drawn_by(job: Job, ledger: Ledger | None = None) -> dict[str, Any]:
    """Return the noise and its δ; by default those of the ledger."""
    noise = job.options.get("noise", "laplace" if ledger is None else ledger.allowance.noise)
    found: dict[str, Any] = {"noise": noise}
    if noise == "gaussian":
        delta = job.options.get("delta", None if ledger is None else ledger.delta or None)
        return found if delta is None else found | {"delta": delta}
    if "delta" in job.options:
        raise QueryError("delta is about Gaussian noise: say noise='gaussian' too.")
    return found


@dataclass(frozen=True, kw_only=True)
class PlannedRelease:
    """One answer of a plan, released."""

    job: Job
    """What was asked for."""
    release: AnyRelease
    """The noisy answer, or a tuple of them."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a plan released."""

    releases: tuple[PlannedRelease, ...]
    """The answers, in order."""
    ledger: Ledger | PeopleLedger
    """The budget, after them."""
    remembered: bool
    """Whether the budget is stored in a file; without one, every run starts with all of it."""

    def to_dict(self) -> dict[str, Any]:
        """Describe the outcome for JSON."""
        about = (
            {"spent_by_column": self.ledger.spent_by_column}
            if isinstance(self.ledger, PeopleLedger)
            else {"draw": self.ledger.draw}
        )
        return {
            **header("Outcome"),
            "releases": [
                _called(one.job) | {"release": one.release.to_dict()} for one in self.releases
            ],
            "budget": {
                "epsilon": self.ledger.epsilon,
                "spent": self.ledger.spent,
                "remaining": self.ledger.remaining,
                "remembered": self.remembered,
                **about,
            },
        }


@dataclass(frozen=True, kw_only=True)
class PlannedCheck:
    """One answer of a plan, as far as it is known without reading a secret value."""

    job: Job
    """What is asked."""
    calibration: AnyCalibration | None
    """The scale, or None if the model must be learned from secret rows first.

    Learning now would spend privacy that nothing counts, so the scale is known when the plan runs.
    """

    def to_dict(self) -> dict[str, Any]:
        """Describe the check for JSON."""
        found = self.calibration
        return _called(self.job) | {
            "epsilon": self.job.epsilon,
            "calibration": None if found is None else found.to_dict(),
        }


def _called(job: Job) -> dict[str, Any]:
    texts = [question.text for question in job.questions]
    return {"name": job.name, "query": texts[0] if len(texts) == 1 else texts}


def check_plan(plan: Plan) -> tuple[PlannedCheck, ...]:
    """Check a plan and calibrate its queries without reading a secret value; write nothing.

    Columns, the number of rows and the sizes of groups are public and are read; values are
    not, so data that a run refuses may pass. A model to be learned from secret rows is not
    learned: queries, columns and budget are checked, and the scales stay open. Where the ledger of
    the plan holds that model already, it is used.
    """
    found: Sequence[AnyCalibration | None]
    if plan.people is not None:
        table = _people(plan)
        found = [table.calibrated(job)[0] for job in plan.jobs]
    elif plan.jobs[0].learns_from_secrets and not _has_begun(plan):
        _check_before_learning(plan, plan.source.header())
        found = [None] * len(plan.jobs)
    else:
        found = [one for _, one in _calibrated(plan, plan.source.read(), _stored_model(plan))]
    return tuple(
        PlannedCheck(job=job, calibration=one) for job, one in zip(plan.jobs, found, strict=True)
    )


def run_plan(plan: Plan) -> Outcome:
    """Calibrate every query alone at its ε, and release all of them if they fit the budget.

    Everything that may fail because of the data is done for all queries before the first is
    recorded, and all of them are recorded at once, before the first noise is drawn. A model that
    is learned under differential privacy is learned once: its ε is in the ledger before a row is
    read for it, and later runs on the same ledger take the model from there.

    Raises
    ------
    BudgetExceededError
        If all of them together would exceed the budget. Nothing was released.
    """
    if plan.people is not None:
        table = _people(plan)
        if plan.ledger is not None and not plan.ledger.exists():
            table.ledger.keep_in(plan.ledger, anchor=plan.anchor)
        return _outcome(plan, table.release(plan.jobs), table.ledger)
    frame = plan.source.read()
    begun = _learned_ledger(plan, frame)
    ready = []
    for task, calibration in _calibrated(plan, frame, None if begun is None else begun.model):
        layout = checked_layout(**task.columns)
        draw, sizes = calibration.answered(frame, layout)
        ready.append(_Ready(calibration=calibration, layout=layout, sizes=sizes, draw=draw))
    ledger = begun or _ledger(plan, ready[0].calibration.model)
    ledger.spend_together([(one.calibration, one.layout, one.sizes) for one in ready])
    return _outcome(plan, [one.draw() for one in ready], ledger)


def _outcome(plan: Plan, releases: Sequence[AnyRelease], ledger: Ledger | PeopleLedger) -> Outcome:
    return Outcome(
        releases=tuple(
            PlannedRelease(job=job, release=one)
            for job, one in zip(plan.jobs, releases, strict=True)
        ),
        ledger=ledger,
        remembered=plan.ledger is not None,
    )


def _people(plan: Plan) -> PeopleTable:
    """Return the table of a plan about people; before it is begun, with a budget in memory."""
    from pdp_calibrate.jobs.people import PeopleTable  # which lowers questions as this file does

    begun = plan.ledger is not None and plan.ledger.exists()
    return PeopleTable(
        plan.source.read(),
        plan.people or {},
        epsilon=plan.epsilon,
        delta=plan.delta,
        noise=plan.noise,
        pure=plan.pure,
        ledger=plan.ledger if begun else None,
        anchor=plan.anchor if begun else None,
    )


@dataclass(frozen=True, kw_only=True)
class _Ready:
    """An answer that is ready except for being recorded and for its noise."""

    calibration: AnyCalibration
    layout: Layout
    sizes: Sizes | None
    draw: Callable[[], AnyRelease]


def _calibrated(plan: Plan, frame: Any, model: Model | None) -> list[tuple[Task, AnyCalibration]]:
    """Calibrate every query, about the model given or the one that the plan says."""
    jobs: Sequence[Job] = plan.jobs
    if model is None:
        exists = plan.ledger is not None and plan.ledger.exists()
        ledger = Ledger.open(plan.ledger or "", anchor=plan.anchor) if exists else None
        jobs = with_seeds(jobs, _past(ledger))
        model = model_of(plan.jobs[0], frame, ledger=ledger)
        if ledger is not None and _is_about_rows(plan.jobs, frame, ledger.model):
            model = ledger.model
    if _is_about_rows(plan.jobs, frame, model):
        tasks = [rows_task(job, frame, model, whole=True) for job in jobs]
    else:
        value_column(plan.jobs, model)
        tasks = [task_of(job, frame, model) for job in plan.jobs]
    _refuse_several({task.model for task in tasks})
    return [
        (task, calibrate_task(with_noise(job, noise=plan.noise, delta=plan.delta), task))
        for job, task in zip(plan.jobs, tasks, strict=True)
    ]


def with_noise(job: Job, *, noise: Noise, delta: float | None) -> Job:
    """Return a job with the noise of its budget, where it does not state its own."""
    said: dict[str, Any] = {**job.options}
    if delta is not None and "noise" not in said:
        said["noise"] = noise
    if delta is not None and said.get("noise") == "gaussian":
        said.setdefault("delta", delta)
    return dataclasses.replace(job, options=cast("Options", said))


def _is_about_rows(jobs: Sequence[Job], frame: Any, model: Model | None) -> bool:
    """Whether jobs are about rows of several columns, or count an object column.

    One budget for several columns needs one model, which is then that of whole households. Cells of
    an object column may be anything, so that no domain covers them by type: they are compared with
    the declared labels, and one that is none of them counts nowhere.
    """
    together = Job(
        questions=tuple(question for job in jobs for question in job.questions),
        options=jobs[0].options,
        learning=jobs[0].learning,
    )
    if together.asks_about_rows or any(job.asks_about_rows for job in jobs):
        return True
    if model is not None and (not model.covers_any_dependence or {*model.domains} != {ANY_RECORD}):
        return False
    return any(_counts_objects(job, frame) for job in jobs)


def _counts_objects(job: Job, frame: Any) -> bool:
    """Whether values of an object column are counted, under no stated or learned model."""
    if frame is None or not job.is_long or job.learns or job.assumes:
        return False
    if {"model", "bounds"} & set(job.options):
        return False
    counted = [one for one in job.questions if one.kind in ("count", "histogram")]
    named = [column for one in counted for column in one.columns or ()]
    refuse_absent(frame, named)
    return any(is_object(frame, column_name(name)) for name in named)


def _has_begun(plan: Plan) -> bool:
    """Whether the ledger of the plan holds the model that was learned for it."""
    learned = "epsilon" in plan.jobs[0].learning
    return learned and plan.ledger is not None and has_model(plan.ledger, anchor=plan.anchor)


def _stored_model(plan: Plan) -> Model | None:
    """Return the model that was learned for this plan before, if it was."""
    epsilon = plan.jobs[0].learning.get("epsilon")
    if epsilon is None or not _has_begun(plan):
        return None
    model = Ledger.open(plan.ledger or "", anchor=plan.anchor).model
    if model.estimation_epsilon != epsilon:
        raise LedgerError(
            f"the ledger {plan.ledger} holds a model that was not learned with epsilon ="
            f" {epsilon:.6g}, as the plan says. Learning another would spend more: begin a new"
            " ledger, or leave model.epsilon as it was."
        )
    return model


def _learned_ledger(plan: Plan, frame: Any) -> Ledger | None:
    """Begin the ledger, then learn; or open it, where the model was learned before."""
    job = plan.jobs[0]
    epsilon = job.learning.get("epsilon")
    if not job.learns or epsilon is None:
        return None
    stored = _stored_model(plan)
    if stored is not None:
        return _ledger(plan, stored)
    _check_before_learning(plan, frame)
    return learned_ledger(
        lambda: learned_model(job, frame),
        estimation_epsilon=epsilon,
        allowance=_allowance(plan),
        repeats=_repeats(plan),
        path=plan.ledger,
        anchor=plan.anchor,
        adversaries=_adversaries(plan),
        draw=plan.draw or "first",
        time_limit=job.options.get("time_limit"),
    )


def _check_before_learning(plan: Plan, frame: Any) -> None:
    """Refuse what cannot work whatever the rows hold: by columns, options and budget alone."""
    job = plan.jobs[0]
    estimator_of(job)
    if job.learning.get("kind") in ("table", "gaussian"):
        asked = (
            name
            for one in plan.jobs
            for question in one.questions
            for name in question.columns or ()
        )
        refuse_absent(frame, [*job.learning.get("columns", ()), *asked])
    else:
        value = value_column(plan.jobs, None) or job.value
        refuse_absent(frame, [value, job.options.get("groups"), job.options.get("order_by")])
    learning = job.learning.get("epsilon", 0.0)
    largest = max(plan.jobs, key=lambda one: one.epsilon or 0.0)
    if learning + (largest.epsilon or 0.0) > plan.epsilon:
        how = f" beside the {learning:.6g} of learning the model" if learning else ""
        raise BudgetExceededError(
            f"{largest.name} may leak {largest.epsilon:.6g} alone, which does not fit into the"
            f" budget {plan.epsilon:.6g}{how}. Nothing was learned or released."
        )


def _allowance(plan: Plan) -> Allowance:
    return Allowance.of(
        epsilon=plan.epsilon, delta=plan.delta, pure=plan.pure, mu=None, rho=None, noise=plan.noise
    )


def _repeats(plan: Plan) -> float | None:
    """Return the share of δ for repeats of one query: none where several are planned."""
    return None if sum(len(job.questions) for job in plan.jobs) == 1 else 0.0


def _adversaries(plan: Plan) -> Adversaries:
    return plan.jobs[0].options.get("adversaries") or Adversaries.all()


def _ledger(plan: Plan, model: Model) -> Ledger:
    """Open the ledger of the plan, or begin it."""
    options: dict[str, Any] = {
        "anchor": plan.anchor,
        "time_limit": plan.jobs[0].options.get("time_limit"),
    }
    adversaries = _adversaries(plan)
    if plan.ledger is None or not plan.ledger.exists():
        ledger = Ledger(
            model,
            epsilon=plan.epsilon,
            delta=plan.delta,
            noise=plan.noise,
            pure=plan.pure,
            repeats=_repeats(plan),
            adversaries=adversaries,
            draw=plan.draw or "first",
            time_limit=options["time_limit"],
        )
        if plan.ledger is not None:
            ledger.keep_in(plan.ledger, anchor=plan.anchor)
        return ledger
    ledger = Ledger.open(plan.ledger, model=model, **options)
    if (ledger.delta or None, ledger.allowance.pure) != (plan.delta, plan.pure):
        raise LedgerError(
            f"the ledger {plan.ledger} was begun with delta = {ledger.delta:g} and pure ="
            f" {ledger.allowance.pure}; the plan says {plan.delta} and {plan.pure}."
        )
    if (ledger.epsilon, ledger.adversaries) != (plan.epsilon, adversaries):
        raise LedgerError(
            f"the ledger {plan.ledger} has budget {ledger.epsilon:.6g} against"
            f" {ledger.adversaries!r}; the plan says {plan.epsilon:.6g} against {adversaries!r}."
        )
    if plan.draw in (None, ledger.draw):
        return ledger
    with contextlib.suppress(LedgerError):  # it exists already: then opening it succeeds
        ledger.new_draw(plan.draw or "")
    return Ledger.open(plan.ledger, model=model, draw=plan.draw, **options)
