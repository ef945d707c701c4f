"""A network on a plane: who is coupled with whom, and about whom most could be learned."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import numpy as np

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.calibration.result import AnyCalibration
from pdp_calibrate.core.problem import Problem, split
from pdp_calibrate.core.query import lower
from pdp_calibrate.families.network.couplings import Couplings
from pdp_calibrate.show.views import drawable
from pdp_calibrate.show.words import entry

_MOST_DRAWN = 250  # tuples, beyond which a picture shows nothing
_MOST_SEARCHED = 8  # tuples about each of which a search is made


@dataclass(frozen=True, kw_only=True)
class NetworkMap:
    """A network, and a bound on what could be learned about each of its tuples."""

    names: tuple[str, ...]
    """The tuples."""
    places: tuple[tuple[float, float], ...]
    """Where each is drawn: close to those it is coupled with."""
    couplings: tuple[tuple[int, int, float | None], ...]
    """Pairs of tuples, and how strongly they are coupled; None without limit. Of Gaussian values,
    their correlation given all others, without its sign."""
    bounds: tuple[float, ...]
    """Nobody learns more than this about a tuple, in nats."""
    target: str | None
    """About whom the worst adversary that was found learns something."""
    known: tuple[str, ...]
    """Whom this adversary knows."""


def network(calibration: AnyCalibration) -> NetworkMap | None:
    """Return the graph of a network; None for other models, and for more tuples than can be seen.

    Small networks and Gaussian ones are searched about each tuple; the bounds of others are those
    of elimination, which hold for every adversary, or ε where that is less. It is about Laplace
    noise: Gaussian noise has no ε of its own.
    """
    calibration = drawable(calibration)
    model = calibration.model
    if calibration.noise != "laplace" or not 3 <= len(model.names) <= _MOST_DRAWN:
        return None
    strengths = model.coupled_pairs()
    if strengths is None:
        return None
    contributions = lower(calibration.query, model)
    if contributions.table is not None:
        return None
    (problem,) = split(model, contributions, calibration.adversaries)
    bounds = _bounds(problem, calibration.scale)
    witness = calibration.leakage.witness
    graph = Couplings(len(model.names), strengths)
    pairs = sorted(graph.strengths.items())
    return NetworkMap(
        names=tuple(map(entry, model.names)),
        places=tuple((float(x), float(y)) for x, y in _places(graph)),
        couplings=tuple((k, m, d if math.isfinite(d) else None) for (k, m), d in pairs),
        bounds=tuple(np.minimum(bounds, calibration.epsilon).tolist()),
        target=None if witness is None else entry(witness.target),
        known=() if witness is None else tuple(map(entry, witness.known)),
    )


def _bounds(problem: Problem, scale: float) -> FloatArray:
    """Bound what could be learned about each tuple; 0 about those whom nobody attacks."""
    knowledge = problem.knowledge
    bounds = np.zeros(len(problem.names))
    found = problem.engine.bounds_at_once(scale, beyond=_MOST_SEARCHED)
    for target in knowledge.targets:
        if found is not None:
            bounds[target] = found[target]
            continue
        about = problem.against(dataclasses.replace(knowledge, targets=(target,)))
        bounds[target] = about.engine.bracket(scale, upper_only=True).upper
    return bounds


def _places(graph: Couplings) -> FloatArray:
    """Place tuples so that distances resemble the number of couplings between them.

    Classical scaling: the two leading axes of the squared distances, centred.
    """
    size = graph.size
    apart = np.full((size, size), np.nan)
    for place in range(size):
        for other, steps in graph.distances(place).items():
            apart[place, other] = steps
    farthest = float(np.nanmax(apart))
    apart = np.where(np.isnan(apart), farthest + 1, apart)  # another component
    centred = np.eye(size) - 1 / size
    values, vectors = np.linalg.eigh(-0.5 * centred @ apart**2 @ centred)
    return np.asarray(vectors[:, [-1, -2]] * np.sqrt(np.maximum(values[[-1, -2]], 1e-12)))
