"""Mixtures of few product laws: found in the table, verified, and never bounded below the truth."""

import functools
import itertools
import math

import numpy as np
import pytest

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.families.table import chained_search, latent_classes
from pdp_calibrate.families.table.count_grid import CountLaws
from pdp_calibrate.families.table.latent_classes import LatentClasses, class_bounds
from tests.families.table.test_chained_bound import worst_by_hand
from tests.support.marks import bounds_checked
from tests.support.random_tables import additive_problem
from tests.support.table_searches import setting_at


def mixture(rng: np.random.Generator, sizes: tuple[int, ...], classes: int) -> FloatArray:
    cells = np.zeros(sizes)
    for share in rng.dirichlet(np.full(classes, 3.0)):
        cells += share * functools.reduce(
            np.multiply.outer, [rng.dirichlet(np.ones(size)) for size in sizes]
        )
    return np.asarray(cells / cells.sum())


@pytest.mark.parametrize("classes", [1, 2, 3])
def test_classes_are_found_in_the_table(classes: int) -> None:
    for seed in range(10):
        rng = np.random.default_rng(seed)
        found = LatentClasses.of(mixture(rng, (3, 4, 3, 5, 3), classes))
        assert found is not None
        assert len(found.laws[0]) == classes
        assert found.error < 1e-6


def test_a_table_that_is_no_mixture_of_few_has_none() -> None:
    rng = np.random.default_rng(0)
    assert LatentClasses.of(rng.dirichlet(np.ones(5**5)).reshape((5,) * 5)) is None
    cells = mixture(rng, (4, 3, 3, 4), 2)
    assert LatentClasses.of(cells) is not None
    cells[3, 1, 2, 0] *= 0.999  # one cell more would be a class of its own, one less is none
    assert LatentClasses.of(cells) is None
    assert LatentClasses.of(mixture(rng, (4, 3), 2)) is None  # nothing tells classes of two apart


def test_a_table_in_single_precision_is_charged_for_it() -> None:
    cells = mixture(np.random.default_rng(3), (3, 4, 3, 5, 3), 2)
    single = cells.astype(np.float32).astype(np.float64)
    found = LatentClasses.of(single / single.sum())
    assert found is not None
    assert len(found.laws[0]) == 2
    assert 1e-8 < found.error < 1e-4


def test_the_error_is_that_of_the_worst_cell() -> None:
    rng = np.random.default_rng(0)
    shares = np.array([0.3, 0.7])
    laws = tuple(rng.dirichlet(np.ones(size), size=2) for size in (3, 4, 2, 5))
    cells = np.einsum("c,ci,cj,ck,cl->ijkl", shares, *laws)
    assert latent_classes._largest_error(cells, shares, laws) < 1e-14
    for factor in (np.exp(-3e-5), np.exp(3e-5)):
        moved = cells.copy()
        moved[2, 3, 1, 4] *= factor
        error = latent_classes._largest_error(moved, shares, laws)
        assert 3e-5 <= error <= 3e-5 + 1e-13
    for excluded in (0.0, 1e-300):  # only one of them is zero; too rare for floats
        moved[0, 0, 0, 0] = excluded
        assert latent_classes._largest_error(moved, shares, laws) == math.inf


@pytest.mark.compiled
@pytest.mark.parametrize("seed", bounds_checked(range(16), 4))
def test_nobody_learns_more_than_classes_allow(seed: int) -> None:
    """Every case by hand, also with cells a little off, values that count nowhere, few or rare."""
    rng = np.random.default_rng(seed)
    sizes = tuple(int(size) for size in rng.integers(2, 4, size=4))
    cells = mixture(rng, sizes, min(2, *sizes))
    if seed % 3 == 1:
        cells = cells * np.exp(rng.uniform(-1e-13, 1e-13, sizes))
    parts = [np.eye(3)[:size, seed % 2 :] for size in sizes]
    scale = float(np.exp(rng.uniform(-0.2, 2)))
    setting = setting_at(additive_problem(cells / cells.sum(), parts), scale)
    classes = LatentClasses.of(setting.probabilities)
    bins = chained_search._bins(setting)
    assert classes is not None
    assert bins is not None
    bounds = class_bounds(setting, classes, bins)
    assert len(bounds) == 4 * 7
    for (target, unknown), bound in bounds.items():
        exact = worst_by_hand(cells, parts, scale, target, unknown)
        assert exact <= bound
        assert bound <= sum(setting.diameters[place] for place in (target, *unknown)) + 1e-3


