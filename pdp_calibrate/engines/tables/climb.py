"""A good start for the branch and bound: the more is known to leak, the more can be cut."""

from __future__ import annotations

import math

import numpy as np

from pdp_calibrate.engines.tables.branch import (
    Branch,
    BranchSearch,
    filled,
    known_limits,
    permissions,
)
from pdp_calibrate.engines.tables.influence import order_by_influence
from pdp_calibrate.engines.tables.outcome import NOTHING, Attack, Outcome, bracket
from pdp_calibrate.engines.tables.sweep import leaf_ratio

_LARGEST_START = 2**14  # hidden cells while climbing


def climb(search: BranchSearch, error: float) -> Outcome:
    """Find a good start: from everyone known, change one tuple at a time while it helps."""
    outcome = NOTHING
    setting = search.setting
    fewest, most = known_limits(setting)
    likely = np.unravel_index(int(np.argmax(setting.probabilities)), setting.sizes)
    for target in setting.knowledge.targets:
        others = order_by_influence(setting, target)
        may_know, may_hide = permissions(setting, others)
        chosen = {
            place: int(likely[place]) if knowable else setting.sizes[place]
            for place, knowable in zip(others, may_know, strict=True)
        }
        best = _leaf(search, target, chosen)
        for place in [*others, *others]:
            for value in range(setting.sizes[place] + 1):
                changed = chosen | {place: value}
                known = sum(v < setting.sizes[p] for p, v in changed.items())
                hidden = math.prod(
                    setting.sizes[p] for p, v in changed.items() if v == setting.sizes[p]
                )
                index = others.index(place)
                allowed = may_know[index] if value < setting.sizes[place] else may_hide[index]
                if not allowed or known > most or hidden > _LARGEST_START or search.clock.is_over:
                    continue
                found = _leaf(search, target, changed)
                if found[0] > best[0]:
                    best, chosen = found, changed
        known = sum(v < setting.sizes[p] for p, v in chosen.items())
        if best[0] > search.shared[0] and fewest <= known <= most:
            search.shared[0] = best[0]
            attack = Attack(
                target=target,
                known={p: v for p, v in chosen.items() if v < setting.sizes[p]},
                secrets=(best[2], best[3]),
                output=search.outputs[best[1]],
            )
            outcome = outcome.or_worse(bracket(math.log1p(best[0]), 0.0, error, attack))
    return outcome


def _leaf(search: BranchSearch, target: int, chosen: dict[int, int]) -> tuple[float, int, int, int]:
    branch = Branch(target=target, decided=tuple(chosen.items()), opened=())
    data = filled(search, branch)
    secrets, width = search.setting.sizes[target], search.kernel.shape[1] + 1
    found: tuple[float, int, int, int] = leaf_ratio(
        data, 0, secrets, width, float(search.setting.is_near_one)
    )
    return found
