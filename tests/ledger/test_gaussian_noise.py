"""Ledgers of Gaussian noise: exact joint amounts, a filter, and what they refuse."""

import itertools
import json
import math

import numpy as np
import pytest

import pdp_calibrate as pdp
from pdp_calibrate import BudgetExceededError, LedgerError, PdpError
from pdp_calibrate.core import gaussian_dp
from tests.oracles import gaussian_noise as oracle
from tests.oracles.adversaries import every_adversary

MU = 0.236704380663  # of (1, 1e-6)
WEAKEST = pdp.Adversaries.weakest()
DATA = {0: 1.0, 1: 2.0, 2: 3.0, 3: 0.5}


def household(size=4, **options):
    return pdp.GaussianGroup(
        size=size, correlation=0.4, bounds=(0, 4), **{"variance": 1.0} | options
    )


def model_of(covariance, widths):
    return pdp.Gaussian(
        mean=np.zeros(len(covariance)),
        covariance=covariance,
        bounds=[(0.0, float(width)) for width in widths],
    )


def at_scale(model, query, scale, **options):
    """A release with noise of this very scale."""
    cal = pdp.calibrate(model, query, noise="gaussian", mu=1.0, **options)
    return cal.with_noise(scale / cal.scale)


def ledger_for(model, **options):
    return pdp.Ledger(model, **{"epsilon": 1.0, "delta": 1e-6, "noise": "gaussian"} | options)


# Correlations where each release blurs itself, and the other tells what blurs it.
UNEQUAL = np.array([[1, -0.2, -0.4], [-0.2, 1, 0.97], [-0.4, 0.97, 1]])
UNEQUAL_ROWS = np.array([[1.1, -0.5, 1.55], [0.33, 0.7, -0.95]])
UNEQUAL_SCALES = (0.28, 0.076)


def test_own_amounts_of_one_adversary_must_not_be_added():
    model = model_of(np.eye(2), [1, 1])
    only = pdp.Adversaries.exactly("x1", known=[])
    queries = pdp.Sum(), pdp.Linear(weights=[0.0, 1.0])
    ledger = pdp.Ledger(model, mu=100.0, noise="gaussian", adversaries=only)
    own = 0.0
    for query in queries:
        alone = pdp.leakage(model, query, scale=0.1, noise="gaussian", adversaries=only)
        own += alone.mu**2
        # The second alone says nothing to this adversary, so no calibration of it has a scale.
        ledger.spend(at_scale(model, query, 0.1))
    assert own == pytest.approx(0.9900990099, rel=1e-9)
    assert ledger.history[-1].joint_mu ** 2 == pytest.approx(50.2487562189, rel=1e-9)


def test_largest_amounts_must_not_be_added():
    model = model_of(UNEQUAL, [1, 1, 1])
    first, second = (
        at_scale(model, pdp.Linear(weights=row.tolist()), scale)
        for row, scale in zip(UNEQUAL_ROWS, UNEQUAL_SCALES, strict=True)
    )
    ledger = pdp.Ledger(model, mu=math.sqrt(200.0), noise="gaussian")
    ledger.spend(first)
    assert ledger.history[-1].joint_mu ** 2 == pytest.approx(30.6441326531, rel=1e-9)
    # Its own 156.25 and what was spent stay below 200 together, and yet it must be refused.
    with pytest.raises(BudgetExceededError, match="Nothing was released"):
        ledger.spend(second)
    assert len(ledger.history) == 1
    larger = pdp.Ledger(model, mu=math.sqrt(228.56), noise="gaussian")
    larger.spend(first)
    larger.spend(second)
    assert larger.history[-1].joint_mu ** 2 == pytest.approx(228.557608182, rel=1e-9)
    # Where other mechanisms may follow, what nobody knows is no noise.
    beside = pdp.Ledger(model, mu=100.0, pure=0.5, noise="gaussian")
    beside.spend(first)
    beside.spend(second)
    assert beside.history[-1].joint_mu ** 2 == pytest.approx(830.238151600, rel=1e-9)


@pytest.mark.parametrize("number", [1, 4, 12, 52])
def test_releases_of_one_sum(number):
    scale = {1: 37.1238775377, 4: 74.2477550755, 12: 128.600884139, 52: 267.704088013}[number]
    ledger = ledger_for(household())
    fitting = at_scale(household(), pdp.Sum(), scale * (1 + 2e-6))
    for _ in range(number):
        ledger.spend(fitting)
    assert ledger.history[-1].joint_mu == pytest.approx(MU, rel=3e-6)
    assert ledger.spent <= 1.0
    with pytest.raises(BudgetExceededError):
        ledger.spend(fitting)


