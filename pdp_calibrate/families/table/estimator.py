"""A joint table learned from the rows of a frame."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from pdp_calibrate.arrays import FloatArray, checked_positive
from pdp_calibrate.core.composite import Blocks, ModelSet
from pdp_calibrate.core.coverage import Coverage
from pdp_calibrate.core.model import (
    ANY_TABLE,
    MAXIMAL_CELLS,
    Domain,
    Model,
    checked_domain,
    model_named,
)
from pdp_calibrate.core.table import JointTable
from pdp_calibrate.errors import ModelError
from pdp_calibrate.families.table import sparse_laws
from pdp_calibrate.families.table.sets import SampledTable
from pdp_calibrate.families.table.structure import (
    Correction,
    Pairs,
    Test,
    connected_blocks,
    independence_tests,
    strongest_tree,
    tree_law,
    tree_laws,
)
from pdp_calibrate.frames.counts import MISSING, contingency
from pdp_calibrate.frames.open import columns_of
from pdp_calibrate.learning.base import (
    FrameEstimator,
    Source,
    checked_budget,
    checked_confidence,
)
from pdp_calibrate.learning.binning import binned, checked_bins, representatives
from pdp_calibrate.learning.private_sums import IntArray, nearest_with_sum, noisy_sums
from pdp_calibrate.learning.smoothing import cell_counts, observed, smoothed_law

_STRUCTURES = ("joint", "chow-liu", "blocks", "network")


_SENSITIVITY = 2  # replacing a row takes 1 from one cell and adds 1 to another


@dataclass(kw_only=True, eq=False, repr=False)
class TableEstimator(FrameEstimator):
    """Learn the joint distribution of discrete columns, each row being one independent draw.

    Parameters
    ----------
    structure
        ``joint``: one cell for every combination of values. ``chow-liu``: the tree of largest
        mutual information, learned from pairs of columns and written out as a table, or kept as a
        `MarkovTree` where a table would be too large; everything that the tree leaves out is
        assumed away. ``network``: a `Network` on the graph that `edges` states. ``blocks``:
        columns that test independent of each other go into independent `Blocks`. That a test sees
        nothing proves nothing, pairs do not show how three columns are correlated, and no
        confidence covers any of these structures.
    edges
        For ``network``, which columns depend on each other, as pairs; public, never learned. The
        graph is completed so that every circle of four or more columns has a chord, and each column
        is learned given those it is connected with and that come before it.
    smoothing
        None by default: one row, spread evenly over all cells, is added to the table (to each pair
        of a tree, each block, each family), so that no unseen combination counts as impossible.
        Where a table has fewer than ten rows a cell, two laws are learned instead, as a `ModelSet`:
        counts shrunk towards independent columns, and the law that the pairs of columns show. They
        err differently, and the worse of the two decides. A number is added to every count instead,
        the weight of a symmetric Dirichlet prior, 0.5 being that of Jeffreys; of few rows a cell it
        makes columns look independent. With `confidence` nothing is smoothed.
    domains
        The possible values of each column, ``{column: values}``. By default the values that
        occur, which are then treated as public.
    bins
        Public edges of numeric columns, ``{column: edges}``. A bin holds its lower edge and not
        its upper one, the last holds both; the middle of a bin represents it, so a sum is off by
        up to half a width for each value. `binned` puts the middles into a frame, which is
        what to release about. Values of public rows outside raise.
    confidence
        None makes no claim about the error of learning: the fit is marked as open. A number such
        as 0.95 gives a `SampledTable`: all tables that the rows do not rule out. For ``joint``
        only; domains or bins must then be stated for every column, for a value that never occurred
        is possible too.
    epsilon
        Learn under ε-differential privacy for substituting one row; domains or bins must then be
        stated for every column, and the number of rows is public. Discrete Laplace noise of scale
        2/ε on every cell; then the nearest counts with the right sum. Refused where that noise
        drowns the rows of a cell and of a pair of columns. A tree is chosen from, and
        made of, the same noisy pairs (scale n(n−1)/ε for n columns); a network is made of noisy
        families (scale 2n/ε). Refused for ``blocks``: noise
        changes what a test says. With `confidence` the noise is inside the set.
    test, level, correction
        For ``blocks``: ``g`` (likelihood ratio) or ``chi2``; the level at which independence of
        any two columns is rejected; ``holm``, ``bonferroni`` or ``none`` for all pairs together.
        A higher level joins more columns, which is the careful direction.
    source
        ``private`` if the rows are secret (calibrations will warn), ``public`` if not. Of private
        rows none is refused for what it holds: a value that is missing or outside its domain counts
        as the first of the domain, one outside the bins belongs to the nearest.

    Attributes
    ----------
    model_ : JointTable, ModelSet, MarkovTree, Network, Blocks or SampledTable
        The learned distribution, or set of them.
    tree_ : tuple of pairs
        For ``chow-liu``, (parent, child) along the tree.
    families_ : tuple of pairs
        For ``network``, each column and those that it is learned given.
    tests_ : tuple of PairTest
        For ``blocks``, the tests behind it. Of private rows they are private too.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"mother": [0, 0, 1, 1], "child": [0, 0, 1, 1]})
    >>> TableEstimator(source="public").fit(frame).model_  # four rows are few for four cells
    ModelSet(2 models, public)
    >>> many = pd.concat([frame] * 20)
    >>> TableEstimator(source="public").fit(many).model_
    JointTable(mother, child; 2×2 cells, public)
    >>> stated = {"mother": [0, 1], "child": [0, 1]}
    >>> TableEstimator(domains=stated, epsilon=1.0).fit(many).model_.estimation_epsilon
    1.0
    """

    structure: Literal["joint", "chow-liu", "blocks", "network"] = "joint"
    edges: Iterable[tuple[Hashable, Hashable]] | None = None
    smoothing: float | None = None
    domains: Mapping[Hashable, Iterable[Hashable]] | None = None
    bins: Mapping[Hashable, Sequence[float]] | None = None
    confidence: float | None = None
    epsilon: float | None = None
    test: Test = "g"
    level: float = 0.05
    correction: Correction = "holm"
    source: Source = "private"

    def _learned(self, frame: Any, epsilon: float | None) -> Model:
        """Learn from every column of the frame."""
        self._check()
        names = columns_of(frame)
        if not names:
            raise ModelError("the frame must have at least one column, got none.")
        rows, stated = self._binned(frame), self._stated(names)
        fits = {
            "joint": self._joint,
            "chow-liu": self._tree,
            "blocks": self._blocks,
            "network": self._network,
        }
        learned = fits[self.structure](rows, names, stated)
        learned = learned.with_coverage(self._said())
        return learned if epsilon is None else learned.learned_with(epsilon)

    def _said(self) -> Coverage:
        """Return what is known about the error of learning."""
        if self.confidence is not None:
            return self._coverage(self.confidence)
        found = {
            "chow-liu": ("The tree was learned from the rows; nothing covers another one.",),
            "blocks": (
                "The blocks were learned from the rows: that a test sees nothing proves nothing.",
            ),
            "network": ("The graph is an assumption: columns without an edge add nothing.",),
        }
        return Coverage(kind="no band", notes=found.get(self.structure, ()))

    def binned(self, frame: Any) -> Any:
        """Put the middle of its bin in place of each value of a binned column."""
        _ = self.model_
        return self._binned(frame)

    def _binned(self, frame: Any) -> Any:
        return binned(frame, checked_bins(self.bins), refuse=self._may_test)

    def _counts(self, frame: Any, names: Sequence[Hashable]) -> Counter[tuple[Hashable, ...]]:
        """Count combinations of values; of private rows none is refused."""
        return contingency(frame, names, gaps=not self._may_test)

    def _cells(self, frame: Any, names: Sequence[Hashable], domains: Sequence[Domain]) -> IntArray:
        """Count the cells of a table of some columns."""
        counts = self._counts(frame, names)
        return cell_counts(counts, names, domains, refuse=self._may_test)

    def _check(self) -> None:
        if self.structure not in _STRUCTURES:
            raise ModelError(f"structure must be one of {_STRUCTURES}, got {self.structure!r}.")
        if (self.structure == "network") != (self.edges is not None):
            raise ModelError(
                "edges= states the graph of structure='network', and of no other:"
                " a list of pairs of columns."
            )
        if self.smoothing is not None:
            checked_positive(self.smoothing, "smoothing")
        if checked_confidence(self.confidence) is not None and self.structure != "joint":
            raise ModelError(
                f"confidence needs structure='joint', got {self.structure!r}: a structure learned"
                " from the rows may be wrong, and no confidence covers that."
            )
        if checked_budget(self.epsilon) is not None and self.structure == "blocks":
            raise ModelError(
                "structure='blocks' cannot be learned with epsilon: the level of a test does not"
                " hold for noisy counts. Use 'joint' or 'chow-liu', or state the blocks."
            )

    def _stated(self, names: Sequence[str]) -> dict[Hashable, Domain]:
        """Return the public domain of each column that has one."""
        bins = checked_bins(self.bins)
        unknown = [str(name) for name in {**(self.domains or {}), **bins} if name not in names]
        if unknown:
            raise ModelError(f"the frame has no column {', '.join(unknown)}.")
        stated = {name: checked_domain(given, name) for name, given in (self.domains or {}).items()}
        both = [str(name) for name in bins if name in stated]
        if both:
            raise ModelError(f"column {', '.join(both)} has bins and a domain; give one of them.")
        stated |= {name: representatives(edges) for name, edges in bins.items()}
        absent = [str(name) for name in names if name not in stated]
        if absent and self.epsilon is not None:
            raise ModelError(
                "with epsilon every column needs its public domains= or bins=; the values that"
                f" occur are secret. Missing: {', '.join(absent)}."
            )
        if absent and self.confidence is not None:
            raise ModelError(
                "with confidence every column needs its public domains= or bins=; no confidence"
                f" covers values that never occurred. Missing: {', '.join(absent)}."
            )
        return stated

    def _joint(self, frame: Any, names: Sequence[str], stated: Mapping[Hashable, Domain]) -> Model:
        counts = self._counts(frame, names)
        domains = [
            stated.get(name) or observed({row[place] for row in counts} - {MISSING})
            for place, name in enumerate(names)
        ]
        cells = cell_counts(counts, names, domains, refuse=self._may_test)
        scale = 0.0
        rows = int(cells.sum())
        if self.epsilon is not None:
            if self.confidence is None and self.smoothing is None:
                sparse_laws.check_noise(rows, cells.shape, self.epsilon)
            noisy = noisy_sums(cells.ravel(), sensitivity=_SENSITIVITY, epsilon=self.epsilon)
            cells, scale = noisy.values.reshape(cells.shape), noisy.scale
        if self.confidence is not None:
            return SampledTable(
                counts=cells,
                confidence=self.confidence,
                noise_scale=scale,
                domains=domains,
                names=names,
                provenance=self._provenance,
            )
        return self._law(cells, names, domains, rows=rows, noise_scale=scale)

    def _law(
        self,
        cells: IntArray,
        names: Sequence[Hashable],
        domains: Sequence[Domain],
        *,
        rows: int,
        noise_scale: float = 0.0,
    ) -> Model:
        """Return the law of a table, or of few rows a cell two laws that err differently."""
        if self.smoothing is None:
            laws = sparse_laws.laws_of(cells, rows=rows, noise_scale=noise_scale)
        else:
            nearest = nearest_with_sum(cells, rows) if noise_scale else cells
            laws = [smoothed_law(nearest, self.smoothing)]
        tables = [
            JointTable(probabilities=law, domains=domains, names=names, provenance=self._provenance)
            for law in laws
        ]
        return tables[0] if len(tables) == 1 else ModelSet(models=tables)

    def _each(self, cells: int) -> float:
        """Return what is added to each count of a table that a tree or network is made of."""
        return 1 / cells if self.smoothing is None else self.smoothing

    def _pairs(
        self, frame: Any, names: Sequence[str], stated: Mapping[Hashable, Domain]
    ) -> tuple[Pairs, list[Domain]]:
        """Count every two columns; noisy, and repaired, with epsilon."""
        domains = self._domains(frame, names, stated)
        found: dict[tuple[int, ...], IntArray] = {}
        for i, j in itertools.combinations(range(len(names)), 2):
            two = [names[i], names[j]]
            found[i, j] = self._cells(frame, two, [domains[i], domains[j]])
        return {(i, j): cells for (i, j), cells in self._noisy(found).items()}, domains

    def _domains(
        self, frame: Any, names: Sequence[str], stated: Mapping[Hashable, Domain]
    ) -> list[Domain]:
        return [
            stated.get(name)
            or observed({value for (value,) in self._counts(frame, [name])} - {MISSING})
            for name in names
        ]

    def _noisy(self, found: dict[tuple[int, ...], IntArray]) -> dict[tuple[int, ...], FloatArray]:
        """Return counts of several sets of columns; noisy, and repaired, with epsilon."""
        if self.epsilon is None:
            return {places: cells.astype(np.float64) for places, cells in found.items()}
        everything = np.concatenate([cells.ravel() for cells in found.values()])
        # One row is in one cell of every table.
        noisy = noisy_sums(
            everything, sensitivity=_SENSITIVITY * len(found), epsilon=self.epsilon
        ).values
        ends = np.cumsum([cells.size for cells in found.values()])
        parts = np.split(noisy, ends[:-1])
        return {
            places: nearest_with_sum(part.reshape(cells.shape), int(cells.sum()))
            for (places, cells), part in zip(found.items(), parts, strict=True)
        }

    def _tree(self, frame: Any, names: Sequence[str], stated: Mapping[Hashable, Domain]) -> Model:
        if len(names) == 1:
            self.tree_: tuple[tuple[Hashable, Hashable], ...] = ()
            return self._joint(frame, names, stated)
        pairs, domains = self._pairs(frame, names, stated)
        tree = strongest_tree(pairs, len(names))
        self.tree_ = tuple((names[parent], names[child]) for parent, child in tree)
        parents, laws = tree_laws(tree, {k: one + self._each(one.size) for k, one in pairs.items()})
        sizes = [len(one) for one in domains]
        rarest = sum(math.log(law.min()) for law in laws.values())
        if ANY_TABLE.admits(sizes, rarest):
            return JointTable(
                probabilities=tree_law(parents, laws, sizes),
                domains=domains,
                names=names,
                provenance=self._provenance,
            )
        along: Any = model_named("MarkovTree")
        found: Model = along(
            domains=domains,
            parents=[parents[place] for place in range(len(names))],
            tables=[laws[place] for place in range(len(names))],
            names=names,
            provenance=self._provenance,
        )
        return found

    def _network(
        self, frame: Any, names: Sequence[str], stated: Mapping[Hashable, Domain]
    ) -> Model:
        """Learn each column's law given those before it in the graph, completed with chords."""
        network: Any = model_named("Network")
        domains = self._domains(frame, names, stated)
        families = network.families(names, self.edges or ())
        self.families_ = tuple((names[k], tuple(names[j] for j in near)) for k, near in families)
        counts: dict[tuple[int, ...], IntArray] = {}
        for child, parents in families:
            columns = [names[place] for place in (*parents, child)]
            among = [domains[place] for place in (*parents, child)]
            if math.prod(map(len, among)) > MAXIMAL_CELLS:
                raise ModelError(
                    f"the graph connects {', '.join(map(str, columns))} too closely: a table of"
                    f" them has more than {MAXIMAL_CELLS} cells. State fewer edges."
                )
            counts[*parents, child] = self._cells(frame, columns, among)
        factors = []
        for places, cells in self._noisy(counts).items():
            smoothed = cells + self._each(cells.size)
            law = smoothed / smoothed.sum(axis=-1, keepdims=True)
            factors.append((tuple(names[place] for place in places), law))
        found: Model = network(
            factors=factors,
            domains=dict(zip(names, domains, strict=True)),
            provenance=self._provenance,
        )
        return found

    def _blocks(self, frame: Any, names: Sequence[str], stated: Mapping[Hashable, Domain]) -> Model:
        pairs, domains = self._pairs(frame, names, stated)
        self.tests_ = independence_tests(
            pairs, names, test=self.test, level=self.level, correction=self.correction
        )
        tables: list[Model] = []
        blocks = connected_blocks(self.tests_, names)
        for block in blocks:
            columns = [names[k] for k in block]
            cells = self._cells(frame, columns, [domains[k] for k in block])
            among = [domains[k] for k in block]
            tables.append(self._law(cells, columns, among, rows=int(cells.sum())))
        if len(tables) == 1:
            return tables[0]
        return Blocks(models=tables, names=[names[k] for block in blocks for k in block])
