"""The text of plans, from their sections."""

import json
from typing import Any


def plan_text(*queries: dict[str, Any], **sections: dict[str, Any]) -> str:
    """Return the TOML of a plan: sections such as data, model and budget, then the queries."""
    written = [("[[queries]]", query) for query in queries]
    headed = [(f"[{name}]", said) for name, said in sections.items()]
    return "".join(
        f"{heading}\n" + "".join(f"{key} = {_value(value)}\n" for key, value in said.items())
        for heading, said in headed + written
    )


def _value(value: Any) -> str:
    """JSON says numbers, texts and lists as TOML does; tables it does not."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_value(one)}" for key, one in value.items()) + "}"
    return json.dumps(value)
