"""Decide whether noise keeps its promise, without the library that calibrated it.

    python check.py release.json        (or: pdp-calibrate check release.json; or a ledger's file)

It answers 0: proved; 1: not so, an adversary breaks it, or what the file says of itself does not
follow; 2: cannot decide. A certificate says where to look, never what to believe: only the theorems
below prove anything, and the documentation has their proofs. No line is shared with the engines.

The promise. A database is one draw x of correlated tuples from a law θ. For every tuple i, every
set K of others that an adversary may know, every x_K of positive probability, every two values
v, v' of x_i that are possible then, and every output r, p(r | x_i = v, x_K) ≤ e^ε p(r | x_i = v',
x_K). With Gaussian noise the densities are no easier to tell apart than N(0,1) and N(μ,1), which is
δ = Φ(μ/2 - ε/μ) - e^ε Φ(-μ/2 - ε/μ). Who knows everyone else learns what changing x_i alone does to
the answer, whatever θ says. Answers and noise are exact; rounding is charged by the library.

A  (outputs). With Laplace noise the largest quotient is at one of the answers, or on their grid.
B  (blocks). Independent blocks whose answers add up may be checked one by one.
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
I  (elimination). D_kl is the largest log cross-ratio of θ in (x_k, x_l), e_j how far x_j alone
   moves the log-likelihood. Summing out x_j leaves at most D_kl + D_jk ⊗ D_jl and e_k + D_jk ⊗ e_j,
   a ⊗ b = 2 log (1+AB)/(A+B), A = e^{a/2}, B = e^{b/2}; in any order.
J  (counts). In a group, given x_i and how many known members hold each value, a count of the
   unknown has the mass of one such arrangement times the number of them.
K  (windows). In a chain only the nearest known on either side matter. To count x_{i±a} as known, if
   it is not, changes no quotient by more than the largest cross-ratio of a steps.
L  (plans). P, Q are laws of the answers given (v, x_K), (v', x_K), c_kl how far answers k and l are
   apart. Any plan π ≥ 0 with row sums P proves: no quotient exceeds max_l Σ_k π_kl e^{c_kl} / Q_l.
M  (cells). K known, R undecided: in the cells of R the odds of v against v' lie in [y, y e^a], the
   densities of r are g and g', and one of these in [z, z e^b]. Whatever part of R is known too, no
   quotient at r exceeds max g/g' · e^{a ⊗ b}.
"""

from __future__ import annotations

import itertools
import json
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, Subnormal, localcontext
from fractions import Fraction
from functools import lru_cache, partial, reduce
from itertools import chain, combinations, pairwise, permutations, product, repeat
from operator import add, le, mul, truediv
from pathlib import Path
from typing import Any

PROVED, BROKEN, UNDECIDED = 0, 1, 2
DAMAGE = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError)
# Fractions are exact. Decimals, and whole numbers in their place, are right to a part in 10^36.
EXACT = Context(prec=50, Emax=MAX_EMAX, Emin=MIN_EMIN)
EXACT.traps[Subnormal] = True  # nothing is lost: what is too small stops the check
ZERO, ONE, INFINITE, SLACK = Fraction(0), Decimal(1), Decimal("Infinity"), Decimal("1e-30")
MOST_CELLS = 2**12  # of a model that is written out as a table; of a table four times as many
MOST_STEPS = 10**9  # of the innermost loops: some minutes
MOST_GAUSSIAN = 13  # tuples of a covariance whose sets of known tuples are all checked
FORMAT = 2  # the latest version of files that this checker knows
FIELDS = {"Sum": "over clamp", "Mean": "over clamp", "Linear": "by clamp weights"}  # no others
FIELDS |= {"Count": "over values", "Histogram": "over categories", "Custom": "over table"}
ENTRIES = {"release": "queries scales rows epsilon layout sizes", "charge": "dp_epsilon"}
ENTRIES |= {"estimation": "dp_epsilon", "all": "kind note draw at spent method"}
LEDGER = "schema version type epsilon adversaries model draws entries checksum anchor total"

Vector = tuple[Fraction, ...]
Stored = dict[str, Any]


class Undecided(Exception):  # noqa: N818 - an answer, not an error
    """The file cannot be decided here, and why."""


class Broken(Exception):  # noqa: N818 - an answer, not an error
    """The promise does not hold, or what the file says does not follow, and why."""


def need(condition: object, otherwise: str) -> None:
    """Stop the check where what it needs is not there."""
    if not condition:
        raise Undecided(otherwise)


def number(value: Any) -> Fraction:
    """Return a finite number as the exact fraction that it is."""
    plain = isinstance(value, int | float | Fraction) and not isinstance(value, bool)
    need(plain, "a number is needed where there is none.")
    return Fraction(value)


def numbers(values: Any, *sizes: int) -> list[Fraction]:
    """Return the numbers of nested lists, in order, if the lists have these sizes."""
    if not sizes:
        return [number(values)]
    need(isinstance(values, list) and len(values) == sizes[0], "a table does not fit its tuples.")
    return [found for part in values for found in numbers(part, *sizes[1:])]


def law(values: Sequence[Fraction]) -> list[Fraction]:
    """Return probabilities: none negative, adding up to 1 as floats do, made to do so exactly."""
    total = sum(values, ZERO)
    need(min(values) >= 0 and abs(total - 1) <= Fraction(1, 10**6), "probabilities add up to 1.")
    return [value / total for value in values]


def listed(values: Any) -> list[Any]:
    """Return a list of names or values so that they can be looked up."""
    need(isinstance(values, list), "a list is needed where there is none.")
    return [tuple(value) if isinstance(value, list) else value for value in values]


def decimal(value: Fraction) -> Decimal:
    """Return a fraction, rounded to the digits in use."""
    return Decimal(value.numerator) / Decimal(value.denominator)


@lru_cache(maxsize=2**16)
def kernel(d: Fraction) -> Decimal:
    """Return e^{-d}."""
    return (-decimal(d)).exp()


def whole(values: Sequence[Decimal]) -> list[int]:
    """Return whole numbers in the same proportions, each right to a part in 10^40."""
    least = min(filter(None, values))
    need(max(values) <= least * Decimal("1e250"), "numbers are too far apart.")
    return [int(value / least * 10**40) for value in values]


