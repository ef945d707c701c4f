"""Decide whether the noise of a calibration keeps its promise, without the library that made it.

    python check.py release.json        (or: pdp-calibrate check release.json)

One file, the standard library only, no line shared with the engines. It reads a calibration or a
release and answers 0: proved; 1: not so, an adversary breaks it; 2: cannot decide, numbers are
withheld, the bound is not small enough, or the model is too large or of another kind. It decides
about exact answers with exact noise; what floating point adds is charged by the library.

The promise. A database is one draw x of correlated tuples from a law θ. For every tuple i, every
set K of others that an adversary may know, every x_K of positive probability, every two values
v, v' of x_i that are possible then, and every output r, p(r | x_i = v, x_K) ≤ e^ε p(r | x_i = v',
x_K). With Gaussian noise the two densities are no easier to tell apart than N(0,1) and N(μ,1),
which is (ε, δ) for δ = Φ(μ/2 - ε/μ) - e^ε Φ(-μ/2 - ε/μ). Who knows everyone else learns what
changing x_i alone does to the answer, whatever θ says, over all values of the domains.

The theorems it uses, each with the reason why it is true:

A  (outputs). With Laplace noise the density given (v, x_K) is a mixture of e^{-|r-s|/λ} over the
   answers s. Between neighbouring s both mixtures are a·e^{r/λ} + b·e^{-r/λ}, so their quotient is
   monotone there, and constant outside all s: the largest quotient is at one of the s. Several
   coordinates: at a point of the grid of their answers. The discrete Laplace is the same kernel.
B  (blocks). Independent blocks, answers that add up: an average over what says nothing about x_i
   has no larger quotient than the worst single case. So every block may be checked alone.
C  (Gaussian values). Given x_K the answer is Gaussian around a line in x_i. Laplace noise: moving
   x_i by M costs M·|β|/λ, β = Cov(f, x_i | x_K) / Var(x_i | x_K). Gaussian noise: μ² is M² times
   what the release r adds to the precision of x_i: 1/Var(x_i | x_K, r) - 1/Var(x_i | x_K). Values
   clamped into their ranges: moving x_i by at most M moves x_u by at most min(M_u, M·|β_u|), β_u
   its coefficient on x_i, so the answer by at most the sum of these, with either noise.
D  (members alike). Equal weights a, everyone admitted. A common correlation ρ of m members: given
   k known, each of the others has the coefficient ρ/(1+kρ), so the answer moves by at most
   a·M·(1 + (m-1)·max(ρ, 0)), clamped or not: for ρ < 0 the others take back less than x_i gives. A
   series with φ ≥ 0: a·M·Σ_t φ^{|t-i|}, for no coefficient grows with what is known. With an
   unknown variance, tending to 0, both are reached; with a known one by Laplace noise on values
   that are not clamped.
E  (any dependence). Nothing is assumed: all tuples of the block may move at once.

Numbers. Scales, weights and values are the exact fractions that their floats are. Densities are
sums, products and quotients of positive decimals of 50 digits; each operation changes one by a part
in 10^49 at most, so after fewer than 10^12 of them a quotient is right to a part in 10^36. It is
compared with e^ε times 1 ∓ 10^-30. What concerns Gaussian values is decided in fractions, exactly.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, Subnormal, localcontext
from fractions import Fraction
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

PROVED, BROKEN, UNDECIDED = 0, 1, 2
DAMAGE = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)
SLACK = Decimal("1e-30")
MOST_CELLS = 2**12  # of a table that is checked in full
MOST_WORK = 15 * 10**6  # steps of the innermost loops: about a minute
MOST_GAUSSIAN = 13  # tuples of a covariance whose sets of known tuples are all checked
FORMAT = 2  # the latest version of files that this checker knows
VALUES = {  # which field of a model holds the values of its tuples
    "JointTable": "domains", "MarkovTree": "domains", "Network": "domains",
    "MarkovChain": "states", "CategoryGroup": "categories", "BinaryGroup": "0, 1",
    "Unknown": "domain", "Gaussian": "bounds", "GaussianGroup": "bounds",
    "GaussianSeries": "bounds",
}  # fmt: skip
FIELDS = {  # what a query says; another field could change what it means
    "Sum": {"over", "clamp"}, "Mean": {"over", "clamp"}, "Linear": {"by", "clamp", "weights"},
    "Count": {"over", "values"}, "Histogram": {"over", "categories"}, "Custom": {"over", "table"},
    "RowQuery": {
        "kind", "value", "bounds", "independent", "where", "by", "missing", "public", "sizes",
        "most", "keep_by", "seed", "every",
    },
}  # fmt: skip

Vector = tuple[Fraction, ...]
Matrix = list[list[Fraction]]
Stored = dict[str, Any]


class Undecided(Exception):  # noqa: N818 - an answer, not an error
    """The file cannot be decided here, and why."""


class Broken(Exception):  # noqa: N818 - an answer, not an error
    """The promise does not hold, and why."""


# --- Numbers: what is none stops the check --------------------------------------------------------


def number(value: Any) -> Fraction:
    """Return a finite number as the exact fraction that it is."""
    if isinstance(value, bool | str | None | list | dict) or not math.isfinite(value):
        raise Undecided("a finite number is needed where there is none.")
    return Fraction(value)


def whole_number(value: Any) -> int:
    """Return a whole number of at least 0."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise Undecided("a whole number is needed where there is none.")
    return value


