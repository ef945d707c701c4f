"""Questions about rows of several columns: from what was said to a query and a model.

What a question depends on decides what may be claimed: a stated correlation covers one secret
column, and everything else is calibrated for whole households, of any dependence. See
`core.row_query`.
"""

from __future__ import annotations

import dataclasses
import secrets
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from typing import Any, cast

from pdp_calibrate.core.composite import Blocks
from pdp_calibrate.core.model import Model, checked_domain
from pdp_calibrate.core.query import Query, listed_values
from pdp_calibrate.core.row_query import ANY_RECORD, Column, RowQuery
from pdp_calibrate.errors import ModelError, QueryError, did_you_mean
from pdp_calibrate.families.any_dependence import Unknown
from pdp_calibrate.families.gaussian.alike import GaussianGroup, GaussianSeries, checked_range
from pdp_calibrate.families.network.mixing_chain import MixingChain
from pdp_calibrate.frames.columns import declared_values, values_of_type
from pdp_calibrate.frames.counts import values_held
from pdp_calibrate.frames.open import check_roles, column_name, names_of
from pdp_calibrate.frames.rows import PublicRows, public_rows
from pdp_calibrate.jobs.forms import DRAW
from pdp_calibrate.jobs.grammar import Question
from pdp_calibrate.jobs.job import Job, Options
from pdp_calibrate.jobs.model import check_correlation, check_times_of, refuse_absent


def query_about_rows(job: Job, question: Question, frame: Any) -> RowQuery:
    """Return what a question asks of the rows; of the frame only types of columns are read."""
    if question.kind == "linear":
        raise QueryError("weights tell columns apart; a table with a row per value has one.")
    groups, order_by = job.options.get("groups"), job.options.get("order_by")
    where, by, value = _where(job), list(_names(job.options.get("by"))), None
    named = [column_name(name) for name in question.columns or ()]
    if question.kind == "count":
        where += _counted(question, named)
    elif question.kind == "histogram":
        if not named:
            raise QueryError("name the column, or the columns, of the histogram.")
        by += named
    elif len(named) != 1:
        raise QueryError("a sum or mean of rows is of one column: name it.")
    else:
        value = named[0]
    stated = {} if question.values is None or len(named) != 1 else {named[0]: question.values}
    missing = _missing(job, value, where, by)
    asked = RowQuery(
        kind="count" if question.kind == "histogram" else question.kind,
        value=value,
        bounds=None if value is None else _bounds(job, value),
        where=where,
        by=[
            Column(
                name=name,
                values=_labels(
                    job, name, frame, stated if question.kind == "histogram" else {}, missing
                ),
            )
            for name in by
        ],
        missing=missing,
        public=_public(job),
        most=job.options.get("max_group_size") if job.keeps else None,
        keep_by=_keep_by(job) if job.keeps else None,
        seed=cast("int | None", job.options.get("keep_seed")),
        independent=bool(job.options.get("independent")),
        every=job.options.get("every"),
    )
    tested = [*where, *(one for one in asked.by if one.name in stated)]
    _refuse_undeclared(job, frame, tested, named=named)
    check_roles(list(asked.columns), groups=groups)
    check_roles(list(asked.secret), keep_by=asked.keep_by)
    if value is not None:
        check_roles(value, order_by=order_by, keep_by=asked.keep_by)
    return asked


def _refuse_undeclared(
    job: Job, frame: Any, columns: Iterable[Column], *, named: Sequence[str]
) -> None:
    """Refuse values that a column cannot have, by what is declared about it or by its type.

    One list of values for no column in particular is about those that the question names.
    """
    for column in columns:
        said: Any = job.options.get("domains")
        if isinstance(said, Mapping):
            stated = said.get(column.name)
        else:
            stated = None if isinstance(said, str) or column.name not in named else said
        possible = values_of_type(frame, column.name)
        if stated is not None:
            possible = declared_values(frame, column.name, stated, option="domains")
        nowhere = [value for value in column.values if value not in (possible or column.values)]
        if nowhere:
            hint = did_you_mean(str(nowhere[0]), map(str, possible or ()))
            raise QueryError(
                f"{nowhere[0]!r} is no possible value of column {column.name}, as declared by its"
                f" domain or its type{hint or '.'}"
            )


