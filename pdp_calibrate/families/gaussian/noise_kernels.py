"""Compiled conditional moments of several answers, for problems too large for numpy."""

from __future__ import annotations

from numba import njit

from pdp_calibrate.families.gaussian.kernels import cholesky_row


@njit(cache=True, no_cfunc_wrapper=True, error_model="numpy")
def eliminate(matrix, right, corner, chosen, targets, line, diagonal, columns, left, work, heads):
    """Eliminate the chosen tuples of each node from a positive definite matrix and right sides.

    Writes what remains of the target's row, of the diagonal, of the right sides and of their
    products; see `nodes.eliminated`.
    """
    number, size = chosen.shape
    answers = len(right)
    for node in range(number):
        target, step = targets[node], 0
        # Nothing is eliminated yet: the target's row, the diagonal, the right sides, their
        # products.
        for k in range(size):
            line[node, k] = matrix[target, k]
            diagonal[node, k] = matrix[k, k]
            for m in range(answers):
                columns[node, m, k] = right[m, k]
        for m in range(answers):
            for other in range(answers):
                left[node, m, other] = corner[m, other]
        for place in range(size):
            if not chosen[node, place]:
                continue
            # The next row of the Cholesky factor.
            scale = cholesky_row(matrix, work, step, place)
            # Subtract its outer product: what is left is a Schur complement. The rounding of all
            # steps is that of a matrix nearby, which τ covers (see `instance`).
            factor = work[step, target] * scale
            for k in range(size):
                here = work[step, k] * scale
                work[step, k] = here
                line[node, k] -= factor * here
                diagonal[node, k] -= here * here
            # The same row for each answer, subtracted from it and from the answers' products.
            for m in range(answers):
                heads[m] = columns[node, m, place] * scale
            for m in range(answers):
                for other in range(answers):
                    left[node, m, other] -= heads[m] * heads[other]
                for k in range(size):
                    columns[node, m, k] -= heads[m] * work[step, k]
            step += 1
