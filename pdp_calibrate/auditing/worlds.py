"""Databases that the adversary considers possible: θ given x_K and one of the two secrets.

Databases are arrays with a row per draw and a column per tuple: positions in the domain for
discrete tuples, the values themselves for continuous ones.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, cast

import numpy as np

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.adversary import Witness
from pdp_calibrate.core.contributions import Contributions
from pdp_calibrate.core.model import Model, position_of
from pdp_calibrate.errors import UnsupportedQueryError

_LARGEST_DRAW = 3e8  # numbers


def drawn_databases(
    witness: Witness,
    names: tuple[Hashable, ...],
    secret: Hashable,
    number: int,
    rng: np.random.Generator,
) -> FloatArray:
    """Draw databases that the adversary considers possible, from θ given x_K and one secret."""
    if number * len(names) > _LARGEST_DRAW:
        raise UnsupportedQueryError(
            "the model is too long to be audited with this number of draws."
        )
    target = position_of(witness.target, names)
    known = {position_of(name, names): value for name, value in witness.known.items()}
    return witness.model.draws(number, given=known | {target: secret}, target=target, rng=rng)


def answers_in(databases: FloatArray, contributions: Contributions, model: Model) -> FloatArray:
    """Return the exact answer about each database, one row each, one column per coordinate."""
    total = np.zeros((len(databases), contributions.coordinates))
    if contributions.table is not None:
        return np.asarray(contributions.table[tuple(databases.astype(np.intp).T)])
    for axis, (array, domain) in enumerate(zip(contributions.values, model.domains, strict=True)):
        column = databases[:, axis]
        if not model.continuous_tuples[axis]:
            total += array[column.astype(np.intp)]
            continue
        low, high = (float(cast("float", end)) for end in domain)
        inside = np.clip(column, low, high) if contributions.clamped else column
        if contributions.weights is not None:
            total += inside[:, np.newaxis] * contributions.weights[axis]
        else:  # a record stands at one of two ends
            share = (inside[:, np.newaxis] - low) / (high - low)
            total += (1 - share) * array[0] + share * array[1]
    return total


def as_mappings(databases: FloatArray, model: Model) -> list[dict[Hashable, Any]]:
    """Return each database as ``{name: value}``."""
    return [
        {
            name: float(held) if continuous else domain[int(held)]
            for name, domain, continuous, held in zip(
                model.names, model.domains, model.continuous_tuples, row, strict=True
            )
        }
        for row in databases
    ]
