"""The interface of a family: a problem, the engine that searches it, and the bracket it returns.

A family is a folder in `families/`: a model (a subclass of `Model`), an engine that searches it,
possibly an estimator, and a composer if it has its own bounds for several releases. The model
names its engine in the class attribute `engine`, and its composer in `composer`, as
``"module:Class"`` so that compiled code is loaded when it is first needed, or as the class itself.
The rest of the library reaches a family through its model and its engine alone.

**Gaussian noise.** A family that answers it names a second engine in the class attribute
`gaussian_noise_engine`, again as ``"module:Class"``. The problem's `measure` says which noise is
added and what is asked for. Its brackets are on the scale of μ, whatever was asked for, so that the
parts of one model can be compared and calibration is one search:

- For ``measure.unit`` ``"mu"`` or ``"rho"``, `Bracket.upper` is a μ that holds at every δ.
- For ``measure.unit == "epsilon"`` the question is about one δ, and an engine that knows δ as a
  function of ε exactly may answer it directly: if nobody exceeds (ε, `measure.law_delta`), it
  returns ``upper=measure.mu_above(ε)``, the μ that represents this ε, rounded up. That says nothing
  about any other δ. A μ that holds at every δ, for everyone whatever the incumbent, is stated
  separately, in `Bracket.everywhere`; an engine that states none has proved none. Somebody who
  exceeds (ε, `measure.delta`) gives ``lower=measure.mu_below(ε)``. An incumbent in `Limits`
  represents ``measure.epsilon_below(incumbent)``: where nobody exceeds that, the incumbent itself
  is an upper end. Such an engine sets `charges_rounding`, because the cost of rounding does not add
  to this μ: a shift r costs (1 + e^ε)·r/(σ√(2π)) of δ.

Nothing else in the library has to know which of the two an engine does. Ledgers ask for ``"mu"``,
because adaptively chosen releases stay within a μ, not within an (ε, δ).

**Several releases.** Some bounds hold for every model: all unknown tuples move at once, or the
model is written out as a table. Others use the structure of a family; its `Composer` provides them.

A search ends with a `Bracket`; users see it as a `Leakage`.
"""

from __future__ import annotations

import abc
import dataclasses
import functools
import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar, Literal, cast, get_args

import numpy as np

from pdp_calibrate.arrays import FloatArray, check_number, checked_share
from pdp_calibrate.core import gaussian_dp
from pdp_calibrate.core.adversary import Adversaries, Block, Knowledge, Output, Witness
from pdp_calibrate.core.cards import card
from pdp_calibrate.core.contributions import Contributions, Line
from pdp_calibrate.core.model import Model
from pdp_calibrate.core.noise import Noise, checked_noise
from pdp_calibrate.core.rounding import ROUND_DOWN, ROUND_UP, UNIT_ROUNDOFF
from pdp_calibrate.errors import ModelError, PdpError, UnsupportedQueryError


