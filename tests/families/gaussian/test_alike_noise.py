"""Gaussian noise on groups and series: closed forms against brute force over all adversaries."""

import math

import numpy as np
import pytest

import pdp_calibrate as pdp
from pdp_calibrate.core.contributions import Contributions
from pdp_calibrate.core.gaussian_dp import mu_of
from pdp_calibrate.core.problem import split
from pdp_calibrate.core.query import lower
from pdp_calibrate.families.gaussian import alike_noise
from pdp_calibrate.families.gaussian.alike_noise import AlikeNoiseEngine
from tests.oracles import gaussian_noise as oracle

MU = mu_of(1.0, 1e-6)


def engine_for(model, rows, scales=None, adversaries=None, **options):
    parts = [lower(pdp.Linear(weights=[float(w) for w in row]), model) for row in rows]
    contributions = parts[0] if scales is None else Contributions.joined(parts, scales)
    (problem,) = split(model, contributions, adversaries or pdp.Adversaries.all())
    return AlikeNoiseEngine(problem, **options)


def group_matrix(size, rho):
    return rho + (1 - rho) * np.eye(size)


def series_matrix(size, phi):
    return np.array([[float(phi) ** abs(r - c) for c in range(size)] for r in range(size)])


def household(rho=0.4, size=4):
    return pdp.GaussianGroup(size=size, correlation=rho, bounds=(0, 4), variance=1.0)


@pytest.mark.parametrize(
    ("mu", "scale", "known"),
    [
        (MU, 37.1238775377, 0), (0.5, 17.48713813, 0), (1, 8.572047597, 0), (2, 3.924283374, 0),
        (3, 2.155097317, 0), (4, 1.0, 3), (6, 0.6666666667, 3),
    ],
)  # fmt: skip
def test_the_household(mu, scale, known):
    found = engine_for(household(), [[1] * 4]).bracket(scale)
    assert found.lower <= found.upper == pytest.approx(mu, rel=1e-9)
    assert found.lower == pytest.approx(mu, rel=1e-9)
    assert len(found.witness.known) == known
    share = 3.96 / (3.96 + scale**2) if known == 0 else 0.0
    assert found.witness.data_share == pytest.approx(share, abs=1e-9)


@pytest.mark.parametrize(
    ("correlation", "scale"),
    [((0, 0.4), 37.1238775378), ((-0.2, 0.4), 37.1238775378), ((0.1, 0.6), 47.2808845719)],
)
def test_ranges_at_their_ends(correlation, scale):
    found = engine_for(household(correlation), [[1] * 4]).bracket(scale)
    assert found.lower <= found.upper == pytest.approx(MU, rel=1e-9)
    assert found.lower == pytest.approx(MU, rel=1e-9)


@pytest.mark.parametrize("scale", [0.3, 1.0, 3.0, 20.0])
@pytest.mark.parametrize("weights", [[1, 1, 1, 1], [1, 1, 0, 0], [2, -1, 1, 0]])
def test_a_range_covers_every_correlation_in_it(weights, scale):
    found = engine_for(household((-0.2, 0.5)), [weights]).bracket(scale)
    every = [
        oracle.worst(group_matrix(4, rho), np.array([weights]), [scale], [4] * 4)[0]
        for rho in np.linspace(-0.2, 0.5, 29)
    ]
    assert found.upper >= math.sqrt(max(every)) * (1 - 1e-12)
    assert found.upper <= math.sqrt(max(every)) * (1.05 if len(set(weights)) > 1 else 1 + 1e-9)
    assert found.lower <= math.sqrt(max(every)) * (1 + 1e-12)


