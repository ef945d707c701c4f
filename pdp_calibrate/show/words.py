"""Names, queries, adversaries, assumptions and costs in words, a phrase or a sentence each."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import cast

from pdp_calibrate.calibration.result import AnyCalibration, AnyRelease, Release
from pdp_calibrate.calibration.risk import risk_of
from pdp_calibrate.core.accuracy import unit_of_scale
from pdp_calibrate.core.adversary import Adversaries, Output, Witness
from pdp_calibrate.core.composite import Blocks, ModelSet
from pdp_calibrate.core.coverage import learned_as
from pdp_calibrate.core.leakage import leakage
from pdp_calibrate.core.model import Model
from pdp_calibrate.core.numbers import at_most, ordinary, width
from pdp_calibrate.core.problem import Leakage
from pdp_calibrate.core.query import Count, Custom, EachStep, Histogram, Linear, Mean, Query, Sum
from pdp_calibrate.core.row_query import ANY_RECORD, RowQuery

_MOST_LISTED = 6


def entry(name: Hashable, model: Model | None = None) -> str:
    """Return the name of a tuple, or its position in words where it has none.

    Examples
    --------
    >>> from pdp_calibrate.core.composite import Blocks
    >>> from pdp_calibrate.families.any_dependence import Unknown
    >>> homes = Blocks(models=[Unknown(size=n, domain=[0, 1]) for n in (1, 3)], counts=[40, 25])
    >>> entry("mother"), entry(7), entry((1, 0))
    ('mother', 'entry 7', 'the 1st member of the 2nd group')
    >>> entry((1, 0), homes)
    'the 1st member of a group of 3'
    """
    if isinstance(name, int) and not isinstance(name, bool):
        return f"entry {name}"
    place = _place(name)
    if place is None:
        further = name[0] if isinstance(name, tuple) and name else None
        like = None if _place(further) is None else entry(further, model)
        return str(name) if like is None else f"{like} (another such group)"
    block, position = place
    noun, group = _group(block, model)
    return f"the {_ordinal(position)} {noun} of {group}"


def _place(name: Hashable) -> tuple[int, int] | None:
    """Return the block and the position in it that stand for a name."""
    if isinstance(name, tuple) and len(name) == 2 and all(isinstance(part, int) for part in name):
        return name
    return None


def _group(block: int, model: Model | None) -> tuple[str, str]:
    """Say what a member of a block is called, and the block: by its size where that tells it."""
    if isinstance(model, ModelSet):
        model = model.models[0]  # all members name their tuples alike
    if not isinstance(model, Blocks) or block >= len(model.models):
        return "member", f"the {_ordinal(block)} group"
    own = model.models[block]
    noun, kind = ("step", "series") if own.runs_along_time else ("member", "group")
    alike = [one for one in model.models if len(one.names) == len(own.names)]
    if len(alike) > 1:  # only its place tells it from others of its size
        return noun, f"the {_ordinal(block)} {kind}"
    return noun, f"a {kind} of {len(own.names)}"


def _ordinal(place: int) -> str:
    """Write where something stands, counted from 0 here and from 1 in words."""
    number = place + 1
    last = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10)
    return f"{number}{last or 'th'}"


def listed(words: Iterable[object], *, most: int = _MOST_LISTED) -> str:
    """Join words with commas; only the first few of a long list."""
    found = [str(word) for word in words]
    if len(found) <= most:
        return ", ".join(found)
    return f"{', '.join(found[:most])}, … ({len(found)} in all)"


def number(value: object) -> str:
    """Write a number with four digits, several with commas, and anything else as it is."""
    if isinstance(value, tuple) and value and all(isinstance(one, float) for one in value):
        return listed(map(number, value))
    return ordinary(value) if isinstance(value, float) else str(value)


def asked(query: Query, *, column: str | None = None) -> str:
    """Say what a query asks for; of one column of a long table, by its name."""
    if isinstance(query, EachStep):
        return f"at each step, once, {asked(query.query, column=column)}"
    over = getattr(query, "over", None)
    whose = (column or "all entries") if over is None else listed(map(entry, over))
    if isinstance(query, Sum):
        return f"the sum of {whose}" + _clamped(clamp=query.clamp)
    if isinstance(query, Mean):
        return f"the mean of {whose}" + _clamped(clamp=query.clamp)
    if isinstance(query, Count):
        values = listed(sorted(map(number, query.values)))
        if column is not None and over is None:
            return f"the number of entries of {column} that are {values}"
        return f"how many of {whose} are {values}"
    if isinstance(query, Histogram):
        return f"how often each value occurs {'in' if whose == column else 'among'} {whose}"
    if isinstance(query, Linear):
        return f"the weighted sum {_weighted(query)}" + _clamped(clamp=query.clamp)
    if isinstance(query, Custom):
        return f"a function of {whose}"
    if isinstance(query, RowQuery):
        return _asked_of_rows(query)
    return repr(query)


def _asked_of_rows(query: RowQuery) -> str:
    """Say what is asked of rows: which count, where, and what missing cells mean."""
    if query.kind == "count":
        words = "how many rows there are"
    else:
        low, high = query.bounds or (0.0, 0.0)
        words = f"the {query.kind} of {query.value} (moved into {number(low)} to {number(high)})"
    for column in query.where:
        several = "one of " if len(column.values) > 1 else ""
        words += f"{' and' if column is not query.where[0] else ' where'} {column.name} is"
        words += f" {several}{listed(map(number, column.values))}"
    if query.by:
        words += f", for every {' and '.join(column.name for column in query.by)} declared"
    if query.most is not None:
        chosen = "the first by" if query.seed is None else "chosen at random by"
        words += f", of at most {query.most} rows of a group, {chosen} {query.keep_by}"
    for name, rule in query.missing.items():
        words += f"; rows without {name} " + {
            "zero": "do not count",
            "category": "are counted apart",
        }.get(str(rule), f"count as {number(rule)}")
    return words


CLAMPED = " (each moved into its public range first)"


def _clamped(*, clamp: bool) -> str:
    return CLAMPED if clamp else ""


def _weighted(query: Linear) -> str:
    if isinstance(query.weights, Mapping):
        return " + ".join(
            f"{number(float(weight))}·{entry(name)}"
            for name, weight in list(query.weights.items())[:8]
        )
    return f"with weights {listed(number(weight) for weight in query.weights)}"


_ANYONE = {
    Adversaries.all(): "anyone, whichever other entries they know exactly",
    Adversaries.weakest(): "anyone who knows nobody's entry, only how entries are correlated",
}


def anyone(adversaries: Adversaries) -> str:
    """Say against whom the promise holds."""
    if adversaries.known is not None:
        known = listed(map(entry, adversaries.known)) if adversaries.known else "nobody's entry"
        if adversaries.copies:
            known = " and ".join([known] * bool(adversaries.known) + ["all copies of the blocks"])
        return f"one who attacks {entry(adversaries.target)} and knows {known}"
    if adversaries.at_least is None:
        return "anyone who knows every entry but one exactly"
    if adversaries in _ANYONE:
        return _ANYONE[adversaries]
    most = "" if adversaries.at_most is None else f" and at most {adversaries.at_most}"
    return f"anyone who knows at least {adversaries.at_least}{most} other entries exactly"


def knowledge(known: Mapping[Hashable, Hashable], model: Model | None = None) -> str:
    """Say what an adversary knows; runs of numbered entries in short."""
    if not known:
        return "knows nobody's entry, only how the entries are correlated"
    if len(known) > _MOST_LISTED:
        values = {number(value) for value in known.values()}
        holding = f", all of them {values.pop()}" if len(values) == 1 else ""
        places = [name for name in known if isinstance(name, int)]
        if len(places) == len(known):
            return f"knows entries {listed(_runs(sorted(places)))}{holding}"
        members = [place for place in map(_place, known) if place is not None]
        if len(members) == len(known) and len({block for block, _ in members}) == 1:
            noun, group = _group(members[0][0], model)
            runs = _runs(sorted(position + 1 for _, position in members))
            return f"knows {noun}s {listed(runs)} of {group}{holding}"
    return "knows " + listed(
        f"{entry(name, model)} = {number(value)}" for name, value in known.items()
    )


def _runs(places: Sequence[int]) -> list[str]:
    runs: list[list[int]] = []
    for place in places:
        if runs and place == runs[-1][1] + 1:
            runs[-1][1] = place
        else:
            runs.append([place, place])
    return [str(first) if first == last else f"{first} to {last}" for first, last in runs]


def worst_adversary(
    witness: Witness | None, *, model: Model | None = None, certain: bool = True
) -> str:
    """Describe who learns most, what they know and which secrets they distinguish."""
    if witness is None:
        return "There are no two secrets to distinguish."
    who = "The worst adversary" if certain else "The worst adversary found"
    target = entry(witness.target, model)
    again = target if _place(witness.target) is None else "their entry"
    first, second = map(number, witness.secrets)
    apart = f"{again} = {first} over {second}"
    if model is not None and of_any_record(model):
        apart = "one of their possible records over another"
    return (
        f"{who} attacks {target} and {knowledge(witness.known, model)}. They learn most"
        f" when the released answer is {place_of(witness.output)}, which favours {apart}."
    )


def of_any_record(model: Model) -> bool:
    """Whether a model is about whole records of several columns, of any dependence."""
    return model.covers_any_dependence and set(model.domains) == {ANY_RECORD}


def data_share(witness: Witness | None) -> str:
    """Describe the data's own share of the noise that an adversary faces, where it is counted."""
    if witness is None or not witness.data_share:
        return ""
    return (
        f" Of the noise in the answer for them, {witness.data_share:.2%} is the data's own: what"
        " they do not know."
    )


