"""Options that commands share, and what they mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import pdp_calibrate as pdp

if TYPE_CHECKING:
    from pdp_calibrate.core.model import Model
    from pdp_calibrate.frames.files import Source
    from pdp_calibrate.jobs.grammar import Asked
    from pdp_calibrate.jobs.settings import ModelSettings
    from pdp_calibrate.jobs.verbs import Resolved


_ROWS, _MODEL, _SEARCH = "Rows", "How the values are correlated", "Search"


AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else, to stdout.")]


Out = Annotated[Path | None, typer.Option("--output", "-o", help="Write the result, as JSON.")]


Force = Annotated[bool, typer.Option("--force", help="Overwrite files that exist already.")]


TimeLimit = Annotated[
    float, typer.Option(help="Seconds in which the file's claim must be proved again.")
]


Report = Annotated[Path | None, typer.Option("--report", help="Write an HTML report too.")]


LedgerFile = Annotated[
    Path | None, typer.Option("--ledger", help="A ledger: its budget is checked and charged.")
]


AnchorFile = Annotated[
    Path | None,
    typer.Option("--anchor", help="The second file, elsewhere, that must agree with the ledger."),
]


Epsilon = Annotated[
    float, typer.Option("--epsilon", "-e", help="Nobody's log-odds may move by more than this.")
]


Queries = Annotated[
    list[str],
    typer.Option(
        "--query",
        "-q",
        help="sum(a,b)  mean(income)  count(status=1,2)  histogram(city)  linear(2*a-b); names"
        " with other characters in quotes, no name for all. Several are released together.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class RowOptions:
    """Where the rows are."""

    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE",
            help="CSV, TSV, parquet or a folder of parquet files; a model in JSON where no rows"
            " are needed.",
        ),
    ] = None
    delimiter: Annotated[
        str | None,
        typer.Option(help="What separates columns, such as ';'.", rich_help_panel=_ROWS),
    ] = None
    sql: Annotated[
        str | None,
        typer.Option(
            help="Instead of FILE, a query for DuckDB: \"select * from 'p/*.parquet'\".",
            rich_help_panel=_ROWS,
        ),
    ] = None
    database: Annotated[
        Path | None,
        typer.Option(help="The DuckDB database for --sql.", rich_help_panel=_ROWS),
    ] = None

    @property
    def source(self) -> Source:
        """Where to read rows from."""
        from pdp_calibrate.frames.files import Source

        if self.file is None and self.sql is None:
            raise pdp.PdpError("name a FILE with rows, or give --sql.")
        return Source(
            file=self.file, delimiter=self.delimiter, sql=self.sql, database=self.database
        )

    @property
    def stored_model(self) -> Path | None:
        """The file, where it is a model and not rows."""
        return self.file if self.file is not None and self.file.suffix == ".json" else None


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """How the values are correlated."""

    model: Annotated[
        Path | None,
        typer.Option(help="A model in JSON, from `fit` or Python.", rich_help_panel=_MODEL),
    ] = None
    kind: Annotated[
        str | None,
        typer.Option(
            help="Learn from the rows: table (discrete columns), gaussian (numbers), groups"
            " (households; yes/no values unless --bounds), chain (states along time), series"
            " (numbers along time).",
            rich_help_panel=_MODEL,
        ),
    ] = None
    public: Annotated[
        bool,
        typer.Option(
            "--public", help="The rows it is learned from are public.", rich_help_panel=_MODEL
        ),
    ] = False
    columns: Annotated[
        str | None,
        typer.Option(
            help="Learn from these columns of a wide table (a,b,c); all if not given.",
            rich_help_panel=_MODEL,
        ),
    ] = None
    groups: Annotated[
        str | None,
        typer.Option(
            "--groups",
            "--by",
            help="A row per value: the column that tells households, patients … apart.",
            rich_help_panel=_MODEL,
        ),
    ] = None
    order_by: Annotated[
        str | None,
        typer.Option(help="A row per value: the column of times.", rich_help_panel=_MODEL),
    ] = None
    time_format: Annotated[
        str | None,
        typer.Option(
            help="How that column is written where it is text, %d/%m/%Y; by default it must be ISO"
            " 8601.",
            rich_help_panel=_MODEL,
        ),
    ] = None
    bounds: Annotated[
        list[str],
        typer.Option(
            help="Public range of a column, income=0:100000, or of all, 0:1. Values are clamped.",
            rich_help_panel=_MODEL,
        ),
    ] = ()  # type: ignore[assignment]  # typer wants a list, and a default must not change
    correlation: Annotated[
        str | None,
        typer.Option(
            help="Assume jointly Gaussian values, with one common correlation in a group: 0.3, or"
            " any in 0:0.4. With --groups and neither this nor a model, members may depend in any"
            " way (group privacy).",
            rich_help_panel=_MODEL,
        ),
    ] = None
    assume: Annotated[
        str | None,
        typer.Option(
            help="gaussian: the whole numbers that --correlation is about are measurements, not"
            " codes.",
            rich_help_panel=_MODEL,
        ),
    ] = None
    domain: Annotated[
        list[str],
        typer.Option(
            help="Possible values of a column, status=0,1,2. Counts in groups without a model need"
            " them, unless the type of the column lists them: boolean, or ENUM in DuckDB.",
            rich_help_panel=_MODEL,
        ),
    ] = ()  # type: ignore[assignment]
    smoothing: Annotated[
        float | None,
        typer.Option(help="Added to every count when learning.", rich_help_panel=_MODEL),
    ] = None
    confidence: Annotated[
        float | None,
        typer.Option(
            help="Cover the error of the estimate with this probability, such as 0.95. A table"
            " then needs --domain for every column.",
            rich_help_panel=_MODEL,
        ),
    ] = None
    covariance: Annotated[
        str | None,
        typer.Option(
            help="For gaussian: auto, empirical, ledoit-wolf, oas, graphical-lasso.",
            rich_help_panel=_MODEL,
        ),
    ] = None
    structure: Annotated[
        str | None,
        typer.Option(help="For table: joint, or another structure.", rich_help_panel=_MODEL),
    ] = None

    option: Annotated[
        list[str],
        typer.Option(
            help="A further option of the estimator, such as role=member or initial=estimated.",
            rich_help_panel=_MODEL,
        ),
    ] = ()  # type: ignore[assignment]

    def settings(self, *, epsilon: float | None = None, value: str | None = None) -> ModelSettings:
        """Return what the options say; `epsilon` is the budget of learning, if it has one."""
        from pdp_calibrate.jobs.settings import ModelSettings

        options = dict(_named_value(one) for one in self.option) | {
            "smoothing": self.smoothing,
            "confidence": self.confidence,
            "covariance": self.covariance,
            "structure": self.structure,
        }
        return ModelSettings(
            file=self.model,
            kind=self.kind,  # type: ignore[arg-type]  # checked there
            public=self.public,
            epsilon=epsilon,
            columns=None if self.columns is None else tuple(self.columns.split(",")),
            value=value,
            groups=self.groups,
            order_by=self.order_by,
            time_format=self.time_format,
            bounds=dict(_named_range(one) for one in self.bounds),
            correlation=None if self.correlation is None else _number_or_range(self.correlation),
            assume=self.assume,
            domains=dict(_named_values(one) for one in self.domain),
            options={name: value for name, value in options.items() if value is not None},
        )


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """Who may attack, and how long to search."""

    adversaries: Annotated[
        str | None,
        typer.Option(
            help="all, weakest, strongest, knowing:1:3 (between 1 and 3 others),"
            " exactly:TARGET:KNOWN,KNOWN.",
            show_default="all",
            rich_help_panel=_SEARCH,
        ),
    ] = None
    rows: Annotated[
        int | None,
        typer.Option(
            help="With a model and no rows: how many rows an answer will be about.",
            rich_help_panel=_SEARCH,
        ),
    ] = None
    time_limit: Annotated[
        float | None,
        typer.Option(
            help="Seconds for the search; then a larger, still proved scale.",
            rich_help_panel=_SEARCH,
        ),
    ] = None

    @property
    def chosen(self) -> pdp.Adversaries | None:
        """Who may attack; None if not said."""
        from pdp_calibrate.jobs.settings import adversaries_from

        return None if self.adversaries is None else adversaries_from(self.adversaries)


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """Rows, model and queries of a command, ready for the library."""

    frame: Any
    """The rows; None where only a model is given."""
    asked: list[Asked]
    """The queries as written."""
    settings: ModelSettings
    """How the values are correlated."""
    found: list[Resolved]
    """For each query, what is asked of which model."""

    @property
    def model(self) -> Model:
        """The model that all queries are about."""
        return self.found[0].model

    @property
    def query(self) -> Any:
        """The query, or the list of them."""
        return self.found[0].query if len(self.found) == 1 else [one.query for one in self.found]

    @property
    def rows(self) -> int:
        """How many rows an answer is about."""
        return self.found[0].rows


def prepare(
    rows: RowOptions,
    model: ModelOptions,
    queries: Sequence[str],
    *,
    number: int | None = None,
    ledger: pdp.Ledger | None = None,
) -> Prepared:
    """Read the queries, then the rows, and find the model."""
    from pdp_calibrate.jobs.asking import prepared, query_about
    from pdp_calibrate.jobs.grammar import parse_query
    from pdp_calibrate.jobs.settings import read_model
    from pdp_calibrate.jobs.verbs import Resolved

    asked = [parse_query(text) for text in queries]
    settings = model.settings()
    if rows.stored_model is not None:
        stored = read_model(rows.stored_model)
        found = [
            Resolved(model=stored, query=query_about(one, settings, stored), rows=number or 1)
            for one in asked
        ]
        return Prepared(frame=None, asked=asked, settings=settings, found=found)
    if number is not None:
        raise pdp.PdpError("--rows is for a model without data; here the rows are counted.")
    frame = rows.source.read()
    found = prepared(
        frame, asked, settings, otherwise=None if ledger is None else lambda: ledger.model
    )
    return Prepared(frame=frame, asked=asked, settings=settings, found=found)


def _number_or_range(text: str) -> Any:
    return _range(text) if ":" in text else _number(text)


def _range(text: str) -> tuple[float, float]:
    low, _, high = text.partition(":")
    return _number(low), _number(high)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise pdp.PdpError(f"a number or a range LO:HI is needed, got {text!r}.") from None


def _named_range(text: str) -> tuple[str | None, tuple[float, float]]:
    name, equals, numbers = text.rpartition("=")
    return (name if equals else None), _range(numbers)


def _named_value(text: str) -> tuple[str, Any]:
    name, values = _named_values(text, what="an option is written NAME=VALUE")
    return name, values[0] if len(values) == 1 else values


def _named_values(
    text: str, *, what: str = "a domain is written COLUMN=VALUE,VALUE"
) -> tuple[str, tuple[Any, ...]]:
    from pdp_calibrate.jobs.grammar import parse_values

    name, equals, values = text.partition("=")
    if not equals or not values.strip():
        raise pdp.PdpError(f"{what}; got {text!r}.")
    return name, parse_values(values)
