"""The bound on a branch is never below any leaf under it, nor below any soft knowledge."""

import itertools

import numpy as np
import pytest

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.families.table.two_cell_bound import branch_bound, workspace

OUTPUTS = 4


def random_node(rng: np.random.Generator, *, near_one: bool, zeros: bool) -> FloatArray:
    """Filtered masses of 2×3×2 open cells, three secrets, four outputs; the mass comes last."""
    masses = rng.dirichlet(np.full(36, 0.5)).reshape(2, 3, 2, 3)
    if zeros:
        masses[rng.random(masses.shape) < 0.2] = 0.0
    distance = rng.exponential(1e-3 if near_one else 2.0, size=(2, 3, 2, 3, OUTPUTS))
    kernel = np.expm1(-distance) if near_one else np.exp(-distance)
    return np.concatenate([masses[..., None] * kernel, masses[..., None]], axis=-1)


def ratio(rows: FloatArray, one: float) -> FloatArray:
    """Largest ratio − 1 per output, of rows of filtered masses, one row per secret."""
    possible = rows[:, -1] > 0
    if possible.sum() < 2:
        return np.zeros(OUTPUTS)
    densities = rows[possible, :-1] / rows[possible, -1:]
    return np.asarray(
        (densities.max(axis=0) - densities.min(axis=0)) / (one + densities.min(axis=0))
    )


@pytest.mark.parametrize("near_one", [False, True])
@pytest.mark.parametrize("zeros", [False, True])
def test_no_knowledge_exceeds_the_bound(near_one: bool, zeros: bool) -> None:
    for seed in range(60):
        rng = np.random.default_rng(seed)
        node = random_node(rng, near_one=near_one, zeros=zeros)
        one = float(near_one)
        groups = rng.integers(0, rng.choice([1, 4, 16]), size=12)
        bound = np.empty(OUTPUTS)
        branch_bound(
            node.ravel(),
            0,
            groups,
            3,
            OUTPUTS + 1,
            0,
            OUTPUTS,
            one,
            -1.0,
            workspace(OUTPUTS),
            bound,
        )
        allowed = bound * (1 + 1e-12) + 1e-15
        for choice in itertools.product(range(3), range(4), range(3)):
            leaf = node
            for axis, value in reversed(list(enumerate(choice))):
                size = node.shape[axis]
                leaf = leaf.sum(axis=axis) if value == size else leaf.take(value, axis=axis)
            assert np.all(ratio(leaf, one) <= allowed)
        for _ in range(50):
            soft = rng.dirichlet(np.full(12, rng.choice([0.05, 0.3, 1.0])))
            assert np.all(ratio(np.tensordot(soft, node.reshape(12, 3, -1), 1), one) <= allowed)


def test_two_cells_attain_the_bound() -> None:
    """Equal ratios in both cells: then the two-cell bound is exact for soft knowledge."""
    odds, density, both = np.array([1.0, 4.0]), np.array([1.0, 9.0]), 2.0
    masses = np.stack([1 / (1 + odds), odds / (1 + odds)], axis=-1)
    filtered = masses * np.stack([density, both * density], axis=-1)
    node = np.stack([filtered, masses], axis=-1)
    bound = np.empty(1)
    branch_bound(node.ravel(), 0, np.arange(2), 2, 2, 0, 1, 0.0, -1.0, workspace(1), bound)
    weights = np.geomspace(1e-3, 1e3, 100_001)
    mixed = node[0] + weights[:, None, None] * node[1]
    attained = (mixed[:, 1, 0] * mixed[:, 0, 1] / (mixed[:, 0, 0] * mixed[:, 1, 1])).max() - 1
    assert bound[0] == pytest.approx(attained, rel=1e-6)
