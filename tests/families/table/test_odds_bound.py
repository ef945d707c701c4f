"""The bound from the odds of a table is never below the exact leakage, whatever is known."""

import numpy as np
import pytest

import pdp_calibrate as pdp
from pdp_calibrate.core.leakage import leakage
from pdp_calibrate.families.table import joint_outputs, search
from pdp_calibrate.families.table.cells import Cells
from pdp_calibrate.families.table.odds_bound import OddsBound
from tests.support.marks import slow_after


def random_table(rng: np.random.Generator) -> pdp.JointTable:
    """A small table, of weak or strong dependence, some with zeros."""
    sizes = rng.integers(2, 4, size=rng.integers(2, 5))
    cells = rng.dirichlet(np.full(int(np.prod(sizes)), rng.choice([0.3, 2.0, 200.0])))
    if rng.random() < 0.4:
        cells[rng.random(len(cells)) < 0.3] = 0.0
        cells[rng.integers(len(cells))] += 0.1
    domains = [list(range(size)) for size in sizes]
    return pdp.JointTable(probabilities=(cells / cells.sum()).reshape(sizes), domains=domains)


def bound(table: pdp.JointTable, parts: list[np.ndarray], scale: float) -> float:
    """The largest bound of all targets."""
    cells = Cells(probabilities=table.probabilities, parts=tuple(parts), table=None)
    return max(OddsBound.of(cells, target).at(scale) for target in range(len(parts)))


@pytest.mark.parametrize("chunk", slow_after(1, range(5)))
@pytest.mark.parametrize("is_histogram", [True, False])
def test_no_adversary_exceeds_it(is_histogram: bool, chunk: int) -> None:
    for seed in range(50 * chunk, 50 * chunk + 50):
        rng = np.random.default_rng(seed)
        table = random_table(rng)
        scale = float(np.exp(rng.uniform(-1.5, 3)))
        values = 3 if is_histogram else 1
        parts = [
            np.eye(len(domain), values) if is_histogram else np.array(domain, dtype=float)[:, None]
            for domain in table.domains
        ]
        query = pdp.Histogram() if is_histogram else pdp.Sum()
        exact = leakage(table, query, scale=scale)
        assert bound(table, parts, scale) >= exact.lower
        group = sum(np.abs(part[:, None] - part).sum(axis=-1).max() for part in parts) / scale
        assert bound(table, parts, scale) <= group * (1 + 1e-12)


def test_independent_columns_leave_plain_differential_privacy() -> None:
    laws = [np.array([0.2, 0.8]), np.array([0.5, 0.3, 0.2]), np.array([0.6, 0.4])]
    cells = np.einsum("i,j,k->ijk", *laws)
    table = pdp.JointTable(probabilities=cells, domains=[[0, 1], [0, 1, 2], [0, 1]])
    parts = [np.eye(2, 3), np.eye(3), np.eye(2, 3)]
    assert bound(table, parts, 2.0) == pytest.approx(1.0, rel=1e-9)


def test_one_copied_column_gives_the_group_bound() -> None:
    table = pdp.JointTable(probabilities=[[0.5, 0.0], [0.0, 0.5]], domains=[[0, 1], [0, 1]])
    parts = [np.array([[0.0], [1.0]])] * 2
    assert bound(table, parts, 1.0) == pytest.approx(2.0, rel=1e-9)
    assert leakage(table, pdp.Sum(), scale=1.0).value == pytest.approx(2.0, rel=1e-9)


def test_a_bracket_of_what_is_too_large_holds_the_exact_leakage(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing is enumerated and no set is settled: odds above, far outputs below."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        cells = rng.dirichlet(np.full(81, rng.choice([1.0, 50.0]))).reshape((3,) * 4)
        table = pdp.JointTable(probabilities=cells, domains=[["a", "b", "c"]] * 4)
        exact = leakage(table, pdp.Histogram(), scale=3.0)
        with monkeypatch.context() as patched:
            patched.setattr(search, "FEW_DENSITIES", 0)
            patched.setattr(search, "SET_WORK", 0)
            patched.setattr(search, "GRID_WORK", 0)
            patched.setattr(search, "LOG_WORK", 0)
            patched.setattr(joint_outputs, "VECTOR_WORK", 0)
            found = leakage(table, pdp.Histogram(), scale=3.0)
            scale = pdp.calibrate(table, pdp.Histogram(), epsilon=1.0).scale
        assert found.lower <= exact.value * (1 + 1e-9)
        assert found.value >= exact.lower
        assert found.lower >= 2 / 3 * (1 - 1e-9)
        assert leakage(table, pdp.Histogram(), scale=scale).value <= 1.0
