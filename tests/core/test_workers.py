"""What a terminal shows while compiled code is compiled, and where the result is kept."""

import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path

from pdp_calibrate.core import workers
from pdp_calibrate.families.table import set_kernels

COMPILES = """
import numba
from pdp_calibrate.core.workers import announce_compiling
announce_compiling()
announce_compiling()
@numba.njit
def next_one(x):
    return x + 1
next_one(1), next_one(1.0)
"""


def shown_by(code: str) -> str:
    """What a program writes to its terminal."""
    ours, theirs = pty.openpty()
    with subprocess.Popen([sys.executable, "-c", code], stderr=theirs) as process:  # noqa: S603
        os.close(theirs)
        shown = b""
        while True:
            try:
                shown += os.read(ours, 1024)
            except OSError:  # the program has ended
                break
        os.close(ours)
    assert process.returncode == 0
    return shown.decode()


def test_a_terminal_says_once_that_something_is_compiled():
    assert shown_by(COMPILES).split("\r\n") == ["compiling once for this machine, 4 to 15 s", ""]


def test_what_is_compiled_already_needs_no_words():
    assert shown_by(COMPILES.replace("next_one(1), next_one(1.0)", "")) == ""


def test_outside_a_terminal_nothing_listens(monkeypatch):
    monkeypatch.setattr(workers, "_announced", False)
    workers.announce_compiling()
    assert workers._announced is False


def test_where_the_package_cannot_be_written_the_users_cache_is_used(tmp_path):
    """As in a read-only install; a file stands where the folder for compiled code would be."""
    shutil.copy(set_kernels.__file__, tmp_path / "kernels.py")
    (tmp_path / "__pycache__").write_text("")
    cache = tmp_path / "cache"
    environment = {
        **{name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"},
        "PYTHONPATH": str(tmp_path),
        "XDG_CACHE_HOME": str(cache),
        "HOME": str(tmp_path),
    }
    code = (
        "import kernels, numpy as np; law = np.ones(2); "
        "kernels.moved_in(law, 0.5, np.arange(2), law.copy())"
    )
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)  # noqa: S603
    kept = [path for path in Path(tmp_path).rglob("*.nbi") if "__pycache__" not in path.parts]
    assert [path.name.split(".")[1].split("-")[0] for path in kept] == ["moved_in"]
