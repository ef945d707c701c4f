"""What a plan file may say."""

from __future__ import annotations

from pdp_calibrate.schema.parts import (
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
            "How the values hang together: a file, a kind to learn, or an assumption.",
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
