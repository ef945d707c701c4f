"""Yes/no groups whose members share a rate of their own, and their search.

Theorem 30 (docs/theory).

Given its rate θ, the members of a group hold a one independently with probability θ; θ is drawn
anew for each group. The probability w(c) = E[θ^c·(1 − θ)^(m−c)] of one assignment with c ones is
log-convex in c, so values are positively associated whatever is known, and the worst output of an
additive answer is r = ±∞. There all numbers k of known members and t of ones among them are
compared in O(m²) steps: with y = e^{±1/λ}, u = m − 1 − k and

    V_y(k, t) = Σ_s C(u, s)·y^s·w(t + s),   q_y(k, t) = V_y(k, t+1) / V_y(k, t),

the leakage about a member is 1/λ + |log q_y(k, t) − log q_1(k, t)|, and
V_y(k, t) = V_y(k+1, t) + y·V_y(k+1, t+1) gives

    q_y(k, t) = q_y(k+1, t)·(1 + y·q_y(k+1, t+1)) / (1 + y·q_y(k+1, t)).

A group of fewer members with the same law of the rate leaks no more.
"""

from __future__ import annotations

import functools
from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt
from scipy import special

from pdp_calibrate.arrays import FloatArray, frozen_array, read_only
from pdp_calibrate.core.model import checked_laws, checked_size
from pdp_calibrate.core.schema_parts import COUNT, VECTOR, nullable
from pdp_calibrate.errors import ModelError
from pdp_calibrate.families.exchangeable.model import BinaryGroup, log_binomials

if TYPE_CHECKING:
    from pdp_calibrate.core.problem import Problem


class RateGroup(BinaryGroup):
    """Members who hold a one independently, each with the same rate, drawn for every group.

    Parameters
    ----------
    size
        The number m of members.
    rates, weights
        The rates that a group may have, between 0 and 1, and their probabilities.
    beta
        In place of them, the parameters (a, b) of a beta law of the rate. The pairwise correlation
        is then 1/(a + b + 1).
    names, provenance
        One name per member, 0 … m−1 by default; and ``assumed``, ``public``, ``dp`` or ``private``.

    Examples
    --------
    >>> RateGroup(size=4, beta=(1.0, 3.0)).pearson_matrix()[0, 1].round(4).item()
    0.2
    """

    defined_by = ("size", "rates", "weights", "beta")
    dependence = "yes/no members of a group that share a rate, drawn for each group"
    json_fields: ClassVar = {
        "size": COUNT,
        "rates": nullable(VECTOR),
        "weights": nullable(VECTOR),
        "beta": nullable(VECTOR),
    }
    engine = "pdp_calibrate.families.exchangeable.rate_search:RateEngine"

    rates: FloatArray | None
    """The rates that a group may have; None for a beta law."""
    weights: FloatArray | None
    """Their probabilities."""
    beta: FloatArray | None
    """The parameters of a beta law of the rate; None for a list of rates."""

    def __init__(
        self,
        *,
        size: int,
        rates: npt.ArrayLike | None = None,
        weights: npt.ArrayLike | None = None,
        beta: npt.ArrayLike | None = None,
        names: Iterable[Hashable] | None = None,
        provenance: str = "assumed",
    ) -> None:
        members = checked_size(size, "size")
        listed = law = shape = None
        if beta is not None and rates is None and weights is None:
            shape = frozen_array(beta, "beta")
            if shape.shape != (2,) or not np.all((shape > 0) & np.isfinite(shape)):
                raise ModelError("beta must be two positive numbers (a, b).")
        elif beta is None and rates is not None and weights is not None:
            listed, law = frozen_array(rates, "rates"), checked_laws(weights, "weights")
            if listed.ndim != 1 or listed.shape != law.shape:
                raise ModelError("rates and weights must be two lists of one length.")
            if not np.all((listed > 0) & (listed < 1)):
                raise ModelError("rates must lie strictly between 0 and 1.")
        else:
            raise ModelError("give rates= and weights=, or beta=(a, b).")
        self._settle_numbered(names, members, provenance, rates=listed, weights=law, beta=shape)

    @functools.cached_property
    def log_weights(self) -> FloatArray:
        """The log-probability of one assignment with 0, 1, …, m ones."""
        ones = np.arange(self.size + 1.0)
        if self.beta is not None:
            a, b = self.beta
            logs = special.betaln(a + ones, b + ones[::-1]) - special.betaln(a, b)
        elif self.rates is not None and self.weights is not None:
            with np.errstate(divide="ignore"):
                each = np.log(self.weights) + np.outer(ones, np.log(self.rates))
            logs = special.logsumexp(each + np.outer(ones[::-1], np.log1p(-self.rates)), axis=1)
        return read_only(np.asarray(logs))

    @functools.cached_property
    def steps(self) -> FloatArray:
        """The quotients w(c + 1)/w(c), which grow with c."""
        ones = np.arange(float(self.size))
        if self.beta is not None:
            a, b = self.beta
            return read_only((a + ones) / (b + ones[::-1]))
        return read_only(np.exp(np.diff(self.log_weights)))

    @property
    def log_law(self) -> FloatArray:
        """The log-probability of 0, 1, …, m ones."""
        return np.asarray(self.log_weights + log_binomials(self.size))

    @functools.cached_property
    def count_probabilities(self) -> FloatArray:  # type: ignore[override]
        """P(c members hold 1) for c = 0 … m; those too small for a float are 0."""
        law = np.exp(self.log_law)
        return read_only(law / law.sum())

    def has_law_of(self, other: RateGroup) -> bool:
        """Whether the rates of both have the same law."""
        mine, others = (
            (self.rates, self.weights, self.beta),
            (other.rates, other.weights, other.beta),
        )
        return all(
            one is two or (one is not None and two is not None and np.array_equal(one, two))
            for one, two in zip(mine, others, strict=True)
        )

    def dominates(self, problem: Problem, smaller: Problem) -> bool:
        """Whether nobody in a problem about a smaller group learns more; see `Model.dominates`."""
        other = smaller.model
        if not isinstance(other, RateGroup) or other.size > self.size:
            return False
        if problem.measure.noise != "laplace" or not self.has_law_of(other):
            return False
        mine, theirs = problem.knowledge, smaller.knowledge
        if mine.known is not None or theirs.known is not None:
            return False
        arrays = [*problem.contributions.different, *smaller.contributions.different]
        return (
            problem.hidden_noise == smaller.hidden_noise
            and len(mine.targets) == self.size
            and mine.fewest <= theirs.fewest
            and mine.most >= theirs.most
            and problem.contributions.coordinates == smaller.contributions.coordinates == 1
            and problem.contributions.table is smaller.contributions.table is None
            and all(np.array_equal(array, arrays[0]) for array in arrays[1:])
        )

    def __repr__(self) -> str:
        return f"RateGroup({self.size} members, {self.provenance})"
