"""Run Python in a pseudo-terminal, and read what it shows while somebody waits.

Nothing here depends on how fast the machine is: in these processes a bar stands there from the
beginning, where others wait for a second, and every move of it is drawn.
"""

import re
import subprocess
import sys
from dataclasses import dataclass

import pexpect

EVERY_MOVE_DRAWN = """
import threading
from rich.progress import Progress

class AtOnce(threading.Timer):
    def start(self):
        self.function()
    def join(self):
        pass

threading.Timer = AtOnce
unseen = Progress.update

def update(self, *words, **changes):
    unseen(self, *words, **changes)
    self.refresh()

Progress.update = update
"""

COMMAND_LINE = "from pdp_calibrate.cli.main import main; main()"

HIDE_CURSOR, SHOW_CURSOR = "\x1b[?25l", "\x1b[?25h"


@dataclass(frozen=True)
class Shown:
    """What a terminal was sent by one process that ended well."""

    sent: str

    @property
    def bars(self) -> int:
        """How many bars there were: each hides the cursor when it appears."""
        assert self.sent.count(HIDE_CURSOR) == self.sent.count(SHOW_CURSOR)
        return self.sent.count(HIDE_CURSOR)

    @property
    def states(self) -> list[tuple[str, int]]:
        """What the bar said and its percentage, state after state."""
        found = re.findall(r"([a-z][\w, ]*?) [━╸╺]+ +(\d+)%", _plain(self.sent))
        return [(words, int(percentage)) for words, percentage in found]

    @property
    def text(self) -> str:
        """What is left on the terminal once the bar is gone."""
        return _plain(self.sent.rpartition(SHOW_CURSOR)[2]).replace("\r\n", "\n").strip()

    def pages(self, separator: str) -> list["Shown"]:
        """Return what was sent between lines of this text, each for itself."""
        return [Shown(page) for page in self.sent.split(f"{separator}\r\n")]


def _plain(sent: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", sent)


def in_terminal(code: str, *words: str, redirected: str = "") -> Shown:
    """Run code in a terminal; `redirected` is what a shell is told, such as ``> file``."""
    line = ["-c", f'exec "$@" {redirected}', "sh", sys.executable, "-c", EVERY_MOVE_DRAWN + code]
    terminal = pexpect.spawn(
        "/bin/sh", [*line, *words], encoding="utf-8", dimensions=(40, 120), timeout=300
    )
    terminal.expect(pexpect.EOF)
    terminal.close()
    assert terminal.exitstatus == 0, terminal.before
    return Shown(terminal.before)


def in_pipes(code: str) -> subprocess.CompletedProcess[str]:
    """Run the same where nobody looks."""
    return subprocess.run(  # noqa: S603
        [sys.executable, "-c", EVERY_MOVE_DRAWN + code],
        capture_output=True,
        text=True,
        check=True,
    )
