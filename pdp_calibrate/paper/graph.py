"""The weighted hierarchical graph: every adversary a node, every forgotten tuple an edge."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.checks import checked_scale
from pdp_calibrate.core.model import checked_names, position_of
from pdp_calibrate.core.query import Query
from pdp_calibrate.core.table import JointTable
from pdp_calibrate.errors import ModelError
from pdp_calibrate.paper.impact import additive_values, log_exponential_means

MAXIMAL_TUPLES = 15
"""The paper's own largest graph: 245,760 nodes and 1,720,320 edges."""


Node = tuple[Hashable, frozenset[Hashable]]
"""An adversary (i, K): who is attacked, and whom the attacker knows."""


Edges = Mapping[tuple[Hashable, Hashable, frozenset[Hashable]], float | Iterable[float]]
"""(i, j, K') → IC_{ij,K'}, or the whole set Γ_{ij,K'}."""


@dataclass(frozen=True, eq=False, init=False, repr=False)
class WeightedHierarchicalGraph:
    """The paper's graph of adversaries (Sec. V-A); its node values are **not** bounds.

    Layer k holds the adversaries A(i, K) who know n − k tuples; layer 1 the strongest, layer n
    the weakest. An edge leads from A(i, K) to its ancestor A(i, K'), K' = K without j, and
    carries the set Γ_{ij,K'}, of which Theorem 2 only ever takes one of the two ends.

    Parameters
    ----------
    nodes
        The first layer: ``{i: LS_i/λ}`` for every tuple (Thm 4).
    edges
        ``{(i, j, K'): IC}`` with K' a frozenset of names; instead of one number the members of Γ
        may be given. Or an array ``[i, j, mask]`` in positions, bit b of the mask saying that
        tuple b is known; entries that are no edge are ignored.

    Examples
    --------
    >>> nobody = frozenset()
    >>> graph = WeightedHierarchicalGraph(
    ...     {"a": 1.0, "b": 1.0}, {("a", "b", nobody): 0.5, ("b", "a", nobody): -0.25}
    ... )
    >>> list(graph.layer(1))
    [('a', frozenset({'b'})), ('b', frozenset({'a'}))]
    >>> graph.edge("a", "b", known=[])
    (0.5, 0.5)
    """

    names: tuple[Hashable, ...]
    """One name per tuple."""
    first_layer: FloatArray
    """LS_i/λ of each tuple."""
    lowest: FloatArray
    """The smallest member of Γ for each edge [i, j, mask of K']; NaN where there is no edge."""
    highest: FloatArray
    """The largest member of Γ for each edge [i, j, mask of K']."""

    def __init__(
        self,
        nodes: Mapping[Hashable, float],
        edges: Edges | FloatArray | tuple[FloatArray, FloatArray],
    ) -> None:
        names = checked_names(nodes, len(nodes))
        refuse_too_many_tuples(len(names))
        first = np.array([float(value) for value in nodes.values()])
        if not np.all((first >= 0) & (first < np.inf)):
            raise ModelError("the first layer must hold LS_i/λ, zero or more and finite.")
        if isinstance(edges, Mapping):
            lowest, highest = _tabulated(edges, names)
        else:
            lowest, highest = edges if isinstance(edges, tuple) else (edges, edges)
        shape = (len(names), len(names), 2 ** len(names))
        if lowest.shape != shape or highest.shape != shape:
            raise ModelError(f"edges must have the shape {shape}, got {lowest.shape}.")
        there = is_edge(len(names))
        missing = int(np.sum(there & ~(np.isfinite(lowest) & np.isfinite(highest))))
        if missing:
            raise ModelError(f"every edge needs a finite value, {missing} have none.")
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "first_layer", first)
        object.__setattr__(self, "lowest", np.where(there, lowest, np.nan))
        same = highest is lowest
        object.__setattr__(
            self, "highest", self.lowest if same else np.where(there, highest, np.nan)
        )
        for array in (self.first_layer, self.lowest, self.highest):
            array.setflags(write=False)

    @property
    def number_of_nodes(self) -> int:
        """n·2^(n−1)."""
        return len(self.names) << (len(self.names) - 1)

    @property
    def number_of_edges(self) -> int:
        """n·(n−1)·2^(n−2)."""
        return (len(self.names) * (len(self.names) - 1) << len(self.names)) // 4

    def layer(self, number: int) -> Iterator[Node]:
        """Yield the nodes of one layer, 1 (the strongest) to n (the weakest)."""
        if not 1 <= number <= len(self.names):
            raise ModelError(f"layer must be 1 … {len(self.names)}, got {number}.")
        for target in self.names:
            others = [name for name in self.names if name != target]
            for known in combinations(others, len(self.names) - number):
                yield target, frozenset(known)

    def edge(
        self, target: Hashable, other: Hashable, *, known: Iterable[Hashable]
    ) -> tuple[float, float]:
        """Return both ends of Γ_{ij,K'}, `known` being K'."""
        i, j = position_of(target, self.names), position_of(other, self.names)
        mask = mask_of(known, self.names)
        if not is_edge(len(self.names))[i, j, mask]:
            raise ModelError("target, other and the known tuples must all differ.")
        return float(self.lowest[i, j, mask]), float(self.highest[i, j, mask])

    def __repr__(self) -> str:
        return (
            f"WeightedHierarchicalGraph({len(self.names)} layers,"
            f" {self.number_of_nodes} nodes, {self.number_of_edges} edges)"
        )


