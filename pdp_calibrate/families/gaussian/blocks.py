"""The independent blocks of a Gaussian problem, and what searching one needs at any scale."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
from scipy.sparse.csgraph import connected_components

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.model import Model
from pdp_calibrate.core.problem import Problem
from pdp_calibrate.families.gaussian.instance import (
    Instance,
    arranged,
    checked_tau,
    precision_of,
    rescaled,
    search_tau,
    tau_of,
)
from pdp_calibrate.families.gaussian.model import Gaussian
from pdp_calibrate.families.gaussian.regression import center_of, multipliers_of


@dataclass(frozen=True, kw_only=True)
class Block:
    """Tuples that are independent of all others; some of them may be targets."""

    positions: list[int]
    """Their positions in the problem."""
    instance: Instance
    """Their covariance and weights, rescaled."""
    known: tuple[int, ...] | None
    """What a named adversary knows, as positions in the block."""

    @functools.cached_property
    def tau(self) -> float:
        """Relative error of conditional moments from the covariance."""
        instance = self.instance
        return checked_tau(tau_of(instance.covariance, len(instance.coordinates)))

    @functools.cached_property
    def precision(self) -> FloatArray:
        """The inverse of the covariance."""
        return precision_of(self.instance)

    @functools.cached_property
    def search_tau(self) -> float:
        """Relative error of conditional moments from the covariance or its inverse."""
        return search_tau(self.instance, self.precision)


def blocks_of(problem: Problem, weights: FloatArray) -> list[Block]:
    """Return the blocks that hold a target."""
    blocks = []
    for positions in components(problem.model):
        instance = instance_of(problem, weights, positions)
        if instance is not None:
            named = problem.knowledge.known
            known = None if named is None else [k for k, p in enumerate(positions) if p in named]
            blocks.append(
                Block(
                    positions=positions,
                    instance=instance,
                    known=None if known is None else tuple(known),
                )
            )
    return blocks


def components(model: Model) -> list[list[int]]:
    """Return the connected components of the covariance; a set of covariances is one block.

    Independent tuples carry no information about each other: given x_K, the coefficient of x_i
    depends on its own block alone.
    """
    if not isinstance(model, Gaussian):
        return [list(range(len(model.names)))]
    linked = model.covariance != 0
    if linked[0].all():
        return [list(range(len(linked)))]
    number, labels = connected_components(linked, directed=False)
    return [np.flatnonzero(labels == label).tolist() for label in range(number)]


def instance_of(problem: Problem, weights: FloatArray, block: list[int]) -> Instance | None:
    """Rescale one block; None if no target lies in it."""
    knowledge = problem.knowledge
    places = {position: place for place, position in enumerate(block)}
    targets = tuple(places[target] for target in knowledge.targets if target in places)
    rest = knowledge.total - len(block)
    fewest, most = max(0, knowledge.fewest - rest), min(len(block) - 1, knowledge.most)
    if knowledge.known is not None:
        fewest = most = len(knowledge.known.intersection(block))
    if not targets:
        return None
    center = center_of(problem.model)
    covariance, coordinates, factors = rescaled(
        arranged(center.covariance, block), weights[:, block], center.widths[block]
    )
    return Instance(
        covariance=covariance,
        coordinates=coordinates,
        factors=factors,
        multipliers=multipliers_of(problem)[: len(block)].copy(),
        targets=targets,
        fewest=fewest,
        most=most,
    )
