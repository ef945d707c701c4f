"""Ledgers of Gaussian noise on finite laws: repeats of one query are counted exactly.

The oracle sums hockey-stick divergences of two answers on a grid, the second chosen by the first.
"""

import contextlib
import itertools
import json
import math
import shutil
from pathlib import Path

import numpy as np
import pytest

import pdp_calibrate as pdp
from pdp_calibrate import BudgetExceededError, LedgerError, PdpError
from pdp_calibrate.core import gaussian_dp
from tests.oracles.adaptive_noise import compared_laws, delta_of_worst_choices
from tests.support.marks import slow_after

OHIO = np.array([355, 16, 23, 6, 27, 3, 13, 7, 31, 6, 6, 3, 10, 4, 9, 18]) / 537
DATA = {"x1": 0, "x2": 1, "x3": 0, "x4": 1}
FIRST = pdp.Sum(over=["x1"])
EPSILON, DELTA = 1.0, 1e-6

PAIR = np.array([[0.4, 0.1], [0.1, 0.4]])
UNEVEN = np.array([[0.05, 0.30, 0.05], [0.30, 0.05, 0.25]])
TWO = {"x1": 0, "x2": 1}


def ohio():
    return pdp.JointTable(probabilities=OHIO.reshape([2] * 4), domains=[[0, 1]] * 4)


def pair():
    return pdp.JointTable(probabilities=PAIR, domains=[[0, 1]] * 2)


def ledger_for(model, **options):
    asked = {"epsilon": EPSILON, "delta": DELTA, "noise": "gaussian"}
    return pdp.Ledger(model, **asked | options)


def smallest_scale(model, query, *, delta=DELTA):
    return pdp.calibrate(model, query, epsilon=EPSILON, delta=delta, noise="gaussian").scale


def of_scale(model, query, scale):
    alone = pdp.calibrate(model, query, epsilon=EPSILON, delta=DELTA, noise="gaussian")
    return alone.with_noise(scale / alone.scale)


@pytest.mark.parametrize(("repeats", "share"), [(None, 0.5), (1, 1.0)])
def test_ten_equal_releases_need_no_more_noise_than_one_exact_answer(repeats, share):
    model, exact = ohio(), smallest_scale(ohio(), pdp.Sum(), delta=share * DELTA)
    ledger = ledger_for(model, repeats=repeats)
    tenth = of_scale(model, pdp.Sum(), exact * math.sqrt(10) * (1 + 1e-9))
    ledger.spend_together([(tenth, None, None)] * 9)
    ledger.spend(tenth)
    assert ledger.history[-1].method == "repeats"
    assert 1 - 1e-7 < ledger.spent <= 1
    with pytest.raises(BudgetExceededError):
        ledger.spend(tenth)
    by_coupling = 4 / gaussian_dp.mu_of(EPSILON, DELTA)
    assert by_coupling / exact == pytest.approx({0.5: 1.658, 1.0: 1.714}[share], abs=1e-3)
    too_little = ledger_for(model, repeats=repeats)
    louder = of_scale(model, pdp.Sum(), exact * math.sqrt(2) * (1 - 1e-7))
    too_little.spend(louder)
    with pytest.raises(BudgetExceededError):
        too_little.spend(louder)


def test_the_first_release_settles_the_shares():
    # It needs all of delta: then there is nothing for another query.
    ledger = ledger_for(pair())
    assert (ledger.repeats, ledger.mu) == (0.5, pytest.approx(gaussian_dp.mu_of(1, DELTA / 2)))
    ledger.release(pdp.Sum(), TWO, epsilon=EPSILON)
    assert (ledger.repeats, ledger.mu) == (1.0, None)
    with pytest.raises(BudgetExceededError, match="repeats of the first query"):
        ledger.release(FIRST, TWO, epsilon=1e-3)
    with pytest.raises(BudgetExceededError):
        ledger.release(FIRST, TWO, epsilon=None)
    # Several at once: there are no repeats of one.
    ledger = ledger_for(pair())
    ledger.release([pdp.Sum(), FIRST], TWO, epsilon=0.5)
    assert (ledger.repeats, ledger.mu) == (0.0, pytest.approx(gaussian_dp.mu_of(1, DELTA)))
    # The same one twice at once is a repeat.
    ledger = ledger_for(pair())
    ledger.release([pdp.Sum(), pdp.Sum()], TWO, epsilon=0.5)
    assert ledger.repeats == 0.5
    # A later release settles nothing.
    ledger = ledger_for(pair())
    for epsilon in (0.2, None):
        ledger.release(pdp.Sum(), TWO, epsilon=epsilon)
    assert ledger.repeats == 0.5
    assert ledger.remaining < 1e-5


