"""The root finder on curves whose answer is known, jumps included."""

import math

import pytest

from pdp_calibrate.calibration.solve import smallest_scale
from pdp_calibrate.errors import CalibrationError


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
