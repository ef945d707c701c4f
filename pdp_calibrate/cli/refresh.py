"""``pdp-calibrate refresh``: what a budget that is refreshed every period really promises."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Annotated

import typer

import pdp_calibrate as pdp
from pdp_calibrate.cli.command import command
from pdp_calibrate.cli.options import AsJson, Force
from pdp_calibrate.cli.output import opened_outputs, print_json, say


@command(
    "pdp-calibrate refresh --epsilon 1.5 --every 30d --persistence 0.8 --states 2",
    "pdp-calibrate refresh -e 0.3 --every d --persistence 0.95 --plot verdict.png",
)
def refresh(
    *,
    epsilon: Annotated[
        float, typer.Option("--epsilon", "-e", help="The plain-DP budget of each period.")
    ],
    persistence: Annotated[
        float,
        typer.Option(help="How likely a record stays as it was from one period to the next."),
    ],
    every: Annotated[
        str,
        typer.Option(help="The length of a period, such as 30d, w or m; units h, d, w, m, q, y."),
    ] = "30d",
    states: Annotated[int, typer.Option(help="How many values a record can have.")] = 2,
    plot: Annotated[
        Path | None, typer.Option(help="Draw it over persistence, into this picture.")
    ] = None,
    force: Force = False,
    json: AsJson = False,
) -> None:
    """Compute what a refreshed budget really promises about the record of any one period.

    People tend to stay as they were from one period to the next, so the answers of all periods leak
    about any one of them. For comparison it shows temporal privacy leakage (Cao et al.) and the sum
    over all periods.
    """
    with opened_outputs(plot, force=force) as files:
        found = pdp.refresh(epsilon=epsilon, every=every, persistence=persistence, states=states)
        if plot is not None:
            files.write(plot, _drawn(found, plot))
        if json:
            print_json(found.to_dict())
        else:
            say(pdp.explain(found))
        if plot is not None:
            say(f"Drawn to {plot}.", quiet=json)


def _drawn(found: pdp.Refresh, plot: Path) -> bytes:
    """Return the picture in the format that the name of its file ends with."""
    kind, content = plot.suffix.removeprefix(".") or "png", io.BytesIO()
    try:
        pdp.plots.refresh(found).savefig(content, format=kind)
    except ValueError as error:  # of matplotlib
        raise pdp.PdpError(f"{plot}: a picture cannot be of the format {kind}.") from error
    return content.getvalue()
