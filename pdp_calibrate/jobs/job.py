"""What can be asked about a table: the one declaration behind `df.pdp`, command line and plans.

Every field of `Table`, `Options` and `Learning` is one option, with its type in Python, its
meaning, and how it is written as text and in TOML. The signatures and docstrings of ``df.pdp``, the
options and help of the command line, and the keys and JSON Schema of plans are derived from it.
`Job` checks what must hold between several options.
"""

# No `from __future__ import annotations`: what is declared is read from the annotations.

import numbers
import os
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict, cast, get_args

from pdp_calibrate.calibration.risk import epsilon_for
from pdp_calibrate.core import gaussian_dp
from pdp_calibrate.errors import ModelError, QueryError, did_you_mean
from pdp_calibrate.jobs import forms
from pdp_calibrate.jobs.forms import Form, Range
from pdp_calibrate.jobs.grammar import Question, checked_conditions

if TYPE_CHECKING:
    from pdp_calibrate.core.adversary import Adversaries
    from pdp_calibrate.core.model import Model
    from pdp_calibrate.core.noise import Noise
    from pdp_calibrate.ledger.ledger import Ledger

ModelKind = Literal["table", "gaussian", "groups", "chain", "series"]
MODEL_KINDS: tuple[ModelKind, ...] = get_args(ModelKind)
File = str | os.PathLike[str]


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
    """One option."""

    words: str
    """What it means."""
    group: Group
    """The group of options that it belongs to."""
    form: Form = forms.TEXT
    """How it is written."""
    written: str = ""
    """How it is written on the command line."""
    flags: tuple[str, ...] = ()
    """Its names on the command line, where they differ."""
    key: str | None = None
    """Its name in a plan, where it differs."""
    needed: bool = False
    """Whether it has no default: it, or what can stand in its place, is asked for."""


class Table(TypedDict, total=False):
    """Where the rows are, for the command line and plans; see `frames.files.Source`."""

    file: Annotated[
        Path,
        Option(
            words="CSV, TSV, parquet file or folder of parquet files.",
            group=ROWS,
            form=forms.FILE,
            written="A model in JSON where no rows are needed.",
        ),
    ]
    delimiter: Annotated[
        str, Option(words="What separates the columns of a text file, such as ';'.", group=ROWS)
    ]
    index_col: Annotated[
        bool,
        Option(
            words="Every line of a text file begins with a name of the row, which the header leaves"
            " out or empty, as R writes them; it is no column.",
            group=ROWS,
            form=forms.SWITCH,
            flags=("--index",),
        ),
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
        Path,
        Option(words="The DuckDB database that the query is for.", group=ROWS, form=forms.FILE),
    ]


