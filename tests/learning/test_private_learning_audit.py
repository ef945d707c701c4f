"""Attacks on what is learned under differential privacy, and what learning adds to a ledger."""

import contextlib
import json
import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import pdp_calibrate as pdp
from pdp_calibrate.composition.joint import Spending
from pdp_calibrate.core import noise
from pdp_calibrate.families import group_estimator as group
from pdp_calibrate.families.chain import estimator as markov
from pdp_calibrate.families.gaussian import (
    estimator as gaussian,
    series_estimator as gaussian_series,
)
from pdp_calibrate.families.table import estimator as table
from pdp_calibrate.learning import base, signs
from tests.support.private_fits import estimators

FITS = 1000
EPSILON = 1.0
CONFIDENCE = 1 - 1e-11  # the noise takes no seeds
pytestmark = pytest.mark.filterwarnings("ignore::pdp_calibrate.ModelFitWarning")


def at_least(hits, others, draws):
    """Return a lower bound on log P(hit)/P(other hit), by Clopper and Pearson."""
    low = stats.beta.ppf((1 - CONFIDENCE) / 2, hits, draws - hits + 1) if hits else 0.0
    rest = draws - others
    high = stats.beta.isf((1 - CONFIDENCE) / 2, others + 1, rest) if rest else 1.0
    return math.log(low / high) if low > 0 else -math.inf


def strongest_evidence(first, second):
    """Choose a threshold and a direction on half of the fits, and test it on the other half.

    The directions tested leave the bound wrong at most four times as often as one of them.
    """
    found = -math.inf
    half = len(first) // 2
    for one, other in ((first, second), (second, first), (-first, -second), (-second, -first)):
        seen = np.sort(np.concatenate([one[:half], other[:half]]))
        cuts = seen[:: max(1, len(seen) // 60)]
        rates = [
            at_least(int((one[:half] >= cut).sum()), int((other[:half] >= cut).sum()), half)
            for cut in cuts
        ]
        cut = cuts[int(np.argmax(rates))]
        tested = len(one) - half
        hits, others = int((one[half:] >= cut).sum()), int((other[half:] >= cut).sum())
        found = max(found, at_least(hits, others, tested))
    return found


def everyone(**units):
    return pd.concat(
        [pd.DataFrame(columns).assign(who=who) for who, columns in units.items()],
        ignore_index=True,
    )


ROWS = pd.DataFrame({"a": [0, 1] * 20, "b": [0, 1] * 20, "c": [0, 1] * 20})
VALUES = pd.DataFrame({"x": [10.0] + [5.0] * 39})
HOMES = {
    f"home {k}": {"state": [0, 0, k % 2, 1], "load": [2.0, 8.0, 5.0 + k % 3, 4.0]}
    for k in range(89)  # with the other one they are in pairs
}
WALKS = {
    f"walk {k}": {"state": [0, 0, 1, 1, 0], "load": [2.0, 2.0, 8.0, 8.0, 2.0]} for k in range(59)
}
# Each pair of frames differs in one unit, and the statistic of the fit shows which one it was.
NEIGHBOURS = {
    "table": (
        ROWS,
        pd.concat([ROWS[1:], ROWS[1:2]], ignore_index=True),
        lambda model: model.probabilities[1, 1, 1] - model.probabilities[0, 0, 0],
    ),
    "gaussian": (
        VALUES,
        VALUES.assign(x=[2.5] + [5.0] * 39),
        lambda drawn: drawn[0],
    ),
    "binary": (
        everyone(**HOMES, other={"state": [0] * 4}),
        everyone(**HOMES, other={"state": [1] * 4}),
        lambda drawn: drawn[0],  # the share of ones
    ),
    "group": (
        everyone(**HOMES, other={"load": [0.0, 10.0, 0.0, 10.0]}),
        everyone(**HOMES, other={"load": [0.0] * 4}),
        lambda model: model.models[0].correlation[1],
    ),
    "chain": (
        everyone(**WALKS, other={"state": [0] * 5}),
        everyone(**WALKS, other={"state": [1] * 5}),
        lambda drawn: drawn[3] - drawn[0],  # states that stay
    ),
    "series": (
        everyone(**WALKS, other={"load": [0.0, 10.0, 0.0, 10.0, 0.0]}),
        everyone(**WALKS, other={"load": [0.0] * 5}),
        lambda model: model.models[0].ends[1],
    ),
}


BEFORE_REFUSAL = {"gaussian", "binary", "chain"}
"""Of these, the noisy numbers are looked at: whether a fit is refused follows from them."""


def drawn_by(estimator, frame):
    """Return the noisy numbers of a fit, whether or not it is refused afterwards."""
    kept, draw = [], noise.add_laplace_to_integers

    def noted(sums, scale):
        kept.extend(draw(sums, scale))
        return kept[-len(sums) :]

    with pytest.MonkeyPatch.context() as patch, contextlib.suppress(pdp.ModelError):
        patch.setattr(noise, "add_laplace_to_integers", noted)
        estimator.fit(frame)
    return np.array(kept, dtype=float)


def read_frames_once(monkeypatch):
    """Remember what was read from a frame: reading takes longer than all the rest of a fit."""
    # The limit is a function of the noisy sum alone; a simpler one shows as much, and sooner.
    monkeypatch.setattr(signs.SignShares, "limit", lambda shares, _: max(shares.correlation, 0.0))
    places = [
        (table, "contingency"), (group, "group_totals"), (gaussian, "numbers_of"),
        (group, "numbers_of"), (group, "units_of"),
        (base, "ordered_series"), (base, "units_of"), (markov, "states_of"),
        (gaussian_series, "numbers_of"),
        (gaussian, "within_reach"), (group, "within_reach"), (group, "as_yes_or_no"),
        (gaussian_series, "within_reach"),
    ]  # fmt: skip
    for module, name in places:
        function = getattr(module, name)
        known = {}

        def remembered(*arguments, _function=function, _known=known, **options):
            key = (*map(id, arguments[:1]), repr(arguments[1:]), repr(options))
            if key not in _known:  # the argument is kept, so that its id stays its own
                _known[key] = arguments, _function(*arguments, **options)
            return _known[key][1]

        monkeypatch.setattr(module, name, remembered)


@pytest.fixture
def frames_read_once(monkeypatch):
    read_frames_once(monkeypatch)


def evidence(kind, epsilon=EPSILON, fits=FITS):
    one, other, statistic = NEIGHBOURS[kind]
    estimator = estimators(epsilon)[kind]

    def fitted(frame):
        return drawn_by(estimator, frame) if kind in BEFORE_REFUSAL else estimator.fit(frame).model_

    seen = [np.array([statistic(fitted(frame)) for _ in range(fits)]) for frame in (one, other)]
    return strongest_evidence(*seen)


@pytest.mark.slow
@pytest.mark.parametrize("kind", NEIGHBOURS)
@pytest.mark.usefixtures("frames_read_once")
def test_a_thousand_fits_on_neighbours_show_no_more_than_epsilon(kind):
    assert evidence(kind) <= EPSILON


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["table", "chain"])
@pytest.mark.usefixtures("frames_read_once")
def test_the_attack_would_see_a_noise_that_is_too_small(kind, monkeypatch):
    drawn = noise.add_laplace_to_integers
    monkeypatch.setattr(
        noise, "add_laplace_to_integers", lambda sums, scale: drawn(sums, scale / 10)
    )
    assert evidence(kind, fits=600) > EPSILON


# What learning adds to everything else that is released about the same draw.

COUPLE = pdp.JointTable(
    probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, 1]] * 2, names=["a", "b"]
)


