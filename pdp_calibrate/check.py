"""Decide whether the noise of a calibration keeps its promise, without the library that made it.

    python check.py release.json        (or: pdp-calibrate check release.json)

One file, the standard library only, no line shared with the engines: copy it, read it, run it. It
reads a calibration or a release and answers

    0  proved: no adversary the file speaks of learns more than the ε it states;
    1  not so: an adversary breaks it, or what the file says does not follow;
    2  cannot decide: numbers are withheld, or the model is too large or of another kind.

It never guesses. It decides about the ideal mechanism, exact answer plus exact noise; what floating
point adds on top is charged by the library and was measured there.

What is promised. A database is one draw x of correlated tuples from a law θ. For every tuple i,
every set K of others that an adversary may know, every x_K of positive probability, every two
values v, v' of x_i that are possible then, and every output r:

    p(r | x_i = v, x_K)  ≤  e^ε p(r | x_i = v', x_K).

Who knows everyone else learns what changing x_i alone can do to the answer, whatever θ says: that
case is checked over all values of the domains, possible or not (plain differential privacy).

The theorems it uses, each with the reason why it is true
---------------------------------------------------------
A  (outputs). With Laplace noise the density given (v, x_K) is a mixture of e^{-|r-s|/λ} over the
   answers s. Between neighbouring s both mixtures are a·e^{r/λ} + b·e^{-r/λ}, so their quotient is
   monotone there, and constant outside all s: the largest quotient is at one of the s. Several
   coordinates: at a point of the grid of their answers. The discrete Laplace is the same kernel.
B  (blocks). Independent blocks, answers that add up: an average over what says nothing about x_i
   has no larger quotient than the worst single case. So every block may be checked alone.
C  (order). On a chain whose steps favour equal order (all 2×2 minors of the transitions ≥ 0,
   all entries > 0), with an answer that rises in every state, the largest quotient is in the
   limit r → ±∞: a quotient of E[e^{±f/λ} | …]. Left and right of x_i are independent given x_i,
   and of what is known only the nearest on either side matters.
D  (Gaussian values). Given x_K the answer is Gaussian around a line in x_i, so changing x_i by M
   shifts the density by M·β, β = Cov(f, x_i | x_K) / Var(x_i | x_K), and the most that costs is
   M·|β|/λ. Values clamped into their ranges: moving x_i by M moves every other x_u by at most
   min(M_u, M·|β_u|), β_u its coefficient on x_i, so the answer by at most the sum of that.
E  (signs). Ω = Σ^{-1}. If Ω_jk a_j a_k ≤ 0 for all j ≠ k and no weight is 0, knowing more
   never helps (every coefficient keeps its sign when one more is unknown): only K = ∅ counts.
F  (members alike). m members with common correlation ρ, weight a, k of them known:
   β = a(1+(m-1)ρ)/(1+kρ), monotone in ρ. Clamped, with any means and one unknown variance, the
   supremum is a·max(1, 1+(m-1)ρ), and Σ_t |a|·|φ|^{|t-i|} for a series that moves one way.
G  (any dependence). Nothing is assumed: all tuples of the block move at once.
H  (elimination). e^{D_kl} bounds the cross-ratios of θ in (x_k, x_l); ε_j is what changing x_j
   alone costs. Summing x_j out, D_kl grows by D_jk ⊗ D_jl and ε_k by D_jk ⊗ ε_j, where
   e^{(a⊗b)/2} = (e^{a/2} e^{b/2} + 1) / (e^{a/2} + e^{b/2}); the last ε_i bounds the leakage about
   x_i for every K, in any order of the others.

Numbers. Scales, weights and values are the exact fractions that their floats are. Densities are
sums and products of positive decimals of 50 digits; each operation changes one by at most a part in
10^49, so after fewer than 10^12 operations a quotient is right to a part in 10^36. It is compared
with e^ε times 1 ∓ 10^-30. What concerns Gaussian values is decided in fractions, exactly.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from fractions import Fraction
from operator import mul
from pathlib import Path
from typing import Any

PROVED, BROKEN, UNDECIDED = 0, 1, 2

DIGITS = Context(prec=50, Emax=MAX_EMAX, Emin=MIN_EMIN)
SLACK = Decimal("1e-30")
MOST_CELLS = 2**12  # of a table that is checked in full
MOST_WORK = 15 * 10**6  # steps of the innermost loops: about a minute
MOST_GAUSSIAN = 13  # tuples of a covariance whose 2^n sets of unknowns are all checked
MOST_INVERTED = 40  # tuples of a covariance that is inverted in fractions

Vector = tuple[Fraction, ...]
Matrix = list[list[Fraction]]


class Undecided(Exception):  # noqa: N818 - an answer, not an error
    """The file cannot be decided here, and why."""


class Broken(Exception):  # noqa: N818 - an answer, not an error
    """The promise does not hold, and against whom."""


# --- Reading numbers ------------------------------------------------------------------------------


def number(value: Any, what: str) -> Fraction:
    """Return a finite number as the exact fraction that it is."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise Undecided(f"{what} must be a finite number.")
    return Fraction(value)


