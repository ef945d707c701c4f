"""Show how far long work is, on a terminal only."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

SILENT_SECONDS = 2.0  # shorter work shows nothing


@contextlib.contextmanager
def progress(what: str, *, total: int | None = None) -> Iterator[Callable[[int], None]]:
    """Yield a function that shows the number done, once the work has taken a while.

    Parameters
    ----------
    what
        What is being done.
    total
        How much there is to do; None if nobody knows.
    """
    if not sys.stderr.isatty():
        yield lambda _done: None
        return
    from rich.console import Console
    from rich.progress import Progress

    bar = Progress(console=Console(stderr=True), transient=True)
    begun = time.monotonic()
    task = bar.add_task(what, total=total)

    def show(done: int) -> None:
        if time.monotonic() - begun > SILENT_SECONDS:
            bar.start()
            bar.update(task, completed=done)

    try:
        yield show
    finally:
        bar.stop()
