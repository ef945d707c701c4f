"""What a plan file may say.

Check plain data against the schema of plans, and say in words where they differ.

Only the few rules of JSON Schema that plans use; a test compares with a full implementation.
"""

from __future__ import annotations

from typing import Any

from pdp_calibrate.jobs.schema_parts import (
    CELL,
    NUMBER,
    POSITIVE,
    RANGE,
    TEXT,
    Schema,
    anything_of,
    described,
    items,
    one_of,
)

_RANGES: Schema = {"type": "object", "additionalProperties": RANGE}


def _strict(words: str, required: list[str], fields: dict[str, Schema]) -> Schema:
    return {
        "description": words,
        "type": "object",
        "properties": fields,
        "required": required,
        "additionalProperties": False,
    }


PLAN: Schema = _strict(
    "Data, model, queries and budget of releases that run without questions (a TOML file).",
    ["data", "budget", "queries"],
    {
        "data": _strict(
            "Where the rows are, and how they are laid out.",
            [],
            {
                "file": described("CSV, TSV, parquet file or folder of parquet files.", TEXT),
                "delimiter": described("What separates the columns of a text file.", TEXT),
                "sql": described("Instead of a file, a query for DuckDB.", TEXT),
                "database": described("The DuckDB database that the query is for.", TEXT),
                "groups": described("The column that tells groups apart.", TEXT),
                "order_by": described("The column that orders the rows of a group.", TEXT),
                "time_format": described(
                    "How that column is written where it is text, such as %d/%m/%Y; ISO 8601 else.",
                    TEXT,
                ),
            },
        ),
        "model": _strict(
            "How the values are correlated: a file, a kind to learn, or an assumption.",
            [],
            {
                "file": described("A model in JSON.", TEXT),
                "kind": one_of("table", "gaussian", "groups", "chain", "series"),
                "public": described("Whether the rows are public.", {"type": "boolean"}),
                "epsilon": described("Learn under differential privacy.", POSITIVE),
                "columns": described("The columns that are tuples.", items(TEXT)),
                "value": described("For rows in groups, the column of values.", TEXT),
                "bounds": described(
                    "Public range of all columns, or of each.", anything_of(RANGE, _RANGES)
                ),
                "correlation": described(
                    "Assumed: one common correlation, or a range of it.", anything_of(NUMBER, RANGE)
                ),
                "assume": described(
                    "That a correlation of whole numbers is about jointly Gaussian values.",
                    one_of("gaussian"),
                ),
                "domains": described(
                    "Possible values, by column.",
                    {"type": "object", "additionalProperties": items(CELL)},
                ),
                "smoothing": POSITIVE,
                "confidence": POSITIVE,
                "covariance": TEXT,
                "structure": TEXT,
                "options": described(
                    "Further options of the estimator.",
                    {"type": "object", "additionalProperties": CELL},
                ),
            },
        ),
        "budget": _strict(
            "What everything together may leak.",
            ["epsilon"],
            {
                "epsilon": POSITIVE,
                "ledger": described("A file that keeps the budget between runs.", TEXT),
                "anchor": described(
                    "A second file, elsewhere, that must agree with the ledger.", TEXT
                ),
                "draw": described(
                    "The draw of the data; a new name has a budget of its own.", TEXT
                ),
                "adversaries": described("all, weakest, strongest, knowing:1:3, …", TEXT),
                "time_limit": described("Seconds for each search.", POSITIVE),
            },
        ),
        "queries": items(
            _strict(
                "One answer.",
                ["query", "epsilon"],
                {
                    "query": described("Such as mean(income).", TEXT),
                    "epsilon": described("What this answer may leak alone.", POSITIVE),
                    "name": described("What to call it; the query by default.", TEXT),
                },
            )
        )
        | {"minItems": 1},
        "output": _strict(
            "What to write.",
            [],
            {
                "releases": described("A JSON file with the answers.", TEXT),
                "report": described("An HTML report.", TEXT),
            },
        ),
    },
)


_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
    "boolean": (bool,),
    "null": (type(None),),
}


_WORDS = {
    "object": "a table", "array": "a list", "string": "text", "number": "a number",
    "integer": "a whole number", "boolean": "true or false", "null": "nothing",
}  # fmt: skip


def first_problem(data: Any, schema: Schema, *, place: str = "") -> str | None:
    """Return where and how the data break the schema, or None if they keep it."""
    if "anyOf" in schema:
        problems = [first_problem(data, one, place=place) for one in schema["anyOf"]]
        if None in problems:
            return None
        return max(filter(None, problems), key=_depth)  # the alternative that was meant
    if "enum" in schema and data not in schema["enum"]:
        return f"{place} must be one of {', '.join(schema['enum'])}"
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(_is(data, kind) for kind in kinds):
        return f"{place or 'the plan'} must be {' or '.join(_WORDS[kind] for kind in kinds)}"
    if "exclusiveMinimum" in schema and not data > schema["exclusiveMinimum"]:
        return f"{place} must be above {schema['exclusiveMinimum']}"
    if isinstance(data, list):
        return _problem_of_list(data, schema, place)
    if isinstance(data, dict):
        return _problem_of_table(data, schema, place)
    return None


def _problem_of_list(data: list[Any], schema: Schema, place: str) -> str | None:
    least, most = schema.get("minItems", 0), schema.get("maxItems", len(data))
    if not least <= len(data) <= most:
        wanted = f"{least}" if least == schema.get("maxItems") else f"at least {least}"
        return f"{place} must have {wanted} {'entry' if least == 1 else 'entries'}"
    for number, item in enumerate(data, start=1):
        problem = first_problem(item, schema.get("items", {}), place=f"{place}[{number}]")
        if problem:
            return problem
    return None


def _problem_of_table(data: dict[str, Any], schema: Schema, place: str) -> str | None:
    prefix = f"{place}." if place else ""
    for name in schema.get("required", []):
        if name not in data:
            return f"{prefix}{name} is missing"
    fields, others = schema.get("properties", {}), schema.get("additionalProperties", {})
    for name, value in data.items():
        if name not in fields and others is False:
            return f"{prefix}{name} is unknown; there is {', '.join(fields)}"
        problem = first_problem(value, fields.get(name, others), place=f"{prefix}{name}")
        if problem:
            return problem
    return None


def _depth(problem: str) -> int:
    place = problem.split(" ", maxsplit=1)[0]
    return place.count(".") + place.count("[")


def _is(data: Any, kind: str) -> bool:
    if isinstance(data, bool):
        return kind == "boolean"
    return isinstance(data, _TYPES[kind])
