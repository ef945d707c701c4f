"""Which columns depend on each other, judged from pairs of columns only."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components, minimum_spanning_tree
from scipy.stats import chi2_contingency

from pdp_calibrate.arrays import FloatArray, checked_share
from pdp_calibrate.core.table import refuse_too_many_cells, refuse_underflow
from pdp_calibrate.errors import ModelError

Test = Literal["g", "chi2"]


Correction = Literal["holm", "bonferroni", "none"]


Pairs = dict[tuple[int, int], FloatArray]
"""The counts of every two columns (i, j) with i < j."""


@dataclass(frozen=True, kw_only=True)
class PairTest:
    """A test of whether two columns are independent."""

    columns: tuple[Hashable, Hashable]
    """Which two."""
    statistic: float
    """G or χ²."""
    degrees: int
    """Degrees of freedom; 0 if one of the columns does not vary."""
    p_value: float
    """Probability of a statistic at least as large if they are independent (asymptotic)."""
    rejected: bool
    """Whether independence is rejected at the level, with the correction for many tests."""


def mutual_information(counts: FloatArray) -> float:
    """Return Σ p·log(p / (row·column)) of a table of counts, in nats; never negative."""
    law = counts / counts.sum()
    apart = np.outer(law.sum(axis=1), law.sum(axis=0))
    seen = law > 0
    return max(0.0, float(np.sum(law[seen] * np.log(law[seen] / apart[seen]))))


def strongest_tree(pairs: Pairs, size: int) -> list[tuple[int, int]]:
    """Return (parent, child) along the tree of largest mutual information, from column 0 on.

    Chow and Liu, IEEE Trans. Inf. Theory 14 (1968): of all trees this one fits the counts best.
    """
    shared = {pair: mutual_information(counts) for pair, counts in pairs.items()}
    highest = max(shared.values(), default=0.0)
    weights = np.zeros((size, size))
    for (first, second), information in shared.items():
        weights[first, second] = 1.0 + highest - information  # a weight of 0 would be no edge
    tree = minimum_spanning_tree(csr_array(weights))
    order, before = breadth_first_order(tree, 0, directed=False)
    return [(int(before[child]), int(child)) for child in order[1:]]


def tree_laws(
    tree: Sequence[tuple[int, int]], pairs: Pairs
) -> tuple[dict[int, int | None], dict[int, FloatArray]]:
    """Return the parent of each column, and its law given each value of the parent.

    Each law is that of the smoothed counts of the pair that it is taken from.
    """
    parents: dict[int, int | None] = {}
    laws: dict[int, FloatArray] = {}
    for place, (parent, child) in enumerate(tree):
        smoothed = pairs[parent, child] if parent < child else pairs[child, parent].T
        if place == 0:
            parents[parent], laws[parent] = None, smoothed.sum(axis=1) / smoothed.sum()
        parents[child], laws[child] = parent, smoothed / smoothed.sum(axis=1, keepdims=True)
    return parents, laws


def tree_law(
    parents: Mapping[int, int | None], laws: Mapping[int, FloatArray], sizes: Sequence[int]
) -> FloatArray:
    """Multiply P(root)·Π P(child | parent) out into a joint law."""
    refuse_too_many_cells(sizes)
    joint = np.ones(tuple(sizes))
    for child, parent in parents.items():
        if parent is None:
            joint *= _along(laws[child], sizes, child)
        else:
            law = laws[child] if parent < child else laws[child].T
            joint *= _along(law, sizes, parent, child)
    refuse_underflow(underflows=not np.all(joint >= np.finfo(np.float64).tiny))
    return np.asarray(joint / joint.sum())


def _along(law: FloatArray, sizes: Sequence[int], *axes: int) -> FloatArray:
    shape = [size if axis in axes else 1 for axis, size in enumerate(sizes)]
    return law.reshape(shape)


def independence_tests(
    pairs: Pairs,
    names: Sequence[Hashable],
    *,
    test: Test,
    level: float,
    correction: Correction,
) -> tuple[PairTest, ...]:
    """Test every two columns for independence, all together at the level."""
    kinds: dict[str, Literal["log-likelihood", "pearson"]] = {
        "g": "log-likelihood",
        "chi2": "pearson",
    }
    if test not in kinds:
        raise ModelError(f"test must be one of {tuple(kinds)}, got {test!r}.")
    if correction not in ("holm", "bonferroni", "none"):
        raise ModelError(f"correction must be 'holm', 'bonferroni' or 'none', got {correction!r}.")
    checked_share(level, "level")
    results = []
    for counts in pairs.values():
        seen = counts[counts.sum(axis=1) > 0][:, counts.sum(axis=0) > 0]
        if min(seen.shape) < 2:
            results.append((0.0, 1.0, 0))
            continue
        found = chi2_contingency(seen, correction=False, lambda_=kinds[test])
        results.append((float(found.statistic), float(found.pvalue), int(found.dof)))
    rejected = _rejected([p for _, p, _ in results], level, correction)
    return tuple(
        PairTest(
            columns=(names[first], names[second]),
            statistic=statistic,
            degrees=degrees,
            p_value=p,
            rejected=bool(no),
        )
        for (first, second), (statistic, p, degrees), no in zip(
            pairs, results, rejected, strict=True
        )
    )


def _rejected(p_values: Sequence[float], level: float, correction: Correction) -> list[bool]:
    number = len(p_values)
    rejected = [False] * number
    for rank, place in enumerate(sorted(range(number), key=p_values.__getitem__)):
        each = {"holm": level / (number - rank), "bonferroni": level / number, "none": level}
        if p_values[place] > each[correction]:
            break  # Holm stops at the first that is not rejected; the others have one threshold
        rejected[place] = True
    return rejected


def connected_blocks(tests: Sequence[PairTest], names: Sequence[Hashable]) -> list[list[int]]:
    """Return the positions of the columns that rejected tests connect."""
    place = {name: position for position, name in enumerate(names)}
    links = np.zeros((len(names), len(names)))
    for one in tests:
        if one.rejected:
            links[place[one.columns[0]], place[one.columns[1]]] = 1.0
    _, labels = connected_components(csr_array(links), directed=False)
    firsts = dict.fromkeys(labels.tolist())
    return [[int(k) for k in np.flatnonzero(labels == label)] for label in firsts]