def excess(square: Fraction, stated: Fraction) -> Decimal:
    """Return δ at a stated ε, a little too large, for noise that leaks μ, given its square."""
    with localcontext(prec=900):
        epsilon, areas = decimal(stated), []
        mu = max(decimal(square).sqrt() * (1 + SLACK), epsilon / 40)  # δ grows with μ
        for x in (mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu, Decimal(60)):
            need(abs(x) <= 60, "μ is too large to be decided.")
            term, total, k = x, x, 1  # ∫_0^x e^{-t²/2} dt = e^{-x²/2} (x + x³/3 + x⁵/15 + …)
            while abs(term) > Decimal("1e-890") or k < x * x:
                k += 2
                term *= x * x / k
                total += term
            areas.append(total * (-x * x / 2).exp())
        high, low = (1 + area / areas[2] for area in areas[:2])  # 2 Φ: beyond 60 is no 10^-780
        return (high - epsilon.exp() * low) / 2 * (1 + SLACK) + Decimal("1e-400")


def distance(one: Vector, other: Vector) -> Fraction:
    """Return how far two answers are apart, in units of the noise."""
    return sum((abs(a - b) for a, b in zip(one, other, strict=True)), ZERO)


def spread(values: Sequence[Vector]) -> Fraction:
    """Return how far two of the answers are apart at most."""
    apart = {min(values), max(values)} if len(values[0]) == 1 else set(values)
    return max(distance(one, other) for one, other in product(apart, repeat=2))


class Claim:
    """What a calibration says, as exact numbers."""

    def __init__(self, stored: Stored) -> None:
        header = stored["type"], stored["schema"], stored.get("version", 1) in range(FORMAT + 1)
        need(header == ("Calibration", "pdp-calibrate/1", True), "no calibration known here.")
        asked = [stored[field] for field in ("query", "scale", "noise")]
        asked = asked if isinstance(asked[0], list) else [[one] for one in asked]
        (self.queries, scales, self.noises), self.steps, self.most = asked, 0, ZERO
        self.scales = numbers(scales, len(self.queries))
        self.gaussian = self.noises[0] == "Gaussian"
        kinds = {"Gaussian"} if self.gaussian else {"Laplace", "discrete Laplace"}
        fits = len(self.noises) == len(self.queries) and set(self.noises) <= kinds
        known = all(set(one) <= {"type", *FIELDS[one["type"]].split()} for one in self.queries)
        need(fits and known, "a query, or a noise, is not known here.")
        self.epsilon, self.rows = number(stored["epsilon"]), number(stored["rows"])
        self.delta, self.mu = (number(stored[k] if self.gaussian else 0) for k in ("delta", "mu"))
        self.charged = number(stored.get("charged", 0))  # what other mechanisms tell of each tuple
        self.blurred = self.charged > 0  # more noise is left out: no bound is known to be reached
        leakage = None if self.gaussian else stored.get("leakage")
        self.stated = number(leakage["value"]) if leakage else self.epsilon
        self.certificate = dict(stored.get("certificate") or {})
        fine = 0 < self.epsilon < 700 and min(self.scales) > 0 < self.rows == int(self.rows)
        fine = fine and min(self.charged, self.mu, self.delta, 1 - self.delta) >= 0
        need(fine, "ε, scales, μ and rows must be positive, and δ a share.")
        if self.stated > self.epsilon:
            raise Broken(f"it does not follow: the file itself states {float(self.stated):.9g}.")

    def work(self, steps: int) -> None:
        """Count steps of the innermost loops, and stop what takes too many."""
        self.steps += steps
        need(self.steps <= MOST_STEPS, "it takes too many steps.")

    def judge(self, quotient: Decimal, target: Any, *, reached: bool = True) -> None:
        """Compare a quotient of densities, right to a part in 10^36, with what is stated and ε."""
        exceeds = reached and quotient > kernel(-self.stated) * (1 + SLACK)
        if exceeds or quotient > kernel(-self.epsilon) * (1 - SLACK):
            self.refuse(quotient.ln(), target, reached=exceeds)

    def judge_moves(self, moves: Sequence[Fraction], target: Any, *, reached: bool = True) -> None:
        """Compare how far a secret moves the answers, in units of their noise, with the promise."""
        leakage = sum(map(abs, moves), ZERO)
        if self.gaussian:
            self.judge_mu(sum((move**2 for move in moves), ZERO), target, reached=reached)
        elif leakage > (self.stated if reached else self.epsilon):
            self.refuse(leakage, target, reached=reached)

    def judge_mu(self, square: Fraction, target: Any, *, reached: bool = True) -> None:
        """Compare μ² with the μ that is stated, and with its (ε, δ)."""
        more = self.most < square <= self.mu**2 and excess(square, self.epsilon) > self.delta
        if more or square > self.mu**2:
            self.refuse(decimal(square).sqrt(), target, reached=reached)
        self.most = max(self.most, square)  # less need not be compared again

    def refuse(self, leakage: Fraction | Decimal, target: Any, *, reached: bool) -> None:
        """Say that somebody learns too much or, where a bound alone is exceeded, that they may."""
        learned = f"{'μ = ' if self.gaussian else ''}{float(leakage):.9g} about {target}."
        if reached and not self.blurred:
            raise Broken(f"somebody learns {learned}")
        raise Undecided(f"somebody may learn {learned}")

    def in_units(self, place: int, answer: Sequence[Fraction]) -> Vector:
        """Return answers in units of their noise; discrete noise needs whole ones."""
        plain = self.noises[place] != "discrete Laplace" or all(x.denominator == 1 for x in answer)
        need(plain, "discrete noise needs whole numbers.")
        return tuple(x / self.scales[place] for x in answer)


