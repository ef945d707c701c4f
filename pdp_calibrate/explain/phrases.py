"""Names, queries and adversaries in words."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence

from pdp_calibrate.adversaries import Adversaries, Witness
from pdp_calibrate.models import Blocks, GaussianSeries, MarkovChain, MixingChain, Model, ModelSet
from pdp_calibrate.queries import Count, Custom, Histogram, Linear, Mean, Query, Sum

_MOST_LISTED = 6
_ORDERED = (GaussianSeries, MarkovChain, MixingChain)


def entry(name: Hashable, model: Model | None = None) -> str:
    """Call a tuple by its name, or by its place where it has none.

    Examples
    --------
    >>> from pdp_calibrate.models import Blocks, Unknown
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
    noun, kind = ("step", "series") if isinstance(own, _ORDERED) else ("member", "group")
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
    """Write a number with four digits, and anything else as it is."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def asked(query: Query) -> str:
    """Say what a query asks for."""
    over = getattr(query, "over", None)
    whose = "all entries" if over is None else listed(map(entry, over))
    if isinstance(query, Sum):
        return f"the sum of {whose}" + _clamped(clamp=query.clamp)
    if isinstance(query, Mean):
        return f"the mean of {whose}" + _clamped(clamp=query.clamp)
    if isinstance(query, Count):
        values = listed(sorted(map(number, query.values)))
        return f"how many of {whose} are {values}"
    if isinstance(query, Histogram):
        return f"how often each value occurs among {whose}"
    if isinstance(query, Linear):
        return f"the weighted sum {_weighted(query)}" + _clamped(clamp=query.clamp)
    if isinstance(query, Custom):
        return f"a function of {whose}"
    return repr(query)


def _clamped(*, clamp: bool) -> str:
    return " (each moved into its public range first)" if clamp else ""


def _weighted(query: Linear) -> str:
    if isinstance(query.weights, Mapping):
        return " + ".join(
            f"{weight:.4g}·{entry(name)}" for name, weight in list(query.weights.items())[:8]
        )
    return f"with weights {listed(number(weight) for weight in query.weights)}"


def anyone(adversaries: Adversaries) -> str:
    """Say against whom the promise holds."""
    if adversaries.known is not None:
        known = listed(map(entry, adversaries.known)) if adversaries.known else "nobody's entry"
        return f"one who attacks {entry(adversaries.target)} and knows {known}"
    if adversaries.at_least is None:
        return "anyone who knows every entry but one exactly"
    if adversaries.at_most == 0:
        return "anyone who knows nobody's entry, only how entries hang together"
    if (adversaries.at_least, adversaries.at_most) == (0, None):
        return "anyone, whichever other entries they know exactly"
    most = "" if adversaries.at_most is None else f" and at most {adversaries.at_most}"
    return f"anyone who knows at least {adversaries.at_least}{most} other entries exactly"


def knowledge(known: Mapping[Hashable, Hashable], model: Model | None = None) -> str:
    """Say what an adversary knows; runs of numbered entries in short."""
    if not known:
        return "knows nobody's entry, only how the entries hang together"
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
    """Describe who learns most, what they know and what they tell apart."""
    if witness is None:
        return "Nobody has anything to tell apart."
    who = "The worst adversary" if certain else "The worst adversary found"
    target = entry(witness.target, model)
    again = target if _place(witness.target) is None else "their entry"
    first, second = map(number, witness.secrets)
    return (
        f"{who} attacks {target} and {knowledge(witness.known, model)}. They learn most"
        f" when the released answer is {_where(witness.output)}, which speaks for"
        f" {again} = {first} and against {second}."
    )


def learns(leakage: float) -> str:
    """Say what a leakage does to somebody's odds."""
    after = 100 / (1 + math.exp(-leakage))
    return f"odds grow by a factor of up to {factor(leakage)}, from even odds to {after:.3g} %, say"


def factor(leakage: float) -> str:
    """Write e^leakage, as it is where it is no readable number."""
    return f"{math.exp(leakage):.3g}" if leakage < 10 else f"e^{leakage:.4g}"


def _where(output: float | tuple[float, ...]) -> str:
    if isinstance(output, tuple):
        return f"near ({listed(map(number, output))})"
    if math.isinf(output):
        return "as high as can be" if output > 0 else "as low as can be"
    return f"near {output:.4g} or beyond"