def graph(table: JointTable, query: Query, scale: float) -> WeightedHierarchicalGraph:
    """Build the paper's graph of a joint table: Γ_{ij,K'} over every x_K' of the support.

    Raises `ModelError` where the paper's edge value does not exist: when what is known leaves
    the target a single possible value, whatever x_K' is.

    Examples
    --------
    >>> import pdp_calibrate as pdp
    >>> table = pdp.JointTable(probabilities=[[0.3, 0.2], [0.2, 0.3]], domains=[[0, 1], [0, 1]])
    >>> lowest, highest = graph(table, pdp.Sum(), 1.0).edge("x1", "x2", known=[])
    >>> round(highest, 6)
    0.185376
    """
    added = additive_values(table, query)
    checked_scale(scale)
    size = len(table.names)
    refuse_too_many_tuples(size)
    lowest, highest = np.full((2, size, size, 2**size), np.nan)
    orders = [np.argsort(values, kind="stable") for values in added]
    pairs = [np.triu_indices(len(values), 1) for values in added]
    for axes, law in _marginals(table.probabilities, tuple(range(size)), 0):
        for place, j in enumerate(axes):
            # log E[e^{−y_j/λ} | x_i, x_K'] does not ask which of the others is the target.
            log_means = log_exponential_means(np.moveaxis(law, place, -1), added[j] / scale)
            others = axes[:place] + axes[place + 1 :]
            for axis, i in enumerate(others):
                mask = sum(1 << other for other in others if other != i)
                ordered = np.moveaxis(log_means, axis, 0)[orders[i]]
                gamma = ordered[pairs[i][0]] - ordered[pairs[i][1]]  # NaN: not both possible
                lowest[i, j, mask] = np.fmin.reduce(gamma, axis=None, initial=np.inf)
                highest[i, j, mask] = np.fmax.reduce(gamma, axis=None, initial=-np.inf)
                if lowest[i, j, mask] == np.inf:
                    known = ", ".join(str(table.names[k]) for k in others if k != i) or "nothing"
                    raise ModelError(
                        f"given {known}, {table.names[i]} has one possible value, so the paper's"
                        " edge value does not exist; use leakage() instead."
                    )
    reach = [float(np.ptp(values)) / scale for values in added]
    return WeightedHierarchicalGraph(dict(zip(table.names, reach, strict=True)), (lowest, highest))


def is_edge(size: int) -> npt.NDArray[np.bool_]:
    """Tell which [i, j, mask] are edges: i and j differ and neither is known."""
    unknown = (np.arange(2**size) >> np.arange(size)[:, np.newaxis]) % 2 == 0
    there = unknown[:, np.newaxis] & unknown
    there[np.arange(size), np.arange(size)] = False
    return np.asarray(there)


def mask_of(known: Iterable[Hashable], names: tuple[Hashable, ...]) -> int:
    """Return the bit mask of the known tuples."""
    return sum(1 << position for position in {position_of(name, names) for name in known})


def refuse_too_many_tuples(size: int) -> None:
    """Raise before a graph larger than the paper's largest is built."""
    if not 1 <= size <= MAXIMAL_TUPLES:
        raise ModelError(
            f"the paper's graph takes 1 to {MAXIMAL_TUPLES} tuples, got {size}."
            " leakage() needs no graph."
        )


def _marginals(
    law: FloatArray, axes: tuple[int, ...], first: int
) -> Iterator[tuple[tuple[int, ...], FloatArray]]:
    """Yield the marginal law of every set of two or more tuples, each exactly once."""
    if len(axes) < 2:
        return
    yield axes, law
    for place in range(first, len(axes)):
        rest = axes[:place] + axes[place + 1 :]
        yield from _marginals(law.sum(axis=place), rest, place)


def _tabulated(edges: Edges, names: tuple[Hashable, ...]) -> tuple[FloatArray, FloatArray]:
    lowest, highest = np.full((2, len(names), len(names), 2 ** len(names)), np.nan)
    for (target, other, known), value in edges.items():
        members = list(value) if isinstance(value, Iterable) else [value]
        if not members:
            raise ModelError("an edge must carry at least one impact, got none.")
        i, j, mask = position_of(target, names), position_of(other, names), mask_of(known, names)
        if i == j or mask & (1 << i | 1 << j):
            raise ModelError("an edge (i, j, K') needs i, j and K' to differ.")
        lowest[i, j, mask], highest[i, j, mask] = min(members), max(members)
    return lowest, highest
