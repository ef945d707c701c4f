"""What is attacked: a mechanism, the adversary, and the expected law of the answers."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import log_ndtr, logsumexp

from pdp_calibrate.arrays import FloatArray, checked_scales
from pdp_calibrate.auditing.events import Score, column
from pdp_calibrate.auditing.observing import Mechanism, Observation, observed
from pdp_calibrate.auditing.worlds import answers_in, as_mappings, drawn_databases
from pdp_calibrate.calibration.release import add_noise
from pdp_calibrate.calibration.result import AnyCalibration
from pdp_calibrate.core.adversary import Adversaries, Witness
from pdp_calibrate.core.composite import Blocks
from pdp_calibrate.core.contributions import Contributions
from pdp_calibrate.core.model import Model
from pdp_calibrate.core.noise import Noise
from pdp_calibrate.core.query import Query, checked_queries, lower
from pdp_calibrate.core.row_query import RowQuery
from pdp_calibrate.core.workers import progress
from pdp_calibrate.errors import PdpError, UnsupportedQueryError

_MOST_ATOMS = 100  # answers that stand for the law of all answers


_SAMPLE = 20_000  # databases from which that law is taken


_VISIBLE = 0.01  # events rarer than this are not searched


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A mechanism, the adversary, and the expected law of the answers."""

    witness: Witness
    model: Model
    parts: tuple[Contributions, ...]
    scales: tuple[float, ...]
    mechanism: Mechanism | None
    noise: Noise = "laplace"

    @classmethod
    def candidates(cls, release: AnyCalibration, witness: Witness | None) -> list[Subject]:
        """Attack a calibrated release as its own witness, and as others who may learn more.

        Where clamped values are bounded by a coupling, the witness may be somebody who knows
        everyone else; one who knows nobody often learns more, although less is proved about it.
        """
        parts = _attacked(release.queries, release.contributions, release.model)
        scales = release.scales
        found = release.leakage.witness if witness is None else witness
        if found is None:
            raise PdpError("the calibration names no adversary to attack with: pass witness=.")
        attackers = [found]
        bounded = any(part.clamped for part in parts) and all(release.model.gaussian_tuples)
        everyone = release.adversaries == Adversaries.all()
        if witness is None and bounded and everyone and found.known and not release.leakage.exact:
            attackers.append(dataclasses.replace(found, known={}))
        return [
            dataclasses.replace(
                cls._about(one, release.model, parts, scales, None, release.adversaries),
                noise=release.noise,
            )
            for one in attackers
        ]

    @classmethod
    def function(
        cls,
        mechanism: Mechanism,
        witness: Witness | None,
        model: Model | None,
        query: Query | Sequence[Query] | None,
        scale: float | Sequence[float] | None,
    ) -> Subject:
        """Attack any function of one database."""
        if not callable(mechanism):
            raise PdpError("audit needs a calibration or a function of one database.")
        if witness is None:
            raise PdpError("a function is audited against a witness, such as leakage(…).witness.")
        used = witness.model if model is None else model
        queries = [] if query is None else [query] if isinstance(query, Query) else query
        parts = tuple(lower(one, used) for one in (checked_queries(queries) if queries else []))
        scales = () if scale is None else tuple(checked_scales(scale, len(parts)))
        if len(scales) != len(parts):
            raise PdpError("query= and scale= say together what the function releases.")
        return cls._about(witness, used, parts, scales, mechanism, None)

    @classmethod
    def _about(
        cls,
        witness: Witness,
        model: Model,
        parts: tuple[Contributions, ...],
        scales: tuple[float, ...],
        mechanism: Mechanism | None,
        adversaries: Adversaries | None,
    ) -> Subject:
        if isinstance(model, Blocks):
            everyone = (Adversaries.all(), Adversaries.strongest(), None)
            if adversaries not in everyone or mechanism is not None:
                raise UnsupportedQueryError(
                    "blocks are audited against adversaries who may know all other blocks."
                )
            positions = _block_of(witness, model)
            parts = tuple(part.select(positions) for part in parts)
            names = {model.names[place]: own for own, place in enumerate(positions)}
            inner = witness.model
            witness = Witness(
                target=inner.names[names[witness.target]],
                known={inner.names[names[n]]: v for n, v in witness.known.items() if n in names},
                secrets=witness.secrets,
                output=witness.output,
                model=inner,
            )
            model = inner
        return cls(witness=witness, model=model, parts=parts, scales=scales, mechanism=mechanism)

    def outputs(self, secret: Hashable, number: int, rng: np.random.Generator) -> FloatArray:
        """Run the calibrated release on databases with this secret; a row of numbers each."""
        databases = self._databases(secret, number, rng)
        columns = []
        with progress("drawing noise", total=len(self.parts)) as show:
            for part, scale in zip(self.parts, self.scales, strict=True):
                answers: Any = answers_in(databases, part, self.model).tolist()
                noisy = add_noise(answers, part, scale, self.noise)
                columns.append(np.array(noisy, dtype=np.float64))
                show(len(columns))
        return np.concatenate(columns, axis=1)

    def observations(
        self, mechanism: Mechanism, secret: Hashable, number: int, rng: np.random.Generator
    ) -> list[Observation]:
        """Run a function on databases with this secret, and describe whatever comes back."""
        databases = self._databases(secret, number, rng)
        return observed(mechanism, as_mappings(databases, self.model), number)

    def check_shape(self, seen: Sequence[Observation]) -> None:
        """Refuse a function that mostly returns a different number of numbers than stated."""
        lengths = Counter(len(one.numbers) for one in seen if one.numbers)
        usual = lengths.most_common(1)[0][0] if lengths else 0
        if usual != self.width:
            raise PdpError(
                f"query= and scale= describe {self.width} numbers, and the function returns"
                f" {usual}: leave them out, or describe what it releases."
            )

    @property
    def width(self) -> int:
        """How many numbers the queries release."""
        return sum(part.coordinates for part in self.parts)

    def scores(self, rng: np.random.Generator) -> list[tuple[str, Score]]:
        """Return scores of an output that may distinguish the secrets."""
        return [
            ("the log-likelihood ratio", self._log_ratio(rng)),
            *((f"output {place + 1}", column(place)) for place in range(self.width)),
        ]

    def simulated(self, secret: Hashable, number: int, rng: np.random.Generator) -> FloatArray:
        """Return outputs as the adversary expects them, with noise from numpy."""
        databases = self._databases(secret, number, rng)
        columns = []
        for part, scale in zip(self.parts, self.scales, strict=True):
            answers = answers_in(databases, part, self.model)
            if self.noise == "gaussian":
                noisy = answers + rng.normal(scale=scale, size=answers.shape)
                columns.append(np.rint(noisy) if part.is_integer else noisy)
            elif part.is_integer:  # the discrete Laplace is a difference of geometric variables
                odds = -math.expm1(-1 / scale)
                up, down = rng.geometric(odds, (2, *answers.shape))
                columns.append(answers + up - down)
            else:
                columns.append(answers + rng.laplace(scale=scale, size=answers.shape))
        return np.concatenate(columns, axis=1)

    def _databases(self, secret: Hashable, number: int, rng: np.random.Generator) -> FloatArray:
        return drawn_databases(self.witness, self.model.names, secret, number, rng)

    def _log_ratio(self, rng: np.random.Generator) -> Score:
        units = np.array(
            [
                scale
                for part, scale in zip(self.parts, self.scales, strict=True)
                for _ in range(part.coordinates)
            ]
        )
        seed = int(rng.integers(2**32))  # the same luck under both secrets: only they differ
        samples = []
        for secret in self.witness.secrets:
            databases = self._databases(secret, _SAMPLE, np.random.default_rng(seed))
            answers = [answers_in(databases, part, self.model) for part in self.parts]
            samples.append(np.concatenate(answers, axis=1) / units)
        normal = all(part.real and not part.clamped for part in self.parts)
        if self.noise == "gaussian":
            laws = [_noisy_law(one) if normal else _atom_law(one, _squares) for one in samples]
        else:
            real = normal and len(units) == 1
            laws = [_normal_law(one) if real else _atom_law(one, _distances) for one in samples]
        first, second = laws

        def log_ratio(outputs: FloatArray) -> FloatArray:
            here = outputs[:, : len(units)] / units
            with np.errstate(invalid="ignore"):  # NaN or infinite: no ratio, an event of its own
                # Equal in truth is equal here too: an event must not hang on the last bits.
                return np.round(first(here) - second(here), 9)

        return log_ratio


