"""What can be asked of a table: the one declaration behind `df.pdp`, the command line and plans.

Every entry of `Table`, `Options` and `Learning` is one thing that can be said, with its type in
Python, its meaning, and how it is written as text and in TOML. From there come the signatures and
docstrings of ``df.pdp``, the options and the help of the command line, and the keys and the JSON
Schema of plans. What must hold between several of them is checked by `Job`.
"""

# No `from __future__ import annotations`: what is declared is read from the annotations.

import numbers
import os
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict, cast, get_args

from pdp_calibrate.errors import ModelError, PdpError, QueryError, did_you_mean
from pdp_calibrate.jobs.grammar import Question, parse_values
from pdp_calibrate.jobs.schema_parts import (
    CELL,
    NUMBER,
    POSITIVE,
    RANGE,
    TEXT,
    Schema,
    anything_of,
    items,
    one_of,
)

if TYPE_CHECKING:
    from pdp_calibrate.core.adversary import Adversaries
    from pdp_calibrate.core.model import Model
    from pdp_calibrate.ledger.ledger import Ledger

ModelKind = Literal["table", "gaussian", "groups", "chain", "series"]
MODEL_KINDS: tuple[ModelKind, ...] = get_args(ModelKind)
Range = tuple[float, float]
File = str | os.PathLike[str]


@dataclass(frozen=True, kw_only=True)
class Form:
    """How a value is written where it is not an object of Python."""

    schema: Schema
    """In the JSON Schema of plans."""
    kind: type = str
    """The type that the command line reads."""
    from_text: Callable[[str], Any] | None = None
    """Makes a value of the text of the command line; None where it is the value already."""
    from_plan: Callable[[Any], Any] | None = None
    """Makes a value of what TOML holds; None where it is the value already."""
    repeated: bool = False
    """Whether the command line takes it several times: `from_text` makes entries of a mapping."""


def adversaries_from(text: str) -> "Adversaries":
    """Read who may attack.

    Examples
    --------
    >>> adversaries_from("weakest")
    Adversaries.weakest()
    >>> adversaries_from("knowing:1:3"), adversaries_from("knowing::2")
    (Adversaries.knowing(at_least=1, at_most=3), Adversaries.knowing(at_least=0, at_most=2))
    >>> adversaries_from("exactly:child:mother,father")
    Adversaries.exactly('child', known=['mother', 'father'])
    """
    from pdp_calibrate.core.adversary import Adversaries

    name, *rest = text.split(":")
    if name in ("all", "weakest", "strongest") and not rest:
        return cast("Adversaries", getattr(Adversaries, name)())
    if name == "knowing" and len(rest) == 2:
        least, most = rest
        if all(limit.isdigit() or not limit for limit in rest):
            return Adversaries.knowing(
                at_least=int(least or 0), at_most=int(most) if most else None
            )
    if name == "exactly" and rest and len(rest) <= 2:
        return Adversaries.exactly(rest[0], known=rest[1].split(",") if rest[1:] else ())
    raise PdpError(
        "adversaries are all, weakest, strongest, knowing:AT_LEAST:AT_MOST or"
        f" exactly:TARGET:NAME,NAME; got {text!r}."
    )


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise PdpError(f"a number or a range LO:HI is needed, got {text!r}.") from None


def _range(text: str) -> Range:
    low, _, high = text.partition(":")
    return _number(low), _number(high)


def _number_or_range(text: str) -> float | Range:
    return _range(text) if ":" in text else _number(text)


def _named_range(text: str) -> tuple[str | None, Range]:
    name, equals, numbers = text.rpartition("=")
    return (name if equals else None), _range(numbers)


def _named_values(text: str, *, rule: str = "a domain is written COLUMN=VALUE,VALUE") -> Any:
    name, equals, values = text.partition("=")
    if not equals or not values.strip():
        raise PdpError(f"{rule}; got {text!r}.")
    return name, parse_values(values)