def joint_leakage(table, likelihood, scale):
    """Return the largest log ratio of seeing one model and one noisy sum, by brute force.

    `likelihood` is p(model | draw) for the four draws of a couple.
    """
    worst = 0.0
    for target in (0, 1):
        law = table if target == 0 else table.T
        model = likelihood if target == 0 else likelihood.T
        for known in (None, 0, 1):
            others = [0, 1] if known is None else [known]
            weights = law[:, others] / law[:, others].sum(axis=1, keepdims=True)
            for output in (0, 1, 2):
                density = [
                    sum(
                        weights[x, place] * model[x, u] * math.exp(-abs(output - x - u) / scale)
                        for place, u in enumerate(others)
                    )
                    for x in (0, 1)
                ]
                worst = max(worst, abs(math.log(density[0] / density[1])))
    return worst


def test_learning_adds_its_epsilon_and_no_more():
    """Over random mechanisms that are ε-DP in whole draws, the sum is a bound and is attained."""
    rng = np.random.default_rng(0)
    spent = 0.3
    ledger = pdp.Ledger(COUPLE.learned_with(spent), epsilon=2.0)
    assert ledger.spent == spent
    assert ledger.history[0].kind == "estimation"
    calibration = pdp.calibrate(ledger.model, pdp.Sum(), epsilon=1.0)
    promised = ledger.would_spend(calibration)
    assert promised == pytest.approx(1.3, abs=1e-6)
    found = []
    for _ in range(300):
        likelihood = np.exp(spent * rng.choice([0.0, 1.0, rng.random()], size=(2, 2)))
        found.append(joint_leakage(COUPLE.probabilities, likelihood, calibration.scale))
    assert max(found) <= promised
    assert max(found) > promised - 1e-6
    # As a mechanism for single tuples it would have counted more: 0.3 about each of two.
    careless = pdp.Ledger(COUPLE, epsilon=2.0)
    careless.charge(spent)
    assert careless.would_spend(pdp.calibrate(COUPLE, pdp.Sum(), epsilon=1.0)) > promised + 0.05