@pytest.mark.parametrize(
    ("length", "mu", "scale"),
    [
        (9, MU, math.sqrt(9340.12509102)), (9, 1.5, math.sqrt(219.310883271)),
        (9, 3, math.sqrt(44.6174526578)), (24, MU, 141.262526515), (24, 1, 31.9070582326),
        (24, 2, 13.2990332772), (24, 3, 7.0257914013),
    ],
)  # fmt: skip
def test_the_series(length, mu, scale):
    model = pdp.GaussianSeries(length=length, correlation=0.8, bounds=(0, 4), variance=1.0)
    found = engine_for(model, [[1] * length]).bracket(scale)
    assert found.lower <= found.upper == pytest.approx(mu, rel=1e-9)
    assert found.lower == pytest.approx(mu, rel=1e-9)


@pytest.mark.parametrize("seed", range(40))
def test_series_against_brute_force(seed):
    rng = np.random.default_rng(seed)
    size, phi = int(rng.integers(1, 7)), float(rng.uniform(-0.99, 0.99))
    variance, number = float(10 ** rng.uniform(-1, 1)), int(rng.integers(1, 4))
    rows, scales = rng.normal(size=(number, size)), 10 ** rng.uniform(-1, 1.5, size=number)
    model = pdp.GaussianSeries(length=size, correlation=phi, bounds=(0, 2), variance=variance)
    found = engine_for(model, rows, scales).bracket(1.0)
    truth, target, known = oracle.worst(
        variance * series_matrix(size, phi), rows, scales, [2] * size
    )
    assert found.lower <= math.sqrt(truth) * (1 + 1e-9)
    assert math.sqrt(truth) * (1 - 1e-9) <= found.upper <= found.lower * (1 + 1e-9)
    exact = oracle.gain_mpmath(variance * series_matrix(size, phi), rows, scales, target, known)
    assert found.upper >= math.sqrt(4 * exact) * (1 - 1e-14)  # the matrix itself is rounded


@pytest.mark.parametrize("seed", range(40))
def test_groups_against_brute_force(seed):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 7))
    rho = float(rng.uniform(-0.95 / (size - 1), 0.97))
    variance, number = float(10 ** rng.uniform(-1, 1)), int(rng.integers(1, 3))
    rows = rng.choice([1.0, 1.0, -0.5, 0.0], size=(number, size))
    rows[~rows.any(axis=1)] = 1.0
    scales = 10 ** rng.uniform(-1, 1.5, size=number)
    model = pdp.GaussianGroup(size=size, correlation=rho, bounds=(0, 2), variance=variance)
    found = engine_for(model, rows, scales).bracket(1.0)
    truth, *_ = oracle.worst(variance * group_matrix(size, rho), rows, scales, [2] * size)
    assert found.lower <= math.sqrt(truth) * (1 + 1e-9)
    assert math.sqrt(truth) * (1 - 1e-9) <= found.upper <= found.lower * (1 + 1e-9)


@pytest.mark.parametrize(
    "adversaries",
    [
        pdp.Adversaries.weakest(),
        pdp.Adversaries.strongest(),
        pdp.Adversaries.knowing(at_most=1),
        pdp.Adversaries.knowing(at_least=1, at_most=3),
        pdp.Adversaries.exactly(2, known=[0, 4]),
    ],
    ids=repr,
)
@pytest.mark.parametrize("weights", [[1, 1, 1, 1, 1], [2, 0, -1, 1, 3]])
@pytest.mark.parametrize("kind", ["group", "series"])
def test_restricted_adversaries(kind, weights, adversaries):
    if kind == "group":
        model = household(0.3, 5)
        matrix = group_matrix(5, 0.3)
    else:
        model = pdp.GaussianSeries(length=5, correlation=0.7, bounds=(0, 4), variance=1.0)
        matrix = series_matrix(5, 0.7)
    knowledge = adversaries.resolve(model)

    def admits(target, known):
        if knowledge.known is not None:
            return target in knowledge.targets and set(known) == knowledge.known
        return knowledge.fewest <= len(known) <= knowledge.most

    found = engine_for(model, [weights], adversaries=adversaries).bracket(2.0)
    truth = math.sqrt(oracle.worst(matrix, np.array([weights]), [2.0], [4] * 5, admits)[0])
    assert found.upper >= truth * (1 - 1e-12)
    assert found.lower <= truth * (1 + 1e-12)
    if kind == "group":
        assert found.upper == pytest.approx(truth, rel=1e-9)
    known = [position for position in range(5) if position not in (found.target, *found.unknown)]
    assert set(found.witness.known) == set(known)
    assert admits(found.target, known)
    gain = oracle.gain(matrix, np.array([weights]), [2.0], found.target, known)
    assert found.lower <= 4 * math.sqrt(gain) * (1 + 1e-12)


