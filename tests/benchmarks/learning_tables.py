"""How often a table learned from few rows leaks more than it says, public and private.

Run `python -m tests.benchmarks.learning_tables [cases]` from the project root. Each case draws a
law of 3 to 10 columns of two values, or 3 to 6 of three (independent columns, hidden classes,
hidden copies, pairs, triples, chains), draws rows from it, learns a table as users do, calibrates a
sum for ε = 1, and evaluates under the drawn law what that scale leaks. Nothing covers this fit;
what is claimed is that more than 1.1 is rare.
"""

from __future__ import annotations

import itertools
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import gammaln

import pdp_calibrate as pdp
from tests.benchmarks.heading import heading, keep

Table = npt.NDArray[np.float64]


def independent(rng: np.random.Generator, size: int, values: int) -> Table:
    """Columns that know nothing of each other."""
    law = np.ones(())
    for _ in range(size):
        law = np.multiply.outer(law, rng.dirichlet([2.0] * values))
    return law


def one_share(rng: np.random.Generator, size: int, values: int) -> Table:
    """A share of each value per row, from a Dirichlet law (beta-binomial for two values)."""
    weights = rng.choice([0.25, 0.5, 1, 2, 5]) * rng.uniform(0.5, 1.5, values)
    counts = np.stack([(_cells(size, values) == value).sum(axis=1) for value in range(values)], 1)
    logs = gammaln(counts + weights).sum(axis=1)
    return _law(logs, size, values)


def classes(rng: np.random.Generator, size: int, values: int) -> Table:
    """Two or three hidden classes of rows."""
    number = int(rng.integers(2, 4))
    shares, laws = rng.dirichlet([1.0] * number), rng.dirichlet([1.0] * values, (number, size))
    cells = _cells(size, values)
    parts = [
        share * np.prod([one[k][cells[:, k]] for k in range(size)], axis=0)
        for share, one in zip(shares, laws, strict=True)
    ]
    return np.asarray(np.sum(parts, axis=0).reshape((values,) * size))


def copies(rng: np.random.Generator, size: int, values: int) -> Table:
    """All columns repeat one hidden value, each with errors."""
    error, shares = rng.uniform(0.05, 0.35), rng.dirichlet([3.0] * values)
    cells = _cells(size, values)
    parts = [
        share * np.prod(np.where(cells == value, 1 - error, error / (values - 1)), axis=1)
        for value, share in enumerate(shares)
    ]
    return np.asarray(np.sum(parts, axis=0).reshape((values,) * size))


def pairs(rng: np.random.Generator, size: int, values: int) -> Table:
    """Random couplings of every two columns."""
    cells, strength = _cells(size, values), rng.uniform(0.1, 1.2) / np.sqrt(size / 3)
    logs = np.zeros(len(cells))
    for column in cells.T:
        logs += rng.normal(0, 0.5, values)[column]
    for first, second in itertools.combinations(cells.T, 2):
        logs += rng.normal(0, strength, (values, values))[first, second]
    return _law(logs, size, values)


def chain(rng: np.random.Generator, size: int, values: int) -> Table:
    """Each column stays at the value of the one before with one probability."""
    stays, cells = rng.uniform(0.4, 0.95), _cells(size, values)
    same = (cells[:, 1:] == cells[:, :-1]).sum(axis=1)
    logs = same * np.log(stays) + (size - 1 - same) * np.log((1 - stays) / (values - 1))
    return _law(logs, size, values)


def triples(rng: np.random.Generator, size: int, values: int) -> Table:
    """Pairs, and couplings of some three columns, which pairs do not show."""
    cells = _cells(size, values)
    logs = np.zeros(len(cells))
    for first, second in itertools.combinations(cells.T, 2):
        logs += rng.normal(0, 0.25, (values, values))[first, second]
    for one, two, three in itertools.combinations(cells.T, 3):
        if rng.random() < 3 / size:
            logs += rng.normal(0, 0.4, (values,) * 3)[one, two, three]
    return _law(logs, size, values)


def _cells(size: int, values: int) -> npt.NDArray[np.int64]:
    return np.array(list(itertools.product(range(values), repeat=size)))


def _law(logs: Table, size: int, values: int) -> Table:
    law = np.exp(logs - logs.max())
    return np.asarray((law / law.sum()).reshape((values,) * size))


