"""What to say of a model that was learned from private rows."""

from __future__ import annotations

import warnings

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
