"""One call from a frame to a release: what `df.pdp` and the command line do.

A wide frame has a column per tuple and needs a model. A long frame has a row per value; it needs a
model of its groups, or assumptions that make one: the public range of the values and one common
correlation inside a group, or nothing at all, which means group privacy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from pdp_calibrate.calibration.calibrate import calibrate
from pdp_calibrate.calibration.parts import release_part, release_parts
from pdp_calibrate.calibration.result import Calibration, Release
from pdp_calibrate.core.adversary import Adversaries
from pdp_calibrate.core.composite import Blocks
from pdp_calibrate.core.model import Model, checked_domain, checked_model
from pdp_calibrate.core.query import Count, Histogram, Linear, Mean, Query, Sum
from pdp_calibrate.errors import LedgerError, ModelError, PdpError, QueryError
from pdp_calibrate.families.any_dependence import Unknown
from pdp_calibrate.families.chain.model import MarkovChain
from pdp_calibrate.families.exchangeable.model import BinaryGroup, CategoryGroup
from pdp_calibrate.families.gaussian.alike import GaussianGroup, GaussianSeries
from pdp_calibrate.frames.columns import GROUPS, SERIES, check_assumed, declared_values
from pdp_calibrate.frames.counts import group_sizes
from pdp_calibrate.frames.grouped import Part
from pdp_calibrate.frames.long_answers import check_columns, check_sizes, instances_in, read_for
from pdp_calibrate.frames.open import check_roles, rows_in
from pdp_calibrate.frames.order import check_series
from pdp_calibrate.jobs.grammar import Kind
from pdp_calibrate.ledger.ledger import Ledger

_OF_MEMBERS = (BinaryGroup, CategoryGroup, GaussianGroup, GaussianSeries, MarkovChain, Unknown)


@dataclass(frozen=True, kw_only=True)
class Request:
    """What is asked of a frame, and what is known or assumed about it."""

    kind: Kind
    """Which answer."""
    columns: Any = None
    """Wide: the columns that enter, None for all of the model. Long: the column of values."""
    values: Any = None
    """For a count, the values that count; for a histogram, the categories."""
    weights: Any = None
    """For a weighted sum, one weight per column."""
    model: Model | None = None
    """How the tuples are correlated."""
    bounds: tuple[float, float] | None = None
    """Assumed: the public range of the values; they are clamped to it."""
    correlation: float | tuple[float, float] | None = None
    """Assumed: one common correlation in a group, or of neighbours in time, of jointly Gaussian
    values."""
    assume: str | None = None
    """``gaussian`` with a correlation of whole numbers, whose type does not tell codes from
    measurements."""
    domain: Sequence[Hashable] | str | None = None
    """For counts without a model: the values that are possible; see `declared_values`."""
    groups: Hashable | None = None
    """Long: the column that tells groups apart."""
    order_by: Hashable | None = None
    """Long: the column that orders a group."""
    time_format: str | None = None
    """Long: how that column is written where it is text; ISO 8601 by default."""
    max_group_size: int | None = None
    """Long: refuse larger groups."""
    per: Hashable | None = None
    """Long: one answer for each value declared for this column."""
    per_domain: Sequence[Hashable] | str | None = None
    """The values of that column; every one of them is answered for. See `declared_values`."""
    epsilon: float | None = 1.0
    """What nobody may exceed; None for as much as still fits the ledger."""
    adversaries: Adversaries | None = None
    """Who may attack."""
    time_limit: float | None = None
    """Seconds for the search."""
    ledger: Ledger | None = None
    """Where the release is written down; its model and adversaries are the default."""

    def __post_init__(self) -> None:
        if self.assume not in (None, "gaussian"):
            raise QueryError(f"assume can only be 'gaussian', got {self.assume!r}.")
        if self.assume is not None and self.correlation is None:
            raise QueryError("assume= says which law a correlation= is about: give both.")
        if self.time_format is not None and self.order_by is None:
            raise QueryError("time_format= says how the column of order_by= is read: name it.")

    @property
    def is_long(self) -> bool:
        """Whether the frame has a row per value: so it is said, or so the model implies."""
        return (
            self.groups is not None
            or self.order_by is not None
            or (self.model is not None and is_value_column(self.columns, self.model))
        )


@dataclass(frozen=True, kw_only=True)
class Resolved:
    """A request about a frame, in the terms of a model."""

    model: Model
    """The model given, or the one that the assumptions make."""
    query: Query
    """What is asked of its tuples."""
    rows: int
    """Number of independent instances that one answer is about."""


def is_value_column(columns: Any, model: Model) -> bool:
    """Whether the columns can only be the one that holds every member's value, in a long frame."""
    blocks = model.models if isinstance(model, Blocks) else (model,)
    return (
        isinstance(columns, str)
        and columns not in model.names
        and all(isinstance(block, _OF_MEMBERS) for block in blocks)
    )


