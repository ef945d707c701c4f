"""Gaussian tuples on a graph: a sparse precision matrix says which tuples are coupled."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import narwhals as nw
import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array, csc_array, issparse

from pdp_calibrate.arrays import FloatArray, check_number, checked_positive, frozen_array, plain
from pdp_calibrate.core.model import (
    STORED_CELLS,
    Bounds,
    checked_names,
    json_value,
)
from pdp_calibrate.core.schema_parts import RANGE, VECTOR, described, items
from pdp_calibrate.core.tuning import WRITTEN_NETWORK
from pdp_calibrate.errors import ModelError
from pdp_calibrate.families.gaussian.model import Gaussian, GaussianTuples
from pdp_calibrate.families.gaussian.sparse_inverse import Scaled
from pdp_calibrate.frames.open import asks_the_engine, collected, column_name, opened

MOST_TUPLES = 100_000
"""The most tuples of a network; cut a larger one into independent blocks."""

_ASYMMETRY = 1e-9  # relative to the diagonal; the rounding of a computed precision


@dataclass(frozen=True, kw_only=True, eq=False, init=False, repr=False)
class GaussianNetwork(GaussianTuples):
    """Continuous tuples of a normal law θ on a graph, up to 100,000 of them.

    Two tuples that the precision matrix Ω = Σ⁻¹ does not couple are independent given all others:
    meters on a feeder, plots on a map, stations along a river. Leakages of a linear query are exact
    where the signs of couplings and weights fit together (similar neighbours and a sum, for
    example), and certified upper bounds otherwise.

    Parameters
    ----------
    precision
        Symmetric positive definite matrix Ω, one row per tuple: a sparse one of scipy, or an array.
        Ω_kl < 0 couples two tuples that tend to be alike, Ω_kl > 0 two that tend to differ.
    bounds, mean, names, provenance
        As for `Gaussian`.

    Examples
    --------
    >>> GaussianNetwork(precision=[[2, -1, 0], [-1, 3, -1], [0, -1, 2]], bounds=(0, 10))
    GaussianNetwork(3 tuples, 2 couplings, assumed)
    """

    defined_by = ("mean", "precision", "bounds")
    dependence = "jointly Gaussian entries on a graph, each depending on its neighbours only"
    json_fields: ClassVar = {
        "mean": VECTOR,
        "precision": described(
            "[row, column, entry] on and below the diagonal, counted from 0.", items(VECTOR)
        ),
        "bounds": items(RANGE),
    }
    cells = "precision"
    engine = "pdp_calibrate.families.gaussian.network_search:NetworkEngine"
    gaussian_noise_engine = "pdp_calibrate.families.gaussian.network_noise:NetworkNoiseEngine"
    composer = "pdp_calibrate.families.gaussian.network_search:NetworkComposer"

    precision: csc_array
    """Ω, exactly symmetric; its arrays are read-only."""

    def __init__(
        self,
        *,
        precision: Any,
        bounds: Bounds,
        mean: npt.ArrayLike | None = None,
        names: Iterable[Hashable] | None = None,
        provenance: str = "assumed",
    ) -> None:
        matrix = _checked_precision(precision)
        self._settle_matrix(matrix.shape[0], bounds, mean, names, provenance, precision=matrix)

    def coupled_pairs(self) -> Mapping[tuple[int, int], float]:
        """Return the sizes of the correlations of all pairs given everyone else."""
        entries = self.precision.tocoo()
        own = np.sqrt(self.precision.diagonal())
        return {
            (int(k), int(m)): abs(float(value)) / float(own[k] * own[m])
            for k, m, value in zip(entries.row, entries.col, entries.data, strict=True)
            if k < m
        }

    @classmethod
    def from_edges(
        cls,
        edges: Any,
        *,
        strength: float | str,
        bounds: Bounds | Mapping[Hashable, tuple[float, float]],
        ends: tuple[str, str] | None = None,
        variance: float = 1.0,
        mean: npt.ArrayLike | None = None,
        names: Iterable[Hashable] | None = None,
        provenance: str = "assumed",
    ) -> GaussianNetwork:
        """Build a model of similar neighbours from a list of who is next to whom.

        Every tuple varies on its own with `variance`, and every edge pulls its two ends together:
        log-densities fall by strength·(x_k − x_l)²/(2·variance), so Ω = (I + L)/variance with L the
        Laplacian of the graph, its edges weighted by their strengths. Strength 0 is independence;
        with strength 1 a neighbour counts as much as the tuple's own tendency.

        Parameters
        ----------
        edges
            A frame of any library with one row per edge, or a list of pairs. Every pair once; the
            edges count as public.
        strength
            One strength for all edges, or the name of the column that holds the strengths.
        bounds
            As for the class, or a mapping with the range of each tuple by name.
        ends
            The two columns that name the ends of an edge, by default the first two.
        variance
            The variance of a tuple without neighbours. Its leakages do not depend on this number.
        mean, names, provenance
            As for the class. Names are those of the edges, in order of appearance, by default; give
            them to include tuples without neighbours.

        Examples
        --------
        >>> feeder = [("station", "a"), ("a", "b"), ("a", "c")]
        >>> model = GaussianNetwork.from_edges(feeder, strength=1.0, bounds=(0, 6))
        >>> model.names, model.precision.toarray()[1].tolist()
        (('station', 'a', 'b', 'c'), [-1.0, 4.0, -1.0, -1.0])
        """
        pairs, strengths = _read_edges(edges, ends, strength)
        appearing = dict.fromkeys(end for pair in pairs for end in pair)
        found = tuple(appearing) if names is None else tuple(plain(name) for name in names)
        places = {name: place for place, name in enumerate(checked_names(found, len(found)))}
        if not set(appearing) <= set(places):
            raise ModelError("names must include both ends of every edge.")
        rows, columns = (np.array([places[p[k]] for p in pairs], dtype=np.int64) for k in (0, 1))
        low, high = np.minimum(rows, columns), np.maximum(rows, columns)
        if np.any(low == high):
            raise ModelError("an edge must join two different tuples.")
        if len(np.unique(low * len(found) + high)) < len(low):
            raise ModelError("every edge must be listed once, in one direction.")
        own = 1.0 / checked_positive(variance, "variance")
        pulls, size = strengths * own, len(found)
        with np.errstate(over="ignore"):  # refused as not finite
            diagonal = own + np.bincount(low, pulls, size) + np.bincount(high, pulls, size)
        if isinstance(bounds, Mapping):
            missing = [name for name in found if name not in bounds]
            if missing:
                raise ModelError(f"bounds must name every tuple, {missing[0]!r} is missing.")
            bounds = [bounds[name] for name in found]
        everyone = np.arange(len(found))
        return cls(
            precision=coo_array(
                (
                    np.concatenate([diagonal, -pulls, -pulls]),
                    (
                        np.concatenate([everyone, low, high]),
                        np.concatenate([everyone, high, low]),
                    ),
                ),
                shape=(len(found), len(found)),
            ),
            bounds=bounds,
            mean=mean,
            names=found,
            provenance=provenance,
        )

    @property
    def couplings(self) -> int:
        """How many pairs of tuples are coupled."""
        return int((self.precision.nnz - len(self.names)) // 2)

    def to_gaussian(self) -> Gaussian:
        """Compute the covariance: the same law up to rounding, for up to a few thousand tuples.

        Examples
        --------
        >>> network = GaussianNetwork(precision=[[2, -1], [-1, 2]], bounds=(0, 10))
        >>> network.to_gaussian().covariance.round(3).tolist()
        [[0.667, 0.333], [0.333, 0.667]]
        """
        if len(self.names) > WRITTEN_NETWORK:
            raise ModelError(
                f"a covariance is written out for up to {WRITTEN_NETWORK:,} tuples, got"
                f" {len(self.names):,}."
            )
        inverse = np.linalg.inv(self.precision.toarray())
        return Gaussian(
            covariance=inverse / 2 + inverse.T / 2,
            bounds=self.bounds,
            mean=self.mean,
            names=self.names,
            provenance="private" if self.provenance == "private" else "assumed",
        )

    def content(self) -> tuple[object, ...]:
        """Return what defines the model apart from names and provenance, for equality."""
        matrix = self.precision
        places = np.concatenate([matrix.indptr, matrix.indices]).astype(np.int64)
        return (self.mean, places, matrix.data, self.bounds)

    def parameters(self) -> dict[str, Any]:
        """Return what defines the model, ready for JSON: couplings as [row, column, entry]."""
        found = self.precision.tocoo()
        kept = found.row >= found.col
        if 3 * int(kept.sum()) + 3 * len(self.names) > STORED_CELLS:
            return {"digest": self.digest}
        triples = zip(found.row[kept], found.col[kept], found.data[kept], strict=True)
        return {
            "mean": json_value(self.mean),
            "precision": [[int(row), int(column), float(entry)] for row, column, entry in triples],
            "bounds": json_value(self.bounds),
        }

    @classmethod
    def from_parameters(cls, described: Mapping[str, Any]) -> Self:
        """Undo `to_dict`."""
        if "precision" not in described:
            return super().from_parameters(described)
        triples = np.array(described["precision"], dtype=np.float64).reshape(-1, 3)
        size = len(described["names"])
        rows, columns = triples[:, 0].astype(np.int64), triples[:, 1].astype(np.int64)
        beside = rows != columns
        matrix = coo_array(
            (
                np.concatenate([triples[:, 2], triples[beside, 2]]),
                (
                    np.concatenate([rows, columns[beside]]),
                    np.concatenate([columns, rows[beside]]),
                ),
            ),
            shape=(size, size),
        )
        return super().from_parameters({**described, "precision": matrix})

    def pearson_matrix(self) -> FloatArray:
        """Return the correlations of all pairs."""
        return self.to_gaussian().pearson_matrix()

    def draws(
        self, number: int, *, given: Mapping[int, Any], target: int, rng: np.random.Generator
    ) -> FloatArray:
        """Draw from the covariance, written out; see `Model.draws`."""
        return self.to_gaussian().draws(number, given=given, target=target, rng=rng)

    def __repr__(self) -> str:
        return (
            f"GaussianNetwork({len(self.names)} tuples, {self.couplings} couplings,"
            f" {self.provenance})"
        )


def _checked_precision(precision: Any) -> csc_array:
    """Return a read-only, exactly symmetric, positive definite matrix, or raise."""
    given: Any = precision if issparse(precision) else frozen_array(precision, "precision")
    if given.ndim != 2 or given.shape[0] != given.shape[1] or given.shape[0] == 0:
        raise ModelError(f"precision must be a square matrix, got shape {given.shape}.")
    matrix = csc_array(given.astype(np.float64))
    size = matrix.shape[0]
    if size > MOST_TUPLES:
        raise ModelError(
            f"a Gaussian network holds at most {MOST_TUPLES:,} tuples, got {size:,}. Cut it into"
            " independent blocks."
        )
    matrix.sum_duplicates()
    if not np.all(np.isfinite(matrix.data)):
        raise ModelError("precision must be finite, got NaN or infinity.")
    diagonal = matrix.diagonal()
    if np.any(diagonal <= 0):
        raise ModelError(f"precision must have a positive diagonal, got {diagonal.min()} on it.")
    roots = np.sqrt(diagonal)
    apart = abs(matrix - matrix.T).tocoo()
    if np.any(apart.data > _ASYMMETRY * roots[apart.row] * roots[apart.col]):
        raise ModelError("precision must be symmetric.")
    matrix = csc_array(matrix / 2 + matrix.T / 2)
    matrix.eliminate_zeros()
    matrix.sort_indices()
    if not Scaled.of(matrix).is_definite:
        raise ModelError(
            "precision must be positive definite by more than the rounding error. Weaken the"
            " couplings, or raise the diagonal."
        )
    for part in (matrix.data, matrix.indices, matrix.indptr):
        part.setflags(write=False)
    return matrix


def _read_edges(
    edges: Any, ends: tuple[str, str] | None, strength: float | str
) -> tuple[list[tuple[Hashable, Hashable]], FloatArray]:
    """Return the ends and the strength of every edge."""
    if isinstance(edges, Sequence):
        if isinstance(strength, str):
            raise ModelError("a list of pairs has no column of strengths: give a frame.")
        pairs = [tuple(pair) for pair in edges]
        if any(len(pair) != 2 for pair in pairs):
            raise ModelError("edges must be pairs of names.")
        columns: list[list[Any]] = [[pair[k] for pair in pairs] for k in (0, 1)]
    else:
        columns = _columns_of(edges, ends, strength)
    if not columns[0]:
        raise ModelError("edges must hold at least one pair.")
    found = [(plain(one), plain(other)) for one, other in zip(*columns[:2], strict=True)]
    if any(end is None or end != end for pair in found for end in pair):
        raise ModelError("both ends of every edge must be named.")
    if isinstance(strength, str):
        strengths = frozen_array(columns[2], "strength")
    else:
        check_number(strength, "strength")
        strengths = np.full(len(found), float(strength))
    if not np.all(np.isfinite(strengths)) or np.any(strengths < 0):
        raise ModelError(
            "strength must be zero or more and finite. For neighbours that differ, give the"
            " precision matrix itself."
        )
    return found, strengths


@asks_the_engine
def _columns_of(edges: Any, ends: tuple[str, str] | None, strength: object) -> list[list[Any]]:
    frame = opened(edges)
    there = list(frame.collect_schema().names())
    wanted = [column_name(name) for name in (there[:2] if ends is None else ends)]
    if isinstance(strength, str):
        wanted.append(strength)
    if len(wanted) < 2 or not set(wanted) <= set(there):
        raise ModelError(f"the edges need the columns {', '.join(wanted)}; they have {there}.")
    rows = collected(frame.select(*(nw.col(name) for name in wanted)))
    return [rows[name].to_list() for name in wanted]