@pytest.mark.parametrize("seed", range(6))
def test_what_each_release_adds_is_its_gain_given_all_earlier_ones(seed):
    random = np.random.default_rng(seed)
    size = int(random.integers(2, 5))
    root = random.normal(size=(size, size + 1))
    covariance = root @ root.T
    rows, scales = random.normal(size=(3, size)), random.uniform(0.3, 3.0, 3)
    widths = random.uniform(0.5, 3.0, size)
    model = model_of(covariance, widths)
    ledger = pdp.Ledger(model, mu=1e4, noise="gaussian")
    gains = dict.fromkeys(every_adversary(size), 0.0)
    for number, (row, scale) in enumerate(zip(rows, scales, strict=True)):
        ledger.spend(at_scale(model, pdp.Linear(weights=row.tolist()), float(scale)))
        for target, known in gains:
            gains[target, known] += oracle.gain(
                covariance, rows[: number + 1], scales[: number + 1], target, known, after=number
            )
        worst = max(widths[target] ** 2 * gain for (target, _), gain in gains.items())
        assert ledger.history[-1].joint_mu == pytest.approx(math.sqrt(worst), rel=1e-8)


def test_other_households_only_know():
    ledger = ledger_for(pdp.Blocks(models=[household()], counts=[50]))
    ledger.spend(at_scale(ledger.model, pdp.Sum(), 74.0))
    alone = 4 * 2.2 / math.sqrt(74.0**2 + 3.96)
    assert ledger.history[-1].joint_mu == pytest.approx(alone, rel=1e-9)


def test_a_whole_budget_fits_once_and_the_rest_fits_in_parts():
    ledger = ledger_for(household())
    release = ledger.release(pdp.Sum(), DATA, epsilon=1.0)
    assert release.calibration.noise == "gaussian"
    with pytest.raises(BudgetExceededError):
        ledger.release(pdp.Sum(), DATA, epsilon=None)
    ledger = ledger_for(household())
    ledger.release(pdp.Sum(), DATA, epsilon=0.5)
    before = ledger.would_spend(pdp.Sum(), epsilon=0.4)
    ledger.release(pdp.Sum(), DATA, epsilon=0.4)
    assert ledger.spent == before
    last = ledger.release(pdp.Sum(over=[0, 1]), DATA, epsilon=None).calibration
    assert ledger.spent <= 1.0
    assert ledger.remaining < 1e-4
    assert pdp.verify(last).value <= last.epsilon


def test_a_ledger_on_disk_goes_on(tmp_path):
    path = tmp_path / "ledger.json"
    ledger = ledger_for(household(), path=path, pure=0.2)
    ledger.release(pdp.Sum(), DATA, epsilon=0.3)
    ledger.release(pdp.Sum(), DATA, epsilon=0.1, noise="laplace")
    ledger.charge(mu=0.01, note="elsewhere")
    again = pdp.Ledger.open(path)
    assert (again.epsilon, again.delta, again.mu) == (1.0, 1e-6, ledger.mu)
    assert again.spent == ledger.spent
    assert [entry.noise for entry in again.history] == ["gaussian", "laplace", "laplace"]
    assert again.release(pdp.Sum(), DATA, epsilon=0.05).calibration.noise == "gaussian"
    assert again.spent > ledger.history[2].spent
    assert str(DATA[2]) not in json.dumps(json.loads(path.read_text())["entries"][0])


def test_ledgers_are_described_in_words_json_and_pages(tmp_path):
    jsonschema = pytest.importorskip("jsonschema")
    path = tmp_path / "ledger.json"
    for options in ({}, {"pure": 0.2}, {"epsilon": None, "rho": 0.05, "pure": 0.0}):
        path.unlink(missing_ok=True)
        ledger = ledger_for(household(), path=path, **options)
        ledger.release(pdp.Sum(), DATA, epsilon=0.1)
        if options:
            ledger.charge(mu=0.01)
        if "rho" in options:
            ledger.charge(rho=1e-5)
        jsonschema.validate(json.loads(path.read_text()), pdp.json_schema())
        words = pdp.explain(ledger)
        assert f"{ledger.mu:.6g}" in words
        assert "Gaussian noise" in words
        assert "μ" in ledger._repr_html_()
        page = tmp_path / "page.html"
        pdp.report(ledger, page, overwrite=True)
        assert "used" in page.read_text()


