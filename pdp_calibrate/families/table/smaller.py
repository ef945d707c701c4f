"""A problem about a table made smaller before it is searched.

**Tuples that can hold one value only** are left out of every search. They move no answer, hide
nothing and tell nothing, and nobody has two secrets about them. Whoever knows k of all the tuples
knows between k − c and k of the others, if c tuples are left out. Knowing everyone else takes them
along: whoever knows all others but not all of them is still bound by what θ allows, and leaks no
more than plain differential privacy says.

**Columns that are independent of each other** are searched apart. If x_U is independent of x_i
given x_K, not knowing it only blurs the answer: for an additive query the worst adversary knows
every other independent group, so the table leaks what its worst group leaks alone. A table that
factors only up to a relative error δ, p = Π p_g·(1 ± δ), has every sum of cells right to the factor
1 ± δ; a log-ratio of densities holds four such sums.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.adversary import Knowledge
from pdp_calibrate.core.bracket import Bracket
from pdp_calibrate.core.contributions import Contributions
from pdp_calibrate.core.model import Model
from pdp_calibrate.core.problem import Problem
from pdp_calibrate.core.table import JointTable, written_out
from pdp_calibrate.families.table.cells import marginal
from pdp_calibrate.families.table.sets import ConditionalBall, SampledTable
from pdp_calibrate.families.table.setting import PreparedTable


@dataclasses.dataclass(frozen=True, kw_only=True)
class Varying:
    """A problem about a table, or a set of tables, without the tuples of one value."""

    whole: Problem
    """The problem as it was asked."""
    problem: Problem
    """The same about the other tuples."""
    kept: tuple[int, ...]
    """Their positions in the whole."""
    left_out: tuple[int, ...]
    """The positions of the tuples of one value."""

    @classmethod
    def of(cls, problem: Problem, *, like: Varying | None = None) -> Varying | None:
        """Leave out what cannot vary; None if nobody in the problem has two secrets.

        `like` is about the same model and answers: its smaller model is taken over.
        """
        sizes = _sizes(problem)
        kept = tuple(place for place, size in enumerate(sizes) if size > 1)
        left_out = tuple(place for place, size in enumerate(sizes) if size == 1)
        knowledge = _knowledge(problem.knowledge, kept)
        if not knowledge.targets:
            return None
        if left_out:
            inner = dataclasses.replace(
                problem,
                model=like.problem.model if like else _model(problem.model),
                contributions=(
                    like.problem.contributions
                    if like
                    else _contributions(problem.contributions, kept)
                ),
                knowledge=knowledge,
                names=tuple(problem.names[place] for place in kept),
            )
        else:
            inner = problem
        return cls(whole=problem, problem=inner, kept=kept, left_out=left_out)

    def put_back(self, found: Bracket) -> Bracket:
        """Translate what was found back to all tuples."""
        if not self.left_out:
            return found
        unknown = tuple(self.kept[place] for place in found.unknown)
        known = self._known(unknown)
        witness = found.witness
        if witness is not None:
            domains, values = self.whole.model.domains, self.whole.contributions.values
            output = np.atleast_1d(witness.output)
            if self.whole.contributions.table is None:
                output = output + sum(values[place][0] for place in self.left_out)
            witness = dataclasses.replace(
                witness,
                known=witness.known
                | {self.whole.names[place]: domains[place][0] for place in known},
                output=float(output[0]) if len(output) == 1 else tuple(map(float, output)),
                model=self._member(witness.model),
            )
        hidden = (place for place in self.left_out if place not in known)
        return dataclasses.replace(
            found,
            witness=witness,
            target=self.kept[found.target],
            unknown=tuple(sorted((*unknown, *hidden))),
        )

    def _known(self, unknown: tuple[int, ...]) -> tuple[int, ...]:
        """Return who of those left out is known: as few as the problem admits.

        All of them are where everyone else is known, for then the value may not depend on θ.
        """
        knowledge = self.whole.knowledge
        if knowledge.known is not None:
            return tuple(place for place in self.left_out if place in knowledge.known)
        if not unknown and knowledge.admits_strongest:
            return self.left_out
        missing = knowledge.fewest - (len(self.kept) - 1 - len(unknown))
        return self.left_out[: max(0, missing)]

    def _member(self, found: Model) -> Model:
        """Return the table under which the witness attains its ratio, with all its tuples."""
        model = self.whole.model
        if isinstance(model, JointTable) or not isinstance(found, JointTable):
            return model
        return written_out(model, found.probabilities.reshape(_sizes(self.whole)))


def no_secrets(problem: Problem) -> Bracket:
    """Say that nobody learns anything: no tuple that is attacked has two values."""
    target = problem.knowledge.targets[0]
    unknown = next(iter(problem.knowledge.unknown_sets(target)))
    return Bracket(upper=0.0, lower=0.0, witness=None, target=target, unknown=unknown)


def _sizes(problem: Problem) -> tuple[int, ...]:
    return tuple(map(len, problem.model.domains))


def _knowledge(knowledge: Knowledge, kept: tuple[int, ...]) -> Knowledge:
    """Return the same adversaries, in positions of the tuples that are kept."""
    gone = knowledge.total - len(kept)
    targets = tuple(place for place, whole in enumerate(kept) if whole in knowledge.targets)
    known = knowledge.known
    if known is not None:
        known = frozenset(place for place, whole in enumerate(kept) if whole in known)
    most = min(knowledge.most, len(kept) - 1) if known is None else len(known)
    return Knowledge(
        total=len(kept),
        targets=targets,
        fewest=max(0, knowledge.fewest - gone) if known is None else len(known),
        most=most,
        known=known,
        incomplete=most == len(kept) - 1 and not knowledge.admits_strongest,
    )


def _contributions(contributions: Contributions, kept: tuple[int, ...]) -> Contributions:
    table = contributions.table
    if table is None:
        return contributions.select(kept)
    sizes = [table.shape[place] for place in kept]
    return dataclasses.replace(contributions, table=table.reshape(*sizes, -1))


def _model(model: Model) -> Model:
    """Leave the axes of one value out of a table, or of a set of tables."""
    if isinstance(model, ConditionalBall):
        center = _model(model.center)
        if not isinstance(center, JointTable):
            raise TypeError(f"the centre of a ball is a joint table, got {center!r}.")
        return ConditionalBall(center=center, radius=model.radius, provenance=model.provenance)
    kept = [place for place, domain in enumerate(model.domains) if len(domain) > 1]
    domains = [model.domains[place] for place in kept]
    names = [model.names[place] for place in kept]
    sizes = tuple(map(len, domains))
    if isinstance(model, SampledTable):
        return SampledTable(
            counts=model.counts.reshape(sizes),
            domains=domains,
            confidence=model.confidence,
            names=names,
            provenance=model.provenance,
            noise_scale=model.noise_scale,
        ).marked_like(model)
    if not isinstance(model, JointTable):
        raise TypeError(f"tuples are left out of joint tables, got {model!r}.")
    return JointTable(
        probabilities=model.probabilities.reshape(sizes),
        domains=domains,
        names=names,
        provenance=model.provenance,
    ).marked_like(model)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Group:
    """Tuples that are independent of all others, as a problem of their own."""

    positions: tuple[int, ...]
    """Where they stand in the whole table."""
    problem: Problem
    """The problem of these tuples alone, everyone outside being known."""
    whole: Problem
    """The problem they were taken from."""
    outside: dict[int, int]
    """Position of a tuple outside → position of the value it is known to have."""
    added: FloatArray | int
    """What the tuples outside add to the answer."""
    error: float
    """Bound on the change of any log-ratio by treating the table as a product."""

    @classmethod
    def of(cls, prepared: PreparedTable, positions: tuple[int, ...], error: float) -> Group:
        """Cut these tuples out of a table that is a product up to the error."""
        whole, knowledge = prepared.problem, prepared.knowledge
        cells = marginal(prepared.cells.probabilities, positions)
        places = range(len(prepared.sizes))
        outside = {p: prepared.cells.likeliest[p] for p in places if p not in positions}
        problem = dataclasses.replace(
            whole,
            model=JointTable(
                probabilities=cells / cells.sum(),
                domains=[whole.model.domains[place] for place in positions],
            ),
            contributions=whole.contributions.select(positions),
            knowledge=Knowledge(
                total=len(positions),
                targets=tuple(k for k, p in enumerate(positions) if p in knowledge.targets),
                fewest=max(0, knowledge.fewest - len(outside)),
                most=len(positions) - 1,
            ),
            names=tuple(whole.names[place] for place in positions),
        )
        return cls(
            positions=positions,
            problem=problem,
            whole=whole,
            outside=outside,
            added=sum(whole.contributions.values[place][v] for place, v in outside.items()),
            error=error,
        )

    def put_back(self, found: Bracket) -> Bracket:
        """Translate what was found in the group back to the whole table."""
        witness = found.witness
        if witness is not None:
            names, domains = self.whole.names, self.whole.model.domains
            known = {names[place]: domains[place][v] for place, v in self.outside.items()}
            output = np.atleast_1d(witness.output) + self.added
            witness = dataclasses.replace(
                witness,
                known=witness.known | known,
                output=float(output[0]) if len(output) == 1 else tuple(map(float, output)),
                model=self.whole.model,
            )
        return Bracket(
            upper=found.upper + self.error,
            lower=max(0.0, found.lower - self.error),
            witness=witness,
            target=self.positions[found.target],
            unknown=tuple(self.positions[place] for place in found.unknown),
        )


def independent_groups(prepared: PreparedTable) -> list[Group]:
    """Return the independent groups somebody attacks; none if splitting is needless or not sound.

    The rest of the groups must be knowable, and a query that is not additive does not split.
    """
    knowledge, size = prepared.knowledge, len(prepared.sizes)
    if not prepared.cells.parts or knowledge.known is not None or prepared.counts_strongest:
        return []
    if knowledge.most < size - 1 or knowledge.fewest == size - 1:
        return []
    factors = prepared.cells.factors
    found = [Group.of(prepared, group, factors.error) for group in factors.groups]
    return [group for group in found if group.problem.knowledge.targets]
