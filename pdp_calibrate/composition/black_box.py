"""Mechanisms of which only a plain-DP budget is known, such as those of another library.

A mechanism that is ε₀-DP for substituting one tuple may leak more about a tuple that others depend
on. How much more depends on the model alone: the worst ε₀-DP mechanism is a likelihood
that changes by at most e^{ε₀} with each tuple, and the largest ratio of two averages of such
likelihoods is a linear program. The bound is exact on tables that are small enough for the
programs, exact for exchangeable yes/no groups; on chains it counts the budget of each tuple the
less the further away it is, and it is the group bound elsewhere.

About a chain with a length the adversaries know values exactly, as everywhere; about models without
an end, noisy knowledge of every record is covered as well.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, get_args

from pdp_calibrate.arrays import checked_positive, deadline_after
from pdp_calibrate.composition.joint import Spending, spent
from pdp_calibrate.core.adversary import EVERYONE, Adversaries
from pdp_calibrate.core.model import Model, warn_if_private
from pdp_calibrate.core.problem import Bound, composer_of
from pdp_calibrate.errors import CalibrationError, PdpError

Neighbours = Literal["substitution", "add-remove"]


_STEPS = 60


_LARGEST_BUDGET = 1e250  # budgets of many tuples add up, and must stay floats


_CLOSE = 1e-6  # of the budget


def black_box_leakage(
    model: Model,
    *,
    epsilon: float,
    neighbours: Neighbours = "substitution",
    adversaries: Adversaries | None = None,
    time_limit: float | None = None,
) -> Bound:
    """Bound what any ε-DP mechanism can leak about correlated tuples.

    Parameters
    ----------
    model
        How the tuples are correlated.
    epsilon
        The pure-DP budget of the mechanism (δ = 0), or the sum of the budgets of several. About a
        model without an end (``length=None``) it is spent at every step, for ever, as a budget that
        is refreshed is; the bound is then about the record of any one step.
    neighbours
        What the budget is about: ``substitution`` of one tuple's value, or adding and removing a
        tuple (``add-remove``), two of which make a substitution.
    adversaries
        Who may attack; everyone by default. They know values exactly; about a model without an end
        they may have noisy knowledge of all records.
    time_limit
        Seconds after which a larger, still certified bound is returned.

    Returns
    -------
    Bound
        `value` is at least what the worst mechanism leaks; `method` says how it was found.

    Warns
    -----
    PrivacyLeakWarning
        If the model was learned from private rows, on which the bound then depends.

    Examples
    --------
    >>> from pdp_calibrate import JointTable
    >>> pair = JointTable(probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, 1]] * 2)
    >>> round(black_box_leakage(pair, epsilon=1.0).value, 4)
    1.5694
    >>> from pdp_calibrate import MarkovChain
    >>> endless = MarkovChain(transition=[[0.8, 0.2], [0.2, 0.8]], length=None)
    >>> round(black_box_leakage(endless, epsilon=1.5).value, 3)  # a budget of 1.5 a month
    4.857
    """
    budget = substitution_budget(epsilon, neighbours)
    warn_if_private(model, "bound")
    everyone = EVERYONE if adversaries is None else adversaries
    if model.is_endless:
        everyone.resolve(model)  # refuses all but everyone
    spending = Spending(dp_epsilon=budget)
    return spent(model, spending, everyone, deadline=deadline_after(time_limit))


def dp_budget(
    model: Model,
    *,
    epsilon: float,
    neighbours: Neighbours = "substitution",
    adversaries: Adversaries | None = None,
    time_limit: float | None = None,
) -> float:
    """Return the plain-DP budget to hand to a library so that nobody learns more than ε.

    Parameters
    ----------
    model, neighbours, adversaries, time_limit
        As in `black_box_leakage`.
    epsilon
        The leakage that nobody may exceed; about a model without an end, about any one step.

    Returns
    -------
    float
        About a model without an end, the budget of each step, for ever.
        The largest budget that could be certified, within a millionth, rounded down: at exactly
        this budget the certified leakage is at most ε.

    Warns
    -----
    PrivacyLeakWarning
        If the model was learned from private rows, on which the budget then depends.

    Examples
    --------
    >>> from pdp_calibrate import JointTable
    >>> pair = JointTable(probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, 1]] * 2)
    >>> round(dp_budget(pair, epsilon=1.0), 4)
    0.6299
    >>> from pdp_calibrate import MarkovChain
    >>> endless = MarkovChain(transition=[[0.8, 0.2], [0.2, 0.8]], length=None)
    >>> round(dp_budget(endless, epsilon=1.0), 6)
    0.252445
    """
    substitution_budget(epsilon, neighbours)
    warn_if_private(model, "budget")
    deadline = deadline_after(time_limit)
    steady = composer_of(model).budget_for_ever(model, float(epsilon))
    if steady is not None:
        (EVERYONE if adversaries is None else adversaries).resolve(model)
        return steady / substitution_budget(1.0, neighbours)

    def leaks(budget: float) -> float:
        everyone = EVERYONE if adversaries is None else adversaries
        dp_epsilon = substitution_budget(budget, neighbours)
        spending = Spending(dp_epsilon=dp_epsilon)
        return spent(model, spending, everyone, deadline=deadline).value

    # Randomised response about x_i leaks ε₀ to anyone who attacks x_i, so more than ε is too much.
    high = float(epsilon) / (1 if neighbours == "substitution" else 2)
    return _largest(leaks, float(epsilon), high)


def substitution_budget(epsilon: float, neighbours: str) -> float:
    """Return the budget for substituting one tuple, checked."""
    budget = checked_positive(epsilon, "epsilon", error=PdpError)
    if budget > _LARGEST_BUDGET:
        raise PdpError(f"epsilon must be at most {_LARGEST_BUDGET:.3g}, got {budget:.3g}.")
    if neighbours not in get_args(Neighbours):
        raise PdpError(f"neighbours must be one of {get_args(Neighbours)}, got {neighbours!r}.")
    return budget * (1 if neighbours == "substitution" else 2)


def _largest(leaks: Callable[[float], float], epsilon: float, high: float) -> float:
    """Return a budget with leaks(budget) ≤ ε, within a millionth of the largest one.

    The curve starts at 0 and is close to a line, so its chord is intersected with ε. Whatever its
    shape, the budget returned was evaluated and keeps ε.
    """
    above = leaks(high)
    if above <= epsilon:
        return high
    low = below = 0.0
    for step in range(_STEPS):
        aim = epsilon * (1 - _CLOSE / 2)
        chord = low + (high - low) * (aim - below) / (above - below)
        budget = low / 2 + high / 2 if step % 8 == 7 else chord
        if not low < budget < high:
            break
        value = leaks(budget)
        if value <= epsilon:
            low, below = budget, value
            if value >= epsilon * (1 - _CLOSE) or high - low <= _CLOSE * low:
                break
        else:
            high, above = budget, value
    if low == 0:
        raise CalibrationError(f"no budget could be certified for epsilon = {epsilon}.")
    return low
