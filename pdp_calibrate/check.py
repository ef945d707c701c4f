"""Decide whether the noise of a calibration keeps its promise, without the library that made it.

    python check.py release.json        (or: pdp-calibrate check release.json)

One file, the standard library only, no line shared with the engines. It reads a calibration or a
release and answers 0: proved; 1: not so, an adversary breaks it, or what the file says does not
follow; 2: cannot decide, numbers are withheld, or the model is too large or of another kind. It
never guesses. It decides about exact answers with exact noise; what floating point adds is charged
by the library.

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
C  (order). On a chain whose steps favour equal order (all entries > 0, all 2×2 minors ≥ 0), with an
   answer that rises in every state, the largest quotient is in the limit r → ±∞: a quotient of
   E[e^{±f/λ} | …] (correlation inequality of Fortuin, Kasteleyn and Ginibre). Left and right of x_i
   are independent given x_i, and of what is known only the nearest on either side matters.
D  (Gaussian values). Given x_K the answer is Gaussian around a line in x_i. Laplace noise: moving
   x_i by M costs M·|β|/λ, β = Cov(f, x_i | x_K) / Var(x_i | x_K). Gaussian noise: μ² is M² times
   what the release r adds to the precision of x_i: 1/Var(x_i | x_K, r) - 1/Var(x_i | x_K). Values
   clamped into their ranges: moving x_i by M moves every x_u by at most min(M_u, M·|β_u|), in the
   direction of its coefficient β_u on x_i, so the answer by at most the sum of these.
E  (signs). Laplace noise: if Ω = Σ^{-1} has no entry off its diagonal with Ω_jk a_j a_k > 0, and no
   weight is 0, a coefficient only grows when one more is unknown: only K = ∅ counts.
F  (members alike). With common correlation ρ ≥ 0 and equal weights, K = ∅ counts: the answer moves
   by a·M·(1+(m-1)ρ), of a series by a·M·Σ_t φ^{|t-i|}; clamped, for any means and variance, too.
G  (any dependence). Nothing is assumed: all tuples of the block may move at once.
H  (elimination). e^{D_kl} bounds the cross-ratios of θ in (x_k, x_l); ε_j is what changing x_j
   alone costs. Summing x_j out, D_kl grows by D_jk ⊗ D_jl and ε_k by D_jk ⊗ ε_j, where
   e^{(a⊗b)/2} = (e^{a/2} e^{b/2} + 1) / (e^{a/2} + e^{b/2}); the last ε_i bounds the leakage about
   x_i for every K, in any order of the others. A factor with a zero couples by D = ∞.

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
MOST_GAUSSIAN = 13  # tuples of a covariance whose sets of known tuples are all checked
MOST_INVERTED = 40  # tuples of a covariance that is inverted in fractions

Vector = tuple[Fraction, ...]
Matrix = list[list[Fraction]]


class Undecided(Exception):  # noqa: N818 - an answer, not an error
    """The file cannot be decided here, and why."""


class Broken(Exception):  # noqa: N818 - an answer, not an error
    """The promise does not hold, or does not follow, and why."""


# --- Reading numbers: what is no number, list or name stops the check ----------------------------


def number(value: Any) -> Fraction:
    """Return a finite number as the exact fraction that it is."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise Undecided("a finite number is needed where there is none.")
    return Fraction(value)


