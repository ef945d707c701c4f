"""From ε, or from a wanted accuracy, to proved scales; and how they depend on the assumptions."""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypedDict, Unpack, cast, overload

import pandas as pd

from pdp_calibrate.arrays import (
    check_number,
    checked_epsilon,
    checked_positive,
    checked_scale,
    checked_share,
    deadline_after,
)
from pdp_calibrate.calibration.certificate import certified
from pdp_calibrate.calibration.result import (
    AnyCalibration,
    Calibration,
    SeveralNumbers,
    SeveralQueries,
)
from pdp_calibrate.calibration.solve import (
    certified_leakage,
    certified_scale,
    keeps,
    proved,
    rounding_error,
    scaled_rounding,
)
from pdp_calibrate.core import gaussian_dp
from pdp_calibrate.core.accuracy import count_for, scale_within
from pdp_calibrate.core.adversary import EVERYONE, Adversaries
from pdp_calibrate.core.contributions import Contributions
from pdp_calibrate.core.model import Model, warn_if_private
from pdp_calibrate.core.noise import Noise, checked_noise
from pdp_calibrate.core.numbers import width as two_digits
from pdp_calibrate.core.problem import LAPLACE, Leakage, Measure, split
from pdp_calibrate.core.query import Query, checked_queries, frozen, lower
from pdp_calibrate.errors import CalibrationError, ModelFitWarning, PdpError, QueryError

_MAXIMAL_STEPS = 60

LARGE_EPSILON = 20.0
"""The most that an accuracy may cost unless that is allowed: odds of e²⁰ are certainty."""

_DEFAULT_EPSILON = float("1")  # an object of its own: mu= beside epsilon=1.0 is refused


class CalibrationOptions(TypedDict, total=False):
    """The options of `calibrate` besides the model, the queries and their shares."""

    epsilon: float
    adversaries: Adversaries | None
    rows: int
    time_limit: float | None
    noise: Noise
    delta: float | None
    mu: float | None
    rho: float | None
    certificate: bool


@overload
def calibrate(
    model: Model, query: Query, *, shares: None = None, **options: Unpack[CalibrationOptions]
) -> Calibration: ...


@overload
def calibrate(
    model: Model,
    query: Sequence[Query],
    *,
    shares: Sequence[float] | None = None,
    **options: Unpack[CalibrationOptions],
) -> Calibration[SeveralQueries, SeveralNumbers]: ...


def calibrate(
    model: Model,
    query: Query | Sequence[Query],
    *,
    epsilon: float = _DEFAULT_EPSILON,
    adversaries: Adversaries | None = None,
    shares: Sequence[float] | None = None,
    rows: int = 1,
    time_limit: float | None = None,
    noise: Noise = "laplace",
    delta: float | None = None,
    mu: float | None = None,
    rho: float | None = None,
    certificate: bool = False,
) -> AnyCalibration:
    """Find the smallest scale of noise at which no admitted adversary learns more than ε.

    Parameters
    ----------
    model
        How the tuples are correlated: θ, or a set Θ of which the worst member counts.
    query
        What will be released, once; a list is released together, under one ε. A second release
        of the same data leaks more.
    epsilon
        Nobody's log-odds about any two values of anyone's tuple may move by more than this; 1 by
        default.
    adversaries
        Who may attack; everyone by default, which implies plain ε-DP too.
    shares
        For a list, how the ε is divided: query m gets scale t·GS_m/share_m with one t for all.
        Equal shares by default.
    rows
        Number of independent rows that one answer is about; a mean divides by it.
    time_limit
        Seconds after which a larger, still proved scale is returned.
    noise
        ``"laplace"``, or ``"gaussian"`` for models of Gaussian values.
    delta
        For Gaussian noise: the δ of (ε, δ). It is never 0, so it has no default.
    mu, rho
        For Gaussian noise, in place of ε: the μ of Gaussian differential privacy, or the ρ of zCDP.
        The calibration then reports the ε that holds at `delta`, 1e-6 by default.
    certificate
        Whether to store what the stand-alone checker (``pdp-calibrate check``) needs to prove it:
        empty for most models, trees of bounds for a `Gaussian` of more than 13 tuples, orders for a
        `JointTable` of more than 4,096 cells (of more than 10,000 no cell is in the file).

    Returns
    -------
    Calibration
        With ``leakage.value <= epsilon`` at exactly ``scale``. Where the engine is exact, a scale
        smaller by a millionth leaks more than ε. For a list, `query` and `scale` are tuples.

    Raises
    ------
    CalibrationError
        If no scale can be certified, or if any scale would be enough.

    Examples
    --------
    >>> import pdp_calibrate as pdp
    >>> table = pdp.JointTable(probabilities=[[0.3, 0.2], [0.2, 0.3]], domains=[[0, 1], [0, 1]])
    >>> cal = pdp.calibrate(table, pdp.Sum(), epsilon=1.0)
    >>> round(cal.scale, 4), cal.baselines["dp"], cal.baselines["group"]
    (1.1894, 1.0, 2.0)
    >>> home = pdp.GaussianGroup(size=4, correlation=0.4, bounds=(0, 4), variance=1.0)
    >>> cal = pdp.calibrate(home, pdp.Sum(), noise="gaussian", epsilon=1.0, delta=1e-6)
    >>> round(cal.scale, 4), round(cal.mu, 6)
    (37.1239, 0.236704)
    """
    target = _Target.of(noise, epsilon=epsilon, delta=delta, mu=mu, rho=rho)
    warn_if_private(model, "scale")
    everyone = EVERYONE if adversaries is None else adversaries
    deadline = deadline_after(time_limit)
    if isinstance(query, Query):
        if shares is not None:
            raise QueryError("shares divide ε among a list of queries; this is a single one.")
        fixed: Any = frozen(query, model)
        parts: tuple[Contributions, ...] = (lower(fixed, model, rows=rows),)
        scale, leakage = _single_scale(model, parts[0], everyone, target, rows, deadline)
    else:
        fixed = tuple(frozen(one, model) for one in checked_queries(query))
        parts = tuple(lower(one, model, rows=rows) for one in fixed)
        units = _units(parts, shares)
        scale, leakage = _joint_scales(model, parts, units, everyone, target, rows, deadline)
    found: AnyCalibration = Calibration(
        model=model,
        query=fixed,
        adversaries=everyone,
        epsilon=target.epsilon,
        scale=scale,
        leakage=leakage,
        noise=target.measure.noise,
        delta=target.measure.delta,
        mu=target.claimed_mu(leakage),
        rows=int(rows),
        contributions=parts,
    )
    warn_of_point(found)
    return certified(found) if certificate else found


