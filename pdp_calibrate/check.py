"""Decide whether noise keeps its promise, without the library that calibrated it.

    python check.py release.json        (or: pdp-calibrate check release.json; or a ledger's file)

It answers 0: proved; 1: not so, an adversary breaks it, or what the file says of itself does not
follow; 2: cannot decide. It shares no line with the engines. A certificate says where to look,
never what to believe: only the theorems below prove anything; the documentation has the proofs.

The promise. A database is one draw x of correlated tuples from a law θ. For every tuple i, every
set K of others that an adversary may know, every x_K of positive probability, every two values
v, v' of x_i that are possible then, and every output r, p(r | x_i = v, x_K) ≤ e^ε p(r | x_i = v',
x_K). With Gaussian noise the densities are no easier to tell apart than N(0,1) and N(μ,1), which is
δ = Φ(μ/2 - ε/μ) - e^ε Φ(-μ/2 - ε/μ). Who knows everyone else learns what changing x_i alone does to
the answer, whatever θ says. Answers and noise are exact; rounding is charged by the library.

A  (outputs). With Laplace noise densities are mixtures of e^{-|r-s|/λ} over the answers s, and the
   largest quotient of two is at one of the s; of several answers, at a point of their grid.
B  (blocks). An average over what says nothing about x_i has no larger quotient than the worst
   single case: independent blocks whose answers add up may be checked one by one.
C  (Gaussian values). Laplace noise: moving x_i by M costs M·|β|/λ, β = Cov(f, x_i | x_K) over
   Var(x_i | x_K). Gaussian noise: μ² = M²·(1/Var(x_i | x_K, r) - 1/Var(x_i | x_K)). Values clamped
   into their ranges: x_u moves by at most min(M_u, M·|β_u|), β_u its own coefficient on x_i.
D  (members alike). Equal weights a, everyone admitted: with a common correlation ρ the answer moves
   by at most a·M·(1 + (m-1)·max(ρ, 0)), in a series with φ ≥ 0 by a·M·Σ_t φ^{|t-i|}.
E  (any dependence). Nothing is assumed: all tuples of the block may move at once.
F  (order). If the steps of a chain favour order (entries > 0, all 2×2 minors ≥ 0) and no answer
   falls in any state, the largest quotient is at r → ±∞: one of E[e^{±Σf/λ} | …].
G  (alternation). Two states, all minors ≤ 0, equal weights: no answer moves further than by x_i.
H  (sphere). One answer, Laplace noise, K known and R undecided: the residual of x_i given K and a
   part of R lies on a sphere whose diameter is the projection of x_i on R, which bounds |β|.
I  (elimination). D_kl is the largest log cross-ratio of θ in (x_k, x_l), infinite if a factor has a
   zero; e_j how far x_j alone moves the log-likelihood. Summing out x_j leaves at most D_kl + D_jk
   ⊗ D_jl and e_k + D_jk ⊗ e_j, a ⊗ b = 2 log (1+AB)/(A+B), A = e^{a/2}, B = e^{b/2}; in any order.
J  (counts). In a group, given x_i and how many known members hold each value, a count of the
   unknown has the mass of one such arrangement times the number of them.
K  (windows). In a chain only the nearest known on either side matter. To count x_{i±a} as known, if
   it is not, changes no quotient by more than the largest cross-ratio of a steps.
L  (plans). P and Q are the laws of the answers given (v, x_K) and (v', x_K), c_kl how far answers k
   and l are apart. Every plan π ≥ 0 with row sums P proves that no quotient of their densities
   exceeds max_l Σ_k π_kl e^{c_kl} / Q_l, for a density given k is at most e^{c_kl} times that of l.
M  (cells). K known, R undecided: in the cells of R the odds of v against v' lie in [y, y e^a], the
   densities of r are g and g', and one of these in [z, z e^b]. Whatever part of R is known too, no
   quotient at r exceeds max g/g' · e^{a ⊗ b}.

Numbers are the exact fractions that their floats are. Densities are sums, products and quotients of
positive decimals of 50 digits: after fewer than 10^12 operations right to a part in 10^36.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, Subnormal, localcontext
from fractions import Fraction
from functools import lru_cache, partial, reduce
from itertools import chain, combinations, compress, pairwise, permutations, product
from operator import add, le, lt, mul, or_, truediv
from pathlib import Path
from typing import Any

PROVED, BROKEN, UNDECIDED = 0, 1, 2
DAMAGE = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)
SLACK, ONE, INFINITE = Decimal("1e-30"), Decimal(1), Decimal("Infinity")
NEGLIGIBLE = Decimal("1e-17")  # of ε: calibrated noise leaves more than that
CLOSE, TINY = 1e-12, 1e-60  # of floats: see `Division`
MASSES, ANSWERS = 0, -1  # tables that belong to no output
MOST_CELLS = 2**12  # of a model that is written out as a table; of a table four times as many
MOST_WORK = 6 * 10**7  # steps of the innermost loops: about a minute
MOST_ATOMS = 2**11  # of what the tuples between two known ones add together
MOST_GAUSSIAN = 13  # tuples of a covariance whose sets of known tuples are all checked
FORMAT = 2  # the latest version of files that this checker knows
KINDS = {"Gaussian", "GaussianGroup", "GaussianSeries", "Unknown", "BinaryGroup", "CategoryGroup"}
KINDS |= {"JointTable", "MarkovChain", "MixingChain", "MarkovTree", "Network"}
ROWS = "kind value bounds where by independent missing public sizes most keep_by seed every"
FIELDS = {"Sum": "over clamp", "Mean": "over clamp", "Linear": "by clamp weights"}  # of queries
FIELDS |= {"Count": "over values", "Histogram": "over categories", "Custom": "over table"}
FIELDS |= {"RowQuery": ROWS}  # another field could change what is asked
LEDGER = "schema version type epsilon adversaries model draws entries checksum anchor total"
FIELDS |= {"release": "queries scales rows epsilon layout sizes", "charge": "dp_epsilon"}
FIELDS |= {"estimation": "dp_epsilon", "entry": "kind note draw at spent method"}
FIELDS |= {"ledger": f"{LEDGER} certificate"}

Vector = tuple[Fraction, ...]
Factor = dict[tuple[int, ...], Fraction]
Mixture = dict[int, Decimal]  # masses at whole multiples of a unit
Stored = dict[str, Any]
Tables = dict[int, list[Any]]
Side = tuple[list[int], int, str, list[Mixture]]  # targets, unknown between, where it ends, laws


class Undecided(Exception):  # noqa: N818 - an answer, not an error
    """The file cannot be decided here, and why."""


class Broken(Exception):  # noqa: N818 - an answer, not an error
    """The promise does not hold, or what the file says does not follow, and why."""


def need(condition: object, otherwise: str) -> None:
    """Stop the check where what it needs is not there."""
    if not condition:
        raise Undecided(otherwise)


# --- Numbers, and what is claimed -----------------------------------------------------------------


def number(value: Any) -> Fraction:
    """Return a finite number as the exact fraction that it is."""
    plain = isinstance(value, int | float | Fraction) and not isinstance(value, bool)
    need(plain and math.isfinite(value), "a finite number is needed where there is none.")
    return Fraction(value)


def whole_number(value: Any) -> int:
    """Return a whole number of at least 0."""
    need(type(value) is int and value >= 0, "a whole number is needed where there is none.")
    return int(value)


def numbers(values: Any, *sizes: int) -> list[Fraction]:
    """Return the numbers of nested lists, in order, if the lists have these sizes."""
    if not sizes:
        return [number(values)]
    need(isinstance(values, list) and len(values) == sizes[0], "a table does not fit its tuples.")
    return [found for part in values for found in numbers(part, *sizes[1:])]


def law(values: Sequence[Fraction]) -> list[Fraction]:
    """Return probabilities: none negative, adding up to 1 as floats do, made to do so exactly."""
    total = sum(values, Fraction(0))
    need(min(values) >= 0 and abs(total - 1) <= Fraction(1, 10**6), "probabilities add up to 1.")
    return [value / total for value in values]


def hashable(value: Any) -> Any:
    """Return a name or a value so that it can be looked up."""
    return tuple(map(hashable, value)) if isinstance(value, list) else value


def listed(values: Any) -> list[Any]:
    """Return a list of names or values so that they can be looked up."""
    need(isinstance(values, list), "a list is needed where there is none.")
    return list(hashable(values))


def digits(precision: int) -> Context:
    """Return arithmetic of so many digits in which nothing is lost: what is too small stops it."""
    context = Context(prec=precision, Emax=MAX_EMAX, Emin=MIN_EMIN)
    context.traps[Subnormal] = True
    return context


def decimal(value: Fraction | int) -> Decimal:
    """Return a fraction, rounded to the digits in use."""
    return Decimal(value.numerator) / Decimal(value.denominator)


@lru_cache(maxsize=2**16)
def kernel(d: Fraction) -> Decimal:
    """Return e^{-d}."""
    return (-decimal(d)).exp()


def normal(x: Decimal) -> Decimal:
    """Return Φ(x) = 1/2 + φ(x)(x + x³/3 + x⁵/15 + …), to an error of 10^-390 for |x| ≤ 40."""
    terms = ((2 - k % 4) * (Decimal(16) / 5**k - Decimal(4) / 239**k) / k for k in range(1, 601, 2))
    pi = sum(terms, Decimal(0))  # Machin's formula
    term, total, k = x, x, 1
    while abs(term) > Decimal("1e-395") or k < abs(x * x):
        k += 2
        term = term * x * x / k
        total += term
    return Decimal("0.5") + (-x * x / 2).exp() / (2 * pi).sqrt() * total


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
    stated: Fraction  # the leakage that the file states, at most ε
    certificate: Stored
    charged: Fraction  # by how much other mechanisms, unknown inside, may move any log-likelihood
    blurred: bool  # whether more noise is left out, so that no bound is known to be reached

    @classmethod
    def read(cls, stored: Stored) -> Claim:
        """Take the claim out of a calibration."""
        fields = [stored[field] for field in ("query", "scale", "noise")]
        queries, scales, noises = fields if isinstance(fields[0], list) else ([x] for x in fields)
        gaussian, hints = noises[0] == "Gaussian", stored.get("certificate") or {}
        kinds = {"Gaussian"} if gaussian else {"Laplace", "discrete Laplace"}
        fits = len(queries) == len(scales) == len(noises) and set(noises) <= kinds
        need(fits, "there must be one scale and one kind of noise per query.")
        known = all(set(query) <= {"type", *FIELDS[query["type"]].split()} for query in queries)
        need(known and isinstance(hints, dict), "the file says what is not decided here.")
        delta, mu = (number(stored[field]) if gaussian else None for field in ("delta", "mu"))
        epsilon, charged = number(stored["epsilon"]), number(stored.get("charged", 0))
        exact, rows = numbers(scales, len(scales)), whole_number(stored["rows"])
        fine = 0 < epsilon < 10**4 and min(exact) > 0 < rows and not (mu and mu < 0)
        need(fine and charged >= 0, "epsilon, scales, μ and rows must be positive.")
        leakage = None if gaussian else stored.get("leakage")
        said = number(leakage["value"]) if leakage else epsilon
        if said > epsilon:
            raise Broken(f"it does not follow: the file itself states {float(said):.9g}.")
        asked = exact, noises, queries, rows
        return cls(epsilon, delta or Fraction(0), mu, *asked, said, hints, charged, charged > 0)

    def judge(self, quotient: Decimal, target: Any, *, reached: bool = True) -> None:
        """Compare a quotient of densities, right to a part in 10^36, with what is stated and ε."""
        exceeds = reached and quotient > kernel(-self.stated) * (1 + SLACK)
        if exceeds or quotient > kernel(-self.epsilon) * (1 - SLACK):
            self.refuse(quotient.ln(), target, reached=exceeds)

    def judge_moves(self, moves: Sequence[Fraction], target: Any, *, reached: bool = True) -> None:
        """Compare how far a secret moves the answers, in units of their noise, with the promise."""
        leakage = sum(map(abs, moves), Fraction(0))
        if self.mu is not None:
            self.judge_mu(sum((move * move for move in moves), Fraction(0)), target, reached)
        elif leakage > (self.stated if reached else self.epsilon):
            self.refuse(leakage, target, reached=reached)

    def judge_mu(self, square: Fraction, target: Any, reached: bool) -> None:  # noqa: FBT001
        """Compare μ² with the μ that is stated, and with its (ε, δ)."""
        root = decimal(square).sqrt() * (1 + SLACK)
        if square > (self.mu or 0) ** 2 or (square and self.excess(root) > self.delta):
            self.refuse(root, target, reached=reached)

    def refuse(self, leakage: Fraction | Decimal, target: Any, *, reached: bool) -> None:
        """Say that somebody learns too much or, where a bound alone is exceeded, that they may."""
        learned = f"{'' if self.mu is None else 'μ = '}{float(leakage):.9g} about {target}."
        if reached and not self.blurred:
            raise Broken(f"somebody learns {learned}")
        raise Undecided(f"somebody may learn {learned}")

    def excess(self, mu: Decimal) -> Decimal:
        """Return δ at the ε that is stated, a little too large, for noise that leaks μ."""
        with localcontext(digits(400)):
            epsilon = decimal(self.epsilon)
            high, low = mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu
            if high > 35 or low < -35:  # too far for the series: the first term alone is larger
                return normal(min(max(high, Decimal(-35)), Decimal(35))) + Decimal("1e-260")
            return (normal(high) - epsilon.exp() * normal(low)) * (1 + Decimal("1e-20"))


# --- What is asked, and about whom ----------------------------------------------------------------


def shape(model: Stored) -> tuple[list[Any], list[Any], list[int]]:
    """Return the names of a model, the values of each tuple, and how many copies there are."""
    names, kind = listed(model["names"]), model["type"]
    fine = whole_number(model.get("version", 1)) <= FORMAT and len(set(names)) == len(names) > 0
    need(fine, "the model is of a later version, or its names do not differ.")
    if kind in ("ModelSet", "Blocks"):
        inner = list(map(shape, model["models"]))
        if kind == "ModelSet":
            fits = all(found == inner[0] for found in inner) and inner[0][0] == names
            need(fits, "the models of a set must be about the same tuples.")
            return inner[0]
        counts = [whole_number(count) for count in model["counts"]]
        copies = [k for (own, _, _), k in zip(inner, counts, strict=True) for _ in own]
        plain = min(counts) > 0 and all(max(own) == 1 for _, _, own in inner)
        need(plain and len(copies) == len(names), "blocks of copied blocks are not decided here.")
        return names, [values for _, found, _ in inner for values in found], copies
    values = model | {"domain": [0, 1]} if kind == "BinaryGroup" else model
    fields = {"domains", "domain", "states", "categories", "bounds"} & set(values)
    need(kind in KINDS and len(fields) == 1, f"{kind} is not decided here.")
    field = fields.pop()
    held, intervals = values[field], field == "bounds"
    several = field == "domains" or (intervals and isinstance(held[0], list))
    domains = list(held) if several else [held] * len(names)
    if intervals:
        domains = [tuple(numbers(ends, 2)) for ends in domains]
        need(all(low < high for low, high in domains), "a range must begin below its end.")
    differ = all(len(set(map(hashable, values))) == len(values) > 0 for values in domains)
    sizes = {len(domains), model.get("length", len(names)), model.get("size", len(names))}
    need(differ and sizes == {len(names)}, "each tuple needs values that differ, in its size.")
    return names, domains, [1] * len(names)


def additions(claim: Claim, copies: dict[Any, int], domains: Sequence[Any]) -> list[list[Vector]]:
    """Return, per tuple and value, what it adds to the answers, each in units of its own noise."""
    names = list(copies)
    found: list[list[Vector]] = [[()] * len(values) for values in domains]
    for query, scale, noise in zip(claim.queries, claim.scales, claim.noises, strict=True):
        kind, over, counted = query["type"], query.get("over"), None
        chosen = names if over is None else listed(over)
        share = claim.rows * sum(copies[name] for name in chosen) if kind == "Mean" else 1
        weights = dict.fromkeys(chosen, Fraction(1, share))
        if kind == "Linear":
            by_name = query["by"] == "name"
            pairs = query["weights"] if by_name else zip(names, query["weights"], strict=True)
            weights = {hashable(name): number(weight) for name, weight in pairs}
        elif kind == "Count":
            counted = [set(listed(query["values"]))]
        elif kind == "Histogram":
            every = query["categories"] or list(chain(*(domains[names.index(k)] for k in chosen)))
            counted = [{value} for value in dict.fromkeys(listed(every))]
        each = weights and not set(weights) - set(names) and len(chosen) == len(set(chosen))
        need(each, "a query must name tuples that are there, each once.")
        need(not counted or not any(isinstance(one, tuple) for one in domains), "nothing to count.")
        for own, name, values in zip(found, names, domains, strict=True):
            weight = weights.get(name, Fraction(0))
            for k, value in enumerate(values):
                if counted is None:  # yes and no are 1 and 0
                    answer = [weight * number(value * 1) if weight else weight]
                else:
                    answer = [weight * (hashable(value) in group) for group in counted]
                own[k] += in_units(answer, scale, noise)
    return found


def in_units(answer: Sequence[Fraction], scale: Fraction, noise: str) -> Vector:
    """Return answers in units of their noise; discrete noise needs whole ones."""
    need(noise != "discrete Laplace" or all(x.denominator == 1 for x in answer), "not whole.")
    return tuple(x / scale for x in answer)


def distance(one: Vector, other: Vector) -> Fraction:
    """Return how far two answers are apart, in units of the noise."""
    return sum((abs(a - b) for a, b in zip(one, other, strict=True)), Fraction(0))


def spread(values: Sequence[Vector]) -> Fraction:
    """Return how far two of the answers are apart at most."""
    apart = {min(values), max(values)} if len(values[0]) == 1 else set(values)
    return max(distance(a, b) for a, b in product(apart, repeat=2))


@dataclass(frozen=True)
class Part:
    """Tuples that are checked together: a model without inner structure, or one block."""

    claim: Claim
    model: Stored
    names: Sequence[Any]
    domains: Sequence[Sequence[Any]]  # of a tuple on an interval: its two ends, as a tuple
    added: Sequence[Sequence[Vector]]  # per tuple and value, in units of the noise; or nothing
    size: int  # how many tuples there are
    fewest: int  # how many others an adversary knows at least,
    most: int  # and at most

    def order(self, target: int, otherwise: list[int]) -> list[int]:
        """Return the order of all other tuples that the certificate names, if it names one."""
        orders = self.claim.certificate.get("orders", {})
        order = orders.get(str(target), otherwise)
        if str(target) in orders and sorted([*order, target]) != list(range(self.size)):
            name = self.names[target]
            raise Broken(f"it does not follow: the order about {name} must name all others once.")
        return list(order)


def row_additions(part: Part) -> list[list[Vector]]:
    """Return how far one record can move all numbers of a question about rows together, in L1."""
    claim, kind = part.claim, part.model["type"]
    query, scale = claim.queries[0], claim.scales[0]
    asked, value, public = query["kind"], query["value"], set(query["public"])
    missing, by = query["missing"], [one for one in query["by"] if one["column"] not in public]
    labels = [len(one["values"]) + (missing.get(one["column"]) == "category") for one in by]
    moves = math.prod(labels) > 1  # from one part of the breakdown into another
    leaves = by or value in missing or {one["column"] for one in query["where"]} - public
    low, high = (Fraction(0), Fraction(1)) if asked == "count" else numbers(query["bounds"], 2)
    laplace = claim.noises[0] == "Laplace" or (claim.mu is None and asked == "count")
    here = kind in ("Unknown", "GaussianGroup") and asked in ("count", "sum", "mean")
    here = here and laplace and len(claim.queries) == 1 and missing.get(value, "zero") == "zero"
    need(here, "this question about rows is not decided here.")
    if kind == "GaussianGroup":
        plain = not (moves or leaves or asked == "count") and part.model["correlation"][0] >= 0
        plain = plain and all(tuple(ends) == (low, high) for ends in part.domains)
        need(plain, "a correlation says nothing about what several columns decide.")
    if asked == "mean" and (moves or leaves):  # a sum, in half ranges, and a count
        low, high = Fraction(0), Fraction(4 if moves else 2)
    elif moves:
        low, high = Fraction(0), 2 * max(abs(low), abs(high))
    elif leaves:
        low, high = min(low, Fraction(0)), max(high, Fraction(0))
    return [[(low / scale,), (high / scale,)]] * part.size


# --- Finite families: cell by cell, by plans, by elimination, along a chain, by counts ------------


def check_finite(part: Part) -> None:
    """Check who knows everyone else, then all others in the first way that decides."""
    claim, ways = part.claim, [check_table, check_counts, check_chain, check_plans, check_couplings]
    need(claim.mu is None, "Gaussian noise on finite laws is not decided here.")
    small = math.prod(map(len, part.domains)) <= 4 * MOST_CELLS
    need(part.added or (small and not claim.charged), "a function of so many cells is too much.")
    for target, name in enumerate(part.names if part.most == part.size - 1 else ()):
        cells = [] if part.added else by_value(part, target, answers_of(part))
        for line in zip(*cells, strict=True) if cells else [part.added[target]]:
            claim.judge_moves([spread(line) + claim.charged], name)  # whether possible or not
    for way in ways[-1:] if claim.charged else ways if part.added else ways[:1]:
        try:
            return way(part)
        except Undecided as found:
            reason = found
    raise reason


def answers_of(part: Part) -> list[Vector]:
    """Return the answer in every cell: of additions their sum, of a function as it is stored."""
    if part.added:
        every = (zip(*one, strict=True) for one in product(*part.added))
        return [tuple(sum(column, Fraction(0)) for column in columns) for columns in every]
    query, scale, noise = part.claim.queries[0], part.claim.scales[0], part.claim.noises[0]
    need(part.claim.rows == len(part.claim.queries) == 1, "a function is of one row, alone.")
    chosen = part.names if query["over"] is None else listed(query["over"])
    places = [list(part.names).index(name) for name in chosen]
    stored = {hashable(cell): number(value) for cell, value in query["table"]}
    keys = (tuple(hashable(cell[p]) for p in places) for cell in product(*part.domains))
    return [in_units([stored[key]], scale, noise) for key in keys]


def weights_of(part: Part) -> list[Decimal]:
    """Return how likely every cell is, times a constant."""
    sizes, kind = [len(values) for values in part.domains], part.model["type"]
    largest = {"JointTable": 4 * MOST_CELLS, "MixingChain": 0}.get(kind, MOST_CELLS)
    need(math.prod(sizes) <= largest, "it is too large.")
    factors, cells = list(factors_of(part)), product(*map(range, sizes))
    found = (math.prod(f[tuple(cell[p] for p in scope)] for scope, f in factors) for cell in cells)
    return [decimal(weight) for weight in found]


def by_value(part: Part, target: int, cells: Sequence[Any], order: Any = None) -> list[list[Any]]:
    """Return what is listed for all cells in rows, one for each value of a target."""
    sizes = [len(values) for values in part.domains]
    steps = [math.prod(sizes[j + 1 :]) for j in range(part.size)]
    others = order or [j for j in range(part.size) if j != target]
    starts = [range(0, sizes[j] * steps[j], steps[j]) for j in (target, *others)]
    return [[cells[k + sum(rest)] for rest in product(*starts[1:])] for k in starts[0]]


def check_table(part: Part) -> None:
    """Check everyone who does not know everyone else, at every output (A)."""
    weights, answers = weights_of(part), answers_of(part)
    cells = list(zip(answers, weights, strict=True))
    there = {answer for answer, weight in cells if weight}
    axes = [sorted(set(column)) for column in zip(*there, strict=True)]
    many = math.prod(map(len, axes))
    need(many * max(4 * len(cells), 16 * len(there)) <= MOST_WORK, "there are too many outputs.")
    places = ((k, x) for k, values in enumerate(axes) for x in values)
    bits = {place: 1 << n for n, place in enumerate(places)}
    marks = {answer: sum(bits[place] for place in enumerate(answer)) for answer in product(*axes)}
    allowed = [marks[answer] if weight else 0 for answer, weight in cells]
    outputs, batch, work = list(product(*axes)), max(1, 2**18 // len(cells)), 0
    for start in range(0, many, batch):  # so that all tables fit into memory
        tables: Tables = {MASSES: weights, ANSWERS: allowed}
        for output in outputs[start : start + batch]:
            near = {answer: kernel(distance(output, answer)) for answer in there}
            tables[marks[output]] = [weight and weight * near[answer] for answer, weight in cells]
        for target in range(part.size):
            work = Division(part, target, tables, work).work


class Division:
    """Divides what may be known beside a target until a bound covers each part (M)."""

    # A table has a row for each value of the target, over the cells of those who are undecided: how
    # likely each is, which answers it allows, as bits, and for each output its density times that.
    # Quotients of floats from TINY to 1/TINY are off by less than CLOSE: fewer than 5,000 roundings
    # stand behind each. What is as close as that to the limit is decided in decimals.

    def __init__(self, part: Part, target: int, tables: Tables, work: int) -> None:
        """Arrange the cells in the order in which the others are decided."""
        order = part.order(target, [k for k in range(part.size) if k != target])
        places = by_value(part, target, range(len(tables[MASSES])), order)
        self.exact = {k: [[table[p] for p in row] for row in places] for k, table in tables.items()}
        self.part, self.name, self.work = part, part.names[target], work
        self.sizes, self.most = [len(part.domains[j]) for j in order], min(part.most, part.size - 2)
        self.limit = kernel(-part.claim.stated)
        every = [x for key, table in tables.items() if key != ANSWERS for x in table if x]
        plain = TINY < min(every) <= max(every) < 1 / TINY and sum(self.sizes) < 400
        kind = {ANSWERS: int} if plain else dict.fromkeys(tables, lambda x: x)
        quick = {k: [[*map(kind.get(k, float), row)] for row in self.exact[k]] for k in tables}
        self.check(quick, (), exact=not plain)

    def check(self, tables: Tables, decided: tuple[int, ...], *, exact: bool) -> None:
        """Check all who know the first of the others as decided, and any part of the rest."""
        left, known = self.sizes[len(decided) :], sum(map(lt, decided, self.sizes))
        if known > self.most or known + len(left) < self.part.fewest:
            return
        there = reduce(or_, chain(*tables[ANSWERS]))  # no other output is worse than these (A)
        tables = {key: rows for key, rows in tables.items() if key <= 0 or not key & ~there}
        limit = self.limit * (1 - SLACK) if exact else float(self.limit) * (1 - CLOSE)
        bounds = {key: bound for key, bound in self.bounds(tables).items() if bound > limit}
        tables = {key: tables[key] for key in (MASSES, ANSWERS, *bounds)}
        if bounds and not exact and (not left or max(bounds.values()) * (1 - 2 * CLOSE) <= limit):
            tables = {key: self.exact[key] for key in tables}
            for size, choice in zip(self.sizes, decided, strict=False):
                tables = divided(tables, size)[choice]
            self.check(tables, decided, exact=True)
        elif bounds and not left:
            self.part.claim.judge(max(bounds.values()), self.name)
        elif bounds:
            for choice, inner in enumerate(divided(tables, left[0])):
                self.check(inner, (*decided, choice), exact=exact)

    def bounds(self, tables: Tables) -> dict[int, Any]:
        """Bound what they learn, for each output (M): if nobody is left, it is what they learn."""
        possible, outputs = [any(row) for row in tables[MASSES]], [k for k in tables if k > 0]
        masses = list(compress(tables[MASSES], possible))
        pairs = list(combinations(range(len(masses)), 2))
        self.work += len(tables) * sum(map(len, masses))
        need(self.work <= 10 * MOST_WORK, "the table is too large.")
        if not pairs or any(0 in row for row in masses):
            return dict.fromkeys(outputs, math.inf if pairs else 1)
        root: Any = Decimal.sqrt if isinstance(masses[0][0], Decimal) else math.sqrt
        ratios = [[*map(truediv, masses[v], masses[w])] for v, w in pairs]
        odds, found = [root(max(ratio) / min(ratio)) for ratio in ratios], {}
        for key in outputs:
            rows = zip(compress(tables[key], possible), masses, strict=True)
            near = [[*map(truediv, row, mass)] for row, mass in rows]
            ranges, found[key] = [max(row) / min(row) for row in near], 1
            for (v, w), a in zip(pairs, odds, strict=True):
                quotients, b = [*map(truediv, near[v], near[w])], root(min(ranges[v], ranges[w]))
                most = max(max(quotients), 1 / min(quotients)) * ((1 + a * b) / (a + b)) ** 2
                found[key] = max(found[key], most)
        return found


def divided(tables: Tables, size: int) -> list[Tables]:
    """Return the tables if the next tuple holds each of its values and, last, if it is unknown."""
    step, found = len(tables[MASSES][0]) // size, [dict[int, list[Any]]() for _ in range(size + 1)]
    for key, rows in tables.items():
        cut = [[row[k : k + step] for row in rows] for k in range(0, size * step, step)]
        join = partial(map, or_ if key == ANSWERS else add)
        for choice, parts in enumerate(cut):
            found[choice][key] = parts
        found[size][key] = [list(reduce(join, parts)) for parts in zip(*cut, strict=True)]
    return found


def factors_of(part: Part) -> Iterator[tuple[list[int], Factor]]:
    """Yield the tuples of every factor of a finite law, and its cells."""
    model, sizes, kind = part.model, list(map(len, part.domains)), part.model["type"]
    if kind in ("MarkovChain", "MixingChain"):
        if kind == "MixingChain":  # a step of this diameter stands for all: the table is not known
            far, near = Fraction(kernel(-number(model["diameter"]))), Fraction(1)
            steps = [[far, near], [near, near]]
        else:
            first, steps = chain_laws(part)
            yield [0], {(v,): p for v, p in enumerate(first)}
        yield from (([t, t + 1], as_factor(steps)) for t in range(part.size - 1))
    elif kind in ("MarkovTree", "Network"):
        above = enumerate(model["parents"] if kind == "MarkovTree" else ())
        scopes = [[j] if up is None else [up, j] for j, up in above] or model["scopes"]
        tables = model["tables" if kind == "MarkovTree" else "factors"]
        need(scopes and not model.get("influences"), "influences alone are not decided here.")
        for scope, table in zip(scopes, tables, strict=True):
            own = [sizes[whole_number(place)] for place in scope]
            cells = numbers(table, *own)
            need(min(cells) >= 0 and any(cells) and len(set(scope)) == len(scope) > 0, "no factor.")
            if kind == "MarkovTree":  # a law in every row
                rows = (cells[start : start + own[-1]] for start in range(0, len(cells), own[-1]))
                cells = [cell for row in rows for cell in law(row)]
            yield scope, dict(zip(product(*map(range, own)), cells, strict=True))
    else:
        need(math.prod(sizes) <= 4 * MOST_CELLS, "so many cells are not written out.")
        every = list(product(*map(range, sizes)))
        if kind == "JointTable":
            cells = law(numbers(model["probabilities"], *sizes))
        else:
            one = one_arrangement(part)
            cells = [one[tuple(map(cell.count, range(sizes[0])))] for cell in every]
        yield list(range(part.size)), dict(zip(every, cells, strict=True))


def as_factor(rows: Sequence[Sequence[Fraction | Decimal]]) -> Factor:
    """Return a matrix as a factor of two tuples."""
    return {(v, w): Fraction(p) for v, row in enumerate(rows) for w, p in enumerate(row)}


def check_plans(part: Part) -> None:
    """Bound what all learn who do not know everyone else by the plans of the certificate (L)."""
    plans: Any = part.claim.certificate.get("plans")
    small = math.prod(map(len, part.domains)) <= MOST_CELLS
    need(isinstance(plans, list) and small, "no plans are given, or too many.")
    price, work = prices_between(answers_of(part)), 0
    for place, (name, p, q) in enumerate(pairs_of_laws(part)):
        work += 8 * len(p) * len(q)
        need(work <= MOST_WORK, "there are too many plans.")
        plan = plans[place] if place < len(plans) else None
        part.claim.judge(most_paid(p, q, price, plan), name, reached=False)


def prices_between(answers: Sequence[Vector]) -> Callable[[int, int], Decimal]:
    """Return e^c between two answers, numbered as they first occur."""
    different = list(dict.fromkeys(answers))
    return lru_cache(2**20)(lambda k, m: kernel(-distance(different[k], different[m])))


def pairs_of_laws(part: Part) -> Iterator[tuple[Any, Mixture, Mixture]]:
    """Yield a target and the laws of the answers given two of its values, for all that is known."""
    sizes, places = [len(values) for values in part.domains], dict[Vector, int]()
    need(8 * part.size * math.prod(2 * size for size in sizes) <= MOST_WORK, "it is too large.")
    numbered = [places.setdefault(answer, len(places)) for answer in answers_of(part)]
    cells = list(zip(product(*map(range, sizes)), numbered, weights_of(part), strict=True))
    for target, name in enumerate(part.names):
        others = [k for k in range(part.size) if k != target]
        counts = range(part.fewest, min(part.most, part.size - 2) + 1)
        for known in chain(*(combinations(others, count) for count in counts)):
            given: dict[tuple[int, ...], dict[int, Mixture]] = {}
            for cell, answer, weight in cells:
                if weight:
                    laws = given.setdefault(tuple(cell[k] for k in known), {})
                    own = laws.setdefault(cell[target], {})
                    own[answer] = own.get(answer, 0) + weight
            for laws in given.values():
                yield from ((name, p, q) for p, q in permutations(laws.values(), 2))


def most_paid(p: Mixture, q: Mixture, price: Callable[[int, int], Decimal], plan: Any) -> Decimal:
    """Return the most that a plan, a list of [from, to, mass], pays per mass of q."""
    moves, columns = [dict[int, Decimal]() for _ in p], list(q)
    for one, other, mass in plan or ():
        if number(mass) > 0:
            moves[whole_number(one)][columns[whole_number(other)]] = decimal(number(mass))
    paid = dict.fromkeys(q, Decimal(0))
    for (k, mass), row in zip(p.items(), moves, strict=True):
        to = row or {min(q, key=partial(price, k)): ONE}  # by default to the nearest
        share = mass / sum(to.values())  # whatever the plan says, a row adds up to its mass
        for m, moved in to.items():
            paid[m] += share * moved * price(k, m)
    most = max(paid[m] / mass for m, mass in q.items())
    return most * sum(q.values()) / sum(p.values())


def check_couplings(part: Part) -> None:
    """Bound what anyone learns by summing out one tuple after the other (I)."""
    work, near = 0, [dict[int, Decimal]() for _ in part.names]  # e^{D/2} of those coupled with each
    for scope, cells in factors_of(part):
        for a, b in combinations(range(len(scope)), 2):
            j, k, ratio = scope[a], scope[b], cross_ratio(cells, a, b)
            near[j][k] = near[k][j] = near[j].get(k, ONE) * ratio.sqrt()
    budgets = [kernel(-(spread(values) + part.claim.charged) / 2) for values in part.added]
    for target, name in enumerate(part.names):
        nearest, seen = [target], {target}
        for place in nearest:
            nearest += near[place].keys() - seen
            seen |= near[place].keys()
        left, told = [dict(row) for row in near], list(budgets)
        for j in part.order(target, nearest[:0:-1]):  # those whom nothing couples tell nothing
            row, left[j] = left[j], {}
            work += 4 + 4 * len(row) ** 2
            need(work <= MOST_WORK, "too many tuples are coupled.")
            for k, own in row.items():
                del left[k][j]
                told[k] *= passed_on(own, told[j])
            for (k, one), (m, other) in combinations(row.items(), 2):
                left[k][m] = left[m][k] = left[k].get(m, ONE) * passed_on(one, other)
        part.claim.judge(told[target] ** 2, name, reached=False)


def passed_on(one: Any, other: Any) -> Any:
    """Return e^{(a ⊗ b)/2} for e^{a/2} and e^{b/2}."""
    return min(one, other) if INFINITE in (one, other) else (1 + one * other) / (one + other)


def cross_ratio(cells: Factor, a: int, b: int) -> Decimal:
    """Return the largest cross-ratio of a factor in its tuples a and b, a < b."""
    quotients: dict[tuple[int, ...], list[Fraction]] = {}
    for place, cell in cells.items():
        for w in range(place[a]):
            other = cells[(*place[:a], w, *place[a + 1 :])]
            if not (cell and other):
                return INFINITE
            quotients.setdefault((w, *place[:b], *place[b + 1 :]), []).append(cell / other)
    return decimal(max([Fraction(1), *(max(found) / min(found) for found in quotients.values())]))


def chain_laws(part: Part) -> tuple[list[Fraction], list[list[Fraction]]]:
    """Return the law of the first state and the transitions, the same for all steps."""
    need(part.model["type"] == "MarkovChain", "it is no chain.")
    states, first = range(len(part.domains[0])), part.model["initial"]
    steps = [law(numbers(row, len(states))) for row in part.model["transition"]]
    need(len(steps) == len(states), "transition must be one matrix for all steps.")
    if first is not None:
        return law(numbers(first, len(states))), steps
    kept, found = [list(row) for row in steps], [Fraction(1)]
    for n in states[:0:-1]:  # leave out state after state, then put them back
        out = sum(kept[n][:n], Fraction(0))
        need(out, "the chain has no single stationary law.")
        for i in range(n):
            kept[i][n] /= out
            kept[i][:n] = [kept[i][j] + kept[i][n] * kept[n][j] for j in range(n)]
    for n in states[1:]:
        found.append(sum(map(mul, found, (row[n] for row in kept[:n])), Fraction(0)))
    return [value / sum(found) for value in found], steps


def check_chain(part: Part) -> None:
    """Check a chain: of one that favours order the limits of large outputs alone (F, G)."""
    (first, p), added = chain_laws(part), part.added
    totals = [[sum(v) for v in values] for values in added]
    order = sorted(range(len(p)), key=lambda v: sum(values[v] for values in totals))
    pairs = list(pairwise(order))  # other minors follow from these, multiplied, if no entry is 0
    minors = [p[a][v] * p[b][w] - p[a][w] * p[b][v] for (a, b), (v, w) in product(pairs, pairs)]
    alternate = len(p) == 2 and max(minors) <= 0 and len(set(map(tuple, added))) == 1
    if alternate and spread(added[0]) <= part.claim.epsilon:
        return
    rising = all(all(map(le, values[v], values[w])) for values in added for v, w in pairs)
    if rising and min(minors, default=0) >= 0 and min(map(min, [*p, first])) > 0:
        for sign in (1, -1):
            Walk(part, [[kernel(-sign * x) for x in values] for values in totals], None).check()
    else:
        Walk(part, *on_lattice(part)).check()


class Walk:
    """Goes from targets along a chain, to everyone who may be the nearest known."""

    # Without a unit a mixture is its mass, at 0, and its E[e^{±Σf/λ}], at 1 (F).

    def __init__(self, part: Part, adds: Sequence[Sequence[Any]], unit: Fraction | None) -> None:
        """Prepare the steps in both directions, the law at every place, and how far to go."""
        self.part, self.adds, self.unit, self.work = part, adds, unit, 0
        first, exact = chain_laws(part)
        self.forth = power = [[decimal(p) for p in row] for row in exact]
        self.back = list(map(list, zip(*self.forth, strict=True)))
        self.laws = [[decimal(p) for p in first]]
        for _ in part.names[1:]:
            self.laws.append([sum(map(mul, self.laws[-1], into)) for into in self.back])
        wanted = part.claim.certificate.get("radius")  # or the first that costs nothing
        if not part.most and part.size**3 * len(exact) ** 2 <= MOST_WORK:
            wanted = part.size  # who knows nobody has but one window: no need to cut it off
        little = NEGLIGIBLE * decimal(part.claim.epsilon)
        for radius in range(1, part.size + 1):
            self.radius, self.penalty = radius, cross_ratio(as_factor(power), 0, 1)
            if radius == wanted or (not wanted and self.penalty <= 1 + little):
                break
            power = [[sum(map(mul, row, into)) for into in self.back] for row in power]

    def check(self) -> None:
        """Check everybody, whoever is the nearest known on either side (K)."""
        part, claim = self.part, self.part.claim
        for own in set(map(tuple, self.adds)):
            alike = [i for i in range(part.size) if tuple(self.adds[i]) == own]
            begin = [self.moved({0: ONE} if self.unit else {0: ONE, 1: ONE}, x) for x in own]
            for targets, before, left, given in self.sides(alike, begin, -1):
                if left == "known" and not part.most:
                    continue
                for (target, *_), after, right, mixtures in self.sides(targets, given, 1):
                    ends, known = [left, right], part.size - 1 - before - after  # at most
                    if part.fewest > known or ends.count("known") > part.most:
                        continue  # nobody is admitted
                    name, far = part.names[target], ends.count("far")
                    if before == after == far == 0:  # x_i alone moves the answer
                        claim.judge_moves([spread(part.added[target])], name, reached=False)
                        continue
                    self.work += sum(map(len, mixtures))
                    quotient = largest_quotient(mixtures, self.unit) * self.penalty**far
                    claim.judge(quotient, name, reached=not far and known <= part.most)

    def sides(self, who: Sequence[int], begin: list[Mixture], direction: int) -> Iterator[Side]:
        """Yield what lies in a direction, beginning with a mixture for each value of the target."""
        ends = (self.back, [ONE] * len(begin)), (self.forth, self.laws[0])
        states, (into, last) = range(len(begin)), ends[direction < 0]
        waiting = [(who, 0, [[begin[v] if u == v else {} for u in states] for v in states])]
        while waiting:
            who, unknown, here = waiting.pop()
            inside = {i: i + direction * (unknown + 1) for i in who}
            inside = {i: place for i, place in inside.items() if 0 <= place < len(self.laws)}
            if len(inside) < len(who):
                ended = [i for i in who if i not in inside]
                yield ended, unknown, "none", [self.mixed(last, row) for row in here]
            far = unknown + 1 == self.radius
            steps = into if inside else []
            there = [[self.mixed(weights, row) for weights in steps] for row in here]
            for w in states:
                possible = [i for i, place in inside.items() if self.laws[place][w]]
                if possible:
                    yield possible, unknown, "far" if far else "known", [row[w] for row in there]
            for adds in () if far else {tuple(self.adds[place]) for place in inside.values()}:
                alike = [i for i, place in inside.items() if tuple(self.adds[place]) == adds]
                waiting.append(
                    (alike, unknown + 1, [[*map(self.moved, row, adds)] for row in there])
                )

    def moved(self, mixture: Mixture, x: Any) -> Mixture:
        """Return a mixture to which a tuple adds something."""
        if self.unit:
            return {atom + x: mass for atom, mass in mixture.items()}
        return mixture | {1: mixture[1] * x}

    def mixed(self, weights: Sequence[Decimal], mixtures: Sequence[Mixture]) -> Mixture:
        """Return the sum of mixtures with weights."""
        found: Mixture = {}
        for weight, mixture in zip(weights, mixtures, strict=True):
            self.work += len(mixture)
            for atom, mass in mixture.items() if weight else ():
                found[atom] = found.get(atom, 0) + weight * mass
        need(self.work <= MOST_WORK and len(found) <= MOST_ATOMS, "the chain is too long.")
        return found


def on_lattice(part: Part) -> tuple[list[list[int]], Fraction]:
    """Return what each value of each tuple adds to one answer, in whole multiples of a unit."""
    need(len(part.added[0][0]) == 1, "several answers, or a function.")
    values = [[x for (x,) in own] for own in part.added]
    below = math.lcm(*(x.denominator for own in values for x in own))
    unit = Fraction(math.gcd(*(int(x * below) for own in values for x in own)) or 1, below)
    return [[int(x / unit) for x in own] for own in values], unit


def largest_quotient(mixtures: Sequence[Mixture], unit: Fraction | None) -> Decimal:
    """Return the largest quotient of the densities of mixtures that are possible (A)."""
    atoms = sorted(set(chain(*mixtures)))
    steps, densities = [kernel((b - a) * (unit or 0)) for a, b in pairwise(atoms)], []
    for mixture in mixtures:
        total = sum(mixture.values()) if unit else mixture[0]
        if total:
            masses = [mixture.get(atom, 0) / total for atom in atoms]
            below, above = masses[:1], [Decimal(0)]  # from there or below; from above
            for step, mass in zip(steps, masses[1:], strict=True):
                below.append(below[-1] * step + mass)
            for step, mass in zip(steps[::-1], masses[:0:-1], strict=True):
                above.append((above[-1] + mass) * step)
            densities.append(list(map(add, below, above[::-1])) if unit else masses[1:])
    return max((max(found) / min(found) for found in zip(*densities, strict=True)), default=ONE)


def check_counts(part: Part) -> None:
    """Check one answer to which all members of a group add alike, by counts (J)."""
    need(part.model["type"] in ("BinaryGroup", "CategoryGroup"), "it is no group.")
    (own, *others), unit = on_lattice(part)
    need(all(adds == own for adds in others), "the members add differently.")
    values, work = len(own), 0
    weights = {held: decimal(p) for held, p in one_arrangement(part).items()}
    for known in range(part.fewest, min(part.most, part.size - 2) + 1):
        unknown = [
            (n, ways, sum(map(mul, n, own))) for n, ways in counts(part.size - 1 - known, values)
        ]
        for told, _ in counts(known, values):
            work += 8 * len(unknown) * values
            need(work <= MOST_WORK, "the group is too large.")
            given: list[Mixture] = [{} for _ in own]
            for v, mixture in enumerate(given):
                base = [n + (u == v) for u, n in enumerate(told)]
                for n, ways, x in unknown:
                    mass = ways * weights[tuple(map(add, base, n))]
                    mixture[own[v] + x] = mixture.get(own[v] + x, 0) + mass
            part.claim.judge(largest_quotient(given, unit), "a member")


def one_arrangement(part: Part) -> dict[tuple[int, ...], Fraction]:
    """Return how likely one arrangement of the members is, by how many hold each value."""
    values, binary = len(part.domains[0]), part.model["type"] == "BinaryGroup"
    need(math.comb(part.size + values - 1, part.size) <= MOST_WORK, "the group is too large.")
    held = sorted(counts(part.size, values), reverse=binary)  # there by the number of ones
    stored = law(numbers(part.model["count_probabilities"], len(held)))
    return {n: p / ways for (n, ways), p in zip(held, stored, strict=True)}


def counts(members: int, values: int) -> Iterator[tuple[tuple[int, ...], int]]:
    """Yield in all ways how many members hold each value, and how many arrangements of them do."""
    if values == 1:
        yield (members,), 1
    for n in range(members + 1) if values > 1 else ():
        for rest, ways in counts(members - n, values - 1):
            yield (n, *rest), math.comb(members, n) * ways


# --- Gaussian values ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Known:
    """The covariance of tuples and, behind them, answers, given what is known, in whole numbers."""

    # Times a unit and the determinant of what is known: then no division has a remainder (Bareiss).
    rows: list[list[int]]
    unit: int
    det: int = 1

    def given(self, place: int) -> Known:
        """Let one more be known."""
        pivot, column = self.rows[place][place], [row[place] for row in self.rows]
        need(pivot > 0, "the covariance must be positive definite.")
        rows = [
            [(pivot * x - mine * its) // self.det for x, its in zip(row, column, strict=True)]
            for row, mine in zip(self.rows, column, strict=True)
        ]
        return Known(rows, self.unit, pivot)

    def value(self, one: int, other: int) -> Fraction:
        """Return one covariance."""
        return Fraction(self.rows[one][other], self.det * self.unit)


def check_gaussian(part: Part, covariance: list[list[Fraction]]) -> None:
    """Check jointly Gaussian values, over all sets of known tuples, exactly (C)."""
    size, claim = part.size, part.claim
    fits = len(covariance) == size and covariance == list(map(list, zip(*covariance, strict=True)))
    need(fits, "the covariance must be symmetric.")
    widths = [high - low for low, high in part.domains]
    both = zip(part.added, widths, strict=True)
    weights = [[(b - a) / width for a, b in zip(*ends, strict=True)] for ends, width in both]
    answers = list(zip(*weights, strict=True))
    rows = [row + [sum(map(mul, answer, row)) for answer in answers] for row in covariance]
    rows += [
        [sum(map(mul, answer, column)) for column in zip(*rows, strict=True)] for answer in answers
    ]
    unit = math.lcm(*(value.denominator for row in rows for value in row))
    start = Known([[int(value * unit) for value in row] for row in rows], unit)
    simple = len(answers) == 1 and claim.mu is None and not is_clamped(claim)
    trees = claim.certificate.get("branches", {}) if simple else {}
    for target in range(size):
        others = [k for k in range(size) if k != target]
        branch(part, start, target, others, 0, trees.get(str(target)))


def branch(part: Part, state: Known, target: int, open_: list[int], known: int, tree: Any) -> None:
    """Check all sets of known tuples that begin so, as the certificate's tree divides them."""
    # A tree is [whom to decide about, the tree if known, the tree if not]; 0 where one bound covers
    # all that is open; or nothing, to try all of it.
    if known + len(open_) < part.fewest:
        return
    if tree == 0 and tree is not None:
        if not is_bounded(part, state, target, open_):
            raise Broken(f"it does not follow: a branch about {part.names[target]} may leak more.")
    elif not open_ or known == part.most:
        check_moves(part, state, target)
    else:
        need(tree or len(open_) < MOST_GAUSSIAN, "too many tuples are undecided.")
        place, if_known, if_not = tree or (open_[0], None, None)
        if place not in open_:
            raise Broken("it does not follow: the certificate decides about nobody.")
        rest = [k for k in open_ if k != place]
        branch(part, state.given(place), target, rest, known + 1, if_known)
        branch(part, state, target, rest, known, if_not)


