"""What a guarantee rests on, one sentence each."""

from __future__ import annotations

from pdp_calibrate.adversaries import Adversaries
from pdp_calibrate.models import (
    Blocks,
    Gaussian,
    GaussianGroup,
    GaussianSeries,
    LoewnerBall,
    Model,
    ModelSet,
    Unknown,
)

_SOURCES = {
    "assumed": "stated by hand, as an assumption",
    "public": "learned from data that are public",
    "dp": "learned from private rows under differential privacy",
    "private": "learned from private rows without differential privacy",
}
_FAMILIES = {
    "JointTable": "a joint table: any dependence, with a zero cell taken as impossible",
    "Gaussian": "jointly Gaussian entries with the covariance given",
    "LoewnerBall": "jointly Gaussian entries, every variance within the stated factor",
    "SampledGaussian": "jointly Gaussian entries that the sample does not rule out",
    "GaussianGroup": "jointly Gaussian members, one common correlation for every pair",
    "GaussianSeries": "a Gaussian series in which each value depends on the one before",
    "BinaryGroup": "yes/no members of a group, nobody told apart from another",
    "CategoryGroup": "members of a group with categories, nobody told apart from another",
    "MarkovChain": "a Markov chain: the next state depends on the present one only",
    "MarkovTree": "states on a tree: an entry depends on its neighbours only",
    "MixingChain": "any Markov chain that forgets at least as fast as stated",
    "ConditionalBall": "any joint table whose conditional laws are within the stated distance",
    "SampledTable": "any joint table that the sample does not rule out",
    "Unknown": "members who may depend on each other in any way at all (group privacy)",
    "ModelSet": "one of several stated models, whichever is worst",
    "Blocks": "independent blocks",
}
_CLOSED = (Gaussian, LoewnerBall, GaussianGroup, GaussianSeries, Unknown)
"""Families in which knowing entries with Gaussian error tells no more than knowing them exactly."""
_ANY_DEPENDENCE = (
    "Members of a group may depend on each other in any way at all (group privacy); groups do not"
    " depend on each other."
)


def source(model: Model) -> str:
    """Say where the numbers of a model come from."""
    return _SOURCES[model.provenance]


def family(model: Model) -> str:
    """Say what kind of dependence a model allows."""
    name = type(model).__name__
    kind = _FAMILIES.get(name, name)
    if isinstance(model, Blocks):
        return f"{kind} of {'; or '.join(dict.fromkeys(map(family, model.models)))}"
    return kind


def assumptions(model: Model, adversaries: Adversaries, *, clamped: bool = False) -> list[str]:
    """List what carries the guarantee: if one of these fails, it may fail too."""
    parts = members(model)
    if all(isinstance(part, Unknown) for part in parts):
        found = [_ANY_DEPENDENCE]
    else:
        law = "" if model.assuming is None else f", assuming {model.assuming}"
        found = [f"The model is right{law}: {family(model)}; {source(model)}."]
    if model.certainty is not None:
        found.append(model.certainty)
    found += _of_adversaries(adversaries, parts, clamped=clamped)
    if clamped:
        found.append(
            "Every secret value lies inside its public range; values beyond it are not covered."
        )
    return [
        *found,
        "Names, number of rows, who belongs to which group, domains and ranges are public.",
    ]


def members(model: Model) -> tuple[Model, ...]:
    """Return the models inside blocks and sets, or the model itself."""
    if isinstance(model, Blocks | ModelSet):
        return tuple(part for inner in model.models for part in members(inner))
    return (model,)


def _of_adversaries(
    adversaries: Adversaries, parts: tuple[Model, ...], *, clamped: bool
) -> list[str]:
    found = []
    closed = all(isinstance(part, _CLOSED) for part in parts)
    if not closed or clamped:
        found.append(
            "Adversaries hold exact values of other entries; noisy knowledge can tell more."
        )
    if adversaries.known is not None or adversaries.at_most is not None:
        found.append("Nobody knows more than stated; plain differential privacy is not implied.")
    return found
