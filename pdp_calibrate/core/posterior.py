"""What one adversary believes before and after seeing one output (paper, Eq. 3 and Example 1)."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import logsumexp, ndtri

from pdp_calibrate.arrays import FloatArray, checked_scales, plain
from pdp_calibrate.core.cards import card
from pdp_calibrate.core.contributions import Contributions
from pdp_calibrate.core.mixtures import log_densities
from pdp_calibrate.core.model import Model, position_of
from pdp_calibrate.core.noise import Noise, checked_noise
from pdp_calibrate.core.query import Histogram, Query, checked_queries, lower
from pdp_calibrate.core.table import JointTable
from pdp_calibrate.errors import ModelError, PdpError


@dataclass(frozen=True, kw_only=True)
class Beliefs:
    """The adversary's law of the target, before and after the output."""

    prior: dict[Hashable, float]
    """P(x_i | x_K), or the law given instead of it."""
    posterior: dict[Hashable, float]
    """P(x_i | r, x_K)."""
    log_likelihood: dict[Hashable, float] = field(repr=False)
    """log p(r | x_i, x_K) up to a constant, for every value that can occur with x_K."""
    is_private: bool = False
    """Whether they follow from a private model; then they are not printed."""

    def __repr__(self) -> str:
        if self.is_private:
            return "Beliefs(withheld: they follow from a private model)"
        return f"Beliefs(prior={self.prior!r}, posterior={self.posterior!r})"

    def _repr_html_(self) -> str:
        rows = [
            (value, f"{before:.1%} before, {self.posterior[value]:.1%} after")
            for value, before in self.prior.items()
        ]
        return card("Beliefs", rows)

    def log_odds_gain(self, value: Hashable, other: Hashable) -> float:
        """Return by how much the log odds of `value` against `other` grew (paper, Eq. 3).

        It is log p(r | value, x_K) / p(r | other, x_K), whatever the prior, so its supremum over
        values and outputs is the leakage of this adversary. With Gaussian noise there is no
        supremum: the further out an output lies, and the rarer it is, the more it reveals.
        """
        for secret in (value, other):
            if secret not in self.log_likelihood:
                raise PdpError(
                    "log odds need two values of the target that can occur with what is known;"
                    f" they are {', '.join(map(str, self.log_likelihood))}."
                )
        return self.log_likelihood[value] - self.log_likelihood[other]


def posterior(
    model: Model,
    query: Query | Sequence[Query],
    *,
    scale: float | Sequence[float],
    target: Hashable,
    output: Any,
    known: Mapping[Hashable, Hashable] | None = None,
    prior: Mapping[Hashable, float] | None = None,
    noise: Noise = "laplace",
) -> Beliefs:
    """Return what the adversary believes about the target before and after one output.

    Parameters
    ----------
    model
        A joint table: the distribution θ.
    query
        What was released, with noise; a list was released together.
    scale
        The scale of the noise, λ of Laplace or σ of Gaussian; for a list one for each query.
    target
        The tuple that is attacked.
    output
        The released answer r; ±inf for the limit, which only Laplace noise has. Of a histogram, one
        number per category, in order or by category; of a list, one such answer per query, or all
        numbers in a row.
    known
        The values x_K that the adversary knows.
    prior
        A law ``{value: probability}`` of the target to use instead of P(x_i | x_K). It may give
        weight only to values that can occur with x_K; to one who knows everyone else, and so
        needs no θ, every value of the domain can.
    noise
        ``"laplace"`` or ``"gaussian"``.

    Returns
    -------
    Beliefs
        Exact up to rounding, at any scale: computed from logarithms.

    Examples
    --------
    Two yes/no answers that agree more often than not; the noisy sum comes out as 2.

    >>> import pdp_calibrate as pdp
    >>> table = pdp.JointTable(probabilities=[[0.3, 0.2], [0.2, 0.3]], domains=[[0, 1], [0, 1]])
    >>> beliefs = posterior(table, pdp.Sum(), scale=1.0, target="x1", output=2.0)
    >>> beliefs.prior
    {0: 0.5, 1: 0.5}
    >>> {value: round(p, 3) for value, p in beliefs.posterior.items()}
    {0: 0.234, 1: 0.766}
    >>> round(beliefs.log_odds_gain(1, 0), 4)
    1.1854
    >>> drawn = {"scale": 1.0, "noise": "gaussian"}
    >>> far = posterior(table, pdp.Sum(), target="x1", output=9.0, **drawn)
    >>> round(far.log_odds_gain(1, 0), 4)
    7.9055
    """
    if not isinstance(model, JointTable):
        raise ModelError(f"posterior needs a JointTable, got {type(model).__name__}.")
    kind = checked_noise(noise)
    queries = [query] if isinstance(query, Query) else checked_queries(query)
    parts = [lower(one, model) for one in queries]
    widths = [part.coordinates for part in parts]
    units = np.repeat(checked_scales(scale, len(queries)), widths)
    seen = _output([output] if isinstance(query, Query) else output, queries, widths, model)
    axis = position_of(target, model.names)
    cells = _matching_cells(model, axis, known or {})
    masses = np.moveaxis(model.probabilities[cells], axis, 0)
    masses = masses.reshape(len(masses), -1)
    answers = np.moveaxis(_answers(parts)[cells], axis, 0).reshape(*masses.shape, -1)
    start = answers.min(axis=(0, 1))  # measured from here, differences keep their digits
    log_likelihoods, possible = _log_likelihoods(
        masses, (answers - start) / units, (seen - start) / units, kind
    )
    domain = model.domains[axis]
    before = _prior(domain, masses.sum(axis=1), possible, prior)
    with np.errstate(divide="ignore"):
        log_after = np.where(before > 0, np.log(before) + log_likelihoods, -np.inf)
    after = np.exp(log_after - log_after.max())
    return Beliefs(
        prior=dict(zip(domain, before.tolist(), strict=True)),
        posterior=dict(zip(domain, (after / after.sum()).tolist(), strict=True)),
        log_likelihood={
            value: float(log_likelihoods[place])
            for place, value in enumerate(domain)
            if possible[place]
        },
        is_private=model.provenance == "private",
    )