@dataclass(frozen=True, kw_only=True)
class Bracket:
    """What a search has found when it ends: the only result type of a search."""

    upper: float
    """Upper end: nobody in the problem leaks more."""
    lower: float
    """Lower end, attained by the witness."""
    witness: Witness | None
    """The adversary, secrets and output that attain the lower end."""
    target: int
    """The tuple attacked by the adversary whose bound is `upper`."""
    unknown: tuple[int, ...]
    """The tuples that this adversary does not know."""
    rounding: float = 0.0
    """The part of `upper` charged because the answer is rounded before noise is added."""
    everywhere: float = math.inf
    """A μ of Gaussian noise that nobody exceeds at any δ; infinite where none is proved.

    `upper` may be about one δ only, so it never stands in for this.
    """
    coupled: float = math.inf
    """The bound from a coupling alone at one δ, a trace of mass left out, on the scale of μ."""

    @property
    def by_coupling(self) -> float:
        """The upper end that a coupling alone gives: what holds at every δ holds at one."""
        return min(self.coupled, self.everywhere)

    def is_within(self, other: Bracket) -> bool:
        """Whether neither end is larger than the other's, which has a witness."""
        is_lower = self.upper <= other.upper and self.lower <= other.lower
        return is_lower and other.witness is not None

    def with_lower(self, other: Bracket) -> Bracket:
        """Take the other's lower end if it is better."""
        if self.witness is not None and self.lower >= other.lower:
            return self
        return dataclasses.replace(self, lower=other.lower, witness=other.witness)

    def plus(self, cost: float) -> Bracket:
        """Add a cost to the upper end, rounded up."""
        if cost == 0:
            return self
        return dataclasses.replace(
            self,
            upper=math.nextafter(self.upper + cost, math.inf),
            everywhere=math.nextafter(self.everywhere + cost, math.inf),
            coupled=math.nextafter(self.coupled + cost, math.inf),
        )

    def with_rounding(self, cost: float) -> Bracket:
        """Add what the rounding of the answer may cost to the upper end."""
        unchanged = cost == self.rounding == 0
        return self if unchanged else dataclasses.replace(self.plus(cost), rounding=cost)

    def widened(self, cost: float) -> Bracket:
        """Move both ends outwards by a cost, the upper one rounded up."""
        if cost == 0:
            return self
        lower = max(0.0, math.nextafter(self.lower - cost, -math.inf))
        return dataclasses.replace(self.plus(cost), lower=lower)

    def at_most(self, bound: float) -> Bracket:
        """Lower the upper end to another certified bound, which may hold at one δ only."""
        return self if self.upper <= bound else dataclasses.replace(self, upper=bound)

    def at_most_everywhere(self, bound: float) -> Bracket:
        """Lower the upper ends to another certified bound that holds at every δ."""
        everywhere = min(self.everywhere, bound)
        return dataclasses.replace(self, upper=min(self.upper, bound), everywhere=everywhere)

    def or_worse(self, other: Bracket) -> Bracket:
        """Return the larger upper end together with the larger lower end."""
        larger, smaller = (self, other) if self.upper >= other.upper else (other, self)
        both = dataclasses.replace(
            larger,
            everywhere=max(self.everywhere, other.everywhere),
            coupled=max(self.by_coupling, other.by_coupling),
        )
        return both.with_lower(smaller)


@dataclass(frozen=True, kw_only=True)
class Bound:
    """A certified upper bound on a leakage, and the argument it rests on."""

    value: float
    """Nobody learns more, rounding included."""
    method: str
    """``exact``, ``dual``, ``birkhoff``, ``shift``, ``group``, ``stream`` (step by
    step, for ever), ``filter`` (of Gaussian noise), ``repeats`` (of one query with Gaussian noise),
    ``whole`` (learning the model, which is private in whole draws) or ``nothing``."""

    def or_worse(self, other: Bound) -> Bound:
        """Return the larger of two bounds on different adversaries."""
        return self if self.value >= other.value else other

    def or_better(self, other: Bound) -> Bound:
        """Return the smaller of two bounds on the same adversaries."""
        return self if self.value <= other.value else other


Unit = Literal["epsilon", "mu", "rho"]
"""What a leakage is measured in."""


