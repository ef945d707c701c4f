"""``pdp-calibrate``: the command line. One file per command, no mathematics."""

from __future__ import annotations

import typer

from pdp_calibrate.cli.demo import demo

app = typer.Typer(
    name="pdp-calibrate",
    help="Calibrate differential-privacy noise for correlated data.",
    no_args_is_help=True,
    add_completion=False,
)
app.command()(demo)


@app.callback()
def _main() -> None:
    """Calibrate differential-privacy noise for correlated data."""


def main() -> None:
    """Run the command line."""
    app()
