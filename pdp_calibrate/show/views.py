"""The numbers behind the pictures: computed here, only drawn elsewhere."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from scipy.special import ndtri

from pdp_calibrate.arrays import deadline_after
from pdp_calibrate.calibration.result import AnyCalibration, Calibration, single
from pdp_calibrate.core import gaussian_dp
from pdp_calibrate.core.accuracy import unit_of_scale
from pdp_calibrate.core.adversary import Adversaries, Witness
from pdp_calibrate.core.composite import Blocks, ModelSet
from pdp_calibrate.core.model import Model
from pdp_calibrate.core.noise import Noise
from pdp_calibrate.core.posterior import Beliefs, posterior, rare_output
from pdp_calibrate.core.problem import Leakage, Problem, split, worst
from pdp_calibrate.core.query import Mean, Sum
from pdp_calibrate.core.table import JointTable
from pdp_calibrate.errors import ModelError, PdpError
from pdp_calibrate.families.stream.refresh import Refresh
from pdp_calibrate.paper import graph
from pdp_calibrate.paper.graph import WeightedHierarchicalGraph
from pdp_calibrate.show.words import entry, knowledge, number, of_any_record

_POINTS = 24  # on a curve


_MOST_KNOWN = 15  # a curve over more known tuples than this is not drawn


_MOST_IN_GRAPH = 6  # tuples; with more there are too many adversaries to show


_MOST_CELLS = 4096  # of a joint table that is made for a picture


_RARE = 0.01  # of answers lie beyond the one that is drawn, where no δ says how many


_PATIENCE = 8.0  # seconds for a whole curve; wider brackets after that


UNIT = unit_of_scale(Sum())


METHODS = {
    "dp": "plain DP",
    "wasserstein": "Wasserstein",
    "group": "group DP",
    "pdp": "this release",
}


@dataclass(frozen=True, kw_only=True)
class ScaleCurve:
    """What one query leaks at other scales than the chosen one."""

    scales: tuple[float, ...]
    """Laplace scales, ascending."""
    values: tuple[float, ...]
    """Certified upper ends of the leakage."""
    lowers: tuple[float, ...]
    """Lower ends; equal where the engine is exact."""
    scale: float
    """The scale chosen."""
    leakage: float
    """What it leaks at most."""
    epsilon: float
    """What it may leak."""
    plain_scale: float | None
    """The scale of plain DP; None if it adds no noise."""
    plain_leakage: float | None
    """What that leaks at most."""
    plain_exact: bool
    """Whether it leaks exactly that much."""
    noise: Noise = "laplace"
    """What is drawn."""
    delta: float = 0.0
    """The δ that goes with ε, for Gaussian noise."""
    unit: str = UNIT
    """What scales are measured in, in words."""


@dataclass(frozen=True, kw_only=True)
class ScaleBars:
    """The scales of all methods."""

    scales: dict[str, float]
    """By the name of the method."""
    unit: str = UNIT
    """What they are measured in, in words."""


@dataclass(frozen=True, kw_only=True)
class KnowledgeCurve:
    """The worst leakage among adversaries who know exactly this number of tuples."""

    known: tuple[int, ...]
    """Numbers of known tuples."""
    values: tuple[float, ...]
    """Certified upper ends of the leakage."""
    lowers: tuple[float, ...]
    """Lower ends; equal where the engine is exact."""
    epsilon: float
    """What nobody exceeds."""
    plain: tuple[float, ...]
    """The same at the scale of plain DP."""
    worst: str
    """The worst adversary of all, in words."""
    among: str = "other entries"
    """What the known tuples are called: of blocks, members of the one where most can be learned."""


@dataclass(frozen=True, kw_only=True)
class BeliefBars:
    """What the worst adversary believes before and after the output that helps most."""

    values: tuple[str, ...]
    """The values of the target."""
    before: tuple[float, ...]
    """Their probabilities before the output."""
    after: tuple[float, ...]
    """And after it."""
    target: str
    """Who is attacked."""
    knows: str
    """What the adversary knows, in words."""
    output: str
    """The output seen, in words."""
    beyond: float = 0.0
    """The probability of outputs after which the belief moves further; 0 with Laplace noise."""


@dataclass(frozen=True, kw_only=True)
class AdversaryGraph:
    """Every adversary of a few tuples, with what each could learn at most."""

    names: tuple[Hashable, ...]
    """The tuples."""
    leakages: dict[tuple[Hashable, frozenset[Hashable]], float]
    """The leakage of each node (i, K): of joint tables with Laplace noise exactly."""
    worst: tuple[Hashable, frozenset[Hashable]] | None
    """The node that leaks most."""
    unit: str = "nats"
    """What leakages are measured in, in words."""
    graph: WeightedHierarchicalGraph | None = None
    """The paper's weighted hierarchical graph, for the weights of its edges, which are no bounds;
    it is about tables and Laplace noise."""


def drawable(calibration: AnyCalibration) -> Calibration:
    """Return a calibration of one answer that may be drawn, or raise."""
    refuse_private(calibration.model)
    return single(calibration, "a picture")


def refuse_private(model: Model) -> None:
    """Raise where a picture would show something of a private model."""
    if model.provenance == "private":
        raise ModelError(
            "nothing is drawn of a model learned from private rows: the picture would show its"
            " parameters. Learn it from public data or under differential privacy."
        )


def leakage_by_scale(
    calibration: AnyCalibration, *, plain: Leakage | None = None, points: int = _POINTS
) -> ScaleCurve:
    """Evaluate the leakage from well below plain DP to beyond group DP.

    Parameters
    ----------
    calibration
        Whose query and adversaries.
    plain
        What the scale of plain DP leaks, if it has been computed already.
    points
        How many scales, beside the chosen one and that of plain DP.
    """
    calibration = drawable(calibration)
    marks = [calibration.scale, calibration.baselines["dp"], calibration.baselines["group"]]
    positive = [mark for mark in marks if mark and math.isfinite(mark)]
    low, high = min(positive) / 1.6, max(1.25 * max(positive), 2.2 * min(positive))
    if high > 40 * calibration.scale:  # a far-off group scale would squeeze everything else
        high = 8 * calibration.scale
    plain_scale = calibration.baselines["dp"] or None
    extra = [] if plain_scale is None else [plain_scale]
    scales = sorted({*np.geomspace(low, high, points).tolist(), calibration.scale, *extra})
    seconds = _PATIENCE / len(scales)
    problems = _problems(calibration)
    curve = [_leak(calibration, problems, scale, seconds) for scale in scales]
    found = {scale: (one.value, one.lower) for scale, one in zip(scales, curve, strict=True)}
    for one in filter(None, (plain, calibration.leakage)):  # these were given more time
        if one.scale in found:
            found[one.scale] = (one.value, one.lower)
    values = np.minimum.accumulate(
        [found[scale][0] for scale in scales]
    )  # more scale never leaks more
    lowers = np.maximum.accumulate([found[scale][1] for scale in scales[::-1]])[::-1]
    mark = scales.index(plain_scale) if plain_scale else None
    return ScaleCurve(
        scales=tuple(scales),
        values=tuple(values.tolist()),
        lowers=tuple(lowers.tolist()),
        scale=calibration.scale,
        leakage=calibration.leakage.value,
        epsilon=calibration.epsilon,
        plain_scale=plain_scale,
        plain_leakage=None if mark is None else float(values[mark]),
        plain_exact=mark is not None and bool(values[mark] - lowers[mark] <= 1e-6 * values[mark]),
        noise=calibration.noise,
        delta=calibration.delta,
        unit=calibration.scale_units[0],
    )


def leakage_by_knowledge(calibration: AnyCalibration) -> KnowledgeCurve | None:
    """Evaluate the worst leakage for each number of known tuples (the paper's Figure 4).

    Of independent blocks, such as households, it is about the block in which most can be learned:
    what anyone knows of the others says nothing about its members. None where all adversaries know
    the same number, or there are more than 15 others.
    """
    calibration = drawable(calibration)
    if calibration.adversaries.known is not None:
        return None
    problems = _problems(calibration)
    among = "other entries"
    if isinstance(calibration.model, Blocks) and not any(one.hidden_noise for one in problems):
        problems = [worst(problems, calibration.scale, deadline=deadline_after(_PATIENCE))[1]]
        among = "other members of the group"
    fewest, most = problems[0].knowledge.fewest, problems[0].knowledge.most
    if problems[0].knowledge.total - 1 > _MOST_KNOWN or most - fewest < 1:
        return None
    numbers = list(range(fewest, most + 1))
    plain_scale = calibration.baselines["dp"]
    seconds = _PATIENCE / (2 * len(numbers))
    values, lowers, plain = [], [], []
    for known in numbers:
        exactly = [
            _side_by_side(one).against(dataclasses.replace(one.knowledge, fewest=known, most=known))
            for one in problems
        ]
        found = _leak(calibration, exactly, calibration.scale, seconds)
        values.append(min(found.value, calibration.leakage.value))  # all of them are allowed ones
        lowers.append(found.lower)
        if plain_scale:
            plain.append(_leak(calibration, exactly, plain_scale, seconds).value)
    witness = calibration.leakage.witness
    attacks = (
        ""
        if witness is None
        else f"attacks {entry(witness.target, calibration.model)},"
        f" {knowledge(witness.known, calibration.model)}"
    )
    return KnowledgeCurve(
        known=tuple(numbers),
        values=tuple(values),
        lowers=tuple(lowers),
        epsilon=calibration.epsilon,
        plain=tuple(plain),
        worst=attacks,
        among=among,
    )


def _side_by_side(problem: Problem) -> Problem:
    """Return the problem with confidence bands that hold for all adversaries shown at once."""
    return dataclasses.replace(
        problem, measure=dataclasses.replace(problem.measure, side_by_side=True)
    )


def _problems(calibration: Calibration) -> list[Problem]:
    return split(
        calibration.model,
        calibration.contributions[0],
        calibration.adversaries,
        measure=calibration.measure,
    )


def _leak(
    calibration: Calibration, problems: Sequence[Problem], scale: float, seconds: float
) -> Leakage:
    found, _ = worst(problems, scale, deadline=deadline_after(seconds))
    return calibration.measure.leakage(found, scale, found.witness)


def scales_of_methods(calibration: AnyCalibration) -> dict[str, Any]:
    """Return the scale of every method that has one, under its name; ours last.

    For a list of queries, a tuple of scales. Of a private model only plain DP, whose scale depends
    on public ranges alone.
    """
    private = calibration.model.provenance == "private"
    found = {name: scale for name, scale in calibration.baselines.items() if scale}
    if private:
        found = {name: scale for name, scale in found.items() if name == "dp"}
    return {
        label: calibration.scale if name == "pdp" else found[name]
        for name, label in METHODS.items()
        if name == "pdp" or name in found
    }


def scale_bars(calibration: AnyCalibration) -> ScaleBars:
    """Return the scale of every method for one answer, with its unit."""
    return ScaleBars(
        scales=scales_of_methods(single(calibration, "a picture")), unit=calibration.scale_units[0]
    )


def beliefs(calibration: AnyCalibration) -> BeliefBars | None:
    """Return what the worst adversary believes before and after the worst output (Example 1).

    Of a joint table by its own prior; elsewhere from even odds between the two secrets. With
    Gaussian noise no output is the worst: the one that is drawn has only a share δ of the outputs
    beyond it (one in a hundred where no δ is promised), and these move the belief further.
    """
    calibration = drawable(calibration)
    witness = calibration.leakage.witness
    if witness is None or isinstance(witness.output, tuple):
        return None
    if calibration.noise == "gaussian":
        return _beliefs_after_gaussian_noise(calibration, witness)
    values: dict[Any, float]
    after: dict[Any, float]
    table = calibration.model if isinstance(calibration.model, JointTable) else None
    found = _table_beliefs(calibration, witness, table)
    if found is None:
        first, second = witness.secrets
        share = 1 / (1 + math.exp(-min(calibration.leakage.lower, 700.0)))
        values, after = {first: 0.5, second: 0.5}, {first: share, second: 1 - share}
    else:
        values, after = found
    limit = "the highest answers" if witness.output > 0 else "the lowest answers"
    return BeliefBars(
        values=_values_in_words(values, calibration.model),
        before=tuple(values.values()),
        after=tuple(after.values()),
        target=entry(witness.target, calibration.model),
        knows=knowledge(witness.known, calibration.model),
        output=limit
        if math.isinf(witness.output)
        else f"an answer of {number(float(witness.output))}",
    )


def _beliefs_after_gaussian_noise(calibration: Calibration, witness: Witness) -> BeliefBars | None:
    """Return beliefs after an output that only a share of all outputs goes beyond.

    What somebody learns of Gaussian values, or of values of any dependence, is a shift of one bell
    curve by μ standard deviations: log-odds grow by μ²/2 + μz where the noise is z of them from its
    middle. Other families are drawn where they fit a joint table.
    """
    model, share = calibration.model, calibration.delta or _RARE
    words = {
        "target": entry(witness.target, model),
        "knows": knowledge(witness.known, model),
    }
    table = _as_table(witness.model)
    if table is not None:
        seen = rare_output(
            table,
            calibration.query,
            scale=calibration.scale,
            target=witness.target,
            known=witness.known,
            secrets=witness.secrets,
            share=share,
        )
        found = _table_beliefs(calibration, dataclasses.replace(witness, output=seen), table)
        if found is None:
            return None
        before, after = found
        output = f"an answer of {number(float(f'{seen:.4g}'))}"
    elif all(model.gaussian_tuples) or model.covers_any_dependence:
        mu = _attained_mu(calibration.leakage)
        if not mu > 0:
            return None
        gain = mu**2 / 2 - mu * float(ndtri(share))
        likely = 1 / (1 + math.exp(-min(gain, 700.0)))
        first, second = witness.secrets
        before, after = {first: 0.5, second: 0.5}, {first: likely, second: 1 - likely}
        output = "a very high answer" if cast("float", witness.output) > 0 else "a very low answer"
    else:
        return None
    return BeliefBars(
        values=_values_in_words(before, model),
        before=tuple(before.values()),
        after=tuple(after.values()),
        output=output,
        beyond=share,
        **words,
    )


def _attained_mu(leak: Leakage) -> float:
    """Return the μ of the adversary who was found, from the lower end in its unit."""
    if leak.lower <= 0:
        return 0.0
    if leak.unit == "epsilon":
        return gaussian_dp.mu_of(leak.lower, leak.measure.delta)
    return leak.lower if leak.unit == "mu" else gaussian_dp.mu_of_rho(leak.lower)


def _values_in_words(values: Iterable[Any], model: Model) -> tuple[str, ...]:
    """Write the values of a target; those that stand for whole records have no number."""
    if of_any_record(model):
        return ("one possible record", "another")
    return tuple(number(value) for value in values)


def bars_of(found: Beliefs) -> BeliefBars:
    """Turn the beliefs of `posterior` into bars."""
    return BeliefBars(
        values=tuple(number(value) for value in found.prior),
        before=tuple(found.prior.values()),
        after=tuple(found.posterior.values()),
        target="the target",
        knows="",
        output="the output",
    )


def _as_table(model: Model) -> JointTable | None:
    """Return a model of few discrete tuples as a joint table; None for any other."""
    if isinstance(model, JointTable):
        return model
    expand = getattr(model, "to_table", None)
    if expand is None or model.is_continuous or model.covers_any_dependence:
        return None
    if math.prod(map(len, model.domains)) > _MOST_CELLS:
        return None
    try:
        return cast("JointTable", expand())
    except PdpError:  # a set of laws has no table
        return None


def _table_beliefs(
    calibration: Calibration, witness: Witness, table: JointTable | None
) -> tuple[dict[Hashable, float], dict[Hashable, float]] | None:
    if table is None:
        return None
    try:
        found = posterior(
            table,
            calibration.query,
            scale=calibration.scale,
            target=witness.target,
            known=witness.known,
            output=witness.output,
            noise=calibration.noise,
        )
    except PdpError:  # what the strongest adversary knows may have probability zero
        return None
    return found.prior, found.posterior


def adversary_graph(calibration: AnyCalibration) -> AdversaryGraph | None:
    """Return the graph of all adversaries of two to six tuples (Figure 3).

    None for sets of models, independent blocks and any dependence, and where not all adversaries
    are allowed. The paper's weights are of tables, and of what can be written as one, with Laplace
    noise.
    """
    calibration = drawable(calibration)
    model = calibration.model
    if calibration.adversaries != Adversaries.all() or model.covers_any_dependence:
        return None
    if not 2 <= len(model.names) <= _MOST_IN_GRAPH or set(model.copies) != {1}:
        return None
    if isinstance(model, Blocks | ModelSet):
        return None
    problem = _side_by_side(*_problems(calibration))
    names: tuple[Hashable, ...] = model.names
    leakages = {}
    for place, target in enumerate(names):
        others = [other for other in range(len(names)) if other != place]
        for number_known in range(len(others), -1, -1):
            for chosen in itertools.combinations(others, number_known):
                one = problem.restricted(place, [other for other in others if other not in chosen])
                known = frozenset(names[other] for other in chosen)
                leakages[target, known] = _leak(
                    calibration, [one], calibration.scale, _PATIENCE
                ).value
    unit = "nats"
    if calibration.noise == "gaussian":
        unit = f"ε at δ = {calibration.delta:g}" if calibration.delta else "μ"
    return AdversaryGraph(
        names=model.names,
        leakages=leakages,
        worst=max(leakages, key=leakages.__getitem__),
        unit=unit,
        graph=_paper_graph(calibration),
    )


def _paper_graph(calibration: Calibration) -> WeightedHierarchicalGraph | None:
    """Return the paper's graph, of additive queries and full supports; None for others."""
    table = _as_table(calibration.model)
    if table is None or calibration.noise != "laplace":
        return None
    per_row = calibration.rows if isinstance(calibration.query, Mean) else 1
    try:
        return graph(table, calibration.query, calibration.scale * per_row)
    except PdpError:
        return None


@dataclass(frozen=True, kw_only=True)
class RefreshCurve:
    """What a refreshed budget tells about any one record, by how likely records stay."""

    persistence: tuple[float, ...]
    """The probabilities of staying, from pure chance upwards."""
    leakage: tuple[float, ...]
    """The certified bound, for ever."""
    temporal: tuple[float, ...]
    """Temporal privacy leakage: somebody without hints."""
    chosen: Refresh
    """The one asked about."""


def refresh_curve(chosen: Refresh) -> RefreshCurve:
    """Vary how likely records stay, everything else as asked."""
    lowest = 1 / max(2, chosen.states)
    grid = np.append(np.linspace(lowest, 0.98, 60), chosen.persistence)
    cases = [dataclasses.replace(chosen, persistence=float(value)) for value in np.unique(grid)]
    return RefreshCurve(
        persistence=tuple(case.persistence for case in cases),
        leakage=tuple(case.leakage for case in cases),
        temporal=tuple(case.temporal for case in cases),
        chosen=chosen,
    )