def whole_number(value: Any, what: str) -> int:
    """Return a whole number of at least 0."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise Undecided(f"{what} must be a whole number.")
    return value


def listed(value: Any, what: str) -> list[Any]:
    """Return a list."""
    if not isinstance(value, list):
        raise Undecided(f"{what} must be a list.")
    return value


def numbers(values: Any, what: str) -> list[Fraction]:
    """Return a list of numbers."""
    return [number(value, what) for value in listed(values, what)]


def law(values: Any, what: str) -> list[Fraction]:
    """Return probabilities: none negative, adding up to 1 as floats do."""
    found = numbers(values, what)
    if not found or min(found) < 0 or abs(sum(found) - 1) > Fraction(1, 10**6):
        raise Undecided(f"{what} must be probabilities that add up to 1.")
    return found


def flat(values: Any) -> list[Any]:
    """Return what nested lists hold, in order."""
    return (
        [leaf for part in values for leaf in flat(part)] if isinstance(values, list) else [values]
    )


def hashable(value: Any) -> Any:
    """Return a name or a value so that it can be looked up."""
    return tuple(hashable(part) for part in value) if isinstance(value, list) else value


def decimal(value: Fraction) -> Decimal:
    """Return a fraction, rounded to 50 digits."""
    return Decimal(value.numerator) / Decimal(value.denominator)


# --- The claim, and who attacks -------------------------------------------------------------------


@dataclass(frozen=True)
class Claim:
    """What a calibration says, as exact numbers."""

    epsilon: Fraction
    scales: tuple[Fraction, ...]
    queries: tuple[dict[str, Any], ...]
    rows: int
    adversaries: dict[str, Any]
    model: dict[str, Any]

    @classmethod
    def read(cls, stored: Any) -> Claim:
        """Take the claim out of a calibration or a release."""
        if isinstance(stored, dict) and stored.get("type") == "Release":
            stored = stored.get("calibration")
        if not isinstance(stored, dict) or stored.get("type") != "Calibration":
            raise Undecided("this is no calibration and no release of pdp-calibrate.")
        if stored.get("schema") != "pdp-calibrate/1" or stored.get("version", 1) not in (1, 2):
            raise Undecided("this checker reads pdp-calibrate/1, versions 1 and 2.")
        several = isinstance(stored.get("query"), list)
        queries, scales, noises = (
            listed(stored.get(field), field) if several else [stored.get(field)]
            for field in ("query", "scale", "noise")
        )
        if not len(queries) == len(scales) == len(noises) > 0:
            raise Undecided("there must be one scale and one kind of noise per query.")
        if any(noise not in ("Laplace", "discrete Laplace") for noise in noises):
            raise Undecided(f"{noises[0]} noise is not decided here.")
        found = cls(
            epsilon=number(stored.get("epsilon"), "epsilon"),
            scales=tuple(number(scale, "a scale") for scale in scales),
            queries=tuple(queries),
            rows=whole_number(stored.get("rows"), "rows"),
            adversaries=stored["adversaries"],
            model=stored["model"],
        )
        if found.epsilon <= 0 or min(found.scales) <= 0 or found.rows < 1:
            raise Undecided("epsilon, scales and rows must be positive.")
        return found

    def judge(self, quotient: Decimal, target: Any) -> None:
        """Compare a quotient of densities, right to a part in 10^36, with e^ε."""
        limit = decimal(self.epsilon).exp()
        if quotient > limit * (1 + SLACK):
            leakage = float(quotient.ln())
            raise Broken(f"somebody learns {leakage:.9g} about {target}, more than ε.")
        if quotient > limit * (1 - SLACK):
            raise Undecided(f"somebody comes too close to ε about {target} to be told apart.")

    def judge_exactly(self, leakage: Fraction, target: Any, *, attained: bool = True) -> None:
        """Compare a leakage, or a bound on it that nobody need attain, with ε; both exact."""
        if leakage > self.epsilon:
            who = "somebody learns" if attained else "it does not follow: the bound is"
            raise Broken(f"{who} {float(leakage):.9g} about {target}, more than ε.")


@dataclass(frozen=True)
class Attack:
    """Which adversaries the promise is about: how many others they know, or one by name."""

    fewest: int
    most: int
    target: int | None = None
    known: frozenset[int] = frozenset()

    @classmethod
    def read(cls, stored: dict[str, Any], names: Sequence[Any], total: int) -> Attack:
        """Resolve what the file says for tuples of these names, `total` with their copies."""
        if "target" in stored:
            places = {name: place for place, name in enumerate(names)}
            known = frozenset(places[hashable(name)] for name in stored["known"])
            target = places[hashable(stored["target"])]
            if target in known or total != len(names):
                raise Undecided("this adversary is not decided here.")
            return cls(len(known), len(known), target, known)
        least, most = stored["at_least"], stored["at_most"]
        fewest = total - 1 if least is None else whole_number(least, "at_least")
        largest = total - 1 if most is None else min(total - 1, whole_number(most, "at_most"))
        if fewest > largest:
            raise Undecided("nobody is admitted, so nothing is promised.")
        return cls(fewest, largest)

    def everyone(self, tuples: int) -> bool:
        """Whether every adversary is admitted."""
        return self.target is None and self.fewest == 0 and self.most >= tuples - 1

    def inside(self, places: range, total: int) -> Attack:
        """Return who attacks these tuples of `total`, everything else left out (B)."""
        if self.target is not None:
            known = frozenset(place - places.start for place in self.known if place in places)
            return Attack(len(known), len(known), self.target - places.start, known)
        rest = total - len(places)
        return Attack(max(0, self.fewest - rest), min(len(places) - 1, self.most))

    def admits(self, target: int, known: frozenset[int]) -> bool:
        """Whether the promise is about this adversary."""
        if self.target is not None:
            return target == self.target and known == self.known
        return self.fewest <= len(known) <= self.most


@dataclass(frozen=True)
class Part:
    """Tuples that are searched together: a model without inner structure, or one block."""

    model: dict[str, Any]
    names: Sequence[Any]
    domains: Sequence[Sequence[Any]]
    added: Sequence[Sequence[Vector]]
    attack: Attack
    clamped: bool

    @property
    def size(self) -> int:
        """The number of tuples."""
        return len(self.names)

    @property
    def targets(self) -> Sequence[int]:
        """The tuples that are attacked."""
        return range(self.size) if self.attack.target is None else [self.attack.target]

    def judge_strongest(self, claim: Claim) -> None:
        """Check those who know everyone else: what changing one value alone does."""
        if self.attack.most >= self.size - 1:
            for target in self.targets:
                claim.judge_exactly(spread(self.added[target]), self.names[target])


# --- The query ------------------------------------------------------------------------------------


def shape(model: dict[str, Any]) -> tuple[list[Any], list[list[Any]], list[int]]:
    """Return the names of a model, the values of each tuple, and how many copies there are.

    Tuples on an interval have its two ends as values.
    """
    names = [hashable(name) for name in listed(model.get("names"), "names")]
    if len(set(names)) != len(names):
        raise Undecided("names must differ.")
    kind, copies = model.get("type"), [1] * len(names)
    if kind == "ModelSet":
        inner = [shape(member) for member in listed(model.get("models"), "models")]
        if not inner or any(found != inner[0] for found in inner):
            raise Undecided("the models of a set must be about the same tuples.")
        return names, inner[0][1], copies
    if kind == "Blocks":
        inner = [shape(block) for block in listed(model.get("models"), "models")]
        counts = [whole_number(count, "counts") for count in model["counts"]]
        domains = [values for _, found, _ in inner for values in found]
        copies = [count for (held, _, _), count in zip(inner, counts, strict=True) for _ in held]
        if any(max(own) > 1 for _, _, own in inner) or min(counts) < 1:
            raise Undecided("blocks of blocks with copies are not decided here.")
    elif kind in ("LoewnerBall", "ConditionalBall", "SampledGaussian"):
        return shape(model["center"])
    elif "domains" in model:
        domains = [listed(values, "a domain") for values in model["domains"]]
    elif "domain" in model or "states" in model or "categories" in model:
        shared = model.get("domain", model.get("states", model.get("categories")))
        domains = [listed(shared, "a domain")] * len(names)
    elif kind == "BinaryGroup":
        domains = [[0, 1]] * len(names)
    elif "bounds" in model:
        bounds = listed(model["bounds"], "bounds")
        domains = bounds if isinstance(bounds[0], list) else [bounds] * len(names)
    else:
        raise Undecided(f"a model of the kind {kind} is not decided here.")
    if len(domains) != len(names) or any(len(values) < 1 for values in domains):
        raise Undecided("there must be one domain per tuple.")
    return names, domains, copies


def weights_of(
    query: dict[str, Any], names: Sequence[Any], copies: Sequence[int], rows: int
) -> dict[Any, Fraction]:
    """Return the factor of every tuple that enters the answer."""
    kind, over = query.get("type"), query.get("over")
    chosen = list(names) if over is None else [hashable(name) for name in over]
    if kind == "Linear":
        stored = listed(query.get("weights"), "weights")
        pairs = stored if query.get("by") == "name" else zip(names, stored, strict=True)
        found = {hashable(name): number(weight, "a weight") for name, weight in pairs}
    elif kind == "Mean":
        copied = dict(zip(names, copies, strict=True))
        found = dict.fromkeys(chosen, Fraction(1, rows * sum(copied[name] for name in chosen)))
    elif kind in ("Sum", "Count", "Histogram"):
        found = dict.fromkeys(chosen, Fraction(1))
    else:
        raise Undecided(f"a query of the kind {kind} is not decided here.")
    if set(found) - set(names):
        raise Undecided("the query names tuples that are not there.")
    return found


def additions(
    claim: Claim, names: Sequence[Any], domains: Sequence[Sequence[Any]], copies: Sequence[int]
) -> list[list[Vector]]:
    """Return, per tuple and value, what it adds to the answer, in units of the noise.

    Each answer is divided by its own scale, so that the noise has scale 1 in every coordinate.
    """
    columns: list[list[list[Fraction]]] = [[[] for _ in domain] for domain in domains]
    for query, scale in zip(claim.queries, claim.scales, strict=True):
        weights = weights_of(query, names, copies, claim.rows)
        groups: list[set[Any]] | None = None
        if query["type"] == "Count":
            groups = [{hashable(value) for value in query["values"]}]
        elif query["type"] == "Histogram":
            stored = query.get("categories")
            own = [d for name, d in zip(names, domains, strict=True) if name in weights]
            every = itertools.chain.from_iterable(own) if stored is None else stored
            groups = [{value} for value in dict.fromkeys(map(hashable, every))]
        for name, domain, column in zip(names, domains, columns, strict=True):
            weight = weights.get(name, Fraction(0)) / scale
            for value, parts in zip(domain, column, strict=True):
                if groups is not None:
                    parts += [weight * (hashable(value) in group) for group in groups]
                else:
                    parts.append(weight * number(value, "a value") if weight else weight)
    return [[tuple(parts) for parts in column] for column in columns]


def row_reach(query: dict[str, Any]) -> Fraction:
    """Return how far one record can move all numbers of a question about rows, in L1."""
    kind, value, public = query.get("kind"), query.get("value"), set(query["public"])
    missing, by = query["missing"], query["by"]
    conditions = {one["column"] for one in (*query["where"], *by)} - public
    labels = [
        len(one["values"]) + (missing.get(one["column"]) == "category")
        for one in by
        if one["column"] not in public
    ]
    moves = math.prod(labels) > 1  # from one part into another
    leaves = bool(conditions) or (value is not None and value in missing)
    if kind == "count":
        return Fraction(2 if moves else 1)
    if kind not in ("sum", "mean"):
        raise Undecided(f"a {kind} of rows is not decided here.")
    low, high = numbers(query["bounds"], "bounds")
    if kind == "mean" and (moves or leaves):  # a sum in half ranges around the middle, and a count
        return Fraction(4 if moves else 2)
    if moves:
        return 2 * max(abs(low), abs(high))
    return max(high, Fraction(0)) - min(low, Fraction(0)) if leaves else high - low


def distance(one: Vector, other: Vector) -> Fraction:
    """Return how far two answers are apart, in units of the noise."""
    return sum((abs(a - b) for a, b in zip(one, other, strict=True)), Fraction(0))


def spread(values: Sequence[Vector]) -> Fraction:
    """Return how far two of the answers are apart at most."""
    if len(values[0]) == 1:
        return max(values)[0] - min(values)[0]
    return max(distance(a, b) for a, b in itertools.product(set(values), repeat=2))


# --- Tables (A) -----------------------------------------------------------------------------------


class Kernel:
    """e^{-d} for distances d, remembered."""

    def __init__(self) -> None:
        self._known: dict[Fraction, Decimal] = {}

    def __call__(self, d: Fraction) -> Decimal:
        found = self._known.get(d)
        if found is None:
            found = self._known[d] = (-decimal(d)).exp()
        return found


def outputs_of(answers: Sequence[Vector], work: int) -> list[Vector]:
    """Return the grid of outputs among which the worst one is; `work` is done for each."""
    axes = [sorted({answer[axis] for answer in answers}) for axis in range(len(answers[0]))]
    if work * math.prod(map(len, axes)) > MOST_WORK:
        raise Undecided("there are too many adversaries and outputs to check one by one.")
    return list(itertools.product(*axes))


def cells_within(sizes: Sequence[int]) -> int:
    """Return the number of cells, if they can be checked one by one."""
    cells = math.prod(sizes)
    if cells > MOST_CELLS:
        raise Undecided(f"{cells} cells are more than the {MOST_CELLS} that are checked in full.")
    return cells


def check_table(claim: Claim, part: Part, cells: Sequence[Fraction]) -> None:
    """Check every adversary of a table, for answers that add up and for any function."""
    sizes = [len(values) for values in part.domains]
    if len(cells) != cells_within(sizes):
        raise Undecided("the table does not fit its domains.")
    if part.added:
        answers = [
            tuple(map(sum, zip(*one, strict=True))) for one in itertools.product(*part.added)
        ]
    else:
        answers = function_values(claim, part)
    if part.attack.most >= part.size - 1:  # who knows everyone else: all cells, possible or not
        for target in part.targets:
            inner = math.prod(sizes[target + 1 :])
            step = inner * sizes[target]
            for start in range(0, len(answers), step):
                for place in range(start, start + inner):
                    changed = answers[place : start + step : inner]
                    claim.judge_exactly(spread(changed), part.names[target])
    check_cells(claim, part, cells, answers)


def function_values(claim: Claim, part: Part) -> list[Vector]:
    """Return the answers of a function that is stored as a table of its values."""
    (query,), (scale,) = claim.queries, claim.scales
    over = query.get("over")
    chosen = part.names if over is None else [hashable(name) for name in over]
    places = [list(part.names).index(name) for name in chosen]
    stored = {hashable(cell): number(value, "an answer") for cell, value in query["table"]}
    every = itertools.product(*part.domains)
    return [(stored[hashable([cell[p] for p in places])] / scale,) for cell in every]


def check_cells(
    claim: Claim, part: Part, cells: Sequence[Fraction], answers: Sequence[Vector]
) -> None:
    """Check all who do not know everyone else, at every output.

    An entry stands for (which tuples are known, their values): the last place on an axis means
    unknown, the sum over that tuple. It counts if it is possible and its adversary is admitted.
    """
    sizes = [len(values) for values in part.domains]
    there = [answer for answer, cell in zip(answers, cells, strict=True) if cell]
    outputs = outputs_of(there, math.prod(size + 1 for size in sizes))
    weights = [decimal(cell) for cell in cells]
    masses = with_unknown(weights, sizes)
    used = [bool(m) and a for m, a in zip(masses, admitted(part.attack, sizes), strict=True)]
    kernel = Kernel()
    for output in outputs:
        blurred = [
            weight * kernel(distance(output, answer)) if weight else weight
            for weight, answer in zip(weights, answers, strict=True)
        ]
        densities = [
            density / mass if use else None
            for density, mass, use in zip(with_unknown(blurred, sizes), masses, used, strict=True)
        ]
        for target in part.targets:
            claim.judge(worst_quotient(densities, sizes, target), part.names[target])


def with_unknown(values: list[Decimal], sizes: Sequence[int]) -> list[Decimal]:
    """Add, on every axis, one more place that holds the sum over the axis."""
    for axis in reversed(range(len(sizes))):
        inner = math.prod(size + 1 for size in sizes[axis + 1 :])  # these are extended already
        step = inner * sizes[axis]
        extended: list[Decimal] = []
        for start in range(0, len(values), step):
            extended += values[start : start + step]
            rows = [values[place : place + inner] for place in range(start, start + step, inner)]
            extended += [sum(column, Decimal(0)) for column in zip(*rows, strict=True)]
        values = extended
    return values


def admitted(attack: Attack, sizes: Sequence[int]) -> Iterator[bool]:
    """Say for every entry whether somebody who knows all of it but the target is admitted.

    Those who know everyone else were checked over all cells, possible or not.
    """
    for places in itertools.product(*(range(size + 1) for size in sizes)):
        known = frozenset(axis for axis, place in enumerate(places) if place < sizes[axis])
        if len(known) == len(sizes):
            yield False
        elif attack.target is not None:
            yield attack.target in known and known - {attack.target} == attack.known
        else:
            yield attack.fewest <= len(known) - 1 <= attack.most


def worst_quotient(
    densities: Sequence[Decimal | None], sizes: Sequence[int], target: int
) -> Decimal:
    """Return the largest quotient of densities that differ in the target's value only."""
    inner = math.prod(size + 1 for size in sizes[target + 1 :])
    step = inner * (sizes[target] + 1)
    worst = Decimal(1)
    for start in range(0, len(densities), step):
        places = range(start, start + step - inner, inner)
        for column in zip(*(densities[place : place + inner] for place in places), strict=True):
            there = [density for density in column if density is not None]
            if len(there) > 1:
                largest, smallest = max(there), min(there)
                if largest > worst * smallest:
                    worst = largest / smallest
    return worst


