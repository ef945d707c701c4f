"""Judge drawn noise: it must follow the law promised, and the test must see a wrong scale.

OpenDP takes no seeds, so the level is so low that a right law fails less than once in 1e9 runs; the
noise is also held against scales half and twice as large, which it must not fit: with 2500 draws
that is nine standard deviations away.
"""

import math

import numpy as np
from scipy import stats

LEVEL = 1e-11
_OFF = (0.5, 2.0)


def assert_laplace(noise, scale):
    """Real numbers from Laplace noise of this scale."""
    drawn = np.asarray(noise, dtype=np.float64)
    assert stats.kstest(drawn, stats.laplace(scale=scale).cdf).pvalue > LEVEL
    for factor in _OFF:
        wrong = stats.laplace(scale=factor * scale)
        assert stats.kstest(drawn, wrong.cdf).pvalue < LEVEL, "too few draws to tell"


def assert_discrete_laplace(noise, scale):
    """Whole numbers with P(z) ∝ e^{−|z|/scale}."""
    _assert_whole(noise, lambda z, factor: stats.dlaplace(1 / (factor * scale)).cdf(z), scale)


def assert_rounded_laplace(noise, scale):
    """Laplace noise of this scale, rounded to whole numbers."""
    _assert_whole(noise, lambda z, factor: stats.laplace(scale=factor * scale).cdf(z + 0.5), scale)


def _assert_whole(noise, distribution, scale):
    drawn = np.asarray(noise)
    assert np.all(drawn == np.round(drawn))
    edge = math.ceil(3 * scale)
    inner = np.arange(-edge, edge + 1)
    observed = np.bincount((np.clip(drawn, -edge, edge + 1) + edge).astype(int), minlength=2)

    def p_value(factor):
        masses = np.diff([0.0, *distribution(inner, factor), 1.0])
        return stats.chisquare(observed, masses * len(drawn)).pvalue

    assert p_value(1.0) > LEVEL
    for factor in _OFF:
        assert p_value(factor) < LEVEL, "too few draws to tell"