def is_bounded(part: Part, state: Known, target: int, open_: list[int]) -> bool:
    """Whether nobody learns more than ε who knows this and any part of what is open (H)."""
    low, high = part.domains[target]
    order = [*open_, target, -1]
    state = Known([[state.rows[j][k] for k in order] for j in order], state.unit, state.det)
    v0, c0, f0 = (state.value(j, k) for j, k in ((-2, -2), (-2, -1), (-1, -1)))
    for place in range(len(open_)):
        state = state.given(place)
    v, c, f = (state.value(j, k) for j, k in ((-2, -2), (-2, -1), (-1, -1)))
    need(v > 0, "the covariance must be positive definite.")
    d, s, q = v0 - v, c0 - c, f0 - f  # what is explained by all that is open
    rest = part.claim.epsilon / (high - low) * v * v0 - abs(c * (v + d / 2) + s * v / 2)
    square = (c * d - s * v) ** 2 + max(d * q - s * s, Fraction(0)) * v * v0
    return bool(rest >= 0 and 4 * rest**2 >= square)


def check_moves(part: Part, state: Known, target: int) -> None:
    """Compare how far the answers move, where x_i moves over its range, with the promise."""
    size, row, name, claim = part.size, state.rows[target], part.names[target], part.claim
    widths = [high - low for low, high in part.domains]
    need(row[target] > 0, "the covariance must be positive definite.")
    if is_clamped(claim):
        own = widths[target] / row[target]
        shares = [min(Fraction(1), abs(row[u]) * own / widths[u]) for u in range(size)]
        reach = [[abs(b - a) for a, b in zip(*ends, strict=True)] for ends in part.added]
        bounds = [sum(map(mul, shares, answer)) for answer in zip(*reach, strict=True)]
        claim.judge_moves(bounds, name, reached=False)
    elif claim.mu is None:
        moves = [Fraction(value, row[target]) * widths[target] for value in row[size:]]
        claim.judge_moves(moves, name)
    else:
        released = replace(state, rows=[list(values) for values in state.rows])
        for place in range(size, len(row)):
            released.rows[place][place] += state.det * state.unit  # the noise of this answer
        for place in range(size, len(row)):
            released = released.given(place)
        gain = 1 / released.value(target, target) - 1 / state.value(target, target)
        claim.judge_mu(gain * widths[target] ** 2, name, reached=True)