def unit(query: Query) -> str:
    """Say after a scale which unit it is in, where that is not the unit of the answer."""
    found = unit_of_scale(query)
    return "" if found == unit_of_scale(Sum()) else f" (in {found})"


def kind_of_noise(calibration: AnyCalibration) -> str:
    """Name the noise."""
    if calibration.noise == "gaussian":
        return "Gaussian"
    return "whole-number Laplace" if calibration.is_integer else "Laplace"


_CERTAIN = 5.0  # from here on three digits would round to certainty


def learns(leakage: float) -> str:
    """Say what a leakage does to somebody's odds."""
    up_to = f"odds grow by a factor of up to {factor(leakage)}"
    after = f"{100 / (1 + math.exp(-leakage)):.3g} %"
    if leakage >= _CERTAIN:
        after = risk_of(leakage, prior=0.5).most
    return f"{up_to}, for example from even odds to {after}"


def factor(leakage: float) -> str:
    """Write e^leakage, as it is where it is no readable number."""
    return f"{math.exp(leakage):.3g}" if leakage < 10 else f"e^{leakage:.4g}"


def place_of(output: Output) -> str:
    """Say where an answer lies."""
    if isinstance(output, tuple):
        if not any(map(math.isinf, output)):
            return f"near ({listed(map(number, output))})"
        sides = ["any" if math.isfinite(one) else "high" if one > 0 else "low" for one in output]
        if len(set(sides)) == 1:
            return f"as {sides[0]} as can be in every number"
        return f"as far out as can be: ({', '.join(sides)})"
    if math.isinf(output):
        return "as high as can be" if output > 0 else "as low as can be"
    return f"near {number(output)} or beyond"


