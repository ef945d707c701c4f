"""One folder per family of models, and this list of the models that JSON can name."""

MODELS = {
    "BinaryGroup": "pdp_calibrate.families.exchangeable.model",
    "RateGroup": "pdp_calibrate.families.exchangeable.rates",
    "CategoryGroup": "pdp_calibrate.families.exchangeable.model",
    "Blocks": "pdp_calibrate.core.composite",
    "ModelSet": "pdp_calibrate.core.composite",
    "JointTable": "pdp_calibrate.core.table",
    "ConditionalBall": "pdp_calibrate.families.table.sets",
    "SampledTable": "pdp_calibrate.families.table.sets",
    "Gaussian": "pdp_calibrate.families.gaussian.model",
    "LoewnerBall": "pdp_calibrate.families.gaussian.sets",
    "SampledGaussian": "pdp_calibrate.families.gaussian.sets",
    "GaussianNetwork": "pdp_calibrate.families.gaussian.network",
    "GaussianGroup": "pdp_calibrate.families.gaussian.alike",
    "GaussianSeries": "pdp_calibrate.families.gaussian.alike",
    "MarkovChain": "pdp_calibrate.families.chain.model",
    "SampledChain": "pdp_calibrate.families.chain.sampled",
    "MarkovTree": "pdp_calibrate.families.network.tree",
    "MixingChain": "pdp_calibrate.families.network.mixing_chain",
    "Network": "pdp_calibrate.families.network.network",
    "Unknown": "pdp_calibrate.families.any_dependence",
}
"""Where each model lives; loaded when a file names it."""
