"""A table, a query and adversaries before a scale is chosen: what all searches of them share.

Which tuples say most about a target is part of it: the order in which the tree decides them. The
bound on a branch is tight when the tuples still open say little about the target, so those that
say most are decided first. Only speed depends on it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.adversary import Knowledge
from pdp_calibrate.core.problem import Problem
from pdp_calibrate.core.table import JointTable


@dataclass(frozen=True, kw_only=True, eq=False)
class PreparedTable:
    """A problem about a joint table, in the form that searches work on; answers start at zero.

    What only some searches need is worked out when the first of them runs, and then kept. The
    conditional laws of single adversaries are not kept: those of all would not fit in memory.
    """

    problem: Problem
    """What was asked."""
    probabilities: FloatArray
    """The joint table, one axis per tuple."""
    parts: tuple[FloatArray, ...]
    """`parts[j][v]`: what value v of tuple j adds, from zero to keep its digits; () if not
    additive."""
    table: FloatArray | None
    """The answer in every cell, from zero; None if additive."""
    knowledge: Knowledge
    """The adversaries."""
    counts_strongest: bool
    """Whether θ matters also to those who know everyone else here (but not all there is)."""

    @classmethod
    def of(cls, problem: Problem) -> PreparedTable:
        """Prepare a problem about a joint table."""
        if not isinstance(problem.model, JointTable):
            raise TypeError(f"the table engine searches joint tables, got {problem.model!r}.")
        contributions = problem.contributions
        table = contributions.table
        if table is not None:
            table = table - table.reshape(-1, table.shape[-1]).min(axis=0)
        return cls(
            problem=problem,
            probabilities=problem.model.probabilities,
            parts=tuple(part - part.min(axis=0) for part in contributions.values),
            table=table,
            knowledge=problem.knowledge,
            counts_strongest=problem.hidden_noise or problem.knowledge.incomplete,
        )

    @property
    def sizes(self) -> tuple[int, ...]:
        """The domain size of each tuple."""
        return self.probabilities.shape

    @cached_property
    def coordinates(self) -> int:
        """Number of output coordinates."""
        return int((self.parts[0] if self.table is None else self.table).shape[-1])

    @cached_property
    def log_rarest(self) -> float:
        """Logarithm of the smallest positive probability of a cell."""
        return float(np.log(self.probabilities[self.probabilities > 0].min()))

    @cached_property
    def likeliest(self) -> tuple[int, ...]:
        """The values of the likeliest cell."""
        found = np.unravel_index(int(np.argmax(self.probabilities)), self.sizes)
        return tuple(map(int, found))

    @cached_property
    def likeliest_others(self) -> dict[int, tuple[int, ...]]:
        """For each target, the likeliest values of all other tuples together."""
        found = {}
        for target in self.knowledge.targets:
            likely = self.probabilities.sum(axis=target)
            cell = np.unravel_index(int(np.argmax(likely)), likely.shape)
            found[target] = tuple(map(int, cell))
        return found

    @cached_property
    def orders(self) -> tuple[tuple[int, ...], ...]:
        """For each tuple, the other tuples, most influential first."""
        influence = _influence(self.probabilities)
        places = range(len(self.sizes))
        return tuple(
            tuple(
                sorted(
                    (place for place in places if place != target),
                    key=lambda place: (-influence[target, place], place),
                )
            )
            for target in places
        )

    @cached_property
    def flipped(self) -> tuple[bool, ...]:
        """For each of several binary tuples, whether its first value adds more."""
        return tuple(bool(part[1, 0] < part[0, 0]) for part in self.parts)

    @cached_property
    def bit_cells(self) -> FloatArray:
        """A binary table, flat: tuple j is bit j of the index, and bit 1 adds at least as much."""
        cells = np.flip(self.probabilities, tuple(np.flatnonzero(self.flipped)))
        return np.ascontiguousarray(cells.transpose(range(cells.ndim)[::-1])).ravel()

    @cached_property
    def log_work(self) -> float:
        """Estimate how many (atom, output) pairs a search in log space compares."""
        total = 0.0
        for target in self.knowledge.targets:
            for unknown in self.unknown_sets(target):
                hidden = float(np.prod([self.sizes[place] for place in unknown], dtype=np.float64))
                atoms = hidden * self.sizes[target]
                total += self.probabilities.size * atoms**self.coordinates
        return total

    @cached_property
    def line_work(self) -> float:
        """Estimate the work of sorted mixtures, in the units of the tree's."""
        knowledge = self.knowledge
        sets = 1.0
        if knowledge.known is None:
            sizes = range(knowledge.fewest, knowledge.most + 1)
            sets = float(sum(math.comb(len(self.sizes) - 1, size) for size in sizes))
        secrets = sum(self.sizes[target] for target in knowledge.targets)
        sorting = 8.0 if self.table is None else 64.0
        return sorting * sets * secrets * self.probabilities.size

    @cached_property
    def leaves(self) -> float:
        """Count the leaves of the tree of all adversaries, times the secrets of each."""
        total = 0.0
        for target in self.knowledge.targets:
            others = [size for place, size in enumerate(self.sizes) if place != target]
            leaves = math.prod(size + 1.0 for size in others)
            if self.knowledge.known is not None or self.knowledge.most == 0:
                leaves = 2.0 * math.prod(others)
            total += leaves * self.sizes[target]
        return total

    @property
    def known_limits(self) -> tuple[int, int]:
        """Fewest and most tuples known; knowing everyone else is searched elsewhere."""
        everyone = len(self.sizes) - 1
        most = self.knowledge.most
        return self.knowledge.fewest, most if self.counts_strongest else min(most, everyone - 1)

    def permissions(
        self, places: Sequence[int]
    ) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Return, per tuple, whether it may be known, and whether it may be unknown."""
        named = self.knowledge.known
        may_know = np.array([named is None or place in named for place in places], dtype=np.bool_)
        may_hide = np.array(
            [named is None or place not in named for place in places], dtype=np.bool_
        )
        return may_know, may_hide

    def unknown_sets(self, target: int) -> Iterator[tuple[int, ...]]:
        """Yield the admitted sets of unknown tuples, without the empty one unless θ counts for it.

        Knowing everyone else, the output tells LS_i/λ whatever the table is: searched elsewhere.
        """
        for unknown in self.knowledge.unknown_sets(target):
            if unknown or self.counts_strongest:
                yield unknown

    def cases(self) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Yield every target with every such set."""
        for target in self.knowledge.targets:
            for unknown in self.unknown_sets(target):
                yield target, unknown


