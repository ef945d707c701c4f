"""Gaussian noise from the promise to the release: calibrated, proved again, drawn, described."""

import dataclasses
import json
import math
import warnings

import jsonschema
import numpy as np
import pandas as pd
import pytest
from scipy import stats

import pdp_calibrate as pdp
from pdp_calibrate.core.gaussian_dp import delta_of, mu_of
from pdp_calibrate.core.row_query import Column, RowQuery
from pdp_calibrate.errors import CalibrationError, PdpError
from pdp_calibrate.show.json_schema import json_schema
from tests.oracles import gaussian_noise as oracle

FIVE = np.array([
    [2, 0.6, -0.4, 0.3, 0.1], [0.6, 1.4, 0.2, -0.5, 0.3], [-0.4, 0.2, 1.5, 0.4, -0.2],
    [0.3, -0.5, 0.4, 1.2, 0.25], [0.1, 0.3, -0.2, 0.25, 0.8],
])  # fmt: skip


def household(**more):
    return pdp.GaussianGroup(
        **{"size": 4, "correlation": 0.4, "bounds": (0, 4), "variance": 1.0, **more}
    )


def gaussian(model, query=None, **promise):
    asked = pdp.Sum() if query is None else query
    return pdp.calibrate(model, asked, noise="gaussian", **promise)


@pytest.mark.parametrize(
    ("model", "query", "promise", "scale"),
    [
        (household(), pdp.Sum(), {"epsilon": 1.0, "delta": 1e-6}, 37.1238775377),
        (household(), pdp.Sum(), {"mu": 0.5}, 17.48713813),
        (household(), pdp.Sum(), {"rho": 2.0}, 3.924283374),
        (household(), pdp.Sum(), {"mu": 4.0}, 1.0),
        (
            household(correlation=(-0.2, 0.4)),
            pdp.Sum(),
            {"epsilon": 1, "delta": 1e-6},
            37.1238775378,
        ),
        (
            pdp.GaussianSeries(length=24, correlation=0.8, bounds=(0, 4), variance=1.0),
            pdp.Sum(),
            {"mu": 2.0},
            13.2990332772,
        ),
        (
            pdp.Gaussian(covariance=FIVE, bounds=[(0, m) for m in (5, 4, 3, 6, 2)]),
            pdp.Linear(weights=[1, -0.5, 2, 0, 1.5]),
            {"epsilon": 1.0, "delta": 1e-6},
            54.479272126,
        ),
    ],
)
def test_reference_scales(model, query, promise, scale):
    found = gaussian(model, query, **promise)
    assert found.scale == pytest.approx(scale, rel=1e-8)
    assert found.leakage.value <= found.epsilon
    assert found.leakage.mu <= found.mu
    smaller = pdp.leakage(
        model, query, scale=found.scale * (1 - 1e-6), noise="gaussian", delta=found.delta
    )
    assert smaller.lower > found.epsilon * (1 - 1e-9)


@pytest.mark.parametrize("seed", range(12))
def test_calibrated_delta_by_quadrature(seed):
    rng = np.random.default_rng(seed)
    loadings = rng.normal(size=(4, 2))
    covariance = loadings @ loadings.T + rng.uniform(0.05, 1) * np.eye(4)
    model = pdp.Gaussian(covariance=covariance, bounds=(0, float(rng.uniform(0.5, 3))))
    weights = rng.normal(size=4)
    epsilon, delta = float(rng.uniform(0.3, 3)), 10 ** float(rng.uniform(-6, -2))
    found = gaussian(model, pdp.Linear(weights=weights.tolist()), epsilon=epsilon, delta=delta)
    widths = [high - low for low, high in model.bounds]
    gain, _, _ = oracle.worst(covariance, weights[np.newaxis], [found.scale], widths)
    grid = np.linspace(-60, 60, 400_001)
    mu = math.sqrt(gain)
    surplus = stats.norm.pdf(grid, mu) - math.exp(epsilon) * stats.norm.pdf(grid)
    truth = float(np.trapezoid(np.maximum(surplus, 0), grid))
    assert truth <= delta * (1 + 1e-6)
    assert truth >= delta * (1 - 1e-5)


def test_lists_are_proved_together():
    queries = [pdp.Sum(), pdp.Linear(weights=[1, -1, 0, 0])]
    found = gaussian(household(), queries, epsilon=1.0, delta=1e-6)
    rows = np.array([[1, 1, 1, 1], [1, -1, 0, 0]])
    covariance = 0.4 + 0.6 * np.eye(4)
    gain, _, _ = oracle.worst(covariance, rows, list(found.scale), [4] * 4)
    assert math.sqrt(gain) <= found.mu
    assert math.sqrt(gain) == pytest.approx(found.mu, rel=1e-6)
    assert found.scale[0] == pytest.approx(found.scale[1], rel=1e-12)
    value = found.release(dict.fromkeys(range(4), 1.0)).value
    assert len(value) == 2


