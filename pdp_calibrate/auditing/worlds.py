"""Databases as the adversary imagines them: drawn from θ given x_K and one of the two secrets.

Databases are arrays with a row per draw and a column per tuple: positions in the domain for
discrete tuples, the values themselves for continuous ones.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, cast

import numpy as np

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.adversary import Witness
from pdp_calibrate.core.contributions import Contributions
from pdp_calibrate.core.model import SHORT_TABLE, Model, position_of
from pdp_calibrate.core.table import JointTable
from pdp_calibrate.errors import UnsupportedQueryError
from pdp_calibrate.families.any_dependence import Unknown
from pdp_calibrate.families.chain.model import MarkovChain
from pdp_calibrate.families.exchangeable.model import BinaryGroup, CategoryGroup
from pdp_calibrate.families.gaussian.alike import GaussianGroup, GaussianSeries
from pdp_calibrate.families.gaussian.model import Gaussian
from pdp_calibrate.families.gaussian.network import GaussianNetwork
from pdp_calibrate.families.network.moments import Sums
from pdp_calibrate.families.network.network import Network

_LARGEST_DRAW = 3e8  # numbers


class World:
    """All that the adversary takes for possible, with one secret in place."""

    def __init__(self, witness: Witness, names: tuple[Hashable, ...], secret: Hashable) -> None:
        self._model = _drawable(witness.model)
        self._names = names
        self._target = position_of(witness.target, names)
        fixed = {position_of(name, names): value for name, value in witness.known.items()}
        self._fixed: dict[int, Any] = fixed | {self._target: secret}
        self._is_first = secret == witness.secrets[0]

    def draw(self, number: int, rng: np.random.Generator) -> FloatArray:
        """Draw databases from θ given x_K and the secret."""
        if number * len(self._names) > _LARGEST_DRAW:
            raise UnsupportedQueryError(
                "the model is too long to be audited with this number of draws."
            )
        model = self._model
        if isinstance(model, JointTable):
            return _from_table(model, self._places(), number, rng)
        if isinstance(model, MarkovChain):
            return _from_chain(model, self._places(), number, rng)
        if isinstance(model, Network):
            return _from_network(model, self._places(), number, rng)
        if isinstance(model, BinaryGroup):
            return _from_group(model, self._places(), number, rng)
        if isinstance(model, Gaussian):
            return _from_gaussian(model, self._fixed, number, rng)
        if isinstance(model, Unknown):
            return self._all_alike(model, number)
        raise UnsupportedQueryError(f"no audit draws databases of {type(model).__name__}.")

    def _places(self) -> dict[int, int]:
        """Return what is fixed as positions in the domains."""
        domains = self._model.domains
        return {axis: domains[axis].index(value) for axis, value in self._fixed.items()}

    def _all_alike(self, model: Unknown, number: int) -> FloatArray:
        """Draw from the worst of all laws: everyone unknown stands where the target does."""
        ends = model.domain
        value = self._fixed[self._target]
        numbers = {k: v for k, v in self._fixed.items() if k != self._target}
        row = [numbers.get(axis, value) for axis in range(model.size)]
        if not model.is_continuous:
            row = [ends.index(held) for held in row]
        return np.tile(np.array(row, dtype=np.float64), (number, 1))


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


def _drawable(model: Model) -> Model:
    """Return the model in a form that can be drawn from."""
    if isinstance(model, CategoryGroup) or (isinstance(model, Network) and model.fits_a_table):
        return model.to_table()
    if isinstance(model, BinaryGroup) and SHORT_TABLE.admits([2] * model.size):
        return model.to_table()
    if isinstance(model, GaussianGroup | GaussianSeries):
        return _member_of(model)
    if isinstance(model, GaussianNetwork):
        return model.to_gaussian()
    return model


def _member_of(model: GaussianGroup | GaussianSeries) -> Gaussian:
    """Return a Gaussian with the strongest correlation; with next to no variance if none is stated.

    Where the worst member of the set has other means, the witness holds it already.
    """
    low, high = model.correlation if isinstance(model, GaussianGroup) else (model.correlation,) * 2
    strongest = high if abs(high) >= abs(low) else low
    if model.variance is not None:
        return Gaussian(
            covariance=model.matrix(strongest) * model.variance,
            bounds=model.bounds,
            names=model.names,
        )
    member = model.concentrated(high)
    if member is None:
        raise UnsupportedQueryError("the model is too large to be audited: its law is a matrix.")
    return member


def _from_table(
    table: JointTable, fixed: Mapping[int, int], number: int, rng: np.random.Generator
) -> FloatArray:
    shape = table.probabilities.shape
    unknown = [axis for axis in range(len(shape)) if axis not in fixed]
    cells = tuple(fixed.get(axis, slice(None)) for axis in range(len(shape)))
    masses = np.asarray(table.probabilities[cells]).ravel()
    drawn = np.empty((number, len(shape)))
    for axis, place in fixed.items():
        drawn[:, axis] = place
    if unknown:
        flat = rng.choice(len(masses), size=number, p=masses / masses.sum())
        drawn[:, unknown] = np.array(np.unravel_index(flat, [shape[axis] for axis in unknown])).T
    return drawn


def _from_chain(
    chain: MarkovChain, fixed: Mapping[int, int], number: int, rng: np.random.Generator
) -> FloatArray:
    """Draw forwards, weighing each state by how well what is known later follows from it."""
    states = len(chain.states)
    with np.errstate(divide="ignore"):
        log_kernel = np.log(chain.kernel)
    later = np.zeros((chain.length, states))  # logarithms: what is known may be rare
    for axis in range(chain.length - 1, -1, -1):
        if axis + 1 < chain.length:
            later[axis] = np.logaddexp.reduce(log_kernel + later[axis + 1], axis=1)
        if axis in fixed:
            later[axis, np.arange(states) != fixed[axis]] = -np.inf
        later[axis] -= later[axis].max()
    drawn = np.empty((number, chain.length))
    laws = np.tile(_shares(chain.log_start + later[0]), (number, 1))
    for axis in range(chain.length):
        levels = np.cumsum(laws, axis=1)
        picks = rng.random(number) * levels[:, -1]
        drawn[:, axis] = (picks[:, np.newaxis] >= levels[:, :-1]).sum(axis=1)
        if axis + 1 < chain.length:
            follow = _shares(log_kernel + later[axis + 1])
            laws = follow[drawn[:, axis].astype(np.intp)]
    return drawn


def _from_network(
    network: Network, fixed: Mapping[int, int], number: int, rng: np.random.Generator
) -> FloatArray:
    """Draw tuple after tuple, given those drawn before."""
    sums = Sums(network, fixed)
    if network.only_additive and sums.order:
        raise UnsupportedQueryError("a set of laws cannot be drawn from, only one that it holds.")
    if not sums.is_affordable:
        raise UnsupportedQueryError(
            "the network is too closely connected for databases to be drawn from it."
        )
    return sums.draws(number, rng)


def _shares(logs: FloatArray) -> FloatArray:
    """Return probabilities up to a factor; nothing where nothing is possible."""
    peaks = logs.max(axis=-1, keepdims=True)
    return np.asarray(np.exp(logs - np.where(np.isfinite(peaks), peaks, 0.0)))


def _from_group(
    group: BinaryGroup, fixed: Mapping[int, int], number: int, rng: np.random.Generator
) -> FloatArray:
    """Draw member after member; what is left is exchangeable again."""
    size = group.size
    drawn = np.empty((number, size))
    unknown = [axis for axis in range(size) if axis not in fixed]
    for axis, place in fixed.items():
        drawn[:, axis] = place
    ones = sum(fixed.values())
    with np.errstate(divide="ignore"):
        logs = np.log(group.count_probabilities)
    counts = np.arange(len(unknown) + 1)
    logs = logs[ones + counts] - _log_ways(size)[ones + counts] + _log_ways(len(unknown))
    masses = np.exp(logs - logs.max())
    found = rng.choice(counts, size=number, p=masses / masses.sum())
    ranks = rng.random((number, len(unknown))).argsort(axis=1)
    drawn[:, unknown] = ranks < found[:, np.newaxis]
    return drawn


def _log_ways(size: int) -> FloatArray:
    steps = np.log(np.arange(1, size + 1))
    factorials = np.concatenate([[0.0], np.cumsum(steps)])
    return np.asarray(factorials[-1] - factorials - factorials[::-1])


def _from_gaussian(
    model: Gaussian, fixed: Mapping[int, float], number: int, rng: np.random.Generator
) -> FloatArray:
    size = len(model.names)
    known = sorted(fixed)
    unknown = [axis for axis in range(size) if axis not in fixed]
    drawn = np.empty((number, size))
    drawn[:, known] = [fixed[axis] for axis in known]
    if unknown:
        covariance = model.covariance
        gain = np.linalg.solve(
            covariance[np.ix_(known, known)], covariance[np.ix_(known, unknown)]
        ).T
        held = np.array([fixed[axis] for axis in known])
        mean = model.mean[unknown] + gain @ (held - model.mean[known])
        left = covariance[np.ix_(unknown, unknown)] - gain @ covariance[np.ix_(known, unknown)]
        root = np.linalg.cholesky(left)
        drawn[:, unknown] = mean + rng.standard_normal((number, len(unknown))) @ root.T
    return drawn
