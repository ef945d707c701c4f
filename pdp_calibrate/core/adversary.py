"""Who attacks: which targets, and which other tuples the attacker already knows."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from pdp_calibrate.arrays import damage_refused, plain
from pdp_calibrate.core.model import (
    Model,
    checked_model,
    field_of,
    from_json_value,
    json_value,
    position_of,
    values_of,
)
from pdp_calibrate.errors import ModelError, PdpError

Output = float | tuple[float, ...]
"""A noisy number, or several of them."""


@dataclass(frozen=True, kw_only=True)
class Adversaries:
    """A set of adversaries A(i, K): each attacks tuple i and knows x_K exactly.

    Use the constructors: `all`, `weakest`, `strongest`, `knowing`, `exactly`. Only sets that
    admit the strongest adversary (K = everyone else) also imply plain differential privacy.

    Examples
    --------
    >>> Adversaries.knowing(at_least=1, at_most=3)
    Adversaries.knowing(at_least=1, at_most=3)
    """

    at_least: int | None = 0
    """Fewest tuples known; None for everyone but the target."""
    at_most: int | None = None
    """Most tuples known; None for everyone but the target."""
    target: Hashable | None = None
    """The one tuple attacked, for `exactly`."""
    known: tuple[Hashable, ...] | None = None
    """Exactly the tuples known, for `exactly`."""
    copies: bool = False
    """For `exactly`, whether all further copies of blocks, which share names, are known too."""

    def __post_init__(self) -> None:
        limits = []
        for name in ("at_least", "at_most"):
            limit = getattr(self, name)
            if limit is None:
                continue
            if not hasattr(limit, "__index__") or int(limit) < 0:
                raise PdpError("at_least and at_most must be whole numbers, zero or more.")
            object.__setattr__(self, name, int(limit))
            limits.append(int(limit))
        if limits and limits[0] > limits[-1]:
            raise PdpError(f"at_least must not exceed at_most, got {limits[0]} > {limits[-1]}.")

    @classmethod
    def all(cls) -> Adversaries:
        """Every target, every set of known tuples."""
        return cls()

    @classmethod
    def weakest(cls) -> Adversaries:
        """Every target, nothing known."""
        return cls(at_most=0)

    @classmethod
    def strongest(cls) -> Adversaries:
        """Every target, everyone else known."""
        return cls(at_least=None)

    @classmethod
    def knowing(cls, *, at_least: int = 0, at_most: int | None = None) -> Adversaries:
        """Every target, with a smallest and a largest number of other tuples known.

        Tuples are counted in one instance of the model: in the target's own row of a wide frame, in
        its own group of a long one; over all groups for `Blocks`, which describe all of them.
        Knowing other rows changes nothing, because they are independent.
        """
        if at_least is None:  # that would be everyone but the target
            raise PdpError("at_least must be a whole number, zero or more.")
        return cls(at_least=at_least, at_most=at_most)

    @classmethod
    def exactly(
        cls, target: Hashable, *, known: Iterable[Hashable] = (), copies: bool = False
    ) -> Adversaries:
        """Name one adversary: the target attacked and the tuples known.

        Parameters
        ----------
        target
            The tuple attacked.
        known
            The tuples known. In `Blocks` with counts, ``(name, k)`` is the k-th further copy of a
            tuple, from 1 on; the name alone is the first one.
        copies
            Whether all further copies are known too.
        """
        names = tuple(plain(name) for name in known)
        if target in names or len(set(names)) != len(names):
            raise PdpError("known must not repeat a tuple or contain the target.")
        return cls(target=plain(target), known=names, copies=bool(copies))

    @property
    def is_restricted(self) -> bool:
        """Whether the number of other, independent groups matters to these adversaries.

        A group that nobody in the set knows completely acts as noise, and what adversaries know
        about one group depends on how many people are outside it. Only in sets that allow any
        knowledge of the other groups, `all` and `strongest`, does the worst adversary know them.
        """
        return self.known is not None or self.at_most is not None or bool(self.at_least)

    def resolve(self, model: Model) -> Knowledge:
        """Translate names and limits into positions in this model."""
        total = sum(checked_model(model).copies)
        if model.is_endless and self != Adversaries():
            raise ModelError(
                "a model without an end is protected against everyone, Adversaries.all(): how many"
                " others somebody knows has no limit there."
            )
        if self.known is not None:
            target = position_of(self.target, model.names)
            known = frozenset(model.place_of(name) for name in self.known)
            number = len(known)
            if self.copies:
                named = range(len(model.names))
                number = sum(place in named for place in known) + total - len(named)
            return Knowledge(
                total=total, targets=(target,), fewest=number, most=number, known=known
            )
        fewest = total - 1 if self.at_least is None else self.at_least
        most = total - 1 if self.at_most is None else min(self.at_most, total - 1)
        if fewest > most:
            raise ModelError(
                f"nobody can know {fewest} other tuples: the model has {total} in all."
            )
        targets = tuple(range(len(model.names)))
        return Knowledge(total=total, targets=targets, fewest=fewest, most=most)

    def to_dict(self) -> dict[str, Any]:
        """Describe the set for JSON."""
        if self.known is None:
            return {"at_least": self.at_least, "at_most": self.at_most}
        described = {"target": json_value(self.target), "known": list(map(json_value, self.known))}
        return described | ({"copies": True} if self.copies else {})

    @classmethod
    @damage_refused("the description of the adversaries")
    def from_dict(cls, described: dict[str, Any]) -> Adversaries:
        """Undo `to_dict`."""
        if "target" not in described:
            return cls(
                at_least=field_of(described, "at_least"), at_most=field_of(described, "at_most")
            )
        target = from_json_value(described["target"])
        copies = described.get("copies", False)
        return cls.exactly(target, known=values_of(described, "known"), copies=copies is True)

    def __repr__(self) -> str:
        if self.known is not None:
            copies = ", copies=True" if self.copies else ""
            return f"Adversaries.exactly({self.target!r}, known={list(self.known)!r}{copies})"
        if self.at_least is None:
            return "Adversaries.strongest()"
        if self.at_most == 0:
            return "Adversaries.weakest()"
        if (self.at_least, self.at_most) == (0, None):
            return "Adversaries.all()"
        return f"Adversaries.knowing(at_least={self.at_least}, at_most={self.at_most})"


EVERYONE = Adversaries.all()
"""The adversaries that are assumed unless others are given: all of them."""


@dataclass(frozen=True, kw_only=True)
class Knowledge:
    """A set of adversaries in the positions of one model: what engines enumerate."""

    total: int
    """Number of tuples, copies included."""
    targets: tuple[int, ...]
    """Positions that may be attacked."""
    fewest: int
    """Fewest positions known."""
    most: int
    """Most positions known."""
    known: frozenset[int] | None = None
    """The exact positions known, where one adversary was named.

    If `fewest` is larger than their number, all further copies of blocks are known as well.
    """
    incomplete: bool = False
    """Whether these tuples are only a part of the model, and nobody knows all the others."""

    @property
    def admits_strongest(self) -> bool:
        """Whether someone in the set knows everyone but the target."""
        return self.most == self.total - 1 and not self.incomplete

    @property
    def knowing_least(self) -> tuple[int, tuple[int, ...]]:
        """Return the target and unknown tuples of an adversary who knows as little as admitted.

        The target is in the middle; the known tuples are those farthest from it.
        """
        target = self.targets[len(self.targets) // 2]
        others = (position for position in range(self.total) if position != target)
        if self.known is not None:
            return target, tuple(position for position in others if position not in self.known)
        near = sorted(others, key=lambda position: abs(position - target))
        return target, tuple(sorted(near[: self.total - 1 - self.fewest]))

    def unknown_sets(self, target: int) -> Iterator[tuple[int, ...]]:
        """Yield every admitted set of unknown tuples, neither target nor known, largest first."""
        others = [position for position in range(self.total) if position != target]
        if self.known is not None:
            yield tuple(position for position in others if position not in self.known)
            return
        for size in range(self.total - 1 - self.fewest, self.total - 2 - self.most, -1):
            yield from combinations(others, size)


@dataclass(frozen=True, kw_only=True)
class Block:
    """The place of a problem's tuples among other, independent blocks."""

    positions: range
    """The positions of the block in the whole model."""
    model: Model
    """The whole model."""
    knowledge: Knowledge
    """The adversaries, in positions of the whole model."""

    def known(self, inside: int, *, some_unknown: bool) -> tuple[tuple[Hashable, ...], bool]:
        """Return which tuples outside are known, and whether all further copies are.

        Parameters
        ----------
        inside
            How many tuples of the block the adversary knows.
        some_unknown
            Whether the adversary cannot know everything outside.
        """
        model, knowledge = self.model, self.knowledge
        named = len(model.names)
        if knowledge.known is not None:
            outside = sorted(knowledge.known - set(self.positions))
            everyone = knowledge.fewest > len(knowledge.known)
            return tuple(map(model.name_at, outside)), everyone
        others = [place for place in range(named) if place not in self.positions]
        if not some_unknown:
            return tuple(model.names[place] for place in others), knowledge.total > named
        needed = max(0, knowledge.fewest - inside)
        further = range(named, named + max(0, needed - len(others)))
        return tuple(map(model.name_at, (*others[:needed], *further))), False


