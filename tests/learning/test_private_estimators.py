"""Learning under differential privacy: what one unit can change, and what comes out."""

import contextlib
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats

import pdp_calibrate as pdp
from pdp_calibrate.core import noise
from pdp_calibrate.core.model import Model
from pdp_calibrate.families.gaussian.private_moments import private_moments, sensitivity_of
from pdp_calibrate.learning.private_sums import nearest_with_sum
from tests.support.marks import examples
from tests.support.private_fits import LONGEST, estimators, neighbours

KINDS = tuple(estimators(1.0))
pytestmark = pytest.mark.filterwarnings("ignore::pdp_calibrate.ModelFitWarning")


@pytest.fixture
def handed(monkeypatch):
    """Collect what is handed to the noise, which is the only thing learned from the rows."""
    calls = []

    def collect(answers, scale):
        calls.append((list(answers), scale))
        return list(answers)

    monkeypatch.setattr(noise, "add_laplace_to_integers", collect)
    return calls


def drawn_for(estimator, frame):
    """Learn, as far as the noise: with so few rows some fits cannot cover it and are refused."""
    with contextlib.suppress(pdp.ModelError):
        estimator.fit(frame)


@pytest.mark.parametrize("kind", KINDS)
def test_no_unit_moves_the_likelihood_by_more_than_epsilon(kind, handed):
    """Laplace noise of scale b turns a change of Σ|s−s'| into a log ratio of Σ|s−s'|/b, exactly."""
    rng = np.random.default_rng(7)
    worst = Fraction(0)
    for _ in range(12):
        frames = neighbours(kind, rng)
        handed.clear()
        for frame in frames:
            drawn_for(estimators(0.7)[kind], frame)
        (first, scale), (second, same) = handed
        assert scale == same
        assert all(isinstance(number, int) for number in first)
        moved = sum(abs(a - b) for a, b in zip(first, second, strict=True))
        worst = max(worst, Fraction(moved) / Fraction(scale))
    assert worst <= Fraction(0.7)
    # The noise is not much more than is needed either: some pair of frames comes close.
    assert worst > Fraction(0.7) * Fraction(1, 3)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8])
def test_the_sensitivity_of_moments_is_a_bound_and_nearly_attained(size):
    rng = np.random.default_rng(size)
    upper = np.triu_indices(size)

    def moved(one, other):
        change = np.outer(one, one) - np.outer(other, other)
        return np.abs(one - other).sum() + np.abs(change[upper]).sum()

    drawn = rng.choice([-1.0, -0.5, 0.0, 0.5, 1.0], size=(20_000, 2, size))
    worst = max(moved(one, other) for one, other in drawn)
    bound = float(sensitivity_of(size))
    assert worst <= bound
    share = 1 / (size + 1)  # of A at the maximum: |a_j| = 1 + 1/(n+1), |b_j| = 1 − 1/(n+1)
    signs = np.where(np.arange(size) % 2, -1.0, 1.0)
    corners = np.ones(size), signs * share
    assert max(worst, moved(*corners), moved(np.ones(size), -share * np.ones(size))) > 0.85 * bound


def test_one_value_attains_the_bound_on_moments():
    one, other = 1.0, -0.5  # |a| + |a·b| = 1.5 + 1.5·0.5
    assert abs(one - other) + abs(one**2 - other**2) == float(sensitivity_of(1)) == 2.25


@pytest.mark.parametrize("kind", KINDS)
def test_the_budget_goes_with_the_model(kind):
    rng = np.random.default_rng(1)
    units = 2000 if kind in ("chain", "started") else 6  # few drown in the noise
    frame, _ = neighbours(kind, rng, units=units)
    if kind == "gaussian":  # far inside the bounds
        frame = pd.DataFrame(rng.normal(5, 1.5, size=(60_000, 3)), columns=["x", "y", "z"])
    model = estimators(0.25)[kind].fit(frame).model_
    assert model.provenance == "dp"
    assert model.estimation_epsilon == 0.25
    assert Model.from_dict(model.to_dict()) == model
    for inner in model.inner_models:
        assert inner.estimation_epsilon == 0.25
    assert model != estimators(0.5)[kind].fit(frame).model_


def test_learning_twice_draws_new_noise():
    frame, _ = neighbours("table", np.random.default_rng(1))
    fits = [estimators(0.1)["table"].fit(frame).model_ for _ in range(20)]
    assert len(set(fits)) > 3  # with so few rows, much noise often leaves one cell of twelve


