"""What the stand-alone checker takes for files that are small and ask for much work.

    python -m tests.benchmarks.check_hard

Every file of `tests/support/check_hard.py` is checked in a process of its own. None may take more
than 120 CPU seconds or 1 GB. Writes `results/check_hard.txt`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from pdp_calibrate import check as checker
from tests.benchmarks.heading import heading, keep
from tests.support.check_hard import HARD, text_of

_ALONE = """
import json, resource, runpy, sys, time
from pathlib import Path
checker = runpy.run_path(sys.argv[1])
code, text = checker["check_file"](Path(sys.argv[2]))
used = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps([code, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, text]))
"""
_WORDS = ("proved", "broken", "undecided")


def main() -> None:
    """Check all files, and stop where one of them takes too much."""
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file.json"
        for name in HARD:
            path.write_text(text_of(name))
            found = subprocess.run(  # noqa: S603 - of our own file
                [sys.executable, "-I", "-c", _ALONE, checker.__file__, str(path)],
                capture_output=True, text=True, check=True,
            )  # fmt: skip
            code, seconds, memory, text = json.loads(found.stdout)
            size = path.stat().st_size / 1000
            why = f": {text.partition(': ')[2]}" if code else ""
            line = f"{name:38}{size:8.1f} kB {seconds:7.2f} CPU s {memory:5.0f} MB  "
            lines.append(f"{line}{_WORDS[code]}{why}")
            print(lines[-1], flush=True)
            if seconds > 120 or memory > 1000:
                raise SystemExit(f"{name} takes too much.")
    keep("check_hard", [*heading("check_hard"), *lines])


if __name__ == "__main__":
    main()