_SHORT = 1.1  # times ε: what the scale of a point may leak under the set around it, without a word


def warn_of_point(calibration: AnyCalibration) -> None:
    """Warn where the scale of a point estimate leaks far more under the set that covers its error.

    Rows are public then: of private ones what is said would depend on them.
    """
    model, covering = calibration.model, calibration.model.covering
    if covering is None or model.provenance == "private":
        return
    wide = dataclasses.replace(calibration, model=covering, contributions=(), certificate=None)
    worst = leakage_of(wide).value
    if worst <= _SHORT * calibration.epsilon:
        return
    asked: dict[str, Any] = {} if calibration.noise == "laplace" else {"delta": calibration.delta}
    if len(wide.queries) > 1:  # the same proportions
        asked["shares"] = [
            float(part.tuple_ranges().max()) / scale
            for part, scale in zip(wide.contributions, wide.scales, strict=True)
        ]
    covered = calibrate(
        covering,
        cast("Any", calibration.query),
        epsilon=calibration.epsilon,
        adversaries=calibration.adversaries,
        rows=calibration.rows,
        noise=calibration.noise,
        **asked,
    )
    warnings.warn(
        "the model is a point estimate, whose error is not covered: under the set that covers it,"
        f" this scale leaks up to {worst:.4g} where epsilon = {calibration.epsilon:.4g} was asked"
        f" for. Scale {', '.join(f'{scale:.6g}' for scale in covered.scales)} covers it: learn with"
        " confidence=.",
        ModelFitWarning,
        stacklevel=3,
    )


_REPORTED_DELTA = 1e-6  # at which ε is reported where μ or ρ was asked for
_BELOW = 1 - 1e-12  # of μ: what is left for the rounding of its ε


