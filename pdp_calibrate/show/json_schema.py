"""One JSON Schema (draft 2020-12) for every object: models, calibrations, releases, ledgers, plans.

Objects may hold further fields; a plan may not, since a misspelt line of a plan must not be passed
over in silence.
"""

from __future__ import annotations

from typing import Any

from pdp_calibrate.core.model import FORMAT, SCHEMA, Model, model_named
from pdp_calibrate.core.schema_parts import (
    CELL,
    COUNT,
    NAMES,
    NUMBER,
    POSITIVE,
    RANGE,
    TEXT,
    Schema,
    anything_of,
    described,
    items,
    nullable,
    one_of,
    record,
    ref,
    with_optional,
)
from pdp_calibrate.families import MODELS
from pdp_calibrate.jobs.plan import PLAN

_COPIES = described(
    "Whether all further copies of blocks are known too; not, by default.", {"type": "boolean"}
)


_ADVERSARIES = described(
    "Who may attack: all sets of known tuples within a range of sizes, or one adversary by name.",
    anything_of(
        record(at_least=nullable(COUNT), at_most=nullable(COUNT)),
        with_optional(record(target=CELL, known=NAMES), copies=_COPIES),
    ),
)


_OVER = nullable(NAMES)


_COLUMN = record(column=TEXT, values=items(CELL))


_QUERY = described(
    "What is asked; `over` names the tuples that enter, null for all.",
    anything_of(
        record(type=one_of("Sum", "Mean"), over=_OVER, clamp={"type": "boolean"}),
        record(
            type=one_of("Linear"),
            clamp={"type": "boolean"},
            by=one_of("name", "position"),
            weights=items(anything_of(NUMBER, {"type": "array", "prefixItems": [CELL, NUMBER]})),
        ),
        record(type=one_of("Count"), over=_OVER, values=items(CELL)),
        record(type=one_of("Histogram"), over=_OVER, categories=nullable(items(CELL))),
        record(type=one_of("Custom"), over=_OVER, table=items({"type": "array"})),
        record(type=one_of("EachStep"), query=ref("Query")),
        record(
            type=one_of("RowQuery"),
            kind=one_of("count", "sum", "mean"),
            value=nullable(TEXT),
            bounds=nullable(RANGE),
            where=items(_COLUMN),
            by=items(_COLUMN),
            missing={"type": "object", "additionalProperties": CELL},
            public=items(TEXT),
            sizes=nullable(items(COUNT)),
            most=nullable(COUNT),
            keep_by=nullable(TEXT),
            seed=nullable(COUNT),
            independent={"type": "boolean"},
            every=nullable(anything_of(TEXT, NUMBER)),
        ),
    ),
)


_WITNESS = described(
    "The adversary, secrets and output that attain a leakage. Nothing of the data.",
    with_optional(
        record(
            target=CELL,
            known=items({"type": "array", "minItems": 2, "maxItems": 2}),
            secrets={"type": "array", "minItems": 2, "maxItems": 2},
            output=described("A number, a tuple of them, or ±inf, as text.", TEXT),
        ),
        outside=described("Tuples of other, independent blocks that are known.", NAMES),
        copies=_COPIES,
    ),
)


_BRACKET = described(
    "A certified bracket of the leakage; for a private model the upper end alone.",
    record(value={"type": "number", "minimum": 0})
    | {"properties": {
        "value": {"type": "number", "minimum": 0},
        "lower": NUMBER,
        "witness": nullable(ref("Witness")),
        "unit": described("What both ends are: Gaussian noise.", one_of("epsilon", "mu", "rho")),
        "delta": described("The δ that goes with epsilon, for Gaussian noise.", POSITIVE),
        "mu": described("For Gaussian noise, the μ that nobody exceeds.", NUMBER),
    }},
)  # fmt: skip


_CALIBRATED: dict[str, Schema] = {
    "epsilon": described("Nobody learns more, from this one release.", POSITIVE),
    "total_epsilon": described(
        "Nobody learns more, what learning the model leaked included.", POSITIVE
    ),
    "rows": described("Number of independent instances that one answer is about.", COUNT),
    "adversaries": ref("Adversaries"),
    "model": ref("Model"),
    "leakage": ref("Bracket"),
}


_GAUSSIAN_CLAIMS: dict[str, Schema] = {
    "delta": described("For Gaussian noise, the δ that goes with epsilon.", POSITIVE),
    "total_delta": described("The δ that goes with total_epsilon.", POSITIVE),
    "mu": described("For Gaussian noise, the μ that nobody exceeds.", POSITIVE),
    "rho": described("The same as the ρ of zCDP.", POSITIVE),
}


