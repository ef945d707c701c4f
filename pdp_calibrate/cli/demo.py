"""``pdp-calibrate demo``: the whole path on a small public data set, in plain words."""

from __future__ import annotations

import dataclasses
import math
import warnings
from typing import TYPE_CHECKING

import pdp_calibrate as pdp
from pdp_calibrate.cli.command import command
from pdp_calibrate.cli.ohio import COUNTS, wheeze, wheeze_table
from pdp_calibrate.cli.options import AsJson
from pdp_calibrate.cli.output import print_json

if TYPE_CHECKING:
    from rich.table import Table


EPSILON = 1.0


@command()
def demo(*, json: AsJson = False) -> None:
    """Show the main job on real answers of 537 children, from data to release."""
    if json:
        print_json(_calibrated(wheeze_table()).release(wheeze()).to_dict())
    else:
        _tell()


def _calibrated(model: pdp.JointTable) -> pdp.Calibration:
    return pdp.calibrate(model, pdp.Count(values={1}), epsilon=EPSILON)


def _tell() -> None:
    """Print each part as soon as it is known: the first ones need no search."""
    from rich.console import Console

    console = Console(width=88, highlight=False)
    console.rule("The data")
    console.print(
        f"{sum(COUNTS)} children in Ohio were asked in four years, at ages 7 to 10, whether they"
        " wheeze. We want to publish how many yes answers there were in all, and nobody should be"
        " able to work out any single child's answer."
    )
    model = wheeze_table()
    console.rule("The catch")
    console.print(_correlation(model))
    calibration = _calibrated(model)
    console.rule("Who could learn most")
    console.print(_adversary(calibration.leakage.witness))
    console.rule("How much noise does that take?")
    console.print(
        "Suppose we promise that, whatever number we publish, no attacker's odds about any answer"
        f" shift by more than a factor of {math.exp(EPSILON):.2f} (in symbols ε = {EPSILON:g}).\n"
    )
    console.print(_comparison(model, calibration))
    console.print(
        "\nPlain differential privacy, set as if the answers were independent, says ε = 1 and"
        " really leaks more. So does the rule in the paper this method comes from (Li, Ren, Yang"
        " and Yang, 2019): it looks only at extreme outputs and sets the noise too low. Group"
        " privacy, which treats a child's answers as one, keeps the promise with more noise than"
        " needed. The scale in the last row is the smallest that keeps it, proved over every"
        " attacker and every output."
    )
    console.rule("The release")
    release = calibration.release(wheeze())
    low, high = release.interval(alpha=0.05)
    console.print(
        f"Published: about [bold]{release.value}[/bold] yes answers (95 % sure: {low} to {high})."
        f" Run it again and the noise, drawn by OpenDP, will differ."
    )
    console.print(
        "\nThe promise holds for this one release, for attackers who know the exact answers of"
        " anyone else, and as far as the table of answers describes children like these: it was"
        " learned from 537 of them, and no band covers its error."
    )
    console.rule("The same in Python")
    console.print(
        "import pdp_calibrate as pdp\n"
        'model = pdp.TableEstimator(smoothing=0.5, source="public").fit(children).model_\n'
        "cal = pdp.calibrate(model, pdp.Count(values={1}), epsilon=1.0)\n"
        "cal.release(children).value",
        style="cyan",
    )


def _correlation(model: pdp.JointTable) -> str:
    last_two = model.probabilities.sum(axis=(0, 1))
    after_no, after_yes = last_two[:, 1] / last_two.sum(axis=1)
    return (
        "One child's four answers are correlated: of those who wheezed at 9,"
        f" {after_yes:.0%} wheezed at 10; of the others, {after_no:.0%}. Ordinary differential"
        " privacy sets its noise for one answer changing alone. But if one answer were different,"
        " the other three would probably be too, and the total would move by more than one."
    )


def _adversary(witness: pdp.Witness | None) -> str:
    if witness is None:
        return "Nobody can learn anything."
    if witness.known:
        knows = f"already knows the child's answers at {', '.join(map(str, witness.known))}."
    else:
        knows = (
            "knows nothing about this child, only how such answers are usually correlated. Knowing"
            " some answers would help less: what is known no longer moves with the secret."
        )
    return (
        "We searched all attackers: every answer they may be after, and every set of other answers"
        f" they may already know. The worst one is after a child's answer at {witness.target} and"
        f" {knows}"
    )


def _comparison(model: pdp.JointTable, calibration: pdp.Calibration) -> Table:
    from rich.table import Table

    query, baselines = calibration.query, calibration.baselines
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pdp.PrivacyLeakWarning)
        chain_rule = pdp.paper.unsound_chain_rule_scale(model, query, epsilon=EPSILON)
    table = Table()
    table.add_column("method", no_wrap=True)
    for heading in ("scale", "95 % of noise", "true ε", "odds shift", "promise"):
        table.add_column(heading, justify="right")
    for method, scale in {
        "plain differential privacy": baselines["dp"],
        "the paper's chain rule": chain_rule,
        "group privacy": baselines["group"],
        "pdp_calibrate": calibration.scale,
    }.items():
        leak = pdp.leakage(model, query, scale=float(scale or 0))
        table.add_row(
            method,
            f"{scale:.2f}",
            f"±{dataclasses.replace(calibration, scale=float(scale or 0)).accuracy():.0f}",
            f"{leak.value:.2f}",
            f"×{math.exp(leak.value):.2f}",
            "kept" if leak.value <= EPSILON else "broken",
        )
    return table
