"""What commands print: words for people, or JSON and nothing else."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

import pdp_calibrate as pdp
from pdp_calibrate.errors import printable
from pdp_calibrate.ledger.store import lock_of
from pdp_calibrate.show.output_file import OutputFile

if TYPE_CHECKING:
    from pdp_calibrate.calibration.result import AnyCalibration, AnyRelease
    from pdp_calibrate.core.model import Model


def print_json(described: Any) -> None:
    """Print an object as JSON."""
    typer.echo(json.dumps(described, indent=2))


class Outputs:
    """The files that a command writes, open."""

    def __init__(self, files: Mapping[Path, OutputFile]) -> None:
        self._files = files

    def write(self, path: Path | None, content: str | bytes) -> None:
        """Write one of them as a whole; nothing where no file was asked for."""
        if path is not None:
            self._files[path].write(content)

    def json(self, path: Path | None, described: Any) -> None:
        """Write an object as JSON."""
        if path is not None:
            self.write(path, json.dumps(described, indent=2) + "\n")


@contextlib.contextmanager
def opened_outputs(
    *paths: Path | None,
    force: bool,
    reports: Iterable[Path | None] = (),
    kept: Iterable[Path | None] = (),
    ledgers: Iterable[Path | None] = (),
    dry: bool = False,
) -> Iterator[Outputs]:
    """Open files before anything is spent on what goes into them, or refuse.

    `kept` are files that the command reads, and `ledgers` those that it writes by itself, with a
    lock beside each: no output replaces them, even with --force. A `dry` command writes nothing.
    """
    pages = [path for path in reports if path is not None]
    written = [*(one for one in paths if one is not None), *pages]
    books = [path for path in ledgers if path is not None]
    locks = [lock_of(path) for path in books]
    taken = {os.path.realpath(path) for path in (*kept, *books, *locks) if path is not None}
    for path in written:
        place = os.path.realpath(path)
        if place in taken:
            raise pdp.PdpError(
                f"{path} is used by this command for something else: name another file to write."
            )
        taken.add(place)
    if pages:
        from pdp_calibrate.show.page import libraries

        libraries()
    with contextlib.ExitStack() as open_files:
        yield Outputs(
            {
                path: open_files.enter_context(OutputFile(path, overwrite=force, how="--force"))
                for path in ([] if dry else written)
            }
        )


class UndeliveredError(pdp.PdpError):
    """An answer was released and charged, and did not get where it was to go."""


class Delivery:
    """An answer that was charged for, on its way to the person who asked.

    Leaving the context by an error prints the answer, unless it has arrived somewhere, and says
    what was spent.

    Parameters
    ----------
    described
        Returns the answer as JSON holds it.
    charged
        Returns what was spent, in a sentence.
    what
        What it is, and what was done.
    """

    def __init__(
        self,
        described: Callable[[], Any],
        charged: Callable[[], str],
        *,
        what: str = "answer was released",
    ) -> None:
        self._described, self._charged, self._what = described, charged, what
        self._where = ""

    def arrived(self, where: str) -> None:
        """Note that the whole answer is somewhere."""
        self._where = self._where or where

    def __enter__(self) -> Delivery:
        """Begin to hand it over."""
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        """Make sure that it has arrived."""
        if error is None:
            return
        if not self._where:
            text = json.dumps(self._described(), indent=2, default=str)
            self._where = _printed_anywhere(text, is_open=not isinstance(error, SystemExit))
        try:
            charged = self._charged()
        except Exception:  # noqa: BLE001 - the ledger cannot be read any more; the answer matters
            charged = "What it cost is spent."
        words = f"The {self._what} and {self._where}: keep it. {charged}".rstrip()
        if isinstance(error, pdp.PdpError | OSError | UnicodeError | SystemExit):
            raise UndeliveredError(f"{_reason(error)} {words}") from error
        say_on_stderr(words)  # and the error follows, as it is


def _reason(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return "The output was closed."
    if isinstance(error, OSError) and not isinstance(error, pdp.PdpError):
        return f"{error.filename or 'The output'}: {error.strerror or type(error).__name__}."
    return f"{str(error).rstrip('.')}."


def _printed_anywhere(text: str, *, is_open: bool) -> str:
    """Print to stdout or, where that is not open or fails, to stderr; return where."""
    if is_open:
        try:
            typer.echo(text)
        except (OSError, ValueError):
            _close_stdout()
        else:
            return "is printed instead"
    with contextlib.suppress(OSError, ValueError):
        typer.echo(text, err=True)
        return "is printed above, on stderr"
    return "could not be printed"


def _close_stdout() -> None:
    """Let nothing be written to a stdout that failed, also not when the program ends."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def say_on_stderr(words: str) -> None:
    """Print one line for people on stderr, which may be closed."""
    with contextlib.suppress(OSError, ValueError):
        typer.echo(printable(" ".join(words.split())), err=True)


def show_result(
    found: Any,
    facts: Callable[[], Iterable[tuple[str, str]]],
    *,
    files: Outputs,
    output: Path | None,
    json: bool,
    note: Callable[[], str] = str,
    delivery: Delivery | None = None,
) -> None:
    """Write the result to the file asked for, and print it: as JSON, or as facts and a note."""
    described = found.to_dict()
    files.json(output, described)
    if delivery is not None and output is not None:
        delivery.arrived(f"is in {output}")
    if json:
        print_json(described)
    else:
        print_facts(facts())
        words = note()
        say(words, quiet=not words)
    if delivery is not None:
        delivery.arrived("was printed")
    if output is not None:
        say(f"Written to {output}.", quiet=json)


def write_report(
    obj: Any,
    path: Path | None,
    *,
    files: Outputs,
    ledger: Any = None,
    quiet: bool,
    document: Mapping[str, Any] | None = None,
    layout: Any = None,
) -> None:
    """Write an HTML report, where one was asked for, and say so."""
    if path is None:
        return
    from pdp_calibrate.show.page import render
    from pdp_calibrate.show.summary import Document, summarise

    said = Document(**(document or {}))
    files.write(path, render(summarise(obj, ledger=ledger, document=said, layout=layout)))
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


def learning_of(found: AnyCalibration) -> list[tuple[str, str]]:
    """Return the line that says what is covered of the error of learning; none if not learned."""
    from pdp_calibrate.core.coverage import learned_as
    from pdp_calibrate.show.words import cost_of_a_miss, miss_of

    coverage = learned_as(found.model)
    if coverage is None:
        return []
    cost = cost_of_a_miss(miss_of(found), delta=found.delta)
    likely = "" if coverage.beta is None else f" (probability at most β = {coverage.beta:.2g})"
    how = f"{coverage.in_words}; where it misses the truth{likely}, the answer leaks up to {cost}"
    return [("the model", how)]


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
        *learning_of(found),
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
        *learning_of(found.calibration),
    ]