def test_other_queries_are_counted_with_all_repeats_by_the_rest_of_delta():
    model = pair()
    ledger = ledger_for(model)
    ledger.release(pdp.Sum(), TWO, epsilon=0.2)
    ledger.release(pdp.Sum(), TWO, epsilon=0.2)
    sigma = ledger.history[0].scales[0]
    exact = pdp.leakage(model, pdp.Sum(), scale=sigma / 2**0.5, noise="gaussian", delta=DELTA / 2)
    assert ledger.spent == pytest.approx(exact.value, rel=1e-12)
    release = ledger.release(FIRST, TWO, epsilon=0.1)
    other = release.calibration.scale
    moved = math.sqrt(2 * (2 / sigma) ** 2 + (1 / other) ** 2)
    assert ledger.history[-1].method == "filter"
    assert ledger.spent == pytest.approx(gaussian_dp.epsilon_of(moved, DELTA / 2), rel=1e-9)
    # Beyond what the coupling allows, the first query goes on and no other is answered.
    ledger = ledger_for(model)
    ledger.release(pdp.Sum(), TWO, epsilon=0.8)
    with pytest.raises(BudgetExceededError):
        ledger.release(FIRST, TWO, epsilon=1e-3)
    ledger.release(pdp.Sum(), TWO, epsilon=0.05)
    assert ledger.history[-1].method == "repeats"


def random_case(seed):
    rng = np.random.default_rng(seed)
    cells = [PAIR, UNEVEN][seed] if seed < 2 else rng.dirichlet(np.full(6, 0.5)).reshape(2, 3)
    weights = [rng.integers(0, 3, 2) for _ in range(2)]
    weights = [pair if pair.any() else np.array([1, 1]) for pair in weights]
    model = pdp.JointTable(probabilities=cells, domains=[range(size) for size in cells.shape])
    queries = [pdp.Linear(weights=[float(one) for one in pair]) for pair in weights]
    answers = [
        np.add.outer(*(w * np.arange(size) for w, size in zip(pair, cells.shape, strict=True)))
        for pair in weights
    ]
    return model, cells, queries, answers


@pytest.mark.parametrize("seed", slow_after(2, range(16)))
def test_whoever_chooses_by_the_first_output_stays_within_delta(seed):
    model, cells, queries, answers = random_case(seed)
    epsilon, delta = 0.5, 0.05
    alone = pdp.calibrate(
        model, queries[0], epsilon=epsilon, delta=delta / 2, noise="gaussian"
    ).with_noise(math.sqrt([20.0, 5.0, 2.0][seed % 3]))
    # Everything that still fits: stop, repeat the query, or ask the other one.
    choices = [None]
    for query, answer in zip(queries, answers, strict=True):
        ledger = ledger_for(model, epsilon=epsilon, delta=delta)
        ledger.spend(alone)
        assert ledger.repeats == 0.5
        with contextlib.suppress(BudgetExceededError):
            ledger.release(query, TWO, epsilon=None)
            choices.append((answer, ledger.history[-1].scales[0]))
    assert len(choices) >= 2
    first = alone.scale
    for laws in compared_laws(cells):
        found = delta_of_worst_choices(laws, answers[0], first, choices, epsilon)
        assert found <= delta * (1 + 1e-3)
    # The oracle sees what the ledger counts: repeats alone use their share.
    repeats = max(
        delta_of_worst_choices(laws, answers[0], first, choices[1:2], epsilon)
        for laws in compared_laws(cells)
    )
    assert 0.999 * delta / 2 <= repeats <= delta / 2 * (1 + 1e-3)


@pytest.mark.parametrize("cells", [PAIR, UNEVEN], ids=["pair", "uneven"])
@pytest.mark.parametrize("other", [1.0, 2.5])
def test_two_answers_say_what_one_of_their_precision_says(cells, other):
    answers = np.add.outer(*(np.arange(float(size)) for size in cells.shape))
    scale = 1.7
    joint = (scale**-2 + other**-2) ** -0.5
    for laws in itertools.islice(compared_laws(cells), 4):
        both = delta_of_worst_choices(laws, answers, scale, [(answers, other)], 0.3)
        once = delta_of_worst_choices(laws, answers, joint, [None], 0.3, points=4001)
        assert both == pytest.approx(once, rel=2e-3)
        # Stopping early, wherever that says more, never helps.
        chosen = delta_of_worst_choices(laws, answers, scale, [None, (answers, other)], 0.3)
        assert chosen <= once * (1 + 2e-3)


