"""``df.pdp``: the library as methods of a pandas DataFrame. No state, no mathematics.

The integration for polars gives the same methods to polars frames.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pandas as pd

if TYPE_CHECKING:
    from pdp_calibrate.calibration.result import Calibration, Release
    from pdp_calibrate.core.adversary import Adversaries
    from pdp_calibrate.core.bracket import Leakage
    from pdp_calibrate.core.model import Model
    from pdp_calibrate.core.query import Query


@pd.api.extensions.register_dataframe_accessor("pdp")
class PdpAccessor:
    """Calibrate and release answers about a frame.

    A wide frame has a column per tuple; its rows are independent. A long frame has a row per value
    and is named as such by ``groups=`` or ``order_by=``: rows of one group are correlated, groups
    are independent. Rows, groups and their sizes are public.

    ``sum``, ``mean``, ``count`` and ``histogram`` take these options:

    model
        How the tuples are correlated. A wide frame needs one.
    bounds, correlation
        For a long frame instead of a model: the public range, to which values are clamped, and one
        common correlation inside a group (a number, or a range for every number in it), or that of
        neighbours where ``order_by=`` is given. A correlation assumes jointly Gaussian values:
        booleans, text and columns with a stated domain are refused, by type. Without a
        correlation, any dependence: group privacy; so are counts and histograms, about which a
        correlation says nothing.
    assume
        ``"gaussian"`` with a correlation of a column of whole numbers, whose type does not tell
        measurements from codes; floats need no such word.
    domain
        For counts and histograms of a long frame without a model: which values are possible, such
        as ``[0, 1]``. A boolean column, a polars Enum and a DuckDB ENUM say so by their type.
        Categories of pandas, polars and Arrow come from the data; ``domain="dtype"`` states that
        they are public. Otherwise a list is needed. A value outside it raises: that error depends
        on the data, so keep it from the public.
    groups, order_by
        The columns that tell groups apart and order them. Text in the latter must be ISO 8601,
        every row in one form, or `time_format` says how it is written (``%d/%m/%Y``). With a
        correlation its times have no gaps, and no two are equal in a group.
    max_group_size
        Refuse larger groups.
    per, per_domain
        One release for each value declared for this column, as a dict. The values are declared as
        with ``domain``, and those that do not occur get noise alone. Who belongs to which part is
        public, like groups.
    ledger
        Where to write the release down before noise is drawn; it refuses what would pass its
        budget, and another column than it is about. Its model and adversaries are the default.
    epsilon, adversaries, time_limit
        As in `pdp_calibrate.calibrate`. With a ledger, ``epsilon=None`` releases with as much as
        still fits its budget, within the ledger's own time limit.

    Examples
    --------
    >>> import pandas as pd, pdp_calibrate as pdp
    >>> wide = pd.DataFrame({"mother": [0, 0, 1, 1] * 50, "child": [0, 1, 1, 1] * 50})
    >>> model = wide.pdp.fit(pdp.TableEstimator(source="public")).model_
    >>> isinstance(wide.pdp.count(["mother", "child"], values={1}, model=model).value, int)
    True
    >>> long = pd.DataFrame({"household": [1, 1, 2, 2, 2], "income": [10.0, 20.0, 5.0, 0.0, 30.0]})
    >>> release = long.pdp.sum(
    ...     "income", bounds=(0, 100), groups="household", correlation=(0, 0.4), epsilon=1.0
    ... )
    >>> round(release.calibration.scale, 3)  # 100·(1 + 2·0.4)
    180.0
    """

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    def fit(self, estimator: Any) -> Any:
        """Return a clone of the estimator, fitted on the frame; its `model_` is the model."""
        return import_module("sklearn.base").clone(estimator).fit(self._frame)

    def sum(self, columns: str | Iterable[Hashable] | None = None, **options: Any) -> Any:
        """Release the sum of the columns; options as listed at the class."""
        return self._release("sum", columns, **options)

    def mean(self, columns: str | Iterable[Hashable] | None = None, **options: Any) -> Any:
        """Release the mean of the columns; options as listed at the class."""
        return self._release("mean", columns, **options)

    def count(
        self,
        columns: str | Iterable[Hashable] | None = None,
        *,
        values: Iterable[Hashable],
        **options: Any,
    ) -> Any:
        """Release how many cells of the columns hold one of the values."""
        return self._release("count", columns, values=values, **options)

    def histogram(
        self,
        columns: str | Iterable[Hashable] | None = None,
        *,
        categories: Iterable[Hashable] | None = None,
        **options: Any,
    ) -> Any:
        """Release how many cells of the columns hold each category."""
        return self._release("histogram", columns, values=categories, **options)

    def calibrate(
        self,
        query: Query,
        *,
        model: Model,
        epsilon: float = 1.0,
        adversaries: Adversaries | None = None,
        time_limit: float | None = None,
    ) -> Calibration:
        """Find the scale for one answer over all rows of a wide frame."""
        from pdp_calibrate.calibration.calibrate import calibrate
        from pdp_calibrate.frames.open import rows_in

        return calibrate(
            model,
            query,
            epsilon=epsilon,
            adversaries=adversaries,
            rows=rows_in(self._frame),
            time_limit=time_limit,
        )

    def release(self, calibration: Calibration, **options: Any) -> Release:
        """Release one answer over all rows; options as in `Calibration.release`."""
        return calibration.release(self._frame, **options)

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
        from pdp_calibrate.core.leakage import leakage
        from pdp_calibrate.frames.open import rows_in

        return leakage(
            model,
            query,
            scale=scale,
            adversaries=adversaries,
            rows=rows_in(self._frame),
            time_limit=time_limit,
        )

    def _release(self, kind: Any, columns: Any, **options: Any) -> Any:
        from pdp_calibrate.jobs.verbs import Request, release

        return release(self._frame, Request(kind=kind, columns=columns, **options))
