"""``pdp-calibrate explore``: a local page on which one can watch leakage change."""

from __future__ import annotations

import contextlib
import os
import signal
import tempfile
from pathlib import Path
from typing import Annotated

import typer

import pdp_calibrate as pdp
from pdp_calibrate.cli.command import command
from pdp_calibrate.cli.output import say


@command(
    "pdp-calibrate explore people.csv",
    "pdp-calibrate explore",
    "pdp-calibrate explore --demo",
    "pdp-calibrate explore plan.toml --no-browser --port 8000",
)
def explore(
    *,
    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help="Rows (CSV, parquet), a model (.json), or a plan."),
    ] = None,
    demo: Annotated[bool, typer.Option("--demo", help="Begin with 537 children of Ohio.")] = False,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in the browser.")
    ] = True,
    port: Annotated[int, typer.Option(help="The port on 127.0.0.1; 0 for any that is free.")] = 0,
) -> None:
    """Open a page on this computer: change what you assume, and see the noise that it takes.

    Without a file, the columns of the table are typed on the page.

    It answers only requests with the token in its address, loads nothing from elsewhere, and reads
    no secret value before you release an answer, into a ledger. The token stands in the terminal
    and in a file that only you can read, through which the browser opens: not on its command line.
    """
    from pdp_calibrate.exploring.server import framework, serve
    from pdp_calibrate.exploring.subject import of_nothing, of_rows, open_subject

    if file is not None and demo:
        raise pdp.PdpError("--demo has rows of its own: leave it or FILE out.")
    framework()

    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that the folder is removed
    with tempfile.TemporaryDirectory(prefix="pdp-calibrate-") as folder:

        def announce(address: str) -> None:
            typer.echo(address)  # alone on its line, not wrapped, and flushed
            if browser:
                import webbrowser

                webbrowser.open(_leading_to(address, Path(folder)).as_uri())

        if file is not None:
            subject = open_subject(file)
        elif not demo:
            subject = of_nothing()
        else:
            from pdp_calibrate.cli.ohio import wheeze

            children = Path(folder) / "children.csv"
            wheeze().to_csv(children, index=False)
            subject = of_rows(
                children, {"kind": "count", "column": "", "values": "1", "alike": "public"}
            )
        with contextlib.suppress(KeyboardInterrupt):  # which is how it ends
            serve(subject, port=port, announce=announce)
    say("The page is closed.")


def _leading_to(address: str, folder: Path) -> Path:
    """Write a page that only this user can read, which sends the browser on to the address.

    The command line of the browser can be read by everybody on this computer: the token must not
    stand in it.
    """
    page = folder / "open.html"
    handle = os.open(page, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(
            '<!DOCTYPE html><meta charset="utf-8"><meta name="referrer" content="no-referrer">'
            f'<meta http-equiv="refresh" content="0; url={address}"><title>pdp-calibrate</title>'
            f'<a href="{address}">To the page</a>\n'
        )
    return page