@dataclass(frozen=True, kw_only=True)
class Measure:
    """What noise is added, and what the leakage is measured in."""

    noise: Noise = "laplace"
    """Laplace noise leaks a pure ε, Gaussian noise a μ."""
    unit: Unit = "epsilon"
    """μ is reported as it is, as ρ = μ²/2 of zCDP, or as the ε of (ε, δ)."""
    delta: float = 0.0
    """The δ that goes with ε, for Gaussian noise."""
    data_counts: bool = True
    """Whether what an adversary does not know counts as Gaussian noise as well.

    Not where another release about the same data may reveal it: that changes the law of the unknown
    tuples, and a coupling chosen beforehand no longer holds.
    """
    more_follows: bool = False
    """Whether other queries may be released later, chosen by what was seen.

    Then one coupling must serve all of them, including those not asked yet: the best coupling for
    this answer alone may not be the best with others; bands of a sample must hold for any query.
    """
    side_by_side: bool = False
    """Whether several adversaries are stated: bands of a sample must hold for all at once."""

    @classmethod
    def of(cls, noise: object, *, unit: object = None, delta: object = None) -> Measure:
        """Check what was asked for: μ by default, and ε where a δ is given."""
        if noise == "laplace":
            if unit not in (None, "epsilon") or delta is not None:
                raise PdpError(
                    "Laplace noise leaks a pure epsilon: delta= and unit= need noise='gaussian'."
                )
            return LAPLACE
        kind = checked_noise(noise)
        chosen = unit or ("mu" if delta is None else "epsilon")
        for known in get_args(Unit):
            if chosen == known:
                if (delta is None) == (known == "epsilon"):
                    raise PdpError("unit='epsilon' needs a delta, and no other unit takes one.")
                share = 0.0 if delta is None else checked_share(delta, "delta", error=PdpError)
                return cls(noise=kind, unit=known, delta=share)
        raise PdpError(f"unit must be 'epsilon', 'mu' or 'rho', got {unit!r}.")

    @property
    def law_delta(self) -> float:
        """The δ that a proof about Gaussian noise may use; a trace is left for the sampler."""
        return gaussian_dp.law_delta(self.delta)

    def mu_above(self, epsilon: float) -> float:
        """Return the μ that represents an ε at this δ, rounded up: for upper ends."""
        return gaussian_dp.mu_reaching(epsilon, self.law_delta)

    def mu_below(self, epsilon: float) -> float:
        """Return the μ that represents an ε at this δ, rounded down: for lower ends."""
        return gaussian_dp.mu_of(epsilon, self.delta)

    def epsilon_below(self, mu: float) -> float:
        """Return the ε that a μ represents at this δ, rounded down: for incumbents."""
        return gaussian_dp.epsilon_attained(mu, self.law_delta)

    @property
    def everywhere(self) -> Measure:
        """The same noise, asked about at every δ at once."""
        return self if self.noise == "laplace" else Measure(noise=self.noise, unit="mu")

    def leakage(
        self, found: Bracket, scale: float | tuple[float, ...], witness: Witness | None
    ) -> Leakage:
        """Express the result of a search in this unit."""
        if self.noise == "laplace":
            return Leakage(
                value=found.upper,
                lower=found.lower,
                scale=scale,
                witness=witness,
                rounding=found.rounding,
            )
        scales = scale if isinstance(scale, tuple) else (scale,)

        def told(mu: float) -> float:
            if self.unit == "epsilon":
                return gaussian_dp.epsilon_of_drawn(mu, self.delta, scales)
            return gaussian_dp.rho_of(mu) if self.unit == "rho" else mu

        value, everywhere, coupled = told(found.upper), found.everywhere, found.by_coupling
        if self.unit != "epsilon":  # then all of it is about every δ
            everywhere = coupled = found.upper
        lower = found.lower
        if self.unit == "epsilon":
            lower = gaussian_dp.epsilon_attained(lower, self.delta)
        elif self.unit == "rho":
            lower = max(0.0, math.nextafter(lower * lower / 2 * (1 - 4 * UNIT_ROUNDOFF), 0.0))
        charged = value - told(max(0.0, found.upper - found.rounding)) if found.rounding else 0.0
        return Leakage(
            value=value,
            lower=min(lower, value),
            scale=scale,
            witness=witness,
            rounding=charged,
            measure=self,
            mu=everywhere,
            coupled=float(coupled),
        )


LAPLACE = Measure()
"""Laplace noise, reported as a pure ε."""


_ROUNDED_AWAY = 1e-6  # of a leakage: what rounding may cost an exact one