def release(frame: Any, request: Request) -> Release | dict[Hashable, Release]:
    """Calibrate for the frame and release; one release per part where `per` is given."""
    if request.ledger is not None:
        request = replace(
            request,
            model=request.model or request.ledger.model,
            adversaries=request.adversaries or request.ledger.adversaries,
        )
    if request.model is not None:
        checked_model(request.model)
    if request.per is not None:
        return _release_per(frame, request)
    if request.epsilon is None and request.ledger is not None:
        return release_rest(
            frame,
            resolve(frame, request),
            request.ledger,
            adversaries=request.adversaries,
            **columns_of(request),
        )
    calibration = calibration_for(frame, request)
    return calibration.release(frame, ledger=request.ledger, **columns_of(request))


def release_rest(
    frame: Any,
    asked: Resolved,
    ledger: Ledger,
    *,
    adversaries: Adversaries | None = None,
    **columns: Any,
) -> Release:
    """Release with as little noise as still fits the budget of the ledger.

    Parameters
    ----------
    frame
        What to answer about.
    asked
        The query, and the model that it is about: the ledger's.
    ledger
        Where the rest of the budget is; its adversaries and its time limit hold.
    adversaries
        Refused unless they are the ledger's.
    **columns
        ``value=``, ``by=`` and ``order_by=`` of a long frame, as in `Calibration.release`.
    """
    ledger.check_model(asked.model)
    if adversaries not in (None, ledger.adversaries):
        raise LedgerError(
            f"what still fits is about the ledger's own adversaries, {ledger.adversaries!r}."
        )
    return ledger.release(asked.query, frame, epsilon=None, **columns)


def columns_of(request: Request) -> dict[str, Any]:
    """Return how to read a long frame, as `Calibration.release` takes it; else {}."""
    if not request.is_long:
        return {}
    return {
        "value": request.columns,
        "by": request.groups,
        "order_by": request.order_by,
        "time_format": request.time_format,
    }


def calibration_for(frame: Any, request: Request) -> Calibration:
    """Find the scale for one answer over the whole frame."""
    return _calibrated(request, resolve(frame, request))


def _calibrated(request: Request, asked: Resolved) -> Calibration:
    if request.epsilon is None:
        raise PdpError("epsilon=None means as much as still fits a ledger: give ledger= too.")
    return calibrate(
        asked.model,
        asked.query,
        epsilon=request.epsilon,
        adversaries=request.adversaries,
        rows=asked.rows,
        time_limit=request.time_limit,
    )


def resolve(frame: Any, request: Request) -> Resolved:
    """Settle which model, query and number of rows a request about a frame means."""
    if not request.is_long:
        if request.model is None:
            raise ModelError("a wide frame needs model=; learn one with df.pdp.fit(estimator).")
        return Resolved(model=request.model, query=query_of(request), rows=rows_in(frame))
    return _resolved(_declared(frame, request), group_sizes(frame, request.groups))


def _resolved(request: Request, sizes: Counter[int]) -> Resolved:
    """Settle what a request means for a long frame with groups of these sizes."""
    query = query_of(request)
    if request.max_group_size is not None and max(sizes) > request.max_group_size:
        raise ModelError(
            f"groups may have at most {request.max_group_size} rows, got one of {max(sizes)}."
        )
    if request.model is not None:
        rows = instances_in(sizes, request.model)
        return Resolved(model=request.model, query=query, rows=rows)
    kinds = [_assumed_group(request, size) for size in sorted(sizes)]
    blocks = Blocks(models=kinds, counts=[sizes[size] for size in sorted(sizes)])
    return Resolved(model=blocks, query=query, rows=1)


def query_of(request: Request) -> Query:
    """Return what is asked of the tuples; continuous values are always clamped."""
    over = None if request.is_long else request.columns
    clamp = request.model is None or request.model.is_continuous
    if request.kind == "sum":
        return Sum(over=over, clamp=clamp)
    if request.kind == "mean":
        return Mean(over=over, clamp=clamp)
    if request.kind == "linear":
        if over is None:
            raise QueryError("weights tell columns of a wide frame apart; a long one has one.")
        return Linear(weights=dict(zip(over, request.weights, strict=True)), clamp=clamp)
    if request.kind == "count":
        return Count(values=request.values, over=over)
    return Histogram(categories=request.values, over=over)