class Options(TypedDict, total=False):
    """The options for a table, a query and a release, in Python, on the command line, in plans."""

    groups: Annotated[
        Hashable | None,
        Option(
            words="In a table with a row per value, the column that names the group: households,"
            " patients, meters. Rows of one group are correlated, groups are independent.",
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
            words="The format of that column if it is text, such as %d/%m/%Y. By default it must"
            " be ISO 8601, every row in the same form.",
            group=ROWS,
        ),
    ]
    max_group_size: Annotated[
        int | None,
        Option(
            words="The most rows that a group may have; larger ones are refused, or see large.",
            group=ROWS,
            form=forms.COUNT,
        ),
    ]
    large: Annotated[
        Literal["refuse", "keep"],
        Option(
            words="What happens to larger groups: 'refuse' them, or 'keep' only that many of their"
            " rows. The other rows do not count, and stay protected.",
            group=ROWS,
            form=forms.word("refuse", "keep"),
        ),
    ]
    keep_by: Annotated[
        Hashable | None,
        Option(
            words="The public column that decides which rows are kept, the smallest values first,"
            " such as a person's number; by default the one that orders the rows.",
            group=ROWS,
        ),
    ]
    keep_seed: Annotated[
        int | Literal["draw"] | None,
        Option(
            words="A number that makes this choice random, by a hash of that column, which must"
            " then hold whole numbers. 'draw' draws it once; it is stored with the release and in"
            " the ledger, where later questions find it.",
            group=ROWS,
            form=forms.SEED,
        ),
    ]
    independent: Annotated[
        bool,
        Option(
            words="Every row is a person independent of the others: plain differential privacy.",
            group=ROWS,
            form=forms.SWITCH,
        ),
    ]
    every: Annotated[
        str | float | None,
        Option(
            words="The length of a step between the times of a series, which may then have gaps; or"
            " the number of units, where times are numbers, months or periods.",
            group=ROWS,
            form=forms.STEP,
            written="Such as 1D, 15min, 2h.",
        ),
    ]
    public: Annotated[
        Sequence[Hashable],
        Option(
            words="Columns that are not secret, besides those of groups and order. All others are.",
            group=ROWS,
            form=forms.NAMES,
            flags=("--public-columns",),
            written="Such as city,year.",
        ),
    ]
    protect: Annotated[
        Literal["column", "household"],
        Option(
            words="'household' covers any dependence between all columns of a group, also against"
            " adversaries who know some of the columns. 'column', the default, allows a stated"
            " correlation; that covers adversaries who know other entries of the same column, but"
            " not of other columns.",
            group=ROWS,
            form=forms.word("column", "household"),
        ),
    ]
    model: Annotated[
        "Model | File | None",
        Option(
            words="How the values are correlated: a model, or its JSON file. A table with a column"
            " per value needs one.",
            group=MODEL,
            form=forms.FILE,
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
            form=forms.RANGES,
            written="Such as income=0:100000, or 0:1 for all.",
        ),
    ]
    correlation: Annotated[
        float | Range | None,
        Option(
            words="Assume jointly Gaussian values with this correlation inside a group, or between"
            " neighbours in time where the rows are ordered. A range covers every number in it."
            " It does not apply to counts and histograms.",
            group=MODEL,
            form=forms.SPAN,
            written="Such as 0.3 or 0:0.4.",
        ),
    ]
    persistence: Annotated[
        float | None,
        Option(
            words="Assume that the states of a column along time, in the order of order_by, are a"
            " Markov chain that forgets at least as fast as one that stays in its state with this"
            " probability at every step and otherwise moves to each other state with equal"
            " probability. For counts and histograms of that one column, whose states are declared"
            " (domains).",
            group=MODEL,
            form=forms.POSITIVE,
            written="Such as 0.9.",
        ),
    ]
    assume: Annotated[
        Literal["gaussian"] | None,
        Option(
            words="'gaussian' says that whole numbers with a correlation are measurements, not"
            " codes. Floats do not need it; booleans and text are refused.",
            group=MODEL,
            form=forms.word("gaussian"),
        ),
    ]
    domains: Annotated[
        Sequence[Hashable] | str | Mapping[Any, Sequence[Hashable] | str] | None,
        Option(
            words="The values that are possible, for all columns or by column. Histograms,"
            " breakdowns, and counts in groups without a model need them, unless the type of the"
            " column lists them: booleans, a polars Enum, a DuckDB ENUM. 'dtype' states that the"
            " categories of a column are public. In a column of values, a value outside the domain"
            " raises an error, which depends on the data; in a breakdown it is not counted.",
            group=MODEL,
            form=forms.DOMAINS,
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
            words="Conditions on columns that a row must meet to count, all of them: a value, or a"
            " set of values of which one must match. Other rows add nothing, and their number stays"
            " secret. Not with a model; with a correlation, on public columns only.",
            group=QUERY,
            form=forms.CONDITIONS,
            written="Such as sick=true.",
        ),
    ]
    by: Annotated[
        Hashable | Sequence[Hashable] | None,
        Option(
            words="One answer for every value declared (domains) of this column, or for every"
            " combination of several. Other values are not counted.",
            group=QUERY,
            form=forms.NAMES,
            written="Such as city.",
        ),
    ]
    missing: Annotated[
        Any,
        Option(
            words="What a missing cell means, for all columns or by column, stated before looking"
            " at the data. 'zero': the row does not count, so a mean is over those with a value."
            " 'category': one more value of a breakdown. A number or value: it replaces the cell."
            " Dropping rows instead would make public numbers depend on a secret.",
            group=QUERY,
            form=forms.MISSING,
            written="Such as zero, or city=category, or income=0.",
        ),
    ]
    epsilon: Annotated[
        float | None,
        Option(
            words="How much anyone may learn about anyone: odds shift by a factor of e^epsilon at"
            " most (1: times 2.7, so that a belief of 1 % becomes at most 2.7 %). It has no"
            " default: give it, or belief. None (--rest on the command line) releases as much as"
            " still fits the ledger.",
            group=QUERY,
            form=forms.POSITIVE,
            flags=("--epsilon", "-e"),
            needed=True,
        ),
    ]
    belief: Annotated[
        Range | None,
        Option(
            words="Instead of epsilon: how far a belief about anyone may move, from a probability"
            " before the release to one after it.",
            group=QUERY,
            form=forms.BELIEF,
            written="Such as 1%:3%.",
        ),
    ]
    noise: Annotated[
        "Noise | None",
        Option(
            words="The noise: laplace, by default or as the ledger says; or gaussian, which needs"
            " delta as well as epsilon, and takes less noise where many answers are given.",
            group=QUERY,
            form=forms.word("laplace", "gaussian"),
        ),
    ]
    delta: Annotated[
        float | None,
        Option(
            words="With Gaussian noise, the probability with which more than epsilon may be"
            " learned: far below one over the number of people, such as 1e-6; the ledger's by"
            " default.",
            group=QUERY,
            form=forms.POSITIVE,
        ),
    ]
    mu: Annotated[
        float | None,
        Option(
            words="With Gaussian noise, instead of epsilon: the mu of Gaussian differential"
            " privacy.",
            group=QUERY,
            form=forms.POSITIVE,
        ),
    ]
    rho: Annotated[
        float | None,
        Option(
            words="With Gaussian noise, instead of epsilon: the rho of zero-concentrated"
            " differential privacy (zCDP).",
            group=QUERY,
            form=forms.POSITIVE,
        ),
    ]
    count: Annotated[
        float | None,
        Option(
            words="About how many rows are expected behind a mean over a secret number of them (a"
            " condition on a secret column, or missing values); in the smallest part of a"
            " breakdown. Only the accuracy that is shown before a release depends on it.",
            group=QUERY,
            form=forms.POSITIVE,
            written="Such as 19000.",
        ),
    ]
    adversaries: Annotated[
        "Adversaries | None",
        Option(
            words="Who may attack; everyone by default, or whom the ledger is about.",
            group=SEARCH,
            form=forms.ADVERSARIES,
            written="One of all, weakest, strongest, knowing:1:3 (between 1 and 3 others),"
            " exactly:TARGET:KNOWN,KNOWN.",
        ),
    ]
    time_limit: Annotated[
        float | None,
        Option(
            words="Seconds for the search; after that a larger, still proved scale.",
            group=SEARCH,
            form=forms.POSITIVE,
        ),
    ]
    ledger: Annotated[
        "Ledger | File | None",
        Option(
            words="A ledger, or its file: it refuses what would exceed its budget, and records the"
            " release before noise is drawn. Its model and adversaries are the default.",
            group=LEDGER,
            form=forms.FILE,
        ),
    ]
    anchor: Annotated[
        File | None,
        Option(
            words="The second file, elsewhere, that must agree with the file of the ledger.",
            group=LEDGER,
            form=forms.FILE,
        ),
    ]


