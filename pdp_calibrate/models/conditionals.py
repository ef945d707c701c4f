"""From marginal laws and conditional tables to one joint law."""

from __future__ import annotations

import functools
import graphlib
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from pdp_calibrate.errors import ModelError
from pdp_calibrate.models.base import Domain, FloatArray, checked_domain

Law = Mapping[Hashable, float]
"""A law of one tuple: value → probability."""


def joint_law(
    marginals: Mapping[Hashable, Law],
    conditionals: Mapping[Hashable, tuple[Sequence[Hashable], Mapping[Any, Law]]],
    check_sizes: Callable[[Sequence[int]], None],
) -> tuple[tuple[Hashable, ...], tuple[Domain, ...], FloatArray]:
    """Multiply the factors; return names (marginals first), domains and the joint array."""
    both = set(marginals) & set(conditionals)
    if both:
        raise ModelError(f"{min(map(str, both))} has both a marginal and a conditional law.")
    names = (*marginals, *conditionals)
    domains = {name: checked_domain(law, name) for name, law in marginals.items()}
    domains |= {name: child_domain(name, table) for name, (_, table) in conditionals.items()}
    _check_parents(names, conditionals)
    check_sizes([len(domains[name]) for name in names])
    roots = [_factor(name, (), {(): law}, names, domains) for name, law in marginals.items()]
    factors = roots + [
        _factor(name, parents, table, names, domains)
        for name, (parents, table) in conditionals.items()
    ]
    joint = functools.reduce(np.multiply, factors, np.ones(()))
    possible = functools.reduce(np.logical_and, [factor > 0 for factor in factors])
    if np.any(joint < np.finfo(np.float64).tiny, where=possible):
        # A product that underflows would turn "rare" into "impossible", which is unsound.
        raise ModelError("a cell of the joint table is positive but below 2.2e-308.")
    return names, tuple(domains[name] for name in names), joint


def child_domain(name: Hashable, table: Mapping[Any, Law]) -> Domain:
    """Return all values that the laws of a conditional table name, in their order."""
    values: dict[Hashable, None] = {}
    for law in table.values():
        values |= dict.fromkeys(law)
    return checked_domain(values, name)


def _check_parents(
    names: Sequence[Hashable],
    conditionals: Mapping[Hashable, tuple[Sequence[Hashable], Mapping[Any, Law]]],
) -> None:
    for name, (parents, _) in conditionals.items():
        unknown = [str(parent) for parent in parents if parent not in names]
        if unknown:
            raise ModelError(f"{name} has parents without a law of their own: {unknown}.")
        if not parents or len(set(parents)) != len(parents):
            raise ModelError(f"the parents of {name} must be at least one and differ.")
    try:
        graph = {name: parents for name, (parents, _) in conditionals.items()}
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        raise ModelError("conditional tables must not depend on each other in a circle.") from error


def _factor(
    name: Hashable,
    parents: Sequence[Hashable],
    table: Mapping[Any, Law],
    names: Sequence[Hashable],
    domains: Mapping[Hashable, Domain],
) -> FloatArray:
    """Write P(name | parents) as an array that broadcasts over all axes."""
    family = [*parents, name]
    array = family_array(name, parents, table, domains)
    order = sorted(range(len(family)), key=lambda axis: names.index(family[axis]))
    shape = [len(domains[member]) if member in family else 1 for member in names]
    return array.transpose(order).reshape(shape)


def family_array(
    name: Hashable,
    parents: Sequence[Hashable],
    table: Mapping[Any, Law],
    domains: Mapping[Hashable, Domain],
) -> FloatArray:
    """Write P(name | parents) as an array with an axis per parent and a last one of its own."""
    family = [*parents, name]
    array = np.full([len(domains[member]) for member in family], np.nan)
    for key, law in table.items():
        values = key if len(parents) != 1 else (key,)
        try:
            place = tuple(
                domains[parent].index(value) for parent, value in zip(parents, values, strict=True)
            )
        except (TypeError, ValueError) as error:
            raise ModelError(f"a key of the table of {name} is no value of its parents.") from error
        array[place] = [law.get(value, 0.0) for value in domains[name]]
    if np.any(np.isnan(array)):
        raise ModelError(f"the table of {name} must have a law for every value of its parents.")
    if np.any(array < 0) or np.any(np.abs(array.sum(axis=-1) - 1) > 1e-9):
        raise ModelError(f"the laws of {name} must be non-negative and sum to 1.")
    return np.asarray(array / array.sum(axis=-1, keepdims=True))
