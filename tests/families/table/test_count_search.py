"""The chained bound is never below what an adversary learns, and its search holds the truth."""

import functools
import itertools
import math

import numpy as np
import pytest

import pdp_calibrate as pdp
from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.leakage import leakage
from pdp_calibrate.core.workers import Clock
from pdp_calibrate.families.table import count_search, search
from pdp_calibrate.families.table.count_grid import CountGrid
from pdp_calibrate.families.table.threshold_bound import Case
from tests.support.marks import bounds_checked
from tests.support.random_tables import additive_problem
from tests.support.table_searches import setting_at


def worst_by_hand(
    cells: FloatArray, parts: list[FloatArray], scale: float, target: int, unknown: tuple[int, ...]
) -> float:
    """Every event, pair of secrets and point of the product grid, in logarithms."""
    places = range(cells.ndim)
    known = [place for place in places if place != target and place not in unknown]
    worst = 0.0
    for values in itertools.product(*(range(cells.shape[place]) for place in known)):
        laws: list[tuple[FloatArray, FloatArray]] = []
        for secret in range(cells.shape[target]):
            atoms, masses = [], []
            for rest in itertools.product(*(range(cells.shape[place]) for place in unknown)):
                cell = [0] * cells.ndim
                for place, value in [*zip(known, values, strict=True), (target, secret)]:
                    cell[place] = value
                for place, value in zip(unknown, rest, strict=True):
                    cell[place] = value
                if cells[tuple(cell)] > 0:
                    masses.append(math.log(cells[tuple(cell)]))
                    moving = (target, *unknown)
                    atoms.append(sum(parts[place][cell[place]] for place in moving) / scale)
            if masses:
                laws.append((np.array(masses), np.array(atoms)))
        if len(laws) < 2:
            continue
        grid = np.array(
            list(itertools.product(*map(np.unique, np.concatenate([a for _, a in laws]).T)))
        )
        densities = [
            np.logaddexp.reduce(
                masses[:, None] - np.abs(atoms[:, None] - grid).sum(axis=-1), axis=0
            )
            - np.logaddexp.reduce(masses)
            for masses, atoms in laws
        ]
        worst = max(worst, float(np.ptp(np.array(densities), axis=0).max()))
    return worst


def only_counts(patched: pytest.MonkeyPatch) -> None:
    for name in ("FEW_DENSITIES", "SET_WORK", "GRID_WORK", "LOG_WORK"):
        patched.setattr(search, name, 0)


