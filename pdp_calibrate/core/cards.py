"""A small table for notebooks. Everything is escaped."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from pdp_calibrate.errors import printable

_CELL = "text-align:left;padding:2px 12px 2px 0;vertical-align:top"


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
