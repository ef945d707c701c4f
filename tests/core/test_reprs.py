"""What models show of themselves stays short, and what was said by name is taken by name."""

import numpy as np
import pytest

import pdp_calibrate as pdp

SERIES = pdp.GaussianSeries(length=8760, correlation=0.5, bounds=(0, 1))


def test_many_long_blocks_are_shown_in_a_line():
    model = pdp.Blocks(models=[SERIES] * 6, counts=[1, 2, 3, 4, 5, 6])
    assert repr(model) == (f"Blocks(1 × {SERIES!r}, 2 × {SERIES!r}, 3 × {SERIES!r}, and 3 more)")
    assert len(repr(model)) < 300


def test_bounds_are_given_by_name_as_estimators_take_them():
    matrix = np.array([[1.0, 0.5], [0.5, 1.0]])
    options = {"names": ["a", "b"], "bounds": {"b": (0, 1), "a": (0, 2)}}
    in_order = {"names": ["a", "b"], "bounds": [(0, 2), (0, 1)]}
    for make in (
        lambda **said: pdp.Gaussian(covariance=matrix, **said),
        lambda **said: pdp.Gaussian.from_correlation(matrix, std=2.0, **said),
        lambda **said: pdp.GaussianNetwork(precision=matrix, **said),
    ):
        assert make(**options) == make(**in_order)
        for wrong in ({"a": (0, 2)}, {"a": (0, 2), "c": (0, 1)}):
            with pytest.raises(pdp.ModelError, match="name every column once"):
                make(names=["a", "b"], bounds=wrong)


def test_a_group_knows_its_size_and_shows_the_correlation_that_was_given():
    assert pdp.GaussianGroup(size=4, correlation=0.1, bounds=(0, 1)).size == 4
    with pytest.raises(pdp.ModelError, match=r"got 1\.4\."):
        pdp.GaussianGroup(size=1, correlation=1.4, bounds=(0, 1))
