"""Gaussian noise on Gaussian tuples: CPU time of a search, and noise against Laplace.

Run from the project's folder:

    OPENBLAS_NUM_THREADS=1 PYTHONPATH=. python tests/benchmarks/gaussian_noise.py

CPU time in units of one 3000×3000 float64 matrix product, best of three, compilation warm.
"""

from __future__ import annotations

import math
import platform
from datetime import UTC, datetime
from importlib.metadata import version

import numpy as np

import pdp_calibrate as pdp
from pdp_calibrate.core.adversary import Adversaries
from pdp_calibrate.core.gaussian_dp import mu_of
from pdp_calibrate.core.problem import split
from pdp_calibrate.core.query import Query, lower
from pdp_calibrate.families.gaussian.gaussian_noise import GaussianNoiseEngine
from tests.benchmarks.gaussian import factor_model, sample_model, timed, yardstick


def engine_for(model: pdp.Gaussian, query: Query) -> GaussianNoiseEngine:
    """The engine for one answer against everyone."""
    (problem,) = split(model, lower(query, model), Adversaries.all())
    return GaussianNoiseEngine(problem)


def gaussian_noise(model: pdp.Gaussian, mu: float) -> pdp.Calibration[Query, float]:
    """The least Gaussian noise on the sum that keeps μ."""
    return pdp.calibrate(model, pdp.Sum(), noise="gaussian", mu=mu)


def search(name: str, model: pdp.Gaussian, unit: float) -> None:
    """Print the time of calibrating to three levels, and of one search at that scale."""
    for mu in (mu_of(1.0, 1e-6), 1.0, 3.0):
        needing, cal = timed(lambda m=mu: gaussian_noise(model, m))  # type: ignore[misc]
        engine, scale = engine_for(model, pdp.Sum()), cal.scale
        looking, found = timed(lambda e=engine, s=scale: e.bracket(s))  # type: ignore[misc]
        print(
            f"{name:<26} mu {mu:<8.4g} sigma {scale:<9.5g} one search {looking / unit:6.2f}"
            f"   calibrate {needing / unit:6.2f}   gap {found.upper / found.lower - 1:.0e}"
        )


def against_laplace() -> None:
    """Print the standard deviation of each of this many releases, for the same promise."""
    model = pdp.Gaussian(covariance=0.4 + 0.6 * np.eye(4), bounds=(0, 4))
    scale = gaussian_noise(model, mu_of(1.0, 1e-6)).scale
    slope = pdp.leakage(model, pdp.Sum(), scale=1.0).value
    print("\nhousehold of 4, correlation 0.4, epsilon 1, delta 1e-6, the same sum again and again")
    for times in (1, 4, 12, 52, 365):
        gaussian, laplace = math.sqrt(times) * scale, math.sqrt(2) * times * slope
        print(f"{times:>4} releases: {gaussian:9.2f} against {laplace:9.2f}"
              f" ({gaussian / laplace:.3f})")  # fmt: skip


def main() -> None:
    """Print all lines."""
    packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "numba"))
    print("Gaussian noise, CPU time over one 3000x3000 float64 product (best of three)")
    print(f"date {datetime.now(UTC).date()}; python {platform.python_version()}; {packages}")
    print("command: OPENBLAS_NUM_THREADS=1 PYTHONPATH=. python tests/benchmarks/gaussian_noise.py")
    gaussian_noise(sample_model(6, 40, 0), 1.0)  # compiles
    unit = yardstick()
    print(f"yardstick: {unit:.3f} CPU seconds\n")
    for seed in range(3):
        search(f"n=40 (160 rows), seed {seed}", sample_model(40, 160, seed), unit)
    search("n=40, four factors", factor_model(40, 4, 0), unit)
    against_laplace()


if __name__ == "__main__":
    main()
