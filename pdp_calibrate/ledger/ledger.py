"""The ledger: a budget for everything that is released about one draw of the data."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, overload

import pandas as pd

from pdp_calibrate.calibration.release import Layout, LongFrame, checked_layout, note_release
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
from pdp_calibrate.core.adversary import Adversaries
from pdp_calibrate.core.cards import card
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
from pdp_calibrate.errors import (
    BudgetExceededError,
    LedgerError,
    PdpError,
    damage_refused,
)
from pdp_calibrate.frames.answers import Sizes
from pdp_calibrate.frames.counts import group_sizes
from pdp_calibrate.frames.long_answers import instances_in, stated_groups
from pdp_calibrate.frames.open import rows_in
from pdp_calibrate.ledger.accounts import (
    Accounts,
    Budget,
    Step,
    charge_step,
    noisy_charge_step,
    record,
    release_step,
)
from pdp_calibrate.ledger.allowance import Allowance
from pdp_calibrate.ledger.entries import last_spent, learning_entries
from pdp_calibrate.ledger.store import FileStore, MemoryStore, Pages, Store

_ATTEMPTS = 5  # when others spend at the same time


class Ledger(Budget):
    """A budget ε for all releases about one draw of the data together.

    Leakages of correlated data do not add up: two releases may leak more than the sum of both. The
    ledger bounds the *joint* leakage of everything released so far and refuses, before any noise is
    drawn, what would pass the budget. This holds for releases chosen adaptively, from the outputs
    of earlier ones; it does not hold if they are chosen by looking at the data.

    Parameters
    ----------
    model
        How the tuples are correlated.
    epsilon
        The joint leakage that nobody may exceed, per draw; 2 by default.
    delta
        The δ beside it, for Gaussian noise.
    noise
        What releases draw where they do not say: ``"laplace"`` or ``"gaussian"``.
    pure
        In a ledger with a δ, the part of ε that Laplace noise and outside mechanisms may use. It is
        fixed beforehand, and 0 admits outside mechanisms of Gaussian noise (``charge(mu=…)``).
        None for Gaussian noise alone: then what adversaries do not know counts as noise too.
    mu, rho
        In place of ε: the μ of Gaussian differential privacy, or the ρ of zCDP. The budget then is
        a filter for μ or ρ, and `epsilon` says what that keeps at `delta`, 1e-6 by default.
    path
        Where to keep the ledger; None to keep it in memory, for one process. An entry is on disk
        before its noise is drawn. The file holds neither answers nor parameters of a private model.
    adversaries
        Against whom; everyone by default.
    draw
        What to call the draw of the data that the releases are about.
    time_limit
        Seconds that one check may take before a larger, still sound bound decides.
    learned_here
        Whether a model that was learned under differential privacy was learned from this very
        draw. Then its ε is the first entry: it adds to whatever is released. False if it was
        learned from other data, independent of this draw.
    anchor
        A second path, in another place than the ledger, that holds a checksum of its last state
        and must agree with it from then on: on another disk, or where those who may write the
        ledger may not delete. With it an old copy of the ledger, one begun anew, or two copies
        used in turn are refused.

    Notes
    -----
    A ledger notices entries that went missing while it was open, torn and edited files, and hard
    links. By itself a file cannot notice that it was deleted and begun anew, or that an older copy
    was put in its place between two processes: that takes an `anchor`. Nothing notices when the
    ledger and its anchor are restored together, when somebody writes both anew on purpose (the
    checksums have no key), or what is released past the ledger.

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
    """

    def __init__(
        self,
        model: Model,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        noise: Noise = "laplace",
        pure: float | None = None,
        mu: float | None = None,
        rho: float | None = None,
        path: str | os.PathLike[str] | None = None,
        adversaries: Adversaries | None = None,
        draw: str = "first",
        time_limit: float | None = None,
        learned_here: bool = True,
        anchor: str | os.PathLike[str] | None = None,
    ) -> None:
        everyone = Adversaries.all() if adversaries is None else adversaries
        everyone.resolve(model)
        if path is None and anchor is not None:
            raise LedgerError("an anchor is for a ledger in a file: give path= too.")
        store: Store = MemoryStore() if path is None else FileStore(path, anchor=anchor)
        allowance = Allowance.of(
            epsilon=epsilon, delta=delta, pure=pure, mu=mu, rho=rho, noise=noise
        )
        self._settle(model, allowance, everyone, Pages(store), draw, time_limit)
        heading = heading_of(model, allowance, everyone)
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
    ) -> None:
        self._model, self._allowance, self._adversaries = model, allowance, adversaries
        self._epsilon = allowance.epsilon
        self._pages, self._draw = pages, draw
        self._accounts = Accounts(model, adversaries, allowance=allowance, time_limit=time_limit)

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
        """Go on with a ledger on disk.

        Parameters
        ----------
        path
            Where it is.
        model
            The model, where the file withholds it (private, or over 10⁴ cells). Of a private one
            the file knows the structure alone: that it has the same numbers is for you to see to.
        draw
            The draw to release about; the latest by default.
        time_limit
            As for the class.
        anchor
            The second path that must agree with it, if it was begun with one. It may have moved.
        """
        pages = Pages(FileStore(path, anchor=anchor))
        state = pages.read()
        if state.get("model", {}) is None:
            raise LedgerError(
                "the model of this ledger was not learned: the run that began it ended before."
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
        cls._settle(ledger, used, allowance, adversaries, pages, chosen, time_limit)
        return ledger

    @property
    def model(self) -> Model:
        """How the tuples are correlated."""
        return self._model

    @property
    def delta(self) -> float:
        """The δ beside ε; 0 for a ledger of pure ε."""
        return self._allowance.delta

    @property
    def mu(self) -> float | None:
        """The μ within which all Gaussian noise stays; None for a ledger of pure ε."""
        if not self._allowance.takes_gaussian:
            return None
        total = self._accounts.total(self._pages.read(), self._draw)
        return self._allowance.limit(total.draw_epsilon)

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

        With Gaussian noise, how much of the filter is used, as an ε: the claim is the budget.
        """
        return last_spent(self._pages.read()["entries"], self._draw)

    def _repr_html_(self) -> str:
        rows = [
            ("budget ε", f"{self.epsilon:.6g}"),
            *([("δ", f"{self.delta:g}"), ("μ", f"{self.mu:.6g}")] if self.delta else []),
            ("draw", self.draw),
            ("spent", f"{self.spent:.6g}"),
            ("remaining", f"{self.remaining:.6g}"),
            ("entries, all draws", f"{len(self.history)}"),
        ]
        return card("Ledger", rows)

    def new_draw(self, name: str) -> None:
        """Turn to a new, independent draw of the data, with a budget of its own.

        Yesterday's budget says nothing about today's data if today's are drawn independently of
        yesterday's. If they depend on each other, they belong into one model and one draw.
        """
        self._pages.add_draw(name)
        self._draw = name

    def would_spend(
        self,
        what: Query | Sequence[Query] | AnyCalibration | None = None,
        *,
        epsilon: float | None = None,
        dp_epsilon: float | None = None,
        rows: int = 1,
        noise: Noise | None = None,
        delta: float | None = None,
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
        """
        before = self._accounts.total(self._pages.read(), self._draw)
        if (what is None) == (dp_epsilon is None):
            raise PdpError("would_spend takes either a release or dp_epsilon=, and not both.")
        if dp_epsilon is not None:
            self._accounts.check_takes("laplace")
            budget = substitution_budget(dp_epsilon, "substitution")
            warn_if_private(self._model, "amount spent")
            return self._accounts.bound(before.plus_mechanism(budget)).value
        if not isinstance(what, Calibration):
            if what is None or epsilon is None:
                raise PdpError("would_spend needs epsilon= beside a query.")
            drawn = self._allowance.noise if noise is None else noise
            what = self._accounts.calibrate(what, epsilon, rows=rows, noise=drawn, delta=delta)
        self._accounts.check_takes(what.noise)
        return self._accounts.bound(self._accounts.after(before, what)).value

    @overload
    def release(
        self,
        query: Query,
        data: Any,
        *,
        epsilon: float | None,
        value: Hashable | None = None,
        groups: Hashable | None = None,
        order_by: Hashable | None = None,
        time_format: str | None = None,
        by: Hashable | None = None,
        noise: Noise | None = None,
        delta: float | None = None,
    ) -> Release: ...

    @overload
    def release(
        self,
        query: Sequence[Query],
        data: Any,
        *,
        epsilon: float | None,
        value: Hashable | None = None,
        groups: Hashable | None = None,
        order_by: Hashable | None = None,
        time_format: str | None = None,
        by: Hashable | None = None,
        noise: Noise | None = None,
        delta: float | None = None,
    ) -> Release[SeveralQueries, SeveralNumbers]: ...

    def release(
        self,
        query: Query | Sequence[Query],
        data: Any,
        *,
        epsilon: float | None,
        value: Hashable | None = None,
        groups: Hashable | None = None,
        order_by: Hashable | None = None,
        time_format: str | None = None,
        by: Hashable | None = None,
        noise: Noise | None = None,
        delta: float | None = None,
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
            ``"laplace"`` or ``"gaussian"``; what the ledger was begun with by default.
        delta
            For Gaussian noise, the δ beside ε of this release alone; the ledger's by default.

        Notes
        -----
        A draw is about the same rows every time: a frame with another number of rows, or of groups
        of any size, is refused. Filtering by a secret column would make that number a secret.

        Raises
        ------
        BudgetExceededError
            If everything together would leak more than the budget. No noise was drawn.
        """
        layout = checked_layout(
            value=value, groups=groups, by=by, order_by=order_by, time_format=time_format
        )
        rows = self._instances(data, layout)
        options: dict[str, Any] = {
            "rows": rows,
            "noise": self._allowance.noise if noise is None else noise,
            "delta": delta,
        }
        if epsilon is not None:
            calibration = self._accounts.calibrate(query, epsilon, **options)
            return self._released(calibration, data, layout)
        for _ in range(_ATTEMPTS):
            before = self._accounts.total(self._pages.read(), self._draw)
            largest = self._accounts.largest(before, query, **options)
            with contextlib.suppress(BudgetExceededError):  # others spent in between: look again
                return self._released(largest, data, layout)
        return self._released(largest, data, layout)

    def _released(self, calibration: AnyCalibration, data: Any, layout: Layout) -> AnyRelease:
        """Check the data, write the release down, and only then draw its noise."""
        draw, sizes = calibration.answered(data, layout)
        self.spend(calibration, layout=layout, sizes=sizes)
        note_release(calibration, counted=True)
        return draw()

    def _instances(self, data: Any, layout: Layout) -> int:
        if isinstance(layout, LongFrame):
            return instances_in(group_sizes(data, layout.groups), self._model)
        return 1 if isinstance(data, pd.Series | Mapping) else rows_in(data)

    def charge(
        self,
        dp_epsilon: float | None = None,
        *,
        mu: float | None = None,
        rho: float | None = None,
        neighbours: str = "substitution",
        note: str = "",
    ) -> float:
        """Account for an outside mechanism by its plain-DP budget, and return what is spent.

        Parameters
        ----------
        dp_epsilon
            The pure ε of the mechanism about to be run on this draw.
        mu
            In its place, the μ of a mechanism of Gaussian differential privacy.
        rho
            In its place, the ρ of zCDP, in a ledger whose budget is a ρ: not all that is ρ-zCDP is
            μ-GDP, integer Gaussian noise for instance.
        neighbours
            ``substitution`` of one tuple, or ``add-remove``.
        note
            What to write beside it.
        """
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
                    " was begun with rho= and pure=0, or say mu= if its noise is Gaussian."
                )
            budget *= 1 if neighbours == "substitution" else 2  # two steps count fourfold in ρ
        warn_if_private(self._model, "amount spent")
        if dp_epsilon is not None:
            return self._record([charge_step(budget, note)])
        strengths = {"mu": None if mu is None else budget, "rho": None if rho is None else budget}
        return self._record([noisy_charge_step(note, **strengths)])

    def spend(
        self,
        calibration: AnyCalibration,
        *,
        layout: Layout | None = None,
        sizes: Sizes | None = None,
    ) -> None:
        """Write down one release that is about to be made; raise if it does not fit.

        `Calibration.release(data, ledger=…)` calls this before it draws noise. `layout` says which
        values of a frame the release is about, and `sizes` how many groups of each size (or rows)
        the frame has; without them, that is for the caller to watch.
        """
        self.spend_together([(calibration, layout, sizes)])

    def spend_together(
        self,
        releases: Sequence[tuple[AnyCalibration, Layout | None, Sizes | None]],
    ) -> None:
        """Write down several releases that are about to be made: all of them, or none."""
        for calibration, layout, _ in releases:
            self._accounts.check_takes(calibration.noise)
            self.check_model(calibration.model)
            self._check_adversaries(calibration.adversaries, layout)
        self._record([release_step(self._accounts, *one) for one in releases])

    def check_model(self, model: Model) -> None:
        """Refuse a model that is not the ledger's."""
        if model != self._model:
            raise LedgerError("the release was calibrated for another model than the ledger's.")

    def _check_adversaries(self, adversaries: Adversaries, layout: Layout | None) -> None:
        """Refuse a long frame that was not compared with the groups that the ledger counts on."""
        if layout == "wide" or not self._adversaries.is_restricted:
            return
        if adversaries != self._adversaries and stated_groups(self._model):
            raise LedgerError(
                f"to {self._adversaries!r}, whom the ledger is about, other groups are noise, and"
                f" the release was calibrated against {adversaries!r}: nothing says that it is"
                " about as many groups. Calibrate it against the adversaries of the ledger."
            )

    def _record(self, steps: Sequence[Step]) -> float:
        return record(
            steps, self._pages, self._accounts, draw=self._draw, budget=self._allowance.epsilon
        )


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
