"""Brute-force reference for the leakage of a Laplace release, written from the definition alone.

Every adversary, every known value, every pair of secrets and every atom is tried in turn.
Indices are zero-based; `target` is the attacked tuple, `known` the indices the adversary knows.
"""

import itertools
import math
from collections.abc import Callable, Collection, Sequence
from fractions import Fraction
from typing import Any

import mpmath  # type: ignore[import-untyped]
import numpy as np
import numpy.typing as npt

from tests.oracles.adversaries import Admits, every_adversary

Table = npt.NDArray[np.float64]
Value = Any  # one value of a domain
Number = Any  # a float, or an mpf in the high-precision oracle
Domains = Sequence[Sequence[Value]]
Query = Callable[[tuple[Value, ...]], Number]
Law = list[tuple[float, Number]]  # (unnormalised weight, answer of the query)
KnownItems = tuple[tuple[int, Value], ...]  # (index, value) in order of index
Witness = tuple[int, frozenset[int], dict[int, Value], tuple[Value, Value], Number]


def worst_leakage(
    probabilities: Table, domains: Domains, function: Query, scale: float, admits: Admits
) -> tuple[float, Witness | None]:
    """Largest leakage over the admitted adversaries, and (i, K, x_K, secrets, r) attaining it."""
    return _worst(
        probabilities, domains, function, admits, lambda law, r: _log_density(law, r, scale)
    )


def adversary_leakage(
    probabilities: Table,
    domains: Domains,
    function: Query,
    scale: float,
    target: int,
    known: frozenset[int],
) -> float:
    """Leakage of the single adversary (target, known), over all values of what it knows."""

    def is_the_one(i: int, indices: frozenset[int]) -> bool:
        return i == target and indices == known

    return worst_leakage(probabilities, domains, function, scale, is_the_one)[0]


def placed(found: Any, names: Sequence[Any], *, output: float | None = None) -> Witness:
    """Return what an engine names as a witness by positions; at another output if one is given."""
    known = {names.index(name): value for name, value in found.known.items()}
    seen = found.output if output is None else output
    return names.index(found.target), frozenset(known), known, found.secrets, seen


def log_density_ratio(
    probabilities: Table, domains: Domains, function: Query, scale: float, witness: Witness
) -> float:
    """Log of p(output | secrets[0], x_K) / p(output | secrets[1], x_K); KeyError if impossible."""
    target, known, known_values, secrets, output = witness
    laws = _laws(probabilities, domains, function, target, known)[_items(known_values)]
    first, second = (_log_density(laws[secret], output, scale) for secret in secrets)
    return first - second


def worst_leakage_mpmath(
    probabilities: Table,
    domains: Domains,
    function: Query,
    scale: float,
    admits: Admits,
    digits: int = 60,
) -> tuple[Number, Witness | None]:
    """`worst_leakage` in mpmath, all inputs taken as exact; `function` receives mpf values."""
    with mpmath.workdps(digits):
        exact_domains = [[mpmath.mpf(value) for value in domain] for domain in domains]
        exact_scale = mpmath.mpf(scale)
        return _worst(
            probabilities,
            exact_domains,
            function,
            admits,
            lambda law, r: _log_density_mpmath(law, r, exact_scale),
        )


def wasserstein_infinity(
    probabilities: Table, domains: Domains, function: Query, admits: Admits
) -> float:
    """Largest W-infinity distance between the laws of the query under two secrets.

    Exact in the given floats, so levels equal but for rounding count as different and it may jump.
    """
    largest = 0.0
    for target, known in every_adversary(len(domains), admits):
        for laws in _laws(probabilities, domains, function, target, known).values():
            for first, second in itertools.combinations(laws.values(), 2):
                largest = max(largest, _largest_quantile_gap(first, second))
    return largest


def _worst(
    probabilities: Table,
    domains: Domains,
    function: Query,
    admits: Admits,
    log_density: Callable[[Law, Number], Number],
) -> tuple[Number, Witness | None]:
    """Try everything; the ratio is largest at an atom, being monotone between two neighbours."""
    worst: Number = 0.0
    witness: Witness | None = None
    for target, known in every_adversary(len(domains), admits):
        for known_items, laws in _laws(probabilities, domains, function, target, known).items():
            for secrets in itertools.permutations(laws, 2):
                first, second = laws[secrets[0]], laws[secrets[1]]
                for output in sorted({answer for _, answer in first + second}):
                    ratio = log_density(first, output) - log_density(second, output)
                    if witness is None or ratio > worst:
                        worst = ratio
                        witness = (target, frozenset(known), dict(known_items), secrets, output)
    return worst, witness


def _laws(
    probabilities: Table, domains: Domains, function: Query, target: int, known: Collection[int]
) -> dict[KnownItems, dict[Value, Law]]:
    """Possible databases, grouped by known values and then by secret, as laws of the answer.

    To the strongest adversary every database is possible, also those of probability zero.
    """
    is_strongest = len(known) == len(domains) - 1
    weights = np.ones_like(probabilities) if is_strongest else probabilities
    groups: dict[KnownItems, dict[Value, Law]] = {}
    for cell in np.ndindex(weights.shape):
        weight = float(weights[cell])
        if weight > 0:
            database = tuple(domain[k] for domain, k in zip(domains, cell, strict=True))
            known_items = _items({index: database[index] for index in known})
            law = groups.setdefault(known_items, {}).setdefault(database[target], [])
            law.append((weight, function(database)))
    return groups


def _items(known_values: dict[int, Value]) -> KnownItems:
    """Known values as a dictionary key, in order of index."""
    return tuple((index, known_values[index]) for index in sorted(known_values))


def _log_density(law: Law, output: float, scale: float) -> float:
    """Log density of law + Laplace(scale) at `output`, without the constant 1/(2 scale)."""
    total = math.fsum(weight for weight, _ in law)
    terms = [math.log(weight / total) - abs(output - answer) / scale for weight, answer in law]
    peak: float = max(terms)
    if peak == -math.inf:
        return peak
    return peak + math.log(math.fsum(math.exp(term - peak) for term in terms))


def _log_density_mpmath(law: Law, output: Number, scale: Number) -> Number:
    """The same from the plain formula: an mpf never underflows."""
    weights = [mpmath.mpf(weight) for weight, _ in law]
    kernels = [mpmath.exp(-abs(output - answer) / scale) for _, answer in law]
    return mpmath.log(mpmath.fdot(weights, kernels) / mpmath.fsum(weights))


def _largest_quantile_gap(first: Law, second: Law) -> float:
    """W-infinity of two laws on the line; quantiles change only at the levels of either CDF."""
    first_cdf, second_cdf = _cdf(first), _cdf(second)
    levels = {level for level, _ in first_cdf + second_cdf}
    return max(abs(_quantile(first_cdf, q) - _quantile(second_cdf, q)) for q in levels)


def _cdf(law: Law) -> list[tuple[Fraction, float]]:
    """Pairs (probability of at most this answer, answer), increasing and exact."""
    total = sum(Fraction(weight) for weight, _ in law)
    level = Fraction(0)
    steps = []
    for weight, answer in sorted(law, key=lambda atom: float(atom[1])):
        level += Fraction(weight) / total
        steps.append((level, float(answer)))
    return steps


def _quantile(cdf: list[tuple[Fraction, float]], level: Fraction) -> float:
    """Smallest answer whose cumulative probability reaches `level`."""
    return next(answer for reached, answer in cdf if reached >= level)
