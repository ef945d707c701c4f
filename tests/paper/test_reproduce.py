"""The script that repeats the paper's simulations, at small sizes."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.compiled
def test_the_simulations_run_and_every_claim_is_judged():
    script = ROOT / "examples" / "paper" / "reproduce.py"
    run = subprocess.run(  # noqa: S603
        [sys.executable, str(script), "--quick"],
        capture_output=True, text=True, check=True, cwd=ROOT,
    )  # fmt: skip
    claims = [line for line in run.stdout.splitlines() if line.startswith(("| 4", "| 5"))]
    assert len(claims) == 13
    assert all("**holds" in claim or "**fails" in claim for claim in claims)
    assert "Example 4 (d), A(1, ∅)" in run.stdout
    folder = Path(run.stdout.split("written to ")[1].strip())
    assert {path.name for path in folder.iterdir()} == {
        "examples.csv", "figure4.csv", "figure5.csv", "claims.md", "figure4.png", "figure5.png",
    }  # fmt: skip