def test_the_same_answer_again_needs_noise_that_grows_with_the_root():
    found = gaussian(household(), [pdp.Sum()] * 4, epsilon=1.0, delta=1e-6)
    assert found.scale == pytest.approx([74.2477550755] * 4, rel=1e-8)


def test_a_variance_that_is_not_stated_is_not_counted():
    stated = gaussian(household(), mu=1.0)
    open_ = gaussian(household(variance=None), mu=1.0)
    assert open_.scale == pytest.approx(8.8, rel=1e-9)  # β·M/μ, without s²
    assert stated.scale < open_.scale


def test_clamped_answers_by_their_coupling():
    found = gaussian(household(), pdp.Sum(clamp=True), mu=1.0)
    laplace = pdp.calibrate(household(), pdp.Sum(clamp=True), epsilon=1.0)
    assert found.scale == pytest.approx(laplace.scale, rel=1e-9)


def test_blocks_and_sets():
    homes = pdp.Blocks(models=[household(), household(size=2)], counts=[3, 5])
    assert gaussian(homes, mu=1.0).scale == pytest.approx(8.572047597, rel=1e-8)
    either = pdp.ModelSet(models=[household(correlation=0.1), household()])
    assert gaussian(either, mu=1.0).scale == pytest.approx(8.572047597, rel=1e-8)


def test_no_noise_needed_is_refused():
    wide = pdp.Gaussian(covariance=np.eye(3), bounds=(0, 1))
    with pytest.raises(CalibrationError, match="no noise is needed"):
        gaussian(wide, mu=2.0, adversaries=pdp.Adversaries.weakest())


@pytest.mark.parametrize(
    ("promise", "message"),
    [
        ({"epsilon": 1.0}, "give delta="),
        ({}, "give delta="),
        ({"epsilon": 1.0, "mu": 1.0}, "one of epsilon"),
        ({"mu": 1.0, "rho": 1.0}, "one of epsilon"),
        ({"epsilon": None, "delta": 1e-6}, "epsilon must be a number"),
        ({"epsilon": 1.0, "delta": 0.0}, "delta"),
        ({"epsilon": 1.0, "delta": 1.0}, "delta"),
        ({"epsilon": 1.0, "delta": "small"}, "delta"),
        ({"mu": -1.0}, "mu"),
        ({"rho": math.inf}, "rho"),
        ({"mu": 1e-9, "delta": 0.1}, "smaller delta"),
        ({"epsilon": 0.0, "delta": 0.1}, "epsilon"),
    ],
)
def test_promises_that_make_no_sense_are_refused(promise, message):
    with pytest.raises(PdpError, match=message):
        gaussian(household(), **promise)


def test_laplace_noise_takes_no_delta():
    for more in ({"delta": 1e-6}, {"mu": 1.0}, {"rho": 1.0}):
        with pytest.raises(PdpError, match="noise='gaussian'"):
            pdp.calibrate(household(), pdp.Sum(), **more)
    for more in ({"delta": 1e-6}, {"unit": "mu"}):
        with pytest.raises(PdpError, match="noise='gaussian'"):
            pdp.leakage(household(), pdp.Sum(), **more)
    with pytest.raises(PdpError, match="did you mean gaussian"):
        pdp.calibrate(household(), pdp.Sum(), noise="gausian")


def test_units_of_a_leakage():
    asked = {"scale": 10.0, "noise": "gaussian"}
    mu = pdp.leakage(household(), pdp.Sum(), **asked)
    rho = pdp.leakage(household(), pdp.Sum(), unit="rho", **asked)
    epsilon = pdp.leakage(household(), pdp.Sum(), delta=1e-5, **asked)
    assert (mu.unit, rho.unit, epsilon.unit) == ("mu", "rho", "epsilon")
    assert mu.value == mu.mu == rho.mu == epsilon.mu
    assert rho.value == pytest.approx(mu.value**2 / 2, rel=1e-12)
    assert delta_of(mu.lower, epsilon.lower * (1 - 1e-9)) >= 1e-5 * (1 - 1e-9)
    assert delta_of(mu.mu, epsilon.value) <= 1e-5
    assert epsilon.value == mu.epsilon(1e-5)
    assert mu.epsilon(0.0) == math.inf
    assert all(one.exact for one in (mu, rho, epsilon))
    with pytest.raises(PdpError, match="delta"):
        mu.epsilon(1.0)
    with pytest.raises(PdpError, match="needs a delta"):
        pdp.leakage(household(), pdp.Sum(), unit="epsilon", **asked)
    with pytest.raises(PdpError, match="unit must be"):
        pdp.leakage(household(), pdp.Sum(), unit="sigma", **asked)
    laplace = pdp.leakage(household(), pdp.Sum(), scale=10.0)
    assert laplace.epsilon(0.0) == laplace.epsilon(0.1) == laplace.value


