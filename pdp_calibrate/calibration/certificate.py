"""Certificates: what the stand-alone checker needs, with a calibration, to prove a large one.

Most calibrations need none. For jointly Gaussian values the checker tries all sets of known tuples,
which are too many from 14 tuples on. A certificate divides them for each target: a tree is ``[k,
tree if k is known, tree if not]``, ``0`` where one bound covers all that is still undecided, or
``null`` where the checker should try all of it. It says where to look, and proves nothing itself:
the checker evaluates every bound again, in exact arithmetic.

For a `JointTable` of more than 4,096 cells it holds, for each target, the `orders` in which the
checker decides whether each other tuple is known: those that say most about the target come first,
so that the bound on all that is still undecided (Corollary 19a of Theorem 19 (docs/theory)) covers
large parts early.

For a `Network` it holds the order in which all other tuples are summed out (Theorem 22), for the
targets where the checker's own order is not good enough: any order is a proof.

For a long `MarkovChain` it holds the `radius` at which the engine cut its windows off (Theorem 5).
The checker cuts them there too, and charges for it; without a radius it goes on until the charge is
negligible, which takes longer.

For several answers about a finite model, whose grid of outputs is too large for the checker,
`plans` holds a transport plan for every value of the known tuples and every two secrets, in the
order in which the checker asks: rows of ``[from, to, mass]``, or ``null`` where moving every answer
to the nearest one suffices. Any plan is a proof (Theorem 13).

Of `Blocks` and of a `ModelSet`, `models` holds a certificate for each block or member.

The bound of a tree is Theorem 9 (docs/theory): whatever part of the undecided tuples R is known
in addition to K, the residual of x_i lies on a sphere whose diameter is the projection of x_i on R.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pdp_calibrate.core.composite import Blocks, ModelSet
from pdp_calibrate.core.contraction import contracted
from pdp_calibrate.core.model import STORED_CELLS
from pdp_calibrate.core.table import JointTable
from pdp_calibrate.errors import CalibrationError
from pdp_calibrate.families.chain.model import MarkovChain
from pdp_calibrate.families.chain.windows import Setup
from pdp_calibrate.families.exchangeable.model import BinaryGroup, CategoryGroup
from pdp_calibrate.families.gaussian.model import Gaussian
from pdp_calibrate.families.gaussian.sphere import sphere_bound
from pdp_calibrate.families.network.elimination import farthest_first, least_fill
from pdp_calibrate.families.network.network import Network

if TYPE_CHECKING:
    from pdp_calibrate.arrays import FloatArray
    from pdp_calibrate.calibration.result import Calibration
    from pdp_calibrate.core.contributions import Contributions
    from pdp_calibrate.core.model import Model
    from pdp_calibrate.families.network.couplings import Couplings

IntArray = npt.NDArray[np.int64]

TRIED = 13
"""Tuples up to which no tree is needed: the checker tries all sets of known ones."""
_LEFT_TO_TRY = 4  # undecided tuples at most, all of whose sets the checker tries
_CANDIDATES = 6  # tuples considered for the next division of a tree
_MOST_BRANCHES = 20_000  # of a certificate: some megabytes of JSON
_TRIED_CELLS = 2**12  # of a table, up to which the checker's own order will do
_WRITTEN_OUT = (JointTable, BinaryGroup, CategoryGroup, MarkovChain, Network)  # if small
_BELOW = 1 - 1e-9  # bounds this close to ε are left to exact arithmetic


def certified(calibration: Calibration[Any, Any]) -> Calibration[Any, Any]:
    """Return the calibration with a certificate: an empty one where the checker needs none.

    Raises
    ------
    CalibrationError
        If no certificate of a manageable size is found.
    """
    return dataclasses.replace(calibration, certificate=_certificate(calibration))


def _certificate(calibration: Calibration[Any, Any]) -> dict[str, Any]:
    model = calibration.model
    coordinates = sum(part.coordinates for part in calibration.contributions)
    if isinstance(model, _WRITTEN_OUT) and calibration.noise == "laplace" and coordinates > 1:
        from pdp_calibrate.calibration.transport_plans import plans_for  # loads scipy

        plans = plans_for(calibration)
        if plans:
            return {"plans": plans}
    return _certificate_of(model, calibration.contributions, calibration)


def _certificate_of(
    model: Model, parts: Sequence[Contributions], calibration: Calibration[Any, Any]
) -> dict[str, Any]:
    """Return what the checker needs for a model, or for one block or member of it."""
    scales, laplace = calibration.scales, calibration.noise == "laplace"
    if isinstance(model, Blocks | ModelSet):
        inner, start = [], 0
        for one in model.models:
            positions = range(start, start + len(one.names))
            start = positions.stop if isinstance(model, Blocks) else 0
            selected = [part.select(positions) for part in parts if part.table is None]
            inner.append(_certificate_of(one, selected, calibration) if selected else {})
        return {"models": inner} if any(inner) else {}
    if type(model) in (JointTable, Network) and laplace:
        both = zip(parts, scales, strict=True)
        ranges = [part.tuple_ranges() / scale for part, scale in both]
        return orders_for(model, np.sum(ranges, axis=0), calibration.epsilon)
    if type(model) is MarkovChain and laplace and len(parts) == 1:
        return _radius(model, parts[0], scales[0])
    weights = parts[0].weights
    one_answer = laplace and len(parts) == 1 and weights is not None
    clamped = getattr(calibration.queries[0], "clamp", True)
    if not isinstance(model, Gaussian) or not one_answer or clamped or len(model.names) <= TRIED:
        return {}
    slopes = np.concatenate(weights or ()) / scales[0]
    return {"branches": _branches(model, slopes, calibration.epsilon)}


def orders_for(model: Model, budgets: FloatArray, epsilon: float) -> dict[str, Any]:
    """Return the orders that the checker needs for a large table or a network, if any.

    `budgets` say how far each tuple alone can move the likelihood of all that was released.
    """
    orders: dict[str, list[int]] = {}
    if type(model) is JointTable:
        if _TRIED_CELLS < model.probabilities.size <= STORED_CELLS:  # or it is not in the file
            orders = _most_telling_first(model.probabilities)
    elif type(model) is Network:
        orders = _orders(model.couplings, budgets, epsilon)
    return {"orders": orders} if orders else {}


def _most_telling_first(cells: FloatArray) -> dict[str, list[int]]:
    """Return, for each target, all others by their mutual information with it."""
    orders = {}
    for target in range(cells.ndim):
        told = {}
        for other in set(range(cells.ndim)) - {target}:
            rest = tuple(k for k in range(cells.ndim) if k not in (target, other))
            pair = cells.sum(axis=rest)
            alone = pair.sum(axis=0) * pair.sum(axis=1, keepdims=True)
            some = pair > 0
            told[other] = float(pair[some] @ np.log(pair[some] / alone[some]))
        orders[str(target)] = sorted(told, key=lambda other: -told[other])
    return orders


def _radius(model: MarkovChain, asked: Contributions, scale: float) -> dict[str, Any]:
    """Return how far windows reach, for a chain too long for whole windows."""
    if asked.table is not None or asked.coordinates > 1:
        return {}
    reach = Setup(model, asked).reach(scale)
    return {"radius": reach} if 0 < reach < model.length - 1 else {}


def _orders(couplings: Couplings, budgets: FloatArray, epsilon: float) -> dict[str, list[int]]:
    """Return an order for each target whose bound by farthest-first is above ε, if one is not."""
    orders, everyone = {}, range(couplings.size)
    fills = least_fill(couplings, everyone)
    for target in everyone:
        first = [k for k in farthest_first(couplings, target) if k != target]
        first = [k for k in everyone if k not in {*first, target}] + first
        inner = [k for k in least_fill(couplings, everyone, last=target) if k != target]
        ways = [first, inner, [k for k in fills if k != target], first[::-1]]
        found = [_left(couplings, budgets, order)[target] for order in ways]
        if found[0] > epsilon * _BELOW and min(found) <= epsilon:
            orders[str(target)] = ways[int(np.argmin(found))]
    return orders


def _left(couplings: Couplings, budgets: FloatArray, order: list[int]) -> list[float]:
    """Return the budgets after summing out tuples in an order."""
    near = [dict(row) for row in couplings.neighbours]
    left = [float(budget) for budget in budgets]
    for j in order:
        row, near[j] = near[j], {}
        for k, own in row.items():
            del near[k][j]
            left[k] += contracted(own, left[j])
        for (k, one), (m, other) in itertools.combinations(row.items(), 2):
            near[k][m] = near[m][k] = near[k].get(m, 0.0) + contracted(one, other)
    return left


def _branches(model: Gaussian, weights: FloatArray, epsilon: float) -> dict[str, Any]:
    """Return a tree for every target, by its position."""
    joint = np.vstack([model.covariance, weights @ model.covariance])
    joint = np.column_stack([joint, np.append(joint[:-1] @ weights, joint[-1] @ weights)])
    search = _Search()
    trees = {}
    for target, (low, high) in enumerate(model.bounds):
        others = np.array([k for k in range(len(weights)) if k != target])
        trees[str(target)] = search.tree(joint, target, others, (high - low) / epsilon)
    return trees


class _Search:
    """Divides the sets of known tuples until a bound covers each part."""

    def __init__(self) -> None:
        self.branches = 0

    def tree(self, given: FloatArray, target: int, undecided: IntArray, width: float) -> Any:
        """Return the tree of all that is undecided; `given` is the covariance given K."""
        bound, candidates = _bound(given, target, undecided)
        if bound * width <= _BELOW:
            return 0
        if len(undecided) <= _LEFT_TO_TRY:
            return None
        self.branches += 1
        if self.branches > _MOST_BRANCHES:
            raise CalibrationError(
                f"no certificate of at most {_MOST_BRANCHES} branches is found; calibrate without"
                " certificate=True."
            )
        ways = [_divided(given, target, undecided, int(split)) for split in candidates]
        _, split, known = min(ways, key=lambda way: way[0])
        rest = np.delete(undecided, split)
        return [
            int(undecided[split]),
            self.tree(known, target, rest, width),
            self.tree(given, target, rest, width),
        ]


def _divided(
    given: FloatArray, target: int, undecided: IntArray, split: int
) -> tuple[float, int, FloatArray]:
    """Decide about one tuple: the bounds of both parts, added, and the covariance given it."""
    place, rest = int(undecided[split]), np.delete(undecided, split)
    column = given[:, place]
    known = given - np.outer(column, column) / given[place, place]
    return _bound(known, target, rest)[0] + _bound(given, target, rest)[0], split, known


def _bound(given: FloatArray, target: int, undecided: IntArray) -> tuple[float, IntArray]:
    """Bound |β| over all known subsets of the undecided, and propose what to decide next.

    Proposed are the tuples most strongly coupled with the target given all others.
    """
    pair = np.array([target, len(given) - 1])
    inner = given[np.ix_(undecided, undecided)]
    across = given[np.ix_(undecided, pair)]
    whole = given[np.ix_(pair, pair)]
    left = whole - across.T @ np.linalg.solve(inner, across)
    floor, slope = left[0, 0], left[0, 1] / left[0, 0]
    rest = left[1, 1] - slope * left[0, 1]
    variance, cross, spread = whole[0, 0], whole[0, 1], whole[1, 1]
    bound = sphere_bound(variance, cross, spread, floor, slope, rest, spread, 0.0)
    members = np.append(undecided, target)
    precision = np.linalg.inv(given[np.ix_(members, members)])
    strengths = precision[-1, :-1] ** 2 / np.diag(precision)[:-1]
    return float(bound), np.argsort(-strengths)[:_CANDIDATES]