def _matching_cells(
    model: JointTable, axis: int, known: Mapping[Hashable, Hashable]
) -> tuple[slice, ...]:
    """Return the slices of the table that agree with what is known."""
    cells = [slice(None)] * len(model.names)
    for name, value in known.items():
        position = position_of(name, model.names)
        if position == axis:
            raise ModelError("the target must not be among the known tuples.")
        if value not in model.domains[position]:
            raise ModelError(f"the value known of {name} is not in its domain.")
        place = model.domains[position].index(value)
        cells[position] = slice(place, place + 1)
    return tuple(cells)


def _answers(parts: Sequence[Contributions]) -> FloatArray:
    """Return all numbers of all answers in every cell."""
    return np.concatenate([part.in_every_cell() for part in parts], axis=-1)


def _output(
    output: Any, queries: Sequence[Query], widths: Sequence[int], model: Model
) -> FloatArray:
    """Return the released numbers in a row, or raise unless they answer the queries."""
    if isinstance(output, Mapping | pd.Series | str) or not hasattr(output, "__len__"):
        raise PdpError("output must hold one answer per query of the list, in order.")
    if len(output) == len(queries):
        each = zip(output, queries, strict=True)
        found = np.concatenate([_numbers(answer, query, model) for answer, query in each])
    else:
        found = _numbers(output, None, model)
    if len(found) != sum(widths):
        raise PdpError(
            f"output must hold {sum(widths)} numbers, one per number released; got {len(found)}."
        )
    if np.isnan(found).any():
        raise PdpError("output must be a number, got NaN.")
    return found


def _numbers(answer: Any, query: Query | None, model: Model) -> FloatArray:
    """Return one answer as a row of numbers; by category where it says so."""
    if isinstance(answer, Mapping | pd.Series):
        if not isinstance(query, Histogram):
            raise PdpError("only the answer of a histogram is given by category.")
        given, categories = dict(answer.items()), query.of(model)
        if set(given) != set(categories) or len(answer) != len(categories):
            raise PdpError(
                f"output must hold one number for each of {len(categories)} categories,"
                " and for no others."
            )
        answer = [given[category] for category in categories]
    refusal = PdpError("output must be a number, or one per number released.")
    try:
        found = np.atleast_1d(np.asarray(answer))
        numbers = found.astype(np.float64) if found.dtype.kind in "biufO" else None
    except (TypeError, ValueError, OverflowError):
        raise refusal from None
    if numbers is None or numbers.ndim != 1:
        raise refusal
    return numbers


