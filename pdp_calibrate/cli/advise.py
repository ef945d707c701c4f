"""``pdp-calibrate advise``: which model fits a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, cast

import typer

import pdp_calibrate as pdp
from pdp_calibrate.cli.command import command
from pdp_calibrate.cli.options import AsJson, Said, TableOptions, source_of
from pdp_calibrate.cli.output import print_json, say
from pdp_calibrate.jobs.job import Options

if TYPE_CHECKING:
    from pdp_calibrate.jobs.advise import Learn

AnswerOptions = Annotated[
    Said,
    Options,
    (
        "groups", "order_by", "independent", "max_group_size", "bounds", "domains", "correlation",
        "persistence", "epsilon",
    ),
]  # fmt: skip


@command(
    "pdp-calibrate advise people.csv",
    'pdp-calibrate advise people.csv -q "mean(income)" --groups household \\',
    "    --bounds income=0:100000 --correlation 0:0.4",
)
def advise(
    *,
    table: TableOptions,
    options: AnswerOptions,
    query: Annotated[
        str | None, typer.Option("--query", "-q", help="What is asked, such as mean(income).")
    ] = None,
    learn: Annotated[
        str | None,
        typer.Option(help="Learn how alike they are: from 'public' rows, or under 'dp'."),
    ] = None,
    json: AsJson = False,
) -> None:
    """Name the model that fits a table, the call, what it assumes, and what the others cost.

    It asks at most four questions, which options answer: what is asked, which rows belong together,
    which values are possible, how alike people are. No value of the table is read.
    """
    source = source_of(table)
    name = "people.csv" if source.file is None else str(source.file)
    found = pdp.advise(
        source.read(), query=query, learn=cast("Learn | None", learn), file=name, **options
    )
    if json:
        print_json(found.to_dict())
    else:
        say(str(found))