def numbers(values: Any, *sizes: int) -> list[Fraction]:
    """Return the numbers of nested lists, in order, if the lists have these sizes."""
    if not sizes:
        return [number(value) for value in values]
    if not isinstance(values, list) or len(values) != sizes[0]:
        raise Undecided("a table does not fit the values of its tuples.")
    if len(sizes) == 1:
        return numbers(values)
    return [found for part in values for found in numbers(part, *sizes[1:])]


def law(values: Sequence[Fraction]) -> list[Fraction]:
    """Return probabilities: none negative, adding up to 1 as floats do, made to do so exactly."""
    total = sum(values, Fraction(0))
    if min(values) < 0 or abs(total - 1) > Fraction(1, 10**6):
        raise Undecided("probabilities must not be negative, and add up to 1.")
    return [value / total for value in values]


def hashable(value: Any) -> Any:
    """Return a name or a value so that it can be looked up."""
    return tuple(hashable(part) for part in value) if isinstance(value, list) else value


def listed(values: Any) -> list[Any]:
    """Return a list of names or values so that they can be looked up."""
    if not isinstance(values, list):
        raise Undecided("a list is needed where there is none.")
    return [hashable(value) for value in values]


def digits(precision: int) -> Context:
    """Return arithmetic of so many digits in which nothing is lost: what is too small stops it."""
    context = Context(prec=precision, Emax=MAX_EMAX, Emin=MIN_EMIN)
    context.traps[Subnormal] = True
    return context


def decimal(value: Fraction) -> Decimal:
    """Return a fraction, rounded to the digits in use."""
    return Decimal(value.numerator) / Decimal(value.denominator)


@lru_cache(maxsize=2**16)
def kernel(d: Fraction) -> Decimal:
    """Return e^{-d}."""
    return (-decimal(d)).exp()


# --- The claim ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Claim:
    """What a calibration says, as exact numbers."""

    epsilon: Fraction
    delta: Fraction
    mu: Fraction | None  # with Gaussian noise only
    scales: list[Fraction]
    noises: list[str]
    queries: list[Stored]
    rows: int

    @classmethod
    def read(cls, stored: Stored) -> Claim:
        """Take the claim out of a calibration."""
        queries, scales, noises = (
            stored[field] if isinstance(stored["query"], list) else [stored[field]]
            for field in ("query", "scale", "noise")
        )
        gaussian = noises[0] == "Gaussian"
        kinds = {"Gaussian"} if gaussian else {"Laplace", "discrete Laplace"}
        if not len(queries) == len(scales) == len(noises) or not set(noises) <= kinds:
            raise Undecided("there must be one scale and one kind of noise per query.")
        if any(set(query) - {"type"} - FIELDS.get(query["type"], set()) for query in queries):
            raise Undecided("a query says what is not decided here.")
        delta, mu = (number(stored[field]) if gaussian else None for field in ("delta", "mu"))
        epsilon, rows = number(stored["epsilon"]), whole_number(stored["rows"])
        found = cls(epsilon, delta or Fraction(0), mu, numbers(scales), noises, queries, rows)
        if not 0 < epsilon < 10**4 or min(found.scales) <= 0 or rows < 1 or (mu and mu < 0):
            raise Undecided("epsilon, scales, μ and rows must be positive.")
        return found

    def judge(self, quotient: Decimal, target: Any) -> None:
        """Compare a quotient of densities, right to a part in 10^36, with e^ε."""
        limit = decimal(self.epsilon).exp()
        if quotient > limit * (1 + SLACK):
            raise Broken(f"somebody learns {float(quotient.ln()):.9g} about {target}.")
        if quotient > limit * (1 - SLACK):
            raise Undecided(f"somebody comes too close to ε about {target} to be told apart.")

    def judge_moves(self, moves: Sequence[Fraction], target: Any, *, reached: bool = True) -> None:
        """Compare how far a secret moves the answers, in units of their noise, with the promise."""
        if self.mu is not None:
            self.judge_mu(sum((move * move for move in moves), Fraction(0)), target, reached)
        elif (leakage := sum(map(abs, moves), Fraction(0))) > self.epsilon:
            told = f"somebody may learn {float(leakage):.9g} about {target}."
            raise Broken(told) if reached else Undecided(told)  # a bound alone breaks nothing

    def judge_mu(self, square: Fraction, target: Any, reached: bool) -> None:  # noqa: FBT001
        """Compare μ² with the μ that is stated, and with its (ε, δ)."""
        root = decimal(square).sqrt() * (1 + SLACK)
        if square > (self.mu or 0) ** 2 or (square and self.excess(root) > self.delta):
            told = f"somebody may learn μ = {float(root):.9g} about {target}."
            raise Broken(told) if reached else Undecided(told)

    def excess(self, mu: Decimal) -> Decimal:
        """Return δ at the ε that is stated, a little too large, for noise that leaks μ."""
        with localcontext(digits(400)):
            epsilon = decimal(self.epsilon)
            high, low = mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu
            if high > 35:
                return Decimal(1)
            if low < -35:  # too far out for the series: the first term alone is larger
                return normal(max(high, Decimal(-35))) + Decimal("1e-260")
            return (normal(high) - epsilon.exp() * normal(low)) * (1 + Decimal("1e-20"))