@examples(100, 500)
@given(
    rows=st.lists(st.tuples(*[st.floats(-5, 15)] * 3), min_size=2, max_size=8),
    epsilon=st.floats(1e-3, 1e6),
    low=st.floats(-1e6, 0),
    width=st.floats(1e-6, 1e6),
)
def test_a_covariance_is_positive_definite_or_refused(rows, epsilon, low, width):
    frame = pd.DataFrame(rows * 20, columns=["x", "y", "z"])
    bounds = {"x": (low, low + width), "y": (0.0, 10.0), "z": (-5.0, 15.0)}
    try:
        ball = pdp.GaussianEstimator(bounds=bounds, epsilon=epsilon).fit(frame).model_
    except pdp.ModelError as error:
        reasons = ("too large", "needs at least", "cut off too much")
        assert any(reason in str(error) for reason in reasons)  # noqa: PT017
        return
    half = ball.center.widths / 2
    assert 0 < ball.radius < 1
    assert np.linalg.eigvalsh(ball.center.covariance / np.outer(half, half))[0] > 0


@examples(100, 500)
@given(
    rows=st.lists(st.tuples(st.integers(0, 2), st.booleans()), min_size=1, max_size=8),
    epsilon=st.floats(1e-3, 1e6),
)
def test_a_table_is_always_a_table(rows, epsilon):
    frame = pd.DataFrame(rows, columns=["a", "b"])
    domains = {"a": [0, 1, 2], "b": [False, True]}
    structure = "joint" if len(rows) < 8 else "chow-liu"
    estimator = pdp.TableEstimator(
        domains=domains, epsilon=epsilon, structure=structure, smoothing=0.5
    )
    model = estimator.fit(frame).model_
    assert np.all(model.probabilities > 0)
    assert model.probabilities.sum() == pytest.approx(1.0, abs=1e-12)


@settings(max_examples=100, deadline=None)
@given(noisy=st.lists(st.integers(-1000, 1000), min_size=1, max_size=12), total=st.integers(0, 500))
def test_the_nearest_counts_have_the_sum_and_none_is_nearer(noisy, total):
    found = nearest_with_sum(noisy, total)
    assert np.all(found >= 0)
    assert found.sum() == pytest.approx(total, abs=1e-9 * max(1, total))
    rng = np.random.default_rng(0)
    for other in rng.dirichlet(np.ones(len(noisy)), size=20) * total:
        assert np.sum((found - noisy) ** 2) <= np.sum((other - noisy) ** 2) * (1 + 1e-9) + 1e-6