def _names(said: Any) -> tuple[str, ...]:
    """Return the names of one column or of several."""
    return () if said is None else tuple(map(column_name, names_of(said, "by=")))


def _where(job: Job) -> list[Column]:
    return [
        Column(name=column_name(name), values=_matching(name, values))
        for name, values in (job.options.get("where") or {}).items()
    ]


def _matching(column: Hashable, values: Any) -> tuple[Hashable, ...]:
    """Return the values that match a condition: one, or any of several.

    A pair is refused, since elsewhere it is a range.
    """
    if isinstance(values, tuple):
        either = ", ".join(map(repr, values))
        raise QueryError(
            f"the condition on column {column} is a tuple: for rows with one of these values give a"
            f" set, {{{either}}}. Ranges and comparisons are not supported yet: put what you mean"
            " into a column of its own, such as a yes/no."
        )
    if isinstance(values, Mapping) or str(getattr(values, "dtype", "")).startswith("bool"):
        raise QueryError(
            f"the condition on column {column} must be a value or a set of values, got"
            f" {type(values).__name__}."
        )
    if isinstance(values, Set):
        return tuple(sorted(values, key=repr))  # in one order in every process
    several = isinstance(values, Iterable) and not isinstance(values, str | bytes)
    return tuple(values) if several else (values,)


def _counted(question: Question, named: Sequence[str]) -> list[Column]:
    """Return the condition that a count states about its own column."""
    if question.values is None:
        if named:
            raise QueryError(f"say which values of {', '.join(named)} count, with values=.")
        return []
    if len(named) != 1:
        raise QueryError(
            "a count of rows states its conditions by column, all of which must hold:"
            " count({'sick': True, 'city': 'Oslo'}), or where=."
        )
    return [Column(name=named[0], values=listed_values(question.values, "values"))]


def _bounds(job: Job, column: str) -> tuple[float, float]:
    bounds = job.bounds_of(column)
    if bounds is None:
        raise QueryError(f"say which public range {column} has with bounds=(lo, hi).")
    return bounds


def _labels(
    job: Job,
    column: str,
    frame: Any,
    stated: Mapping[str, Iterable[Hashable]],
    missing: Mapping[str, Hashable],
) -> tuple[Hashable, ...]:
    """Return the declared values of a column; those that occur are secret, unless it is public."""
    if column in stated:
        return listed_values(stated[column], "categories")
    said = job.domain_of(column)
    if said is None and column in _public(job):
        held = values_held(frame, column, gaps=column in missing)
        if not held:
            raise QueryError(f"every entry of column {column} is missing: declare its domain.")
        return tuple(sorted(held, key=_sorted))
    possible = declared_values(frame, column, said, option="domains")
    return checked_domain(possible, column)


def _public(job: Job) -> list[str]:
    """Return the columns that are no secret, beside that of the groups."""
    named = (*job.options.get("public", ()), job.options.get("order_by"))
    return [column_name(name) for name in named if name is not None]


def _sorted(value: Hashable) -> tuple[bool, Any]:
    return isinstance(value, str), value if isinstance(value, str | int | float) else repr(value)


def _missing(
    job: Job, value: str | None, where: Sequence[Column], by: Sequence[str]
) -> dict[str, Hashable]:
    """Return the rule for each column; one rule for all goes to those that can follow it."""
    said = job.options.get("missing")
    asked = [*_names(value), *(column.name for column in where), *by]
    if said is None:
        return {}
    if said == "drop":
        raise QueryError(
            "dropping rows would make public numbers of rows depend on a secret: missing='zero'"
            " leaves them uncounted, and a value replaces the missing cell."
        )
    if isinstance(said, Mapping):
        several = len(job.questions) > 1  # a rule may be for another of them
        rules = {column_name(name): rule for name, rule in said.items()}
        return {name: rule for name, rule in rules.items() if name in asked or not several}
    if said == "zero":
        return dict.fromkeys(asked, said)
    followed = by if said == "category" else _names(value)
    if not followed:
        raise QueryError(
            f"missing={said!r} is for "
            + ("a breakdown" if said == "category" else "the column of a sum or mean")
            + ": state a rule by column, such as missing={'city': 'category'}."
        )
    return dict.fromkeys(followed, said)


