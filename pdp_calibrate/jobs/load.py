"""Files that this library wrote, read back as the objects they describe."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from pdp_calibrate.arrays import damage_refused
from pdp_calibrate.calibration.result import (
    PROVING_SECONDS,
    AnyCalibration,
    AnyRelease,
    Calibration,
    Release,
)
from pdp_calibrate.core.model import LATER, SCHEMA, Model, is_later
from pdp_calibrate.errors import PdpError
from pdp_calibrate.ledger.ledger import Ledger
from pdp_calibrate.ledger.people import PeopleLedger
from pdp_calibrate.ledger.store import check_path

Stored = Model | AnyCalibration | AnyRelease | Ledger | PeopleLedger


def load(
    path: str | os.PathLike[str],
    *,
    model: Model | None = None,
    anchor: str | os.PathLike[str] | None = None,
    time_limit: float | None = PROVING_SECONDS,
) -> Stored:
    """Read a model, calibration, release or ledger from its JSON file.

    Calibrations are proved again before they are returned.

    Parameters
    ----------
    path
        The file.
    model
        The model, where the file withholds it (private, or over 10⁴ cells).
    anchor
        Of a ledger that has one, the second file that must agree with it.
    time_limit
        Seconds after which a claim that is not proved again yet is refused; None for none.

    Examples
    --------
    >>> import pathlib, tempfile, pdp_calibrate as pdp
    >>> table = pdp.JointTable(probabilities=[[0.3, 0.2], [0.2, 0.3]], domains=[[0, 1], [0, 1]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "cal.json"
    ...     _ = file.write_text(pdp.calibrate(table, pdp.Sum()).to_json())
    ...     round(pdp.load(file).scale, 4)
    1.1894
    """
    check_path(path, what="object to read")
    place = Path(path)
    text, described = _described(place)
    with damage_refused(str(place)):
        if described.get("type") == "Ledger":
            return Ledger.open(place, model=model, anchor=anchor)
        if described.get("type") == "PeopleLedger":
            return PeopleLedger.open(place, anchor=anchor)
        return _rebuilt(place, text, described, model, time_limit)


def _rebuilt(
    place: Path,
    text: str,
    described: dict[str, Any],
    model: Model | None,
    time_limit: float | None,
) -> Stored:
    kind = described.get("type")
    if kind in ("Calibration", "JointCalibration"):  # version 1 named that of a list so
        return Calibration.from_json(text, model=model, time_limit=time_limit)
    if kind in ("Release", "JointRelease"):
        return Release.from_json(text, model=model, time_limit=time_limit)
    found = Model.from_dict(described)
    if found is None:
        raise PdpError(
            f"{place} withholds the numbers of its model, which is private or too large."
        )
    return found


def explainable(
    path: str | os.PathLike[str],
    *,
    anchor: str | os.PathLike[str] | None = None,
    time_limit: float | None = PROVING_SECONDS,
) -> AnyCalibration | AnyRelease | Ledger | PeopleLedger:
    """Read what there are words and reports about: anything but a bare model."""
    found = load(path, anchor=anchor, time_limit=time_limit)
    if isinstance(found, Model):
        raise PdpError(f"{path} describes a model: calibrate with it first.")
    return found


def _described(path: Path) -> tuple[str, dict[str, Any]]:
    try:
        text = path.read_text(encoding="utf-8")
        described = json.loads(text)
    except FileNotFoundError as error:
        raise PdpError(f"there is no file {path}.") from error
    except OSError as error:
        raise PdpError(f"{path} cannot be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise PdpError(f"{path} is not JSON.") from error
    if not isinstance(described, dict) or described.get("schema") != SCHEMA:
        raise PdpError(f"{path} is not a file of this library: it lacks the schema {SCHEMA}.")
    if is_later(described):
        raise PdpError(f"{path} {LATER}")
    return text, described
