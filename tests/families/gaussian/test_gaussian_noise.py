"""Gaussian noise on Gaussian tuples: reference values, brute force over all adversaries."""

import dataclasses
import itertools
import math
import time

import numpy as np
import pytest
from scipy.optimize import brentq

import pdp_calibrate as pdp
from pdp_calibrate.calibration.solve import certified_scale
from pdp_calibrate.core import problem as problem_module
from pdp_calibrate.core.contributions import Contributions
from pdp_calibrate.core.gaussian_dp import delta_of, mu_of
from pdp_calibrate.core.problem import split
from pdp_calibrate.core.query import lower
from pdp_calibrate.errors import ModelError, PdpError
from pdp_calibrate.families.gaussian import nodes
from pdp_calibrate.families.gaussian.alike_noise import AlikeNoiseEngine
from pdp_calibrate.families.gaussian.gaussian_noise import GaussianNoiseEngine
from pdp_calibrate.families.gaussian.gaussian_noise_search import merged_rows
from tests.oracles import gaussian_noise as oracle
from tests.oracles.adversaries import every_adversary
from tests.support.marks import bounds_checked, slow_after

MU = mu_of(1.0, 1e-6)
FIVE = np.array([
    [2, 0.6, -0.4, 0.3, 0.1], [0.6, 1.4, 0.2, -0.5, 0.3], [-0.4, 0.2, 1.5, 0.4, -0.2],
    [0.3, -0.5, 0.4, 1.2, 0.25], [0.1, 0.3, -0.2, 0.25, 0.8],
])  # fmt: skip
FIVE_WEIGHTS, FIVE_WIDTHS = [1, -0.5, 2, 0, 1.5], [5, 4, 3, 6, 2]
THREE = np.array([[1, 0.5, 0.5], [0.5, 1, -0.3], [0.5, -0.3, 1]])
UNEQUAL = np.array([[1, -0.2, -0.4], [-0.2, 1, 0.97], [-0.4, 0.97, 1]])
UNEQUAL_ROWS, UNEQUAL_SCALES = [[1.1, -0.5, 1.55], [0.33, 0.7, -0.95]], [0.28, 0.076]


def household(size=4, rho=0.4):
    return pdp.Gaussian(covariance=rho + (1 - rho) * np.eye(size), bounds=(0, 4))


def model_of(covariance, widths):
    return pdp.Gaussian(covariance=covariance, bounds=[(0, float(width)) for width in widths])


def engine_for(model, rows, scales=None, adversaries=None):
    """The engine for one answer, or for several in units of their scales."""
    queries = [pdp.Linear(weights=[float(w) for w in row]) for row in rows]
    parts = [lower(query, model) for query in queries]
    contributions = parts[0] if scales is None else Contributions.joined(parts, scales)
    everyone = adversaries or pdp.Adversaries.all()
    (problem,) = split(model, contributions, everyone)
    return GaussianNoiseEngine(problem)


def noise_needed(engine, mu):
    """The smallest σ² at which nobody exceeds μ, by bisection, and the bracket there."""
    root = brentq(lambda log: engine.bracket(math.exp(log)).upper - mu, -7.0, 12.0, xtol=1e-13)
    return math.exp(2 * root), engine.bracket(math.exp(root))


def test_the_household():
    engine = engine_for(household(), [[1] * 4])
    for mu, scale in [(0.5, 17.48713813), (1, 8.572047597), (2, 3.924283374), (3, 2.155097317)]:
        variance, found = noise_needed(engine, mu)
        assert math.sqrt(variance) == pytest.approx(scale, rel=1e-9)
        assert found.witness.known == {}
        share = (k := 3.96) / (variance + k)
        assert found.witness.data_share == pytest.approx(share, rel=1e-6)
    for mu, scale in [(4, 1.0), (6, 2 / 3)]:
        variance, found = noise_needed(engine, mu)
        assert math.sqrt(variance) == pytest.approx(scale, rel=1e-9)
        assert len(found.witness.known) == 3
        assert found.witness.data_share == 0


@pytest.mark.parametrize(
    ("times", "scale"),
    [(1, 37.1238775377), (4, 74.2477550755), (12, 128.600884139), (52, 267.704088013)],
)
def test_releases_of_the_same_sum(times, scale):
    engine = engine_for(household(), [[1] * 4] * times, [scale] * times)
    found = engine.bracket(1.0)
    assert found.upper == pytest.approx(MU, rel=1e-9)
    assert found.lower == pytest.approx(MU, rel=1e-9)


