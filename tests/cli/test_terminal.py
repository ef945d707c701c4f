"""The command line in a real terminal: a bar while it works, gone when it is done."""

import json
import sys

import numpy as np
import pandas as pd
import pexpect
import pytest

# Nobody wants to wait in a test: the bar comes at once, and not after two seconds.
CODE = (
    "from pdp_calibrate.core import workers; workers.SILENT_SECONDS = 0.0\n"
    "from pdp_calibrate.cli.main import main; main()"
)
BAR, HIDE_CURSOR, SHOW_CURSOR = "━━━━", "\x1b[?25l", "\x1b[?25h"


def spawn(*words: str) -> pexpect.spawn:
    return pexpect.spawn(
        sys.executable,
        ["-c", CODE, *words],
        encoding="utf-8",
        dimensions=(40, 120),
        timeout=180,
    )


@pytest.mark.compiled
def test_long_work_shows_a_bar_and_then_its_result(tmp_path):
    rng = np.random.default_rng(4)
    shared = rng.random((300, 1))
    answers = (rng.random((300, 12)) < 0.2 + 0.6 * shared).astype(int)
    file = tmp_path / "answers.csv"
    pd.DataFrame(answers, columns=[f"q{n}" for n in range(12)]).to_csv(file, index=False)
    weighted = "+".join(
        f"{1 + 0.137 * n:.3f}*q{n}" for n in range(12)
    )  # no lattice: seconds of work
    terminal = spawn(
        "leakage", str(file), "-q", f"linear({weighted})", "--kind", "table", "--public",
        "--scale", "4",
    )  # fmt: skip
    terminal.expect_exact(BAR)
    assert HIDE_CURSOR in terminal.before + terminal.after
    terminal.expect_exact(SHOW_CURSOR)
    terminal.expect(r"leakage.*attacks q\d+")
    assert BAR not in terminal.after
    terminal.expect(pexpect.EOF)
    terminal.close()
    assert terminal.exitstatus == 0


def test_json_in_a_terminal_is_plain_json():
    terminal = spawn("schema")
    terminal.expect(pexpect.EOF)
    terminal.close()
    assert terminal.exitstatus == 0
    assert json.loads(terminal.before)["$defs"]
