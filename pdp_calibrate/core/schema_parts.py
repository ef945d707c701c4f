"""The parts from which the JSON Schema of what is written is put together."""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]


def record(**fields: Schema) -> Schema:
    """Describe an object that has these fields, and maybe more."""
    return {"type": "object", "properties": fields, "required": list(fields)}


def with_optional(schema: Schema, **fields: Schema) -> Schema:
    """Describe the same object, which may also have these fields."""
    return schema | {"properties": schema["properties"] | fields}


def items(schema: Schema) -> Schema:
    """Describe a list."""
    return {"type": "array", "items": schema}


def one_of(*words: str) -> Schema:
    """Describe one of a few words."""
    return {"enum": list(words)}


def nullable(schema: Schema) -> Schema:
    """Allow null too."""
    return {"anyOf": [schema, {"type": "null"}]}


def anything_of(*schemas: Schema) -> Schema:
    """Allow any of several."""
    return {"anyOf": list(schemas)}


def ref(name: str) -> Schema:
    """Point to a definition."""
    return {"$ref": f"#/$defs/{name}"}


def described(words: str, schema: Schema) -> Schema:
    """Say what it means."""
    return {"description": words} | schema


TEXT: Schema = {"type": "string"}


NUMBER: Schema = {"type": "number"}


POSITIVE: Schema = {"type": "number", "exclusiveMinimum": 0}


COUNT: Schema = {"type": "integer", "minimum": 0}


CELL: Schema = {"type": ["string", "number", "boolean", "null", "array"]}
"""A name or a value of a domain; a tuple is a list."""


NAMES: Schema = items(CELL)


RANGE: Schema = {"type": "array", "items": NUMBER, "minItems": 2, "maxItems": 2}


VECTOR: Schema = items(NUMBER)


MATRIX: Schema = items(VECTOR)


DOMAINS: Schema = items(items(CELL))


NESTED: Schema = described(
    "Probabilities or counts, one level of lists per tuple.", {"type": "array"}
)
