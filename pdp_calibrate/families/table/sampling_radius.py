"""How far a law estimated from counts of rows can be from the truth, with or without noise.

An event (x_i = v, x_K) is matched by N of the rows; among them n_s have the unknown part of the
answer at its value s, one of d that are *possible* (not: seen). Given N these rows are independent
draws of the conditional law P, so by Hoeffding's inequality for each of the 2^d − 2 proper subsets
of values, the raw law P̄ = n/N obeys P(TV(P̄, P) ≥ τ) ≤ (2^d − 2)·e^{−2Nτ²}. With E events,

    τ = √( log((2^d − 2)·E/β) / 2N )

holds for all of them together with probability at least 1 − β; N = 0 says nothing: τ = 1.

**Noise on the counts.** Let each cell of the table carry independent discrete Laplace noise of
scale b, and let a_s = n_s + W_s be the noisy counts, W_s the noise of the cells behind s. For a set
A of values W(A) = Σ_{s∈A} W_s adds up at most m noises, m the cells of the event, so for t < 1/b

    P(W(A) ≥ D) ≤ e^{m·log M(t) − t·D},   M(t) = (1 − α)²/((1 − α·e^t)(1 − α·e^{−t})),  α = e^{−1/b}

(M(t) ≥ 1, so fewer cells only help). Choose D so that this, over both signs, all 2^d sets and all E
events, adds up to the failure probability of the noise. Then, with c_s = max(a_s, 0), C = Σ c_s:

- N ≥ Σ a_s − D, and more rows only shrink the radius above: use that bound for N.
- TV(c/C, n/N) ≤ D/C. Proof: |c_s − n_s| ≤ |W_s| with the same sign, for n_s ≥ 0; so Σ (c_s − n_s)⁺
  ≤ Σ W_s⁺ = max over A of W(A) ≤ D, and likewise Σ (n_s − c_s)⁺ ≤ D. If N ≥ C, the distance is
  Σ (n_s/N − c_s/C)⁺ ≤ Σ (n_s − c_s)⁺/N ≤ D/C; if N < C, it is Σ (c_s/C − n_s/N)⁺ ≤
  Σ (c_s − n_s)⁺/C ≤ D/C.

By the triangle inequality the radius around c/C is D/C plus the radius above.
"""

from __future__ import annotations

import math

import numpy as np

from pdp_calibrate.arrays import FloatArray

_ROUND_UP = 1 + 1e-12


_TILTS = np.concatenate([np.geomspace(1e-6, 0.1, 60), np.linspace(0.1, 0.9999, 180)])


def log_sets(values: int) -> float:
    """Return log(2^d − 2), the number of proper subsets of d values; −inf for one value."""
    return -math.inf if values == 1 else values * math.log(2) + math.log1p(-(2.0 ** (1 - values)))


def sampling_radius(rows: FloatArray, values: int, log_odds: float) -> FloatArray:
    """Return the distance within which every law counted from these numbers of rows is right.

    Parameters
    ----------
    rows
        N of each event, or a lower bound on it; at or below zero gives 1.
    values
        d, how many values the law can take.
    log_odds
        log(E/β): events judged together over the probability that one of them fails.

    Examples
    --------
    >>> sampling_radius(np.array([0, 1000, 100000]), 2, math.log(100)).round(4).tolist()
    [1.0, 0.0515, 0.0051]
    """
    if values == 1:
        return np.zeros(np.shape(rows))
    exponent = log_sets(values) + log_odds
    with np.errstate(divide="ignore", invalid="ignore"):
        radius = np.sqrt(max(exponent, 0.0) / (2 * rows)) * _ROUND_UP
    return np.asarray(np.where(rows > 0, np.minimum(radius, 1.0), 1.0))


def noise_reach(scale: float, cells: int, values: int, log_odds: float) -> float:
    """Return D, which no sum of noise over a set of values exceeds in either direction.

    Parameters
    ----------
    scale
        b of the discrete Laplace noise on every cell.
    cells
        m, how many cells the event consists of.
    values
        d, how many values the law can take.
    log_odds
        log(E/β), as in `sampling_radius`.

    Examples
    --------
    >>> round(noise_reach(1.0, 1, 2, math.log(100)), 1)
    9.2
    """
    tilts = _TILTS / scale
    # Any tilt proves a bound, so a list of them is as good as the exact minimum.
    log_moment = (
        2 * math.log(-math.expm1(-1 / scale))
        - np.log(-np.expm1(tilts - 1 / scale))
        - np.log(-np.expm1(-tilts - 1 / scale))
    )
    needed = log_odds + (values + 1) * math.log(2)
    return float(((cells * log_moment + needed) / tilts).min()) * (1 + 1e-9)
