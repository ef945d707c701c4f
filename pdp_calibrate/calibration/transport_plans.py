"""The plans of a certificate: how the law of one secret moves onto another, for all that is known.

Theorem 13 (docs/theory): any plan is a proof. The stand-alone checker itself determines which laws
it compares and what a plan costs; here a solver proposes the plans, as floats. Nothing in them is
trusted: the checker evaluates each one, both when it is written and again when it is read.
"""

from __future__ import annotations

import math
from decimal import localcontext
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
        with localcontext(check.EXACT):
            part = check.read(calibration.to_dict())
            family = check.FAMILIES[part.model["type"]]
            if not issubclass(family, check.Finite) or math.prod(part.sizes) > check.MOST_CELLS:
                return []
            about = part.names, part.domains, part.added, part.fewest, part.most
            finite = family(part.claim, part.model, *about)
            return [] if _is_checked_without(finite) else _plans(finite)
    except (check.Undecided, *check.DAMAGE):
        return []  # numbers are withheld, an adversary has a name, or it is too large


def _is_checked_without(part: check.Finite) -> bool:
    """Whether the checker visits all outputs, or decides in another way."""
    answers = set(part.answers())
    outputs = math.prod(len(set(column)) for column in zip(*answers, strict=True))
    known = part.size * math.prod(size + 1 for size in part.sizes)
    if 2 * outputs * (300 * len(answers) + 60 * known) <= check.MOST_STEPS:
        return True
    for way in part.ways[2:]:
        try:
            getattr(part, way)()
        except check.Undecided:
            continue
        return True
    return False


def _plans(part: check.Finite) -> list[_Plan | None]:
    """Return the plans that prove a calibration, if there are such and not too many."""
    limit = check.kernel(-part.claim.epsilon) * (1 - check.SLACK)
    plans: list[_Plan | None] = []
    for _, p, q in part.pairs_of_laws():
        plan = None
        if check.most_paid(p, q, plan) > limit:
            plan = _proposal(p, q, float(part.claim.epsilon))
            if check.most_paid(p, q, plan) > limit:
                return []  # no plan proves this pair: the calibration was proved in another way
        plans.append(plan)
        if len(plans) > _MOST_PLANS:
            return []
    return plans


def _proposal(p: dict[Any, Any], q: dict[Any, Any], epsilon: float) -> _Plan | None:
    """Return the plan that the solver proposes, as [from, to, mass]."""
    supply, demand = (
        np.array([mass / sum(law.values()) for mass in law.values()]) for law in (p, q)
    )
    costs = np.array([[float(check.distance(k, m)) for m in q] for k in p])
    found = proposed_plan(supply, demand, costs, epsilon)
    if found is None:
        return None
    places = np.argwhere(found > 0).tolist()
    return [(k, m, float(found[k, m])) for k, m in places]
