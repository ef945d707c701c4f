"""Which values of a frame a release is about, as ledgers write it down and compare it.

A model says how the values of one column hang together, or of the columns that its tuples are named
after. It says nothing of another column of the same people, nor of the same column in other groups.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pdp_calibrate.answers import Sizes
from pdp_calibrate.calibration.releasing import Layout, LongFrame
from pdp_calibrate.errors import LedgerError, damage_refused
from pdp_calibrate.models.base import field_of, from_json_value, json_value, plain

_COLUMNS = ("value", "by", "order_by")  # how the last one is written changes nothing


def stored_layout(layout: Layout) -> Any:
    """Describe a layout for JSON: names of columns, or that the frame is wide."""
    if not isinstance(layout, LongFrame):
        return layout
    return {column: json_value(plain(getattr(layout, column))) for column in _COLUMNS}


def layout_from(described: Any) -> Layout | None:
    """Undo `stored_layout`; None where nothing was written, by an earlier version for instance."""
    if described is None or described == "wide":
        return described  # type: ignore[no-any-return]  # one of the two
    if not isinstance(described, Mapping):
        raise LedgerError("a layout is a table of columns, or wide.")
    value, by, order_by = (from_json_value(field_of(described, name)) for name in _COLUMNS)
    return LongFrame(value=value, by=by, order_by=order_by)


def check_same_tuples(
    entries: Sequence[Mapping[str, Any]], draw: str, layout: Layout | None
) -> None:
    """Refuse a release about other values than those that the draw was about so far.

    The first entry with a layout fixes it; entries without one, of outside mechanisms and of
    earlier versions, agree with all. An order may be named later, once a query needs it.
    """
    if layout is None:
        return
    wanted = layout_from(stored_layout(layout))  # as it will be read
    for entry in entries:
        found = layout_from(entry.get("layout")) if entry.get("draw") == draw else None
        if found is not None and not _agree(found, wanted):
            raise LedgerError(
                f"draw {draw!r} of this ledger is about {_words(found)}, and this release about"
                f" {_words(wanted)}: the model says nothing of both together. Make one model of"
                " everything asked; or a ledger for each, which states that what one is about says"
                " nothing of the other."
            )


def sizes_from(described: Any) -> Sizes | None:
    """Read sizes from JSON; None where nothing was written, by an earlier version for instance."""
    if described is None:
        return None
    with damage_refused("the size of a frame", kind=LedgerError):
        sizes = tuple((size, number) for size, number in described)
    if not all(type(number) is int and number > 0 for pair in sizes for number in pair):
        raise LedgerError("sizes of groups, and how many there are, are positive whole numbers.")
    return sizes


def check_same_sizes(entries: Sequence[Mapping[str, Any]], draw: str, sizes: Sizes | None) -> None:
    """Refuse a frame with another number of rows or groups than the draw was about so far.

    The first entry with sizes fixes them; entries without, about one instance for instance, agree
    with all. The numbers themselves are not named: after filtering they may be secret.
    """
    if sizes is None:
        return
    for entry in entries:
        found = sizes_from(entry.get("sizes")) if entry.get("draw") == draw else None
        if found is not None and found != sizes:
            raise LedgerError(
                f"draw {draw!r} of this ledger is about a frame with another number of rows or"
                " groups than this one. Rows chosen by a secret column make their number a secret:"
                " release about all of them. Data that are independent of those, about other"
                " people for instance, get a draw of their own: new_draw (ledger draw)."
            )


def _agree(found: Layout, wanted: Layout | None) -> bool:
    if not isinstance(found, LongFrame) or not isinstance(wanted, LongFrame):
        return found == wanted
    orders = {found.order_by, wanted.order_by} - {None}
    return (found.value, found.by) == (wanted.value, wanted.by) and len(orders) < 2


def _words(layout: Layout | None) -> str:
    if not isinstance(layout, LongFrame):
        return "the columns that the model names"
    words = f"column {layout.value}"
    if layout.by is not None:
        words += f" in groups by {layout.by}"
    return words if layout.order_by is None else f"{words} in order of {layout.order_by}"
