"""The opening of a report, for the person who signs it: what, about whom, on which assumptions."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable
from typing import Any

from pdp_calibrate.calibration.release import Layout
from pdp_calibrate.calibration.result import AnyCalibration, AnyRelease, Release
from pdp_calibrate.calibration.risk import percent, risk_of
from pdp_calibrate.core.adversary import Adversaries
from pdp_calibrate.core.composite import Blocks
from pdp_calibrate.core.model import Model
from pdp_calibrate.core.numbers import at_least, at_most, ordinary
from pdp_calibrate.core.row_query import RowQuery
from pdp_calibrate.frames.answers import Sizes
from pdp_calibrate.frames.long_answers import LongFrame
from pdp_calibrate.ledger.ledger import Ledger
from pdp_calibrate.ledger.people import PeopleLedger
from pdp_calibrate.show.explain import column_of, table_of
from pdp_calibrate.show.words import (
    CLAMPED,
    anyone,
    asked,
    entry,
    error_of_learning,
    is_clamped,
    knowledge,
    listed,
    members,
    miss_of,
    number,
    of_any_record,
    place_of,
    source,
)

_BELIEFS = (0.01, 0.5)
"""The beliefs that a promise is shown with."""


EPSILON = "the logarithm of the factor by which odds may shift"


def opening(
    subject: AnyCalibration | AnyRelease, *, data: str | None, layout: Layout | None, total: float
) -> list[str]:
    """Describe what was released about whom, what was assumed, and what is promised.

    Parameters
    ----------
    subject
        A calibration or a release.
    data
        The name of the table.
    layout
        Which columns it is about, where that is known.
    total
        The bound on what anybody learns, everything counted.
    """
    released = isinstance(subject, Release)
    calibration = subject.calibration if isinstance(subject, Release) else subject
    sizes = subject.sizes if isinstance(subject, Release) else None
    column = column_of(layout)
    questions = [asked(query, column=column).removesuffix(CLAMPED) for query in calibration.queries]
    what = "; and ".join(questions[:3]) + ("; and more" if len(questions) > 3 else "")
    table = "" if data is None else f" from the table {data}"
    about = table_words(calibration, layout, sizes)
    secret = column or ("record" if of_any_record(calibration.model) else "entry")
    law = (
        "every row is a person independent of the others"
        if _is_independent(calibration)
        else assumed(calibration.model, layout, clamped=is_clamped(calibration))
    )
    error = error_of_learning(calibration.model, miss=miss_of(calibration), delta=calibration.delta)
    when = "Published" if released else "To be published"
    return [
        f"{when}{table}, with noise added: {what}. It is about {about}.",
        f"Assumed: {law}. {error}".rstrip(),
        promised(total, calibration.adversaries, what=secret, delta=calibration.total_delta),
    ]


def ledger_opening(ledger: Ledger | PeopleLedger, *, data: str | None) -> list[str]:
    """Say what all releases of a ledger together promise."""
    table = "" if data is None else f" about the table {data}"
    budget, spent = ordinary(ledger.epsilon), ordinary(ledger.spent)
    if isinstance(ledger, PeopleLedger):
        number = len(ledger.history)
        released = (
            f"{number} {'answer was' if number == 1 else 'answers were'} published so far{table}:"
            f" {table_of(ledger)}. Every column has a budget of ε = {budget} ({EPSILON}), and at"
            f" most {spent} of it is spent on any column."
        )
        return [
            released,
            promised(ledger.spent, Adversaries.all(), what="entry"),
        ]
    own = [one for one in ledger.history if one.draw == ledger.draw]
    released = (
        f"{len(own)} {'line is' if len(own) == 1 else 'lines are'} in this ledger{table} for the"
        f" draw “{ledger.draw}” of the data. Of its budget of ε = {budget} ({EPSILON}), {spent} is"
        " spent."
    )
    law = assumed(ledger.model, None, clamped=False)
    return [
        released,
        f"Assumed: {law}. {error_of_learning(ledger.model)}".rstrip(),
        _promise_of(ledger),
    ]


def _promise_of(ledger: Ledger) -> str:
    """Say what is promised: what is spent, or beside a δ, the whole budget that was set before."""
    total = ledger.epsilon if ledger.delta and ledger.spent else ledger.spent
    return promised(total, ledger.adversaries, what="entry", delta=ledger.delta)


def promised(epsilon: float, adversaries: Adversaries, *, what: str, delta: float = 0.0) -> str:
    """Say what is promised, in odds and beliefs."""
    if not epsilon > 0:
        return "Promised: nothing was released, so nobody has learned anything."
    risks = [risk_of(epsilon, prior=prior, delta=delta) for prior in _BELIEFS]
    moved = listed(
        f"a belief of {percent(one.prior)} can become at most {one.most}" for one in risks
    )
    failing = "" if not delta else f"except with probability {at_most(risks[0].failure)}, "
    factor = _odds(risks[0].log_factor)
    return (
        f"Promised: {failing}whatever was published, nobody's odds about anyone's {what} can"
        f" shift by more than ×{factor}: {moved}. This holds against {anyone(adversaries)}."
    )


def table_words(calibration: AnyCalibration, layout: Layout | None, sizes: Sizes | None) -> str:
    """Say how many entries and groups an answer is about, and which column names the group."""
    model, column = calibration.model, column_of(layout)
    if model.is_endless:
        return f"{column or 'a series'} without an end, one entry for each step"
    if _is_independent(calibration) and sizes:
        rows = sum(size * number for size, number in sizes)
        return f"{ordinary(rows)} rows, each a person who depends on nobody else"
    if isinstance(layout, LongFrame) or sizes is None:
        grouped = sizes or _sizes_of(model, calibration.rows)
        entries = sum(size * number for size, number in grouped)
        groups = sum(number for _, number in grouped)
        noun = "rows" if column is None and isinstance(layout, LongFrame) else "entries"
        whose = f" of {column}" if column else ""
        if not isinstance(layout, LongFrame) and groups == 1:
            noun = "entry" if entries == 1 else noun
            return f"{ordinary(entries)} {noun}: {_names(model)}"
        by = _by(layout)
        largest = max(size for size, _ in grouped)
        return (
            f"{ordinary(entries)} {noun}{whose}, in {ordinary(groups)}"
            f" {'group' if groups == 1 else 'groups'}{by}, the largest of {ordinary(largest)}"
        )
    rows = sum(number for _, number in sizes)
    return (
        f"{ordinary(rows)} {'row' if rows == 1 else 'rows'} with {len(model.names)}"
        f" {'entry' if len(model.names) == 1 else 'entries'} each: {_names(model)}"
    )


def _by(layout: Layout | None) -> str:
    column = layout.groups if isinstance(layout, LongFrame) else None
    return "" if column is None else f" (one for each {column})"


def _is_independent(calibration: AnyCalibration) -> bool:
    query = calibration.queries[0]
    return isinstance(query, RowQuery) and query.independent


def _sizes_of(model: Model, rows: int) -> Sizes:
    if isinstance(model, Blocks):
        return tuple(
            (len(one.names), number * rows)
            for one, number in zip(model.models, model.counts, strict=True)
        )
    return ((len(model.names), rows),)


def _names(model: Model) -> str:
    return listed(map(str, model.names))


def assumed(model: Model, layout: Layout | None, *, clamped: bool) -> str:
    """Say what is assumed of the values: law, correlation, range; and where that is from."""
    parts = members(model)
    column = column_of(layout)
    groups = "groups are independent of each other"
    if model.covers_any_dependence:
        about = f"{groups}; nothing about how members of one group depend on each other"
        return f"{about}{_range(parts, column, clamped=clamped)}"
    private = model.provenance == "private"
    law = model.in_words()
    if isinstance(model, Blocks):
        inside = "; or ".join(dict.fromkeys(one.in_words() for one in parts))
        law = f"{groups}, and within a group {inside}"
    numbers = "" if private else "".join(f", {one}" for one in _numbers(parts))
    within = "" if private else _range(parts, column, clamped=clamped)
    return f"{law}{numbers}{within} ({source(model)})"


def _numbers(parts: Iterable[Model]) -> list[str]:
    """List the few numbers that say how strongly members are correlated."""
    found: dict[str, None] = {}
    for one in parts:
        correlation = getattr(one, "correlation", None)
        if isinstance(correlation, int | float | tuple):
            ends = correlation if isinstance(correlation, tuple) else (correlation,)
            words = " to ".join(dict.fromkeys(ordinary(float(end)) for end in ends))
            found[f"correlation {words}"] = None
        variance = getattr(one, "variance", None)
        if isinstance(variance, int | float):
            found[f"variance {ordinary(float(variance))}"] = None
    return list(found)[:4]


def _range(parts: Iterable[Model], column: str | None, *, clamped: bool) -> str:
    """Say between which public ends the values lie, where all share them."""
    ranges: set[tuple[Hashable, ...]] = set()
    for one in parts:
        if not one.is_continuous or of_any_record(one):
            return ""
        ranges |= {tuple(domain) for domain in one.domains}
    if len(ranges) != 1:
        return ""
    low, high = (_end(end) for end in ranges.pop())
    beyond = ", values beyond counting as the nearer end" if clamped else ""
    return f"; {column or 'every entry'} lies between {low} and {high}{beyond}"


def _end(value: Any) -> str:
    return ordinary(value) if isinstance(value, int | float) else str(value)


def unprotected(
    subject: AnyCalibration | AnyRelease | Ledger | PeopleLedger, layout: Layout | None
) -> list[str]:
    """List what the promise does not cover."""
    calibration = subject.calibration if isinstance(subject, Release) else subject
    column = column_of(layout)
    model = None if isinstance(calibration, PeopleLedger) else calibration.model
    groups = layout.groups if isinstance(layout, LongFrame) else None
    told = "" if groups is None else f" (column {groups})"
    public = (
        "What is treated as public: that the table exists, its columns, how many rows it has, who"
        f" belongs to which group{told}, the possible values and ranges, the question, how much"
        " noise there is, and that this was published."
    )
    found = [
        public,
        "What the answer says about people in general. That is why it is published.",
    ]
    whole = model is not None and model.covers_any_dependence
    if not whole:
        found.append(
            "Statements about all members of a group at once. The promise is about one"
            f" {column or 'entry'} at a time; odds about a whole group can shift by more."
        )
    if column is not None and not whole:
        found.append(
            f"Other columns of the same people, and adversaries who know those: what is assumed is"
            f" about {column} alone."
        )
    if not isinstance(calibration, Ledger | PeopleLedger) and is_clamped(calibration):
        found.append("Values outside their public range, beyond the fact that they are outside.")
    found.append(
        "People who can observe the computation (its time, memory, error messages), the raw table,"
        " or earlier copies of it."
    )
    return found


def learns_most(calibration: AnyCalibration, column: str | None) -> str:
    """Say who could learn most, and what; no more than is proved."""
    leak, model = calibration.leakage, calibration.model
    witness = leak.witness
    if witness is None:
        return "There are no two secrets to distinguish."
    who = f"somebody who {knowledge(witness.known, model)}"
    target = entry(witness.target, model)
    first, second = map(number, witness.secrets)
    apart = f"{column or 'the values'} {first} and {second}"
    if of_any_record(model):
        apart = "two of their possible records"
    if leak.mu is not None:
        return (
            f"{who[0].upper()}{who[1:]}, can learn most about {target}: telling {apart} apart is"
            " for them no easier than telling two bell curves apart whose centres are"
            f" {at_most(leak.mu)} standard deviations from each other."
        )
    said = f"about {target}: an answer {place_of(witness.output)} shifts their odds between {apart}"
    if leak.exact:
        return f"Most could be learned by {who}, {said} by a factor of {_odds(leak.value)}."
    found = (
        f"The best attack that was found is by {who}, {said} by a factor of at least"
        f" {_odds(leak.lower, at_least)}. Nobody's odds shift by more than a factor of"
        f" {_odds(leak.value)}."
    )
    if leak.lower < leak.value / 2:
        found += " No attack was found that comes near that bound."
    return found


def keeps_promise(scale: float, own: float, leaked: float | None, epsilon: float) -> str:
    """Say whether noise of another method keeps the same promise, and what it leaks if not.

    More noise never leaks more. Where neither is proved, it says so. Equal to six digits is equal:
    the scale here also holds the rounding of the answer.
    """
    if scale >= own * (1 - 1e-6) or (leaked is not None and leaked <= epsilon * (1 + 1e-9)):
        return "yes"
    return "not proved" if leaked is None else f"no: odds shift up to ×{_odds(leaked)}"


def _odds(leakage: float, rounded: Callable[[float], str] = at_most) -> str:
    return rounded(math.exp(leakage)) if leakage < 10 else f"e^{rounded(leakage)}"
