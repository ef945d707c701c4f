"""``df.pdp``: the library as methods of a pandas DataFrame. No state, no mathematics.

The integration for polars gives the same methods to polars frames.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Unpack, cast

import pandas as pd

from pdp_calibrate.errors import QueryError
from pdp_calibrate.jobs.grammar import Kind, Question, conditions_of
from pdp_calibrate.jobs.job import (
    OPTIONS,
    STRENGTHS,
    Job,
    Options,
    ask_for_strength,
    epsilon_of,
    refuse_unknown,
)
from pdp_calibrate.jobs.signature import with_options

if TYPE_CHECKING:
    from pdp_calibrate.calibration.result import Calibration, Release
    from pdp_calibrate.core.adversary import Adversaries
    from pdp_calibrate.core.model import Model
    from pdp_calibrate.core.problem import Leakage
    from pdp_calibrate.core.query import Query
    from pdp_calibrate.frames.long_answers import LongColumns
    from pdp_calibrate.ledger.ledger import Ledger

_OWN = {
    "columns": "Of a wide frame, the columns that enter, by default all of the model. Of a long"
    " frame, the column of values.",
    "weights": "The weight of each column that enters.",
    "query": "The query, as text, or a query object about a model.",
    "values": "The values to count.",
    "categories": "The values that are counted, each by itself; by default every possible one.",
}


_method = with_options("df.pdp", _OWN, list(OPTIONS))


_of_columns = with_options(
    "df.pdp",
    {
        "calibration": "What is released, and the proved scale.",
        "value": "In a table with a row per value, the column of values.",
        "by": "Another name for groups.",
        "ledger": "Where to record the release before noise is drawn.",
    },
    ("groups", "order_by", "time_format"),
)


_OF_A_MODEL = (*STRENGTHS, "adversaries", "time_limit", "noise", "delta")
"""What can be said where a query is asked of a model, beside the model."""


Columns = str | Iterable[Hashable] | None


@pd.api.extensions.register_dataframe_accessor("pdp")
class PdpAccessor:
    """Calibrate and release answers about a frame.

    A wide frame has a column per tuple; its rows are independent. A long frame has a row per value
    and is named as such by ``groups=`` or ``order_by=``: rows of one group are correlated, groups
    are independent. Rows, groups and their sizes are public.

    A wide frame needs a model. For a long one, assumptions can stand in its place: the public
    range of the values and a correlation, or the range alone, which allows any dependence inside a
    group.

    Examples
    --------
    >>> import pandas as pd, pdp_calibrate as pdp
    >>> wide = pd.DataFrame({"mother": [0, 0, 1, 1] * 50, "child": [0, 1, 1, 1] * 50})
    >>> model = wide.pdp.fit(pdp.TableEstimator(source="public")).model_
    >>> ill = wide.pdp.count(["mother", "child"], values={1}, model=model, epsilon=1.0)
    >>> isinstance(ill.value, int)
    True
    >>> long = pd.DataFrame({"household": [1, 1, 2, 2, 2], "income": [10.0, 20.0, 5.0, 0.0, 30.0]})
    >>> release = long.pdp.sum(
    ...     "income", bounds=(0, 100), groups="household", correlation=(0, 0.4), epsilon=1.0
    ... )
    >>> round(release.calibration.scale, 3)  # 100·(1 + 2·0.4)
    180.0
    >>> long.pdp.sum("income", bounds=(0, 100), group="household", epsilon=1.0)
    Traceback (most recent call last):
    pdp_calibrate.errors.QueryError: df.pdp.sum takes no argument 'group'; did you mean groups?
    """

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    @_method
    def fit(self, estimator: Any) -> Any:
        """Return a clone of the estimator, fitted on the frame; its `model_` is the model."""
        return import_module("sklearn.base").clone(estimator).fit(self._frame)

    @_method
    def sum(self, columns: Columns = None, **options: Unpack[Options]) -> Release:
        """Release the sum of the columns."""
        return self._release("sum", columns, options)

    @_method
    def mean(self, columns: Columns = None, **options: Unpack[Options]) -> Release:
        """Release the mean of the columns."""
        return self._release("mean", columns, options)

    @_method
    def linear(self, weights: Mapping[Hashable, float], **options: Unpack[Options]) -> Release:
        """Release a weighted sum of the columns of a wide frame."""
        if not isinstance(weights, Mapping):
            raise QueryError(f"weights must be {{column: weight}}, got {type(weights).__name__}.")
        return self._release("linear", weights, options, weights=tuple(weights.values()))

    @_method
    def count(
        self,
        columns: Columns | Mapping[Hashable, Any] = None,
        *,
        values: Iterable[Hashable] | None = None,
        **options: Unpack[Options],
    ) -> Release:
        """Release how many cells of the columns hold one of the values, or how many rows match.

        Of a long frame, ``columns`` may be conditions on several, all of which a row must meet:
        ``{"religion": "yes", "degree": True}``. They say which values count.
        """
        if not isinstance(columns, Mapping):
            return self._release("count", columns, options, values=values)
        if values is not None:
            raise QueryError("conditions say which values count already: leave values= out.")
        options["where"] = conditions_of(columns, options)
        return self._release("count", None, options)

    @_method
    def histogram(
        self,
        columns: Columns = None,
        *,
        categories: Iterable[Hashable] | None = None,
        **options: Unpack[Options],
    ) -> Release:
        """Release how many cells of the columns hold each category.

        Of a long frame, ``columns`` may be several: every combination of theirs is counted.
        """
        return self._release("histogram", columns, options, values=categories)

    @_method
    def calibrate(self, query: Query | str | list[str], **options: Unpack[Options]) -> Calibration:
        """Find the scale for one answer over all rows, and release nothing.

        A question as text, such as ``"mean(income)"``, or several to be answered together, take
        every option that the methods above take. A query object is asked of a model of a wide
        frame.
        """
        from pdp_calibrate.jobs.grammar import parse_query
        from pdp_calibrate.jobs.run import calibrate_task, model_of, task_of

        if isinstance(query, str | list):
            texts = [query] if isinstance(query, str) else query
            job = Job(questions=tuple(map(parse_query, texts)), options=options)
            job.check_strength()
            task = task_of(job, self._frame, model_of(job, self._frame))
            return cast("Calibration", calibrate_task(job, task))
        if "model" not in options:
            raise QueryError("a query object is asked of a model: give model= too.")
        return self._calibrate_model(query, **options)

    def _calibrate_model(self, query: Query, *, model: Any, **options: Any) -> Calibration:
        from pdp_calibrate.calibration.calibrate import calibrate
        from pdp_calibrate.frames.open import rows_in

        refuse_unknown(options, _OF_A_MODEL, where="df.pdp.calibrate of a query and its model")
        given = {name: value for name, value in options.items() if value is not None}
        ask_for_strength(given)
        if "belief" in given:
            given["epsilon"] = epsilon_of(given.pop("belief"), given)
        return calibrate(model, query, rows=rows_in(self._frame), **given)

    @_of_columns
    def release(
        self,
        calibration: Calibration,
        *,
        value: Hashable | None = None,
        by: Hashable | None = None,
        ledger: Ledger | None = None,
        **columns: Unpack[LongColumns],
    ) -> Release:
        """Release one answer over all rows, as `Calibration.release` does."""
        from pdp_calibrate.calibration.release import (
            has_released,
            remember_release,
            warn_of_second,
        )

        counted = ledger is not None or has_released(calibration)  # which warns by itself
        warn_of_second(self._frame, "this table has had", counted=counted, stacklevel=4)
        found = calibration.release(self._frame, value=value, by=by, ledger=ledger, **columns)
        remember_release(self._frame)
        return found

    @_method
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

    def _release(
        self,
        kind: Kind,
        columns: Columns,
        options: Options,
        *,
        values: Iterable[Hashable] | None = None,
        weights: tuple[float, ...] | None = None,
    ) -> Release:
        from pdp_calibrate.frames.open import names_of
        from pdp_calibrate.jobs.run import run

        named = None if columns is None else names_of(columns, "columns")
        question = Question(kind=kind, columns=named, values=values, weights=weights)
        job = Job(questions=(question,), options=options)
        found = run(job, self._frame, stacklevel=5)  # the call of df.pdp
        return cast("Release", found)  # of one question
