"""Groups and series of equal size give the same kind of model, whatever their values are."""

import numpy as np
import pandas as pd
import pytest

import pdp_calibrate as pdp

RNG = np.random.default_rng(3)


def long_frame(homes, size):
    values = np.clip(RNG.normal(size=homes * size).cumsum() / 9, -3, 3)
    return pd.DataFrame(
        {
            "home": np.repeat(np.arange(homes), size),
            "day": np.tile(np.arange(size), homes),
            "state": RNG.integers(0, 2, homes * size),
            "value": values,
        }
    )


SERIES = {"order_by": "day", "source": "public"}
BOUNDS = {"bounds": (-3, 3), "source": "public"}
ESTIMATORS = {
    "states": (pdp.MarkovChainEstimator, "state", SERIES),
    "values": (pdp.GaussianSeriesEstimator, "value", SERIES | BOUNDS),
    "yes/no": (pdp.GroupEstimator, "state", {"kind": "binary", "source": "public"}),
    "alike": (pdp.GroupEstimator, "value", BOUNDS),
}


@pytest.mark.filterwarnings("ignore::pdp_calibrate.ModelFitWarning")
@pytest.mark.parametrize("name", ESTIMATORS)
def test_equal_sizes_are_blocks_with_a_count_and_a_mean_is_released_about_them(name):
    kind, column, options = ESTIMATORS[name]
    frame = long_frame(12, 3)
    model = kind(value=column, groups="home", **options).fit(frame).model_
    assert isinstance(model, pdp.Blocks)
    assert (len(model.models), model.counts) == (1, (12,))
    query = pdp.Mean(clamp=column == "value")
    release = pdp.calibrate(model, query, epsilon=1e6).release(frame, value=column, groups="home")
    assert release.value == pytest.approx(frame[column].mean(), abs=1e-3)
    release = pdp.Ledger(model, epsilon=1e7).release(
        query, frame, epsilon=1e6, value=column, groups="home"
    )
    assert release.value == pytest.approx(frame[column].mean(), abs=1e-3)


@pytest.mark.filterwarnings("ignore::pdp_calibrate.ModelFitWarning")
def test_a_single_series_is_a_bare_model():
    frame = long_frame(1, 30)
    for name in ("states", "values"):
        kind, column, options = ESTIMATORS[name]
        alone = kind(value=column, **options).fit(frame).model_
        named = kind(value=column, groups="home", **options).fit(frame).model_
        assert alone == named
        assert len(alone.names) == 30


@pytest.mark.filterwarnings("ignore::pdp_calibrate.ModelFitWarning")
@pytest.mark.parametrize("name", ESTIMATORS)
def test_by_is_another_name_for_groups(name):
    kind, column, options = ESTIMATORS[name]
    frame = long_frame(9, 3)
    fitted = [kind(value=column, **{key: "home"}, **options).fit(frame) for key in ("groups", "by")]
    assert fitted[0].model_ == fitted[1].model_
    with pytest.raises(pdp.PdpError, match="give one of them"):
        kind(value=column, groups="home", by="home", **options).fit(frame)
    with pytest.raises(pdp.ModelError, match="groups= must be another column"):
        kind(value=column, groups=column, **options).fit(frame)


def test_groups_are_households_unless_said_otherwise():
    frame = long_frame(5, 2).rename(columns={"home": "household"})
    model = pdp.GroupEstimator(value="state", kind="binary", source="public").fit(frame).model_
    assert model.counts == (5,)
