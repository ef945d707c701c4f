"""What commands print: words for people, or JSON and nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

import pdp_calibrate as pdp

if TYPE_CHECKING:
    from pdp_calibrate.models import Model


def print_json(described: Any) -> None:
    """Print an object as JSON."""
    typer.echo(json.dumps(described, indent=2))


def write_json(path: Path, described: Any, *, quiet: bool) -> None:
    """Write an object as JSON, and say so."""
    path.write_text(json.dumps(described, indent=2) + "\n", encoding="utf-8")
    say(f"Written to {path}.", quiet=quiet)


def write_report(obj: Any, path: Path, *, ledger: Any = None, quiet: bool) -> None:
    """Write an HTML report, and say so."""
    from pdp_calibrate.report import report

    report(obj, path, ledger=ledger)
    say(f"Report written to {path}.", quiet=quiet)


def say(words: str, *, quiet: bool = False) -> None:
    """Print a line for people."""
    if not quiet:
        typer.echo(words)


def print_facts(facts: Iterable[tuple[str, str]]) -> None:
    """Print names and values below each other."""
    from rich.console import Console
    from rich.table import Table

    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    for name, value in facts:
        table.add_row(name, value)
    Console(highlight=False).print(table)


def print_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table."""
    from rich.console import Console
    from rich.table import Table

    table = Table()
    for heading in headings:
        table.add_column(heading)
    for row in rows:
        table.add_row(*row)
    Console(highlight=False).print(table)


def described_leakage(leakage: pdp.Leakage, model: Model) -> dict[str, Any]:
    """Describe a bracket for JSON; of a private model nothing but the upper end."""
    found = leakage.to_dict()
    return {"value": found["value"]} if model.provenance == "private" else found


def in_words(leakage: pdp.Leakage, model: Model) -> str:
    """Say how much leaks, and to whom unless the model is private."""
    amount = f"{leakage.value:.4g}" if leakage.exact else f"at most {leakage.value:.4g}"
    witness = leakage.witness
    if witness is None or model.provenance == "private":
        return amount
    from pdp_calibrate.explain.phrases import entry, knowledge

    target = entry(witness.target, model)
    return f"{amount}, to someone who attacks {target} and {knowledge(witness.known, model)}"


def law_of(model: Model) -> list[tuple[str, str]]:
    """Return the line that says which law of the values is assumed; none where the model is it."""
    return [] if model.assuming is None else [("assuming", model.assuming)]


def number(value: Any) -> str:
    """Write a number, or the counts of a histogram."""
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if 1e4 <= abs(value) < 1e15 else f"{value:.6g}"
    return ", ".join(f"{name}: {number(one)}" for name, one in value.to_dict().items())
