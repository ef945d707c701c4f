"""The Gaussian engine against regressions one by one, high precision, and the paper."""

import math
import subprocess
import sys
import time
from fractions import Fraction

import mpmath  # type: ignore[import-untyped]
import numpy as np
import pytest

import pdp_calibrate as pdp
from pdp_calibrate.core.problem import split
from pdp_calibrate.core.query import lower
from pdp_calibrate.families.gaussian.search import GaussianEngine
from tests.oracles import gaussian as oracle
from tests.oracles.adversaries import every_adversary
from tests.support.gaussian_draws import Draw, draw, joint_search
from tests.support.marks import bounds_checked, slow_after


def check(problem: Draw, found: pdp.Leakage, truth: float) -> None:
    # The oracle itself rounds: by 1e-13 of the largest leakage that weights and ranges allow.
    noise = 1e-13 * np.abs(problem.weights * problem.model.widths).max() / problem.scale
    assert found.value >= truth * (1 - 1e-11) - noise
    assert found.lower <= truth * (1 + 1e-11) + noise
    assert found.value == pytest.approx(truth, rel=1e-9, abs=noise)
    assert found.exact


@pytest.mark.parametrize("seed", bounds_checked(range(300), 8, quick=40))
def test_every_kind_of_adversaries_equals_brute_force(seed):
    problem = draw(seed)
    model, size = problem.model, len(problem.model.names)
    leaks = oracle.leakages(
        model.covariance, problem.weights[np.newaxis], model.widths, [problem.scale]
    )
    rng = np.random.default_rng(seed)
    low = int(rng.integers(0, size))
    high = int(rng.integers(low, size))
    kinds = {
        pdp.Adversaries.all(): range(size),
        pdp.Adversaries.weakest(): range(1),
        pdp.Adversaries.strongest(): range(size - 1, size),
        pdp.Adversaries.knowing(at_least=low, at_most=high): range(low, high + 1),
    }
    for adversaries, sizes in kinds.items():
        found = pdp.leakage(model, problem.query, scale=problem.scale, adversaries=adversaries)
        check(problem, found, max(leak for (_, k), leak in leaks.items() if len(k) in sizes))
        target = model.names.index(found.witness.target)
        known = tuple(sorted(model.names.index(name) for name in found.witness.known))
        assert len(known) in sizes
        assert leaks[target, known] == pytest.approx(found.lower, rel=1e-9)
    (target, known), truth = list(leaks.items())[int(rng.integers(len(leaks)))]
    one = pdp.Adversaries.exactly(model.names[target], known=[model.names[k] for k in known])
    check(problem, pdp.leakage(model, problem.query, scale=problem.scale, adversaries=one), truth)


@pytest.mark.parametrize("seed", slow_after(30, range(60)))
def test_never_below_forty_digits(seed):
    problem = draw(1000 + seed, largest=5)
    found = pdp.leakage(problem.model, problem.query, scale=problem.scale)
    truth = oracle.worst_leakage_mpmath(
        problem.model.covariance, problem.weights, problem.model.widths, problem.scale
    )
    assert found.value >= truth
    assert found.lower <= truth


@pytest.mark.parametrize("tightness", [1e-3, 1e-6, 1e-9])
@pytest.mark.parametrize("seed", range(8))
def test_nearly_singular_covariances_stay_certified(seed, tightness):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 6))
    factors = rng.normal(size=(size, max(1, size - 1)))
    covariance = factors @ factors.T + tightness * np.eye(size)
    weights, widths = rng.normal(size=size), rng.uniform(0.5, 2.0, size=size)
    model = pdp.Gaussian(covariance=covariance, bounds=[(0, width) for width in widths])
    found = pdp.leakage(model, pdp.Linear(weights=weights))
    truth = oracle.worst_leakage_mpmath(model.covariance, weights, model.widths, 1.0)
    assert found.lower <= truth <= found.value
    assert found.value <= float(truth) * (1 + 1e-10 / tightness)


def test_what_floating_point_cannot_certify_is_refused():
    tight = 1 - 3e-15
    with pytest.raises(pdp.ModelError, match="singular"):
        pdp.leakage(
            pdp.Gaussian.from_correlation([[1.0, tight], [tight, 1.0]], bounds=(0, 1)), pdp.Sum()
        )