@dataclass(frozen=True, kw_only=True)
class Witness:
    """The adversary, secrets and output that attain a leakage.

    Contains no data: it follows from the model and the query alone.
    """

    target: Hashable
    """The tuple attacked."""
    known: dict[Hashable, Hashable]
    """The tuples known and the values they hold in the worst case."""
    secrets: tuple[Hashable, Hashable]
    """The value of the target that the output makes more likely, and the one it makes less so."""
    output: Output
    """The released answer at which the ratio is largest; ±inf for a limit, a tuple for vectors."""
    model: Model = field(repr=False)
    """The θ under which it happens."""
    index: int | None = None
    """Its position in the ModelSet, if there is one."""
    data_share: float | None = None
    """The data's own share of the variance, with Gaussian noise; None for Laplace noise."""
    outside: tuple[Hashable, ...] = ()
    """Tuples known that are independent of the target and of all of `known`, in other blocks.

    Whatever they hold, knowing it takes their part out of the answer: `output` is without it.
    """
    copies: bool = False
    """Whether all further copies of blocks, which share names, are known too."""

    @property
    def adversary(self) -> Adversaries:
        """The set that contains just this adversary."""
        known = (*self.known, *self.outside)
        return Adversaries.exactly(self.target, known=known, copies=self.copies)

    @property
    def is_private(self) -> bool:
        """Whether it follows from a model that must not be shown: known values may be its means."""
        return self.model.provenance == "private"

    def __repr__(self) -> str:
        if self.is_private:
            return "Witness(withheld: it follows from a private model)"
        known = _first_few([f"{name!r}: {value!r}" for name, value in self.known.items()])
        output = repr(self.output)
        if isinstance(self.output, tuple) and len(self.output) > 1:
            output = f"({_first_few(list(map(repr, self.output)))})"
        return (
            f"Witness(target={self.target!r}, known={{{known}}}, secrets={self.secrets!r},"
            f" output={output}, index={self.index!r})"
        )

    def to_dict(self) -> dict[str, Any] | None:
        """Describe the witness, without its model, for JSON; None if the model is private."""
        if self.is_private:
            return None
        return {
            "target": json_value(self.target),
            "known": [[json_value(name), json_value(v)] for name, v in self.known.items()],
            "secrets": [json_value(secret) for secret in self.secrets],
            "output": str(self.output),  # JSON has no infinity
            "index": self.index,
            **({"outside": list(map(json_value, self.outside))} if self.outside else {}),
            **({"copies": True} if self.copies else {}),
        }


_SHOWN = 6


def _first_few(items: Sequence[str]) -> str:
    """List a few of many items and say how many more there are."""
    if len(items) <= _SHOWN:
        return ", ".join(items)
    few = _SHOWN // 2
    return f"{', '.join(items[:few])}, … {len(items) - few} more"
