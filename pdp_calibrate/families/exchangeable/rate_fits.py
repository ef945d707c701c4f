"""The law of a group's rate, learned from groups of all sizes together.

Theorem 31 (docs/theory).

Groups of m members with s ones: given the rate θ of a group, s is binomial. Two laws of θ are
learned, which err in different ways: a beta law with mean μ and pairwise correlation ρ, as an upper
likelihood limit; and the free mixture of 41 rates with the largest likelihood, as it is.

With noise only two sums are known: of the shares of ones s/m, and of the shares of discordant pairs
s(m − s)/C(m, 2), whose means are μ and 2μ(1 − μ)(1 − ρ) whatever the sizes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from scipy import optimize, special

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.learning.private_sums import noisy_sums

_RATES = 41
_MEANS = 7  # means of the beta law at which its largest correlation is taken
_TRIED = 21  # means tried for the edge of what noisy sums allow
_LEAST, _MOST = 1e-6, 1 - 1e-9  # correlations between which limits are sought
_STEPS = 1 << 20  # whole steps of a share, for noise on whole numbers
_EXTREME = 12.0  # logits of means, beyond which a mean is 0 or 1 for all purposes

Totals = Mapping[tuple[int, int], int]


class _Cells(NamedTuple):
    """Groups with the same size and number of ones."""

    sizes: FloatArray
    ones: FloatArray
    groups: FloatArray

    @classmethod
    def of(cls, totals: Totals) -> _Cells:
        rows = [(size, ones, count) for (size, ones), count in sorted(totals.items()) if count]
        return cls(*np.array(rows, dtype=np.float64).T)

    def log_likelihood(self, mean: float, correlation: float) -> float:
        """Return that of a beta law of the rate, without what does not depend on it."""
        a, b = shape_of(mean, correlation)
        logs = special.betaln(a + self.ones, b + self.sizes - self.ones) - special.betaln(a, b)
        return float(self.groups @ logs)


def shape_of(mean: float, correlation: float) -> tuple[float, float]:
    """Return (a, b) of the beta law with this mean and pairwise correlation 1/(a + b + 1)."""
    together = 1 / correlation - 1
    return mean * together, (1 - mean) * together


def beta_limits(totals: Totals, confidence: float) -> list[tuple[float, float]]:
    """Return (μ, ρ) at the upper edge of {2(L̂ − L) ≤ z²}: the largest ρ at several μ.

    What a query needs grows with ρ and depends on μ, so its largest value in that set, its
    one-sided likelihood limit with one degree of freedom, lies on this edge.
    """
    cells = _Cells.of(totals)
    allowed = float(special.ndtri(confidence)) ** 2 / 2

    def best(mean: float) -> tuple[float, float]:
        """Return the largest log-likelihood at a mean, and its correlation."""
        found = optimize.minimize_scalar(
            lambda logit: -cells.log_likelihood(mean, float(special.expit(logit))),
            bounds=(float(special.logit(_LEAST)), float(special.logit(_MOST))),
            method="bounded",
            options={"xatol": 1e-4},
        )
        ends = [(cells.log_likelihood(mean, rho), rho) for rho in (_LEAST, _MOST)]
        return max([(-float(found.fun), float(special.expit(found.x))), *ends])

    def profile(logit: float) -> float:
        return best(float(special.expit(logit)))[0]

    share = float(cells.groups @ cells.ones) / float(cells.groups @ cells.sizes)
    near = float(np.clip(special.logit(share), 1 - _EXTREME, _EXTREME - 1))
    found = optimize.minimize_scalar(
        lambda logit: -profile(logit), bounds=(near - 3, near + 3), method="bounded",
        options={"xatol": 1e-3},
    )  # fmt: skip
    top, peak = float(found.x), -float(found.fun)

    def edge(end: float) -> float:
        """Return the mean furthest towards one end that is not ruled out."""
        if profile(end) > peak - allowed:
            return end
        low, high = sorted((top, end))
        root = optimize.brentq(lambda x: profile(x) - peak + allowed, low, high, xtol=1e-4)
        return float(root)

    def highest(mean: float) -> float:
        """Return the largest correlation that is not ruled out at a mean."""
        reached, rho = best(mean)
        if cells.log_likelihood(mean, _MOST) >= peak - allowed:
            return _MOST
        if reached <= peak - allowed:
            return rho

        def excess(logit: float) -> float:
            return cells.log_likelihood(mean, float(special.expit(logit))) - peak + allowed

        start, stop = float(special.logit(rho)), float(special.logit(_MOST))
        return float(special.expit(optimize.brentq(excess, start, stop, xtol=1e-6) + 1e-6))

    logits = np.linspace(edge(-_EXTREME), edge(_EXTREME), _MEANS)
    means = [float(mean) for mean in special.expit(logits)]
    return [(mean, min(highest(mean), _MOST)) for mean in means]


def free_mixture(totals: Totals) -> tuple[FloatArray, FloatArray]:
    """Return 41 rates, and the weights with which they are likeliest.

    Newton steps under the constraint that weights are not negative (Wang, JRSS B 69, 2007): each
    minimises |S·w − 2|² for the likelihoods S of the cells relative to the present mixture.
    """
    cells = _Cells.of(totals)
    rates = np.sin(np.pi * (np.arange(_RATES) + 0.5) / (2 * _RATES)) ** 2
    logs = np.outer(cells.ones, np.log(rates))
    logs += np.outer(cells.sizes - cells.ones, np.log1p(-rates))
    likelihoods = np.exp(logs - logs.max(axis=1, keepdims=True))
    root = np.sqrt(cells.groups)
    weights = np.full(_RATES, 1 / _RATES)

    def value(weights: FloatArray) -> float:
        return float(cells.groups @ np.log(likelihoods @ weights))

    for _ in range(200):
        relative = likelihoods / (likelihoods @ weights)[:, np.newaxis]
        gain = float((cells.groups @ relative).max() / cells.groups.sum()) - 1
        if gain < 1e-7:
            break
        # A heavy row keeps the sum of the weights at 1.
        heavy = 10 * float(root.max()) * math.sqrt(len(root))
        system = np.vstack([root[:, np.newaxis] * relative, np.full((1, _RATES), heavy)])
        target, _ = optimize.nnls(system, np.append(2 * root, heavy), maxiter=50 * _RATES)
        target = target / target.sum()
        before, share = value(weights), 1.0
        while value((1 - share) * weights + share * target) < before and share > 1e-9:
            share /= 2
        moved = (1 - share) * weights + share * target
        # Where Newton no longer helps, one step of expectation and maximisation always does.
        if value(moved) <= before:
            moved = weights * (cells.groups @ relative) / cells.groups.sum()
        weights = moved / moved.sum()
    weights = np.where(weights < 1e-12, 0.0, weights)
    return rates, weights / weights.sum()


class NoisySums(NamedTuple):
    """Sums over groups, with Laplace noise."""

    ones: float
    """Σ s/m."""
    discordant: float
    """Σ s(m − s)/C(m, 2), over groups of two or more."""
    scale: float
    """The scale of the noise on each."""
    sizes: Mapping[int, int]
    """How many groups there are of each size; public."""


def noisy_limits(found: NoisySums, confidence: float) -> list[tuple[float, float]]:
    """Return (μ, ρ) at the upper edge of what the noisy sums do not rule out.

    At each (μ, ρ) two sums are tested whose means are then 0, both with a normal quantile that
    allows for their skewness: that of the shares of ones less μ, on both sides, at a fifth of the
    failure probability; and that of the discordant pairs, corrected for the former.
    """
    sizes = {size: number for size, number in found.sizes.items() if size > 1}
    pairs, groups = sum(sizes.values()), sum(found.sizes.values())
    alone = found.sizes.get(1, 0)  # groups of one: their share of ones carries the mean alone
    failure = 1 - confidence
    if not pairs:
        return [(0.5, _MOST)]

    def excess(mean: float, correlation: float) -> float:
        """Return the corrected discordant pairs less what they exceed with probability β·4/5."""
        agree = 1 - correlation
        slope = 2 * agree * (1 - 2 * mean)
        moments = _moments(sizes, mean, correlation, slope)
        together = found.ones - groups * mean
        seen = found.discordant - pairs * 2 * mean * (1 - mean) * agree - slope * together
        spread = moments[0] + slope**2 * alone * mean * (1 - mean)
        spread += 2 * found.scale**2 * (1 + slope**2)
        return seen - _quantile(spread, moments[1], 1 - 0.8 * failure)

    def is_mean(mean: float, correlation: float) -> bool:
        """Whether the shares of ones allow a mean; a larger correlation allows more."""
        each = sum(n * (1 + (size - 1) * correlation) / size for size, n in found.sizes.items())
        spread = mean * (1 - mean) * each + 2 * found.scale**2
        limit = -float(special.ndtri(failure / 10)) * math.sqrt(spread)
        return abs(found.ones - groups * mean) <= limit

    def highest(mean: float) -> float:
        """Return the largest correlation that is not ruled out: the excess grows with it."""
        low, high = (float(special.logit(rho)) for rho in (_LEAST, _MOST))
        if excess(mean, _MOST) <= 0:
            return _MOST
        if excess(mean, _LEAST) > 0:
            return _LEAST
        root = optimize.brentq(
            lambda logit: excess(mean, float(special.expit(logit))), low, high, xtol=1e-4
        )
        return min(float(special.expit(root + 1e-4)), _MOST)

    logits = np.linspace(-9, 9, 721)
    wide = [logit for logit in logits if is_mean(float(special.expit(logit)), 1.0)]
    if not wide:  # noise alone hardly does this: nothing is ruled out
        return [(0.5, _MOST)]
    means = [float(one) for one in special.expit(np.linspace(wide[0], wide[-1], _TRIED))]
    edge = [(mean, highest(mean)) for mean in means]
    edge = [(mean, rho) for mean, rho in edge if is_mean(mean, rho)] or [(0.5, _MOST)]
    chosen = np.linspace(0, len(edge) - 1, min(len(edge), _MEANS)).round().astype(int)
    return [edge[place] for place in chosen]


_AGREEING = 0.8  # confidence of the limit from pairs alone, which guards against other laws


def agreement_limits(totals: Totals) -> list[tuple[float, float]]:
    """Return (μ, ρ) at the upper edge of what the shares of discordant pairs alone do not rule out.

    Their mean is 2μ(1 − μ)(1 − ρ) for every law of the rate. Where groups are polarised, a beta law
    fits badly and the free mixture is a point: this limit then is the larger one.
    """
    sizes: dict[int, int] = {}
    ones = discordant = 0.0
    for (size, held), count in totals.items():
        sizes[size] = sizes.get(size, 0) + count
        ones += count * held / size
        if size > 1:
            discordant += count * 2 * held * (size - held) / (size * (size - 1))
    return noisy_limits(NoisySums(ones, discordant, 0.0, sizes), _AGREEING)


def _moments(
    sizes: Mapping[int, int], mean: float, correlation: float, slope: float
) -> tuple[float, float]:
    """Return variance and third central moment of Σ d − slope·s/m over groups."""
    a, b = shape_of(mean, correlation)
    second = third = 0.0
    for size, number in sizes.items():
        ones = np.arange(size + 1.0)
        logs = special.betaln(a + ones, b + ones[::-1]) - special.betaln(ones + 1, ones[::-1] + 1)
        law = np.exp(logs - logs.max())
        law /= law.sum()
        values = ones * ones[::-1] / (size * (size - 1) / 2) - slope * ones / size
        values = values - law @ values
        second += number * float(law @ values**2)
        third += number * float(law @ values**3)
    return second, third


def _quantile(variance: float, third: float, probability: float) -> float:
    """Return a quantile of a sum with mean 0, with the first correction for its skewness."""
    z = float(special.ndtri(probability))
    spread = math.sqrt(variance)
    return spread * (z + (z * z - 1) * third / (6 * spread**3))


def noisy_rate_sums(totals: Totals, epsilon: float) -> NoisySums:
    """Return both sums under ε-differential privacy for substituting one group of the same size.

    Each group's shares are whole multiples of 1/R, rounded down before they are added, so that one
    group moves both sums together by at most 3/2·R + 2 of these steps.
    """
    sizes: dict[int, int] = {}
    ones = discordant = 0
    for (size, held), count in totals.items():
        sizes[size] = sizes.get(size, 0) + count
        ones += count * (held * _STEPS // size)
        if size > 1:
            discordant += count * (2 * held * (size - held) * _STEPS // (size * (size - 1)))
    noisy = noisy_sums([ones, discordant], sensitivity=3 * _STEPS // 2 + 2, epsilon=epsilon)
    halves = 0.5 * sum(sizes.values())  # what rounding down took away, about
    first, second = (float(value) + halves for value in noisy.values)
    return NoisySums(first / _STEPS, second / _STEPS, noisy.scale / _STEPS, sizes)