def test_stored_ledgers_go_on_alike(tmp_path):
    jsonschema = pytest.importorskip("jsonschema")
    path = tmp_path / "ledger.json"
    ledger = ledger_for(pair(), path=path, repeats=0.75)
    ledger.release(pdp.Sum(), TWO, epsilon=0.4)
    again = pdp.Ledger.open(path)
    assert (again.repeats, again.spent, again.mu) == (0.75, ledger.spent, ledger.mu)
    for query in (pdp.Sum(), FIRST):
        assert again.would_spend(query, epsilon=0.1) == ledger.would_spend(query, epsilon=0.1)
    again.release(pdp.Sum(), TWO, epsilon=0.3)
    assert pdp.Ledger.open(path).spent == again.spent == ledger.spent
    jsonschema.validate(json.loads(path.read_text()), pdp.json_schema())
    again.new_draw("second")
    assert again.repeats == 0.75
    again.release(FIRST, {**TWO, "x1": 1}, epsilon=1.0)
    assert (again.repeats, again.history[-1].method) == (1.0, "repeats")
    words = pdp.explain(again)
    assert "for asking the first query and no other" in words
    assert "no other query is answered" in words


def test_ledgers_from_before_count_by_the_coupling(tmp_path):
    path = tmp_path / "ohio.json"
    shutil.copy(Path(__file__).parents[1] / "fixtures" / "before_repeats" / "ohio.json", path)
    ledger = pdp.Ledger.open(path)
    assert ledger.spent == 0.6178810347069643
    assert ledger.repeats == 0.0
    assert ledger.mu == pytest.approx(0.2367043806634241, rel=1e-12)
    sigmas = [entry.scales[0] for entry in ledger.history]
    moved = math.sqrt(sum((move / s) ** 2 for move, s in zip((4, 4, 2), sigmas, strict=True)))
    assert ledger.history[-1].joint_mu == pytest.approx(moved)
    release = ledger.release(pdp.Sum(), DATA, epsilon=0.1)
    moved = math.hypot(moved, 4 / release.calibration.scale)
    assert ledger.history[-1].method == "filter"
    assert ledger.spent == pytest.approx(gaussian_dp.epsilon_of(moved, DELTA), rel=1e-9)


@pytest.mark.parametrize(
    "model",
    [
        pdp.BinaryGroup(count_probabilities=[0.4, 0.1, 0.1, 0.4]),
        pdp.MarkovChain(transition=[[0.8, 0.2], [0.3, 0.7]], length=5, states=[0, 1]),
        pdp.ModelSet(models=[
            pdp.BinaryGroup(count_probabilities=[0.4, 0.1, 0.1, 0.4]),
            pdp.BinaryGroup(count_probabilities=[0.3, 0.2, 0.2, 0.3]),
        ]),
        pdp.Blocks(models=[pdp.BinaryGroup(count_probabilities=[0.3, 0.2, 0.5])], counts=[3]),
    ],
    ids=["group", "chain", "set", "blocks"],
)  # fmt: skip
def test_every_finite_family_counts_repeats_exactly(model):
    ledger = ledger_for(model, repeats=1)
    half = of_scale(model, pdp.Sum(), smallest_scale(model, pdp.Sum()) * math.sqrt(2))
    ledger.spend(half.with_noise(1 + 1e-9))
    ledger.spend(half.with_noise(1 + 1e-9))
    assert 1 - 1e-6 < ledger.spent <= 1


def test_a_real_answer_is_charged_for_its_rounding():
    model = pdp.JointTable(probabilities=PAIR, domains=[[0, 0.1], [0, 0.3]])
    ledger = ledger_for(model)
    release = ledger.release(pdp.Sum(), {"x1": 0.1, "x2": 0.3}, epsilon=1.0)
    assert ledger.spent <= 1
    assert ledger.spent >= pdp.leakage(
        model, pdp.Sum(), scale=release.calibration.scale, noise="gaussian", delta=DELTA
    ).value * (1 - 1e-9)


def test_shares_are_for_gaussian_noise_alone_about_known_finite_laws():
    group = pdp.GaussianGroup(size=3, correlation=0.4, bounds=(0, 4), variance=1.0)
    assert ledger_for(group).repeats == 0
    assert "repeats" not in ledger_for(group).allowance.to_dict()
    assert ledger_for(pair(), pure=0.1).repeats == 0
    with pytest.raises(PdpError, match="repeats="):
        ledger_for(group, repeats=0.5)
    with pytest.raises(PdpError, match="from 0 to 1"):
        ledger_for(pair(), repeats=1.5)
    damaged = ledger_for(pair()).allowance.to_dict() | {"repeats": 2.0}
    with pytest.raises((PdpError, LedgerError)):
        type(ledger_for(pair()).allowance).from_dict(damaged)
