"""What of the declaration is taken where, and methods in Python that take it.

Their signatures, docstrings and refusals come from there.
"""

from __future__ import annotations

import functools
import inspect
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import ParamSpec, TypeVar, get_args

from pdp_calibrate.jobs.job import OPTIONS, Options, refuse_unknown

TABLE = (
    "groups", "order_by", "time_format", "every", "independent", "public", "max_group_size",
    "large", "keep_by", "keep_seed", "protect", "bounds", "domains",
)  # fmt: skip
"""What is said about people once, with their budget."""


ASKED = (
    "epsilon", "belief", "noise", "delta", "mu", "rho", "correlation", "persistence", "assume",
    "where", "by", "missing", "count", "time_limit",
)  # fmt: skip
"""What is said with each question about them."""


P = ParamSpec("P")


T = TypeVar("T")


def with_options(
    where: str, own_words: Mapping[str, str], names: Sequence[str]
) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Make methods that refuse unknown arguments by name, and show the options they take.

    ``**options`` stand for those of `Options` that are named: in the signature, and in the
    docstring, each with its type, default and meaning.

    Parameters
    ----------
    where
        What the methods are called on, in messages.
    own_words
        What their other arguments mean.
    names
        The options that they take.
    """

    def method(function: Callable[P, T]) -> Callable[P, T]:
        own = inspect.signature(function)
        parameters = [one for one in own.parameters.values() if one.kind is not one.VAR_KEYWORD]
        known = [one.name for one in parameters[1:]]
        if len(parameters) < len(own.parameters):
            words = {name: own_words[name] for name in known}
            words |= {name: OPTIONS[name].words for name in names}
            section = "".join(
                f"\n{n}\n{textwrap.indent(textwrap.fill(words[n], 92), '    ')}" for n in words
            )
            function.__doc__ = f"{function.__doc__}\n\nParameters\n----------{section}\n"
            parameters += map(_parameter, names)
            known += names

        @functools.wraps(function)
        def checked(*given: P.args, **named: P.kwargs) -> T:
            refuse_unknown(named, known, where=f"{where}.{function.__name__}")
            return function(*given, **named)

        checked.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
        return checked

    return method


def _parameter(name: str) -> inspect.Parameter:
    hint = get_args(Options.__annotations__[name])[0]
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if OPTIONS[name].needed else None,
        annotation=getattr(hint, "__forward_arg__", hint),
    )
