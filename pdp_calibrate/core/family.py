"""What the library asks of a family of models.

A family is a folder in `families/`: a model (a subclass of `Model`), an engine that searches it,
perhaps an estimator, and a composer if it has bounds of its own for several releases (see
`core.composer`). The model names its engine in the class attribute `engine`, as
``"module:Class"`` so that compiled code is loaded when it is first needed, or as the class itself;
in `gaussian_noise_engine` one for Gaussian noise, where it has one.
The rest of the library reaches a family through its model and this protocol alone.
"""

from __future__ import annotations

import math
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from pdp_calibrate.core.bracket import Bracket
    from pdp_calibrate.core.model import Model
    from pdp_calibrate.core.problem import Problem


class Engine(Protocol):
    """Searches one problem, at many scales.

    Everything that does not depend on the scale is done once, when the engine is made.
    """

    def __init__(self, problem: Problem) -> None:
        """Prepare the search."""

    def bracket(
        self,
        scale: float,
        *,
        incumbent: float = 0.0,
        enough: float = math.inf,
        deadline: float = math.inf,
    ) -> Bracket:
        """Find the worst adversary at one scale.

        Parameters
        ----------
        scale
            The Laplace scale λ; for an engine of Gaussian noise the standard deviation σ, and
            leakages are μ.
        incumbent
            Adversaries who cannot leak more than this need not be told apart.
        enough
            A long search may stop, with a wide bracket, once somebody is found to leak more.
        deadline
            Value of `time.monotonic()` after which the rest counts with a bound.
        """


@runtime_checkable
class Sharing(Protocol):
    """An engine whose preparation serves other adversaries as well."""

    def against(self, problem: Problem) -> Engine:
        """Return an engine for the same model and answers against the adversaries of `problem`."""


@runtime_checkable
class Climbing(Protocol):
    """What an engine has besides if searching everyone takes it long.

    Calibration then looks for a worse adversary among the neighbours of the one that a search
    named, who know one tuple more or less, before everyone is searched again. An engine that
    searches everyone about as fast as one adversary leaves the attribute out.
    """

    climbs: bool
    """Whether neighbours of its adversaries are worth a search each."""


def model_named(kind: str) -> type[Model]:
    """Return the class of models of this name, loading its family."""
    from pdp_calibrate.core.model import Model

    homes: dict[str, str] = import_module("pdp_calibrate.families").MODELS
    if kind in homes:
        import_module(homes[kind])
    return Model.named(kind)
