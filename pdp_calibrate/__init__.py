"""Calibrate differential-privacy noise for correlated data, exactly and provably.

Names load on first use, so importing the package is quick; OpenDP, for one, is loaded by the first
release. `__init__.pyi` lists them, for type checkers and for this loader. Importing the package
also gives every pandas DataFrame the methods ``df.pdp``.
"""

import ast
from importlib import import_module
from pathlib import Path
from typing import Any

import pdp_calibrate.accessor  # noqa: F401 - registers df.pdp

__version__ = "0.2.0"
_HOMES = {
    alias.name: node.module or __name__
    for node in ast.parse(Path(__file__).with_suffix(".pyi").read_text("utf-8")).body
    if isinstance(node, ast.ImportFrom)
    for alias in node.names
}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if _HOMES[name] == __name__:
        return import_module(f"{__name__}.{name}")
    home = import_module(_HOMES[name])
    value = getattr(home, name, None)
    if value is None:  # a module of its own
        value = import_module(f"{home.__name__}.{name}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*globals(), *__all__]
