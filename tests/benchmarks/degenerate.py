"""Degenerate models of every family against brute force: unsound, raw and crashed must be 0.

    python -m tests.benchmarks.degenerate 20000

draws that many models (seeds 0, 1, 2, …; `tests/support/degenerate_models.py`), each with a query
and a kind of adversary, and asks for a leakage, a calibration (half of them without any time), a
bound on black boxes, a budget, or what a small ledger has spent. The answers are compared with
`tests/oracles/exact.py`. Workers are processes of their own, so that a crash is put down with its
seed; `results/degenerate.txt` has the figures. A verdict is

- right, or bound (where the truth is only known to be at least so much), or loose (a leakage that
  should be exact lies above the truth by more than 1e-7 of it; no fault),
- refused (a PdpError: rule, value, hint),
- UNSOUND (below the truth), RAW (any other exception), CRASHED, or HANGING (over two minutes).
"""

from __future__ import annotations

import itertools
import json
import math
import os
import queue
import subprocess
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath  # type: ignore[import-untyped]
import numpy as np

import pdp_calibrate as pdp
from tests.benchmarks.heading import heading, keep
from tests.oracles import exact as exact_oracle, gaussian as gaussian_oracle
from tests.oracles.adversaries import every_adversary
from tests.oracles.table_sets import radius_of_sample, worst_over_balls
from tests.support.degenerate_models import FAMILIES, Drawn, Rng
from tests.support.random_models import adversary_kinds

FAULTS = ("UNSOUND", "RAW", "CRASHED", "HANGING")
LOOSE = 1e-7
PATIENCE = 120  # seconds for one model
COMPILATION = 900  # seconds more, while a new worker may be compiling
BATCH = 250  # models per worker
ROOT = Path(__file__).parents[2]
GAUSSIAN = ("Gaussian", "LoewnerBall", "GaussianGroup", "GaussianSeries")
BALLS = ("ConditionalBall", "SampledTable")
EXACT = ("JointTable", "ModelSet", "MarkovChain", "BinaryGroup", "CategoryGroup", "Gaussian")
"""Families whose engines promise the exact leakage of small models to all adversaries."""
Admits = Callable[[int, frozenset[int]], bool]
Parts = list[list[tuple[Fraction, ...]]]


@dataclass(frozen=True)
class Asked:
    """A query, and the same as exact numbers."""

    query: Any
    parts: Parts | None = None
    """Per named tuple and value, what it adds."""
    function: Callable[[tuple[Any, ...]], float] | None = None
    """For Custom: of all values."""
    weights: tuple[list[float], int] = ((), 1)  # type: ignore[assignment]
    """For continuous tuples: weights, and what they are divided by."""

    def answers(self, drawn: Drawn) -> dict[tuple[int, ...], tuple[Fraction, ...]]:
        """The exact answer in every cell."""
        found = {}
        for cell in itertools.product(*map(range, drawn.sizes)):
            if self.function is not None:
                values = tuple(d[k] for d, k in zip(drawn.domains, cell, strict=True))
                found[cell] = (Fraction(self.function(values)),)
            else:
                assert self.parts is not None
                added = [self.parts[j][k] for j, k in zip(drawn.origin, cell, strict=True)]
                found[cell] = tuple(sum(column) for column in zip(*added, strict=True))
        return found


