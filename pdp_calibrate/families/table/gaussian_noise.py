"""Gaussian noise on joint tables: the mixtures of the Laplace engine, compared for another noise.

Every target, every known set and every value of it gives one law of the answer per secret. If there
are few events, all their laws are in one matrix; otherwise they are listed set by set, the sets
whose answers move furthest first. Independent groups of tuples are searched separately, as for
Laplace noise: tuples independent of the target given what is known only add noise, whatever noise
there is already (hockey-stick divergences are jointly convex).

If there are too many sets to list, the upper end is the range of the whole answer. W∞ given some
known tuples says nothing about W∞ given others: laws given more are not mixtures of laws given
less. Nor does one coupling work for everything that may be known: a hint that leaves two cells far
apart, each more likely under a different secret, makes the answer move from one to the other.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Iterator

import numpy as np

from pdp_calibrate.core.couplings import one_number, output_side
from pdp_calibrate.core.finite_noise import Case, FiniteSearch, Mixtures, Named, VectorBound
from pdp_calibrate.core.problem import Bracket, Engine, Limits, Problem
from pdp_calibrate.core.rounding import UNIT_ROUNDOFF
from pdp_calibrate.core.tuning import (
    CHUNK_NUMBERS,
    EVENT_NUMBERS,
    FINITE_NUMBERS,
    LISTED_SETS,
)
from pdp_calibrate.families.table.cells import Cells
from pdp_calibrate.families.table.laws import TableLaws
from pdp_calibrate.families.table.search import search_strongest
from pdp_calibrate.families.table.setting import (
    Group,
    PreparedTable,
    Varying,
    independent_groups,
    no_secrets,
    setting_of,
)


class TableNoiseEngine(Engine):
    """Searches the adversaries of one joint table, at many scales of Gaussian noise."""

    charges_rounding = True

    def __init__(
        self,
        problem: Problem,
        *,
        error: float = 0.0,
        like: tuple[Varying, Cells] | None = None,
    ) -> None:
        """Prepare the search; `error` is the relative error of the table's probabilities."""
        self._problem, self._error = problem, error
        smaller, cells = like or (None, None)
        self._varying = Varying.of(problem, like=smaller)
        if self._varying is None:
            return
        inner = self._varying.problem
        once = one_number(inner.contributions)
        self._groups: list[tuple[Group, TableNoiseEngine]] = []
        self._search: FiniteSearch | VectorBound
        if once is not None:
            single, rounding = once
            inner = dataclasses.replace(inner, contributions=single)
        self._prepared = prepared = PreparedTable.of(inner, cells)
        for group in independent_groups(prepared):
            apart = dataclasses.replace(group, error=0.0)  # included as an error of the laws
            engine = TableNoiseEngine(group.problem, error=error + group.error)
            self._groups.append((apart, engine))
        if once is None:
            self._search = VectorBound(inner)
            return
        mixtures = TableMixtures(prepared, error)
        self._search = FiniteSearch(
            inner,
            mixtures,
            strongest=mixtures.strongest,
            rounding=rounding,
            unlisted=mixtures.unlisted,
        )

    def against(self, problem: Problem) -> TableNoiseEngine:
        """Return an engine for other adversaries that reuses the prepared table."""
        if self._varying is None:
            return TableNoiseEngine(problem, error=self._error)
        like = self._varying, self._prepared.cells
        return TableNoiseEngine(problem, error=self._error, like=like)

    def search(self, scale: float, limits: Limits) -> Bracket:
        """Find the worst adversary at one scale; see `core.problem.Engine`."""
        if self._varying is None:
            return no_secrets(self._problem)
        found: Bracket | None = None
        for group, engine in self._groups:
            above = limits.above(found.lower) if found else limits
            here = group.put_back(engine.search(scale, above))
            found = here if found is None else found.or_worse(here)
        if found is None:
            found = self._search.search(scale, limits)
        return output_side(self._varying.put_back(found), self._problem)


