"""How often the bands of a Gaussian sample miss the truth, for each kind of claim.

Run `python -m tests.benchmarks.learning_gaussian` from the project root. Rows are drawn from random
covariances; for every sample all adversaries are evaluated by regressions written out here, which
share nothing with the engines but the widths of the bands (`multipliers_of`). A claim fails where
the bound is below the truth. Allowed is β. The last part fits balls under differential privacy.
"""

from __future__ import annotations

import dataclasses
import itertools
import time
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pandas as pd

import pdp_calibrate as pdp
from pdp_calibrate.core.problem import split
from pdp_calibrate.core.query import lower
from pdp_calibrate.families.gaussian.regression import multipliers_of
from tests.benchmarks.heading import heading, keep

Matrix = npt.NDArray[np.float64]

SAMPLES = 2000
FAILURE = 0.1
SETTINGS = ((3, 5), (3, 12), (4, 12), (4, 40), (4, 200), (6, 12), (6, 40))


def adversaries(size: int) -> Iterator[tuple[int, list[int], list[int]]]:
    """Yield target, known and unknown tuples of all adversaries but the strongest."""
    for target in range(size):
        others = [k for k in range(size) if k != target]
        for number in range(size - 1):
            for known in itertools.combinations(others, number):
                yield target, list(known), [k for k in others if k not in known]


def coefficients(
    covariances: Matrix, target: int, known: list[int], unknown: list[int]
) -> tuple[Matrix, Matrix]:
    """Return β_u of every unknown tuple, and Var(U|i,K)/Var(i|K), for many covariances."""
    order = [*known, target, *unknown]
    factor = np.linalg.cholesky(covariances[:, order][:, :, order])
    place = len(known)
    own = factor[:, place, place]
    rest = factor[:, place + 1 :, place + 1 :]
    ratio = (rest @ rest.swapaxes(1, 2)) / own[:, np.newaxis, np.newaxis] ** 2
    return factor[:, place + 1 :, place] / own[:, np.newaxis], ratio


def widths(size: int, rows: int, *, clamped: bool = False, follows: bool = False) -> Matrix:
    """Return the library's multipliers for a claim."""
    names = pdp.Gaussian(covariance=np.eye(size), bounds=(0, 1))
    model = pdp.SampledGaussian(center=names, rows=rows, confidence=1 - FAILURE)
    (problem,) = split(model, lower(pdp.Sum(clamp=clamped), model), pdp.Adversaries.all())
    measure = dataclasses.replace(problem.measure, more_follows=follows)
    return multipliers_of(dataclasses.replace(problem, measure=measure))


def one_law(rng: np.random.Generator, size: int, rows: int) -> dict[str, float]:
    """Return the share of samples in which each claim fails, for one random covariance."""
    factors = rng.normal(size=(size, size))
    truth = factors @ factors.T / size + np.eye(size) * rng.choice([0.1, 0.5, 2.0])
    truth /= np.sqrt(np.outer(np.diag(truth), np.diag(truth)))
    drawn = rng.normal(size=(SAMPLES, rows, size)) @ np.linalg.cholesky(truth).T
    drawn -= drawn.mean(axis=1, keepdims=True)
    samples = drawn.swapaxes(1, 2) @ drawn / (rows - 1)
    weights = rng.choice([1.0, -1.0, 0.5], size=(2, size))
    linear, capped, any_query = (
        widths(size, rows),
        widths(size, rows, clamped=True),
        widths(size, rows, follows=True),
    )
    worst = dict.fromkeys(("one query", "a list of two", "clamped"), 0.0)
    bounds = {key: np.zeros(SAMPLES) for key in worst}
    later = np.zeros(SAMPLES, dtype=bool)
    steps = []
    for target, known, unknown in adversaries(size):
        true, _ = coefficients(truth[np.newaxis], target, known, unknown)
        steps.append(
            (target, known, unknown, true[0], *coefficients(samples, target, known, unknown))
        )
    # Caps that the largest coefficients just reach.
    cap = float(np.median([np.abs(true).max() for *_, true, _, _ in steps]))
    for target, known, unknown, true, found, ratio in steps:
        signs = {"one query": weights[:1], "a list of two": np.array([[1, 1], [1, -1]]) @ weights}
        for key, functions in signs.items():
            for f in functions:
                worst[key] = max(worst[key], abs(f[target] + true @ f[unknown]))
                error = np.sqrt(np.einsum("u,suv,v->s", f[unknown], ratio, f[unknown]))
                slope = np.abs(f[target] + found @ f[unknown])
                bounds[key] = np.maximum(bounds[key], slope + linear[len(known)] * error)
        own, sizes = abs(weights[0, target]), np.abs(weights[0, unknown])
        worst["clamped"] = max(worst["clamped"], own + sizes @ np.minimum(cap, np.abs(true)))
        diagonal = np.sqrt(np.diagonal(ratio, axis1=1, axis2=2))
        moved = np.minimum(cap, np.abs(found) + capped[len(known)] * diagonal)
        bounds["clamped"] = np.maximum(bounds["clamped"], own + moved @ sizes)
        # The query for which this sample errs most: its error is Hotelling's.
        error = (found - true)[:, :, np.newaxis]
        squares = (error.swapaxes(1, 2) @ np.linalg.solve(ratio, error))[:, 0, 0]
        later |= squares > any_query[len(known)] ** 2
    strongest = {
        "one query": np.abs(weights[0]).max(),
        "a list of two": np.abs(weights).sum(axis=0).max(),
        "clamped": np.abs(weights[0]).max(),
    }
    failed = {
        key: float(
            np.mean(np.maximum(bounds[key], strongest[key]) < max(worst[key], strongest[key]))
        )
        for key in worst
    }
    return failed | {"any later query": float(later.mean())}