def test_a_ledger_counts_learning_first_and_survives(tmp_path):
    path = tmp_path / "budget.json"
    model = COUPLE.learned_with(0.4)
    ledger = pdp.Ledger(model, epsilon=1.0, path=path)
    ledger.release(pdp.Sum(), {"a": 1, "b": 0}, epsilon=0.5)
    assert ledger.spent == pytest.approx(0.9, abs=1e-6)
    with pytest.raises(pdp.BudgetExceededError):
        ledger.release(pdp.Sum(), {"a": 1, "b": 0}, epsilon=0.5)
    again = pdp.Ledger.open(path)
    assert again.spent == ledger.spent
    assert again.model.estimation_epsilon == 0.4
    again.release(pdp.Sum(), {"a": 1, "b": 0}, epsilon=None)
    assert 0.99 < again.spent <= 1.0
    again.new_draw("tomorrow")
    assert again.spent == 0.0  # the model was learned from the first draw


def test_learning_elsewhere_costs_nothing_here_and_too_much_learning_is_refused(tmp_path):
    model = COUPLE.learned_with(0.4)
    assert pdp.Ledger(model, epsilon=1.0, learned_here=False).spent == 0.0
    assert pdp.Ledger(COUPLE, epsilon=1.0).history == ()
    told = pdp.JointTable(
        probabilities=COUPLE.probabilities, domains=COUPLE.domains, provenance="dp"
    )
    with pytest.raises(pdp.LedgerError, match="learned_with"):
        pdp.Ledger(told)
    with pytest.raises(pdp.LedgerError, match="learned_with"):
        pdp.Ledger(pdp.Blocks(models=[told, model]))
    assert pdp.Ledger(told, learned_here=False).spent == 0.0
    path = tmp_path / "budget.json"
    with pytest.raises(pdp.BudgetExceededError, match="learned_here=False"):
        pdp.Ledger(model, epsilon=0.3, path=path)
    assert not path.exists()


def test_the_budget_of_learning_is_shown_and_kept():
    model = COUPLE.learned_with(0.25)
    calibration = pdp.calibrate(model, pdp.Sum(), epsilon=1.0)
    assert calibration.estimation_epsilon == 0.25
    assert "estimation_epsilon=0.25" in repr(calibration)
    assert "ε = 1.25" in pdp.explain(calibration)
    assert '"estimation_epsilon": 0.25' in calibration.to_json()
    assert pdp.Calibration.from_json(calibration.to_json()) == calibration
    joint = pdp.calibrate(model, [pdp.Sum(), pdp.Sum(over=["a"])], epsilon=1.0)
    assert joint.estimation_epsilon == 0.25
    assert '"estimation_epsilon": 0.25' in joint.to_json()
    assert pdp.calibrate(COUPLE, pdp.Sum()).estimation_epsilon is None


def test_models_made_of_others_spend_what_these_spent():
    one, two = COUPLE.learned_with(0.25), COUPLE.learned_with(0.5)
    assert pdp.ModelSet(models=[one, two]).estimation_epsilon == pytest.approx(0.75)
    assert pdp.ModelSet(models=[one, one]).estimation_epsilon == 0.25
    twice = pdp.ModelSet(models=[one, COUPLE.learned_with(0.25)])  # equal, but learned twice
    assert twice.estimation_epsilon == pytest.approx(0.5)
    assert pdp.Blocks(models=[one], counts=[9]).estimation_epsilon == 0.25
    assert pdp.Blocks(models=[one], counts=[9]).learned_with(1.0).estimation_epsilon == 1.0
    pair = pdp.Gaussian(covariance=[[1, 0.5], [0.5, 1]], bounds=(0, 1)).learned_with(0.1)
    assert pdp.LoewnerBall(center=pair, radius=0.1).estimation_epsilon == 0.1
    assert pdp.ConditionalBall(center=one, radius=0.1).estimation_epsilon == 0.25
    chain = pdp.MarkovChain(transition=[[0.9, 0.1], [0.2, 0.8]], length=3).learned_with(0.2)
    assert chain.to_table().estimation_epsilon == 0.2
    tree = pdp.MarkovTree(
        domains=[[0, 1]] * 2, parents=[None, 0], tables=[[0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]]]
    ).learned_with(0.2)
    assert tree.to_table().estimation_epsilon == 0.2
    group_of = pdp.BinaryGroup(count_probabilities=[0.5, 0.2, 0.3]).learned_with(0.2)
    assert group_of.to_table().estimation_epsilon == 0.2
    assert COUPLE.estimation_epsilon is None
    assert one != COUPLE
    private = pdp.JointTable(
        probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, 1]] * 2, provenance="private"
    )
    with pytest.raises(pdp.ModelError, match="without noise has no epsilon"):
        private.learned_with(1.0)
    for wrong in (0, -1.0, math.inf, math.nan, True, "1"):
        with pytest.raises(pdp.ModelError, match="epsilon must be"):
            COUPLE.learned_with(wrong)


def test_what_too_many_answers_add_up_to_keeps_the_learning():
    total = Spending(budgets=np.ones(3), only_budgets=True).plus_learning(0.25)
    again = Spending.from_dict(json.loads(json.dumps(total.to_dict())))
    assert again.draw_epsilon == 0.25
    assert again.only_budgets
