"""The engine for sets of tables that are described by their conditional laws.

Knowing x_K and taking x_i = v for granted, the adversary believes some law of what the unknown
tuples add to the answer; in such a set it is any law within total variation τ of a centre. The
leakage at an output r is then the largest density under one secret over the smallest under
another (`kernels`). The output that matters is one of the atoms: for any fixed pair of laws it is
(`engines.laplace`), and all laws have their atoms among the values that are possible. For a fixed
pair of laws more noise never leaks more, and neither the centres nor the radii depend on the noise,
so the supremum never grows with the scale. With τ = 1 it is Σ LS_j/λ over the target and the
unknown tuples, the group bound; it never exceeds that.

The strongest adversary believes nothing about others: LS_i/λ. The supremum is over pairs of
conditional laws, each free in its ball. A table that has both laws is the witness's model; other
laws of that table may lie outside their own balls.
"""

from pdp_calibrate.engines.table_sets.search import search

__all__ = ["search"]
