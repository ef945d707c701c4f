"""A table, a query and adversaries: before a scale is chosen, at a scale, and what a search finds.

`PreparedTable` adds the adversaries to the `Cells` of a table, `Setting` the scale: what does not
depend on the scale is computed once. Every search over tables works on a `Setting` and returns an
`Outcome`, which gets names and the user's units later.

**Before all that** a problem is made smaller (`Varying`, `Group`).

**Tuples with only one possible value** are left out of every search. They change no answer, hide
and reveal nothing, and have no two secrets. If c tuples are left out, an adversary who knows k of
all the tuples knows between k − c and k of the others. The strongest adversary knows them too: one
who knows all other tuples here, but not all that were left out, conditions on events that θ allows,
and learns no more than plain differential privacy says.

**Columns that are independent of each other** are searched separately. If x_U is independent of x_i
given x_K, not knowing it only adds noise: for an additive query the worst adversary knows every
other independent group, so the table leaks what its worst group leaks alone. In a table that
factors only up to a relative error δ, p = Π p_g·(1 ± δ), every sum of cells is exact up to a factor
1 ± δ; a log-ratio of densities holds four such sums.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.adversary import Knowledge
from pdp_calibrate.core.contributions import Contributions, diameter
from pdp_calibrate.core.finite_noise import Case
from pdp_calibrate.core.laplace_mixtures import LaplaceSearch
from pdp_calibrate.core.mixtures import DEFICITS, DENSITIES, NEAR_ONE, rounding_error
from pdp_calibrate.core.model import Model
from pdp_calibrate.core.problem import Bracket, Problem
from pdp_calibrate.core.rounding import UNIT_ROUNDOFF
from pdp_calibrate.core.table import JointTable, written_out
from pdp_calibrate.core.tuning import COUNTED_SETS, KEPT_NUMBERS, KERNEL_NUMBERS, LOG_WORK
from pdp_calibrate.families.table.cells import Cells, marginal
from pdp_calibrate.families.table.sets import ConditionalBall, SampledTable

LARGEST_EXPONENT = 660.0  # e^±660 is far from overflow and from the subnormal numbers


@dataclass(frozen=True, kw_only=True, eq=False)
class PreparedTable:
    """A problem about a joint table, in the form that searches work on; answers start at zero."""

    problem: Problem
    """The problem as it was posed."""
    cells: Cells
    """The table and the answers."""
    counts_strongest: bool
    """Whether θ matters also to adversaries who know all others here, but not all left out."""

    @classmethod
    def of(cls, problem: Problem, cells: Cells | None = None) -> PreparedTable:
        """Prepare a problem about a joint table; cells that were prepared before are reused."""
        if not isinstance(problem.model, JointTable):
            raise TypeError(f"the table engine searches joint tables, got {problem.model!r}.")
        return cls(
            problem=problem,
            cells=cells or Cells.of(problem.model, problem.contributions),
            counts_strongest=problem.hidden_noise or problem.knowledge.incomplete,
        )

    @property
    def knowledge(self) -> Knowledge:
        """The adversaries."""
        return self.problem.knowledge

    @property
    def sizes(self) -> tuple[int, ...]:
        """The domain size of each tuple."""
        return self.cells.sizes

    @cached_property
    def admitted(self) -> AdmittedEvents:
        """The laws of all admitted adversaries, of a table with few events."""
        return AdmittedEvents.of(self)

    @cached_property
    def admits_everyone(self) -> bool:
        """Whether every event of a small table is possible and belongs to an admitted adversary.

        Events in which all others are known do not count: those are searched elsewhere.
        """
        knowledge, everyone = self.knowledge, len(self.sizes) - 1
        return (
            everyone > 0
            and knowledge.known is None
            and self.known_limits == (0, everyone - 1)
            and len(knowledge.targets) == len(self.sizes)
            and bool(self.cells.event_laws.possible.all())
        )

    @cached_property
    def log_work(self) -> float:
        """Estimate how many (atom, output) pairs a search in log space compares; ∞ if too many."""
        total = 0.0
        for target in self.knowledge.targets:
            for unknown in self.unknown_sets(target):
                hidden = float(np.prod([self.sizes[place] for place in unknown], dtype=np.float64))
                atoms = hidden * self.sizes[target]
                total += self.cells.probabilities.size * atoms**self.cells.coordinates
                if total > LOG_WORK:  # no caller needs more, and there may be millions of sets
                    return math.inf
        return total

    @cached_property
    def set_work(self) -> float:
        """Count the densities that a search set by set compares, sixteen products for one."""
        if self.cells.table is not None:
            return math.inf
        total, cells = 0.0, float(self.cells.probabilities.size)
        for number, (target, unknown) in enumerate(self.cases()):
            if number == COUNTED_SETS:
                return math.inf
            kinds = tuple(sorted(self.cells.kinds[place] for place in (target, *unknown)))
            atoms, outputs = self.cells.spans(kinds)
            if atoms * outputs > 2 * KERNEL_NUMBERS:
                return math.inf
            laws = cells / math.prod(self.sizes[place] for place in unknown)
            total += cells + laws * outputs * (1 + atoms / 16)
        return total

    @cached_property
    def line_work(self) -> float:
        """Estimate the work of sorted mixtures, in the units of the tree's."""
        knowledge = self.knowledge
        sets = 1.0
        if knowledge.known is None:
            sizes = range(knowledge.fewest, knowledge.most + 1)
            sets = float(sum(math.comb(len(self.sizes) - 1, size) for size in sizes))
        secrets = sum(self.sizes[target] for target in knowledge.targets)
        sorting = 8.0 if self.cells.table is None else 64.0
        return sorting * sets * secrets * self.cells.probabilities.size

    @cached_property
    def leaves(self) -> float:
        """Count the leaves of the tree of all adversaries, times the secrets of each."""
        total = 0.0
        for target in self.knowledge.targets:
            others = [size for place, size in enumerate(self.sizes) if place != target]
            leaves = math.prod(size + 1.0 for size in others)
            if self.knowledge.known is not None or self.knowledge.most == 0:
                leaves = 2.0 * math.prod(others)
            total += leaves * self.sizes[target]
        return total

    @property
    def known_limits(self) -> tuple[int, int]:
        """Fewest and most tuples known; knowing everyone else is searched elsewhere."""
        everyone = len(self.sizes) - 1
        most = self.knowledge.most
        return self.knowledge.fewest, most if self.counts_strongest else min(most, everyone - 1)

    def permissions(
        self, places: Sequence[int]
    ) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Return, per tuple, whether it may be known, and whether it may be unknown."""
        named = self.knowledge.known
        may_know = [named is None or place in named for place in places]
        may_hide = [named is None or place not in named for place in places]
        return np.array(may_know, dtype=np.bool_), np.array(may_hide, dtype=np.bool_)

    def unknown_sets(self, target: int) -> Iterator[tuple[int, ...]]:
        """Yield the admitted sets of unknown tuples; the empty one only where θ matters for it.

        Otherwise an adversary who knows all others learns LS_i/λ: that is searched elsewhere.
        """
        for unknown in self.knowledge.unknown_sets(target):
            if unknown or self.counts_strongest:
                yield unknown

    def laws(self, target: int, unknown: tuple[int, ...]) -> Events:
        """Return the conditional laws of one set of unknown tuples, kept while there is memory."""
        kept, key = self.cells.kept_laws, (target, unknown)
        if key in kept:
            return kept[key]
        found = conditional_laws(self.problem, target, unknown)
        if found.laws.size + sum(one.laws.size for one in kept.values()) <= KEPT_NUMBERS:
            kept[key] = found
        return found

    @cached_property
    def by_sets(self) -> LaplaceSearch:
        """The search set by set, which keeps the laws that it lists."""
        from pdp_calibrate.families.table.laws import TableLaws

        def bound_of(case: Case, scale: float | FloatArray) -> float:
            return group_bound(setting_of(self, scale), (case.target, *case.unknown))

        return LaplaceSearch(self.problem, TableLaws(self), bound_of=bound_of)

    def cases(self) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Yield every target with every such set."""
        for target in self.knowledge.targets:
            for unknown in self.unknown_sets(target):
                yield target, unknown