def normal(x: Decimal) -> Decimal:
    """Return Φ(x) = 1/2 + φ(x)(x + x³/3 + x⁵/15 + …), to an error of 10^-390 for |x| ≤ 40."""
    pi = Decimal(0)
    for k in range(1, 601, 2):  # Machin's formula
        pi += (2 - k % 4) * (Decimal(16) / 5**k - Decimal(4) / 239**k) / k
    term, total, k = x, x, 1
    while abs(term) > Decimal("1e-395") or k < abs(x * x):
        k += 2
        term = term * x * x / k
        total += term
    return Decimal("0.5") + (-x * x / 2).exp() / (2 * pi).sqrt() * total


# --- Who attacks, and what is asked ---------------------------------------------------------------


@dataclass(frozen=True)
class Part:
    """Tuples that are checked together: a model without inner structure, or one block."""

    model: Stored
    names: Sequence[Any]
    domains: Sequence[Sequence[Any]]  # of a tuple on an interval: its two ends, as a tuple
    added: Sequence[Sequence[Vector]]  # per tuple and value, in units of the noise; or nothing
    fewest: int  # how many others an adversary knows at least,
    most: int  # and at most

    @property
    def size(self) -> int:
        """The number of tuples."""
        return len(self.names)


def shape(model: Stored) -> tuple[list[Any], list[Any], list[int]]:
    """Return the names of a model, the values of each tuple, and how many copies there are."""
    names, kind = listed(model["names"]), model["type"]
    if whole_number(model.get("version", 1)) > FORMAT or len(set(names)) != len(names) or not names:
        raise Undecided("the model is of a later version, or its names do not differ.")
    if kind == "ModelSet":
        inner = [shape(member) for member in model["models"]]
        if any(found != inner[0] for found in inner) or inner[0][0] != names:
            raise Undecided("the models of a set must be about the same tuples.")
        return inner[0]
    if kind == "Blocks":
        inner = [shape(block) for block in model["models"]]
        counts = [whole_number(count) for count in model["counts"]]
        copies = [k for (own, _, _), k in zip(inner, counts, strict=True) for _ in own]
        if min(counts) < 1 or any(max(own) > 1 for _, _, own in inner) or len(copies) != len(names):
            raise Undecided("blocks of copied blocks, or with other names, are not decided here.")
        return names, [values for _, found, _ in inner for values in found], copies
    field = "bounds" if kind == "Unknown" and "domain" not in model else VALUES.get(kind)
    if field is None or (field == "domain" and "bounds" in model):
        raise Undecided(f"such a model of the kind {kind} is not decided here.")
    held = [0, 1] if kind == "BinaryGroup" else model[field]
    several = field == "domains" or (field == "bounds" and isinstance(held[0], list))
    domains = list(held) if several else [held] * len(names)
    if field == "bounds":
        domains = [tuple(numbers(ends, 2)) for ends in domains]
        if any(low >= high for low, high in domains):
            raise Undecided("a range must begin below its end.")
    differ = all(len({hashable(v) for v in values}) == len(values) > 0 for values in domains)
    sizes = {len(domains), model.get("length", len(names)), model.get("size", len(names))}
    if not differ or sizes != {len(names)}:
        raise Undecided("there must be values that differ for each tuple, of as many as are said.")
    return names, domains, [1] * len(names)


