"""What all estimators share: their interface, what they refuse, what kind of model they return."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, NoReturn, Self

from scipy import stats
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from pdp_calibrate.arrays import checked_positive, checked_share, named_groups
from pdp_calibrate.core.composite import Blocks
from pdp_calibrate.core.coverage import Coverage, Over
from pdp_calibrate.core.model import Model, Provenance, checked_bounds, checked_size
from pdp_calibrate.errors import ModelError
from pdp_calibrate.frames.columns import kind_of, refuse_discrete
from pdp_calibrate.frames.series import OrderedSeries, ordered_series
from pdp_calibrate.learning.private_sums import Units, units_of

Source = Literal["private", "public"]


CONFIDENCE: Final = float("0.95")
"""The default of ``confidence=``, an object of its own.

An estimator whose options leave no band then knows whether a confidence was asked for. Copies of a
float are the same object, so clones keep it.
"""


_OPEN = Coverage(kind="no band")


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
        model = self._learned(frame, checked_budget(self.epsilon))
        # What a fit does not claim is open.
        self.model_ = model if model.coverage is not None else model.with_coverage(_OPEN)
        return self

    @abc.abstractmethod
    def _learned(self, frame: Any, epsilon: float | None) -> Model:
        """Return the model, learned under ε-differential privacy unless ε is None."""

    @property
    def _provenance(self) -> Provenance:
        return self.source if self.epsilon is None else "dp"

    @property
    def _may_test(self) -> bool:
        """Whether tests, choices, warnings and refusals may depend on a row: rows are public."""
        return self.source == "public" and self.epsilon is None

    def _coverage(self, confidence: float | None, *, notes: Iterable[str] = ()) -> Coverage:
        """Return the record of a set that covers with this confidence; of a point without."""
        if confidence is None:
            return Coverage(kind="point", notes=tuple(notes))
        over: Over = "sampling" if self.epsilon is None else "sampling and noise"
        return Coverage(kind="covered", confidence=confidence, over=over, notes=tuple(notes))

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        if state.get("confidence") is CONFIDENCE:  # the class still has it when it is read back
            state = {name: held for name, held in state.items() if name != "confidence"}
        return state

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
        self,
        make: Callable[[int], Model],
        sizes: Mapping[int, int],
        epsilon: float | None,
        *,
        coverage: Coverage = _OPEN,
        upper: Callable[[int], Model] | None = None,
    ) -> Model:
        """Return a model for each size, with their numbers; all learned by one mechanism.

        Parameters
        ----------
        make
            Returns the model of a size.
        sizes
            How many groups or series there are of each size.
        epsilon
            The budget of the mechanism; None if there is none.
        coverage
            What is known about the error of learning; of all sizes together.
        upper
            For a point, returns the set of a size that covers its error.
        """

        def marked(model: Model, above: Model | None) -> Model:
            said = model.with_coverage(dataclasses.replace(coverage, upper=above))
            return said if epsilon is None else said.learned_with(epsilon)

        ordered = sorted(sizes)
        above = [None if upper is None else upper(size) for size in ordered]
        models = [marked(make(size), one) for size, one in zip(ordered, above, strict=True)]
        if sum(sizes.values()) == 1:
            return models[0]
        counts = [sizes[size] for size in ordered]
        covering = [one for one in above if one is not None]
        return marked(
            Blocks(models=models, counts=counts),
            Blocks(models=covering, counts=counts) if covering else None,
        )

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
        """Check the series; of private rows no value is refused, not even for being missing."""
        gaps = not self._may_test
        return ordered_series(frame, self.value, by=self._unit, gaps=gaps, **self._times())

    def _units(self, frame: Any) -> Units:
        return units_of(frame, by=self._unit, **self._times())

    def _model_along(
        self,
        kind: Callable[..., Model],
        series: OrderedSeries,
        epsilon: float | None,
        *,
        coverage: Coverage = _OPEN,
        **law: Any,
    ) -> Model:
        """Return a model for each length, all with the same law."""

        def of_length(length: int) -> Model:
            return kind(length=length, provenance=self._provenance, **law)

        return self._model_of(of_length, series.lengths, epsilon, coverage=coverage)

    def _longest(self, epsilon: float | None) -> int | None:
        """Return how much of a series is used with epsilon; None, for all of it, without."""
        if epsilon is None:
            return None
        longest = checked_limit(self.max_length, "max_length", "a series")
        if longest < 2:
            raise ModelError(f"max_length must be at least 2, got {longest}.")
        if self._unit is None:
            self._refuse_single()
        return longest

    @staticmethod
    def _refuse_single() -> NoReturn:
        raise ModelError(
            "with epsilon, give groups=, the column that names the series: a single series is a"
            " single unit, which differential privacy hides completely."
        )


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


def confidence_for(
    confidence: object, *, epsilon: float | None, no_band: str | None = None
) -> float | None:
    """Return the confidence of the set to learn, None for a single law, or raise.

    Parameters
    ----------
    confidence
        What the estimator was given, or `CONFIDENCE`.
    epsilon
        The budget for learning. What noise did to an estimate must be covered where it can be.
    no_band
        Why no band is known for what is asked; None if there is one.
    """
    sure = checked_confidence(confidence)
    if no_band is not None:
        if sure is None or confidence is CONFIDENCE:
            return None
        raise ModelError(f"confidence = {sure:.4g} cannot be kept here: {no_band}")
    if sure is None and epsilon is not None:
        raise ModelError(
            "with epsilon the set must cover the noise of the fit: give confidence= a number such"
            " as 0.95, got None."
        )
    return sure


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