def is_clamped(claim: Claim) -> bool:
    """Whether values are clamped into their ranges: for all answers, or for none."""
    found = {query.get("clamp", query["type"] == "RowQuery") for query in claim.queries}
    need(len(found) == 1 and found <= {True, False}, "clamp all answers, or none.")
    return found == {True}


def check_alike(part: Part) -> None:
    """Check members who are alike (groups), or steps alike (series)."""
    model, size, claim, clamped = part.model, part.size, part.claim, is_clamped(part.claim)
    stored, series = model["correlation"], model["type"] == "GaussianSeries"
    low, high = numbers(stored if isinstance(stored, list) else [stored] * 2, 2)
    variance = None if model["variance"] is None else number(model["variance"])
    limit = -1 if series or size < 3 else Fraction(-1, size - 1)
    need(limit < low <= high < 1 and (variance is None or variance > 0), "this is no Gaussian law.")
    alike = len(set(map(tuple, part.added))) == 1 and (low >= 0 or not series)
    simple = alike and part.fewest == 0 and part.most == size - 1
    if simple and (variance is None or clamped or claim.mu is None):
        # Who knows nobody else learns most; of a series, about its middle (D).
        middle, most = (size - 1) // 2, max(high, Fraction(0))
        share = sum(most ** (abs(t - middle) if series else int(t != middle)) for t in range(size))
        moves = [share * (b - a) for a, b in zip(*part.added[middle], strict=True)]
        claim.judge_moves(moves, part.names[middle], reached=variance is None or not clamped)
        return
    plain = variance is not None or (claim.mu is None and not clamped)
    need(low == high and plain, "unequal members, or a range below 0, are not decided here.")
    steps = [[abs(j - k) if series else int(j != k) for k in range(size)] for j in range(size)]
    check_gaussian(part, [[(variance or 1) * low**step for step in row] for row in steps])