def shape(model: Stored) -> tuple[list[Any], list[Any], list[int]]:
    """Return the names of a model, the values of each tuple, and how many copies there are."""
    names, kind = listed(model["names"]), model["type"]
    fine = model.get("version", 1) in range(FORMAT + 1) and len(set(names)) == len(names) > 0
    need(fine, "the model is of a later version, or its names do not differ.")
    if kind in ("ModelSet", "Blocks"):
        inner = [shape(one) for one in model["models"]]
        if kind == "ModelSet":
            need(inner == [(names, *inner[0][1:])] * len(inner), "the models differ in shape.")
            return inner[0]
        both = zip(inner, map(number, model["counts"]), strict=True)
        copies = [int(n) for (_, _, own), n in both for k in own if k == 1 <= n == int(n)]
        need(len(copies) == len(names), "blocks of copied blocks are not decided here.")
        return names, list(chain(*(found for _, found, _ in inner))), copies
    need(kind in FAMILIES, f"{kind} is not decided here.")
    values = model | {"domain": [0, 1]} if kind == "BinaryGroup" else model
    (field,) = {"domains", "domain", "states", "categories", "bounds"} & set(values)
    each = field == "domains" or (field == "bounds" and isinstance(values[field][0], list))
    domains = values[field] if each else [values[field]] * len(names)
    fields = {Finite: "domains", Chain: "states", Group: "domain categories", Real: "bounds"}
    need(field in fields.get(FAMILIES[kind], "domain bounds").split(), "no such values.")
    if field == "bounds":
        domains = [tuple(numbers(ends, 2)) for ends in domains]
        need(all(low < high for low, high in domains), "a range must begin below its end.")
    else:
        domains = list(map(listed, domains))
        need(all(len(set(own)) == len(own) > 0 for own in domains), "values must differ.")
    sizes = {len(domains), model.get("length", len(names)), model.get("size", len(names))}
    need(sizes == {len(names)}, "every tuple needs its values.")
    return names, domains, [1] * len(names)


def additions(claim: Claim, names: list[Any], domains: list[Any], copies: list[int]) -> Any:
    """Return, per tuple and value, what it adds to the answers, each in units of its own noise."""
    found: list[list[Vector]] = [[()] * len(values) for values in domains]
    for place, query in enumerate(claim.queries):
        kind, over = query["type"], query.get("over")
        groups: list[Any] = [None]  # of values that are counted
        chosen = names if over is None else listed(over)
        share = claim.rows * sum(copies[names.index(name)] for name in chosen)
        weights = dict.fromkeys(chosen, Fraction(1, share) if kind == "Mean" else Fraction(1))
        if kind == "Linear":
            pairs = zip(names, query["weights"], strict=True)
            named = query["weights"] if query["by"] == "name" else pairs
            weights = {listed([name])[0]: number(weight) for name, weight in named}
        elif kind == "Count":
            groups = [set(listed(query["values"]))]
        elif kind == "Histogram":
            every = query["categories"] or list(chain(*(domains[names.index(k)] for k in chosen)))
            groups = [{value} for value in dict.fromkeys(listed(every))]
        each = weights and not set(weights) - set(names) and len(chosen) == len(set(chosen))
        need(each, "a query must name tuples that are there, each once.")
        plain = groups == [None] and claim.noises[place] != "discrete Laplace"
        need(plain or all(isinstance(own, list) for own in domains), "values of an interval.")
        for own, name, values in zip(found, names, domains, strict=True):
            weight = weights.get(name, ZERO)
            for k, value in enumerate(values):  # yes and no are 1 and 0
                held = [weight and number(value * 1) if g is None else value in g for g in groups]
                own[k] += claim.in_units(place, [weight * one for one in held])
    return found


@dataclass
class Part:
    """Tuples that are checked together, of any dependence: a model, or one block of it."""

    claim: Claim
    model: Stored
    names: Sequence[Any]
    domains: Sequence[Any]  # of each tuple a list of values, or the two ends of an interval
    added: Any  # per tuple and value, in units of the noise; of a function nothing
    fewest: int  # how many others an adversary knows at least,
    most: int  # and at most

    def __post_init__(self) -> None:
        self.size, self.sizes = len(self.names), list(map(len, self.domains))

    def check(self) -> None:
        """Let all who are not known move with the target (E)."""
        claim, reach = self.claim, [spread(own) + self.claim.charged for own in self.added]
        for target, name in enumerate(self.names):
            others = sorted(reach[:target] + reach[target + 1 :], reverse=True)
            total = sum(others[: self.size - 1 - self.fewest], reach[target])
            claim.judge_moves([total], name, reached=len(self.added[0][0]) == 1)