def _attacked(
    queries: Sequence[Query], parts: Sequence[Contributions], model: Model
) -> tuple[Contributions, ...]:
    """Return the noisy numbers that are really released.

    For rows of any dependence the contributions say how far a record moves all numbers together.
    The attack uses two records that move them that far, which several answers must allow at once.
    For rows that hold states it uses what every state adds.
    """
    if model.covers_any_answer:
        return tuple(
            dataclasses.replace(
                part, values=(query.records_of(states),) * len(part.values), vectors=()
            )
            if isinstance(query, RowQuery)
            else part
            for states in model.domains[:1]
            for query, part in zip(queries, parts, strict=True)
        )
    by_record = [
        query if isinstance(query, RowQuery) and part.weights is None else None
        for query, part in zip(queries, parts, strict=True)
    ]
    named = [name for query in by_record if query is not None for name in query.secret]
    if len(set(named)) < len(named):
        raise UnsupportedQueryError(
            "answers about the same column may not move furthest at once: audit one by one."
        )
    return tuple(
        part
        if query is None
        else dataclasses.replace(
            part, values=(query.farthest_records(),) * len(part.values), roundings=(), vectors=()
        )
        for query, part in zip(by_record, parts, strict=True)
    )


def most_visible(first: FloatArray, second: FloatArray, *, delta: float = 0.0) -> float:
    """Return the log-ratio of the best event of probability 1 %, from scores under both secrets.

    The δ of a claim comes off the probability first, as it does in the claim.

    By Neyman and Pearson the event holds the largest likelihood ratios; the scores are close to
    these, and how often the event really happens is counted, not computed from them.
    """
    least = np.sort(first)[-max(1, int(len(first) * _VISIBLE))]
    hits, others = int((first >= least).sum()), int((second >= least).sum())
    share = hits / len(first) - delta
    return math.log(share) - math.log(max(others, 1) / len(second)) if share > 0 else 0.0


