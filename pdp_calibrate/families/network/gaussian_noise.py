"""Gaussian noise on networks, trees and mixing chains.

A small network is written out and searched exactly, as a joint table. In a large one nobody's
answer moves further than all tuples together that are connected with the target: tuples outside
are independent of them and only add noise. That is the coupling's upper end; whoever knows everyone
else gives the lower one.
"""

from __future__ import annotations

from pdp_calibrate.core.couplings import joint_range
from pdp_calibrate.core.finite_noise import VectorBound
from pdp_calibrate.core.model import SHORT_TABLE
from pdp_calibrate.core.problem import Bracket, Engine, Limits, Problem, WrittenOut
from pdp_calibrate.families.network.network import Network


class NetworkNoiseEngine(Engine):
    """Searches the joint table of a small network; bounds a large one."""

    charges_rounding = True

    def __init__(self, problem: Problem) -> None:
        network = problem.model
        if not isinstance(network, Network):
            raise TypeError(f"this engine searches networks, got {network!r}.")
        sizes = list(map(len, network.domains))
        small = network.fits_a_table and SHORT_TABLE.admits(sizes, network.log_rarest())
        self._search: WrittenOut | VectorBound
        if small or (network.fits_a_table and problem.contributions.table is not None):
            self._search = WrittenOut.of(problem, network.to_table())
        elif problem.contributions.table is not None:
            self._search = VectorBound(problem)
        else:
            moves = (
                joint_range(problem.contributions.select(component))
                for component in _components(network)
            )
            self._search = VectorBound(problem, max(moves))

    def search(self, scale: float, limits: Limits) -> Bracket:
        """Find the worst adversary at one scale; see `core.problem.Engine`."""
        return self._search.search(scale, limits)


def _components(network: Network) -> list[tuple[int, ...]]:
    """Return the tuples that are connected with each other."""
    label = list(range(len(network.names)))

    def root(place: int) -> int:
        while label[place] != place:
            label[place] = label[label[place]]
            place = label[place]
        return place

    for first, second in network.couplings.strengths:
        label[root(first)] = root(second)
    found: dict[int, list[int]] = {}
    for place in range(len(label)):
        found.setdefault(root(place), []).append(place)
    return [tuple(places) for places in found.values()]
