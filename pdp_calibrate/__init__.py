"""Calibrate differential-privacy noise for correlated data, exactly and provably.

Names load on first use, so importing the package is quick; OpenDP, for one, is loaded by the first
release. Importing it also gives every pandas DataFrame the methods ``df.pdp``.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pdp_calibrate.accessor  # noqa: F401 - registers df.pdp

if TYPE_CHECKING:
    from pdp_calibrate.adversaries import Adversaries as Adversaries, Witness as Witness
    from pdp_calibrate.auditing import Audit as Audit, Event as Event, audit as audit
    from pdp_calibrate.baselines import Sensitivity as Sensitivity, sensitivity as sensitivity
    from pdp_calibrate.calibration import (
        Calibration as Calibration,
        JointCalibration as JointCalibration,
        JointRelease as JointRelease,
        Release as Release,
        calibrate as calibrate,
        calibrate_to_accuracy as calibrate_to_accuracy,
        verify as verify,
    )
    from pdp_calibrate.curves import (
        SensitivityCurve as SensitivityCurve,
        sensitivity_curve as sensitivity_curve,
    )
    from pdp_calibrate.engines import Leakage as Leakage, leakage as leakage, paper as paper
    from pdp_calibrate.engines.black_box import (
        black_box_leakage as black_box_leakage,
        dp_budget as dp_budget,
    )
    from pdp_calibrate.engines.posterior import Beliefs as Beliefs, posterior as posterior
    from pdp_calibrate.engines.result import Bound as Bound
    from pdp_calibrate.errors import (
        BudgetExceededError as BudgetExceededError,
        CalibrationError as CalibrationError,
        FrameError as FrameError,
        LedgerError as LedgerError,
        ModelError as ModelError,
        ModelFitWarning as ModelFitWarning,
        PdpError as PdpError,
        PlanError as PlanError,
        PrivacyLeakWarning as PrivacyLeakWarning,
        QueryError as QueryError,
        SecondReleaseWarning as SecondReleaseWarning,
        SourceError as SourceError,
        UnsupportedQueryError as UnsupportedQueryError,
    )
    from pdp_calibrate.estimators.gaussian import GaussianEstimator as GaussianEstimator
    from pdp_calibrate.estimators.gaussian_series import (
        GaussianSeriesEstimator as GaussianSeriesEstimator,
    )
    from pdp_calibrate.estimators.group import GroupEstimator as GroupEstimator
    from pdp_calibrate.estimators.markov import MarkovChainEstimator as MarkovChainEstimator
    from pdp_calibrate.estimators.pearson import Correlations as Correlations, pearson as pearson
    from pdp_calibrate.estimators.table import TableEstimator as TableEstimator
    from pdp_calibrate.explain import explain as explain
    from pdp_calibrate.ledger import Entry as Entry, Ledger as Ledger
    from pdp_calibrate.models import (
        BinaryGroup as BinaryGroup,
        Blocks as Blocks,
        CategoryGroup as CategoryGroup,
        ConditionalBall as ConditionalBall,
        Gaussian as Gaussian,
        GaussianGroup as GaussianGroup,
        GaussianSeries as GaussianSeries,
        JointTable as JointTable,
        LoewnerBall as LoewnerBall,
        MarkovChain as MarkovChain,
        MarkovTree as MarkovTree,
        MixingChain as MixingChain,
        ModelSet as ModelSet,
        SampledGaussian as SampledGaussian,
        SampledTable as SampledTable,
        Unknown as Unknown,
    )
    from pdp_calibrate.plan import Plan as Plan, read_plan as read_plan, run_plan as run_plan
    from pdp_calibrate.queries import (
        Count as Count,
        Custom as Custom,
        Histogram as Histogram,
        Linear as Linear,
        Mean as Mean,
        Sum as Sum,
    )
    from pdp_calibrate.report import plots as plots, report as report
    from pdp_calibrate.schema import json_schema as json_schema, load as load

_HOMES = {
    "adversaries": "Adversaries Witness",
    "auditing": "Audit Event audit",
    "baselines": "Sensitivity sensitivity",
    "calibration": "Calibration JointCalibration JointRelease Release calibrate"
    " calibrate_to_accuracy verify",
    "curves": "SensitivityCurve sensitivity_curve",
    "engines": "Leakage leakage paper",
    "engines.black_box": "black_box_leakage dp_budget",
    "engines.posterior": "Beliefs posterior",
    "engines.result": "Bound",
    "errors": "BudgetExceededError CalibrationError FrameError LedgerError ModelError"
    " ModelFitWarning PdpError PlanError PrivacyLeakWarning QueryError"
    " SecondReleaseWarning SourceError UnsupportedQueryError",
    "estimators.gaussian": "GaussianEstimator",
    "estimators.gaussian_series": "GaussianSeriesEstimator",
    "estimators.group": "GroupEstimator",
    "estimators.markov": "MarkovChainEstimator",
    "estimators.pearson": "Correlations pearson",
    "estimators.table": "TableEstimator",
    "explain": "explain",
    "ledger": "Entry Ledger",
    "models": "BinaryGroup Blocks CategoryGroup ConditionalBall Gaussian GaussianGroup"
    " GaussianSeries JointTable LoewnerBall MarkovChain MarkovTree MixingChain ModelSet"
    " SampledGaussian SampledTable Unknown",
    "plan": "Plan read_plan run_plan",
    "queries": "Count Custom Histogram Linear Mean Sum",
    "report": "plots report",
    "schema": "json_schema load",
}
_MODULE_OF = {name: module for module, names in _HOMES.items() for name in names.split()}

__all__ = sorted(_MODULE_OF)
__version__ = "0.1.0"

if not TYPE_CHECKING:  # so that type checkers still see every name

    def __getattr__(name: str) -> Any:
        if name not in _MODULE_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        home = import_module(f"{__name__}.{_MODULE_OF[name]}")
        if name == "paper":  # a module of its own
            import_module(f"{home.__name__}.{name}")
        value = getattr(home, name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return [*globals(), *__all__]

    class _Package(ModuleType):
        """Keeps `pdp.explain` and `pdp.report` functions when the modules called so are loaded."""

        def __setattr__(self, name: str, value: Any) -> None:
            home = f"{__name__}.{name}"
            if _MODULE_OF.get(name) != name or getattr(value, "__name__", None) != home:
                super().__setattr__(name, value)

    sys.modules[__name__].__class__ = _Package
