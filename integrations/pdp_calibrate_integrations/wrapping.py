"""Use a PDP budget with anything that takes a plain-DP ε: SmartNoise, Tumult, in-house code.

Nothing needs to be installed. The function is a black box; what is known of it is only that with
an argument ε₀ it is ε₀-DP (pure: δ = 0) for neighbouring databases. `wrap` finds the largest ε₀ at
which no adversary of the model learns more than ε from *any* such function, and calls it with that.

What counts as neighbours depends on the library. Where it replaces one record
(``substitution``), ε₀ goes in as it is; where it adds or removes a record (``add-remove``, such as
SmartNoise SQL and Tumult Analytics by default), a substitution takes two steps and half goes in;
where you do not know, ``unknown`` takes the safe half too. A function that is only (ε, δ)-DP, or
that needs a δ, is not covered.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

from pdp_calibrate import Ledger, PdpError
from pdp_calibrate.core.model import Model
from pdp_calibrate_integrations.handover import (
    Neighbours,
    budget,
    checked_ledger,
    counted_as,
)

Result = TypeVar("Result")
_SEEDS = ("random_state", "seed")


class Wrapped(Generic[Result]):
    """A function that gets its plain-DP ε from a model of correlation. Made by `wrap`."""

    def __init__(
        self,
        function: Callable[..., Result],
        *,
        model: Model,
        epsilon: float,
        epsilon_argument: str,
        neighbours: Neighbours,
        ledger: Ledger | None,
    ) -> None:
        _check_takes(function, epsilon_argument)
        checked_ledger(model, ledger)
        self.dp_epsilon = budget(model, epsilon=epsilon, neighbours=neighbours)
        """What the function is called with."""
        self._function, self._ledger = function, ledger
        self._argument, self._neighbours = epsilon_argument, counted_as(neighbours)
        functools.update_wrapper(self, function, updated=())

    def __call__(self, *args: Any, **kwargs: Any) -> Result:
        """Record the call in the ledger, then make it.

        Raises
        ------
        BudgetExceededError
            If the ledger's budget does not allow it. The function was not called.
        """
        if self._argument in kwargs:
            raise PdpError(f"{self._argument} is set by the wrapper, so it cannot be passed.")
        self._refuse_seeds(args, kwargs)
        if self._ledger is not None:  # first: a call that fails may still have leaked something
            name = getattr(self._function, "__name__", type(self._function).__name__)
            self._ledger.charge(self.dp_epsilon, neighbours=self._neighbours, note=name)
        return self._function(*args, **kwargs, **{self._argument: self.dp_epsilon})

    def _refuse_seeds(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Refuse what makes the noise known: then no budget protects anything."""
        given = dict(kwargs)
        with contextlib.suppress(TypeError, ValueError):  # no signature, or a call that will fail
            bound = inspect.signature(self._function).bind_partial(*args, **kwargs)
            given |= bound.arguments
        for name in _SEEDS:
            if given.get(name) is not None:
                raise PdpError(
                    f"{name} makes the noise known to anyone who knows it, so no budget covers it:"
                    " leave it out."
                )


@overload
def wrap(
    function: Callable[..., Result],
    *,
    model: Model,
    epsilon: float,
    epsilon_argument: str = "epsilon",
    neighbours: Neighbours = "unknown",
    ledger: Ledger | None = None,
) -> Wrapped[Result]: ...


@overload
def wrap(
    function: None = None,
    *,
    model: Model,
    epsilon: float,
    epsilon_argument: str = "epsilon",
    neighbours: Neighbours = "unknown",
    ledger: Ledger | None = None,
) -> Callable[[Callable[..., Result]], Wrapped[Result]]: ...


def wrap(
    function: Callable[..., Any] | None = None,
    *,
    model: Model,
    epsilon: float,
    epsilon_argument: str = "epsilon",
    neighbours: Neighbours = "unknown",
    ledger: Ledger | None = None,
) -> Any:
    """Let a plain-DP function keep ε for correlated data.

    Parameters
    ----------
    function
        Anything that is ε₀-DP (pure) when its argument says ε₀, for records that are the tuples of
        the model. Without it, a decorator is returned.
    model
        How the tuples are correlated.
    epsilon
        The most that anyone may learn from one call.
    epsilon_argument
        The name of the function's ε; it is passed by keyword.
    neighbours
        What the function's ε is about: ``substitution``, ``add-remove`` or ``unknown``.
    ledger
        Where each call is charged before it is made; calls that do not fit are refused. Without
        one, ε holds for a single call.

    Returns
    -------
    Wrapped
        To be called like the function, without ε, and without a ``random_state`` or ``seed``,
        which would make its noise known. Its `dp_epsilon` is what the function gets.

    Examples
    --------
    >>> import pdp_calibrate as pdp
    >>> twins = pdp.JointTable(probabilities=[[0.4, 0.1], [0.1, 0.4]], domains=[[0, 1]] * 2)
    >>> @wrap(model=twins, epsilon=1.0, neighbours="substitution")
    ... def show(answer, epsilon):
    ...     return f"{answer} at {epsilon:.4f}"
    >>> show(3)
    '3 at 0.6299'
    """

    def decorate(wrapped: Callable[..., Any]) -> Wrapped[Any]:
        return Wrapped(
            wrapped,
            model=model,
            epsilon=epsilon,
            epsilon_argument=epsilon_argument,
            neighbours=neighbours,
            ledger=ledger,
        )

    return decorate if function is None else decorate(function)


def _check_takes(function: Callable[..., Any], argument: str) -> None:
    if not callable(function):
        raise PdpError(f"wrap needs something to call, got {type(function).__name__}.")
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):  # compiled code often has no signature
        return
    named = parameters.get(argument)
    anything = any(one.kind is one.VAR_KEYWORD for one in parameters.values())
    if (named is None and not anything) or (
        named is not None and named.kind is named.POSITIONAL_ONLY
    ):
        raise PdpError(
            f"the function takes no argument {argument!r} by keyword; it takes"
            f" {', '.join(parameters) or 'none'}. Say which one is its ε with epsilon_argument=."
        )
