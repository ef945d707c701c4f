"""Attack a release by running it, and prove a lower bound on its leakage.

The adversary is the witness of the leakage: target, known values, two secrets. Databases are drawn
from θ under each secret, and each is passed to the mechanism. If some event E of the output has
probabilities p and q under the two, the mechanism leaks at least log p/q, or log (p − δ)/q for a
claim with a δ; Clopper–Pearson intervals turn counts into a bound that holds with the stated
confidence. The event is chosen on separate draws, as a threshold on the adversary's log-likelihood
ratio (by Neyman and Pearson none is better) or on a single output; or as a kind of output: NaN, a
different number of numbers, a text, an exception. What none of these distinguishes, such as the
last bits of a number, is missed.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

import numpy as np

from pdp_calibrate.arrays import FloatArray, checked_share
from pdp_calibrate.auditing.events import Event, best_event, log_ratio_at_least, proved_by
from pdp_calibrate.auditing.observing import Encoding, Mechanism
from pdp_calibrate.auditing.subject import Subject, most_visible
from pdp_calibrate.calibration.result import AnyCalibration, Calibration
from pdp_calibrate.core.adversary import Adversaries, Witness
from pdp_calibrate.core.cards import card
from pdp_calibrate.core.model import Model, refuse_endless
from pdp_calibrate.core.query import Query
from pdp_calibrate.core.workers import under_one_bar
from pdp_calibrate.errors import PdpError

_TRIED = 20_000  # outputs per secret on which adversaries are compared


_SIMULATED = 60_000  # outputs per secret on which the event is chosen, if their law is known


_TRAINING = 0.25  # share of the draws that chooses it otherwise; the rest tests it


@dataclass(frozen=True, kw_only=True)
class Audit:
    """What an attack on a mechanism proved."""

    lower_bound: float
    """The mechanism leaks at least this, with the confidence."""
    epsilon: float | None
    """The most that it was claimed to leak."""
    delta: float = 0.0
    """The δ of the claim; 0 for a pure ε."""
    confidence: float
    """Probability that the lower bound holds."""
    event: Event
    """The outputs that give the secret away."""
    adversary: Adversaries = field(repr=False)
    """Who attacked."""
    secrets: tuple[Hashable, Hashable]
    """The value that the event favours, and the one it speaks against."""
    hits: tuple[int, int]
    """How often the event happened under each."""
    tested: tuple[int, int]
    """Out of how many draws."""
    visible: float | None
    """Roughly the most that an event of probability at least 1 % could show at δ = 0, if known.

    The supremum may lie further out: for Gaussian data it always does.
    """

    @property
    def is_broken(self) -> bool:
        """Whether the attack proved that the claim is false."""
        return self.epsilon is not None and self.lower_bound > self.epsilon

    def _repr_html_(self) -> str:
        rows: list[tuple[str, object]] = [
            ("leaks at least", f"{self.lower_bound:.4g}"),
            ("confidence", f"{self.confidence:.4g}"),
            ("claimed at most", "–" if self.epsilon is None else f"{self.epsilon:.4g}"),
            *([("beside δ", f"{self.delta:g}")] if self.delta else []),
            ("claim is", "false" if self.is_broken else "not contradicted"),
        ]
        return card("Audit", rows)


@under_one_bar("attacking")
def audit(
    release: AnyCalibration | Mechanism,
    *,
    draws: int = 100_000,
    confidence: float = 0.99,
    witness: Witness | None = None,
    model: Model | None = None,
    query: Query | Sequence[Query] | None = None,
    scale: float | Sequence[float] | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    seed: int | None = None,
) -> Audit:
    """Attack a calibrated release, or any mechanism, with the worst known adversary.

    Parameters
    ----------
    release
        A calibration, whose real noise is drawn; or any function that takes one database
        ``{name: value}`` and returns a number or several. Anything else it does is observed too:
        NaN, lists of a different length, complex numbers, texts, exceptions.
    draws
        How often it is run, half of them under each secret.
    confidence
        Probability with which the lower bound holds.
    witness
        Who attacks, with which two secrets; the calibration's own witness by default.
    model
        For a function, the tuples of its databases; the witness's model by default.
    query, scale
        For a function, what it is believed to release, to sharpen the attack.
    epsilon
        What is claimed; the calibration's ε by default.
    delta
        The δ of the claim; the calibration's by default, and 0 for a function.
    seed
        Seed of the databases; the noise of a calibrated release has none.

    Returns
    -------
    Audit
        A `lower_bound` above the claim proves the mechanism wrong; one below proves nothing, but
        `visible` says how much could have been detected at all.

    Examples
    --------
    >>> import pdp_calibrate as pdp
    >>> pair = pdp.JointTable(probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, 1]] * 2)
    >>> cal = pdp.calibrate(pair, pdp.Sum(), epsilon=1.0)
    >>> found = pdp.audit(cal, draws=20_000, seed=1)
    >>> 0.7 < found.lower_bound < 1.0, found.is_broken
    (True, False)
    """
    if not hasattr(draws, "__index__") or int(draws) < 1000:
        raise PdpError(f"draws must be a whole number of at least 1000, got {draws!r}.")
    if not 0 < confidence < 1:
        raise PdpError(f"confidence must lie between 0 and 1, got {confidence}.")
    rng = np.random.default_rng(seed)
    claim, share = epsilon, 0.0 if delta is None else checked_share(delta, "delta", error=PdpError)
    if isinstance(release, Calibration):
        refuse_endless([release.model], "an audit")
        share = release.delta if delta is None else share
        attacked = _most_telling(Subject.candidates(release, witness), rng)
        claim = release.epsilon if epsilon is None else epsilon
    else:
        attacked = Subject.function(release, witness, model, query, scale)
    failure = (1 - confidence) / 2
    secrets = attacked.witness.secrets
    number, mechanism = int(draws) // 2, attacked.mechanism
    if mechanism is None:
        (event, turned), tests, visible = _attack_release(attacked, number, failure, rng, share)
    else:
        (event, turned), tests, visible = _attack_function(
            attacked, mechanism, number, failure, rng, share
        )
    if turned:
        secrets, tests = (secrets[1], secrets[0]), tests[::-1]
    hits = [int(event.contains(one).sum()) for one in tests]
    return Audit(
        lower_bound=max(0.0, log_ratio_at_least(hits, [len(one) for one in tests], failure, share)),
        epsilon=claim,
        delta=share,
        confidence=confidence,
        event=event,
        adversary=attacked.witness.adversary,
        secrets=secrets,
        hits=(hits[0], hits[1]),
        tested=(len(tests[0]), len(tests[1])),
        visible=visible,
    )


Chosen = tuple[Event, bool]
"""An event, and whether it favours the second of the two secrets."""


def _attack_release(
    attacked: Subject, number: int, failure: float, rng: np.random.Generator, delta: float
) -> tuple[Chosen, list[FloatArray], float | None]:
    """Return an event chosen on simulated outputs, real ones to test it, and `visible`."""
    tests = [attacked.outputs(secret, number, rng) for secret in attacked.witness.secrets]
    chosen, visible = _expected(attacked, failure, rng, draws=number, delta=delta)
    return chosen, tests, visible


def _attack_function(
    attacked: Subject,
    mechanism: Mechanism,
    number: int,
    failure: float,
    rng: np.random.Generator,
    delta: float,
) -> tuple[Chosen, list[FloatArray], float | None]:
    """Return an event chosen on some real outputs, others to test it, and `visible`.

    Where it is stated what the function releases, simulated outputs choose a threshold, and the
    real ones only decide whether something unexpected, such as NaN, reveals more.
    """
    secrets = attacked.witness.secrets
    seen = [attacked.observations(mechanism, secret, number, rng) for secret in secrets]
    cut = int(number * _TRAINING)
    first = [one for some in seen for one in some[:cut]]
    encoding = Encoding.of(first)
    training = [encoding.rows(some[:cut]) for some in seen]
    tests = [encoding.rows(some[cut:]) for some in seen]
    kinds = encoding.category_scores()
    if not attacked.parts:
        scores = [*encoding.number_scores(), *kinds]
        chosen = best_event(scores, training, failure, draws=number - cut, delta=delta)
        return chosen, tests, None
    attacked.check_shape(first)
    chosen, visible = _expected(attacked, failure, rng, draws=number - cut, delta=delta)
    unforeseen = [*encoding.number_scores()[attacked.width :], *kinds]
    if unforeseen:
        other = best_event(unforeseen, training, failure, draws=number - cut, delta=delta)
        proofs = [proved_by(one, training, failure, delta) for one in (other, chosen)]
        if proofs[0] > proofs[1]:
            chosen = other
    return chosen, tests, visible


def _most_telling(candidates: Sequence[Subject], rng: np.random.Generator) -> Subject:
    """Return the adversary who learns most from simulated outputs."""
    if len(candidates) == 1:
        return candidates[0]
    seen = []
    for one in candidates:
        (_, score), *_ = one.scores(rng)
        outputs = [one.simulated(secret, _TRIED, rng) for secret in one.witness.secrets]
        seen.append(most_visible(*(score(some) for some in outputs)))
    return candidates[int(np.argmax(seen))]


def _expected(
    attacked: Subject, failure: float, rng: np.random.Generator, *, draws: int, delta: float
) -> tuple[Chosen, float]:
    """Choose an event from the expected law of outputs; return it and what any event could show."""
    scores = attacked.scores(rng)
    simulated = [attacked.simulated(one, _SIMULATED, rng) for one in attacked.witness.secrets]
    visible = most_visible(*(scores[0][1](one) for one in simulated), delta=delta)
    return best_event(scores, simulated, failure, draws=draws, delta=delta), visible