def _keep_by(job: Job) -> str:
    column = job.options.get("keep_by", job.options.get("order_by"))
    if column is None:
        raise QueryError(
            "large='keep' needs a public column that says which members of a large group count,"
            " whatever their secrets and the order of rows: keep_by=, such as a person's number."
        )
    return column_name(column)


def drawn_seed() -> int:
    """Draw a number that makes the choice of counted rows random."""
    return secrets.randbits(62)  # as much as the hash of a row's key uses


def with_seeds(jobs: Sequence[Job], past: Iterable[Query] = ()) -> list[Job]:
    """Return questions about one table with one number wherever a seed is to be drawn.

    It is the one with which rows were chosen before, by the same column, in earlier releases, so
    that the same rows keep counting.
    """
    known: dict[str | None, int] = {}
    for one in past:
        if isinstance(one, RowQuery) and one.seed is not None:
            known.setdefault(one.keep_by, one.seed)
    found = []
    for job in jobs:
        if job.options.get("keep_seed") == DRAW:
            column = _keep_by(job)
            if column not in known:
                known[column] = drawn_seed()
            options = cast("Options", {**job.options, "keep_seed": known[column]})
            found.append(dataclasses.replace(job, options=options))
        else:
            found.append(job)
    return found


def with_public_sizes(query: RowQuery, public: PublicRows) -> RowQuery:
    """Return a mean with the public numbers of rows that it divides by, if there are any."""
    return dataclasses.replace(query, sizes=public.parts) if query.is_public_mean else query


def refuse_larger(most: int, job: Job) -> None:
    """Refuse groups with more rows than was said, unless only that many of them count."""
    allowed = job.options.get("max_group_size")
    if allowed is not None and most > allowed and not job.keeps:
        raise ModelError(
            f"groups may have at most {allowed} rows, got one of {most}; with large='keep' only"
            " that many of them count."
        )


def model_of_rows(
    job: Job,
    query: RowQuery,
    public: PublicRows,
    frame: Any,
    *,
    whole: bool = False,
    times: bool = True,
) -> Model:
    """Return the model of the members that count, of every group.

    Parameters
    ----------
    job
        Which may state a correlation.
    query
        What is asked.
    public
        How many rows there are of each group, and how many of them count by public columns.
    frame
        Of which, with a correlation, the type of the values and the times of a series are read.
    whole
        Whether to let all members count that `max_group_size` allows, so that questions with
        different public conditions have one model.
    times
        Whether to refuse times that no series has: a release does so where it reads the answer.

    Notes
    -----
    Members who do not count can still be attacked and known. Under any dependence they move the
    answer only through those who count. With one common correlation ρ ≥ 0 and n members who count,
    a member who counts moves the answer by at most M·(1 + (n−1)ρ), one who does not by at most
    M·nρ, which is less; anyone known in addition only lowers the coefficients ρ/(1 + kρ) of the
    others. With ρ < 0 all others together move against the secret by at most M, however many are
    known, so the total moves by at most M; its parts may not cancel, and then the correlation
    counts by its absolute value and for all members. Along time, members who count are at least as
    far apart as in a series of their number, and again |φ| counts. If some states along time are
    left out, the rest is again a chain, of no larger diameter. The leakage about a member who does
    not count, between two who do, is at most L(a) + L(b); that about a neighbour who counts is
    ε + L(a') + L(b), with a = ε + L(a') and L(a) ≤ a: no less.
    """
    refuse_larger(max(public.sizes), job)
    states: Sequence[Hashable] = ()
    if "persistence" in job.options:
        states = _states(job, query, frame)
    elif job.assumes:
        _group(job, query, max(public.sizes))  # the correlation must be possible in all groups
        check_correlation(job, query.value, frame)
    if times and job.assumes and "order_by" in job.options:
        check_times_of(job, query.secret[0], frame)
    counting: Counter[int] = Counter()
    for (size, number), groups in public.counted.items():
        members = number
        if _is_absolute(job, query):
            members = size
        elif whole:
            members = min(size, query.most or size)
        if number:
            counting[members] += groups
    if not counting:
        raise QueryError("by public columns no row counts: there is nothing to protect or release.")
    if job.assumes and "order_by" in job.options:  # shorter ones leak less
        counting = Counter({max(counting): counting.total()})
    return Blocks(
        models=[_group(job, query, size, states) for size in sorted(counting)],
        counts=[counting[size] for size in sorted(counting)],
    )


