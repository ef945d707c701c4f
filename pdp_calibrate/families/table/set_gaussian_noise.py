"""Gaussian noise on sets of tables, whose conditional laws lie around estimated ones.

If a law is within total variation τ of its estimate, no set of outputs gains or loses more than τ:
δ grows by at most τ_P + e^ε·τ_Q. Where that exceeds δ, the mass may be anywhere in the range of the
answer, and the group bound is used. The estimates themselves are in the set: they give the lower
end.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator

import numpy as np

from pdp_calibrate.core.couplings import one_number, output_side
from pdp_calibrate.core.finite_noise import Case, FiniteSearch, Mixtures, Named, VectorBound
from pdp_calibrate.core.problem import Bracket, Engine, Limits, Problem
from pdp_calibrate.core.rounding import UNIT_ROUNDOFF
from pdp_calibrate.core.tuning import SET_CASES
from pdp_calibrate.families.table.gaussian_noise import TableMixtures, TableNoiseEngine
from pdp_calibrate.families.table.set_laws import ConditionalLaws, Reachable, center_of, varying_in
from pdp_calibrate.families.table.setting import PreparedTable, no_secrets


class TableSetNoiseEngine(Engine):
    """Searches the adversaries of a set of tables, at many scales of Gaussian noise."""

    charges_rounding = True

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._varying = varying_in(problem)
        if self._varying is None:
            return
        inner = self._varying.problem
        about_center = dataclasses.replace(inner, model=center_of(inner.model))
        self._center = TableNoiseEngine(about_center)
        once = one_number(inner.contributions)
        self._search: FiniteSearch | VectorBound = VectorBound(inner)
        if once is None:
            return
        single = dataclasses.replace(about_center, contributions=once[0])
        prepared = PreparedTable.of(single)
        sets = sum(1 for _, _ in zip(range(SET_CASES + 1), prepared.cases(), strict=False))
        if sets <= SET_CASES:
            mixtures = _SetMixtures(prepared, inner)
            self._search = FiniteSearch(
                single, mixtures, strongest=mixtures.strongest, rounding=once[1]
            )

    def search(self, scale: float, limits: Limits) -> Bracket:
        """Find the worst adversary at one scale; see `core.problem.Engine`."""
        if self._varying is None:
            return no_secrets(self._problem)
        found = self._search.search(scale, limits)
        found = found.with_lower(self._center.search(scale, limits))
        return output_side(self._varying.put_back(found), self._problem)


class _SetMixtures(TableMixtures):
    """The centres of the laws of the answer, and how far from them the laws may be."""

    def __init__(self, prepared: PreparedTable, about_set: Problem) -> None:
        super().__init__(prepared, 0.0)
        reachable = Reachable(prepared.problem.contributions)
        self._laws = ConditionalLaws(about_set.model, reachable)
        self._merged = reachable.shift

    def cases(self) -> Iterator[Case]:
        """List all adversaries except those who know everyone else."""
        parts = self._prepared.cells.parts
        for target, unknown in self._prepared.cases():
            move = sum(float(parts[place].max()) for place in (target, *unknown))
            listed = functools.partial(self._around, target, unknown)
            yield Case(move + self._rounding, target, unknown, listed)

    def _around(self, target: int, unknown: tuple[int, ...]) -> Iterator[Mixtures]:
        """Yield the laws of one set of unknown tuples; no event is left out."""
        balls = self._laws.balls(target, unknown)
        own = self._prepared.cells.parts[target][:, 0]
        places = own[:, np.newaxis] + balls.values[:, 0]
        atoms, index = np.unique(places, return_inverse=True)
        index = index.reshape(places.shape)
        laws = np.zeros((*balls.laws.shape[:2], len(atoms)))
        for secret, columns in enumerate(index):
            laws[:, secret, columns] = balls.laws[:, secret]
        sizes = [self._prepared.sizes[place] for place in balls.known]

        def adversary(event: int, secrets: tuple[int, int], output: float) -> Named:
            values = np.unravel_index(event, sizes) if sizes else ()
            known = dict(zip(balls.known, map(int, values), strict=True))
            return self._named(target, known, secrets, output)

        radii = np.minimum(balls.radii, 1.0)
        yield Mixtures(
            atoms=atoms,
            laws=laws,
            possible=np.ones(radii.shape, dtype=np.bool_),
            adversary=adversary,
            error=4 * (balls.additions + len(sizes) + 4) * UNIT_ROUNDOFF,
            moved=self._rounding + self._merged,
            attained=False,
            radius=radii if radii.any() else None,
        )