# --- From the file to its parts -------------------------------------------------------------------


def check_part(part: Part) -> None:
    """Check a set member by member, blocks one by one, and any other model as its family says."""
    model, kind, claim = part.model, part.model["type"], part.claim
    need(model["provenance"] != "private" and "digest" not in model, "its numbers are withheld.")
    if "RowQuery" in {one["type"] for one in claim.queries} and kind not in ("ModelSet", "Blocks"):
        part = replace(part, added=row_additions(part))
    if kind == "ModelSet":
        for member in model["models"]:
            check_part(replace(part, model=member))
    elif kind not in ("Blocks", "Unknown") and not isinstance(part.domains[0], tuple):
        check_finite(part)
    elif not part.added:
        raise Undecided(f"a function of a {kind} is not decided here.")
    elif kind == "Blocks":
        check_blocks(part)
    elif kind == "Unknown":  # who is not known moves with the target (E)
        reach = [spread(values) + claim.charged for values in part.added]
        for target, name in enumerate(part.names):
            others = sorted(reach[:target] + reach[target + 1 :], reverse=True)
            total = sum(others[: part.size - 1 - part.fewest], reach[target])
            several = len(part.added[0][0]) > 1 and (claim.mu is not None or total > claim.epsilon)
            need(not several, "how far several answers move together is not decided here.")
            claim.judge_moves([total], name)
    elif claim.charged:
        raise Undecided("other mechanisms about values on an interval are not decided here.")
    elif kind == "Gaussian":
        check_gaussian(part, [numbers(row, part.size) for row in model["covariance"]])
    else:
        check_alike(part)