def _is_absolute(job: Job, query: RowQuery) -> bool:
    """Whether a negative correlation must be counted by its size, and for all members."""
    correlation = job.options.get("correlation")
    if correlation is None or query.parts == 1 or "order_by" in job.options:
        return False
    return checked_range(correlation)[0] < 0


def _states(job: Job, query: RowQuery, frame: Any) -> Sequence[Hashable]:
    """Return the declared states of the one column that is counted, or refuse what is asked."""
    if not query.counts_states:
        raise QueryError(
            "persistence is about the states of one secret column, none of them missing, which are"
            " counted: leave it out, and any dependence inside a household is covered."
        )
    (column,) = query.secret
    return checked_domain(
        declared_values(frame, column, job.domain_of(column), option="domains"), column
    )


def _group(job: Job, query: RowQuery, size: int, states: Sequence[Hashable] = ()) -> Model:
    """Make a model of one group, given the number of its members that count."""
    if "persistence" in job.options:
        persistence = cast("float", job.options["persistence"])
        diameter = MixingChain.diameter_of_staying(persistence, len(states))
        return MixingChain(length=size, states=states, diameter=diameter)
    correlation = job.options.get("correlation")
    if correlation is None:
        return Unknown(size=size, bounds=ANY_RECORD)
    if query.independent:
        raise QueryError("independent people are not correlated: leave one of both out.")
    if query.needs_household:
        raise QueryError(
            f"{query.reason}: leave correlation= out. Then any dependence inside a household is"
            " covered, at the price of more noise."
        )
    bounds = cast("tuple[float, float]", query.bounds)
    if "order_by" not in job.options:
        stated = correlation
        if _is_absolute(job, query):
            low, high = checked_range(correlation)
            stated = (low, max(-low, high))
        return GaussianGroup(size=size, correlation=stated, bounds=bounds)
    strength = max(map(abs, checked_range(correlation)))
    return GaussianSeries(length=size, correlation=strength, bounds=bounds)


def as_assumption(job: Job, model: Model | None) -> Job | None:
    """Return the job with what a model of groups or series assumes in place of the model.

    One common correlation says as much about some of the members, and about parts of an answer, as
    where it is stated: see `model_of_rows`. None where the model is another one.
    """
    parts = model.models if isinstance(model, Blocks) else (model,)
    said = {
        (type(one), one.correlation, one.bounds)
        for one in parts
        if isinstance(one, GaussianGroup | GaussianSeries)
    }
    if len(said) != 1 or not all(isinstance(o, GaussianGroup | GaussianSeries) for o in parts):
        return None
    ((kind, correlation, bounds),) = said
    if (kind is GaussianSeries) != ("order_by" in job.options):
        return None
    others = {key: value for key, value in job.options.items() if key != "model"}
    options = {"bounds": bounds} | others | {"correlation": correlation}
    return dataclasses.replace(job, options=cast("Options", options))


def known_as(model: Model, source: Model) -> Model:
    """Return the blocks of members that count, marked as the model whose assumption they have."""
    if not isinstance(model, Blocks):
        return model
    same = Blocks(models=model.models, counts=model.counts, provenance=source.provenance)
    return same.marked_like(source)


def rows_of_question(job: Job, question: Question, frame: Any) -> tuple[RowQuery, PublicRows]:
    """Return what is asked, and what public columns say about it; no secret cell is read."""
    if not job.is_long:
        raise QueryError(
            "say which rows belong together: groups= (or order_by= for one series), or"
            " independent=True if every row is a person independent of the others."
        )
    refuse_absent(frame, _public(job))
    query = query_about_rows(job, question, frame)
    groups = None if query.independent else job.options.get("groups")
    public = public_rows(frame, query, groups=groups)
    return with_public_sizes(query, public), public
