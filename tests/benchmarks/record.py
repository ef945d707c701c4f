"""What the library answers, one line per question, to compare before and after a change.

    python -m tests.benchmarks.record before.txt
    python -m tests.benchmarks.record after.txt
    python -m tests.benchmarks.record before.txt after.txt

The first two write every answer with all its digits; the third lists the lines that differ by more
than 1e-13 and says which way each number went. Of the others it says how many moved towards the
truth, or not at all, and how far the rest moved away from it: by rounding. Sums about tables it
compares with the truth itself, by brute force in 60 digits. Only public names are used, so an
earlier version of the library can run it too, from its own folder:

    cd EARLIER
    PYTHONPATH=$PWD:$PWD/integrations python -P .../tests/benchmarks/record.py before.txt
"""

from __future__ import annotations

import itertools
import math
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import pdp_calibrate as pdp

SEEDS = range(5)
SCALES = (0.3, 2.0)


def law(rng: np.random.Generator, *shape: int) -> Any:
    """Cells of a random table, some of them zero for odd draws."""
    cells = rng.dirichlet(np.ones(int(np.prod(shape))))
    if rng.random() < 0.3:
        cells[rng.integers(len(cells))] = 0
    return (cells / cells.sum()).reshape(shape)


def discrete(rng: np.random.Generator) -> Iterator[tuple[str, Any]]:
    """One model of every discrete family."""
    pair = pdp.JointTable(probabilities=law(rng, 2, 2), domains=[[0, 1]] * 2)
    table = pdp.JointTable(probabilities=law(rng, 2, 3, 2), domains=[[0, 1], [-1, 0, 2], [0, 1]])
    yield "table", table
    yield (
        "binary table",
        pdp.JointTable(probabilities=law(rng, *(2,) * 5), domains=[[0, 1]] * 5),
    )
    transition = rng.dirichlet(np.ones(2), size=2)
    yield "chain", pdp.MarkovChain(transition=transition, length=7, states=[0, 1])
    three = rng.dirichlet(np.ones(3), size=3)
    yield (
        "chain of three states",
        pdp.MarkovChain(transition=three, length=5, states=[0, 1, 2], initial=[0.2, 0.3, 0.5]),
    )
    yield "long chain", pdp.MarkovChain(transition=transition, length=60, states=[0, 1])
    tables = [rng.dirichlet(np.ones(2)), *(rng.dirichlet(np.ones(2), size=2) for _ in range(4))]
    yield (
        "tree",
        pdp.MarkovTree(domains=[[0, 1]] * 5, parents=[None, 0, 0, 1, 1], tables=tables),
    )
    yield "mixing chain", pdp.MixingChain(length=12, states=[0, 1], diameter=rng.uniform(0.2, 4))
    yield "group", pdp.BinaryGroup(count_probabilities=rng.dirichlet(np.ones(6)))
    yield (
        "categories",
        pdp.CategoryGroup(
            size=3, categories=[0, 1, 3], count_probabilities=rng.dirichlet(np.ones(10))
        ),
    )
    yield "ball", pdp.ConditionalBall(center=pair, radius=rng.uniform(0, 0.4))
    counts = rng.multinomial(500, pair.probabilities.ravel()).reshape(2, 2)
    yield "sample", pdp.SampledTable(counts=counts, domains=[[0, 1]] * 2, confidence=0.9)
    yield "unknown", pdp.Unknown(size=4, domain=[0, 1, 4])
    yield "blocks", pdp.Blocks(models=[pair, table], counts=[3, 1])
    other = pdp.JointTable(probabilities=law(rng, 2, 2), domains=[[0, 1]] * 2)
    yield "set", pdp.ModelSet(models=[pair, other])