# --- Members of a group who cannot be told apart --------------------------------------------------


def group_cells(part: Part) -> list[Fraction]:
    """Write an exchangeable group out as a table."""
    size, categories = part.size, len(part.domains[0])
    stored = law(part.model.get("count_probabilities"), "count_probabilities")
    counts = list(compositions(size, categories))
    if part.model["type"] == "BinaryGroup":
        counts.reverse()  # listed by the number of ones
    if len(stored) != len(counts):
        raise Undecided("there must be one probability per count.")
    ways = {c: math.factorial(size) // math.prod(map(math.factorial, c)) for c in counts}
    per_cell = {c: p / ways[c] for c, p in zip(counts, stored, strict=True)}
    cells = itertools.product(range(categories), repeat=size)
    return [per_cell[tuple(cell.count(v) for v in range(categories))] for cell in cells]


def compositions(size: int, parts: int) -> Iterator[tuple[int, ...]]:
    """Yield every way to share out `size` among the parts, the first ones ascending."""
    if parts == 1:
        yield (size,)
        return
    for first in range(size + 1):
        for rest in compositions(size - first, parts - 1):
            yield first, *rest


def check_group(claim: Claim, part: Part) -> None:
    """Check a group by its counts, if all members add the same; otherwise as a table.

    Given that v of the target, t of the k known members hold 1, the u unknown ones hold s ones
    with a probability proportional to w(v+t+s)·C(u, s), w(c) = P(c ones) / C(m, c).
    """
    size = part.size
    if len(set(map(tuple, part.added))) > 1 or part.attack.target is not None:
        cells_within([2] * size)
        check_table(claim, part, group_cells(part))
        return
    part.judge_strongest(claim)
    stored = law(part.model.get("count_probabilities"), "count_probabilities")
    if len(stored) != size + 1:
        raise Undecided("there must be one probability per number of ones.")
    per_cell = [decimal(p / math.comb(size, c)) for c, p in enumerate(stored)]
    no, yes = part.added[0]
    answers = [tuple(s * (b - a) for a, b in zip(no, yes, strict=True)) for s in range(size + 1)]
    outputs = outputs_of(answers, size**3)
    kernel = Kernel()
    blur = [[kernel(distance(output, answer)) for answer in answers] for output in outputs]
    for known in range(part.attack.fewest, min(part.attack.most, size - 2) + 1):
        unknown = size - 1 - known
        for ones in range(known + 1):
            laws = []
            for value in (0, 1):  # the known ones shift all answers alike: left out
                masses = [Decimal(0)] * value + [
                    per_cell[value + ones + s] * math.comb(unknown, s) for s in range(unknown + 1)
                ]
                if any(masses):
                    total = sum(masses, Decimal(0))
                    laws.append([mass / total for mass in masses])
            if len(laws) == 2:
                for row in blur:
                    one, other = (sum(map(mul, found, row), Decimal(0)) for found in laws)
                    claim.judge(max(one / other, other / one), "a member")


# --- Chains (A, C) --------------------------------------------------------------------------------


def chain_laws(part: Part) -> tuple[list[Fraction], Matrix]:
    """Return the law of the first state and the transitions."""
    model, states = part.model, len(part.domains[0])
    steps = [law(row, "a row of transition") for row in listed(model.get("transition"), "steps")]
    if len(steps) != states or any(len(row) != states for row in steps):
        raise Undecided("transition must be one matrix for all steps.")
    start = model.get("initial")
    first = stationary(steps) if start is None else law(start, "initial")
    if len(first) != states:
        raise Undecided("initial must be one probability per state.")
    return first, steps


def stationary(steps: Matrix) -> list[Fraction]:
    """Return the law that the transitions keep, which must be the only one."""
    size = len(steps)
    scaled = [[value / sum(row) for value in row] for row in steps]
    rows = [[scaled[k][j] - (j == k) for k in range(size)] + [Fraction(0)] for j in range(size)]
    rows[-1] = [Fraction(1)] * (size + 1)
    solved = solve(rows)
    if solved is None or min(solved) < [0]:
        raise Undecided("the chain has no single stationary law.")
    return [value for (value,) in solved]


def solve(rows: Matrix) -> Matrix | None:
    """Solve linear equations, the right-hand sides behind each row; None if singular."""
    rows, size = [list(row) for row in rows], len(rows)
    for column in range(size):
        pivot = next((r for r in range(column, size) if rows[r][column]), None)
        if pivot is None:
            return None
        rows[column], rows[pivot] = rows[pivot], rows[column]
        scale = rows[column][column]
        lead = rows[column] = [value / scale for value in rows[column]]
        for r in range(size):
            factor = rows[r][column]
            if r != column and factor:
                rows[r] = [a - factor * b for a, b in zip(rows[r], lead, strict=True)]
    return [row[size:] for row in rows]


def check_chain(claim: Claim, part: Part) -> None:
    """Check a chain: by its moments where it keeps the order of the states, else as a table."""
    first, steps = chain_laws(part)
    states = len(steps)
    if states**part.size <= 2**10:
        check_table(claim, part, chain_cells(first, steps, part.size))
        return
    part.judge_strongest(claim)
    if not part.attack.everyone(part.size) and part.attack.most > 0:
        raise Undecided("on long chains, who knows a limited number of others is not decided.")
    ordered = order_of(part)
    sorted_steps = [[steps[v][w] for w in ordered] for v in ordered]
    if not favours_order(sorted_steps):
        check_table(claim, part, chain_cells(first, steps, part.size))
        return
    added = [[part.added[t][v][0] for v in ordered] for t in range(part.size)]
    begin = [decimal(first[v]) for v in ordered]
    for sign in (1, -1):
        check_moments(claim, part, begin, sorted_steps, added, sign)


def chain_cells(first: Sequence[Fraction], steps: Matrix, length: int) -> list[Fraction]:
    """Write a chain out as a table."""
    cells_within([len(first)] * length)
    cells = list(first)
    for _ in range(length - 1):
        cells = [
            cell * step for place, cell in enumerate(cells) for step in steps[place % len(first)]
        ]
    return cells


def order_of(part: Part) -> list[int]:
    """Return the states in an order in which no tuple's addition falls."""
    if any(len(values[0]) > 1 for values in part.added):
        raise Undecided("several answers about a long chain are not decided here.")
    total = [sum(values[v][0] for values in part.added) for v in range(len(part.domains[0]))]
    ordered = sorted(range(len(total)), key=total.__getitem__)
    for values in part.added:
        if any(values[v] > values[w] for v, w in itertools.pairwise(ordered)):
            raise Undecided("weights of both signs on a long chain are not decided here.")
    return ordered


def favours_order(steps: Matrix) -> bool:
    """Whether all entries are positive and all 2×2 minors of neighbours are not negative.

    Neighbours suffice where no entry is 0: the other minors follow by multiplying quotients.
    """
    rows = itertools.pairwise(steps)
    return min(map(min, steps)) > 0 and all(
        a[k] * b[k + 1] >= a[k + 1] * b[k] for a, b in rows for k in range(len(a) - 1)
    )


def check_moments(
    claim: Claim,
    part: Part,
    begin: list[Decimal],
    steps: Matrix,
    added: Sequence[Sequence[Fraction]],
    sign: int,
) -> None:
    """Compare E[e^{±f} | x_i = v, …] over all windows of a chain that favours order (C).

    Of either side of x_i the worst knowledge is sought alone: nobody known there, or the nearest
    known at any distance with any value.
    """
    size, states = part.size, range(len(steps))
    if size * size * len(steps) ** 3 > MOST_WORK:
        raise Undecided("the chain is too long to be checked here.")
    move = [[decimal(value) for value in row] for row in steps]
    tilt = [[(sign * decimal(value)).exp() for value in values] for values in added]
    weak = part.attack.most == 0
    for target in range(size):
        sides = [
            side_quotients(range(target - 1, -1, -1), transposed(move), tilt, begin, weak=weak),
            side_quotients(range(target + 1, size), move, tilt, None, weak=weak),
        ]
        for v, w in itertools.permutations(states, 2):
            own = tilt[target][v] / tilt[target][w]
            claim.judge(own * sides[0][v][w] * sides[1][v][w], part.names[target])


def transposed(rows: list[list[Decimal]]) -> list[list[Decimal]]:
    """Swap rows and columns."""
    return [list(column) for column in zip(*rows, strict=True)]


def side_quotients(
    places: range,
    move: list[list[Decimal]],
    tilt: Sequence[Sequence[Decimal]],
    begin: list[Decimal] | None,
    *,
    weak: bool,
) -> list[list[Decimal]]:
    """Return the largest E[e^{±f} | x_i = v] / E[e^{±f} | x_i = w] of one side, per (v, w).

    `move` leads away from x_i: from its state to the next place, given by weights of paths. To the
    right the last state is free; to the left it has the law `begin`, and paths are weighed
    backwards, so that what is conditioned on is P(x_i = v) itself.
    """
    states = range(len(move))
    plain = tilted = [[Decimal(int(v == w)) for w in states] for v in states]
    worst = [[Decimal(0 if weak and places else 1)] * len(move) for _ in states]
    for place in places:
        # The nearest known is here: what lies before it is summed out, and what it adds itself
        # is the same for both secrets.
        plain, passed = product(plain, move), product(tilted, move)
        for end in states:
            if not weak and (place or begin is None or begin[end]):
                update(worst, [passed[v][end] / plain[v][end] for v in states])
        tilted = [[passed[v][e] * tilt[place][e] for e in states] for v in states]
    if places:  # nobody is known on this side
        ends = begin or [Decimal(1)] * len(move)
        update(
            worst,
            [
                sum(map(mul, tilted[v], ends), Decimal(0))
                / sum(map(mul, plain[v], ends), Decimal(0))
                for v in states
            ],
        )
    return worst


def product(one: list[list[Decimal]], other: list[list[Decimal]]) -> list[list[Decimal]]:
    """Multiply two matrices of positive numbers."""
    columns = transposed(other)
    return [[sum(map(mul, row, column), Decimal(0)) for column in columns] for row in one]


def update(worst: list[list[Decimal]], means: Sequence[Decimal]) -> None:
    """Keep the largest quotients."""
    for v, w in itertools.product(range(len(means)), repeat=2):
        worst[v][w] = max(worst[v][w], means[v] / means[w])


# --- Gaussian values (D, E, F) --------------------------------------------------------------------


def check_gaussian(claim: Claim, part: Part, covariance: Matrix, radius: Fraction) -> None:
    """Check jointly Gaussian values, over all sets of known tuples, in fractions.

    With a radius, all covariances between (1 - radius) and (1 + radius) times this one.
    """
    size = part.size
    if len(covariance) != size or any(len(row) != size for row in covariance):
        raise Undecided("the covariance must be square.")
    if any(covariance[j][k] != covariance[k][j] for j in range(size) for k in range(j)):
        raise Undecided("the covariance must be symmetric.")
    weights = coefficients(part)
    sets = conditionals(with_answers(covariance, weights), size, frozenset(), 0)
    if (
        part.attack.everyone(size)
        and not part.clamped
        and not radius
        and signs(covariance, weights)
    ):
        sets = itertools.islice(sets, 1)  # only who knows nobody counts (E)
    elif size > MOST_GAUSSIAN:
        raise Undecided(f"without matching signs, at most {MOST_GAUSSIAN} tuples are checked.")
    for known, inner in sets:
        for target in set(part.targets) - known:
            if part.attack.admits(target, known):
                check_moves(claim, part, inner, target, radius)


def coefficients(part: Part) -> list[Vector]:
    """Return the weight of every tuple in every answer, in units of the noise."""
    ends = [numbers(list(values), "bounds") for values in part.domains]
    if any(high <= low for low, high in ends):
        raise Undecided("bounds must be a range.")
    return [
        tuple((b - a) / (high - low) for a, b in zip(*added, strict=True))
        for (low, high), added in zip(ends, part.added, strict=True)
    ]


def with_answers(covariance: Matrix, weights: Sequence[Vector]) -> Matrix:
    """Return the covariance of the tuples and, behind them, of the exact answers."""
    answers = list(zip(*weights, strict=True))
    mixed = [[sum(map(mul, answer, row), Fraction(0)) for answer in answers] for row in covariance]
    among = [
        [sum(map(mul, answer, column), Fraction(0)) for answer in answers]
        for column in zip(*mixed, strict=True)
    ]
    rows = [[*row, *more] for row, more in zip(covariance, mixed, strict=True)]
    return rows + [
        [*column, *more] for column, more in zip(zip(*mixed, strict=True), among, strict=True)
    ]


def conditionals(
    covariance: Matrix, size: int, known: frozenset[int], start: int
) -> Iterator[tuple[frozenset[int], Matrix]]:
    """Yield every set of known tuples with the covariance given it."""
    yield known, covariance
    for place in range(start, size):
        yield from conditionals(given(covariance, place), size, known | {place}, place + 1)


def given(covariance: Matrix, known: int) -> Matrix:
    """Return the covariance given one more variable."""
    pivot, column = covariance[known][known], [row[known] for row in covariance]
    if pivot <= 0:
        raise Undecided("the covariance must be positive definite.")
    return [
        [value - mine * its / pivot for value, its in zip(row, column, strict=True)]
        for row, mine in zip(covariance, column, strict=True)
    ]


def check_moves(claim: Claim, part: Part, inner: Matrix, target: int, radius: Fraction) -> None:
    """Compare how far the answers move, where x_i moves over its range, with ε."""
    size, row = part.size, inner[target]
    width, name = spread_of(part.domains[target]), part.names[target]
    if row[target] <= 0:
        raise Undecided("the covariance must be positive definite.")
    if part.clamped:  # every value moves with x_i or against it, and not beyond its range
        moves = []
        for u, (values, (low, high)) in enumerate(zip(part.domains, part.added, strict=True)):
            share = min(Fraction(1), abs(row[u]) / row[target] * width / spread_of(values))
            one = len(low) == 1 and (high < low) != (row[u] < 0)  # against, in one answer
            moves.append(distance(low, high) * (-share if one else share))
        own = abs(moves.pop(target))
        along, against = (sum((m for m in moves if m * s > 0), Fraction(0)) for s in (1, -1))
        if part.added[target][1] < part.added[target][0] and len(part.added[0][0]) == 1:
            along, against = -against, -along
        claim.judge_exactly(max(own + along, -against - own), name, attained=False)
        return
    cost = sum(map(abs, row[size:]), Fraction(0)) / row[target] * width
    claim.judge_exactly(cost, name)
    if radius:  # the coefficient may be larger by τ/√(1-τ²)·√(Var(f | x_i, x_K) / Var(x_i | x_K))
        left = given(inner, target)[size][size] / row[target] * width**2
        if len(row) > size + 1 or (claim.epsilon - cost) ** 2 < radius**2 / (1 - radius**2) * left:
            raise Undecided(f"the radius leaves room for more than ε about {name}.")


def spread_of(values: Sequence[Any]) -> Fraction:
    """Return the width of a range."""
    return number(values[1], "bounds") - number(values[0], "bounds")


def signs(covariance: Matrix, weights: Sequence[Vector]) -> bool:
    """Whether covariance, inverse and weights agree in their signs (E).

    An inverse with no positive entry off its diagonal and a covariance with no negative one make
    both positive definite.
    """
    size = len(covariance)
    if size > MOST_INVERTED or any(len(weight) > 1 or not weight[0] for weight in weights):
        return False
    side = [1 if weight[0] > 0 else -1 for weight in weights]
    unit = [
        [*row, *(Fraction(int(j == k)) for k in range(size))] for j, row in enumerate(covariance)
    ]
    inverse = solve(unit)
    return inverse is not None and all(
        (j == k or side[j] * side[k] * inverse[j][k] <= 0) and side[j] * side[k] * value >= 0
        for j, row in enumerate(covariance)
        for k, value in enumerate(row)
    )


def check_alike(claim: Claim, part: Part) -> None:
    """Check members who are alike (groups), or steps alike (series), of equal weights."""
    model, size = part.model, part.size
    stored, variance = model.get("correlation"), model.get("variance")
    low, high = numbers(stored if isinstance(stored, list) else [stored, stored], "correlation")
    series = model["type"] == "GaussianSeries"
    if not -1 < low <= high < 1 or (not series and 1 + (size - 1) * low <= 0):
        raise Undecided("the correlation is not that of any law.")
    alike = len(set(map(tuple, part.added))) == 1 and part.attack.everyone(size)
    if (
        alike
        and not (series and (low < 0 or variance is not None))
        and (low >= 0 or variance is None)
    ):
        # Who knows nobody else learns most; of a series, about its middle (F).
        middle = (size - 1) // 2
        shares = (high ** abs(t - middle) if series else high for t in range(size) if t != middle)
        cost = spread(part.added[0]) * max(Fraction(1), 1 + sum(shares, Fraction(0)))
        claim.judge_exactly(cost, part.names[middle])
        return
    if low != high or (part.clamped and variance is None):
        raise Undecided("unequal weights under a stated correlation are not decided here.")
    distances = [[abs(j - k) if series else int(j != k) for k in range(size)] for j in range(size)]
    check_gaussian(claim, part, [[low**d for d in row] for row in distances], Fraction(0))


# --- Elimination (H) ------------------------------------------------------------------------------


class Network:
    """Tuples with their couplings e^{D/2} and budgets e^{ε/2}; None stands for infinity."""

    def __init__(self, budgets: Sequence[Decimal]) -> None:
        self.budgets = list(budgets)
        self.couplings: list[dict[int, Decimal | None]] = [{} for _ in budgets]

    def couple(self, one: int, other: int, factor: Decimal | None) -> None:
        """Let two tuples depend on each other by so much more."""
        held = self.couplings[one].get(other, Decimal(1))
        grown = None if factor is None or held is None else held * factor
        self.couplings[one][other] = self.couplings[other][one] = grown

    def bound(self, target: int, order: Sequence[int]) -> Decimal:
        """Sum out all others in this order, and return e^{ε/2} of what is left."""
        inner = Network(self.budgets)
        inner.couplings = [dict(held) for held in self.couplings]
        for place in order:
            near = list(inner.couplings[place].items())
            for k, coupling in near:
                inner.budgets[k] *= joined(coupling, inner.budgets[place])
                del inner.couplings[k][place]
            for (k, one), (other, two) in itertools.combinations(near, 2):
                inner.couple(k, other, None if one is None and two is None else joined(one, two))
        return inner.budgets[target]


def joined(one: Decimal | None, other: Decimal | None) -> Decimal:
    """Return e^{(a⊗b)/2} from e^{a/2} and e^{b/2}, of which one may be infinite."""
    if one is None or other is None:
        return one or other or Decimal(1)
    return (one * other + 1) / (one + other)


def farthest_first(couplings: Sequence[dict[int, Any]], target: int) -> list[int]:
    """Return everyone who is connected to the target, the farthest first."""
    reached = [target]
    for place in reached:
        reached += [k for k in sorted(couplings[place]) if k not in reached]
    return reached[:0:-1]


def check_mixing(claim: Claim, part: Part) -> None:
    """Check a chain of which only the Hilbert diameter of its steps is known."""
    budgets = [(decimal(spread(values)) / 2).exp() for values in part.added]
    network = Network(budgets)
    factor = (decimal(number(part.model.get("diameter"), "diameter")) / 2).exp()
    for place in range(part.size - 1):
        network.couple(place, place + 1, factor)
    part.judge_strongest(claim)
    for target in part.targets if part.attack.fewest < part.size - 1 else ():
        found = network.bound(target, farthest_first(network.couplings, target))
        if found * found > decimal(claim.epsilon).exp() * (1 - SLACK):
            raise Undecided(
                f"elimination does not bound what is learned about {part.names[target]}."
            )


# --- From the file to its parts -------------------------------------------------------------------


def check_part(claim: Claim, part: Part) -> None:
    """Check one model without inner structure."""
    model, kind = part.model, part.model.get("type")
    if model.get("provenance") == "private" or "digest" in model:
        raise Undecided("the numbers of the model are withheld.")
    tables: dict[Any, Callable[[], list[Fraction]]] = {
        "JointTable": lambda: law(flat(model["probabilities"]), "probabilities"),
        "MarkovChain": lambda: chain_cells(*chain_laws(part), part.size),
        "BinaryGroup": lambda: group_cells(part),
        "CategoryGroup": lambda: group_cells(part),
    }
    checks: dict[Any, Callable[[Claim, Part], None]] = {
        "BinaryGroup": check_group,
        "MarkovChain": check_chain,
        "MixingChain": check_mixing,
        "GaussianGroup": check_alike,
        "GaussianSeries": check_alike,
    }
    if kind in tables and (not part.added or kind not in checks):
        cells_within([len(values) for values in part.domains])
        check_table(claim, part, tables[kind]())
    elif not part.added:
        raise Undecided(f"a function of a {kind} is not decided here.")
    elif kind in checks:
        checks[kind](claim, part)
    elif kind == "Unknown":  # who is not known moves with the target (G)
        reach = [spread(values) for values in part.added]
        for target in part.targets:
            others = [reach[u] for u in set(range(part.size)) - {target} - part.attack.known]
            others = sorted(others)[::-1][: part.size - 1 - part.attack.fewest]
            claim.judge_exactly(sum(others, reach[target]), part.names[target])
    elif kind in ("Gaussian", "LoewnerBall"):
        center = model if kind == "Gaussian" else model["center"]
        rows = [numbers(row, "covariance") for row in center["covariance"]]
        radius = number(model.get("radius", 0), "radius")
        if not 0 <= radius < 1:
            raise Undecided("the radius must be below 1.")
        check_gaussian(claim, part, rows, radius)
    else:
        raise Undecided(f"a model of the kind {kind} is not decided here.")


def check_model(claim: Claim, part: Part) -> None:
    """Check every member of a set and every independent block."""
    kind = part.model.get("type")
    if kind == "ModelSet":
        for member in part.model["models"]:
            check_model(claim, replace(part, model=member))
    elif kind == "Blocks":
        check_blocks(claim, part)
    else:
        check_part(claim, part)


def check_blocks(claim: Claim, part: Part) -> None:
    """Check every block alone (B).

    Who may not know everything outside a block has that as further noise. Leaving it out is on the
    safe side, so what is proved is proved; but what breaks then is not known to break.
    """
    if any(query.get("type") == "Custom" for query in claim.queries):
        raise Undecided("only answers that add up can be checked block by block.")
    _, _, copies = shape(part.model)
    total, start = sum(copies), 0
    exact = part.attack.everyone(total)
    for block in part.model["models"]:
        places = range(start, start + len(block["names"]))
        start = places.stop
        if part.attack.target is not None and part.attack.target not in places:
            continue
        inner = Part(
            model=block,
            names=part.names[places.start : places.stop],
            domains=part.domains[places.start : places.stop],
            added=part.added[places.start : places.stop],
            attack=part.attack.inside(places, total),
            clamped=part.clamped,
        )
        try:
            check_model(claim, inner)
        except Broken as found:
            if exact:
                raise
            raise Undecided(f"without what blurs the answer further, {found}") from None


def check(stored: Any) -> tuple[int, str]:
    """Decide about the content of a file: 0 proved, 1 broken, 2 undecided, and why."""
    with localcontext(DIGITS):
        try:
            claim = Claim.read(stored)
            names, domains, copies = shape(claim.model)
            function = any(query.get("type") == "Custom" for query in claim.queries)
            part = Part(
                model=claim.model,
                names=names,
                domains=domains,
                added=[] if function else additions(claim, names, domains, copies),
                attack=Attack.read(claim.adversaries, names, sum(copies)),
                clamped=all(query.get("clamp") is True for query in claim.queries),
            )
            check_model(claim, part)
        except Broken as found:
            return BROKEN, f"Not proved: {found}"
        except Undecided as found:
            return UNDECIDED, f"Cannot decide: {found}"
        except (
            KeyError,
            TypeError,
            ValueError,
            IndexError,
            AttributeError,
            ArithmeticError,
        ) as found:
            return UNDECIDED, f"Cannot decide: the file is damaged ({type(found).__name__})."
    return PROVED, f"Proved: nobody learns more than ε = {float(claim.epsilon):g}."


def main(arguments: Sequence[str] | None = None) -> int:
    """Read a file, decide, say so."""
    parser = argparse.ArgumentParser(description="Check a calibration or a release.")
    parser.add_argument("file", type=Path)
    path = parser.parse_args(arguments).file
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        code, answer = UNDECIDED, "Cannot decide: the file cannot be read as JSON."
    else:
        code, answer = check(stored)
    sys.stdout.write(answer + "\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
