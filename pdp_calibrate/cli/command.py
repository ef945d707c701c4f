"""What every command shares: options in groups, errors in one line, warnings, exit codes."""

from __future__ import annotations

import contextlib
import functools
import inspect
import typing
import warnings
from collections.abc import Callable
from typing import Annotated, Any

import typer

import pdp_calibrate as pdp
from pdp_calibrate.cli.options import parameters_of, said
from pdp_calibrate.cli.output import UndeliveredError
from pdp_calibrate.errors import printable

BAD_INPUT, BUDGET_EXCEEDED, UNDELIVERED = 2, 3, 4


def command(*examples: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a command of a function; its help ends with the lines of examples.

    A parameter that represents options of a job becomes one option for each of them. Errors of this
    library end the command with one line on stderr and exit code 2; 3 where a budget would be
    exceeded; 4 where an answer was released and could not be written. Its warnings are one line on
    stderr each.
    """

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        hints = typing.get_type_hints(function, include_extras=True)
        groups: dict[str, tuple[type, list[str]]] = {}
        parameters: list[inspect.Parameter] = []
        for name, parameter in inspect.signature(function).parameters.items():
            kind = hints[name]
            if typing.get_origin(kind) is Annotated and typing.is_typeddict(kind.__metadata__[0]):
                what, chosen = kind.__metadata__
                fields = parameters_of(what, chosen)
                groups[name] = what, [field.name for field in fields]
                parameters += fields
            else:
                parameters.append(parameter.replace(annotation=kind, kind=parameter.KEYWORD_ONLY))

        @functools.wraps(function)
        def run(**given: Any) -> None:
            parts = {
                name: (what, {field: given.pop(field) for field in fields})
                for name, (what, fields) in groups.items()
            }

            def work() -> None:
                grouped = {name: said(what, fields) for name, (what, fields) in parts.items()}
                function(**given, **grouped)  # a group may be called as one of its fields

            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # what libraries say among themselves
                for ours in (pdp.PrivacyLeakWarning, pdp.ModelFitWarning):
                    warnings.simplefilter("always", ours)
                warnings.showwarning = _warn
                _reporting_errors(work)

        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {one.name: one.annotation for one in parameters}
        run.__doc__ = help_text(inspect.getdoc(function) or "", *examples)
        return run

    return decorate


def help_text(words: str, *examples: str) -> str:
    """Put paragraphs on one line each, for the terminal to wrap; keep the lines of examples."""
    paragraphs = [" ".join(one.split()) for one in words.split("\n\n")]
    kept = ["\b", *(line.replace("[", "\\[") for line in examples)]  # [ would begin a style
    return "\n\n".join([*paragraphs, "\n".join(kept)] if examples else paragraphs)


def _reporting_errors(work: Callable[[], None]) -> None:
    try:
        work()
    except pdp.PdpError as error:
        _complain(str(error), error)
        raise typer.Exit(_code_of(error)) from None
    except OverflowError as error:
        _complain("a number is too large: change the unit of the values, or narrow a range", error)
        raise typer.Exit(BAD_INPUT) from None
    except OSError as error:
        _complain(f"{error.filename or 'a file'}: {error.strerror or type(error).__name__}", error)
        raise typer.Exit(BAD_INPUT) from None


def _code_of(error: pdp.PdpError) -> int:
    if isinstance(error, UndeliveredError):
        return UNDELIVERED
    return BUDGET_EXCEEDED if isinstance(error, pdp.BudgetExceededError) else BAD_INPUT


def _complain(message: str, error: Exception) -> None:
    typer.echo(f"error: {printable(' '.join(message.split()))}", err=True)
    picture = getattr(error, "picture", None)
    if picture:
        typer.echo(printable(picture, lines=True), err=True)


def _warn(message: Warning | str, *_: Any, **__: Any) -> None:
    with contextlib.suppress(OSError):  # also where stderr is full or closed
        typer.echo(f"warning: {printable(' '.join(str(message).split()))}", err=True)
