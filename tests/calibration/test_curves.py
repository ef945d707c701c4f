"""What if: the scale against the correlation, the group size, the confidence."""

import numpy as np
import pandas as pd
import pytest

import pdp_calibrate as pdp


def test_the_scale_grows_with_the_assumed_correlation():
    curve = pdp.sensitivity_curve(
        lambda rho: pdp.GaussianGroup(size=4, correlation=rho, bounds=(0, 1)),
        pdp.Sum(clamp=True),
        values=[0, 0.1, 0.2],
        epsilon=2.0,
        parameter="correlation",
    )
    assert curve.scales == pytest.approx([0.5, 0.65, 0.8], rel=1e-6)
    assert curve.leakages == pytest.approx([2.0, 2.6, 3.2], rel=1e-6)
    assert curve.reference_scale == min(curve.scales)
    assert curve.values == (0, 0.1, 0.2)
    frame = curve.to_frame()
    assert list(frame.columns) == ["correlation", "scale", "leakage"]
    assert frame["scale"].tolist() == list(curve.scales)
    assert repr(curve).startswith("SensitivityCurve(correlation 0 … 0.2: scale 0.5 to 0.8")


def test_the_scale_grows_with_the_group_and_a_scale_may_be_given():
    curve = pdp.sensitivity_curve(
        lambda size: pdp.Unknown(size=size, domain=[0, 1]),
        pdp.Sum(),
        values=range(1, 5),
        parameter="size",
        reference_scale=2.0,
    )
    assert curve.scales == pytest.approx([1, 2, 3, 4], rel=1e-6)
    assert curve.leakages == pytest.approx([0.5, 1, 1.5, 2], rel=1e-6)
    assert curve.reference_scale == 2.0


def test_the_scale_grows_with_the_confidence():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(200, 2)) @ [[1, 0.5], [0, 1]], columns=["x", "y"])
    curve = pdp.sensitivity_curve(
        lambda sure: (
            pdp.GaussianEstimator(bounds=(-4, 4), confidence=sure, source="public")
            .fit(frame)
            .model_
        ),
        pdp.Sum(),
        values=[0.5, 0.9, 0.999],
        parameter="confidence",
    )
    assert list(curve.scales) == sorted(curve.scales)
    assert curve.scales[0] < curve.scales[2]
    for value, scale in zip(curve.leakages, curve.scales, strict=True):
        assert value >= curve.epsilon * (1 - 1e-9)
        assert scale >= curve.reference_scale


def test_restricted_adversaries_are_passed_on():
    def family(p):
        return pdp.JointTable(
            probabilities=[[p / 2, (1 - p) / 2], [(1 - p) / 2, p / 2]], domains=[[0, 1]] * 2
        )

    everyone = pdp.sensitivity_curve(family, pdp.Sum(), values=[0.3])
    weakest = pdp.sensitivity_curve(
        family, pdp.Sum(), values=[0.3], adversaries=pdp.Adversaries.weakest()
    )
    assert weakest.scales[0] < everyone.scales[0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"values": []}, "at least one"),
        ({"values": [1], "epsilon": -1.0}, "epsilon must be positive"),
        ({"values": [1], "parameter": "scale"}, "other than scale"),
        ({"values": [1], "reference_scale": 0.0}, "scale must be positive"),
    ],
)
def test_bad_questions_are_refused(options, message):
    with pytest.raises(pdp.PdpError, match=message):
        pdp.sensitivity_curve(
            lambda size: pdp.Unknown(size=size, domain=[0, 1]), pdp.Sum(), **options
        )
    with pytest.raises(pdp.PdpError, match="single query"):
        pdp.sensitivity_curve(
            lambda size: pdp.Unknown(size=size, domain=[0, 1]), [pdp.Sum()], values=[1]
        )


def test_a_private_family_warns():
    private = pdp.JointTable(
        probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, 1]] * 2, provenance="private"
    )
    with pytest.warns(pdp.PrivacyLeakWarning):
        pdp.sensitivity_curve(lambda _: private, pdp.Sum(), values=[0])
