"""The chain rule (Thm 5), Algorithm 1, Algorithm 2 and Corollary 1 on the graph.

None of the values below bounds the leakage: see the package's documentation.
"""

from __future__ import annotations

import functools
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.model import position_of
from pdp_calibrate.errors import ModelError
from pdp_calibrate.paper.graph import Node, WeightedHierarchicalGraph, is_edge, mask_of
from pdp_calibrate.paper.impact import ancestor_leakage


@dataclass(frozen=True, kw_only=True)
class Path:
    """The chain rule along one path, with its decomposition (paper, Eq. 14 and 15)."""

    value: float
    """|…||LS_i/λ + IC_1| + IC_2| … + IC_k|."""
    impacts: tuple[float, ...]
    """The edge values IC along the path."""
    increment_ratios: tuple[float, ...]
    """IR = IC/(LS_j/λ) of each: what correlation contributes; 0 where LS_j = 0."""
    sensitivity_ratios: tuple[float, ...]
    """LS_i/GS, then LS_j/GS of each tuple forgotten: what sensitivity contributes."""
    overall: float
    """GS/λ: what the noise contributes."""

    def recomposed(self) -> float:
        """Return the value from its three factors (paper, Eq. 15)."""
        start, *steps = self.sensitivity_ratios
        pairs = zip(self.increment_ratios, steps, strict=True)
        return self.overall * functools.reduce(
            lambda sum_, pair: abs(sum_ + pair[0] * pair[1]), pairs, start
        )


@dataclass(frozen=True, kw_only=True)
class Search:
    """What a search of the graph returns."""

    value: float
    """The paper's privacy leakage l: the largest node value met. Not a bound."""
    layers: tuple[float, ...]
    """l_k: the largest node value met in each layer, the strongest adversaries first."""
    worst: Node
    """The node that has it."""
    edges: int
    """How many edges were evaluated."""
    names: tuple[Hashable, ...] = field(repr=False)
    """One name per tuple."""
    values: FloatArray = field(repr=False)
    """The value of every node [i, mask of K]; NaN where it was not met."""

    def leakage(self, target: Hashable, *, known: Iterable[Hashable]) -> float:
        """Return the value of one node; NaN if the search did not meet it."""
        i, mask = position_of(target, self.names), mask_of(known, self.names)
        if mask >> i & 1:
            raise ModelError("the target must not be among the known tuples.")
        return float(self.values[i, mask])


def chain_rule(
    graph: WeightedHierarchicalGraph, target: Hashable, *, unknown: Sequence[Hashable]
) -> Path:
    """Apply Theorem 2 along one path: the adversary forgets `unknown` one by one, in order.

    The paper takes the smallest value over all orders as the value of the node.

    Examples
    --------
    >>> nobody = frozenset()
    >>> graph = WeightedHierarchicalGraph(
    ...     {"a": 1.0, "b": 2.0}, {("a", "b", nobody): 0.5, ("b", "a", nobody): -0.25}
    ... )
    >>> path = chain_rule(graph, "a", unknown=["b"])
    >>> path.value, path.increment_ratios, path.recomposed()
    (1.5, (0.25,), 1.5)
    """
    i = position_of(target, graph.names)
    others = [position_of(name, graph.names) for name in unknown]
    if len({i, *others}) != len(others) + 1:
        raise ModelError("unknown must not repeat a tuple or contain the target.")
    mask = (1 << len(graph.names)) - 1 - (1 << i)
    value, impacts = float(graph.first_layer[i]), []
    for j in others:
        mask -= 1 << j
        ends = graph.lowest[i, j, mask], graph.highest[i, j, mask]
        value, impact = ancestor_leakage(value, map(float, ends))
        impacts.append(impact)
    reaches = [float(graph.first_layer[j]) for j in others]
    overall = float(graph.first_layer.max())
    first, *rest = (
        (reach / overall if overall > 0 else 0.0) for reach in [graph.first_layer[i], *reaches]
    )
    return Path(
        value=value,
        impacts=tuple(impacts),
        increment_ratios=tuple(
            impact / reach if reach > 0 else 0.0
            for impact, reach in zip(impacts, reaches, strict=True)
        ),
        sensitivity_ratios=(float(first), *map(float, rest)),
        overall=overall,
    )


