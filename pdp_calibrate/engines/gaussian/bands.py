"""How much an uncertain covariance adds to a coefficient.

Both kinds of Θ move a coefficient by at most m·√(Var(f|x_i,x_K)/Var(x_i|x_K)), taken at the centre.

Loewner ball. Conditioning keeps the ball: (1−τ)Ĉ ⪯ C ⪯ (1+τ)Ĉ for conditional covariances too.
In whitened coordinates of (x_i, residual of f) the coefficient moves by √(…)·E₁₂/(1+E₁₁) with
‖E‖ ≤ τ, largest at τ/√(1−τ²). Exact, attained by a covariance inside the ball.

Sample of N Gaussian rows. With k tuples known, (β̂−β) over its standard error is a Student t
variable with ν = N−k−2 degrees of freedom, and the standard error is √(…)/√ν. Spending the failure
probability as η = (1−confidence)/(n²·C(n−1,k)) on each of the n·C(n−1,k) adversaries who know k
tuples, for each k, the bands hold all together.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import gammaln

from pdp_calibrate.models import LoewnerBall, Model, SampledGaussian
from pdp_calibrate.models.base import FloatArray


def multipliers_of(model: Model, *, functions: int) -> FloatArray:
    """Return m per number of tuples known; the strongest adversary needs no covariance.

    So many linear functions are bounded together.
    """
    size = len(model.names)
    found = np.zeros(size)
    if isinstance(model, LoewnerBall):
        found[:-1] = model.radius / math.sqrt((1 - model.radius) * (1 + model.radius))
    if isinstance(model, SampledGaussian):
        from scipy.stats import t as student  # slow to import, and rarely needed

        known = np.arange(size - 1)
        freedom = model.rows - known - 2
        log_sets = gammaln(size) - gammaln(known + 1) - gammaln(size - known)
        log_each = math.log((1 - model.confidence) / functions) - 2 * math.log(size) - log_sets
        # Below the smallest float the quantile would be infinite: sound, but say nothing.
        quantiles = student.isf(np.exp(log_each) / 2, freedom)
        found[:-1] = quantiles / np.sqrt(freedom)
    return np.asarray(found * (1 + 1e-10))  # covers the rounding of the quantile
