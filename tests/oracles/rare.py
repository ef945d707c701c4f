"""Brute-force reference for models whose probabilities may be too small for a float.

Probabilities are fractions, multiplied exactly from the floats that define a model; densities are
high-precision numbers. Everything is tried in turn, as in `brute_force`, with which it shares
the list of adversaries only.
"""

import itertools
from collections.abc import Sequence
from fractions import Fraction
from math import comb, factorial, prod

import mpmath  # type: ignore[import-untyped]

from tests.oracles.adversaries import Admits, every_adversary, everyone

Cell = tuple[int, ...]
Joint = dict[Cell, Fraction]
Rows = Sequence[Sequence[float]]
_DIGITS = 40


def exact(law: Sequence[float]) -> list[Fraction]:
    """Return a law whose entries sum to one exactly."""
    entries = [Fraction(float(probability)) for probability in law]
    return [entry / sum(entries) for entry in entries]


def stationary(transition: Rows) -> list[Fraction]:
    """Solve π = πP exactly, by elimination on fractions."""
    rows = [exact(row) for row in transition]
    size = len(rows)
    system = [[rows[v][w] - (v == w) for v in range(size)] + [Fraction(0)] for w in range(size - 1)]
    system.append([Fraction(1)] * (size + 1))
    for column in range(size):
        pivot = next(k for k in range(column, size) if system[k][column] != 0)
        system[column], system[pivot] = system[pivot], system[column]
        system[column] = [entry / system[column][column] for entry in system[column]]
        for other in range(size):
            factor = system[other][column]
            if other != column and factor:
                system[other] = [
                    a - factor * b for a, b in zip(system[other], system[column], strict=True)
                ]
    return [row[-1] for row in system]


def chain_joint(transition: Rows, length: int, initial: Sequence[float] | None = None) -> Joint:
    """Return the law of a whole chain; stationary without `initial`."""
    rows = [exact(row) for row in transition]
    start = stationary(transition) if initial is None else exact(initial)
    return {
        cell: start[cell[0]] * prod(rows[v][w] for v, w in itertools.pairwise(cell))
        for cell in itertools.product(range(len(rows)), repeat=length)
    }


def tree_joint(
    sizes: Sequence[int], parents: Sequence[int | None], tables: Sequence[Sequence[object]]
) -> Joint:
    """Return the law of a whole tree."""
    laws = [
        {(): exact(table)} if parent is None else {(v,): exact(row) for v, row in enumerate(table)}  # type: ignore[arg-type]
        for parent, table in zip(parents, tables, strict=True)
    ]

    def weight(cell: Cell) -> Fraction:
        return prod(
            (
                law[() if parent is None else (cell[parent],)][cell[place]]
                for place, (law, parent) in enumerate(zip(laws, parents, strict=True))
            ),
            start=Fraction(1),
        )

    return {cell: weight(cell) for cell in itertools.product(*map(range, sizes))}


def group_joint(counts: Sequence[float]) -> Joint:
    """Return the law of an exchangeable yes/no group from the law of the number of ones."""
    law, size = exact(counts), len(counts) - 1
    return {
        cell: law[sum(cell)] / comb(size, sum(cell))
        for cell in itertools.product((0, 1), repeat=size)
    }


def category_joint(size: int, categories: int, law: dict[tuple[int, ...], float]) -> Joint:
    """Return the law of an exchangeable group from the law of the counts of its categories."""
    total = sum(Fraction(p) for p in law.values())

    def weight(cell: Cell) -> Fraction:
        counts = tuple(cell.count(category) for category in range(categories))
        ways = factorial(size) // prod(map(factorial, counts))
        return Fraction(law.get(counts, 0.0)) / total / ways

    return {cell: weight(cell) for cell in itertools.product(range(categories), repeat=size)}


def worst_leakage(
    joint: Joint,
    values: Sequence[Sequence[float]],
    scale: float,
    admits: Admits = everyone,
) -> float:
    """Return the largest leakage of Σ_j values[j][x_j] with Laplace noise, over the admitted."""
    with mpmath.workdps(_DIGITS):
        size, worst = len(values), mpmath.mpf(0)
        exact_scale = Fraction(scale)
        answers = {
            cell: sum(Fraction(values[j][v]) for j, v in enumerate(cell)) / exact_scale
            for cell in joint
        }
        for target, known in every_adversary(size, admits):
            strongest = len(known) == size - 1
            events: dict[Cell, dict[int, dict[Fraction, Fraction]]] = {}
            for cell, weight in joint.items():
                if weight > 0 or strongest:  # to the strongest adversary everything is possible
                    event = events.setdefault(tuple(cell[j] for j in known), {})
                    law = event.setdefault(cell[target], {})
                    law[answers[cell]] = law.get(answers[cell], Fraction(0)) + (
                        Fraction(1) if strongest else weight
                    )
            for event in events.values():
                worst = max(worst, _most_told(list(event.values())))
        return float(worst)


def _most_told(laws: list[dict[Fraction, Fraction]]) -> mpmath.mpf:
    """Return the largest log-ratio of two mixtures; it is attained at an atom."""
    worst = mpmath.mpf(0)
    for output in {answer for law in laws for answer in law}:
        logs = [_log_density(law, output) for law in laws]
        worst = max(worst, max(logs) - min(logs))
    return worst


def _log_density(law: dict[Fraction, Fraction], output: Fraction) -> mpmath.mpf:
    terms = [
        _number(weight) * mpmath.exp(-_number(abs(output - answer)))
        for answer, weight in law.items()
    ]
    return mpmath.log(mpmath.fsum(terms) / _number(sum(law.values(), start=Fraction(0))))


def _number(fraction: Fraction) -> mpmath.mpf:
    return mpmath.mpf(fraction.numerator) / mpmath.mpf(fraction.denominator)
