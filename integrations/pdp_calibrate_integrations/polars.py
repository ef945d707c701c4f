"""``df.pdp`` for polars: ``pip install "pdp-calibrate[polars]"``.

Importing it gives every polars DataFrame and LazyFrame the methods that pandas frames have:

    import pdp_calibrate_integrations.polars
    people = pl.scan_parquet("people/*.parquet")
    people.pdp.sum("income", bounds=(0, 100), groups="household", epsilon=1.0)

A LazyFrame is never collected: only counts and sums leave the engine.
"""

from __future__ import annotations

from pdp_calibrate.accessor import PdpAccessor
from pdp_calibrate.errors import MissingLibraryError

try:
    import polars as pl
except ImportError as error:
    raise MissingLibraryError.needed_for("polars is missing", extra="polars") from error

pl.api.register_dataframe_namespace("pdp")(PdpAccessor)
pl.api.register_lazyframe_namespace("pdp")(PdpAccessor)
