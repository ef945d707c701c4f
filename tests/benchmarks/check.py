"""The stand-alone checker beside the engines.

    python -m tests.benchmarks.check random 3000
    python -m tests.benchmarks.check truth 3000
    python -m tests.benchmarks.check ledgers 100
    python -m tests.benchmarks.check cases
    python -m tests.benchmarks.check changed 1000
    python -m tests.benchmarks.check tables

The first calibrates that many random models, asks the checker about each file and about the same
file with 1e-5 less noise; `truth` compares it with brute force, with noise about where a promise
begins to hold; `ledgers` asks about random ledgers, of one model and of people; `cases` does so
with those of the head-to-head (`cases.py`); `changed` changes that many files and that many
certificates at random places; `tables` times tables of more than 4,096 cells, with their
certificates. They write `results/check.txt`, `check_truth.txt`, `check_ledgers.txt`,
`check_cases.txt`, `check_changed.txt` and `check_tables.txt`. A file that was calibrated must never
be called broken; one with less noise must never be proved where the engine is exact and reaches ε;
a changed one only if brute force says that it is sound.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import pdp_calibrate as pdp
from pdp_calibrate import check as checker
from pdp_calibrate.calibration import certificate
from pdp_calibrate.check import BROKEN, PROVED, UNDECIDED, check
from tests.benchmarks.cases import cases
from tests.benchmarks.heading import heading, keep
from tests.support.check_cases import calibration, latent_table, random_ledger, shrunk
from tests.support.check_mutants import (
    changed_files,
    changed_orders,
    changed_people,
    changed_radii,
    changed_rows,
    changed_trees,
    confirmed,
    confirmed_by,
    sound_people,
    sound_rows,
    truly_sound,
)

WORDS = ("proved", "broken", "undecided")


def random_ones(wanted: int) -> Iterator[tuple[str, Any]]:
    """Yield random calibrations by their family."""
    rng = np.random.default_rng(0)
    while wanted:
        found = calibration(rng)
        if found is not None:
            wanted -= 1
            yield type(found.model).__name__, found


def known_ones() -> Iterator[tuple[str, Any]]:
    """Yield the calibrations of the head-to-head."""
    for case in cases():
        for epsilon in case.epsilons:
            yield case.group, pdp.calibrate(case.model, case.query, epsilon=epsilon)
            if case.weakest:
                weakest = pdp.Adversaries.weakest()
                found = pdp.calibrate(case.model, case.query, epsilon=epsilon, adversaries=weakest)
                yield f"{case.group}, weakest", found
            if case.composed:
                joint = pdp.calibrate(case.model, [case.query] * 10, epsilon=epsilon)
                yield f"{case.group}, ten releases", joint


def compared(found_ones: Iterator[tuple[str, Any]]) -> list[str]:
    """Ask about every calibration, and about it with less noise."""
    tally: Counter[str] = Counter()
    spent, wrong, decided, begun = 0.0, [], 0, time.process_time()
    for kind, found in found_ones:
        described = json.loads(found.to_json())
        start = time.process_time()
        code, _ = check(described)
        spent = max(spent, time.process_time() - start)
        less, _ = check(shrunk(described))
        tight = found.leakage.exact and found.leakage.lower > found.epsilon * (1 - 1e-7)
        exact = "exact" if tight else "bound"
        about = f"{kind}, {found.noise}, {exact}"
        tally[f"{about:44} {WORDS[code]:10} with less noise {WORDS[less]}"] += 1
        decided += code != UNDECIDED
        if code == BROKEN or (tight and less == PROVED):
            wrong.append(json.dumps(described))
    count = sum(tally.values())
    return [
        f"{count} calibrations, {time.process_time() - begun:.0f} CPU s, a check <= {spent:.2f} s",
        f"decided: {decided} ({decided / max(1, count):.1%}), disagreements: {len(wrong)}",
        *wrong[:5],
        *(f"{number:5} {line}" for line, number in sorted(tally.items())),
        "",
    ]


def beside_truth(wanted: int) -> list[str]:
    """Ask about tables and covariances with noise of any scale, and compare with brute force."""
    rng, begun, tally = np.random.default_rng(6), time.process_time(), Counter[str]()
    for _ in range(wanted):
        described = json.loads(calibration(rng, simple=True).to_json())
        described = shrunk(described, float(rng.choice([rng.uniform(0.6, 1.2), 1 - 1e-6, 1])))
        described["leakage"] = None
        code, _ = check(described)
        sound, truth = truly_sound(described), truly_sound(described, 1e-9)
        tally[f"{described['model']['type']}, {WORDS[code]}, {'sound' if sound else 'broken'}"] += 1
        if (code == PROVED and not sound) or (code == BROKEN and truth):
            raise SystemExit(json.dumps(described))
    lines = [f"{number:5} {line}" for line, number in sorted(tally.items())]
    return [f"{wanted} files, {time.process_time() - begun:.0f} CPU s, no contradictions", *lines]


def ledgers(wanted: int) -> list[str]:
    """Ask about random ledgers, and about the same with less noise in every release."""
    rng, tally = np.random.default_rng(8), Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(wanted):
            kind, described = random_ledger(rng, Path(folder) / f"{number}.json")
            code, text = check(described)
            less = json.loads(json.dumps(described))
            for entry in less["entries"]:
                entry["scales"] = [scale * (1 - 1e-5) for scale in entry.get("scales", [])]
            tally[f"{kind:24} {WORDS[code]:10} with less noise {WORDS[check(less)[0]]}"] += 1
            if code == BROKEN:
                raise SystemExit(text + json.dumps(described))
    return [f"{number:5} {line}" for line, number in sorted(tally.items())]


def changed(wanted: int) -> list[str]:
    """Change files and certificates; what is proved and unsound raises."""
    files = confirmed(changed_files(1, wanted))
    orders = confirmed(changed_orders(4, wanted))
    rows = confirmed_by(changed_rows(5, wanted), sound_rows)
    with tempfile.TemporaryDirectory() as folder:
        people = confirmed_by(changed_people(6, wanted, Path(folder)), sound_people)
    checker.MOST_GAUSSIAN = certificate.TRIED = 1  # so that four tuples need a certificate
    certificate._LEFT_TO_TRY = 0
    trees = confirmed(changed_trees(2, wanted))
    checker.MOST_CELLS = 0  # so that four tuples of a chain need windows
    radii = confirmed(changed_radii(3, wanted))
    return [
        f"{wanted} changed files: {files} proved, all of them sound",
        f"{wanted} changed tables and orders: {orders} proved, all of them sound",
        f"{wanted} changed questions about rows: {rows} proved, all of them sound",
        f"{wanted} changed ledgers of people: {people} proved, all of them sound",
        f"{wanted} changed certificates: {trees} proved, all of them sound",
        f"{wanted} changed chains and radii: {radii} proved, all of them sound",
    ]


def larger_tables() -> list[str]:
    """Time tables of all kinds that are too large to be tried in full."""
    rng, lines = np.random.default_rng(0), []
    for columns, values in ((13, 2), (8, 3), (5, 6)):
        cells = rng.dirichlet([1.0] * values**columns).reshape((values,) * columns)
        domains = [list(range(values))] * columns
        kinds = {
            "positive": latent_table(rng, columns, values),
            "mixed signs": latent_table(rng, columns, values, rng.choice([-1, 1], columns)),
            "Dirichlet": pdp.JointTable(probabilities=cells, domains=domains),
        }
        for kind, model in kinds.items():
            described = json.loads(
                pdp.calibrate(model, pdp.Sum(), epsilon=1.0, certificate=True).to_json()
            )
            start = time.process_time()
            code, _ = check(described)
            spent = time.process_time() - start
            less, _ = check(shrunk(described))
            lines.append(
                f"{columns} columns of {values} values, {kind:12} {WORDS[code]} in {spent:.1f}"
                f" CPU s, with less noise {WORDS[less]}"
            )
            print(lines[-1], flush=True)
    return lines


def main() -> None:
    """Do the part that is asked for."""
    part, wanted = sys.argv[1], int((*sys.argv[2:], "200")[0])
    parts = {
        "random": ("check", lambda: compared(random_ones(wanted))),
        "cases": ("check_cases", lambda: compared(known_ones())),
        "changed": ("check_changed", lambda: changed(wanted)),
        "tables": ("check_tables", larger_tables),
        "truth": ("check_truth", lambda: beside_truth(wanted)),
        "ledgers": ("check_ledgers", lambda: ledgers(wanted)),
    }
    name, work = parts[part]
    keep(name, [*heading("check", "numpy"), *work()])


if __name__ == "__main__":
    main()
