"""Say in plain words what was calibrated, against whom, and at what cost."""

from __future__ import annotations

import math

from pdp_calibrate.adversaries import Witness
from pdp_calibrate.calibration import Calibration
from pdp_calibrate.calibration.proof import PRIVATE_MODEL
from pdp_calibrate.engines import leakage
from pdp_calibrate.models import Blocks, SampledTable, Unknown


def explain(calibration: Calibration) -> str:
    """Return a few paragraphs that a data steward can read.

    Contains nothing of the data: only the model, the query, and what follows from them. A private
    model stays unnamed: its worst adversary would tell something about the rows behind it.
    """
    parts = [_promise(calibration)]
    if calibration.model.provenance == "private":
        parts.append(f"Careful: {PRIVATE_MODEL}")
    else:
        parts += [worst_adversary(calibration.leakage.witness), plain_dp(calibration)]
    if calibration.estimation_epsilon is not None:
        parts.append(_learning(calibration.epsilon, calibration.estimation_epsilon))
    return "\n\n".join(
        [*parts, cost(calibration), *_sample(calibration), _assumptions(calibration)]
    )


def _promise(calibration: Calibration) -> str:
    law = "whole-number Laplace" if calibration.is_integer else "Laplace"
    certainty = "exactly" if calibration.leakage.exact else "at most"
    return (
        f"Release the answer with {law} noise of scale {calibration.scale:.4g}. Then, whatever"
        f" comes out, nobody in {calibration.adversaries!r} can shift their odds between two values"
        f" of anyone's entry by more than a factor e^{calibration.epsilon:.4g}"
        f" (ε = {calibration.epsilon:.4g}); the worst of them gets {certainty}"
        f" {calibration.leakage.value:.4g}."
    )


def worst_adversary(witness: Witness | None) -> str:
    """Describe who learns most, what they know and what they tell apart."""
    if witness is None:
        return "Nobody has anything to tell apart."
    knowing = (
        "knows " + ", ".join(f"{name} = {value}" for name, value in witness.known.items())
        if witness.known
        else "knows nobody's entry, only how the entries hang together"
    )
    first, second = witness.secrets
    return (
        f"The worst adversary attacks {witness.target} and {knowing}. They learn most when the"
        f" released answer is {_where(witness.output)}, which speaks for {witness.target} = {first}"
        f" and against {second}."
    )


def _where(output: float | tuple[float, ...]) -> str:
    if isinstance(output, tuple):
        return "near (" + ", ".join(f"{number:.4g}" for number in output) + ")"
    if math.isinf(output):
        return "as high as can be" if output > 0 else "as low as can be"
    return f"near {output:.4g} or beyond"


def plain_dp(calibration: Calibration) -> str:
    """Compare with noise set as if everyone were independent."""
    scale = calibration.baselines["dp"]
    if not scale:
        return "Plain differential privacy would have added no noise at all."
    leak = leakage(
        calibration.model,
        calibration.query,
        scale=scale,
        adversaries=calibration.adversaries,
        rows=calibration.rows,
    )
    if leak.value <= calibration.epsilon * (1 + 1e-9):
        return (
            f"Plain differential privacy (scale {scale:.4g}) would have been enough here:"
            " the correlation does not help the worst adversary."
        )
    return (
        f"Plain differential privacy would have used scale {scale:.4g} and called it"
        f" ε = {calibration.epsilon:.4g}; through the correlation it would really have leaked"
        f" {leak.lower:.4g}."
    )


def _learning(epsilon: float, spent: float) -> str:
    return (
        f"Learning the model was itself a private release of ε = {spent:.4g} about whole draws."
        " If the answer is about the very data that the model was learned from, nobody learns more"
        f" than {epsilon + spent:.4g} from both together."
    )


def cost(calibration: Calibration) -> str:
    """Say how far the noise moves the answer, and what group privacy would have cost."""
    group = calibration.baselines["group"]
    compared = (
        f" Treating all correlated entries as one (group privacy) would need scale {group:.4g},"
        f" {group / calibration.scale:.2g} times as much noise."
        if group and group > calibration.scale
        else ""
    )
    return (
        f"The noise stays within ±{calibration.accuracy(alpha=0.05):.4g} in 95 % of releases."
        + compared
    )


def _sample(calibration: Calibration) -> list[str]:
    """Say what is known of the error of an estimated model."""
    sentences = [calibration.model.certainty or ""]
    group = calibration.baselines["group"]
    if isinstance(calibration.model, SampledTable) and calibration.scale >= (group or 0) * 0.999999:
        sentences.append(
            "There are too few rows to rule anything out: this is the noise of group privacy, which"
            " needs no model. More rows, fewer values or a lower confidence help."
        )
    return [words] if (words := " ".join(filter(None, sentences))) else []


def _assumptions(calibration: Calibration) -> str:
    model = calibration.model
    blocks = model.models if isinstance(model, Blocks) else (model,)
    condition = (
        "for members of a group that depend on each other in any way at all (group privacy)"
        if all(isinstance(block, Unknown) for block in blocks)
        else f"if the model ({model.provenance}) is right, for adversaries who hold exact values of"
        " other entries"
    )
    return (
        f"This holds {condition}, and for this one release: a second release about the same people"
        " leaks more, and not simply the sum."
    )
