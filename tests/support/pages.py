"""The code on pages, run as a reader would: from top to bottom, each output compared.

A line that ends with ``# noise`` gives another number every time. Its output is compared by its
form: every number stands for any other, and how many columns it takes does not matter.
"""

import doctest
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
NUMBER = re.compile(r"[-−]?(\d{1,3}(,\d{3})+|\d+)(\.\d+|\.(?=[\]),]))?(e[-+]?\d+)?")
NUMPY = re.compile(r"np\.float64\(([^()]*)\)")  # a clipped answer may come back as a bare float
NOISE = "# noise"
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def pages() -> list[str]:
    """List every page of the site and the pages beside it, as paths from the root."""
    found = [
        path
        for path in (ROOT / "docs").rglob("*.md")
        if not {"_build", "_generated"} & set(path.parts)
    ]
    return ["README.md", *sorted(str(path.relative_to(ROOT)) for path in found)]


def blocks(page: str) -> list[str]:
    """Return the Python on a page."""
    return BLOCK.findall((ROOT / page).read_text())


def form(text: str) -> str:
    """Return what stays of an output with noise: every number is 0, and widths do not matter."""
    plain = re.sub(r"[─━┃│┏┓┗┛┡┩┌┐└┘├┤┼╇┳┻┴┬]+", " ", text)
    return " ".join(NUMBER.sub("0", NUMPY.sub(r"\1", plain)).split())


class _Form(doctest.OutputChecker):
    """Compares by form where the line says that noise is in it."""

    noisy = False

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        if self.noisy:
            want, got = form(want), form(got)
        return super().check_output(want, got, optionflags)


class _Runner(doctest.DocTestRunner):
    """Tells the checker which line it is at."""

    def run_page(self, test: doctest.DocTest) -> list[str]:
        problems: list[str] = []
        checker: Any = self._checker  # type: ignore[attr-defined]
        examples = test.examples
        for example in examples:
            test.examples = [example]
            checker.noisy = NOISE in example.source
            out: list[str] = []
            self.run(test, out=out.append, clear_globs=False)
            problems += out
        test.examples = examples
        return problems


def problems_of(block: str, page: str, names: dict[str, Any] | None = None) -> str:
    """Run one block, and say what came out otherwise than the page shows; empty if nothing.

    `names` holds what earlier blocks of the page defined, and afterwards this one's too.
    """
    known = {} if names is None else names
    test = doctest.DocTestParser().get_doctest(block, known, page, page, 0)
    test.globs = known  # the parser copies them
    runner = _Runner(checker=_Form(), verbose=False, optionflags=FLAGS)
    return "".join(runner.run_page(test))
