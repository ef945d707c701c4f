"""Gaussian noise against brute force, Laplace noise, published formulas and attacks.

    python -m tests.benchmarks.gaussian_noise_campaign

writes `results/gaussian_noise_campaign.txt`. Brute force takes the gain of precision of every
target and every known set from the joint covariance, and δ by quadrature of how far one density
exceeds e^ε times the other; it shares no code with the library.
"""

from __future__ import annotations

import math
import time
from pathlib import Path

import numpy as np

import pdp_calibrate as pdp
from pdp_calibrate.core.gaussian_dp import mu_of
from tests.benchmarks.heading import heading
from tests.oracles import gaussian_noise as oracle
from tests.oracles.adversaries import every_adversary

_CASES = 2_000
_SEQUENCES = 400
_EPSILON, _DELTA = 1.0, 1e-6


def random_covariance(random: np.random.Generator) -> np.ndarray:
    """Covariances of up to six tuples: dense, nearly singular, in unequal units, or with zeros."""
    size = int(random.integers(1, 7))
    root = random.normal(size=(size, size + int(random.integers(0, 3))))
    if random.random() < 0.25 and size > 2:
        root[: size // 2, size // 2 :] = 0.0
    found = root @ root.T + 10.0 ** random.uniform(-6, 0) * np.eye(size)
    units = 10.0 ** random.uniform(-2, 2, size)
    return np.asarray(found * units * units[:, np.newaxis])


def model_of(covariance: np.ndarray, widths: np.ndarray) -> pdp.Gaussian:
    """Return the model of a covariance."""
    return pdp.Gaussian(covariance=covariance, bounds=[(0.0, float(width)) for width in widths])


def brute_force() -> list[str]:
    """Compare joint answers with every adversary, one by one."""
    random = np.random.default_rng(22)
    below = loose = wide = quadratures = worst_delta = checked = 0
    largest = 0.0
    started = time.process_time()
    for _ in range(_CASES):
        covariance = random_covariance(random)
        size = len(covariance)
        spread = np.sqrt(np.diagonal(covariance))
        widths = spread * 10.0 ** random.uniform(-1, 1, size)
        rows = random.normal(size=(int(random.integers(1, 4)), size)) / spread
        rows[random.random(rows.shape) < 0.2] = 0.0
        rows[:, 0] = np.where(rows[:, 0] == 0, 1 / spread[0], rows[:, 0])
        scales = 10.0 ** random.uniform(-1, 1.5, len(rows))
        truth, target, known = oracle.worst(covariance, rows, scales.tolist(), widths.tolist())
        found = pdp.leakage(
            model_of(covariance, widths),
            [pdp.Linear(weights=row.tolist()) for row in rows],
            scale=scales.tolist(),
            noise="gaussian",
        )
        mu = math.sqrt(truth)
        if found.value < mu * (1 + 1e-7):  # brute force in floats has errors of its own
            checked += 1
            mu = float(
                oracle.level_mpmath(
                    covariance, rows, scales.tolist(), target, known, float(widths[target])
                )
            )
        below += found.value < mu
        loose += found.value > mu * (1 + 1e-6)
        wide += not found.exact
        largest = max(largest, abs(found.value / mu - 1))
        if len(rows) == 1 and mu < 20:
            epsilon = float(random.uniform(0.1, 2.0))
            known_to = oracle.delta_by_quadrature(
                covariance, rows[0], float(scales[0]), target, known, float(widths[target]), epsilon
            )
            claimed = found.epsilon(min(0.5, max(known_to, 1e-12)))
            quadratures += 1
            worst_delta += claimed < epsilon * (1 - 1e-5) and known_to > 1e-9
    seconds = time.process_time() - started
    return [
        (
            f"{_CASES} random covariances of 1 to 6 tuples, 1 to 3 answers, every adversary"
            f" (the worst one again in 50 digits, {checked} cases):"
        ),
        (
            f"  below the truth {below}; above it by more than 1e-6 {loose}; bracket not closed to"
            f" 1e-9 {wide}; largest relative difference {largest:.1e}; {seconds:.0f} CPU seconds"
        ),
        (
            f"  single answers with delta by quadrature: {quadratures}; an epsilon below it"
            f" {worst_delta}"
        ),
    ]


def sequences() -> list[str]:
    """Compare ledgers with the gain of each release given all earlier ones, added up."""
    random = np.random.default_rng(23)
    below = loose = added_too_low = counted = 0
    for _ in range(_SEQUENCES):
        covariance = random_covariance(random)
        size = len(covariance)
        spread = np.sqrt(np.diagonal(covariance))
        widths = spread * 10.0 ** random.uniform(-1.5, 0.0, size)
        model = model_of(covariance, widths)
        ledger = pdp.Ledger(model, mu=1e6, noise="gaussian")
        rows: list[np.ndarray] = []
        scales: list[float] = []
        gains = dict.fromkeys(every_adversary(size), 0.0)
        own = 0.0
        for number in range(3):
            row = random.normal(size=size) / spread
            last = scales[-1] if scales else 1.0
            scale = float(last * 10.0 ** random.uniform(-1, 1))  # chosen from what came before
            query = pdp.Linear(weights=row.tolist())
            alone = pdp.calibrate(model, query, noise="gaussian", mu=1.0)
            scale = max(scale, alone.scale / 12)  # an epsilon in the hundreds, and not more
            ledger.spend(alone.with_noise(scale / alone.scale))
            rows.append(row)
            scales.append(ledger.history[-1].scales[0])
            stacked = np.array(rows)
            for target, known in gains:
                gains[target, known] += oracle.gain(
                    covariance, stacked, scales, target, known, after=number
                )
            truth = math.sqrt(max(widths[t] ** 2 * gain for (t, _), gain in gains.items()))
            counted += 1
            own += oracle.worst(covariance, stacked[-1:], scales[-1:], widths.tolist())[0]
            reached = ledger.history[-1].joint_mu or 0.0
            below += reached < truth * (1 - 1e-9)
            loose += reached > truth * (1 + 1e-6)
        added_too_low += own < truth**2 * (1 - 1e-9)
    return [
        f"{_SEQUENCES} sequences of 3 releases, scales chosen one after the other, in a ledger:",
        (
            f"  below the truth {below} of {counted}; above it by more than 1e-6 {loose};"
            f" sequences where adding each release's own largest mu^2 is too low {added_too_low}"
        ),
    ]


def against_laplace() -> list[str]:
    """Return the standard deviation of each of this many releases, by calibrations in a ledger."""
    lines = ["standard deviation of each of T releases of one sum, epsilon 1, delta 1e-6:"]
    models = {
        "household of 4, correlation 0.4": pdp.GaussianGroup(
            size=4, correlation=0.4, bounds=(0, 4), variance=1.0
        ),
        "household of 4, variance not stated": pdp.GaussianGroup(
            size=4, correlation=0.4, bounds=(0, 4)
        ),
        "AR(1), phi 0.8, 24 steps": pdp.GaussianSeries(
            length=24, correlation=0.8, bounds=(0, 4), variance=1.0
        ),
        "independent": pdp.GaussianGroup(size=1, correlation=0.0, bounds=(0, 4), variance=1.0),
    }
    for name, model in models.items():
        one = pdp.calibrate(
            model, pdp.Sum(), noise="gaussian", epsilon=_EPSILON, delta=_DELTA
        ).scale
        laplace = pdp.calibrate(model, pdp.Sum(), epsilon=_EPSILON).scale
        lines.append(f"  {name}")
        for times in (1, 4, 12, 52, 365):
            gaussian, other = math.sqrt(times) * one, math.sqrt(2) * times * laplace
            lines.append(
                f"    T = {times:<4} Gaussian {gaussian:10.2f}   Laplace {other:10.2f}"
                f"   ratio {gaussian / other:.3f}"
            )
    return lines


def largest_rho(epsilon: float, delta: float) -> float:
    """Return the largest ρ whose Rényi divergences α·ρ of all orders keep (ε, δ).

    By the conversion of Canonne, Kamath and Steinke (2020), which is the tightest that is used.
    """
    orders = 1 + np.geomspace(1e-3, 1e6, 20_000)
    rest = np.log(1 / (orders * delta)) / (orders - 1) + np.log1p(-1 / orders)
    low, high = 1e-12, 1e6
    for _ in range(100):
        middle = math.sqrt(low * high)
        keeps = (orders * middle + rest).min() <= epsilon
        low, high = (middle, high) if keeps else (low, middle)
    return low


def against_renyi_pufferfish() -> list[str]:
    """Compare with Rényi Pufferfish privacy under Gaussian priors, one adversary: nobody known.

    Under two secrets the answer is normal with one variance s² and means a distance Δ apart. Noise
    N(0, σ²) keeps (α, ε_α)-Rényi Pufferfish privacy

    - by the general Wasserstein mechanism with αΔ²/2σ² = ε_α, W∞ being Δ (Pierquin, Bellet,
      Tommasi, Boussard: Rényi Pufferfish privacy, ICML 2024);
    - by the exact divergence under a single Gaussian prior with αΔ²/2(σ² + s²) = ε_α (Rényi
      Pufferfish privacy with Gaussian-based priors, arXiv 2604.23649, 2026).

    For (ε, δ) their divergences of all orders are converted as tightly as is known.

    A calibration also charges for rounding the answer to a float before the noise, which no formula
    counts: 2r/σ of μ. Where nearly all of the noise is the data's own, that needs (σ² + s²)/σ²
    times as much more of σ. So what both say of one and the same σ is compared besides.
    """
    random = np.random.default_rng(24)
    wasserstein, exact, same, told_alike, charged = [], [], [], [], []
    none = 0
    for _ in range(300):
        covariance = random_covariance(random)
        size = len(covariance)
        spread = np.sqrt(np.diagonal(covariance))
        widths = spread * 10.0 ** random.uniform(-0.5, 1, size)
        weights = random.normal(size=size) / spread
        model, query = model_of(covariance, widths), pdp.Linear(weights=weights.tolist())
        target = str(model.names[int(random.integers(size))])
        only = pdp.Adversaries.exactly(target, known=[])
        place = model.names.index(target)
        cross = covariance @ weights
        shift = abs(cross[place] / covariance[place, place]) * widths[place]
        own = weights @ cross - cross[place] ** 2 / covariance[place, place]
        epsilon, delta = float(random.choice([0.5, 1.0, 2.0])), float(random.choice([1e-5, 1e-6]))
        rho = largest_rho(epsilon, delta)
        theirs = shift**2 / (2 * rho)
        order, level = float(random.uniform(1.5, 20)), float(random.uniform(0.05, 3))
        try:
            sigma = pdp.calibrate(
                model, query, noise="gaussian", epsilon=epsilon, delta=delta, adversaries=only
            ).scale
            wasserstein.append(sigma / math.sqrt(theirs))
            if theirs - own > 0:
                exact.append(sigma / math.sqrt(theirs - own))
        except pdp.CalibrationError:
            none += 1  # what this adversary does not know is noise enough
        needed = shift**2 * order / (2 * level) - own
        if needed > 1e-3 * own:  # else their difference has few digits left
            ours = pdp.calibrate(
                model, query, noise="gaussian", rho=level / order, adversaries=only
            )
            same.append(ours.scale / math.sqrt(needed))
            here = {"scale": math.sqrt(needed), "noise": "gaussian", "adversaries": only}
            leak = pdp.leakage(model, query, unit="rho", **here)  # type: ignore[arg-type]
            told_alike.append(leak.value * order / level)
            rounded = pdp.leakage(model, query, **(here | {"scale": ours.scale}))  # type: ignore[arg-type]
            excess = (ours.mu or 0.0) / rounded.value - 1
            charged.append(excess * (1 + own / ours.scale**2))

    def told(name: str, ratios: list[float]) -> str:
        found = np.array(ratios)
        return (
            f"  {name}: {len(found)} cases, largest {found.max():.9f}, median"
            f" {np.median(found):.4f}, smallest {found.min():.4f};"
            f" more noise in {int((found > 1 + 1e-6).sum())}"
        )

    return [
        "300 random Gaussian priors, one adversary who knows nobody; our sigma over theirs:",
        told("(eps, delta), W-infinity (2024)", wasserstein),
        told("(eps, delta), exact divergence (2026)", exact),
        told("one (alpha, eps_alpha), exact divergence (2026)", same),
        (
            "    of this, for rounding the answer before the noise, at most"
            f" {max(charged):.3g}; without that, at most"
            f" {max(one - 1 - two for one, two in zip(same, charged, strict=True)):.1e} more"
        ),
        (
            "    what both say of the published sigma: our rho over theirs, less 1, from"
            f" {min(told_alike) - 1:+.1e} to {max(told_alike) - 1:+.1e}"
        ),
        f"  no noise needed, so none calibrated: {none}",
    ]


def audits() -> list[str]:
    """Attack calibrated releases and the same ones with 70 % of their noise."""
    home = pdp.GaussianGroup(size=4, correlation=0.4, bounds=(0, 4), variance=1.0)
    series = pdp.GaussianSeries(length=6, correlation=0.7, bounds=(0, 4), variance=1.0)
    dense = pdp.Gaussian(
        covariance=[[1, 0.5, 0.5], [0.5, 1, -0.3], [0.5, -0.3, 1]], bounds=[(0, 1), (0, 4), (0, 4)]
    )
    both = [pdp.Sum(), pdp.Linear(weights=[1.0, -1.0, 0.5])]
    weakest = {"adversaries": pdp.Adversaries.weakest()}
    cases = {
        "household, sum": (home, pdp.Sum(), {}),
        "household, mean of 50": (home, pdp.Mean(), {"rows": 50}),
        "household, weakest": (home, pdp.Sum(), weakest),
        "household, clamped": (home, pdp.Sum(clamp=True), {}),
        "household, variance not stated": (
            pdp.GaussianGroup(size=3, correlation=0.4, bounds=(0, 4)),
            pdp.Sum(clamp=True),
            {},
        ),
        "range of correlations": (
            pdp.GaussianGroup(size=4, correlation=(-0.2, 0.4), bounds=(0, 4), variance=1.0),
            pdp.Sum(),
            {},
        ),
        "series, sum": (series, pdp.Sum(), {}),
        "series, weakest": (series, pdp.Sum(), weakest),
        "dense, sum": (dense, pdp.Sum(), {}),
        "dense, two answers": (dense, both, {}),
        "many households": (pdp.Blocks(models=[home], counts=[20]), pdp.Sum(), {}),
        "Loewner ball": (pdp.LoewnerBall(center=dense, radius=0.1), pdp.Sum(), {}),
    }
    lines = ["audits at 99 %, 60,000 draws, epsilon 0.5, delta 0.02 (lower bound on epsilon):"]
    broken, caught = [], []
    for seed, (name, (model, query, options)) in enumerate(cases.items()):
        cal = pdp.calibrate(  # type: ignore[call-overload]
            model, query, noise="gaussian", epsilon=0.5, delta=0.02, **options
        )
        honest = pdp.audit(cal, draws=60_000, confidence=0.99, seed=seed)
        less = pdp.audit(cal.with_noise(0.7), draws=60_000, confidence=0.99, seed=seed)
        broken.append(honest.is_broken)
        caught.append(less.is_broken)
        lines.append(
            f"  {name:32s} calibrated {honest.lower_bound:.3f}   at 70 % of sigma"
            f" {less.lower_bound:.3f} {'caught' if less.is_broken else 'not caught'}"
        )
    lines.append(
        f"  {len(broken)} calibrated releases, {sum(broken)} exceed; at 70 %, {sum(caught)} of"
        f" {len(caught)} caught"
    )
    return lines


def main() -> None:
    """Run everything and write the results."""
    lines = [*heading("gaussian_noise_campaign", "numpy", "scipy", "opendp"), ""]
    lines.append(f"mu of (1, 1e-6): {mu_of(1.0, 1e-6):.12f}")
    for part in (against_laplace, against_renyi_pufferfish, brute_force, sequences, audits):
        lines += ["", *part()]
        print("\n".join(lines[-30:]), flush=True)
    path = Path(__file__).parent / "results" / "gaussian_noise_campaign.txt"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
