"""How adapters load the library they adapt: when first used, or with a clear error."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from pdp_calibrate.errors import MissingLibraryError


def require(module: str, *, extra: str) -> Any:
    """Import a module of another library.

    Parameters
    ----------
    module
        Its full name.
    extra
        The extra of this project that installs the library.

    Raises
    ------
    MissingLibraryError
        With the command that installs it.

    Examples
    --------
    >>> require("no_such_library", extra="opendp")
    Traceback (most recent call last):
    ...
    pdp_calibrate.errors.MissingLibraryError: no_such_library does not load
    (ModuleNotFoundError: No module named 'no_such_library'): python -m pip install ...[opendp]"
    """
    try:
        return import_module(module)
    except ImportError as error:
        reason = f"{module} does not load ({type(error).__name__}: {error})"
        raise MissingLibraryError.needed_for(reason, extra=extra) from error
