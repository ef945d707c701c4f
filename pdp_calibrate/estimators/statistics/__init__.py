"""What estimators and releases need to know of a frame, computed by the engine that holds it.

Written once on narwhals expressions, for frames in memory (pandas, polars) and frames that are
computed elsewhere (polars lazy, DuckDB, Dask, PySpark). Only counts, sums and sums of products
leave the engine; rows never do.
"""

from pdp_calibrate.estimators.statistics.counts import (
    contingency as contingency,
    counts_by_column as counts_by_column,
    group_sizes as group_sizes,
    group_totals as group_totals,
    refuse_repeated as refuse_repeated,
    role_patterns as role_patterns,
)
from pdp_calibrate.estimators.statistics.declared import declared_values as declared_values
from pdp_calibrate.estimators.statistics.exact_sums import (
    ClampedSum as ClampedSum,
    clamped_sums as clamped_sums,
)
from pdp_calibrate.estimators.statistics.frames import (
    check_roles as check_roles,
    column_name as column_name,
    columns_of as columns_of,
    refuse_changed as refuse_changed,
    rows_in as rows_in,
    rows_of as rows_of,
)
from pdp_calibrate.estimators.statistics.grouped import (
    Grouped as Grouped,
    Part as Part,
    read_groups as read_groups,
)
from pdp_calibrate.estimators.statistics.order import (
    check_series as check_series,
    clamped_sums_by_rank as clamped_sums_by_rank,
    contingency_by_rank as contingency_by_rank,
)
from pdp_calibrate.estimators.statistics.products import (
    GroupMoments as GroupMoments,
    group_moments as group_moments,
)
