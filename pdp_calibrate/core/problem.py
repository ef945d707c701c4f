"""From a model with structure to problems an engine can search one by one.

A family is a folder in `families/`: a model (a subclass of `Model`), an engine that searches it,
perhaps an estimator, and a composer if it has bounds of its own for several releases (see
`core.composer`). The model names its engine in the class attribute `engine`, as
``"module:Class"`` so that compiled code is loaded when it is first needed, or as the class itself.
The rest of the library reaches a family through its model and its engine alone.

Members of a set are searched one after the other. Independent blocks are too, by the following
fact: if x_{U2} is independent of x_i given x_K, then p(r|x_i,x_K) averages p(r|x_i,x_K,u) with
weights free of x_i, so l(i,K) ≤ max over u of l(i, K ∪ U2). Unknown tuples that say nothing about
the target only add noise; for an additive query the worst adversary knows every other block, and
the whole database leaks what its worst block leaks.

A search ends with a `Bracket`; users see it as a `Leakage`.
"""

from __future__ import annotations

import abc
import dataclasses
import functools
import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol, TypeVar, cast, runtime_checkable

import numpy as np

from pdp_calibrate.core.adversary import Adversaries, Knowledge, Witness
from pdp_calibrate.core.cards import card
from pdp_calibrate.core.composite import Blocks, ModelSet
from pdp_calibrate.core.contributions import Contributions
from pdp_calibrate.core.model import Model
from pdp_calibrate.core.rounding import ROUND_UP, UNIT_ROUNDOFF
from pdp_calibrate.core.table import SHORT_TABLE, JointTable, Writable
from pdp_calibrate.errors import ModelError, UnsupportedQueryError


@dataclass(frozen=True, kw_only=True)
class Bracket:
    """What a search knows when it ends: the only result of a search."""

    upper: float
    """Upper end: nobody in the problem leaks more."""
    lower: float
    """Lower end, attained by the witness."""
    witness: Witness | None
    """Who attains the lower end."""
    target: int
    """The tuple attacked by the adversary behind `upper`."""
    unknown: tuple[int, ...]
    """The tuples that this adversary does not know."""
    rounding: float = 0.0
    """What of `upper` is charged because the answer is rounded before noise is added."""

    def with_lower(self, other: Bracket) -> Bracket:
        """Take the other's lower end if it is better."""
        if self.witness is not None and self.lower >= other.lower:
            return self
        return dataclasses.replace(self, lower=other.lower, witness=other.witness)

    def plus(self, cost: float) -> Bracket:
        """Add a cost to the upper end, rounded up."""
        if cost == 0:
            return self
        return dataclasses.replace(self, upper=math.nextafter(self.upper + cost, math.inf))

    def with_rounding(self, cost: float) -> Bracket:
        """Add what the rounding of the answer may cost to the upper end."""
        return dataclasses.replace(self.plus(cost), rounding=cost)

    def widened(self, cost: float) -> Bracket:
        """Move both ends outwards by a cost, the upper one rounded up."""
        lower = max(0.0, math.nextafter(self.lower - cost, -math.inf)) if cost else self.lower
        return dataclasses.replace(self.plus(cost), lower=lower)

    def at_most(self, bound: float) -> Bracket:
        """Lower the upper end to another certified bound."""
        return self if self.upper <= bound else dataclasses.replace(self, upper=bound)

    def or_worse(self, other: Bracket) -> Bracket:
        """Return the larger upper end together with the larger lower end."""
        if self.upper >= other.upper:
            return self.with_lower(other)
        return other.with_lower(self)


@dataclass(frozen=True, kw_only=True)
class Bound:
    """A certified upper bound on a leakage, and the argument it rests on."""

    value: float
    """Nobody learns more, rounding included."""
    method: str
    """``exact``, ``windows``, ``dual``, ``birkhoff``, ``shift``, ``group``, ``stream`` (step by
    step, for ever), ``whole`` (learning the model, which is private in whole draws) or
    ``nothing``."""

    def or_worse(self, other: Bound) -> Bound:
        """Return the larger of two bounds on different adversaries."""
        return self if self.value >= other.value else other

    def or_better(self, other: Bound) -> Bound:
        """Return the smaller of two bounds on the same adversaries."""
        return self if self.value <= other.value else other


_ROUNDED_AWAY = 1e-6  # of a leakage: what rounding may cost an exact one


