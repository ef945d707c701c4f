"""A Markov chain along time: yesterday predicts today."""

from __future__ import annotations

import decimal
import functools
import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from pdp_calibrate.arrays import FloatArray, read_only
from pdp_calibrate.core.contraction import diameter_of
from pdp_calibrate.core.model import (
    FOR_EVER,
    LOG_SMALLEST,
    Domain,
    Model,
    checked_domain,
    checked_laws,
    checked_size,
    numeric_domain,
    refuse_endless,
)
from pdp_calibrate.core.schema_parts import COUNT, NAMES, VECTOR, described, nullable
from pdp_calibrate.core.table import (
    JointTable,
    refuse_too_many_cells,
    refuse_underflow,
    written_out,
)
from pdp_calibrate.errors import ModelError
from pdp_calibrate.families.chain.mixing import Mixing

_SMALLEST = 1e-280  # probabilities below this may have lost digits to underflow


@dataclass(frozen=True, kw_only=True, eq=False, init=False, repr=False)
class MarkovChain(Model):
    """States x_0 … x_{T−1}, each drawn from the transition law of the one before.

    Parameters
    ----------
    transition
        Square array; row v is the law of the next state after state v. A zero is an assumption:
        adversaries never condition on an event of probability zero.
    length
        The number T of tuples. None for a chain without an end: `names` then names the one record
        of a step, releases are made step by step in a ledger, and every transition must be
        possible.
    states
        The values of the states, in the order of the rows; numbers if a sum is to be released.
    initial
        The law of x_0. None for the stationary law, which only an irreducible chain has.
    names, provenance
        One name per tuple, 0 … T−1 by default; and ``assumed``, ``public``, ``dp`` or ``private``.

    Examples
    --------
    >>> chain = MarkovChain(transition=[[0.9, 0.1], [0.2, 0.8]], length=365)
    >>> chain
    MarkovChain(2 states, length 365, assumed)
    >>> chain.start.round(4).tolist()
    [0.6667, 0.3333]
    """

    defined_by = ("states", "length", "transition", "initial")
    engine = "pdp_calibrate.families.chain.search:ChainEngine"
    gaussian_noise_engine = "pdp_calibrate.families.chain.gaussian_noise:ChainNoiseEngine"
    composer = "pdp_calibrate.families.chain.search:ChainComposer"
    dependence = "a Markov chain: the next state depends on the present one only"
    json_fields: ClassVar = {
        "transition": described(
            "Row v is the law of the next state after state v.", {"type": "array"}
        ),
        "length": described("Null for a chain without an end.", nullable(COUNT)),
        "states": NAMES,
        "initial": nullable(VECTOR),
    }
    runs_along_time = True

    transition: FloatArray
    """P(next state | state), read-only."""
    length: int
    """How many tuples there are; None if the chain has no end (streams have their own engine)."""
    states: Domain
    """The values that every tuple can take."""
    initial: FloatArray | None
    """The law of the first tuple; None for the stationary one."""

    def __init__(
        self,
        *,
        transition: npt.ArrayLike,
        length: int | None,
        states: Iterable[Hashable] = (0, 1),
        initial: npt.ArrayLike | None = None,
        names: Iterable[Hashable] | None = None,
        provenance: str = "assumed",
    ) -> None:
        values = checked_domain(states, "the states")
        matrix = checked_laws(transition, "transition")
        if matrix.shape != (len(values), len(values)):
            raise ModelError(
                f"transition must have a row and a column per state, shape"
                f" {(len(values), len(values))}, got shape {matrix.shape}."
            )
        first = None if initial is None else checked_laws(initial, "initial")
        if first is None and not _is_irreducible(matrix):
            raise ModelError(
                "a stationary start needs an irreducible chain: here some states are never"
                " reached from others. Pass the law of the first state as initial=."
            )
        if first is not None and first.shape != (len(values),):
            raise ModelError(
                f"initial must have one probability per state ({len(values)}),"
                f" got shape {first.shape}."
            )
        size = 1 if length is None else checked_size(length, "length")
        if length is None and np.any(matrix[:, matrix.max(axis=0) > 0] == 0):
            raise ModelError(
                "a chain without an end must be able to go from every state to every state it"
                " reaches: an impossible step is never forgotten, and over all time nothing finite"
                " could be promised. Smooth the transition law, or give the chain a length."
            )
        ending = {"length": size} if length is not None else FOR_EVER
        self._settle_numbered(
            names, size, provenance, transition=matrix, states=values, initial=first, **ending
        )

    @property
    def domains(self) -> tuple[Domain, ...]:
        """The states, once per tuple."""
        return (self.states,) * len(self.names)

    @functools.cached_property
    def diameter(self) -> float:
        """The Hilbert diameter of a step, rounded up: how little it forgets."""
        return diameter_of(self.kernel)

    @functools.cached_property
    def kernel(self) -> FloatArray:
        """The transition laws with rows that sum to 1 up to rounding."""
        return read_only(self.transition / self.transition.sum(axis=1, keepdims=True))

    @property
    def start(self) -> FloatArray:
        """The law of the first tuple, each entry accurate relative to itself.

        A stationary probability may be too small for a float and is 0 here; `log_start` tells it
        from an impossible one.
        """
        return self._start[0]

    @property
    def log_start(self) -> FloatArray:
        """The logarithm of the law of the first tuple; −inf just where a state is impossible."""
        return self._start[1]

    @functools.cached_property
    def _start(self) -> tuple[FloatArray, FloatArray]:
        if self.initial is None:
            law, logs = _stationary_law(self.kernel)
        else:
            law = self.initial / self.initial.sum()
            with np.errstate(divide="ignore"):
                logs = np.log(law)
        return read_only(law), read_only(logs)

    @functools.cached_property
    def possible(self) -> npt.NDArray[np.bool_]:
        """Which states some tuple can have."""
        found = np.isfinite(self.log_start)
        for _ in range(min(self.length - 1, len(self.states))):
            found = found | (self.kernel[found] > 0).any(axis=0)
        return found

    @functools.cached_property
    def mixing(self) -> Mixing:
        """How far the laws of tuples at a distance are apart, computed as far as needed."""
        return Mixing(self.kernel, self.possible)

    @property
    def lasting(self) -> float:
        """How much the leakage about a step grows at most, per unit of every step's budget."""
        return math.exp(min(self.diameter / 2, 700.0)) * (1 + 1e-12)

    def to_table(self) -> JointTable:
        """Write the chain out as a joint table, if that has at most 2²⁴ cells.

        Examples
        --------
        >>> chain = MarkovChain(transition=[[0.9, 0.1], [0.2, 0.8]], length=2, initial=[1, 0])
        >>> chain.to_table().probabilities.tolist()
        [[0.9, 0.1], [0.0, 0.0]]
        """
        refuse_endless([self], "a joint table")
        refuse_too_many_cells([len(self.states)] * self.length)
        refuse_underflow(underflows=self.log_rarest() < LOG_SMALLEST)
        joint = self.start
        for _ in range(self.length - 1):
            joint = joint[..., np.newaxis] * self.kernel
        return written_out(self, joint / joint.sum())

    def log_rarest(self) -> float:
        """Return a lower bound on the log-probability of any possible course of the chain."""
        rarest = np.log(self.kernel[self.kernel > 0].min())
        start = self.log_start[np.isfinite(self.log_start)].min()
        return float(start + (self.length - 1) * rarest)

    def beginning(self, number: int) -> MarkovChain:
        """Return the chain of the first tuples alone."""
        return MarkovChain(
            transition=self.transition,
            length=number,
            states=self.states,
            initial=self.initial,
            names=self.names[:number],
            provenance=self.provenance,
        )

    def pearson_matrix(self) -> FloatArray | None:
        """Return the correlations of all pairs, NaN where a tuple does not vary."""
        try:
            values = numeric_domain(self.states, "the states")
        except ModelError:
            return None
        size, laws = len(self.names), [self.start]
        for _ in range(size - 1):
            laws.append(laws[-1] @ self.kernel)
        means = [float(law @ values) for law in laws]
        spreads = [
            float(law @ (values - mean) ** 2) ** 0.5 for law, mean in zip(laws, means, strict=True)
        ]
        matrix = np.eye(size)
        for i in range(size):
            ahead = np.eye(len(values))
            for j in range(i + 1, size):
                ahead = ahead @ self.kernel
                product = float((laws[i] * (values - means[i])) @ ahead @ (values - means[j]))
                scale = spreads[i] * spreads[j]
                matrix[i, j] = matrix[j, i] = product / scale if scale > 0 else np.nan
        return matrix

    def draws(
        self, number: int, *, given: Mapping[int, Any], target: int, rng: np.random.Generator
    ) -> FloatArray:
        """Draw forwards, weighing each state by how likely what is given later follows from it.

        See `Model.draws`.
        """
        del target
        fixed, states = self._places(given), len(self.states)
        with np.errstate(divide="ignore"):
            log_kernel = np.log(self.kernel)
        later = np.zeros((self.length, states))  # logarithms: what is known may be rare
        for axis in range(self.length - 1, -1, -1):
            if axis + 1 < self.length:
                later[axis] = np.logaddexp.reduce(log_kernel + later[axis + 1], axis=1)
            if axis in fixed:
                later[axis, np.arange(states) != fixed[axis]] = -np.inf
            later[axis] -= later[axis].max()
        drawn = np.empty((number, self.length))
        laws = np.tile(_shares(self.log_start + later[0]), (number, 1))
        for axis in range(self.length):
            levels = np.cumsum(laws, axis=1)
            picks = rng.random(number) * levels[:, -1]
            drawn[:, axis] = (picks[:, np.newaxis] >= levels[:, :-1]).sum(axis=1)
            if axis + 1 < self.length:
                follow = _shares(log_kernel + later[axis + 1])
                laws = follow[drawn[:, axis].astype(np.intp)]
        return drawn

    def content(self) -> tuple[object, ...]:
        """Return states, length and laws."""
        *others, initial = super().content()
        return (*others, "stationary" if initial is None else initial)

    def __repr__(self) -> str:
        extent = "for ever" if self.is_endless else f"length {self.length}"
        return f"MarkovChain({len(self.states)} states, {extent}, {self.provenance})"