class Learning(TypedDict, total=False):
    """The options for a model that is learned from the rows themselves.

    In Python, ``df.pdp.fit(estimator)`` does the same.
    """

    kind: Annotated[
        ModelKind,
        Option(
            words="The kind of model to learn: table (discrete columns), gaussian (numbers), groups"
            " (households; yes/no values, or numbers where bounds are given), chain (states along"
            " time), series (numbers along time).",
            group=LEARNING,
            form=forms.word(*MODEL_KINDS),
        ),
    ]
    public: Annotated[
        bool,
        Option(words="The rows it is learned from are public.", group=LEARNING, form=forms.SWITCH),
    ]
    columns: Annotated[
        tuple[str, ...],
        Option(
            words="Learn from these columns of a table with a column per value; from all by"
            " default.",
            group=LEARNING,
            form=forms.NAMES,
            written="Such as a,b,c.",
        ),
    ]
    smoothing: Annotated[
        float, Option(words="Added to every count.", group=LEARNING, form=forms.POSITIVE)
    ]
    confidence: Annotated[
        float | Literal["none"],
        Option(
            words="Cover the error of learning with this probability: of the sample, and with"
            " epsilon of the noise of the fit too. By default 0.95, where a band is known; none"
            " learns the point alone, from public rows. A table needs the domain of every column.",
            group=LEARNING,
            form=forms.CONFIDENCE,
            written="Such as .9, or none.",
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
        str,
        Option(words="For table: joint, chow-liu, blocks or network.", group=LEARNING),
    ]
    edges: Annotated[
        tuple[tuple[str, str], ...],
        Option(
            words="For structure network: pairs of columns that depend on each other.",
            group=LEARNING,
            form=forms.EDGES,
            written="Such as a:b,b:c.",
        ),
    ]
    options: Annotated[
        Mapping[str, Any],
        Option(
            words="Further options of the estimator.",
            group=LEARNING,
            form=forms.PAIRS,
            flags=("--option",),
            written="Such as role=member.",
        ),
    ]
    epsilon: Annotated[
        float,
        Option(
            words="Learn under differential privacy with this budget.",
            group=FITTING,
            form=forms.POSITIVE,
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


_NOTHING: tuple[Any, ...] = ((), [], {})
_DEFAULTS: dict[str, tuple[Any, ...]] = {
    "independent": (False,), "large": ("refuse",), "protect": ("column",),
    "public": _NOTHING, "where": _NOTHING, "by": _NOTHING,
}  # fmt: skip
"""Values that mean the same as leaving the option out."""


def refuse_unknown(given: Iterable[str], known: Sequence[str], *, where: str) -> None:
    """Raise for an argument that does not exist, naming the nearest that does."""
    for name in given:
        if name not in known:
            hint = did_you_mean(name, known) or f"; there is {', '.join(known)}."
            raise QueryError(f"{where} takes no argument {name!r}{hint}")


@dataclass(frozen=True, kw_only=True)
class Job:
    """Questions about one table, with all their options.

    The model comes from one of four places: it is given; or learned from the rows; or, for rows in
    groups, assumed from a correlation and a public range; or, for rows in groups, nothing is
    assumed, which means that members may depend on each other in any way.
    """

    questions: tuple[Question, ...]
    """What is asked; several are answered together, from one calibration."""
    options: Options = field(default_factory=Options)
    """The options given; others are absent. An ε of None asks for as much as still fits."""
    learning: Learning = field(default_factory=Learning)
    """The options for learning the model; empty where it is not learned."""
    name: str = ""
    """The name of the answer, in a plan."""

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
        if "belief" in said:
            said["epsilon"] = epsilon_of(said.pop("belief"), said)
        if "where" in said:
            said["where"] = checked_conditions(said["where"], "where")
        for name in ("groups", "order_by", "keep_by"):
            if not isinstance(said.get(name), Hashable):
                raise QueryError(
                    f"{name} is the name of a column, got a {type(said[name]).__name__}."
                )
        if not isinstance(said.get("independent"), Hashable):
            raise QueryError("independent is True or False: whether every row is a person.")
        if "public" in said:
            said["public"] = _column_names(said["public"])
        for name, defaults in _DEFAULTS.items():
            given = said.get(name)
            if isinstance(given, Hashable | list | dict) and name in said and given in defaults:
                del said[name]  # as if nothing had been said
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
        if "persistence" in said and ("correlation" in said or "order_by" not in said):
            raise QueryError(
                "persistence is about states along time: give order_by too, and no correlation,"
                " which is about numbers."
            )
        if "assume" in said and "correlation" not in said:
            raise QueryError("assume says which law a correlation is about: give both.")
        strengths = [name for name in ("epsilon", "mu", "rho") if name in said]
        if len(strengths) > 1:
            raise QueryError(f"{' and '.join(strengths)} say the same: give one of them.")
        if {"mu", "rho"} & set(said) and said.get("noise") != "gaussian":
            raise QueryError("mu and rho are about Gaussian noise: say noise='gaussian' too.")
        if said.get("noise") not in (None, "laplace", "gaussian"):
            raise QueryError(f"noise is 'laplace' or 'gaussian', got {said.get('noise')!r}.")
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
        seed: Any = said.get("keep_seed", forms.DRAW)
        if seed != forms.DRAW and (not isinstance(seed, numbers.Integral) or seed < 0):
            raise QueryError(f"keep_seed is a whole number from 0, or 'draw', got {seed!r}.")
        if said.get("independent") and {"groups", "order_by", "max_group_size"} & set(said):
            raise QueryError(
                "independent people have no groups and no order: leave one of both out."
            )
        if "every" in said and not ("order_by" in said and self.assumes):
            raise QueryError(
                "every says how long the steps of a series are, whose correlation is stated: give"
                " order_by and correlation (or persistence) too. Without them gaps do not matter."
            )
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
            *(n for n in ("bounds", "correlation", "persistence", "domains") if n in self.options),
        ]
        if self.asks_about_rows and "domains" in made:  # of other columns of the rows
            made.remove("domains")
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
        idle = [name for name in self.learning if name not in ("kind", "value")]
        if idle and not self.learns:
            about = "is" if len(idle) == 1 else "are"
            raise ModelError(
                f"{' and '.join(idle)} {about} about learning a model: say its kind, and no"
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
        if kind is not None and "persistence" in self.options:
            raise ModelError("persistence is assumed, and no model learned: leave the kind out.")
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

        That is so with conditions, breakdowns, rules for missing cells, rows left out and
        independent people; and with several columns of a table with a row per value, about which
        nothing is assumed.
        """
        said = set(self.options)
        rows = {"where", "by", "missing", "independent", "every", "protect", "persistence"}
        if said & rows or self.keeps:
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
        """Whether a correlation or persistence is assumed, and so nothing learned."""
        return bool({"correlation", "persistence"} & set(self.options))

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
        """What nobody may exceed; None for as much as still fits the ledger.

        For Gaussian noise it goes with its δ, 1e-6 by default.
        """
        given: Any = self.options
        if "mu" in given or "rho" in given:
            mu = given["mu"] if "mu" in given else gaussian_dp.mu_of_rho(given["rho"])
            return gaussian_dp.epsilon_of(mu, given.get("delta", 1e-6))
        self.check_strength()
        return self.options["epsilon"]

    def check_strength(self) -> None:
        """Raise unless it is said how much may leak: nobody else can choose that."""
        ask_for_strength(self.options)

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


STRENGTHS = ("epsilon", "belief", "mu", "rho")
"""Options that say how much may leak; one of them is needed."""


def ask_for_strength(said: Mapping[str, Any]) -> None:
    """Raise unless one of them is given."""
    if not set(STRENGTHS) & set(said):
        raise QueryError(
            "say how much anyone may learn about anyone: epsilon=1.0 (--epsilon 1), at which odds"
            " shift by a factor of at most 2.7; or belief=(0.01, 0.03) (--belief 1%:3%), a belief"
            " before and after. With a ledger, epsilon=None (--rest) is as much as still fits."
        )


def _column_names(said: Any) -> Sequence[Hashable]:
    if isinstance(said, str) or not isinstance(said, Iterable):
        raise QueryError(f"public is a list of columns, such as ['city'], got {said!r}.")
    return tuple(said)


def epsilon_of(belief: Any, said: Mapping[str, Any]) -> float:
    """Return the ε at which a belief moves no further than allowed."""
    if "epsilon" in said:
        raise QueryError("belief= stands in the place of epsilon=: give one of them.")
    if not isinstance(belief, tuple | list) or len(belief) != 2:
        raise QueryError(
            f"a belief is a pair (before, after), such as (0.01, 0.03), got {belief!r}."
        )
    before, after = belief
    found = epsilon_for(prior=before, posterior=after)
    if after < before:
        raise QueryError(
            "a belief is a pair (before, after) of which the second, what it may become at most, is"
            f" above the first, got ({before}, {after}). How far a belief may fall is said by"
            f" epsilon=pdp.epsilon_for(prior={before}, posterior={after})."
        )
    return found


def _of_column(said: Any, column: Hashable) -> Any:
    """Return what was said about a column, or about all of them."""
    return said.get(column, said.get(None)) if isinstance(said, Mapping) else said
