"""Fits to resampled data: what is drawn, that it repeats, and that it promises nothing."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest

import pdp_calibrate as pdp

RNG = np.random.default_rng(0)
WIDE = pd.DataFrame(
    {
        "mother": RNG.integers(0, 2, 300),
        "child": RNG.integers(0, 3, 300),
        "age": RNG.normal(size=300),
    }
)
WIDE["child"] = np.where(RNG.random(300) < 0.5, WIDE["mother"], WIDE["child"])
HOMES = pd.DataFrame({"home": np.repeat(np.arange(90), [2, 3] * 45)})
HOMES["ill"] = (RNG.normal(size=90)[HOMES["home"]] + RNG.normal(size=len(HOMES)) > 0).astype(int)
HOMES["income"] = RNG.normal(size=90)[HOMES["home"]] + RNG.normal(size=len(HOMES))
HOMES["day"] = HOMES.groupby("home").cumcount()

ESTIMATORS = {
    "joint": (pdp.TableEstimator(source="public"), WIDE[["mother", "child"]]),
    "tree": (pdp.TableEstimator(structure="chow-liu", source="public"), WIDE[["mother", "child"]]),
    "binned": (
        pdp.TableEstimator(bins={"age": [-9, 0, 9]}, source="public"),
        WIDE[["mother", "age"]],
    ),
    "gaussian": (pdp.GaussianEstimator(bounds=(-9, 9), source="public"), WIDE),
    "binary": (pdp.GroupEstimator(by="home", value="ill", kind="binary", source="public"), HOMES),
    "households": (
        pdp.GroupEstimator(by="home", value="income", bounds=(-9, 9), source="public"),
        HOMES,
    ),
    "chains": (
        pdp.MarkovChainEstimator(value="ill", by="home", order_by="day", source="public"),
        HOMES,
    ),
    "series": (
        pdp.GaussianSeriesEstimator(
            value="income", by="home", order_by="day", bounds=(-9, 9), source="public"
        ),
        HOMES,
    ),
}


def resampled(name, **arguments):
    estimator, frame = ESTIMATORS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pdp.ModelFitWarning)
        return estimator.bootstrap(frame, **arguments)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_resamples_its_own_units(name):
    estimator, frame = ESTIMATORS[name]
    found = resampled(name, draws=6, seed=1)
    assert isinstance(found, pdp.ModelSet)
    assert len(found.models) == 7
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pdp.ModelFitWarning)
        assert found.models[0] == type(estimator)(**estimator.get_params()).fit(frame).model_
    assert len({model.digest for model in found.models}) == 7
    assert found == resampled(name, draws=6, seed=1)
    assert found != resampled(name, draws=6, seed=2)
    leak = pdp.leakage(found, pdp.Sum())
    assert leak.value >= pdp.leakage(found.models[0], pdp.Sum()).value * (1 - 1e-12)
    assert 0 <= leak.witness.index < 7
    cal = pdp.calibrate(found, pdp.Sum(), epsilon=1.0)
    assert cal.leakage.value <= 1.0


@pytest.mark.parametrize("name", ["joint", "households"])
def test_it_says_that_it_promises_nothing(name):
    found = resampled(name, draws=3, seed=1)
    assert "no coverage guarantee" in repr(found)
    assert "no coverage guarantee" in json.dumps(found.to_dict())
    assert pdp.ModelSet.from_dict(json.loads(json.dumps(found.to_dict()))) == found
    words = pdp.explain(pdp.calibrate(found, pdp.Sum(), epsilon=1.0))
    assert "no coverage guarantee" in words
    stated = pdp.ModelSet(models=found.models)
    assert "coverage" not in repr(stated) + json.dumps(stated.to_dict())
    assert stated != found


def test_resamples_of_a_table_are_multinomial():
    frame = pd.DataFrame({"a": [0] * 60 + [1] * 40, "b": [0] * 50 + [1] * 50})
    estimator = pdp.TableEstimator(source="public", smoothing=1e-9)
    found = estimator.bootstrap(frame, draws=400, seed=3)
    cells = np.array([model.probabilities for model in found.models[1:]])
    assert cells[:, 1, 0].max() < 1e-8  # never seen, so never drawn
    assert cells[:, 0, 0].mean() == pytest.approx(0.5, abs=0.01)
    assert cells[:, 0, 0].std() == pytest.approx(0.05, rel=0.15)


def test_resamples_of_groups_vary_as_whole_groups_do():
    """Members of a home all alike: the share of ones varies as 40 homes do, not 160 people."""
    homes = pd.DataFrame({"home": np.repeat(np.arange(40), 4), "ill": np.repeat([0, 1] * 20, 4)})
    estimator = pdp.GroupEstimator(
        by="home", value="ill", kind="binary", smoothing=1e-9, source="public"
    )
    found = estimator.bootstrap(homes, draws=80, seed=4)
    shares = [model.count_probabilities[4] for model in found.models[1:]]
    assert np.std(shares) == pytest.approx(0.5 / np.sqrt(40), rel=0.3)
    assert all(model.count_probabilities[2] < 1e-8 for model in found.models)


def test_a_state_that_a_resample_misses_stays_possible():
    frame = pd.DataFrame({"who": [1, 1, 2, 2, 3, 3], "state": ["a", "a", "a", "b", "b", "c"]})
    estimator = pdp.MarkovChainEstimator(value="state", by="who", source="public")
    found = estimator.bootstrap(frame, draws=20, seed=5)
    assert {model.states for model in found.models} == {("a", "b", "c")}


def test_the_secret_stays_secret_and_long_frames_can_be_released():
    estimator = pdp.GroupEstimator(by="home", value="ill", kind="binary")
    found = estimator.bootstrap(HOMES, draws=3, seed=1)
    assert found.provenance == "private"
    assert "models" not in found.to_dict()
    with pytest.warns(pdp.PrivacyLeakWarning):
        cal = pdp.calibrate(found, pdp.Sum(), epsilon=1.0)
    assert isinstance(cal.release(HOMES, value="ill", by="home").value, int)
    assert found.instances == 90


@pytest.mark.parametrize(
    ("estimator", "frame", "words"),
    [
        (pdp.TableEstimator(confidence=0.9), WIDE[["mother"]], "confidence"),
        (pdp.TableEstimator(epsilon=1.0), WIDE[["mother"]], "epsilon"),
        (pdp.TableEstimator(structure="blocks"), WIDE[["mother", "child"]], "blocks"),
        (pdp.MarkovChainEstimator(value="mother"), WIDE, "single series"),
        (pdp.TableEstimator(), WIDE[["mother"]].head(0), "at least one row"),
        (pdp.GaussianSeriesEstimator(value="age", bounds=(-9, 9)), WIDE, "single series"),
    ],
)
def test_what_cannot_be_resampled_is_refused(estimator, frame, words):
    with pytest.raises(pdp.ModelError, match=words):
        estimator.bootstrap(frame, draws=3)


@pytest.mark.parametrize("draws", [0, -1, 2.5, True])
def test_draws_are_counted(draws):
    with pytest.raises(pdp.ModelError, match="draws"):
        resampled("joint", draws=draws)
