"""Run the command line inside the test process, as a user would type it."""

import json
import shlex
from dataclasses import dataclass
from typing import Any

from typer.testing import CliRunner

from pdp_calibrate.cli.main import app


@dataclass(frozen=True)
class Ran:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def run(line: str) -> Ran:
    """Run one line; an exception that is not an exit goes on to the test."""
    result = CliRunner().invoke(app, shlex.split(line), prog_name="pdp-calibrate")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Ran(result.exit_code, result.stdout, result.stderr)


def fine(line: str) -> Ran:
    """Run a line that must succeed."""
    ran = run(line)
    assert ran.code == 0, ran.err
    return ran


def refused(line: str, *, code: int = 2) -> str:
    """Run a line that must be refused in one line on stderr; return that line."""
    ran = run(line)
    assert ran.code == code, (ran.code, ran.out, ran.err)
    assert ran.out == ""
    (message,) = ran.err.splitlines()
    assert message.startswith("error: ")
    return message