@dataclass(frozen=True, kw_only=True)
class _Target:
    """What a calibration has to keep."""

    measure: Measure
    """What the calibration says: ε, at a δ for Gaussian noise."""
    epsilon: float
    """The ε that nobody may exceed."""
    level: float
    """The level that searches compare with: ε, or for Gaussian noise the μ that represents it."""
    mu: float | None = None
    """The μ that nobody may exceed at any δ, where that was asked for."""

    @property
    def searched(self) -> Measure:
        """What engines are asked about."""
        return self.measure if self.mu is None else self.measure.everywhere

    def claimed_mu(self, leakage: Leakage) -> float | None:
        """Return the μ that a calibration of this leakage claims, slightly raised for rounding."""
        if leakage.mu is None or self.mu is not None:
            return self.mu
        return max(self.level / _BELOW, leakage.mu * (1 + 1e-9))

    @classmethod
    def of(
        cls,
        noise: Noise,
        *,
        epsilon: float,
        delta: float | None,
        mu: float | None,
        rho: float | None,
    ) -> _Target:
        """Check what was asked for."""
        if noise == "laplace":
            if not delta is mu is rho is None:
                raise PdpError("delta=, mu= and rho= are about noise='gaussian'.")
            wanted = checked_epsilon(epsilon)
            return cls(measure=LAPLACE, epsilon=wanted, level=wanted)
        checked_noise(noise)
        if (epsilon is not _DEFAULT_EPSILON) + (mu is not None) + (rho is not None) > 1:
            raise PdpError("give one of epsilon=, mu= and rho=.")
        if mu is None and rho is None:
            if delta is None:
                raise PdpError(
                    "Gaussian noise never keeps epsilon with certainty: give delta= too, far below"
                    " one over the number of people; or mu= or rho= in place of epsilon."
                )
            measure = Measure.of(noise, delta=delta)
            wanted = checked_epsilon(epsilon)
            level = gaussian_dp.mu_for_drawn(wanted, measure.delta)
        else:
            measure = Measure.of(noise, delta=_REPORTED_DELTA if delta is None else delta)
            level = (
                gaussian_dp.mu_of_rho(checked_positive(rho, "rho", error=PdpError))
                if mu is None
                else checked_positive(mu, "mu", error=PdpError)
            )
            wanted = gaussian_dp.epsilon_of(level, measure.delta * (1 - 1e-9))
            if wanted == 0:
                raise PdpError(
                    f"mu = {level:.6g} keeps epsilon = 0 at delta = {measure.delta:g}: choose a"
                    " smaller delta."
                )
            if math.isinf(wanted):
                raise PdpError(f"mu = {level:.6g} keeps no epsilon that a float can hold.")
        if level <= 0:
            raise CalibrationError(f"no mu above 0 keeps epsilon = {wanted}, delta = {delta}.")
        asked = None if mu is None and rho is None else level
        return cls(measure=measure, epsilon=wanted, level=level * _BELOW, mu=asked)


def _single_scale(
    model: Model,
    part: Contributions,
    adversaries: Adversaries,
    target: _Target,
    rows: int,
    deadline: float,
) -> tuple[Any, Leakage]:
    """Return the smallest scale of one answer that keeps the target."""
    problems = split(model, part, adversaries, measure=target.searched)
    rounding = rounding_error(part, rows, model)
    scale, found = certified_scale(problems, target.level, rounding=rounding, deadline=deadline)
    return scale, proved(
        target.measure.leakage(found, scale, found.witness), target.epsilon, target.mu
    )


def _joint_scales(
    model: Model,
    parts: Sequence[Contributions],
    units: Sequence[float],
    adversaries: Adversaries,
    target: _Target,
    rows: int,
    deadline: float,
) -> tuple[Any, Leakage]:
    """Return the scales t·unit with the smallest common factor t that keeps the target."""
    measure = target.measure
    joined = split(model, Contributions.joined(parts, units), adversaries, measure=target.searched)
    rounding = scaled_rounding(model, parts, units, rows)
    factor, _ = certified_scale(joined, target.level, rounding=rounding, deadline=deadline)
    step = 1e-13
    for _ in range(_MAXIMAL_STEPS):
        scales = tuple(factor * unit for unit in units)  # products are rounded, so proved again
        leakage = certified_leakage(
            model, parts, scales, adversaries, rows=rows, deadline=deadline, measure=measure
        )
        if keeps(leakage, target.epsilon, target.mu):
            return scales, leakage
        factor, step = factor * (1 + step), 2 * step
    raise CalibrationError(f"no scales could be certified for epsilon = {target.epsilon}.")


def _units(parts: Sequence[Contributions], shares: Sequence[float] | None) -> list[float]:
    """Return GS_m/share_m of every query: what its scale is a multiple of."""
    local = [float(part.tuple_ranges().max()) for part in parts]
    if min(local) == 0:
        raise QueryError("a query in the list gives the same answer whatever the data are.")
    if shares is None:
        return [range_ / (1 / len(parts)) for range_ in local]
    for share in shares:
        check_number(share, "a share", error=PdpError)
    found = [float(share) for share in shares]
    if len(found) != len(parts) or not all(0 < share < math.inf for share in found):
        raise PdpError(f"shares must be one positive number per query ({len(parts)}).")
    return [range_ / (share / sum(found)) for range_, share in zip(local, found, strict=True)]


