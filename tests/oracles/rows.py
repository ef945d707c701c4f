"""What rows add to a question about several columns, by its words alone, one record at a time."""

from __future__ import annotations

import itertools
from typing import Any


def records_of(query: Any, rng: Any, *, most: int | None) -> list[dict[str, Any]]:
    """Return records that one person may have: public cells are fixed, secret ones vary."""
    low, high = query.bounds or (0.0, 1.0)
    cells = {
        "income": [low, high, low - 9, high + 9, (low + high) / 2],
        "sick": [True, False],
        "city": ["a", "b", "elsewhere"],
    }
    for name in query.missing:
        cells[name] = [*cells[name], None]
    for name in query.public:
        cells[name] = [cells[name][rng.integers(len(cells[name]))] if most else cells[name][0]]
    for name in set(cells) - set(query.columns):
        cells[name] = cells[name][:1]
    found = [dict(zip(cells, row, strict=True)) for row in itertools.product(*cells.values())]
    if most is not None and len(found) > most:
        found = [found[place] for place in rng.choice(len(found), most, replace=False)]
    return found


def part_of(query: Any, record: dict[str, Any]) -> tuple[Any, ...] | None:
    """Return the labels of the part in which a record counts, or None if it does not."""
    for condition in query.where:
        if record[condition.name] is None or record[condition.name] not in condition.values:
            return None
    labels = []
    for column in query.by:
        held, rule = record[column.name], query.missing.get(column.name)
        if held is None:
            if rule == "zero":
                return None
            held = None if rule == "category" else rule
        elif held not in column.values:
            return None
        labels.append(held)
    absent = query.value is not None and record[query.value] is None
    return None if absent and query.missing[query.value] == "zero" else tuple(labels)


def value_of(query: Any, record: dict[str, Any]) -> float:
    """Return what a record that counts adds to a sum."""
    low, high = query.bounds
    held = record[query.value]
    return min(max(query.missing[query.value] if held is None else held, low), high)


def answer_of(query: Any, people: Any) -> tuple[float, ...]:
    """Return the numbers to which noise is added, for some people."""
    cells = list(itertools.product(*[_labels(query, column) for column in query.by]))
    counts = dict.fromkeys(cells, 0.0)
    sums = dict.fromkeys(cells, 0.0)
    moved = dict.fromkeys(cells, 0.0)
    for record in people:
        part = part_of(query, record)
        if part is not None:
            counts[part] += 1
            if query.value is not None:
                low, high = query.bounds
                sums[part] += value_of(query, record)
                moved[part] += (value_of(query, record) - (low + high) / 2) / ((high - low) / 2)
    if query.kind == "count":
        return tuple(counts.values())
    decided_in_secret = {one.name for one in (*query.where, *query.by)} - set(query.public)
    if query.missing.get(query.value) == "zero":
        decided_in_secret |= {query.value}
    if query.kind == "mean" and decided_in_secret:
        return (*moved.values(), *counts.values())
    return tuple(sums.values())


def _labels(query: Any, column: Any) -> list[Any]:
    return [*column.values, *([None] if query.missing.get(column.name) == "category" else [])]