_SOURCES = {
    "assumed": "stated by hand, as an assumption",
    "public": "learned from data that are public",
    "dp": "learned from private rows under differential privacy",
    "private": "learned from private rows without differential privacy",
}


_ANY_DEPENDENCE = (
    "Members of a group may depend on each other in any way at all (group privacy); groups do not"
    " depend on each other."
)


def source(model: Model) -> str:
    """Say where the numbers of a model come from."""
    return _SOURCES[model.provenance]


def learned(model: Model) -> str | None:
    """Say in a phrase how a model was learned and what is covered; None if it was not learned.

    Examples
    --------
    >>> from pdp_calibrate.core.coverage import Coverage
    >>> from pdp_calibrate.families.gaussian.alike import GaussianSeries
    >>> series = GaussianSeries(length=9, correlation=0.5, bounds=(0, 1), provenance="public")
    >>> known = Coverage(kind="covered", confidence=0.95, over="sampling and noise")
    >>> learned(series.with_coverage(known))
    'learned, covered at 0.95 over sampling and noise'
    >>> learned(series.with_coverage(Coverage(kind="no band"))), learned(series)
    ('learned, no band (open)', None)
    """
    coverage = learned_as(model)
    return None if coverage is None else coverage.in_words


_ANY_GROUP = "about a group whose members depend on each other in any way"


