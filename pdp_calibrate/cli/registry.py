"""``pdp-calibrate registry``: an entry for the public registry of deployments."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import pdp_calibrate as pdp
from pdp_calibrate.cli.command import command
from pdp_calibrate.cli.options import AnchorFile, AsJson, Force, TimeLimit
from pdp_calibrate.cli.output import opened_outputs, print_json, say


@command(
    'pdp-calibrate registry release.json --name "Mean income" --curator "Statistics office" \\',
    '    --use "yearly statistics" --region Norway --author "A. Steward" -o mean_income.yaml',
)
def registry(
    *,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A release or calibration, in JSON.")
    ],
    name: Annotated[str, typer.Option(help="What the data product is called.")],
    curator: Annotated[
        list[str], typer.Option(help="Who publishes it; several times for several.")
    ],
    use: Annotated[str, typer.Option(help="What it is for.")],
    region: Annotated[str, typer.Option(help="Which region it describes, or whose laws apply.")],
    author: Annotated[list[str], typer.Option(help="Who writes this entry.")],
    description: Annotated[str | None, typer.Option(help="What it is, in a sentence.")] = None,
    date: Annotated[str | None, typer.Option(help="When published, YYYY-MM-DD.")] = None,
    sector: Annotated[
        str | None,
        typer.Option(help="Technology, Healthcare, Education, Government, Energy or Finance."),
    ] = None,
    sources: Annotated[str | None, typer.Option(help="Where more can be read.")] = None,
    justification: Annotated[
        str | None,
        typer.Option(help="Why these choices were made; this makes it an entry of tier 3."),
    ] = None,
    ledger: Annotated[
        Path | None, typer.Option(help="The ledger that counts all releases about these people.")
    ] = None,
    anchor: AnchorFile = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the entry to this YAML file.")
    ] = None,
    time_limit: TimeLimit = 60.0,
    force: Force = False,
    json: AsJson = False,
) -> None:
    """Write the entry of the public registry of differential-privacy deployments.

    Unit, variant, parameters, what is not protected, composition and mechanism come from the file;
    you give the rest. The entry is checked against the fields of the registry's schema.
    """
    from pdp_calibrate.jobs.load import explainable
    from pdp_calibrate.show.registry import as_yaml, registry_entry

    kept = [file]
    with opened_outputs(output, force=force, kept=kept, ledgers=[ledger, anchor]) as files:
        found = explainable(file, time_limit=time_limit)
        if not isinstance(found, pdp.Calibration | pdp.Release):
            raise pdp.PdpError(
                f"{file} holds a ledger: name a release, and the ledger with --ledger."
            )
        entry = registry_entry(
            found,
            name=name,
            curators=curator,
            intended_use=use,
            region=region,
            authors=author,
            description=description,
            published=date,
            sector=sector,  # type: ignore[arg-type]  # checked against the schema
            sources=sources,
            justification=justification,
            ledger=None if ledger is None else pdp.Ledger.open(ledger, anchor=anchor),
        )
        text = as_yaml(entry)
        files.write(output, text + "\n")
        if output is not None:
            say(f"Written to {output}.", quiet=json)
        if json:
            print_json(entry)
        elif output is None:
            say(text)
