"""A small table for notebooks, and text that is safe to show. Everything is escaped."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from html import escape

_CELL = "text-align:left;padding:2px 12px 2px 0;vertical-align:top"


_UNSEEN = ("Cc", "Cs", "Zl", "Zp")  # control characters, half characters, separators of lines


_BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def printable(text: str, *, lines: bool = False) -> str:
    r"""Escape characters that would control a terminal or reverse the order of text.

    Names and categories come from data: an ESC in one could rewrite the screen, and a bidi control
    could make a number read backwards. They are shown as Python writes them; ends of lines are
    kept where `lines` says so.

    >>> print(printable("a\x1b[31mb\u202ec\n"))
    a\x1b[31mb\u202ec\n
    """
    return "".join(
        repr(one)[1:-1]
        if (one in _BIDI or unicodedata.category(one) in _UNSEEN) and not (lines and one in "\n\t")
        else one
        for one in text
    )


def card(title: str, rows: Iterable[tuple[object, object]]) -> str:
    """Return an HTML table with a heading and two columns.

    >>> print(card("Release", [("value", "<3>")]))
    <table><caption ...><b>Release</b>...<th ...>value</th><td ...>&lt;3&gt;</td></tr></table>
    """
    lines = "".join(
        f'<tr><th style="{_CELL};font-weight:normal;opacity:.7">{escape(printable(str(name)))}</th>'
        f'<td style="{_CELL}">{escape(printable(str(value)))}</td></tr>'
        for name, value in rows
    )
    caption = f'<caption style="text-align:left"><b>{escape(title)}</b></caption>'
    return f"<table>{caption}{lines}</table>"