@dataclass(frozen=True, kw_only=True, eq=False)
class AdmittedEvents:
    """Every event x_K of the admitted adversaries with two possible secrets, as rows of laws.

    A secret that x_K excludes is replaced by one that it does not: the largest and the smallest
    density over the secrets stay what they are.
    """

    laws: FloatArray
    """P(answer | x_i, x_K), one row for each that some event needs."""
    rows: npt.NDArray[np.intp]
    """For each event x_K and each secret the row of its law; shape (events, secrets)."""
    secrets: npt.NDArray[np.intp]
    """The value of the secret whose law that is; the same shape."""
    targets: npt.NDArray[np.intp]
    """For each event the target."""
    places: npt.NDArray[np.intp]
    """For each event the place of (x_i, x_K) in the table of shape (size + 1, …), x_i the first
    value."""

    @classmethod
    def of(cls, prepared: PreparedTable) -> AdmittedEvents:
        """List the events of every target."""
        sizes = prepared.sizes
        steps = [math.prod(size + 1 for size in sizes[p + 1 :]) for p in range(len(sizes))]
        possible, values = prepared.cells.event_laws.possible, np.arange(max(sizes))
        always = bool(possible.all())
        rows, secrets, targets, places = [], [], [], []
        for target in prepared.knowledge.targets:
            starts = _starts(prepared, target, steps)
            occurs = values < sizes[target]
            found = np.where(occurs, values, 0)
            own = starts[:, np.newaxis] + steps[target] * found
            targets.append(np.full(len(starts), target))
            if always:  # no secret is excluded, so none is replaced
                rows.append(own)
                secrets.append(np.broadcast_to(found, own.shape))
                places.append(starts)
                continue
            occurs = possible[own] & occurs
            first = np.argmax(occurs, axis=1)[:, np.newaxis]
            found = np.where(occurs, values, first)
            several = occurs.sum(axis=1) > 1
            rows.append((starts[:, np.newaxis] + steps[target] * found)[several])
            secrets.append(found[several])
            targets[-1] = targets[-1][several]
            places.append(starts[several])
        every, laws = np.concatenate(rows), prepared.cells.event_laws.laws
        if 2 * every.size < len(laws):  # few adversaries: only their laws are kept
            is_used = np.zeros(len(possible), dtype=np.bool_)
            is_used[every] = True
            used, row = np.flatnonzero(is_used), np.empty(len(possible), dtype=np.intp)
            row[used] = np.arange(len(used))
            every, laws = row[every], laws[used]
        return cls(
            laws=laws,
            rows=every,
            secrets=np.concatenate(secrets),
            targets=np.concatenate(targets),
            places=np.concatenate(places),
        )