@dataclass(frozen=True, kw_only=True)
class Leakage:
    """Worst-case leakage at one scale: a certified bracket and who attains its lower end."""

    value: float
    """Certified upper bound on the leakage, in floating point too: decide with this one."""
    lower: float
    """Certified lower bound, attained by the witness."""
    scale: float | tuple[float, ...]
    """The scale it holds for, λ of Laplace noise or σ of Gaussian; one per query for a list."""
    witness: Witness | None
    """Adversary, secrets and output that attain `lower`; None if nobody has two secrets."""
    rounding: float = 0.0
    """The part of `value` charged because a real answer is rounded to a float before noise."""
    measure: Measure = LAPLACE
    """What noise it is about, and what `value` and `lower` are measured in."""
    mu: float | None = None
    """For Gaussian noise, a μ that nobody exceeds at any δ, whatever the unit; None for Laplace
    noise. Exact for Gaussian values; an upper bound from a coupling for tables, groups, chains and
    networks, where `value` at one δ can be far better."""
    coupled: float | None = None
    """For Gaussian noise, the bound from a coupling alone: `mu`, or less at one δ, where a trace of
    mass may be left out and charged. It represents an ε as `mu` does."""

    @property
    def unit(self) -> Unit:
        """What `value` and `lower` are: ``epsilon``, ``mu`` or ``rho``."""
        return self.measure.unit

    def epsilon(self, delta: float) -> float:
        """Return an ε for which the release is (ε, δ)-private, rounded up.

        The pure ε of Laplace noise holds at any δ; for Gaussian noise at δ = 0 it is infinite. This
        is a claim about noise as it is drawn. A claim of μ or ρ is about Gaussian noise rounded to
        the grid that floats lie on, which nobody can distinguish from what is drawn.
        """
        check_number(delta, "delta", error=PdpError)
        if not 0 <= delta < 1:
            raise PdpError(f"delta must be at least 0 and below 1, got {delta}.")
        if self.mu is None:
            return self.value
        scales = self.scale if isinstance(self.scale, tuple) else (self.scale,)
        return gaussian_dp.epsilon_of_drawn(self.mu, float(delta), scales)

    @property
    def exact(self) -> bool:
        """Whether `value` and `lower` agree to 1e-9 relative (or to 1e-11, near zero).

        This ignores a charge for rounding the answer to a float, up to 1e-6 of the value: whether
        rounding ever helps an adversary is not known, so the charge stays in `value`.
        """
        forgiven = min(self.rounding, _ROUNDED_AWAY * self.value)
        return self.value - forgiven - self.lower <= max(1e-9 * self.value, 1e-11)

    def to_dict(self) -> dict[str, Any]:
        """Describe the bracket for JSON."""
        witness = None if self.witness is None else self.witness.to_dict()
        described = {"value": self.value, "lower": self.lower, "witness": witness}
        if self.mu is None:
            return described
        delta = {"delta": self.measure.delta} if self.unit == "epsilon" else {}
        return described | {"unit": self.unit, "mu": self.mu, **delta}

    @property
    def bracket(self) -> str:
        """The value, or both ends where they differ."""
        return f"{self.value:.6g}" if self.exact else f"{self.lower:.6g} … {self.value:.6g}"

    @property
    def _in_unit(self) -> str:
        if self.mu is None:
            return ""
        return (
            f" epsilon, delta {self.measure.delta:g},"
            if self.unit == "epsilon"
            else f" {self.unit}"
        )

    @property
    def _at(self) -> str:
        scales = self.scale if isinstance(self.scale, tuple) else (self.scale,)
        return ", ".join(f"{scale:.6g}" for scale in scales)

    def __repr__(self) -> str:
        return f"Leakage({self.bracket}{self._in_unit} at scale {self._at}, {self.witness})"

    def _repr_html_(self) -> str:
        rows: list[tuple[str, object]] = [
            ("leakage", f"{self.bracket}{self._in_unit}"),
            ("at scale σ" if self.mu is not None else "at scale λ", self._at),
        ]
        witness = self.witness
        if witness is not None and witness.model.provenance != "private":
            rows += [
                ("worst adversary attacks", witness.target),
                ("and knows", f"{len(witness.known)} other entries"),
                ("telling apart", " and ".join(map(str, witness.secrets))),
            ]
        return card("Leakage", rows)


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
    """Whether independent tuples outside stay unknown and add further noise to the answer.

    Ignoring them is the sound direction: the upper end stays an upper end. In the tails r → ±∞
    their factor cancels from every ratio, so the tails give the lower end.
    """
    index: int | None = None
    """Position of the model in its ModelSet."""
    block: Block | None = None
    """Where the tuples stand among independent others, of which the adversaries may know some."""
    measure: Measure = LAPLACE
    """What noise is added to the answer, and what is asked about it.

    Brackets are of ε for Laplace noise, and on the scale of μ for Gaussian noise.
    """
    line: Line | None = None
    """The answer behind `contributions`, where several numbers of it are one number in truth."""

    def along_line(self) -> Problem:
        """Return the same problem about one number, where all numbers of the answer are one."""
        if self.model.is_continuous or self.model.is_endless:
            return self
        line = self.contributions.line(euclidean=self.measure.noise == "gaussian")
        if line is None:
            return self
        return dataclasses.replace(self, contributions=line.contributions, line=line)

    def on_answer(self, bracket: Bracket) -> Bracket:
        """Return a bracket whose witness sees the whole answer, not a place on its line."""
        witness = bracket.witness
        if self.line is None or witness is None:
            return bracket
        output = self.line.answer(cast("float", witness.output))
        return dataclasses.replace(bracket, witness=dataclasses.replace(witness, output=output))

    def group_bound(self, scale: float) -> float:
        """Return the range of the whole answer in units of the noise, rounded up.

        It bounds the leakage for every law of discrete tuples; an unclamped Gaussian can leak more.
        """
        if self.model.is_continuous or self.model.is_endless:
            return math.inf
        return self.contributions.total_range() / scale * ROUND_UP

    @functools.cached_property
    def engine(self) -> Engine:
        """The engine that searches it, made once for all scales."""
        return engine_of(self)

    def nobody(self) -> Bracket:
        """Return a bracket of 0: nothing found yet, or no tuple with two possible secrets."""
        target = self.knowledge.targets[0]
        return Bracket(
            upper=0.0, lower=0.0, witness=None, target=target, unknown=(), everywhere=0.0
        )

    def plain_dp(self, target: int, scale: float, others: Mapping[int, int]) -> Bracket:
        """Evaluate the adversary who knows all others: plain DP, LS_i/λ, whatever θ is.

        A tuple with one possible value has no two secrets. With Gaussian noise, the witness's
        output lies far out, where it reveals most.
        """
        answers = self.contributions.values[target][:, 0]
        if len(answers) < 2:
            return dataclasses.replace(self.nobody(), target=target)
        secrets = int(answers.argmax()), int(answers.argmin())
        if secrets[0] == secrets[1]:  # all add the same
            secrets = 0, 1
        leak = float(answers.max() - answers.min()) / scale
        known = {position: value for position, value in others.items() if position != target}
        moved = math.inf if self.measure.noise == "gaussian" else float(answers.max())
        return Bracket(
            upper=leak * ROUND_UP,
            lower=leak * ROUND_DOWN,
            witness=self.witness_at(target, known, secrets, moved),
            target=target,
            unknown=(),
            everywhere=leak * ROUND_UP,
        )

    def witness_at(
        self, target: int, known: Mapping[int, int], secrets: tuple[int, int], moved: float
    ) -> Witness:
        """Build a witness; `moved` is what target and unknown tuples add, ±inf for a limit."""
        values = self.contributions.values
        fixed = math.fsum(values[position][value, 0] for position, value in known.items())
        return self.witness(target, known, secrets, float(fixed + moved))

    def witness(
        self, target: int, known: Mapping[int, int], secrets: tuple[int, int], output: Output
    ) -> Witness:
        """Translate positions and indices into names and values."""
        names, domains = self.names, self.model.domains
        return Witness(
            target=names[target],
            known={names[position]: domains[position][value] for position, value in known.items()},
            secrets=(domains[target][secrets[0]], domains[target][secrets[1]]),
            output=output,
            model=self.model,
            index=self.index,
        )

    def seen_from_outside(self, found: Bracket) -> Bracket:
        """Add to the witness what its adversary knows of other blocks: as little as is admitted.

        All of them, where the adversaries may know them: unknown tuples there would add noise.
        """
        block, witness = self.block, found.witness
        if block is None or witness is None or witness.outside or witness.copies:
            return found
        names, copies = block.known(len(witness.known), some_unknown=self.hidden_noise)
        if not names and not copies:
            return found
        witness = dataclasses.replace(witness, outside=names, copies=copies)
        return dataclasses.replace(found, witness=witness)

    @property
    def admits_strongest(self) -> bool:
        """Whether some adversary knows everyone else, and what lies outside too."""
        return self.knowledge.admits_strongest and not self.hidden_noise

    def against(self, knowledge: Knowledge) -> Problem:
        """Return the same problem against other adversaries.

        Its engine reuses what this one's has prepared, where it can.
        """
        other = dataclasses.replace(self, knowledge=knowledge)
        engine = self.engine.against(other)
        if engine is not None:
            other.__dict__["engine"] = engine  # where the property keeps it
        return other

    def extremes(self) -> list[Problem]:
        """Return the same problem against those who know nothing, and those who know all others."""
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
    """When a search may stop early; its bracket is then wider, and still sound."""

    incumbent: float = 0.0
    """Adversaries who cannot learn more than this need not be distinguished."""
    enough: float = math.inf
    """A long search may stop, with a wide bracket, once somebody is found to leak more."""
    deadline: float = math.inf
    """Value of `time.monotonic()` after which the remaining cases are bounded, not searched."""
    rounding: float = 0.0
    """How far the answers under two secrets may be off, both together, for an engine that charges
    it itself."""
    upper_only: bool = False
    """Whether only the upper end is asked for: see `Engine.searches_below`."""

    def above(self, leakage: float) -> Limits:
        """Return these limits with a larger incumbent, once somebody leaks this much."""
        return dataclasses.replace(self, incumbent=max(self.incumbent, leakage))