_DATABASES = 64  # drawn to see how tuples depend on each other


def _influence(probabilities: FloatArray) -> FloatArray:
    """Return by how many nats one tuple moves the odds of another, given all the rest.

    Averaged over some databases drawn from the table; always the same ones.
    """
    cells, sizes = probabilities.ravel(), probabilities.shape
    steps = np.array([int(np.prod(sizes[place + 1 :])) for place in range(len(sizes))])
    total = np.cumsum(cells)
    draws = np.random.default_rng(0).random(_DATABASES) * total[-1]
    drawn = np.minimum(np.searchsorted(total, draws), len(cells) - 1)
    places = np.array(np.unravel_index(drawn, sizes))
    influence = np.zeros((len(sizes), len(sizes)))
    for first in range(len(sizes)):
        for second in range(first):
            start = drawn - places[first] * steps[first] - places[second] * steps[second]
            own, other = (np.arange(sizes[p]) * steps[p] for p in (first, second))
            block = cells[start[:, np.newaxis, np.newaxis] + own[:, np.newaxis] + other]
            found = float(np.mean(_interaction(block)))
            influence[first, second] = influence[second, first] = found
    return influence


def _interaction(blocks: FloatArray) -> FloatArray:
    """Return the largest log-odds interaction of each block, zeros counting as very rare."""
    logs = np.log(blocks + 1e-9 * blocks.max(axis=(1, 2), keepdims=True))
    logs = logs - logs.mean(axis=1, keepdims=True)
    logs = logs - logs.mean(axis=2, keepdims=True)
    return np.asarray(np.abs(logs).max(axis=(1, 2)))