class TableMixtures(TableLaws):
    """The laws of the answer, for all adversaries of a table."""

    def __init__(self, prepared: PreparedTable, error: float) -> None:
        super().__init__(prepared, error)
        self.strongest = self._strongest if prepared.problem.admits_strongest else None

    def _strongest(self, scale: float) -> Bracket:
        """Evaluate adversaries who know all others: the answer moves by LS_i in any table."""
        prepared = self._prepared
        outcome = search_strongest(setting_of(prepared, scale))
        target = prepared.knowledge.targets[0] if outcome.attack is None else outcome.attack.target
        witness = None
        if outcome.attack is not None:
            secrets = outcome.attack.secrets
            witness = prepared.problem.witness(target, outcome.attack.known, secrets, math.inf)
        return Bracket(
            upper=outcome.upper, lower=outcome.lower, witness=witness, target=target, unknown=(),
            everywhere=outcome.upper,
        )  # fmt: skip

    @functools.cached_property
    def _has_few_events(self) -> bool:
        """Whether the laws of all events stand in one matrix."""
        cells = self._prepared.cells
        answers = min(cells.outputs, cells.probabilities.size)
        return cells.events * answers <= EVENT_NUMBERS and cells.levels is not None

    @functools.cached_property
    def unlisted(self) -> float:
        """How far the answer moves for adversaries that are not listed; 0 if all are listed."""
        prepared, knowledge = self._prepared, self._prepared.knowledge
        sets = len(knowledge.targets)
        if knowledge.known is None:
            others = len(prepared.sizes) - 1
            sizes = range(knowledge.fewest, knowledge.most + 1)
            sets *= sum(math.comb(others, known) for known in sizes)
        numbers = sets * float(prepared.cells.probabilities.size)
        if self._has_few_events or (sets <= LISTED_SETS and numbers <= FINITE_NUMBERS):
            return 0.0
        return self._spread + self._rounding

    def cases(self) -> Iterator[Case]:
        """List all adversaries but those who know all others; if too many, those who know least."""
        prepared, cells = self._prepared, self._prepared.cells
        if self._has_few_events:
            targets = prepared.knowledge.targets
            yield Case(self._spread, targets[0], (), self._of_all_events)
            return
        for target, unknown in prepared.cases():
            if self.unlisted and len(unknown) < len(prepared.sizes) - 1 - prepared.knowledge.fewest:
                continue
            move = self._spread
            if cells.table is None:
                move = sum(float(cells.parts[place].max()) for place in (target, *unknown))
            move += self._rounding
            listed = functools.partial(self.mixtures, target, unknown)
            yield Case(move, target, unknown, listed)

    def _of_all_events(self) -> Iterator[Mixtures]:
        """Yield the laws of all admitted events, some at a time."""
        prepared, cells = self._prepared, self._prepared.cells
        admitted, levels = prepared.admitted, cells.levels
        if levels is None or not len(admitted.rows):
            return
        sizes = prepared.sizes
        values = levels.values[0][levels.distinct[0]]
        order = np.argsort(values)
        operations = sum(sizes) + len(sizes) + len(values)
        possible = np.zeros((len(admitted.rows), max(sizes)), dtype=np.bool_)
        np.put_along_axis(possible, admitted.secrets, values=True, axis=1)
        rows = np.zeros(possible.shape, dtype=np.intp)
        np.put_along_axis(rows, admitted.secrets, admitted.rows, axis=1)
        step = max(1, CHUNK_NUMBERS // (4 * rows.shape[1] * len(values)))
        for start in range(0, len(rows), step):
            yield Mixtures(
                atoms=values[order],
                laws=admitted.laws[rows[start : start + step]][..., order],
                possible=possible[start : start + step],
                adversary=functools.partial(self._of_event, start),
                error=self._error + 4 * operations * UNIT_ROUNDOFF,
                moved=float(levels.moved[0]) + self._rounding,
            )

    def _of_event(self, start: int, event: int, secrets: tuple[int, int], output: float) -> Named:
        """Name the adversary of an event in the matrix of all events."""
        admitted, sizes = self._prepared.admitted, self._prepared.sizes
        target = int(admitted.targets[start + event])
        values = np.unravel_index(int(admitted.places[start + event]), [size + 1 for size in sizes])
        known = {p: int(v) for p, v in enumerate(values) if p != target and v < sizes[p]}
        return self._named(target, known, secrets, output)
