"""Calibrated scales: sound, tight, ordered, and proved again when read back."""

import json
import math

import numpy as np
import pytest

import pdp_calibrate as pdp
from tests.oracles import brute_force as oracle
from tests.support.marks import slow_after
from tests.support.random_models import adversary_kinds, random_case

FAMILY = pdp.JointTable(
    probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, 1]] * 2, names=["mother", "child"]
)


@pytest.mark.parametrize("seed", slow_after(40, range(100)))
def test_sound_tight_and_ordered(seed):
    rng = np.random.default_rng(seed)
    case = random_case(rng)
    epsilon = float(np.exp(rng.uniform(-2, 1.5)))
    cal = pdp.calibrate(case.table, case.query, epsilon=epsilon)
    truth = [
        oracle.worst_leakage(
            case.probabilities, case.domains, case.function, scale, lambda i, known: True  # noqa: ARG005
        )[0]
        for scale in (cal.scale, cal.scale * (1 - 1e-6))
    ]  # fmt: skip
    assert cal.leakage.value <= epsilon
    assert truth[0] <= epsilon * (1 + 1e-15)
    assert truth[1] > epsilon
    dp, wasserstein, group = (cal.baselines[name] for name in ("dp", "wasserstein", "group"))
    assert dp <= cal.scale * (1 + 1e-12)
    assert cal.scale <= wasserstein * (1 + 1e-8)
    assert wasserstein <= group * (1 + 1e-12)


@pytest.mark.parametrize("seed", slow_after(15, range(40)))
def test_restricted_adversaries_get_a_sound_and_tight_scale_or_an_explanation(seed):
    rng = np.random.default_rng(500 + seed)
    case = random_case(rng)
    for adversaries, admits in adversary_kinds(rng, case.table.names):

        def truth(scale, admits=admits):
            return oracle.worst_leakage(
                case.probabilities, case.domains, case.function, scale, admits
            )[0]

        try:
            cal = pdp.calibrate(case.table, case.query, epsilon=0.8, adversaries=adversaries)
        except pdp.CalibrationError:
            assert truth(1e-4) <= 0.8
            continue
        assert cal.leakage.value <= 0.8
        assert truth(cal.scale) <= 0.8 * (1 + 1e-14)
        assert truth(cal.scale * (1 - 1e-6)) > 0.8


@pytest.mark.parametrize("seed", slow_after(10, range(30)))
def test_the_wasserstein_scale_equals_the_oracle(seed):
    rng = np.random.default_rng(seed)
    case = random_case(rng)
    for adversaries, admits in adversary_kinds(rng, case.table.names):
        try:
            cal = pdp.calibrate(case.table, case.query, epsilon=2.0, adversaries=adversaries)
        except pdp.CalibrationError:
            continue
        truth = oracle.wasserstein_infinity(case.probabilities, case.domains, case.function, admits)
        assert cal.baselines["wasserstein"] == pytest.approx(truth / 2, rel=1e-9, abs=1e-12)


def test_no_scale_is_needed_where_every_secret_leaves_the_same_answers():
    table = pdp.JointTable(probabilities=[[0.25, 0.25], [0.25, 0.25]], domains=[[0, 1]] * 2)
    with pytest.raises(pdp.CalibrationError, match="however small the scale"):
        pdp.calibrate(
            table, pdp.Sum(over=["x2"]), epsilon=1.0, adversaries=pdp.Adversaries.exactly("x1")
        )


def test_a_constant_answer_has_nothing_to_protect():
    with pytest.raises(pdp.CalibrationError, match="nothing to protect"):
        pdp.calibrate(FAMILY, pdp.Custom(function=lambda _: 3.0))


@pytest.mark.parametrize("epsilon", [0, -1, math.nan, math.inf, "1", None, True])
def test_epsilon_must_be_positive_and_finite(epsilon):
    with pytest.raises(pdp.PdpError, match="epsilon must be"):
        pdp.calibrate(FAMILY, pdp.Sum(), epsilon=epsilon)


