"""The exact engine for exchangeable groups.

Theorem 6 (docs/theory).

Members are exchangeable, so an adversary is described by three numbers: whether the target is
inside the query, and how many unknown members are inside and outside of it.

In a yes/no group, all that matters about the known members is how many of them hold a one. That
makes O(m²) mixtures, while a table of the same group has 2^m cells.

With several categories, what matters is the counts t of the categories among the known members.
Then P(counts s of the unknown | v, t) ∝ w(t + s + e_v)·(number of assignments with counts s), where
w is the probability of one assignment.
"""

from __future__ import annotations

import abc
import copy
import dataclasses
import math
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.mixtures import (
    LARGEST_EXPONENT,
    LOGS,
    form_of,
    log_densities,
    log_ratio,
    rounding_error,
)
from pdp_calibrate.core.model import ANY_TABLE
from pdp_calibrate.core.problem import (
    Bracket,
    Engine,
    Limits,
    Problem,
    WrittenOut,
)
from pdp_calibrate.core.rounding import ROUND_UP, UNIT_ROUNDOFF
from pdp_calibrate.core.tuning import CHUNK_NUMBERS, COMPILED_MEMBERS, KEPT_LAWS
from pdp_calibrate.core.workers import (
    best_first,
    interpreted,
    is_worth_loading,
    load_kernels,
)
from pdp_calibrate.errors import UnsupportedQueryError
from pdp_calibrate.families.exchangeable.events import Worst, without_members, worst_event
from pdp_calibrate.families.exchangeable.model import (
    BinaryGroup,
    CategoryGroup,
    Counts,
    compositions,
    log_ways,
)


class Case(NamedTuple):
    """Adversaries who differ only in which members they know and attack."""

    own: int
    """Whether the target is inside the query (1) or outside (0)."""
    inside: int
    """How many unknown members are inside."""
    outside: int
    """How many unknown members are outside."""


def equal_values(problem: Problem) -> FloatArray | None:
    """Return what values contribute, from zero, for every member who does; None if they differ."""
    contributions = problem.contributions
    if contributions.table is not None or contributions.coordinates != 1:
        return None
    added: list[FloatArray] = [array[:, 0] - array.min() for array in contributions.different]
    inside = [values for values in added if values.any()] or added
    return inside[0] if all(np.array_equal(values, inside[0]) for values in inside[1:]) else None


KERNELS = "pdp_calibrate.families.exchangeable.kernels"