def cost_of_a_miss(miss: float | None, *, delta: float = 0.0) -> str:
    """Say what leaks at most where the truth is outside what was learned."""
    if miss is None:
        return f"what its scale leaks {_ANY_GROUP}"
    beside = f" at δ = {delta:.3g}" if delta else ""
    return f"{at_most(miss, digits=4)}{beside}, what its scale leaks {_ANY_GROUP}"


def coverage_in_full(model: Model, *, miss: float | None = None, delta: float = 0.0) -> list[str]:
    """Say what is covered of the error of learning, what a miss costs, and what is assumed.

    Parameters
    ----------
    model
        The model.
    miss
        What an answer leaks at most however members of a group depend on each other, where that is
        known: `Calibration.group_epsilon`.
    delta
        The δ that goes with it.
    """
    coverage = learned_as(model)
    if coverage is None:
        return []
    found = [f"The model was {coverage.in_words}."]
    cost = cost_of_a_miss(miss, delta=delta)
    if coverage.beta is None:
        found.append(
            "The error of learning is not covered: where the truth is more correlated than what was"
            f" learned, more leaks than is said here, up to {cost}."
        )
    else:
        found.append(
            f"The truth is outside what was learned with probability at most"
            f" β = {coverage.beta:.2g}. That is no δ: where it is outside, the answer leaks at most"
            f" {cost}. An adversary who knows the correlation inside one group, or any other"
            " parameter of its own, is not covered."
        )
    return [*found, *coverage.notes]


def error_of_learning(model: Model, *, miss: float | None = None, delta: float = 0.0) -> str:
    """Say in one sentence, beside ε, what is covered of the error; empty if nothing was learned."""
    coverage = learned_as(model)
    if coverage is None:
        return ""
    cost = cost_of_a_miss(miss, delta=delta)
    if coverage.beta is None:
        return f"The model was {coverage.in_words}: where it errs, the answer leaks up to {cost}."
    return (
        f"The model was {coverage.in_words}: with probability at most β = {coverage.beta:.2g} the"
        f" truth is outside, and the answer leaks up to {cost}."
    )


def assumptions_of(calibration: AnyCalibration) -> list[str]:
    """List the assumptions behind a calibration, with what a miss of its model can cost."""
    return assumptions(
        calibration.model,
        calibration.adversaries,
        clamped=is_clamped(calibration),
        miss=miss_of(calibration),
        delta=calibration.delta,
    )


def miss_of(calibration: AnyCalibration) -> float | None:
    """Return what an answer leaks where a learned model misses the truth; None if not learned."""
    return None if learned_as(calibration.model) is None else calibration.group_epsilon


def assumptions(
    model: Model,
    adversaries: Adversaries,
    *,
    clamped: bool = False,
    miss: float | None = None,
    delta: float = 0.0,
) -> list[str]:
    """List the assumptions of the guarantee: if one of these fails, it may fail too."""
    parts = members(model)
    if model.covers_any_dependence:
        found = [_ANY_DEPENDENCE]
    else:
        law = "" if model.assuming is None else f", assuming {model.assuming}"
        found = [f"The model is right{law}: {model.in_words()}; {source(model)}."]
    found += coverage_in_full(model, miss=miss, delta=delta)
    if learned_as(model) is not None and model.is_continuous and not clamped:
        found.append(
            "What leaks at most where the truth is outside is about values in their ranges."
        )
    if model.certainty is not None and model.coverage is None:
        found.append(model.certainty)
    found += _of_adversaries(adversaries, parts, clamped=clamped)
    if clamped:
        found.append(
            "Every secret value lies inside its public range; values beyond it are not covered."
        )
    return [
        *found,
        "Names, number of rows, who belongs to which group, domains and ranges are public.",
    ]