@pytest.mark.compiled
@pytest.mark.parametrize("work", [1.5e9, 0.0])
def test_the_bracket_holds_the_exact_leakage(monkeypatch: pytest.MonkeyPatch, work: float) -> None:
    """Enough work settles everybody to the tolerance, bounded before or not; none leaves bounds."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        sizes = tuple(int(size) for size in rng.integers(2, 4, size=4))
        cells = rng.dirichlet(np.full(math.prod(sizes), rng.choice([1.0, 50.0]))).reshape(sizes)
        if seed % 3 == 0:
            cells[rng.random(sizes) < 0.2] = 0.0
            cells = cells / cells.sum()
        table = pdp.JointTable(
            probabilities=cells, domains=[["a", "b", "c"][:size] for size in sizes]
        )
        exact = leakage(table, pdp.Histogram(), scale=3.0)
        with monkeypatch.context() as patched:
            only_counts(patched)
            patched.setattr(count_search, "_WORK", work)
            found = leakage(table, pdp.Histogram(), scale=3.0)
        assert found.lower <= exact.value * (1 + 1e-9)
        assert found.value >= exact.lower * (1 - 1e-9)
        assert found.lower >= 2 / 3 * (1 - 1e-9)
        if work:
            assert found.value <= found.lower * 1.01
            assert found.witness is not None
            known = found.witness.known
            alone = leakage(
                table,
                pdp.Histogram(),
                scale=3.0,
                adversaries=pdp.Adversaries.exactly(found.witness.target, known=known),
            )
            assert alone.value >= found.lower * (1 - 1e-9)


@pytest.mark.compiled
def test_a_calibrated_scale_keeps_epsilon(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = np.random.default_rng(5).dirichlet(np.full(81, 2.0)).reshape((3,) * 4)
    table = pdp.JointTable(probabilities=cells, domains=[["a", "b", "c"]] * 4)
    best = pdp.calibrate(table, pdp.Histogram(), epsilon=1.0).scale
    with monkeypatch.context() as patched:
        only_counts(patched)
        scale = pdp.calibrate(table, pdp.Histogram(), epsilon=1.0).scale
    assert leakage(table, pdp.Histogram(), scale=scale).value <= 1.0
    assert best * (1 - 1e-9) <= scale <= best * 1.02


@pytest.mark.compiled
def test_a_search_stops_once_somebody_leaks_enough() -> None:
    cells = np.random.default_rng(3).dirichlet(np.full(27, 0.5)).reshape(3, 3, 3)
    setting = setting_at(additive_problem(cells, [np.eye(3)] * 3), 2.0)
    settled = count_search.search_counts(setting, 0.0, Clock(math.inf))
    stopped = count_search.search_counts(setting, 0.0, Clock(math.inf, enough=0.1))
    assert 0.1 < stopped.lower <= settled.upper
    assert stopped.upper == pytest.approx(3.0)


def test_only_counts_are_searched() -> None:
    small = np.full((2, 2), 0.25)
    weighed = setting_at(additive_problem(small, [np.eye(2), 2 * np.eye(2)]), 2.0)
    assert not count_search.can_search(weighed)
    assert count_search.can_search(setting_at(additive_problem(small, [np.eye(2)] * 2), 2.0))
    seven = np.full((7, 2), 1 / 14)
    assert count_search.can_search(
        setting_at(additive_problem(seven, [np.eye(7), np.eye(7)[:2]]), 2.0)
    )


def rare_and_excluded(rng: np.random.Generator, sizes: tuple[int, ...]) -> FloatArray:
    """Zeros, of a whole secret too, beside masses that only double precision holds, and a rest."""
    cells = rng.dirichlet(np.ones(math.prod(sizes))).reshape(sizes)
    cells[rng.random(sizes) < 0.2] = 0.0
    cells[rng.random(sizes) < 0.2] = 1e-300
    cells[0, 0] = cells[:, -1, 0] = 0.0
    return np.asarray(cells / cells.sum())


@pytest.mark.compiled
@pytest.mark.parametrize("seed", bounds_checked(range(12), 4))
def test_events_evaluated_together_leak_what_they_leak_by_hand(seed: int) -> None:
    """Target included it is the leakage; the others alone, and the target's own, are above it."""
    rng = np.random.default_rng(seed)
    sizes = tuple(int(size) for size in rng.integers(2, 6 if seed % 2 else 4, size=3))
    cells = rare_and_excluded(rng, sizes) if seed % 3 else random_dense(rng, sizes)
    parts = [np.eye(max(sizes))[:size] for size in sizes]
    if seed % 4 == 1:
        parts = [part[:, 1:] for part in parts]  # the first value counts nowhere
    scale = float(np.exp(rng.uniform(-0.2, 2)))
    setting = setting_at(additive_problem(cells, parts), scale)
    found = count_search._Search(setting, 0.0, Clock(math.inf))
    coordinates = setting.coordinates
    for target in range(3):
        others = [place for place in range(3) if place != target]
        for unknown in ((others[0],), (others[1],), tuple(others)):
            case = Case(target, unknown)
            known = [sizes[place] for place in others if place not in unknown]
            events = np.arange(math.prod(known))
            whole = CountGrid.of(coordinates, len(unknown) + 1)
            alone = CountGrid.of(coordinates, len(unknown))
            values = found._values(case, events, whole)
            shared = found._values(case, events, whole, found._count_laws.of(unknown))
            np.testing.assert_allclose(shared, values, atol=whole.error)
            exact = worst_by_hand(cells, parts, scale, target, unknown)
            assert values.max() == pytest.approx(exact, abs=whole.error)
            above = found._values(case, events, alone) + setting.diameters[target]
            assert np.all(above + alone.error >= values - whole.error)
            single = [found._evaluate(case, int(event)) for event in events]
            for value, one in zip(values, single, strict=True):
                assert one.lower - whole.error <= value <= one.upper + whole.error


def random_dense(rng: np.random.Generator, sizes: tuple[int, ...]) -> FloatArray:
    return np.asarray(rng.dirichlet(np.ones(math.prod(sizes))).reshape(sizes))


@pytest.mark.compiled
@pytest.mark.parametrize("seed", bounds_checked(range(6), 2))
def test_five_items_of_four_values_are_bracketed(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Within 1 % of the exact engine, from both sides, classes and excluded cells alike."""
    rng = np.random.default_rng(seed)
    cells = np.zeros((4,) * 5)
    for share in rng.dirichlet(np.full(3, 2.0)):
        cells += share * functools.reduce(np.multiply.outer, rng.dirichlet(np.ones(4), size=5))
    if seed % 2:
        cells[rng.random(cells.shape) < 0.1] = 0.0
    table = pdp.JointTable(probabilities=cells / cells.sum(), domains=[list("abcd")] * 5)
    exact = leakage(table, pdp.Histogram(), scale=4.0)
    only_counts(monkeypatch)
    found = leakage(table, pdp.Histogram(), scale=4.0)
    assert found.lower <= exact.value * (1 + 1e-9)
    assert found.value >= exact.lower * (1 - 1e-9)
    assert found.value <= found.lower * 1.01


@pytest.mark.compiled
def test_a_start_at_corners_is_attained_and_admitted() -> None:
    """Also where adversaries know one tuple at least: nobody else may be the worst."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        cells = rare_and_excluded(rng, (3, 2, 3, 2))
        parts = [np.eye(3)[:size] for size in cells.shape]
        setting = setting_at(additive_problem(cells, parts), 2.0)
        cases = [Case(*case) for case in setting.prepared.cases()]
        some = [case for case in cases if len(case.unknown) < 3]
        found = count_search._Search(setting, 0.0, Clock(math.inf))
        found.try_corners(some)
        attack = found.attained.attack
        assert attack is not None
        assert attack.known
        unknown = tuple(p for p in range(4) if p != attack.target and p not in attack.known)
        exact = worst_by_hand(cells, parts, 2.0, attack.target, unknown)
        assert 0 < found.attained.lower <= exact