def rare_output(
    model: JointTable,
    query: Query,
    *,
    scale: float,
    target: Hashable,
    known: Mapping[Hashable, Hashable],
    secrets: tuple[Hashable, Hashable],
    share: float,
) -> float:
    """Return an output of Gaussian noise at which odds have shifted nearly as far as they can.

    Under the first secret, outputs that shift the odds even further towards it have about the
    probability `share`. Without such a threshold there is no extreme output: odds shift without
    limit.

    Parameters
    ----------
    model, query, scale, target, known
        As for `posterior`, of one number.
    secrets
        The true value of the target, and the one that it is compared with.
    share
        The probability of what is left out.
    """
    axis = position_of(target, model.names)
    cells = _matching_cells(model, axis, known)
    masses = np.moveaxis(model.probabilities[cells], axis, 0).reshape(len(model.domains[axis]), -1)
    answers = np.moveaxis(_answers([lower(query, model)])[cells], axis, 0)
    atoms = answers.reshape(*masses.shape) / scale
    pair = [model.domains[axis].index(secret) for secret in secrets]
    laws, _ = _laws(masses)
    reach = -float(ndtri(share / 4)) + 1
    ends = np.linspace(atoms[pair].min() - reach, atoms[pair].max() + reach, 4001)
    middles = (ends[1:] + ends[:-1]) / 2
    with np.errstate(divide="ignore"):
        logs = np.log(laws[pair])
    first, second = (
        logsumexp(law - (middles[:, np.newaxis] - places) ** 2 / 2, axis=1)
        for law, places in zip(logs, atoms[pair], strict=True)
    )
    weights = np.exp(first - math.log(math.sqrt(2 * math.pi))) * np.diff(ends)
    order = np.argsort(second - first, kind="stable")
    beyond = np.cumsum(weights[order])
    place = int(np.searchsorted(beyond, share))
    return float(middles[order[min(place, len(order) - 1)]] * scale)


def _laws(masses: FloatArray) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
    """Return P(x_U | x_i, x_K) for every x_i, and which of these can occur with x_K."""
    totals = masses.sum(axis=1)
    # One cell left per value: the adversary knows everyone else and needs no θ.
    possible = totals > 0 if masses.shape[1] > 1 else np.ones(len(masses), dtype=np.bool_)
    laws = np.where(totals[:, np.newaxis] > 0, masses, 1.0)
    return laws / laws.sum(axis=1, keepdims=True), possible


def _log_likelihoods(
    masses: FloatArray, atoms: FloatArray, output: FloatArray, noise: Noise
) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
    """Return log p(r | x_i, x_K) up to a constant, and which x_i can occur with x_K."""
    laws, possible = _laws(masses)
    if noise == "gaussian":
        if not np.isfinite(output).all():
            raise PdpError(
                "output must be finite: with Gaussian noise odds shift without limit as the output"
                " grows."
            )
        with np.errstate(divide="ignore", over="ignore"):
            log_terms = np.log(laws) - ((output - atoms) ** 2).sum(axis=-1) / 2
        found = np.asarray(logsumexp(log_terms, axis=1))
        if not np.isfinite(found).all():
            raise PdpError("the scale is too small for the output: densities cannot be computed.")
        return found, possible
    # Beyond the outermost atoms ratios are constant, so a limit is attained there.
    place = np.clip(output, atoms.min(axis=(0, 1)), atoms.max(axis=(0, 1)))
    log_density, _ = log_densities(
        laws[np.newaxis], atoms[np.newaxis], place[np.newaxis, np.newaxis], additions=0
    )
    return log_density[0, :, 0], possible


def _prior(
    domain: tuple[Hashable, ...],
    masses: FloatArray,
    possible: npt.NDArray[np.bool_],
    prior: Mapping[Hashable, float] | None,
) -> FloatArray:
    if prior is None:
        if masses.sum() == 0:
            raise ModelError("what is known has probability zero, so there is no prior belief.")
        return np.asarray(masses / masses.sum())
    given = {plain(value): float(probability) for value, probability in prior.items()}
    if not set(given) <= set(domain):
        raise PdpError("prior must give probabilities to values of the target's domain only.")
    before = np.array([given.get(value, 0.0) for value in domain])
    if not np.all(before >= 0) or abs(math.fsum(before) - 1) > 1e-9:
        raise PdpError("prior must be non-negative and sum to 1.")
    if np.any(before[~possible] > 0):
        raise PdpError("prior gives weight to a value that cannot occur with what is known.")
    return np.asarray(before / before.sum())
