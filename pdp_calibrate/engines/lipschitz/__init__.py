"""Upper bounds from one fact: a likelihood changes by at most e^cost from one database to another.

Whatever was released, the likelihood g(x) = p(r | x) obeys g(x) ≤ e^{c(x,x')}·g(x'), with
c = Σ_m |f_m(x) − f_m(x')|/λ_m for answers with Laplace noise, and c = ε₀ · (number of tuples that
differ) for any ε₀-DP mechanism, whatever it is inside; costs of several releases add up, chosen
adaptively or not. With P and Q the laws of the database under two secrets, the leakage is at most

    log max { P·g : Q·g = 1, g_k ≤ e^{c(k,l)} g_l, g ≥ 0 }.

For a black box this is exact: a likelihood that attains it belongs to an ε₀-DP mechanism with two
outputs. `program` solves and certifies it for any cost, `line` for costs along a line, `spread`
bounds it in closed form.
"""

from pdp_calibrate.engines.lipschitz.line import line_bounds
from pdp_calibrate.engines.lipschitz.program import certified_bound, coupling_value, transport
from pdp_calibrate.engines.lipschitz.spread import spread_bounds

__all__ = ["certified_bound", "coupling_value", "line_bounds", "spread_bounds", "transport"]