def additions(claim: Claim, copies: dict[Any, int], domains: Sequence[Any]) -> list[list[Vector]]:
    """Return, per tuple and value, what it adds to the answers, each divided by its own scale.

    So the noise has scale 1 in every coordinate. Discrete noise needs whole answers.
    """
    names = list(copies)
    found: list[list[Vector]] = [[()] * len(values) for values in domains]
    for query, scale, noise in zip(claim.queries, claim.scales, claim.noises, strict=True):
        kind, over, counted = query["type"], query.get("over"), None
        chosen = names if over is None else listed(over)
        weights = dict.fromkeys(chosen, Fraction(1))
        if kind == "Linear":
            by_name = query["by"] == "name"
            pairs = query["weights"] if by_name else zip(names, query["weights"], strict=True)
            weights = {hashable(name): number(weight) for name, weight in pairs}
        elif kind == "Mean":
            total = claim.rows * sum(copies[name] for name in chosen)
            weights = dict.fromkeys(chosen, Fraction(1, total))
        elif kind == "Count":
            counted = [set(listed(query["values"]))]
        elif kind == "Histogram":
            own_values = (domains[names.index(name)] for name in chosen)
            every = query["categories"] or list(itertools.chain.from_iterable(own_values))
            counted = [{value} for value in dict.fromkeys(listed(every))]
        if not weights or set(weights) - set(names) or len(chosen) != len(set(chosen)):
            raise Undecided("a query must name tuples that are there, each once.")
        if counted and any(isinstance(values, tuple) for values in domains):
            raise Undecided("values on an interval cannot be counted.")
        for place, (name, values) in enumerate(zip(names, domains, strict=True)):
            weight = weights.get(name, Fraction(0))
            for k, value in enumerate(values):
                if counted is None:  # yes and no are 1 and 0
                    plain = int(value) if isinstance(value, bool) else value
                    own = [number(plain) if weight else weight]
                else:
                    own = [Fraction(hashable(value) in group) for group in counted]
                found[place][k] += tuple(whole_or_any(weight * x, noise) / scale for x in own)
    return found


def whole_or_any(answer: Fraction, noise: str) -> Fraction:
    """Return what a value adds; discrete noise is decided only where that is whole."""
    if noise == "discrete Laplace" and answer.denominator != 1:
        raise Undecided("discrete noise on answers that are not whole is not decided here.")
    return answer


def row_additions(claim: Claim, part: Part) -> list[list[Vector]]:
    """Return how far one record can move all numbers of a question about rows together, in L1."""
    query, scale, kind = claim.queries[0], claim.scales[0], part.model["type"]
    asked, value, public = query["kind"], query["value"], set(query["public"])
    missing, by = query["missing"], [one for one in query["by"] if one["column"] not in public]
    labels = [len(one["values"]) + (missing.get(one["column"]) == "category") for one in by]
    moves = math.prod(labels) > 1  # from one part of the breakdown into another
    secret = [one for one in query["where"] if one["column"] not in public]
    leaves = bool(by or secret or value in missing)  # counts or does not
    low, high = (Fraction(0), Fraction(1)) if asked == "count" else numbers(query["bounds"], 2)
    here = kind in ("Unknown", "GaussianGroup") and asked in ("count", "sum", "mean")
    laplace = claim.noises[0] == "Laplace" or (claim.mu is None and asked == "count")
    if len(claim.queries) > 1 or not here or not laplace or missing.get(value, "zero") != "zero":
        raise Undecided("this question about rows is not decided here.")
    if kind == "GaussianGroup" and (
        (moves or leaves or asked == "count")
        or any(tuple(ends) != (low, high) for ends in part.domains)
        or min(numbers(part.model["correlation"], 2)) < 0
    ):
        raise Undecided("a correlation says nothing about what several columns decide.")
    if asked == "mean" and (moves or leaves):  # a sum, in half ranges, and a count
        low, high = Fraction(0), Fraction(4 if moves else 2)
    elif moves:
        low, high = Fraction(0), 2 * max(abs(low), abs(high))
    elif leaves:
        low, high = min(low, Fraction(0)), max(high, Fraction(0))
    return [[(low / scale,), (high / scale,)]] * part.size


def distance(one: Vector, other: Vector) -> Fraction:
    """Return how far two answers are apart, in units of the noise."""
    return sum((abs(a - b) for a, b in zip(one, other, strict=True)), Fraction(0))


def spread(values: Sequence[Vector]) -> Fraction:
    """Return how far two of the answers are apart at most."""
    if len(values[0]) == 1:
        return max(values)[0] - min(values)[0]
    return max(distance(a, b) for a, b in product(set(values), repeat=2))


# --- Tables (A) -----------------------------------------------------------------------------------


