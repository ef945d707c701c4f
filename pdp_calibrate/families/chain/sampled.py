"""The chains that counted transitions do not rule out: a likelihood limit of the scale.

Theorem 28 (docs/theory).

The scale F(P) that a query needs is one number. Its upper likelihood limit is the largest F(P) in
{P : 2Σ n·log(p̂/p) ≤ z²}, with z the one-sided quantile of a standard normal variable: one degree
of freedom, however many numbers P has. It holds asymptotically, as likelihood limits do.

Along the gradient g of F the largest value has p[v,w] = n[v,w] / (κ_v − t·g[v,w]), where κ_v makes
row v a law and t is found from the deviance. Every law tried lies in the set, so that a gradient
that is a little off costs nothing but a little of the largest value.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy import optimize, special

from pdp_calibrate.arrays import FloatArray, check_number, checked_share, frozen_array
from pdp_calibrate.core.model import Domain, Model, checked_domain, checked_size, model_named
from pdp_calibrate.core.schema_parts import COUNT, NAMES, NESTED, NUMBER, VECTOR, nullable
from pdp_calibrate.errors import ModelError, PdpError
from pdp_calibrate.families.chain.limits import filled, lifted_above_noise
from pdp_calibrate.families.chain.model import MarkovChain

if TYPE_CHECKING:
    from pdp_calibrate.core.problem import Problem

_STEP = 1e-3  # relative change of a probability, for a difference that stands for a derivative
_ROUNDS = 3  # gradients in a row: each is taken where the last one led
_STARTS = 6  # largest cross-ratios that are tried as starting points besides the fitted law


class SampledChain(Model):
    """Every Markov chain that counted transitions do not rule out, for the scale of one query.

    Parameters
    ----------
    counts
        How often each state (column) followed each state (row). A transition never seen from a
        state that was left counts half. A state never left says nothing: any dependence is then
        allowed. With `noise_scale`, numbers with noise.
    length, states, names, provenance
        As in `MarkovChain`.
    starts
        How often series began in each state; None for a stationary start.
    confidence
        The probability, over the rows and the noise, with which the scale of a query is at least
        what the true chain needs; 0.95 by default. Asymptotic.
    noise_scale
        The scale of the Laplace noise on each count; 0 for none.

    Examples
    --------
    >>> SampledChain(counts=[[60, 20, 5], [15, 50, 20], [5, 20, 40]], length=30, states=[0, 1, 2])
    SampledChain(3 states, length 30, 0.95 confidence, assumed)
    """

    defined_by = ("states", "length", "counts", "starts", "confidence", "noise_scale")
    dependence = "any Markov chain that the counted transitions do not rule out"
    json_fields: ClassVar = {
        "states": NAMES,
        "length": COUNT,
        "counts": NESTED,
        "starts": nullable(VECTOR),
        "confidence": NUMBER,
        "noise_scale": NUMBER,
    }
    at_group_privacy = (
        "Some state was never left in the rows counted: this is the noise of group privacy, which"
        " needs no model. More rows, or merging rare states, help."
    )
    runs_along_time = True

    counts: FloatArray
    """Transitions from each state (rows) to each state, read-only."""
    starts: FloatArray | None
    """Series that began in each state; None for a stationary start."""
    length: int
    """How many tuples there are."""
    states: Domain
    """The values that every tuple can take."""
    confidence: float
    """The probability with which a scale is large enough."""
    noise_scale: float
    """Scale of the noise on each count; 0 for none."""

    def __init__(
        self,
        *,
        counts: npt.ArrayLike,
        length: int,
        states: Iterable[Hashable] = (0, 1, 2),
        starts: npt.ArrayLike | None = None,
        confidence: float = 0.95,
        noise_scale: float = 0.0,
        names: Iterable[Hashable] | None = None,
        provenance: str = "assumed",
    ) -> None:
        values = checked_domain(states, "the states")
        check_number(noise_scale, "noise_scale")
        if not 0 <= noise_scale < math.inf:
            raise ModelError(f"noise_scale must be zero or more and finite, got {noise_scale}.")
        moves = _checked(counts, (len(values), len(values)), "counts", noisy=noise_scale > 0)
        first = None
        if starts is not None:
            first = _checked(starts, (len(values),), "starts", noisy=noise_scale > 0)
        self._settle_numbered(
            names,
            checked_size(length, "length"),
            provenance,
            counts=moves,
            starts=first,
            length=int(length),
            states=values,
            confidence=checked_share(confidence, "confidence"),
            noise_scale=float(noise_scale),
        )

    @property
    def domains(self) -> tuple[Domain, ...]:
        """The states, once per tuple."""
        return (self.states,) * self.length

    @property
    def certainty(self) -> str:
        """How certain the promise is over the sample."""
        noise = " and the noise on them" if self.noise_scale else ""
        return (
            f"The error of the sample is covered asymptotically: over the transitions counted"
            f"{noise}, the promise fails with probability about {1 - self.confidence:.2g}, for one"
            " query, if the series are independent draws of one Markov chain."
        )

    @property
    def fitted(self) -> MarkovChain:
        """The chain that fits the counts best."""
        return self._chain(_laws(self._rows))

    @property
    def _says_nothing(self) -> bool:
        """Whether some state was never left, so that nothing is known of what follows it."""
        return self.noise_scale == 0 and not bool(np.all(self.counts.sum(axis=1) > 0))

    @property
    def _rows(self) -> FloatArray:
        """The counts behind each law, all positive: a row per state, and the starts if counted."""
        if self.noise_scale:
            rows = lifted_above_noise(self.counts, self.noise_scale)
            first = self.starts
            lifted = None if first is None else np.maximum(first, self.noise_scale / 2)
        else:
            rows = filled(self.counts)
            rows = np.where(rows.sum(axis=1, keepdims=True) > 0, rows, 0.5)
            lifted = None if self.starts is None else np.maximum(self.starts, 0.5)
        return rows if lifted is None else np.vstack([rows, lifted])

    def _chain(self, laws: FloatArray) -> MarkovChain:
        number = len(self.states)
        return MarkovChain(
            transition=laws[:number],
            initial=None if len(laws) == number else laws[number],
            length=self.length,
            states=self.states,
            names=self.names,
            provenance=self.provenance,
        ).marked_like(self)

    def parts_of(self, problem: Problem, *, expand: bool) -> list[Problem]:
        """Return the problem about members of the set that leak most, or nearly so."""
        if self._says_nothing:
            anything: Any = model_named("Unknown")
            everything = anything(size=self.length, domain=self.states, names=self.names)
            return [dataclasses.replace(problem, model=everything)]
        del expand
        return [
            dataclasses.replace(problem, model=self._chain(laws), index=index)
            for index, laws in enumerate(self._worst(problem))
        ]

    def _worst(self, problem: Problem) -> list[FloatArray]:
        """Return laws of the set: the one that leaks most for the problem, and the least mixing.

        The leakage is compared at a scale where the fitted chain leaks 1, on which the law that
        leaks most hardly depends; the largest cross-ratio is what bounds of any answer depend on.
        """
        rows, quantile = self._rows, float(special.ndtri(self.confidence))
        fitted = _laws(rows)

        def limit(gradient: FloatArray) -> FloatArray:
            """Return the law that is furthest along the gradient by each log-probability."""
            along = gradient / fitted
            sampled = float(np.sum(rows.sum(axis=1, keepdims=True) ** -1.0 * fitted * along**2))
            per_count = along / rows.sum(axis=1, keepdims=True)
            noise = 2 * self.noise_scale**2 * float(np.sum(per_count**2))
            if not sampled > 0:
                return fitted
            return _furthest(rows, along, quantile**2 * (1 + noise / sampled))

        edges = [limit(gradient) for gradient in _cross_ratio_gradients(rows, len(self.states))]
        loosest = max(edges, key=lambda laws: self._chain(laws).diameter, default=fitted)
        scale = _scale_at_one(dataclasses.replace(problem, model=self._chain(fitted)))

        def leaks(laws: FloatArray) -> float:
            chain = self._chain(laws)
            return dataclasses.replace(problem, model=chain).engine.bracket(scale).upper

        if scale == 0:
            return [loosest]
        starts = [fitted, *sorted(edges, key=lambda laws: -self._chain(laws).diameter)[:_STARTS]]
        worst = max(starts, key=leaks)
        largest, place = leaks(worst), fitted
        for _ in range(_ROUNDS):
            found = limit(_gradient(leaks, place))
            value = leaks(found)
            if value > largest:
                worst, largest = found, value
            place = found
        return [worst] if np.array_equal(worst, loosest) else [worst, loosest]

    def pearson_matrix(self) -> FloatArray | None:
        """Return the correlations of the chain that fits best."""
        return self.fitted.pearson_matrix()

    def draws(self, number: int, **given: Any) -> FloatArray:
        """Draw from the chain that fits best; see `Model.draws`."""
        return self.fitted.draws(number, **given)

    def __repr__(self) -> str:
        return (
            f"SampledChain({len(self.states)} states, length {self.length},"
            f" {self.confidence:.4g} confidence, {self.provenance})"
        )


def _checked(
    counts: npt.ArrayLike, shape: tuple[int, ...], what: str, *, noisy: bool
) -> FloatArray:
    found = frozen_array(counts, what)
    if found.shape != shape:
        raise ModelError(f"{what} must have shape {shape}, got {found.shape}.")
    if not noisy and np.any(found < 0):
        raise ModelError(f"{what} must not be negative unless noise was added to them.")
    return found


def _laws(rows: FloatArray) -> FloatArray:
    return np.asarray(rows / rows.sum(axis=1, keepdims=True))


def _cross_ratio_gradients(rows: FloatArray, states: int) -> list[FloatArray]:
    """Return, for every log cross-ratio of the transitions, its gradient in log p."""
    found = []
    for v in range(states):
        for other in range(v):
            for w in range(states):
                for away in range(states):
                    if w != away:
                        gradient = np.zeros_like(rows)
                        gradient[v, w] = gradient[other, away] = 1.0
                        gradient[v, away] = gradient[other, w] = -1.0
                        found.append(gradient)
    return found


def _gradient(leaks: Any, laws: FloatArray) -> FloatArray:
    """Return how the leakage changes with each log-probability, along laws."""
    found = np.zeros_like(laws)
    start = leaks(laws)
    for row, law in enumerate(laws):
        for place in range(len(law) - 1):
            changed = laws.copy()
            changed[row, place] *= 1 + _STEP
            changed[row] /= changed[row].sum()
            found[row, place] = (leaks(changed) - start) / _STEP
        found[row, -1] = -found[row, :-1].sum()  # all of them together change nothing
    return found


def _furthest(rows: FloatArray, along: FloatArray, deviance: float) -> FloatArray:
    """Return the laws n / (κ − t·g), with κ by row and t from the deviance."""
    fitted = _laws(rows)
    largest = float(np.abs(along).max())
    if not largest > 0:
        return fitted
    slopes = along / largest

    def laws(tilt: float) -> FloatArray:
        found = np.empty_like(fitted)
        for row, (counts, slope) in enumerate(zip(rows, slopes, strict=True)):
            found[row] = _tilted_row(counts, tilt * slope)
        return found

    def excess(log_tilt: float) -> float:
        lost = special.xlogy(rows, fitted) - special.xlogy(rows, laws(math.exp(log_tilt)))
        return 2 * float(lost.sum()) - deviance

    low = high = math.log(rows.sum())
    while excess(high) < 0 and high < 600:
        high += 2
    while excess(low) > 0 and low > -600:
        low -= 2
    if not excess(low) <= 0 <= excess(high):
        return fitted
    return laws(math.exp(optimize.brentq(excess, low, high, xtol=1e-10)))


def _tilted_row(counts: FloatArray, tilt: FloatArray) -> FloatArray:
    """Return the law n / (κ − tilt) of one row."""
    least, most = float((tilt + counts).max()), float(tilt.max() + counts.sum())

    def excess(level: float) -> float:
        return float(np.sum(counts / (level - tilt))) - 1

    level = most if excess(least) <= 0 else optimize.brentq(excess, least, most, rtol=1e-14)
    if excess(least) <= 0:
        level = least
    law = counts / (level - tilt)
    return np.asarray(law / law.sum())


def _scale_at_one(problem: Problem) -> float:
    """Return about the scale at which a problem leaks 1; 0 if nothing leaks."""
    furthest = problem.contributions.total_range()
    if not furthest > 0:
        return 0.0
    high, low = furthest, furthest
    try:
        while problem.engine.bracket(low).upper < 1 and low > 1e-9 * furthest:
            high, low = low, low / 2
    except PdpError:
        return high
    return math.sqrt(low * high)