def _declared(frame: Any, request: Request) -> Request:
    """Return the request with the values that are possible, having checked its columns.

    What is read are their types and, of a series, its times; never a value.
    """
    check_roles(request.columns, groups=request.groups, order_by=request.order_by)
    if request.model is not None:
        return request
    if not isinstance(request.columns, str):
        raise QueryError("a long frame has one column of values: name it.")
    if request.kind not in ("count", "histogram"):
        if request.correlation is not None:
            _check_correlated(frame, request)
        return request
    if request.bounds is not None or request.correlation is not None:
        raise QueryError(
            "a correlation says nothing about counts: leave bounds= and correlation= out for"
            " group privacy, or give a model= such as BinaryGroup."
        )
    possible = declared_values(frame, request.columns, request.domain, option="domain")
    return replace(request, domain=checked_domain(possible, request.columns))


def _check_correlated(frame: Any, request: Request) -> None:
    """Refuse a correlation for values of discrete type, and times that no series has."""
    _assumed_group(request, 1)  # refuses wrong options before anything is read
    along_time = request.order_by is not None
    check_assumed(
        frame,
        request.columns,
        domain=request.domain,
        assume=request.assume,
        instead=SERIES if along_time else GROUPS,
    )
    if along_time:
        check_series(
            frame,
            request.columns,
            by=request.groups,
            order_by=request.order_by,
            time_format=request.time_format,
        )


def _assumed_group(request: Request, size: int) -> Model:
    """Make a model of one group from what was assumed about it."""
    if request.kind in ("count", "histogram"):
        return Unknown(size=size, domain=cast("Sequence[Hashable]", request.domain))
    if request.bounds is None:
        raise QueryError("say which public range the values have with bounds=(lo, hi).")
    if request.correlation is None:
        return Unknown(size=size, bounds=request.bounds)
    if request.order_by is None:
        return GaussianGroup(size=size, correlation=request.correlation, bounds=request.bounds)
    if not isinstance(request.correlation, int | float):
        raise QueryError("a series needs one correlation of neighbours, not a range.")
    return GaussianSeries(length=size, correlation=request.correlation, bounds=request.bounds)


def _release_per(frame: Any, request: Request) -> dict[Hashable, Release]:
    """Answer for every part: by itself if no group has members in two, together otherwise.

    Everything is read in one query, and every value declared for the column has an answer.
    """
    if not request.is_long:
        raise QueryError("per= answers about parts of a long frame: give groups= too.")
    if request.ledger is not None:
        raise QueryError("a ledger takes one release at a time, not one per part.")
    if request.adversaries is not None and request.adversaries.is_restricted:
        raise QueryError(
            f"to {request.adversaries!r} other groups are noise, and a part has fewer of them than"
            " the frame: per= is for Adversaries.all() or strongest()."
        )
    check_roles(request.columns, per=request.per)
    declared = declared_values(frame, request.per, request.per_domain, option="per_domain")
    labels = checked_domain(declared, request.per)
    asked = _declared(frame, replace(request, per=None))
    if asked.model is not None:
        check_columns(asked.model, frame, **columns_of(asked))
    found = read_for(
        asked.model or _assumed_group(asked, 1),
        frame,
        asked.columns,
        by=asked.groups,
        per=request.per,
        clamp=True,  # as `query_of` has it
    )
    if not set(found.parts) <= set(labels):
        raise ModelError(f"a value of column {request.per} is not among those declared for it.")
    nobody = Part(column=asked.columns)
    parts = {label: found.parts.get(label, nobody) for label in labels}
    if asked.kind == "mean" and (found.crosses or nobody in parts.values()):
        raise QueryError(
            "groups have members in several parts, or a part has none: ask for sums, and divide by"
            " public counts."
        )
    if not found.crosses:
        # Groups are independent, so releases about different ones say nothing of each other.
        return {
            label: release_part(
                _calibrated(asked, _resolved(asked, part.sizes or found.sizes)), part
            )
            for label, part in parts.items()
        }
    whole = _calibrated(asked, _resolved(asked, found.sizes))
    check_sizes(found.sizes, whole.model)
    return release_parts(whole, parts)