def test_four_values_released_separately():
    found = engine_for(household(), np.eye(4), [20.547781968] * 4).bracket(1.0)
    assert found.lower <= found.upper == pytest.approx(MU, rel=1e-9)
    assert found.witness.known == {}


@pytest.mark.parametrize(
    ("widths", "mu", "scale", "target", "known"),
    [
        ((1, 4, 4), MU, 28.964294909, "x2", {"x3"}),
        ((1, 4, 4), 1.0, 6.836277779, "x2", {"x3"}),
        ((1, 4, 4), 2.0, 3.386648455, "x2", {"x3"}),
        ((4, 4, 4), MU, 33.791512987, "x1", set()),
    ],
)
def test_three_tuples(widths, mu, scale, target, known):
    engine = engine_for(model_of(THREE, widths), [[1, 1, 1]])
    variance, found = noise_needed(engine, mu)
    assert math.sqrt(variance) == pytest.approx(scale, rel=1e-9)
    mirrored = {"x2": {"x2", "x3"}, "x1": {"x1"}}[target]  # the second and third tuple are alike
    assert found.witness.target in mirrored
    assert len(found.witness.known) == len(known)


def test_five_tuples():
    model = model_of(FIVE, FIVE_WIDTHS)
    engine = engine_for(model, [FIVE_WEIGHTS])
    variance, found = noise_needed(engine, MU)
    assert math.sqrt(variance) == pytest.approx(54.479272126, rel=1e-9)
    assert found.witness.target == "x4"
    assert set(found.witness.known) == {"x1", "x2", "x5"}
    assert found.witness.data_share == pytest.approx(1.82244550685 / (variance + 1.82244550685))
    assert math.sqrt(noise_needed(engine, 1.0)[0]) == pytest.approx(12.828605915, rel=1e-9)
    assert engine.bracket(10.0).upper == pytest.approx(1.27834808437, rel=1e-9)
    weakest = pdp.Adversaries.exactly("x1")
    alone = engine_for(model, [FIVE_WEIGHTS], adversaries=weakest).bracket(10.0)
    assert alone.upper == pytest.approx(0.255386023666, rel=1e-9)
    second = engine_for(model, [[0, 1, 1, 1, 0]]).bracket(5.0)
    assert second.upper == pytest.approx(2.46756063594, rel=1e-9)
    both = engine_for(model, [FIVE_WEIGHTS, [0, 1, 1, 1, 0]], [10.0, 5.0]).bracket(1.0)
    assert both.upper == pytest.approx(2.75908523491, rel=1e-9)
    assert both.lower == pytest.approx(2.75908523491, rel=1e-9)


def test_own_levels_of_one_adversary_must_not_be_added():
    model = model_of(np.eye(2), [1, 1])
    someone = pdp.Adversaries.exactly("x1")
    rows = [[1, 1], [0, 1]]
    joint = engine_for(model, rows, [0.1, 0.1], someone).bracket(1.0)
    own = [engine_for(model, [row], adversaries=someone).bracket(0.1).upper for row in rows]
    assert joint.lower**2 == pytest.approx(50.2487562189, rel=1e-9)
    assert sum(mu**2 for mu in own) == pytest.approx(0.9900990099, rel=1e-9)


def test_suprema_of_releases_must_not_be_added():
    model = model_of(UNEQUAL, [1, 1, 1])
    joint = engine_for(model, UNEQUAL_ROWS, UNEQUAL_SCALES).bracket(1.0)
    assert joint.upper**2 == pytest.approx(228.557608182, rel=1e-9)
    assert joint.lower**2 == pytest.approx(228.557608182, rel=1e-9)
    assert (joint.witness.target, set(joint.witness.known)) == ("x3", {"x2"})
    singles = [
        engine_for(model, [row]).bracket(scale).upper ** 2
        for row, scale in zip(UNEQUAL_ROWS, UNEQUAL_SCALES, strict=True)
    ]
    assert singles == pytest.approx([30.6441326531, 156.25], rel=1e-9)
    assert sum(singles) < joint.lower**2
    (problem,) = split(
        model,
        Contributions.joined(
            [lower(pdp.Linear(weights=row), model) for row in UNEQUAL_ROWS], UNEQUAL_SCALES
        ),
        pdp.Adversaries.all(),
    )
    without = GaussianNoiseEngine(problem, kept=0.0).bracket(1.0)
    assert without.upper**2 == pytest.approx(830.238151600, rel=1e-9)