def calibrate_to_accuracy(
    model: Model,
    query: Query,
    *,
    half_width: float,
    alpha: float = 0.05,
    adversaries: Adversaries | None = None,
    rows: int = 1,
    time_limit: float | None = None,
    noise: Noise = "laplace",
    delta: float | None = None,
    count: float | None = None,
    allow_large_epsilon: bool = False,
) -> Calibration:
    """Choose the scale for a wanted accuracy, and return the ε that it costs.

    Parameters
    ----------
    model, query, adversaries, rows, time_limit
        As in `calibrate`.
    half_width
        The error of the answer, in its own unit, may exceed this only with probability alpha.
    alpha
        That probability.
    noise, delta
        As in `calibrate`: for Gaussian noise, ε is reported at this δ.
    count
        For a mean over a secret number of rows (a condition on a secret column, or missing values),
        about how many rows are expected to count: its accuracy depends on that.
    allow_large_epsilon
        Whether an ε above 20 may be the price. Odds of e²⁰ are certainty: noise of that scale
        protects nobody, so a wanted accuracy that needs it is refused otherwise.

    Returns
    -------
    Calibration
        Whose ``epsilon`` is the certified leakage at that scale, and whose ``accuracy()`` is at
        most what was wanted.

    Raises
    ------
    CalibrationError
        If the accuracy costs an ε above 20; the message says which accuracy ε = 20 gives.

    Examples
    --------
    >>> import pdp_calibrate as pdp
    >>> table = pdp.JointTable(probabilities=[[0.3, 0.2], [0.2, 0.3]], domains=[[0, 1], [0, 1]])
    >>> cal = pdp.calibrate_to_accuracy(table, pdp.Sum(), half_width=10)
    >>> cal.accuracy(alpha=0.05), round(cal.epsilon, 4)
    (10.0, 0.3409)
    """
    checked_positive(half_width, "half_width", error=PdpError)
    checked_share(alpha, "alpha", error=PdpError)
    measure = Measure.of(noise, unit="epsilon", delta=delta)
    warn_if_private(model, "scale")
    everyone = EVERYONE if adversaries is None else adversaries
    fixed = frozen(_checked_single(query), model)
    contributions = lower(fixed, model, rows=rows)
    expected = count_for([fixed], count)
    scale = scale_within(
        fixed, contributions, half_width, alpha=alpha, noise=measure.noise, count=expected
    )
    leakage = certified_leakage(
        model,
        [contributions],
        [scale],
        everyone,
        rows=rows,
        deadline=deadline_after(time_limit),
        measure=measure,
    )
    if leakage.value <= 0:
        raise CalibrationError("the answer tells these adversaries nothing: it costs no epsilon.")
    found: Calibration = Calibration(
        model=model,
        query=fixed,
        adversaries=everyone,
        epsilon=leakage.value,
        scale=scale,
        leakage=leakage,
        noise=measure.noise,
        delta=measure.delta,
        mu=leakage.mu,
        rows=int(rows),
        contributions=(contributions,),
        count=expected,
    )
    if found.epsilon > LARGE_EPSILON and not allow_large_epsilon:
        _refuse_large(found, half_width, alpha, time_limit)
    warn_of_point(found)
    return found


def _refuse_large(
    found: Calibration, half_width: float, alpha: float, time_limit: float | None
) -> NoReturn:
    """Refuse an accuracy that costs an ε which protects nobody; say what the largest ε gives."""
    largest = calibrate(
        found.model,
        found.query,
        epsilon=LARGE_EPSILON,
        adversaries=found.adversaries,
        rows=found.rows,
        time_limit=time_limit,
        noise=found.noise,
        delta=found.delta or None,
    )
    reached = largest.half_widths(alpha=alpha, count=found.count)[0]
    raise CalibrationError(
        f"an accuracy of ±{half_width:.6g} costs epsilon = {found.epsilon:.6g}, and more than"
        f" {LARGE_EPSILON:g} protects nobody: epsilon = {LARGE_EPSILON:g} gives"
        f" ±{two_digits(reached)}. Ask for less, or allow it: allow_large_epsilon=True,"
        " --allow-large-epsilon, or the box on the page."
    )


def verify(calibration: AnyCalibration) -> Leakage:
    """Prove a calibration again, from its model, what it releases and its scales alone.

    Returns the leakage at its scales; raises `CalibrationError` if that is above its ε.
    """
    leakage = leakage_of(calibration)
    return proved(leakage, checked_epsilon(calibration.epsilon), calibration.mu)


