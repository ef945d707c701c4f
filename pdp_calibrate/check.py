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
   Where all differences of what values add are parallel, several answers are one number: the
   place along that direction, whose unit moves them by its length in L1.
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
N  (rows). One row changes a count by 1, or by 1 in two parts; a sum by its range, or by what leaves
   one part and what enters another; a sum in half ranges and a count, for a mean, by 2, or both in
   two parts. A household of m rows, of any dependence, changes them by m times that.
O  (learning). A model learned from the same data with ε' adds ε', and multiplies δ by e^ε'.
Q  (distances). In a chain let e^{D_b} be the largest quotient of P(x_{t+b}=w|v)/P(x_{t+b}=w|v')
   over the smallest, and e the most that one tuple moves the log-likelihood. What the n-1 tuples
   after t add for v, v', whoever of them is known, is H_n = min of H_b + D_b ⊗ (e + max H_{n-b} +
   max S_b) over 0 < b < n, S the same to the left; or Σ_j e·c_j, c_j = tanh(D_1/4) for j = 1, then
   (2/B)·log(cosh((D_j+2B)/4)/cosh(D_j/4)), B = (j-1)·e. No n has more than an M with M ≥ the
   largest over v, v' of the same minimum over 0 < b ≤ N with M in the place of H_{n-b}.
P  (people). Who knows other entries of a column learns of one, from what was released about this
   column, what its model allows, and from all else at most how far a whole household moves it.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, Context, Decimal, Subnormal, localcontext
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
MOST_STEPS = 10**9  # of work: a step is some tenth of a microsecond
MOST_HELD = 2 * 10**6  # numbers and cells that are kept at once: some hundreds of bytes each
MOST_BYTES = 10**7  # of a file
MOST_GAUSSIAN = 13  # tuples of a covariance whose sets of known tuples are all checked
FORMAT = 2  # the latest version of files that this checker knows
SUMS = {"Sum": "over clamp", "Mean": "over clamp", "Linear": "by clamp weights"}
FIELDS = SUMS | {"Count": "over values", "Histogram": "over categories", "Custom": "over table"}
FIELDS["RowQuery"] = "kind value bounds independent where by missing public sizes most keep_by"
FIELDS["RowQuery"] += " seed every"
ENTRIES = {"release": "queries scales rows epsilon layout sizes", "charge": "dp_epsilon"}
ENTRIES |= {"estimation": "dp_epsilon", "all": "kind note draw at spent method"}
LEDGER = "schema version type epsilon draws entries checksum anchor"
MODELS = {"all": "schema version type names provenance estimation_epsilon coverage"}
MODELS |= {"JointTable": "domains probabilities", "MarkovTree": "domains parents tables"}
MODELS |= {"Network": "domains scopes factors influences", "MarkovChain": "states length initial"}
MODELS |= {"BinaryGroup": "count_probabilities", "CategoryGroup": "count_probabilities categories"}
MODELS |= {"Unknown": "domain bounds", "Gaussian": "mean covariance bounds", "ModelSet": "models"}
MODELS |= dict.fromkeys(("GaussianGroup", "GaussianSeries"), "correlation bounds variance")
MODELS |= {"Blocks": "models counts"}
MODELS["MarkovChain"] += " transition"
MODELS |= {kind: f"{own} size" for kind, own in MODELS.items() if kind.endswith(("Group", "own"))}

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


def intact(condition: object, otherwise: str) -> None:
    """Stop the check of a file that is not what it should be."""
    need(condition, f"the file is damaged: {otherwise}")


def follows(condition: object, otherwise: str) -> None:
    """Stop the check of a file that contradicts itself."""
    if not condition:
        raise Broken(f"it does not follow: {otherwise}")


def number(value: Any) -> Fraction:
    """Return a finite number as the exact fraction that it is."""
    plain = isinstance(value, int | float | Fraction) and not isinstance(value, bool)
    intact(plain and abs(value) < 2**1024, "a number is needed where there is none.")
    return Fraction(value)


def numbers(values: Any, *sizes: int) -> list[Fraction]:
    """Return the numbers of nested lists, in order, if the lists have these sizes."""
    if not sizes:
        return [number(values)]
    fits = isinstance(values, list) and len(values) == sizes[0]
    intact(fits, "a table does not fit its tuples.")
    return [found for part in values for found in numbers(part, *sizes[1:])]


def at_most(value: Any) -> int:
    """Return a whole number from 0."""
    intact(type(value) is int and value >= 0, "a whole number is needed where there is none.")
    return int(value)


def shown(value: Any) -> str:
    """Return a number of the file in six digits, rounded up, but for the last bits of a float."""
    least = Decimal(str(float(value))) * (1 - Decimal("1e-15"))
    near = Context(prec=6, rounding=ROUND_CEILING).create_decimal(least)
    return f"{float(near):g}"


def law(values: Sequence[Fraction]) -> list[Fraction]:
    """Return probabilities: none negative, adding up to 1 as floats do, made to do so exactly."""
    total = sum(values, ZERO)
    intact(min(values) >= 0 and abs(total - 1) <= Fraction(1, 10**6), "no probabilities.")
    return [value / total for value in values]


def listed(values: Any) -> list[Any]:
    """Return a list of names or values so that they can be looked up."""
    intact(isinstance(values, list), "a list is needed where there is none.")
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


def spread(values: Sequence[Vector], meter: Meter, *, square: bool = False) -> Fraction:
    """Return how far two of the answers are apart at most, in L1 or as a square in L2."""
    if len(values[0]) == 1:
        apart = max(values)[0] - min(values)[0]
        return apart**2 if square else apart
    meter.work(len(values) * (200 + 2 * len(values[0])))
    power = 2 if square else 1
    found = {tuple((k, x) for k, x in enumerate(own) if x) for own in values}
    sizes = {own: power * sum((abs(x) ** power for _, x in own), ZERO) for own in found}
    order, most = sorted(found, key=sizes.__getitem__, reverse=True), ZERO
    for place, one in enumerate(order):
        for other in order[:place]:  # no two are farther apart than both from 0, together
            if sizes[one] + sizes[other] <= most:
                break
            meter.work(50 * (len(one) + len(other) + 1))
            differ = dict(one)
            for k, x in other:
                differ[k] = differ.get(k, ZERO) - x
            most = max(most, sum((abs(x) ** power for x in differ.values()), ZERO))
    return most


class Meter:
    """How much work a whole file takes, counted before it is done."""

    def __init__(self) -> None:
        self.steps, self.most = 0, MOST_STEPS

    def work(self, steps: int, held: int = 0) -> None:
        """Count steps, and numbers that are kept, and stop what takes too many."""
        self.steps += steps
        fine = self.steps <= self.most and held <= MOST_HELD
        need(fine, "it is too large: it would take too many steps.")


class Free(tuple[Fraction, Fraction]):
    """The ends of a range of values of any dependence, which may stand for whole rows."""

    __slots__ = ()


class Claim:
    """What a calibration says, as exact numbers."""

    def __init__(self, stored: Stored, meter: Meter) -> None:
        intact(stored["schema"] == "pdp-calibrate/1", "it is not of this library.")
        known = at_most(stored.get("version", 1)) <= FORMAT
        need(known and stored["type"] == "Calibration", "not covered: a later version, or no file.")
        asked = [stored[field] for field in ("query", "scale", "noise")]
        asked = asked if isinstance(asked[0], list) else [[one] for one in asked]
        (self.queries, scales, self.noises), self.meter, self.most = asked, meter, ZERO
        self.scales = numbers(scales, len(self.queries))
        self.gaussian = "Gaussian" in self.noises
        kinds = {"Gaussian"} if self.gaussian else {"Laplace", "discrete Laplace"}
        intact(len(self.noises) == len(self.queries), "a query has no noise.")
        need(set(self.noises) <= kinds, "not covered: this noise.")
        for one in self.queries:
            kind = one["type"]
            need(kind in FIELDS, f"not covered: a query of type {kind}.")
            more = set(one) - {"type", *FIELDS[kind].split()}
            need(not more, f"not covered: {', '.join(sorted(more))} of {kind}.")
        self.rows, promised = number(stored["rows"]), number(stored["epsilon"])
        self.delta, self.mu = (number(stored[k] if self.gaussian else 0) for k in ("delta", "mu"))
        self.charged = number(stored.get("charged", 0))  # what other mechanisms tell of each tuple,
        on_top = number(stored.get("on_top", 0))  # and what all of them together tell of any
        self.epsilon = promised - on_top
        self.parted = False  # whether answers about rows are in several parts
        self.blurred = self.charged > 0  # more noise is left out: no bound is known to be reached
        leakage = stored.get("leakage") or {}
        stated = promised if self.gaussian else number(leakage.get("value", promised))
        self.stated = stated - on_top
        fine = self.queries or self.charged or on_top
        fine = (
            fine and promised > 0 and min(self.scales, default=1) > 0 < self.rows == int(self.rows)
        )
        fine = fine and min(self.charged, on_top, self.mu, self.delta, 1 - self.delta) >= 0
        intact(fine, "ε, scales, μ and rows must be positive, and δ a share.")
        need(promised < 700, "not covered: an ε of 700 or more.")
        follows(stated <= promised, f"the file itself states {float(stated):.9g}.")
        need(self.epsilon > 0, "what else was spent leaves nothing for the answers.")

    def work(self, steps: int, held: int = 0) -> None:
        """Count work before it is done."""
        self.meter.work(steps, held)

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
        self.work(20_000 if self.most < square else 10)
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
        intact(plain, "discrete noise needs whole numbers.")
        return tuple(x / self.scales[place] for x in answer)