def _named_value(text: str) -> tuple[str, Any]:
    name, values = _named_values(text, rule="an option is written NAME=VALUE")
    return name, values[0] if len(values) == 1 else values


def _rule_for_missing(text: str) -> tuple[str | None, Any]:
    name, equals, rule = text.rpartition("=")
    return (name if equals else None), parse_values(rule)[0]


def _step(text: str) -> str | float:
    try:
        return float(text)
    except ValueError:
        return text


def _as_tuples(found: Any) -> Any:
    """Return what TOML holds with tuples for its lists."""
    if isinstance(found, dict):
        return {name: _as_tuples(value) for name, value in found.items()}
    return tuple(found) if isinstance(found, list) else found


def _by_column(schema: Schema) -> Schema:
    return {"type": "object", "additionalProperties": schema}


_TEXT = Form(schema=TEXT)
_POSITIVE = Form(schema=POSITIVE, kind=float)
_COUNT = Form(schema={"type": "integer", "minimum": 1}, kind=int)
_SWITCH = Form(schema={"type": "boolean"}, kind=bool)
_FILE = Form(schema=TEXT, kind=Path, from_plan=Path)
_NAMES = Form(
    schema=items(TEXT), from_text=lambda text: tuple(text.split(",")), from_plan=_as_tuples
)
_SPAN = Form(schema=anything_of(NUMBER, RANGE), from_text=_number_or_range, from_plan=_as_tuples)
_RANGES = Form(
    schema=anything_of(RANGE, _by_column(RANGE)),
    from_text=_named_range,
    from_plan=_as_tuples,
    repeated=True,
)
_DOMAINS = Form(
    schema=_by_column(items(CELL)), from_text=_named_values, from_plan=_as_tuples, repeated=True
)


_CONDITIONS = Form(
    schema=_by_column(anything_of(CELL, items(CELL))),
    from_text=lambda text: _named_values(text, rule="a condition is written COLUMN=VALUE,VALUE"),
    from_plan=_as_tuples,
    repeated=True,
)


_MISSING = Form(
    schema=anything_of(CELL, _by_column(CELL)), from_text=_rule_for_missing, repeated=True
)


_STEP = Form(schema=anything_of(TEXT, POSITIVE), from_text=_step)


_PAIRS = Form(schema=_by_column(CELL), from_text=_named_value, repeated=True)
_ADVERSARIES = Form(schema=TEXT, from_text=adversaries_from, from_plan=adversaries_from)


@dataclass(frozen=True, eq=False)
class Group:
    """Options that belong together."""

    title: str
    """Above them in ``--help``."""
    section: str
    """The section of a plan that holds them."""


PYTHON = Group("", "")
"""Options that Python alone has."""


_CORRELATED = "How the values are correlated"
ROWS = Group("Rows", "data")
MODEL = Group(_CORRELATED, "model")
LEARNING = Group(_CORRELATED, "model")
FITTING = Group(_CORRELATED, "model")
QUERY = Group("Query", "queries")
SEARCH = Group("Search", "budget")
LEDGER = Group("Budget", "budget")


@dataclass(frozen=True, kw_only=True)
class Option:
    """One thing that a person can say."""

    words: str
    """What it means."""
    group: Group
    """With which others it belongs together."""
    form: Form = _TEXT
    """How it is written."""
    written: str = ""
    """How it is written on the command line."""
    flags: tuple[str, ...] = ()
    """Its names on the command line, where it has others than its own."""
    key: str | None = None
    """Its name in a plan, where it has another."""
    default: Any = None
    """What holds where nothing is said."""


