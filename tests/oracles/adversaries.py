"""Every adversary in turn: a target, and the positions of the tuples that are known."""

import itertools
from collections.abc import Callable, Iterator

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
