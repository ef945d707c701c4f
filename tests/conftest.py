"""What tests of several parts share."""

import pytest


@pytest.fixture
def bare_answers(monkeypatch):
    """Take Laplace noise away, to see the answer that would be protected."""
    for kind in ("integers", "floats"):
        monkeypatch.setattr(
            f"pdp_calibrate.core.noise.add_laplace_to_{kind}", lambda answers, _: list(answers)
        )
