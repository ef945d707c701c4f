"""Samples of tables: does the certified leakage cover the truth, and is the radius what it says?"""

import itertools
import json
import math

import numpy as np
import pytest

import pdp_calibrate as pdp
from pdp_calibrate.families.table.sampling_radius import noise_reach, sampling_radius

RARE = [[0.994, 0.001], [0.001, 0.004]]  # marginals .995/.005
FAMILY = np.einsum("a,ab,ac->abc", [0.8, 0.2], [[0.9, 0.1], [0.3, 0.7]], [[0.8, 0.2], [0.4, 0.6]])
UNEVEN = [[0.5, 0.195, 0.005], [0.05, 0.2, 0.05]]
RARE_AMONG_THREE = np.einsum(
    "a,ab,ac->abc", [0.995, 0.005], [[0.9, 0.1], [0.2, 0.8]], [[0.5, 0.5]] * 2
)


def sampled(table, rows, rng, **arguments):
    """Draw rows from a table and return the set that they leave possible."""
    cells = np.asarray(table)
    counts = rng.multinomial(rows, cells.ravel()).reshape(cells.shape)
    scale = arguments.get("noise_scale", 0.0)
    if scale:
        odds = -math.expm1(-1 / scale)
        counts = counts + rng.geometric(odds, cells.shape) - rng.geometric(odds, cells.shape)
    domains = [list(range(size)) for size in cells.shape]
    return pdp.SampledTable(counts=counts, domains=domains, **arguments)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "rows", "noise_scale"),
    [
        (RARE, 300, 0.0),
        (RARE, 100_000, 0.0),
        (FAMILY, 500, 0.0),
        (FAMILY, 20_000, 0.0),
        (UNEVEN, 3_000, 0.0),
        (RARE_AMONG_THREE, 50_000, 0.0),
        (RARE, 100_000, 2.0),
        (FAMILY, 20_000, 10.0),
    ],
)
def test_three_hundred_samples_cover_the_true_leakage(table, rows, noise_scale):
    rng = np.random.default_rng(rows)
    cells = np.asarray(table)
    truth = pdp.JointTable(probabilities=cells, domains=[range(size) for size in cells.shape])
    true = pdp.leakage(truth, pdp.Sum(), scale=0.7).value
    draws = [sampled(table, rows, rng, noise_scale=noise_scale) for _ in range(300)]
    certified = [pdp.leakage(draw, pdp.Sum(), scale=0.7).value for draw in draws]
    assert np.mean(np.array(certified) < true) <= 0.05
    assert max(certified) <= pdp.leakage(_unknown(cells), pdp.Sum(), scale=0.7).value * (1 + 1e-9)


def _unknown(cells):
    """Group privacy of the same shape: a ball that holds every table."""
    center = pdp.JointTable(probabilities=cells, domains=[range(size) for size in cells.shape])
    return pdp.ConditionalBall(center=center, radius=1.0)


def test_believing_the_sample_itself_does_not_cover():
    rng = np.random.default_rng(0)
    cells = np.asarray(FAMILY)
    domains = [range(2)] * 3
    truth = pdp.JointTable(probabilities=cells, domains=domains)
    true = pdp.leakage(truth, pdp.Sum(), scale=0.7).value
    below = 0
    for _ in range(100):
        counts = rng.multinomial(2000, cells.ravel()).reshape(cells.shape)
        plain = pdp.JointTable(probabilities=counts / 2000, domains=domains)
        below += pdp.leakage(plain, pdp.Sum(), scale=0.7).value < true
    assert below > 20