@dataclass(frozen=True, kw_only=True)
class Leakage:
    """Worst-case leakage at one scale: a certified bracket and who attains its lower end."""

    value: float
    """Certified upper bound on the leakage, in floating point too: decide with this one."""
    lower: float
    """Certified lower bound, attained by the witness."""
    scale: float | tuple[float, ...]
    """The Laplace scale λ it holds for; one per query for a joint release."""
    witness: Witness | None
    """Adversary, secrets and output that attain `lower`; None if nobody has two secrets."""
    rounding: float = 0.0
    """What of `value` is charged because a real answer is rounded to a float before noise."""

    @classmethod
    def at(cls, scale: float | tuple[float, ...], found: Bracket) -> Leakage:
        """Say what a search found at a scale, or at one for each query."""
        return cls(
            value=found.upper,
            lower=found.lower,
            scale=scale,
            witness=found.witness,
            rounding=found.rounding,
        )

    @property
    def exact(self) -> bool:
        """Whether `value` and `lower` agree to 1e-9 relative (or to 1e-11, near zero).

        A charge for rounding the answer to a float is left out of this, up to 1e-6 of the value:
        whether rounding ever helps an adversary is not known, so it stays in `value`.
        """
        forgiven = min(self.rounding, _ROUNDED_AWAY * self.value)
        return self.value - forgiven - self.lower <= max(1e-9 * self.value, 1e-11)

    def to_dict(self) -> dict[str, Any]:
        """Describe the bracket for JSON."""
        witness = None if self.witness is None else self.witness.to_dict()
        return {"value": self.value, "lower": self.lower, "witness": witness}

    @property
    def bracket(self) -> str:
        """The value, or both ends where they differ."""
        return f"{self.value:.6g}" if self.exact else f"{self.lower:.6g} … {self.value:.6g}"

    @property
    def _at(self) -> str:
        scales = self.scale if isinstance(self.scale, tuple) else (self.scale,)
        return ", ".join(f"{scale:.6g}" for scale in scales)

    def __repr__(self) -> str:
        return f"Leakage({self.bracket} at scale {self._at}, {self.witness})"

    def _repr_html_(self) -> str:
        rows: list[tuple[str, object]] = [("leakage", self.bracket), ("at scale λ", self._at)]
        witness = self.witness
        if witness is not None and witness.model.provenance != "private":
            rows += [
                ("worst adversary attacks", witness.target),
                ("and knows", f"{len(witness.known)} other entries"),
                ("telling apart", " and ".join(map(str, witness.secrets))),
            ]
        return card("Leakage", rows)