def private(rng: np.random.Generator, epsilon: float) -> tuple[int, int, float]:
    """Return how many of 40 balls learned under ε-DP leak too little, and were refused."""
    truth = np.full((3, 3), 0.4) + 0.6 * np.eye(3)
    model = pdp.Gaussian(covariance=truth, bounds=(-6, 6), names=tuple("abc"))
    needed = pdp.calibrate(model, pdp.Sum(), epsilon=1.0).scale
    failed, refused, ratios = 0, 0, []
    for _ in range(40):
        rows = (rng.normal(size=(20_000, 3)) @ np.linalg.cholesky(truth).T).clip(-6, 6)
        estimator = pdp.GaussianEstimator(bounds=(-6, 6), epsilon=epsilon)
        try:
            ball = estimator.fit(pd.DataFrame(rows, columns=list("abc"))).model_
        except pdp.ModelError:
            refused += 1
            continue
        scale = pdp.calibrate(ball, pdp.Sum(), epsilon=1.0).scale
        failed += scale < needed * (1 - 1e-9)
        ratios.append(scale / needed)
    return failed, refused, float(np.median(ratios)) if ratios else float("nan")


def main() -> None:
    """Run all settings and keep the result."""
    rng, started = np.random.default_rng(0), time.process_time()
    keys = ("one query", "a list of two", "clamped", "any later query")
    lines = [
        *heading("learning_gaussian", "numpy", "scipy", "opendp"),
        "",
        f"Share of {SAMPLES} samples in which a claim at β = {FAILURE} fails: most and mean of 8",
        f"{'columns':>8s}{'rows':>6s}" + "".join(f"{key:>22s}" for key in keys),
    ]
    for size, rows in SETTINGS:
        found = [one_law(rng, size, rows) for _ in range(8)]
        shares = {key: [one[key] for one in found] for key in keys}
        columns = [f"{max(some):.4f} ({np.mean(some):.4f})" for some in shares.values()]
        lines.append(f"{size:8d}{rows:6d}" + "".join(f"{column:>22s}" for column in columns))
        print(lines[-1], flush=True)
    lines += ["", "Balls of 20,000 rows of three columns at .95, learned under ε: 40 fits each"]
    for epsilon in (0.5, 1.0, 2.0):
        failed, refused, ratio = private(rng, epsilon)
        lines.append(
            f"ε = {epsilon:g}: {failed} too small, {refused} refused, scale/law {ratio:.2f}"
        )
    lines.append(f"{time.process_time() - started:.0f} CPU seconds")
    keep("learning_gaussian", lines)


if __name__ == "__main__":
    main()
