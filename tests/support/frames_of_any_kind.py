"""One set of frames for every engine, and what must come out the same."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd

import pdp_calibrate as pdp
from pdp_calibrate.calibration.release import exact_answer
from pdp_calibrate.core.query import lower
from pdp_calibrate.frames.long_answers import LongFrame

_rng = np.random.default_rng(9)
_SIZES = _rng.integers(1, 5, 60)

WIDE = pd.DataFrame(
    _rng.multivariate_normal([5e4, -3, 0], [[1, 0.6, 0.2], [0.6, 2, -0.3], [0.2, -0.3, 0.5]], 300),
    columns=["a", "b", "c"],
)
CODES = pd.DataFrame(
    {
        "x": _rng.integers(0, 3, 300),
        "y": _rng.choice(["u", "v"], 300),
        "z": _rng.random(300) < 0.3,
        "real": _rng.choice([0.1, 2.7], 300),
    }
)
HOMES = pd.DataFrame(
    {
        "home": np.repeat(np.arange(60), _SIZES),
        "role": np.concatenate([np.arange(size) for size in _SIZES]),
        "income": np.repeat(_rng.normal(50, 9, 60), _SIZES) + _rng.normal(0, 9, _SIZES.sum()),
        "ill": _rng.integers(0, 2, _SIZES.sum()),
    }
).sample(frac=1, random_state=0, ignore_index=True)
SERIES = pd.DataFrame(
    {
        "who": np.repeat(np.arange(8), 30),
        "day": np.tile(np.arange(30), 8),
        "state": _rng.integers(0, 3, 240),
        "load": np.concatenate([_rng.normal(size=30).cumsum() for _ in range(8)]),
    }
)
SERIES["date"] = pd.Timestamp("2024-02-20") + pd.to_timedelta(SERIES["day"], unit="D")
SERIES = SERIES.sample(frac=1, random_state=1, ignore_index=True)


def _fitted(estimator: type, **parameters: Any) -> Callable[[Any], Any]:
    return lambda frame: estimator(source="public", **parameters).fit(frame).model_


_TIME: dict[str, Any] = {"by": "who", "order_by": "date"}
MODELS: dict[str, tuple[pd.DataFrame, Callable[[Any], Any]]] = {
    "table": (CODES, _fitted(pdp.TableEstimator)),
    "gaussian": (WIDE, _fitted(pdp.GaussianEstimator, bounds=(-1e5, 1e5))),
    "oas": (WIDE, _fitted(pdp.GaussianEstimator, bounds=(-1e5, 1e5), covariance="oas")),
    "sampled": (WIDE, _fitted(pdp.GaussianEstimator, bounds=(-1e5, 1e5), confidence=0.9)),
    "gaussian group": (HOMES, _fitted(pdp.GroupEstimator, by="home", bounds=(0, 100))),
    "binary group": (
        HOMES,
        _fitted(pdp.GroupEstimator, by="home", value="ill", kind="binary", role="role"),
    ),
    "chain": (SERIES, _fitted(pdp.MarkovChainEstimator, initial="estimated", **_TIME)),
    "gaussian series": (
        SERIES,
        _fitted(pdp.GaussianSeriesEstimator, value="load", bounds=(-50, 50), **_TIME),
    ),
}
NEEDS_WINDOWS = {"chain", "gaussian series", "weights by place", "values by place"}

_HOME_MODEL = pdp.Blocks(
    models=[
        pdp.GaussianGroup(size=size, correlation=0.3, bounds=(30, 70)) for size in (1, 2, 3, 4)
    ],
    counts=[int((size == _SIZES).sum()) for size in (1, 2, 3, 4)],
)
_COUPLES = HOMES[HOMES["home"].isin(np.flatnonzero(_SIZES == 2))]
_COUPLE = pdp.JointTable(probabilities=[[0.4, 0.1], [0.2, 0.3]], domains=[[0, 1]] * 2, names=[0, 1])
_HEIGHTS = pdp.Gaussian(covariance=np.eye(2), bounds=[(49_998, 50_002), (-4, 1)], names=["a", "b"])
_CODES = pdp.JointTable(
    probabilities=np.full((3, 2, 2), 1 / 12),
    domains=[[0, 1, 2], [False, True], [0.1, 2.7]],
    names=["x", "z", "real"],
)
_UNKNOWN = pdp.Blocks(
    models=[pdp.Unknown(size=size, domain=[0, 1]) for size in (1, 2, 3, 4)],
    counts=_HOME_MODEL.counts,
)
_IN_HOMES = LongFrame(value="income", groups="home", order_by="role")

ANSWERS: dict[str, tuple[pd.DataFrame, pdp.Query, Any, LongFrame | None]] = {
    "clamped sum": (WIDE, pdp.Sum(clamp=True), _HEIGHTS, None),
    "clamped mean": (WIDE, pdp.Mean(clamp=True), _HEIGHTS, None),
    "weighted": (WIDE, pdp.Linear(weights={"a": 0.3, "b": -7}, clamp=True), _HEIGHTS, None),
    "real codes": (CODES, pdp.Linear(weights={"x": 0.3, "real": 1.5}), _CODES, None),
    "count": (CODES, pdp.Count(values={1, 2.7}), _CODES, None),
    "any function": (CODES.head(1), pdp.Custom(function=max, over=["x", "real"]), _CODES, None),
    "long mean": (HOMES, pdp.Mean(clamp=True), _HOME_MODEL, _IN_HOMES),
    "long histogram": (HOMES, pdp.Histogram(), _UNKNOWN, LongFrame(value="ill", groups="home")),
    "weights by place": (
        _COUPLES,
        pdp.Linear(weights=[3, -0.1], clamp=True),
        pdp.GaussianGroup(size=2, correlation=0.3, bounds=(30, 70)),
        _IN_HOMES,
    ),
    "values by place": (
        _COUPLES,
        pdp.Linear(weights=[5, 2]),
        _COUPLE,
        LongFrame(value="ill", groups="home", order_by="role"),
    ),
}


def answer(name: str, frame: Any) -> tuple[float, ...]:
    """Return the answer under the noise, as the fractions it is."""
    given, query, model, layout = ANSWERS[name]
    rows = len(given) if layout is None else 1
    contributions = lower(query, model, rows=rows)
    found = exact_answer(frame, query, contributions, model, rows=rows, layout=layout)
    return found.answer


def numbers_of(model: Any) -> list[float]:
    """Flatten the parameters of a model."""
    found: list[float] = []

    def visit(part: Any) -> None:
        if isinstance(part, dict):
            for key in sorted(part):
                visit(part[key])
        elif isinstance(part, list | tuple):
            for one in part:
                visit(one)
        elif isinstance(part, int | float) and not isinstance(part, bool):
            found.append(float(part))

    visit(model.to_dict())
    return found


def assert_same_model(found: Any, expected: Any) -> None:
    assert type(found) is type(expected)
    assert found.names == expected.names
    mine, theirs = numbers_of(found), numbers_of(expected)
    assert len(mine) == len(theirs) > 5
    for one, other in zip(mine, theirs, strict=True):
        assert math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)


@contextmanager
def watching_collects() -> Iterator[list[tuple[Any, int]]]:
    """Note every frame that is asked of an engine: what was asked, and how many rows came back."""
    seen: list[tuple[Any, int]] = []
    collect = nw.LazyFrame.collect

    def noting(self: Any, *args: Any, **kwargs: Any) -> Any:
        found = collect(self, *args, **kwargs)
        seen.append((self.to_native(), len(found)))
        return found

    nw.LazyFrame.collect = noting  # type: ignore[method-assign]
    try:
        yield seen
    finally:
        nw.LazyFrame.collect = collect  # type: ignore[method-assign]