@pytest.mark.parametrize("correlation", [-0.7, 0.0, 0.3, 0.9])
def test_example_5(correlation):
    model = pdp.Gaussian(covariance=[[1, correlation], [correlation, 1]], bounds=(0, 1))
    weak = pdp.leakage(model, pdp.Sum(), adversaries=pdp.Adversaries.exactly("x1"))
    strong = pdp.leakage(model, pdp.Sum(), adversaries=pdp.Adversaries.exactly("x1", known=["x2"]))
    assert weak.value == pytest.approx(1 + correlation, rel=1e-12)
    assert strong.value == pytest.approx(1.0, rel=1e-12)
    worst = pdp.leakage(model, pdp.Sum())
    assert worst.value == pytest.approx(1 + max(correlation, 0.0), rel=1e-9)


def test_corollary_2():
    problem = draw(7, smallest=6, exponents=0)
    covariance = problem.model.covariance
    weak = pdp.leakage(problem.model, pdp.Sum(), adversaries=pdp.Adversaries.weakest())
    by_hand = [
        abs(1 + (row.sum() - row[i]) / row[i]) * problem.model.widths[i]
        for i, row in enumerate(covariance)
    ]
    assert weak.value == pytest.approx(max(by_hand), rel=1e-12)


@pytest.mark.parametrize("average", [-0.8, -0.6, -0.4, -0.2, -0.05, 0.2, 0.4, 0.6, 0.8])
@pytest.mark.compiled
def test_figure_4_with_fifteen_tuples(average):
    size, sign = 15, np.sign(average)
    variance = 1 / abs(average)
    covariance = np.full((size, size), sign) + (variance - sign) * np.eye(size)
    if average <= -1 / (size - 1):
        with pytest.raises(pdp.ModelError, match="positive definite"):
            pdp.Gaussian(covariance=covariance, bounds=(0, 1))
        return
    model = pdp.Gaussian(covariance=covariance, bounds=(0, 1))
    previous = None
    for unknown in (0, 1, 4, 7, 11, 14):
        known = size - 1 - unknown
        level = pdp.Adversaries.knowing(at_least=known, at_most=known)
        leak = pdp.leakage(model, pdp.Sum(), adversaries=level)
        # By symmetry: each unknown tuple follows x_i with the partial regression coefficient.
        rho = sign / variance
        by_hand = abs(1 + unknown * rho / (1 + known * rho))
        assert leak.value == pytest.approx(by_hand, rel=1e-9)
        if previous is not None:  # leakage rises with positive correlation, falls with negative
            assert (leak.value - previous) * sign > 0
        previous = leak.value
    worst = pdp.leakage(model, pdp.Sum())
    assert worst.exact
    assert worst.value == pytest.approx(max(1.0, 1 + 14 * average), rel=1e-9)


@pytest.mark.parametrize("unit", [1e-8, 1e-4, 1e6, 1e12])
def test_units_change_nothing(unit):
    problem = draw(11, smallest=8, exponents=0)
    model = problem.model
    scaled = pdp.Gaussian(
        covariance=model.covariance * unit**2,
        bounds=[(lo * unit, hi * unit) for lo, hi in model.bounds],
    )
    here = pdp.leakage(model, problem.query, scale=2.0)
    there = pdp.leakage(scaled, problem.query, scale=2.0 * unit)
    assert there.value == pytest.approx(here.value, rel=1e-9)
    assert there.exact
    assert set(there.witness.known) == set(here.witness.known)


def test_independent_blocks_are_searched_alone():
    first, second = draw(3, smallest=5, exponents=0), draw(4, smallest=5, exponents=0)
    sizes = len(first.weights), len(second.weights)
    covariance = np.zeros((sum(sizes), sum(sizes)))
    covariance[: sizes[0], : sizes[0]] = first.model.covariance
    covariance[sizes[0] :, sizes[0] :] = second.model.covariance
    both = pdp.Gaussian(covariance=covariance, bounds=[*first.model.bounds, *second.model.bounds])
    query = pdp.Linear(weights=[*first.weights, *second.weights])
    alone = [pdp.leakage(part.model, part.query).value for part in (first, second)]
    assert pdp.leakage(both, query).value == pytest.approx(max(alone), rel=1e-9)
    blocks = pdp.Blocks(models=[first.model, second.model], counts=[3, 1])
    weak = pdp.leakage(blocks, query, adversaries=pdp.Adversaries.weakest())
    expected = [
        pdp.leakage(part.model, part.query, adversaries=pdp.Adversaries.weakest()).value
        for part in (first, second)
    ]
    assert weak.value == pytest.approx(max(expected), rel=1e-9)
    assert weak.exact  # unknown independent tuples do not change the tails


