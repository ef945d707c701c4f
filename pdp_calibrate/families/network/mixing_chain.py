"""The set of all Markov chains that forget at least as fast as stated."""

from __future__ import annotations

import functools
import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from pdp_calibrate.arrays import check_number
from pdp_calibrate.core.contraction import hilbert_diameter
from pdp_calibrate.core.contributions import Contributions
from pdp_calibrate.core.model import (
    FOR_EVER,
    Domain,
    Model,
    checked_domain,
    checked_laws,
    checked_size,
    model_named,
    numbered_names,
)
from pdp_calibrate.core.schema_parts import COUNT, NAMES, NUMBER, Schema, nullable
from pdp_calibrate.errors import ModelError
from pdp_calibrate.families.network.couplings import EvenPath
from pdp_calibrate.families.network.network import Network, extremes


@dataclass(frozen=True, kw_only=True, eq=False, init=False, repr=False)
class MixingChain(Network):
    """All Markov chains on these states whose steps forget fast enough, whatever their numbers.

    A step with transition law P has the Hilbert diameter

        max over v, v', w, w' of  log P[v,w]·P[v',w'] / (P[v,w']·P[v',w]),

    0 if the next state does not depend on this one, infinite if some transition is impossible. The
    set holds every chain, from any start, whose every step has a diameter of at most D; the steps
    may differ from each other. The bound on its leakage uses D alone.

    Parameters
    ----------
    length
        The number T of tuples. None for chains without an end: `names` then names the one record of
        a step, and releases are made step by step in a ledger.
    states
        The values of the states; numbers if a sum is to be released.
    diameter
        D, zero or more. `diameter_of` gives that of a transition law.
    names, provenance
        One name per tuple, 0 … T−1 by default; and ``assumed``, ``public``, ``dp`` or ``private``.

    Examples
    --------
    >>> MixingChain(length=365, states=[0, 1], diameter=2.5)
    MixingChain(2 states, length 365, assumed)
    """

    defined_by = ("length", "states", "diameter")
    dependence = "any Markov chain that forgets at least as fast as stated"
    json_fields: ClassVar[Mapping[str, Schema]] = {
        "length": nullable(COUNT),
        "states": NAMES,
        "diameter": NUMBER,
    }
    runs_along_time = True
    covers_any_answer = True

    length: int
    """How many tuples there are; None if the chains have no end (streams have their own engine)."""
    states: Domain
    """The values that every tuple can take."""
    diameter: float
    """The largest Hilbert diameter of a step."""

    def __init__(
        self,
        *,
        length: int | None,
        states: Iterable[Hashable] = (0, 1),
        diameter: float,
        names: Iterable[Hashable] | None = None,
        provenance: str = "assumed",
    ) -> None:
        check_number(diameter, "diameter")
        if not 0 <= diameter < math.inf:
            raise ModelError(
                f"diameter must be zero or more and finite, got {diameter}. Chains that may never"
                " forget are a group of which nothing is known: use Unknown."
            )
        size = 1 if length is None else checked_size(length, "length")
        self._settle(
            scopes=(),
            factors=(),
            influences=(),
            states=checked_domain(states, "the states"),
            diameter=float(diameter),
            names=numbered_names(names, size),
            provenance=provenance,
            **({"length": size} if length is not None else FOR_EVER),
        )

    @staticmethod
    def diameter_of(transition: npt.ArrayLike) -> float:
        """Return the Hilbert diameter of a transition law, rounded up; infinite with zeros.

        Examples
        --------
        >>> round(MixingChain.diameter_of([[0.9, 0.1], [0.2, 0.8]]), 4)  # log(.9·.8/(.1·.2))
        3.5835
        """
        kernel = checked_laws(transition, "transition")
        if kernel.ndim != 2:
            raise ModelError(f"transition must be a square array, got shape {kernel.shape}.")
        return hilbert_diameter(kernel) * (1 + 1e-12)

    @staticmethod
    def diameter_of_staying(persistence: float, states: int) -> float:
        """Return the diameter of a step that stays with a probability, and else moves anywhere.

        Rounded up. The other states are reached with equal probabilities.

        Parameters
        ----------
        persistence
            The probability of staying: at least 1/states, which is no memory, and below 1.
        states
            How many states there are.

        Examples
        --------
        >>> round(MixingChain.diameter_of_staying(0.9, 2), 4)  # log(.9·.9/(.1·.1))
        4.3944
        """
        check_number(persistence, "persistence")
        if not 1 / states <= persistence < 1:
            raise ModelError(
                f"of {states} states one stays with a probability from {1 / states:.4g}, where"
                f" nothing is remembered, to below 1, got {persistence}. Without persistence any"
                " dependence is covered."
            )
        moving = (1 - persistence) / (states - 1) if states > 1 else persistence
        return max(0.0, 2 * math.log(persistence / moving)) * (1 + 1e-12)

    @property
    def persistence(self) -> float:
        """The probability of staying of a symmetric step that forgets exactly as fast.

        Rounded up: `diameter_of_staying` of it is no smaller than the diameter.
        """
        number = len(self.states)
        found = max(1 / (1 + math.exp(-self.diameter / 2) * (number - 1)), 1 / number)
        while found < 1 and self.diameter_of_staying(found, number) < self.diameter:
            found = math.nextafter(found, 1.0)
        return found

    @property
    def domains(self) -> tuple[Domain, ...]:
        """The states, once per tuple."""
        return (self.states,) * len(self.names)

    @property
    def lasting(self) -> float:
        """How much the leakage about a step grows at most, per unit of every step's budget."""
        return math.exp(min(self.diameter / 2, 700.0)) * (1 + 1e-12)

    @functools.cached_property
    def couplings(self) -> EvenPath:
        """Every tuple is coupled with the next."""
        return EvenPath(self.length, self.diameter)

    def member(self, contributions: Contributions) -> Model:
        """Return a chain of the set that tends to stay at the largest, or the smallest, value."""
        spread = max(contributions.values, key=lambda part: float(np.ptp(part)))[:, 0]
        signs = extremes(spread)
        # Four such weights make a cross-ratio of e^D.
        kernel = np.exp(
            min(self.diameter * (1 - 1e-12) / 4, 100.0) * np.multiply.outer(signs, signs)
        )
        chain: Any = model_named("MarkovChain")
        member: Model = chain(
            transition=kernel / kernel.sum(axis=1, keepdims=True),
            length=self.length,
            states=self.states,
            names=self.names,
            provenance=self.provenance,
        )
        return member.marked_like(self)

    def __repr__(self) -> str:
        extent = "for ever" if self.is_endless else f"length {self.length}"
        return f"MixingChain({len(self.states)} states, {extent}, {self.provenance})"
