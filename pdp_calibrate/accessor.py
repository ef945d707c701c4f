"""``df.pdp``: the library as methods of a pandas DataFrame. No state, no mathematics."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pandas as pd

if TYPE_CHECKING:
    from pdp_calibrate.adversaries import Adversaries
    from pdp_calibrate.calibration import Calibration, Release
    from pdp_calibrate.engines import Leakage
    from pdp_calibrate.ledger import Ledger
    from pdp_calibrate.models import Model
    from pdp_calibrate.queries import Query


@pd.api.extensions.register_dataframe_accessor("pdp")
class PdpAccessor:
    """Calibrate and release answers about a wide frame: a column per tuple, a row per instance.

    Rows are independent of each other, and their number is public.

    Examples
    --------
    >>> import pandas as pd, pdp_calibrate as pdp
    >>> frame = pd.DataFrame({"mother": [0, 0, 1, 1] * 50, "child": [0, 1, 1, 1] * 50})
    >>> model = frame.pdp.fit(pdp.TableEstimator(source="public")).model_
    >>> release = frame.pdp.count(["mother", "child"], values={1}, model=model, epsilon=1.0)
    >>> isinstance(release.value, int)
    True
    """

    def __init__(self, frame: pd.DataFrame) -> None:
        self._frame = frame

    def fit(self, estimator: Any) -> Any:
        """Return a clone of the estimator, fitted on the frame; its `model_` is the model."""
        return import_module("sklearn.base").clone(estimator).fit(self._frame)

    def calibrate(
        self,
        query: Query,
        *,
        model: Model,
        epsilon: float = 1.0,
        adversaries: Adversaries | None = None,
        time_limit: float | None = None,
    ) -> Calibration:
        """Find the scale for one answer over all rows of the frame."""
        from pdp_calibrate.calibration import calibrate

        return calibrate(
            model,
            query,
            epsilon=epsilon,
            adversaries=adversaries,
            rows=len(self._frame),
            time_limit=time_limit,
        )

    def release(self, calibration: Calibration, *, ledger: Ledger | None = None) -> Release:
        """Release one answer over all rows of the frame; a ledger may refuse it."""
        return calibration.release(self._frame, ledger=ledger)

    def leakage(
        self,
        query: Query,
        *,
        model: Model,
        scale: float,
        adversaries: Adversaries | None = None,
        time_limit: float | None = None,
    ) -> Leakage:
        """Return what one answer over all rows would leak with noise of this scale."""
        from pdp_calibrate.engines import leakage

        return leakage(
            model,
            query,
            scale=scale,
            adversaries=adversaries,
            rows=len(self._frame),
            time_limit=time_limit,
        )

    def sum(
        self,
        columns: str | Iterable[Hashable] | None = None,
        *,
        model: Model | None = None,
        ledger: Ledger | None = None,
        **options: Any,
    ) -> Release:
        """Release the sum of the columns (all by default); options as in `calibrate`.

        With a ledger, its model and its adversaries are the default.
        """
        from pdp_calibrate.queries import Sum

        return self._released(Sum(over=columns), model, ledger, options)

    def mean(
        self,
        columns: str | Iterable[Hashable] | None = None,
        *,
        model: Model | None = None,
        ledger: Ledger | None = None,
        **options: Any,
    ) -> Release:
        """Release the mean of the columns (all by default); options as in `calibrate`.

        With a ledger, its model and its adversaries are the default.
        """
        from pdp_calibrate.queries import Mean

        return self._released(Mean(over=columns), model, ledger, options)

    def count(
        self,
        columns: str | Iterable[Hashable] | None = None,
        *,
        values: Iterable[Hashable],
        model: Model | None = None,
        ledger: Ledger | None = None,
        **options: Any,
    ) -> Release:
        """Release how many cells of the columns hold one of the values."""
        from pdp_calibrate.queries import Count

        return self._released(Count(values=values, over=columns), model, ledger, options)

    def _released(
        self, query: Query, model: Model | None, ledger: Ledger | None, options: dict[str, Any]
    ) -> Release:
        if ledger is not None:
            model = ledger.model if model is None else model
            options = {"adversaries": ledger.adversaries} | options
        if model is None:
            raise TypeError("model= is needed: how are the columns correlated? Or ledger=.")
        return self.release(self.calibrate(query, model=model, **options), ledger=ledger)
