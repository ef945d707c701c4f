"""The root finder, and mere bounds, on curves whose answer is known, jumps included."""

import math

import pytest

import pdp_calibrate as pdp
from pdp_calibrate.calibration.solve import _Ascent, smallest_scale
from pdp_calibrate.core.problem import Bracket
from pdp_calibrate.errors import CalibrationError
from pdp_calibrate.families.network.search import NetworkEngine
from tests.support.networks import regular_tree


@pytest.mark.parametrize(
    ("curve", "target", "truth"),
    [
        (lambda s: 3 / s, 1.5, 2.0),
        (lambda s: math.exp(-s), 1e-9, -math.log(1e-9)),
        (lambda s: 1 / s + 1 / s**3, 0.5, 2.3593040859718),
        (lambda s: 2.0 if s < 7 else 0.5, 1.0, 7.0),
        (lambda s: 2.0 if s < 1e-5 else 1.0, 1.0, 1e-5),
        (lambda s: 1 + 1e-6 * max(0.0, 4 - s), 1.0, 4.0),
    ],
)
@pytest.mark.parametrize("high", [1e-3, 1.0, 1e4])
def test_lands_on_the_private_side_and_close(curve, target, truth, high):
    scale = smallest_scale(curve, target, low=1e-8, high=high)
    assert curve(scale) <= target
    assert scale == pytest.approx(truth, rel=1e-9)


def test_a_good_low_end_is_returned_as_it_is():
    assert smallest_scale(lambda _: 0.1, 1.0, low=0.25, high=3.0) == 0.25


def test_a_curve_that_never_falls_raises():
    with pytest.raises(CalibrationError, match="stays above"):
        smallest_scale(lambda _: 2.0, 1.0, low=1e-3, high=1.0)


def test_not_a_number_raises():
    with pytest.raises(CalibrationError, match="not a number"):
        smallest_scale(lambda s: math.nan if s > 1 else 2.0, 1.0, low=1e-3, high=2.0)


def test_a_curve_that_trembles_by_rounding_still_ends_on_the_private_side():
    def trembling(scale: float) -> float:
        return 1 / scale * (1 + 1e-15 * (hash(scale) % 7))

    scale = smallest_scale(trembling, 0.3, low=1e-3, high=10.0)
    assert trembling(scale) <= 0.3


class Bounds(_Ascent):
    """An ascent that hears of a bound on everyone, and of nobody who leaks that much."""

    def __init__(self, curve, deadline=math.inf):
        super().__init__(1.0, rounding=0.0, deadline=deadline, low=1.0, high=1e4)
        self.curve, self.tried = curve, []

    def _search(self, parts, scale, **_):
        self.tried.append(scale)
        upper = self.curve(scale)
        bound = Bracket(upper=upper, lower=0.0, witness=None, target=0, unknown=())
        return bound, parts[0]

    def _raise_for(self, case):
        self._solved[case] = self.curve


@pytest.mark.parametrize(
    ("curve", "truth", "searches"),
    [
        (lambda s: 3 / s, 3.0, 8),
        (lambda s: 1.02 / s, 1.02, 5),
        (lambda s: (2 / s) ** 0.3, 2.0, 25),
        (lambda s: (2.3 / s) ** 5, 2.3, 12),
        (lambda s: 1 / s + 1 / s**3, 1.4655712318767682, 12),
        (lambda s: 1 + 1e-9 if s < 7 else 0.5, 7.0, 60),
        (lambda s: 1e300 if s < 7 else 0.0, 7.0, 60),
        (lambda s: math.inf if s < 7 else 1.0, 7.0, 70),
    ],
)
def test_a_mere_bound_is_followed_to_where_it_keeps_epsilon(curve, truth, searches):
    ascent = Bounds(curve)
    assert ascent.settle([None]).upper <= 1
    assert curve(ascent.scale) <= 1
    assert truth * (1 - 1e-12) <= ascent.scale <= truth * (1 + 1.01e-4)
    assert len(ascent.tried) <= searches


def test_where_no_time_is_left_a_bound_is_met_in_large_steps():
    ascent = Bounds(lambda s: 3 / s, deadline=-math.inf)
    ascent.settle([None])
    assert ascent.tried == pytest.approx([1, 1.25, 1.875, 3.75])


def test_a_tree_whose_bound_is_above_its_worst_adversary_takes_few_searches(monkeypatch):
    searches, search = [], NetworkEngine.search

    def counted(self, scale, limits):
        searches.append(scale)
        return search(self, scale, limits)

    monkeypatch.setattr(NetworkEngine, "search", counted)
    tree = regular_tree(200, 3, 0.55)
    scale = pdp.calibrate(tree, pdp.Sum(), epsilon=1.0).scale
    assert len(searches) <= 40  # 70 when slack grew from 1e-12 by doubling
    assert pdp.leakage(tree, pdp.Sum(), scale=scale).value <= 1
    assert pdp.leakage(tree, pdp.Sum(), scale=scale * (1 - 1.1e-4)).value > 1
