"""Check plain data against the schema of plans, and say in words where they differ.

Only the few rules of JSON Schema that plans use; a test compares with a full implementation.
"""

from __future__ import annotations

from typing import Any

from pdp_calibrate.schema.parts import Schema

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
