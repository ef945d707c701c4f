"""A limit for a correlation from signs alone, with noise or without; for values that are clipped.

Theorem 34 (docs/theory).

**Statistic.** Two units that stand at the same positions, whole series or whole groups, are
subtracted from each other. What both have in common by position cancels, whatever it is, and the
difference z is Gaussian with the correlation of the units. Its signs are those of differences of
any increasing function of the values, such as clipping, which can only make a difference zero;
zeros are passed over, which removes changes of sign and never adds one. Between two differences of
correlation φ a change has probability at most arccos(φ)/π, reached where z has mean 0 (units may
have levels of their own). A pair adds the share of its neighbours (in a group: of its pairs of
members) whose signs differ.

**Privacy.** A unit is in one pair. So substituting a unit changes the sum by at most the largest
share: 1 for a series, however long, and m²/4 of m(m−1)/2 pairs for a group of m. The sum is a whole
number of steps, with discrete Laplace noise. Which units stand where is public.

**Limit.** The upper limit is the largest correlation at which a sum at least as large as the
noisy one has more than the probability of a miss, noise included. Its law at mean 0 is simulated,
from a fixed seed, and moved to the exact mean. Fewer changes than that mean a larger limit: levels,
clipping and ties err on the safe side. Signs give no lower limit for the same reason.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from pdp_calibrate.arrays import FloatArray, check_number
from pdp_calibrate.errors import ModelError
from pdp_calibrate.learning.private_sums import IntArray, noisy_sums

LARGEST = 1 - 1e-9
"""The largest correlation that a set may hold; so close to 1 it is that of group privacy."""

AT_AN_END = 0.05
"""The share of public values at an end of their range above which moments are not used."""

_STEPS = 1 << 20  # of a share, which is a whole number of them
_SEED = 20_261  # public and fixed: the limit is a function of the noisy sum
_SUMS = 10_000  # simulated sums, from a pool of simulated pairs
_POOL = 8_192
_POOL_VALUES = 4_000_000
_CHANCE = 0.002  # one standard error of a simulated probability of 5 %


def checked_lowest(lowest: object) -> None:
    """Raise unless the smallest correlation assumed possible is None or between −1 and 1."""
    if lowest is not None:
        check_number(lowest, "lowest")
        if not -1 < float(lowest) < 1:  # type: ignore[arg-type]
            raise ModelError(f"lowest must lie between -1 and 1, or be None, got {lowest}.")


def lowest_note(lowest: float | None) -> str:
    """Say what is assumed below the upper limit."""
    if lowest is None:
        return "The fit gives an upper limit only; below it any correlation is allowed."
    return (
        f"No correlation is below {lowest:g}: that is assumed (lowest={lowest:g}), for the fit"
        " gives an upper limit only."
    )


@dataclass(frozen=True, kw_only=True)
class SignShares:
    """The sum over pairs of units of the share of signs that differ, and its noise."""

    total: float
    """The sum, noise included."""
    scale: float
    """The scale of the noise; 0 if there is none."""
    sizes: Counter[int]
    """How many pairs share how many positions."""
    along: bool
    """Whether neighbours are compared (series), or all members (groups)."""

    @classmethod
    def of_one(cls, values: FloatArray) -> SignShares:
        """Return the changes of a single public series about its median, which is a cut."""
        if len(values) < 3:
            raise ModelError("a correlation of neighbours needs at least two pairs of neighbours.")
        changes = _changes(np.sign(values - np.median(values)))
        return cls(total=changes, scale=0.0, sizes=Counter({len(values): 1}), along=True)

    @property
    def correlation(self) -> float:
        """A correlation at which as many signs differ as were seen."""
        share = min(max(self.total / sum(self.sizes.values()), 0.0), 1.0)
        return min(math.cos(math.pi * share), LARGEST)

    def limit(self, confidence: float) -> float:
        """Return an upper limit that fails with probability at most 1 − confidence; at least 0."""
        miss = max(1 - confidence - _CHANCE, (1 - confidence) / 2)

        def above(share: float) -> float:
            return self._probability(share) - miss

        if above(0.5) < 0:  # signs change more often than independent ones would
            return 0.0
        least = math.acos(LARGEST) / math.pi
        if above(least) >= 0:
            return LARGEST
        from scipy.optimize import brentq  # slow to import, and rarely needed

        refused = float(brentq(above, least, 0.5, xtol=1e-9, rtol=1e-4))
        while refused > least and above(refused) >= 0:
            refused = max(least, refused * (1 - 2e-4))
        return min(math.cos(math.pi * refused), LARGEST)

    def _probability(self, share: float) -> float:
        """Return P(sum + noise ≥ what was seen) where each change has this probability."""
        sums = simulated_sums(self.sizes, math.cos(math.pi * share), along=self.along)
        gap = self.total - 2 / _STEPS * len(self.sizes) - sums  # rounding to whole steps, outwards
        if not self.scale:
            return float((gap <= 1e-9).mean())
        tails = np.exp(-np.abs(gap) / self.scale) / 2
        return float(np.where(gap > 0, tails, 1 - tails).mean())


def simulated_sums(sizes: Counter[int], correlation: float, *, along: bool) -> FloatArray:
    """Return simulated sums over pairs of the share of signs that differ, at mean 0."""
    rng = np.random.default_rng(_SEED)
    longest = max(sizes)
    pool = int(min(_POOL, max(1024, _POOL_VALUES // longest)))
    simulate = _along if along else _among
    shares = simulate(rng, pool, sorted(sizes), correlation)
    expected = math.acos(correlation) / math.pi
    sums = np.zeros(_SUMS)
    for size, number in sizes.items():
        values, counts = np.unique(shares[size], return_counts=True)
        drawn = rng.multinomial(number, counts / pool, size=_SUMS)
        sums += drawn @ values + number * (expected - float(shares[size].mean()))
    return sums


def _along(
    rng: np.random.Generator, pool: int, sizes: Sequence[int], correlation: float
) -> dict[int, FloatArray]:
    """Simulate the share of neighbours whose signs differ, for series of these lengths."""
    found: dict[int, FloatArray] = {}
    value = rng.standard_normal(pool)
    changes, own = np.zeros(pool), math.sqrt((1 - correlation) * (1 + correlation))
    for length in range(2, sizes[-1] + 1):
        later = correlation * value + own * rng.standard_normal(pool)
        changes = changes + ((later > 0) != (value > 0))
        value = later
        if length in sizes:
            found[length] = changes / (length - 1)
    return found


def _among(
    rng: np.random.Generator, pool: int, sizes: Sequence[int], correlation: float
) -> dict[int, FloatArray]:
    """Simulate the share of pairs of members whose signs differ, for groups of these sizes."""
    found: dict[int, FloatArray] = {}
    level = math.sqrt(correlation) * rng.standard_normal(pool)
    above, own = np.zeros(pool), math.sqrt(1 - correlation)
    for size in range(1, sizes[-1] + 1):
        above = above + (level + own * rng.standard_normal(pool) > 0)
        if size in sizes:
            found[size] = above * (size - above) / (size * (size - 1) / 2)
    return found


def sign_shares(
    values: FloatArray,
    units: IntArray,
    positions: IntArray,
    *,
    along: bool,
    epsilon: float | None,
) -> SignShares:
    """Pair units that stand at the same positions, and add up the shares of signs that differ.

    Parameters
    ----------
    values
        The values, sorted by unit and position.
    units
        The unit of each, ascending.
    positions
        The position of each in its unit, ascending. A series has no gaps between its own.
    along
        Whether neighbours are compared, or all.
    epsilon
        The budget; None for no noise.
    """
    begins = np.flatnonzero(np.diff(units, prepend=units[0] - 1))
    ends = np.append(begins[1:], len(units))
    places = [positions[first:last] for first, last in zip(begins, ends, strict=True)]
    sizes: Counter[int] = Counter()
    total = 0
    share: Callable[[FloatArray], float] = _changes if along else _discordant
    for one, other in paired(places, along=along):
        shared, mine, yours = np.intersect1d(places[one], places[other], return_indices=True)
        apart = values[begins[one] + mine] - values[begins[other] + yours]
        sizes[len(shared)] += 1
        total += round(_STEPS * share(np.sign(apart)))
    if not sizes:
        what = "series that share two consecutive positions" if along else "groups that are alike"
        raise ModelError(
            f"a correlation is learned from at least two {what}, and there is no such pair. Give"
            " order_by= (or role=) a column of positions that many of them share."
        )
    if epsilon is None:
        return SignShares(total=total / _STEPS, scale=0.0, sizes=sizes, along=along)
    most = max(1.0 if along else 2 * (size * size // 4) / (size * (size - 1)) for size in sizes)
    noisy = noisy_sums([total], sensitivity=math.ceil(most * _STEPS), epsilon=epsilon)
    return SignShares(
        total=int(noisy.values[0]) / _STEPS,
        scale=noisy.scale / _STEPS,
        sizes=sizes,
        along=along,
    )


def paired(places: Sequence[IntArray], *, along: bool) -> list[tuple[int, int]]:
    """Pair units by their positions alone, each with at most one other.

    Units at the same positions first. Those that are left over are paired in the order of where
    they begin and how many positions they have, if they share two or more; of series, these must
    follow each other, for a step across a gap would change signs more often.
    """
    found: list[tuple[int, int]] = []
    alike: dict[tuple[int, ...], list[int]] = {}
    for unit, held in enumerate(places):
        if len(held) > 1:
            alike.setdefault(tuple(held.tolist()), []).append(unit)
    left: list[int] = []
    for _, units in sorted(alike.items()):
        found += zip(units[::2], units[1::2], strict=False)
        left += units[len(units) // 2 * 2 :]
    while len(left) > 1:
        one, *left = left
        _, mine, yours = np.intersect1d(places[one], places[left[0]], return_indices=True)
        steps = np.concatenate([np.diff(mine), np.diff(yours)])
        if len(mine) > 1 and (not along or np.all(steps == 1)):
            found.append((one, left.pop(0)))
    return found


def _changes(signs: FloatArray) -> float:
    """Return the number of changes of sign over the number of neighbours, zeros passed over."""
    kept = signs[signs != 0]
    return float((kept[1:] != kept[:-1]).sum()) / (len(signs) - 1)


def _discordant(signs: FloatArray) -> float:
    """Return the share of pairs of members of which one is above and the other below."""
    above, below = int((signs > 0).sum()), int((signs < 0).sum())
    return above * below / (len(signs) * (len(signs) - 1) / 2)