class Table(TypedDict, total=False):
    """Where the rows are, for the command line and plans; see `frames.files.Source`."""

    file: Annotated[
        Path,
        Option(
            words="CSV, TSV, parquet file or folder of parquet files.",
            group=ROWS,
            form=_FILE,
            written="A model in JSON where no rows are needed.",
        ),
    ]
    delimiter: Annotated[
        str, Option(words="What separates the columns of a text file, such as ';'.", group=ROWS)
    ]
    sql: Annotated[
        str,
        Option(
            words="Instead of a file, a query for DuckDB.",
            group=ROWS,
            written="Such as \"select * from 'p/*.parquet'\".",
        ),
    ]
    database: Annotated[
        Path, Option(words="The DuckDB database that the query is for.", group=ROWS, form=_FILE)
    ]


class Options(TypedDict, total=False):
    """What can be said about a table, a query and a release, wherever it is said."""

    groups: Annotated[
        Hashable | None,
        Option(
            words="In a table with a row per value, the column that tells groups apart:"
            " households, patients, meters. Rows of one group are correlated, groups are"
            " independent.",
            group=ROWS,
        ),
    ]
    order_by: Annotated[
        Hashable | None,
        Option(
            words="In a table with a row per value, the column that orders the rows of a group."
            " With a correlation its times have no gaps, and no two are equal in a group.",
            group=ROWS,
        ),
    ]
    time_format: Annotated[
        str | None,
        Option(
            words="How that column is written where it is text, such as %d/%m/%Y. By default it"
            " must be ISO 8601, every row in one form.",
            group=ROWS,
        ),
    ]
    max_group_size: Annotated[
        int | None,
        Option(
            words="How many rows a group has at most; larger ones are refused, or see large.",
            group=ROWS,
            form=_COUNT,
        ),
    ]
    large: Annotated[
        Literal["refuse", "keep"],
        Option(
            words="What happens to larger groups: 'refuse' them, or 'keep' only so many of their"
            " rows. The others count as nothing, and stay protected.",
            group=ROWS,
            form=Form(schema=one_of("refuse", "keep")),
        ),
    ]
    keep_by: Annotated[
        Hashable | None,
        Option(
            words="The public column by whose first entries the rows that are kept are chosen,"
            " such as a person's number; by default the one that orders the rows.",
            group=ROWS,
        ),
    ]
    keep_seed: Annotated[
        int | None,
        Option(
            words="A number, drawn once, that makes this choice random: by a hash of that column,"
            " which then holds whole numbers. It is kept with the release, and in the ledger.",
            group=ROWS,
            form=Form(schema={"type": "integer", "minimum": 0}, kind=int),
        ),
    ]
    independent: Annotated[
        bool,
        Option(
            words="Every row is a person who says nothing about the others: plain differential"
            " privacy.",
            group=ROWS,
            form=_SWITCH,
        ),
    ]
    every: Annotated[
        str | float | None,
        Option(
            words="How long a step is between the times of a series, in which there may then be"
            " gaps; or how many units, where times are numbers, months or periods.",
            group=ROWS,
            form=_STEP,
            written="Such as 1D, 15min, 2h.",
        ),
    ]
    public: Annotated[
        Sequence[Hashable],
        Option(
            words="Columns that are no secret, beside those of groups and order. All others are.",
            group=ROWS,
            form=_NAMES,
            flags=("--public-columns",),
            written="Such as city,year.",
        ),
    ]
    protect: Annotated[
        Literal["column", "household"],
        Option(
            words="'household' covers any dependence between all columns of a group, also against"
            " those who know some of the columns. 'column', the default, lets a correlation be"
            " stated; that covers those who know other entries of the same column, not of others.",
            group=ROWS,
            form=Form(schema=one_of("column", "household")),
        ),
    ]
    model: Annotated[
        "Model | File | None",
        Option(
            words="How the values are correlated: a model, or its JSON file. A table with a column"
            " per value needs one.",
            group=MODEL,
            form=_FILE,
            key="file",
        ),
    ]
    bounds: Annotated[
        Range | Mapping[Any, Range] | None,
        Option(
            words="The public range of the values, to which they are clamped: of all columns, or"
            " by column. With groups and neither a correlation nor a model, members of a group may"
            " depend on each other in any way (group privacy).",
            group=MODEL,
            form=_RANGES,
            written="Such as income=0:100000, or 0:1 for all.",
        ),
    ]
    correlation: Annotated[
        float | Range | None,
        Option(
            words="Assume jointly Gaussian values with this correlation inside a group, or between"
            " neighbours in time where the rows are ordered. A range stands for every number in"
            " it. It says nothing about counts and histograms.",
            group=MODEL,
            form=_SPAN,
            written="Such as 0.3 or 0:0.4.",
        ),
    ]
    assume: Annotated[
        Literal["gaussian"] | None,
        Option(
            words="'gaussian' says that whole numbers with a correlation are measurements, not"
            " codes. Floats need no such word; booleans and text are refused.",
            group=MODEL,
            form=Form(schema=one_of("gaussian")),
        ),
    ]
    domains: Annotated[
        Sequence[Hashable] | str | Mapping[Any, Sequence[Hashable] | str] | None,
        Option(
            words="The values that are possible, for all columns or by column. Histograms,"
            " breakdowns, and counts in groups without a model need them, unless the type of the"
            " column lists them: booleans, a polars Enum, a DuckDB ENUM. 'dtype' states that the"
            " categories of a column are public. In one column of values, a value outside raises,"
            " and that error depends on the data; in a breakdown it counts nowhere.",
            group=MODEL,
            form=_DOMAINS,
            written="Such as status=0,1,2.",
            flags=("--domain",),
        ),
    ]
    domain: Annotated[
        Sequence[Hashable] | str | Mapping[Any, Sequence[Hashable] | str] | None,
        Option(words="Another name for domains.", group=PYTHON),
    ]
    where: Annotated[
        Mapping[Any, Any] | None,
        Option(
            words="Conditions on columns, all of which a row must meet to count: a value, or"
            " several of which one must hold. Other rows add nothing, and their number stays"
            " secret. Not with a model; with a correlation, on public columns only.",
            group=QUERY,
            form=_CONDITIONS,
            written="Such as sick=true.",
        ),
    ]
    by: Annotated[
        Hashable | Sequence[Hashable] | None,
        Option(
            words="One answer for every value declared (domains) of this column, or for every"
            " combination of several. Other values count nowhere.",
            group=QUERY,
            form=_NAMES,
            written="Such as city.",
        ),
    ]
    missing: Annotated[
        Any,
        Option(
            words="What a missing cell means, for all columns or by column, stated before looking."
            " 'zero': the row does not count, so a mean is over those who have a value."
            " 'category': one more value of a breakdown. A number or value: it stands for the cell."
            " Dropping rows instead would change public numbers by a secret.",
            group=QUERY,
            form=_MISSING,
            written="Such as zero, or city=category, or income=0.",
        ),
    ]
    epsilon: Annotated[
        float | None,
        Option(
            words="Nobody's log-odds move by more than this. None (--rest on the command line)"
            " releases as much as still fits the ledger.",
            group=QUERY,
            form=_POSITIVE,
            flags=("--epsilon", "-e"),
            default=1.0,
        ),
    ]
    adversaries: Annotated[
        "Adversaries | None",
        Option(
            words="Who may attack; everyone by default, or whom the ledger is about.",
            group=SEARCH,
            form=_ADVERSARIES,
            written="One of all, weakest, strongest, knowing:1:3 (between 1 and 3 others),"
            " exactly:TARGET:KNOWN,KNOWN.",
        ),
    ]
    time_limit: Annotated[
        float | None,
        Option(
            words="Seconds for the search; after that a larger, still proved scale.",
            group=SEARCH,
            form=_POSITIVE,
        ),
    ]
    ledger: Annotated[
        "Ledger | File | None",
        Option(
            words="A ledger, or its file: it refuses what would pass its budget, and holds the"
            " release before noise is drawn. Its model and adversaries are the default.",
            group=LEDGER,
            form=_FILE,
        ),
    ]
    anchor: Annotated[
        File | None,
        Option(
            words="The second file, elsewhere, that must agree with the file of the ledger.",
            group=LEDGER,
            form=_FILE,
        ),
    ]