def check_table(claim: Claim, part: Part) -> None:
    """Check every adversary of a table, for answers that add up and for any function."""
    sizes = [len(values) for values in part.domains]
    if math.prod(sizes) > MOST_CELLS or math.prod(size + 1 for size in sizes) > MOST_WORK:
        raise Undecided(f"more than {MOST_CELLS} cells are not checked one by one.")
    if claim.mu is not None:
        raise Undecided("Gaussian noise on finite laws is not decided here.")
    cells = CELLS[part.model["type"]](part)
    if len(cells) != math.prod(sizes) or min(cells) < 0 or not any(cells):
        raise Undecided("the model is no law of its tuples.")
    answers = answers_of(claim, part)
    for target, name in enumerate(part.names):
        if part.most == part.size - 1:  # who knows everyone else: over all cells, possible or not
            for line in lines(answers, sizes, target):
                claim.judge_moves([spread(line)], name)
    check_cells(claim, part, cells, answers)


def lines(values: Sequence[Any], sizes: Sequence[int], axis: int) -> Iterator[Sequence[Any]]:
    """Yield the entries along one axis of a table, for every place on the others."""
    inner = math.prod(sizes[axis + 1 :])
    step = inner * sizes[axis]
    for start in range(0, len(values), step):
        for place in range(start, start + inner):
            yield values[place : start + step : inner]


def answers_of(claim: Claim, part: Part) -> list[Vector]:
    """Return the answer in every cell: of additions their sum, of a function as it is stored."""
    if part.added:
        every = (zip(*one, strict=True) for one in product(*part.added))
        return [tuple(sum(column, Fraction(0)) for column in columns) for columns in every]
    query, scale, noise = claim.queries[0], claim.scales[0], claim.noises[0]
    if claim.rows != 1 or len(claim.queries) > 1:
        raise Undecided("a function of several rows, or beside others, is not decided here.")
    chosen = part.names if query["over"] is None else listed(query["over"])
    places = [list(part.names).index(name) for name in chosen]
    stored = {hashable(cell): number(value) for cell, value in query["table"]}
    answers = (stored[tuple(hashable(cell[p]) for p in places)] for cell in product(*part.domains))
    return [(whole_or_any(answer, noise) / scale,) for answer in answers]


def check_cells(claim: Claim, part: Part, cells: list[Fraction], answers: list[Vector]) -> None:
    """Check all who do not know everyone else, at every output.

    An entry stands for (which tuples are known, their values): the last place on an axis means
    unknown, the sum over that tuple. It counts if it is possible and its adversary is admitted:
    who knows all of it but the target. Who knows everyone else was checked before.
    """
    sizes = [len(values) for values in part.domains]
    larger = [size + 1 for size in sizes]
    there = [answer for answer, cell in zip(answers, cells, strict=True) if cell]
    weights = [decimal(cell) for cell in cells]
    masses = with_unknown(weights, sizes)
    used = []
    for mass, places in zip(masses, product(*map(range, larger)), strict=True):
        others = sum(map(int.__lt__, places, sizes)) - 1
        used.append(bool(mass) and part.fewest <= others <= part.most and others < part.size - 1)
    axes = [sorted({answer[axis] for answer in there}) for axis in range(len(there[0]))]
    if len(masses) * math.prod(map(len, axes)) > MOST_WORK:
        raise Undecided("there are too many adversaries and outputs to check one by one.")
    for output in product(*axes):  # the worst one is among them (A)
        blurred = [
            weight * kernel(distance(output, answer)) if weight else weight
            for weight, answer in zip(weights, answers, strict=True)
        ]
        densities = [
            density / mass if use else None
            for density, mass, use in zip(with_unknown(blurred, sizes), masses, used, strict=True)
        ]
        for target, name in enumerate(part.names):
            worst = Decimal(1)
            for line in lines(densities, larger, target):
                found = [density for density in line[:-1] if density is not None]
                if len(found) > 1 and max(found) > worst * min(found):
                    worst = max(found) / min(found)
            claim.judge(worst, name)


def with_unknown(values: list[Decimal], sizes: Sequence[int]) -> list[Decimal]:
    """Add, on every axis, one more place that holds the sum over the axis."""
    if not sizes:
        return values
    step = len(values) // sizes[0]
    parts = [with_unknown(values[k : k + step], sizes[1:]) for k in range(0, len(values), step)]
    sums = [sum(column, Decimal(0)) for column in zip(*parts, strict=True)]
    return [*itertools.chain.from_iterable(parts), *sums]


