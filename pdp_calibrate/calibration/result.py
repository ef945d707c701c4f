"""Proved scales, and the releases made with them.

One query or a list of them, released together under one ε: the same types, with single values or
with tuples inside.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, Unpack, cast

import pandas as pd

from pdp_calibrate.arrays import checked_epsilon, damage_refused, deadline_after
from pdp_calibrate.calibration import accuracies, baselines
from pdp_calibrate.calibration.release import (
    Account,
    Layout,
    Moment,
    add_noise,
    checked_answer,
    checked_layout,
    cleaned_counts,
    exact_answers,
    exact_row_answers,
    labelled,
    labelled_rows,
    layout_from,
    moment_in,
    note_release,
    sizes_from,
    stored_layout,
    unlabelled,
)
from pdp_calibrate.calibration.risk import Risk, risk_of
from pdp_calibrate.calibration.solve import certified_leakage, keeps, proved
from pdp_calibrate.calibration.stored import (
    checked_behind,
    checked_header,
    number_in,
    parsed,
    restored,
    stored_measure,
    stored_model,
    stored_moment,
)
from pdp_calibrate.core import gaussian_dp
from pdp_calibrate.core.accuracy import checked_count, unit_of_scale
from pdp_calibrate.core.adversary import Adversaries
from pdp_calibrate.core.cards import card
from pdp_calibrate.core.contributions import Contributions
from pdp_calibrate.core.couplings import tuple_moves
from pdp_calibrate.core.coverage import learned_as
from pdp_calibrate.core.model import (
    PRIVATE_MODEL,
    Model,
    field_of,
    header,
    refuse_endless,
)
from pdp_calibrate.core.noise import Noise
from pdp_calibrate.core.numbers import beside_noise, width as two_digits
from pdp_calibrate.core.problem import Leakage, Measure, split
from pdp_calibrate.core.query import Query, frozen, lower
from pdp_calibrate.core.rounding import UNIT_ROUNDOFF, sum_rounded_up
from pdp_calibrate.core.row_query import RowQuery
from pdp_calibrate.errors import (
    CalibrationError,
    QueryError,
    UnsupportedQueryError,
    printable,
)
from pdp_calibrate.frames.answers import Sizes
from pdp_calibrate.frames.long_answers import ReleaseColumns, with_columns

if TYPE_CHECKING:  # defaults of type variables are newer than the oldest Python supported
    from typing_extensions import TypeVar

    Asked = TypeVar("Asked", bound=Query | tuple[Query, ...], default=Query)
    Number = TypeVar("Number", bound=float | tuple[float, ...], default=float)
else:
    from typing import TypeVar

    Asked = TypeVar("Asked")
    Number = TypeVar("Number")

PROVING_SECONDS = 60.0
"""How long a stored calibration may take to be proved again, unless told otherwise."""


@dataclass(frozen=True, kw_only=True)
class Calibration(Generic[Asked, Number]):
    """Scales proved to keep every allowed adversary at or below ε, for one release.

    A second release about the same people leaks more, and not simply the sum: do not add up the
    ε of correlated releases. A second one from the same calibration warns, unless a ledger counts
    it. For a list of queries, released together, `query` and `scale` are tuples, and so is anything
    else that each answer has one of; the leakage is that of all answers seen together, which is
    neither the sum of the single ones nor bounded by it.
    """

    model: Model = field(repr=False)
    """The θ or Θ that the proof is about."""
    query: Asked
    """What is released, or a tuple of queries; a function as the table of its values."""
    adversaries: Adversaries
    """The adversaries that the proof is about."""
    epsilon: float
    """The leakage that nobody exceeds; together with `delta` for Gaussian noise."""
    scale: Number
    """The Laplace scale λ, or σ of Gaussian noise; for a list, a tuple with that of each query."""
    leakage: Leakage = field(repr=False)
    """The leakage at that scale, rounding of the answer included; `value` ≤ `epsilon`."""
    noise: Noise = "laplace"
    """What is added: ``laplace`` or ``gaussian``."""
    delta: float = 0.0
    """The δ that goes with ε; 0 for Laplace noise."""
    mu: float | None = None
    """For Gaussian noise, a μ of Gaussian differential privacy that nobody exceeds; for tables,
    groups, chains and networks an upper bound from a coupling."""
    rows: int = 1
    """Number of independent instances that one answer is about."""
    contributions: tuple[Contributions, ...] = field(default=(), repr=False, compare=False)
    """The lowered queries: what was proved, and what is released. If not given, lowered here."""
    count: float | None = field(default=None, repr=False, compare=False)
    """About how many rows are expected behind a mean over a secret number of them, if that was
    said. Only `accuracy` depends on it."""
    certificate: Any = field(default=None, repr=False, compare=False)
    """What the stand-alone checker needs besides the calibration; stored, and never read here."""
    estimation_epsilon: float | None = field(init=False, default=None)
    """What learning the model under differential privacy leaks; None if it was not learned so.

    It is added on top: from the model and a release about the data it was learned from, nobody
    learns more than `total_epsilon`.
    """

    def __post_init__(self) -> None:
        object.__setattr__(self, "estimation_epsilon", self.model.estimation_epsilon)
        several = not isinstance(self.query, Query)
        queries = tuple(frozen(query, self.model) for query in _as_tuple(self.query))
        scales = _as_tuple(self.scale)
        if several != isinstance(self.scale, tuple | list) or len(scales) != len(queries):
            raise CalibrationError(
                f"a calibration has one scale for each query: {len(queries)}, got {len(scales)}."
            )
        claimed = self.mu is not None and 0 <= self.mu < math.inf
        if claimed != (self.noise == "gaussian") or (self.mu is not None and not claimed):
            raise CalibrationError(
                "a calibration of Gaussian noise claims a mu that nobody exceeds at any delta, a"
                f" finite number, and one of Laplace noise claims none; got mu = {self.mu} with"
                f" {self.noise} noise."
            )
        object.__setattr__(self, "query", queries if several else queries[0])
        if several:
            object.__setattr__(self, "scale", scales)
        if not self.contributions:
            lowered = tuple(lower(query, self.model, rows=self.rows) for query in queries)
            object.__setattr__(self, "contributions", lowered)

    @property
    def queries(self) -> tuple[Query, ...]:
        """What is released, in order; always a tuple."""
        return _as_tuple(self.query)

    @property
    def scales(self) -> tuple[float, ...]:
        """The scale of each answer; always a tuple."""
        return _as_tuple(self.scale)

    def _shaped(self, numbers: Sequence[float]) -> Number:
        """Return one number per answer in the shape of `scale`: a single value, or a tuple."""
        return cast("Number", _as_asked(numbers, self.query))

    def with_noise(self, factor: float) -> Calibration[Asked, Number]:
        """Return the same with all scales multiplied by a factor, which is not proved yet."""
        scale = self._shaped([factor * one for one in self.scales])
        return dataclasses.replace(self, scale=scale, certificate=None)

    @property
    def total_epsilon(self) -> float:
        """The bound on what anybody learns, including from learning the model: ε + estimation ε.

        It holds for an answer about the data that the model was learned from; about other,
        independent data nobody learns more than `epsilon`.
        """
        learning = self.estimation_epsilon
        return self.epsilon if learning is None else sum_rounded_up(self.epsilon, learning)

    @property
    def total_delta(self) -> float:
        """The δ that goes with `total_epsilon`: δ, times e^(estimation ε) if the model was learned.

        The probability of what was learned differs by at most that factor between any two whole
        draws, and so does the probability of the outputs that δ allows for.
        """
        learning = self.estimation_epsilon
        if learning is None or self.delta == 0:
            return self.delta
        return min(1.0, self.delta * math.exp(min(learning, 700.0)) * (1 + 1e-12))

    @property
    def rho(self) -> float | None:
        """For Gaussian noise, the ρ of zCDP that nobody exceeds: μ²/2."""
        return None if self.mu is None else gaussian_dp.rho_of(self.mu)

    @property
    def measure(self) -> Measure:
        """What the leakage is about, and measured in."""
        return Measure(noise=self.noise, delta=self.delta)

    @property
    def is_integer(self) -> bool:
        """Whether all answers are whole numbers with discrete noise."""
        return all(part.is_integer for part in self.contributions)

    @functools.cached_property
    def baselines(self) -> dict[str, Number | None]:
        """Scales that plain DP, group DP and the Wasserstein mechanism need for the same ε.

        For a list of queries they have the same proportions as `scale`.
        """
        if isinstance(self.query, Query):
            joined, units = self.contributions[0], [1.0]
        else:
            joined, units = Contributions.joined(self.contributions, self.scales), [*self.scales]
        problems = split(self.model, joined, self.adversaries, measure=self.measure)
        if self.mu is None:
            found = baselines.scales(problems, self.epsilon)
        else:
            mu = gaussian_dp.mu_for_drawn(self.epsilon, self.delta)
            found = baselines.gaussian_scales(problems, mu)
            if self.leakage.coupled is not None and not self.model.is_continuous:
                scale = self.scales[0] if isinstance(self.query, Query) else 1.0
                found["wasserstein"] = self.leakage.coupled * scale / mu
        if baselines.spreads_groups(self.queries, self.noise):
            found["group"] = None
        return {
            name: None if factor is None else self._shaped([factor * unit for unit in units])
            for name, factor in found.items()
        }

    @property
    def group_epsilon(self) -> float | None:
        """What leaks at most however members of a group depend on each other, at these scales.

        It is what a learned model costs where the truth is outside what was learned, as long as
        values lie in their ranges; for Gaussian noise at the same δ. None for a model without an
        end, and where it is not known how a group is spread over the answers.
        """
        scale = self.baselines["group"]
        if scale is None:
            return None
        first = scale if isinstance(scale, float) else scale[0]  # all answers have one ratio
        ratio = first / self.scales[0] * (1 + 64 * UNIT_ROUNDOFF)
        if self.mu is None:
            return max(ratio * self.epsilon, self.leakage.value)
        mu = ratio * gaussian_dp.mu_for_drawn(self.epsilon, self.delta)
        return gaussian_dp.epsilon_of_drawn(mu, self.delta, self.scales)

    @property
    def scale_units(self) -> tuple[str, ...]:
        """For each answer the unit that its scale is in, in words."""
        return tuple(map(unit_of_scale, self.queries))

    @property
    def dp_epsilon(self) -> float:
        """The plain-DP budget that has these scales: GS(f)/λ, of all answers together.

        For Gaussian noise the ε of plain (ε, δ)-DP, for the same δ.
        """
        if self.mu is not None:
            joined = Contributions.joined(self.contributions, self.scales)
            plain = float(tuple_moves(joined)[0].max()) * (1 + 64 * UNIT_ROUNDOFF)
            return gaussian_dp.epsilon_of_drawn(plain, self.delta, self.scales)
        if isinstance(self.query, Query):
            return _sensitivity(self.contributions[0]) / self.scales[0]
        return _sensitivity(Contributions.joined(self.contributions, self.scales))

    @property
    def sensitivity(self) -> Number:
        """How far the answer moves when one tuple changes and all others stay: GS(f)."""
        return self._shaped([_sensitivity(part) for part in self.contributions])

    def risk(self, *, prior: float) -> Risk:
        """Return how far a belief about one entry can move, including learning of the model.

        Parameters
        ----------
        prior
            What somebody believes before the release: the probability of any one statement about
            any one entry.

        Examples
        --------
        >>> import pdp_calibrate as pdp
        >>> pair = pdp.JointTable(probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, 1]] * 2)
        >>> print(pdp.calibrate(pair, pdp.Sum(), epsilon=1.0).risk(prior=0.01))
        A belief of 1 % becomes at most 2.7 % and at least 0.37 %: odds shift by a factor of 2.72 at
        most.
        """
        return risk_of(self.total_epsilon, prior=prior, delta=self.total_delta)

    def accuracy(self, *, alpha: float = 0.05, count: float | None = None) -> Number:
        """Return the half-width h that the error of the answer exceeds with probability ≤ alpha.

        It is in the unit of the answer. Of several numbers, such as a histogram, it is that of
        each; where they differ, the largest.

        Parameters
        ----------
        alpha
            That probability.
        count
            For a mean over a secret number of rows (a condition on a secret column, or missing
            values), about how many rows are expected to count; in the smallest part, where there
            are several. By default the number that the calibration was made with.

        Raises
        ------
        QueryError
            For such a mean where neither says a number: without it the accuracy is not known.
        """
        return self._shaped(self.half_widths(alpha=alpha, count=count))

    def half_widths(self, *, alpha: float = 0.05, count: float | None = None) -> tuple[float, ...]:
        """Return `accuracy` for each answer; always a tuple."""
        return accuracies.half_widths(self, alpha=alpha, count=count)

    def known_half_widths(self, *, alpha: float = 0.05) -> tuple[float | None, ...]:
        """Return `half_widths`, with None where it depends on a number of rows that is not said."""
        return accuracies.known_half_widths(self, alpha=alpha)

    def half_widths_in_words(self, *, alpha: float = 0.05, then: str = "") -> tuple[str, ...]:
        """Write how far each answer may be off; `then` says after it in how many releases."""
        return accuracies.half_widths_in_words(self, alpha=alpha, then=then)

    @with_columns
    def release(
        self,
        data: Any,
        *,
        ledger: Account | None = None,
        step: object = None,
        **columns: Unpack[ReleaseColumns],
    ) -> Release[Asked, Number]:
        """Answer with noise: one instance, all rows of a wide frame, or of a long one.

        Parameters
        ----------
        data
            ``{name: value}`` or a Series; or a wide frame with a column per tuple that enters the
            answer, its rows independent instances; or a long frame with a row per value.
        value
            For a long frame, the column of values.
        groups
            For a long frame, the column that names the group; without it all rows are one group.
        order_by
            For a long frame, the column that orders a group, where the query needs it. It is
            public, so not that of the values. For a model of series or chains its times are
            checked: no gaps, and no two equal in a group.
        time_format
            How `order_by` is written where it is text, as in `datetime.strptime`: ``%d/%m/%Y``.
            By default text must be ISO 8601, every row in one form.
        by
            Another name for `groups`.
        ledger
            Where to record the release before noise is drawn; it refuses a release that would
            exceed its budget together with everything released before. Without one, a second
            release from this calibration gives a `SecondReleaseWarning`.
        step
            For a model without an end, the step that the data belong to, as in `Ledger.release`.
            Such a release needs a ledger.

        Returns
        -------
        Release
            The noisy answer and how it was made; never the true answer.

        Raises
        ------
        ModelError
            If a value lies outside the model's domain, or a column of times has gaps, equal times
            or text in another form. The message names the column, so the error itself reveals
            something about the data: do not publish it.
        """
        layout = checked_layout(**columns)
        moment = moment_in(ledger, self.model, step)
        draw, sizes = self.answered(data, layout, moment=moment)
        if ledger is not None:
            about: dict[str, Any] = {} if moment is None else {"step": step}
            ledger.spend(self, layout=layout, sizes=sizes, **about)
        note_release(self, counted=ledger is not None)
        return draw()

    def answered(
        self, data: Any, layout: Layout, *, moment: Moment | None = None
    ) -> tuple[Callable[[], Release[Asked, Number]], Sizes | None]:
        """Do everything that can fail: check the data, and return a function that draws the noise.

        The exact answers exist only inside that function; calling it makes a release, which must be
        accounted for first. The second result is the size of the data.
        """
        found = exact_answers(
            data,
            [query.at_a_step for query in self.queries],
            self.contributions,
            self.model,
            rows=self.rows,
            layout=layout,
            adversaries=self.adversaries,
        )

        def draw() -> Release[Asked, Number]:
            values, behind = [], []
            for place, part in enumerate(self.contributions):
                scale = self.scales[place]
                (noisy,) = add_noise([found[place].answer], part, scale, self.noise)
                values.append(labelled(noisy, self.queries[place].at_a_step, self.model))
                behind.append(tuple(noisy) if _is_mean_of_rows(self.queries[place]) else ())
            return Release(
                value=_as_asked(values, self.query),
                calibration=self,
                noisy=tuple(behind),
                moment=moment,
                layout=layout,
                sizes=found[0].sizes,
            )

        return draw, found[0].sizes

    def release_rows(self, frame: Any, *, ledger: Account | None = None) -> Release[Asked, Number]:
        """Answer for each row of a wide frame by itself.

        `value` is a Series on the index of the frame; for a histogram, a DataFrame with a column
        per category. Rows are independent, so a ledger counts one release about each of them.
        """
        refuse_endless([self.model], "a release by rows")
        answers, sizes = exact_row_answers(
            frame, self.queries, self.contributions, self.model, rows=self.rows
        )
        if ledger is not None:
            ledger.spend(self, layout="wide", sizes=sizes)
        note_release(self, counted=ledger is not None)
        index = frame.index if isinstance(frame, pd.DataFrame) else None
        values = []
        for place, part in enumerate(self.contributions):
            noisy = add_noise(answers[place], part, self.scales[place], self.noise)
            values.append(labelled_rows(noisy, self.queries[place], self.model, index))
        return Release(
            value=_as_asked(values, self.query), calibration=self, layout="wide", sizes=sizes
        )

    def _repr_html_(self) -> str:
        learned = self.estimation_epsilon is not None
        widths = self.half_widths_in_words()
        symbol = "λ" if self.mu is None else "σ"
        if isinstance(self.query, Query):
            noises: list[tuple[object, object]] = [
                (f"scale {symbol}", f"{self.scales[0]:.6g} (in {self.scale_units[0]})"),
                ("95 % of answers within", widths[0]),
                ("query", self.query),
            ]
        else:
            noises = [
                (query, f"scale {symbol} {scale:.6g} (in {unit}), 95 % of answers within {width}")
                for query, scale, unit, width in zip(
                    self.queries, self.scales, self.scale_units, widths, strict=True
                )
            ]
        return card(
            "Calibration",
            [
                ("ε", f"{self.epsilon:.6g}"),
                *([] if self.mu is None else [("δ", f"{self.delta:g}"), ("μ", f"{self.mu:.6g}")]),
                *([("ε, learning included", f"{self.total_epsilon:.6g}")] if learned else []),
                *noises,
                ("adversaries", self.adversaries),
                ("model", f"{type(self.model).__name__} ({self.model.provenance})"),
                *_learning_of(self.model),
                ("certified leakage", f"{self.leakage.value:.6g}"),
                *_stated_law(self.model).items(),
            ],
        )

    def to_dict(self) -> dict[str, Any]:
        """Describe the calibration for JSON; of a private model, only its names."""
        laws = [law_of(self.noise, part) for part in self.contributions]
        private = self.model.provenance == "private"
        leakage = self.leakage.to_dict()
        described = {
            **header("Calibration"),
            "epsilon": self.epsilon,
            "total_epsilon": self.total_epsilon,
            **gaussian_claims(self),
            "scale": _as_asked(self.scales, self.query, many=list),
            "noise": _as_asked(laws, self.query, many=list),
            "rows": self.rows,
            "query": _as_asked([query.to_dict() for query in self.queries], self.query, many=list),
            "adversaries": self.adversaries.to_dict(),
            "model": self.model.to_dict(),
            "leakage": {"value": leakage["value"]} if private else leakage,
            "estimation_epsilon": self.estimation_epsilon,
            **_stated_law(self.model),
            **({} if self.count is None else {"count": self.count}),
        }
        if private:
            return described | {"warning": PRIVATE_MODEL}
        return described | ({} if self.certificate is None else {"certificate": self.certificate})

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
    ) -> AnyCalibration:
        """Read a calibration, and prove it again before returning it.

        `text` is what `to_json` returned; `model` is needed where the JSON withholds it (private,
        or over 10⁴ cells). A claim that is not proved again within `time_limit` seconds is refused;
        None sets no limit.
        """
        return _proved_calibration(parsed(text, "Calibration"), model, time_limit)


@dataclass(frozen=True, kw_only=True)
class Release(Generic[Asked, Number]):
    """A noisy answer and the calibration behind it. It does not contain the true answer.

    From this one release nobody learns more than ``calibration.epsilon``; together with what
    learning the model leaked, nobody learns more than ``calibration.total_epsilon``.
    """

    value: Any
    """The noisy answer: int or float; a Series by category for a histogram, or by row.

    For a list of queries, a tuple of these.
    """
    calibration: Calibration[Asked, Number] = field(repr=False)
    """How it was made."""
    noisy: tuple[tuple[float, ...], ...] = field(default=(), repr=False)
    """For each query the noisy numbers behind a mean of rows: sums, and counts where those are
    secret. Empty for any other query, whose answer is the noisy number itself."""
    moment: Moment | None = field(default=None, repr=False)
    """The step it is about, where the model has no end."""
    layout: Layout | None = field(default=None, repr=False, compare=False)
    """Which columns of the table it is about; None in files of earlier versions."""
    sizes: Sizes | None = field(default=None, repr=False, compare=False)
    """How many rows, or groups of each size, the table has; None for a single instance."""

    def __repr__(self) -> str:
        return printable(f"Release(value={self.value!r})", lines=True)

    @property
    def values(self) -> tuple[Any, ...]:
        """The noisy answer to each query; always a tuple."""
        return _as_tuple(self.value)

    def interval(self, *, alpha: float = 0.05) -> tuple[Any, ...]:
        """Return bounds that contain the true answer with probability at least 1 − alpha.

        For a list of queries, a tuple with the bounds of each; for whole numbers, whole numbers.
        """
        found: tuple[Any, ...] = _as_asked(self.intervals(alpha=alpha), self.calibration.query)
        return found

    def intervals(self, *, alpha: float = 0.05) -> tuple[tuple[Any, Any], ...]:
        """Return the interval of each answer; always a tuple."""
        return accuracies.intervals(self, alpha=alpha)

    def half_widths(self, *, alpha: float = 0.05) -> tuple[float, ...]:
        """Return for each answer how far its interval reaches; the furthest of several numbers.

        That is the half-width of the calibration, except for a mean over a secret number of rows:
        how far it may be off depends on the noisy count.
        """
        return accuracies.half_widths_of_release(self, alpha=alpha)

    def reaches(self, *, alpha: float = 0.05) -> tuple[Any, ...]:
        """Return for each answer how far each of its numbers may be off, in the shape of it."""
        return accuracies.reaches(self, alpha=alpha)

    def _repr_html_(self) -> str:
        cal = self.calibration
        rows: list[tuple[object, object]] = []
        several = not isinstance(cal.query, Query)
        widths = self.half_widths()
        for query, value, (low, high), width in zip(
            cal.queries, self.values, self.intervals(), widths, strict=True
        ):
            if isinstance(value, int | float):
                ends = (
                    beside_noise(end, width, side=side)
                    for end, side in ((low, "low"), (high, "high"))
                )
                rows.append((query if several else "value", beside_noise(value, width)))
                rows.append(("95 % from", " to ".join(ends)))
            elif isinstance(value, pd.Series):
                rows += [(query, "")] if several else []
                rows += list(value.head(20).items())
            else:
                rows.append((query if several else "releases, one per row", len(value)))
        within = ", ".join(f"±{two_digits(width)}" for width in widths)
        rows += [("noise", f"95 % of answers within {within}"), ("ε", f"{cal.total_epsilon:.6g}")]
        rows += [] if cal.mu is None else [("δ", f"{cal.total_delta:g}")]
        return card("Release", [*rows, *_learning_of(cal.model), *_stated_law(cal.model).items()])

    def cleaned(self, *, total: int | None = None) -> Any:
        """Return counts that could be true: whole, not negative, and summing to a public total.

        Uses only the noisy answer, so it costs no privacy: the nearest counts (least squares)
        with these properties, rounded to whole numbers by largest remainder. For a list of queries
        every histogram is cleaned, with the same total, and other answers stay as they are.
        """
        parts = self.calibration.contributions
        counts = [
            isinstance(value, pd.Series) and part.is_integer
            for value, part in zip(self.values, parts, strict=True)
        ]
        if not any(counts):
            raise QueryError("only a histogram of counts can be cleaned.")
        found = [
            cleaned_counts(value, total) if is_counted else value
            for value, is_counted in zip(self.values, counts, strict=True)
        ]
        return _as_asked(found, self.calibration.query)

    def estimate(
        self,
        others: Iterable[AnyRelease] = (),
        *,
        alpha: float = 0.05,
        variance: float | None = None,
    ) -> pd.DataFrame:
        """Smooth noisy answers about the steps of one stream with its public model.

        It uses noisy answers only, so it costs no privacy. `others` are releases of the same
        query about other steps. Returns, by step, the estimate
        ``value`` and the ends ``low`` and ``high`` of an interval that misses the answer without
        noise with probability `alpha`, if the model holds. A Gaussian series needs the `variance`
        of a record, that of the model by default.
        """
        from pdp_calibrate.calibration.estimate import estimated

        return estimated(self, others, alpha=alpha, variance=variance)

    def to_dict(self) -> dict[str, Any]:
        """Describe the release for JSON; the counts of a histogram are a list."""
        values = [unlabelled(value) for value in self.values]
        behind = [list(numbers) for numbers in self.noisy]
        return {
            **header("Release"),
            "value": _as_asked(values, self.calibration.query, many=list),
            **({"noisy": behind} if any(behind) else {}),
            **({} if self.moment is None else dataclasses.asdict(self.moment)),
            **({} if self.layout is None else {"layout": stored_layout(self.layout)}),
            **({} if self.sizes is None else {"sizes": [list(pair) for pair in self.sizes]}),
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
    ) -> AnyRelease:
        """Read a release, and prove its calibration again before returning it.

        `text` is what `to_json` returned; `model` and `time_limit` as in `Calibration.from_json`.
        The index of a release by rows is not stored: its rows are numbered.
        """
        described = parsed(text, "Release")
        inner = checked_header(field_of(described, "calibration"), "Calibration")
        calibration = _proved_calibration(inner, model, time_limit)
        stored = field_of(described, "value")
        if isinstance(calibration.query, Query):
            stored = [stored]
        if not isinstance(stored, list) or len(stored) != len(calibration.queries):
            raise CalibrationError("a release has one answer for each query.")
        behind = described.get("noisy", [()] * len(stored))
        if not isinstance(behind, list) or len(behind) != len(stored):
            raise CalibrationError("a release has the noisy numbers behind each answer.")
        values = [
            restored(checked_answer(value), query.at_a_step, calibration.model)
            if not _is_mean_of_rows(query)
            else labelled(checked_behind(numbers, query), query, calibration.model)
            for value, numbers, query in zip(stored, behind, calibration.queries, strict=True)
        ]
        return Release(
            value=_as_asked(values, calibration.query),
            calibration=calibration,
            noisy=tuple(map(tuple, behind)),
            moment=stored_moment(described, calibration.model),
            layout=layout_from(described.get("layout"), error=CalibrationError),
            sizes=sizes_from(described.get("sizes"), error=CalibrationError),
        )


AnyCalibration: TypeAlias = Calibration[Any, Any]
"""A calibration of one query or of a list."""

AnyRelease: TypeAlias = Release[Any, Any]
"""A release of one answer or of several together."""

SeveralQueries: TypeAlias = tuple[Query, ...]
SeveralNumbers: TypeAlias = tuple[float, ...]


def single(calibration: AnyCalibration, what: str) -> Calibration:
    """Return a calibration of one query; refuse that of a list where only one is allowed."""
    if isinstance(calibration.query, Query):
        return calibration
    raise UnsupportedQueryError(
        f"{what} takes one answer, and this calibration is of {len(calibration.queries)} released"
        " together."
    )


def gaussian_claims(calibration: AnyCalibration) -> dict[str, float | None]:
    """Return what a calibration of Gaussian noise claims besides ε; empty for Laplace noise."""
    claims = ("delta", "total_delta", "mu", "rho") if calibration.mu is not None else ()
    return {name: getattr(calibration, name) for name in claims}


def law_of(noise: Noise, part: Contributions) -> str:
    """Name the law of the noise that is drawn, as JSON has it."""
    if noise == "gaussian":
        return "Gaussian"
    return "discrete Laplace" if part.is_integer else "Laplace"


def with_laplace_noise(calibration: AnyCalibration, what: str) -> None:
    """Refuse a calibration of Gaussian noise where only Laplace noise is proved."""
    if calibration.noise != "laplace":
        raise UnsupportedQueryError(
            f"{what} takes Laplace noise, and this calibration is of Gaussian noise: calibrate"
            " with noise='laplace'."
        )


def _as_tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, tuple | list) else (value,)


def _is_mean_of_rows(query: Query) -> bool:
    return isinstance(query, RowQuery) and query.kind == "mean"


def _as_asked(values: Sequence[Any], asked: object, *, many: type = tuple) -> Any:
    """Return one value per answer: the single one, or all of them for a list."""
    return values[0] if isinstance(asked, Query) else many(values)


def _sensitivity(part: Contributions) -> float:
    return float(part.tuple_ranges().max())


def _learning_of(model: Model) -> list[tuple[str, str]]:
    """Return the line of a card that says what is covered of the error of learning."""
    coverage = learned_as(model)
    return [] if coverage is None else [("learning", coverage.in_words)]


def _stated_law(model: Model) -> dict[str, str]:
    """Describe for JSON which law of the values is assumed; {} where the model is the law."""
    return {} if model.assuming is None else {"assuming": model.assuming}


def _proved_calibration(
    described: Mapping[str, Any], model: Model | None, time_limit: float | None
) -> AnyCalibration:
    """Build a calibration from JSON and prove it from model, queries and scales alone."""
    used = stored_model(described, model)
    stored, scale = field_of(described, "query"), field_of(described, "scale")
    several = isinstance(stored, list)
    if several and not stored:
        raise CalibrationError("a list of queries must hold at least one.")
    queries = tuple(frozen(Query.from_dict(one), used) for one in _as_tuple(stored))
    scales = tuple(number_in(one, "scale") for one in _as_tuple(scale))
    adversaries = Adversaries.from_dict(field_of(described, "adversaries"))
    epsilon = checked_epsilon(number_in(field_of(described, "epsilon"), "epsilon"))
    rows = field_of(described, "rows")
    if not isinstance(number_in(rows, "rows"), int):
        raise CalibrationError("rows must be a whole number.")
    parts = tuple(lower(query, used, rows=rows) for query in queries)
    if several != isinstance(scale, list) or len(scales) != len(parts):
        raise CalibrationError("a calibration has one scale for each query.")

    measure, mu = stored_measure(described)
    deadline = deadline_after(time_limit)
    found = certified_leakage(
        used, parts, scales, adversaries, rows=rows, deadline=deadline, measure=measure
    )
    if found.lower <= epsilon and not keeps(found, epsilon, mu) and time.monotonic() > deadline:
        raise CalibrationError(
            f"epsilon = {epsilon} could not be proved again within {time_limit} seconds, and is not"
            " refuted either: allow a larger time_limit, or None for no limit."
        )
    return Calibration(
        model=used,
        query=queries if several else queries[0],
        adversaries=adversaries,
        epsilon=epsilon,
        scale=scales if several else scales[0],
        leakage=proved(found, epsilon, mu),
        noise=measure.noise,
        delta=measure.delta,
        mu=mu,
        rows=rows,
        contributions=parts,
        count=None if "count" not in described else checked_count(described["count"]),
        certificate=described.get("certificate"),
    )
