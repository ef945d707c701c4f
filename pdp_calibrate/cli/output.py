"""What commands print: words for people, or JSON and nothing else."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

import pdp_calibrate as pdp
from pdp_calibrate.core.cards import printable

if TYPE_CHECKING:
    from pdp_calibrate.calibration.result import AnyCalibration, AnyRelease
    from pdp_calibrate.core.model import Model


def print_json(described: Any) -> None:
    """Print an object as JSON."""
    typer.echo(json.dumps(described, indent=2))


def check_outputs(
    *paths: Path | None,
    force: bool,
    reports: Iterable[Path | None] = (),
    kept: Iterable[Path | None] = (),
    ledgers: Iterable[Path | None] = (),
) -> None:
    """Refuse files that could not be written, before anything is spent on what goes into them.

    `kept` are files that the command reads, and `ledgers` those that it writes by itself, with a
    lock beside each: no output replaces them, even with --force.
    """
    pages = [path for path in reports if path is not None]
    written = [*(one for one in paths if one is not None), *pages]
    books = [path for path in ledgers if path is not None]
    locks = [path.with_name(path.name + ".lock") for path in books]
    taken = {os.path.realpath(path) for path in (*kept, *books, *locks) if path is not None}
    for path in written:
        place = os.path.realpath(path)
        if place in taken:
            raise pdp.PdpError(
                f"{path} is used by this command for something else: name another file to write."
            )
        taken.add(place)
    for path in written:
        folder = path.parent
        if not folder.is_dir():
            raise pdp.PdpError(f"there is no folder {folder} to write {path.name} into.")
        if path.is_dir():
            raise pdp.PdpError(f"{path} is a folder: name a file to write.")
        if os.path.lexists(path) and not force:
            raise pdp.PdpError(f"{path} exists already: --force overwrites it.")
        if not os.access(path if path.exists() else folder, os.W_OK):
            raise pdp.PdpError(f"{path} cannot be written: permission denied.")
    if pages:
        from pdp_calibrate.show.page import libraries

        libraries()


def write_json(path: Path, described: Any, *, force: bool) -> None:
    """Write an object as JSON; over a file that is there only where that was allowed."""
    with path.open("w" if force else "x", encoding="utf-8") as file:
        file.write(json.dumps(described, indent=2) + "\n")


def show_result(
    found: Any,
    facts: Iterable[tuple[str, str]],
    *,
    output: Path | None,
    force: bool,
    json: bool,
    note: str = "",
) -> None:
    """Write the result to the file asked for, and print it: as JSON, or as facts and a note."""
    if output is not None:
        write_json(output, found.to_dict(), force=force)
    if json:
        print_json(found.to_dict())
    else:
        print_facts(facts)
        say(note, quiet=not note)
    if output is not None:
        say(f"Written to {output}.", quiet=json)


def write_report(
    obj: Any,
    path: Path,
    *,
    ledger: Any = None,
    quiet: bool,
    document: Mapping[str, Any] | None = None,
    layout: Any = None,
) -> None:
    """Write an HTML report, and say so."""
    from pdp_calibrate.show.page import written_to
    from pdp_calibrate.show.summary import Document, summarise

    said = Document(**(document or {}))
    written_to(path, summarise(obj, ledger=ledger, document=said, layout=layout))
    say(f"Report written to {path}.", quiet=quiet)


def say(words: str, *, quiet: bool = False) -> None:
    """Print for people; unprintable characters in names and values are escaped."""
    if not quiet:
        typer.echo(printable(words, lines=True))


def print_facts(facts: Iterable[tuple[str, str]]) -> None:
    """Print names and values below each other."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    for name, value in facts:
        table.add_row(Text(printable(name)), Text(printable(value)))
    Console(highlight=False).print(table)


def print_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table; its cells are text, never markup."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table()
    for heading in headings:
        table.add_column(heading)
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    Console(highlight=False).print(table)


def print_status(status: Mapping[str, Any]) -> None:
    """Print what is spent and left of a budget."""
    print_facts(
        (name, f"{value:.6g}" if isinstance(value, float) else str(value))
        for name, value in status.items()
    )


