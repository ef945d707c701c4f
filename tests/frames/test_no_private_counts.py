"""Messages name the column and the rule; how many cells break it is a secret of the rows.

Estimators say it of public rows alone: see `tests/learning/test_no_row_decides.py`.
"""

import re

import numpy as np
import pandas as pd
import pytest

import pdp_calibrate as pdp

COUPLE = pdp.JointTable(
    probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, 1]] * 2, names=["a", "b"]
)
CREW = pdp.BinaryGroup(count_probabilities=[0.4, 0.2, 0.4])
SERIES = pd.DataFrame({"ill": [0, 1] * 15, "who": [1] * 15 + [2] * 15, "day": list(range(15)) * 2})
HOMES = pd.DataFrame({"ill": [0, 1] * 15, "home": np.repeat(range(15), 2)})
GAUSS = pd.DataFrame(np.random.default_rng(0).normal(size=(30, 2)), columns=["a", "b"])
BITS = (GAUSS > 0).astype(float)


def spoilt(frame, column, value, *, cells=7):
    """Return the frame with some cells of a column replaced."""
    changed = frame.astype({column: object}) if isinstance(value, str) else frame.copy()
    changed.loc[changed.index[:cells], column] = value
    return changed


def gaussian(frame):
    return pdp.GaussianEstimator(bounds=(-9, 9), source="public").fit(frame)


def table(frame):
    return pdp.TableEstimator(source="public").fit(frame)


def group(frame, **options):
    return pdp.GroupEstimator(value="ill", by="home", **options).fit(frame)


def chain(frame):
    given = {"by": "who", "order_by": "day", "source": "public"}
    return pdp.MarkovChainEstimator(value="ill", **given).fit(frame)


def wide(frame):
    return pdp.Ledger(COUPLE, epsilon=9.0).release(pdp.Sum(), frame, epsilon=1.0)


def by_row(frame):
    return pdp.calibrate(COUPLE, pdp.Sum()).release_rows(frame)


def long(frame):
    return pdp.calibrate(CREW, pdp.Sum()).release(frame, value="ill", by="home")


def real(frame):
    law = pdp.Gaussian(covariance=np.eye(2), bounds=(-9, 9), names=["a", "b"])
    return pdp.calibrate(law, pdp.Sum()).release(frame)


def verb(frame):
    return frame.pdp.sum("ill", groups="home", model=CREW, epsilon=1.0)


def correlated(frame):
    return pdp.pearson(frame)


CASES = [
    *[(how, BITS, "a", np.nan)
      for how in (gaussian, table, wide, by_row, correlated)],
    *[(how, GAUSS, "a", value)
      for how in (gaussian, real, correlated) for value in (np.nan, np.inf)],
    *[(how, BITS, "a", value) for how in (wide, by_row) for value in (8.0, "x")],
    (real, GAUSS, "a", 88.0),
    *[(how, HOMES.astype(float), column, np.nan)
      for how in (group, long, verb) for column in ("ill", "home")],
    *[(how, HOMES.astype(float), "ill", 8.0) for how in (group, long, verb)],
    *[(chain, SERIES.astype(float), column, np.nan) for column in ("ill", "who", "day")],
    (chain, SERIES, "day", 0),
    (chain, SERIES, "day", -88),
    (chain, SERIES.assign(day=SERIES.day + 88 * (SERIES.day > 7)), "ill", 0),
    (lambda frame: group(frame, person="id"), HOMES.assign(id=range(30)), "id", 0),
    (lambda frame: group(frame, person="id"), HOMES.assign(id=np.arange(30) // 2), "ill", 0),
]  # fmt: skip


@pytest.mark.parametrize(("how", "frame", "column", "value"), CASES)
def test_no_message_counts_cells(how, frame, column, value):
    with pytest.raises(pdp.PdpError) as caught:
        how(spoilt(frame, column, value))
    message = str(caught.value)
    held = re.findall(r"\d+(?:\.\d+)?", message)
    assert set(held) <= {"0", "1", "1.5"}, message  # "only 0 and 1", "1.5 times the usual"
    few = str(caught.value)
    with pytest.raises(pdp.PdpError) as caught:
        how(spoilt(frame, column, value, cells=9))
    assert str(caught.value) == few  # the message is the same however many there are
