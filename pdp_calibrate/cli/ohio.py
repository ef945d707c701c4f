"""The Ohio children's wheeze table: a small public data set to show things on.

537 children of Steubenville, Ohio, were asked at ages 7, 8, 9 and 10 whether they wheeze. Counts by
the four yes/no answers, as published in G. M. Fitzmaurice and N. M. Laird (1993), "A likelihood-
based method for analysing longitudinal binary responses", Biometrika 80, 141-151 (also the data set
``ohio`` of the R package geepack).
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import pandas as pd

if TYPE_CHECKING:
    from pdp_calibrate.core.table import JointTable

AGES = ("age 7", "age 8", "age 9", "age 10")


COUNTS = (355, 16, 23, 6, 27, 3, 13, 7, 31, 6, 6, 3, 10, 4, 9, 18)
"""Children with each pattern of answers, from no-no-no-no to yes-yes-yes-yes."""


def wheeze() -> pd.DataFrame:
    """Return one row per child, 1 where the answer was yes."""
    patterns = pd.DataFrame(list(product([0, 1], repeat=4)), columns=list(AGES))
    return patterns.loc[patterns.index.repeat(list(COUNTS))].reset_index(drop=True)


def wheeze_table() -> JointTable:
    """Return the law that `TableEstimator(smoothing=0.5)` learns, without scikit-learn."""
    import numpy as np

    from pdp_calibrate.core.coverage import Coverage
    from pdp_calibrate.core.table import JointTable
    from pdp_calibrate.learning.smoothing import smoothed_law

    law = smoothed_law(np.reshape(COUNTS, (2,) * len(AGES)), smoothing=0.5)
    domains = [[0, 1]] * len(AGES)
    table = JointTable(probabilities=law, domains=domains, names=AGES, provenance="public")
    return table.with_coverage(Coverage(kind="no band"))