class Finite(Part):
    """Tuples of finitely many values."""

    ways: tuple[str, ...] = ("check_plans", "check_table", "check_couplings")

    def check(self) -> None:
        """Check who knows everyone else, then all others in the first way that decides."""
        claim, reason = self.claim, Undecided("the function is not decided here.")
        need(not claim.gaussian, "Gaussian noise on finite laws is not decided here.")
        for target, name in enumerate(self.names if self.most == self.size - 1 else ()):
            cells = [] if self.added else self.rows(target, self.answers(), self.order(target))
            for line in zip(*cells, strict=True) if cells else [self.added[target]]:
                claim.judge_moves([spread(line) + claim.charged], name)
        ways = self.ways if self.added else ("check_table",)
        for way in ("check_couplings",) if claim.charged else ways:
            claim.steps = 0
            try:
                getattr(self, way)()
            except Undecided as found:
                reason = found
            else:
                return
        raise reason

    def answers(self) -> list[Vector]:
        """Return the answer in every cell: of additions their sum, of a function as stored."""
        if self.added:
            every = (zip(*one, strict=True) for one in product(*self.added))
            return [tuple(sum(column, ZERO) for column in columns) for columns in every]
        claim, (query, *more) = self.claim, self.claim.queries
        fine = claim.rows == 1 and not more and math.prod(self.sizes) <= 4 * MOST_CELLS
        need(fine, "a function must be of one row, alone, and not of too many cells.")
        chosen = self.names if query["over"] is None else listed(query["over"])
        places = [list(self.names).index(name) for name in chosen]
        stored = {tuple(listed(cell)): number(value) for cell, value in query["table"]}
        keys = (tuple(cell[k] for k in places) for cell in product(*self.domains))
        return [claim.in_units(0, [stored[key]]) for key in keys]

    def factors(self) -> Iterator[tuple[Any, Any]]:
        """Yield the tuples of every factor of the law, and its cells."""
        model, kind = self.model, self.model["type"]
        if kind == "JointTable":
            scopes, tables = [list(range(self.size))], [model["probabilities"]]
        elif kind == "MarkovTree":
            scopes = [[j] if up is None else [up, j] for j, up in enumerate(model["parents"])]
            tables = model["tables"]
        else:
            need(not model.get("influences"), "influences alone are not decided here.")
            scopes, tables = model["scopes"], model["factors"]
        for scope, table in zip(scopes, tables, strict=True):
            sizes = [self.sizes[place] for place in scope]
            need(len(set(scope)) == len(scope) and min(scope) >= 0, "no scope.")
            cells = numbers(table, *sizes)
            need(min(cells) >= 0 and any(cells), "no factor.")
            if kind != "Network":  # every row is a law, or the whole table is one
                many = len(cells) if kind == "JointTable" else sizes[-1]
                cells = [x for k in range(0, len(cells), many) for x in law(cells[k : k + many])]
            yield scope, dict(zip(product(*map(range, sizes)), cells, strict=True))

    def weights(self) -> list[int]:
        """Return how likely every cell is, times a constant."""
        largest = 4 * MOST_CELLS if self.model["type"] == "JointTable" else MOST_CELLS
        need(math.prod(self.sizes) <= largest, "it is too large.")
        factors, cells = list(self.factors()), product(*map(range, self.sizes))
        every = ([f[tuple(cell[k] for k in scope)] for scope, f in factors] for cell in cells)
        return whole([decimal(math.prod(found)) for found in every])

    def order(self, target: int, otherwise: Sequence[int] | None = None) -> Sequence[int]:
        """Return all others, in the order that the certificate names, if it names one."""
        others = [k for k in range(self.size) if k != target]
        order = self.claim.certificate.get("orders", {}).get(str(target))
        if order is not None and sorted(order) != others:
            raise Broken("it does not follow: an order must name all others once.")
        return order or otherwise or others

    def rows(self, target: int, cells: Sequence[Any], order: Sequence[int]) -> list[list[Any]]:
        """Return what is listed for all cells in rows, one for each value of a target."""
        steps = [math.prod(self.sizes[k:]) for k in range(self.size + 1)]
        first, *rest = (range(0, steps[k], steps[k + 1]) for k in (target, *order))
        return [[cells[k + sum(more)] for more in product(*rest)] for k in first]

    def knowledge(self, target: int, tables: Sequence[Any], limit: Any = 0) -> Iterator[Any]:
        """Yield what cells add up to, whoever is known, until who is left is covered (M)."""
        order, joined = self.order(target), partial(reduce, lambda a, b: list(map(add, a, b)))
        waiting = [([self.rows(target, cells, order) for cells in tables], order, 0)]
        while waiting:
            here, left, known = waiting.pop()
            self.claim.work(20 + len(here[0]) ** 2 * len(here[0][0]))
            admitted = self.fewest - len(left) <= known <= min(self.most, self.size - 2)
            if not admitted or is_below(limit, *here):
                continue
            if not left:
                yield [[total for (total,) in rows] for rows in here]
                continue
            step = len(here[0][0]) // self.sizes[left[0]]
            starts = range(0, len(here[0][0]), step)
            cut = [[[row[k : k + step] for k in starts] for row in rows] for rows in here]
            waiting.append(([list(map(joined, rows)) for rows in cut], left[1:], known))
            inner = ([[parts[v] for parts in rows] for rows in cut] for v in range(len(starts)))
            waiting += [(tables, left[1:], known + 1) for tables in inner]

    def check_table(self) -> None:
        """Check everyone who does not know everyone else, at every output (A)."""
        claim, weights, answers = self.claim, self.weights(), self.answers()
        there = list({answer for answer, weight in zip(answers, weights, strict=True) if weight})
        axes = [sorted(set(column)) for column in zip(*there, strict=True)]
        claim.work(math.prod(map(len, axes)) * (100 * len(there) + len(weights) * self.size))
        for output in product(*axes):
            near = whole([kernel(distance(output, answer)) for answer in there])
            kernels, cells = dict(zip(there, near, strict=True)), zip(weights, answers, strict=True)
            tables = weights, [weight and weight * kernels[answer] for weight, answer in cells]
            for target, name in enumerate(self.names):
                for rows in self.knowledge(target, tables, kernel(-claim.stated)):
                    possible = [(mass, its) for mass, its in zip(*rows, strict=True) if mass]
                    for (p, one), (q, other) in permutations(possible, 2):
                        claim.judge(Decimal(one * q) / Decimal(other * p), name)

    def check_plans(self) -> None:
        """Bound what all learn who do not know everyone else by plans of the certificate (L)."""
        need(isinstance(self.claim.certificate.get("plans"), list), "no plans are given.")
        plans = chain(self.claim.certificate["plans"], repeat(None))
        for (name, p, q), plan in zip(self.pairs_of_laws(), plans, strict=False):
            self.claim.work(8 * len(p) * len(q))
            self.claim.judge(most_paid(p, q, plan), name, reached=False)

    def pairs_of_laws(self) -> Iterator[tuple[Any, dict[Any, Any], dict[Any, Any]]]:
        """Yield a target and laws of the answers given two of its values, whoever is known."""
        need(math.prod(self.sizes) <= MOST_CELLS, "there would be too many plans.")
        cells = zip(self.answers(), self.weights(), strict=True)
        table = [((answer, weight),) if weight else () for answer, weight in cells]
        for target, name in enumerate(self.names):
            for (rows,) in self.knowledge(target, [table]):
                laws: list[dict[Any, Any]] = [{} for row in rows if row]
                for own, row in zip(laws, filter(None, rows), strict=True):
                    for answer, weight in row:
                        own[answer] = own.get(answer, 0) + weight
                yield from ((name, p, q) for p, q in permutations(laws, 2))

    def check_couplings(self) -> None:
        """Bound what anyone learns by summing out one tuple after the other (I)."""

        def passed_on(one: Decimal, other: Decimal) -> Decimal:  # e^{(a ⊗ b)/2}
            return (
                min(one, other) if INFINITE in (one, other) else (1 + one * other) / (one + other)
            )

        near = [dict[int, Decimal]() for _ in self.names]  # e^{D/2} of those coupled with each
        for scope, cells in self.factors():
            for (a, j), (b, k) in combinations(enumerate(scope), 2):
                near[j][k] = near[k][j] = near[j].get(k, ONE) * cross_ratio(cells, a, b).sqrt()
        budgets = [kernel(-(spread(values) + self.claim.charged) / 2) for values in self.added]
        for target, name in enumerate(self.names):
            nearest = [target]
            for place in nearest:
                nearest += near[place].keys() - set(nearest)
            left, told = [dict(row) for row in near], list(budgets)
            for j in self.order(target, nearest[:0:-1]):  # those whom nothing couples tell nothing
                row, left[j] = left[j], {}
                self.claim.work(4 + 4 * len(row) ** 2)
                for k, own in row.items():
                    del left[k][j]
                    told[k] *= passed_on(own, told[j])
                for (k, one), (m, other) in combinations(row.items(), 2):
                    left[k][m] = left[m][k] = left[k].get(m, ONE) * passed_on(one, other)
            self.claim.judge(told[target] ** 2, name, reached=False)