class Engine(abc.ABC):
    """Searches one problem, at many scales.

    Everything that does not depend on the scale is done once, when the engine is made.
    """

    charges_rounding: ClassVar[bool] = False
    """Whether its brackets already include the cost of answers off by `Limits.rounding`.

    Otherwise they cost rounding/scale, in ε and in μ alike: an answer moved by r is r/σ-GDP from
    the exact one, and by the trade-off functions of Gaussians such distances add up. A μ that
    represents an ε at one δ does not grow like that.
    """
    climbs: bool = False
    """Whether a full search takes long, so that searching single neighbours first is worthwhile.

    Calibration then looks for a worse adversary among the neighbours of the one found, who know one
    tuple more or fewer, before it searches everyone again.
    """
    searches_below: ClassVar[bool] = False
    """Whether its lower end takes work of its own, left out where only the upper one is asked for.
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
        rounding: float = 0.0,
        upper_only: bool = False,
    ) -> Bracket:
        """Find the worst adversary at one scale; see `Limits` for the rest."""
        return self.search(scale, Limits(incumbent, enough, deadline, rounding, upper_only))

    def against(self, problem: Problem) -> Engine | None:
        """Return an engine for the same model and answers against the adversaries of `problem`.

        It reuses what this one has prepared; None where nothing can be reused.
        """
        del problem
        return None

    def bounds_at_once(self, scale: float, *, beyond: int) -> FloatArray | None:
        """Bound what is learned about each tuple without searches; None where they are better.

        They are better up to `beyond` tuples if they are exact, and where nothing else is known.
        """
        del scale, beyond
        return None


@functools.cache
def _loaded(named: str) -> object:
    """Import what ``"module:Class"`` names."""
    module, _, name = named.partition(":")
    return getattr(import_module(module), name)


def engine_of(problem: Problem) -> Engine:
    """Make the engine that the problem's model names for its noise."""
    family = type(problem.model)
    gaussian = problem.measure.noise == "gaussian"
    found = problem.model.gaussian_noise_engine if gaussian else problem.model.engine
    if found is None and gaussian:
        raise UnsupportedQueryError(
            f"Gaussian noise is not calibrated for {family.__name__}: use noise='laplace'."
        )
    if isinstance(found, str):
        found = cast("type[Engine]", _loaded(found))
    if found is None:
        raise ModelError(f"there is no engine for {type(problem.model).__name__}.")
    return found(problem)