def members(model: Model) -> tuple[Model, ...]:
    """Return the models inside blocks and sets, or the model itself."""
    if isinstance(model, Blocks | ModelSet):
        return tuple(part for inner in model.models for part in members(inner))
    return (model,)


def _of_adversaries(
    adversaries: Adversaries, parts: tuple[Model, ...], *, clamped: bool
) -> list[str]:
    found = []
    closed = all(part.exact_knowledge_is_worst or part.is_endless for part in parts)
    if not closed and all(part.covers_hints for part in parts):
        found.append(
            "Adversaries hold exact values of other entries, or hints about single entries that are"
            " independent of each other."
        )
    elif not closed or clamped:
        found.append(
            "Adversaries hold exact values of other entries; noisy knowledge can reveal more."
        )
    if adversaries.known is not None or adversaries.at_most is not None:
        found.append("Nobody knows more than stated; plain differential privacy is not implied.")
    return found


_PATIENCE = 10.0  # seconds for a comparison; a wider bracket after that


def leakage_of_plain_dp(calibration: AnyCalibration) -> Leakage | None:
    """Return what noise set as if everyone were independent leaks; None if it adds no noise."""
    scale = calibration.baselines["dp"]
    if not scale:  # never of a list, for which every answer must move
        return None
    return leakage(
        calibration.model,
        calibration.query,
        scale=scale,
        adversaries=calibration.adversaries,
        rows=calibration.rows,
        time_limit=_PATIENCE,
        noise=calibration.noise,
        delta=calibration.delta or None,
    )


def plain_dp(calibration: AnyCalibration, leak: Leakage | None) -> str:
    """Compare with plain differential privacy, given what its scale leaks."""
    if leak is None:
        return "Plain differential privacy would have added no noise at all."
    epsilon = calibration.epsilon
    scale = number(calibration.baselines["dp"]) + unit(calibration.queries[0])
    coverage = learned_as(calibration.model)
    if leak.value <= epsilon * (1 + 1e-9) and coverage is not None and coverage.is_open:
        return (
            f"Plain differential privacy would have used scale {scale}, as if everyone were"
            " independent. That would be enough if what was learned were the truth, which nothing"
            " here covers."
        )
    if leak.value <= epsilon * (1 + 1e-9):
        return (
            f"Plain differential privacy (scale {scale}) would have been enough here:"
            " the correlation does not help the worst adversary."
        )
    really = (
        f"would really have been {leak.lower:.4g}"
        if leak.exact
        else f"would really have been between {leak.lower:.4g} and {leak.value:.4g}"
    )
    return (
        f"Plain differential privacy would have used scale {scale}, as if everyone were"
        f" independent. Through the correlation, its ε = {epsilon:.4g} {really}."
    )


def parts_of_total(calibration: AnyCalibration) -> str:
    """Say what the total ε is made of, where learning the model is part of it."""
    spent = calibration.estimation_epsilon
    if spent is None:
        return ""
    return (
        f" in total: {calibration.epsilon:.4g} for the answer, {spent:.4g} for learning the model"
    )


def from_the_answer(calibration: AnyCalibration) -> str:
    """Say that a leakage is that of the answer alone, where there is more."""
    return "" if calibration.estimation_epsilon is None else " from the answer"


def learning(calibration: AnyCalibration) -> str:
    """Describe what learning the model leaked, and whether the sample was of any use."""
    found = []
    spent = calibration.estimation_epsilon
    if spent is not None:
        found.append(
            f"Learning the model was itself a private release of ε = {spent:.4g} about whole draws,"
            f" and the total of {calibration.total_epsilon:.4g} includes it. If the answer is about"
            " other data, independent of those that the model was learned from, the total for them"
            f" is {calibration.epsilon:.4g}."
        )
    advice = calibration.model.at_group_privacy
    if advice is not None:
        ratio = ratio_to_ours(calibration, "group")
        if ratio is not None and ratio <= 1 + 1e-6:
            found.append(advice)
    return " ".join(found)


def ratio_to_ours(calibration: AnyCalibration, method: str) -> float | None:
    """Return how many times our noise another method adds; None where it cannot be said."""
    scale = calibration.baselines[method]
    if scale is None:
        return None
    first = scale if isinstance(scale, float) else scale[0]  # all answers have one ratio
    return float(first / calibration.scales[0])


