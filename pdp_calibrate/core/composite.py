"""Models made of others: independent blocks of correlated tuples, and finite sets Θ of models.

Theorem 4 (docs/theory).

Members of a set are searched one by one. So are independent blocks, by the following fact: if
x_{U2} is independent of x_i given x_K, then p(r|x_i,x_K) averages p(r|x_i,x_K,u) with weights that
do not depend on x_i, so l(i,K) ≤ max over u of l(i, K ∪ U2). Unknown tuples that are independent of
the target only add noise; for an additive query the worst adversary knows every other block, and
the whole database leaks what its worst block leaks.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeVar

import numpy as np

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.adversary import Block, Knowledge
from pdp_calibrate.core.contributions import Contributions
from pdp_calibrate.core.coverage import Coverage
from pdp_calibrate.core.model import (
    SHORT_TABLE,
    Domain,
    Model,
    Provenance,
    checked_names,
    most_secret,
    refuse_endless,
)
from pdp_calibrate.core.problem import Problem
from pdp_calibrate.core.schema_parts import COUNT, items, ref
from pdp_calibrate.core.table import JointTable, Writable
from pdp_calibrate.errors import ModelError

_T = TypeVar("_T")


_SHOWN = 3  # blocks in a `repr`


@dataclass(frozen=True, kw_only=True, eq=False, init=False, repr=False)
class Blocks(Model):
    """Blocks that are independent of each other: households, plots, patients.

    Parameters
    ----------
    models
        The model of each block. A block may itself be a set Θ.
    counts
        How many independent copies of each block the database holds, one by default. Copies
        share names: a query gives them equal weights and an adversary attacks any one of them.
    names
        One name per tuple of all blocks. By default named blocks keep their names (duplicates
        raise) and tuples of unnamed blocks are called ``(block, position)``.
    provenance
        The most secret of the blocks' by default.

    Examples
    --------
    >>> from pdp_calibrate.core.table import JointTable
    >>> couple = JointTable(probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, 1]] * 2)
    >>> Blocks(models=[couple], counts=[250]).names
    ((0, 0), (0, 1))
    """

    defined_by = ("models", "counts")
    dependence = "independent blocks"
    json_fields: ClassVar = {"models": items(ref("Model")), "counts": items(COUNT)}

    models: tuple[Model, ...]
    """The model of each kind of block."""
    counts: tuple[int, ...]
    """How many copies there are of each."""
    names: tuple[Hashable, ...]
    """The names of all tuples, block after block."""
    provenance: Provenance
    """Where the numbers come from."""

    def __init__(
        self,
        *,
        models: Iterable[Model],
        counts: Iterable[int] | None = None,
        names: Iterable[Hashable] | None = None,
        provenance: str | None = None,
    ) -> None:
        blocks = tuple(models)
        if not blocks or not all(isinstance(block, Model) for block in blocks):
            raise ModelError("Blocks needs at least one model.")
        refuse_endless(blocks, "Blocks")
        if any(isinstance(block, Blocks) for block in blocks):
            raise ModelError("Blocks do not nest: list the inner blocks side by side.")
        numbers = (1,) * len(blocks) if counts is None else tuple(counts)
        if len(numbers) != len(blocks) or not all(_is_count(number) for number in numbers):
            raise ModelError(
                f"counts must be one positive whole number per block ({len(blocks)}),"
                f" got {numbers}."
            )
        default = _joined_names(blocks) if names is None else names
        size = sum(len(block.names) for block in blocks)
        self._settle(
            models=blocks,
            counts=tuple(int(number) for number in numbers),
            names=checked_names(default, size),
            provenance=most_secret(blocks) if provenance is None else provenance,
        )

    def __repr__(self) -> str:
        shown = [
            f"{count:,} × {block!r}"
            for count, block in zip(self.counts[:_SHOWN], self.models, strict=False)
        ]
        more = len(self.models) - len(shown)
        return f"Blocks({', '.join(shown)}{f', and {more:,} more' if more else ''})"

    @property
    def domains(self) -> tuple[Domain, ...]:
        """The values of every tuple, block after block."""
        return tuple(domain for block in self.models for domain in block.domains)

    @property
    def inner_models(self) -> tuple[Model, ...]:
        """The blocks."""
        return self.models

    @property
    def is_continuous(self) -> bool:
        """Whether any block is continuous."""
        return any(block.is_continuous for block in self.models)

    @property
    def continuous_tuples(self) -> tuple[bool, ...]:
        """Whether each tuple is continuous, block after block."""
        return tuple(one for block in self.models for one in block.continuous_tuples)

    @property
    def gaussian_tuples(self) -> tuple[bool, ...]:
        """Whether each tuple is assumed to be Gaussian, block after block."""
        return tuple(one for block in self.models for one in block.gaussian_tuples)

    def with_coverage(self, coverage: Coverage) -> Self:
        """Return the same blocks, marked; so is each block, which may be taken out of them."""
        twin = super().with_coverage(coverage)
        alone = dataclasses.replace(coverage, upper=None)
        marked = tuple(
            block.with_coverage(alone) if block.coverage is None else block for block in self.models
        )
        object.__setattr__(twin, "models", marked)
        return twin

    def in_words(self) -> str:
        """Describe the kinds of dependence within blocks."""
        inside = dict.fromkeys(block.in_words() for block in self.models)
        return f"{super().in_words()} of {'; or '.join(inside)}"

    def pearson_matrix(self) -> FloatArray | None:
        """Return the correlations within blocks, with none between them."""
        matrix, start = np.eye(len(self.names)), 0
        for block in self.models:
            inner, stop = block.pearson_matrix(), start + len(block.names)
            if inner is None:
                return None
            matrix[start:stop, start:stop] = inner
            start = stop
        return matrix

    @property
    def covers_subsets(self) -> bool:
        """True where all blocks differ only in size: then it holds for other sizes too."""
        if not super().covers_subsets:
            return False
        said = {
            (type(one), *(getattr(one, name) for name in one.defined_by)) for one in self.models
        }
        return len(said) == 1

    @property
    def copies(self) -> tuple[int, ...]:
        """How often each named tuple occurs in the database."""
        return tuple(
            count
            for block, count in zip(self.models, self.counts, strict=True)
            for _ in block.names
        )

    @property
    def instances(self) -> int:
        """How many blocks there are, copies included."""
        return sum(self.counts)

    def parts_of(self, problem: Problem, *, expand: bool) -> list[Problem]:
        """Return a problem for each block, or one about all of them as a table."""
        parts: list[Problem] = []
        start = 0
        for block in self.models:
            positions = range(start, start + len(block.names))
            start = positions.stop
            parts += _block_problems(problem, block, positions)
        if expand and any(part.hidden_noise for part in parts):
            written = _written_out(self)
            if _fits_one_table(written):
                return [_expanded(problem, written)]
        leaves = [leaf for part in parts for leaf in part.model.parts_of(part, expand=expand)]
        return _without_dominated(leaves)


def _without_dominated(parts: list[Problem]) -> list[Problem]:
    """Leave out problems in which nobody learns more than in another one that is kept."""
    kept: list[Problem] = []
    for part in sorted(parts, key=lambda part: -len(part.names)):  # equal sizes keep their order
        if not any(one.model.dominates(one, part) for one in kept):
            kept.append(part)
    return [part for part in parts if any(part is one for one in kept)]


def _is_count(number: object) -> bool:
    is_whole = hasattr(number, "__index__") and not isinstance(number, bool)
    return is_whole and 1 <= int(number) < 2**62  # type: ignore[call-overload]


def _joined_names(blocks: tuple[Model, ...]) -> list[Hashable]:
    names: list[Hashable] = []
    for position, block in enumerate(blocks):
        size = len(block.names)
        names += [(position, k) for k in range(size)] if block.is_anonymous else block.names
    return names


def _block_problems(problem: Problem, block: Model, positions: range) -> list[Problem]:
    """Return the problems of one block, for adversaries who can know all the rest or cannot."""
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
            block=Block(positions=positions, model=problem.model, knowledge=knowledge),
            measure=problem.measure,
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
        return [part(inner, hidden_noise=knowledge.fewest - len(inside) < rest)]

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
    names = tuple(map(blocks.name_at, range(sum(blocks.copies))))
    values = _repeated(blocks, problem.contributions.values)
    roundings = problem.contributions.roundings
    tables = [
        block.probabilities
        for copy in range(max(blocks.counts))
        for block, count in zip(blocks.models, blocks.counts, strict=True)
        if copy < count and isinstance(block, JointTable)
    ]
    joint = functools.reduce(np.multiply.outer, tables)
    knowledge = problem.knowledge
    if knowledge.known is not None and knowledge.fewest > len(knowledge.known):
        everyone = knowledge.known | set(range(len(problem.names), knowledge.total))
        knowledge = dataclasses.replace(knowledge, known=everyone)
    return dataclasses.replace(
        problem,
        knowledge=knowledge,
        model=JointTable(
            probabilities=joint / joint.sum(),
            domains=_repeated(blocks, blocks.domains),
            provenance=blocks.provenance,
        ),
        contributions=Contributions(
            values=tuple(values),
            roundings=tuple(_repeated(blocks, roundings)) if roundings else (),
        ),
        names=names,
    )


class Around(Model):
    """All models near a central one; the subclass defines how near."""

    center: Model

    def _settle_around(self, center: Model, provenance: str | None, **fields: object) -> None:
        secret = center.provenance if provenance is None else provenance
        self._settle(center=center, names=center.names, provenance=secret, **fields)

    @property
    def domains(self) -> tuple[Domain, ...]:
        """The values of every tuple, as in the centre."""
        return self.center.domains

    @property
    def inner_models(self) -> tuple[Model, ...]:
        """The centre."""
        return (self.center,)


NO_COVERAGE = "resampled: no coverage guarantee"


@dataclass(frozen=True, kw_only=True, eq=False, init=False, repr=False)
class ModelSet(Model):
    """A finite Θ: the guarantee holds for each member.

    It carries no claim that the truth is among the members; a bootstrap set, for one, has no
    coverage guarantee.

    Parameters
    ----------
    models
        Members with the same names and domains.
    provenance
        The most secret of the members' by default.
    resampled
        Whether the members come from resampling rows (a bootstrap). They show how much the scale
        depends on chance, and carry no coverage guarantee, which JSON and words then say.

    Examples
    --------
    >>> from pdp_calibrate.families.exchangeable.model import BinaryGroup
    >>> laws = [[0.5, 0.1, 0.4], [0.4, 0.3, 0.3]]
    >>> ModelSet(models=[BinaryGroup(count_probabilities=law) for law in laws])
    ModelSet(2 models, assumed)
    """

    defined_by = ("models",)
    dependence = "one of several stated models, whichever is worst"
    json_fields: ClassVar = {"models": items(ref("Model"))}

    models: tuple[Model, ...]
    """The members, in the order given; a witness names one by its position."""
    resampled: bool
    """Whether the members come from a bootstrap."""

    def __init__(
        self,
        *,
        models: Iterable[Model],
        provenance: str | None = None,
        resampled: bool = False,
    ) -> None:
        members = tuple(models)
        if not members or not all(isinstance(member, Model) for member in members):
            raise ModelError("ModelSet needs at least one model.")
        refuse_endless(members, "ModelSet")
        first = members[0]
        for member in members[1:]:
            if member.names != first.names or member.copies != first.copies:
                raise ModelError("all members of a ModelSet must have the same tuples.")
            if member.domains != first.domains:
                raise ModelError("all members of a ModelSet must have the same domains.")
        self._settle(
            models=members,
            names=first.names,
            provenance=most_secret(members) if provenance is None else provenance,
            resampled=bool(resampled),
        )

    @property
    def domains(self) -> tuple[Domain, ...]:
        """The domains that all members share."""
        return self.models[0].domains

    @property
    def inner_models(self) -> tuple[Model, ...]:
        """The members."""
        return self.models

    def pearson_matrix(self) -> FloatArray | None:
        """Return the correlations of the first member."""
        return self.models[0].pearson_matrix()

    @property
    def certainty(self) -> str | None:
        """A caveat for resampled members, which carry no guarantee."""
        if not self.resampled:
            return super().certainty
        return (
            "The models come from resampled data. They show how much the scale depends on chance,"
            " and carry no coverage guarantee: nothing says that the truth is among them."
        )

    @property
    def is_continuous(self) -> bool:
        """Whether the members are continuous."""
        return any(member.is_continuous for member in self.models)

    @property
    def copies(self) -> tuple[int, ...]:
        """How often each named tuple occurs in the database."""
        return self.models[0].copies

    @property
    def continuous_tuples(self) -> tuple[bool, ...]:
        """Whether each tuple is continuous."""
        return self.models[0].continuous_tuples

    @property
    def instances(self) -> int:
        """How many independent groups of tuples the database holds, at most."""
        return max(member.instances for member in self.models)

    def parts_of(self, problem: Problem, *, expand: bool) -> list[Problem]:
        """Return the problems of each member."""
        return [
            part
            for index, member in enumerate(self.models)
            for part in member.parts_of(
                dataclasses.replace(problem, model=member, index=index), expand=expand
            )
        ]

    def content(self) -> tuple[object, ...]:
        """Return the members, and whether they were resampled."""
        return (*super().content(), NO_COVERAGE) if self.resampled else super().content()

    def parameters(self) -> dict[str, Any]:
        """Return the members, and that they promise nothing if they were resampled."""
        note = {"resampled": True, "note": NO_COVERAGE} if self.resampled else {}
        return super().parameters() | note

    def __repr__(self) -> str:
        note = f"; {NO_COVERAGE}" if self.resampled else ""
        return f"ModelSet({len(self.models)} models, {self.provenance}{note})"