def group_cells(part: Part) -> list[Fraction]:
    """Write an exchangeable group out as a table."""
    size, kinds = part.size, range(len(part.domains[0]))
    members = itertools.combinations_with_replacement(kinds, size)
    counts = sorted(tuple(map(one.count, kinds)) for one in members)
    if part.model["type"] == "BinaryGroup":
        counts.reverse()  # listed by the number of ones
    stored = law(numbers(part.model["count_probabilities"], len(counts)))
    ways = [math.factorial(size) // math.prod(map(math.factorial, count)) for count in counts]
    one = {c: p / way for c, p, way in zip(counts, stored, ways, strict=True)}
    return [one[tuple(map(cell.count, kinds))] for cell in product(kinds, repeat=size)]


def chain_laws(part: Part) -> tuple[list[Fraction], Matrix]:
    """Return the law of the first state and the transitions, the same for all steps."""
    states = range(len(part.domains[0]))
    stored, first = part.model["transition"], part.model["initial"]
    steps = [law(numbers(row, len(states))) for row in stored]
    if len(steps) != len(states):
        raise Undecided("transition must be one matrix for all steps.")
    if first is not None:
        return law(numbers(first, len(states))), steps
    kept = [[steps[k][j] - (j == k) for k in states] + [Fraction(0)] for j in states]
    found = solve([*kept[:-1], [Fraction(1)] * (len(states) + 1)])
    if found is None or any(value < 0 for (value,) in found):
        raise Undecided("the chain has no single stationary law.")
    return [value for (value,) in found], steps


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
            if r != column and (factor := rows[r][column]):
                rows[r] = [a - factor * b for a, b in zip(rows[r], lead, strict=True)]
    return [row[size:] for row in rows]


def chain_cells(part: Part) -> list[Fraction]:
    """Write a chain out as a table."""
    cells, steps = chain_laws(part)
    for _ in range(part.size - 1):
        cells = [cell * step for k, cell in enumerate(cells) for step in steps[k % len(steps)]]
    return cells


def factors_of(part: Part) -> Iterator[tuple[list[int], list[int], list[Fraction]]]:
    """Yield the tuples of every factor of a network, their numbers of values, and its cells."""
    model, sizes, tree = (
        part.model,
        list(map(len, part.domains)),
        part.model["type"] == "MarkovTree",
    )
    if model.get("influences") is not None:
        raise Undecided("a set of networks is not decided here.")
    above = enumerate(model["parents"] if tree else ())
    scopes = [[j] if up is None else [up, j] for j, up in above] or model["scopes"]
    for scope, table in zip(scopes, model["tables" if tree else "factors"], strict=True):
        own = [sizes[whole_number(place)] for place in scope]
        cells = numbers(table, *own)
        if min(cells) < 0 or not any(cells) or len(set(scope)) < len(scope) or not scope:
            raise Undecided("a factor does not fit its tuples.")
        if tree:  # a law in every row
            rows = (cells[start : start + own[-1]] for start in range(0, len(cells), own[-1]))
            cells = [cell for row in rows for cell in law(row)]
        yield scope, own, cells


def network_cells(part: Part) -> list[Fraction]:
    """Write a network out as a table, up to a factor."""
    factors = [
        (scope, dict(zip(product(*map(range, sizes)), cells, strict=True)))
        for scope, sizes, cells in factors_of(part)
    ]
    every = product(*(range(len(values)) for values in part.domains))
    return [
        math.prod((f[tuple(cell[p] for p in scope)] for scope, f in factors), start=Fraction(1))
        for cell in every
    ]


# --- Gaussian values (C, D) -----------------------------------------------------------------------


def check_gaussian(claim: Claim, part: Part, covariance: Matrix) -> None:
    """Check jointly Gaussian values, over all sets of known tuples, in fractions."""
    size, clamped = part.size, is_clamped(claim)
    if any(covariance[j][k] != covariance[k][j] for j in range(size) for k in range(size)):
        raise Undecided("the covariance must be symmetric.")
    widths = [high - low for low, high in part.domains]
    weights = [
        tuple((b - a) / width for a, b in zip(*ends, strict=True))
        for ends, width in zip(part.added, widths, strict=True)
    ]
    if size > MOST_GAUSSIAN:
        raise Undecided(f"at most {MOST_GAUSSIAN} tuples of a covariance are checked here.")
    for known, inner in conditionals(with_answers(covariance, weights), size, 0, frozenset()):
        for target in set(range(size)) - known:
            if part.fewest <= len(known) <= part.most:
                check_moves(claim, part, inner, target, clamped=clamped)


def is_clamped(claim: Claim) -> bool:
    """Whether values are clamped into their ranges: for all answers, or for none."""
    found = {query.get("clamp", query["type"] == "RowQuery") for query in claim.queries}
    if len(found) != 1 or not found <= {True, False}:
        raise Undecided("values must be clamped for all answers, or for none.")
    return found == {True}


def with_answers(covariance: Matrix, weights: Sequence[Vector]) -> Matrix:
    """Return the covariance of the tuples and, behind them, of the exact answers."""
    answers = list(zip(*weights, strict=True))
    rows = [row + [dot(answer, row) for answer in answers] for row in covariance]
    columns = list(zip(*rows, strict=True))
    return rows + [[dot(answer, column) for column in columns] for answer in answers]


def dot(one: Sequence[Fraction], other: Sequence[Fraction]) -> Fraction:
    """Return the sum of the products."""
    return sum((a * b for a, b in zip(one, other, strict=True)), Fraction(0))


def conditionals(
    covariance: Matrix, size: int, start: int, known: frozenset[int]
) -> Iterator[tuple[frozenset[int], Matrix]]:
    """Yield every set of known tuples with the covariance given it."""
    yield known, covariance
    for k in range(start, size):
        yield from conditionals(given(covariance, k), size, k + 1, known | {k})


def given(covariance: Matrix, known: int) -> Matrix:
    """Return the covariance given one more variable."""
    pivot, column = covariance[known][known], [row[known] for row in covariance]
    if pivot <= 0:
        raise Undecided("the covariance must be positive definite.")
    return [
        [value - mine * its / pivot for value, its in zip(row, column, strict=True)]
        for row, mine in zip(covariance, column, strict=True)
    ]


def check_moves(claim: Claim, part: Part, inner: Matrix, target: int, *, clamped: bool) -> None:
    """Compare how far the answers move, where x_i moves over its range, with the promise."""
    size, row, name = part.size, inner[target], part.names[target]
    widths = [high - low for low, high in part.domains]
    if row[target] <= 0:
        raise Undecided("the covariance must be positive definite.")
    if clamped:
        own = widths[target] / row[target]
        shares = [min(Fraction(1), abs(row[u]) * own / widths[u]) for u in range(size)]
        reach = [[abs(b - a) for a, b in zip(*ends, strict=True)] for ends in part.added]
        bounds = [dot(shares, answer) for answer in zip(*reach, strict=True)]
        claim.judge_moves(bounds, name, reached=False)
    elif claim.mu is None:
        claim.judge_moves([value / row[target] * widths[target] for value in row[size:]], name)
    else:
        released = [list(values) for values in inner]
        for place in range(size, len(row)):
            released[place][place] += 1  # the noise of this answer
        for place in range(size, len(row)):
            released = given(released, place)
        gain = 1 / released[target][target] - 1 / row[target]
        claim.judge_mu(gain * widths[target] ** 2, name, reached=True)


def check_alike(claim: Claim, part: Part) -> None:
    """Check members who are alike (groups), or steps alike (series)."""
    model, size, clamped = part.model, part.size, is_clamped(claim)
    stored, series = model["correlation"], model["type"] == "GaussianSeries"
    low, high = numbers(stored, 2) if isinstance(stored, list) else numbers([stored] * 2)
    variance = None if model["variance"] is None else number(model["variance"])
    limit = -1 if series or size < 3 else Fraction(-1, size - 1)
    if not limit < low <= high < 1 or (variance is not None and variance <= 0):
        raise Undecided("correlation and variance are not those of any law.")
    alike = len(set(map(tuple, part.added))) == 1
    everyone = part.fewest == 0 and part.most == size - 1
    simple = alike and everyone and (low >= 0 or not series)
    if simple and (variance is None or clamped or claim.mu is None):
        # Who knows nobody else learns most; of a series, about its middle (D).
        middle = (size - 1) // 2
        others = [t for t in range(size) if t != middle]
        shares = [high ** abs(t - middle) if series else max(high, Fraction(0)) for t in others]
        moves = [(1 + sum(shares)) * (b - a) for a, b in zip(*part.added[middle], strict=True)]
        reached = variance is None or not clamped
        claim.judge_moves(moves, part.names[middle], reached=reached)
    elif low == high and (variance is not None or (claim.mu is None and not clamped)):
        steps = [[abs(j - k) if series else int(j != k) for k in range(size)] for j in range(size)]
        covariance = [[(variance or 1) * low**step for step in row] for row in steps]
        check_gaussian(claim, part, covariance)
    else:
        raise Undecided("unequal members, or a range below 0, are not decided here.")


# --- From the file to its parts -------------------------------------------------------------------

CELLS: dict[str, Callable[[Part], list[Fraction]]] = {
    "JointTable": lambda part: law(numbers(part.model["probabilities"], *map(len, part.domains))),
    "CategoryGroup": group_cells,
    "BinaryGroup": group_cells,
    "MarkovChain": chain_cells,
    "MarkovTree": network_cells,
    "Network": network_cells,
}


def check_part(claim: Claim, part: Part) -> None:
    """Check a set member by member, blocks one by one, and any other model as its family says."""
    model, kind = part.model, part.model["type"]
    if model["provenance"] == "private" or "digest" in model:
        raise Undecided("the numbers of the model are withheld.")
    if "RowQuery" in {one["type"] for one in claim.queries} and kind not in ("ModelSet", "Blocks"):
        part = replace(part, added=row_additions(claim, part))
    if kind == "ModelSet":
        for member in model["models"]:
            check_part(claim, replace(part, model=member))
    elif kind == "Blocks":
        check_blocks(claim, part)
    elif kind in CELLS:
        check_table(claim, part)
    elif not part.added:
        raise Undecided(f"a function of a {kind} is not decided here.")
    elif kind == "Unknown":  # who is not known moves with the target (E)
        reach = [spread(values) for values in part.added]
        for target, name in enumerate(part.names):
            others = sorted(reach[:target] + reach[target + 1 :], reverse=True)
            total = sum(others[: part.size - 1 - part.fewest], reach[target])
            if len(part.added[0][0]) > 1 and (claim.mu is not None or total > claim.epsilon):
                raise Undecided("how far several answers move together is not decided here.")
            claim.judge_moves([total], name)
    elif kind == "Gaussian":
        check_gaussian(claim, part, [numbers(row, part.size) for row in model["covariance"]])
    else:
        check_alike(claim, part)


def check_blocks(claim: Claim, part: Part) -> None:
    """Check every block alone (B).

    Who may not know everything outside a block has that as further noise. Leaving it out is on the
    safe side, so what is proved is proved; but what breaks then is not known to break.
    """
    if any(query["type"] == "Custom" for query in claim.queries):
        raise Undecided("only answers that add up can be checked block by block.")
    total, start = sum(shape(part.model)[2]), 0
    for block in part.model["models"]:
        size = len(block["names"])
        own, start = slice(start, start + size), start + size
        fewest, most = max(0, part.fewest - (total - size)), min(size - 1, part.most)
        names, domains, added = part.names[own], part.domains[own], part.added[own]
        try:
            check_part(claim, Part(block, names, domains, added, fewest, most))
        except Broken as found:
            if part.most == total - 1:
                raise
            raise Undecided(f"without what blurs the answer further, {found}") from None


def check_calibration(stored: Stored) -> Claim:
    """Check a calibration, and return what it claims."""
    header = stored["type"], stored["schema"], whole_number(stored.get("version", 1)) <= FORMAT
    if header != ("Calibration", "pdp-calibrate/1", True):
        raise Undecided("this is no calibration that this checker knows.")
    claim, model, who = Claim.read(stored), stored["model"], stored["adversaries"]
    if set(who) != {"at_least", "at_most"}:
        raise Undecided("an adversary by name is not decided here.")
    names, domains, copies = shape(model)
    others, kinds = sum(copies) - 1, {query["type"] for query in claim.queries}
    fewest = others if who["at_least"] is None else whole_number(who["at_least"])
    most = others if who["at_most"] is None else min(others, whole_number(who["at_most"]))
    if fewest > most:
        raise Undecided("nobody is admitted, so nothing is promised.")
    added: list[list[Vector]] = [] if "Custom" in kinds else [[]] * len(names)
    if not kinds & {"Custom", "RowQuery"}:
        added = additions(claim, dict(zip(names, copies, strict=True)), domains)
    check_part(claim, Part(model, names, domains, added, fewest, most))
    return claim


def check(stored: Any) -> tuple[int, str]:
    """Decide about the content of a file: 0 proved, 1 broken, 2 undecided, and why."""
    try:
        json.dumps(stored, allow_nan=False)  # no number of a file may be infinite, or none
        released = stored["type"] == "Release"
        with localcontext(digits(50)):
            claim = check_calibration(stored["calibration"] if released else stored)
    except Broken as answer:
        return BROKEN, f"Not so: {answer}"
    except Undecided as answer:
        return UNDECIDED, f"Cannot decide: {answer}"
    except DAMAGE as error:
        return UNDECIDED, f"Cannot decide: the file is damaged ({type(error).__name__})."
    delta = f", δ = {float(claim.delta):g}" if claim.mu else ""
    return PROVED, f"Proved: nobody learns more than ε = {float(claim.epsilon):g}{delta}."


def check_file(path: Path) -> tuple[int, str]:
    """Decide about a file."""
    try:
        return check(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, RecursionError):
        return UNDECIDED, "Cannot decide: the file cannot be read as JSON."


def main(arguments: Sequence[str] | None = None) -> int:
    """Read a file, decide, say so."""
    parser = argparse.ArgumentParser(description="Check a calibration or a release.")
    parser.add_argument("file", type=Path)
    code, answer = check_file(parser.parse_args(arguments).file)
    sys.stdout.write(answer + "\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
