"""Laplace noise on answers with finitely many values: the search that these families share.

A family lists the laws that its adversaries compare (`finite_noise.Source`), once for both kinds of
noise: this search takes the largest log-ratio of two densities, `FiniteSearch` a δ. Between two
neighbouring atoms no ratio of two densities is larger than at one of them (Theorem 1, docs/theory),
so that the atoms are the only outputs to visit.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.finite_noise import Case, Mixtures, Source
from pdp_calibrate.core.mixtures import (
    DEFICITS,
    DENSITIES,
    LOGS,
    form_of,
    log_densities,
    rounding_error,
)
from pdp_calibrate.core.problem import Bracket, Limits, Problem
from pdp_calibrate.core.rounding import ROUND_UP
from pdp_calibrate.core.tuning import CHUNK_NUMBERS, KEPT_NUMBERS
from pdp_calibrate.core.workers import best_first

_FEW_ATOMS = 128  # densities at so many atoms by one matrix product; beyond it, by sweeps


class LaplaceSearch:
    """Searches the mixtures of one problem, at many scales.

    Parameters
    ----------
    problem
        What was asked, about an answer of one number.
    source
        Lists the mixtures.
    strongest
        Returns what those who know everyone else learn at a scale; None if there are none.
    bound_of
        Bounds what adversaries of a case learn at a scale: by default, how far answers move.
    """

    def __init__(
        self,
        problem: Problem,
        source: Source,
        *,
        strongest: Callable[[Any], Bracket] | None = None,
        bound_of: Callable[[Case, Any], float] = lambda case, scale: case.move / scale * ROUND_UP,
    ) -> None:
        self._problem, self._strongest, self._bound_of = problem, strongest, bound_of
        self._cases = list(source.cases())
        self._kept: dict[int, list[Mixtures]] = {}
        self._kept_numbers = 0

    def search(self, scale: float | FloatArray, limits: Limits) -> Bracket:
        """Find the worst adversary at one scale; see `core.problem.Engine`."""
        start = self._problem.nobody() if self._strongest is None else self._strongest(scale)
        attained = start.lower

        def judge(bound: float, number: int) -> Bracket:
            nonlocal attained
            found = self._judged(number, scale, attained, bound, limits.deadline)
            attained = max(attained, found.lower)
            return found

        return best_first(
            ((self._bound_of(case, scale), number) for number, case in enumerate(self._cases)),
            judge,
            start=start,
            unjudged=lambda bound, number: _upper(bound, self._cases[number]),
            cutoff=lambda found: max(limits.incumbent, found.upper),
            is_over=lambda: time.monotonic() > limits.deadline,
            enough=limits.enough,
            what="comparing adversaries",
        )

    def _judged(
        self,
        number: int,
        scale: float | FloatArray,
        attained: float,
        bound: float,
        deadline: float,
    ) -> Bracket:
        """Compare all secrets of a case, at every output; what there is no time for is bounded."""
        case, found = self._cases[number], _upper(0.0, self._cases[number])
        hidden = self._problem.hidden_noise
        for mixtures in self._mixtures(number):
            for part in densities_of(mixtures, scale):
                if time.monotonic() > deadline:
                    return found.or_worse(_upper(bound, case))
                found = found.or_worse(self._compared(case, mixtures, part, attained))
            for part in densities_of(mixtures, scale, corners=True) if hidden else ():
                # What is left out cancels only in the tails: these give the lower end.
                found = found.with_lower(self._compared(case, mixtures, part, attained))
            attained = max(attained, found.lower)
        return found

    def _mixtures(self, number: int) -> Iterable[Mixtures]:
        """Return the mixtures of a case; while they are few, they are listed once."""
        if number not in self._kept:
            listed = list(self._cases[number].mixtures())
            self._kept_numbers += sum(one.laws.size for one in listed)
            if self._kept_numbers > KEPT_NUMBERS:
                return listed
            self._kept[number] = listed
        return self._kept[number]

    def _compared(self, case: Case, mixtures: Mixtures, part: _Part, attained: float) -> Bracket:
        """Return the worst pair of secrets, over some events and outputs."""
        gain, error, event, secrets, output = worst_of(mixtures, part)
        upper, lower = max(0.0, gain + error), max(0.0, gain - error)
        if gain == -np.inf or (upper <= attained and lower <= attained):
            return _upper(upper, case)
        named = mixtures.adversary(event, secrets, output)
        if self._problem.hidden_noise and not part.corners:
            bound = _upper(upper, case)
            return dataclasses.replace(bound, target=named.target, unknown=named.unknown)
        return Bracket(
            upper=upper,
            lower=lower,
            witness=named.witness,
            target=named.target,
            unknown=named.unknown,
        )


def worst_of(mixtures: Mixtures, part: _Part) -> tuple[float, float, int, tuple[int, int], Any]:
    """Return the largest log-ratio and its error; event, secrets and output; −inf for none."""
    start, densities, form, error, columns = part[:5]
    possible = mixtures.possible[start : start + len(densities)]
    highest, lowest = densities[:, 0], densities[:, 0]
    if possible.all():
        for secret in range(1, densities.shape[1]):
            highest = np.maximum(highest, densities[:, secret])
            lowest = np.minimum(lowest, densities[:, secret])
    else:
        there = possible[..., np.newaxis]
        highest = np.where(there, densities, -np.inf).max(axis=1)
        lowest = np.where(there, densities, np.inf).min(axis=1)
    with np.errstate(invalid="ignore"):  # an event without secrets is left out below
        gain = highest - lowest  # of logarithms; of densities and deficits, the ratio minus one
        if form != LOGS:
            gain /= lowest + (1.0 if form == DEFICITS else 0.0)
    gain[possible.sum(axis=1) < 2] = -np.inf  # one possible secret: nothing to compare
    event, place = _place(gain)
    here, can = densities[event, :, place], possible[event]
    secrets = (
        int(np.where(can, here, -np.inf).argmax()),
        int(np.where(can, here, np.inf).argmin()),
    )
    largest = _log_ratio(gain[event, place], form)
    return largest, error, start + event, secrets, _output(columns, place)


def _log_ratio(gain: float, form: int) -> float:
    return float(gain) if form == LOGS or gain == -np.inf else math.log1p(gain)


def _place(gain: FloatArray) -> tuple[int, int]:
    """Return the event and the output of the largest one."""
    event, output = divmod(int(gain.argmax()), gain.shape[1])
    return event, output


def _upper(bound: float, case: Case) -> Bracket:
    return Bracket(upper=bound, lower=0.0, witness=None, target=case.target, unknown=case.unknown)


class _Part(NamedTuple):
    """Densities of some events at some outputs."""

    start: int
    """The first of the events."""
    densities: FloatArray
    """By event, secret and output, in a form of `core.mixtures`."""
    form: int
    error: float
    """Of a log-ratio."""
    columns: list[FloatArray]
    """The coordinates of the outputs, whose product grid it is."""
    corners: bool


def densities_of(
    mixtures: Mixtures, scale: float | FloatArray, *, corners: bool = False
) -> Iterable[_Part]:
    """Yield the densities at all atoms, or only as far out as can be."""
    atoms = mixtures.points / scale
    laws, (size, coordinates) = mixtures.laws, atoms.shape
    exact = [np.unique(places) for places in mixtures.points.T]
    if corners:
        exact = [column[[0, -1]] if len(column) > 1 else column for column in exact]
    columns = [
        column / one for column, one in zip(exact, np.broadcast_to(scale, coordinates), strict=True)
    ]
    width = float(np.ptp(atoms, axis=0).sum())
    logs = mixtures.log_laws
    if logs is None:
        depth = -math.log(float(np.min(laws, where=laws > 0, initial=1.0)))
    else:
        depth = float(-np.min(logs, where=np.isfinite(logs), initial=0.0))
    form = form_of(width, depth)
    own = 2 * mixtures.moved / float(np.min(scale))
    if form == LOGS:
        outputs = product_grid(columns)
        step = max(1, CHUNK_NUMBERS // (laws.shape[1] * size * len(outputs)))
        for start in range(0, len(laws), step):
            some = slice(start, start + step)
            found, error = log_densities(
                laws[some], atoms[np.newaxis, np.newaxis], outputs[np.newaxis], additions=8,
                log_laws=None if logs is None else logs[some],
            )  # fmt: skip
            yield _Part(start, found, LOGS, error + 2 * mixtures.error + own, exact, corners)
        return
    # A probability that is off by a factor 1 ± e moves a density by that, and a deficit, which is
    # at most 1 − e^−width, by e times itself.
    error = 4 * mixtures.error * (width if form == DEFICITS else 1.0) + own
    error += rounding_error(
        form, width=width, operations=4 * size + 2 * coordinates + 24, distance_operations=8
    )
    if size > _FEW_ATOMS and coordinates == 1 and not corners:
        yield _Part(0, _swept(atoms[:, 0], laws, form), form, error, exact, corners)
        return
    # Along each coordinate of the product grid e^−distance is a factor of its own.
    apart = np.zeros((size, 1))
    for column, places in zip(columns, atoms.T, strict=True):
        here = np.abs(places[:, np.newaxis] - column)
        apart = (apart[:, :, np.newaxis] + here[:, np.newaxis]).reshape(size, -1)
    kernel = np.expm1(-apart) if form == DEFICITS else np.exp(-apart)
    step = max(1, CHUNK_NUMBERS // (laws.shape[1] * kernel.shape[1]))
    for start in range(0, len(laws), step):
        chunk = laws[start : start + step]
        densities = (chunk.reshape(-1, size) @ kernel).reshape(*chunk.shape[:2], -1)
        yield _Part(start, densities, form, error, exact, corners)


def _output(columns: list[FloatArray], place: int) -> Any:
    """Return a point of a product grid: a number, or a vector."""
    places = np.unravel_index(place, [len(column) for column in columns])
    found = [float(column[at]) for column, at in zip(columns, places, strict=True)]
    return found[0] if len(found) == 1 else np.array(found)


def product_grid(columns: list[FloatArray]) -> FloatArray:
    """Return all outputs whose coordinates are those of atoms."""
    return np.stack(np.meshgrid(*columns, indexing="ij"), axis=-1).reshape(-1, len(columns))


def _swept(atoms: FloatArray, laws: FloatArray, form: int) -> FloatArray:
    """Return densities, or minus their deficits, at sorted atoms, by one pass in each direction."""
    gaps = np.diff(atoms, prepend=atoms[0])
    decay, lack = np.exp(-gaps), -np.expm1(-gaps)
    law = np.ascontiguousarray(np.moveaxis(laws, -1, 0))
    out = np.zeros_like(law)
    here = mass = np.zeros(law.shape[1:])
    for r in range(len(law)):  # atoms at or before the point
        if form == DENSITIES:
            here = here * decay[r] + law[r]
        else:
            here, mass = here * decay[r] + mass * lack[r], mass + law[r]
        out[r] = here
    here = mass = np.zeros(law.shape[1:])
    for r in range(len(law) - 2, -1, -1):  # atoms behind it
        if form == DENSITIES:
            here = (here + law[r + 1]) * decay[r + 1]
        else:
            mass = mass + law[r + 1]
            here = here * decay[r + 1] + mass * lack[r + 1]
        out[r] += here
    return np.moveaxis(-out if form == DEFICITS else out, 0, -1)
