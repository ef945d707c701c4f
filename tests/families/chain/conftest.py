"""Chains of a few tuples are searched as tables; here their windows are tested."""

from __future__ import annotations

import pytest

from pdp_calibrate.families.chain import search


@pytest.fixture(autouse=True)
def windows_whatever_the_length(monkeypatch):
    """Search windows unless no window could answer."""
    monkeypatch.setattr(search, "TABLED_LAWS", 0)
