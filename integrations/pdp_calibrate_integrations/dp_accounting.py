"""Google's accountants: ``pip install "pdp-calibrate[dp-accounting]"``.

For people who keep their plain-DP accountant beside a ledger: a calibrated release as a `DpEvent`.
The accountant then counts plain DP, not PDP; leakages of correlated data do not compose like that.

Neighbours: an event's noise multiplier is the scale over the largest L1 norm C of one record, and
the accountants take Laplace events for adding or removing a record
(`NeighboringRelation.ADD_OR_REMOVE_ONE`; `REPLACE_ONE` is refused by the PLD accountant). Where
tuples are only ever substituted, as in a PDP model, the answer moves by GS(f) instead. By default
the larger of both goes in, so the event holds under either reading.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pdp_calibrate import UnsupportedQueryError
from pdp_calibrate.calibration.result import AnyCalibration, with_laplace_noise
from pdp_calibrate.core.contributions import Contributions
from pdp_calibrate.core.model import refuse_endless
from pdp_calibrate_integrations.handover import Neighbours, counted_as
from pdp_calibrate_integrations.requiring import require


def laplace_event(calibration: AnyCalibration, *, neighbours: Neighbours = "unknown") -> Any:
    """Describe a calibrated release for an accountant of plain DP.

    Parameters
    ----------
    calibration
        One release, or several made together.
    neighbours
        What the accountant's ε is to be about. ``unknown`` covers both readings.

    Returns
    -------
    DpEvent
        A `LaplaceDpEvent`; for whole numbers a `DiscreteLaplaceDpEvent`, since the discrete
        Laplace has a larger δ(ε) than the continuous one; a `ComposedDpEvent` for several.

    Examples
    --------
    >>> import pdp_calibrate as pdp
    >>> twins = pdp.JointTable(probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, 1]] * 2)
    >>> event = laplace_event(pdp.calibrate(twins, pdp.Mean(), epsilon=1.0))
    >>> round(1 / event.noise_multiplier, 4)
    0.6299
    """
    events = require("dp_accounting.dp_event", extra="dp-accounting")
    with_laplace_noise(calibration, "a Laplace event")
    refuse_endless([calibration.model], "a Laplace event")
    parts = zip(calibration.contributions, calibration.scales, strict=True)
    found = [_event(events, *part, neighbours) for part in parts]
    return found[0] if len(found) == 1 else events.ComposedDpEvent(found)


def gaussian_event(calibration: AnyCalibration, *, neighbours: Neighbours = "unknown") -> Any:
    """Describe a release with Gaussian noise for an accountant of plain DP.

    Parameters
    ----------
    calibration
        One release, or several made together, with ``noise="gaussian"``.
    neighbours
        As in `laplace_event`.

    Returns
    -------
    DpEvent
        A `GaussianDpEvent` of the scale over the largest L2 change; a `ComposedDpEvent` for
        several.

    Examples
    --------
    >>> import pdp_calibrate as pdp
    >>> home = pdp.GaussianGroup(size=4, correlation=0.4, bounds=(0, 4), variance=1.0)
    >>> cal = pdp.calibrate(home, pdp.Sum(), noise="gaussian", mu=0.5)
    >>> round(gaussian_event(cal).noise_multiplier, 4)
    4.3718
    """
    events = require("dp_accounting.dp_event", extra="dp-accounting")
    if calibration.noise != "gaussian":
        raise UnsupportedQueryError("a Gaussian event needs a calibration with noise='gaussian'.")
    parts = zip(calibration.contributions, calibration.scales, strict=True)
    found = [
        events.GaussianDpEvent(
            noise_multiplier=math.nextafter(scale / _largest_l2_change(added, neighbours), 0.0)
        )
        for added, scale in parts
    ]
    return found[0] if len(found) == 1 else events.ComposedDpEvent(found)


def _largest_l2_change(added: Contributions, neighbours: Neighbours) -> float:
    """Bound how far the answer moves in L2 between neighbours."""
    if added.coordinates == 1 or added.table is not None:
        return _largest_change(added, neighbours)
    substituted = max(float(np.linalg.norm(np.ptp(values, axis=0))) for values in added.values) * (
        1 + 1e-12
    )
    if counted_as(neighbours) == "substitution":
        return substituted
    present = max(float(np.linalg.norm(values, axis=-1).max()) for values in added.values)
    present *= 1 + 1e-12
    return present if neighbours == "add-remove" else max(present, substituted)


def _event(events: Any, added: Contributions, scale: float, neighbours: Neighbours) -> Any:
    largest = _largest_change(added, neighbours)
    if added.is_integer:
        inverse = math.nextafter(1 / scale, math.inf)  # rounded to the side of less privacy
        return events.DiscreteLaplaceDpEvent(noise_parameter=inverse, sensitivity=int(largest))
    return events.LaplaceDpEvent(noise_multiplier=math.nextafter(scale / largest, 0.0))


def _largest_change(added: Contributions, neighbours: Neighbours) -> float:
    """Bound how far the answer moves in L1 between neighbours."""
    substituted = float(added.tuple_ranges().max())
    if counted_as(neighbours) == "substitution":
        return substituted
    if added.table is not None:
        raise UnsupportedQueryError(
            "a function of whole tables has no meaning when a tuple is missing:"
            " its event holds for neighbours='substitution' only."
        )
    present = max(float(np.abs(values).sum(axis=-1).max()) for values in added.values)
    return present if neighbours == "add-remove" else max(present, substituted)
