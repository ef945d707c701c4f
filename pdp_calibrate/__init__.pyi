"""The public names: the one list of them, for type checkers and for the lazy loader."""

from pdp_calibrate import paper as paper
from pdp_calibrate.auditing.attack import Audit as Audit, audit as audit
from pdp_calibrate.auditing.events import Event as Event
from pdp_calibrate.calibration.baselines import (
    Sensitivity as Sensitivity,
    sensitivity as sensitivity,
)
from pdp_calibrate.calibration.calibrate import (
    SensitivityCurve as SensitivityCurve,
    calibrate as calibrate,
    calibrate_to_accuracy as calibrate_to_accuracy,
    sensitivity_curve as sensitivity_curve,
    verify as verify,
)
from pdp_calibrate.calibration.result import Calibration as Calibration, Release as Release
from pdp_calibrate.calibration.risk import Risk as Risk, epsilon_for as epsilon_for
from pdp_calibrate.composition.black_box import (
    black_box_leakage as black_box_leakage,
    dp_budget as dp_budget,
)
from pdp_calibrate.core.adversary import Adversaries as Adversaries, Witness as Witness
from pdp_calibrate.core.composite import Blocks as Blocks, ModelSet as ModelSet
from pdp_calibrate.core.leakage import leakage as leakage
from pdp_calibrate.core.posterior import Beliefs as Beliefs, posterior as posterior
from pdp_calibrate.core.problem import Bound as Bound, Leakage as Leakage
from pdp_calibrate.core.query import (
    Count as Count,
    Custom as Custom,
    EachStep as EachStep,
    Histogram as Histogram,
    Linear as Linear,
    Mean as Mean,
    Sum as Sum,
)
from pdp_calibrate.core.table import JointTable as JointTable
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
from pdp_calibrate.exploring.notebook import Exploration as Exploration, explore as explore
from pdp_calibrate.families.any_dependence import Unknown as Unknown
from pdp_calibrate.families.chain.estimator import MarkovChainEstimator as MarkovChainEstimator
from pdp_calibrate.families.chain.model import MarkovChain as MarkovChain
from pdp_calibrate.families.chain.sampled import SampledChain as SampledChain
from pdp_calibrate.families.exchangeable.model import (
    BinaryGroup as BinaryGroup,
    CategoryGroup as CategoryGroup,
)
from pdp_calibrate.families.exchangeable.rates import RateGroup as RateGroup
from pdp_calibrate.families.gaussian.alike import (
    GaussianGroup as GaussianGroup,
    GaussianSeries as GaussianSeries,
)
from pdp_calibrate.families.gaussian.estimator import GaussianEstimator as GaussianEstimator
from pdp_calibrate.families.gaussian.model import Gaussian as Gaussian
from pdp_calibrate.families.gaussian.nested import nested_covariance as nested_covariance
from pdp_calibrate.families.gaussian.network import GaussianNetwork as GaussianNetwork
from pdp_calibrate.families.gaussian.series_estimator import (
    GaussianSeriesEstimator as GaussianSeriesEstimator,
)
from pdp_calibrate.families.gaussian.sets import (
    LoewnerBall as LoewnerBall,
    SampledGaussian as SampledGaussian,
)
from pdp_calibrate.families.group_estimator import GroupEstimator as GroupEstimator
from pdp_calibrate.families.network.mixing_chain import MixingChain as MixingChain
from pdp_calibrate.families.network.network import Network as Network
from pdp_calibrate.families.network.tree import MarkovTree as MarkovTree
from pdp_calibrate.families.stream.refresh import Refresh as Refresh, refresh as refresh
from pdp_calibrate.families.table.estimator import TableEstimator as TableEstimator
from pdp_calibrate.families.table.sets import (
    ConditionalBall as ConditionalBall,
    SampledTable as SampledTable,
)
from pdp_calibrate.jobs.advise import Advice as Advice, Choice as Choice, advise as advise
from pdp_calibrate.jobs.load import load as load
from pdp_calibrate.jobs.plan import Plan as Plan, read_plan as read_plan
from pdp_calibrate.jobs.run import run_plan as run_plan
from pdp_calibrate.learning.pearson import Correlations as Correlations, pearson as pearson
from pdp_calibrate.ledger.accounts import Entry as Entry
from pdp_calibrate.ledger.ledger import Ledger as Ledger
from pdp_calibrate.people import People as People, Price as Price
from pdp_calibrate.show import plots as plots
from pdp_calibrate.show.explain import explain as explain
from pdp_calibrate.show.json_schema import json_schema as json_schema
from pdp_calibrate.show.page import report as report

__all__: list[str]
__version__: str