def leakage_of(calibration: AnyCalibration, *, deadline: float = math.inf) -> Leakage:
    """Return what a calibration leaks at its scales, whatever its ε says."""
    return certified_leakage(
        calibration.model,
        calibration.contributions,
        calibration.scales,
        calibration.adversaries,
        rows=calibration.rows,
        measure=calibration.measure,
        deadline=deadline,
    )


def _checked_single(query: object) -> Query:
    if not isinstance(query, Query):
        raise PdpError(f"a single query such as Sum() is needed, got {type(query).__name__}.")
    return query


@dataclass(frozen=True, kw_only=True, repr=False)
class SensitivityCurve:
    """The scale that each assumption needs, and what one fixed scale leaks under each."""

    parameter: str
    """What is varied."""
    values: tuple[Any, ...]
    """The assumptions, in the order given."""
    scales: tuple[float, ...]
    """For each of them, the calibrated Laplace scale λ."""
    leakages: tuple[float, ...]
    """For each of them, the certified leakage of noise of `reference_scale`."""
    epsilon: float
    """The leakage that each scale keeps."""
    reference_scale: float
    """One scale, whatever the assumption: by default the smallest on the curve."""
    unit: str = "units of the answer"
    """What scales are measured in, in words."""

    def to_frame(self) -> pd.DataFrame:
        """Return a row per assumption, with columns for it, ``scale`` and ``leakage``."""
        return pd.DataFrame(
            {
                self.parameter: list(self.values),
                "scale": list(self.scales),
                "leakage": list(self.leakages),
            }
        )

    def __repr__(self) -> str:
        first, last = self.values[0], self.values[-1]
        return (
            f"SensitivityCurve({self.parameter} {first} … {last}: scale {min(self.scales):.4g} to"
            f" {max(self.scales):.4g} for epsilon {self.epsilon:.4g}; at scale"
            f" {self.reference_scale:.4g} up to {max(self.leakages):.4g} leaks)"
        )


def sensitivity_curve(
    model_family: Callable[[Any], Model],
    query: Query,
    *,
    values: Iterable[Any],
    epsilon: float = 1.0,
    parameter: str = "parameter",
    reference_scale: float | None = None,
    adversaries: Adversaries | None = None,
    rows: int = 1,
    time_limit: float | None = None,
) -> SensitivityCurve:
    """Calibrate the same query under several assumptions: correlation, group size, confidence.

    Parameters
    ----------
    model_family
        Gives the model for each value.
    query
        What is to be released.
    values
        The assumptions to compare; at least one.
    epsilon, adversaries, rows
        As in `calibrate`.
    parameter
        The name of what is varied.
    reference_scale
        The scale whose leakage is shown under every assumption. By default the smallest of the
        calibrated ones: what leaks if noise is set for the mildest assumption but another holds.
    time_limit
        Seconds for each calibration.

    Examples
    --------
    >>> import pdp_calibrate as pdp
    >>> curve = sensitivity_curve(
    ...     lambda rho: pdp.GaussianGroup(size=4, correlation=rho, bounds=(0, 1)),
    ...     pdp.Sum(clamp=True),
    ...     values=[0.0, 0.1, 0.2],
    ...     parameter="correlation",
    ... )
    >>> [round(scale, 3) for scale in curve.scales]
    [1.0, 1.3, 1.6]
    >>> [round(leakage, 3) for leakage in curve.leakages]
    [1.0, 1.3, 1.6]
    """
    assumed = tuple(values)
    if not assumed:
        raise PdpError("values must hold at least one assumption, got none.")
    _checked_single(query)
    if not isinstance(parameter, str) or parameter in ("scale", "leakage"):
        raise PdpError(f"parameter must be a name other than scale and leakage, got {parameter!r}.")
    everyone = EVERYONE if adversaries is None else adversaries
    found = [
        calibrate(
            model_family(value),
            query,
            epsilon=epsilon,
            adversaries=everyone,
            rows=rows,
            time_limit=time_limit,
        )
        for value in assumed
    ]
    scale = (
        min(one.scale for one in found)
        if reference_scale is None
        else checked_scale(reference_scale)
    )
    leakages = tuple(
        one.leakage.value
        if one.scale == scale
        else certified_leakage(
            one.model,
            one.contributions,
            [scale],
            everyone,
            rows=rows,
            deadline=deadline_after(time_limit),
        ).value
        for one in found
    )
    return SensitivityCurve(
        parameter=parameter,
        values=assumed,
        scales=tuple(one.scale for one in found),
        leakages=leakages,
        epsilon=found[0].epsilon,
        reference_scale=scale,
        unit=found[0].scale_units[0],
    )