@pytest.mark.parametrize("kind", KINDS)
def test_with_a_large_budget_the_fit_is_that_without_noise(kind):
    rng = np.random.default_rng(3)
    frame, _ = neighbours(kind, rng, units=120)
    if kind in ("chain", "started", "series"):
        frame = frame.groupby("who").head(LONGEST)  # without epsilon all states count
    if kind in ("group", "series"):  # keep values where nothing is clipped
        frame = frame.assign(load=frame["load"].clip(0, 10))
    if kind == "gaussian":
        frame = pd.DataFrame(rng.normal(5, 1, size=(20_000, 3)), columns=["x", "y", "z"])
    fitted = estimators(1e7)[kind].fit(frame).model_
    plain = estimators(1e7)[kind].set_params(epsilon=None)
    if kind == "gaussian":
        plain.set_params(covariance="empirical")
    expected = plain.fit(frame).model_
    if kind in ("binary", "chain", "started"):  # other limits of the same numbers
        scales = [
            pdp.calibrate(model, pdp.Sum()).scale
            for model in (fitted, plain.set_params(source="public").fit(frame).model_)
        ]
        assert scales[0] == pytest.approx(scales[1], rel=0.1)
        return
    pairs = zip(fitted.inner_models or (fitted,), expected.inner_models or (expected,), strict=True)
    for one, other in pairs:
        assert one.names == other.names
        got, wanted = one.parameters(), other.parameters()
        for key in got:
            if kind == "series" and key in ("correlation", "variance"):
                continue  # centred at the mean of pairs, not of values: compared below
            if not isinstance(got[key], str | type(None)) and key not in ("states", "domains"):
                np.testing.assert_allclose(got[key], wanted[key], rtol=1e-3, atol=1e-4)
    if kind == "series":
        assert fitted.models[0].correlation == pytest.approx(
            expected.models[0].correlation, abs=0.05
        )


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (pdp.TableEstimator(epsilon=1.0), "public domains= or bins=.*Missing: state, load, who"),
        (pdp.TableEstimator(epsilon=1.0, structure="blocks"), "level of a test does not hold"),
        (pdp.TableEstimator(epsilon=0.0), "epsilon must be positive"),
        (pdp.TableEstimator(epsilon=True), "epsilon must be a number, got bool"),
        (pdp.GaussianEstimator(epsilon=1.0), "bounds must be given"),
        (pdp.GaussianEstimator(bounds=(0, 1), epsilon=float("inf")), "positive and finite"),
        (pdp.GaussianEstimator(bounds=(0, 1), epsilon=1.0, covariance="oas"), "read from the rows"),
        (pdp.GaussianEstimator(bounds=(0, 1), epsilon=1e-17), "would not fit into 64 bits"),
        (pdp.GroupEstimator(by="who", value="load", bounds=(0, 1), epsilon=1.0, max_group_size=0),
         "positive whole number, got 0"),
        (pdp.GroupEstimator(by="who", value="load", bounds=(0, 1), epsilon=1.0, max_group_size=1),
         "at most max_group_size=1"),
        (pdp.GroupEstimator(by="who", value="state", kind="binary", epsilon=1.0, max_group_size=1),
         "at most max_group_size=1"),
        (pdp.MarkovChainEstimator(epsilon=1.0, by="who", states=[0, 1]), "max_length="),
        (pdp.MarkovChainEstimator(epsilon=1.0, by="who", max_length=5), "public states="),
        (pdp.MarkovChainEstimator(epsilon=1.0, by="who", states=[0, 1], max_length=1),
         "at least 2, got 1"),
        (pdp.MarkovChainEstimator(epsilon=1.0, states=[0, 1], max_length=5), "a single series is"),
        (pdp.GaussianSeriesEstimator(value="load", epsilon=1.0, by="who"), "bounds="),
        (pdp.GaussianSeriesEstimator(value="load", epsilon=1.0, bounds=(0, 1)), "groups="),
    ],
)  # fmt: skip
def test_what_would_not_be_private_is_refused(estimator, message):
    frame, _ = neighbours("chain", np.random.default_rng(0))
    with pytest.raises(pdp.ModelError, match=message):
        estimator.fit(frame)


def test_only_the_first_states_of_a_series_count(handed):
    rng = np.random.default_rng(0)
    frame, _ = neighbours("chain", rng, units=20)
    short = frame.groupby("who").head(LONGEST)
    for one in (frame, short):
        with contextlib.suppress(pdp.ModelError):
            estimators(1.0)["chain"].fit(one)
    (first, scale), (second, _) = handed
    assert first == second
    assert scale == pytest.approx(2 * (LONGEST - 1))
    assert max(len(rows) for _, rows in frame.groupby("who")) > LONGEST


def correlated(rng, rows, size=3, rho=0.4):
    common = rng.normal(size=(rows, 1))
    return np.sqrt(rho) * common + np.sqrt(1 - rho) * rng.normal(size=(rows, size))


def test_a_confidence_holds_for_the_noise_too():
    """The truth lies in the ball, up to a factor, as often as promised."""
    rng = np.random.default_rng(5)
    truth = np.full((3, 3), 0.4) + 0.6 * np.eye(3)
    roots = np.linalg.cholesky(np.linalg.inv(truth))
    estimator = pdp.GaussianEstimator(bounds=(-6, 6), confidence=0.9, epsilon=1.0)
    missed, radii = 0, []
    for _ in range(60):
        frame = pd.DataFrame(correlated(rng, 20_000).clip(-6, 6), columns=list("abc"))
        ball = estimator.fit(frame).model_
        assert isinstance(ball, pdp.LoewnerBall)
        assert (ball.provenance, ball.estimation_epsilon) == ("dp", 1.0)
        relative = np.linalg.eigvalsh(roots.T @ ball.center.covariance @ roots)
        low, high = 1 / relative[-1], 1 / relative[0]
        missed += (high - low) / (high + low) > ball.radius
        radii.append(ball.radius)
    assert missed <= stats.binom.isf(1e-11, 60, 0.1)
    assert max(radii) < 0.9


