"""Which cases of a test run at once, which in a call of their own, which with indices checked."""

from collections.abc import Callable, Iterable
from importlib.util import find_spec
from typing import Any

import pytest
from hypothesis import settings

needs_pipelinedp = pytest.mark.skipif(
    find_spec("pipeline_dp") is None, reason="PipelineDP has no release for this Python"
)


def bounds_checked(cases: Iterable[Any], number: int, *, quick: int | None = None) -> list[Any]:
    """Return all cases, the first few of them with the mark `bounds`.

    Those after the first `quick` carry the mark `slow`.
    """
    return [
        pytest.param(case, marks=_marks(place, number, quick)) for place, case in enumerate(cases)
    ]


def slow_after(quick: int, cases: Iterable[Any]) -> list[Any]:
    """Return all cases; those after the first few carry the mark `slow`."""
    return bounds_checked(cases, 0, quick=quick)


def examples(quick: int, many: int) -> Callable[[Any], Any]:
    """Try a Hypothesis property on a few examples, and on many in a test with the mark `slow`."""

    def numbered(checked: Any) -> Any:
        @pytest.mark.parametrize("number", slow_after(1, [quick, many]))
        def test(number: int) -> None:
            settings(max_examples=number, deadline=None)(checked)()

        test.__name__, test.__doc__ = checked.__name__, checked.__doc__
        return test

    return numbered


def _marks(place: int, bounds: int, quick: int | None) -> list[pytest.MarkDecorator]:
    slow = quick is not None and place >= quick
    return [pytest.mark.bounds] * (place < bounds) + [pytest.mark.slow] * slow