@pytest.mark.parametrize("noise_scale", [0.0, 3.0])
def test_every_conditional_law_lies_in_its_ball(noise_scale):
    """The promise behind the coverage, looked at directly, for the sum of three columns."""
    from pdp_calibrate.core.query import lower
    from pdp_calibrate.families.table.set_laws import Reachable, balls_of

    rng = np.random.default_rng(1)
    failures, narrow = 0, 1.0
    for _ in range(60):
        model = sampled(FAMILY, 5000, rng, confidence=0.8, noise_scale=noise_scale)
        reachable = Reachable(lower(pdp.Sum(), model))
        outside = False
        for target, known in itertools.product(range(3), range(3)):
            if target == known:
                continue
            (unknown,) = {0, 1, 2} - {target, known}
            balls = balls_of(model, reachable, target, (unknown,))
            masses = np.asarray(FAMILY).transpose(known, target, unknown)
            true = masses / masses.sum(axis=-1, keepdims=True)
            distance = np.abs(true - balls.laws).sum(axis=-1) / 2
            outside |= bool(np.any(distance > balls.radii))
            narrow = min(narrow, float(balls.radii.min()))
        failures += outside
    assert failures <= 12
    assert narrow < 0.1


def test_the_radius_uses_possible_values_and_rows():
    one = float(sampling_radius(np.array(1000), 2, math.log(20)))
    assert one == pytest.approx(math.sqrt(math.log(2 * 20) / 2000))
    many = float(sampling_radius(np.array(1000), 60, math.log(20)))
    assert many == pytest.approx(math.sqrt(math.log((2**60 - 2) * 20) / 2000))
    assert sampling_radius(np.array([0.0, -3.0, 1.0]), 5, math.log(20)).tolist() == [1.0] * 3
    assert sampling_radius(np.array([0.0, 10.0]), 1, math.log(20)).tolist() == [0.0, 0.0]


@pytest.mark.parametrize(("cells", "values", "scale"), [(1, 2, 1.0), (8, 4, 3.0), (16, 3, 0.5)])
def test_the_reach_of_the_noise_holds_and_is_not_far_off(cells, values, scale):
    rng = np.random.default_rng(cells)
    failure = 0.02
    reach = noise_reach(scale, cells, values, math.log(1 / failure))
    odds = -math.expm1(-1 / scale)
    shape = (40_000, cells)
    noise = (rng.geometric(odds, shape) - rng.geometric(odds, shape)).astype(float)
    groups = np.array_split(noise, min(values, cells), axis=1)
    sums = np.stack([group.sum(axis=1) for group in groups], axis=1)
    worst = np.maximum(np.maximum(sums, 0).sum(axis=1), np.maximum(-sums, 0).sum(axis=1))
    assert np.mean(worst >= reach) <= failure
    assert reach <= 4 * np.quantile(worst, 1 - failure) + 4 * scale


def test_more_rows_less_confidence_and_less_noise_never_leak_more():
    cells = (np.asarray(FAMILY) * 1000).round().astype(int)
    domains = [[0, 1]] * 3

    def leaks(counts, **arguments):
        return pdp.leakage(
            pdp.SampledTable(counts=counts, domains=domains, **arguments), pdp.Sum()
        ).value

    by_rows = [leaks(cells * times) for times in (1, 10, 100, 10_000)]
    by_confidence = [leaks(cells * 10, confidence=c) for c in (0.999, 0.95, 0.5)]
    by_noise = [leaks(cells * 10, noise_scale=s) for s in (50.0, 5.0, 0.5)]
    for values in (by_rows, by_confidence, by_noise):
        assert all(a > b for a, b in itertools.pairwise(values))
    exact = pdp.JointTable(probabilities=cells / cells.sum(), domains=domains)
    assert by_rows[-1] == pytest.approx(pdp.leakage(exact, pdp.Sum()).value, rel=0.02)
    assert by_noise[-1] > leaks(cells * 10)