def test_scales_below_what_floats_can_draw_are_refused():
    tiny = household(bounds=(0, 1e-307), variance=1e-280)
    with pytest.raises(PdpError):
        gaussian(tiny, epsilon=1.0, delta=1e-12)


def test_what_is_drawn_is_normal_with_this_scale():
    found = gaussian(household(), mu=1.0)
    frame = __import__("pandas").DataFrame(np.full((4000, 4), 1.0), columns=range(4))
    noisy = found.release_rows(frame).value.to_numpy()
    assert stats.kstest((noisy - 4) / found.scale, "norm").pvalue > 1e-11  # noise takes no seed
    assert np.mean(np.abs(noisy - 4) > found.accuracy(alpha=0.1)) == pytest.approx(0.1, abs=0.035)


def test_intervals_use_normal_quantiles():
    found = gaussian(household(), mu=1.0)
    assert found.accuracy(alpha=0.05) == pytest.approx(1.959963985 * found.scale, rel=1e-9)
    release = found.release(dict.fromkeys(range(4), 1.0))
    low, high = release.interval()
    assert high - low == pytest.approx(2 * found.accuracy())
    back = pdp.calibrate_to_accuracy(
        household(), pdp.Sum(), half_width=found.accuracy(), noise="gaussian", delta=found.delta
    )
    assert back.scale == pytest.approx(found.scale, rel=1e-9)
    assert back.epsilon == pytest.approx(found.epsilon, rel=1e-6)
    assert back.mu == back.leakage.mu


def test_baselines():
    found = gaussian(household(), epsilon=1.0, delta=1e-6)
    mu = mu_of(1.0, 1e-6)
    assert found.baselines["dp"] == pytest.approx(4 / mu, rel=1e-9)
    assert found.baselines["group"] == pytest.approx(16 / mu, rel=1e-9)
    assert found.baselines["wasserstein"] is None
    plain = dataclasses.replace(found, scale=found.baselines["dp"])
    assert plain.dp_epsilon == pytest.approx(1.0, rel=1e-6)
    several = gaussian(household(), [pdp.Sum(), pdp.Sum()], epsilon=1.0, delta=1e-6)
    assert several.baselines["dp"] == pytest.approx([4 * math.sqrt(2) / mu] * 2, rel=1e-9)


@pytest.mark.parametrize("query", [pdp.Sum(), [pdp.Sum(), pdp.Linear(weights=[1, 2, 0, 0])]])
def test_json_is_proved_again(query):
    found = gaussian(household(), query, epsilon=1.0, delta=1e-6)
    described = json.loads(found.to_json())
    jsonschema.validate(described, json_schema())
    assert (described["delta"], described["mu"]) == (1e-6, found.mu)
    again = pdp.Calibration.from_json(found.to_json())
    assert (again.noise, again.scale, again.mu) == ("gaussian", found.scale, found.mu)
    assert again.leakage.mu == pytest.approx(found.leakage.mu, rel=1e-9)
    release = found.release(dict.fromkeys(range(4), 1.0))
    jsonschema.validate(json.loads(release.to_json()), json_schema())
    assert pdp.Release.from_json(release.to_json()).value == release.value
    assert pdp.verify(found).mu <= found.mu


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scale": 37.0}, "above the epsilon"),
        ({"epsilon": 0.99}, "above the epsilon"),
        ({"delta": 1e-7}, "above the epsilon"),
        ({"mu": 0.2}, "above the epsilon"),
        ({"delta": None}, "delta"),
        ({"noise": ["Gaussian", "Laplace"]}, "all have Gaussian noise"),
    ],
)
def test_false_claims_in_json_are_refused(change, message):
    described = json.loads(gaussian(household(), epsilon=1.0, delta=1e-6).to_json())
    with pytest.raises(PdpError, match=message):
        pdp.Calibration.from_json(json.dumps(described | change))


def test_learning_the_model_multiplies_delta():
    model = household(provenance="dp").learned_with(0.5)
    found = gaussian(model, epsilon=1.0, delta=1e-6)
    assert found.total_epsilon == pytest.approx(1.5)
    assert found.total_delta == pytest.approx(1e-6 * math.exp(0.5))
    assert found.total_delta >= 1e-6 * math.exp(0.5)