def draw_query(rng: Rng, drawn: Drawn) -> Asked:
    """Any kind of query that the family answers, over all tuples or some."""
    names = drawn.model.names
    over = [j for j in range(len(names)) if rng.random() < 0.7] or [0]
    kinds = ["sum", "sum", "linear", "mean", "count", "histogram", "custom"]
    continuous = drawn.model.is_continuous
    if continuous:
        kinds = ["sum", "linear", "mean"]
    elif drawn.family not in ("JointTable", "ModelSet", "MarkovChain", "MarkovTree", "BinaryGroup",
                              "CategoryGroup"):  # fmt: skip
        kinds.remove("custom")
    kind = rng.choice(kinds)
    domains = [drawn.model.domains[j] for j in range(len(names))]
    chosen = [names[j] for j in over]
    if kind == "custom":
        function = [
            max, min, lambda x: float(sum(x) > 1), lambda x: float(len(set(x))), lambda x: x[0]
        ][rng.integers(5)]  # fmt: skip
        return Asked(pdp.Custom(function=function), function=function)
    if kind == "count":
        counted = {domains[over[0]][0]}
        parts = [
            [(Fraction(int(j in over and v in counted)),) for v in domain]
            for j, domain in enumerate(domains)
        ]
        return Asked(pdp.Count(values=counted, over=chosen), parts)
    if kind == "histogram":
        query = pdp.Histogram(over=chosen)
        categories = dict.fromkeys(v for j in over for v in domains[j])
        parts = [
            [tuple(Fraction(int(j in over and v == c)) for c in categories) for v in domain]
            for j, domain in enumerate(domains)
        ]
        return Asked(query, parts)
    weights, divisor = [float(j in over) for j in range(len(names))], 1
    query = pdp.Sum(over=chosen)
    if kind == "linear":
        weights = rng.choice([0.0, 0.0, 1.0, -1.0, 0.1, 1 / 3, -2.5], size=len(names)).tolist()
        weights[int(rng.integers(len(names)))] = float(rng.choice([1.0, -0.7, 3.0]))
        query = pdp.Linear(weights=weights)
    if kind == "mean":
        divisor = sum(1 for j in drawn.origin if j in over)
        query = pdp.Mean(over=chosen)
    parts = [
        [(Fraction(weight) * Fraction(value) / divisor,) for value in domain]
        for weight, domain in zip(weights, domains, strict=True)
    ]
    return Asked(query, parts, weights=(weights, divisor))


@dataclass(frozen=True)
class Truth:
    """What brute force found, and how to look once more."""

    value: float
    complete: bool = True
    """Whether the truth is known; else it is at least `value`."""
    again: Callable[[], Any] | None = None
    """The same in 60 digits; None if `value` is right to `tolerance` only."""
    tolerance: float = 0.0
    """Of the value, what rounding of the oracle may have done to it."""
    noise: float = 1e-40
    """The same where the truth is zero: 60 digits leave no more."""


def truth_of(
    drawn: Drawn, asked: Sequence[Asked], scales: Sequence[float], admits: Admits
) -> Truth:
    """The joint leakage of the answers, by brute force of the kind that the family needs."""
    if drawn.family in GAUSSIAN:
        return _gaussian_truth(drawn, asked, scales, admits)
    if drawn.family == "Unknown":
        return _unknown_truth(drawn, asked, scales, admits)
    if drawn.family in BALLS:
        return _ball_truth(drawn, asked, scales, admits)
    answers, units = _joined([one.answers(drawn) for one in asked], scales)
    found = [
        (exact_oracle.worst_leakage(law, drawn.sizes, answers, units, admits), law)
        for law in drawn.laws
    ]
    worst, law = max(found, key=lambda pair: pair[0].value)

    def again() -> Any:
        return exact_oracle.recomputed(law, drawn.sizes, answers, units, worst)

    return Truth(worst.value, drawn.complete, again if worst.value > 0 else None)


def _joined(
    answers: Sequence[dict[Any, tuple[Fraction, ...]]], scales: Sequence[float]
) -> tuple[dict[Any, tuple[Fraction, ...]], list[float]]:
    """Several answers as one, with the scale of each coordinate."""
    joined = {cell: tuple(a for one in answers for a in one[cell]) for cell in answers[0]}
    width = [len(next(iter(one.values()))) for one in answers]
    return joined, [s for s, number in zip(scales, width, strict=True) for _ in range(number)]