def test_laplace_beside_gaussian_is_divided_beforehand():
    model = household()
    ledger = ledger_for(model, pure=0.4)
    assert ledger.mu == pytest.approx(gaussian_dp.mu_of(0.6, 1e-6), rel=1e-9)
    ledger.release(pdp.Sum(), DATA, epsilon=0.4, noise="laplace")
    with pytest.raises(BudgetExceededError):
        ledger.release(pdp.Sum(), DATA, epsilon=0.01, noise="laplace")
    alone = pdp.leakage(model, pdp.Sum(), scale=100.0, noise="gaussian").mu
    ledger.spend(at_scale(model, pdp.Sum(), 100.0))
    without = 4 * 2.2 / 100.0  # what nobody knows does not count beside Laplace noise
    assert ledger.history[-1].joint_mu == pytest.approx(without, rel=1e-9)
    assert alone < without
    assert gaussian_dp.delta_of(without, ledger.spent * (1 + 1e-9) - 0.4) <= 1e-6
    with pytest.raises(LedgerError, match="pure="):
        ledger_for(model).release(pdp.Sum(), DATA, epsilon=0.1, noise="laplace")
    with pytest.raises(LedgerError, match="pure="):
        ledger_for(model).charge(0.1)


def shared_bits(shares):
    """Return x1 and its shares (a, b), b = a xor x1: a alone tells nothing of x1, nor does b."""
    values = ["00", "01", "10", "11"]
    probabilities = np.zeros((2, *[4] * shares))
    for bit, row in itertools.product((0, 1), itertools.product(range(4), repeat=shares)):
        if all(values[one] in (("00", "11"), ("01", "10"))[bit] for one in row):
            probabilities[(bit, *row)] = 0.5 ** (shares + 1)
    return pdp.JointTable(probabilities=probabilities, domains=[[0, 1], *[values] * shares])


def delta_about_the_bit(shares, laplace, sigma, epsilon):
    """Integrate what the counts of both halves, with their noise, tell of x1 beside ε."""
    outputs = np.linspace(-14 * sigma, shares + 14 * sigma, 8001)
    decay, total = math.exp(-1 / laplace), 0.0
    for noisy in range(-30, 30 + shares):
        given = [0.0, 0.0]
        for ones in range(shares + 1):
            weight = math.comb(shares, ones) / 2**shares * decay ** abs(noisy - ones)
            for bit, other in enumerate((ones, shares - ones)):
                given[bit] += weight * np.exp(-(((outputs - other) / sigma) ** 2) / 2)
        total += np.maximum(given[0] - math.exp(epsilon) * given[1], 0.0).sum()
    normal = (1 - decay) / (1 + decay) / (sigma * math.sqrt(2 * math.pi))
    return total * normal * (outputs[1] - outputs[0])


@pytest.mark.parametrize("laplace_first", [True, False])
def test_what_laplace_noise_tells_of_the_unknown_counts_for_gaussian_noise(laplace_first):
    model = shared_bits(5)
    shares = [name for name in model.names if name != "x1"]
    first = pdp.Count(values={"10", "11"}, over=shares)
    second = pdp.Count(values={"01", "11"}, over=shares)
    data = {"x1": 0} | dict.fromkeys(shares, "00")
    ledger = pdp.Ledger(model, epsilon=8.0, delta=1e-6, pure=3.0)
    asked = [(first, "laplace"), (second, "gaussian")]
    scales = {}
    for query, noise in asked if laplace_first else asked[::-1]:
        done = ledger.release(query, data, epsilon=None, noise=noise)
        scales[noise] = done.calibration.scale
    assert ledger.spent <= 8.0
    assert delta_about_the_bit(5, scales["laplace"], scales["gaussian"], 8.0) <= 1e-6
    # A coupling of the second count alone moves it by 2, and would promise 80 times too much.
    assert delta_about_the_bit(5, 1 / 3.0, 2 / ledger.mu, 8.0) > 7e-5
    # What has Laplace noise and is chosen after Gaussian outputs counts as far as it moves at all.
    expected = 1 / 3.0 if laplace_first else 5 / 3.0
    assert scales["laplace"] == pytest.approx(expected, rel=1e-5)
    assert scales["gaussian"] == pytest.approx(5 / ledger.mu, rel=1e-5)


def test_mixed_noise_on_tables_is_counted_against_everyone():
    with pytest.raises(LedgerError, match="everyone"):
        pdp.Ledger(shared_bits(1), epsilon=8.0, delta=1e-6, pure=3.0, adversaries=WEAKEST)
    weakest = ledger_for(household(), pure=0.4, adversaries=WEAKEST)
    weakest.release(pdp.Sum(), DATA, epsilon=0.2, noise="laplace")