def is_below(limit: Decimal | int, masses: Any, densities: Any = ()) -> bool:
    """Whether nobody who knows some of these cells learns more than a limit (M)."""
    rows = [(own, its) for own, its in zip(masses, densities, strict=False) if any(own)]
    if not limit or len(rows) < 2 or any(0 in own for own, _ in rows):
        return bool(limit) and len(rows) < 2
    share = most_learned(rows, math.sqrt) / float(limit)  # whole numbers, divided: floats
    if 1 - 1e-12 < share < 1 + 1e-12:  # where some ten roundings matter
        exact = [(list(map(Decimal, own)), list(map(Decimal, its))) for own, its in rows]
        share = most_learned(exact, Decimal.sqrt) / (limit * (1 - SLACK))
    return bool(share < 1)


def most_learned(rows: Any, root: Callable[..., Any]) -> Any:
    """Bound what anyone learns who knows some of these cells (M)."""
    found, cells = [], [(own, list(map(truediv, its, own))) for own, its in rows]
    for (p, near), (q, far) in combinations(cells, 2):
        odds, ratios = list(map(truediv, p, q)), list(map(truediv, near, far))
        a = root(max(odds)) / root(min(odds))
        b = root(min(max(near) / min(near), max(far) / min(far)))
        found.append(max(max(ratios), 1 / min(ratios)) * ((1 + a * b) / (a + b)) ** 2)
    return max(found)


def most_paid(p: dict[Any, Any], q: dict[Any, Any], plan: Any) -> Decimal:
    """Return the most that a plan, a list of [from, to, mass], pays per mass of q."""
    moves, answers = [dict[Any, Fraction]() for _ in p], list(q)
    for k, m, mass in plan or ():
        if number(mass) > 0 <= min(k, m):
            moves[k][answers[m]] = number(mass)
    paid = dict.fromkeys(q, Decimal(0))
    for (one, mass), row in zip(p.items(), moves, strict=True):
        to = row or {min(q, key=partial(distance, one)): Fraction(1)}  # by default to the nearest
        for other, moved in to.items():  # whatever the plan says, a row adds up to its mass
            paid[other] += decimal(mass * moved / sum(to.values())) * kernel(-distance(one, other))
    most = max(paid[m] / mass for m, mass in q.items())
    return Decimal(most * sum(q.values()) / sum(p.values()))


def cross_ratio(cells: Any, a: int, b: int) -> Decimal:
    """Return the largest cross-ratio of a factor in tuples a < b; of zeros, infinity."""
    quotients: dict[Any, list[Fraction]] = {}
    for place, cell in cells.items():
        for w in range(place[a]):
            other = cells[(*place[:a], w, *place[a + 1 :])]
            if not (cell and other):
                return INFINITE
            quotients.setdefault((w, *place[:b], *place[b + 1 :]), []).append(cell / other)
    return decimal(max([Fraction(1), *(max(found) / min(found) for found in quotients.values())]))


def on_lattice(part: Part) -> tuple[list[list[int]], Fraction]:
    """Return what each value of each tuple adds to one answer, in whole multiples of a unit."""
    need(len(part.added[0][0]) == 1, "several answers, or a function.")
    values = [[x for (x,) in own] for own in part.added]
    below = math.lcm(*(x.denominator for x in chain(*values)))
    unit = Fraction(math.gcd(*(int(x * below) for x in chain(*values))) or 1, below)
    return [[int(x / unit) for x in own] for own in values], unit


def largest_quotient(mixtures: Sequence[dict[Any, Any]], unit: Fraction) -> Decimal:
    """Return the largest quotient of the densities of mixtures that are possible (A)."""
    atoms = sorted(set(chain(*mixtures)))
    steps, densities = [kernel((b - a) * unit) for a, b in pairwise(atoms)], []
    for mixture in filter(None, mixtures):
        masses, total = [mixture.get(atom, 0) for atom in atoms], sum(mixture.values())
        below, above = masses[:1], [Decimal(0)]  # from there or below; from above
        for step, mass in zip(steps, masses[1:], strict=True):
            below.append(below[-1] * step + mass)
        for step, mass in zip(steps[::-1], masses[:0:-1], strict=True):
            above.append((above[-1] + mass) * step)
        densities.append([(a + b) / total for a, b in zip(below, above[::-1], strict=True)])
    return max((max(found) / min(found) for found in zip(*densities, strict=True)), default=ONE)


def counts(members: int, values: int) -> Iterator[tuple[tuple[int, ...], int]]:
    """Yield in all ways how many members hold each value, and how many arrangements of them do."""
    for held in itertools.combinations_with_replacement(range(values), members):
        n = tuple(map(held.count, range(values)))
        yield n, math.factorial(members) // math.prod(map(math.factorial, n))


class Group(Finite):
    """Members who may be exchanged for each other."""

    ways = (*Finite.ways[:2], "check_counts", "check_couplings")

    def arrangements(self) -> dict[tuple[int, ...], Fraction]:
        """Return how likely one arrangement of the members is, by how many hold each value."""
        many = math.comb(self.size + self.sizes[0] - 1, self.size)
        stored = law(numbers(self.model["count_probabilities"], many))  # binary: by number of 1s
        held = sorted(counts(self.size, self.sizes[0]), reverse=self.model["type"] == "BinaryGroup")
        return {n: p / ways for (n, ways), p in zip(held, stored, strict=True)}

    def factors(self) -> Iterator[tuple[Any, Any]]:
        """Yield the law as one factor."""
        need(math.prod(self.sizes) <= MOST_CELLS, "so many cells are not written out.")
        one, values = self.arrangements(), range(self.sizes[0])
        cells = product(values, repeat=self.size)
        yield range(self.size), {cell: one[tuple(map(cell.count, values))] for cell in cells}

    def check_counts(self) -> None:
        """Check one answer to which all members add alike, by counts (J)."""
        ((own, *others), unit), values = on_lattice(self), self.sizes[0]
        need(all(adds == own for adds in others), "the members add differently.")
        weights = {n: decimal(p) for n, p in self.arrangements().items()}
        for known in range(self.fewest, min(self.most, self.size - 2) + 1):
            unknown = list(counts(self.size - 1 - known, values))
            for told, _ in counts(known, values):
                self.claim.work(8 * len(unknown) * values)
                given: list[dict[Any, Any]] = [{} for _ in own]
                for v, mixture in enumerate(given):
                    base = [n + (u == v) for u, n in enumerate(told)]
                    for n, ways in unknown:
                        mass, atom = ways * weights[tuple(map(add, base, n))], sum(map(mul, n, own))
                        if mass:
                            mixture[own[v] + atom] = mixture.get(own[v] + atom, 0) + mass
                self.claim.judge(largest_quotient(given, unit), "a member")