def worst(
    problems: Sequence[Problem],
    scale: float,
    *,
    rounding: float = 0.0,
    incumbent: float = 0.0,
    enough: float = math.inf,
    deadline: float,
    upper_only: bool = False,
) -> tuple[Bracket, Problem]:
    """Search all problems, each with the worst found so far as its incumbent.

    Both ends are about exact contributions: what rounding them to floats may change is charged. If
    the answer before noise may be off by `rounding`, the upper end covers that too. Searches that
    can stop early do so once somebody is found to leak more than `enough`. With `upper_only` the
    lower end may be lower than could be found.
    """
    best: tuple[Bracket, Problem] | None = None
    for problem in problems:
        engine, given = problem.engine, problem.contributions.rounding
        off = given + 2 * rounding
        cost, spent = given / scale, 2 * rounding / scale
        if engine.charges_rounding:
            cost = spent = 0.0
        threshold = max(0.0, (max(incumbent, best[0].upper) if best else incumbent) - cost - spent)
        found = engine.search(scale, Limits(threshold, enough, deadline, off, upper_only))
        if problem.contributions.real:  # a mean's rounded weight: relative, and not on intervals
            cost += 2 * UNIT_ROUNDOFF * found.upper if cost else 0.0
        found = found.at_most_everywhere(problem.group_bound(scale))
        found = found.widened(cost).with_rounding(spent)
        if best is None or not found.is_within(best[0]):  # its witness may be the one returned
            found = problem.seen_from_outside(problem.on_answer(found))
        if best is None:
            best = found, problem
        else:
            worse = problem if found.upper > best[0].upper else best[1]
            best = best[0].or_worse(found), worse
    if best is None:
        raise UnsupportedQueryError("no adversary of the set attacks any tuple of the model.")
    return best


