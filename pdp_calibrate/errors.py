"""Errors and warnings of the library.

Every message gives the rule, the value found and, where there is one, a hint. No message ever
contains a record or a true answer.
"""

from __future__ import annotations

import difflib
import json
import sys
import unicodedata
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

_UNSEEN = ("Cc", "Cs", "Zl", "Zp")  # control characters, half characters, separators of lines


_BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def printable(text: str, *, lines: bool = False) -> str:
    r"""Escape characters that would control a terminal or reverse the order of text.

    Names and categories come from data: an ESC in one could rewrite the screen, and a bidi control
    could make a number read backwards. They are shown as Python writes them; ends of lines are
    kept where `lines` says so.

    >>> print(printable("a\x1b[31mb\u202ec\n"))
    a\x1b[31mb\u202ec\n
    """
    return "".join(
        repr(one)[1:-1]
        if (one in _BIDI or unicodedata.category(one) in _UNSEEN) and not (lines and one in "\n\t")
        else one
        for one in text
    )


class PdpError(ValueError):
    """Base of every error this library raises on purpose."""

    def __str__(self) -> str:
        return printable(super().__str__(), lines=True)


class ModelError(PdpError):
    """A model (θ or Θ) is not valid, or data do not fit it."""


class FrameError(PdpError):
    """The frame engine cannot compute what is needed; nothing was released."""


class QueryError(PdpError):
    """A query does not fit the model it is asked of."""


class UnsupportedQueryError(QueryError):
    """The kind of query has no sound answer on this kind of model."""


class CalibrationError(PdpError):
    """No scale could be certified for the wanted ε."""


class BudgetExceededError(PdpError):
    """A release would spend more than the budget that is left."""


class LedgerError(PdpError):
    """A ledger cannot be trusted or cannot be written, so nothing is released through it."""


class SourceError(PdpError):
    """Rows cannot be read from where they are said to be."""


class PlanError(PdpError):
    """A plan file is not valid."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a hint at the known name that is nearest to an unknown one; empty if none is near.

    Examples
    --------
    >>> did_you_mean("group", ["groups", "order_by"])
    '; did you mean groups?'
    """
    nearest = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {nearest[0]}?" if nearest else ""


class MissingLibraryError(PdpError, ImportError):
    """A library that an extra installs is missing, or does not load."""

    @classmethod
    def needed_for(cls, what: str, *, extra: str) -> MissingLibraryError:
        """Say what needs it and the command that installs it.

        Examples
        --------
        >>> print(MissingLibraryError.needed_for("a picture needs matplotlib", extra="plot"))
        a picture needs matplotlib: python -m pip install ...[plot]"
        """
        last = _LAST_PYTHON.get(extra)
        if last is not None and sys.version_info[:2] > last:
            return cls(
                f"{what}, which has no release for Python {sys.version_info.major}."
                f"{sys.version_info.minor}: use Python {last[0]}.{last[1]} or earlier."
            )
        return cls(f"{what}: {_install_command(extra)}")


_LAST_PYTHON = {"pipelinedp": (3, 13)}
"""The last Python for which the library of an extra can be installed, as pyproject.toml says."""


def _install_command(extra: str) -> str:
    """Return the command that adds an extra to this installation, wherever it came from."""
    source = Path(__file__).parents[1]
    if (source / "pyproject.toml").exists():
        return f'python -m pip install -e "{source}[{extra}]"'
    recorded = metadata.distribution("pdp-calibrate").read_text("direct_url.json")
    origin = f" @ {json.loads(recorded)['url']}" if recorded else ""  # not from an index
    return f'python -m pip install "pdp-calibrate[{extra}]{origin}"'


class PrivacyLeakWarning(UserWarning):
    """Something the user is about to do leaks beyond the stated guarantee."""


class SecondReleaseWarning(PrivacyLeakWarning):
    """A calibration makes a second release, and no ledger counts both together."""


class ModelFitWarning(UserWarning):
    """The data plainly contradict the model fitted to them."""
