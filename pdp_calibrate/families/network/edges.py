"""The edges of a tree, seen from either end."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

import numpy as np

from pdp_calibrate.arrays import FloatArray

if TYPE_CHECKING:
    from pdp_calibrate.families.network.tree import MarkovTree

_SMALLEST = 1e-280  # probabilities below this may have lost digits to underflow


class Links:
    """Which tuples are neighbours in a tree, and the kernels between them."""

    def __init__(self, tree: MarkovTree) -> None:
        self.tree = tree
        found: list[list[int]] = [[] for _ in tree.parents]
        for place, parent in enumerate(tree.parents):
            if parent is not None:
                found[parent].append(place)
                found[place].append(parent)
        self.neighbours = tuple(map(tuple, found))
        self._backwards: dict[int, FloatArray] = {}

    @functools.cached_property
    def is_accurate(self) -> bool:
        """Whether no probability of two neighbours underflows, so that edges can be reversed.

        A reversed edge has the entries P(x_parent, x_child)/P(x_child).
        """
        tree = self.tree
        for place, parent in enumerate(tree.parents):
            kernel = tree.kernels[place]
            if parent is None:
                joint, possible = kernel, tree.supports[place]
            else:
                joint = kernel * tree.marginals[parent][:, np.newaxis]
                possible = (kernel > 0) & tree.supports[parent][:, np.newaxis]
            if np.any(joint[possible] < _SMALLEST):
                return False
        return True

    def kernel(self, place: int, nearer: int) -> FloatArray:
        """Return P(x_place | x_nearer), one row per value of the nearer tuple.

        The tuple may be the parent of the nearer one only where the tree `is_accurate`.
        """
        tree = self.tree
        if tree.parents[place] == nearer:
            return tree.kernels[place]
        if nearer not in self._backwards:
            weighed = tree.kernels[nearer] * tree.marginals[place][:, np.newaxis]
            sums = weighed.sum(axis=0)
            law = np.divide(weighed, sums, out=np.zeros_like(weighed), where=sums > 0).T
            self._backwards[nearer] = np.ascontiguousarray(law)
        return self._backwards[nearer]

    def diameter(self, place: int, nearer: int) -> float:
        """Return the Hilbert diameter of the edge, the same from both ends."""
        return self.diameters[place if self.tree.parents[place] == nearer else nearer]

    @functools.cached_property
    def diameters(self) -> tuple[float, ...]:
        """The diameter of every edge, in the order of its child; ∞ where zeros make it so."""
        strengths = self.tree.couplings.strengths
        return tuple(
            0.0 if parent is None else strengths.get((min(place, parent), max(place, parent)), 0.0)
            for place, parent in enumerate(self.tree.parents)
        )

    @functools.cached_property
    def drift(self) -> float:
        """A bound on the error of a tuple's law, in units of rounding, up to a common factor.

        Each step from the root adds a few units, and contracts earlier errors in Hilbert's metric.
        """
        tree, drifts = self.tree, dict[int | None, float]()
        for place in tree.order:
            parent, added = tree.parents[place], 2.0 * (len(tree.kernels[place]) + 2)
            carried = 0.0 if parent is None else math.tanh(self.diameters[place] / 4)
            drifts[place] = added + carried * drifts.get(parent, 0.0)
        return max(drifts.values()) * (1 + 1e-9)