def _gaussian_truth(
    drawn: Drawn, asked: Sequence[Asked], scales: Sequence[float], admits: Admits
) -> Truth:
    model, size = drawn.model, len(drawn.model.names)
    widths = np.array([float(high) - float(low) for low, high in model.domains])
    extra = 0.0
    if drawn.family == "LoewnerBall":
        covariances = [model.center.covariance]
        extra = model.radius / math.sqrt(1 - model.radius**2)
    elif drawn.family == "Gaussian":
        covariances = [model.covariance]
    elif drawn.family == "GaussianGroup":
        low, high = model.correlation
        covariances = [np.full((size, size), rho) + (1 - rho) * np.eye(size) for rho in {low, high}]
    else:
        steps = np.arange(size)
        covariances = [model.correlation ** np.abs(steps[:, np.newaxis] - steps)]
    rows = np.array([one.weights[0] for one in asked])
    units = [scale * one.weights[1] for one, scale in zip(asked, scales, strict=True)]

    if extra:
        found = [
            leak
            for covariance in covariances
            for (target, known), leak in gaussian_oracle.leakages(
                covariance, rows, widths, units, lambda _known: extra
            ).items()
            if admits(target, frozenset(known))
        ]
        return Truth(max(found), tolerance=1e-5, noise=1e-9)
    with mpmath.workdps(60):
        value = max(
            mpmath.mpf(widths[target])
            * sum(
                abs(gaussian_oracle.coefficient_mpmath(covariance, row, target, known))
                / mpmath.mpf(unit)
                for row, unit in zip(rows, units, strict=True)
            )
            for covariance in covariances
            for target, known in every_adversary(size, admits)
        )
    if drawn.family == "Gaussian":
        return Truth(float(value), tolerance=1e-12, noise=1e-40)
    # The covariance of a group or a series is rounded here, which near-singularity magnifies: a
    # coefficient that is zero, for a series is Markov, comes out as up to 1e-16 / (1 − φ²).
    largest = max(float(w) for w in widths) * float(np.abs(rows).max()) / min(map(float, units))
    return Truth(float(value), tolerance=1e-9, noise=1e-11 * largest)


def _unknown_truth(
    drawn: Drawn, asked: Sequence[Asked], scales: Sequence[float], admits: Admits
) -> Truth:
    """All that move, as far as they can: attained for single numbers."""
    largest = Fraction(0)
    one, scale = asked[0], scales[0]
    assert one.parts is not None
    ranges = [
        max(sum(abs(a - b) for a, b in zip(x, y, strict=True)) for x in part for y in part)
        for part in one.parts
    ]
    for target, _, unknown in exact_oracle.adversaries(len(ranges), admits):
        if len(one.parts[target]) > 1:  # else there is no second secret
            largest = max(largest, sum((ranges[j] for j in (target, *unknown)), Fraction(0)))
    single = len(one.parts[0][0]) == 1 and len(asked) == 1
    if not single:
        return Truth(float(max(ranges)) / scale if _admits_all(drawn, admits) else 0.0, False)
    return Truth(float(largest / Fraction(scale)), tolerance=1e-15)


def _admits_all(drawn: Drawn, admits: Admits) -> bool:
    n = len(drawn.model.names)
    return all(admits(i, frozenset(range(n)) - {i}) for i in range(n))


def _ball_truth(
    drawn: Drawn, asked: Sequence[Asked], scales: Sequence[float], admits: Admits
) -> Truth:
    model, one = drawn.model, asked[0]
    assert one.parts is not None
    if len(asked) > 1 or len(one.parts[0][0]) > 1:
        return Truth(0.0, complete=False)
    parts = [[float(value[0] - min(part)[0]) for value in part] for part in one.parts]
    if drawn.family == "ConditionalBall":
        masses, radius = model.center.probabilities, lambda _mass, _values: model.radius
    else:
        masses = model.counts.astype(float)
        sizes = [size for size in masses.shape if size > 1]  # a constant makes no further event
        radius = radius_of_sample(sizes, model.confidence)
    unit = max(max(part) for part in parts) or 1.0  # the oracle merges sums closer than 1e-9
    scaled = [[value / unit for value in part] for part in parts]
    value = worst_over_balls(masses, scaled, scales[0] / unit, radius, admits=admits)
    return Truth(value, tolerance=1e-7)