def test_words_and_report(tmp_path):
    found = gaussian(household(), epsilon=1.0, delta=1e-6)
    text = pdp.explain(found)
    assert "δ = 1e-06" in text
    assert "0.2367 standard deviations" in text
    assert "is the data's own" in text
    assert "No variance is smaller" in text
    assert "ledger" not in text
    clamped = pdp.explain(gaussian(household(), pdp.Sum(clamp=True), mu=1.0))
    assert "No variance is smaller" not in clamped
    assert "μ = 0.2" in pdp.explain(
        pdp.leakage(household(), pdp.Sum(), scale=37.1239, noise="gaussian")
    )
    page = tmp_path / "page.html"
    pdp.report(found, page)
    html = page.read_text(encoding="utf-8")
    assert "scale σ" in html
    assert "scale λ" not in html
    for shown in (found._repr_html_(), found.leakage._repr_html_()):
        assert "σ" in shown
        assert "λ" not in shown


def test_whole_numbers_are_rounded_after_the_noise():
    people = pd.DataFrame({"home": [0, 0, 1, 1, 2, 2], "sick": [True, False] * 3})
    cal = people.pdp.count(
        {"sick": True}, groups="home", domains={"sick": [False, True]}, noise="gaussian",
        epsilon=1.0, delta=1e-6,
    ).calibration  # fmt: skip
    assert cal.scale == pytest.approx(2 / mu_of(1.0, 1e-6), rel=1e-6)  # both members move together
    unknown = pdp.Unknown(size=2, domain=[0, 1])
    whole = pdp.calibrate(unknown, pdp.Sum(), noise="gaussian", epsilon=1.0, delta=1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        release = whole.release({0: 1, 1: 0})
    assert isinstance(release.value, int)
    low, high = release.interval()
    assert (low, high) == (release.value - whole.accuracy(), release.value + whole.accuracy())
    width = whole.accuracy(alpha=0.05)
    inside = math.erf((width + 0.5) / whole.scale / math.sqrt(2))
    assert width == int(width)
    assert inside >= 0.95 > math.erf((width - 0.5) / whole.scale / math.sqrt(2))


def test_pictures_show_the_standard_deviation():
    found = gaussian(household(), epsilon=1.0, delta=1e-6)
    axes = pdp.plots.leakage_by_scale(found).axes[0]
    assert "σ" in axes.get_xlabel()
    assert "δ = 1e-06" in axes.get_ylabel()
    assert pdp.plots.scales(found).axes
    assert pdp.plots.leakage_by_knowledge(found).axes


def test_what_counts_laplace_noise_refuses_gaussian():
    found = gaussian(household(), epsilon=1.0, delta=1e-6)
    ledger = pdp.Ledger(household(), epsilon=2.0)
    data = dict.fromkeys(range(4), 1.0)
    for use in (
        lambda: ledger.spend(found),
        lambda: found.release(data, ledger=ledger),
    ):
        with pytest.raises(pdp.LedgerError, match="delta="):
            use()
    assert ledger.spent == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found.release(data)  # nothing was noted by the releases refused


def test_no_group_baseline_of_a_series_without_an_end():
    """Group privacy of all steps together is out of reach: no noise is enough."""
    endless = pdp.GaussianSeries(length=None, correlation=0.6, bounds=(0, 1), variance=1.0)
    found = pdp.calibrate(
        endless, pdp.EachStep(pdp.Sum(clamp=True)), epsilon=1.0, noise="gaussian", delta=1e-6
    )
    assert found.baselines["group"] is None
    assert found.baselines["dp"] > 0
    assert "group privacy" not in pdp.explain(found)


JOB = Column(name="job", values=(True,))
WEEKS = pd.DataFrame({"p": np.repeat(range(40), 12), "w": np.tile(range(12), 40), "job": True})


@pytest.mark.parametrize(
    ("noise", "options", "known"),
    [
        ("gaussian", {"by": "w", "public": ["w"]}, False),  # of 12 answers, not of one
        ("laplace", {"by": "w", "public": ["w"]}, True),  # in L1 all 12 changes add up anyhow
        ("gaussian", {"by": "w", "domains": {"w": range(12)}}, True),  # all rows may be in one
        ("gaussian", {"where": {"w": 3}, "public": ["w"]}, True),
    ],
)
def test_no_group_baseline_of_another_partition(noise, options, known):
    said = {"groups": "p", "epsilon": 1.0, "noise": noise} | options
    said |= {"delta": 1e-6} if noise == "gaussian" else {}
    found = WEEKS.pdp.calibrate("count(job=true)", **said)
    assert (found.baselines["group"] is not None) is known
    assert ("group privacy) would need" in pdp.explain(found)) is known
    assert found.baselines["dp"] > 0


def test_no_group_baseline_of_answers_about_different_rows():
    queries = [
        RowQuery(kind="count", where=[Column(name="w", values=(week,)), JOB], public=["w"])
        for week in range(3)
    ]
    home = pdp.Unknown(size=12, bounds=(0, 1))
    assert pdp.calibrate(home, queries, epsilon=1.0).baselines["group"] is None
    assert pdp.calibrate(home, queries[:1], epsilon=1.0).baselines["group"] is not None