def _shares(logs: FloatArray) -> FloatArray:
    """Return probabilities up to a factor; nothing where nothing is possible."""
    peaks = logs.max(axis=-1, keepdims=True)
    return np.asarray(np.exp(logs - np.where(np.isfinite(peaks), peaks, 0.0)))


def _is_irreducible(transition: FloatArray) -> bool:
    """Whether every state is reached from every other."""
    reached = (transition > 0) | np.eye(len(transition), dtype=np.bool_)
    for _ in range(len(transition).bit_length()):
        reached = (reached.astype(np.float64) @ reached.astype(np.float64)) > 0
    return bool(reached.all())


def _stationary_law(kernel: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the stationary law of an irreducible chain, and its logarithms.

    Where intermediate numbers leave the range of floats, decimal numbers of 40 digits are used,
    whose exponents are not so limited.
    """
    try:
        with np.errstate(under="raise", over="raise", divide="raise", invalid="raise"):
            law = _stationary(np.array(kernel))
            if law.min() >= _SMALLEST:
                return law, np.log(law)
    except FloatingPointError:
        pass
    wide = decimal.Context(prec=40, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX)
    with decimal.localcontext(wide):
        decimals = _stationary(np.vectorize(decimal.Decimal, otypes=[object])(kernel))
        logs = np.array([float(probability.ln()) for probability in decimals])
    return np.array([float(probability) for probability in decimals]), logs


def _stationary(rates: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the stationary law by elimination without subtractions (Grassmann, Taksar, Heyman).

    Only sums, products and quotients of non-negative numbers occur, so that every entry, however
    small, is accurate relative to itself. Overwrites the rates.
    """
    last = len(rates) - 1
    for state in range(last, 0, -1):
        rates[:state, state] /= rates[state, :state].sum()
        rates[:state, :state] += np.outer(rates[:state, state], rates[state, :state])
    law = np.ones_like(rates[0])
    for state in range(1, last + 1):
        law[state] = (law[:state] * rates[:state, state]).sum()
    return np.asarray(law / law.sum())