_T = TypeVar("_T")


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One model without inner structure, what its tuples add, and who attacks them."""

    model: Model
    """A model that an engine searches as a whole."""
    contributions: Contributions
    """What each value of each tuple adds to the answer."""
    knowledge: Knowledge
    """The adversaries, in positions of this model."""
    names: tuple[Hashable, ...]
    """What the user calls the tuples."""
    hidden_noise: bool = False
    """Whether independent tuples outside stay unknown and blur the answer further.

    They are dropped, which is the sound direction: the upper end stays an upper end. In the tails
    r → ±∞ their factor cancels from every ratio, so the tails give the lower end.
    """
    index: int | None = None
    """Position of the model in its ModelSet."""

    def group_bound(self, scale: float) -> float:
        """Return how far the answer can move at all, in units of the noise, rounded up.

        It holds whatever the law of discrete tuples is; an unclamped Gaussian can leak more.
        """
        if self.model.is_continuous or self.model.is_endless:
            return math.inf
        return self.contributions.total_range() / scale * ROUND_UP

    @functools.cached_property
    def engine(self) -> Engine:
        """What searches it: made once, whatever the scales."""
        return engine_of(self)

    def against(self, knowledge: Knowledge) -> Problem:
        """Return the same problem against other adversaries.

        Where its engine can take over what this one's has prepared, it does.
        """
        other = dataclasses.replace(self, knowledge=knowledge)
        if isinstance(self.engine, Sharing):
            other.__dict__["engine"] = self.engine.against(other)  # where the property keeps it
        return other

    def extremes(self) -> list[Problem]:
        """Return the same problem against those who know nothing, and who know everyone else."""
        knowledge = self.knowledge
        if knowledge.known is not None or knowledge.fewest == knowledge.most:
            return [self]
        sizes = {0, knowledge.total - 1} & {knowledge.fewest, knowledge.most}
        return [
            self.against(dataclasses.replace(knowledge, fewest=size, most=size))
            for size in sorted(sizes)
        ]

    def restricted(self, target: int, unknown: Sequence[int]) -> Problem:
        """Return the same problem against one adversary only."""
        everyone = range(self.knowledge.total)
        known = frozenset(everyone) - {target} - set(unknown)
        return self.against(
            Knowledge(
                total=self.knowledge.total,
                targets=(target,),
                fewest=len(known),
                most=len(known),
                known=known,
            )
        )


@dataclass(frozen=True)
class Limits:
    """When a search may stop; it then says less, and stays sound."""

    incumbent: float = 0.0
    """Adversaries who cannot leak more than this need not be told apart."""
    enough: float = math.inf
    """A long search may stop, with a wide bracket, once somebody is found to leak more."""
    deadline: float = math.inf
    """Value of `time.monotonic()` after which the rest counts with a bound."""

    def above(self, leakage: float) -> Limits:
        """Return the same limits for who comes next, if somebody leaks this much."""
        return dataclasses.replace(self, incumbent=max(self.incumbent, leakage))


class Engine(abc.ABC):
    """Searches one problem, at many scales.

    Everything that does not depend on the scale is done once, when the engine is made.
    """

    @abc.abstractmethod
    def __init__(self, problem: Problem) -> None:
        """Prepare the search."""

    @abc.abstractmethod
    def search(self, scale: float, limits: Limits) -> Bracket:
        """Find the worst adversary at one scale."""

    def bracket(
        self,
        scale: float,
        *,
        incumbent: float = 0.0,
        enough: float = math.inf,
        deadline: float = math.inf,
    ) -> Bracket:
        """Find the worst adversary at one scale; see `Limits` for the rest."""
        return self.search(scale, Limits(incumbent, enough, deadline))


@runtime_checkable
class Sharing(Protocol):
    """An engine whose preparation serves other adversaries as well."""

    def against(self, problem: Problem) -> Engine:
        """Return an engine for the same model and answers against the adversaries of `problem`."""


@runtime_checkable
class Climbing(Protocol):
    """What an engine has besides if searching everyone takes it long.

    Calibration then seeks a worse adversary among the neighbours of the one that a search
    named, who know one tuple more or less, before everyone is searched again. An engine that
    searches everyone about as fast as one adversary leaves the attribute out.
    """

    climbs: bool
    """Whether neighbours of its adversaries are worth a search each."""


def engine_of(problem: Problem) -> Engine:
    """Make the engine that the problem's model names."""
    found = problem.model.engine
    if isinstance(found, str):
        module, _, name = found.partition(":")
        found = cast("type[Engine]", getattr(import_module(module), name))
    if found is None:
        raise ModelError(f"there is no engine for {type(problem.model).__name__}.")
    return found(problem)


def worst(
    problems: Sequence[Problem],
    scale: float,
    *,
    incumbent: float = 0.0,
    enough: float = math.inf,
    deadline: float,
) -> tuple[Bracket, Problem]:
    """Search all problems, each with the worst found so far as its incumbent.

    Both ends are about exact contributions: what rounding them to floats may change is charged.
    Searches that can stop early do so once somebody is found to leak more than `enough`.
    """
    best: tuple[Bracket, Problem] | None = None
    lower_end: Bracket | None = None
    for problem in problems:
        cost = problem.contributions.rounding / scale
        threshold = max(0.0, (max(incumbent, best[0].upper) if best else incumbent) - cost)
        found = problem.engine.bracket(scale, incumbent=threshold, enough=enough, deadline=deadline)
        if problem.contributions.real:  # a mean's rounded weight: relative, and not on intervals
            cost += 2 * UNIT_ROUNDOFF * found.upper if cost else 0.0
        found = found.at_most(problem.group_bound(scale)).widened(cost)
        if best is None or found.upper > best[0].upper:
            best = found, problem
        if lower_end is None or found.lower > lower_end.lower:
            lower_end = found
    if best is None or lower_end is None:
        raise UnsupportedQueryError("no adversary of the set attacks any tuple of the model.")
    found, problem = best
    return found.with_lower(lower_end), problem


def split(
    model: Model, contributions: Contributions, adversaries: Adversaries, *, expand: bool = True
) -> list[Problem]:
    """Return problems whose largest leakage is the leakage of the whole.

    Without `expand`, independent blocks are never written out as one table: unknown tuples outside
    a block are dropped, which leaves an upper bound.
    """
    whole = Problem(
        model=model,
        contributions=contributions,
        knowledge=adversaries.resolve(model),
        names=model.names,
    )
    return _split(whole, expand=expand)


def _split(problem: Problem, *, expand: bool) -> list[Problem]:
    model = problem.model
    if isinstance(model, ModelSet):
        return [
            part
            for index, member in enumerate(model.models)
            for part in _split(
                dataclasses.replace(problem, model=member, index=index), expand=expand
            )
        ]
    return _split_blocks(problem, model, expand=expand) if isinstance(model, Blocks) else [problem]