def random_case(seed):
    """A random covariance, some strong, with one to three answers and noise of any size."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 7))
    loadings = rng.normal(size=(size, int(rng.integers(1, size + 2))))
    covariance = loadings @ loadings.T + 10 ** rng.uniform(-3, 1) * np.eye(size)
    units = 10 ** rng.uniform(-2, 2, size=size) if seed % 3 == 0 else np.ones(size)
    covariance = covariance * np.outer(units, units)
    rows = rng.normal(size=(int(rng.integers(1, 4)), size))
    if seed % 4 == 0:
        rows = np.rint(rows)
        rows[:, 0] += rows.any(axis=1) == 0
    spread = math.sqrt(np.trace(rows @ covariance @ rows.T))
    scales = spread * 10 ** rng.uniform(-1.5, 1.5, size=len(rows))
    return covariance, rows, scales, rng.uniform(0.5, 3, size=size) * units


def check_against_brute_force(seed):
    """Floats find the worst adversary, 50 digits say on which side of it the bracket is."""
    covariance, rows, scales, widths = random_case(seed)
    model = model_of(covariance, widths)
    for number in range(1, len(rows) + 1):  # every prefix: what an adaptive analyst has so far
        asked = covariance, rows[:number], scales[:number]
        found = engine_for(model, *asked[1:]).bracket(1.0)
        _, target, known = oracle.worst(*asked, widths)
        assert found.upper >= oracle.level_mpmath(*asked, target, known, widths[target]), seed
        target = model.names.index(found.witness.target)
        known = [model.names.index(name) for name in found.witness.known]
        assert found.lower <= oracle.level_mpmath(*asked, target, known, widths[target]), seed
        assert found.upper <= found.lower * (1 + 2e-9), seed


@pytest.mark.parametrize("chunk", bounds_checked(range(10), 1, quick=2))
def test_brute_force_over_all_adversaries(chunk):
    for seed in range(15 * chunk, 15 * chunk + 15):
        check_against_brute_force(seed)


def test_compiled_moments_find_the_same(monkeypatch):
    cases = [random_case(seed) for seed in range(8)]
    plain = [engine_for(model_of(c, w), rows, s).bracket(1.0) for c, rows, s, w in cases]
    monkeypatch.setattr(nodes, "UNCOMPILED_WORK", 0.0)
    compiled = [engine_for(model_of(c, w), rows, s).bracket(1.0) for c, rows, s, w in cases]
    for one, other in zip(plain, compiled, strict=True):
        assert one.upper == pytest.approx(other.upper, rel=1e-9)
        assert one.lower == pytest.approx(other.lower, rel=1e-9)


@pytest.mark.slow
def test_brute_force_over_all_adversaries_at_length():
    for seed in range(1000, 3000):
        check_against_brute_force(seed)


@pytest.mark.parametrize("seed", range(12))
def test_the_side_in_fifty_digits(seed):
    """Nearly singular covariances, every adversary in 50 digits: the bracket is on both sides."""
    rng = np.random.default_rng(seed)
    size = 3
    loadings = rng.normal(size=(size, 2))
    covariance = loadings @ loadings.T + 10.0 ** -rng.integers(1, 9) * np.eye(size)
    rows, scales = rng.normal(size=(2, size)), 10 ** rng.uniform(-2, 2, size=2)
    model = model_of(covariance, [1, 2, 3])
    found = engine_for(model, rows, scales).bracket(1.0)
    exact = max(
        (target + 1) ** 2 * oracle.gain_mpmath(covariance, rows, scales, target, known)
        for target, known in every_adversary(size)
    )
    assert found.lower**2 <= exact <= found.upper**2


@pytest.mark.parametrize("seed", range(6))
def test_delta_by_quadrature(seed):
    covariance, rows, _, widths = random_case(7 * seed + 1)
    weights = rows[0]
    model = model_of(covariance, widths)
    engine = engine_for(model, [weights])
    variance, found = noise_needed(engine, mu_of(1.0, 1e-3))
    scale = math.sqrt(variance)
    places = {name: place for place, name in enumerate(model.names)}
    worst = 0.0
    for target, known in every_adversary(len(covariance)):
        delta = oracle.delta_by_quadrature(
            covariance, weights, scale, target, known, widths[target], 1.0
        )
        assert delta <= 1e-3 * (1 + 1e-6)
        worst = max(worst, delta)
    assert worst == pytest.approx(1e-3, rel=1e-6)
    named = oracle.delta_by_quadrature(
        covariance, weights, scale, places[found.witness.target],
        [places[name] for name in found.witness.known], widths[places[found.witness.target]], 1.0,
    )  # fmt: skip
    assert named == pytest.approx(delta_of(found.upper, 1.0), rel=1e-6)


SETS = [
    pdp.Adversaries.all(),
    pdp.Adversaries.weakest(),
    pdp.Adversaries.strongest(),
    pdp.Adversaries.knowing(at_most=2),
    pdp.Adversaries.knowing(at_least=1, at_most=3),
    pdp.Adversaries.exactly("x3", known=["x1"]),
]


@pytest.mark.parametrize("adversaries", SETS, ids=repr)
@pytest.mark.parametrize("independent", [False, True])
def test_restricted_adversaries_count_what_they_leave_unknown(adversaries, independent):
    covariance = FIVE.copy()
    if independent:
        covariance[:2, 2:] = covariance[2:, :2] = 0
    model = model_of(covariance, FIVE_WIDTHS)
    knowledge = adversaries.resolve(model)

    def admits(target, known):
        if target not in knowledge.targets:
            return False
        if knowledge.known is not None:
            return set(known) == knowledge.known
        return knowledge.fewest <= len(known) <= knowledge.most

    for rows, scales in [([FIVE_WEIGHTS], [2.0]), ([FIVE_WEIGHTS, [1, 1, 1, 1, 1]], [2.0, 3.0])]:
        found = engine_for(model, rows, scales, adversaries).bracket(1.0)
        best, _, _ = oracle.worst(covariance, np.array(rows), scales, FIVE_WIDTHS, admits)
        assert found.upper == pytest.approx(math.sqrt(best), rel=1e-9)
        assert found.lower == pytest.approx(math.sqrt(best), rel=1e-9)
        assert found.upper >= math.sqrt(best) * (1 - 1e-12)


def test_a_block_that_no_answer_is_about_leaks_nothing():
    covariance = FIVE.copy()
    covariance[:2, 2:] = covariance[2:, :2] = 0
    model = model_of(covariance, FIVE_WIDTHS)
    found = engine_for(model, [[1, -2, 0, 0, 0]]).bracket(3.0)
    best, target, _ = oracle.worst(covariance, np.array([[1, -2, 0, 0, 0]]), [3.0], FIVE_WIDTHS)
    assert found.upper == pytest.approx(math.sqrt(best), rel=1e-9)
    assert found.target == target
    someone = pdp.Adversaries.exactly("x4", known=["x3"])
    silent = engine_for(model, [[1, -2, 0, 0, 0]], adversaries=someone).bracket(3.0)
    assert silent.upper <= 1e-12


@pytest.mark.parametrize("seed", range(3))
def test_the_solver_needs_nothing_but_the_bracket(seed, monkeypatch):
    """The search for the smallest Laplace scale finds the smallest σ, given another engine."""
    covariance, rows, _, widths = random_case(5 * seed + 1)
    model = model_of(covariance, widths)
    monkeypatch.setattr(problem_module, "engine_of", GaussianNoiseEngine)
    problems = split(model, lower(pdp.Linear(weights=rows[0].tolist()), model), SETS[0])
    scale, found = certified_scale(problems, MU, rounding=0.0, deadline=math.inf)
    assert found.upper <= MU
    variance, _ = noise_needed(GaussianNoiseEngine(problems[0]), MU)
    assert scale == pytest.approx(math.sqrt(variance), rel=1e-9)
    best, *_ = oracle.worst(covariance, rows[:1], [scale], widths)
    assert math.sqrt(best) == pytest.approx(MU, rel=1e-7)


def test_little_noise_is_enough_where_the_data_hide_the_target():
    model = model_of(np.eye(3), [1, 1, 1])
    engine = engine_for(model, [[0.1, 1, 1]], adversaries=pdp.Adversaries.exactly("x1"))
    assert engine.bracket(1e-6).upper < 1  # 0.1² over a variance of 2 at least


@pytest.mark.parametrize("seed", slow_after(3, range(8)))
def test_a_ball_covers_its_members(seed):
    rng = np.random.default_rng(seed)
    size, radius = 4, float(rng.uniform(0.05, 0.5))
    loadings = rng.normal(size=(size, size))
    covariance = loadings @ loadings.T + 0.3 * np.eye(size)
    rows, scales = rng.normal(size=(1 + seed % 2, size)), 10 ** rng.uniform(-0.5, 1, 1 + seed % 2)
    center = model_of(covariance, [1, 2, 1, 2])
    ball = pdp.LoewnerBall(center=center, radius=radius)
    found = engine_for(ball, rows, scales).bracket(1.0)
    root = np.linalg.cholesky(covariance)
    largest = 0.0
    for _ in range(60):
        turn, _ = np.linalg.qr(rng.normal(size=(size, size)))
        inside = (
            root @ turn @ np.diag(1 + radius * rng.choice([-1, 1], size=size)) @ turn.T @ root.T
        )
        largest = max(largest, oracle.worst(inside, rows, scales, [1, 2, 1, 2])[0])
    assert found.upper >= math.sqrt(largest)
    assert (
        found.lower <= math.sqrt(oracle.worst(covariance, rows, scales, [1, 2, 1, 2])[0]) * 1.0001
    )
    nothing = pdp.LoewnerBall(center=center, radius=0.0)
    alone = engine_for(center, rows, scales).bracket(1.0)
    assert engine_for(nothing, rows, scales).bracket(1.0).upper == pytest.approx(alone.upper)


def test_a_sample_promises_no_variance():
    sampled = pdp.SampledGaussian(center=household(), rows=100_000, confidence=0.95)
    found = engine_for(sampled, [[1] * 4]).bracket(3.0)
    certain = engine_for(household(), [[1] * 4]).bracket(3.0)
    assert certain.upper < 2.2 * 4 / 3 <= found.upper < 2.4 * 4 / 3
    assert found.lower == pytest.approx(certain.lower, rel=1e-6)


@pytest.mark.parametrize(
    ("model", "engine"),
    [
        (household(), GaussianNoiseEngine),
        (pdp.GaussianGroup(size=4, correlation=0.4, bounds=(0, 4), variance=1.0), AlikeNoiseEngine),
    ],
)
def test_clamped_answers_by_their_coupling(model, engine):
    clamped = pdp.Sum(clamp=True)
    (problem,) = split(model, lower(clamped, model), pdp.Adversaries.all())
    for scale in (7.0, 10.0):
        laplace = pdp.leakage(model, clamped, scale=scale).value
        assert engine(problem).bracket(scale).upper == laplace


def test_several_clamped_answers_by_their_couplings():
    model = household()
    halves = [pdp.Linear(weights=[1, 1, 0, 0], clamp=True), pdp.Sum(clamp=True)]
    joined = Contributions.joined([lower(query, model) for query in halves], [10.0, 20.0])
    (problem,) = split(model, joined, pdp.Adversaries.all())
    both = GaussianNoiseEngine(problem).bracket(1.0)
    alone = [pdp.leakage(model, q, scale=s).value for q, s in zip(halves, [10, 20], strict=True)]
    assert both.upper == pytest.approx(math.hypot(*alone), rel=1e-12)
    assert both.upper >= math.hypot(*alone)
    assert max(alone) <= both.upper <= sum(alone)


def test_rows_are_merged_only_into_what_tells_as_much():
    rows = np.array([[1.0, 2, 3], [0.1, 0.2, 0.3], [-2, -4, -6], [1, 0, 0], [0, 0, 0]])
    merged = merged_rows(rows)
    assert len(merged.rows) == 2
    np.testing.assert_allclose(merged.rows.T @ merged.rows, rows.T @ rows, rtol=1e-13)
    many = np.random.default_rng(0).normal(size=(40, 3))
    few = merged_rows(many)
    assert len(few.rows) == 3
    assert few.changed > 0
    np.testing.assert_allclose(few.rows.T @ few.rows, many.T @ many, rtol=1e-12)


def test_more_answers_than_tuples():
    rng = np.random.default_rng(5)
    rows, scales = rng.normal(size=(9, 3)), 10 ** rng.uniform(-1, 1, size=9)
    found = engine_for(model_of(THREE, [1, 2, 3]), rows, scales).bracket(1.0)
    best = math.sqrt(oracle.worst(THREE, rows, scales, [1, 2, 3])[0])
    assert best * (1 - 1e-12) <= found.upper == pytest.approx(best, rel=1e-9)
    assert found.lower <= best * (1 + 1e-12)


@pytest.mark.parametrize("unit", [1e-8, 1e-3, 1e7])
def test_units_change_nothing(unit):
    model = model_of(FIVE * unit**2, np.array(FIVE_WIDTHS) * unit)
    found = engine_for(model, [FIVE_WEIGHTS]).bracket(10.0 * unit)
    assert found.upper == pytest.approx(1.27834808437, rel=1e-9)


def test_what_cannot_be_certified_raises():
    engine = engine_for(household(), [[1] * 4])
    for scale in (1e-200, 1e200):
        with pytest.raises(PdpError, match="another unit"):
            engine.bracket(scale)
    # Two answers that differ by less than their noise resolves: the metric is nearly singular.
    with pytest.raises(ModelError, match="singular"):
        engine_for(household(), [[1, 1, 1, 1], [1, 1, 1, 1.001]], [1e-9, 1e-9]).bracket(1.0)


def test_an_incumbent_and_a_deadline_leave_the_upper_end_certified():
    rng = np.random.default_rng(3)
    covariance = np.cov(rng.normal(size=(40, 12)).T)
    engine = engine_for(model_of(covariance, [1] * 12), [[1] * 12])
    full = engine.bracket(2.0)
    assert full.upper == pytest.approx(full.lower, rel=1e-9)
    assert engine.bracket(2.0, incumbent=2 * full.upper).upper <= 2 * full.upper
    fresh = engine_for(model_of(covariance, [1] * 12), [[1] * 12])
    hasty = fresh.bracket(2.0, deadline=time.monotonic() - 1)
    assert hasty.upper >= full.lower
    assert hasty.lower <= full.upper


def test_mu_never_grows_with_the_scale():
    engine = engine_for(model_of(FIVE, FIVE_WIDTHS), [FIVE_WEIGHTS])
    found = [engine.bracket(scale).upper for scale in np.geomspace(1e-3, 1e3, 25)]
    assert all(after <= before * (1 + 1e-9) for before, after in itertools.pairwise(found))
    assert found[0] >= 6e3  # the third tuple, weight 2 and width 3: never below plain DP


def test_a_witness_of_gaussian_noise_still_describes_itself():
    witness = engine_for(household(), [[1] * 4]).bracket(5.0).witness
    assert witness.to_dict()["target"] in model_names(witness)
    assert dataclasses.replace(witness, data_share=None).data_share is None


def model_names(witness):
    return [str(name) for name in witness.model.names]


@pytest.mark.parametrize("variances", [(1, 1e12), (1e12, 1), (1, 1e-9), (1, 1)])
def test_a_repeated_query_is_one_release_in_any_units(variances):
    root = np.sqrt(variances)
    covariance = np.array([[1.0, 0.3], [0.3, 1.0]]) * np.outer(root, root)
    for widths in ([1.0, 1.0], root.tolist()):
        model = model_of(covariance, widths)
        for group in (
            pdp.Adversaries.strongest(),
            pdp.Adversaries.all(),
            pdp.Adversaries.weakest(),
        ):
            asked = {"noise": "gaussian", "adversaries": group}
            twice = pdp.leakage(model, [pdp.Sum()] * 2, scale=[0.1, 0.1], **asked)
            once = pdp.leakage(model, pdp.Sum(), scale=0.1 / math.sqrt(2), **asked)
            assert twice.lower <= once.value
            assert once.lower <= twice.value
            assert twice.value == pytest.approx(once.value, rel=1e-6)
            assert twice.lower == pytest.approx(once.lower, rel=1e-6)
            # Not quite multiples of each other: the second is a rounding away.
            other = pdp.Linear(weights=[1.0, math.nextafter(1.0, 2.0)])
            near = pdp.leakage(model, [pdp.Sum(), other], scale=[0.1, 0.1], **asked)
            assert once.lower <= near.value == pytest.approx(once.value, rel=1e-6)
