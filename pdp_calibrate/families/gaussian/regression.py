"""The leakage of one adversary: a regression coefficient.

Theorem 7 (docs/theory).

Given x_K, the pair (x_i, f) is Gaussian and p(r | x_i, x_K) is one density shifted by β·x_i, with
β the coefficient of x_i in the regression of f on (x_i, x_K). Laplace tails make log p fall by at
most 1/λ per unit, a slope attained as r → ±∞, so l(i,K) = |β|·M_i/λ (Li, Ren, Yang, Yang,
arXiv 1906.02606, Thm 6, there for a plain sum). Several answers with independent noise shift
together: their leakages at one (i,K) add up.

**An uncertain covariance.** Both kinds of Θ move a coefficient by at most
m·√(Var(f|x_i,x_K)/Var(x_i|x_K)), taken at the centre.

*Loewner ball.* Conditioning keeps the ball: (1−τ)Ĉ ⪯ C ⪯ (1+τ)Ĉ for conditional covariances too.
In whitened coordinates of (x_i, residual of f) the coefficient moves by √(…)·E₁₂/(1+E₁₁) with
‖E‖ ≤ τ, largest at τ/√(1−τ²). Exact, attained by a covariance inside the ball.

*Sample of N Gaussian rows.* With k tuples known, (β̂−β) over its standard error is a Student t
variable with ν = N−k−2 degrees of freedom, and the standard error is √(…)/√ν. How wide a band has
to be depends on what is claimed; see `multipliers_of`.

`witness_of` names who attains a leakage, in the user's names and units.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv, gammaln, stdtrit

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.adversary import Witness
from pdp_calibrate.core.model import Model
from pdp_calibrate.core.problem import Bracket, Problem
from pdp_calibrate.core.rounding import UNIT_ROUNDOFF
from pdp_calibrate.errors import ModelError
from pdp_calibrate.families.gaussian.instance import Instance, arranged
from pdp_calibrate.families.gaussian.model import Gaussian
from pdp_calibrate.families.gaussian.sets import LoewnerBall, SampledGaussian


@dataclass(frozen=True, kw_only=True)
class Regression:
    """The leakage of one adversary and what it was computed from."""

    value: float
    """Upper end."""
    lower: float
    """Lower end."""
    signs: FloatArray
    """Sign of the coefficient in each coordinate, in the worst pattern."""


def regression(instance: Instance, target: int, known: Sequence[int], *, tau: float) -> Regression:
    """Evaluate one adversary of a block, with its rounding error.

    One Cholesky factor L in the order K, i, U gives everything without cancellation: in the
    orthonormal coordinates y = Lᵀa the coefficient is y_i/L_ii, and Var(f|x_i,x_K) = Σ_U y².
    """
    decided = {target, *known}
    unknown = [k for k in range(instance.size) if k not in decided]
    functions = instance.functions
    factor = float(instance.factors[target])
    if not unknown:
        # With everyone else known, f moves by the target's weight whatever the covariance is.
        slopes, ratios, margin = functions[:, target], np.zeros(len(functions)), 0.0
    else:
        order = [*known, target, *unknown]
        lower = np.linalg.cholesky(arranged(instance.covariance, order))
        place = len(known)
        answers = functions[:, order[place:]] @ lower[place:, place:]
        slopes = answers[:, 0] / lower[place, place]
        ratios = np.sqrt(np.sum(answers[:, 1:] ** 2, axis=1)) / lower[place, place]
        margin = 2 * tau
    multiplier = instance.multipliers[len(known)]
    values = np.abs(slopes) + multiplier * ratios
    # Weights summed over answers err relative to the sign patterns in which nothing cancels.
    size = np.hypot(slopes, ratios).max()
    errors = margin * (1 + multiplier) * size + 16 * UNIT_ROUNDOFF * values.max()
    worst = int(values.argmax())
    coordinates = np.sign(slopes[worst]) or 1.0
    signs = coordinates * instance.signs[worst]
    return Regression(
        value=float(((values + errors) * factor).max()),
        lower=max(0.0, float(((values - errors) * factor).max()) * (1 - 32 * UNIT_ROUNDOFF)),
        signs=signs,
    )


def nobody_known(instance: Instance) -> tuple[FloatArray, FloatArray]:
    """Return value and error for every target of an adversary who knows nothing: O(n²).

    For a sum this is the paper's Cor. 2: |1 + Σ_{j≠i} Cov(x_i, x_j)/Var(x_i)|·M_i/λ. No matrix is
    factored, so the error is that of one sum of n products.
    """
    covariance = instance.covariance
    functions = instance.functions
    products = functions @ covariance
    sizes = np.abs(instance.coordinates).sum(axis=0) @ np.abs(covariance)
    variances = np.diagonal(covariance)
    steps = 2 * (instance.size + len(instance.coordinates) + 4) * UNIT_ROUNDOFF
    slopes, errors = np.abs(products) / variances, steps * sizes / variances
    multiplier = instance.multipliers[0]
    if multiplier:
        totals = np.einsum("mj,mj->m", functions, products)[:, np.newaxis]
        slack = 4 * steps * float(np.abs(instance.coordinates).sum(axis=0) @ sizes)
        left = totals / variances - slopes**2
        slack = slack / variances + 2 * slopes * errors + errors**2
        ratios = np.sqrt(np.maximum(left, 0.0))
        slopes = slopes + multiplier * ratios
        errors = errors + multiplier * (np.sqrt(np.maximum(left, 0.0) + slack) - ratios)
    values = slopes.max(axis=0) * instance.factors
    return values, (slopes + errors).max(axis=0) * instance.factors - values


def multipliers_of(problem: Problem) -> FloatArray:
    """Return m per number of tuples known; the strongest adversary needs no covariance.

    Theorem 11 (docs/theory). Of a sample, with β = 1 − confidence and ν = N−k−2:

    - the worst adversary of one query, or of a list with fixed shares: one-sided t at level β,
      because who is worst under the true law does not depend on the sample;
    - of a clamped answer: level β/|U|, as the coefficient of each unknown tuple counts separately;
    - several adversaries side by side: all t-bands together, two-sided;
    - where other queries follow: bands of all linear functions and all adversaries together.
    """
    model = problem.model
    size = len(model.names)
    found = np.zeros(size)
    if isinstance(model, LoewnerBall):
        found[:-1] = model.radius / math.sqrt((1 - model.radius) * (1 + model.radius))
    if isinstance(model, SampledGaussian):
        found[:-1] = np.maximum(_bands(problem, model), 0.0)
    return np.asarray(found * (1 + 1e-10))  # covers the rounding of the quantile


def _bands(problem: Problem, model: SampledGaussian) -> FloatArray:
    size, failure = len(model.names), 1 - model.confidence
    known = np.arange(size - 1)
    freedom, unknown = model.rows - known - 2, size - 1 - known
    clamped, measure = problem.contributions.clamped, problem.measure
    if not (measure.more_follows or measure.side_by_side):
        # The largest leakage of the truth stands at a fixed adversary and a fixed direction; the
        # largest band is at least the band there, so it fails only if that one band does.
        return np.asarray(
            -stdtrit(freedom, failure / (unknown if clamped else 1.0)) / np.sqrt(freedom)
        )
    # n·C(n−1,k) adversaries know k tuples, for n numbers k.
    log_sets = gammaln(size) - gammaln(known + 1) - gammaln(size - known)
    log_each = math.log(failure) - 2 * math.log(size) - log_sets
    # Below the smallest float the quantile is infinite: a sound bound, but a useless one.
    if clamped:  # whatever is asked, only the coefficients of single tuples count
        return np.asarray(-stdtrit(freedom, np.exp(log_each) / (2 * unknown)) / np.sqrt(freedom))
    if measure.more_follows:
        # The largest (β̂_f−β_f)²/(standard error)² over all linear f of |U| unknown tuples is
        # Hotelling's T², |U|·ν/(ν−|U|+1) times an F variable.
        left = freedom - unknown + 1
        # P(F > x) is a regularised incomplete beta function of left/(left + |U|·x).
        share = betaincinv(left / 2, unknown / 2, np.exp(log_each))
        return np.asarray(np.sqrt((1 - share) / share))
    patterns = 2.0 ** (problem.contributions.coordinates - 1)
    return np.asarray(-stdtrit(freedom, np.exp(log_each) / (2 * patterns)) / np.sqrt(freedom))


def center_of(model: Model) -> Gaussian:
    """Return the Gaussian itself, or the one in the middle of a set."""
    if isinstance(model, LoewnerBall | SampledGaussian):
        return model.center
    if not isinstance(model, Gaussian):
        raise TypeError(f"the Gaussian engine searches Gaussian models, got {model!r}.")
    return model


def found_from(
    problem: Problem,
    weights: FloatArray,
    block: Sequence[int],
    target: int,
    known: Sequence[int],
    regression: Regression,
    *,
    upper: float,
    attained: bool = True,
) -> Bracket:
    """Return what the search of one block found as a bracket of the whole problem."""
    target = block[target]
    everyone = filled(problem, block, [block[place] for place in known])
    return Bracket(
        upper=upper,
        lower=min(regression.lower, upper),
        witness=witness_of(problem, weights, target, everyone, regression) if attained else None,
        target=target,
        unknown=tuple(
            k for k in range(problem.knowledge.total) if k != target and k not in everyone
        ),
    )


def filled(problem: Problem, block: Sequence[int], known: Sequence[int]) -> set[int]:
    """Add tuples of other blocks until as many are known as adversaries must know.

    They are independent of the block searched, so knowing them changes no likelihood ratio.
    """
    if problem.knowledge.known is not None:
        return set(problem.knowledge.known)
    everyone = set(known)
    outside = [position for position in range(problem.knowledge.total) if position not in block]
    everyone.update(outside[: max(0, problem.knowledge.fewest - len(everyone))])
    return everyone


def witness_of(
    problem: Problem,
    weights: FloatArray,
    target: int,
    known: set[int],
    regression: Regression,
) -> Witness:
    """Describe the adversary; the ratio is a limit, for outputs far below or far above.

    With a positive coefficient, small answers are evidence for the lower end of the range.
    """
    center = center_of(problem.model)
    order = sorted(known)
    return Witness(
        target=problem.names[target],
        known={problem.names[k]: float(center.mean[k]) for k in order},
        secrets=center.bounds[target],
        output=-math.inf if regression.signs[0] > 0 else math.inf,
        model=_worst_member(problem, regression.signs, weights, target, order),
        index=problem.index,
    )


def _worst_member(
    problem: Problem, signs: FloatArray, weights: FloatArray, target: int, known: list[int]
) -> Model:
    """Return the Gaussian of a set under which this adversary learns most.

    In whitened coordinates of e, the residual of x_i given x_K, and y, the residual of f given
    both, add τ·[[−τ, ±√(1−τ²)], [±√(1−τ²), τ]] to the identity; nothing else changes.
    """
    model = problem.model
    if isinstance(model, Gaussian):
        return model
    center = center_of(model)
    slope = multipliers_of(problem)[len(known)]
    if slope == 0:
        return center
    decided = [*known, target]
    order = decided + [k for k in range(len(center.names)) if k not in decided]
    ordered = arranged(center.covariance, order)
    lower = np.linalg.cholesky(ordered)
    place = len(known)
    answers = (signs @ weights)[order] @ lower
    spread = math.sqrt(answers[place + 1 :] @ answers[place + 1 :])
    if spread == 0:
        return center
    tau = slope / math.hypot(1.0, slope)
    sign = math.copysign(math.sqrt((1 - tau) * (1 + tau)), answers[place])
    first = lower[:, place]
    second = lower[:, place + 1 :] @ (answers[place + 1 :] / spread)
    # The change is symmetric: −τ·ee' + s·(ey' + ye') + τ·yy' as a product of two columns each.
    sides = np.stack([sign * second - tau * first, sign * first + tau * second])
    change = np.stack([first, second], axis=1) @ sides
    back = np.argsort(order).tolist()
    try:
        moved = arranged(ordered + tau * change, back)
        return center.with_covariance(moved, provenance=model.provenance)
    except ModelError:  # a radius close to 1 makes the worst member singular
        return center