_LAW: Schema = {"assuming": described("Which law of the values the numbers assume.", TEXT)}


def _one_or_many(schema: Schema) -> Schema:
    """Describe what there is one of per answer: for several released together, a list."""
    return anything_of(schema, items(schema) | {"minItems": 1})


_ANSWER = described(
    "A noisy answer; for a histogram, a release row by row or several answers, a list.",
    {"type": ["number", "array"]},
)


_QUESTIONS = described("What is asked; a list together.", anything_of(TEXT, items(TEXT)))


_LAYOUT = described(
    "Which column of a long table it is about, told apart and ordered by which, or wide.",
    anything_of(one_of("wide"), record(value=CELL, by=CELL, order_by=CELL)),
)


_SIZES = described(
    "Pairs of the size of a group and how many the table has; a row of a wide table is a group.",
    items({"type": "array", "items": COUNT, "minItems": 2, "maxItems": 2}),
)


_BUDGET = {
    "epsilon": POSITIVE,
    "spent": NUMBER,
    "remaining": NUMBER,
    "entries": {"type": "integer", "minimum": 0},
}


_BY_COLUMN = described(
    "What is spent on each secret column.",
    {"type": "object", "additionalProperties": NUMBER},
)


_OF_PEOPLE = {
    "column": described(
        "Of a ledger about people: the column whose model it is for, or null for whole households.",
        nullable(TEXT),
    ),
    "price": described("What it costs all other columns.", NUMBER),
    "spent_by_column": _BY_COLUMN,
}


_STEP = described(
    "About a model without an end: the step, a number or when its period begins.",
    {"type": ["integer", "string"]},
)


_NOISY = {
    "step": _STEP,
    "noise": described("What was drawn, if it is not Laplace noise.", one_of("gaussian")),
    "delta": described("The δ that goes with ε, for Gaussian noise.", NUMBER),
    "mu": described("The μ that it keeps alone, of Gaussian noise.", NUMBER),
    "joint_mu": described("How much of the filter for Gaussian noise was used then.", NUMBER),
}


_DIVIDED = {
    "delta": described("The δ that goes with ε, where Gaussian noise is drawn.", POSITIVE),
    "default_noise": described("The default noise of releases.", one_of("laplace", "gaussian")),
    "pure": described("The part of ε for Laplace noise and other mechanisms.", NUMBER),
    "repeats": described("The share of δ for repeats of one query, counted exactly.", NUMBER),
    "mu": described("The μ that was asked for in place of ε.", POSITIVE),
    "rho": described("The ρ of zCDP that was asked for in place of ε.", POSITIVE),
}


_ENTRY = described(
    "One line of a ledger: what was released, never what came out.",
    record(
        draw=TEXT,
        kind=one_of("release", "charge", "estimation"),
        at=described("When, UTC, ISO 8601.", TEXT),
        spent=described("The joint leakage of the draw so far.", NUMBER),
        method=described("The bound in force.", TEXT),
        note=TEXT,
    )
    | {
        "if": {"properties": {"kind": {"const": "release"}}},
        "then": {"allOf": [
            record(
                queries=items(ref("Query")), scales=items(POSITIVE), rows=COUNT, epsilon=POSITIVE
            ),
            {"properties": {"layout": _LAYOUT, "sizes": _SIZES, **_OF_PEOPLE, **_NOISY}},
        ]},
        "else": anything_of(record(dp_epsilon=NUMBER), record(mu=NUMBER), record(rho=NUMBER)),
    },
)  # fmt: skip