def learned(model: Stored) -> Fraction:
    """Return the budget that was spent on learning a model (O)."""
    own = model.get("estimation_epsilon")
    inner = {id(one): one for one in model.get("models", ())}
    if own is not None:
        return number(own)
    dp = model["provenance"] == "dp" and not inner
    need(not dp, "not covered: a model learned with a budget that is not in the file.")
    return sum(map(learned, inner.values()), ZERO)


def covered(model: Stored) -> list[Stored]:
    """Return what a model, or the models that it is made of, say about the error of learning."""
    own = model.get("coverage")
    if own is None:
        return list(
            chain(*map(covered, {id(one): one for one in model.get("models", ())}.values()))
        )
    more = set(own) - {"kind", "confidence", "over", "notes", "upper"}
    need(not more, f"not covered: {', '.join(sorted(more))} of a coverage.")
    intact(own["kind"] in ("covered", "point", "no band"), "no such coverage.")
    share = number(own.get("confidence") or 0) if own["kind"] == "covered" else Fraction(1, 2)
    intact(0 < share < 1, "a covering set has a confidence.")
    return [own]


def condition(models: Sequence[Stored]) -> str:
    """Say what has to be right about models that were learned from data."""
    found = list(chain(*map(covered, models)))
    missed = sum((1 - number(own["confidence"]) for own in found if own["kind"] == "covered"), ZERO)
    open_ones = {own["kind"]: "" for own in found if own["kind"] != "covered"}
    says = [f"the set of models holds the truth, which it misses with probability {shown(missed)}"]
    says = says if missed else []
    says += ["the learned model is right, whose error nothing covers"] if open_ones else []
    return f", if {' and '.join(says)}" if says else ""


def shape(model: Stored) -> tuple[list[Any], list[Any], list[int]]:
    """Return the names of a model, the values of each tuple, and how many copies there are."""
    kind = model["type"]
    need(at_most(model.get("version", 1)) <= FORMAT, "not covered: a later version of a model.")
    need(kind in MODELS, f"not covered: a model of type {kind}.")
    withheld = model["provenance"] == "private" or "digest" in model
    need(not withheld, "not covered: a model whose numbers are withheld.")
    intact(model["provenance"] in ("assumed", "public", "dp"), "no such provenance.")
    more = set(model) - {*MODELS["all"].split(), *MODELS[kind].split()}
    need(not more, f"not covered: {', '.join(sorted(more))} of {kind}.")
    need(model.get("length", 0) is not None, "not covered: a model without an end.")
    names = listed(model["names"])
    intact(len(set(names)) == len(names) > 0 <= len(covered(model)), "names must differ.")
    if kind in ("ModelSet", "Blocks"):
        inner = [shape(one) for one in model["models"]]
        if kind == "ModelSet":
            fits = inner == [(names, *inner[0][1:])] * len(inner)
            intact(fits, "the models differ in shape.")
            return inner[0]
        both = zip(inner, map(at_most, model["counts"]), strict=True)
        copies = [n for (_, _, own), n in both for k in own if k == 1 <= n]
        need(len(copies) == len(names), "not covered: blocks of copied blocks.")
        return names, list(chain(*(found for _, found, _ in inner))), copies
    values = model | {"domain": [0, 1]} if kind == "BinaryGroup" else model
    held = {"domains", "domain", "states", "categories", "bounds"} & set(values)
    (field,) = {name for name in held if values[name] is not None}
    each = field == "domains" or (field == "bounds" and isinstance(values[field][0], list))
    fields = {Finite: "domains", Chain: "states", Group: "domain categories", Real: "bounds"}
    intact(field in fields.get(FAMILIES[kind], "domain bounds").split(), "no such values.")
    domains = values[field] if each else [values[field]]
    alike: dict[Any, Any] = {}  # tuples with the same values share them
    if field == "bounds":
        ends = Free if kind == "Unknown" else tuple
        domains = [ends(numbers(own, 2)) for own in domains]
        intact(all(low < high for low, high in domains), "a range must begin below its end.")
    else:
        domains = list(map(listed, domains))
        intact(all(len(set(own)) == len(own) > 0 for own in domains), "values must differ.")
    domains = [alike.setdefault(tuple(own), own) for own in domains]
    domains = domains if each else domains * len(names)
    sizes = {len(domains), model.get("length", len(names)), model.get("size", len(names))}
    intact(sizes == {len(names)}, "every tuple needs its values.")
    return names, domains, [1] * len(names)


def decides(query: Stored, *roles: str) -> list[Any]:
    """Return the columns that decide which rows count, or in which part."""
    return [one["column"] for role in roles for one in query[role]]


def question(query: Stored, *, gaussian: bool = False) -> list[Fraction]:
    """Return a change of the answers that is as long as any that one row makes (N)."""
    intact(set(query) == {"type", *FIELDS["RowQuery"].split()}, "a question lacks something.")
    missing, public, value = query["missing"], listed(query["public"]), query["value"]
    for role in ("where", "by"):
        names, values = decides(query, role), [listed(one["values"]) for one in query[role]]
        fine = len({*names, value}) == len(names) + 1
        fine = fine and all(len(set(own)) == len(own) > 0 and None not in own for own in values)
        intact(fine, "a column, or a value of one, is named twice, or none.")
    count, kept = query["kind"] == "count", query["keep_by"] is not None
    intact(count == (value is None) == (query["bounds"] is None), "a sum needs values.")
    seed = at_most(query["seed"] or 0) and not kept
    intact(not seed and kept == (query["most"] is not None), "it does not say which rows count.")
    labels = [
        len(one["values"]) + (missing.get(one["column"]) == "category")
        for one in query["by"]
        if one["column"] not in public
    ]
    deciding = set(decides(query, "where", "by"))
    value = None if value in public else value
    leaves = deciding - set(public) or (value is not None and missing.get(value) == "zero")
    moves = math.prod(labels) > 1
    if count:
        return [Fraction(1)] * (2 if moves else 1)
    low, high = numbers(query["bounds"], 2)
    intact(query["kind"] in ("sum", "mean") and low < high, "no question about rows.")
    if query["kind"] == "mean" and (moves or leaves):  # a noisy sum over a noisy count
        return [Fraction(1)] * 4 if moves else [Fraction(2)]
    if moves:
        largest, width = max(abs(low), abs(high)), high - low
        return [width] if gaussian and width**2 > 2 * largest**2 else [largest] * 2
    return [max(high, ZERO) - min(low, ZERO) if leaves else high - low]


def values_of_rows(claim: Claim, place: int, domain: Any) -> list[Vector]:
    """Return what a row adds at both ends of its range (N)."""
    query = claim.queries[place]
    intact(isinstance(domain, tuple), "rows stand for values of an interval.")
    change = question(query, gaussian=claim.gaussian)
    if isinstance(domain, Free):  # it stands for a whole row
        return [claim.in_units(place, [ZERO] * len(change)), claim.in_units(place, change)]
    asked = set(decides(query, "where", "by")) - set(query["public"])
    cells = [len(listed(one["values"])) for one in query["by"]]
    others = {*query["missing"], *query["public"]}
    alone = query["kind"] != "count" and not asked and query["value"] not in others
    need(alone, "not covered: a correlation, of a question that depends on more than one column.")
    intact(numbers(query["bounds"], 2) == list(domain), "the model is about other values.")
    claim.parted |= math.prod(cells) > 1
    return [claim.in_units(place, [end]) for end in domain]