def split(
    model: Model,
    contributions: Contributions,
    adversaries: Adversaries,
    *,
    expand: bool = True,
    measure: Measure = LAPLACE,
) -> list[Problem]:
    """Return problems whose largest leakage is the leakage of the whole.

    Without `expand`, independent blocks are never written out as one table: unknown tuples outside
    a block are dropped, which leaves an upper bound.
    """
    if measure.noise == "gaussian" and not (model.is_continuous or model.is_endless):
        furthest = contributions.total_range()
        if furthest and not 1e-140 <= furthest <= 1e140:  # squares would vanish, or overflow
            raise UnsupportedQueryError(
                f"the answer moves by {furthest:.3g}, which cannot be squared: state the values in"
                " another unit, or use Laplace noise."
            )
    whole = Problem(
        model=model,
        contributions=contributions.apart if measure.noise == "gaussian" else contributions,
        knowledge=adversaries.resolve(model),
        names=model.names,
        measure=measure,
    )
    return [part.along_line() for part in model.parts_of(whole, expand=expand)]


@dataclass(frozen=True, kw_only=True)
class Releases:
    """What was released about one block."""

    problem: Problem
    """Contributions in units of the noise, repeated queries as one; nothing if too many."""
    is_searched: bool = False
    """Whether an exact search of all answers may be tried."""
    budgets: FloatArray | None
    """Budgets per tuple, where there are too many contributions; otherwise None."""
    dp_epsilon: float
    """The plain-DP budget of whatever else was released."""
    threshold: float | None = None
    """If given, only whether the bound exceeds this matters."""

    @property
    def tuple_budgets(self) -> FloatArray:
        """How far each tuple alone can move the likelihood."""
        ranges = self.budgets
        if ranges is None:
            ranges = self.problem.contributions.tuple_ranges()
        return np.asarray((ranges + self.dp_epsilon) * ROUND_UP)

    @property
    def is_alike(self) -> bool:
        """Whether every tuple adds the same to the answers."""
        values = self.problem.contributions.values
        same = bool(values) and all(np.array_equal(one, values[0]) for one in values)
        return same and self.budgets is None


class Composer:
    """Bounds on several releases that hold for any family; those of single families are None."""

    def is_searchable(self, problem: Problem) -> bool:
        """Whether an exact search of the joint answer is within reach."""
        return problem.contributions.coordinates == 1

    def is_bounded(self, problem: Problem) -> bool:
        """Whether tuples move the answers by no more than their ranges say."""
        return not problem.model.is_continuous or problem.contributions.clamped

    def moved_tuples(self, problem: Problem) -> int:
        """Return how many tuples can differ between two databases of one adversary."""
        known = problem.knowledge.known
        return problem.knowledge.total - (problem.knowledge.fewest if known is None else len(known))

    def shifted(self, releases: Releases, deadline: float) -> float | None:
        """Return the smallest possible bound, where unknown tuples move by a fixed shift."""

    def forgotten(self, releases: Releases, deadline: float) -> float | None:
        """Bound all releases by the budgets of single tuples, which count less with each step."""

    def counted(self, releases: Releases, deadline: float) -> float | None:
        """Bound by counting: only how many tuples hold each value matters."""

    def for_ever(self, model: Model, dp_epsilon: float) -> float:
        """Bound the leakage about any step of an endless model if every step has this budget."""
        del dp_epsilon
        raise UnsupportedQueryError(f"{model!r} has an end.")

    def budget_for_ever(self, model: Model, epsilon: float) -> float | None:
        """Return the budget per step that keeps ε for ever; None where the model has an end."""

    def is_counted_exactly(self, releases: Releases) -> bool:
        """Whether the dual program of the family's table is the same as `counted`."""
        del releases
        return False


def composer_of(model: Model) -> Composer:
    """Return the bounds of the model's family on several releases."""
    found = model.composer
    if isinstance(found, str):
        found = cast("type[Composer]", _loaded(found))
    return Composer() if found is None else found()
