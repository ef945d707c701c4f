"""Explain in plain words what was calibrated, against whom, and at what cost."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

from pdp_calibrate.auditing.attack import Audit
from pdp_calibrate.calibration.release import EVERY_COLUMN, Layout
from pdp_calibrate.calibration.result import AnyCalibration, AnyRelease, Calibration, Release
from pdp_calibrate.core.adversary import Adversaries
from pdp_calibrate.core.model import PRIVATE_MODEL, Model
from pdp_calibrate.core.numbers import at_most, beside_noise, width
from pdp_calibrate.core.problem import Leakage
from pdp_calibrate.errors import PdpError, printable
from pdp_calibrate.families.stream.refresh import Refresh, period_words
from pdp_calibrate.frames.long_answers import LongFrame
from pdp_calibrate.ledger.accounts import Entry
from pdp_calibrate.ledger.ledger import Ledger
from pdp_calibrate.ledger.people import PeopleLedger, stated
from pdp_calibrate.show import words as costs
from pdp_calibrate.show.words import (
    anyone,
    asked,
    assumptions,
    factor,
    is_clamped,
    learns,
    listed,
    worst_adversary,
)

_METHODS = {
    "exact": "computed exactly",
    "windows": "window by window around each tuple",  # in ledgers written by 0.2
    "dual": "by a certified linear program",
    "birkhoff": "by contraction: what passes from entry to entry shrinks",
    "shift": "by moving one database onto another",
    "group": "as for group privacy",
    "whole": "as a release about whole draws",
    "filter": "by the joint precision of all Gaussian noise",
    "repeats": "as one exact answer to the query that is repeated",
    "household": "as all members and columns of a household at once",
    "stream": "step by step, the most about any one",
    "nothing": "nothing was released",
}


_SYMBOLS = {"epsilon": "ε", "mu": "μ", "rho": "ρ"}


ONE_RELEASE = (
    "This is the only release about these people: a second one leaks more, and not simply the sum"
    " of both. A ledger counts them together."
)


ONE_GAUSSIAN_RELEASE = (
    "This is the only release about these people: a second one leaks more, and not simply the sum"
    " of both."
)


Explainable: TypeAlias = (
    AnyCalibration | AnyRelease | Ledger | PeopleLedger | Leakage | Audit | Refresh
)


EVERY_STEP = (
    "Every release about these people, at any step, is in one ledger: answers about one step also"
    " reveal something about the steps around it."
)


def explain(subject: Explainable) -> str:
    """Return a few paragraphs that a data steward can read.

    It contains nothing from the data: only the model, the query, and what follows from them. For a
    private model the worst adversary is not named: it would reveal something about the rows.

    Parameters
    ----------
    subject
        A calibration or release, also of several queries; a ledger, a leakage or an audit.

    Examples
    --------
    >>> import pdp_calibrate as pdp
    >>> pair = pdp.JointTable(probabilities=[[0.3, 0.2], [0.2, 0.3]], domains=[[0, 1], [0, 1]])
    >>> print(pdp.explain(pdp.leakage(pair, pdp.Sum(), scale=1.0)))
    At scale 1 the release leaks 1.185. At worst, odds grow by a factor of up to 3.27, for example
    from even odds to 76.6 %. The worst adversary attacks x1 and knows nobody's entry, only how
    the entries are correlated. They learn most when the released answer is near 0 or beyond, which
    favours x1 = 0 over 1.
    """
    return printable("\n\n".join(text for text in paragraphs(subject).values() if text), lines=True)


def paragraphs(subject: Explainable, *, plain: Leakage | None = None) -> dict[str, str]:
    """Return the paragraphs of `explain` by what they are about.

    Parameters
    ----------
    subject
        As for `explain`.
    plain
        What the noise of plain DP leaks, if it has been computed already.
    """
    if isinstance(subject, Calibration):
        return _of_calibration(subject, plain)
    if isinstance(subject, Release):
        column = column_of(subject.layout)
        said = _of_calibration(
            subject.calibration, plain, column, costs.interval_to_expect(subject)
        )
        return {"answer": _answer(subject)} | said
    if isinstance(subject, Ledger):
        return _of_ledger(subject)
    if isinstance(subject, PeopleLedger):
        return _of_people(subject)
    if isinstance(subject, Leakage):
        return _of_leakage(subject)
    if isinstance(subject, Audit):
        return _of_audit(subject)
    if isinstance(subject, Refresh):
        return _of_refresh(subject)
    raise PdpError(
        "explain takes a calibration, a release, a ledger, a leakage, an audit or a refresh, got"
        f" {type(subject).__name__}."
    )


def column_of(layout: Layout | None) -> str | None:
    """Return the column that a layout is about, where it is one."""
    if isinstance(layout, LongFrame) and layout.value != EVERY_COLUMN:
        return str(layout.value)
    return None


def promise(calibration: AnyCalibration, column: str | None = None) -> str:
    """Say what is guaranteed, and how."""
    noise = costs.kind_of_noise(calibration)
    scales = [
        f"{costs.number(float(scale))}{costs.unit(query)}"
        for query, scale in zip(calibration.queries, calibration.scales, strict=True)
    ]
    questions = [asked(query, column=column) for query in calibration.queries]
    each = [f"{one} with scale {scale}" for one, scale in zip(questions, scales, strict=True)]
    how = f"Release together, with {noise} noise: {'; '.join(each)}."
    if len(each) == 1:
        how = (
            f"Release {questions[0]}: with {noise} noise of scale {scales[0]}."
            if ";" in questions[0]
            else f"Release {questions[0]} with {noise} noise of scale {scales[0]}."
        )
    certainty = "exactly" if calibration.leakage.exact else "at most"
    law = calibration.model.assuming
    then = "Then" if law is None else f"Then, assuming {law},"
    total = calibration.total_epsilon
    if calibration.mu is not None:
        delta = calibration.total_delta
        return (
            f"{how} {then} no set of answers is more than e^{total:.4g} times as likely for one"
            f" value of anyone's entry as for another, up to a probability of {delta:.3g}"
            f" (ε = {total:.4g}{costs.parts_of_total(calibration)}, δ = {delta:.3g}). Telling two"
            " values apart is never easier than telling two bell curves apart whose centres are"
            f" {calibration.mu:.4g} standard deviations apart (μ-GDP, and zCDP with"
            f" ρ = {calibration.rho:.4g}{_coupled(calibration.model)}). This holds against"
            f" {anyone(calibration.adversaries)};"
            f" the worst of them gets {certainty} ε = {calibration.leakage.value:.4g}"
            f"{costs.from_the_answer(calibration)}."
        )
    return (
        f"{how} {then} nobody can shift their odds between two values of anyone's entry by more"
        f" than a factor e^{total:.4g} (ε = {total:.4g}{costs.parts_of_total(calibration)}),"
        f" whatever comes out. This holds against {anyone(calibration.adversaries)}; the worst of"
        f" them gets {certainty} {calibration.leakage.value:.4g}"
        f"{costs.from_the_answer(calibration)}."
    )


def _of_calibration(
    calibration: AnyCalibration,
    plain: Leakage | None,
    column: str | None = None,
    interval: str = "",
) -> dict[str, str]:
    if calibration.model.provenance == "private":
        about = {"worst": f"Careful: {PRIVATE_MODEL}"}
    else:
        plain = costs.leakage_of_plain_dp(calibration) if plain is None else plain
        about = {
            "worst": adversary(calibration.leakage, calibration.model),
            "plain": costs.plain_dp(calibration, plain),
            "group": costs.group_privacy(calibration),
        }
    return {
        "promise": promise(calibration, column),
        **about,
        "learning": costs.learning(calibration),
        "interval": _joined(
            interval or costs.interval_to_expect(calibration), costs.clamping(calibration)
        ),
        "assumptions": _assumptions(calibration),
    }


def adversary(leakage: Leakage, model: Model) -> str:
    """Describe who learns most, and how much."""
    found = worst_adversary(leakage.witness, model=model, certain=leakage.exact)
    if leakage.mu is not None:
        return f"{found}{costs.data_share(leakage.witness)}"
    if leakage.witness is None or leakage.lower <= 0:
        return found
    if leakage.exact:
        return f"{found} For them {learns(leakage.value)}."
    return (
        f"{found} For them odds grow by a factor of at least {factor(leakage.lower)}; for nobody by"
        f" more than {factor(leakage.value)}."
    )


def _answer(release: AnyRelease) -> str:
    widths = release.half_widths(alpha=0.05)
    if len(release.values) > 1:
        shown = [
            beside_noise(value, half) if isinstance(value, int | float) else _many(value)
            for value, half in zip(release.values, widths, strict=True)
        ]
        return f"Released together: {listed(shown)}."
    (value,), ((low, high),), (half,) = release.values, release.intervals(alpha=0.05), widths
    if not isinstance(value, int | float):
        return f"Released: {_many(value)}, each within ±{width(half)} at 95 %."
    return (
        f"Released: {beside_noise(value, half)}. With probability 95 % the answer without noise"
        f" lies between {beside_noise(low, half, side='low')} and"
        f" {beside_noise(high, half, side='high')}."
    )


def _many(value: Any) -> str:
    return f"{len(value)} noisy answers"


def _of_ledger(ledger: Ledger) -> dict[str, str]:
    own = [entry for entry in ledger.history if entry.draw == ledger.draw]
    spent = (
        f"Of the budget ε = {ledger.epsilon:.4g} for draw {ledger.draw!r}, {ledger.spent:.4g} is"
        f" spent and {ledger.remaining:.4g} is left, by {len(own)} entries. That is what everything"
        f" released together leaks to {anyone(ledger.adversaries)}; it is not the sum of the single"
        " leakages, which can be too small."
    )
    if ledger.delta:
        spent += f" {_divided(ledger)}"
    private = ledger.model.provenance == "private"
    return {
        "spent": _of_stream(ledger) if ledger.model.is_endless else spent,
        "history": _listed_entries(own, most=12 if ledger.model.is_endless else len(own)),
        "worst": f"Careful: {PRIVATE_MODEL}" if private else "",
        "assumptions": _listed_assumptions(assumptions(ledger.model, ledger.adversaries)),
    }


def _listed_entries(entries: list[Entry], *, most: int) -> str:
    """List the last entries, one line each, and how many there are before them."""
    before = len(entries) - most
    first = [f"- {before} earlier entries"] if before > 0 else []
    return "\n".join([*first, *(f"- {describe(entry)}" for entry in entries[max(0, before) :])])


def _of_stream(ledger: Ledger) -> str:
    """Describe what a ledger about steps has spent, and how long leakage about a step grows."""
    each = "" if ledger.every is None else f" ({ledger.every})"
    promised = (
        f" Every future step may still spend a plain-DP budget of {ledger.promise:.4g}."
        if ledger.promise
        else " Nothing is promised to future steps."
    )
    return (
        f"Of the budget ε = {ledger.epsilon:.4g} about the record of any one step{each},"
        f" {ledger.spent:.4g} is spent and {ledger.remaining:.4g} is left, by"
        f" {len(ledger.history)} entries. That is the most that everything released together leaks"
        " about a step, past or future, to anyone, whichever other records they know and whatever"
        f" hints they have.{promised} The leakage about a step keeps growing after it has passed:"
        f" by at most a hundredth of the budget from everything {ledger.still_gains()} or more"
        " steps later. A new period brings no new budget for the earlier ones."
    )


def _of_refresh(found: Refresh) -> dict[str, str]:
    every = period_words(found.every)
    period = every if every.isalpha() else f"period of {every}"
    verdict = (
        f"ε = {found.epsilon:.4g} every {every} is ε ≤ {at_most(found.leakage)} about the"
        f" record of any one {period}, for ever: {learns(found.leakage)}."
    )
    why = (
        f"A record stays as it was from one {period} to the next with probability"
        f" {found.persistence:.4g}, among {found.states} values, so that answers about one {period}"
        f" also reveal something about those before and after it, less and less: after"
        f" {found.still_gains} of them a release adds at most a hundredth. It holds against anyone,"
        " whichever other records they know, and whatever mechanisms the budget was spent on."
    )
    if found.states == 2:
        why += " Somebody with noisy hints about every record learns exactly that much."
    beside = (
        f"To somebody without known records or hints it leaks {found.temporal:.4g} (temporal"
        f" privacy leakage, Cao et al.). Counting every {period} as one group (group privacy, plain"
        f" composition) gives {found.counted_for_a_year:.4g} after a year, and more every year; it"
        " protects the whole history of a person's records, which the budget of one record does"
        " not."
    )
    keep = (
        f"To keep ε = {found.epsilon:.4g} about any one record, spend {found.budget:.4g} every"
        f" {every}."
    )
    return {"verdict": verdict, "why": why, "beside": beside, "keep": keep}


def _divided(ledger: Ledger) -> str:
    """Describe what a budget with a δ promises."""
    pure = ledger.allowance.pure
    beside = (
        "Only Gaussian noise is drawn, so unknown data count as noise too."
        if pure is None
        else f"Up to ε = {pure:.4g} of it is for Laplace noise and other mechanisms, fixed"
        " beforehand; unknown data do not count as noise then."
    )
    kept = [] if ledger.mu is None else [f"Gaussian noise stays within μ = {ledger.mu:.6g}"]
    share = ledger.repeats
    if share:
        other = f"otherwise {kept[0]}" if kept else "no other query is answered"
        kept = [f"{share:.4g} of δ is for asking the first query and no other, exactly; {other}"]
    return (
        f"The promise is the budget, with δ = {ledger.delta:g}: {kept[0]}, and what would exceed it"
        f" is refused before noise is drawn. The amount spent says how much of the budget is used;"
        f" it is not a smaller promise. {beside}"
    )


def _of_people(ledger: PeopleLedger) -> dict[str, str]:
    columns = ", ".join(f"{name} {spent:.4g}" for name, spent in ledger.spent_by_column.items())
    spent = (
        f"Of the budget ε = {ledger.epsilon:.4g} of each column, {ledger.spent:.4g} is spent and"
        f" {ledger.remaining:.4g} is left, by {len(ledger.history)} releases about"
        f" {table_of(ledger)}. By column: {columns}. That is what everything released together"
        " leaks to anyone about an entry of it, whichever other entries of that column they know."
    )
    if ledger.delta:
        spent += (
            f" The promise is the budget, with δ = {ledger.delta:g}: Gaussian noise stays within"
            f" μ = {ledger.allowance.limit(0.0):.6g}, and ε = {ledger.allowance.pure or 0:.4g}"
            " of it is for Laplace noise, fixed beforehand."
        )
    return {
        "spent": spent,
        "history": "\n".join(f"- {describe(entry)}" for entry in ledger.history),
        "assumptions": _listed_assumptions(people_assumptions(ledger)),
    }


def table_of(ledger: PeopleLedger) -> str:
    """Say how large the table is that a ledger is about."""
    rows = sum(size * number for size, number in ledger.sizes)
    groups = sum(number for _, number in ledger.sizes)
    column = ledger.declared.get("groups")
    by = "" if column is None else f" (by {column})"
    return f"{rows:,} rows in {groups:,} independent groups{by} of at most {max(ledger.sizes)[0]}"


def people_assumptions(ledger: PeopleLedger) -> list[str]:
    """List the assumptions behind the promise of a ledger about people."""
    models = ledger.models
    columns = [
        f"Column {name} ({stated(model)}): {one[0].lower()}{one[1:]}"
        for name, model in models.items()
        for one in assumptions(model, Adversaries.all(), clamped=True)[:-1]
    ]
    others = (
        f"Releases for the model of a column ({', '.join(models)}) do not cover adversaries who"
        " know entries of other columns as well; all other releases do."
        if models
        else "All releases are for whole households: it does not matter what anyone knows about"
        " other columns or members."
    )
    independent = (
        "Groups are independent of each other; all columns of a group may depend on each other in"
        " any way, except for what is assumed about a column."
    )
    public = (
        "Names, number of rows, who belongs to which group, domains and ranges are public, and so"
        " are the columns of groups and order and those declared public."
    )
    return [
        *columns,
        others,
        independent,
        public,
        "Every release about these people is in this ledger.",
    ]


def describe(entry: Entry) -> str:
    """Describe in one line what was released or charged."""
    method = _METHODS.get(entry.method, entry.method)
    so_far = f"{entry.spent:.4g} spent so far ({method})"
    if entry.step is not None:
        so_far = f"about step {entry.step}; {so_far}"
    note = f" “{entry.note}”" if entry.note else ""
    if entry.dp_epsilon is not None:
        what = "learning of the model" if entry.kind == "estimation" else "an outside mechanism"
        return f"{entry.at[:10]}: {what} of ε = {entry.dp_epsilon:.4g}{note}; {so_far}."
    if entry.kind == "charge":
        size = f"μ = {entry.mu:.4g}" if entry.rho is None else f"ρ = {entry.rho:.4g}"
        return f"{entry.at[:10]}: an outside mechanism of {size}{note}; {so_far}."
    what = "; ".join(asked(query) for query in entry.queries) + of_column(entry)
    if entry.column is not None:
        symbol = "μ = " if entry.noise == "gaussian" else ""
        so_far = f"{symbol}{entry.price:.4g} to other columns; {so_far}"
    scales = listed(costs.number(float(scale)) for scale in entry.scales)
    alone = f"ε = {entry.epsilon:.4g}"
    if entry.noise == "gaussian":
        what, alone = f"{what}, Gaussian noise", f"{alone}, δ = {entry.delta:g}"
    return f"{entry.at[:10]}: {what}, scale {scales}, {alone} alone{note}; {so_far}."


def of_column(entry: Entry) -> str:
    """Say which column of a long frame a release is about, where that is known."""
    column = getattr(entry.layout, "value", None)
    return "" if column is None else f" in column {column}"


def _of_leakage(leakage: Leakage) -> dict[str, str]:
    scales = leakage.scale if isinstance(leakage.scale, tuple) else (leakage.scale,)
    how_much = (
        f"{leakage.value:.4g}" if leakage.exact else f"{leakage.lower:.4g} to {leakage.value:.4g}"
    )
    at = listed(costs.number(float(scale)) for scale in scales)
    witness = leakage.witness
    law = None if witness is None else witness.model.assuming
    given = "" if law is None else f", assuming {law}"
    worst = f"At worst, {learns(leakage.value)}."
    if leakage.mu is not None:
        delta = f" at δ = {leakage.measure.delta:g}" if leakage.unit == "epsilon" else ""
        how_much = f"{_SYMBOLS[leakage.unit]} = {how_much}{delta}"
        discrete = witness is not None and not witness.model.is_continuous
        at_most = " (at most: from a coupling)" if discrete else ""
        worst = (
            "Telling two values apart is never easier than telling two bell curves apart whose"
            f" centres are {leakage.mu:.4g} standard deviations apart"
            f"{at_most}."
        )
    text = f"At scale {at} the release leaks {how_much}{given}. {worst}"
    if witness is not None and witness.model.provenance == "private":
        return {"leakage": f"{text} The model is private, so the worst adversary is not named."}
    who = worst_adversary(witness, certain=leakage.exact)
    return {"leakage": f"{text} {who}{costs.data_share(witness)}"}


def _coupled(model: Model) -> str:
    """Say where the μ of answers that take finitely many values comes from."""
    return "" if model.is_continuous else "; both at most, from a coupling"


def _of_audit(audit: Audit) -> dict[str, str]:
    found = (
        f"An attack by the worst known adversary, on {sum(audit.tested)} draws, proved that at"
        f" least {audit.lower_bound:.4g} leaks (confidence {audit.confidence:.4g})."
    )
    if audit.epsilon is None:
        return {"audit": found}
    if audit.is_broken:
        return {"audit": f"{found} The claim ε = {audit.epsilon:.4g} is false."}
    seen = (
        f" About {audit.visible:.4g} could have been detected at all."
        if audit.visible is not None and math.isfinite(audit.visible)
        else ""
    )
    agrees = f"That agrees with the claim ε = {audit.epsilon:.4g}; an attack can never prove it."
    return {"audit": f"{found} {agrees}{seen}"}


def _assumptions(calibration: AnyCalibration) -> str:
    return _listed_assumptions([*costs.assumptions_of(calibration), *of_the_release(calibration)])


def of_the_release(calibration: AnyCalibration) -> list[str]:
    """List what the guarantee assumes about this release besides the model."""
    if calibration.model.is_endless:
        return [EVERY_STEP]
    if calibration.noise == "laplace":
        return [ONE_RELEASE]
    counted = calibration.model.is_continuous and not is_clamped(calibration)
    variance = (
        "No variance is smaller than the model states: to that extent, what adversaries do not know"
        " counts as noise."
    )
    return [*([variance] if counted else []), ONE_GAUSSIAN_RELEASE]


def _listed_assumptions(found: list[str]) -> str:
    return "What the guarantee rests on:\n" + "\n".join(f"- {one}" for one in found)


def _joined(*sentences: str) -> str:
    return " ".join(sentence for sentence in sentences if sentence)