def additions(claim: Claim, names: list[Any], domains: list[Any], copies: list[int]) -> Any:
    """Return, per tuple and value, what it adds to the answers, each in units of its own noise."""
    position = {name: place for place, name in enumerate(names)}
    asked: list[tuple[dict[Any, Fraction], Any]] = []  # weights, and groups of values to count
    for query in claim.queries:
        kind, over = query["type"], query.get("over")
        chosen = names if over is None else listed(over)
        claim.work(10 * len(names), len(names) * len(claim.queries))
        intact(position.keys() >= set(chosen) and len(chosen) == len(set(chosen)), "no such tuple.")
        weights, groups = dict.fromkeys(chosen, Fraction(1)), None
        if kind == "Mean":
            share = claim.rows * sum(copies[position[name]] for name in chosen)
            weights = dict.fromkeys(chosen, 1 / share)
        elif kind == "Linear":
            pairs = zip(names, query["weights"], strict=True)
            named = query["weights"] if query["by"] == "name" else pairs
            weights = {listed([name])[0]: number(weight) for name, weight in named}
            intact(weights and position.keys() >= weights.keys(), "no such tuple.")
        elif kind == "Count":
            groups = dict.fromkeys(listed(query["values"]), 0)
        elif kind == "Histogram":
            own = {id(values): values for values in (domains[position[k]] for k in chosen)}
            every = query["categories"] or list(chain(*own.values()))
            groups = {value: k for k, value in enumerate(dict.fromkeys(listed(every)))}
        asked.append((weights, groups))
    alike: dict[Any, list[Vector]] = {}  # tuples with the same values and weights share a list
    found = []
    for name, domain in zip(names, domains, strict=True):
        key = id(domain), *(weights.get(name, ZERO) for weights, _ in asked)
        if key not in alike:
            alike[key] = added_by(claim, domain, [(w.get(name, ZERO), g) for w, g in asked])
        found.append(alike[key])
    return found


def added_by(claim: Claim, domain: Any, asked: Sequence[tuple[Fraction, Any]]) -> list[Vector]:
    """Return, per value of one tuple, what it adds to the answers."""
    columns: list[list[Vector]] = []
    for place, (weight, groups) in enumerate(asked):
        many = 1 if groups is None else max(groups.values()) + 1
        claim.work(len(domain) * (60 + many), len(domain) * many)
        if claim.queries[place]["type"] == "RowQuery":
            columns.append(values_of_rows(claim, place, domain))
        elif groups is None:  # yes and no are 1 and 0
            whole_noise = claim.noises[place] == "discrete Laplace"
            intact(isinstance(domain, list) or not whole_noise, "discrete noise on an interval.")
            plain = [weight and number(value * 1) for value in domain]
            columns.append([claim.in_units(place, [weight * one]) for one in plain])
        else:
            intact(isinstance(domain, list), "values of an interval are not counted.")
            (one,), nothing = claim.in_units(place, [weight]), (ZERO,) * many
            places = [groups.get(value) for value in domain]
            ones = {k: (*nothing[:k], one, *nothing[k + 1 :]) for k in places if k is not None}
            columns.append([nothing if k is None else ones[k] for k in places])
    claim.work(0, len(domain) * sum(len(column[0]) for column in columns))
    return [tuple(chain(*row)) for row in zip(*columns, strict=True)] or [()] * len(domain)


def along_line(added: Any, meter: Meter) -> Any:
    """Return the one number that answers with parallel differences are (A); otherwise the same."""
    alike = {id(own): own for own in added}
    many = len(added[0][0]) if added else 1
    if many == 1:
        return added
    meter.work(sum(map(len, alike.values())) * (20 + 6 * many))
    steps = (
        [x - y for x, y in zip(one, own[0], strict=True)] for own in alike.values() for one in own
    )
    direction = next((step for step in steps if any(step)), None)
    if direction is None:
        return added
    at = next(k for k, x in enumerate(direction) if x)
    length, found = sum(map(abs, direction)), {}
    for key, own in alike.items():
        shares = [(one[at] - own[0][at]) / direction[at] for one in own]
        for one, share in zip(own, shares, strict=True):
            if any(x - y != share * u for x, y, u in zip(one, own[0], direction, strict=True)):
                return added
        found[key] = [(share * length,) for share in shares]
    return [found[id(own)] for own in added]


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
    certificate: Stored = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.size, self.sizes = len(self.names), list(map(len, self.domains))
        self.claim.work(1_000 + 10 * self.size)

    def reaches(self, *, square: bool = False) -> list[Fraction]:
        """Return how far each tuple moves the answers; those that add alike are compared once."""
        meter, alike = self.claim.meter, {id(own): own for own in self.added}
        found = {key: spread(own, meter, square=square) for key, own in alike.items()}
        return [found[id(own)] for own in self.added]

    def check(self) -> None:
        """Let all who are not known move with the target (E)."""
        claim, moving = self.claim, self.size - self.fewest
        rows = any(query["type"] == "RowQuery" for query in claim.queries)
        reached = len(self.added[0][0]) == 1 and not rows
        reach = self.reaches(square=claim.gaussian)
        claim.work(30 * self.size)
        order = sorted(range(self.size), key=reach.__getitem__, reverse=True)[:moving]
        farthest, name = [reach[k] for k in order], self.names[order[0]]
        if not claim.gaussian:
            claim.judge_moves([sum(farthest, ZERO) + moving * claim.charged], name, reached=reached)
        elif len(set(farthest)) == 1:
            claim.judge_mu(farthest[0] * moving**2, name, reached=reached)
        else:  # lengths add up: Minkowski
            root = sum((decimal(square).sqrt() for square in farthest), Decimal(0))
            claim.judge_mu(Fraction(root * (1 + SLACK)) ** 2, name, reached=False)


