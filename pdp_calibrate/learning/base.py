"""What all estimators share: how they are asked, and what they refuse.

A Markov chain learned from series in a long frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from scipy import stats
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from pdp_calibrate.core.checks import checked_positive, checked_share
from pdp_calibrate.core.composite import Blocks
from pdp_calibrate.core.model import Model, Provenance, checked_size
from pdp_calibrate.errors import ModelError

Source = Literal["private", "public"]


class FrameEstimator(BaseEstimator):
    """An estimator that learns a model from a DataFrame, scikit-learn style.

    The constructor only stores, ``fit(frame)`` checks, learns and returns the estimator; what was
    learned is in ``model_``. Asking for it before is a `NotFittedError`.
    """

    model_: Any
    epsilon: float | None
    source: Source

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
            f"with epsilon, say {what}=: the public limit on the size of {unit}, which is what"
            " the noise must hide. Never take it from the data."
        )
    return checked_size(limit, what)


def one_or_blocks(
    models: Sequence[Model], counts: Sequence[int], epsilon: float | None, *, alone: bool
) -> Model:
    """Return the one model, or blocks of them with counts; all were learned by one mechanism."""
    marked = models if epsilon is None else [model.learned_with(epsilon) for model in models]
    if alone:
        return marked[0]
    blocks = Blocks(models=marked, counts=counts)
    return blocks if epsilon is None else blocks.learned_with(epsilon)


@dataclass(frozen=True, kw_only=True)
class FitTest:
    """A test of a model's assumption: a small p-value speaks against the model."""

    statistic: float
    """The test statistic, near `degrees` if the assumption holds."""
    degrees: int
    """Its degrees of freedom; 0 if the data cannot tell."""

    @property
    def p_value(self) -> float:
        """Probability of a statistic at least as large, if the assumption holds (asymptotic)."""
        return float(stats.chi2.sf(self.statistic, self.degrees)) if self.degrees else 1.0


def checked_longest(epsilon: float | None, *, by: str | None, max_length: int | None) -> int | None:
    """Return how much of a series counts with epsilon; None for all of it without."""
    if epsilon is None:
        return None
    longest = checked_limit(max_length, "max_length", "a series")
    if longest < 2:
        raise ModelError(f"max_length must be at least 2, got {longest}.")
    if by is None:
        raise ModelError(
            "with epsilon the column by= that tells series apart is needed: a single series is a"
            " single unit, which differential privacy hides altogether."
        )
    return longest