def verdict_of(found: float, lower: float, truth: Truth, *, exact: bool) -> tuple[str, float]:
    """Compare one certified number with the truth."""
    margin = truth.tolerance * truth.value
    if math.isnan(found) or found < truth.value - margin:
        again = truth.again() if truth.again is not None else truth.value - margin
        if math.isnan(found) or found < again - truth.noise:
            return f"UNSOUND: {found!r} for {float(again)!r}", 0.0
    if truth.complete and lower > truth.value * (1 + 1e-9 + truth.tolerance) + 1e-9:
        return f"UNSOUND: lower end {lower!r} for {truth.value!r}", 0.0
    if not truth.complete:
        return "bound", 0.0
    above = (found - truth.value) / max(truth.value, 1e-6)
    return ("loose" if exact and above > LOOSE else "right"), above


def judged(seed: int) -> tuple[str, str, str, float]:
    """Draw one model, ask, and compare: family, what was asked, verdict, how far above."""
    rng = np.random.default_rng(seed)
    family = list(FAMILIES)[seed % len(FAMILIES)]
    asked = "model"
    try:
        drawn = FAMILIES[family](rng)
        kinds = list(adversary_kinds(rng, drawn.model.names))
        place = 0 if rng.random() < 0.4 else int(rng.integers(len(kinds)))
        adversaries, admits = kinds[place]
        if len(drawn.origin) != len(drawn.model.names):  # copies: who knows how many counts them
            adversaries, admits = _with_copies(rng, drawn)
        asked, check = list(_CHECKS.items())[
            int(rng.choice(len(_CHECKS), p=[0.5, 0.12, 0.12, 0.08, 0.03, 0.08, 0.07]))
        ]
        return family, asked, *check(rng, drawn, adversaries, admits)
    except pdp.PdpError as error:
        return family, asked, f"refused ({type(error).__name__})", 0.0
    except Exception as error:  # noqa: BLE001 - this is what is looked for
        where = traceback.extract_tb(error.__traceback__)[-1]
        place_of = f"{Path(where.filename).name}:{where.lineno}"
        return family, asked, f"RAW: {type(error).__name__} at {place_of}: {error}"[:200], 0.0


def _with_copies(rng: Rng, drawn: Drawn) -> tuple[Any, Admits]:
    n = len(drawn.origin)
    kinds: list[tuple[Any, Admits]] = [
        (pdp.Adversaries.all(), lambda _i, _known: True),
        (pdp.Adversaries.weakest(), lambda _i, known: not known),
        (pdp.Adversaries.strongest(), lambda _i, known: len(known) == n - 1),
        (pdp.Adversaries.knowing(at_most=1), lambda _i, known: len(known) <= 1),
    ]
    return kinds[int(rng.integers(len(kinds)))]


def _scale(rng: Rng, drawn: Drawn, asked: Asked) -> float:
    widest = max(pdp.sensitivity(drawn.model, asked.query).local.values()) or 1.0
    return float(widest * 10 ** rng.uniform(-2.5, 2))


def _leakage(rng: Rng, drawn: Drawn, adversaries: Any, admits: Admits) -> tuple[str, float]:
    one = draw_query(rng, drawn)
    scale = _scale(rng, drawn, one)
    leak = pdp.leakage(drawn.model, one.query, scale=scale, adversaries=adversaries)
    exact = drawn.family in EXACT and not _rounded(one)
    truth = truth_of(drawn, [one], [scale], admits)
    return verdict_of(leak.value, leak.lower, truth, exact=exact)


def _rounded(asked: Asked) -> bool:
    """Whether contributions lie so far from zero that their rounding shows."""
    if asked.parts is None:
        return False
    numbers = [[float(value[0]) for value in part] for part in asked.parts]
    widest = max(max(part) - min(part) for part in numbers)
    vector = len(asked.parts[0][0]) > 1
    return vector or max(abs(a) for part in numbers for a in part) > 1e6 * widest


def _calibration(
    rng: Rng, drawn: Drawn, adversaries: Any, admits: Admits, *, hasty: bool = False
) -> tuple[str, float]:
    one = draw_query(rng, drawn)
    epsilon = float(10 ** rng.uniform(-1.5, 1))
    cal = pdp.calibrate(
        drawn.model,
        one.query,
        epsilon=epsilon,
        adversaries=adversaries,
        time_limit=0 if hasty else None,
    )
    if not cal.leakage.value <= epsilon:
        return f"UNSOUND: calibrated to {cal.leakage.value!r} for epsilon {epsilon!r}", 0.0
    if pdp.verify(cal).value > epsilon:
        return "UNSOUND: verified above epsilon", 0.0
    truth = truth_of(drawn, [one], [cal.scale], admits)
    verdict, above = verdict_of(cal.leakage.value, cal.leakage.lower, truth, exact=False)
    return verdict, above