def whole_number(value: Any) -> int:
    """Return a whole number of at least 0."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise Undecided("a whole number is needed where there is none.")
    return value


def numbers(values: Any) -> list[Fraction]:
    """Return a list of numbers."""
    return [number(value) for value in values]


def law(values: Any) -> list[Fraction]:
    """Return probabilities: none negative, adding up to 1 as floats do."""
    found = numbers(values)
    if min(found) < 0 or abs(sum(found) - 1) > Fraction(1, 10**6):
        raise Undecided("probabilities must not be negative, and add up to 1.")
    return found


def flat(values: Any) -> list[Any]:
    """Return what nested lists hold, in order."""
    inner = values if isinstance(values, list) else ()
    return [leaf for part in inner for leaf in flat(part)] if inner else [values]


def hashable(value: Any) -> Any:
    """Return a name or a value so that it can be looked up."""
    return tuple(hashable(part) for part in value) if isinstance(value, list) else value


def decimal(value: Fraction) -> Decimal:
    """Return a fraction, rounded to the digits in use."""
    return Decimal(value.numerator) / Decimal(value.denominator)


# --- The claim, and who attacks -------------------------------------------------------------------


@dataclass(frozen=True)
class Claim:
    """What a calibration says, as exact numbers."""

    epsilon: Fraction
    delta: Fraction
    mu: Fraction | None  # with Gaussian noise only
    scales: list[Fraction]
    queries: list[dict[str, Any]]
    rows: int

    @classmethod
    def read(cls, stored: dict[str, Any]) -> Claim:
        """Take the claim out of a calibration."""
        queries, scales, noises = (
            stored[field] if isinstance(stored["query"], list) else [stored[field]]
            for field in ("query", "scale", "noise")
        )
        gaussian = noises[0] == "Gaussian"
        kinds = {"Gaussian"} if gaussian else {"Laplace", "discrete Laplace"}
        if not len(queries) == len(scales) == len(noises) or not set(noises) <= kinds:
            raise Undecided("there must be one scale and one kind of noise per query.")
        found = cls(
            epsilon=number(stored["epsilon"]),
            delta=number(stored["delta"]) if gaussian else Fraction(0),
            mu=number(stored["mu"]) if gaussian else None,
            scales=numbers(scales),
            queries=queries,
            rows=whole_number(stored["rows"]),
        )
        if found.epsilon <= 0 or min(found.scales) <= 0 or found.rows < 1:
            raise Undecided("epsilon, scales and rows must be positive.")
        return found

    def judge(self, quotient: Decimal, target: Any) -> None:
        """Compare a quotient of densities, right to a part in 10^36, with e^ε."""
        limit = decimal(self.epsilon).exp()
        if quotient > limit * (1 + SLACK):
            raise Broken(f"somebody learns {float(quotient.ln()):.9g} about {target}.")
        if quotient > limit * (1 - SLACK):
            raise Undecided(f"somebody comes too close to ε about {target} to be told apart.")

    def judge_moves(self, moves: Sequence[Fraction], target: Any, *, attained: bool = True) -> None:
        """Compare how far a secret moves the answers, in units of their noise, with the promise."""
        if self.mu is None:
            if (leakage := sum(map(abs, moves), Fraction(0))) > self.epsilon:
                who = "somebody learns" if attained else "it does not follow: the bound is"
                raise Broken(f"{who} {float(leakage):.9g} about {target}.")
        else:
            self.judge_mu(sum((move * move for move in moves), Fraction(0)), target, attained)

    def judge_mu(self, square: Fraction, target: Any, attained: bool = True) -> None:  # noqa: FBT
        """Compare μ² with the μ that is stated, and its (ε, δ)."""
        root = decimal(square).sqrt() * (1 + SLACK)
        if self.mu is not None and (square > self.mu**2 or excess(root, self) > self.delta):
            who = "somebody learns μ =" if attained else "it does not follow: the bound is μ ="
            raise Broken(f"{who} {float(root):.9g} about {target}.")


def excess(mu: Decimal, claim: Claim) -> Decimal:
    """Return δ at the ε that is stated, a part in 10^20 too large, for noise that leaks μ."""
    if not mu:
        return Decimal(0)
    with localcontext(Context(prec=400, Emax=MAX_EMAX, Emin=MIN_EMIN)):
        epsilon = decimal(claim.epsilon)
        ends = mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu
        if min(ends) < -35:  # too far out for the series: the first term alone is larger
            return normal(max(ends[0], Decimal(-35))) + Decimal("1e-260")
        return (normal(ends[0]) - epsilon.exp() * normal(ends[1])) * (1 + Decimal("1e-20"))


def normal(x: Decimal) -> Decimal:
    """Return Φ(x) = 1/2 + φ(x)(x + x³/3 + x⁵/15 + …), to an error of 10^-390 for |x| ≤ 40."""
    pi = 4 * (4 * arctangent(5) - arctangent(239))  # Machin's formula
    term, total, k = x, x, 1
    while abs(term) > Decimal("1e-395") or k < abs(x * x):
        k += 2
        term = term * x * x / k
        total += term
    return Decimal("0.5") + (-x * x / 2).exp() / (2 * pi).sqrt() * total


def arctangent(inverse: int) -> Decimal:
    """Return arctan(1/inverse)."""
    terms = ((-1) ** k / (Decimal(inverse) ** (2 * k + 1) * (2 * k + 1)) for k in range(300))
    return sum(terms, Decimal(0))


@dataclass(frozen=True)
class Part:
    """Tuples that are checked together: a model without inner structure, or one block."""

    model: dict[str, Any]
    names: Sequence[Any]
    domains: Sequence[Sequence[Any]]  # of a tuple on an interval: its two ends
    added: Sequence[Sequence[Vector]]  # per tuple and value, in units of the noise; or nothing
    fewest: int  # how many others an adversary knows at least,
    most: int  # and at most
    clamped: bool

    @property
    def size(self) -> int:
        """The number of tuples."""
        return len(self.names)

    @property
    def everyone(self) -> bool:
        """Whether every adversary is admitted."""
        return self.fewest == 0 and self.most == self.size - 1

    def judge_strongest(self, claim: Claim) -> None:
        """Check those who know everyone else: what changing one value alone does."""
        if self.most == self.size - 1:
            for name, values in zip(self.names, self.added, strict=True):
                claim.judge_moves([spread(values)], name)


# --- The query ------------------------------------------------------------------------------------


def shape(model: dict[str, Any]) -> tuple[list[Any], list[list[Any]], list[int]]:
    """Return the names of a model, the values of each tuple, and how many copies there are."""
    names, kind = [hashable(name) for name in model["names"]], model["type"]
    copies = [1] * len(names)
    if kind == "Blocks":
        inner = [shape(block) for block in model["models"]]
        counts = [whole_number(count) for count in model["counts"]]
        domains = [values for _, found, _ in inner for values in found]
        copies = [count for (held, _, _), count in zip(inner, counts, strict=True) for _ in held]
        if min(counts) < 1 or any(max(own) > 1 for _, _, own in inner):
            raise Undecided("blocks of copied blocks are not decided here.")
    elif kind == "ModelSet":
        inner = [shape(member) for member in model["models"]]
        if any(found != inner[0] for found in inner):
            raise Undecided("the models of a set must be about the same tuples.")
        domains = inner[0][1]
    elif "domains" in model:
        domains = model["domains"]
    elif "bounds" in model:
        bounds = model["bounds"]
        domains = bounds if isinstance(bounds[0], list) else [bounds] * len(names)
    else:
        fields = (model.get(field) for field in ("domain", "states", "categories"))
        domains = [next((values for values in fields if values), [0, 1])] * len(names)
    distinct = all(len({hashable(v) for v in values}) == len(values) > 0 for values in domains)
    if len(set(names)) != len(names) or len(domains) != len(names) or not distinct:
        raise Undecided("names and values must differ, with one domain per tuple.")
    return names, domains, copies


def additions(
    claim: Claim, names: Sequence[Any], domains: Sequence[Sequence[Any]], copies: Sequence[int]
) -> list[list[Vector]]:
    """Return, per tuple and value, what it adds to the answers.

    Each answer is divided by its own scale, so that the noise has scale 1 in every coordinate.
    """
    columns: list[list[list[Fraction]]] = [[[] for _ in domain] for domain in domains]
    for query, scale in zip(claim.queries, claim.scales, strict=True):
        kind, over = query["type"], query.get("over")
        chosen = list(names) if over is None else [hashable(name) for name in over]
        weights = dict.fromkeys(chosen, Fraction(1))
        groups: list[set[Any]] | None = None
        if kind == "Linear":
            given_by = query["weights"] if query["by"] == "name" else zip(names, query["weights"])
            weights = {hashable(name): number(weight) for name, weight in given_by}
        elif kind == "Mean":
            copied = dict(zip(names, copies, strict=True))
            total = claim.rows * sum(copied[name] for name in chosen)
            weights = dict.fromkeys(chosen, Fraction(1, total))
        elif kind == "Count":
            groups = [{hashable(value) for value in query["values"]}]
        elif kind == "Histogram":
            own = [d for name, d in zip(names, domains, strict=True) if name in weights]
            every = query["categories"] or itertools.chain.from_iterable(own)
            groups = [{value} for value in dict.fromkeys(map(hashable, every))]
        elif kind != "Sum":
            raise Undecided(f"a query of the kind {kind} is not decided here.")
        if set(weights) - set(names):
            raise Undecided("the query names tuples that are not there.")
        for name, domain, column in zip(names, domains, columns, strict=True):
            weight = weights.get(name, Fraction(0)) / scale
            for value, parts in zip(domain, column, strict=True):
                if groups is not None:
                    parts += [weight * (hashable(value) in group) for group in groups]
                else:
                    parts.append(weight * number(value) if weight else weight)
    return [[tuple(parts) for parts in column] for column in columns]


def row_additions(query: dict[str, Any], scale: Fraction, part: Part) -> list[list[Vector]]:
    """Return how far one record can move all numbers of a question about rows together, in L1."""
    kind, value, public = query["kind"], query["value"], set(query["public"])
    missing, by = query["missing"], [one for one in query["by"] if one["column"] not in public]
    labels = [len(one["values"]) + (missing.get(one["column"]) == "category") for one in by]
    moves = math.prod(labels) > 1  # from one part of the breakdown into another
    leaves = bool(by or [1 for one in query["where"] if one["column"] not in public])
    leaves = leaves or value in missing
    low, high = (Fraction(0), Fraction(1)) if kind == "count" else numbers(query["bounds"])
    if kind not in ("count", "sum", "mean") or (kind == "mean" and not (moves or leaves)):
        raise Undecided(f"this {kind} of rows is not decided here.")
    if part.model["type"] != "Unknown" and (moves or leaves or kind != "sum"):
        raise Undecided("a correlation says nothing about what several columns decide.")
    if kind == "mean":  # a sum, in half ranges around the middle, and a count
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
    return max(distance(a, b) for a, b in itertools.product(set(values), repeat=2))


# --- Tables (A) -----------------------------------------------------------------------------------


def check_table(claim: Claim, part: Part, write: Callable[[], list[Fraction]]) -> None:
    """Check every adversary of a table, for answers that add up and for any function."""
    sizes = [len(values) for values in part.domains]
    if math.prod(sizes) > MOST_CELLS:
        raise Undecided(f"more than {MOST_CELLS} cells are not checked one by one.")
    cells = write()
    if len(cells) != math.prod(sizes):
        raise Undecided("the table does not fit its domains.")
    if part.added:
        every = itertools.product(*part.added)
        answers = [tuple(map(sum, zip(*one, strict=True))) for one in every]
    else:
        answers = function_values(claim, part)
    if part.most == part.size - 1:  # who knows everyone else: over all cells, possible or not
        for target, name in enumerate(part.names):
            inner = math.prod(sizes[target + 1 :])
            step = inner * sizes[target]
            for start in range(0, len(answers), step):
                for place in range(start, start + inner):
                    claim.judge_moves([spread(answers[place : start + step : inner])], name)
    check_cells(claim, part, cells, answers)


def function_values(claim: Claim, part: Part) -> list[Vector]:
    """Return the answers of a function that is stored as a table of its values."""
    (query,), (scale,) = claim.queries, claim.scales
    over = query["over"]
    chosen = part.names if over is None else [hashable(name) for name in over]
    places = [list(part.names).index(name) for name in chosen]
    stored = {hashable(cell): number(value) for cell, value in query["table"]}
    every = itertools.product(*part.domains)
    return [(stored[hashable([cell[place] for place in places])] / scale,) for cell in every]


def check_cells(
    claim: Claim, part: Part, cells: Sequence[Fraction], answers: Sequence[Vector]
) -> None:
    """Check all who do not know everyone else, at every output.

    An entry stands for (which tuples are known, their values): the last place on an axis means
    unknown, the sum over that tuple. It counts if it is possible and its adversary is admitted:
    who knows all of it but the target. Who knows everyone else was checked before.
    """
    sizes = [len(values) for values in part.domains]
    there = [answer for answer, cell in zip(answers, cells, strict=True) if cell]
    outputs = outputs_of(there, math.prod(size + 1 for size in sizes))
    weights = [decimal(cell) for cell in cells]
    masses = with_unknown(weights, sizes)
    used = []
    for mass, places in zip(
        masses, itertools.product(*(range(size + 1) for size in sizes)), strict=True
    ):
        others = sum(map(int.__lt__, places, sizes)) - 1
        used.append(bool(mass) and part.fewest <= others <= part.most and others < part.size - 1)
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
        for target, name in enumerate(part.names):
            claim.judge(worst_quotient(densities, sizes, target), name)


def outputs_of(answers: Sequence[Vector], work: int) -> list[Vector]:
    """Return the grid of outputs among which the worst one is; `work` is done for each."""
    axes = [sorted({answer[axis] for answer in answers}) for axis in range(len(answers[0]))]
    if work * math.prod(map(len, axes)) > MOST_WORK:
        raise Undecided("there are too many adversaries and outputs to check one by one.")
    return list(itertools.product(*axes))


class Kernel(dict[Fraction, Decimal]):
    """e^{-d} for distances d, remembered."""

    def __call__(self, d: Fraction) -> Decimal:  # noqa: D102
        return self[d] if d in self else self.setdefault(d, (-decimal(d)).exp())


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
            if len(there) > 1 and (largest := max(there)) > worst * (smallest := min(there)):
                worst = largest / smallest
    return worst


# --- Members of a group who cannot be told apart --------------------------------------------------


def group_cells(part: Part) -> list[Fraction]:
    """Write an exchangeable group out as a table."""
    size, kinds = part.size, range(len(part.domains[0]))
    shares = itertools.product(range(size + 1), repeat=len(kinds))
    counts = [count for count in shares if sum(count) == size]  # the first ones ascending
    if part.model["type"] == "BinaryGroup":
        counts.reverse()  # listed by the number of ones
    stored = law(part.model["count_probabilities"])
    ways = [math.factorial(size) // math.prod(map(math.factorial, count)) for count in counts]
    one = {c: p / way for c, p, way in zip(counts, stored, ways, strict=True)}
    return [one[tuple(map(cell.count, kinds))] for cell in itertools.product(kinds, repeat=size)]


def check_group(claim: Claim, part: Part) -> None:
    """Check a yes/no group by its counts, if all members add the same; otherwise as a table.

    Given that the target holds v, and t of the k known members hold 1, the u unknown ones hold s
    ones with a probability proportional to w(v+t+s)·C(u, s), w(c) = P(c ones) / C(m, c).
    """
    size = part.size
    if len(set(map(tuple, part.added))) > 1:
        check_table(claim, part, lambda: group_cells(part))
        return
    part.judge_strongest(claim)
    stored = enumerate(law(part.model["count_probabilities"]))
    per_cell = [decimal(p / math.comb(size, c)) for c, p in stored]
    no, yes = part.added[0]
    answers = [tuple(s * (b - a) for a, b in zip(no, yes, strict=True)) for s in range(size + 1)]
    kernel = Kernel()
    outputs = outputs_of(answers, size**3)
    blur = [[kernel(distance(output, answer)) for answer in answers] for output in outputs]
    for known in range(part.fewest, min(part.most, size - 2) + 1):
        for ones in range(known + 1):
            laws = []
            for value in (0, 1):  # the known ones shift all answers alike: left out
                unknown = range(size - known)
                ways = [math.comb(size - 1 - known, s) for s in unknown]
                masses = [per_cell[value + ones + s] * ways[s] for s in unknown]
                if total := sum(masses, Decimal(0)):
                    laws.append([Decimal(0)] * value + [mass / total for mass in masses])
            for row in blur if len(laws) == 2 else ():
                one, other = (sum(map(mul, found, row), Decimal(0)) for found in laws)
                claim.judge(max(one / other, other / one), "a member")


# --- Chains (A, C) --------------------------------------------------------------------------------


def chain_laws(part: Part) -> tuple[list[Fraction], Matrix]:
    """Return the law of the first state and the transitions."""
    states = range(len(part.domains[0]))
    steps = [law(row) for row in part.model["transition"]]
    if len(steps) != len(states) or any(len(row) != len(states) for row in steps):
        raise Undecided("transition must be one matrix for all steps.")
    start = part.model["initial"]
    if start is not None:
        return law(start), steps
    scaled = [[value / sum(row) for value in row] for row in steps]
    kept = [[scaled[k][j] - (j == k) for k in states] + [Fraction(0)] for j in states]
    found = solve([*kept[:-1], [Fraction(1)] * (len(states) + 1)])
    if found is None or min(found) < [0]:
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


def check_chain(claim: Claim, part: Part) -> None:
    """Check a short chain as a table, and a long one by its moments if it favours order."""
    first, steps = chain_laws(part)
    total = [sum(values[v][0] for values in part.added) for v in range(len(steps))]
    order = sorted(range(len(steps)), key=total.__getitem__)
    if len(steps) ** part.size <= 2**10 or not part.everyone or not rises(part, steps, order):
        check_table(claim, part, lambda: chain_cells(part))
        return
    if part.size**2 * len(steps) ** 3 > MOST_WORK:
        raise Undecided("the chain is too long to be checked here.")
    part.judge_strongest(claim)
    begin = [decimal(first[v]) for v in order]
    move = [[decimal(steps[v][w]) for w in order] for v in order]
    back = [list(column) for column in zip(*move, strict=True)]
    for sign in (1, -1):
        tilt = [[(sign * decimal(values[v][0])).exp() for v in order] for values in part.added]
        for target, name in enumerate(part.names):
            left = side_quotients(range(target - 1, -1, -1), back, tilt, begin)
            right = side_quotients(range(target + 1, part.size), move, tilt, None)
            for v, w in itertools.permutations(range(len(order)), 2):
                own = tilt[target][v] / tilt[target][w]
                claim.judge(own * left[v][w] * right[v][w], name)


def rises(part: Part, steps: Matrix, order: Sequence[int]) -> bool:
    """Whether, with the states in this order, no addition falls and the steps favour order (C).

    Minors of neighbours suffice where no entry is 0: the others follow by multiplying quotients.
    """
    pairs = list(itertools.pairwise(order))
    return (
        min(map(min, steps)) > 0
        and all(
            len(values[v]) == 1 and values[v] <= values[w]
            for values in part.added
            for v, w in pairs
        )
        and all(
            steps[a][v] * steps[b][w] >= steps[a][w] * steps[b][v]
            for a, b in pairs
            for v, w in pairs
        )
    )


def side_quotients(
    places: range,
    move: list[list[Decimal]],
    tilt: Sequence[Sequence[Decimal]],
    begin: list[Decimal] | None,
) -> list[list[Decimal]]:
    """Return the largest E[e^{±f} | x_i = v] / E[e^{±f} | x_i = w] of one side, per (v, w).

    The nearest known is at any place, or nobody is. `move` leads away from x_i; to the right the
    last state is free, to the left it has the law `begin` and paths are weighed backwards.
    """
    states = range(len(move))
    columns = list(zip(*move, strict=True))
    worst = [[Decimal(1)] * len(move) for _ in states]

    def keep(means: list[Decimal]) -> None:
        for v, w in itertools.product(states, repeat=2):
            worst[v][w] = max(worst[v][w], means[v] / means[w])

    def moved(rows: list[list[Decimal]]) -> list[list[Decimal]]:
        return [[sum(map(mul, row, column), Decimal(0)) for column in columns] for row in rows]

    plain = tilted = [[Decimal(int(v == w)) for w in states] for v in states]
    for place in places:
        plain, passed = moved(plain), moved(tilted)
        for end in states:  # known here: what it adds itself is the same for both secrets
            if place or begin is None or begin[end]:
                keep([passed[v][end] / plain[v][end] for v in states])
        tilted = [[passed[v][e] * tilt[place][e] for e in states] for v in states]
    ends = begin or [Decimal(1)] * len(move)
    if places:  # nobody is known on this side
        keep([sum(map(mul, tilted[v], ends)) / sum(map(mul, plain[v], ends)) for v in states])
    return worst


# --- Gaussian values (D, E, F) --------------------------------------------------------------------


def check_gaussian(claim: Claim, part: Part, covariance: Matrix) -> None:
    """Check jointly Gaussian values, over all sets of known tuples, in fractions."""
    size = part.size
    if any(covariance[j][k] != covariance[k][j] for j in range(size) for k in range(size)):
        raise Undecided("the covariance must be symmetric.")
    widths = [number(high) - number(low) for low, high in part.domains]
    if len(covariance) != size or min(widths) <= 0:
        raise Undecided("the covariance and the ranges must fit.")
    weights = [
        tuple((b - a) / width for a, b in zip(*ends, strict=True))
        for ends, width in zip(part.added, widths, strict=True)
    ]
    sets = conditionals(with_answers(covariance, weights), size, 0, frozenset())
    laplace = claim.mu is None and not part.clamped
    if laplace and part.everyone and signs_agree(covariance, weights):
        sets = itertools.islice(sets, 1)  # only who knows nobody counts (E)
    elif size > MOST_GAUSSIAN:
        raise Undecided(f"without matching signs, at most {MOST_GAUSSIAN} tuples are checked.")
    for known, inner in sets:
        for target in set(range(size)) - known:
            if part.fewest <= len(known) <= part.most:
                check_moves(claim, part, inner, target, widths)


def with_answers(covariance: Matrix, weights: Sequence[Vector]) -> Matrix:
    """Return the covariance of the tuples and, behind them, of the exact answers."""
    answers = list(zip(*weights, strict=True))
    rows = [row + [dot(answer, row) for answer in answers] for row in covariance]
    columns = list(zip(*rows, strict=True))
    return rows + [[dot(answer, column) for column in columns] for answer in answers]


def dot(one: Sequence[Fraction], other: Sequence[Fraction]) -> Fraction:
    """Return the sum of the products."""
    return sum(map(mul, one, other), Fraction(0))


def conditionals(
    covariance: Matrix, size: int, start: int, known: frozenset[int]
) -> Iterator[tuple[frozenset[int], Matrix]]:
    """Yield every set of known tuples with the covariance given it."""
    yield known, covariance
    for place in range(start, size):
        yield from conditionals(given(covariance, place), size, place + 1, known | {place})


def given(covariance: Matrix, known: int) -> Matrix:
    """Return the covariance given one more variable."""
    pivot, column = covariance[known][known], [row[known] for row in covariance]
    if pivot <= 0:
        raise Undecided("the covariance must be positive definite.")
    return [
        [value - mine * its / pivot for value, its in zip(row, column, strict=True)]
        for row, mine in zip(covariance, column, strict=True)
    ]


def check_moves(
    claim: Claim, part: Part, inner: Matrix, target: int, widths: list[Fraction]
) -> None:
    """Compare how far the answers move, where x_i moves over its range, with the promise."""
    size, row, name = part.size, inner[target], part.names[target]
    shares = [row[u] / row[target] * widths[target] / width for u, width in enumerate(widths)]
    if part.clamped:  # every value moves with x_i or against it, and not beyond its range
        bounds = []
        for answer in range(len(row) - size):
            reach = [ends[1][answer] - ends[0][answer] for ends in part.added]
            parts = [r * max(-1, min(1, share)) for r, share in zip(reach, shares, strict=True)]
            own = parts.pop(target)
            side = 1 if own >= 0 else -1
            along = sum((max(Fraction(0), side * move) for move in parts), abs(own))
            against = sum((max(Fraction(0), -side * move) for move in parts), -abs(own))
            bounds.append(max(along, against))
        claim.judge_moves(bounds, name, attained=False)
        return
    moves = [value / row[target] * widths[target] for value in row[size:]]
    if claim.mu is None:
        claim.judge_moves(moves, name)
    else:
        released = [list(values) for values in inner]
        for place in range(size, len(row)):
            released[place][place] += 1  # the noise of this answer
        for place in range(size, len(row)):
            released = given(released, place)
        gain = 1 / released[target][target] - 1 / row[target]
        claim.judge_mu(gain * widths[target] ** 2, name)


def signs_agree(covariance: Matrix, weights: Sequence[Vector]) -> bool:
    """Whether covariance, inverse and weights agree in their signs (E).

    An inverse with no positive entry off its diagonal and a covariance with no negative one make
    both positive definite.
    """
    size = len(covariance)
    if size > MOST_INVERTED or any(len(weight) > 1 or not weight[0] for weight in weights):
        return False
    side = [1 if weight[0] > 0 else -1 for weight in weights]
    units = [[Fraction(int(j == k)) for k in range(size)] for j in range(size)]
    inverse = solve([row + unit for row, unit in zip(covariance, units, strict=True)])
    return inverse is not None and all(
        side[j] * side[k] * covariance[j][k] >= 0
        and (j == k or side[j] * side[k] * inverse[j][k] <= 0)
        for j, k in itertools.product(range(size), repeat=2)
    )


def check_alike(claim: Claim, part: Part) -> None:
    """Check members who are alike (groups), or steps alike (series)."""
    model, size = part.model, part.size
    stored, variance = model["correlation"], model["variance"]
    low, high = numbers(stored if isinstance(stored, list) else [stored, stored])
    series = model["type"] == "GaussianSeries"
    if not -1 < low <= high < 1 or (not series and 1 + (size - 1) * low <= 0):
        raise Undecided("the correlation is not that of any law.")
    simple = len(set(map(tuple, part.added))) == 1 and part.everyone and low >= 0
    if simple and (variance is None or (claim.mu is None and not part.clamped)):
        # Who knows nobody else learns most; of a series, about its middle (F).
        middle = (size - 1) // 2
        shares = (high ** abs(t - middle) if series else high for t in range(size) if t != middle)
        factor = 1 + sum(shares, Fraction(0))
        moves = [factor * (b - a) for a, b in zip(*part.added[middle], strict=True)]
        claim.judge_moves(moves, part.names[middle])
    elif low == high and variance is not None:
        steps = [[abs(j - k) if series else int(j != k) for k in range(size)] for j in range(size)]
        covariance = [[number(variance) * low**step for step in row] for row in steps]
        check_gaussian(claim, part, covariance)
    else:
        raise Undecided("unequal members, or a range below 0, are not decided here.")


# --- Elimination (H) ------------------------------------------------------------------------------


class Couplings:
    """What couples tuples, as e^{D/2} with None for infinity, and their budgets, as e^{ε/2}."""

    def __init__(self, budgets: Sequence[Decimal]) -> None:
        self.budgets = list(budgets)
        self.near: list[dict[int, Decimal | None]] = [{} for _ in budgets]

    def add(self, one: int, other: int, factor: Decimal | None) -> None:
        """Let two tuples depend on each other by that much more."""
        held = self.near[one].get(other, Decimal(1))
        grown = None if factor is None or held is None else held * factor
        self.near[one][other] = self.near[other][one] = grown

    def bound(self, target: int) -> Decimal:
        """Sum out all others, the farthest first, and return e^{ε/2} of what is left."""
        inner = Couplings(self.budgets)
        inner.near = [dict(held) for held in self.near]
        reached = [target]
        for place in reached:
            reached += [other for other in self.near[place] if other not in reached]
        for place in reached[:0:-1]:
            around = list(inner.near[place].items())
            for other, coupling in around:
                inner.budgets[other] *= joined(coupling, inner.budgets[place]) or Decimal(1)
                del inner.near[other][place]
            for (one, first), (two, second) in itertools.combinations(around, 2):
                inner.add(one, two, joined(first, second))
        return inner.budgets[target]


def joined(one: Decimal | None, other: Decimal | None) -> Decimal | None:
    """Return e^{(a⊗b)/2} from e^{a/2} and e^{b/2}; what is infinite passes the other on."""
    if one is None or other is None:
        return other if one is None else one
    return (one * other + 1) / (one + other)


def factors_of(model: dict[str, Any]) -> Iterator[tuple[list[int], list[int], list[Fraction]]]:
    """Yield the tuples of every factor of a network, their numbers of values, and its cells."""
    sizes = [len(values) for values in model["domains"]]
    if model["type"] == "MarkovTree":
        pairs = enumerate(zip(model["parents"], model["tables"], strict=True))
        found = [([j] if parent is None else [parent, j], table) for j, (parent, table) in pairs]
    else:
        found = list(zip(model["scopes"], model["factors"], strict=True))
    for scope, table in found:
        cells = numbers(flat(table))
        shape_of = [sizes[whole_number(place)] for place in scope]
        if len(cells) != math.prod(shape_of) or min(cells) < 0 or len(set(scope)) < len(scope):
            raise Undecided("a factor does not fit its tuples.")
        yield scope, shape_of, cells


def network_cells(part: Part) -> list[Fraction]:
    """Write a network out as a table, up to a factor."""
    factors = [
        (scope, dict(zip(itertools.product(*map(range, sizes)), cells, strict=True)))
        for scope, sizes, cells in factors_of(part.model)
    ]
    every = itertools.product(*(range(len(values)) for values in part.domains))
    return [
        math.prod((f[tuple(cell[p] for p in scope)] for scope, f in factors), start=Fraction(1))
        for cell in every
    ]


def check_network(claim: Claim, part: Part) -> None:
    """Check a small network as a table, and any other by elimination."""
    model = part.model
    stated = model["type"] == "MixingChain" or model.get("influences") is not None
    if not stated and math.prod(map(len, part.domains)) <= 2**10:
        check_table(claim, part, lambda: network_cells(part))
        return
    part.judge_strongest(claim)
    couplings = Couplings([(decimal(spread(values)) / 2).exp() for values in part.added])
    if model["type"] == "MixingChain":
        for place in range(part.size - 1):
            couplings.add(place, place + 1, (decimal(number(model["diameter"])) / 2).exp())
    elif stated:
        for one, other, strength in model["influences"]:
            couplings.add(
                whole_number(one), whole_number(other), (decimal(number(strength)) / 2).exp()
            )
    else:
        for scope, sizes, cells in factors_of(model):
            for a, b in itertools.combinations(range(len(scope)), 2):
                couplings.add(scope[a], scope[b], coupling_of(sizes, cells, a, b))
    for target, name in enumerate(part.names):
        if part.fewest < part.size - 1:
            found = couplings.bound(target)
            if found * found > decimal(claim.epsilon).exp() * (1 - SLACK):
                raise Undecided(f"elimination leaves more than ε about {name}.")


def coupling_of(sizes: list[int], cells: list[Fraction], a: int, b: int) -> Decimal | None:
    """Return e^{D/2} of two tuples of a factor: the root of its largest cross-ratio."""
    if not min(cells):
        return None
    places = list(itertools.product(*map(range, sizes)))
    value = dict(zip(places, cells, strict=True))
    largest = Fraction(1)
    for place in places:
        for v, w in itertools.product(range(sizes[a]), range(sizes[b])):
            one, two, both = list(place), list(place), list(place)
            one[a] = both[a] = v
            two[b] = both[b] = w
            quotient = value[place] * value[tuple(both)] / (value[tuple(one)] * value[tuple(two)])
            largest = max(largest, quotient)
    return decimal(largest).sqrt()


# --- From the file to its parts -------------------------------------------------------------------


def check_part(claim: Claim, part: Part) -> None:
    """Check a set member by member, blocks one by one, and any other model as its family says."""
    model, kind = part.model, part.model["type"]
    if model["provenance"] == "private" or "digest" in model:
        raise Undecided("the numbers of the model are withheld.")
    rows = [query for query in claim.queries if query["type"] == "RowQuery"]
    if kind == "ModelSet":
        for member in model["models"]:
            check_part(claim, replace(part, model=member))
    elif kind == "Blocks":
        check_blocks(claim, part)
    elif rows and (len(claim.queries) > 1 or kind not in ("Unknown", "GaussianGroup")):
        raise Undecided("this question about rows is not decided here.")
    else:
        if rows:
            added = row_additions(rows[0], claim.scales[0], part)
            part = replace(part, added=added, clamped=True)
        check_family(claim, part)


def check_family(claim: Claim, part: Part) -> None:
    """Check a model without inner structure."""
    model, kind = part.model, part.model["type"]
    tables: dict[str, Callable[[], list[Fraction]]] = {
        "JointTable": lambda: law(flat(model["probabilities"])),
        "CategoryGroup": lambda: group_cells(part),
        "BinaryGroup": lambda: group_cells(part),
        "MarkovChain": lambda: chain_cells(part),
        "MarkovTree": lambda: network_cells(part),
        "Network": lambda: network_cells(part),
    }
    searches: dict[str, Callable[[Claim, Part], None]] = {
        "BinaryGroup": check_group,
        "MarkovChain": check_chain,
        "MarkovTree": check_network,
        "MixingChain": check_network,
        "Network": check_network,
    }
    gaussian = kind in ("Gaussian", "GaussianGroup", "GaussianSeries")
    if claim.mu is not None and not gaussian and kind != "Unknown":
        raise Undecided("Gaussian noise on finite laws is not decided here.")
    if part.added and kind in searches:
        searches[kind](claim, part)
    elif kind in tables:
        check_table(claim, part, tables[kind])
    elif not part.added:
        raise Undecided(f"a function of a {kind} is not decided here.")
    elif kind == "Unknown":  # who is not known moves with the target (G)
        reach = [spread(values) for values in part.added]
        for target, name in enumerate(part.names):
            others = sorted(reach[:target] + reach[target + 1 :], reverse=True)
            total = sum(others[: part.size - 1 - part.fewest], reach[target])
            claim.judge_moves([total], name)
    elif kind in ("GaussianGroup", "GaussianSeries"):
        check_alike(claim, part)
    elif gaussian:
        check_gaussian(claim, part, [numbers(row) for row in model["covariance"]])
    else:
        raise Undecided(f"a model of the kind {kind} is not decided here.")


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
        inner = Part(
            model=block,
            names=part.names[own],
            domains=part.domains[own],
            added=part.added[own],
            fewest=max(0, part.fewest - (total - size)),
            most=min(size - 1, part.most),
            clamped=part.clamped,
        )
        try:
            check_part(claim, inner)
        except Broken as found:
            if part.fewest == 0 and part.most == total - 1:
                raise
            raise Undecided(f"without what blurs the answer further, {found}") from None


def check(stored: Any) -> tuple[int, str]:
    """Decide about the content of a file: 0 proved, 1 broken, 2 undecided, and why."""
    with localcontext(DIGITS):
        try:
            if stored["type"] == "Release":
                stored = stored["calibration"]
            if (stored["type"], stored["schema"]) != ("Calibration", "pdp-calibrate/1"):
                raise Undecided("this is no calibration of pdp-calibrate/1.")
            claim, model, who = Claim.read(stored), stored["model"], stored["adversaries"]
            names, domains, copies = shape(model)
            others = sum(copies) - 1
            fewest = others if who["at_least"] is None else whole_number(who["at_least"])
            most = others if who["at_most"] is None else min(others, whole_number(who["at_most"]))
            if fewest > most:
                raise Undecided("nobody is admitted, so nothing is promised.")
            kinds = {query["type"] for query in claim.queries}
            added = [] if "Custom" in kinds else [[()] * len(values) for values in domains]
            if not kinds & {"Custom", "RowQuery"}:
                added = additions(claim, names, domains, copies)
            clamped = all(query.get("clamp") is True for query in claim.queries)
            check_part(claim, Part(model, names, domains, added, fewest, most, clamped))
        except Broken as found:
            return BROKEN, f"Not so: {found}"
        except Undecided as found:
            return UNDECIDED, f"Cannot decide: {found}"
        except (KeyError, TypeError, ValueError, IndexError, ArithmeticError) as found:
            return UNDECIDED, f"Cannot decide: the file is damaged ({type(found).__name__})."
    promise = f"ε = {float(claim.epsilon):g}" + (
        f", δ = {float(claim.delta):g}" if claim.mu else ""
    )
    return PROVED, f"Proved: nobody learns more than {promise}."


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