def _split_blocks(problem: Problem, blocks: Blocks, *, expand: bool) -> list[Problem]:
    parts: list[Problem] = []
    start = 0
    for block in blocks.models:
        positions = range(start, start + len(block.names))
        start = positions.stop
        parts += _block_problems(problem, block, positions)
    if expand and any(part.hidden_noise for part in parts):
        written = _written_out(blocks)
        if _fits_one_table(written):
            return [_expanded(problem, written)]
    return [leaf for part in parts for leaf in _split(part, expand=expand)]


def _block_problems(problem: Problem, block: Model, positions: range) -> list[Problem]:
    """One block alone: adversaries who can know all the rest, then those who cannot."""
    knowledge = problem.knowledge
    rest = knowledge.total - len(positions)

    def part(inner: Knowledge, *, hidden_noise: bool) -> Problem:
        return Problem(
            model=block,
            contributions=problem.contributions.select(positions),
            knowledge=inner,
            names=tuple(problem.names[position] for position in positions),
            hidden_noise=problem.hidden_noise or hidden_noise,
            index=problem.index,
        )

    if knowledge.known is not None:
        (target,) = knowledge.targets
        if target not in positions:
            return []
        inside = frozenset(p - positions.start for p in knowledge.known if p in positions)
        inner = Knowledge(
            total=len(positions),
            targets=(target - positions.start,),
            fewest=len(inside),
            most=len(inside),
            known=inside,
        )
        return [part(inner, hidden_noise=len(knowledge.known) - len(inside) < rest)]

    fewest = max(0, knowledge.fewest - rest)
    most = min(len(positions) - 1, knowledge.most)
    most_knowing_rest = min(most, knowledge.most - rest)
    sizes = [
        (fewest, most_knowing_rest, False),
        (max(fewest, most_knowing_rest + 1), most, True),
    ]
    targets = tuple(range(len(positions)))
    return [
        part(
            Knowledge(total=len(positions), targets=targets, fewest=low, most=high),
            hidden_noise=hidden,
        )
        for low, high, hidden in sizes
        if low <= high
    ]


def _written_out(blocks: Blocks) -> Blocks:
    """Write chains and groups out as tables, where the whole is small enough for one."""
    if sum(blocks.copies) > SHORT_TABLE.tuples:
        return blocks
    try:
        models = [
            block.to_table() if isinstance(block, Writable) else block for block in blocks.models
        ]
    except ModelError:  # too many cells, or too rare ones
        return blocks
    return Blocks(
        models=models, counts=blocks.counts, names=blocks.names, provenance=blocks.provenance
    )


def _fits_one_table(blocks: Blocks) -> bool:
    tables = [block for block in blocks.models if isinstance(block, JointTable)]
    if len(tables) < len(blocks.models):
        return False
    rarest = sum(
        count * math.log(table.probabilities[table.probabilities > 0].min())
        for table, count in zip(tables, blocks.counts, strict=True)
    )
    sizes = list(map(len, _repeated(blocks, blocks.domains)))
    return SHORT_TABLE.admits(sizes, rarest)


def _repeated(blocks: Blocks, items: Sequence[_T]) -> list[_T]:
    """List one item per tuple of the database: the first copies, then the further ones."""
    copies = blocks.copies
    return [
        item
        for copy in range(max(copies))
        for item, number in zip(items, copies, strict=True)
        if copy < number
    ]


def _expanded(problem: Problem, blocks: Blocks) -> Problem:
    """Write independent blocks out as one joint table, further copies behind the first."""
    shared = _repeated(blocks, problem.names)
    names = [
        name if place < len(problem.names) else (name, shared[:place].count(name))
        for place, name in enumerate(shared)
    ]
    values = _repeated(blocks, problem.contributions.values)
    roundings = problem.contributions.roundings
    tables = [
        block.probabilities
        for copy in range(max(blocks.counts))
        for block, count in zip(blocks.models, blocks.counts, strict=True)
        if copy < count and isinstance(block, JointTable)
    ]
    joint = functools.reduce(np.multiply.outer, tables)
    return dataclasses.replace(
        problem,
        model=JointTable(
            probabilities=joint / joint.sum(),
            domains=_repeated(blocks, blocks.domains),
            provenance=blocks.provenance,
        ),
        contributions=Contributions(
            values=tuple(values),
            roundings=tuple(_repeated(blocks, roundings)) if roundings else (),
        ),
        names=tuple(names),
    )