def described_leakage(leakage: pdp.Leakage, model: Model) -> dict[str, Any]:
    """Describe a bracket for JSON; for a private model only the upper end."""
    found = leakage.to_dict()
    return {"value": found["value"]} if model.provenance == "private" else found


def in_words(leakage: pdp.Leakage, model: Model) -> str:
    """Say how much leaks, and to whom unless the model is private."""
    amount = f"{leakage.value:.4g}" if leakage.exact else f"at most {leakage.value:.4g}"
    if leakage.unit != "epsilon":
        amount += f" ({leakage.unit})"
    elif leakage.measure.delta:
        amount += f" (at δ = {leakage.measure.delta:g})"
    witness = leakage.witness
    if witness is None or model.provenance == "private":
        return amount
    from pdp_calibrate.show.words import entry, knowledge

    target = entry(witness.target, model)
    return f"{amount}, to someone who attacks {target} and {knowledge(witness.known, model)}"


def total_in_words(found: AnyCalibration) -> str:
    """Describe the bound on what anybody learns, and its parts."""
    from pdp_calibrate.show.words import parts_of_total

    return f"{found.total_epsilon:.4g}{parts_of_total(found)}"


def law_of(model: Model) -> list[tuple[str, str]]:
    """Return the line that says which law of the values is assumed; none where the model is it."""
    return [] if model.assuming is None else [("assuming", model.assuming)]


def within(value: Any) -> str:
    """Write how far noise reaches: one number, or one for each answer."""
    from pdp_calibrate.core.numbers import width

    if isinstance(value, tuple):
        return ", ".join(within(one) for one in value)
    return width(float(value))


def answer_in_words(value: Any, half_width: Any) -> str:
    """Say a noisy answer, and how far its noise reaches."""
    return f"{number(value)}   (±{within(half_width)} in 95 % of releases)"


def number(value: Any) -> str:
    """Write a number, several, or the counts of a histogram."""
    if isinstance(value, int | float):
        from pdp_calibrate.core.numbers import ordinary

        return ordinary(value, digits=6)
    if isinstance(value, tuple):
        return ", ".join(number(one) for one in value)
    return ", ".join(f"{name}: {number(one)}" for name, one in value.to_dict().items())


def calibration_facts(found: AnyCalibration, texts: list[str]) -> list[tuple[str, str]]:
    """Say what a calibration found, in names and values."""
    promise = ("leakage", f"{in_words(found.leakage, found.model)} (ε = {total_in_words(found)})")
    others = {"plain DP": found.baselines["dp"], "group DP": found.baselines["group"]}
    law = "whole-number Laplace" if found.is_integer else "Laplace"
    if found.noise == "gaussian":
        law = "Gaussian, rounded to whole numbers" if found.is_integer else "Gaussian"
        promise = (
            promise[0],
            f"{promise[1]}, beside δ = {found.total_delta:g}, μ = {found.mu:.4g}",
        )
    widths = found.half_widths_in_words(then=" in 95 % of releases")
    noises = [
        ("scale", f"{number(found.scales[0])} ({law}, in {found.scale_units[0]})"),
        ("noise", widths[0]),
    ]
    if len(found.queries) > 1:
        each = zip(texts, found.scales, found.scale_units, widths, strict=True)
        noises = [
            (text, f"scale {number(scale)} (in {unit}), {width}")
            for text, scale, unit, width in each
        ]
    return [
        *noises,
        promise,
        *law_of(found.model),
        *((f"scale of {name}", number(scale)) for name, scale in others.items() if scale),
    ]


def release_facts(found: AnyRelease, texts: list[str]) -> list[tuple[str, str]]:
    """Say what a release came out as, and how far off it may be."""
    answers = list(zip(found.values, found.half_widths(), strict=True))
    names = (
        texts if len(texts) == len(answers) else [f"answer {n + 1}" for n in range(len(answers))]
    )
    return [
        *(
            (name, answer_in_words(value, wide))
            for name, (value, wide) in zip(names, answers, strict=True)
        ),
        ("epsilon", total_in_words(found.calibration)),
        *law_of(found.calibration.model),
    ]
