"""Which model? From the columns of a table, their types and at most four answers.

Values are never read, only what is public about a frame: its columns and their types, the sizes of
groups, and the times of a series.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from pdp_calibrate.arrays import checked_epsilon
from pdp_calibrate.calibration.result import AnyCalibration
from pdp_calibrate.core.leakage import leakage
from pdp_calibrate.core.model import header
from pdp_calibrate.errors import ModelError, PdpError, QueryError, printable
from pdp_calibrate.families.any_dependence import Unknown
from pdp_calibrate.frames.columns import kind_of
from pdp_calibrate.frames.open import columns_of
from pdp_calibrate.jobs.grammar import Question, parse_query
from pdp_calibrate.jobs.job import Job, Options
from pdp_calibrate.jobs.model import refuse_absent
from pdp_calibrate.jobs.run import calibrate_task, task_of
from pdp_calibrate.jobs.written import command_line, first_column, python_call

Learn = Literal["public", "dp"]

TYPES: dict[Any, Any] = {
    "number": float, "float": float, float: float,
    "whole": int, "whole number": int, "integer": int, "int": int, int: int,
    "yes/no": bool, "boolean": bool, "bool": bool, bool: bool,
    "text": str, "category": str, "str": str, str: str,
    "time": int, "date": int,
}  # fmt: skip
"""What the type of a column may be called where there is no frame."""

EXAMPLE_SIZE = 4
"""Members of a group in an example, where nothing says how many there are."""

_ANY = (
    "Nothing: members of a group may depend on each other in any way, whatever anyone knows"
    " about them. Groups are independent of each other."
)
_INDEPENDENT = (
    "That no person's value says anything about another's. Where that is not true, more than ε"
    " leaks."
)


_NO_MODEL = "none: the rows are independent"
_ALIKE = (
    "How alike are they? correlation=(0, 0.4) for numbers, persistence=0.9 for states along time,"
    ' learn="public" or learn="dp"; nothing if it is not known.'
)


@dataclass(frozen=True, kw_only=True)
class Choice:
    """One assumption about how people are correlated, and what it costs."""

    name: str
    """Its name: any dependence, stated correlation, learned under DP, plain DP."""
    model: str
    """The model behind it."""
    assumes: str
    """What must be true of the people for the promise to hold."""
    call: str = ""
    """How to ask for it in Python."""
    command: str = ""
    """How to ask for it on the command line."""
    scale: float | None = None
    """The scale of its noise; None where that is not known yet."""
    half_width: float | None = None
    """The most that the noise moves the answer, in 95 % of releases."""
    scale_range: tuple[float, float] | None = None
    """The range of scales, where the scale depends on the model that is learned."""
    note: str = ""
    """What else to know: why there is no number, or what it really leaks."""


_HOUSEHOLDS = Choice(
    name="any dependence",
    model="pdp.Unknown",
    assumes=_ANY,
    note="Name the column of groups (groups=) to see what protecting whole households costs: as"
    " many times the noise as the largest of them has members.",
)


@dataclass(frozen=True, kw_only=True)
class Advice:
    """Which model to take, and what the others would cost."""

    choice: Choice | None
    """The one that fits the answers; None while earlier questions are open."""
    alternatives: tuple[Choice, ...]
    """The others, for the same answers."""
    questions: tuple[str, ...]
    """What is still open, at most four, each with the argument that answers it."""
    epsilon: float
    """The ε that all of them are about."""
    columns: dict[str, str]
    """The columns and their types, which is all that is read."""

    def to_dict(self) -> dict[str, Any]:
        """Describe the advice for JSON."""
        return {
            **header("Advice"),
            "epsilon": self.epsilon,
            "columns": self.columns,
            "choice": None if self.choice is None else _described(self.choice),
            "alternatives": [_described(one) for one in self.alternatives],
            "questions": list(self.questions),
        }

    def __str__(self) -> str:
        lines = []
        if self.choice is not None:
            one = self.choice
            lines += [f"Take {one.name}: {one.model}.", f"It assumes: {one.assumes}"]
            lines += [_noise(one), one.note, "", one.call, "", one.command, ""]
        if self.alternatives:
            lines.append(f"The others, for the same ε = {self.epsilon:.4g}:")
            lines += [
                f"- {one.name} ({one.model}). {_noise(one)} {one.note}".rstrip()
                for one in self.alternatives
            ]
        if self.questions:
            lines += ["", "Still open:", *(f"- {one}" for one in self.questions)]
        if self.choice is None:
            named = ", ".join(f"{name} ({kind})" for name, kind in self.columns.items())
            lines += ["", f"Columns: {named}."]
        return printable("\n".join(line for line in _spaced(lines)).strip(), lines=True)


def _spaced(lines: Sequence[str]) -> list[str]:
    """Leave out every second of two empty lines."""
    return [one for place, one in enumerate(lines) if one or (place and lines[place - 1])]


def _noise(one: Choice) -> str:
    if one.scale is not None:
        wide = "" if one.half_width is None else f", ±{one.half_width:.4g} in 95 % of releases"
        return f"Scale {one.scale:.6g}{wide}."
    if one.scale_range is not None:
        low, high = one.scale_range
        return f"Scale between {low:.4g} and {high:.4g}, known when it is learned."
    return ""


def _described(one: Choice) -> dict[str, Any]:
    found = {name: getattr(one, name) for name in Choice.__dataclass_fields__}
    found["scale_range"] = None if one.scale_range is None else list(one.scale_range)
    return found


def advise(
    frame: Any,
    *,
    query: str | None = None,
    groups: Hashable | None = None,
    order_by: Hashable | None = None,
    independent: bool = False,
    max_group_size: int | None = None,
    bounds: Any = None,
    domains: Any = None,
    correlation: float | tuple[float, float] | None = None,
    persistence: float | None = None,
    learn: Learn | None = None,
    epsilon: float = 1.0,
    file: str = "people.csv",
) -> Advice:
    """Name the model that fits a table, from its columns and the answers to four questions.

    No value is read, only the types of the columns, the sizes of groups and the times of a series,
    which are public. What is not answered yet is listed in `Advice.questions`.

    Parameters
    ----------
    frame
        A frame of any library, or a schema: the type of each column by name, ``"number"``,
        ``"whole number"``, ``"yes/no"``, ``"text"`` or ``"time"``.
    query
        First question: what is asked, such as ``"mean(income)"``.
    groups, order_by, independent, max_group_size
        Second: which rows belong together: by a column of groups, along a column of times, or not
        at all; for a schema also the size of the largest group (4 by default).
    bounds, domains
        Third: the public range, or the possible values, of the column asked about.
    correlation, persistence, learn
        Fourth: what is known about how alike they are: at most this correlation, at most this
        probability of staying in a state; or it is learned, from ``"public"`` rows or under
        differential privacy (``"dp"``). If none is given, nothing is assumed.
    epsilon
        How much anyone may learn about anyone.
    file
        The name of the file in the commands.

    Returns
    -------
    Advice
        The model, how to ask for it, what it assumes, and the noise of the alternatives.

    Examples
    --------
    >>> import pdp_calibrate as pdp
    >>> schema = {"household": "whole number", "income": "number"}
    >>> found = pdp.advise(
    ...     schema, query="mean(income)", groups="household", bounds=(0, 100), correlation=(0, 0.4)
    ... )
    >>> found.choice.model, [one.name for one in found.alternatives]
    ('pdp.GaussianGroup', ['any dependence', 'learned under DP', 'plain DP'])
    >>> pdp.advise(schema).questions[0]
    'What is asked? query="mean(income)", sum, count(sick=true), histogram(city).'
    """
    checked_epsilon(epsilon)
    if learn not in (None, "public", "dp"):
        raise QueryError(f"learn is 'public' or 'dp', got {learn!r}.")
    if sum(one is not None for one in (correlation, persistence, learn)) > 1:
        raise QueryError("correlation, persistence and learn answer one question: give one.")
    if independent and (groups is not None or order_by is not None):
        raise QueryError("independent people have no groups and no order: leave one of both out.")
    if independent and (correlation is not None or persistence is not None or learn is not None):
        raise QueryError("independent people are not correlated: leave one of both out.")
    if isinstance(frame, Mapping):
        frame = _stand_in(frame, order_by, max_group_size or EXAMPLE_SIZE)
    asked = None if query is None else parse_query(query)
    columns = {name: type_of(frame, name) for name in columns_of(frame)}
    refuse_absent(frame, [groups, order_by, *((asked.columns or ()) if asked else ())])
    said: dict[str, Any] = {
        "groups": groups, "order_by": order_by, "independent": independent or None,
        "max_group_size": max_group_size, "bounds": bounds, "domains": domains,
    }  # fmt: skip
    said = {name: value for name, value in said.items() if value is not None}
    stated = {"correlation": correlation, "persistence": persistence}
    stated = {name: value for name, value in stated.items() if value is not None}
    needed = _needed(asked, said, frame)
    alike = () if independent or stated or learn else (_ALIKE,)
    choice: Choice | None = None
    alternatives: tuple[Choice, ...] = ()
    if asked is not None and not needed:
        case = _Case(frame=frame, asked=asked, said=said, stated=stated, epsilon=epsilon, file=file)
        choice, alternatives = case.choices(learn)
    return Advice(
        choice=choice,
        alternatives=alternatives,
        questions=(*needed, *alike),
        epsilon=epsilon,
        columns=columns,
    )


def type_of(frame: Any, name: str) -> str:
    """Return the type of a column, in the words of a schema, without reading a row."""
    found = kind_of(frame, name)
    if found.is_integer():
        return "whole number"
    if found.is_numeric():
        return "number"
    return {"Boolean": "yes/no", "Date": "time", "Datetime": "time"}.get(str(found), "text")


def _stand_in(schema: Mapping[Any, Any], order_by: Hashable | None, size: int) -> Any:
    """Return a frame of one group, with these columns and nothing in them."""
    import pandas as pd

    if not schema:
        raise ModelError("a schema names at least one column.")
    cells = {}
    for name, kind in schema.items():
        if kind not in TYPES:
            known = ", ".join(dict.fromkeys(one for one in TYPES if isinstance(one, str)))
            raise ModelError(f"the type of column {name} is one of {known}; got {kind!r}.")
        cells[name] = pd.Series([TYPES[kind]()] * size, dtype=TYPES[kind])
    if order_by in cells:
        cells[order_by] = pd.Series(range(size))
    return pd.DataFrame(cells)


def _needed(asked: Question | None, said: Mapping[str, Any], frame: Any) -> list[str]:
    """Return the questions without whose answers nothing can be advised."""
    found = []
    if asked is None:
        found.append('What is asked? query="mean(income)", sum, count(sick=true), histogram(city).')
    wide = asked is not None and len(asked.columns or ()) > 1
    if not {"groups", "order_by", "independent"} & set(said) and not wide:
        found.append(
            'Which rows belong together? groups="household", order_by="day", or independent=True'
            " if every row is a person who is independent of the others."
        )
    if asked is None:
        found.append("Which values are possible? bounds=(lo, hi) for numbers, else domains={...}.")
    elif asked.kind in ("sum", "mean", "linear"):
        if "bounds" not in said:
            found.append(f"What is the public range of {first_column(asked)}? bounds=(lo, hi).")
    elif "domains" not in said and any(
        type_of(frame, str(name)) != "yes/no" for name in asked.columns or ()
    ):
        found.append(f"Which values are possible in {first_column(asked)}? domains={{...: [...]}}.")
    return found


@dataclass(frozen=True, kw_only=True)
class _Case:
    """Everything that was answered."""

    frame: Any
    asked: Question
    said: dict[str, Any]
    stated: dict[str, Any]
    epsilon: float
    file: str

    @property
    def _numbers(self) -> bool:
        return self.asked.kind in ("sum", "mean", "linear")

    @property
    def _along_time(self) -> bool:
        return "order_by" in self.said

    @property
    def _wide(self) -> bool:
        return not {"groups", "order_by", "independent"} & set(self.said)

    def choices(self, learn: Learn | None) -> tuple[Choice, tuple[Choice, ...]]:
        """Return the choice that fits, and the others."""
        if self.said.get("independent"):
            return self._alone(), (_HOUSEHOLDS,)
        covering, found = self._any()
        stated, about = self._stated()
        order = {
            "any": covering,
            "stated": stated,
            "learned": self._learned(found, learn or "dp"),
            "plain": self._plain(found, about),
        }
        chosen = "stated" if self.stated else "any" if learn is None else "learned"
        if order[chosen].scale is None and chosen == "stated":
            chosen = "any"  # the correlation says nothing here, and the note of `stated` why
        return order[chosen], tuple(one for name, one in order.items() if name != chosen)

    def _calibrated(self, more: Mapping[str, Any]) -> AnyCalibration:
        if self._wide:
            return self._over_columns()
        options = cast("Options", {**self.said, **more, "epsilon": self.epsilon})
        job = Job(questions=(self.asked,), options=options)
        return calibrate_task(job, task_of(job, self.frame, None))

    def _over_columns(self) -> AnyCalibration:
        """Calibrate for columns of a wide frame of which nothing is known."""
        names = tuple(map(str, self.asked.columns or ()))
        if self._numbers:
            possible: dict[str, Any] = {"bounds": _for(self.said.get("bounds"), names[0])}
        else:
            domain = _for(self.said.get("domains"), names[0])
            possible = {"domain": [False, True] if domain is None else domain}
        model = Unknown(size=len(names), names=names, **possible)
        job = Job(questions=(self.asked,), options={"model": model, "epsilon": self.epsilon})
        return calibrate_task(job, task_of(job, self.frame, model))

    def _any(self) -> tuple[Choice, AnyCalibration | None]:
        name, model = "any dependence", "pdp.Unknown"
        try:
            found = self._calibrated({})
        except PdpError as error:
            return Choice(name=name, model=model, assumes=_ANY, note=str(error)), None
        call, command = ("", "") if self._wide else self._written({})
        if self._wide:
            call = f"pdp.Unknown(size={len(self.asked.columns or ())}, …)"
        one = Choice(
            name=name, model=model, assumes=_ANY, call=call, command=command, **_cost(found)
        )
        return one, found

    def _stated(self) -> tuple[Choice, AnyCalibration | None]:
        name = "stated correlation"
        if self._numbers:
            model = "pdp.GaussianSeries" if self._along_time else "pdp.GaussianGroup"
            law = (
                "between neighbours in time, less further apart"
                if self._along_time
                else "between any two members of a group"
            )
            assumes = (
                "That the values are measurements, not codes, jointly Gaussian with any means and"
                f" one common variance, and correlated {law} as stated."
            )
            wanted, hint = "correlation", "State a correlation=(lo, hi) to see its noise."
        else:
            model = "pdp.MixingChain" if self._along_time else "pdp.BinaryGroup"
            assumes = "That states forget at least as fast as a chain that stays so often."
            wanted, hint = "persistence", "State persistence= to see its noise."
            if not self._along_time:
                wanted = ""
                assumes = "A law of how many members share a value."
                hint = (
                    "A correlation says nothing about counts in groups: learn a model, or give one"
                    " as model=."
                )
        if self._wide:
            return Choice(
                name=name, model="pdp.Gaussian" if self._numbers else "pdp.JointTable",
                assumes="The joint distribution of the columns.",
                note="Give the model of the columns as model=, or learn it.",
            ), None  # fmt: skip
        if wanted not in self.stated:
            other = ", ".join(self.stated)
            note = f"{other} does not fit {self.asked.kind}. {hint}" if other else hint
            return Choice(name=name, model=model, assumes=assumes, note=note), None
        more = dict(self.stated)
        if "correlation" in more:
            more["assume"] = "gaussian"
        try:
            found = self._calibrated(more)
        except PdpError as error:
            return Choice(name=name, model=model, assumes=assumes, note=str(error)), None
        call, command = self._written(more)
        one = Choice(
            name=name, model=model, assumes=assumes, call=call, command=command, **_cost(found)
        )
        return one, found

    def _learned(self, found: AnyCalibration | None, learn: Learn) -> Choice:
        model, arguments, kind = self._estimator()
        share = self.epsilon / 2
        public = learn == "public"
        arguments |= {"source": "public"} if public else {"epsilon": share}
        inside = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
        call = (
            f"model = people.pdp.fit(pdp.{model}({inside})).model_\n"
            f"ledger = pdp.Ledger(model, epsilon={self.epsilon!r}, path='budget.json')"
        )
        learning: dict[str, Any] = {"kind": kind} | ({"public": True} if public else {})
        if not public:
            learning["epsilon"] = share
        if not self._wide:
            learning["value"] = str(first_column(self.asked))
        else:
            learning["columns"] = tuple(map(str, self.asked.columns or ()))
        options = {
            name: _by_column(value, self.asked) if name in ("bounds", "domains") else value
            for name, value in self.said.items()
            if name in ("groups", "order_by") or name == ("bounds" if self._numbers else "domains")
        }
        command = command_line("fit", self.file, (), options, learning) + " -o model.json"
        among = None
        if found is not None:
            factor = 1.0 if public else 2.0  # what is left for the answer is half of ε
            low, high = (_first(found.baselines["dp"]), _first(found.scale))
            among = None if low is None or high is None else (factor * low, factor * high)
        note = (
            "The rows it is learned from must be public, or about other people."
            if public
            else f"Here half of ε is for learning and half for the answer ({share:.4g} each)."
        )
        return Choice(
            name="learned from public rows" if public else "learned under DP",
            model=f"pdp.{model}",
            assumes="That people are as the learned family of models describes them; the estimate"
            " has an error, which is covered at .95 where a band is known, and open elsewhere.",
            call=call,
            command=command,
            scale_range=among,
            note=note,
        )

    def _estimator(self) -> tuple[str, dict[str, Any], str]:
        value = first_column(self.asked)
        bounds = _for(self.said.get("bounds"), value)
        arguments: dict[str, Any] = {}
        if self._wide:
            if self._numbers:
                return "GaussianEstimator", {"bounds": bounds}, "gaussian"
            names = list(self.asked.columns or ())
            stated = {name: _for(self.said.get("domains"), name) for name in names}
            known = {name: list(one) for name, one in stated.items() if one is not None}
            return "TableEstimator", {"domains": known} if known else {}, "table"
        arguments["value"] = value
        if "groups" in self.said:
            arguments["groups"] = self.said["groups"]
        if self._along_time:
            arguments["order_by"] = self.said["order_by"]
            if self._numbers:
                return "GaussianSeriesEstimator", arguments | {"bounds": bounds}, "series"
            return "MarkovChainEstimator", arguments, "chain"
        if self._numbers:
            return "GroupEstimator", arguments | {"kind": "gaussian", "bounds": bounds}, "groups"
        return "GroupEstimator", arguments | {"kind": "binary"}, "groups"

    def _alone(self) -> Choice:
        """Return plain DP, where it is all that is needed."""
        one = Choice(name="plain DP", model=_NO_MODEL, assumes=_INDEPENDENT)
        try:
            found = self._calibrated({})
        except PdpError as error:
            return dataclasses.replace(one, note=str(error))
        call, command = self._written({})
        return dataclasses.replace(one, call=call, command=command, **_cost(found))

    def _plain(self, found: AnyCalibration | None, stated: AnyCalibration | None) -> Choice:
        name, model = "plain DP", _NO_MODEL
        about = stated or found
        scale = None if about is None else _first(about.baselines["dp"])
        if about is None or not scale:
            return Choice(name=name, model=model, assumes=_INDEPENDENT)
        leaked = leakage(about.model, about.queries[0], scale=scale, rows=about.rows).value
        whom = "with the stated correlation" if stated else "where members depend on each other"
        return Choice(
            name=name,
            model=model,
            assumes=_INDEPENDENT,
            scale=scale,
            half_width=dataclasses.replace(about, scale=scale).known_half_widths()[0],
            note=f"It would leak up to {leaked:.4g} instead of {self.epsilon:.4g} {whom}.",
        )

    def _written(self, more: Mapping[str, Any]) -> tuple[str, str]:
        options = {**self.said, **more, "epsilon": self.epsilon}
        for name in ("bounds", "domains"):
            if name in options:
                options[name] = _by_column(options[name], self.asked)
        call = python_call("people.pdp.calibrate", repr(self.asked.text), options)
        return call, command_line("calibrate", self.file, [self.asked.text], options)


def _cost(found: AnyCalibration) -> dict[str, Any]:
    return {"scale": _first(found.scales), "half_width": found.known_half_widths()[0]}


def _first(value: Any) -> Any:
    return value[0] if isinstance(value, tuple | list) else value


def _for(said: Any, column: Hashable) -> Any:
    return said.get(column, said.get(None)) if isinstance(said, Mapping) else said


def _by_column(said: Any, asked: Question) -> Any:
    """Return what was said of all columns as said of the one asked about."""
    if isinstance(said, Mapping) or asked.columns is None:
        return said
    return {name: tuple(said) for name in asked.columns}
