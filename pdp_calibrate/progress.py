"""Say how far long work is: on a terminal, and only if it takes a while."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

_SILENT_SECONDS = 2.0  # shorter work shows nothing


@contextlib.contextmanager
def progress(total: int, what: str) -> Iterator[Callable[[int], None]]:
    """Yield a function that shows the number done, once the work has taken a while."""
    if not sys.stderr.isatty():
        yield lambda _done: None
        return
    from rich.console import Console
    from rich.progress import Progress

    bar = Progress(console=Console(stderr=True), transient=True)
    begun = time.monotonic()
    task = bar.add_task(what, total=total)

    def show(done: int) -> None:
        if time.monotonic() - begun > _SILENT_SECONDS:
            bar.start()
            bar.update(task, completed=done)

    try:
        yield show
    finally:
        bar.stop()