class GroupSearch(abc.ABC):
    """The cases of a group, and how one of them is evaluated.

    Of everything prepared here, only `problem` and `cases` depend on the adversaries.
    """

    def __init__(self, problem: Problem, added: FloatArray) -> None:
        reach = problem.contributions.tuple_ranges().tolist()
        self.problem, self.size, self.added = problem, len(reach), added
        self.members_in = [place for place, furthest in enumerate(reach) if furthest]
        self.members_out = [place for place, furthest in enumerate(reach) if not furthest]
        self.most = max(reach)
        self.cases = list(self._cases())

    def against(self, problem: Problem) -> Self:
        """Return the same search against other adversaries."""
        other = copy.copy(self)
        other.problem = problem
        other.cases = list(other._cases())  # noqa: SLF001, its own class
        return other

    @abc.abstractmethod
    def evaluated(
        self, case: Case, scale: float, target: int, unknown: tuple[int, ...], attained: float
    ) -> Bracket:
        """Find the worst adversary of a case in which some member is unknown, or noise is hidden.

        A witness who learns less than is `attained` elsewhere need not be returned.
        """

    def run(self, scale: float, incumbent: float, deadline: float) -> Bracket:
        """Evaluate all cases, starting with those in which the answer can move furthest."""
        attained = 0.0

        def judge(_bound: float, case: Case) -> Bracket:
            nonlocal attained
            target, unknown = self.members(case)
            if unknown or self.problem.hidden_noise:
                found = self.evaluated(case, scale, target, unknown, attained)
            else:
                found = self.problem.plain_dp(target, scale, dict.fromkeys(range(self.size), 0))
            attained = max(attained, found.lower)
            return found

        def unjudged(bound: float, case: Case) -> Bracket:
            target, unknown = self.members(case)
            return Bracket(upper=bound, lower=0.0, witness=None, target=target, unknown=unknown)

        return best_first(
            (
                ((case.own + case.inside) * self.most / scale * ROUND_UP, case)
                for case in self.cases
            ),
            judge,
            start=self.problem.nobody(),
            unjudged=unjudged,
            cutoff=lambda found: max(incumbent, found.upper),
            is_over=lambda: time.monotonic() > deadline,
            what="comparing adversaries",
        )

    def _cases(self) -> Iterator[Case]:
        knowledge = self.problem.knowledge
        if knowledge.known is not None:
            target, unknown = self._named(knowledge.known)
            inside = len(set(unknown) & set(self.members_in))
            own = int(target in self.members_in)
            yield Case(own=own, inside=inside, outside=len(unknown) - inside)
            return
        for own in (0, 1):
            if not (self.members_in if own else self.members_out):
                continue
            for inside in range(len(self.members_in) - own + 1):
                for outside in range(len(self.members_out) - (1 - own) + 1):
                    if knowledge.fewest <= self.size - 1 - inside - outside <= knowledge.most:
                        yield Case(own=own, inside=inside, outside=outside)

    def _named(self, known: frozenset[int]) -> tuple[int, tuple[int, ...]]:
        (target,) = self.problem.knowledge.targets
        return target, tuple(p for p in range(self.size) if p != target and p not in known)

    def members(self, case: Case) -> tuple[int, tuple[int, ...]]:
        """Name a target and unknown members that fit the case."""
        if self.problem.knowledge.known is not None:
            return self._named(self.problem.knowledge.known)
        target = (self.members_in if case.own else self.members_out)[0]
        inside = [p for p in self.members_in if p != target][: case.inside]
        outside = [p for p in self.members_out if p != target][: case.outside]
        return target, tuple(sorted(inside + outside))


class _Terms(NamedTuple):
    """Numbers divided by the largest of them."""

    logs: FloatArray
    """Their logarithms."""
    masses: FloatArray
    """The numbers themselves, where they do not underflow."""
    depth: float
    """How far below the largest logarithm the smallest one is."""

    @classmethod
    def of(cls, logs: FloatArray) -> _Terms:
        """Divide numbers, given by their logarithms, by the largest."""
        divided = logs - logs.max()
        lowest = float(divided.min())
        if lowest == -math.inf:
            lowest = float(divided[np.isfinite(divided)].min())
        return cls(divided, np.exp(divided), -lowest)


