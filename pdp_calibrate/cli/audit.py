"""``pdp-calibrate audit``: attack a release as its worst adversary would."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import pdp_calibrate as pdp
from pdp_calibrate.cli.command import command
from pdp_calibrate.cli.options import AsJson, TimeLimit
from pdp_calibrate.cli.output import law_of, print_facts, print_json
from pdp_calibrate.core.model import header


@command(
    "pdp-calibrate audit calibration.json --draws 20000",
)
def audit(
    *,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A calibration or a release, in JSON.")
    ],
    draws: Annotated[int, typer.Option(help="How often the release is run.")] = 100_000,
    confidence: Annotated[
        float, typer.Option(help="Probability with which the lower bound holds.")
    ] = 0.99,
    seed: Annotated[
        int | None, typer.Option(help="Of the simulated databases; the noise has none.")
    ] = None,
    time_limit: TimeLimit = 60.0,
    json: AsJson = False,
) -> None:
    """Attack a calibrated release with its worst adversary, on simulated data.

    A lower bound above ε would prove the promise broken (exit code 1).
    """
    from pdp_calibrate.jobs.load import explainable

    subject = explainable(file, time_limit=time_limit)
    attacked = subject.calibration if isinstance(subject, pdp.Release) else subject
    if not isinstance(attacked, pdp.Calibration):
        what = f"{file} describes a {type(attacked).__name__}"
        raise pdp.PdpError(f"{what}; an audit needs a calibration or release.")
    found = pdp.audit(attacked, draws=draws, confidence=confidence, seed=seed)
    verdict = "BROKEN" if found.is_broken else "no contradiction to the promise"
    if json:
        print_json(
            {
                **header("Audit"),
                "lower_bound": found.lower_bound,
                "epsilon": found.epsilon,
                **({"delta": found.delta} if found.delta else {}),
                "confidence": found.confidence,
                "visible": found.visible,
                "event": found.event.words,
                "is_broken": found.is_broken,
            }
            | dict(law_of(attacked.model))
        )
    else:
        print_facts(
            [
                ("leaks at least", f"{found.lower_bound:.4g} (confidence {confidence:.4g})"),
                ("promised at most", f"{found.epsilon:.4g}"),
                *([("beside delta", f"{found.delta:g}")] if found.delta else []),
                ("event", found.event.words),
                ("verdict", verdict),
                *law_of(attacked.model),
            ]
        )
    if found.is_broken:
        raise typer.Exit(1)