class Chain(Finite):
    """Steps of a Markov chain."""

    ways = (*Finite.ways[:2], "check_windows", "check_couplings")

    def laws(self) -> tuple[list[Fraction], list[list[Fraction]]]:
        """Return the law of the first state and the transitions, the same for all steps."""
        states, first = range(self.sizes[0]), self.model["initial"]
        steps = [law(numbers(row, len(states))) for row in self.model["transition"]]
        need(len(steps) == len(states), "transition must be one matrix for all steps.")
        if first is not None:
            return law(numbers(first, len(states))), steps
        kept, found = [list(row) for row in steps], [Fraction(1)]
        for n in states[:0:-1]:  # leave out state after state, then put them back
            out = sum(kept[n][:n], ZERO)
            need(out, "the chain has no single stationary law.")
            for i in range(n):
                kept[i][n] /= out
                kept[i][:n] = [kept[i][j] + kept[i][n] * kept[n][j] for j in range(n)]
        for n in states[1:]:
            found.append(sum(map(mul, found, (row[n] for row in kept[:n])), ZERO))
        return [value / sum(found) for value in found], steps

    def factors(self) -> Iterator[tuple[Any, Any]]:
        """Yield the first law and the steps."""
        first, steps = self.laws()
        yield [0], {(v,): p for v, p in enumerate(first)}
        cells = {(v, w): p for v, row in enumerate(steps) for w, p in enumerate(row)}
        yield from (([t, t + 1], cells) for t in range(self.size - 1))

    def check_windows(self) -> None:
        """Check all windows (K): of a chain that favours order, at large outputs alone (F, G)."""
        (first, p), added = self.laws(), self.added
        totals = [[sum(v) for v in values] for values in added]
        order = sorted(range(len(p)), key=lambda v: sum(values[v] for values in totals))
        pairs = [*pairwise(order)]  # other minors follow from these, multiplied, if no entry is 0
        minors = [p[a][v] * p[b][w] - p[a][w] * p[b][v] for (a, b), (v, w) in product(pairs, pairs)]
        alike = all(own == added[0] for own in added)
        if len(p) == 2 and max(minors) <= 0 and alike and spread(added[0]) <= self.claim.epsilon:
            return
        rising = all(all(map(le, values[v], values[w])) for values in added for v, w in pairs)
        if rising and min(minors, default=0) >= 0 and min(map(min, [*p, first])) > 0:
            for sign in (1, -1):
                self.walk([[kernel(-sign * x) for x in values] for values in totals], None)
        else:
            self.walk(*on_lattice(self))

    def walk(self, adds: Sequence[Sequence[Any]], unit: Fraction | None) -> None:
        """Check all windows. Without a unit, a mixture is its mass, at 0, and its E[e^{±Σf/λ}]."""
        claim, (first, exact) = self.claim, self.laws()
        forth = power = [[decimal(p) for p in row] for row in exact]
        back, laws = list(zip(*forth, strict=True)), [[decimal(p) for p in first]]
        for _ in self.names[1:]:
            laws.append([sum(map(mul, laws[-1], into)) for into in back])
        short = not self.most and 30 * self.size**3 * len(first) ** 2 <= MOST_STEPS
        wanted = self.size if short else claim.certificate.get("radius")  # one window a target
        little = decimal(claim.epsilon) * Decimal("1e-17")  # calibrated noise leaves more than that
        for radius in range(1, self.size + 1):
            cells = {(v, w): Fraction(p) for v, row in enumerate(power) for w, p in enumerate(row)}
            penalty = cross_ratio(cells, 0, 1)
            if radius == wanted or (not wanted and penalty <= 1 + little):
                break
            power = [[sum(map(mul, row, into)) for into in back] for row in power]

        def moved(mixture: dict[Any, Any], x: Any) -> dict[Any, Any]:
            if unit:
                return {atom + x: mass for atom, mass in mixture.items()}
            return {atom: mass * x if atom else mass for atom, mass in mixture.items()}

        def mixed(weights: Sequence[Decimal], mixtures: Sequence[dict[Any, Any]]) -> dict[Any, Any]:
            found: dict[Any, Any] = {}
            for weight, mixture in zip(weights, mixtures, strict=True):
                claim.work(len(mixture))
                for atom, mass in mixture.items() if weight else ():
                    found[atom] = found.get(atom, 0) + weight * mass
            need(len(found) <= 2**12, "the unknown add too many different numbers.")
            return found

        def side(who: Sequence[int], begin: list[dict[Any, Any]], direction: int) -> Iterator[Any]:
            """Yield targets alike, how their sides end, after how many, and what these add."""
            states = range(len(begin))
            into, last = (back, [ONE] * len(begin)) if direction > 0 else (forth, laws[0])
            here = [[begin[v] if u == v else {} for u in states] for v in states]
            waiting = [(who, direction, here)]
            while waiting:
                who, step, here = waiting.pop()
                inside = [i for i in who if 0 <= i + step < self.size]
                if ended := [i for i in who if i not in inside]:
                    yield ended, "none", abs(step) - 1, [mixed(last, row) for row in here]
                there = [[mixed(weights, row) for weights in into if inside] for row in here]
                end = "far" if abs(step) == radius else "known"
                for w in states:
                    possible = [i for i in inside if laws[i + step][w]]
                    if possible and (self.most or end == "far"):
                        yield possible, end, abs(step) - 1, [row[w] for row in there]
                for own in {tuple(adds[i + step]) for i in inside if end == "known"}:
                    alike = [i for i in inside if tuple(adds[i + step]) == own]
                    here = [[*map(moved, row, own)] for row in there]
                    waiting.append((alike, step + direction, here))

        for own in set(map(tuple, adds)):
            alike = [i for i in range(self.size) if tuple(adds[i]) == own]
            begin = [moved({0: ONE} if unit else {0: ONE, 1: ONE}, x) for x in own]
            for targets, left, before, given in side(alike, begin, -1):
                for (target, *_), right, after, mixtures in side(targets, given, 1):
                    known, ends = self.size - 1 - before - after, [left, right]  # known at most
                    if self.fewest <= known and ends.count("known") <= self.most:
                        claim.work(sum(map(len, mixtures)))
                        tilts = [] if unit else [one[1] / one[0] for one in mixtures]
                        most = largest_quotient(mixtures, unit) if unit else max(tilts) / min(tilts)
                        most *= penalty ** ends.count("far")
                        reached = "far" not in ends and known <= self.most
                        claim.judge(most, self.names[target], reached=reached)


