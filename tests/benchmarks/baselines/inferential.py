"""Inferential privacy (Ghosh and Kleinberg, ITCS 2017): a plain-DP budget for weak dependence.

γ_ij is half the largest log-ratio of x_i's law given all others, when x_j alone changes. While the
spectral norm of Γ is below 1, every ε₀-DP mechanism leaks at most 2·ε₀·Σ_j [(I − Γ)^{-1}]_ij about
x_i. It holds for every mechanism and every K: what is known only removes rows of Γ.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tests.benchmarks.baselines.quilts import FloatArray


def budget(influences: FloatArray, epsilon: float) -> float | None:
    """Return ε₀ for the matrix Γ; None where the dependence is too strong."""
    if np.linalg.norm(influences, 2) >= 1:
        return None
    total = np.linalg.inv(np.eye(len(influences)) - influences).sum(axis=1)
    return float(epsilon / (2 * total.max()))


def table_influences(cells: npt.NDArray[np.float64]) -> FloatArray:
    """Return Γ of a joint table; ∞ where a cell is empty."""
    size = cells.ndim
    influences = np.zeros((size, size))
    with np.errstate(divide="ignore", invalid="ignore"):
        for i in range(size):
            logs = np.log(cells / cells.sum(axis=i, keepdims=True))
            for j in range(size):
                if j != i:
                    spread = logs.max(axis=j) - logs.min(axis=j)
                    influences[i, j] = np.nan_to_num(spread, nan=np.inf).max() / 2
    return influences


def chain_influences(transition: FloatArray, length: int) -> FloatArray:
    """Return Γ of a stationary chain: only neighbours matter; the ends see one of them."""
    law = np.linalg.matrix_power(transition, 10_000)[0]
    window = law[:, None, None] * transition[:, :, None] * transition[None, :, :]
    inner = table_influences(window)
    pair = table_influences(law[:, np.newaxis] * transition)
    influences = np.zeros((length, length))
    steps = np.arange(length - 1)
    influences[steps + 1, steps], influences[steps, steps + 1] = inner[1, 0], inner[1, 2]
    influences[0, 1], influences[-1, -2] = pair[0, 1], pair[1, 0]
    return influences
