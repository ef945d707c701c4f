"""One answer per region, where a household may have members in several."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

from pdp_calibrate.calibration.releasing import (
    add_noise,
    check_grid,
    covered_rows,
    labelled,
    note_release,
)
from pdp_calibrate.calibration.result import Calibration, Release
from pdp_calibrate.errors import UnsupportedQueryError
from pdp_calibrate.long_frames import sum_over_rows
from pdp_calibrate.models import Blocks, GaussianGroup, GaussianSeries, Model, Unknown


def release_parts(
    calibration: Calibration, parts: Iterable[tuple[Hashable, Any]], *, value: Hashable
) -> dict[Hashable, Release]:
    """Release the total of every part with the scale that was proved for the total of all.

    Parameters
    ----------
    calibration
        For a sum or count over all rows of a long frame.
    parts
        Pairs of a label and the rows of that part; every row is in one part only.
    value
        The column of values.

    Notes
    -----
    Sound for models whose bound comes from moving one database onto another: clamped Gaussian
    groups and series, and unknown groups. There the proof bounds Σ_u |change of u|, which is the L1
    change of all parts together as well as a bound on the change of the total.
    """
    model = calibration.model
    families = {type(block) for block in (model.models if isinstance(model, Blocks) else (model,))}
    coupled: set[type[Model]] = {GaussianGroup, GaussianSeries}
    clamped = calibration.contributions.clamped
    if not families <= {Unknown} | (coupled if clamped else set()):
        raise UnsupportedQueryError(
            "groups have members in several parts, so the answers speak of the same people; that"
            " is supported for assumed correlations and for unknown groups only."
        )
    covered = covered_rows(calibration.rows, model)
    totals = []
    for label, rows in parts:
        total, grid = sum_over_rows(calibration.contributions, model, rows, value)
        check_grid(calibration.contributions, covered=covered, grid=grid)
        totals.append((label, total))
    note_release(calibration, counted=False)
    noisy = add_noise([total for _, total in totals], calibration.contributions, calibration.scale)
    return {
        label: Release(value=labelled(numbers, calibration.query, model), calibration=calibration)
        for (label, _), numbers in zip(totals, noisy, strict=True)
    }