def check_blocks(part: Part) -> None:
    """Check every block alone (B)."""
    # Who may not know everything outside a block has that as further noise. Leaving it out is on
    # the safe side, so what is proved is proved; but what breaks then is not known to break.
    total, start = sum(shape(part.model)[2]), 0
    claim = part.claim if part.most == total - 1 else replace(part.claim, blurred=True)
    for block in part.model["models"]:
        size = len(block["names"])
        own, start = slice(start, start + size), start + size
        fewest, most = max(0, part.fewest - (total - size)), min(size - 1, part.most)
        names, domains, added = part.names[own], part.domains[own], part.added[own]
        check_part(Part(claim, block, names, domains, added, size, fewest, most))


def check_calibration(stored: Stored) -> Claim:
    """Check a calibration, and return what it claims."""
    header = stored["type"], stored["schema"], whole_number(stored.get("version", 1)) <= FORMAT
    need(header == ("Calibration", "pdp-calibrate/1", True), "this is no calibration known here.")
    claim, model, who = Claim.read(stored), stored["model"], stored["adversaries"]
    need(set(who) == {"at_least", "at_most"}, "an adversary by name is not decided here.")
    names, domains, copies = shape(model)
    others, kinds = sum(copies) - 1, {query["type"] for query in claim.queries}
    fewest = others if who["at_least"] is None else whole_number(who["at_least"])
    most = others if who["at_most"] is None else min(others, whole_number(who["at_most"]))
    need(fewest <= most, "nobody is admitted, so nothing is promised.")
    added: list[list[Vector]] = [] if "Custom" in kinds else [[]] * len(names)
    if not kinds & {"Custom", "RowQuery"}:
        added = additions(claim, dict(zip(names, copies, strict=True)), domains)
    check_part(Part(claim, model, names, domains, added, len(names), fewest, most))
    return claim


