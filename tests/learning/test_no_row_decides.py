"""Of private rows, and with epsilon, no error and no warning depends on what a row holds."""

import warnings

import numpy as np
import pandas as pd
import pytest

import pdp_calibrate as pdp
from pdp_calibrate.core import noise
from pdp_calibrate.learning import signs

SERIES = {"by": "who", "order_by": "day"}
LEARNED = {
    "table": pdp.TableEstimator(domains={"a": [0, 1], "b": [0, 1, 2]}),
    "binned": pdp.TableEstimator(bins={"a": [0, 1, 2], "b": [0, 1, 3]}),
    "tree": pdp.TableEstimator(structure="chow-liu", domains={"a": [0, 1], "b": [0, 1, 2]}),
    "gaussian": pdp.GaussianEstimator(bounds=(0, 2)),
    "groups": pdp.GroupEstimator(by="who", value="x", bounds=(0, 2)),
    "roles": pdp.GroupEstimator(by="who", value="x", bounds=(0, 2), role="day"),
    "yes_no": pdp.GroupEstimator(by="who", value="x", kind="binary"),
    "chain": pdp.MarkovChainEstimator(value="x", states=[0, 1], **SERIES),
    "started": pdp.MarkovChainEstimator(value="x", states=[0, 1], initial="estimated", **SERIES),
    "three": pdp.MarkovChainEstimator(value="x", states=[0, 1, 2], **SERIES),
    "series": pdp.GaussianSeriesEstimator(value="x", bounds=(0, 2), **SERIES),
}
WIDE = ("table", "binned", "tree", "gaussian")
LIMITS = {"chain", "started", "three"}

PRIVATE = [(kind, {}) for kind in LEARNED] + [
    (kind, {"confidence": None}) for kind in LEARNED if kind not in WIDE
]
PRIVATE += [
    ("table", {"confidence": 0.95}),
    ("gaussian", {"confidence": None}),
    ("gaussian", {"covariance": "oas", "confidence": None}),
    ("gaussian", {"covariance": "graphical-lasso", "confidence": None}),
    ("chain", {"guarantee": "exact"}),
    ("three", {"guarantee": "exact"}),
]
NOISY = [
    (kind, {"epsilon": 1.0} | ({"max_length": 4} if kind in LIMITS else {})) for kind in LEARNED
]

HOSTILE = {
    "constant": 1.0,
    "missing": np.nan,
    "infinite": np.inf,
    "least": -np.inf,
    "farther": -1e300,
    "unknown": 7.0,
}


@pytest.fixture(autouse=True)
def rough_limits(monkeypatch):
    """Simulate fewer sums: what a limit is does not matter here."""
    monkeypatch.setattr(signs, "_SUMS", 200)
    monkeypatch.setattr(signs, "_POOL", 256)


def frame(kind, rng, units, *, constant):
    """Return a frame whose units hold 0 and 1, or 1 alone, and the rows of its last unit."""
    number = units if kind in WIDE else 4 * units
    cells = np.ones((number, 2)) if constant else rng.integers(0, 2, size=(number, 2)).astype(float)
    if kind in WIDE:
        return pd.DataFrame(cells, columns=["a", "b"]), slice(units - 1, units)
    held = pd.DataFrame({"who": np.repeat(np.arange(units), 4), "day": np.tile(range(4), units)})
    return held.assign(x=cells[:, 0]), slice(number - 4, number)


def outcome(estimator, rows):
    """Return the errors and warnings of a fit, in words."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        raised = None
        try:
            estimator.fit(rows)
        except pdp.PdpError as error:
            raised = f"{type(error).__name__}: {error}"
    return raised, sorted({f"{one.category.__name__}: {one.message}" for one in said})


def named(case):
    kind, changes = case
    return "-".join([kind, *(f"{name}={value}" for name, value in changes.items())])


@pytest.mark.parametrize("case", PRIVATE + NOISY, ids=named)
def test_a_unit_changes_no_error_and_no_warning(case, monkeypatch):
    monkeypatch.setattr(noise, "add_laplace_to_integers", lambda answers, _: list(answers))
    kind, changes = case
    estimator = LEARNED[kind].set_params(**changes)
    try:
        rng = np.random.default_rng(4)
        for units, constant in ((1, True), (2, False), (30, False), (30, True)):
            benign, last = frame(kind, rng, units, constant=constant)
            expected = outcome(estimator, benign)
            for name, value in HOSTILE.items():
                hostile = benign.copy()
                hostile.iloc[last, -1] = value
                found = outcome(estimator, hostile)
                assert found == expected, (units, constant, name)
    finally:
        estimator.set_params(**{name: LEARNED_AS[kind][name] for name in changes})


LEARNED_AS = {kind: one.get_params() for kind, one in LEARNED.items()}


@pytest.mark.parametrize("case", PRIVATE, ids=named)
def test_whatever_all_rows_hold_something_is_learned(case):
    """Without noise nothing is known by which a fit could be refused but public numbers."""
    kind, changes = case
    estimator = LEARNED[kind].set_params(**changes)
    try:
        rng = np.random.default_rng(5)
        expected = outcome(estimator, frame(kind, rng, 30, constant=False)[0])
        for value in HOSTILE.values():
            rows, _ = frame(kind, rng, 30, constant=True)
            rows.iloc[:, -1] = value
            assert outcome(estimator, rows) == expected
            assert expected[0] is None
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                assert 0 < pdp.calibrate(estimator.model_, pdp.Sum(), epsilon=1.0).scale < np.inf
    finally:
        estimator.set_params(**{name: LEARNED_AS[kind][name] for name in changes})