def full_space_search(graph: WeightedHierarchicalGraph) -> Search:
    """Evaluate every node, layer by layer, the smallest value over all paths (Algorithm 1).

    Examples
    --------
    >>> nobody = frozenset()
    >>> graph = WeightedHierarchicalGraph(
    ...     {"a": 1.0, "b": 1.0}, {("a", "b", nobody): 0.5, ("b", "a", nobody): -0.25}
    ... )
    >>> full_space_search(graph)
    Search(value=1.5, layers=(1.0, 1.5), worst=('a', frozenset()), edges=2)
    """
    size = len(graph.names)
    values = np.full((size, 2**size), np.nan)
    masks = np.arange(2**size)
    known_count = np.bitwise_count(masks)
    everyone = 2**size - 1
    for i in range(size):
        values[i, everyone - (1 << i)] = graph.first_layer[i]
    for layer in range(2, size + 1):
        here = masks[known_count == size - layer]
        for i in range(size):
            nodes = here[(here >> i) & 1 == 0]
            best = np.full(len(nodes), np.inf)
            for j in range(size):
                reached = (nodes >> j) & 1 == 0
                if j == i or not reached.any():
                    continue
                ancestors = nodes[reached]
                start = values[i, ancestors | (1 << j)]
                # Of Γ only the ends can maximise |l + γ|.
                value = np.maximum(
                    np.abs(start + graph.lowest[i, j, ancestors]),
                    np.abs(start + graph.highest[i, j, ancestors]),
                )
                best[reached] = np.minimum(best[reached], value)
            values[i, nodes] = best
    layers = tuple(
        float(np.nanmax(values[:, known_count == size - layer])) for layer in range(1, size + 1)
    )
    return _search(graph, values, layers, graph.number_of_edges)


def fast_search(graph: WeightedHierarchicalGraph, *, width: int | None = None) -> Search:
    """Evaluate only what the largest nodes of each layer lead to (Algorithm 2).

    Parameters
    ----------
    graph
        The weighted hierarchical graph.
    width
        How many nodes of each layer are kept; n by default, as in the paper.

    Notes
    -----
    A kept node has fewer paths to take the smallest value over, which makes it larger than in
    the full search; a node that is dropped hides all it leads to, which makes the answer smaller.
    Neither search bounds the other.

    Examples
    --------
    >>> nobody = frozenset()
    >>> graph = WeightedHierarchicalGraph(
    ...     {"a": 1.0, "b": 1.0}, {("a", "b", nobody): 0.5, ("b", "a", nobody): -0.25}
    ... )
    >>> fast_search(graph).value
    1.5
    """
    size = len(graph.names)
    kept_nodes = size if width is None else width
    if kept_nodes < 1:
        raise ModelError(f"width must be at least 1, got {width}.")
    values = np.full((size, 2**size), np.nan)
    layer = {(i, 2**size - 1 - (1 << i)): float(graph.first_layer[i]) for i in range(size)}
    layers, edges = [], 0
    for _ in range(size):
        for node, value in layer.items():
            values[node] = value
        layers.append(max(layer.values()))
        kept = sorted(layer.items(), key=lambda item: (-item[1], item[0]))[:kept_nodes]
        layer = {}
        for (i, mask), value in kept:
            for j in [j for j in range(size) if mask >> j & 1]:
                ancestor = mask - (1 << j)
                ends = graph.lowest[i, j, ancestor], graph.highest[i, j, ancestor]
                reached = float(max(abs(value + ends[0]), abs(value + ends[1])))
                layer[i, ancestor] = min(layer.get((i, ancestor), np.inf), reached)
                edges += 1
    return _search(graph, values, tuple(layers), edges)


def special_case(
    graph: WeightedHierarchicalGraph,
) -> Literal["group", "weakest", "strongest"] | None:
    """Tell which case of Corollary 1 the graph falls under, None for no case.

    Returns
    -------
    str or None
        ``"group"`` when every IR = 1 (the paper prints IC = 1, which is right only for
        LS_j = λ): l is then Σ LS_j/λ, group differential privacy. ``"weakest"`` when every
        IC > 0, ``"strongest"`` when every IC < 0: the paper then looks only at the top, or only
        at the bottom layer. The second rule fails once several paths lead to a node.

    Examples
    --------
    >>> nobody = frozenset()
    >>> special_case(WeightedHierarchicalGraph(
    ...     {"a": 1.0, "b": 1.0}, {("a", "b", nobody): 0.5, ("b", "a", nobody): 0.25}
    ... ))
    'weakest'
    """
    there = is_edge(len(graph.names))
    lowest, highest = graph.lowest[there], graph.highest[there]
    reach = np.broadcast_to(graph.first_layer[np.newaxis, :, np.newaxis], there.shape)[there]
    if not len(lowest):
        return None
    if np.allclose(highest, reach, rtol=1e-12, atol=0) and np.all(reach > 0):
        return "group"
    if np.all(lowest > 0):
        return "weakest"
    return "strongest" if np.all(highest < 0) else None


def _search(
    graph: WeightedHierarchicalGraph, values: FloatArray, layers: tuple[float, ...], edges: int
) -> Search:
    i, mask = np.unravel_index(np.nanargmax(values), values.shape)
    known = frozenset(name for b, name in enumerate(graph.names) if int(mask) >> b & 1)
    values.setflags(write=False)
    return Search(
        value=max(layers),
        layers=layers,
        worst=(graph.names[int(i)], known),
        edges=edges,
        names=graph.names,
        values=values,
    )