def check_ledger(stored: Stored) -> Claim:
    """Check all that a ledger has released, and return what it claims."""
    # Whatever led to a query, along one course of questions and outputs the density is that of
    # these queries, asked at once. Nobody learns about one draw of the data from another one.
    plain = set(stored) <= set(FIELDS["ledger"].split()) and stored["entries"]
    need(plain, "this is no ledger with Laplace noise, or nothing was released.")
    kept = ("schema", "version", "epsilon", "adversaries", "model")
    joint = {field: stored[field] for field in kept} | {"certificate": stored.get("certificate")}
    draws: dict[str, list[Stored]] = {}
    for entry in stored["entries"]:
        known = f"{FIELDS['entry']} {FIELDS[entry['kind']]}".split()
        need(set(entry) <= set(known), "an entry says what is not decided here.")
        draws.setdefault(entry["draw"], []).append(entry)
    for entries in draws.values():
        released = [entry for entry in entries if entry["kind"] == "release"]
        other = [number(entry["dp_epsilon"]) for entry in entries if entry["kind"] != "release"]
        need(released and min(other, default=0) >= 0, "only budgets are spent, or negative ones.")
        queries = [query for entry in released for query in entry["queries"]]
        scales = [scale for entry in released for scale in entry["scales"]]
        rows = {entry["rows"] for entry in released}
        need(len(rows) == 1, "answers about several numbers of rows are not decided here.")
        asked = {"query": queries, "scale": scales, "noise": ["Laplace"] * len(queries)}
        more = {"type": "Calibration", "rows": rows.pop(), "charged": sum(other, Fraction(0))}
        claim = check_calibration(joint | asked | more)
    return claim


def check(stored: Any) -> tuple[int, str]:
    """Decide about the content of a file: 0 proved, 1 broken, 2 undecided, and why."""
    try:
        json.dumps(stored, allow_nan=False)  # no number of a file may be infinite, or none
        with localcontext(digits(50)):
            held = stored["calibration"] if stored["type"] == "Release" else stored
            claim = (check_ledger if held["type"] == "Ledger" else check_calibration)(held)
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
    given = sys.argv[1:] if arguments is None else arguments
    usage = UNDECIDED, "Usage: python check.py release.json"
    code, answer = check_file(Path(given[0])) if len(given) == 1 else usage
    sys.stdout.write(answer + "\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
