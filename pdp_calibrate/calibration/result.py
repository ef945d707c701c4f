"""A proved scale, and the releases made with it."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from pdp_calibrate.calibration.baselines import scales
from pdp_calibrate.calibration.proof import (
    PROVING_SECONDS,
    checked_epsilon,
    number_in,
    parsed,
    proof_of,
    proved_again,
    stated_law,
    stored_model,
    total_of,
    whole_number_in,
)
from pdp_calibrate.calibration.release import (
    Account,
    Layout,
    add_noise,
    check_rows,
    checked_answer,
    checked_layout,
    exact_answer,
    labelled,
    nearest_counts,
    note_release,
    unlabelled,
)
from pdp_calibrate.core import noise
from pdp_calibrate.core.adversary import Adversaries
from pdp_calibrate.core.bracket import Leakage
from pdp_calibrate.core.cards import card
from pdp_calibrate.core.checks import checked_share
from pdp_calibrate.core.contributions import Contributions
from pdp_calibrate.core.model import Model, field_of, header
from pdp_calibrate.core.problem import split
from pdp_calibrate.core.query import Histogram, Query, frozen, lower
from pdp_calibrate.errors import CalibrationError, PdpError, QueryError, damage_refused
from pdp_calibrate.frames.answers import Sizes, row_answers, wide_sizes

_NOT_LOWERED = Contributions(values=())


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """A scale proved to keep every allowed adversary at or below ε, for one release.

    A second release about the same people leaks more, and not simply the sum: do not add up the
    ε of correlated releases. A second one from the same calibration warns, unless a ledger counts
    it.
    """

    model: Model = field(repr=False)
    """The θ or Θ that the proof is about."""
    query: Query
    """What is released; a function as the table of its values."""
    adversaries: Adversaries
    """Against whom."""
    epsilon: float
    """The leakage that nobody exceeds."""
    scale: float
    """The Laplace scale λ."""
    leakage: Leakage = field(repr=False)
    """The leakage at that scale, rounding of the answer included; `value` ≤ `epsilon`."""
    rows: int = 1
    """Number of independent instances that one answer is about."""
    contributions: Contributions = field(default=_NOT_LOWERED, repr=False, compare=False)
    """The lowered query: what was proved, and what is released. If not given, lowered here."""
    estimation_epsilon: float | None = field(init=False, default=None)
    """What learning the model under differential privacy leaks; None if it was not so learned.

    It comes on top: from the model and a release about the very data it was learned from, nobody
    learns more than `total_epsilon`.
    """

    def __post_init__(self) -> None:
        object.__setattr__(self, "estimation_epsilon", self.model.estimation_epsilon)
        object.__setattr__(self, "query", frozen(self.query, self.model))
        if self.contributions is _NOT_LOWERED:
            lowered = lower(self.query, self.model, rows=self.rows)
            object.__setattr__(self, "contributions", lowered)

    @property
    def total_epsilon(self) -> float:
        """What nobody learns more than, learning of the model included: ε + estimation ε.

        It holds for an answer about the very data that the model was learned from; about other,
        independent data nobody learns more than `epsilon`.
        """
        return total_of(self.epsilon, self.estimation_epsilon)

    @property
    def is_integer(self) -> bool:
        """Whether answers are whole numbers with discrete noise."""
        return self.contributions.is_integer

    @functools.cached_property
    def baselines(self) -> dict[str, float | None]:
        """Scales that plain DP, group DP and the Wasserstein mechanism need for the same ε."""
        problems = split(self.model, self.contributions, self.adversaries)
        return scales(problems, self.epsilon)

    @property
    def dp_epsilon(self) -> float:
        """The plain-DP budget that has this scale: GS(f)/λ."""
        return self.sensitivity / self.scale

    @property
    def sensitivity(self) -> float:
        """How far the answer moves when one tuple changes and all others stay: GS(f)."""
        return float(self.contributions.tuple_ranges().max())

    def accuracy(self, *, alpha: float = 0.05) -> float:
        """Return the half-width h with P(|noise| > h) ≤ alpha, of the law actually drawn."""
        checked_share(alpha, "alpha", error=PdpError)
        return noise.half_width(self.scale, alpha, integer=self.is_integer)

    def release(
        self,
        data: Any,
        *,
        value: Hashable | None = None,
        by: Hashable | None = None,
        order_by: Hashable | None = None,
        time_format: str | None = None,
        ledger: Account | None = None,
    ) -> Release:
        """Answer with noise: one instance, all rows of a wide frame, or of a long one.

        Parameters
        ----------
        data
            ``{name: value}`` or a Series; or a wide frame with a column per tuple that enters the
            answer, its rows independent instances; or a long frame with a row per value.
        value
            For a long frame, the column of values.
        by
            For a long frame, the column that tells groups apart; all rows are one group without.
        order_by
            For a long frame, the column that orders a group, where the query needs it. It is
            public, so not that of the values. For a model of series or chains its times are
            checked: no gaps, and no two equal in a group.
        time_format
            How `order_by` is written where it is text, as in `datetime.strptime`: ``%d/%m/%Y``.
            By default text must be ISO 8601, every row in one form.
        ledger
            Where to write the release down before noise is drawn; it refuses what would pass
            its budget together with everything released before. Without one, a second release
            from this calibration gives a `SecondReleaseWarning`.

        Returns
        -------
        Release
            The noisy answer and how it was made; never the true answer.

        Raises
        ------
        ModelError
            If a value lies outside the model's domain, or a column of times has gaps, equal times
            or text in another form. The message names the column, so the error itself tells
            something about the data: keep it from the public.
        """
        layout = checked_layout(value=value, by=by, order_by=order_by, time_format=time_format)
        draw, sizes = self.answered(data, layout)
        if ledger is not None:
            ledger.spend(self, layout=layout, sizes=sizes)
        note_release(self, counted=ledger is not None)
        return draw()

    def answered(self, data: Any, layout: Layout) -> tuple[Callable[[], Release], Sizes | None]:
        """Do all that can fail: check the data, and return what draws the noise, and their size.

        The exact answer waits inside and is forgotten with what is returned; whoever calls that
        makes a release, and accounts for it first.
        """
        found = exact_answer(
            data,
            self.query,
            self.contributions,
            self.model,
            rows=self.rows,
            layout=layout,
            adversaries=self.adversaries,
        )

        def draw() -> Release:
            (noisy,) = add_noise([found.answer], self.contributions, self.scale)
            return Release(value=labelled(noisy, self.query, self.model), calibration=self)

        return draw, found.sizes

    def release_rows(self, frame: Any, *, ledger: Account | None = None) -> Release:
        """Answer for each row of a wide frame by itself.

        `value` is a Series on the index of the frame; for a histogram, a DataFrame with a column
        per category. Rows are independent, so a ledger counts one release about each of them.
        """
        check_rows(self.query, calibrated=self.rows, found=1)
        answers = row_answers(self.contributions, self.model, frame)
        if ledger is not None:
            ledger.spend(self, layout="wide", sizes=wide_sizes(self.model, len(answers)))
        note_release(self, counted=ledger is not None)
        noisy = add_noise(answers, self.contributions, self.scale)
        index = frame.index if isinstance(frame, pd.DataFrame) else None
        if self.contributions.coordinates == 1:
            value: Any = pd.Series([row[0] for row in noisy], index=index)
        else:
            value = pd.DataFrame([labelled(row, self.query, self.model) for row in noisy])
            value.index = value.index if index is None else index
        return Release(value=value, calibration=self)

    def _repr_html_(self) -> str:
        learned = self.estimation_epsilon is not None
        return card(
            "Calibration",
            [
                ("ε", f"{self.epsilon:.6g}"),
                *([("ε, learning included", f"{self.total_epsilon:.6g}")] if learned else []),
                ("scale λ", f"{self.scale:.6g}"),
                ("95 % of the noise within", f"±{self.accuracy():.4g}"),
                ("query", self.query),
                ("adversaries", self.adversaries),
                ("model", f"{type(self.model).__name__} ({self.model.provenance})"),
                ("certified leakage", f"{self.leakage.value:.6g}"),
                *stated_law(self.model).items(),
            ],
        )

    def to_dict(self) -> dict[str, Any]:
        """Describe the calibration for JSON; nothing of a private model but its names."""
        return {
            **header("Calibration"),
            "epsilon": self.epsilon,
            "total_epsilon": self.total_epsilon,
            "scale": self.scale,
            "noise": "discrete Laplace" if self.is_integer else "Laplace",
            "rows": self.rows,
            "query": self.query.to_dict(),
        } | proof_of(self.model, self.adversaries, self.leakage)

    def to_json(self) -> str:
        """Return the calibration as JSON text; `from_json` reads it back."""
        return json.dumps(self.to_dict(), indent=2)

    @classmethod
    @damage_refused("the calibration", kind=CalibrationError)
    def from_json(
        cls,
        text: str,
        *,
        model: Model | None = None,
        time_limit: float | None = PROVING_SECONDS,
    ) -> Calibration:
        """Read a calibration, and prove it again before returning it.

        Parameters
        ----------
        text
            What `to_json` returned.
        model
            The model, where the JSON withholds it (private, or over 10⁴ cells).
        time_limit
            Seconds after which a claim that is not proved again yet is refused; None for none.
        """
        described = parsed(text, "Calibration")
        used = stored_model(described, model)
        query = frozen(Query.from_dict(field_of(described, "query")), used)
        adversaries = Adversaries.from_dict(field_of(described, "adversaries"))
        epsilon = checked_epsilon(number_in(described, "epsilon"))
        scale, rows = number_in(described, "scale"), whole_number_in(described, "rows")
        contributions = lower(query, used, rows=rows)
        leakage = proved_again(
            used,
            [contributions],
            [scale],
            adversaries,
            epsilon=epsilon,
            rows=rows,
            time_limit=time_limit,
        )
        return cls(
            model=used,
            query=query,
            adversaries=adversaries,
            epsilon=epsilon,
            scale=scale,
            leakage=leakage,
            rows=rows,
            contributions=contributions,
        )


@dataclass(frozen=True, kw_only=True)
class Release:
    """A noisy answer and the calibration behind it. The true answer is nowhere in it.

    For this one release nobody learns more than ``calibration.epsilon``, and with what learning
    the model told, nobody more than ``calibration.total_epsilon``.
    """

    value: Any
    """The noisy answer: int or float; a Series by category for a histogram, or by row."""
    calibration: Calibration = field(repr=False)
    """How it was made."""

    def interval(self, *, alpha: float = 0.05) -> tuple[Any, Any]:
        """Return bounds that contain the true answer with probability at least 1 − alpha."""
        width = self.calibration.accuracy(alpha=alpha)
        if self.calibration.is_integer:
            return self.value - int(width), self.value + int(width)
        return self.value - width, self.value + width

    def _repr_html_(self) -> str:
        cal = self.calibration
        rows: list[tuple[object, object]]
        if isinstance(self.value, int | float):
            low, high = self.interval()
            rows = [("value", f"{self.value:.8g}"), ("95 % from", f"{low:.8g} to {high:.8g}")]
        elif isinstance(self.value, pd.Series):
            rows = list(self.value.head(20).items())
        else:
            rows = [("releases, one per row", len(self.value))]
        rows += [("noise", f"95 % within ±{cal.accuracy():.4g}"), ("ε", f"{cal.total_epsilon:.6g}")]
        return card("Release", [*rows, *stated_law(cal.model).items()])

    def cleaned(self, *, total: int | None = None) -> Any:
        """Return counts that could be true: whole, not negative, and summing to a public total.

        Looks only at the noisy answer, so it costs no privacy: the nearest counts (least squares)
        with these properties, whole numbers by largest remainder.
        """
        if not isinstance(self.value, pd.Series) or not self.calibration.is_integer:
            raise QueryError("only a histogram of counts can be cleaned.")
        counts = self.value.clip(lower=0)
        return counts if total is None else nearest_counts(self.value, total)

    def to_dict(self) -> dict[str, Any]:
        """Describe the release for JSON."""
        return {
            **header("Release"),
            "value": unlabelled(self.value),
            "calibration": self.calibration.to_dict(),
        }

    def to_json(self) -> str:
        """Return the release as JSON text; `from_json` reads it back."""
        return json.dumps(self.to_dict(), indent=2)

    @classmethod
    @damage_refused("the release", kind=CalibrationError)
    def from_json(
        cls,
        text: str,
        *,
        model: Model | None = None,
        time_limit: float | None = PROVING_SECONDS,
    ) -> Release:
        """Read a release, and prove its calibration again before returning it.

        `text` is what `to_json` returned; `model` and `time_limit` as in `Calibration.from_json`.
        The index of a release by rows is not stored: its rows are numbered.
        """
        described = parsed(text, "Release")
        inner = json.dumps(field_of(described, "calibration"))
        calibration = Calibration.from_json(inner, model=model, time_limit=time_limit)
        value = checked_answer(field_of(described, "value"))
        query = calibration.query
        if isinstance(query, Histogram):
            rows = value and isinstance(value[0], list)
            value = pd.DataFrame(value) if rows else labelled(value, query, calibration.model)
            if rows:
                value.columns = pd.Index(list(query.of(calibration.model)))
        elif isinstance(value, list):
            value = pd.Series(value)
        return cls(value=value, calibration=calibration)
