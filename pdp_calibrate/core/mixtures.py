"""Mixtures of Laplace densities of one scale, compared at their atoms.

Theorem 1 (docs/theory).

Given x_i and x_K, the released answer has density Σ_s P(f = s | x_i, x_K)·e^{−|r−s|/λ}/2λ. Between
neighbouring atoms s of two such mixtures both are A·e^{r/λ} + B·e^{−r/λ}, so their ratio is a
monotone (Möbius) function of e^{2r/λ}; beyond the outermost atoms it is constant. Hence the
supremum over all outputs r is the maximum over the atoms: exact, no grid, no tolerance. In several
coordinates with independent noise it is the maximum over the product grid of the atoms'
coordinates. The discrete Laplace on integer atoms has the same ratios.

**Three forms of a density.** Which one is stable depends on the width, the largest distance of two
atoms in units of the scale. DEFICITS hold what a density lacks to 1, Σ p_s·(1 − e^{−d_s}), for
widths up to 1: a tiny leakage keeps its digits. DENSITIES hold Σ p_s·e^{−d_s}. LOGS hold its
logarithm, where probabilities or kernels are too small for a float.

**One error analysis**, `rounding_error`. In every form an entry is a sum of products of
non-negative numbers, or the logarithm of one: nothing cancels before two secrets are compared. So k
rounded operations behind a term change it by a factor within (1 ± u)^k, u the unit roundoff, and a
sum of such terms by no more. What differs between families is only the number of operations, which
each family supplies.

**Lattices.** If every contribution is a multiple of one step, sums fall on a lattice and paths of
a chain are counted exactly: `lattice_of`. Otherwise contributions are rounded to the best step that
the work limit allows; moving every atom by at most e changes a density by a factor of at most
e^{e/λ}, so the bracket widens by 2e/λ.

`sweep`, `excess` and `log_ratio` are plain Python on numbers *or* arrays: NumPy runs them on many
events at once, and numba compiles the same source for one event at a time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.rounding import UNIT_ROUNDOFF
from pdp_calibrate.core.tuning import LATTICE_PARTS, LATTICE_VALUES

DEFICITS, DENSITIES, LOGS = 0, 1, 2

NEAR_ONE = 1.0
"""Widths up to this, in scales, are held as deficits."""

LARGEST_EXPONENT = 600.0
"""Logarithms up to this are far from underflow and overflow, their products included."""


def form_of(width: float, depth: float = 0.0) -> int:
    """Choose the form for a mixture of some width whose probabilities are at least e^{−depth}.

    Examples
    --------
    >>> form_of(0.5) == DEFICITS, form_of(3.0) == DENSITIES, form_of(3.0, depth=1000.0) == LOGS
    (True, True, True)
    """
    if not width + depth <= LARGEST_EXPONENT:
        return LOGS
    return DEFICITS if width <= NEAR_ONE else DENSITIES


def rounding_error(
    form: int,
    *,
    width: float,
    operations: float,
    distance_operations: float,
    log_operations: float = 0.0,
    depth: float = 0.0,
) -> float:
    """Bound the error of a computed log-ratio of two densities.

    Let k stand for `operations` and m for `distance_operations`.

    - DENSITIES. A kernel e^{−d} whose distance is right to m roundings is right to a factor
      e^{±m·u·d}, so a density is right to the relative error (k + m·width)·u, and a log-ratio to
      twice that.
    - DEFICITS. k operations leave a deficit D right to the relative error k·u, which moves
      log(1 − D) by at most k·u·D/(1 − D) ≤ k·u·(e^w − 1), for D ≤ 1 − e^{−w}, and e^w − 1 ≤ 1.72·w
      for widths w ≤ 1. A distance that is off by m·u·w moves 1 − e^{−d} by no more, and log(1 − D)
      by at most e^w·m·u·w ≤ 2.72·m·u·w. A log-ratio has twice both.
    - LOGS. Besides, `log_operations` results that are logarithms no larger than 1 + width + depth
      were rounded relative to their size, which is an absolute error of the logarithm.

    The factor 4 in place of 2 or 3.44 (and 6 in place of 5.44) covers the terms of second order in
    u, and the comparison itself.

    Parameters
    ----------
    form
        DEFICITS, DENSITIES or LOGS.
    width
        Bound on the distances, in scales.
    operations
        Bound on the rounded operations behind a term and the sums it goes through.
    distance_operations
        Bound on the rounded operations behind a distance, each relative to the width.
    log_operations
        In the form LOGS, how many of the operations round a logarithm.
    depth
        Bound on the size of the logarithms of the probabilities.
    """
    if form == DEFICITS:
        return 4 * UNIT_ROUNDOFF * width * (operations + 1.5 * distance_operations)
    relative = operations + distance_operations * width
    if form == LOGS:
        relative += log_operations * (1 + width + depth)
    return 4 * UNIT_ROUNDOFF * relative


def sweep(law: Any, step: float, form: int, out: Any) -> None:
    """Write the density of a mixture on a lattice at every one of its points to `out`.

    law[s] is the probability of the point s, or its logarithm: a number, or an array with one entry
    per event. The density at r is Σ_{s ≤ r} p_s·e^{−(r−s)·step}, which a sweep to the right carries
    along, and Σ_{s > r} p_s·e^{−(s−r)·step}, which a sweep to the left does. As deficits both carry
    what they lack to the mass passed so far: l becomes l·e^{−step} + mass·(1 − e^{−step}) at every
    step. Each step costs a term at most four roundings.
    """
    decay, lack = np.exp(-step), -np.expm1(-step)
    size = len(law)
    zero = np.exp(law[0]) * 0.0  # one per event, whatever the form
    nothing = zero - np.inf if form == LOGS else zero
    # To the right: atoms at or before the point.
    here, mass = nothing, zero
    for r in range(size):
        if form == LOGS:
            here = np.logaddexp(here - step, law[r])
        elif form == DENSITIES:
            here = here * decay + law[r]
        else:
            here = here * decay + mass * lack
            mass = mass + law[r]
        out[r] = here
    # To the left: atoms behind the point.
    here, mass = nothing, zero
    for r in range(size - 1, -1, -1):
        if form == LOGS:
            out[r] = np.logaddexp(out[r], here)
            here = np.logaddexp(here, law[r]) - step
        elif form == DENSITIES:
            out[r] = out[r] + here
            here = (here + law[r]) * decay
        else:
            here = here * decay + mass * lack
            out[r] = out[r] + here
            mass = mass + law[r]


def excess(first: Any, second: Any, form: int) -> Any:
    """Measure how far the first density exceeds the second; `log_ratio` finishes it.

    The measure grows with the log-ratio, so the largest is found before any logarithm is taken.
    """
    if form == DEFICITS:
        return (second - first) / (1.0 - second)
    if form == DENSITIES:
        return first / second
    return first - second


def log_ratio(measured: float, form: int) -> float:
    """Turn what `excess` measured into a log-ratio; −inf stays −inf."""
    if measured == -np.inf or form == LOGS:
        return float(measured)
    return float(np.log1p(measured) if form == DEFICITS else np.log(measured))


def log_densities(
    laws: FloatArray,
    atoms: FloatArray,
    outputs: FloatArray,
    *,
    additions: int,
    log_laws: FloatArray | None = None,
) -> tuple[FloatArray, float]:
    """Return log Σ_m law_m·e^{−|output − atom_m|₁} and a bound on its rounding error.

    Parameters
    ----------
    laws
        Probabilities of the atoms, shape (events, secrets, atoms).
    atoms
        Their places in units of the scale, shape (events or 1, secrets, atoms, coordinates).
    outputs
        Where to evaluate, in the same units, shape (events or 1, outputs, coordinates).
    additions
        Bound on the number of rounded operations behind each law and each atom.
    log_laws
        The logarithms of the laws, where some probabilities are too small for a float.

    Returns
    -------
    tuple
        Array of shape (events, secrets, outputs), without the constant −log 2λ that cancels in
        every ratio, and the largest absolute error of the *difference* of two of its entries.
    """
    here = outputs[:, np.newaxis, np.newaxis]
    distances = np.abs(here - atoms[..., np.newaxis, :]).sum(axis=-1)
    furthest = float(distances.max())
    count, coordinates = atoms.shape[-2:]
    roundings = additions + count + coordinates + 12
    if furthest <= NEAR_ONE:
        change = (laws[..., np.newaxis] * np.expm1(-distances)).sum(axis=2)
        error = rounding_error(
            DEFICITS, width=furthest, operations=roundings, distance_operations=roundings
        )
        return np.log1p(change), error
    if log_laws is None:
        with np.errstate(divide="ignore"):
            log_laws = np.log(laws)
    log_terms = log_laws[..., np.newaxis] - distances
    peak = log_terms.max(axis=2)
    base = np.where(np.isneginf(peak), 0.0, peak)  # a law without mass stays without: −∞
    with np.errstate(divide="ignore"):
        log_density = base + np.log(np.exp(log_terms - base[:, :, np.newaxis]).sum(axis=2))
    largest_log = float(-np.min(log_laws, where=np.isfinite(log_laws), initial=0.0))
    # Four results on the way are logarithms: of the law, of the term, and twice the peak.
    error = rounding_error(
        LOGS,
        width=furthest,
        operations=roundings,
        distance_operations=roundings,
        log_operations=4,
        depth=largest_log,
    )
    return log_density, error


IntArray = npt.NDArray[np.int64]


_ROUNDING = 1e-12  # relative error that counts as a lattice written in floats


@dataclass(frozen=True, kw_only=True)
class Lattice:
    """Contributions in units of a step."""

    step: float
    """The step, in the query's units."""
    points: IntArray
    """Contributions in steps, from zero, shape (tuples, states)."""
    errors: FloatArray
    """The most that the contributions of each tuple were moved."""