def log_choices(size: int) -> FloatArray:
    """Return log C(size, s) for s = 0 … size."""
    half = [math.log(math.comb(size, ones)) for ones in range(size // 2 + 1)]
    return np.array(half + (half[(size - 1) // 2 :: -1] if size else []))


class BinaryGroupSearch(GroupSearch):
    """The search through a yes/no group."""

    def __init__(self, problem: Problem, group: BinaryGroup, added: FloatArray) -> None:
        super().__init__(problem, added)
        self.step = float(self.added[1] - self.added[0])
        ways = log_choices(self.size)
        self.log_weights = without_members(group.log_law - ways, len(self.members_out))
        self._weights: dict[int, _Terms] = {}
        self._ways: dict[int, _Terms] = {}
        sizes = np.abs(self.log_weights)
        largest = float(sizes.max())
        if largest == math.inf:
            largest = float(sizes[np.isfinite(sizes)].max(initial=0.0))
        self.largest_log = largest + float(ways[self.size // 2])

    def _terms(self, case: Case) -> tuple[_Terms, _Terms]:
        """Return weights and ways of a case; neither depends on the scale."""
        if case.outside not in self._weights:
            self._weights[case.outside] = _Terms.of(self.log_weights[case.outside])
        if case.inside not in self._ways:
            self._ways[case.inside] = _Terms.of(log_choices(case.inside))
        return self._weights[case.outside], self._ways[case.inside]

    def evaluated(
        self, case: Case, scale: float, target: int, unknown: tuple[int, ...], attained: float
    ) -> Bracket:
        """Try every number of ones among the known members."""
        step = abs(self.step) / scale
        width = (case.own + case.inside) * step
        known_number = self.size - 1 - case.inside - case.outside
        weights, ways = self._terms(case)
        # No density is smaller than e^{−width} times the largest probability, so terms that
        # underflow are within the rounding error: the larger exponent counts, not their sum.
        form = LOGS if weights.depth + ways.depth > LARGEST_EXPONENT else form_of(width)
        terms = (weights.logs, ways.logs) if form == LOGS else (weights.masses, ways.masses)
        whole, tails = self._worst_event(*terms, case.own, known_number, step, form)
        error = self._error(case, width, form)
        value = max(0.0, whole[0] + error)
        gain, ones, point, secret = tails if self.problem.hidden_noise else whole
        lower, witness = max(0.0, gain - error), None
        if gain == -math.inf or lower < attained:
            lower = 0.0
        else:
            not_known = {target, *unknown}
            known = [p for p in range(self.size) if p not in not_known]
            values = {position: int(place < ones) for place, position in enumerate(known)}
            moved = self._moved(target, unknown, point)
            witness = self.problem.witness_at(target, values, (secret, 1 - secret), moved)
        return Bracket(upper=value, lower=lower, witness=witness, target=target, unknown=unknown)

    def laws(self, case: Case) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
        """Return the laws of the number of ones among unknown members inside, and which can occur.

        The axes are the number of ones among the known members, the secret, and that number.
        """
        known = self.size - 1 - case.inside - case.outside
        ones, secret = np.ogrid[: known + 1, :2]
        places = (ones + secret)[..., np.newaxis] + np.arange(case.inside + 1)
        logs = self.log_weights[case.outside][places] + log_choices(case.inside)
        peaks = logs.max(axis=2)
        possible = peaks > -np.inf
        shares = np.exp(logs - np.where(possible, peaks, 0.0)[..., np.newaxis])
        totals = shares.sum(axis=2, keepdims=True)
        return shares / np.where(totals > 0, totals, 1.0), possible

    def law_error(self, case: Case) -> float:
        """Bound the relative error of these laws."""
        operations = (6 + 2 * case.outside) * (2 + self.largest_log) + 3 * case.inside + 8
        return 4 * UNIT_ROUNDOFF * operations

    def _worst_event(
        self, weights: FloatArray, ways: FloatArray, own: int, known: int, step: float, form: int
    ) -> tuple[Worst, Worst]:
        """Compare the secrets in NumPy, or in compiled code for large groups and many calls."""
        if self.size <= COMPILED_MEMBERS and not is_worth_loading(KERNELS):
            with interpreted(KERNELS):
                return worst_event(weights, ways, own, known, step, form)
        kernels = load_kernels(KERNELS)
        found = kernels.worst_event(weights, ways, own, known, step, form)
        whole, tails = (Worst(log_ratio(gain, form), *where) for gain, *where in found)
        return whole, tails

    def _moved(self, target: int, unknown: tuple[int, ...], point: int) -> float:
        """Return what the target and the unknown members contribute at a lattice point."""
        if self.problem.hidden_noise:
            return math.inf if (point > 0) == (self.step > 0) else -math.inf
        values = self.problem.contributions.values
        return math.fsum(values[p][0, 0] for p in (target, *unknown)) + point * self.step

    def _error(self, case: Case, width: float, form: int) -> float:
        """Bound the rounding error of a log-ratio.

        A probability goes through `outside` additions of logs and one normalisation, a density
        through one sweep each way; every rounding is relative to the size of what is rounded.
        """
        law = (4 + 2 * case.outside) * (2 + self.largest_log) + 2 * case.inside
        return rounding_error(
            form,
            width=width,
            operations=law + 8 * case.inside + 24,
            distance_operations=4,
            log_operations=6 * (case.inside + 2),
            depth=self.largest_log,
        )


_DEEPEST = -600.0  # logarithms above this are far from underflow


class _Weights:
    """log w of a group of some size, looked up by counts."""

    def __init__(self, size: int, listed: Sequence[Counts], logs: FloatArray) -> None:
        """Take one logarithm for each of the counts listed, in the order of `compositions`."""
        self.size, self.categories, self.logs = size, len(listed[0]), logs
        self._radix = (size + 1) ** np.arange(self.categories - 1, -1, -1, dtype=np.int64)
        self._codes = np.array(listed, dtype=np.int64) @ self._radix

    def __getitem__(self, counts: np.ndarray) -> FloatArray:
        return np.asarray(self.logs[np.searchsorted(self._codes, counts @ self._radix)])

    def without_one(self) -> _Weights:
        """Sum one member out: add up over its values."""
        smaller = list(compositions(self.size - 1, self.categories))
        counts = np.array(smaller, dtype=np.int64)
        filled = counts[:, np.newaxis] + np.eye(self.categories, dtype=np.int64)
        return _Weights(self.size - 1, smaller, np.logaddexp.reduce(self[filled], axis=1))


class _Unknown(NamedTuple):
    """All values that some unknown members inside the query may hold together."""

    counts: npt.NDArray[np.int64]
    """How many of them hold each category, shape (possibilities, categories)."""
    ways: FloatArray
    """The logarithm of the number of assignments with these counts."""
    sums: FloatArray
    """The different sums of their contributions."""
    of_counts: list[int]
    """For each of the counts, the position of its sum."""

    @classmethod
    def members(cls, number: int, added: FloatArray) -> _Unknown:
        """List what this many members may hold; `added` is what each category contributes."""
        listed = list(compositions(number, len(added)))
        counts = np.array(listed, dtype=np.int64)
        totals = (counts @ added).tolist()
        sums = sorted(set(totals))
        places = {total: place for place, total in enumerate(sums)}
        ways = np.array([log_ways(counts) for counts in listed])
        return cls(counts, ways, np.array(sums), [places[total] for total in totals])


class _Laws(NamedTuple):
    """What the known members hold, and the law of the unknown sum given that and the secret."""

    events: npt.NDArray[np.int64]
    """How many known members hold each category, shape (events, categories)."""
    possible: npt.NDArray[np.bool_]
    """Whether the target can hold each category beside them."""
    laws: FloatArray
    """P(sum | event, secret)."""
    log_laws: FloatArray | None
    """Their logarithms, where some are too small for a float."""


class CategoryGroupSearch(GroupSearch):
    """The search through a group with categories."""

    def __init__(self, problem: Problem, group: CategoryGroup, added: FloatArray) -> None:
        super().__init__(problem, added)
        self.categories = len(group.categories)
        listed = list(compositions(group.size, self.categories))
        ways = [log_ways(counts) for counts in listed]
        with np.errstate(divide="ignore"):
            logs = np.log(group.count_probabilities) - np.array(ways)
        self.weights = [_Weights(group.size, listed, logs)]
        for _ in range(min(len(self.members_out), group.size - 1)):
            self.weights.append(self.weights[-1].without_one())
        self.largest_log = float(np.abs(logs[np.isfinite(logs)]).max()) + max(ways)
        self._unknown: dict[int, _Unknown] = {}
        self._places: dict[Case, tuple[FloatArray, FloatArray]] = {}
        self._laws: dict[Case, _Laws] = {}

    def evaluated(
        self, case: Case, scale: float, target: int, unknown: tuple[int, ...], attained: float
    ) -> Bracket:
        """Try all counts of categories among the known members."""
        if case not in self._places:
            atoms = self.atoms(case)
            outputs = np.array(sorted(set(atoms.ravel().tolist())))
            self._places[case] = atoms[np.newaxis, :, :, np.newaxis], outputs
        atoms, outputs = self._places[case]
        found = Bracket(upper=0.0, lower=0.0, witness=None, target=target, unknown=unknown)
        for events, possible, laws, log_laws in self.laws(case, len(outputs)):
            log_density, error = log_densities(
                laws,
                atoms / scale,
                outputs[np.newaxis, :, np.newaxis] / scale,
                additions=self.additions(case),
                log_laws=log_laws,
            )
            least = max(attained, found.lower)
            here = self._compared(found, events, possible, log_density, error, outputs, least)
            found = found.or_worse(here)
        return found

    def atoms(self, case: Case) -> FloatArray:
        """Return the sums of target and unknown members, by secret, in the order of the laws."""
        return np.asarray(case.own * self.added[:, np.newaxis] + self._unknown_of(case).sums)

    def additions(self, case: Case) -> int:
        """Bound the rounded operations behind a law."""
        logs = math.ceil((6 + 2 * case.outside) * (2 + self.largest_log))
        return len(self._unknown_of(case).counts) + logs

    def _unknown_of(self, case: Case) -> _Unknown:
        if case.inside not in self._unknown:
            self._unknown[case.inside] = _Unknown.members(case.inside, self.added)
        return self._unknown[case.inside]

    def laws(self, case: Case, outputs: int) -> Iterator[_Laws]:
        """Yield the laws of the unknown sum, in chunks small enough for densities at all outputs.

        If all laws of a case fit into one chunk, they are kept for other scales.
        """
        counts, ways, sums, of_counts = self._unknown_of(case)
        weights, kept = self.weights[case.outside], self._laws.get(case)
        chunk = max(1, CHUNK_NUMBERS // (self.categories * max(len(counts), len(sums) * outputs)))
        if kept is not None and len(kept.events) <= chunk:
            yield kept
            return
        known_counts = np.array(
            list(compositions(weights.size - 1 - case.inside, self.categories)), dtype=np.int64
        )
        places = counts + np.eye(self.categories, dtype=np.int64)[:, np.newaxis]
        for first in range(0, len(known_counts), chunk):
            events = known_counts[first : first + chunk]
            logs = weights[places + events[:, np.newaxis, np.newaxis]] + ways
            peaks = logs.max(axis=2)
            possible = peaks > -np.inf
            logs = logs - np.where(possible, peaks, 0.0)[..., np.newaxis]
            found = _Laws(events, possible, *_laws_of_sums(logs, of_counts, len(sums)))
            if len(events) == len(known_counts) and self._keeps(found):
                self._laws[case] = found
            yield found

    def _keeps(self, laws: _Laws) -> bool:
        """Whether laws of this size may be kept for all cases."""
        return len(self.cases) * laws.laws.size <= KEPT_LAWS

    def _compared(
        self,
        found: Bracket,
        events: np.ndarray,
        possible: np.ndarray,
        log_density: FloatArray,
        error: float,
        outputs: FloatArray,
        attained: float,
    ) -> Bracket:
        """Take the worst pair of secrets, over all events and outputs."""
        highest = np.where(possible[..., np.newaxis], log_density, -np.inf)
        lowest = np.where(possible[..., np.newaxis], log_density, np.inf)
        gain = highest.max(axis=1) - lowest.min(axis=1)
        gain[possible.sum(axis=1) < 2] = -np.inf  # only one possible secret: nothing to compare
        value = max(0.0, float(gain.max()) + error)
        if self.problem.hidden_noise:
            gain[:, 1:-1] = -np.inf
        event, place = np.unravel_index(int(np.argmax(gain)), gain.shape)
        lower = max(0.0, float(gain[event, place]) - error)
        if gain[event, place] == -np.inf or lower < attained:
            return dataclasses.replace(found, upper=value, lower=0.0, witness=None)
        secrets = int(highest[event, :, place].argmax()), int(lowest[event, :, place].argmin())
        held = [category for category, n in enumerate(events[event]) for _ in range(n)]
        hidden = {found.target, *found.unknown}
        known = [position for position in range(self.size) if position not in hidden]
        moved = float(outputs[place])
        if self.problem.hidden_noise:
            moved = math.inf if place else -math.inf
        values = self.problem.contributions.values
        start = math.fsum(values[position][:, 0].min() for position in hidden)
        witness = self.problem.witness_at(
            found.target,
            dict(zip(known, held, strict=True)),
            secrets,
            start + moved,
        )
        return dataclasses.replace(found, upper=value, lower=lower, witness=witness)


def _laws_of_sums(
    logs: FloatArray, of_counts: list[int], number: int
) -> tuple[FloatArray, FloatArray | None]:
    """Add up the shares of counts with the same sum, and divide by their total.

    `logs` holds the logarithms of the shares, at most 0. Where some are too small for a float, the
    logarithms of the laws are returned as well.
    """
    laws = np.zeros((*logs.shape[:2], number))
    shares = np.exp(logs)
    for place, column in enumerate(of_counts):
        laws[..., column] += shares[..., place]
    totals = laws.sum(axis=2, keepdims=True)
    possible = totals > 0
    laws = np.divide(laws, totals, out=np.full_like(laws, 1 / number), where=possible)
    if np.min(logs, where=np.isfinite(logs), initial=0.0) >= _DEEPEST:
        return laws, None
    log_laws = np.full_like(laws, -np.inf)
    for place, column in enumerate(of_counts):
        log_laws[..., column] = np.logaddexp(log_laws[..., column], logs[..., place])
    log_laws -= np.log(np.where(possible, totals, 1.0))
    return laws, np.where(possible, log_laws, -math.log(number))


class GroupEngine(Engine):
    """Searches an exchangeable group by its cases, or as a table where its members differ."""

    def __init__(self, problem: Problem, *, search: GroupSearch | WrittenOut | None = None) -> None:
        """Prepare the search; `search` is one for other adversaries, whose work is reused."""
        group = problem.model
        if not isinstance(group, BinaryGroup | CategoryGroup):
            raise TypeError(f"this engine searches exchangeable groups, got {group!r}.")
        self.problem = problem
        self._search: GroupSearch | WrittenOut | None = None
        if len(group.domains[0]) > 1:  # otherwise there are no two secrets to compare
            found = _search_of(problem, group) if search is None else search.against(problem)
            self._search = found

    def against(self, problem: Problem) -> GroupEngine:
        """Return an engine for the same group and answers; see `core.problem.Engine`."""
        return GroupEngine(problem, search=self._search)

    def search(self, scale: float, limits: Limits) -> Bracket:
        """Find the worst adversary at one scale; see `core.problem.Engine`."""
        if self._search is None:
            return self.problem.nobody()
        if isinstance(self._search, WrittenOut):
            return self._search.search(scale, limits)
        return self._search.run(scale, limits.incumbent, limits.deadline)


def _search_of(problem: Problem, group: BinaryGroup | CategoryGroup) -> GroupSearch | WrittenOut:
    """Prepare the search by cases if all members inside the query contribute the same."""
    added = equal_values(problem)
    if added is not None:
        if isinstance(group, BinaryGroup):
            return BinaryGroupSearch(problem, group, added)
        return CategoryGroupSearch(problem, group, added)
    if not ANY_TABLE.admits(list(map(len, group.domains))):
        raise UnsupportedQueryError(
            "in a group too large for a joint table, all members of a query must have the same"
            " weight, and the answer must be one number. Use Sum, Mean or Count, with over= for"
            " some of the members."
        )
    return WrittenOut.of(problem, group.to_table())