def _hasty(rng: Rng, drawn: Drawn, adversaries: Any, admits: Admits) -> tuple[str, float]:
    return _calibration(rng, drawn, adversaries, admits, hasty=True)


def _mechanisms(drawn: Drawn, budget: float, admits: Admits, **more: Any) -> float:
    return max(
        (
            exact_oracle.private_mechanisms(law, drawn.sizes, budget, admits, **more)
            for law in drawn.laws
        ),
        default=0.0,
    )


def _black_box(rng: Rng, drawn: Drawn, adversaries: Any, admits: Admits) -> tuple[str, float]:
    budget = float(10 ** rng.uniform(-1.5, 1))
    bound = pdp.black_box_leakage(drawn.model, epsilon=budget, adversaries=adversaries)
    truth = Truth(_mechanisms(drawn, budget, admits), complete=False, tolerance=1e-12, noise=1e-13)
    return verdict_of(bound.value, 0.0, truth, exact=False)


def _budget(rng: Rng, drawn: Drawn, adversaries: Any, admits: Admits) -> tuple[str, float]:
    epsilon = float(10 ** rng.uniform(-1.5, 1))
    budget = pdp.dp_budget(drawn.model, epsilon=epsilon, adversaries=adversaries)
    truth = Truth(_mechanisms(drawn, budget, admits), complete=False, tolerance=1e-12, noise=1e-13)
    return verdict_of(epsilon, 0.0, truth, exact=False)


def _together(rng: Rng, drawn: Drawn, adversaries: Any, admits: Admits) -> tuple[str, float]:
    both = [draw_query(rng, drawn) for _ in range(2)]
    scales = [_scale(rng, drawn, one) for one in both]
    leak = pdp.leakage(
        drawn.model, [one.query for one in both], scale=scales, adversaries=adversaries
    )
    truth = truth_of(drawn, both, scales, admits)
    return verdict_of(leak.value, leak.lower, truth, exact=False)


def _ledger(rng: Rng, drawn: Drawn, adversaries: Any, admits: Admits) -> tuple[str, float]:
    """A release, the same or another one again, and perhaps an outside mechanism."""
    ledger = pdp.Ledger(drawn.model, epsilon=1e4, adversaries=adversaries)
    first = draw_query(rng, drawn)
    asked = [first, first if rng.random() < 0.5 else draw_query(rng, drawn)]
    asked = asked[: int(rng.integers(1, 3))]
    scales = []
    for one in asked:
        epsilon = float(10 ** rng.uniform(-1.5, 1))
        cal = pdp.calibrate(drawn.model, one.query, epsilon=epsilon, adversaries=adversaries)
        ledger.spend(cal)
        scales.append(cal.scale)
    if rng.random() < 0.5:
        truth = truth_of(drawn, asked, scales, admits)
        return verdict_of(ledger.spent, 0.0, truth, exact=False)
    budget = float(10 ** rng.uniform(-1.5, 0.5))
    ledger.charge(budget)
    told = 0.0
    if drawn.laws:
        answers, units = _joined([one.answers(drawn) for one in asked], scales)
        told = _mechanisms(drawn, budget, admits, answers=answers, scales=units)
    return verdict_of(
        ledger.spent, 0.0, Truth(told, complete=False, tolerance=1e-12, noise=1e-12), exact=False
    )


_CHECKS: dict[str, Callable[[Rng, Drawn, Any, Admits], tuple[str, float]]] = {
    "leakage": _leakage,
    "calibrate": _calibration,
    "hasty": _hasty,
    "black box": _black_box,
    "dp_budget": _budget,
    "together": _together,
    "ledger": _ledger,
}


