"""What the tests of ledgers share: where the file is, and a way to see that nothing was drawn."""

import pytest


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.json"


@pytest.fixture
def no_noise(monkeypatch):
    """Return a function: from its call on, drawing noise fails the test."""

    def refuse(*_arguments):
        raise AssertionError("noise was drawn")

    def start():
        for kind in ("integers", "floats"):
            monkeypatch.setattr(f"pdp_calibrate.core.noise.add_laplace_to_{kind}", refuse)

    return start