def _starts(prepared: PreparedTable, target: int, steps: list[int]) -> npt.NDArray[np.intp]:
    """Return the places of the admitted events of one target, where it has its first value."""
    sizes = prepared.sizes
    starts, number = np.zeros(1, dtype=np.intp), np.zeros(1, dtype=np.intp)
    others = [place for place in range(len(sizes)) if place != target]
    (fewest, most), left = prepared.known_limits, len(others)
    for place, may_know, may_hide in zip(others, *prepared.permissions(others), strict=True):
        options = np.arange(0 if may_know else sizes[place], sizes[place] + bool(may_hide))
        starts = np.add.outer(starts, options * steps[place]).ravel()
        number = np.add.outer(number, options < sizes[place]).ravel()
        left -= 1
        if most < len(others) - 1 - left or fewest > left:  # too many, or too few, are known
            admitted = (number <= most) & (fewest - left <= number)
            starts, number = starts[admitted], number[admitted]
    return starts[(fewest <= number) & (number <= most)]


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What is attacked, with answers divided by the scale of their coordinate."""

    prepared: PreparedTable
    """All that does not depend on the scale."""
    scale: float | FloatArray
    """The Laplace scale λ, or one per output coordinate."""
    tails_only: bool = False
    """Whether only the limits r → ±∞ count."""

    @cached_property
    def parts(self) -> tuple[FloatArray, ...]:
        """What value v of tuple j adds, from zero, in units of the scale; () if not additive."""
        return tuple(part / self.scale for part in self.prepared.cells.parts)

    @cached_property
    def diameters(self) -> tuple[float, ...]:
        """How far each tuple of an additive query moves the answer, in units of the scale."""
        if self.coordinates == 1:  # parts start at zero, and a quotient of the largest is largest
            return tuple((self.prepared.cells.reaches / self.scale).tolist())
        return tuple(map(diameter, self.parts))

    @cached_property
    def table(self) -> FloatArray | None:
        """The answer in every cell, from zero, in units of the scale; None if additive."""
        table = self.prepared.cells.table
        return None if table is None else table / self.scale

    @property
    def is_additive(self) -> bool:
        """Whether every tuple adds its own part to the answer."""
        return self.prepared.cells.table is None

    @property
    def probabilities(self) -> FloatArray:
        """The joint table, one axis per tuple."""
        return self.prepared.cells.probabilities

    @property
    def knowledge(self) -> Knowledge:
        """The adversaries."""
        return self.prepared.knowledge

    @property
    def sizes(self) -> tuple[int, ...]:
        """The domain size of each tuple."""
        return self.prepared.cells.sizes

    @property
    def coordinates(self) -> int:
        """Number of output coordinates."""
        return self.prepared.cells.coordinates

    @cached_property
    def furthest(self) -> float:
        """A bound on the distance (L1, in scales) of two answers; the group bound."""
        spread = float((self.prepared.cells.spread / self.scale).sum())
        return spread * (1 + 2 * (len(self.sizes) + self.coordinates + 2) * UNIT_ROUNDOFF)

    @property
    def is_near_one(self) -> bool:
        """Whether all densities are so close to 1 that their differences from 1 are stored."""
        return self.furthest <= NEAR_ONE

    @cached_property
    def fits_linear_space(self) -> bool:
        """Whether no mass, kernel or ratio of densities can underflow or overflow."""
        return self.furthest - self.prepared.cells.log_rarest <= LARGEST_EXPONENT

    def rounding_error(self, additions: int) -> float:
        """Bound the error of a log-ratio of two densities computed with this number of additions.

        A density is Σ p·k over a mass Σ p: each sum is right to `additions` roundings, each kernel
        k = e^{−d} to those of d; see `core.mixtures` for the rest.
        """
        roundings = 2 * additions + len(self.sizes) + self.coordinates + 24
        return rounding_error(
            DEFICITS if self.is_near_one else DENSITIES,
            width=self.furthest,
            operations=roundings,
            distance_operations=roundings,
        )


def setting_of(prepared: PreparedTable, scale: float | FloatArray) -> Setting:
    """Divide the query by the noise."""
    return Setting(prepared=prepared, scale=scale)


@dataclass(frozen=True, kw_only=True)
class Grid:
    """The answers of all cells as indices, and the kernel of every answer at every output."""

    answers: npt.NDArray[np.int32]
    """Per cell of the flat table, the row of `kernel`."""
    outputs: FloatArray
    """Shape (outputs, coordinates), in scales; ascending if there is one coordinate."""
    kernel: FloatArray
    """e^{−distance} or, near one, e^{−distance} − 1; shape (answers, outputs)."""
    moved: float
    """By how much (L1, in scales) an answer was moved at most to be on the grid."""


def grid_of(setting: Setting) -> Grid | None:
    """Return the grid in units of the scale; None if it is too large."""
    levels = setting.prepared.cells.levels
    if levels is None:
        return None
    corners = 2 ** len(levels.values) * len(levels.distinct[0])
    if (corners if setting.tails_only else levels.numbers) > KERNEL_NUMBERS:
        return None
    distances = levels.distances(setting.scale, tails_only=setting.tails_only)
    outputs = levels.corners if setting.tails_only else levels.outputs
    return Grid(
        answers=levels.answers,
        outputs=outputs / setting.scale,
        kernel=np.expm1(-distances) if setting.is_near_one else np.exp(-distances),
        moved=float((levels.moved / setting.scale).sum()),
    )


def group_bound(setting: Setting, moving: tuple[int, ...]) -> float:
    """Bound the leakage by how far these tuples together can move the answer, in scales."""
    if not setting.is_additive:
        return setting.furthest
    spread = sum(setting.diameters[place] for place in moving)
    return spread * (1 + 4 * (len(setting.sizes) + setting.coordinates + 4) * UNIT_ROUNDOFF)


@dataclass(frozen=True, kw_only=True)
class Attack:
    """What one adversary does, in positions of the table and units of the noise."""

    target: int
    """The tuple attacked."""
    known: dict[int, int]
    """Position of a known tuple → position of its value."""
    secrets: tuple[int, int]
    """The value that the output makes more likely, and the one it makes less likely."""
    output: FloatArray
    """The output, measured from the smallest answer of all, in each coordinate."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """A certified bracket and the attack that attains its lower end."""

    upper: float
    lower: float
    attack: Attack | None

    def or_worse(self, other: Outcome) -> Outcome:
        """Return the larger upper end together with the larger lower end."""
        better = self.attack is not None and (other.attack is None or self.lower >= other.lower)
        one = self if better else other
        return Outcome(upper=max(self.upper, other.upper), lower=one.lower, attack=one.attack)


NOTHING = Outcome(upper=0.0, lower=0.0, attack=None)


def bracket(log_ratio: float, bound: float, error: float, attack: Attack | None) -> Outcome:
    """Wrap a computed log-ratio, right to `error`, and a computed bound on all others."""
    if attack is None and bound <= 0:
        return NOTHING
    return Outcome(
        upper=math.nextafter(max(log_ratio, bound, 0.0) + error, math.inf),
        lower=0.0 if attack is None else max(0.0, math.nextafter(log_ratio - error, -math.inf)),
        attack=attack,
    )


@dataclass(frozen=True, kw_only=True)
class Events:
    """All that adversaries with one target and one unknown set can know."""

    known: tuple[int, ...]
    """Positions of the known tuples."""
    laws: FloatArray
    """P(atom | x_K, x_i), shape (values of x_K, values of x_i, atoms); rows sum to 1."""
    possible: npt.NDArray[np.bool_]
    """Whether x_i occurs together with x_K; where it does not, the law is meaningless."""
    atoms: FloatArray
    """What target and unknown tuples add, shape (values of x_K or 1, values of x_i, atoms, d)."""
    additions: int
    """Bound on the rounded operations behind each law and atom."""

    @cached_property
    def on_all_atoms(self) -> tuple[FloatArray, FloatArray]:
        """The atoms of all secrets of an additive query, and the laws on them.

        Atoms that differ only by rounding are merged and their probabilities added up. A secret
        that x_K excludes gets the law of one that it does not, if there is any.
        """
        atoms, index = np.unique(
            self.atoms.reshape(-1, self.atoms.shape[-1]), axis=0, return_inverse=True
        )
        laws = np.zeros((*self.laws.shape[:2], len(atoms)))
        for secret, places in enumerate(index.reshape(laws.shape[1], -1)):
            np.add.at(laws[:, secret].T, places, self.laws[:, secret].T)
        if not self.possible.all():
            first = self.possible.argmax(axis=1)[:, np.newaxis]
            rows = np.where(self.possible, np.arange(laws.shape[1]), first)
            laws = np.take_along_axis(laws, rows[:, :, np.newaxis], axis=1)
        return atoms, laws


def conditional_laws(problem: Problem, target: int, unknown: tuple[int, ...]) -> Events:
    """Condition the table on (x_i, x_K), for all their values at once."""
    if not isinstance(problem.model, JointTable):
        raise TypeError(f"conditional laws are taken of joint tables, got {problem.model!r}.")
    table, contributions = problem.model, problem.contributions
    axes = range(len(table.names))
    known = tuple(axis for axis in axes if axis != target and axis not in unknown)
    secrets = len(table.domains[target])
    order = (*known, target, *unknown)
    sizes = [len(table.domains[axis]) for axis in unknown]
    masses = table.probabilities.transpose(order)
    if contributions.table is None:
        own = _from_zero(contributions.values[target])
        added = np.zeros((1, own.shape[-1]))
        masses = masses.reshape(-1, secrets, 1, math.prod(sizes))
        merged = 0
        for axis in unknown:
            part = _from_zero(contributions.values[axis])
            masses, added, most = _merged(masses, added, part)
            merged += most
        masses = masses.reshape(-1, secrets, len(added))
        atoms = own[np.newaxis, :, np.newaxis] + added
        additions = 2 * (merged + len(added)) + 2 * len(axes)
    else:
        masses = masses.reshape(-1, secrets, math.prod(sizes))
        answers = _from_zero(contributions.table.reshape(-1, contributions.table.shape[-1]))
        answers = answers.reshape(contributions.table.shape)
        atoms = answers.transpose(*order, len(axes)).reshape(*masses.shape, -1)
        additions = 2 * math.prod(sizes) + 2 * len(axes)
    totals = masses.sum(axis=-1)
    possible = totals > 0
    laws = np.where(possible[..., np.newaxis], masses, 1.0)
    laws = laws / np.where(possible, totals, masses.shape[-1])[..., np.newaxis]
    return Events(known=known, laws=laws, possible=possible, atoms=atoms, additions=additions)


def _merged(
    masses: FloatArray, added: FloatArray, part: FloatArray
) -> tuple[FloatArray, FloatArray, int]:
    """Decide that one more tuple is unknown: add up the masses that give the same answer.

    `masses` has an axis for what the unknown tuples add, and one for all cells that follow, this
    tuple's first. Returns the new masses, what is added, and how many went into one at most.
    """
    events, secrets, _, rest = masses.shape
    sums = (added[:, np.newaxis] + part).reshape(-1, part.shape[-1])
    order = np.lexsort(sums.T[::-1])  # stable: masses are added up in their order
    is_new = (sums[order[1:]] != sums[order[:-1]]).any(axis=1)
    ends = np.concatenate([[0], np.flatnonzero(is_new) + 1, [len(sums)]])
    starts, most = ends[:-1], int((ends[1:] - ends[:-1]).max())
    masses = masses.reshape(events, secrets, len(sums), rest // len(part))
    return combined(masses, order, starts, np.add), sums[order[starts]], most


def combined(
    rows: FloatArray,
    order: npt.NDArray[np.intp],
    starts: npt.NDArray[np.intp],
    combine: Callable[[FloatArray, FloatArray], FloatArray],
) -> FloatArray:
    """Combine the rows of each group, along the last axis but one: faster than `reduceat` there.

    Group g has the rows order[starts[g]], order[starts[g] + 1], …
    """
    sizes = np.concatenate([starts[1:], [len(order)]]) - starts
    found = rows[..., order[starts], :]
    for turn in range(1, int(sizes.max())):
        larger = np.flatnonzero(sizes > turn)
        further = rows[..., order[starts[larger] + turn], :]
        found[..., larger, :] = combine(found[..., larger, :], further)
    return found


def _from_zero(values: FloatArray) -> FloatArray:
    """Shift a tuple's contributions to start at zero, so that sums keep the digits of the range."""
    return np.asarray(values - values.min(axis=0))


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
        """Leave out tuples that cannot vary; None if no target has two possible values.

        `like` is about the same model and answers: its smaller model is reused.
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
        """Return which of the tuples left out are known: as few as the problem admits.

        All of them if all others are known, because then the leakage may not depend on θ.
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
    """Return leakage 0: no target has two possible values."""
    target = problem.knowledge.targets[0]
    unknown = next(iter(problem.knowledge.unknown_sets(target)))
    return dataclasses.replace(problem.nobody(), target=target, unknown=unknown)


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
    """The problem of these tuples alone, all tuples outside being known."""
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
        return dataclasses.replace(
            found.widened(self.error),
            witness=witness,
            target=self.positions[found.target],
            unknown=tuple(self.positions[place] for place in found.unknown),
        )


def independent_groups(prepared: PreparedTable) -> list[Group]:
    """Return the independent groups that are attacked; none if splitting is needless or unsound.

    Adversaries must be allowed to know the other groups, and the query must be additive.
    """
    knowledge, size = prepared.knowledge, len(prepared.sizes)
    if not prepared.cells.parts or knowledge.known is not None or prepared.counts_strongest:
        return []
    if knowledge.most < size - 1 or knowledge.fewest == size - 1:
        return []
    factors = prepared.cells.factors
    found = [Group.of(prepared, group, factors.error) for group in factors.groups]
    return [group for group in found if group.problem.knowledge.targets]
