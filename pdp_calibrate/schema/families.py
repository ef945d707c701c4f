"""The fields of every family of models, in JSON."""

from __future__ import annotations

from pdp_calibrate.schema.parts import (
    COUNT,
    DOMAINS,
    MATRIX,
    NAMES,
    NUMBER,
    POSITIVE,
    RANGE,
    VECTOR,
    Schema,
    described,
    items,
    nullable,
    ref,
)

_NESTED = described("Probabilities or counts, one level of lists per tuple.", {"type": "array"})

FAMILIES: dict[str, tuple[str, dict[str, Schema]]] = {
    "JointTable": (
        "Any joint distribution of discrete tuples; over 10⁴ cells a digest only.",
        {"domains": DOMAINS, "probabilities": _NESTED},
    ),
    "Gaussian": (
        "A multivariate normal law with public ranges.",
        {"mean": VECTOR, "covariance": MATRIX, "bounds": items(RANGE)},
    ),
    "LoewnerBall": (
        "Every Gaussian whose covariance lies within a relative radius.",
        {"center": ref("Gaussian"), "radius": NUMBER},
    ),
    "SampledGaussian": (
        "Every Gaussian that a sample does not rule out.",
        {"center": ref("Gaussian"), "rows": COUNT, "confidence": NUMBER},
    ),
    "ConditionalBall": (
        "Every table whose conditional laws lie within a radius.",
        {"center": ref("JointTable"), "radius": NUMBER},
    ),
    "SampledTable": (
        "Every table that a sample does not rule out.",
        {"domains": DOMAINS, "counts": _NESTED, "confidence": NUMBER, "noise_scale": NUMBER},
    ),
    "GaussianGroup": (
        "Members with one common correlation, or any in a range.",
        {"correlation": RANGE, "bounds": RANGE, "variance": POSITIVE},
    ),
    "GaussianSeries": (
        "A series in which each value depends on the one before.",
        {"correlation": NUMBER, "bounds": RANGE, "variance": POSITIVE},
    ),
    "BinaryGroup": (
        "Members with yes/no values, nobody told apart.",
        {"count_probabilities": VECTOR},
    ),
    "CategoryGroup": (
        "Members with one of several values, nobody told apart.",
        {"categories": NAMES, "count_probabilities": VECTOR},
    ),
    "MarkovChain": (
        "States along time, each depending on the one before.",
        {
            "transition": described("One matrix, or one per step.", {"type": "array"}),
            "length": COUNT,
            "states": NAMES,
            "initial": nullable(VECTOR),
        },
    ),
    "MixingChain": (
        "Every Markov chain that forgets fast enough.",
        {"length": COUNT, "states": NAMES, "diameter": NUMBER},
    ),
    "MarkovTree": (
        "Discrete tuples along a tree, each depending on its parent.",
        {"domains": DOMAINS, "parents": {"type": "array"}, "tables": {"type": "array"}},
    ),
    "Unknown": (
        "Tuples that may depend on each other in any way.",
        {"size": COUNT},
    ),
    "Blocks": (
        "Independent blocks, each of so many copies.",
        {"models": items(ref("Model")), "counts": items(COUNT)},
    ),
    "ModelSet": (
        "Several models of which the worst counts.",
        {"models": items(ref("Model"))},
    ),
}
"""For each type of model what it is, and the fields beside names and provenance."""