KINDS: tuple[Callable[[np.random.Generator, int, int], Table], ...] = (
    independent, one_share, classes, pairs, chain, copies, triples,
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """One law and what was learned of it."""

    kind: str
    values: int
    size: int
    rows: int
    epsilon: float | None
    leak: float
    """What the scale of the learned model leaks under the law."""
    half: float
    """The same with ½ added to every count instead."""
    ratio: float
    """The scale over that of the law itself."""

    @property
    def density(self) -> float:
        """Rows per cell."""
        return self.rows / self.values**self.size


def drawn(seed: int, *, private: bool, largest: int = 10) -> Case | None:
    """Draw a case of at most `largest` columns and learn it; None where the fit is refused."""
    rng = np.random.default_rng(seed)
    values = int(rng.choice([2, 2, 3]))
    size = min(largest, int(rng.integers(3, 11 if values == 2 else 7)))
    kind = KINDS[seed % len(KINDS)]
    density = float(np.exp(rng.uniform(np.log(0.3), np.log(30.0))))
    rows = min(20_000, max(30, int(density * values**size)))
    epsilon = float(rng.choice([0.5, 1.0, 2.0])) if private else None
    law = np.maximum(kind(rng, size, values), 1e-12)
    law /= law.sum()
    domains = [list(range(values))] * size
    truth = pdp.JointTable(probabilities=law, domains=domains)
    counts = rng.multinomial(rows, law.ravel())
    frame = pd.DataFrame(np.repeat(_cells(size, values), counts, axis=0), columns=truth.names)
    stated = dict(zip(truth.names, domains, strict=True))
    found = []
    for smoothing in (None, 0.5):
        estimator = pdp.TableEstimator(
            domains=stated, epsilon=epsilon, smoothing=smoothing, source="public"
        )
        try:
            model = estimator.fit(frame).model_
        except pdp.ModelError:
            return None
        found.append(pdp.calibrate(model, pdp.Sum(), epsilon=1.0).scale)
    return Case(
        kind.__name__, values, size, rows, epsilon,
        leak=pdp.leakage(truth, pdp.Sum(), scale=found[0]).value,
        half=pdp.leakage(truth, pdp.Sum(), scale=found[1]).value,
        ratio=found[0] / pdp.calibrate(truth, pdp.Sum(), epsilon=1.0).scale,
    )  # fmt: skip


def summary(title: str, some: list[Case]) -> str:
    """Return a line about some cases."""
    if not some:
        return f"{title:28s}{0:6d}"
    leaks, halves = (np.array([getattr(one, key) for one in some]) for key in ("leak", "half"))
    low, middle, high = np.quantile([one.ratio for one in some], [0.1, 0.5, 0.9])
    return (
        f"{title:28s}{len(some):6d}{np.mean(leaks > 1.1):10.3f}{leaks.max():8.2f}"
        f"{f'{middle:.2f} ({low:.2f}–{high:.2f})':>20s}"
        f"{np.mean(halves > 1.1):12.3f}{halves.max():8.2f}"
    )


def main() -> None:
    """Run all cases and keep the result."""
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 700
    started = time.process_time()
    lines = [*heading("learning_tables", "numpy", "scipy", "opendp"), ""]
    head = (
        f"{'':28s}{'cases':>6s}{'above 1.1':>10s}{'most':>8s}{'scale/law':>20s}{'½: > 1.1':>12s}"
        f"{'most':>8s}"
    )
    for private in (False, True):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", pdp.ModelFitWarning)
            drawn_all = [drawn(seed, private=private) for seed in range(number)]
        cases = [one for one in drawn_all if one is not None]
        how = "Learned under ε = 0.5, 1 or 2" if private else "Without noise"
        refused = len(drawn_all) - len(cases)
        lines += [f"{how} ({refused} refused)", head, summary("all", cases)]
        for low, high in ((0, 1), (1, 3), (3, 10), (10, 100)):
            some = [one for one in cases if low <= one.density < high]
            lines.append(summary(f"{low} to {high} rows a cell", some))
        for values in (2, 3):
            lines.append(summary(f"{values} values", [c for c in cases if c.values == values]))
        for kind in KINDS:
            lines.append(summary(kind.__name__, [c for c in cases if c.kind == kind.__name__]))
        if private:
            for epsilon in (0.5, 1.0, 2.0):
                some = [one for one in cases if one.epsilon == epsilon]
                lines.append(summary(f"ε = {epsilon:g}", some))
        lines.append("")
    lines.append(f"{time.process_time() - started:.0f} CPU seconds")
    keep("learning_tables", lines)


if __name__ == "__main__":
    main()