def test_later_releases_of_gaussian_tuples_are_counted_with_the_earlier_ones():
    found = []
    for order in (0, 1):
        ledger = ledger_for(household(), pure=0.4)
        for step in range(3):
            if step == order:
                ledger.spend(at_scale(household(), pdp.Sum(), 100.0))
            else:
                ledger.release(pdp.Sum(), DATA, epsilon=0.1, noise="laplace")
        ledger.charge(0.01)
        found.append(ledger.spent)
    assert found[0] == pytest.approx(found[1], rel=1e-12)


def test_pure_ledgers_take_no_gaussian_noise():
    ledger = pdp.Ledger(household(), epsilon=1.0)
    with pytest.raises(LedgerError, match="delta="):
        ledger.release(pdp.Sum(), DATA, epsilon=0.5, noise="gaussian", delta=1e-6)
    with pytest.raises(LedgerError, match="delta="):
        ledger.charge(mu=0.1)
    with pytest.raises(LedgerError, match="delta="):
        pdp.calibrate(household(), pdp.Sum(), noise="gaussian", mu=0.1).release(DATA, ledger=ledger)
    assert ledger.history == ()


@pytest.mark.parametrize(
    "options",
    [
        {"delta": None},
        {"mu": 1.0},
        {"epsilon": None, "mu": 1.0, "rho": 1.0},
        {"delta": 0.0},
        {"delta": math.nan},
        {"pure": -0.1},
        {"pure": 1.0},
        {"epsilon": None, "mu": math.inf},
        {"noise": "normal"},
    ],
)
def test_impossible_budgets(options):
    with pytest.raises(PdpError):
        ledger_for(household(), **options)


def test_outside_mechanisms_count_once_for_everyone_they_may_move():
    ledger = ledger_for(household(), pure=0.0)
    ledger.charge(mu=0.02)
    assert ledger.history[-1].joint_mu == pytest.approx(0.08)  # four members move together
    ledger.charge(mu=0.02, neighbours="add-remove")
    assert ledger.history[-1].joint_mu == pytest.approx(math.hypot(0.08, 0.16))
    ledger.spend(at_scale(household(), pdp.Sum(), 100.0))
    assert ledger.history[-1].joint_mu == pytest.approx(math.hypot(0.08, 0.16, 0.088))
    with pytest.raises(LedgerError, match="rho="):
        ledger.charge(rho=0.001)
    with pytest.raises(PdpError, match="one of"):
        ledger.charge(0.1, mu=0.1)
    with pytest.raises(BudgetExceededError):
        ledger.charge(mu=1.0)


def test_a_budget_of_rho():
    ledger = pdp.Ledger(household(), rho=0.05, delta=1e-6, pure=0.0)
    assert ledger.epsilon > gaussian_dp.epsilon_of(math.sqrt(0.1), 1e-6)
    ledger.charge(rho=0.001)
    assert ledger.history[-1].joint_mu ** 2 / 2 == pytest.approx(0.016)
    ledger.charge(rho=0.0005, neighbours="add-remove")
    assert ledger.history[-1].joint_mu ** 2 / 2 == pytest.approx(0.048)
    with pytest.raises(BudgetExceededError):
        ledger.charge(rho=0.001)
    strict = pdp.Ledger(household(), mu=0.1)
    assert strict.mu == 0.1
    assert strict.epsilon == pytest.approx(gaussian_dp.epsilon_of(0.1, 1e-6), rel=1e-6)


def test_learning_the_model_comes_first():
    model = household(provenance="dp").learned_with(0.25)
    ledger = ledger_for(model)
    expected = gaussian_dp.mu_of(0.75, 1e-6 * math.exp(-0.25))
    assert ledger.mu == pytest.approx(expected, rel=1e-9)
    assert ledger.spent == 0.25
    ledger.release(pdp.Sum(), DATA, epsilon=0.5)
    assert 0.25 < ledger.spent <= 1.0
    with pytest.raises(LedgerError, match="epsilon="):
        pdp.Ledger(model, mu=0.1)


def test_unstated_variances_and_clamped_values():
    unstated = ledger_for(household(variance=None))
    unstated.spend(at_scale(unstated.model, pdp.Sum(), 100.0))
    assert unstated.history[-1].joint_mu == pytest.approx(0.088)
    clamped = ledger_for(household())
    for _ in range(3):
        clamped.spend(at_scale(clamped.model, pdp.Sum(clamp=True), 100.0))
    assert clamped.history[-1].joint_mu == pytest.approx(0.088 * math.sqrt(3), rel=1e-9)
    with pytest.raises(PdpError, match="clamp"):
        clamped.spend(at_scale(clamped.model, pdp.Sum(), 100.0))