def test_the_leakage_under_a_confidence_is_above_the_truth():
    rng = np.random.default_rng(6)
    frame = pd.DataFrame(correlated(rng, 20_000).clip(-6, 6), columns=list("abc"))
    truth = pdp.Gaussian(
        covariance=np.full((3, 3), 0.4) + 0.6 * np.eye(3), bounds=(-6, 6), names="abc"
    )
    set_of_laws = pdp.GaussianEstimator(bounds=(-6, 6), confidence=0.95, epsilon=1.0).fit(frame)
    exact = pdp.leakage(truth, pdp.Sum(), scale=1.0).value
    assert exact < pdp.leakage(set_of_laws.model_, pdp.Sum(), scale=1.0).value < 3 * exact


def test_a_range_of_correlations_holds_for_the_noise_too():
    rng = np.random.default_rng(8)
    estimator = pdp.GroupEstimator(
        by="home", value="x", bounds=(-5, 5), confidence=0.9, epsilon=1.0, max_group_size=3
    )
    covered, widths = 0, []
    for _ in range(15):
        values = correlated(rng, 4000, rho=0.3).clip(-5, 5)
        frame = pd.DataFrame({"home": np.repeat(np.arange(4000), 3), "x": values.ravel()})
        low, high = estimator.fit(frame).model_.models[0].correlation
        assert low == 0  # assumed, and said
        covered += high >= 0.3
        widths.append(high - 0.3)
    assert covered >= stats.binom.ppf(1e-11, 15, 0.9)
    assert -0.1 < min(widths) <= max(widths) < 0.15


def test_too_much_noise_for_the_confidence_is_refused():
    rng = np.random.default_rng(9)
    rows = correlated(rng, 300).clip(-6, 6)
    frame = pd.DataFrame(rows, columns=list("abc"))
    with pytest.raises(pdp.ModelError, match="noise of the estimation is too large"):
        pdp.GaussianEstimator(bounds=(-6, 6), confidence=0.9, epsilon=0.1).fit(frame)
    with pytest.raises(pdp.ModelError, match="needs at least"):
        pdp.GaussianEstimator(bounds=(-6, 6), confidence=0.9, epsilon=9.0).fit(frame[:12])


def test_noise_on_moments_has_the_law_it_says():
    rows = np.zeros((50, 1))
    found = [private_moments(rows, [(-1.0, 1.0)], epsilon=0.5) for _ in range(400)]
    scale = float(sensitivity_of(1)) / 0.5 / 50
    drawn = [float(one.mean[0]) for one in found]
    assert stats.kstest(drawn, stats.laplace(scale=scale).cdf).pvalue > 1e-11
    assert found[0].scale == pytest.approx(scale, rel=1e-6)
    # The error of the covariance keeps its bound as often as it says.
    kept = [abs(float(one.covariance[0, 0])) <= one.row_errors(0.1)[0] for one in found]
    assert sum(kept) >= stats.binom.ppf(1e-11, 400, 0.9)
    tight = [abs(float(one.covariance[0, 0])) > one.row_errors(0.9)[0] for one in found]
    assert sum(tight) > 0


@pytest.mark.parametrize("kind", KINDS)
def test_frames_of_another_library_give_the_same_sums(kind, handed):
    polars = pytest.importorskip("polars")
    frame, _ = neighbours(kind, np.random.default_rng(2))
    shuffled = frame.sample(frac=1, random_state=0, ignore_index=True)
    if "who" in frame and kind != "binary":
        shuffled = frame  # without order_by or role the order of rows counts
    for one in (frame, polars.from_pandas(shuffled)):
        drawn_for(estimators(1.0)[kind], one)
    assert handed[0] == handed[1]


@pytest.mark.parametrize(
    ("kind", "changes", "message"),
    [
        ("gaussian", {"y": "tall"}, "column y must hold numbers"),
        ("group", {"load": "much"}, "column load must hold numbers"),
    ],
)
def test_columns_of_the_wrong_kind_are_named_and_nothing_else(kind, changes, message):
    frame, _ = neighbours(kind, np.random.default_rng(0))
    ((name, value),) = changes.items()
    with pytest.raises(pdp.ModelError, match=message):
        estimators(1.0)[kind].fit(frame.assign(**{name: value}))
