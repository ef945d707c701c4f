"""δ of Gaussian noise on finite laws in 30 digits, by other means than the library's.

On a lattice the density difference is, up to a positive factor, a polynomial in y = e^{r·step}:
its positive roots come from mpmath. Anywhere, δ is a quadrature of the positive part. W∞ comes
from sorted samples in fractions, the worst adversary of a table from plain loops.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from fractions import Fraction

import mpmath as mp
import numpy as np
from scipy.special import ndtr

from tests.oracles.adversaries import possible_cells

DIGITS = 30


def delta_by_roots(
    places: Sequence[int], first: Sequence[float], second: Sequence[float], sigma: float, eps: float
) -> float:
    """Return δ(ε) of answers that are whole numbers, from the roots of a polynomial."""
    with mp.workdps(DIGITS + 30):
        level, deviation = mp.e ** mp.mpf(eps), mp.mpf(sigma)
        shares: dict[int, mp.mpf] = {}
        for place, p, q in zip(places, first, second, strict=True):
            shares[place] = shares.get(place, mp.mpf(0)) + mp.mpf(p) - level * mp.mpf(q)
        lowest, highest = min(shares), max(shares)
        # Σ c_s e^{−s²/2σ²} y^s with y = e^{r/σ²}
        powers = [
            shares.get(s, mp.mpf(0)) * mp.e ** (-(mp.mpf(s) ** 2) / (2 * deviation**2))
            for s in range(highest, lowest - 1, -1)
        ]
        while powers and powers[0] == 0:
            powers = powers[1:]
        while powers and powers[-1] == 0:
            powers = powers[:-1]
        roots = []
        if len(powers) > 1:
            scale = max(map(abs, powers))
            rising = [c / scale for c in reversed(powers)]
            found = mp.polyroots(rising, maxsteps=500, extraprec=400, asc=True)
            roots = [
                mp.log(mp.re(root)) * deviation**2
                for root in found
                if mp.re(root) > 0 and abs(mp.im(root)) < mp.mpf(10) ** -20 * abs(root)
            ]
        edges = [-mp.inf, *sorted(roots), mp.inf]
        total = mp.mpf(0)
        for start, end in itertools.pairwise(edges):
            area = mp.fsum(
                c * _between((start - s) / deviation, (end - s) / deviation)
                for s, c in shares.items()
            )
            total += max(area, mp.mpf(0))
        return float(total)


def _between(start: mp.mpf, end: mp.mpf) -> mp.mpf:
    """Return the normal probability between two points, with all digits in both tails."""
    if start > 0:
        start, end = -end, -start
    return mp.ncdf(end) - mp.ncdf(start)


def delta_by_quadrature(
    places: Sequence[float],
    first: Sequence[float],
    second: Sequence[float],
    sigma: float,
    eps: float,
    *,
    pieces: int = 400,
) -> float:
    """Return δ(ε) by integrating the positive part, cut where the sign changes on a fine grid."""
    with mp.workdps(DIGITS):
        level, deviation = mp.e ** mp.mpf(eps), mp.mpf(sigma)
        atoms = [
            (mp.mpf(s) / deviation, mp.mpf(p) - level * mp.mpf(q))
            for s, p, q in zip(places, first, second, strict=True)
        ]

        def h(x: mp.mpf) -> mp.mpf:
            return mp.fsum(c * mp.npdf(x - s) for s, c in atoms)

        # Off by pi / 1000, so that no root of symmetric laws falls on the grid.
        low, high = min(s for s, _ in atoms) - 14 - mp.pi / 1000, max(s for s, _ in atoms) + 14
        grid = [low + (high - low) * k / pieces for k in range(pieces + 1)]
        edges, values = [low], [h(x) for x in grid]
        edges += [
            mp.findroot(h, (grid[k], grid[k + 1]), solver="anderson", verify=False)
            for k in range(pieces)
            if values[k] * values[k + 1] < 0
        ]
        edges.append(high)
        total = mp.mpf(0)
        for start, end in itertools.pairwise(edges):
            area = mp.quad(h, mp.linspace(start, end, 9))
            total += max(area, mp.mpf(0))
        return float(total)


def furthest_quantiles(
    places: Sequence[float], first: Sequence[float], second: Sequence[float]
) -> float:
    """Return W∞ of two laws on a line: the largest distance of equal quantiles, in fractions."""
    shares = [[Fraction(p) for p in law] for law in (first, second)]
    totals = [sum(law) for law in shares]
    steps = [
        [
            (Fraction(place), share / total)
            for place, share in sorted(zip(places, law, strict=True))
            if share > 0
        ]
        for law, total in zip(shares, totals, strict=True)
    ]
    widest, (i, j) = Fraction(0), (0, 0)
    left = [steps[0][0][1], steps[1][0][1]]
    while i < len(steps[0]) and j < len(steps[1]):
        widest = max(widest, abs(steps[0][i][0] - steps[1][j][0]))
        taken = min(left)
        left = [left[0] - taken, left[1] - taken]
        if left[0] == 0:
            i += 1
            left[0] = steps[0][i][1] if i < len(steps[0]) else Fraction(0)
        if left[1] == 0:
            j += 1
            left[1] = steps[1][j][1] if j < len(steps[1]) else Fraction(0)
    return float(widest)


def adversaries(
    table: np.ndarray, values: Sequence[Sequence[float]]
) -> Iterator[tuple[int, dict[int, int], dict[int, dict[float, float]]]]:
    """Yield target, what is known, and the law of the sum under each secret, for all of them."""
    for target, fixed, cells in possible_cells(table):
        laws: dict[int, dict[float, float]] = {}
        for secret, held in cells.items():
            law: dict[float, float] = {}
            for cell in held:
                answer = sum(values[p][v] for p, v in enumerate(cell))
                law[answer] = law.get(answer, 0.0) + float(table[cell])
            laws[secret] = {answer: p / sum(law.values()) for answer, p in law.items()}
        if len(laws) > 1:
            yield target, fixed, laws


def masses_on_cells(
    places: np.ndarray, laws: Sequence[np.ndarray], sigma: float
) -> list[np.ndarray]:
    """Return the probabilities of the cells of a fine grid, for every row of matrices of laws.

    A set of cells attains the δ that the first law gains on it over the second: less than the true
    one by a few parts in 1e4, and never more.
    """
    atoms = np.asarray(places, dtype=float) / sigma
    near = np.concatenate([atom + np.linspace(-9, 9, 121) for atom in atoms])
    edges = np.unique(near.round(2))
    start, end = edges[:-1, np.newaxis] - atoms, edges[1:, np.newaxis] - atoms
    right = start > 0  # both tails with all digits
    mass = ndtr(np.where(right, -start, end)) - ndtr(np.where(right, -end, start))
    return [law @ mass.T for law in laws]
