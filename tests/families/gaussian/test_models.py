"""Gaussian models: what they accept, refuse, store and show."""

import numpy as np
import pytest

import pdp_calibrate as pdp
from pdp_calibrate.core.model import Model

PAIR = [[1.0, 0.5], [0.5, 1.0]]


def test_domains_are_the_ends_of_the_ranges_and_the_mean_defaults_to_their_middle():
    model = pdp.Gaussian(covariance=PAIR, bounds=[(0, 10), (-1, 3)])
    assert model.domains == ((0.0, 10.0), (-1.0, 3.0))
    assert model.mean.tolist() == [5.0, 1.0]
    assert model.is_continuous
    assert model.names == ("x1", "x2")
    assert model.widths.tolist() == [10.0, 4.0]


def test_arrays_are_copied_and_read_only():
    given = np.array(PAIR)
    model = pdp.Gaussian(covariance=given, bounds=(0, 1))
    given[0, 0] = 9.0
    assert model.covariance[0, 0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        model.covariance[0, 0] = 2.0


def test_a_published_correlation_matrix():
    model = pdp.Gaussian.from_correlation(PAIR, std=[2.0, 3.0], bounds=(0, 1), mean=[1, 2])
    assert model.covariance.tolist() == [[4.0, 3.0], [3.0, 9.0]]
    assert model == pdp.Gaussian(covariance=[[4, 3], [3, 9]], bounds=(0, 1), mean=[1, 2])


@pytest.mark.parametrize(
    ("covariance", "words"),
    [
        ([[1.0, 2.0], [2.0, 1.0]], "positive definite"),
        ([[1.0, 1.0], [1.0, 1.0]], "Shrink"),
        ([[1.0, 0.5], [0.4, 1.0]], "symmetric"),
        ([[1.0, np.nan], [np.nan, 1.0]], "finite"),
        ([[1.0, 0.0], [0.0, 0.0]], "positive variances"),
        ([[1.0, 0.5]], "square"),
        ([], "square"),
        ("abc", "array of numbers"),
    ],
)
def test_bad_covariances_are_refused(covariance, words):
    with pytest.raises(pdp.ModelError, match=words):
        pdp.Gaussian(covariance=covariance, bounds=(0, 1))


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        ((1, 0), "lo < hi"),
        ((1, 1), "lo < hi"),
        ((0, np.inf), "finite"),
        ((-1e308, 1e308), "finite"),
        ((0, np.nan), "finite"),
        ([(0, 1)], "one such pair per tuple"),
        ([(0, 1)] * 3, "one such pair per tuple"),
        ("ab", "bounds must be"),
    ],
)
def test_bad_bounds_are_refused(bounds, words):
    with pytest.raises(pdp.ModelError, match=words):
        pdp.Gaussian(covariance=PAIR, bounds=bounds)


def test_other_bad_input_is_refused():
    with pytest.raises(pdp.ModelError, match="one per tuple"):
        pdp.Gaussian(covariance=PAIR, bounds=(0, 1), names=["a"])
    with pytest.raises(pdp.ModelError, match="differ"):
        pdp.Gaussian(covariance=PAIR, bounds=(0, 1), names=["a", "a"])
    with pytest.raises(pdp.ModelError, match="mean"):
        pdp.Gaussian(covariance=PAIR, bounds=(0, 1), mean=[1.0])
    with pytest.raises(pdp.ModelError, match="diagonal"):
        pdp.Gaussian.from_correlation([[2.0, 0.5], [0.5, 1.0]], bounds=(0, 1))
    with pytest.raises(pdp.ModelError, match=r"\[-1, 1\]"):
        pdp.Gaussian.from_correlation([[1.0, 1.5], [1.5, 1.0]], bounds=(0, 1))
    with pytest.raises(pdp.ModelError, match="std"):
        pdp.Gaussian.from_correlation(PAIR, std=[1.0, -1.0], bounds=(0, 1))
    with pytest.raises(pdp.ModelError, match="square"):
        pdp.Gaussian.from_correlation([1.0, 0.5], bounds=(0, 1))


@pytest.mark.parametrize("radius", [-0.1, 1.0, np.nan, "0.1", None, True])
def test_bad_balls_are_refused(radius):
    center = pdp.Gaussian(covariance=PAIR, bounds=(0, 1))
    with pytest.raises(pdp.ModelError, match="radius"):
        pdp.LoewnerBall(center=center, radius=radius)


def test_bad_samples_are_refused():
    center = pdp.Gaussian(covariance=PAIR, bounds=(0, 1))
    with pytest.raises(pdp.ModelError, match="at least 4 rows"):
        pdp.SampledGaussian(center=center, rows=3)
    with pytest.raises(pdp.ModelError, match="whole number"):
        pdp.SampledGaussian(center=center, rows=10.5)
    with pytest.raises(pdp.ModelError, match="confidence"):
        pdp.SampledGaussian(center=center, rows=10, confidence=1.0)
    with pytest.raises(pdp.ModelError, match="Gaussian"):
        pdp.SampledGaussian(center=PAIR, rows=10)
    with pytest.raises(pdp.ModelError, match="needs at least"):
        pdp.LoewnerBall.radius_for(rows=5, tuples=5, confidence=0.95)


def models() -> list[Model]:
    center = pdp.Gaussian(
        covariance=PAIR, bounds=[(0, 1), (0, 2)], names=["a", ("b", 1)], provenance="public"
    )
    return [
        center,
        pdp.LoewnerBall(center=center, radius=0.25),
        pdp.SampledGaussian(center=center, rows=50, confidence=0.9),
    ]


@pytest.mark.parametrize("model", models(), ids=lambda model: type(model).__name__)
def test_json_round_trip(model):
    again = Model.from_dict(model.to_dict())
    assert again == model
    assert hash(again) == hash(model)
    assert again.domains == model.domains


@pytest.mark.parametrize("model", models(), ids=lambda model: type(model).__name__)
def test_repr_shows_no_parameter(model):
    assert "0.5" not in repr(model)
    assert "0.25" not in repr(model)


def test_a_private_model_keeps_its_parameters():
    center = pdp.Gaussian(covariance=PAIR, bounds=(0, 1), provenance="private")
    for model in (center, pdp.LoewnerBall(center=center, radius=0.1)):
        assert "covariance" not in str(model.to_dict())
        assert Model.from_dict(model.to_dict()) is None


def test_sets_inherit_provenance_and_differ_from_their_centre():
    center = pdp.Gaussian(covariance=PAIR, bounds=(0, 1), provenance="dp")
    ball = pdp.LoewnerBall(center=center, radius=0.0)
    assert ball.provenance == "dp"
    assert ball != center


def test_long_names_are_cut_in_repr():
    model = pdp.Gaussian(covariance=np.eye(9), bounds=(0, 1))
    assert repr(model) == "Gaussian(x1, x2, x3, x4, x5, x6, … 9 in all; assumed)"


@pytest.mark.parametrize("query", [pdp.Count(values={1}), pdp.Custom(function=max)])
def test_queries_without_a_closed_form_are_refused(query):
    model = pdp.Gaussian(covariance=PAIR, bounds=(0, 1))
    with pytest.raises(pdp.UnsupportedQueryError, match="Linear"):
        pdp.leakage(model, query)
