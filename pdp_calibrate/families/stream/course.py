"""What was released at each step so far, and the leakage about any step, past or future.

Theorem 23 (docs/theory), Corollary 23a.

A step without a budget, between two steps that have one, leaks no more than one of these:
c^k(F) + c^{n−k}(B) is convex in k, because c is never steeper than 1. Future steps,
each with the promised budget, leak at most as much as the last one, or as the promise for ever. So
the largest leakage is found among the steps that have a budget, in one pass each way.

**Folding.** Steps far in the past are summarised by three numbers: where the open steps begin, what
the folded ones pass on to them, and the largest leakage about any folded step. Nothing more can be
released about a step `LATE` steps before the last one; whatever later steps pass back to it is at
most the budget ε, or the ledger would have refused them. A step is folded once even ε from there
leaves it below the budget.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pdp_calibrate.core.rounding import ROUND_UP
from pdp_calibrate.families.stream.memory import Memory

LATE = 400
"""How far before the latest step a release may still be: somewhat more than a year of days."""

_NEGLIGIBLE = 1e-14  # share of the budget that may still reach a step when it is folded


@dataclass(frozen=True, kw_only=True)
class Folded:
    """A summary of all steps before the open ones."""

    before: int
    """The steps before this one are folded."""
    forward: float
    """The leakage of all of them together about the last of them."""
    largest: float
    """The largest leakage about any of them, whatever is released later."""


@dataclass(frozen=True, kw_only=True)
class Course:
    """The amounts of all steps of one stream; see `memory` for what an amount is."""

    memory: Memory
    """How a step passes leakage on to its neighbours."""
    limit: float
    """The largest leakage allowed about any step; later releases respect it."""
    promise: float = 0.0
    """The amount that every step after the latest may still get."""
    amounts: Mapping[int, float] = field(default_factory=dict)
    """The amounts of the open steps that have any, in order."""
    on_top: float = 0.0
    """Leakage common to all steps: rounding of real answers, learning the model."""
    folded: Folded | None = None
    """The summary of older steps."""

    @property
    def latest(self) -> int | None:
        """The last step with an amount."""
        if self.amounts:
            return max(self.amounts)
        return None if self.folded is None else self.folded.before - 1

    @property
    def open_from(self) -> int | None:
        """The first step that releases may still be about; None if any."""
        latest = self.latest
        return None if latest is None else latest - LATE

    def plus(self, step: int, amount: float) -> Course:
        """Return the course after one more release about an open step."""
        before = self.amounts.get(step)
        added = amount if before is None else (before + amount) * ROUND_UP
        amounts = dict(sorted({**self.amounts, step: added}.items()))
        return dataclasses.replace(self, amounts=amounts)

    def plus_everywhere(self, amount: float) -> Course:
        """Return the course after something that leaks this amount about every step."""
        total = (self.on_top + amount) * (ROUND_UP if self.on_top else 1.0)
        return dataclasses.replace(self, on_top=total)

    def leakage(self) -> float:
        """Return the largest leakage about any step, past or future, rounded up."""
        most = self.by_steps()
        return (most + self.on_top) * ROUND_UP if self.on_top else most

    def by_steps(self) -> float:
        """Return the same without the leakage common to all steps."""
        most = self.memory.for_ever(self.promise)
        if self.folded is not None:
            most = max(most, self.folded.largest)
        return max(most, *self.by_step().values(), 0.0)

    def about(self, step: int) -> float:
        """Return the leakage about one step from all that was released so far or promised."""
        if self.folded is not None and step < self.folded.before:
            own = self.folded.largest
        elif step in self.amounts:
            own = self.by_step()[step]
        elif self.promise and (self.latest is None or step > self.latest):
            own = max(self.memory.for_ever(self.promise), *self.by_step().values(), 0.0)
        else:
            own = self.plus(step, 0.0).by_step()[step]
        return (own + self.on_top) * ROUND_UP if self.on_top else own

    def by_step(self) -> dict[int, float]:
        """Return the leakage about every open step that has an amount."""
        forwards, backwards = self._forwards(), self._backwards()
        return {step: _added(forwards[step], backwards[step]) for step in self.amounts}

    def _forwards(self) -> dict[int, float]:
        """Return F_t of the open steps, their own amounts included."""
        found: dict[int, float] = {}
        carried, last = 0.0, 0
        if self.folded is not None:
            carried, last = self.folded.forward, self.folded.before - 1
        for step, amount in self.amounts.items():
            arriving = self.memory.carried(carried, step - last) if carried else 0.0
            carried, last = _added(amount, arriving), step
            found[step] = carried
        return found

    def _backwards(self, start: tuple[int, float] | None = None) -> dict[int, float]:
        """Return c(B_{t+1}), what arrives at the open steps from later ones.

        From a start (a step and the leakage there from its side) only steps before it are
        used; by default everything released, and after that what is promised.
        """
        found: dict[int, float] = {}
        if start is None:
            promised = self.memory.one_sided(self.promise) if self.promise else 0.0
            start = (self.latest or 0) + 1, promised
        last, carried = start
        for step in reversed(list(self.amounts)):
            if step >= last:
                continue
            arriving = self.memory.carried(carried, last - step) if carried else 0.0
            found[step] = arriving
            carried, last = _added(self.amounts[step], arriving), step
        return found

    def closed(self) -> Course:
        """Return the course with all sufficiently old steps folded."""
        border = self.open_from
        if border is None:
            return self
        oldest = border - self.memory.fading(_NEGLIGIBLE)
        if not self.amounts or next(iter(self.amounts)) >= oldest:
            return self
        forwards, backwards = self._forwards(), self._backwards((border, self.limit))
        before, folded = self.folded, 0
        largest = 0.0 if before is None else before.largest
        forward = 0.0 if before is None else before.forward
        last = None
        for step in self.amounts:
            final = _added(forwards[step], backwards.get(step, self.limit))
            if step >= oldest or _added(final, self.on_top) > self.limit:
                break
            largest, forward, last = max(largest, final), forwards[step], step
            folded += 1
        if last is None:
            return self
        left = dict(list(self.amounts.items())[folded:])
        stands = Folded(before=last + 1, forward=forward, largest=largest)
        return dataclasses.replace(self, amounts=left, folded=stands)

    def to_dict(self) -> dict[str, Any]:
        """Describe for JSON what was released."""
        folded = None if self.folded is None else dataclasses.asdict(self.folded)
        steps = [[step, amount] for step, amount in self.amounts.items()]
        return {"steps": steps, "on_top": self.on_top, "folded": folded}

    def continued(self, described: Mapping[str, Any]) -> Course:
        """Return this stream with the releases that `to_dict` described, or raise ValueError."""
        amounts = {_whole(step): float(amount) for step, amount in described["steps"]}
        on_top, held = float(described["on_top"]), described["folded"]
        folded = None
        numbers = [on_top, *amounts.values()]
        if held is not None:
            folded = Folded(
                before=_whole(held["before"]),
                forward=float(held["forward"]),
                largest=float(held["largest"]),
            )
            numbers += [folded.forward, folded.largest]
            if any(step < folded.before for step in amounts):
                raise ValueError("open steps come after the folded ones.")
        if not all(0 <= number < math.inf for number in numbers):
            raise ValueError("amounts are numbers, zero or more.")
        ordered = dict(sorted(amounts.items()))
        return dataclasses.replace(self, amounts=ordered, on_top=on_top, folded=folded)


def _added(one: float, other: float) -> float:
    """Add two non-negative numbers, rounded up; adding 0 is exact."""
    return (one + other) * ROUND_UP if one and other else one + other


def _whole(number: Any) -> int:
    if type(number) is not int:
        raise ValueError("a step is a whole number.")
    return number