def judged_apart(seeds: range) -> Iterator[tuple[int, str, str, str, float]]:
    """Judge in a process of its own; whoever crashes or hangs it is put down and passed over."""
    start = seeds.start
    while start < seeds.stop:
        command = [sys.executable, "-m", "tests.benchmarks.degenerate", "--seeds"]
        worker = subprocess.Popen(  # noqa: S603
            [*command, str(start), str(seeds.stop)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=ROOT,
            env=os.environ | {"NUMBA_NUM_THREADS": "1"},
        )
        lines: queue.Queue[str] = queue.Queue()
        reader = threading.Thread(target=_read, args=(worker.stdout, lines), daemon=True)
        reader.start()
        fault, begun = "", time.monotonic()
        while start < seeds.stop:
            try:
                young = time.monotonic() - begun < COMPILATION
                line = lines.get(timeout=PATIENCE + COMPILATION * young)
            except queue.Empty:
                fault = "HANGING"
                worker.kill()
                break
            if not line:
                fault = f"CRASHED ({worker.wait()})"
                break
            seed, *rest = json.loads(line)
            yield seed, *rest
            start = seed + 1
        worker.wait()
        reader.join()
        assert worker.stdout is not None
        worker.stdout.close()
        if fault:
            yield start, list(FAMILIES)[start % len(FAMILIES)], "", fault, 0.0
            start += 1


def _read(stream: Any, lines: queue.Queue[str]) -> None:
    for line in stream:
        lines.put(line)
    lines.put("")


def all_judged(number: int, *, workers: int = 2) -> Iterator[tuple[int, str, str, str, float]]:
    """Judge seeds 0 … number − 1, in batches of which some run at the same time."""
    batches: queue.Queue[range] = queue.Queue()
    for first in range(0, number, BATCH):
        batches.put(range(first, min(first + BATCH, number)))
    found: queue.Queue[Any] = queue.Queue()

    def work() -> None:
        while True:
            try:
                batch = batches.get_nowait()
            except queue.Empty:
                break
            for one in judged_apart(batch):
                found.put(one)
        found.put(None)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(workers)]
    for thread in threads:
        thread.start()
    left = workers
    while left:
        one = found.get()
        if one is None:
            left -= 1
        else:
            yield one


def main() -> None:
    """Judge as many models as asked for, on two cores, and write down what came out."""
    if sys.argv[1:2] == ["--seeds"]:
        for seed in range(int(sys.argv[2]), int(sys.argv[3])):
            print(json.dumps([seed, *judged(seed)]), flush=True)
        return
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    begun = time.perf_counter()
    verdicts: Counter[tuple[str, str]] = Counter()
    asked: Counter[str] = Counter()
    furthest = dict.fromkeys(FAMILIES, 0.0)
    faults = []
    for done, (seed, family, what, verdict, above) in enumerate(all_judged(number), start=1):
        if verdict.startswith(FAULTS):
            faults.append(f"seed {seed} {family} {what}: {verdict}")
            print(faults[-1], flush=True)
            verdict = next(fault for fault in FAULTS if verdict.startswith(fault))
        verdicts[family, verdict] += 1
        asked[what] += 1
        if what == "leakage":
            furthest[family] = max(furthest[family], above)
        if done % 2000 == 0:
            print(done, f"{time.perf_counter() - begun:.0f} s", flush=True)
    lines = [
        *heading("degenerate", "numpy", "scipy", "numba"),
        f"seeds 0 … {number - 1}; {time.perf_counter() - begun:.0f} s"
        + ("; bounds checked" if os.environ.get("NUMBA_BOUNDSCHECK") else ""),
        "",
        *(
            f"{family:16s} {count:7d} {verdict}"
            for (family, verdict), count in sorted(verdicts.items())
        ),
        "",
        *(
            f"{family:16s} leakage at most above the truth {far:.1e}"
            for family, far in furthest.items()
        ),
        "",
        *(f"{what or 'crashed':16s} {count:7d}" for what, count in sorted(asked.items())),
        "",
        *sorted(faults),
        *(
            f"{fault.lower()}: {sum(n for (_, v), n in verdicts.items() if v == fault)}"
            for fault in FAULTS
        ),
    ]
    keep("degenerate", lines)


if __name__ == "__main__":
    main()
