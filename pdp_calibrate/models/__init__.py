"""What θ and Θ are: frozen, validated data. Nothing here searches."""

from pdp_calibrate.models.balls import LoewnerBall, SampledGaussian
from pdp_calibrate.models.base import Model
from pdp_calibrate.models.blocks import Blocks
from pdp_calibrate.models.chain import MarkovChain
from pdp_calibrate.models.gaussian import Gaussian
from pdp_calibrate.models.gaussian_families import GaussianGroup, GaussianSeries
from pdp_calibrate.models.groups import BinaryGroup, CategoryGroup
from pdp_calibrate.models.mixing import MixingChain
from pdp_calibrate.models.sets import ModelSet
from pdp_calibrate.models.table import JointTable
from pdp_calibrate.models.table_sets import ConditionalBall, SampledTable
from pdp_calibrate.models.tree import MarkovTree
from pdp_calibrate.models.unknown import Unknown

__all__ = [
    "BinaryGroup",
    "Blocks",
    "CategoryGroup",
    "ConditionalBall",
    "Gaussian",
    "GaussianGroup",
    "GaussianSeries",
    "JointTable",
    "LoewnerBall",
    "MarkovChain",
    "MarkovTree",
    "MixingChain",
    "Model",
    "ModelSet",
    "SampledGaussian",
    "SampledTable",
    "Unknown",
]