class Learning(TypedDict, total=False):
    """What can be said about a model that is learned from the rows themselves.

    In Python, ``df.pdp.fit(estimator)`` says the same.
    """

    kind: Annotated[
        ModelKind,
        Option(
            words="The kind of model to learn: table (discrete columns), gaussian (numbers), groups"
            " (households; yes/no values, or numbers where bounds are given), chain (states along"
            " time), series (numbers along time).",
            group=LEARNING,
            form=Form(schema=one_of(*MODEL_KINDS)),
        ),
    ]
    public: Annotated[
        bool,
        Option(words="The rows it is learned from are public.", group=LEARNING, form=_SWITCH),
    ]
    columns: Annotated[
        tuple[str, ...],
        Option(
            words="Learn from these columns of a table with a column per value; from all by"
            " default.",
            group=LEARNING,
            form=_NAMES,
            written="Such as a,b,c.",
        ),
    ]
    smoothing: Annotated[
        float, Option(words="Added to every count.", group=LEARNING, form=_POSITIVE)
    ]
    confidence: Annotated[
        float,
        Option(
            words="Cover the error of the estimate with this probability, such as 0.95. A table"
            " then needs the domain of every column.",
            group=LEARNING,
            form=_POSITIVE,
        ),
    ]
    covariance: Annotated[
        str,
        Option(
            words="For gaussian: auto, empirical, ledoit-wolf, oas, graphical-lasso.",
            group=LEARNING,
        ),
    ]
    structure: Annotated[
        str, Option(words="For table: joint, or another structure.", group=LEARNING)
    ]
    options: Annotated[
        Mapping[str, Any],
        Option(
            words="Further options of the estimator.",
            group=LEARNING,
            form=_PAIRS,
            flags=("--option",),
            written="Such as role=member.",
        ),
    ]
    epsilon: Annotated[
        float,
        Option(
            words="Learn under differential privacy with this budget.",
            group=FITTING,
            form=_POSITIVE,
        ),
    ]
    value: Annotated[
        str,
        Option(
            words="In a table with a row per value, the column of values; by default the one that"
            " is asked about.",
            group=FITTING,
        ),
    ]


