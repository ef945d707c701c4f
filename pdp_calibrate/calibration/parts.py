"""One answer per region, where a household may have members in several."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from pdp_calibrate.calibration.release import (
    add_noise,
    check_grid,
    check_long,
    covered_rows,
    labelled,
    note_release,
)
from pdp_calibrate.calibration.result import Calibration, Release
from pdp_calibrate.core.composite import Blocks
from pdp_calibrate.core.model import Model
from pdp_calibrate.errors import UnsupportedQueryError
from pdp_calibrate.families.any_dependence import Unknown
from pdp_calibrate.families.gaussian.alike import GaussianGroup, GaussianSeries
from pdp_calibrate.frames.grouped import Part
from pdp_calibrate.frames.long_answers import part_answer, part_total


def release_parts(
    calibration: Calibration, parts: Mapping[Hashable, Part]
) -> dict[Hashable, Release]:
    """Release the total of every part with the scale that was proved for the total of all.

    Parameters
    ----------
    calibration
        For a sum or count over all rows of a long frame.
    parts
        What each part holds, all from one reading; every row is in one part only. The sizes of the
        groups in the whole frame must have been checked against the model.

    Notes
    -----
    Sound for models whose bound comes from moving one database onto another: clamped Gaussian
    groups and series without negative correlations, and unknown groups. There the proof bounds
    Σ_u |change of u|, which is the L1 change of all parts together as well as a bound on the change
    of the total. Under a negative correlation members move against each other: the total changes
    by less than the parts do.
    """
    model = calibration.model
    blocks = model.models if isinstance(model, Blocks) else (model,)
    clamped = calibration.contributions.clamped
    if not all(_moves_together(block, clamped=clamped) for block in blocks):
        raise UnsupportedQueryError(
            "groups have members in several parts, so the answers speak of the same people; that"
            " is supported for assumed correlations of at least 0 and for unknown groups only."
        )
    covered = covered_rows(calibration.rows, model)
    totals = []
    for part in parts.values():
        total, grid = part_total(calibration.contributions, model, part)
        check_grid(calibration.contributions, covered=covered, grid=grid)
        totals.append(total)
    note_release(calibration, counted=False)
    noisy = add_noise(totals, calibration.contributions, calibration.scale)
    return {
        label: Release(value=labelled(numbers, calibration.query, model), calibration=calibration)
        for label, numbers in zip(parts, noisy, strict=True)
    }


def _moves_together(block: Model, *, clamped: bool) -> bool:
    """Whether what bounds the change of the total also bounds the changes of all members."""
    if isinstance(block, GaussianGroup | GaussianSeries):
        return clamped and block.least_correlation >= 0
    return isinstance(block, Unknown)


def release_part(calibration: Calibration, part: Part) -> Release:
    """Release the answer about one part whose groups are all in it, or about none at all."""
    contributions, model = calibration.contributions, calibration.model
    found = part_answer(contributions, model, part)
    if part.sizes:
        check_long(found, calibration.query, contributions, model, rows=calibration.rows)
    (noisy,) = add_noise([found.answer], contributions, calibration.scale)
    return Release(value=labelled(noisy, calibration.query, model), calibration=calibration)
