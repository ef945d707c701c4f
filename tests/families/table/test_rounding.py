"""What searches of small tables charge for rounding, against sixty digits.

The parts of the answers are no round numbers and the probabilities range over many powers of ten,
so that every operation that is counted rounds.
"""

import itertools
import math
from fractions import Fraction

import mpmath  # type: ignore[import-untyped]
import numpy as np
import pytest

from pdp_calibrate.core.workers import Clock
from pdp_calibrate.families.table.search import search_events, search_sets
from pdp_calibrate.families.table.setting import grid_of
from tests.oracles import exact
from tests.support.random_tables import additive_problem
from tests.support.table_searches import setting_at

SHAPES = [(2, 2, 2), (3, 2, 2, 2), (4, 3, 2)]


@pytest.mark.parametrize("width", [0.5, 3.0, 40.0, 300.0], ids="width {}".format)
@pytest.mark.parametrize("coordinates", [1, 3])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_brackets_hold_the_truth_and_are_narrow(shape, coordinates, width):
    rng = np.random.default_rng([*shape, coordinates, int(2 * width)])
    cells = rng.dirichlet(np.ones(math.prod(shape))) * 10.0 ** rng.uniform(-9, 0, math.prod(shape))
    cells = (cells / cells.sum()).reshape(shape)
    values = [rng.uniform(size=(size, coordinates)) for size in shape]
    spread = sum(float((part.max(axis=0) - part.min(axis=0)).sum()) for part in values)
    scale = spread / width
    setting = setting_at(additive_problem(cells, values), scale)

    law = {place: Fraction(float(cells[place])) for place in np.ndindex(shape)}
    parts = [[[Fraction(float(x)) for x in row] for row in part] for part in values]
    answers = {
        place: tuple(
            sum((part[value][c] for part, value in zip(parts, place, strict=True)), Fraction(0))
            for c in range(coordinates)
        )
        for place in itertools.product(*map(range, shape))
    }
    scales = [scale] * coordinates

    def somebody_else_unknown(_target, known):
        return len(known) < len(shape) - 1

    worst = exact.worst_leakage(law, shape, answers, scales, somebody_else_unknown)
    truth = exact.recomputed(law, shape, answers, scales, worst)

    grid = grid_of(setting)
    assert grid is not None
    for found in (search_events(setting, grid), search_sets(setting, 0.0, Clock(math.inf))):
        assert mpmath.mpf(found.lower) <= truth <= mpmath.mpf(found.upper)
        assert found.upper - found.lower <= 2e-14 * (1 + width) + 3e-13