def test_zero_weights_and_a_silent_block():
    model = pdp.Gaussian(covariance=np.diag([1.0, 2.0, 3.0]), bounds=(0, 1))
    leak = pdp.leakage(model, pdp.Linear(weights={"x2": 2.0}))
    assert leak.value == pytest.approx(2.0)
    nobody = pdp.leakage(
        model, pdp.Linear(weights={"x2": 2.0}), adversaries=pdp.Adversaries.exactly("x1")
    )
    assert nobody.value == 0.0


def test_the_witness_is_a_limit_at_the_mean():
    model = pdp.Gaussian(covariance=[[1, 0.5], [0.5, 1]], bounds=[(0, 2), (0, 1)], mean=[0.7, 0.9])
    leak = pdp.leakage(model, pdp.Sum())
    assert leak.witness.target == "x1"
    assert leak.witness.known == {}
    assert leak.witness.secrets == (0.0, 2.0)
    assert leak.witness.output == -np.inf  # small answers speak for the lower end
    falling = pdp.leakage(model, pdp.Linear(weights=[-1, -1]))
    assert falling.witness.output == np.inf
    known = pdp.leakage(model, pdp.Sum(), adversaries=pdp.Adversaries.exactly("x1", known=["x2"]))
    assert known.witness.known == {"x2": 0.9}


def hard(size: int = 60, seed: int = 0) -> pdp.Gaussian:
    sample = np.random.default_rng(seed).normal(size=(3 * size, size))
    return pdp.Gaussian(covariance=np.cov(sample.T), bounds=(0, 1))


@pytest.mark.compiled
def test_the_deadline_gives_a_certified_bracket():
    full = pdp.leakage(hard(), pdp.Sum())
    assert full.exact
    begun = time.monotonic()
    early = pdp.leakage(hard(), pdp.Sum(), time_limit=0.0)
    assert time.monotonic() - begun < 2
    assert early.lower <= full.value <= early.value
    assert not early.exact
    assert early.value < 3 * full.value


@pytest.mark.compiled
def test_a_large_search_ends_by_itself(monkeypatch):
    from pdp_calibrate.families.gaussian import branch_and_bound as branching

    monkeypatch.setattr(branching, "VISITED_AT_MOST", 500)
    found = pdp.leakage(hard(), pdp.Sum())
    full = pdp.leakage(hard(seed=0), pdp.Sum(), time_limit=0.0)
    assert found.lower < found.value * (1 - 1e-6)  # not closed, so it ended early
    assert found.value <= full.value


@pytest.mark.compiled
def test_memory_is_bounded(monkeypatch):
    from pdp_calibrate.families.gaussian import branch_and_bound as branching

    full = pdp.leakage(hard(), pdp.Sum())
    monkeypatch.setattr(branching, "OPEN_BYTES", 0)
    found = pdp.leakage(hard(), pdp.Sum())
    assert found.lower <= full.value <= found.value


@pytest.mark.compiled
def test_an_incumbent_spares_the_search():
    model = hard()
    (problem,) = split(model, lower(pdp.Sum(), model), pdp.Adversaries.all())
    full = GaussianEngine(problem).bracket(1.0)
    above = GaussianEngine(problem).bracket(1.0, incumbent=10 * full.upper)
    assert full.upper <= above.upper <= 10 * full.upper
    just = GaussianEngine(problem).bracket(1.0, incumbent=full.upper * 1.001)
    assert full.upper * (1 - 1e-9) <= just.upper <= full.upper * 1.001


def engine_counting_searches(model, query, monkeypatch):
    """Return an engine, and what each of its searches was asked for."""
    (problem,) = split(model, lower(query, model), pdp.Adversaries.all())
    engine, searches = problem.engine, []
    search = engine._unit.search

    def counted(incumbent, deadline):
        searches.append((incumbent, deadline))
        return search(incumbent, deadline)

    monkeypatch.setattr(engine._unit, "search", counted)
    return engine, searches