@pytest.mark.parametrize("seed", range(40))
def test_who_is_named_in_a_series_is_admitted_and_attains_the_lower_end(seed):
    """Whoever knows the ends of a window need not know the points beyond them."""
    rng = np.random.default_rng(seed)
    size, phi, noise = int(rng.integers(2, 6)), rng.uniform(-0.9, 0.9), rng.uniform(0.3, 5)
    most = int(rng.integers(0, size))
    fewest = int(rng.integers(0, most + 1))
    weights = np.append(rng.choice([-1, 0, 1, 2], size - 1), 1)
    model = pdp.GaussianSeries(length=size, correlation=phi, bounds=(0, 1), variance=0.3)
    adversaries = pdp.Adversaries.knowing(at_least=fewest, at_most=most)
    found = engine_for(model, [weights], adversaries=adversaries).bracket(noise)
    known = [p for p in range(size) if p not in (found.target, *found.unknown)]
    assert set(found.witness.known) == set(known)
    assert fewest <= len(known) <= most
    matrix, rows = 0.3 * series_matrix(size, phi), np.array([weights])
    attained = math.sqrt(oracle.gain(matrix, rows, [noise], found.target, known))
    assert found.lower <= attained * (1 + 1e-12) + 1e-12
    admits = lambda _, known: fewest <= len(known) <= most  # noqa: E731
    truth = math.sqrt(oracle.worst(matrix, rows, [noise], [1] * size, admits)[0])
    assert truth <= found.upper * (1 + 1e-12) + 1e-12


def test_a_variance_that_is_not_counted():
    for model in (
        household(),
        pdp.GaussianSeries(length=4, correlation=0.5, bounds=(0, 4), variance=1.0),
    ):
        without = engine_for(model, [[1] * 4], kept=0.0).bracket(2.0)
        assert without.upper == pytest.approx(pdp.leakage(model, pdp.Sum(), scale=2.0).value)
        assert without.upper > engine_for(model, [[1] * 4]).bracket(2.0).upper


def test_repeats_count_in_squares():
    found = engine_for(household(), [[1] * 4] * 52, [267.704088013] * 52).bracket(1.0)
    assert found.upper == pytest.approx(MU, rel=1e-9)


@pytest.mark.parametrize(
    "model",
    [
        household(),
        pdp.GaussianSeries(length=4, correlation=0.5, bounds=(0, 4), variance=1.0),
        pdp.Gaussian(covariance=np.eye(4) + 0.5, bounds=[(0, 1), (0, 2), (0, 4), (0, 3)]),
        pdp.LoewnerBall(center=pdp.Gaussian(covariance=np.eye(4) + 0.5, bounds=(0, 4)), radius=0.1),
    ],
)
def test_who_knows_everyone_else_attains_a_lower_end_of_clamped_answers(model):
    """Nothing moves but what the target adds: one bell curve, shifted by its whole width."""
    rows = [[1.0, 2.0, -1.0, 0.5], [0.5, 1.0, 1.0, 0.0]]
    queries = [pdp.Linear(weights=row, clamp=True) for row in rows]
    scales = [3.0, 5.0]
    widths = [high - low for low, high in model.domains]
    wanted = max(
        width * np.hypot(*(row[place] / s for row, s in zip(rows, scales, strict=True)))
        for place, width in enumerate(widths)
    )
    found = pdp.leakage(model, queries, scale=scales, noise="gaussian")
    assert found.lower == pytest.approx(wanted, rel=1e-9)
    assert found.lower <= wanted
    assert found.lower <= found.value
    assert len(found.witness.known) == 3
    nobody = pdp.Adversaries.weakest()
    assert (
        pdp.leakage(model, queries[0], scale=3.0, noise="gaussian", adversaries=nobody).lower == 0.0
    )


