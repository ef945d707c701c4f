"""Questions about all columns of the same people, over one budget.

What holds for the table is declared once, and stored in the ledger; a question adds the rest. It is
lowered like every question about rows: for a stated correlation of its one secret column, or for
whole households. Before a release only public columns are read, once for each question, and the
numbers of rows and groups and the form of times when the table is opened; a release reads the rows
in one pass, which also checks that these still hold, and that the times are those of series.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from typing import Any, cast

from pdp_calibrate.arrays import checked_epsilon, plain
from pdp_calibrate.calibration.calibrate import calibrate
from pdp_calibrate.calibration.release import EVERY_COLUMN, checked_layout, note_release
from pdp_calibrate.calibration.result import Calibration, Release
from pdp_calibrate.core.model import from_json_value, json_value
from pdp_calibrate.core.noise import Noise
from pdp_calibrate.core.row_query import RowQuery
from pdp_calibrate.errors import FrameError, ModelError, QueryError
from pdp_calibrate.frames.counts import group_sizes
from pdp_calibrate.frames.long_answers import LongFrame
from pdp_calibrate.frames.open import column_name, columns_of, refuse_empty, rows_in
from pdp_calibrate.frames.order import Times, times_of
from pdp_calibrate.frames.rows import PublicRows, public_rows
from pdp_calibrate.jobs.forms import DRAW
from pdp_calibrate.jobs.grammar import Question
from pdp_calibrate.jobs.job import File, Job, Options, refuse_unknown
from pdp_calibrate.jobs.model import refuse_absent
from pdp_calibrate.jobs.rows import (
    drawn_seed,
    model_of_rows,
    query_about_rows,
    refuse_larger,
    with_public_sizes,
)
from pdp_calibrate.jobs.run import Task, calibrate_task, drawn_by, expecting, with_noise
from pdp_calibrate.jobs.signature import ASKED, TABLE
from pdp_calibrate.ledger.people import PeopleLedger
from pdp_calibrate.ledger.store import SafeFile


class PeopleTable:
    """A table of people and the budget for everything that is released about them.

    Parameters
    ----------
    frame
        One row per person or reading, of any library.
    said
        What is said about it: those of `Options` that `TABLE` names.
    epsilon
        The budget of every column.
    delta, noise, pure
        As for `PeopleLedger`.
    ledger
        Where the budget is kept; a file that is there is opened, and must be about this table.
    anchor
        The second file that must agree with it.
    """

    def __init__(
        self,
        frame: Any,
        said: Mapping[str, Any],
        *,
        epsilon: float,
        delta: float | None = None,
        noise: Noise = "laplace",
        pure: float | None = None,
        ledger: File | None = None,
        anchor: File | None = None,
    ) -> None:
        self._settle(frame, said)
        begun = None
        if ledger is not None and SafeFile.at(ledger, what="ledger").exists:
            begun = PeopleLedger.open(ledger, anchor=anchor)
        if self._said.get("keep_seed") == DRAW:
            kept = None if begun is None else begun.declared.get("keep_seed")
            self._said["keep_seed"] = drawn_seed() if kept is None else kept
        about: dict[str, Any] = {
            "declared": {name: _stored(value) for name, value in self._said.items()},
            "columns": self._secret_columns(),
            "sizes": tuple(sorted(self._sizes.items())),
            "epsilon": checked_epsilon(epsilon),
            "delta": delta,
            "noise": noise,
            "pure": pure,
        }
        if begun is not None:
            begun.check_same(**about)
        self.ledger = begun or PeopleLedger(path=ledger, anchor=anchor, **about)

    @classmethod
    def open(cls, frame: Any, ledger: File, *, anchor: File | None = None) -> PeopleTable:
        """Continue with a budget on disk, which holds what was declared about the table."""
        found = PeopleLedger.open(ledger, anchor=anchor)
        said = {name: _read(value) for name, value in found.declared.items()}
        divided = found.allowance
        return cls(
            frame,
            said,
            epsilon=found.epsilon,
            delta=found.delta or None,
            noise=divided.noise,
            pure=divided.pure,
            ledger=ledger,
            anchor=anchor,
        )

    def _settle(self, frame: Any, said: Mapping[str, Any]) -> None:
        refuse_unknown(said, TABLE, where="a table of people")
        grouped = said.get("groups") is not None or said.get("order_by") is not None
        if not grouped and not said.get("independent"):
            raise QueryError(
                "say which rows belong together: groups= (or order_by= for one series), or"
                " independent=True if every row is a person independent of the others."
            )
        every = said.get("every")
        options = Options(**{name: one for name, one in said.items() if name != "every"})  # type: ignore[typeddict-item]
        job = Job(questions=(), options=options)
        if every is not None and "order_by" not in job.options:
            raise QueryError("every says how long the steps of a series are: give order_by= too.")
        self._frame = frame
        self._said: dict[str, Any] = {**job.options}
        if every is not None:
            self._said["every"] = every
        if "public" in self._said:
            self._said["public"] = tuple(sorted(map(column_name, self._said["public"])))
        for option in ("bounds", "domains"):
            if isinstance(self._said.get(option), Mapping):
                self._said[option] = _by_name(self._said[option])
                refuse_absent(frame, list(self._said[option]))
        refuse_absent(frame, self._roles())
        if "independent" in self._said:
            self._sizes = Counter({1: rows_in(frame)})
            refuse_empty(self._sizes[1])
        else:
            self._sizes = group_sizes(frame, self._said.get("groups"))
        refuse_larger(max(self._sizes), job)
        self._public: dict[str, PublicRows] = {}
        self._times: Times | None = None
        order_by, time_format = self._said.get("order_by"), self._said.get("time_format")
        if order_by is not None:
            with contextlib.suppress(ModelError, FrameError):  # raised where a series is asked for
                self._times = times_of(frame, order_by, time_format=time_format)

    def _roles(self) -> list[Hashable]:
        """Return the columns that are no secret."""
        named = [self._said.get(name) for name in ("groups", "order_by", "keep_by")]
        return [*(name for name in named if name is not None), *self._said.get("public", ())]

    def _secret_columns(self) -> list[str]:
        public = {column_name(name) for name in self._roles()}
        found = [name for name in columns_of(self._frame) if name not in public]
        if not found:
            raise QueryError("every column is public: there is nothing to protect.")
        return found

    def job(self, question: Question, options: Mapping[str, Any], *, name: str = "") -> Job:
        """Return a question with the options of the table; refuse options it cannot have."""
        refuse_unknown(options, ASKED, where="a question about people")
        said = dict(self._said)
        if options.get("correlation") is None and options.get("persistence") is None:
            said.pop("every", None)  # gaps matter to a series alone
        job = Job(questions=(question,), options=cast("Options", said | dict(options)), name=name)
        job.check_strength()
        return job

    def calibrated(self, job: Job, *, times: bool = True) -> tuple[Calibration, dict[str, Any]]:
        """Find the scale of one answer, and how to read the table for it; nothing is spent.

        Parameters
        ----------
        job
            What is asked.
        times
            Whether to read the times of a series, and to refuse what no series has.
        """
        task = self._task(job, times=times)
        job = with_noise(job, noise=self.ledger.allowance.noise, delta=self.ledger.delta or None)
        if job.epsilon is not None:
            return cast("Calibration", calibrate_task(job, task)), task.columns
        limit = job.options.get("time_limit")
        alone = calibrate(
            task.model,
            task.queries[0],
            epsilon=self.ledger.epsilon,
            rows=task.rows,
            **drawn_by(job),
        )
        largest = expecting(job, self.ledger.largest(alone, time_limit=limit))
        return cast("Calibration", largest), task.columns

    def _task(self, job: Job, *, times: bool) -> Task:
        """Lower a question: to a model of its column, or to whole households."""
        (question,) = job.questions
        query = query_about_rows(job, question, self._frame)
        public = self._read_public(query)
        query = with_public_sizes(query, public)
        # A column has one model, whichever rows a question is about: that of all rows.
        model = model_of_rows(
            job,
            query,
            self._of_all_rows(query) if job.assumes else public,
            self._frame,
            times=times,
        )
        return Task(
            model=model,
            queries=(query,),
            rows=1,
            columns={
                "value": query.secret[0] if job.assumes else EVERY_COLUMN,
                "groups": self._said.get("groups"),
                "order_by": self._said.get("order_by"),
                "time_format": self._said.get("time_format"),
            },
        )

    @property
    def _rows(self) -> int:
        return sum(size * number for size, number in self._sizes.items())

    def _of_all_rows(self, query: RowQuery) -> PublicRows:
        counted = Counter(
            {(size, min(size, query.most or size)): n for size, n in self._sizes.items()}
        )
        return PublicRows(sizes=self._sizes, counted=counted, parts=(self._rows,))

    def _read_public(self, query: RowQuery) -> PublicRows:
        """Return what public columns say of a question, read where one is asked about."""
        if query.keep_by is None and set(query.columns) == set(query.secret):
            return self._of_all_rows(query)
        key = json.dumps(query.to_dict(), sort_keys=True)
        if key not in self._public:
            groups = None if query.independent else self._said.get("groups")
            self._public[key] = public_rows(self._frame, query, groups=groups)
        return self._public[key]

    def release(self, jobs: Sequence[Job]) -> list[Release]:
        """Release answers, each calibrated alone at its ε: all of them if they fit, or none.

        Everything that may fail because of the data is done first; then all of them are recorded at
        once, and only then is noise drawn.
        """
        ready = []
        for job in jobs:
            calibration, columns = self.calibrated(job, times=False)
            layout = checked_layout(**columns)
            if isinstance(layout, LongFrame):  # rows and times were read before
                layout = dataclasses.replace(layout, rows=self._rows, times=self._times)
            draw, sizes = calibration.answered(self._frame, layout)
            ready.append((calibration, sizes, draw))
        self.ledger.spend_together([(calibration, sizes) for calibration, sizes, _ in ready])
        for calibration, _, _ in ready:
            note_release(calibration, counted=True)
        return [draw() for _, _, draw in ready]


def _by_name(said: Mapping[Any, Any]) -> dict[str | None, Any]:
    """Return what was said by column under the names of columns; sets in one order."""
    return {
        None if name is None else column_name(name): (
            tuple(sorted(one, key=repr)) if isinstance(one, Set) else one
        )
        for name, one in said.items()
    }


def _stored(value: Any) -> Any:
    """Describe what was said for JSON; what is said by column in pairs, in the order of columns."""
    if isinstance(value, Mapping):
        pairs = [[json_value(plain(name)), _stored(one)] for name, one in value.items()]
        return {"by column": sorted(pairs, key=lambda pair: str(pair[0]))}
    if isinstance(value, str):
        return value
    if isinstance(value, Iterable):
        return [json_value(plain(one)) for one in value]
    return json_value(plain(value))


def _read(described: Any) -> Any:
    """Undo `_stored`."""
    if isinstance(described, Mapping):
        return {from_json_value(name): _read(one) for name, one in described["by column"]}
    return from_json_value(described)