def _block_of(witness: Witness, model: Blocks) -> range:
    start = 0
    for block in model.models:
        positions = range(start, start + len(block.names))
        start = positions.stop
        if witness.target in [model.names[place] for place in positions]:
            if len(block.names) == len(witness.model.names):
                return positions
            break
    raise UnsupportedQueryError("the witness is about several blocks at once: audit one of them.")


def _distances(gaps: FloatArray) -> FloatArray:
    """Return minus the logarithm of the density of Laplace noise."""
    return np.asarray(np.abs(gaps).sum(axis=-1))


def _squares(gaps: FloatArray) -> FloatArray:
    """Return minus the logarithm of the density of Gaussian noise."""
    return np.asarray(np.square(gaps).sum(axis=-1) / 2)


def _noisy_law(answers: FloatArray) -> Score:
    """Return the log-density of normal answers with Gaussian noise, up to a constant."""
    mean = answers.mean(axis=0)
    spread = np.atleast_2d(np.cov(answers, rowvar=False)) + np.eye(answers.shape[1])

    def log_density(outputs: FloatArray) -> FloatArray:
        away = outputs - mean
        return np.asarray(-np.sum(away * np.linalg.solve(spread, away.T).T, axis=1) / 2)

    return log_density


def _atom_law(answers: FloatArray, costs: Callable[[FloatArray], FloatArray]) -> Score:
    """Return the log-density of atoms that represent the drawn answers, with noise of this cost."""
    atoms, counts = np.unique(answers, axis=0, return_counts=True)
    if len(atoms) > _MOST_ATOMS:
        if answers.shape[1] == 1:
            groups = np.array_split(np.sort(answers[:, 0]), _MOST_ATOMS)
            atoms = np.array([[group.mean()] for group in groups])
        else:
            atoms = answers[:_MOST_ATOMS]
        counts = np.ones(len(atoms), dtype=np.int64)
    log_masses = np.log(counts / counts.sum())

    def log_density(outputs: FloatArray) -> FloatArray:
        pieces = np.array_split(outputs, max(1, len(outputs) * len(atoms) // 2**20))
        return np.concatenate(
            [logsumexp(log_masses - costs(some[:, np.newaxis] - atoms), axis=1) for some in pieces]
        )

    return log_density


def _normal_law(answers: FloatArray) -> Score:
    """Return the log-density of a normal answer with Laplace noise, in closed form."""
    mean, spread = float(answers.mean()), float(answers.std())
    if spread < 1e-9:
        return _atom_law(answers[:1], _distances)

    def log_density(outputs: FloatArray) -> FloatArray:
        away = outputs[:, 0] - mean
        sides = [sign * away + log_ndtr(-sign * away / spread - spread) for sign in (1.0, -1.0)]
        return np.asarray(np.logaddexp(*sides))

    return log_density