def group_privacy(calibration: AnyCalibration) -> str:
    """Say what treating all correlated entries as one would have cost."""
    ratio = ratio_to_ours(calibration, "group")
    if not ratio or not math.isfinite(ratio):
        return ""
    group = number(calibration.baselines["group"]) + unit(calibration.queries[0])
    compared = (
        f"{ordinary(ratio, digits=2)} times as much noise"
        if ratio > 1 + 1e-6
        else "less noise"
        if ratio < 1 - 1e-6
        else "the same noise"
    )
    return (
        f"Treating all correlated entries as one (group privacy) would need scale {group},"
        f" {compared}."
    )


def interval_to_expect(subject: AnyCalibration | AnyRelease) -> str:
    """Say how far the noise moves the answer; of a release, the answer that came out."""
    released = isinstance(subject, Release)
    calibration = subject.calibration if isinstance(subject, Release) else subject
    widths: Sequence[float | None] = (
        subject.half_widths() if isinstance(subject, Release) else calibration.known_half_widths()
    )
    if len(widths) == 1:
        (wide,) = widths
        (query,) = calibration.queries
        several = calibration.contributions[0].coordinates > 1
        several |= isinstance(query, RowQuery) and query.parts > 1
        each = " the answer"
        if several:
            each = " each count" if calibration.is_integer else " each number"
        if wide is None:
            (words,) = calibration.half_widths_in_words(then=" in 95 % of releases")
            return f"How far the noise moves{each} depends on a secret number of rows: {words}."
        (likely,) = (subject if released else calibration).half_widths(alpha=0.5)
        return (
            f"The noise moves{each} by at most ±{width(wide)} in 95 % of releases, and by at most"
            f" ±{width(likely)} in half of them."
        )
    within = (
        [f"±{width(one or 0)}" for one in widths]
        if released
        else calibration.half_widths_in_words()
    )
    parts = [
        f"{one} for {asked(query)}" for one, query in zip(within, calibration.queries, strict=True)
    ]
    return f"In 95 % of releases the noise stays within {'; '.join(parts)}."


def clamping(calibration: AnyCalibration) -> str:
    """Say what clamping adds to the error, as far as it can be said without the data."""
    if not is_clamped(calibration):
        return ""
    bias = clamping_bias(calibration)
    beside = (
        "Values outside their public range count as its nearest end. That moves the answer too,"
        " and the interval does not include it;"
    )
    if bias is None or calibration.model.provenance == "private":
        return (
            f"{beside} how far depends on the data alone: not at all if every value lies inside,"
            " and narrower ranges trade noise for this bias."
        )
    alone = calibration.rows == 1 and not isinstance(calibration.queries[0], Mean)
    per_row = " per row" if alone else ""
    shift = f"{bias:+.3g}{per_row}" if bias else "nothing"
    return f"{beside} by the model's means and variances, {shift} on average."


def is_clamped(calibration: AnyCalibration) -> bool:
    """Whether the query moves values into their public range first."""
    return any(part.clamped for part in calibration.contributions)


def clamping_bias(calibration: AnyCalibration) -> float | None:
    """Return E[clamped answer − answer] under a Gaussian model; None where it is not known."""
    moments = calibration.model.normal_marginals()
    weights = calibration.contributions[0].weights
    if moments is None or weights is None or len(calibration.queries) > 1:
        return None
    bias, ranges = 0.0, cast("Sequence[tuple[float, float]]", calibration.model.domains)
    for weight, mean, spread, (low, high) in zip(
        weights, *(moment.tolist() for moment in moments), ranges, strict=True
    ):
        shift = _mean_excess((low - mean) / spread) - _mean_excess((mean - high) / spread)
        bias += float(weight[0]) * spread * shift
    return bias * calibration.rows


def _mean_excess(threshold: float) -> float:
    """E[max(threshold − z, 0)] of a standard normal z."""
    density = math.exp(-threshold * threshold / 2) / math.sqrt(2 * math.pi)
    return threshold * math.erfc(-threshold / math.sqrt(2)) / 2 + density
