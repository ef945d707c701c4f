"""A learned model of groups answers questions with a public by=, as a stated correlation does."""

import numpy as np
import pandas as pd
import pytest

import pdp_calibrate as pdp

pytestmark = pytest.mark.filterwarnings("ignore::pdp_calibrate.SecondReleaseWarning")

HOMES = 60


def homes():
    rng = np.random.default_rng(0)
    common = rng.normal(size=(HOMES, 1))
    values = 50 + 10 * (np.sqrt(0.4) * common + np.sqrt(0.6) * rng.normal(size=(HOMES, 4)))
    return pd.DataFrame(
        {
            "home": np.repeat(range(HOMES), 4),
            "income": values.clip(0, 100).ravel(),
            "city": rng.choice(["A", "B"], HOMES * 4),
        }
    )


ASKED = {"groups": "home", "by": "city", "public": ["city"], "epsilon": 1.0}
CITIES = {"domains": {"city": ["A", "B"]}}


def test_the_scale_is_that_of_the_learned_correlation():
    frame, learned = homes(), pdp.GaussianGroup(size=4, correlation=(0.1, 0.5), bounds=(0, 100))
    model = pdp.Blocks(models=[learned.learned_with(0.5)], counts=[HOMES]).learned_with(0.5)
    asked = {"bounds": (0, 100), "correlation": (0.1, 0.5)}
    stated = frame.copy().pdp.sum("income", **asked, **ASKED, **CITIES)
    found = frame.pdp.sum("income", model=model, **ASKED, **CITIES).calibration
    assert found.scale == stated.calibration.scale == pytest.approx(250.0)
    # What learning cost, and whose rows it was, go with the model.
    assert found.total_epsilon == 1.5
    assert found.model.provenance == "dp"


def test_other_models_are_refused_and_what_to_state_is_said():
    model = pdp.BinaryGroup(count_probabilities=[0.2, 0.2, 0.2, 0.2, 0.2])
    with pytest.raises(pdp.QueryError, match=r"state correlation=\(0, its upper end\)"):
        homes().pdp.sum("income", model=model, **ASKED, **CITIES)
    unequal = pdp.Blocks(
        models=[pdp.GaussianGroup(size=2, correlation=rho, bounds=(0, 100)) for rho in (0.2, 0.4)]
    )
    with pytest.raises(pdp.QueryError, match="does not cover other columns"):
        homes().pdp.sum("income", model=unequal, **ASKED, **CITIES)