def lattice_of(added: FloatArray, window: int, largest: int) -> Lattice:
    """Return the coarsest exact lattice, or the best one with sums of at most `largest` steps.

    Parameters
    ----------
    added
        Contributions from zero, shape (tuples, states).
    window
        How many tuples are summed at most.
    largest
        How many steps such a sum may have if contributions must be rounded.
    """
    values = np.unique(added[added > 0])
    if len(values) == 0:
        return Lattice(
            step=1.0, points=np.zeros(added.shape, dtype=np.int64), errors=np.zeros(len(added))
        )
    total = float(np.sort(added.max(axis=1))[-window:].sum())
    step = _common_step(values)
    exact = step is not None and total / step <= 8 * largest
    if step is None or not exact:
        step = _best_step(values, total, largest)
    points = np.rint(added / step).astype(np.int64)
    errors = np.abs(added - points * step).max(axis=1)
    if not exact:  # then products and differences above were rounded themselves
        errors = errors + 4 * np.finfo(np.float64).eps * added.max(axis=1)
    return Lattice(step=step, points=points, errors=errors)


def _common_step(values: FloatArray) -> float | None:
    """Return the largest float of which all values are exact multiples."""
    if len(values) > LATTICE_VALUES:
        return None
    ratios = [float(value).as_integer_ratio() for value in values]
    denominator = math.lcm(*(below for _, below in ratios))
    divisor = math.gcd(*(above * (denominator // below) for above, below in ratios))
    try:
        step = divisor / denominator
    except OverflowError:
        return None
    points = np.rint(values / step) if step > 0 else np.array([np.inf])
    return step if np.all(points < 2**40) and np.all(points * step == values) else None


def _best_step(values: FloatArray, total: float, largest: int) -> float:
    """Return the step that moves the values least, among parts of the smallest and the largest."""
    parts = np.arange(1, LATTICE_PARTS + 1)
    steps = np.unique(np.concatenate([values[0] / parts, values[-1] / parts]))[::-1]
    steps = steps[total / steps <= largest]
    if len(steps) == 0:
        return total / largest
    chosen = values if len(values) <= 512 else values[:: len(values) // 512 + 1]
    moved = np.array([np.abs(chosen - np.rint(chosen / step) * step).max() for step in steps])
    good = np.flatnonzero(moved <= _ROUNDING * values[0])
    return float(steps[good[0]] if len(good) else steps[moved.argmin()])
