"""What all estimators share: their interface, what they refuse, what kind of model they return."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

from scipy import stats
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from pdp_calibrate.arrays import checked_positive, checked_share, named_groups
from pdp_calibrate.core.composite import Blocks
from pdp_calibrate.core.model import Model, Provenance, checked_bounds, checked_size
from pdp_calibrate.errors import ModelError
from pdp_calibrate.frames.columns import kind_of, refuse_discrete
from pdp_calibrate.frames.series import OrderedSeries, ordered_series
from pdp_calibrate.learning.private_sums import Units, units_of

Source = Literal["private", "public"]


class FrameEstimator(BaseEstimator):
    """An estimator that learns a model from a DataFrame, scikit-learn style.

    The constructor only stores; ``fit(frame)`` checks, learns and returns the estimator; the result
    is in ``model_``. Reading it before that raises `NotFittedError`.
    """

    model_: Any
    epsilon: float | None
    source: Source

    def fit(self, frame: Any, y: object = None) -> Self:
        """Check the arguments, learn from the rows of a frame and return the estimator."""
        del y  # scikit-learn's signature
        checked_source(self.source)
        self.model_ = self._learned(frame, checked_budget(self.epsilon))
        return self

    @abc.abstractmethod
    def _learned(self, frame: Any, epsilon: float | None) -> Model:
        """Return the model, learned under ε-differential privacy unless ε is None."""

    @property
    def _provenance(self) -> Provenance:
        return self.source if self.epsilon is None else "dp"

    def __getattr__(self, name: str) -> Any:
        if name == "model_":
            raise NotFittedError(
                f"this {type(self).__name__} has learned nothing yet: call fit(frame) first."
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.no_validation = True  # a frame is needed: arrays have no names
        tags.non_deterministic = getattr(self, "epsilon", None) is not None
        return tags


class LongFrameEstimator(FrameEstimator):
    """An estimator that learns from one row per value, in independent groups or series.

    Its model describes the group if there is one, and is `Blocks` with a count for each size
    otherwise: the same for all kinds of values.
    """

    value: str
    groups: str | None
    by: str | None

    @property
    def _unit(self) -> str | None:
        """The column that names the group or series."""
        return named_groups(self.groups, self.by)

    def _model_of(
        self, make: Callable[[int], Model], sizes: Mapping[int, int], epsilon: float | None
    ) -> Model:
        """Return a model for each size, with their numbers; all learned by one mechanism."""
        models = [make(size) for size in sorted(sizes)]
        if epsilon is not None:
            models = [model.learned_with(epsilon) for model in models]
        if sum(sizes.values()) == 1:
            return models[0]
        blocks = Blocks(models=models, counts=[sizes[size] for size in sorted(sizes)])
        return blocks if epsilon is None else blocks.learned_with(epsilon)

    def _checked_bounds(
        self, frame: Any, bounds: Any, *, what: str, instead: str
    ) -> tuple[float, float]:
        """Return the public range of Gaussian values, whose column must not be discrete."""
        kind = kind_of(frame, self.value)
        if bounds is None:
            remedy = "" if kind.is_float() else f" Otherwise, {instead}."
            raise ModelError(f"{what} needs the public range of its values: bounds=.{remedy}")
        refuse_discrete(self.value, kind, instead=instead)
        return checked_bounds(bounds, 1)[0]


class SeriesEstimator(LongFrameEstimator):
    """What estimators of series share: which rows form a series, and how much of it is used."""

    order_by: str | None
    time_format: str | None
    max_length: int | None

    def _times(self) -> dict[str, str | None]:
        return {"order_by": self.order_by, "time_format": self.time_format}

    def _series(self, frame: Any) -> OrderedSeries:
        return ordered_series(frame, self.value, by=self._unit, **self._times())

    def _units(self, frame: Any) -> Units:
        return units_of(frame, by=self._unit, **self._times())

    def _model_along(
        self, kind: Callable[..., Model], series: OrderedSeries, epsilon: float | None, **law: Any
    ) -> Model:
        """Return a model for each length, all with the same law."""

        def of_length(length: int) -> Model:
            return kind(length=length, provenance=self._provenance, **law)

        return self._model_of(of_length, series.lengths, epsilon)

    def _longest(self, epsilon: float | None) -> int | None:
        """Return how much of a series is used with epsilon; None, for all of it, without."""
        if epsilon is None:
            return None
        longest = checked_limit(self.max_length, "max_length", "a series")
        if longest < 2:
            raise ModelError(f"max_length must be at least 2, got {longest}.")
        if self._unit is None:
            raise ModelError(
                "with epsilon, give groups=, the column that names the series: a single series is a"
                " single unit, which differential privacy hides completely."
            )
        return longest


def checked_source(source: str) -> None:
    """Raise unless the source is private or public."""
    if source not in ("private", "public"):
        raise ModelError(f"source must be 'private' or 'public', got {source!r}.")


def checked_budget(epsilon: object) -> float | None:
    """Return the budget for learning, None for learning without noise, or raise."""
    return None if epsilon is None else checked_positive(epsilon, "epsilon")


def checked_confidence(confidence: object) -> float | None:
    """Return the confidence, None for none, or raise unless it lies between 0 and 1."""
    return None if confidence is None else checked_share(confidence, "confidence")


def checked_limit(limit: object, what: str, unit: str) -> int:
    """Return a public limit on what one unit contributes, or raise."""
    if limit is None:
        raise ModelError(
            f"with epsilon, give {what}=: the public limit on the size of {unit}, which is what"
            " the noise must hide. Never take it from the data."
        )
    return checked_size(limit, what)


@dataclass(frozen=True, kw_only=True)
class FitTest:
    """A test of a model's assumption: a small p-value is evidence against the model."""

    statistic: float
    """The test statistic, near `degrees` if the assumption holds."""
    degrees: int
    """Its degrees of freedom; 0 if the data cannot decide."""

    @property
    def p_value(self) -> float:
        """Probability of a statistic at least as large, if the assumption holds (asymptotic)."""
        return float(stats.chi2.sf(self.statistic, self.degrees)) if self.degrees else 1.0
