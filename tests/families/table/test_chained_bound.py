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
from pdp_calibrate.families.table import chained_search, search
from pdp_calibrate.families.table.chained_bound import ChainedBound, is_chained
from pdp_calibrate.families.table.count_grid import CountGrid
from pdp_calibrate.families.table.events import Case
from pdp_calibrate.families.table.setting import Setting
from tests.support.marks import bounds_checked
from tests.support.random_tables import additive_problem
from tests.support.table_searches import setting_at


def random_cells(rng: np.random.Generator, kind: str) -> FloatArray:
    """A small table, of weak or strong dependence, with zeros and rare cells as the kind says."""
    sizes = tuple(int(size) for size in rng.integers(1, 6, size=rng.integers(2, 4)))
    cells = rng.dirichlet(np.full(math.prod(sizes), rng.choice([0.3, 2.0, 200.0])))
    if kind == "zeros":
        cells[rng.random(len(cells)) < 0.3] = 0.0
    if kind == "rare":
        cells[rng.random(len(cells)) < 0.3] = rng.choice([1e-300, 1e-60, 1e-45, 0.0])
    cells[rng.integers(len(cells))] += 0.1
    return np.asarray((cells / cells.sum()).reshape(sizes))


def parts_of(
    cells: FloatArray, *, is_histogram: bool, rng: np.random.Generator
) -> list[FloatArray]:
    if is_histogram:
        return [np.eye(5)[:size] for size in cells.shape]
    return [rng.uniform(-2, 2, size=(size, 2)) for size in cells.shape]


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


def bound_of(setting: Setting) -> ChainedBound:
    bound = ChainedBound(setting, Clock(math.inf))
    for number in range(1, len(setting.sizes)):
        bound.prove(number)
    return bound


@pytest.mark.compiled
@pytest.mark.parametrize("kind", ["dense", "zeros", "rare"])
@pytest.mark.parametrize("is_histogram", [True, False])
def test_no_adversary_exceeds_it(kind: str, is_histogram: bool) -> None:
    for seed in range(10):
        rng = np.random.default_rng(seed)
        cells = random_cells(rng, kind)
        parts = parts_of(cells, is_histogram=is_histogram, rng=rng)
        scale = float(np.exp(rng.uniform(0.0, 3)))
        setting = setting_at(additive_problem(cells, parts), scale)
        if not is_chained(setting):
            continue
        bound = bound_of(setting)
        for target in range(cells.ndim):
            others = [place for place in range(cells.ndim) if place != target]
            for number in range(1, cells.ndim):
                for unknown in itertools.combinations(others, number):
                    exact = worst_by_hand(cells, parts, scale, target, unknown)
                    found = bound.largest(Case(target, unknown))
                    moving = (target, *unknown)
                    group = sum(
                        np.abs(parts[p][:, None] - parts[p]).sum(axis=-1).max() for p in moving
                    )
                    assert exact <= found <= group / scale + 1e-4


@pytest.mark.compiled
def test_an_independent_tuple_proves_what_plain_differential_privacy_says() -> None:
    laws = [[0.2, 0.8], [0.5, 0.3, 0.2], [0.1, 0.2, 0.3, 0.3, 0.1]]
    cells = np.einsum("i,j,k->ijk", *map(np.array, laws))
    setting = setting_at(additive_problem(cells, [np.eye(5)[:k] for k in (2, 3, 5)]), 2.0)
    bound = bound_of(setting)
    for target, unknown in ((0, (1, 2)), (1, (2,)), (2, (0, 1))):
        assert bound.largest(Case(target, unknown)) == pytest.approx(1.0, abs=1e-4)


@pytest.mark.compiled
def test_two_tuples_with_one_unknown_are_bounded_exactly_where_counts_agree() -> None:
    """Two answers that agree more often than not: the bound with one unknown is the leakage."""
    cells = np.array([[0.4, 0.1], [0.1, 0.4]])
    setting = setting_at(additive_problem(cells, [np.eye(2)] * 2), 1.0)
    exact = worst_by_hand(cells, [np.eye(2)] * 2, 1.0, 0, (1,))
    assert bound_of(setting).largest(Case(0, (1,))) == pytest.approx(exact, abs=1e-4)


@pytest.mark.compiled
def test_who_is_not_reached_in_time_has_no_bound() -> None:
    cells = np.random.default_rng(0).dirichlet(np.ones(27)).reshape(3, 3, 3)
    setting = setting_at(additive_problem(cells, [np.eye(3)] * 3), 2.0)
    bound = ChainedBound(setting, Clock(-math.inf))
    assert bound.largest(Case(0, (1, 2))) == math.inf
    found = chained_search.search_chained(setting, 0.0, Clock(-math.inf))
    assert found.upper == pytest.approx(3.0)


def only_chained(patched: pytest.MonkeyPatch) -> None:
    for name in ("FEW_DENSITIES", "SET_WORK", "GRID_WORK", "LOG_WORK"):
        patched.setattr(search, name, 0)


@pytest.mark.compiled
@pytest.mark.parametrize(
    ("work", "few", "screened"),
    [(1.5e9, True, False), (1.5e9, False, False), (1.5e9, False, True), (0.0, False, False)],
)
def test_the_bracket_holds_the_exact_leakage(
    monkeypatch: pytest.MonkeyPatch, work: float, few: bool, screened: bool
) -> None:
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
            only_chained(patched)
            patched.setattr(chained_search, "_WORK", work)
            patched.setattr(chained_search._Search, "are_few", lambda *_, few=few: few)
            patched.setattr(chained_search._Search, "can_screen", lambda *_: screened)
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
        only_chained(patched)
        scale = pdp.calibrate(table, pdp.Histogram(), epsilon=1.0).scale
    assert leakage(table, pdp.Histogram(), scale=scale).value <= 1.0
    assert best * (1 - 1e-9) <= scale <= best * 1.02


@pytest.mark.compiled
def test_a_search_stops_once_somebody_leaks_enough() -> None:
    cells = np.random.default_rng(3).dirichlet(np.full(27, 0.5)).reshape(3, 3, 3)
    setting = setting_at(additive_problem(cells, [np.eye(3)] * 3), 2.0)
    settled = chained_search.search_chained(setting, 0.0, Clock(math.inf))
    stopped = chained_search.search_chained(setting, 0.0, Clock(math.inf, enough=0.1))
    assert 0.1 < stopped.lower <= settled.upper
    assert stopped.upper == pytest.approx(3.0)


def test_only_counts_of_few_values_are_searched() -> None:
    cells = np.full((6, 2), 1 / 12)
    assert not is_chained(setting_at(additive_problem(cells, [np.eye(6), np.eye(6)[:2]]), 2.0))
    small = np.full((2, 2), 0.25)
    weighed = setting_at(additive_problem(small, [np.eye(2), 2 * np.eye(2)]), 2.0)
    assert is_chained(weighed)
    assert not chained_search.can_search(weighed)
    assert chained_search.can_search(setting_at(additive_problem(small, [np.eye(2)] * 2), 2.0))
    assert not is_chained(setting_at(additive_problem(small, [np.eye(2)] * 2), 0.01))


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
    found = chained_search._Search(setting, 0.0, Clock(math.inf))
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
    only_chained(monkeypatch)
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
        found = chained_search._Search(setting, 0.0, Clock(math.inf))
        found.try_corners(some)
        attack = found.attained.attack
        assert attack is not None
        assert attack.known
        unknown = tuple(p for p in range(4) if p != attack.target and p not in attack.known)
        exact = worst_by_hand(cells, parts, 2.0, attack.target, unknown)
        assert 0 < found.attained.lower <= exact