class Finite(Part):
    """Tuples of finitely many values."""

    ways: tuple[str, ...] = ("check_plans", "check_table", "check_couplings")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.claim.gaussian:
            self.added = along_line(self.added, self.claim.meter)

    def check(self) -> None:
        """Check who knows everyone else, then all others in the first way that decides."""
        claim, reason = self.claim, Undecided("not covered: this function.")
        need(not claim.gaussian, "not covered: Gaussian noise on finite laws.")
        if self.most == self.size - 1 and self.added:
            for name, reach in zip(self.names, self.reaches(), strict=True):
                claim.judge_moves([reach + claim.charged], name)
        elif self.most == self.size - 1:
            answers = self.answers()
            claim.work(30 * len(answers) * self.size)
            for target, name in enumerate(self.names):
                for line in zip(*self.rows(target, answers, self.order(target)), strict=True):
                    claim.judge_moves([spread(line, claim.meter) + claim.charged], name)
        if self.fewest == self.size - 1:
            self.read_law()  # which nobody needs: the promise rests on the answers alone
            return
        ways = self.ways if self.added else ("check_table",)
        if claim.charged:
            ways = tuple(way for way in self.ways if way in {"check_couplings", "check_distances"})
        for way in ways:
            meter, most = claim.meter, claim.meter.most
            meter.most = most if way == ways[-1] else meter.steps + (most - meter.steps) * 7 // 8
            try:
                getattr(self, way)()
            except Undecided as found:
                reason = found
            else:
                return
            finally:
                meter.most = most
        raise reason

    def read_law(self) -> None:
        """Read the law, to see that it is one."""
        for _ in self.factors():
            pass

    def answers(self) -> list[Vector]:
        """Return the answer in every cell: of additions their sum, of a function as stored."""
        if self.added:
            cells, many = math.prod(self.sizes), len(self.added[0][0])
            self.claim.work(15 * cells * self.size * many, cells * many)
            every = (zip(*one, strict=True) for one in product(*self.added))
            return [tuple(sum(column, ZERO) for column in columns) for columns in every]
        claim, (query, *more) = self.claim, self.claim.queries
        fine = claim.rows == 1 and not more and math.prod(self.sizes) <= 4 * MOST_CELLS
        need(fine, "not covered: a function of several rows, beside others, or of too many cells.")
        chosen = self.names if query["over"] is None else listed(query["over"])
        places = [list(self.names).index(name) for name in chosen]
        stored = {tuple(listed(cell)): number(value) for cell, value in query["table"]}
        keys = (tuple(cell[k] for k in places) for cell in product(*self.domains))
        return [claim.in_units(0, [stored[key]]) for key in keys]

    def factors(self) -> Iterator[tuple[Any, Any]]:
        """Yield the tuples of every factor of the law, and its cells."""
        model, kind = self.model, self.model["type"]
        if kind == "JointTable":
            need(math.prod(self.sizes) <= 4 * MOST_CELLS, "it has too many cells.")
            scopes, tables = [list(range(self.size))], [model["probabilities"]]
        elif kind == "MarkovTree":
            scopes = [[j] if up is None else [up, j] for j, up in enumerate(model["parents"])]
            tables = model["tables"]
        else:
            need(not model.get("influences"), "not covered: a network given by influences.")
            scopes, tables = model["scopes"], model["factors"]
        for scope, table in zip(scopes, tables, strict=True):
            sizes = [self.sizes[place] for place in scope]
            intact(len(set(scope)) == len(scope) and min(scope) >= 0, "no scope.")
            self.claim.work(100 * math.prod(sizes), 4 * math.prod(sizes))
            cells = numbers(table, *sizes)
            intact(min(cells) >= 0 and any(cells), "no factor.")
            if kind != "Network":  # every row is a law, or the whole table is one
                many = len(cells) if kind == "JointTable" else sizes[-1]
                cells = [x for k in range(0, len(cells), many) for x in law(cells[k : k + many])]
            yield scope, dict(zip(product(*map(range, sizes)), cells, strict=True))

    def weights(self) -> list[int]:
        """Return how likely every cell is, times a constant."""
        largest = 4 * MOST_CELLS if self.model["type"] == "JointTable" else MOST_CELLS
        need(math.prod(self.sizes) <= largest, "it is too large.")
        factors, cells = list(self.factors()), product(*map(range, self.sizes))
        self.claim.work(math.prod(self.sizes) * (40 + 20 * sum(len(scope) for scope, _ in factors)))
        every = ([f[tuple(cell[k] for k in scope)] for scope, f in factors] for cell in cells)
        return whole([decimal(math.prod(found)) for found in every])

    def order(self, target: int, otherwise: Sequence[int] | None = None) -> Sequence[int]:
        """Return all others, in the order that the certificate names, if it names one."""
        others = [k for k in range(self.size) if k != target]
        order = self.certificate.get("orders", {}).get(str(target))
        follows(order is None or sorted(order) == others, "an order must name all others once.")
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
            cells = len(here[0]) * len(here[0][0])
            self.claim.work(20 + cells * (1 + len(here[0])) * len(here) // 2)
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
        claim.work(math.prod(map(len, axes)) * (300 * len(there) + 4 * len(weights) * self.size))
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
        need(isinstance(self.certificate.get("plans"), list), "no plans are given.")
        plans = chain(self.certificate["plans"], repeat(None))
        for (name, p, q), plan in zip(self.pairs_of_laws(), plans, strict=False):
            self.claim.work(len(p) * (500 + len(q) * 20 * (1 + len(min(p)))))
            self.claim.judge(most_paid(p, q, plan), name, reached=False)

    def pairs_of_laws(self) -> Iterator[tuple[Any, dict[Any, Any], dict[Any, Any]]]:
        """Yield a target and laws of the answers given two of its values, whoever is known."""
        need(math.prod(self.sizes) <= MOST_CELLS, "there would be too many plans.")
        cells = zip(self.answers(), self.weights(), strict=True)
        table = [((answer, weight),) if weight else () for answer, weight in cells]
        for target, name in enumerate(self.names):
            for (rows,) in self.knowledge(target, [table]):
                self.claim.work(10 * sum(map(len, rows)))
                laws: list[dict[Any, Any]] = [{} for row in rows if row]
                for own, row in zip(laws, filter(None, rows), strict=True):
                    for answer, weight in row:
                        own[answer] = own.get(answer, 0) + weight
                yield from ((name, p, q) for p, q in permutations(laws, 2))

    def check_couplings(self) -> None:
        """Bound what anyone learns by summing out one tuple after the other (I)."""
        near = [dict[int, Decimal]() for _ in self.names]  # e^{D/2} of those coupled with each
        last, ratios = None, dict[tuple[int, int], Decimal]()  # steps of a chain share a factor
        for scope, cells in self.factors():
            ratios = ratios if cells is last else {}
            for (a, j), (b, k) in combinations(enumerate(scope), 2):
                if (a, b) not in ratios:
                    self.claim.work(15 * len(cells) * (2 + self.sizes[j]))
                    ratios[a, b] = cross_ratio(cells, a, b).sqrt()
                near[j][k] = near[k][j] = near[j].get(k, ONE) * ratios[a, b]
            last = cells
        budgets = [kernel(-(reach + self.claim.charged) / 2) for reach in self.reaches()]
        self.claim.work(self.size * sum(20 + 2 * len(row) for row in near))
        for target, name in enumerate(self.names):
            nearest, found = [target], {target}
            for place in nearest:
                new = [k for k in near[place] if k not in found]
                nearest += new
                found.update(new)
            left, told = [dict(row) for row in near], list(budgets)
            for j in self.order(target, nearest[:0:-1]):  # those whom nothing couples tell nothing
                row, left[j] = left[j], {}
                self.claim.work(10 + 10 * len(row) + 5 * len(row) ** 2)
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


def passed_on(one: Decimal, other: Decimal) -> Decimal:
    """Return e^{(a ⊗ b)/2} for e^{a/2} and e^{b/2}."""
    return min(one, other) if INFINITE in (one, other) else (1 + one * other) / (one + other)


def quotients(one: Sequence[Decimal], other: Sequence[Decimal]) -> Decimal:
    """Return the root of the largest quotient of two laws over the smallest; of zeros, infinity."""
    possible = [(p, q) for p, q in zip(one, other, strict=True) if p or q]
    if not all(p and q for p, q in possible):
        return INFINITE
    found = [p / q for p, q in possible]
    return (max(found) / min(found)).sqrt() if found else ONE


def differing(apart: Decimal, level: Decimal, steps: int) -> Decimal:
    """Return e^{e·c/2} of the tuple some steps away, for e^{D/2} and e^{e/2} (Q)."""
    if apart == INFINITE:
        return level
    if steps == 1:
        return level ** ((apart - 1) / (apart + 1))
    before = level ** (2 * (steps - 1))
    return level * ((1 + 1 / (apart * before)) / (1 + 1 / apart)) ** (ONE / (steps - 1))


def cross_ratio(cells: Any, a: int, b: int) -> Decimal:
    """Return the largest cross-ratio of a factor in tuples a < b; of zeros, infinity."""
    values = {place: decimal(Fraction(cell)) for place, cell in cells.items()}
    ends: dict[Any, tuple[Decimal, Decimal]] = {}  # the least and the largest quotient
    for place, cell in values.items():
        for w in range(place[a]):
            other = values[(*place[:a], w, *place[a + 1 :])]
            if not (cell and other):
                return INFINITE
            key, quotient = (w, *place[:b], *place[b + 1 :]), cell / other
            low, high = ends.get(key, (quotient, quotient))
            ends[key] = min(low, quotient), max(high, quotient)
    return max([ONE, *(high / low for low, high in ends.values())])


def on_lattice(part: Part) -> tuple[list[list[int]], Fraction]:
    """Return what each value of each tuple adds to one answer, in whole multiples of a unit."""
    need(len(part.added[0][0]) == 1, "several answers, or a function.")
    alike = {id(own): [x for (x,) in own] for own in part.added}
    below = 1
    for x in chain(*alike.values()):
        part.claim.work(40 + below.bit_length() // 8)
        below = math.lcm(below, x.denominator)
        need(below.bit_length() < 10_000, "what the tuples add has no common unit.")
    part.claim.work(100 * sum(map(len, alike.values())))
    unit = Fraction(math.gcd(*(int(x * below) for x in chain(*alike.values()))) or 1, below)
    found = {key: [int(x / unit) for x in own] for key, own in alike.items()}
    return [found[id(own)] for own in part.added], unit


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
    if values == 1:
        yield (members,), 1
        return
    for first in range(members + 1):
        ways = math.comb(members, first)
        for rest, inner in counts(members - first, values - 1):
            yield (first, *rest), ways * inner


class Group(Finite):
    """Members who may be exchanged for each other."""

    ways = (*Finite.ways[:2], "check_counts", "check_couplings")

    def arrangements(self) -> dict[tuple[int, ...], Fraction]:
        """Return how likely one arrangement of the members is, by how many hold each value."""
        size, values = self.size, self.sizes[0]
        intact(min(size, values - 1) < 30, "no file has so many counts.")
        many = math.comb(size + values - 1, size)
        self.claim.work(many * (200 + size**2 // 5_000), many * (4 + size // 100))
        stored = law(numbers(self.model["count_probabilities"], many))  # binary: by number of 1s
        held = sorted(counts(size, values), reverse=self.model["type"] == "BinaryGroup")
        return {n: p / ways for (n, ways), p in zip(held, stored, strict=True)}

    def read_law(self) -> None:
        """Read the law, however many cells it has."""
        self.arrangements()

    def factors(self) -> Iterator[tuple[Any, Any]]:
        """Yield the law as one factor."""
        need(math.prod(self.sizes) <= MOST_CELLS, "it has too many cells.")
        one, values = self.arrangements(), range(self.sizes[0])
        cells = product(values, repeat=self.size)
        yield range(self.size), {cell: one[tuple(map(cell.count, values))] for cell in cells}

    def check_counts(self) -> None:
        """Check one answer to which all members add alike, by counts (J)."""
        ((own, *others), unit), values = on_lattice(self), self.sizes[0]
        need(all(adds == own for adds in others), "the members add differently.")
        most, pairs = min(self.most, self.size - 2), 0
        for known in range(self.fewest, most + 1):
            ways = (math.comb(k + values - 1, k) for k in (known, self.size - 1 - known))
            pairs += math.prod(ways)
        self.claim.work(pairs * values * (30 + 8 * values))
        weights = {n: decimal(p) for n, p in self.arrangements().items()}
        for known in range(self.fewest, most + 1):
            others_hold = counts(self.size - 1 - known, values)
            unknown = [(n, decimal(Fraction(w)), sum(map(mul, n, own))) for n, w in others_hold]
            for told, _ in counts(known, values):
                given: list[dict[Any, Any]] = [{} for _ in own]
                for v, mixture in enumerate(given):
                    base = [n + (u == v) for u, n in enumerate(told)]
                    for n, ways_to, atom in unknown:
                        mass, here = ways_to * weights[tuple(map(add, base, n))], own[v] + atom
                        if mass:
                            mixture[here] = mixture.get(here, 0) + mass
                self.claim.work(30 * sum(map(len, given)))
                self.claim.judge(largest_quotient(given, unit), "a member")


class Chain(Finite):
    """Steps of a Markov chain."""

    ways = (*Finite.ways[:2], "check_windows", "check_couplings", "check_distances")

    def laws(self) -> tuple[list[Fraction], list[list[Fraction]]]:
        """Return the law of the first state and the transitions, the same for all steps."""
        states, first = range(self.sizes[0]), self.model["initial"]
        self.claim.work(100 * len(states) ** 2 + 2 * len(states) ** 3, len(states) ** 2)
        steps = [law(numbers(row, len(states))) for row in self.model["transition"]]
        intact(len(steps) == len(states), "transition must be one matrix for all steps.")
        if first is not None:
            return law(numbers(first, len(states))), steps
        kept, found = [list(map(decimal, row)) for row in steps], [ONE]
        for n in states[:0:-1]:  # leave out state after state, then put them back: only sums,
            out = sum(kept[n][:n], Decimal(0))  # products and quotients, so no digits are lost
            intact(out, "the chain has no single stationary law.")
            for i in range(n):
                kept[i][n] /= out
                kept[i][:n] = [kept[i][j] + kept[i][n] * kept[n][j] for j in range(n)]
        for n in states[1:]:
            found.append(sum(map(mul, found, (row[n] for row in kept[:n])), Decimal(0)))
        exact = list(map(Fraction, found))
        return [value / sum(exact) for value in exact], steps

    def factors(self) -> Iterator[tuple[Any, Any]]:
        """Yield the first law and the steps."""
        first, steps = self.laws()
        yield [0], {(v,): p for v, p in enumerate(first)}
        cells = {(v, w): p for v, row in enumerate(steps) for w, p in enumerate(row)}
        yield from (([t, t + 1], cells) for t in range(self.size - 1))

    def check_distances(self) -> None:
        """Bound what anyone learns by how far the laws of tuples at a distance are apart (Q)."""
        claim, (_, exact) = self.claim, self.laws()
        pairs = [*combinations(range(len(exact)), 2)]
        level = kernel(-(max(self.reaches()) + claim.charged) / 2)  # all here are e^{·/2}
        alike = {id(values): (values, i) for i, values in enumerate(self.added)}
        own = {
            key: [self.moved(values, *pair) for pair in pairs] for key, (values, _) in alike.items()
        }
        forth = power = [[decimal(p) for p in row] for row in exact]
        back = list(zip(*forth, strict=True))
        sides: list[list[list[Decimal]]] = [[[], [ONE] * len(pairs)], [[], [ONE] * len(pairs)]]
        most, apart = [[ONE, ONE], [ONE, ONE]], [[[ONE]], [[ONE]]]
        coupled = [[ONE] * len(pairs), [ONE] * len(pairs)]
        for n in range(2, self.size + 1):
            claim.work(len(pairs) * (60 * n + 40 * len(exact) + 1500) + 10 * len(exact) ** 3)
            for side, kept in enumerate(sides):
                rows = power if side == 0 else list(zip(*power, strict=True))
                apart[side].append([quotients(rows[v], rows[w]) for v, w in pairs])
                others = [level * most[side][n - b] * most[1 - side][b] for b in range(1, n)]
                found = []
                for k in range(len(pairs)):
                    coupled[side][k] *= differing(apart[side][n - 1][k], level, n - 1)
                    through = (
                        kept[b][k] * passed_on(apart[side][b][k], others[b - 1])
                        for b in range(1, n)
                    )
                    found.append(min(coupled[side][k], *through))
                kept.append(found)
                most[side].append(max(found))
            power = [[sum(map(mul, row, into)) for into in back] for row in power]
            if n == self.size or n in {16, 32, 64, 128, 256, 512}:
                longest = [self.longest(level, sides, most, apart, side, n) for side in (0, 1)]
                try:
                    for i, name in enumerate(self.names):
                        right, left = (
                            kept[size] if size <= n else longest[side]
                            for side, (kept, size) in enumerate(
                                zip(sides, (self.size - i, i + 1), strict=True)
                            )
                        )
                        inner = n < i < self.size - 1 - n and self.added[i] is self.added[i - 1]
                        if not inner:  # else the same as the one before
                            claim.work(10 * len(pairs))
                            mine = own[id(self.added[i])]
                            together = max(
                                a * b * c for a, b, c in zip(mine, right, left, strict=True)
                            )
                            claim.judge(together**2, name, reached=False)
                except Undecided:
                    if n == self.size:
                        raise
                else:
                    return

    def moved(self, values: Sequence[Vector], v: int, w: int) -> Decimal:
        """Return e^{·/2} of how far a tuple moves the log-likelihood between two of its values."""
        return kernel(-(distance(values[v], values[w]) + self.claim.charged) / 2)

    def longest(
        self, level: Decimal, sides: Any, most: Any, apart: Any, side: int, n: int
    ) -> list[Decimal]:
        """Return what intervals of more than n steps add at most, whatever their length (Q)."""
        everything = level ** (self.size - 1)
        columns = range(len(sides[side][1]))

        def added(beyond: Decimal) -> list[Decimal]:
            self.claim.work(40 * n * len(columns))
            others = [level * beyond * most[1 - side][b] for b in range(1, n)]
            return [
                min(
                    sides[side][b][k] * passed_on(apart[side][b][k], others[b - 1])
                    for b in range(1, n)
                )
                for k in columns
            ]

        far = [min(sides[side][b][k] * apart[side][b][k] for b in range(1, n)) for k in columns]
        low = most[side][n]
        high = max(low, min(max(far), everything))
        while high - low > high * Decimal("1e-14"):
            middle = (low + high) / 2
            if max(added(middle)) <= middle:
                high = middle
            else:
                low = middle
        found = added(high)
        return found if max(found) <= high else [everything for _ in columns]

    def check_windows(self) -> None:
        """Check all windows (K): of a chain that favours order, at large outputs alone (F, G)."""
        (first, p), added = self.laws(), self.added
        self.claim.work(30 * (len(p) ** 2 + self.size * len(p) * len(added[0][0])))
        totals = [[sum(v, ZERO) for v in values] for values in added]
        order = sorted(range(len(p)), key=lambda v: sum(values[v] for values in totals))
        pairs = [*pairwise(order)]  # other minors follow from these, multiplied, if no entry is 0
        minors = [p[a][v] * p[b][w] - p[a][w] * p[b][v] for (a, b), (v, w) in product(pairs, pairs)]
        alike = all(own is added[0] for own in added)
        if len(p) == 2 and max(minors) <= 0 and alike and self.reaches()[0] <= self.claim.epsilon:
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
        squares = len(first) ** 2
        claim.work(4 * self.size * squares, self.size * len(first))
        for _ in self.names[1:]:
            laws.append([sum(map(mul, laws[-1], into)) for into in back])
        short = not self.most and 300 * self.size**3 * squares <= claim.meter.most
        wanted = self.size if short else self.certificate.get("radius")  # one window a target
        little = decimal(claim.epsilon) * Decimal("1e-17")  # calibrated noise leaves more than that
        for radius in range(1, self.size + 1):
            claim.work(squares * (40 + 12 * len(first)))
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
            claim.work(20 + sum(5 + 4 * len(mixture) for mixture in mixtures))
            for weight, mixture in zip(weights, mixtures, strict=True):
                for atom, mass in mixture.items() if weight else ():
                    found[atom] = found.get(atom, 0) + weight * mass
            need(len(found) <= 2**12, "what the unknown add has too many values.")
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
                claim.work(10 * len(who) * len(begin) + 30 * len(begin) ** 2)
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
                        claim.work(100 + 30 * sum(map(len, mixtures)))
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
        sums = all(query["type"] in {"RowQuery", *SUMS} for query in claim.queries)
        need(
            sums and not claim.charged, "not covered: charges, and such questions, about intervals."
        )
        clamps = {query.get("clamp", query["type"] == "RowQuery") for query in claim.queries}
        need(
            clamps in ({True}, {False}), "not covered: clamping in some answers and not in others."
        )
        self.clamped, self.still, self.reached = clamps == {True}, False, True
        if model["type"] == "Gaussian":
            self.check_covariance([numbers(row, size) for row in model["covariance"]])
            return
        stored, series = model["correlation"], model["type"] == "GaussianSeries"
        low, high = numbers(stored if isinstance(stored, list) else [stored] * 2, 2)
        free = model["variance"] is None
        variance = number(1 if free else model["variance"])
        least = -1 if series or size < 3 else Fraction(-1, size - 1)
        intact(least < low <= high < 1 and variance > 0, "this is no Gaussian law.")
        need(low >= 0 or not claim.parted, "not covered: several parts, and values that oppose.")
        alike = len(set(map(id, self.added))) == len(set(map(id, self.domains))) == 1
        everyone = self.fewest == 0 and self.most == size - 1  # so K = ∅ is the worst (D)
        if alike and everyone and (free or self.clamped or not claim.gaussian or low < high):
            reached = free or not (self.clamped or claim.gaussian)
            self.check_alike(low, high, series=series, reached=reached)
            return
        # Where values are clamped, or the variance is free or uncertain, no entry counts as noise.
        self.still, self.reached = claim.gaussian and (free or low < high), free
        ups = {b > a for own in self.added for a, b in zip(*own, strict=True) if a != b}
        rising = low >= 0 and len(ups) < 2 and (self.still or not claim.gaussian)
        if low < high and not rising and len(set(map(id, self.domains))) == 1:
            self.clamped = True  # no cap is reached, so that bound holds for all values (C)
        need(low == high or rising or self.clamped, "not covered: such weights, and a range.")
        many = size + len(self.added[0][0])
        claim.work(50 * many**3, many**2)
        apart = [[abs(j - k) if series else int(j != k) for k in range(size)] for j in range(size)]
        for end in {max(high, ZERO), min(low, ZERO)} if self.clamped and low < high else {high}:
            powers = [variance * end**step for step in range(max(map(max, apart)) + 1)]
            self.check_covariance([[powers[step] for step in row] for row in apart])

    def check_alike(self, low: Fraction, high: Fraction, *, series: bool, reached: bool) -> None:
        """Check members, or steps, who add alike, at both ends of their correlation (D)."""
        left, right, claim = (self.size - 1) // 2, self.size // 2, self.claim
        claim.work(20 * self.size)
        shares = [Decimal(1)]
        for phi in {low, high} if series else ():
            sides, power = [ONE], ONE  # what one side adds, by its length
            for step in range(1, right + 2):
                power *= decimal(abs(phi))
                moves_along = phi > 0 or (self.clamped and step % 2 == 0)
                sides.append(sides[-1] + power if moves_along else sides[-1])
            shares.append(sides[left] + sides[right] - 1)
            shares.append(sides[max(left - 1, 0)] + sides[min(right + 1, self.size - 1)] - 1)
        if not series:
            shares.append(decimal(1 + (self.size - 1) * max(high, ZERO)))
        for more, seen in ((0, reached), (SLACK, False)):
            share = Fraction(max(shares) * (1 + more))
            moves = [share * (b - a) for a, b in zip(*self.added[0], strict=True)]
            claim.judge_moves(moves, self.names[left], reached=seen)

    def check_covariance(self, covariance: list[list[Fraction]]) -> None:
        """Check all sets of known tuples, exactly, in whole numbers (C)."""
        claim, many = self.claim, self.size + len(self.added[0][0])
        symmetric = covariance == list(map(list, zip(*covariance, strict=True)))
        intact(symmetric and len(covariance) == self.size, "the covariance must be symmetric.")
        simple = many == self.size + 1 and not claim.gaussian and not self.clamped
        trees = self.certificate.get("branches", {}) if simple else {}
        small = self.size <= MOST_GAUSSIAN or self.most == 0
        need(trees or small, "too many tuples are undecided, and no certificate divides them.")
        claim.work(40 * many**2 * (many - self.size + 1), many**2)
        both = zip(self.added, self.domains, strict=True)
        slopes = [[(b - a) / (y - x) for a, b in zip(*ends, strict=True)] for ends, (x, y) in both]
        answers = list(zip(*slopes, strict=True))
        rows = [row + [sum(map(mul, answer, row)) for answer in answers] for row in covariance]
        columns = list(zip(*rows, strict=True))
        rows += [[sum(map(mul, answer, column)) for column in columns] for answer in answers]
        for place in range(self.size, len(rows)):
            rows[place][place] += int(claim.gaussian)  # of what is released, with this noise
        self.unit = 1
        for value in chain(*rows):
            claim.work(20 + self.unit.bit_length() // 8)
            self.unit = math.lcm(self.unit, value.denominator)
        start = [[int(value * self.unit) for value in row] for row in rows], 1
        reduce(self.given, range(self.size), start)  # it must be positive definite
        for target in range(self.size):
            others = [k for k in range(self.size) if k != target]
            self.branch(start, target, others, 0, trees.get(str(target)))

    def given(self, state: Any, place: int) -> Any:
        """Let one more be known: times its determinant, no division has a remainder (Bareiss)."""
        rows, det = state
        own, pivot = rows[place], rows[place][place]
        bits = max(map(int.bit_length, own))
        self.claim.work(len(rows) * len(own) * (4 + (bits // 256) ** 2), len(rows) * bits // 200)
        intact(pivot > 0, "the covariance must be positive definite.")
        both = [(row[place], zip(row, own, strict=True)) for row in rows]
        return [
            [(pivot * x - mine * its) // det for x, its in pairs] for mine, pairs in both
        ], pivot

    def branch(self, state: Any, target: int, left: list[int], known: int, tree: Any) -> None:
        """Check all sets of known tuples that begin so, as the certificate's tree divides them."""
        # A tree is [about whom, tree if known, tree if not]; 0: one bound covers all; or try all.
        if known + len(left) < self.fewest:
            return
        if tree == 0 and tree is not None:
            bounded = self.is_bounded(state, target, left)
            follows(bounded, "a branch of the certificate may leak more.")
        elif not left or known == self.most:
            self.check_moves(state, target)
        else:
            need(tree or len(left) < MOST_GAUSSIAN, "too many tuples are undecided.")
            place, if_known, if_not = tree or (left[0], None, None)
            rest = left[: left.index(place)] + left[left.index(place) + 1 :]
            self.branch(self.given(state, place), target, rest, known + 1, if_known)
            self.branch(state, target, rest, known, if_not)

    def is_bounded(self, state: Any, target: int, left: list[int]) -> bool:
        """Whether nobody learns more than ε who knows this and any part of who is left (H)."""
        (rows, det), order, (low, high) = state, [*left, target, -1], self.domains[target]
        outer = [[rows[j][k] for k in order] for j in order], det

        def moments(rows: Any, det: int) -> list[Fraction]:
            return [Fraction(rows[j][k], det) for j, k in ((-2, -2), (-2, -1), (-1, -1))]

        (v0, c0, f0), (v, c, f) = (
            moments(*outer),
            moments(*reduce(self.given, range(len(left)), outer)),
        )
        intact(v > 0, "the covariance must be positive definite.")
        d, s, q = v0 - v, c0 - c, f0 - f  # what is explained by all who are left
        rest = self.claim.epsilon / (high - low) * v * v0 - abs(c * (v + d / 2) + s * v / 2)
        square = (c * d - s * v) ** 2 + max(d * q - s * s, ZERO) * v * v0
        return bool(rest >= 0 and 4 * rest**2 >= square)

    def check_moves(self, state: Any, target: int) -> None:
        """Compare how far the answers move, where x_i moves over its range, with the promise."""
        (rows, det), name, claim = state, self.names[target], self.claim
        row = rows[target]
        widths = [high - low for low, high in self.domains]
        intact(row[target] > 0, "the covariance must be positive definite.")
        claim.work(60 * len(row) * len(self.added[0][0]))
        if self.clamped:
            ends = zip(*(zip(*own, strict=True) for own in self.added), strict=True)
            slopes = [Fraction(x, row[target]) for x in row[: self.size]]
            bounds = [shift(slopes, widths, [b - a for a, b in own], target) for own in ends]
            claim.judge_moves(bounds, name, reached=False)
        elif self.still or not claim.gaussian:
            moves = [Fraction(value, row[target]) * widths[target] for value in row[self.size :]]
            claim.judge_moves(moves, name, reached=self.reached or not self.still)
        else:
            released, above = reduce(self.given, range(self.size, len(row)), state)
            gain = Fraction(above, released[target][target]) - Fraction(det, row[target])
            claim.judge_mu(gain * self.unit * widths[target] ** 2, name)


def shift(slopes: Any, widths: Any, added: Any, target: int) -> Fraction:
    """Return how far an answer of clamped values moves at most with the target's (C)."""
    sign, both = (-1 if added[target] < 0 else 1), zip(slopes, widths, added, strict=True)
    terms = [
        (sign * whole if slope > 0 else -sign * whole, abs(slope) / width)
        for k, (slope, width, whole) in enumerate(both)
        if k != target and slope
    ]  # how far each can move the answer, and by which part of that per unit of the target

    def moved(direction: int, by: Fraction) -> Fraction:
        return sum((abs(x) * min(1, part * by) for x, part in terms if x * direction > 0), ZERO)

    own, width = abs(added[target]), widths[target]
    along, against = own + moved(1, width), moved(-1, width)
    if against > along:  # concave in the target's move: largest where a term ends to grow
        turns = {width, *(1 / part for x, part in terms if x < 0 and 1 / part < width)}
        along = max(along, *(moved(-1, by) - own / width * by for by in turns))
    return Fraction(along)


FAMILIES: dict[str, type[Part]] = dict.fromkeys(("JointTable", "MarkovTree", "Network"), Finite)
FAMILIES |= {"BinaryGroup": Group, "CategoryGroup": Group, "MarkovChain": Chain, "Unknown": Part}
FAMILIES |= dict.fromkeys(("Gaussian", "GaussianGroup", "GaussianSeries"), Real)


def check_part(part: Part) -> None:
    """Check a set member by member, blocks one by one, and any other model as its family says."""
    claim, model, kind = part.claim, part.model, part.model["type"]
    inner = part.certificate.get("models", [{}] * len(model.get("models", ())))
    if kind == "ModelSet":
        for member, own in zip(model["models"], inner, strict=True):
            check_part(replace(part, model=member, certificate=own))
    elif kind == "Blocks":  # each alone (B)
        need(part.added, "not covered: a function of blocks.")
        # Who may not know everything outside has that as more noise: what breaks may not break.
        total, start = sum(shape(model)[2]), 0
        claim.blurred |= part.most < total - 1
        for block, certificate in zip(model["models"], inner, strict=True):
            own = slice(start, start := start + len(block["names"]))
            names, domains, added = part.names[own], part.domains[own], part.added[own]
            fewest, most = max(0, part.fewest - total + len(names)), min(len(names) - 1, part.most)
            check_part(Part(claim, block, names, domains, added, fewest, most, certificate))
    else:
        about = part.names, part.domains, part.added, part.fewest, part.most, part.certificate
        FAMILIES[kind](claim, model, *about).check()


def check_words(stored: Stored, part: Part) -> None:
    """Check that what a calibration says about itself does not contradict itself."""
    claim, leakage, near = part.claim, stored.get("leakage") or {}, Fraction(1, 10**9)
    spent, said = learned(stored["model"]), stored.get("estimation_epsilon")
    agrees = said is None or abs(number(said) - spent) <= spent * near
    follows(agrees, "the model was learned with another budget than is stated.")

    def given(where: Stored, key: str, otherwise: int) -> Fraction:
        return number(otherwise if where.get(key) is None else where[key])

    promised = number(stored["epsilon"])
    total = given(stored, "total_epsilon", 10**9)
    follows(total >= promised + spent, "the total is less than its parts.")
    value, lower = given(leakage, "value", 0), given(leakage, "lower", 0)
    follows(lower <= value * (1 + near), "more is reached than is stated as the most.")
    follows(value <= promised or leakage.get("unit") in ("mu", "rho"), "it states more than ε.")
    if claim.gaussian:
        delta = min(claim.delta * Fraction(kernel(-spent)), Fraction(1)) * (1 - near)
        follows(given(stored, "total_delta", 1) >= delta, "δ of the total is too small.")
        rho = given(stored, "rho", 10**9)
        follows(rho >= claim.mu**2 / 2 * (1 - near), "ρ is less than μ²/2.")
        follows(given(leakage, "mu", 0) <= claim.mu, "more is measured than μ.")
    witness = leakage.get("witness")
    if witness:
        position = {name: place for place, name in enumerate(part.names)}

        def named(name: Any) -> Any:  # a copy of a block has the name and its number
            (found,) = listed([name])
            if isinstance(name, list) and len(name) == 2 and isinstance(name[0], list):
                found = (tuple(name[0]), name[1])
            there = found in position or (isinstance(found, tuple) and found[0] in position)
            follows(there, "a witness attacks, or knows, who is not there.")
            return found

        who, known = named(witness["target"]), [named(name) for name, _ in witness["known"]]
        target = who if who in position else who[0]
        follows(len({who, *known}) == len(known) + 1, "a witness knows somebody twice.")
        follows(len(known) <= part.most, "a witness knows more than is allowed.")
        secrets = listed(witness["secrets"])
        domain = part.domains[position[target]]
        interval = isinstance(domain, tuple)
        fits = [domain[0] <= number(x) <= domain[1] if interval else x in domain for x in secrets]
        two = len(set(secrets)) == 2 == sum(fits)
        follows(two, "a witness tells apart what are no two values.")


def read(stored: Stored, meter: Meter | None = None) -> Part:
    """Return what a calibration claims, about whom, and what they add to the answers."""
    claim, who = Claim(stored, meter or Meter()), stored["adversaries"]
    need(
        set(who) == {"at_least", "at_most"},
        "not covered: adversaries by other than how many they know.",
    )
    names, domains, copies = shape(stored["model"])
    others, function = sum(copies) - 1, "Custom" in {one["type"] for one in claim.queries}
    fewest, most = (others if who[end] is None else at_most(who[end]) for end in sorted(who))
    need(fewest <= min(most, others), "nobody is admitted, so nothing is promised.")
    added = [] if function else additions(claim, names, domains, copies)
    about = names, domains, added, fewest, min(most, others)
    return Part(claim, stored["model"], *about, dict(stored.get("certificate") or {}))


def calibrations(stored: Stored) -> Iterator[Stored]:
    """Yield what a ledger has released, for each draw of the data as one calibration."""
    # Whatever led to a query, on one course of outputs the density is that of all, asked at once.
    more = set(stored) - {*LEDGER.split(), "adversaries", "model", "certificate", "total"}
    need(not more, f"not covered: {', '.join(sorted(more))} of a ledger.")
    need(stored["entries"], "nothing has been released.")
    draws: dict[str, list[Stored]] = {draw: [] for draw in stored["draws"]}
    for entry in stored["entries"]:
        need(entry["kind"] in ENTRIES, "not covered: such an entry.")
        allowed = f"{ENTRIES['all']} {ENTRIES[entry['kind']]}".split()
        more = set(entry) - set(allowed)
        need(not more, f"not covered: {', '.join(sorted(more))} of an entry.")
        intact(entry["draw"] in draws, "an entry is about a draw that is not listed.")
        follows(
            number(entry.get("epsilon", 0)) <= number(stored["epsilon"]),
            "an entry alone states more than the budget.",
        )
        draws[entry["draw"]].append(entry)
    for entries in filter(None, draws.values()):
        released = [entry for entry in entries if entry["kind"] == "release"]
        charges, learning = (
            [number(entry["dp_epsilon"]) for entry in entries if entry["kind"] == kind]
            for kind in ("charge", "estimation")
        )
        intact(min(charges + learning, default=0) >= 0, "no mechanism spends less than nothing.")
        spent = [number(entry["spent"]) for entry in entries]
        follows(spent == sorted(spent), "what is spent becomes less.")
        about = {"charged": sum(charges, ZERO), "on_top": sum(learning, ZERO)}
        first = learned(stored["model"])
        follows(
            not learning or max(learning) >= first,
            "learning the model cost more than what was charged.",
        )
        (rows,) = {entry["rows"] for entry in released} or {1}
        yield stored | asked_in(released) | about | {"rows": rows, "leakage": {"value": spent[-1]}}


def check_total(stored: Stored, meter: Meter) -> None:
    """Check that a ledger's sum of its first entries is not below them; nothing rests on it."""
    total, near = stored["total"], 1 - Fraction(1, 10**9)
    until = at_most(total["entries"])
    intact(until <= len(stored["entries"]), "its sum is about entries that are not there.")
    entries = [one for one in stored["entries"][:until] if one["draw"] == total["draw"]]
    for kind, name in (("charge", "dp_epsilon"), ("estimation", "draw_epsilon")):
        charged = sum((number(one["dp_epsilon"]) for one in entries if one["kind"] == kind), ZERO)
        follows(number(total[name]) >= charged * near, "its sum is below its entries.")
    released = [entry for entry in entries if entry["kind"] == "release"]
    if released:
        part = read(stored | asked_in(released) | {"rows": released[0]["rows"]}, meter)
        budgets = numbers(total["budgets"], part.size)
        moved = part.reaches() if part.added else []
        follows(
            all(budget >= reach * near for budget, reach in zip(budgets, moved, strict=False)),
            "its sum is below its entries.",
        )


def asked_in(entries: Sequence[Stored]) -> Stored:
    """Return the questions of a ledger's entries as those of one calibration."""
    pairs = [p for e in entries for p in zip(e["queries"], e["scales"], strict=True)]
    asked = {"query": [query for query, _ in pairs], "scale": [scale for _, scale in pairs]}
    return asked | {"noise": ["Laplace"] * len(pairs), "type": "Calibration"}


def household(query: Stored, sizes: Sequence[int], scale: Any) -> Fraction:
    """Return how far an answer moves, in units of its noise, when a whole household changes."""
    need(query["type"] == "RowQuery", "not covered: such a question about people.")
    rows = min(max(sizes), at_most(query["most"] or max(sizes)))
    intact(number(scale) > 0, "scales must be positive.")
    return rows * sum(question(query), ZERO) / number(scale)


def columns(stored: Stored) -> Iterator[Stored]:
    """Yield what a ledger about people has released, for each column as one calibration (P)."""
    more = set(stored) - {*LEDGER.split(), "declared", "columns", "sizes", "models"}
    need(not more, f"not covered: {', '.join(sorted(more))} of a ledger.")
    names, models, entries = listed(stored["columns"]), stored["models"], stored["entries"]
    need(entries, "nothing has been released.")
    sizes = [at_most(size) for size, _ in stored["sizes"]]
    intact(set(models) <= set(names) and len(set(names)) == len(names) > 0, "no such columns.")
    prices, promised = [], number(stored["epsilon"])
    fields = {*f"{ENTRIES['all']} {ENTRIES['release']} column price spent_by_column".split()}
    for entry in entries:
        more = set(entry) - fields
        need(not more, f"not covered: {', '.join(sorted(more))} of an entry.")
        need(entry["kind"] == "release", "not covered: such an entry.")
        intact(entry["draw"] in stored["draws"], "an entry is about a draw that is not listed.")
        intact(entry["column"] in {None, *models}, "an entry is about a column without a model.")
        queries, scales = entry["queries"], entry["scales"]
        both = zip(queries, scales, strict=True)
        price = sum((household(query, sizes, scale) for query, scale in both), ZERO)
        asked = {k for one in queries for k in (one["value"], *decides(one, "where", "by"))} - {
            None
        }
        public = {name for one in queries for name in one["public"]}
        intact(asked <= {*names, *public}, "a question is about another column.")
        follows(not public & set(names), "a question calls a column public that is secret.")
        fits = entry["column"] is None or asked - public == {entry["column"]}
        follows(fits, "a question is about other columns than its model.")
        stated = number(entry["price"])
        counted = any(
            name in one["public"] for one in queries for name in decides(one, "where", "by")
        )
        need(stated >= price or not counted, "it does not say how many rows of a household count.")
        follows(
            stated >= price, f"a price is {float(price):.9g}, and {float(stated):.9g} is stated."
        )
        prices.append(price)
    for name in names:
        own = [entry for entry in entries if entry["column"] == name]
        rest = zip(prices, entries, strict=True)
        others = sum((price for price, entry in rest if entry["column"] != name), ZERO)
        spent = [number(entry["spent_by_column"][name]) for entry in entries]
        follows(spent == sorted(spent), "what is spent becomes less.")
        fine = others <= spent[-1] <= promised
        follows(
            fine, f"{float(others):.9g} is spent on {name} by others, of {float(promised):.9g}."
        )
        if own:
            blocks = models[name].get("models", [models[name]])
            largest = max(len(block["names"]) for block in blocks)
            asked_of = [query["most"] or max(sizes) for e in own for query in e["queries"]]
            counted_rows = min(max(sizes), max(asked_of))
            need(largest >= counted_rows, "a household is larger than the model of a column.")
            about = {"on_top": others, "model": models[name], "rows": own[0]["rows"]}
            about["adversaries"] = {"at_least": 0, "at_most": None}
            yield stored | asked_in(own) | about | {"leakage": {"value": spent[-1]}}


def check_sizes(release: Stored, held: Stored) -> None:
    """Check that no group of a release is larger than those of its model."""
    queries = held["query"] if isinstance(held["query"], list) else [held["query"]]
    if release.get("sizes") and all(query["type"] != "RowQuery" for query in queries):
        models = held["model"].get("models", [held["model"]])
        largest = max(len(model["names"]) for model in models)
        sizes = [at_most(size) for size, _ in release["sizes"]]
        follows(max(sizes) <= largest, "a group is larger than those of the model.")


def whoever(part: Part, what: str = "other entries") -> tuple[str, str]:
    """Name the adversaries about whom something is proved: before "learns", and at the end."""
    others = sum(shape(part.model)[2]) - 1
    fewest, most = part.fewest, part.most
    if fewest == 0 and most == others:
        return "", f", whichever {what} they know exactly"
    number = f"{fewest} to {most}" if fewest < most else f"{most}"
    number = "no" if most == 0 else "all" if fewest == others else number
    number = f"at least {fewest}" if fewest < most == others else number
    number = f"at most {most}" if 0 == fewest < most else number
    return f" who knows {number} {what} exactly" if most else f" who knows no {what} at all", ""


def sentence(held: Stored, part: Part | None) -> str:
    """Say what was proved: about whom, and how much they learn in all."""
    number_of, delta = shown(held["epsilon"]), ""
    if held["type"] == "PeopleLedger":
        tail = " from all that was released, whichever other entries of its column they know"
        right = condition(list(held["models"].values()))
        return f"nobody learns more than ε = {number_of} about an entry{tail} exactly{right}."
    who, tail = whoever(part) if part else ("", "")
    tail += condition([held["model"]])
    cost = learned(held["model"])
    if held["type"] == "Ledger":
        entries = [entry for entry in held["entries"] if entry["kind"] == "estimation"]
        note = ", learning the model included" if entries else ""
        if cost and not entries:
            note = f" (the model was learned from other data, with ε = {shown(cost)})"
        return (
            f"nobody{who} learns more than ε = {number_of} from all that was released{note}{tail}."
        )
    total = held.get("total_epsilon") or number(held["epsilon"]) + cost
    if part and part.claim.gaussian:
        most = min(part.claim.delta * Fraction(kernel(-cost)), Fraction(1))
        delta = f", δ = {shown(held.get('total_delta') or most)}"
    parts = f" in total, of which {shown(cost)} from learning the model" if cost else ""
    return f"nobody{who} learns more than ε = {shown(total)}{delta}{parts}{tail}."


def check(stored: Any) -> tuple[int, str]:
    """Decide about the content of a file: 0 proved, 1 broken, 2 undecided, and why."""
    meter, part = Meter(), None
    try:
        text = json.dumps(stored, allow_nan=False)  # no number of a file may be infinite, or none
        need(len(text) <= 4 * MOST_BYTES, "it is too large.")
        held = stored["calibration"] if stored["type"] == "Release" else stored
        kinds: dict[str, Callable[[Stored], Iterator[Stored]]] = {
            "Ledger": calibrations,
            "PeopleLedger": columns,
            "Calibration": lambda one: iter([one]),
        }
        need(held["type"] in kinds, f"not covered: a file of type {held['type']}.")
        with localcontext(EXACT):
            for one in kinds[held["type"]](held):
                part = read(one, meter)
                check_words(one, part)
                check_part(part)
            if held is not stored:
                check_sizes(stored, held)
            if "total" in held and held["type"] == "Ledger":
                check_total(held, meter)
            return PROVED, f"Proved: {sentence(held, part)}"
    except Broken as answer:
        return BROKEN, f"Not so: {answer}"
    except Undecided as answer:
        return UNDECIDED, f"Cannot decide: {answer}"
    except KeyError as error:
        return (
            UNDECIDED,
            f"Cannot decide: the file is damaged: {error} is missing, or not possible.",
        )
    except (*DAMAGE, RecursionError, MemoryError) as error:
        return UNDECIDED, f"Cannot decide: the file is damaged ({type(error).__name__})."


def once(pairs: list[tuple[str, Any]]) -> Stored:
    """Return what an object of a file holds, if it names nothing twice."""
    found = dict(pairs)
    intact(len(found) == len(pairs), "it names something twice.")
    return found


def check_file(path: Path) -> tuple[int, str]:
    """Decide about a file."""
    try:
        if path.stat().st_size > MOST_BYTES:
            return UNDECIDED, "Cannot decide: the file is larger than 10 MB."
        return check(json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=once))
    except FileNotFoundError:
        return UNDECIDED, f"Cannot decide: there is no file {path}."
    except OSError as error:
        return UNDECIDED, f"Cannot decide: the file cannot be read ({error.strerror})."
    except Undecided as answer:
        return UNDECIDED, f"Cannot decide: {answer}"
    except (ValueError, RecursionError):
        return UNDECIDED, "Cannot decide: the file is no JSON."


if __name__ == "__main__":
    code, answer = check_file(Path(" ".join(sys.argv[1:])))
    sys.stdout.buffer.write(f"{answer}\n".encode(errors="backslashreplace"))
    sys.exit(code)
