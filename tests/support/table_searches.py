"""The searches of the table engine, called directly."""

from __future__ import annotations

from typing import Any

import pytest

from pdp_calibrate.arrays import FloatArray
from pdp_calibrate.core.problem import Bracket, Problem
from pdp_calibrate.families.table import search as choosing
from pdp_calibrate.families.table.search import TableEngine
from pdp_calibrate.families.table.setting import PreparedTable, Setting, setting_of


def search(problem: Problem, scale: float | FloatArray, **limits: Any) -> Bracket:
    """Search at one scale, or one per output coordinate."""
    return TableEngine(problem).bracket(scale, **limits)


def setting_at(problem: Problem, scale: float | FloatArray) -> Setting:
    """What the searches work on, no tuple left out and no group apart."""
    return setting_of(PreparedTable.of(problem), scale)


def only_compiled(monkeypatch: pytest.MonkeyPatch, *, bounds: bool = True) -> None:
    """Search small tables by compiled code too, as if they were large or very large."""
    for limit in ("FEW_DENSITIES", "FEW_SETS", "SET_WORK"):
        monkeypatch.setattr(choosing, limit, -1)
    if bounds:
        monkeypatch.setattr("pdp_calibrate.families.table.tree_search.TREE_BOUNDED_WORK", -1)


def only_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Search small tables set by set."""
    monkeypatch.setattr(choosing, "FEW_DENSITIES", -1)
    monkeypatch.setattr(choosing, "_search_line", choosing.search_sets)