@pytest.mark.parametrize("scale", [0.0, -1.0, math.nan, math.inf])
def test_scale_must_be_positive_and_finite(scale):
    with pytest.raises(pdp.PdpError, match="scale must be"):
        pdp.leakage(FAMILY, pdp.Sum(), scale=scale)


@pytest.mark.parametrize("rows", [0, -3, 2.5])
def test_rows_must_be_a_positive_whole_number(rows):
    with pytest.raises(pdp.QueryError, match="rows must be"):
        pdp.calibrate(FAMILY, pdp.Mean(), rows=rows)


def test_time_limit_must_not_be_negative():
    with pytest.raises(pdp.PdpError, match="time_limit"):
        pdp.leakage(FAMILY, pdp.Sum(), time_limit=-1)


@pytest.mark.parametrize("seed", range(10))
def test_a_time_limit_of_nothing_still_gives_a_sound_scale(seed):
    case = random_case(np.random.default_rng(seed))
    hurried = pdp.calibrate(case.table, case.query, epsilon=0.7, time_limit=0)
    exact = pdp.calibrate(case.table, case.query, epsilon=0.7)
    assert hurried.leakage.value <= 0.7
    assert hurried.scale >= exact.scale * (1 - 1e-9)


def test_a_mean_over_rows_needs_the_scale_of_a_sum_divided_by_all_values():
    total = pdp.calibrate(FAMILY, pdp.Sum())
    mean = pdp.calibrate(FAMILY, pdp.Mean(), rows=100)
    assert mean.scale == pytest.approx(total.scale / 200, rel=1e-8)


def test_rounding_of_a_real_answer_is_paid_for():
    """Far from zero a float sum is coarse; the scale must cover it for up to 2^20 rows."""
    table = pdp.JointTable(probabilities=[0.5, 0.5], domains=[[1e9, 1e9 + 0.1]])
    cal = pdp.calibrate(table, pdp.Sum(), epsilon=1.0)
    error = 2.0**-52 * (1e9 + 0.1) * 2**20
    sensitivity = pdp.sensitivity(table, pdp.Sum()).overall
    assert sensitivity / cal.scale + 2 * error / cal.scale <= 1.0
    assert cal.scale == pytest.approx(sensitivity + 2 * error, rel=1e-9)


def test_accuracy_and_the_plain_dp_budget():
    cal = pdp.calibrate(FAMILY, pdp.Mean(), epsilon=0.5, rows=10)
    assert cal.accuracy(alpha=0.05) == pytest.approx(cal.scale * math.log(20))
    assert cal.dp_epsilon == pytest.approx(0.05 / cal.scale)
    with pytest.raises(pdp.PdpError, match="alpha"):
        cal.accuracy(alpha=1.5)


@pytest.mark.parametrize("query", [pdp.Sum(), pdp.Mean()])
@pytest.mark.parametrize("half_width", [1.0, 3.5, 40.0])
def test_calibrate_to_accuracy_keeps_the_width_and_names_the_price(query, half_width):
    cal = pdp.calibrate_to_accuracy(FAMILY, query, half_width=half_width, alpha=0.1)
    assert cal.accuracy(alpha=0.1) <= half_width
    assert cal.leakage.value <= cal.epsilon
    price = pdp.calibrate(FAMILY, query, epsilon=cal.epsilon)
    assert price.scale == pytest.approx(cal.scale, rel=1e-6)
    larger = pdp.leakage(FAMILY, query, scale=cal.scale * 1.001)
    assert larger.value < cal.epsilon
    assert (
        math.floor(half_width) == pytest.approx(pdp.Calibration.accuracy(cal, alpha=0.1), abs=1e-9)
        or not cal.is_integer
    )