class Real(Part):
    """Jointly Gaussian values on intervals."""

    def check(self) -> None:
        """Check a covariance, or members who are alike (groups), or steps alike (series)."""
        claim, model, size = self.claim, self.model, self.size
        clamps = {query.get("clamp", False) for query in claim.queries}
        fine = self.added and not claim.charged and clamps in ({True}, {False})
        need(fine, "about such values, only sums are decided, all clamped or none.")
        self.clamped = clamps == {True}
        if model["type"] == "Gaussian":
            return self.check_covariance([numbers(row, size) for row in model["covariance"]])
        stored, series = model["correlation"], model["type"] == "GaussianSeries"
        low, high = numbers(stored if isinstance(stored, list) else [stored] * 2, 2)
        free = model["variance"] is None
        variance = number(1 if free else model["variance"])
        least = -1 if series or size < 3 else Fraction(-1, size - 1)
        need(least < low <= high < 1 and variance > 0, "this is no Gaussian law.")
        alike = len(set(zip(map(tuple, self.added), self.domains, strict=True))) == 1
        everyone = self.fewest == 0 and self.most == size - 1 and (low >= 0 or not series)
        if alike and everyone and (free or self.clamped or not claim.gaussian):  # K = ∅ (D)
            steps = (abs(k - (size - 1) // 2) for k in range(size))
            share = sum(max(high, ZERO) ** (step if series else min(step, 1)) for step in steps)
            moves = [share * (b - a) for a, b in zip(*self.added[0], strict=True)]
            return claim.judge_moves(moves, self.names[0], reached=free or not self.clamped)
        need(low == high and not (free and (claim.gaussian or self.clamped)), "unequal members.")
        apart = [[abs(j - k) if series else int(j != k) for k in range(size)] for j in range(size)]
        return self.check_covariance([[variance * low**step for step in row] for row in apart])

    def check_covariance(self, covariance: list[list[Fraction]]) -> None:
        """Check all sets of known tuples, exactly, in whole numbers (C)."""
        claim, both = self.claim, zip(self.added, self.domains, strict=True)
        symmetric = covariance == list(map(list, zip(*covariance, strict=True)))
        need(symmetric and len(covariance) == self.size, "the covariance must be symmetric.")
        slopes = [[(b - a) / (y - x) for a, b in zip(*ends, strict=True)] for ends, (x, y) in both]
        answers = list(zip(*slopes, strict=True))
        rows = [row + [sum(map(mul, answer, row)) for answer in answers] for row in covariance]
        columns = list(zip(*rows, strict=True))
        rows += [[sum(map(mul, answer, column)) for column in columns] for answer in answers]
        for place in range(self.size, len(rows)):
            rows[place][place] += int(claim.gaussian)  # of what is released, with this noise
        self.unit = math.lcm(*(value.denominator for value in chain(*rows)))
        start = [[int(value * self.unit) for value in row] for row in rows], 1
        reduce(given, range(self.size), start)  # it must be positive definite
        simple = len(answers) == 1 and not claim.gaussian and not self.clamped
        trees = claim.certificate.get("branches", {}) if simple else {}
        for target in range(self.size):
            others = [k for k in range(self.size) if k != target]
            self.branch(start, target, others, 0, trees.get(str(target)))

    def branch(self, state: Any, target: int, left: list[int], known: int, tree: Any) -> None:
        """Check all sets of known tuples that begin so, as the certificate's tree divides them."""
        # A tree is [about whom, tree if known, tree if not]; 0: one bound covers all; or try all.
        if known + len(left) < self.fewest:
            return
        if tree == 0 and tree is not None:
            if not self.is_bounded(state, target, left):
                raise Broken("it does not follow: a branch of the certificate may leak more.")
        elif not left or known == self.most:
            self.check_moves(state, target)
        else:
            need(tree or len(left) < MOST_GAUSSIAN, "too many tuples are undecided.")
            place, if_known, if_not = tree or (left[0], None, None)
            rest = left[: left.index(place)] + left[left.index(place) + 1 :]
            self.branch(given(state, place), target, rest, known + 1, if_known)
            self.branch(state, target, rest, known, if_not)

    def is_bounded(self, state: Any, target: int, left: list[int]) -> bool:
        """Whether nobody learns more than ε who knows this and any part of who is left (H)."""
        (rows, det), order, (low, high) = state, [*left, target, -1], self.domains[target]
        outer = [[rows[j][k] for k in order] for j in order], det

        def moments(rows: Any, det: int) -> list[Fraction]:
            return [Fraction(rows[j][k], det) for j, k in ((-2, -2), (-2, -1), (-1, -1))]

        (v0, c0, f0), (v, c, f) = moments(*outer), moments(*reduce(given, range(len(left)), outer))
        need(v > 0, "the covariance must be positive definite.")
        d, s, q = v0 - v, c0 - c, f0 - f  # what is explained by all who are left
        rest = self.claim.epsilon / (high - low) * v * v0 - abs(c * (v + d / 2) + s * v / 2)
        square = (c * d - s * v) ** 2 + max(d * q - s * s, ZERO) * v * v0
        return bool(rest >= 0 and 4 * rest**2 >= square)

    def check_moves(self, state: Any, target: int) -> None:
        """Compare how far the answers move, where x_i moves over its range, with the promise."""
        (rows, det), name, claim = state, self.names[target], self.claim
        row = rows[target]
        widths = [high - low for low, high in self.domains]
        need(row[target] > 0, "the covariance must be positive definite.")
        if self.clamped:
            own = widths[target] / row[target]
            shares = [min(1, abs(x) * own / width) for x, width in zip(row, widths, strict=False)]
            reach = [[abs(b - a) for a, b in zip(*ends, strict=True)] for ends in self.added]
            bounds = [sum(map(mul, shares, answer)) for answer in zip(*reach, strict=True)]
            claim.judge_moves(bounds, name, reached=False)
        elif not claim.gaussian:
            moves = [Fraction(value, row[target]) * widths[target] for value in row[self.size :]]
            claim.judge_moves(moves, name)
        else:
            released, above = reduce(given, range(self.size, len(row)), state)
            gain = Fraction(above, released[target][target]) - Fraction(det, row[target])
            claim.judge_mu(gain * self.unit * widths[target] ** 2, name)


def given(state: Any, place: int) -> Any:
    """Let one more be known: times its determinant, no division has a remainder (Bareiss)."""
    rows, det = state
    own, pivot = rows[place], rows[place][place]
    need(pivot > 0, "the covariance must be positive definite.")
    both = [(row[place], zip(row, own, strict=True)) for row in rows]
    return [[(pivot * x - mine * its) // det for x, its in pairs] for mine, pairs in both], pivot


FAMILIES: dict[str, type[Part]] = dict.fromkeys(("JointTable", "MarkovTree", "Network"), Finite)
FAMILIES |= {"BinaryGroup": Group, "CategoryGroup": Group, "MarkovChain": Chain, "Unknown": Part}
FAMILIES |= dict.fromkeys(("Gaussian", "GaussianGroup", "GaussianSeries"), Real)


def check_part(part: Part) -> None:
    """Check a set member by member, blocks one by one, and any other model as its family says."""
    claim, model, kind = part.claim, part.model, part.model["type"]
    need(model["provenance"] != "private" and "digest" not in model, "its numbers are withheld.")
    if kind == "ModelSet":
        for member in model["models"]:
            check_part(replace(part, model=member))
    elif kind == "Blocks":  # each alone (B)
        need(part.added, "a function of blocks is not decided here.")
        # Who may not know everything outside has that as more noise: what breaks may not break.
        total, start = sum(shape(model)[2]), 0
        claim.blurred |= part.most < total - 1
        for block in model["models"]:
            own = slice(start, start := start + len(block["names"]))
            names, domains, added = part.names[own], part.domains[own], part.added[own]
            fewest, most = max(0, part.fewest - total + len(names)), min(len(names) - 1, part.most)
            check_part(Part(claim, block, names, domains, added, fewest, most))
    else:
        about = part.names, part.domains, part.added, part.fewest, part.most
        FAMILIES[kind](claim, model, *about).check()


def read(stored: Stored) -> Part:
    """Return what a calibration claims, about whom, and what they add to the answers."""
    claim, who = Claim(stored), stored["adversaries"]
    need(set(who) == {"at_least", "at_most"}, "an adversary by name is not decided here.")
    names, domains, copies = shape(stored["model"])
    others, function = sum(copies) - 1, "Custom" in {one["type"] for one in claim.queries}
    fewest, most = (others if who[end] is None else int(number(who[end])) for end in sorted(who))
    need(0 <= fewest <= min(most, others), "nobody is admitted, so nothing is promised.")
    added = [] if function else additions(claim, names, domains, copies)
    return Part(claim, stored["model"], names, domains, added, fewest, min(most, others))


def calibrations(stored: Stored) -> Iterator[Stored]:
    """Yield what a ledger has released, for each draw of the data as one calibration."""
    # Whatever led to a query, on one course of outputs the density is that of all, asked at once.
    need(stored["entries"] and set(stored) <= {*LEDGER.split(), "certificate"}, "no ledger here.")
    draws: dict[str, list[Stored]] = {}
    for entry in stored["entries"]:
        allowed = f"{ENTRIES['all']} {ENTRIES[entry['kind']]}".split()
        need(set(entry) <= set(allowed), "an entry says what is not decided here.")
        draws.setdefault(entry["draw"], []).append(entry)
    for entries in draws.values():
        released = [entry for entry in entries if entry["kind"] == "release"]
        other = [number(entry["dp_epsilon"]) for entry in entries if entry["kind"] != "release"]
        need(min(other, default=0) >= 0, "no mechanism spends less than nothing.")
        (rows,) = {entry["rows"] for entry in released}
        pairs = [p for e in released for p in zip(e["queries"], e["scales"], strict=True)]
        asked = {"query": [query for query, _ in pairs], "scale": [scale for _, scale in pairs]}
        asked |= {"noise": ["Laplace"] * len(pairs), "rows": rows}
        yield stored | asked | {"type": "Calibration", "charged": sum(other, ZERO)}


def check(stored: Any) -> tuple[int, str]:
    """Decide about the content of a file: 0 proved, 1 broken, 2 undecided, and why."""
    try:
        json.dumps(stored, allow_nan=False)  # no number of a file may be infinite, or none
        held = stored["calibration"] if stored["type"] == "Release" else stored
        with localcontext(EXACT):
            for one in calibrations(held) if held["type"] == "Ledger" else [held]:
                part = read(one)
                check_part(part)
    except Broken as answer:
        return BROKEN, f"Not so: {answer}"
    except Undecided as answer:
        return UNDECIDED, f"Cannot decide: {answer}"
    except (*DAMAGE, RecursionError, MemoryError) as error:
        return UNDECIDED, f"Cannot decide: the file is damaged ({type(error).__name__})."
    delta = f", δ = {float(part.claim.delta):g}" if part.claim.gaussian else ""
    return PROVED, f"Proved: nobody learns more than ε = {float(part.claim.epsilon):g}{delta}."


def check_file(path: Path) -> tuple[int, str]:
    """Decide about a file."""
    try:
        return check(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, RecursionError):
        return UNDECIDED, "Cannot decide: the file cannot be read as JSON."


if __name__ == "__main__":
    code, answer = check_file(Path(" ".join(sys.argv[1:])))
    sys.stdout.buffer.write(f"{answer}\n".encode(errors="backslashreplace"))
    sys.exit(code)
