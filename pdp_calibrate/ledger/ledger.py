"""The ledger: a budget for everything that is released about one draw of the data."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from typing import Any, Unpack, overload

import numpy as np
import pandas as pd

from pdp_calibrate.arrays import checked_share, damage_refused
from pdp_calibrate.calibration.release import (
    Layout,
    Moment,
    checked_layout,
    note_release,
)
from pdp_calibrate.calibration.result import (
    AnyCalibration,
    AnyRelease,
    Calibration,
    Release,
    SeveralNumbers,
    SeveralQueries,
)
from pdp_calibrate.calibration.stored import stored_model
from pdp_calibrate.composition.black_box import substitution_budget
from pdp_calibrate.core.adversary import EVERYONE, Adversaries
from pdp_calibrate.core.cards import card
from pdp_calibrate.core.coverage import learned_as
from pdp_calibrate.core.model import (
    Model,
    field_of,
    header,
    names_of,
    public_structure,
    warn_if_private,
)
from pdp_calibrate.core.noise import Noise
from pdp_calibrate.core.query import Query
from pdp_calibrate.core.workers import under_one_bar
from pdp_calibrate.errors import BudgetExceededError, LedgerError, PdpError
from pdp_calibrate.frames.answers import Sizes
from pdp_calibrate.frames.counts import group_sizes
from pdp_calibrate.frames.long_answers import (
    LongFrame,
    ReleaseColumns,
    instances_in,
    stated_groups,
    with_columns,
)
from pdp_calibrate.frames.open import rows_in
from pdp_calibrate.ledger.accounts import (
    Accounts,
    Ask,
    Budget,
    Step,
    charge_step,
    last_spent,
    learning_entries,
    noisy_charge_step,
    record,
    release_step,
)
from pdp_calibrate.ledger.allowance import Allowance
from pdp_calibrate.ledger.steps import step_name
from pdp_calibrate.ledger.store import FileStore, MemoryStore, Pages, Store
from pdp_calibrate.ledger.stream import NoisyStreamAccounts, StreamAccounts, charge_at, release_at

_ATTEMPTS = 5  # when others spend at the same time


class _ReleaseOptions(ReleaseColumns, total=False):
    """The options of `Ledger.release` besides the query, the data and ε."""

    noise: Noise | None
    delta: float | None
    step: object


class Ledger(Budget):
    """A budget ε for all releases about one draw of the data together.

    Leakages of correlated data do not add up: two releases may leak more than the sum of both. The
    ledger bounds the *joint* leakage of everything released so far and refuses, before any noise is
    drawn, what would exceed the budget. This holds for releases chosen adaptively, from the outputs
    of earlier ones; it does not hold if they are chosen by looking at the data.

    Parameters
    ----------
    model
        How the tuples are correlated.
    epsilon
        The joint leakage that nobody may exceed, per draw; 2 by default.
    delta
        The δ that goes with it, for Gaussian noise.
    noise
        The default noise of releases: ``"laplace"`` or ``"gaussian"``.
    pure
        In a ledger with a δ, the part of ε that Laplace noise and outside mechanisms may use. It is
        fixed beforehand, and 0 admits outside mechanisms of Gaussian noise (``charge(mu=…)``).
        None for Gaussian noise alone: then what adversaries do not know counts as noise too.
    repeats
        For finitely many values with Gaussian noise alone, the share of δ reserved for repeating
        the first query and asking no other, which is counted exactly and may need far less noise.
        The rest is for everything else. Half of δ by default, which costs each about 3 % more
        noise; 1 for a ledger of one query, 0 for one of different queries. A first release that
        needs more than its share takes all of δ.
    mu, rho
        In place of ε: the μ of Gaussian differential privacy, or the ρ of zCDP. The budget then is
        a filter for μ or ρ, and `epsilon` is what that keeps at `delta`, 1e-6 by default.
    path
        Where to store the ledger; None to keep it in memory, for one process. An entry is on disk
        before its noise is drawn. The file holds neither answers nor parameters of a private model.
    adversaries
        Against whom; everyone by default.
    draw
        The name of the draw of the data that the releases are about.
    time_limit
        Seconds that one check may take before a larger, still sound bound decides.
    learned_here
        Whether a model that was learned under differential privacy was learned from this draw. Then
        its ε is the first entry: it adds to everything that is released. False if it was learned
        from other data, independent of this draw.
    anchor
        A second path, in another place than the ledger, that holds a checksum of its last state
        and must agree with it from then on: on another disk, or where those who may write the
        ledger may not delete. With it an old copy of the ledger, a ledger started over, or two
        copies used in turn are refused.
    every
        For a model without an end, the length of a step, as pandas writes it (``D``, ``W``, ``M``,
        ``30D``): steps are then named by dates, Periods or ISO 8601 text. By default they are whole
        numbers.
    promise
        For a model without an end, the plain-DP budget that every future step may still spend: a
        release that would leave less for any of them is refused. Nothing is promised by default.

    Notes
    -----
    A ledger detects entries that went missing while it was open, torn and edited files, and hard
    links. A file alone cannot detect that it was deleted and started over, or that an older copy
    replaced it between two processes: that needs an `anchor`. Nothing detects that the ledger and
    its anchor were restored together, that somebody rewrote both on purpose (the checksums have no
    key), or that something was released without the ledger.

    For a model without an end (``length=None``) a ledger grows: every release is about one step,
    and `spent` is the most that all releases together leak about the record of any one step, past
    or future. A new period brings no new budget for the old ones: the leakage about last month's
    record grows with that about this month's.

    Examples
    --------
    >>> import pdp_calibrate as pdp
    >>> pair = pdp.JointTable(probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, 1]] * 2)
    >>> ledger = pdp.Ledger(pair, epsilon=1.0)
    >>> release = ledger.release(pdp.Sum(), {"x1": 1, "x2": 0}, epsilon=0.5)
    >>> round(ledger.spent, 4), ledger.history[-1].method
    (0.5, 'exact')
    >>> round(ledger.would_spend(pdp.Sum(), epsilon=0.4), 4)
    0.8958
    >>> health = pdp.MarkovChain(transition=[[0.8, 0.2], [0.2, 0.8]], length=None)
    >>> daily = pdp.Ledger(health, epsilon=1.0, every="D")
    >>> for day in ["2026-11-16", "2026-11-17"]:
    ...     release = daily.release(pdp.Sum(), {0: 1}, epsilon=0.25, step=day)
    >>> round(daily.spent, 4)
    0.3999
    """

    kind = "Ledger"

    def __init__(
        self,
        model: Model,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        noise: Noise = "laplace",
        pure: float | None = None,
        repeats: float | None = None,
        mu: float | None = None,
        rho: float | None = None,
        path: str | os.PathLike[str] | None = None,
        adversaries: Adversaries | None = None,
        draw: str = "first",
        time_limit: float | None = None,
        learned_here: bool = True,
        anchor: str | os.PathLike[str] | None = None,
        every: str | None = None,
        promise: float | None = None,
    ) -> None:
        everyone = EVERYONE if adversaries is None else adversaries
        everyone.resolve(model)
        if path is None and anchor is not None:
            raise LedgerError("an anchor is for a ledger in a file: give path= too.")
        store: Store = MemoryStore() if path is None else FileStore(path, anchor=anchor)
        allowance = Allowance.of(
            epsilon=epsilon, delta=delta, pure=pure, mu=mu, rho=rho, noise=noise
        ).about(model, repeats)
        stream = {"every": every, "promise": promise}
        if not model.is_endless and any(value is not None for value in stream.values()):
            raise LedgerError("every= and promise= are for a model without an end: length=None.")
        self._settle(model, allowance, everyone, Pages(store), draw, time_limit, stream)
        heading = heading_of(model, allowance, everyone)
        if self._stream is not None:
            heading["stream"] = self._stream.heading()
        if model.provenance == "private":
            heading["structure"] = public_structure(model)
        learned = learning_entries(model, draw, allowance.epsilon) if learned_here else []
        if learned and (mu is not None or rho is not None):
            raise LedgerError(
                "the model was learned from this draw, which adds to epsilon: give epsilon= and"
                " delta= in place of mu= or rho=."
            )
        self._pages.start(heading, draw, learned)

    def _settle(
        self,
        model: Model,
        allowance: Allowance,
        adversaries: Adversaries,
        pages: Pages,
        draw: str,
        time_limit: float | None,
        stream: Mapping[str, Any],
    ) -> None:
        self._model, self._allowance, self._adversaries = model, allowance, adversaries
        self._epsilon = allowance.epsilon
        self._pages, self._draw = pages, draw
        self._accounts = Accounts(model, adversaries, allowance=allowance, time_limit=time_limit)
        self._stream: StreamAccounts | None = None
        if model.is_endless:
            kind = NoisyStreamAccounts if allowance.takes_gaussian else StreamAccounts
            self._stream = kind(model, allowance, **stream, time_limit=time_limit)

    @classmethod
    @damage_refused("the ledger", kind=LedgerError)
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        model: Model | None = None,
        draw: str | None = None,
        time_limit: float | None = None,
        anchor: str | os.PathLike[str] | None = None,
    ) -> Ledger:
        """Continue with a ledger on disk.

        Parameters
        ----------
        path
            Where it is.
        model
            The model, where the file withholds it (private, or over 10⁴ cells). For a private one
            the file knows only the structure: you must make sure that it has the same numbers.
        draw
            The draw to release about; the latest by default.
        time_limit
            As for the class.
        anchor
            The second path that must agree with it, if it was started with one. It may have moved.
        """
        pages = Pages(FileStore(path, anchor=anchor))
        state = pages.read()
        if state.get("model", {}) is None:
            raise LedgerError(
                "the model of this ledger was not learned: the run that started it ended early."
                " Run its plan again, which spends the epsilon of learning once more."
            )
        used = stored_model(state, model)
        _check_structure(used, state)
        draws = field_of(state, "draws")
        chosen = draws[-1] if draw is None else draw
        if chosen not in draws:
            raise LedgerError(f"the ledger has no draw {chosen!r}; it has {', '.join(draws)}.")
        adversaries = Adversaries.from_dict(field_of(state, "adversaries"))
        allowance = Allowance.from_dict(state)
        ledger = cls.__new__(cls)
        stream = field_of(state, "stream") if used.is_endless else {}
        about = {"every": stream.get("every"), "promise": stream.get("promise") or None}
        cls._settle(ledger, used, allowance, adversaries, pages, chosen, time_limit, about)
        return ledger

    @property
    def model(self) -> Model:
        """How the tuples are correlated."""
        return self._model

    @property
    def delta(self) -> float:
        """The δ that goes with ε; 0 for a ledger of pure ε."""
        return self._allowance.delta

    @property
    def mu(self) -> float | None:
        """The μ within which all Gaussian noise stays; None where there is none, or only a δ.

        Repeats of the first query about finitely many values stay within ε and δ, not within a μ;
        the μ is then for releases that ask other queries.
        """
        if not self._allowance.takes_gaussian:
            return None
        if self._stream is not None:
            return self._allowance.limit(0.0)
        total = self._accounts.total(self._pages.read(), self._draw)
        return self._accounts.limit(total)

    @property
    def repeats(self) -> float:
        """The share of δ for repeats of one query alone; the first release of a draw fixes it."""
        if not self._allowance.repeats:
            return 0.0
        return self._accounts.share_of_repeats(self._accounts.total(self._pages.read(), self._draw))

    @property
    def allowance(self) -> Allowance:
        """The whole budget, as it is divided."""
        return self._allowance

    @property
    def adversaries(self) -> Adversaries:
        """Against whom."""
        return self._adversaries

    @property
    def draw(self) -> str:
        """The draw that releases are about."""
        return self._draw

    @property
    def spent(self) -> float:
        """The certified joint leakage of everything released about this draw.

        With Gaussian noise, how much of the filter is used, as an ε: the claim is the budget. For a
        model without an end, the largest leakage about any step, past or future; future steps
        count with what is promised.
        """
        if self._stream is not None:
            state = self._pages.read()
            return self._stream.bound(self._stream.total(state, self._draw)).value
        return last_spent(self._pages.read()["entries"], self._draw)

    @property
    def every(self) -> str | None:
        """The length of a step, for a model without an end; None where steps are numbers."""
        return None if self._stream is None else self._stream.every

    @property
    def promise(self) -> float:
        """The plain-DP budget reserved for every future step."""
        return 0.0 if self._stream is None else self._stream.promise

    def spent_about(self, step: object) -> float:
        """Return what all releases so far leak about one step, including what is promised.

        For steps folded long ago it is the largest leakage about any of them.
        """
        stream = self._growing("spent_about")
        course = stream.total(self._pages.read(), self._draw)
        return stream.spent_about(course, stream.step_number(step))

    def still_gains(self, share: float = 0.01) -> int:
        """Return for how many more steps the leakage about a step still grows noticeably.

        A release that many steps later, or any number of them, adds at most this share of the
        budget to the leakage about the step.

        Examples
        --------
        >>> import pdp_calibrate as pdp
        >>> health = pdp.MarkovChain(transition=[[0.8, 0.2], [0.2, 0.8]], length=None)
        >>> pdp.Ledger(health, epsilon=1.0).still_gains(share=0.01)
        10
        """
        return self._growing("still_gains").still_gains(checked_share(share, "share"))

    @property
    def _counting(self) -> Any:
        """The accounts in use: of the steps of a model without an end, or of a draw."""
        return self._accounts if self._stream is None else self._stream

    def _growing(self, what: str) -> StreamAccounts:
        if self._stream is None:
            raise LedgerError(f"{what} is about the steps of a model without an end: length=None.")
        return self._stream

    def _repr_html_(self) -> str:
        coverage = learned_as(self.model)
        rows = [
            ("budget ε", f"{self.epsilon:.6g}"),
            *([("δ", f"{self.delta:g}")] if self.delta else []),
            *([] if self.mu is None else [("μ", f"{self.mu:.6g}")]),
            ("draw", self.draw),
            ("spent", f"{self.spent:.6g}"),
            ("remaining", f"{self.remaining:.6g}"),
            ("entries, all draws", f"{len(self.history)}"),
            *([] if coverage is None else [("learning", coverage.in_words)]),
        ]
        return card("Ledger", rows)

    def certified(self) -> dict[str, Any]:
        """Return what the ledger's file holds, with a certificate for the stand-alone checker.

        Most ledgers need none: ``pdp-calibrate check`` reads their file as it is. For a large table
        or a network the certificate holds the orders in which tuples are decided or summed out. It
        belongs to what was released so far. Stored as JSON, the result can be checked, but not
        opened as a ledger: there is only one.

        Examples
        --------
        >>> import pdp_calibrate as pdp
        >>> from pdp_calibrate.check import check
        >>> pair = pdp.JointTable(probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, 1]] * 2)
        >>> ledger = pdp.Ledger(pair, epsilon=1.0)
        >>> release = ledger.release(pdp.Sum(), {"x1": 1, "x2": 0}, epsilon=0.5)
        >>> check(ledger.certified())[0]
        0
        """
        from pdp_calibrate.calibration.certificate import orders_for

        state, model = self._pages.read(), self._model
        state = {key: value for key, value in state.items() if key != "checksum"}
        certificate: dict[str, Any] = {}
        if not self._allowance.takes_gaussian and not model.is_endless:
            spendings = [self._accounts.total(state, draw) for draw in state["draws"]]
            budgets = [
                one.tuple_budgets(model) + one.dp_epsilon + one.draw_epsilon for one in spendings
            ]
            certificate = orders_for(model, np.max(budgets, axis=0), self._epsilon)
        return state | {"certificate": certificate}

    def new_draw(self, name: str) -> None:
        """Switch to a new, independent draw of the data, with its own budget.

        Yesterday's releases say nothing about today's data if those are drawn independently. If
        they depend on each other, they belong in one model and one draw: a model without an end has
        only one.
        """
        if self._stream is not None:
            raise LedgerError(
                "a model without an end describes how each step depends on the one before: there is"
                " no new, independent draw. Release about the next step."
            )
        self._pages.add_draw(name)
        self._draw = name

    @under_one_bar("adding up what is spent")
    def would_spend(
        self,
        what: Query | Sequence[Query] | AnyCalibration | None = None,
        *,
        epsilon: float | None = None,
        dp_epsilon: float | None = None,
        rows: int = 1,
        noise: Noise | None = None,
        delta: float | None = None,
        step: object = None,
    ) -> float:
        """Return what would be spent after one more release, without making it.

        Parameters
        ----------
        what
            A calibration; or a query (or list), calibrated alone at `epsilon`.
        epsilon
            For a query, what it may leak alone.
        dp_epsilon
            Instead of `what`, the plain-DP budget of an outside mechanism.
        rows
            Number of independent instances that one answer is about.
        noise, delta
            For a query, as in `release`.
        step
            For a model without an end, the step it would be about.
        """
        self._check_step(step)
        if (what is None) == (dp_epsilon is None):
            raise PdpError("would_spend takes either a release or dp_epsilon=, and not both.")
        if dp_epsilon is not None:
            self._accounts.check_takes("laplace")
            budget = substitution_budget(dp_epsilon, "substitution")
            warn_if_private(self._model, "amount spent")
            return self._after(self._charge(budget, "", step))
        if not isinstance(what, Calibration):
            if what is None or epsilon is None:
                raise PdpError("would_spend needs epsilon= with a query.")
            drawn = self._allowance.noise if noise is None else noise
            ask = Ask(query=what, rows=rows, noise=drawn, delta=delta, step=step)
            found = self._counting.calibrate(ask, epsilon)
            return self._after(self._line(found, None, None, step))
        self._accounts.check_takes(what.noise)
        return self._after(self._line(what, None, None, step))

    def _after(self, line: Step) -> float:
        """Return what would be spent after one more line."""
        before = self._counting.total(self._pages.read(), self._draw)
        return float(self._counting.bound(line.add(before)).value)

    def _check_step(self, step: object) -> None:
        if self._stream is not None:
            self._stream.step_number(step)
        elif step is not None:
            raise LedgerError("step= is for a ledger about a model without an end: length=None.")

    def _line(
        self,
        calibration: AnyCalibration,
        layout: Layout | None,
        sizes: Sizes | None,
        step: object,
    ) -> Step:
        """Return the line of a release."""
        self._check_step(step)
        if self._stream is None:
            return release_step(self._accounts, calibration, layout, sizes)
        return release_at(self._stream, calibration, layout, sizes, step)

    def _charge(self, budget: float, note: str, step: object) -> Step:
        """Return the line of an outside mechanism."""
        if self._stream is None:
            return charge_step(budget, note)
        return charge_at(self._stream, budget, note, step)

    @overload
    def release(
        self, query: Query, data: Any, *, epsilon: float | None, **options: Unpack[_ReleaseOptions]
    ) -> Release: ...

    @overload
    def release(
        self,
        query: Sequence[Query],
        data: Any,
        *,
        epsilon: float | None,
        **options: Unpack[_ReleaseOptions],
    ) -> Release[SeveralQueries, SeveralNumbers]: ...

    @with_columns
    @under_one_bar("releasing")
    def release(
        self,
        query: Query | Sequence[Query],
        data: Any,
        *,
        epsilon: float | None,
        noise: Noise | None = None,
        delta: float | None = None,
        step: object = None,
        **columns: Unpack[ReleaseColumns],
    ) -> AnyRelease:
        """Calibrate a query alone at ε, and release it if the joint leakage stays in the budget.

        Parameters
        ----------
        query
            What to answer; a list is answered together.
        data
            One instance (a mapping or Series), a wide frame of independent rows, or a long frame.
        epsilon
            What this release may leak alone. None for the largest that fits, to a millionth.
        value, groups, order_by, time_format, by
            The columns of a long frame, as in `Calibration.release`. A draw is about one column.
        noise
            ``"laplace"`` or ``"gaussian"``; by default that of the ledger.
        delta
            For Gaussian noise, the δ that goes with ε of this release alone; by default the
            ledger's.
        step
            For a model without an end, the step that the data belong to: a whole number, or a date
            where the ledger has `every`. Data are then one record, ``{0: value}``, or a frame with
            a row per person and `value`. Steps may be skipped, and may arrive late for a while.

        Notes
        -----
        A draw is about the same rows every time: a frame with another number of rows, or of groups
        of any size, is refused. Filtering by a secret column would make that number secret.

        Raises
        ------
        BudgetExceededError
            If everything together would leak more than the budget. No noise was drawn.
        """
        layout = checked_layout(**columns)
        self._check_step(step)
        ask = Ask(
            query=query,
            rows=self._instances(data, layout),
            noise=self._allowance.noise if noise is None else noise,
            delta=delta,
            step=step,
        )
        if epsilon is not None:
            return self._write_and_draw(self._counting.calibrate(ask, epsilon), data, layout, step)
        for _ in range(_ATTEMPTS):
            before = self._counting.total(self._pages.read(), self._draw)
            largest = self._counting.largest(before, ask)
            with contextlib.suppress(BudgetExceededError):  # others spent in between: look again
                return self._write_and_draw(largest, data, layout, step)
        return self._write_and_draw(largest, data, layout, step)

    def _write_and_draw(
        self, calibration: AnyCalibration, data: Any, layout: Layout, step: object
    ) -> AnyRelease:
        """Check the data, record the release, and only then draw its noise."""
        draw, sizes = calibration.answered(data, layout, moment=self.moment(step))
        self.spend(calibration, layout=layout, sizes=sizes, step=step)
        note_release(calibration, counted=True)
        return draw()

    def moment(self, step: object) -> Moment | None:
        """Return the step as releases carry it; None where the model has an end."""
        self._check_step(step)
        if self._stream is None:
            return None
        every = self.every
        return Moment(step_name(step, every), every, self._stream.step_number(step))

    def _instances(self, data: Any, layout: Layout) -> int:
        if isinstance(layout, LongFrame) and self._stream is None:
            return instances_in(group_sizes(data, layout.groups), self._model)
        return 1 if isinstance(data, pd.Series | Mapping) else rows_in(data)

    @under_one_bar("adding up what is spent")
    def charge(
        self,
        dp_epsilon: float | None = None,
        *,
        mu: float | None = None,
        rho: float | None = None,
        neighbours: str = "substitution",
        note: str = "",
        step: object = None,
    ) -> float:
        """Account for an outside mechanism by its plain-DP budget, and return what is spent.

        Parameters
        ----------
        dp_epsilon
            The pure ε of the mechanism about to be run on this draw.
        mu
            In its place, the μ of a mechanism of Gaussian differential privacy.
        rho
            In its place, the ρ of zCDP, in a ledger whose budget is a ρ: a ρ-zCDP mechanism need
            not be μ-GDP; integer Gaussian noise, for example, is not.
        neighbours
            ``substitution`` of one tuple, or ``add-remove``.
        note
            A note to store with it.
        step
            For a model without an end, the step whose records it is run on. A mechanism that reads
            several steps spends its budget on each of them: charge it for each.
        """
        self._check_step(step)
        given = [one for one in (dp_epsilon, mu, rho) if one is not None]
        if len(given) != 1:
            raise PdpError("charge takes one of dp_epsilon, mu= and rho=.")
        budget = substitution_budget(given[0], neighbours)
        self._accounts.check_takes("laplace")
        if dp_epsilon is None and not self._allowance.takes_gaussian:
            raise LedgerError(
                "this ledger has a budget of pure epsilon: begin one with delta= to charge mu=."
            )
        if rho is not None:
            if self._allowance.rho is None:
                raise LedgerError(
                    "a mechanism that is rho-zCDP need not be mu-GDP: charge it to a ledger that"
                    " was started with rho= and pure=0, or give mu= if its noise is Gaussian."
                )
            budget *= 1 if neighbours == "substitution" else 2  # two steps count fourfold in ρ
        warn_if_private(self._model, "amount spent")
        if dp_epsilon is not None:
            return self._record([self._charge(budget, note, step)])
        if self._stream is not None:
            raise LedgerError(
                "about a model without an end, charge mechanisms by their pure epsilon."
            )
        strengths = {"mu": None if mu is None else budget, "rho": None if rho is None else budget}
        return self._record([noisy_charge_step(note, **strengths)])

    def spend(
        self,
        calibration: AnyCalibration,
        *,
        layout: Layout | None = None,
        sizes: Sizes | None = None,
        step: object = None,
    ) -> None:
        """Record one release that is about to be made; raise if it does not fit.

        `Calibration.release(data, ledger=…)` calls this before it draws noise. `layout` says which
        values of a frame the release is about, and `sizes` how many groups of each size (or rows)
        the frame has; without them, the caller must watch over both. `step` is as in `release`.
        """
        self.spend_together([(calibration, layout, sizes)], step=step)

    def spend_together(
        self,
        releases: Sequence[tuple[AnyCalibration, Layout | None, Sizes | None]],
        *,
        step: object = None,
    ) -> None:
        """Record several releases that are about to be made: all of them, or none."""
        for calibration, layout, _ in releases:
            self._accounts.check_takes(calibration.noise)
            self.check_model(calibration.model)
            self._check_adversaries(calibration.adversaries, layout)
        self._record([self._line(*one, step) for one in releases])

    def check_model(self, model: Model) -> None:
        """Refuse a model that is not the ledger's."""
        if model != self._model:
            raise LedgerError("the release was calibrated for another model than the ledger's.")

    def _check_adversaries(self, adversaries: Adversaries, layout: Layout | None) -> None:
        """Refuse a long frame that was not compared with the groups that the ledger relies on."""
        if layout == "wide" or not self._adversaries.is_restricted:
            return
        if adversaries != self._adversaries and stated_groups(self._model):
            raise LedgerError(
                f"to {self._adversaries!r}, whom the ledger is about, other groups are noise, but"
                f" the release was calibrated against {adversaries!r}, so its number of groups was"
                " not checked. Calibrate it against the adversaries of the ledger."
            )

    def _record(self, steps: Sequence[Step]) -> float:
        return record(steps, self._pages, self._counting, draw=self._draw, budget=self._epsilon)


def heading_of(
    model: Model | None, allowance: Allowance, adversaries: Adversaries
) -> dict[str, Any]:
    """Return what a ledger is about; a model that is yet to be learned is None."""
    return {
        **header("Ledger"),
        **allowance.to_dict(),
        "adversaries": adversaries.to_dict(),
        "model": None if model is None else model.to_dict(),
    }


def _check_structure(model: Model, state: Mapping[str, Any]) -> None:
    """Refuse a model that cannot be the one that the ledger withholds."""
    stored = field_of(state, "model")
    if list(model.names) != names_of(stored):
        raise LedgerError("the model given has other tuples than the ledger.")
    found = type(model).__name__, model.provenance
    if found != (field_of(stored, "type"), field_of(stored, "provenance")):
        raise LedgerError(
            f"the ledger is about a {stored['provenance']} {stored['type']}, and the model given is"
            f" a {found[1]} {found[0]}."
        )
    structure = state.get("structure")  # earlier versions wrote none
    if structure is not None and structure != public_structure(model):
        raise LedgerError("the model given has other domains or group sizes than the ledger's.")
