"""Gaussian noise on networks, trees and mixing chains.

A small network is written out and searched exactly, as a joint table. In a large one a difference
between two secrets spreads over couplings, and reaches distant tuples more rarely (`spreading`):
for one δ that gives the upper end. For every δ (μ, ρ) the rarest move counts like any other: the
answer moves no further than all tuples connected with the target can move it together, because
tuples outside are independent of them and only add noise. No better bound is known there: W∞ would
have to be compared for every known set, and a coupling drawn tuple by tuple may reach them all.

The lower end is the leakage of one adversary who knows all but a few tuples around a target, which
a table gives.
For a set of laws, it is the leakage of one small member.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

import numpy as np

from pdp_calibrate.core.adversary import Knowledge
from pdp_calibrate.core.couplings import joint_range, tuple_moves
from pdp_calibrate.core.finite_noise import VectorBound
from pdp_calibrate.core.model import SHORT_TABLE
from pdp_calibrate.core.problem import Bracket, Engine, Limits, Problem
from pdp_calibrate.core.rounding import rounded_up
from pdp_calibrate.core.table import JointTable, WrittenOut
from pdp_calibrate.core.tuning import FEW_UNKNOWN, MEMBER_TUPLES
from pdp_calibrate.families.network.network import Network
from pdp_calibrate.families.network.spreading import random_move

_LESS = 1 - 1e-9  # a lower end is multiplied by this, for the rounding of products of factors
_RAREST = 1e-250  # smallest product of factors that has certainly lost no digits


class NetworkNoiseEngine(Engine):
    """Searches the joint table of a small network; bounds a large one."""

    charges_rounding = True

    def __init__(self, problem: Problem) -> None:
        network = problem.model
        if not isinstance(network, Network):
            raise TypeError(f"this engine searches networks, got {network!r}.")
        sizes = list(map(len, network.domains))
        small = network.fits_a_table and SHORT_TABLE.admits(sizes, network.log_rarest())
        self._search: WrittenOut | VectorBound
        self._example: _Example | None = None
        if small or (network.fits_a_table and problem.contributions.table is not None):
            self._search = WrittenOut.of(problem, network.to_table())
        elif problem.contributions.table is not None:
            self._search = VectorBound(problem)
        else:
            self._search = _bound_of(problem, network)
            self._example = _example_of(problem, network)

    def search(self, scale: float, limits: Limits) -> Bracket:
        """Find the worst adversary at one scale; see `core.problem.Engine`."""
        found = self._search.search(scale, limits)
        if self._example is None:
            return found
        return found.with_lower(self._example.search(scale, limits))


class _Example:
    """One adversary of a large network, who knows all but a few tuples around the target.

    Parameters
    ----------
    problem
        The problem about the network.
    about_few
        The problem about the law of these tuples, given what is known.
    known
        The others, by position, and what they hold.
    """

    def __init__(self, problem: Problem, about_few: Problem, known: Mapping[int, int]) -> None:
        self._problem, self._about_few, self._known = problem, about_few, known

    def search(self, scale: float, limits: Limits) -> Bracket:
        """Search the few; a lower end, for the adversary who knows the others too."""
        found = self._about_few.engine.search(scale, dataclasses.replace(limits, incumbent=0.0))
        if found.witness is None:
            return found
        names, domains = self._problem.names, self._problem.model.domains
        others = {names[place]: domains[place][value] for place, value in self._known.items()}
        witness = dataclasses.replace(
            found.witness, known=others | found.witness.known, model=self._problem.model
        )
        return dataclasses.replace(found, lower=found.lower * _LESS, witness=witness)


def _example_of(problem: Problem, network: Network) -> _Example | None:
    """Choose an adversary to search alone; None where no sufficiently small one exists."""
    knowledge = problem.knowledge
    if problem.hidden_noise or not problem.measure.data_counts:
        return None
    member = network.member(problem.contributions)
    if member is not None:
        if len(problem.names) > MEMBER_TUPLES:
            return None
        return _Example(problem, dataclasses.replace(problem, model=member), {})
    ranges, _ = tuple_moves(problem.contributions)
    target = max(knowledge.targets, key=lambda place: (ranges[place], _drawn(network, place)))
    near = [place for place in network.couplings.distances(target) if place != target]
    fewest, most = knowledge.total - 1 - knowledge.most, knowledge.total - 1 - knowledge.fewest
    if knowledge.known is not None:
        near = [p for p in range(len(problem.names)) if p != target and p not in knowledge.known]
        fewest = most = len(near)
    number = min(len(near), most, FEW_UNKNOWN)
    if number < fewest:
        return None
    few = sorted([target, *near[:number]])
    known = {place: value for place, value in network.course.items() if place not in few}
    table = _law_of(network, few, known)
    if table is None:
        return None
    about = Knowledge(
        total=len(few), targets=(few.index(target),), fewest=0, most=0, known=frozenset()
    )
    about_few = dataclasses.replace(
        problem,
        model=table,
        contributions=problem.contributions.select(few),
        knowledge=about,
        names=tuple(problem.names[place] for place in few),
    )
    return _Example(problem, about_few, known)


def _drawn(network: Network, place: int) -> float:
    """Return the total strength of a tuple's couplings with its neighbours."""
    return math.fsum(min(found, 50.0) for found in network.couplings.neighbours[place].values())


def _law_of(network: Network, few: Sequence[int], known: Mapping[int, int]) -> JointTable | None:
    """Return the law of a few tuples given all others; None if those values are impossible."""
    sizes = [len(network.domains[place]) for place in few]
    cells = np.ones(sizes)
    for scope, factor in zip(network.scopes, network.factors, strict=True):
        part = factor[tuple(known.get(place, slice(None)) for place in scope)]
        if not part.max() > 0:
            return None
        open_places = [place for place in scope if place not in known]
        axes = sorted(range(len(open_places)), key=open_places.__getitem__)
        shape = [size if few[k] in open_places else 1 for k, size in enumerate(sizes)]
        cells = cells * np.reshape(np.transpose(part / part.max(), axes), shape)
    if not (cells > 0).any() or np.any((cells > 0) & (cells < _RAREST)):
        return None
    return JointTable(
        probabilities=cells / cells.sum(),
        domains=[network.domains[place] for place in few],
        names=[network.names[place] for place in few],
        provenance=network.provenance,
    )


def _bound_of(problem: Problem, network: Network) -> VectorBound:
    """Bound all adversaries of a large network by couplings, and by how many tuples they know."""
    contributions, knowledge = problem.contributions, problem.knowledge
    couplings = network.couplings.without(knowledge.known or frozenset())
    attacked = set(knowledge.targets)
    longest = max(
        joint_range(contributions.select(together))
        for together in couplings.components
        if attacked & set(together)
    )
    ranges, _ = tuple_moves(contributions)
    moving = np.sort(ranges)[::-1][: knowledge.total - knowledge.fewest]
    longest = min(longest, rounded_up(math.fsum(moving), contributions.coordinates + 8))
    if problem.measure.unit != "epsilon" or not problem.measure.data_counts:
        return VectorBound(problem, longest)
    moved = random_move(couplings, ranges, knowledge.targets, longest)
    return VectorBound(problem, longest, random=moved)