def gaussian(rng: np.random.Generator) -> Iterator[tuple[str, Any]]:
    """One model of every Gaussian family."""
    factors = rng.normal(size=(6, 3))
    bounds = [(0.0, float(high)) for high in rng.uniform(0.1, 5, size=6)]
    dense = pdp.Gaussian(covariance=factors @ factors.T + np.eye(6), bounds=bounds)
    yield "gaussian", dense
    yield "loewner", pdp.LoewnerBall(center=dense, radius=rng.uniform(0, 0.6))
    yield "sampled gaussian", pdp.SampledGaussian(center=dense, rows=300)
    yield "gaussian group", pdp.GaussianGroup(size=5, correlation=(-0.1, 0.4), bounds=(0, 3))
    yield (
        "gaussian series",
        pdp.GaussianSeries(length=12, correlation=rng.uniform(-0.9, 0.9), bounds=(0, 2)),
    )
    yield "interval", pdp.Unknown(size=3, bounds=(0, 10))


def adversaries(model: Any) -> dict[str, pdp.Adversaries]:
    """Every kind of set that this model admits."""
    first, second = model.names[:2]
    return {
        "all": pdp.Adversaries.all(),
        "weakest": pdp.Adversaries.weakest(),
        "strongest": pdp.Adversaries.strongest(),
        "knowing": pdp.Adversaries.knowing(at_most=1),
        "exactly": pdp.Adversaries.exactly(first, known=[second]),
    }


def discrete_queries(model: Any) -> dict[str, Any]:
    """One query of every kind."""
    names = model.names
    return {
        "sum": pdp.Sum(),
        "mean": pdp.Mean(),
        "linear": pdp.Linear(weights={names[0]: 1.5, names[1]: -0.7}),
        "count": pdp.Count(values={1}),
        "histogram": pdp.Histogram(),
        "custom": pdp.Custom(function=max),
        "list": [pdp.Sum(), pdp.Count(values={0})],
        "twice": [pdp.Sum(), pdp.Sum()],
    }


LONG = {"long chain", "mixing chain"}  # asked only what does not write a table out


def questions(name: str, model: Any) -> dict[str, Any]:
    """What is asked of a discrete model."""
    asked_of = discrete_queries(model)
    if name in LONG:
        return {what: asked_of[what] for what in ("sum", "mean", "linear", "count")}
    return asked_of


def gaussian_queries(model: Any) -> dict[str, Any]:
    """The same for real values."""
    names = model.names
    return {
        "sum": pdp.Sum(),
        "clamped": pdp.Mean(clamp=True),
        "linear": pdp.Linear(weights={names[0]: 1.5, names[1]: -0.7}),
        "list": [pdp.Sum(), pdp.Sum(over=[names[0]])],
    }