_CHOICE = record(
    name=TEXT,
    model=TEXT,
    assumes=TEXT,
    call=described("How to ask for it in Python.", TEXT),
    command=described("How to ask for it on the command line.", TEXT),
    scale=nullable(POSITIVE),
    half_width=nullable(NUMBER),
    scale_range=nullable(items(NUMBER)),
    note=TEXT,
)


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of everything that this library writes, and of plans.

    Examples
    --------
    >>> sorted(json_schema()["$defs"])[:4]
    ['Adversaries', 'Advice', 'Audit', 'BinaryGroup']
    """
    models = {name: _family(model_named(name)) for name in MODELS}
    objects = {
        "Calibration": _object(
            "Calibration",
            "A proved scale of noise for one release; lists for several answers made together.",
            scale=described("The Laplace scale λ, or σ of Gaussian noise.", _one_or_many(POSITIVE)),
            noise=_one_or_many(one_of("Laplace", "discrete Laplace", "Gaussian")),
            query=_one_or_many(ref("Query")),
            **_CALIBRATED,
        ),
        "Release": _object(
            "Release",
            "A noisy answer and how it was made; never the true answer.",
            value=_ANSWER,
            calibration=ref("Calibration"),
        ),
        "Ledger": _object(
            "Ledger",
            "A budget for all releases about the same people.",
            epsilon=described("What everything together may leak, per draw.", POSITIVE),
            adversaries=ref("Adversaries"),
            model=described(
                "Null while it is being learned, its ε already spent.", nullable(ref("Model"))
            ),
            draws=items(TEXT),
            entries=items(ref("Entry")),
        )
        | {
            "allOf": [
                {
                    "properties": {
                        "anchor": described("A second file that must agree with it.", TEXT),
                        "certificate": described(
                            "In a copy for the stand-alone checker: `orders`, where it needs them.",
                            {},
                        ),
                        "stream": described(
                            "About a model without an end: how long a step is, and what is"
                            " promised to future steps.",
                            record(every=nullable(TEXT), promise=NUMBER),
                        ),
                        "course": described(
                            "What was spent at each step, old steps folded into three numbers.",
                            record(
                                steps=items({"type": "array", "minItems": 2, "maxItems": 2}),
                                on_top=NUMBER,
                                folded=nullable(
                                    record(
                                        before={"type": "integer"}, forward=NUMBER, largest=NUMBER
                                    )
                                ),
                                entries=COUNT,
                            ),
                        ),
                    }
                }
            ]
        },
        "PeopleLedger": _object(
            "PeopleLedger",
            "A budget for every column of the same people.",
            epsilon=described("What may be spent on each column.", POSITIVE),
            declared=described(
                "What was said about the table: names, ranges and values, nothing read from it.",
                {"type": "object"},
            ),
            columns=described("The secret columns.", items(TEXT)),
            sizes=_SIZES,
            models=described(
                "The model of each column that was released about under one.",
                {"type": "object", "additionalProperties": ref("Model")},
            ),
            entries=items(ref("Entry")),
        ),
        "PeopleStatus": _object(
            "PeopleStatus",
            "What is spent and left of the budget for people.",
            **_BUDGET,
            spent_by_column=_BY_COLUMN,
        ),
        "Price": _object(
            "Price",
            "What an answer about people would cost; nothing was spent.",
            calibration=ref("Calibration"),
            column=nullable(TEXT),
            own=NUMBER,
            others=NUMBER,
            spent_by_column=_BY_COLUMN,
            epsilon=POSITIVE,
            fits={"type": "boolean"},
        ),
        "Leakage": _object(
            "Leakage",
            "What a release at a given scale leaks.",
            scale={"type": ["number", "array"]},
            leakage=ref("Bracket"),
        ),
        "Audit": _object(
            "Audit",
            "What an attack on a real release proved.",
            lower_bound=NUMBER,
            epsilon=nullable(NUMBER),
            confidence=NUMBER,
            is_broken={"type": "boolean"},
        ),
        "Refresh": _object(
            "Refresh",
            "A budget that is refreshed every period, and what it comes to about any one of them.",
            epsilon=POSITIVE,
            every=TEXT,
            persistence=POSITIVE,
            states=COUNT,
            diameter=NUMBER,
            leakage=described("The largest leakage about any one record, for ever.", POSITIVE),
            leakage_about_the_latest=POSITIVE,
            temporal=described("Temporal privacy leakage.", POSITIVE),
            counted_for_a_year=described("What counting every period says.", POSITIVE),
            still_gains=COUNT,
            budget=described("The budget of a period that would keep epsilon.", POSITIVE),
        ),
        "Explanation": _object("Explanation", "What was calibrated, in words.", text=TEXT),
        "Check": _object(
            "Check",
            "What the stand-alone checker decided.",
            proved={"type": ["boolean", "null"]},
            text=TEXT,
        ),
        "Report": _object("Report", "A page that was written.", path=TEXT),
        "LedgerStatus": _object(
            "LedgerStatus",
            "What is spent and left of a ledger's budget.",
            **_BUDGET,
            draw=TEXT,
        ),
        "LedgerHistory": _object(
            "LedgerHistory", "Everything that a ledger holds.", entries=items(ref("Entry"))
        ),
        "Advice": _object(
            "Advice",
            "Which model fits a table, and what the others would cost.",
            epsilon=POSITIVE,
            columns={"type": "object", "additionalProperties": TEXT},
            choice=nullable(_CHOICE),
            alternatives=items(_CHOICE),
            questions=items(TEXT),
        ),
        "PlanCheck": _object(
            "PlanCheck",
            "What a plan would release; the calibration is null where it is known only when run.",
            answers=items(
                record(
                    name=TEXT,
                    query=_QUESTIONS,
                    epsilon=POSITIVE,
                    calibration=nullable(ref("Calibration")),
                )
            ),
        ),
        "Outcome": _object(
            "Outcome",
            "What running a plan released, and what is left of its budget.",
            releases=items(record(name=TEXT, query=_QUESTIONS, release=ref("Release"))),
            budget={
                "allOf": [
                    record(epsilon=POSITIVE, spent=NUMBER, remaining=NUMBER),
                    anything_of(record(draw=TEXT), record(spent_by_column=_BY_COLUMN)),
                ]
            },
        ),
    }
    for name in ("Calibration", "Leakage", "Audit"):
        objects[name]["properties"] |= _LAW
    objects["Calibration"]["properties"] |= _GAUSSIAN_CLAIMS
    for name in ("Ledger", "PeopleLedger"):
        objects[name]["properties"] |= _DIVIDED
    objects["Audit"]["properties"]["delta"] = described("The δ beside ε.", POSITIVE)
    objects["LedgerStatus"]["properties"] |= {"delta": POSITIVE, "mu": POSITIVE}
    objects["LedgerStatus"]["properties"]["repeats"] = _DIVIDED["repeats"]
    objects["Release"]["properties"]["noisy"] = described(
        "For each query the noisy numbers behind a mean of rows: sums, and secret counts.",
        items(items(NUMBER)),
    )
    objects["Release"]["properties"] |= {"layout": _LAYOUT, "sizes": _SIZES}
    objects["Release"]["properties"] |= {"step": _STEP, "every": nullable(TEXT)}
    objects["Release"]["properties"]["number"] = described(
        "The number of the step, counted from 1970 where steps have a length.", {"type": "integer"}
    )
    objects["Calibration"]["properties"]["count"] = described(
        "About how many rows are expected behind a mean over a secret number of them: for its"
        " accuracy alone.",
        POSITIVE,
    )
    objects["Calibration"]["properties"]["certificate"] = described(
        "What the stand-alone checker needs to prove a large calibration: `branches`, a tree for"
        " each target, `orders`, a `radius` or `plans`. Of any form, or null: it proves nothing by"
        " itself.",
        {},
    )
    parts = {
        "Adversaries": _ADVERSARIES,
        "Query": _QUERY,
        "Witness": _WITNESS,
        "Bracket": _BRACKET,
        "Entry": _ENTRY,
        "Coverage": described(
            "How a model was learned, and what is covered of its error.",
            record(kind=one_of("covered", "point", "no band"))
            | {
                "properties": {
                    "kind": one_of("covered", "point", "no band"),
                    "confidence": POSITIVE,
                    "over": one_of("sampling", "sampling and noise"),
                    "notes": items(TEXT),
                    "upper": ref("Model"),
                }
            },
        ),
        "Model": described("How the tuples are correlated.", anything_of(*map(ref, models))),
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:pdp-calibrate:1",
        "title": "Everything that pdp_calibrate writes to JSON, and plans",
        "anyOf": [ref("Model"), *map(ref, objects), ref("Plan")],
        "$defs": models | objects | parts | {"Plan": PLAN},
    }


def _object(kind: str, words: str, **fields: Schema) -> Schema:
    return described(words, _headed(kind, **fields))


def _headed(kind: str, **fields: Schema) -> Schema:
    """Describe an object with its header; version 1 did not say which it was."""
    head = record(schema={"const": SCHEMA}, type={"const": kind}, **fields)
    head["properties"]["version"] = {"type": "integer", "minimum": 1, "maximum": FORMAT}
    return head


def _family(model: type[Model]) -> Schema:
    """Describe a family of models: with its numbers, or private and without them."""
    fields = model.json_fields or {name: {} for name in model.defined_by}
    head = _headed(
        model.__name__,
        names=NAMES,
        provenance=one_of("assumed", "public", "dp", "private"),
    )
    head["properties"]["coverage"] = ref("Coverage")
    withheld = {"not": {"anyOf": [{"required": [name]} for name in fields]}}
    return described(f"{model.dependence or model.__name__}.".capitalize(), head) | {
        "if": {"properties": {"provenance": {"const": "private"}}},
        "then": withheld,
        "else": anything_of(
            record(**fields),
            described("In place of more than 10⁴ numbers.", record(digest=TEXT)),
        ),
    }
