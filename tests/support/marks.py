"""Which cases of a test also run with every index of the compiled code checked."""

from collections.abc import Iterable
from typing import Any

import pytest


def bounds_checked(cases: Iterable[Any], number: int) -> list[Any]:
    """Return all cases, the first few of them with the mark `bounds`."""
    return [
        pytest.param(case, marks=pytest.mark.bounds) if place < number else case
        for place, case in enumerate(cases)
    ]