@pytest.mark.compiled
@pytest.mark.parametrize("clamp", [False, True])
def test_one_search_answers_all_scales(clamp, monkeypatch):
    model, query = hard(size=12), pdp.Sum(clamp=clamp)
    engine, searches = engine_counting_searches(model, query, monkeypatch)
    one = engine.bracket(1.0)
    for scale in np.random.default_rng(0).lognormal(sigma=20.0, size=200).tolist():
        found = engine.bracket(scale)
        for end, rounded in ((one.upper, found.upper), (one.lower, found.lower)):
            assert abs(Fraction(rounded) * Fraction(scale) / Fraction(end) - 1) <= 2.0**-52
        assert Fraction(found.upper) * Fraction(scale) >= one.upper
        assert Fraction(found.lower) * Fraction(scale) <= one.lower
        assert (found.witness, found.target, found.unknown) == (
            one.witness, one.target, one.unknown
        )  # fmt: skip
    assert len(searches) == 1
    fresh = pdp.leakage(model, query, scale=0.37)
    assert fresh.value == engine.bracket(0.37).upper


@pytest.mark.compiled
def test_a_search_that_was_cut_is_made_again_where_there_is_time(monkeypatch):
    engine, searches = engine_counting_searches(hard(), pdp.Sum(), monkeypatch)
    past = time.monotonic() - 1
    early = engine.bracket(0.3, deadline=past)
    again = engine.bracket(0.3, deadline=past)
    assert (again.upper, again.lower) == (early.upper, early.lower)
    assert len(searches) == 1  # there was no time for another one
    full = engine.bracket(0.3)
    assert len(searches) == 2
    assert early.lower <= full.lower <= full.upper < early.upper
    after = engine.bracket(0.3, deadline=past)
    assert (after.upper, after.lower) == (full.upper, full.lower)
    assert len(searches) == 2


@pytest.mark.compiled
def test_who_was_not_told_apart_is_searched_when_it_matters(monkeypatch):
    engine, searches = engine_counting_searches(hard(), pdp.Sum(), monkeypatch)
    true = pdp.leakage(hard(), pdp.Sum(), scale=1.0)
    coarse = engine.bracket(1.0, incumbent=1.2 * true.value)
    assert true.value < coarse.upper <= 1.2 * true.value
    for scale in (0.1, 0.7, 3.0, 1 / 3):  # the same incumbent, rounded at each scale
        engine.bracket(scale, incumbent=1.2 * true.value / scale)
    engine.bracket(2.0, incumbent=1.0 * true.value)
    assert len(searches) == 1
    fine = engine.bracket(1.0, incumbent=0.9 * true.value)
    assert len(searches) == 2
    assert fine.upper == pytest.approx(true.value, rel=1e-9)
    engine.bracket(1.0)  # somebody leaks more than that incumbent: it has hidden nothing
    assert len(searches) == 2
    assert engine.bracket(1.0, incumbent=math.inf).upper == engine.bracket(1.0).upper


@pytest.mark.parametrize("spread", [1e-200, 1.0, 1e200])
def test_leakages_at_the_ends_of_the_floats(spread):
    covariance = spread * np.array([[1, 0.5], [0.5, 1]])
    wide = pdp.Gaussian(covariance=covariance, bounds=(0, 1e90))
    found = pdp.leakage(wide, pdp.Linear(weights=[1e159, 1e159]), scale=1e-50)
    assert found.value == pytest.approx(1.5e299, rel=1e-12)
    found = pdp.leakage(wide, pdp.Linear(weights=[1e159, 1e159]), scale=1e300)
    assert found.value == pytest.approx(1.5e-51, rel=1e-12)
    usual = pdp.Gaussian(covariance=covariance, bounds=(0, 1))
    vanishing = pdp.leakage(usual, pdp.Linear(weights=[1e-300, 1e-300]), scale=1e300)
    assert 0 == vanishing.lower < vanishing.value <= 1e-300
    group = pdp.GaussianGroup(size=3, correlation=0.5, bounds=(0, 1e90))
    found = pdp.leakage(group, pdp.Linear(weights=[1e159] * 3), scale=1e-50)
    assert found.value == pytest.approx(2e299, rel=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_several_answers_add_up_at_one_adversary(seed):
    rng = np.random.default_rng(seed)
    problem = draw(2000 + seed, largest=6, exponents=2)
    size, answers = len(problem.weights), int(rng.integers(2, 5))
    units = np.sqrt(np.diagonal(problem.model.covariance))
    rows = rng.normal(size=(answers, size)) / units
    scales = rng.uniform(0.5, 2.0, size=answers)
    found = joint_search(problem.model, [pdp.Linear(weights=row) for row in rows], scales.tolist())
    leaks = oracle.leakages(problem.model.covariance, rows, problem.model.widths, scales.tolist())
    truth = max(leaks.values())
    assert found.upper == pytest.approx(truth, rel=1e-9)
    assert found.lower == pytest.approx(truth, rel=1e-9)
    together = pdp.leakage(
        problem.model, [pdp.Linear(weights=row) for row in rows], scale=scales.tolist()
    )
    assert together.value == pytest.approx(truth, rel=1e-9)
    one_by_one = sum(
        pdp.leakage(problem.model, pdp.Linear(weights=row), scale=scale).value
        for row, scale in zip(rows, scales, strict=True)
    )
    assert found.upper <= one_by_one * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(10))
