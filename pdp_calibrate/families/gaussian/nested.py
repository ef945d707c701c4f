"""Covariances of entries in groups inside groups: pupils in classes in schools."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable, Sequence

import numpy as np

from pdp_calibrate.arrays import FloatArray, check_number, checked_positive
from pdp_calibrate.errors import ModelError


def nested_covariance(
    levels: Iterable[Iterable[Hashable]],
    *,
    correlations: Sequence[float],
    variance: float = 1.0,
) -> FloatArray:
    """Return the covariance of entries whose groups are nested, one row and column per entry.

    Two entries are correlated by the innermost group that both belong to: pupils of one class more
    than pupils of one school, and pupils of different schools not at all. That is the covariance of
    a sum of independent effects, one per group of each level, and one per entry.

    Parameters
    ----------
    levels
        For each level, from the outermost to the innermost, the group of every entry; for instance
        ``[frame["school"], frame["class"]]``. Groups of equal names in different outer groups are
        different groups.
    correlations
        For each level, the correlation of two entries that share its group and no inner one. From 0
        up to below 1, and never falling from the outermost to the innermost.
    variance
        That of every entry.

    Returns
    -------
    ndarray
        For `Gaussian(covariance=...)`. It is positive definite.

    Examples
    --------
    >>> nested_covariance([["s", "s", "s"], ["a", "a", "b"]], correlations=[0.1, 0.5])
    array([[1. , 0.5, 0.1],
           [0.5, 1. , 0.1],
           [0.1, 0.1, 1. ]])
    """
    columns = [list(level) for level in levels]
    shares = [0.0, *map(float, correlations)]
    if not columns or len(columns) != len(shares) - 1:
        raise ModelError(
            f"correlations must give one number for each of {len(columns)} levels (at least one),"
            f" got {len(shares) - 1}."
        )
    sizes = {len(column) for column in columns}
    if len(sizes) != 1 or sizes == {0}:
        raise ModelError(
            f"every level must name the group of every entry, got levels of {sorted(sizes)}."
        )
    checked_positive(variance, "variance")
    for share in shares:
        check_number(share, "correlations")
    if any(inner < outer for outer, inner in itertools.pairwise(shares)) or not (shares[-1] < 1):
        raise ModelError(
            "correlations must lie between 0 and below 1 and never fall from the outermost level to"
            f" the innermost, got {shares[1:]}."
        )
    matrix = np.zeros((len(columns[0]), len(columns[0])))
    groups: list[tuple[Hashable, ...]] = [()] * len(columns[0])
    for column, share in zip(columns, shares[1:], strict=True):
        if any(label is None or label != label for label in column):  # NaN
            raise ModelError("the group of an entry is missing: name a group of its own.")
        groups = [(*outer, label) for outer, label in zip(groups, column, strict=True)]
        numbers: dict[tuple[Hashable, ...], int] = {}
        place = np.array([numbers.setdefault(group, len(numbers)) for group in groups])
        matrix[place[:, np.newaxis] == place] = share
    np.fill_diagonal(matrix, 1.0)
    return matrix * float(variance)
