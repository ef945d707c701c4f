"""The plans of a certificate: how the law of one secret moves onto another, for all that is known.

Theorem 13 (docs/theory): any plan is a proof. The stand-alone checker itself determines which laws
it compares and what a plan costs; here a solver proposes the plans, as floats. Nothing in them is
trusted: the checker evaluates each one, both when it is written and again when it is read.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from pdp_calibrate import check
from pdp_calibrate.core.lipschitz import proposed_plan

if TYPE_CHECKING:
    from pdp_calibrate.calibration.result import Calibration

_Plan = list[tuple[int, int, float]]

_MOST_PLANS = 4_000  # of a certificate: some megabytes of JSON at most


def plans_for(calibration: Calibration[Any, Any]) -> list[_Plan | None]:
    """Return a plan for each pair of laws that the checker compares, in its order.

    A plan is None where moving every answer to the nearest one suffices; the list is empty where
    the checker decides without plans, or where a manageable number of plans proves nothing.
    """
    try:
        with localcontext(check.digits(50)):
            part = _part(calibration.to_dict())
            small = math.prod(map(len, part.domains)) <= check.MOST_CELLS
            return _plans(part) if small and not _is_checked_without(part) else []
    except (check.Undecided, *check.DAMAGE):
        return []  # numbers are withheld, an adversary has a name, or it is too large


def _part(stored: dict[str, Any]) -> check.Part:
    """Return what is to be checked, as the checker sees it."""
    claim, model, who = check.Claim.read(stored), stored["model"], stored["adversaries"]
    names, domains, copies = check.shape(model)
    added = check.additions(claim, dict(zip(names, copies, strict=True)), domains)
    size = len(names)
    fewest, most = (size - 1 if who[end] is None else who[end] for end in ("at_least", "at_most"))
    return check.Part(claim, model, names, domains, added, size, fewest, most)


def _is_checked_without(part: check.Part) -> bool:
    """Whether the checker visits all outputs, or decides in another way."""
    answers = set(check.answers_of(part))
    outputs = math.prod(len(set(column)) for column in zip(*answers, strict=True))
    known = math.prod(len(values) + 1 for values in part.domains)
    if outputs * max(4 * known, 16 * len(answers)) <= check.MOST_WORK:
        return True
    for way in (check.check_chain, check.check_couplings):
        try:
            way(part)
        except check.Undecided:
            continue
        return True
    return False


def _plans(part: check.Part) -> list[_Plan | None]:
    """Return the plans that prove a calibration, if there are such and not too many."""
    price = check.prices_between(check.answers_of(part))
    limit = check.kernel(-part.claim.epsilon) * (1 - check.SLACK)
    plans: list[_Plan | None] = []
    for _, p, q in check.pairs_of_laws(part):
        plan = None
        if check.most_paid(p, q, price, plan) > limit:
            plan = _proposal(p, q, price, float(part.claim.epsilon))
            if check.most_paid(p, q, price, plan) > limit:
                return []  # no plan proves this pair: the calibration was proved in another way
        plans.append(plan)
        if len(plans) > _MOST_PLANS:
            return []
    return plans


def _proposal(
    p: check.Mixture, q: check.Mixture, price: Callable[[int, int], Decimal], epsilon: float
) -> _Plan | None:
    """Return the plan that the solver proposes, as [from, to, mass]."""
    supply, demand = (
        np.array([float(mass / sum(law.values())) for mass in law.values()]) for law in (p, q)
    )
    costs = np.array([[float(price(k, m).ln()) for m in q] for k in p])
    found = proposed_plan(supply, demand, costs, epsilon)
    if found is None:
        return None
    places = np.argwhere(found > 0).tolist()
    return [(k, m, float(found[k, m])) for k, m in places]
