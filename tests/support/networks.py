"""Networks at random, small and hostile; what contraction alone says of trees."""

from __future__ import annotations

import itertools

import numpy as np
from scipy.sparse import csc_array, diags_array, eye_array, kron

import pdp_calibrate as pdp
from pdp_calibrate.families.network.elimination import Elimination


def contraction_bounds(network, budgets, knowledge):
    """Bound every target by the budgets of single tuples, and nothing else."""
    couplings = network.couplings.without(knowledge.known or frozenset())
    return Elimination(couplings).bounds(np.asarray(budgets, dtype=float), knowledge.targets)


def ising_factors(edges, strength):
    """Return factors e^{J s_k s_l}, s = ±1, of values 0 and 1."""
    alike = np.exp(strength * np.array([[1, -1], [-1, 1]]))
    return [(edge, alike) for edge in edges]


def grid_edges(rows, columns):
    """Return the edges of a grid whose places are numbered row by row."""
    places = np.arange(rows * columns).reshape(rows, columns)
    along = zip(places[:, :-1].ravel(), places[:, 1:].ravel(), strict=True)
    across = zip(places[:-1].ravel(), places[1:].ravel(), strict=True)
    return [(int(one), int(other)) for one, other in itertools.chain(along, across)]


def random_factors(rng, sizes, *, zeros=False):
    """Return factors about one to three tuples each, of both signs, in circles or not."""
    size = len(sizes)
    factors = []
    for _ in range(int(rng.integers(1, size + 3))):
        number = min(size, int(rng.choice([1, 2, 2, 2, 2, 3])))
        scope = rng.choice(size, number, replace=False)
        shape = np.asarray(sizes)[scope]
        cells = np.exp(rng.normal(size=shape) * rng.choice([0.05, 0.3, 1.0, 3.0]))
        if zeros and rng.random() < 0.6:
            cells = np.where(rng.random(shape) < 0.3, 0.0, cells)
            cells.flat[int(rng.integers(cells.size))] = 1.0
        factors.append((tuple(int(place) for place in scope), cells))
    return factors


def regular_tree(size, children, stay):
    """Return a tree of two states, each kept by a child with this probability."""
    kernel = [[stay, 1 - stay], [1 - stay, stay]]
    return pdp.MarkovTree(
        domains=[[0, 1]] * size,
        parents=[None, *((place - 1) // children for place in range(1, size))],
        tables=[[0.5, 0.5], *[kernel] * (size - 1)],
    )


def grid_precision(rows, columns, strength=1.0):
    """Return the precision of a grid whose neighbours are alike."""
    along, across = (
        diags_array([np.ones(n - 1)] * 2, offsets=[1, -1], shape=(n, n)) for n in (rows, columns)
    )
    beside = kron(eye_array(rows), across) + kron(along, eye_array(columns))
    laplacian = diags_array(beside.sum(axis=0)) - beside
    return csc_array(eye_array(rows * columns) + strength * laplacian)