def answers(model: Any, queries: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Every question about one model: what was asked, and the answer with all digits."""
    for (who, attackers), (what, query) in itertools.product(
        adversaries(model).items(), queries.items()
    ):
        if who not in {"all", "weakest"} and what not in {"sum", "histogram", "clamped"}:
            continue
        for scale in SCALES if who == "all" else (1.0,):
            scales = scale if not isinstance(query, list) else [scale, 2 * scale]
            yield (
                f"leakage {what} {who} {scale}",
                asked(
                    lambda q=query, s=scales, a=attackers: ends(
                        pdp.leakage(model, q, scale=s, adversaries=a)
                    )
                ),
            )
        if who in {"all", "knowing"}:
            yield (
                f"calibrate {what} {who}",
                asked(
                    lambda q=query, a=attackers: scales_of(pdp.calibrate(model, q, adversaries=a))
                ),
            )
    yield "black box", asked(lambda: repr(pdp.black_box_leakage(model, epsilon=0.3).value))
    yield "budget", asked(lambda: repr(pdp.dp_budget(model, epsilon=1.0)))
    yield "baselines", asked(lambda: words(pdp.calibrate(model, pdp.Sum()).baselines.values()))
    yield (
        "calibrate sum all to 0.5",
        asked(lambda: scales_of(pdp.calibrate(model, pdp.Sum(), epsilon=0.5))),
    )
    yield "ledger", asked(lambda: words(spent(model)))


def asked(question: Any) -> str:
    """The answer, or the name of the error."""
    try:
        return str(question())
    except pdp.PdpError as error:
        return type(error).__name__


def words(numbers: Any) -> str:
    """All digits of several numbers."""
    return " ".join("None" if one is None else repr(float(one)) for one in numbers)


def ends(leak: Any) -> str:
    """Both ends of a bracket."""
    return words([leak.value, leak.lower])


def scales_of(calibration: Any) -> str:
    """The scale of a calibration, or one per query."""
    scales = getattr(calibration, "scales", None)
    return words([calibration.scale] if scales is None else scales)


def spent(model: Any) -> list[float]:
    """A ledger's account after two outside mechanisms, and what a sum would add to the first.

    The noise of that sum is fixed by its width: a scale calibrated to an epsilon is the smaller
    the finer the search, and the smaller scale spends more.
    """
    ledger = pdp.Ledger(model, epsilon=9.0)
    fixed = pdp.calibrate_to_accuracy(model, pdp.Sum(), half_width=20.0)
    return [ledger.charge(0.2), ledger.would_spend(fixed), ledger.charge(0.1)]


def record(path: Path) -> None:
    """Write every answer down."""
    warnings.simplefilter("ignore")
    print(f"pdp_calibrate {pdp.__version__} from {pdp.__file__}")
    lines: list[str] = []
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        families = [
            *((name, model, questions(name, model)) for name, model in discrete(rng)),
            *((name, model, gaussian_queries(model)) for name, model in gaussian(rng)),
        ]
        for name, model, queries in families:
            started = time.process_time()
            lines += [f"{seed} {name} | {what} | {a}" for what, a in answers(model, queries)]
            path.write_text("\n".join(lines) + "\n")
            print(f"{seed} {name}: {time.process_time() - started:.1f} CPU s", flush=True)
    print(f"{len(lines)} lines, {time.process_time():.0f} CPU s")


# Which way the truth lies from each number of an answer: below an upper end, a scale and what is
# spent, above a lower end and the budget that a black box may have.
_TRUTH_LIES = {"leakage": (-1, 1), "budget": (1,)}
_TOLERANCE = 1e-13
_NEARER, _ROUNDED = "within 1e-13, nearer", "within 1e-13, some number rounded further"
_NUMBERS = {"leakage": ("upper ends", "lower ends"), "calibrate": ("scales",) * 2}


def judged(what: str, old: str, new: str) -> tuple[str, str]:
    """Say whether an answer is closer to the truth or further off, and how each number moved."""
    try:
        before, after = (
            [math.nan if word == "None" else float(word) for word in answer.split()]
            for answer in (old, new)
        )
    except ValueError:
        return ("equal" if old == new else "other answer"), ""
    if len(before) != len(after):
        return "other answer", ""
    if old == new:
        return "equal", ""
    moves = [moved(*pair) for pair in zip(before, after, strict=True)]
    better = towards_the_truth(what, moves)
    if all(abs(move) <= _TOLERANCE for move in moves):
        return (_NEARER if min(better) >= 0 else _ROUNDED), signed(moves)
    if what.startswith("leakage") and (
        after[0] < before[1] * (1 - _TOLERANCE) or before[0] < after[1] * (1 - _TOLERANCE)
    ):
        return "contradiction", signed(moves)
    if what == "baselines":
        return "other answer", signed(moves)
    if min(better) >= -_TOLERANCE:
        return "closer", signed(moves)
    return ("further" if max(better) <= _TOLERANCE else "mixed"), signed(moves)


def towards_the_truth(what: str, moves: list[float]) -> list[float]:
    """Return the changes of an answer, positive where a number came closer."""
    wanted = _TRUTH_LIES.get(what.split()[0], (-1,) * len(moves))
    return [move * way for move, way in zip(moves, wanted, strict=True)]


def moved(before: float, after: float) -> float:
    """The relative change of a number; infinite where only one of them is a finite number."""
    if before == after or (math.isnan(before) and math.isnan(after)):
        return 0.0
    if not (math.isfinite(before) and math.isfinite(after)):
        return math.inf if math.isnan(before) or after > before else -math.inf
    return (after - before) / max(abs(before), abs(after))


def signed(moves: list[float]) -> str:
    """The changes, with their signs."""
    return " ".join(f"{move:+.1e}" for move in moves)


ADMITS = {
    "all": lambda _target, _known: True,
    "weakest": lambda _target, known: not known,
    "strongest": lambda _target, known: len(known) == 4,
    "knowing": lambda _target, known: len(known) <= 1,
    "exactly": lambda target, known: (target, known) == (0, {1}),
}


def truths() -> Iterator[tuple[str, Any]]:
    """What sums about a table of five binary tuples leak, by brute force in 60 digits."""
    from tests.oracles.brute_force import worst_leakage_mpmath

    for seed in SEEDS:
        table = dict(discrete(np.random.default_rng(seed)))["binary table"]
        for who, admits in ADMITS.items():
            for scale in SCALES if who == "all" else (1.0,):
                cells = table.probabilities, table.domains
                truth, _ = worst_leakage_mpmath(*cells, sum, scale, admits)
                yield f"{seed} binary table | leakage sum {who} {scale}", truth


def judge_by_truth(answered: dict[str, dict[str, str]]) -> None:
    """Say how far from the truth ends are, and whether any is on the wrong side of it."""
    found: dict[str, list[tuple[float, float]]] = {when: [] for when in answered}
    for key, truth in truths():
        for when, answers in answered.items():
            upper, lower = map(float, answers[key].split())
            found[when].append((float(upper - truth), float(truth - lower)))
    for when, gaps in found.items():
        wrong = sum(min(gap) < 0 for gap in gaps)
        above, below = (max(side) for side in zip(*gaps, strict=True))
        print(
            f"{len(gaps)} leakages of sums {when}, beside 60 digits: {wrong} on the wrong side,"
            f" upper ends at most {above:.1e} above, lower ends at most {below:.1e} below"
        )


def compare(before: Path, after: Path) -> None:
    """List what differs, by how much and which way."""
    old, new = (
        dict(line.rsplit(" | ", 1) for line in path.read_text().splitlines())
        for path in (before, after)
    )
    found: Counter[str] = Counter()
    largest: dict[str, float] = {}
    rounded: dict[str, list[float]] = {}
    for key in old | new:
        what = key.rsplit(" | ", 1)[1]
        if key not in old or key not in new:
            verdict, moves = "only before" if key in old else "only after", ""
        else:
            verdict, moves = judged(what, old[key], new[key])
        if verdict == _ROUNDED:
            changes = towards_the_truth(what, [float(move) for move in moves.split()])
            kind = what.split()[0]
            for place, change in enumerate(changes):
                if change < 0:
                    number = _NUMBERS.get(kind, (kind,) * len(changes))[place]
                    rounded.setdefault(number, []).append(-change)
        found[verdict] += 1
        furthest = max((abs(float(move)) for move in moves.split()), default=0.0)
        largest[verdict] = max(largest.get(verdict, 0.0), furthest)
        if verdict not in {"equal", _NEARER, _ROUNDED}:
            print(f"{verdict} | {key} | {old.get(key)} | {new.get(key)} | {moves}")
    print(f"{len(old)} lines before, {len(new)} after")
    for verdict, number in found.most_common():
        change = f", at most by {largest[verdict]:.1e}" if largest[verdict] else ""
        print(f"{number:6d} {verdict}{change}")
    for what, changes in rounded.items():
        print(f"       of these {len(changes)} {what}, at most by {max(changes):.1e}")
    judge_by_truth({"before": old, "after": new})


if __name__ == "__main__":
    paths = [Path(argument) for argument in sys.argv[1:]]
    record(*paths) if len(paths) == 1 else compare(*paths)
