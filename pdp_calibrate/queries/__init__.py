"""What is asked of the data: linear queries, counts, and any function of a table.

Every query is *lowered* before anything else happens: `lower()` turns it into `Contributions`,
the amount that each value of each tuple adds to the answer. Engines see only those.
"""

from pdp_calibrate.queries.base import Query, lower
from pdp_calibrate.queries.counts import Count, Histogram
from pdp_calibrate.queries.custom import Custom
from pdp_calibrate.queries.linear import Linear, Mean, Sum

__all__ = ["Count", "Custom", "Histogram", "Linear", "Mean", "Query", "Sum", "lower"]
