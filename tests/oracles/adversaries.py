"""Every adversary in turn: a target, and the positions of the tuples that are known."""

import itertools
from collections.abc import Callable, Iterator

import numpy as np

Admits = Callable[[int, frozenset[int]], bool]


def everyone(_target: int, _known: frozenset[int]) -> bool:
    """Admit every adversary."""
    return True


def every_adversary(size: int, admits: Admits = everyone) -> Iterator[tuple[int, tuple[int, ...]]]:
    """All admitted pairs (i, K), K a subset of the positions other than i, in ascending order."""
    for target in range(size):
        others = [place for place in range(size) if place != target]
        for number in range(size):
            for known in itertools.combinations(others, number):
                if admits(target, frozenset(known)):
                    yield target, known


def possible_cells(
    table: np.ndarray,
) -> Iterator[tuple[int, dict[int, int], dict[int, list[tuple[int, ...]]]]]:
    """All targets and known values, each with the possible cells under every secret."""
    for target, known in every_adversary(table.ndim):
        for held in itertools.product(*(range(table.shape[place]) for place in known)):
            fixed = dict(zip(known, held, strict=True))
            cells: dict[int, list[tuple[int, ...]]] = {}
            for cell in itertools.product(*map(range, table.shape)):
                if table[cell] > 0 and all(cell[place] == v for place, v in fixed.items()):
                    cells.setdefault(cell[target], []).append(cell)
            yield target, fixed, cells