def test_answers_that_nearly_cancel_stay_certified(seed):
    rng = np.random.default_rng(seed)
    problem = draw(2500 + seed, smallest=3, largest=4, exponents=0)
    size = len(problem.weights)
    first = rng.normal(size=size) * 1e3
    rows = np.array([first, -first + rng.normal(size=size) * 1e-6])
    found = joint_search(problem.model, [pdp.Linear(weights=row) for row in rows], [1.0, 1.0])
    with mpmath.workdps(40):
        truth = max(
            sum(
                abs(oracle.coefficient_mpmath(problem.model.covariance, row, target, known))
                for row in rows
            )
            * mpmath.mpf(problem.model.widths[target])
            for target, known in every_adversary(size)
        )
    assert found.lower <= truth <= found.upper
    assert found.upper == pytest.approx(float(truth), rel=1e-9)


def test_numbers_beyond_floats_are_refused():
    model = pdp.Gaussian(covariance=[[1, 0.5], [0.5, 1]], bounds=(0, 1))
    with pytest.raises(pdp.PdpError, match="overflows"):
        pdp.leakage(model, pdp.Linear(weights=[1e10, 1.0]), scale=1e-300)
    group = pdp.GaussianGroup(size=3, correlation=0.5, bounds=(0, 1e10))
    with pytest.raises(pdp.PdpError, match="overflows"):
        pdp.leakage(group, pdp.Sum(), scale=1e-300)
    wide = pdp.Gaussian(covariance=[[1, 0.5], [0.5, 1]], bounds=(0, 1e20))
    with pytest.raises(pdp.PdpError, match="too large"):
        pdp.leakage(wide, pdp.Sum(), scale=1e-300)


def test_repeated_answers_are_merged_and_too_many_refused():
    model = hard(20)
    once = pdp.leakage(model, pdp.Sum(), scale=1.0).value
    many = joint_search(model, [pdp.Sum()] * 20, [20.0] * 20)
    assert many.upper == pytest.approx(once, rel=1e-9)
    different = [pdp.Sum(over=[name]) for name in model.names]
    with pytest.raises(pdp.UnsupportedQueryError, match="at most 12"):
        joint_search(model, different, [1.0] * 20)


@pytest.mark.parametrize("factor", [1e-6, 1.0, 1e6])
def test_calibration_is_closed_form_and_verified(factor):
    problem = draw(5, smallest=6, exponents=0)
    reference = pdp.leakage(problem.model, problem.query, scale=1.0).value
    calibration = pdp.calibrate(problem.model, problem.query, epsilon=factor)
    assert calibration.leakage.value <= factor
    assert calibration.scale == pytest.approx(reference / factor, rel=1e-6)
    less = pdp.leakage(problem.model, problem.query, scale=calibration.scale * (1 - 1e-6))
    assert less.lower > factor


@pytest.mark.parametrize(
    "model",
    slow_after(
        1,
        [
            "pdp.Gaussian(covariance=0.4 + np.diag(np.arange(1.0, 11.0)), bounds=(0, 1))",
            "pdp.GaussianGroup(size=4, correlation=(0, 0.4), bounds=(0, 1))",
            "pdp.GaussianSeries(length=48, correlation=0.9, bounds=(0, 1))",
        ],
    ),
)
def test_small_models_need_no_compiler(model):
    script = (
        "import sys\nimport numpy as np\nimport pdp_calibrate as pdp\n"
        "weights = np.linspace(-1, 1, len(MODEL.names)).tolist()\n"
        "for clamp in (True, False):\n"
        "    pdp.calibrate(MODEL, pdp.Linear(weights=weights, clamp=clamp))\n"
        "assert not {'numba', 'scipy.stats', 'sklearn'} & set(sys.modules)\n"
    ).replace("MODEL", model)
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)  # noqa: S603
