"""Random chains, trees, groups and queries, with the plain function that the oracle gets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import pdp_calibrate as pdp
from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.query import Query
from pdp_calibrate.families.exchangeable.model import compositions


def random_law(rng: np.random.Generator, size: int) -> FloatArray:
    """A law with some entries impossible."""
    law = rng.dirichlet(np.full(size, rng.choice([0.3, 1.0, 5.0])))
    law = np.where(rng.random(size) < rng.choice([0.0, 0.0, 0.3]), 0.0, law)
    law[law < 1e-9] = 0.0
    if law.sum() == 0:
        law[rng.integers(size)] = 1.0
    return law / law.sum()


def random_chain(rng: np.random.Generator, *, longest: int = 6) -> pdp.MarkovChain:
    """Two or three states, zeros, sometimes periodic, stationary or given start."""
    states = int(rng.integers(2, 4))
    length = int(rng.integers(1, longest if states == 2 else longest - 1, endpoint=True))
    transition = np.array([random_law(rng, states) for _ in range(states)])
    if rng.random() < 0.15:
        transition = np.roll(np.eye(states), 1, axis=1)
    values = [0, 1, 2][:states]
    if rng.random() < 0.5:
        values = rng.choice(np.arange(-3, 6), states, replace=False).tolist()
    if rng.random() < 0.5:
        try:
            return pdp.MarkovChain(transition=transition, length=length, states=values)
        except pdp.ModelError:  # reducible: no stationary start
            pass
    initial = random_law(rng, states)
    return pdp.MarkovChain(transition=transition, length=length, states=values, initial=initial)


def random_group(rng: np.random.Generator) -> pdp.BinaryGroup | pdp.CategoryGroup:
    """Up to six yes/no members, or up to four with three categories of any value."""
    if rng.random() < 0.5:
        size = int(rng.integers(1, 6, endpoint=True))
        return pdp.BinaryGroup(count_probabilities=random_law(rng, size + 1))
    size = int(rng.integers(1, 4, endpoint=True))
    law = random_law(rng, len(list(compositions(size, 3))))
    categories = (rng.normal(size=3).round(2) + 1e-4 * np.arange(3)).tolist()
    return pdp.CategoryGroup(size=size, categories=categories, count_probabilities=law)


def random_tree(
    rng: np.random.Generator, *, most: int = 5, states: tuple[int, int] = (2, 3), zeros: bool = True
) -> pdp.MarkovTree:
    """Any shape, in any order of tuples, some transitions impossible."""
    size = int(rng.integers(2, most, endpoint=True))
    order = rng.permutation(size).tolist()
    sizes = rng.integers(*states, size=size, endpoint=True).tolist()
    if size == 5:
        sizes = [2] * 5
    parents: list[Any] = [None] * size
    tables: list[Any] = [None] * size

    def law(number: int) -> FloatArray:
        return random_law(rng, number) if zeros else rng.dirichlet(np.full(number, 2.0))

    for rank, place in enumerate(order):
        if rank == 0:
            tables[place] = law(sizes[place])
            continue
        parents[place] = order[int(rng.integers(rank))]
        tables[place] = [law(sizes[place]) for _ in range(sizes[parents[place]])]
    domains = [rng.choice(np.arange(-3, 6), number, replace=False).tolist() for number in sizes]
    return pdp.MarkovTree(domains=domains, parents=parents, tables=tables)


def cells_of_tree(tree: pdp.MarkovTree) -> FloatArray:
    """The joint law, one cell after the other."""
    cells = np.zeros([len(domain) for domain in tree.domains])
    for cell in np.ndindex(cells.shape):
        mass = 1.0
        for place, parent in enumerate(tree.parents):
            table = np.asarray(tree.tables[place])
            mass *= float(
                table[cell[place]] if parent is None else table[cell[parent], cell[place]]
            )
        cells[cell] = mass
    return cells


def random_query(
    rng: np.random.Generator, model: Any
) -> tuple[Query, Callable[[tuple[Any, ...]], float]]:
    """A sum or count, over all or some, or a weighted sum with weights of both signs."""
    size, values = len(model.names), model.domains[0]
    chosen = sorted(rng.choice(size, int(rng.integers(1, size, endpoint=True)), replace=False))
    chosen = [int(position) for position in chosen]
    kind = rng.choice(["sum", "over", "count", "linear"])
    if kind == "sum":
        return pdp.Sum(), sum
    if kind == "over":
        return pdp.Sum(over=chosen), lambda x: sum(x[p] for p in chosen)
    if kind == "count":
        query = pdp.Count(values={values[0]}, over=chosen)
        return query, lambda x: float(sum(x[p] == values[0] for p in chosen))
    weights = rng.integers(-3, 4, size=size).astype(float)
    weights[0] = 1.0
    query = pdp.Linear(weights=weights.tolist())
    return query, lambda x: float(sum(w * v for w, v in zip(weights, x, strict=True)))