@pytest.mark.parametrize(
    ("half_width", "alpha"),
    [(0, 0.05), (-1, 0.05), (math.inf, 0.05), ("1", 0.05), (1, 0), (1, 1), (1, None)],
)
def test_calibrate_to_accuracy_refuses_nonsense(half_width, alpha):
    with pytest.raises(pdp.PdpError, match="alpha" if half_width == 1 else "half_width"):
        pdp.calibrate_to_accuracy(FAMILY, pdp.Sum(), half_width=half_width, alpha=alpha)


@pytest.mark.parametrize(
    "query",
    [
        pdp.Sum(),
        pdp.Mean(over=["child"]),
        pdp.Linear(weights={"mother": 0.5, "child": -2}),
        pdp.Linear(weights=[1, 2]),
        pdp.Count(values={1}),
        pdp.Custom(function=max),
    ],
)
@pytest.mark.parametrize(
    "adversaries",
    [
        pdp.Adversaries.all(),
        pdp.Adversaries.strongest(),
        pdp.Adversaries.knowing(at_least=0, at_most=1),
        pdp.Adversaries.exactly("mother", known=["child"]),
    ],
)
def test_json_goes_both_ways(query, adversaries):
    cal = pdp.calibrate(FAMILY, query, epsilon=1.5, adversaries=adversaries)
    text = cal.to_json()
    assert json.loads(text)["schema"] == "pdp-calibrate/1"
    again = pdp.Calibration.from_json(text)
    assert (again.scale, again.epsilon, again.model) == (cal.scale, cal.epsilon, cal.model)
    assert again.adversaries == cal.adversaries
    assert again.leakage.value == pytest.approx(cal.leakage.value, rel=1e-9)
    assert pdp.verify(again).value <= 1.5


def test_a_tampered_calibration_is_refused():
    described = json.loads(pdp.calibrate(FAMILY, pdp.Sum(), epsilon=1.0).to_json())
    described["scale"] *= 0.999
    with pytest.raises(pdp.CalibrationError, match="leaks up to"):
        pdp.Calibration.from_json(json.dumps(described))


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"schema": "pdp-calibrate/1", "type": "Release"}']
)
def test_other_json_is_refused(text):
    with pytest.raises(pdp.PdpError):
        pdp.Calibration.from_json(text)


def test_every_missing_field_is_named():
    described = json.loads(pdp.calibrate(FAMILY, pdp.Sum()).to_json())
    for key in ("scale", "epsilon", "rows", "query", "adversaries", "model"):
        lacking = {k: v for k, v in described.items() if k != key}
        with pytest.raises(pdp.PdpError, match=key):
            pdp.Calibration.from_json(json.dumps(lacking))


@pytest.mark.compiled
def test_a_large_table_is_stored_as_its_digest():
    rng = np.random.default_rng(0)
    cells = rng.dirichlet(np.ones(101 * 100)).reshape(101, 100)
    table = pdp.JointTable(probabilities=cells, domains=[range(101), range(100)])
    cal = pdp.calibrate_to_accuracy(table, pdp.Sum(), half_width=300)
    text = cal.to_json()
    assert "probabilities" not in text
    assert table.digest in text
    assert pdp.Calibration.from_json(text, model=table).scale == cal.scale
    with pytest.raises(pdp.CalibrationError, match="withholds the model"):
        pdp.Calibration.from_json(text)
    other = pdp.JointTable(probabilities=cells[::-1], domains=[range(101), range(100)])
    with pytest.raises(pdp.CalibrationError, match="not the one"):
        pdp.Calibration.from_json(text, model=other)


def test_a_private_model_warns_and_stays_out_of_json():
    table = pdp.JointTable(
        probabilities=[[0.412345, 0.087655], [0.1, 0.4]], domains=[[0, 1]] * 2, provenance="private"
    )
    with pytest.warns(pdp.PrivacyLeakWarning, match="private rows"):
        cal = pdp.calibrate(table, pdp.Sum())
    text = cal.to_json()
    for secret in ("412345", "witness", "lower", table.digest):
        assert secret not in text
    assert "412345" not in repr(table) + repr(cal) + pdp.explain(cal)
    assert pdp.Calibration.from_json(text, model=table).scale == cal.scale
