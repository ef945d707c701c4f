"""What to say of a model that was learned from private rows, and what may be kept of it."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterable
from typing import Any

from pdp_calibrate.errors import PrivacyLeakWarning
from pdp_calibrate.models.base import Model, checked_model

_WORDS = (
    "the model was learned from private rows without differential privacy, and the {what} depends"
    " on it: publishing the {what}, or a release made with it, may reveal something about those"
    " rows. Learn the model from public or earlier data, or state it as an assumption."
)
PRIVATE_MODEL = _WORDS.format(what="scale")


def warn_if_private(model: Model, what: str) -> None:
    """Warn once that what is about to be worked out depends on private rows.

    Parameters
    ----------
    model
        What it is worked out from; anything but a model is refused.
    what
        The number that the caller, to whose own caller the warning points, returns: a scale, a
        budget, a bound.
    """
    if checked_model(model).provenance == "private":
        warnings.warn(_WORDS.format(what=what), PrivacyLeakWarning, stacklevel=3)


def public_structure(model: Model) -> dict[str, Any]:
    """Return what may be kept of a private model, to tell it from models of another shape.

    Its family, how many values each tuple can take, and how many copies of each tuple there are:
    all of that counts as public. Nothing that was learned from the values enters, nor a digest of
    it: whoever guesses the parameters of a small model could confirm the guess with a digest.

    Examples
    --------
    >>> from pdp_calibrate.models import MarkovChain
    >>> chain = MarkovChain(transition=[[0.7, 0.3], [0.4, 0.6]], length=365, provenance="private")
    >>> public_structure(chain)
    {'family': 'MarkovChain', 'domain_sizes': [[2, 365]], 'real': [[False, 365]], \
'copies': [[1, 365]]}
    """
    return {
        "family": type(model).__name__,
        "domain_sizes": _runs(len(domain) for domain in model.domains),
        "real": _runs(model.continuous_tuples),
        "copies": _runs(model.copies),
    }


def _runs(values: Iterable[int]) -> list[list[int]]:
    """Write equal values that follow each other as [value, how many]."""
    return [[value, len(list(run))] for value, run in itertools.groupby(values)]