def test_groups_and_series_too_large_to_search_are_bounded(monkeypatch):
    monkeypatch.setattr(alike_noise, "COUNTED_MEMBERS", 1)
    monkeypatch.setattr(alike_noise, "MATRIX_MEMBERS", 2)
    monkeypatch.setattr(alike_noise, "SERIES_WINDOWS", 2)
    for model in (
        household(),
        pdp.GaussianSeries(length=4, correlation=0.5, bounds=(0, 4), variance=1.0),
    ):
        bounded = engine_for(model, [[1] * 4]).bracket(2.0)
        assert bounded.upper == pytest.approx(pdp.leakage(model, pdp.Sum(), scale=2.0).value)
        assert bounded.lower == pytest.approx(4 / 2.0)
        assert len(bounded.witness.known) == 3


def test_many_members_in_closed_form():
    model = pdp.GaussianGroup(size=20_000, correlation=0.1, bounds=(0, 1), variance=0.04)
    found = engine_for(model, [[1] * 20_000]).bracket(500.0)
    assert found.upper == pytest.approx(found.lower, rel=1e-9)
    slope, spread = 1 + 19_999 * 0.1, 0.04 * 0.9 * 19_999 * (1 + 19_999 * 0.1)
    assert found.upper >= slope / math.sqrt(500.0**2 + spread) * (1 - 1e-12)


def test_a_long_series():
    model = pdp.GaussianSeries(length=300, correlation=0.9, bounds=(0, 4), variance=2.0)
    found = engine_for(model, [[1] * 300]).bracket(40.0)
    assert found.upper == pytest.approx(found.lower, rel=1e-9)
    assert found.upper < pdp.leakage(model, pdp.Sum(), scale=40.0).value


@pytest.mark.parametrize("scale", [0.5, 3.0])
def test_several_answers_over_a_range_cover_every_correlation_in_it(scale):
    rows, scales = [[1, 1, 1], [1, 0, -1]], [scale, 2 * scale]
    found = engine_for(household((-0.3, 0.5), 3), rows, scales).bracket(1.0)
    every = [
        oracle.worst(group_matrix(3, rho), np.array(rows), scales, [4] * 3)[0]
        for rho in np.linspace(-0.3, 0.5, 17)
    ]
    assert found.upper >= math.sqrt(max(every))
    assert found.lower <= math.sqrt(max(every)) * (1 + 1e-12)


@pytest.mark.parametrize("scale", [1e-50, 1e-14, 1e-6])
@pytest.mark.parametrize("length", [9, 30])
def test_two_answers_with_next_to_no_noise_leak_what_plain_dp_says(length, scale):
    """Who knows all others faces no other noise; the metric of who does not is nearly singular."""
    model = pdp.GaussianSeries(length=length, correlation=-0.6, bounds=(0, 1), variance=1.0)
    queries = [pdp.Sum(), pdp.Linear(weights=[1.0 + place % 7 for place in range(length)])]
    leak = pdp.leakage(model, queries, scale=[scale, scale], noise="gaussian")
    truth = np.sqrt(1 + 49) / scale
    assert leak.lower == pytest.approx(truth)
    assert truth <= leak.value <= 1.02 * truth
    with pytest.raises(pdp.PdpError, match="Raise the scale"):
        pdp.leakage(model, queries, scale=[scale, scale], noise="gaussian", delta=1e-6)
