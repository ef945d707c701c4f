"""Whoever knows everyone else: the output tells x_i as plain differential privacy says."""

from __future__ import annotations

import numpy as np

from pdp_calibrate.engines.laplace import UNIT_ROUNDOFF
from pdp_calibrate.engines.tables.outcome import NOTHING, Attack, Outcome
from pdp_calibrate.engines.tables.setting import Setting
from pdp_calibrate.models.base import FloatArray


def search_strongest(setting: Setting) -> Outcome:
    """Return LS_i/λ of the worst target, over the full product of domains, whatever θ is."""
    outcome = NOTHING
    for target in setting.knowledge.targets:
        outcome = outcome.or_worse(_attack(setting, target))
    return outcome


def _attack(setting: Setting, target: int) -> Outcome:
    others = [place for place in range(len(setting.sizes)) if place != target]
    if setting.table is None:
        likely = setting.probabilities.sum(axis=target)
        cell = np.unravel_index(int(np.argmax(likely)), likely.shape)
        answers = setting.parts[target][np.newaxis]
    else:
        answers = np.moveaxis(setting.table, target, -2)
        cell = ()
    distance, event, secrets = _furthest(answers.reshape(-1, *answers.shape[-2:]))
    if distance < 0:
        return NOTHING
    if setting.table is not None:
        cell = np.unravel_index(event, answers.shape[:-2])
    known = dict(zip(others, map(int, cell), strict=True))
    output = answers.reshape(-1, *answers.shape[-2:])[event, secrets[0]]
    if setting.table is None:
        for place, value in known.items():
            output = output + setting.parts[place][value]
    rounding = (8 + 2 * setting.coordinates) * UNIT_ROUNDOFF
    return Outcome(
        upper=distance * (1 + rounding),
        lower=distance * (1 - rounding),
        attack=Attack(target=target, known=known, secrets=secrets, output=output),
    )


def _furthest(answers: FloatArray) -> tuple[float, int, tuple[int, int]]:
    """Return the largest L1 distance of two secrets' answers, the event and the secrets."""
    best = (-1.0, 0, (0, 0))
    for first in range(answers.shape[1]):
        for second in range(first):
            distances = np.abs(answers[:, first] - answers[:, second]).sum(axis=-1)
            event = int(np.argmax(distances))
            if distances[event] > best[0]:
                best = (float(distances[event]), event, (first, second))
    return best
