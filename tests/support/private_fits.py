"""Frames and estimators of every family, and pairs of frames that differ in one unit."""

import numpy as np
import pandas as pd

import pdp_calibrate as pdp

LONGEST, LARGEST = 5, 4


def estimators(epsilon, **changes):
    """Return one private estimator of each kind, by name."""
    table = {"domains": {"a": [0, 1], "b": [0, 1, 2], "c": [0, 1]}, "epsilon": epsilon}
    series = {"by": "who", "epsilon": epsilon, "max_length": LONGEST}
    return {
        "table": pdp.TableEstimator(**table, **changes),
        "tree": pdp.TableEstimator(structure="chow-liu", **table),
        "gaussian": pdp.GaussianEstimator(bounds=(0, 10), epsilon=epsilon, **changes),
        "binary": pdp.GroupEstimator(by="who", value="state", kind="binary", epsilon=epsilon),
        "group": pdp.GroupEstimator(
            by="who", value="load", bounds=(0, 10), epsilon=epsilon, max_group_size=LARGEST,
            **changes,
        ),
        "chain": pdp.MarkovChainEstimator(states=[0, 1], **series),
        "started": pdp.MarkovChainEstimator(states=[0, 1], initial="estimated", **series),
        "series": pdp.GaussianSeriesEstimator(value="load", bounds=(0, 10), **series),
    }  # fmt: skip


def unit(kind, rng, size):
    """Draw one unit: a row, a household or a series; often at the ends of the ranges."""
    if kind in ("table", "tree"):
        return pd.DataFrame(
            {"a": [rng.integers(2)], "b": [rng.integers(3)], "c": [rng.integers(2)]}
        )
    ends = rng.choice([0.0, 5.0, 10.0, 3.75, 12.0], size=3 if kind == "gaussian" else size)
    values = np.where(rng.random(len(ends)) < 0.7, ends, rng.uniform(-1, 11, size=len(ends)))
    if kind == "gaussian":
        return pd.DataFrame([values], columns=["x", "y", "z"])
    common = rng.choice([0.0, 0.5, rng.random()])
    states = (rng.random(size) < common).astype(int)
    return pd.DataFrame({"state": states, "load": values})


def neighbours(kind, rng, units=6):
    """Return two frames that agree in all units but one, whose size they share."""
    longest = LARGEST if kind in ("binary", "group") else LONGEST + 2
    sizes = rng.integers(2, longest + 1, size=units)
    drawn = [unit(kind, rng, size) for size in sizes]
    place = int(rng.integers(units))
    other = [*drawn]
    other[place] = unit(kind, rng, sizes[place])
    return [
        pd.concat([one.assign(who=k) if "state" in one else one for k, one in enumerate(frames)],
                  ignore_index=True)
        for frames in (drawn, other)
    ]  # fmt: skip