@pytest.mark.compiled
def test_a_charged_error_is_enough() -> None:
    """A mixture that every cell is off from by the error allowed, the worst way round."""
    rng = np.random.default_rng(1)
    cells, parts = mixture(rng, (2, 2, 2), 2), [np.eye(2)] * 3
    classes = LatentClasses.of(cells)
    assert classes is not None
    off = 6e-5
    charged = LatentClasses(laws=classes.laws, error=off)
    for signs in itertools.product((-1, 1), repeat=8):
        moved = cells * np.exp(off * np.reshape(signs, (2, 2, 2)))
        setting = setting_at(additive_problem(moved / moved.sum(), parts), 1.0)
        bins = chained_search._bins(setting)
        assert bins is not None
        for (target, unknown), bound in class_bounds(setting, charged, bins).items():
            assert worst_by_hand(moved, parts, 1.0, target, unknown) <= bound


@pytest.mark.compiled
def test_a_target_that_tells_the_class_leaks_exactly_the_bound() -> None:
    """Everybody of the first class answers yes to the target, everybody of the second no."""
    laws = [np.eye(2), [[0.8, 0.2], [0.3, 0.7]], [[0.6, 0.4], [0.1, 0.9]]]
    cells = sum(0.5 * np.einsum("i,j,k->ijk", *(law[c] for law in laws)) for c in range(2))
    parts = [np.eye(2)] * 3
    setting = setting_at(additive_problem(cells, parts), 2.0)
    classes, bins = LatentClasses.of(cells), chained_search._bins(setting)
    assert classes is not None
    assert bins is not None
    bounds = class_bounds(setting, classes, bins)
    for unknown in ((1,), (2,), (1, 2)):
        exact = worst_by_hand(cells, parts, 2.0, 0, unknown)
        assert bounds[0, unknown] == pytest.approx(exact, abs=1e-4)
        assert exact < sum(setting.diameters[place] for place in (0, *unknown)) - 0.1


@pytest.mark.compiled
def test_counts_of_a_set_are_sums_of_cells() -> None:
    rng = np.random.default_rng(2)
    cells = rng.random((3, 2, 3, 2))
    bins = tuple(np.array(places) for places in ([0, 1, -1], [1, 0], [2, 2, 0], [0, 2]))
    for kept in (bins, (np.array([0, 1, 2]), *bins[1:])):
        laws = CountLaws(cells, kept, 3)
        for unknown in [(0,), (0, 2), (0, 2, 3), (1, 2), (1,), (0, 1, 2)]:
            vectors, masses = laws.of(unknown)
            expected = np.zeros(
                (4,) * 3 + tuple(cells.shape[p] for p in range(4) if p not in unknown)
            )
            for cell in itertools.product(*map(range, cells.shape)):
                counts = [0, 0, 0]
                for place in unknown:
                    if kept[place][cell[place]] >= 0:
                        counts[kept[place][cell[place]]] += 1
                rest = tuple(value for place, value in enumerate(cell) if place not in unknown)
                expected[(*counts, *rest)] += cells[cell]
            found = np.zeros_like(expected)
            for vector, row in zip(vectors, masses, strict=True):
                found[tuple(vector)] = row.reshape(expected.shape[3:])
            np.testing.assert_allclose(found, expected, rtol=1e-12)
            assert laws.work([unknown]) >= math.prod(cells.shape)
