"""Plans: data, model, queries and budget in one file, run without questions."""

from pdp_calibrate.plan.reading import Plan, PlannedQuery, read_plan
from pdp_calibrate.plan.running import (
    Outcome,
    PlannedCheck,
    PlannedRelease,
    check_plan,
    run_plan,
)

__all__ = [
    "Outcome",
    "Plan",
    "PlannedCheck",
    "PlannedQuery",
    "PlannedRelease",
    "check_plan",
    "read_plan",
    "run_plan",
]
