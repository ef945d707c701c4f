"""A ledger whose model is learned from the data it is about: the cost is recorded first.

Theorem 16 (docs/theory).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from pdp_calibrate.arrays import checked_epsilon
from pdp_calibrate.core.adversary import Adversaries
from pdp_calibrate.core.model import Model, refuse_endless
from pdp_calibrate.errors import LedgerError
from pdp_calibrate.ledger.accounts import estimation_entries
from pdp_calibrate.ledger.allowance import Allowance
from pdp_calibrate.ledger.ledger import Ledger, heading_of
from pdp_calibrate.ledger.store import FileStore, Pages


def has_model(
    path: str | os.PathLike[str], *, anchor: str | os.PathLike[str] | None = None
) -> bool:
    """Whether there is a ledger with a model; a run that ended early leaves one without."""
    if not Path(path).exists():
        return False
    return Pages(FileStore(path, anchor=anchor)).read().get("model") is not None


def learned_ledger(
    learn: Callable[[], Model],
    *,
    estimation_epsilon: float,
    allowance: Allowance,
    repeats: float | None = None,
    path: str | os.PathLike[str] | None,
    adversaries: Adversaries,
    draw: str,
    time_limit: float | None,
    anchor: str | os.PathLike[str] | None = None,
) -> Ledger:
    """Record what learning a model will leak, then learn it, and continue with the ledger.

    If learning fails, the recorded cost stays: rows were read for it. To continue with a ledger
    left that way, call this again, which charges the learning once more.

    Parameters
    ----------
    learn
        Learns the model from this draw, under differential privacy.
    estimation_epsilon
        The ε with which it does so.
    allowance
        The budget of the ledger.
    repeats, path, adversaries, draw, time_limit, anchor
        As for `Ledger`.
    """
    budget, learning = allowance.epsilon, checked_epsilon(estimation_epsilon)
    first = estimation_entries([], learning, draw, budget)
    if path is None:  # nobody but this process could read it meanwhile
        model = _checked(learn(), learning)
        return Ledger(
            model,
            epsilon=budget,
            delta=allowance.delta or None,
            noise=allowance.noise,
            pure=allowance.pure,
            repeats=repeats,
            adversaries=adversaries,
            draw=draw,
            time_limit=time_limit,
        )
    pages = Pages(FileStore(path, anchor=anchor))
    heading = heading_of(None, allowance, adversaries)
    if Path(path).exists():
        with pages.changing() as state:
            if any(state.get(key) != value for key, value in heading.items()):
                raise LedgerError(f"the ledger {path} has a model already, or another budget.")
            if draw not in state["draws"]:
                raise LedgerError(f"the ledger {path} was begun for another draw than {draw!r}.")
            state["entries"] += estimation_entries(state["entries"], learning, draw, budget)
    else:
        pages.start(heading, draw, first)
    model = _checked(learn(), learning)
    adversaries.resolve(model)
    refuse_endless([model], "a model that is learned into its ledger")
    with pages.changing() as state:
        if state["model"] is not None:
            raise LedgerError("another run learned the model of this ledger meanwhile.")
        state["model"] = model.to_dict()
        state.update(allowance.about(model, repeats).to_dict())
    return Ledger.open(path, model=model, draw=draw, time_limit=time_limit, anchor=anchor)


def _checked(model: Model, epsilon: float) -> Model:
    if model.provenance != "dp" or model.estimation_epsilon != epsilon:
        raise LedgerError("the model was not learned with the epsilon that was written down.")
    return model