def test_too_few_rows_lead_to_group_privacy_and_words_say_so():
    model = pdp.SampledTable(
        counts=[[2, 1], [0, 1]], domains=[[0, 1]] * 2, names=["mother", "child"]
    )
    cal = pdp.calibrate(model, pdp.Sum(), epsilon=1.0)
    assert cal.scale == pytest.approx(cal.baselines["group"])
    words = pdp.explain(cal)
    assert "too few rows" in words
    assert "probability at most 0.05" in words
    enough = pdp.SampledTable(counts=[[40_000, 10_000], [10_000, 40_000]], domains=[[0, 1]] * 2)
    assert "too few rows" not in pdp.explain(pdp.calibrate(enough, pdp.Sum(), epsilon=1.0))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"counts": [[1, 2, 3], [4, 5, 6]]}, "shape"),
        ({"counts": [1, 2, 3, 4]}, "shape"),
        ({"counts": [[1, -2], [3, 4]]}, "noise_scale"),
        ({"counts": [[1, 2.5], [3, 4]]}, "whole"),
        ({"counts": [[1, math.nan], [3, 4]]}, "finite"),
        ({"counts": [["a", 1], [3, 4]]}, "numbers"),
        ({"counts": [[0, 0], [0, 0]]}, "at least one row"),
        ({"counts": [[2**53, 1], [3, 4]]}, "2\\^53"),
        ({"confidence": 0.0}, "strictly between"),
        ({"confidence": 1.0}, "strictly between"),
        ({"confidence": math.nan}, "strictly between"),
        ({"confidence": "high"}, "number"),
        ({"noise_scale": -1.0}, "zero or more"),
        ({"noise_scale": math.inf}, "zero or more"),
        ({"domains": [[0, 1]]}, "shape"),
        ({"domains": [[0, 0], [0, 1]]}, "repeat"),
        ({"names": ["a"]}, "one per tuple"),
        ({"provenance": "stolen"}, "provenance"),
    ],
)
def test_bad_samples_are_refused(changes, words):
    good = {"counts": [[1, 2], [3, 4]], "domains": [[0, 1], [0, 1]]}
    with pytest.raises(pdp.ModelError, match=words):
        pdp.SampledTable(**good | changes)


@pytest.mark.parametrize("radius", [-0.1, 1.1, math.nan, math.inf, "wide", True])
def test_bad_balls_are_refused(radius):
    center = pdp.JointTable(probabilities=[[0.5, 0.0], [0.0, 0.5]], domains=[[0, 1]] * 2)
    with pytest.raises(pdp.ModelError, match="radius"):
        pdp.ConditionalBall(center=center, radius=radius)
    with pytest.raises(pdp.ModelError, match="JointTable"):
        pdp.ConditionalBall(center=[[0.5, 0.0], [0.0, 0.5]], radius=0.1)


def test_json_round_trips_and_private_numbers_stay_inside():
    sample = pdp.SampledTable(
        counts=[[411, -2], [37, 593]], domains=[[0, 1], ["no", "yes"]], noise_scale=1.5,
        confidence=0.9, names=["a", "b"], provenance="dp",
    )  # fmt: skip
    ball = pdp.ConditionalBall(
        center=pdp.JointTable(probabilities=[[0.411, 0.089], [0.2, 0.3]], domains=[[0, 1]] * 2),
        radius=0.123,
    )
    for model in (sample, ball):
        again = type(model).from_dict(json.loads(json.dumps(model.to_dict())))
        assert again == model
        assert hash(again) == hash(model)
    secret = pdp.SampledTable(
        counts=sample.counts.clip(0), domains=sample.domains, provenance="private"
    )
    hidden = pdp.ConditionalBall(center=ball.center, radius=0.123, provenance="private")
    for model in (secret, hidden):
        text = json.dumps(model.to_dict()) + repr(model)
        assert not any(number in text for number in ("411", "593", "0.123", "0.089"))
        assert type(model).from_dict(model.to_dict()) is None
    with pytest.raises(ValueError, match="read-only"):
        sample.counts[0, 0] = 1
    large = pdp.SampledTable(counts=np.ones((101, 100)), domains=[range(101), range(100)])
    assert "counts" not in large.to_dict()
    assert large.to_dict()["digest"] == large.digest
    assert sample != pdp.SampledTable(counts=sample.counts, domains=sample.domains, noise_scale=1.0)