def declared(what: type) -> dict[str, Option]:
    """Return what `Table`, `Options` or `Learning` declares, by name."""
    return {name: hint.__metadata__[0] for name, hint in what.__annotations__.items()}


OPTIONS = declared(Options)


def refuse_unknown(given: Iterable[str], known: Sequence[str], *, where: str) -> None:
    """Raise for an argument that does not exist, naming the nearest that does."""
    for name in given:
        if name not in known:
            hint = did_you_mean(name, known) or f"; there is {', '.join(known)}."
            raise QueryError(f"{where} takes no argument {name!r}{hint}")


@dataclass(frozen=True, kw_only=True)
class Job:
    """Questions about one table, and everything that was said about them.

    The model comes from one of four places: it is given; or learned from the rows; or assumed, of
    rows in groups, from a correlation and a public range; or, of rows in groups, nothing is assumed
    about it, which means that members may depend on each other in any way.
    """

    questions: tuple[Question, ...]
    """What is asked; several are answered together, from one calibration."""
    options: Options = field(default_factory=Options)
    """What was said; what was not is absent. An ε of None asks for as much as still fits."""
    learning: Learning = field(default_factory=Learning)
    """What was said about learning the model; empty where it is not learned."""
    name: str = ""
    """What the answer is called, in a plan."""

    def __post_init__(self) -> None:
        refuse_unknown(self.options, list(OPTIONS), where="a question about a table")
        said = {
            name: value
            for name, value in self.options.items()
            if value is not None or name == "epsilon"
        }
        if "domain" in said:
            if "domains" in said:
                raise QueryError("domain= and domains= say the same: give one of them.")
            said["domains"] = said.pop("domain")
        for name in ("independent", "large", "public", "where", "by"):
            if said.get(name) in (False, "refuse") or said.get(name, True) in ((), [], {}):
                del said[name]  # as if nothing had been said
        if said.get("protect") == "column":
            del said["protect"]
        rules = said.get("missing")
        if isinstance(rules, Mapping) and set(rules) == {None}:  # --missing zero
            said["missing"] = rules[None]
        object.__setattr__(self, "options", said)
        learning = {
            name: value
            for name, value in self.learning.items()
            if value is not None and value is not False
        }
        object.__setattr__(self, "learning", learning)
        self._check_options()
        self._check_model()
        self._check_learning()

    def _check_options(self) -> None:
        said = self.options
        if said.get("assume") not in (None, "gaussian"):
            raise QueryError(f"assume can only be 'gaussian', got {said.get('assume')!r}.")
        if "assume" in said and not self.assumes:
            raise QueryError("assume says which law a correlation is about: give both.")
        if "time_format" in said and "order_by" not in said:
            raise QueryError("time_format says how the column of order_by is read: name it.")
        if "anchor" in said and "ledger" not in said:
            raise QueryError("an anchor belongs to a ledger: name that too.")
        if said.get("large") not in (None, "keep"):
            raise QueryError(f"large is 'refuse' or 'keep', got {said.get('large')!r}.")
        if said.get("protect") not in (None, "household"):
            raise QueryError(f"protect is 'column' or 'household', got {said.get('protect')!r}.")
        if "protect" in said and (self.assumes or self.learns or "model" in said):
            raise QueryError(
                "protect='household' covers any dependence, of all columns: leave the correlation"
                " or model out."
            )
        if self.keeps and "max_group_size" not in said:
            raise QueryError("large='keep' keeps as many rows as max_group_size says: give both.")
        if {"keep_by", "keep_seed"} & set(said) and not self.keeps:
            raise QueryError("keep_by says which rows of large groups count: give large='keep'.")
        if said.get("independent") and {"groups", "order_by", "max_group_size"} & set(said):
            raise QueryError(
                "independent people have no groups and no order: leave one of both out."
            )
        if "every" in said and not ("order_by" in said and self.assumes):
            raise QueryError(
                "every says how long the steps of a series are, whose correlation is stated: give"
                " order_by and correlation too. Without them gaps do not matter."
            )
        if not isinstance(said.get("where", {}), Mapping):
            raise QueryError("where says which values of columns count, such as {'sick': True}.")
        if isinstance(said.get("public", ()), str):
            raise QueryError("public is a list of columns, such as ['city'].")
        if "adversaries" in said:
            from pdp_calibrate.core.adversary import Adversaries

            found: Any = said["adversaries"]
            if not isinstance(found, Adversaries):
                kind = type(found).__name__
                raise QueryError(f"adversaries must be one such as Adversaries.all(), got {kind}.")
        size: Any = said.get("max_group_size", 1)
        if not isinstance(size, numbers.Integral) or size < 1:
            raise QueryError(f"max_group_size must be a whole number above 0, got {size!r}.")

    def _check_model(self) -> None:
        made = [
            *self.learning,
            *(n for n in ("bounds", "correlation", "domains") if n in self.options),
        ]
        if "model" in self.options and made:
            raise ModelError(
                f"the model is given, or comes from a file: leave out what would make another one"
                f" ({', '.join(made)})."
            )
        if not self.learns and not self.is_long and ("bounds" in self.options or self.assumes):
            raise ModelError(
                "bounds and correlation are for a kind of model to learn, or for rows in groups:"
                " name the column of the groups, or of times."
            )

    def _check_learning(self) -> None:
        kind = self.learning.get("kind")
        if kind is not None and kind not in MODEL_KINDS:
            hint = did_you_mean(str(kind), MODEL_KINDS)
            raise ModelError(f"a kind of model is one of {', '.join(MODEL_KINDS)}{hint}")
        if not self.learns and {"public", "epsilon", "columns"} & set(self.learning):
            raise ModelError(
                "public, epsilon and columns are about learning a model: say its kind, and no"
                " correlation."
            )
        if "public" in self.learning and "epsilon" in self.learning:
            raise ModelError("public rows need no differential privacy: leave one of both out.")
        if "columns" in self.learning and kind not in ("table", "gaussian"):
            raise ModelError(f"a model of kind {kind} has one column: leave columns out.")
        if kind == "table" and not isinstance(self.options.get("domains", {}), Mapping):
            raise ModelError("a table has several columns: state the domain of each by its name.")
        if not self.assumes:
            return
        if kind in ("table", "gaussian", "chain"):
            raise ModelError(f"a correlation is assumed for groups or series, not a {kind}.")
        if kind == "series" and "order_by" not in self.options:
            raise ModelError("a series needs the column that orders it.")
        if kind == "groups" and "order_by" in self.options:
            raise ModelError("members of groups are alike: leave the order out, or say series.")

    @property
    def is_long(self) -> bool:
        """Whether the table is said to have a row per value."""
        return bool({"groups", "order_by", "independent"} & set(self.options))

    @property
    def keeps(self) -> bool:
        """Whether only some rows of large groups count."""
        return self.options.get("large") == "keep"

    @property
    def asks_about_rows(self) -> bool:
        """Whether the answer is about rows with several columns, not about one column of values.

        So it is with conditions, breakdowns, rules for missing cells, rows left out and
        independent people; and with several columns of a table with a row per value, of which
        nothing is assumed.
        """
        said = set(self.options)
        if said & {"where", "by", "missing", "independent", "every", "protect"} or self.keeps:
            return True
        if not self.is_long or self.learns or said & {"model", "correlation"}:
            return False
        kinds = {(one.columns, one.kind in ("count", "histogram")) for one in self.questions}
        return len(kinds) > 1 or any(
            len(question.columns or ()) > 1
            or (question.kind == "count" and question.values is None)
            for question in self.questions
        )

    @property
    def assumes(self) -> bool:
        """Whether a correlation is assumed, and so nothing learned."""
        return "correlation" in self.options

    @property
    def learns(self) -> bool:
        """Whether the model is learned from the rows."""
        return "kind" in self.learning and not self.assumes

    @property
    def learns_from_secrets(self) -> bool:
        """Whether the model is learned from rows that are not public."""
        return self.learns and "public" not in self.learning

    @property
    def epsilon(self) -> float | None:
        """What nobody may exceed; None for as much as still fits the ledger."""
        return self.options.get("epsilon", OPTIONS["epsilon"].default)

    @property
    def value(self) -> Hashable | None:
        """The column of values that a model is learned from: named, or the first asked about."""
        named = self.questions[0].columns if self.questions else None
        return self.learning.get("value", named[0] if named else None)

    def bounds_of(self, column: Hashable) -> Range | None:
        """Return the public range of a column."""
        return cast("Range | None", _of_column(self.options.get("bounds"), column))

    def domain_of(self, column: Hashable) -> Sequence[Hashable] | str | None:
        """Return the possible values of a column, or ``dtype``, as far as stated."""
        found = _of_column(self.options.get("domains"), column)
        return cast("Sequence[Hashable] | str | None", found)


def _of_column(said: Any, column: Hashable) -> Any:
    """Return what was said about a column, or about all of them."""
    return said.get(column, said.get(None)) if isinstance(said, Mapping) else said
