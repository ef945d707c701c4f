"""What a terminal shows while work is done, in a pseudo-terminal."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pexpect

from pdp_calibrate.core import workers
from pdp_calibrate.families.table import set_kernels

START = "import sys, time\nfrom pdp_calibrate.core import workers\nworkers.SILENT_SECONDS = 0.05\n"


def spawn(code: str, **environment: str) -> pexpect.spawn:
    return pexpect.spawn(
        sys.executable,
        ["-c", START + code],
        encoding="utf-8",
        dimensions=(40, 120),
        timeout=120,
        env={"PATH": "", "TERM": "xterm", **environment},
    )


def shown(terminal: pexpect.spawn) -> str:
    terminal.expect(pexpect.EOF)
    terminal.close()
    assert terminal.exitstatus == 0, terminal.before
    return str(terminal.before)


def test_one_bar_runs_to_the_end_and_never_moves_back():
    text = shown(
        spawn(
            "with workers.one_bar('calibrating'):\n"
            "    for search in range(6):\n"
            "        with workers.progress(f'search {search}', total=4) as show:\n"
            "            for done in range(4):\n"
            "                show(done + 1)\n"
            "                time.sleep(0.12)\n"
            "print('finished')\n"
        )
    )
    percent = [int(part.split()[-1]) for part in text.split("%")[:-1] if part.split()[-1].isdigit()]
    assert len(percent) > 5
    assert percent == sorted(percent)
    assert text.count("\x1b[?25l") == 1  # the cursor was hidden once: there was one bar
    assert "search 5" in text
    assert "finished" in text


def test_one_long_step_does_not_keep_the_terminal_silent():
    assert "thinking" in shown(
        spawn("with workers.progress('thinking', total=1) as show:\n    time.sleep(0.6)\n")
    )


def test_short_work_shows_nothing():
    text = shown(spawn("workers.SILENT_SECONDS = 60\nwith workers.progress('quick'):\n    pass\n"))
    assert text.strip() == ""


def test_compiling_is_announced_at_once_and_only_then(tmp_path):
    code = (
        "kernels = workers.load_kernels('pdp_calibrate.core.line_program_kernels')\n"
        "import numpy as np\n"
        "with workers.one_bar('calibrating'):\n"
        "    kernels._monotone(np.ones(2), 0.5, np.ones(2), 0.5, 2, 1.5)\n"
        "    time.sleep(0.3)\n"
    )
    first, second = (shown(spawn(code, NUMBA_CACHE_DIR=str(tmp_path))) for _ in range(2))
    assert "compiling once for this machine, about 4 s" in first
    assert "compiling" not in second


def test_nothing_is_shown_where_nobody_looks(capsys):
    with workers.one_bar("calibrating"), workers.progress("searching", total=1) as show:
        show(1)
    assert capsys.readouterr().err == ""


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
