"""The entry of the public registry of differential-privacy deployments, from what is known.

The registry (registry.opendp.org) keeps one YAML file per deployment. `ENTRY` lists the fields of
its schema, as of 2026, with what they may hold; entries are checked against it before they are
written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any, Literal

from pdp_calibrate.calibration.release import Layout
from pdp_calibrate.calibration.result import AnyCalibration, AnyRelease, Release
from pdp_calibrate.errors import PdpError
from pdp_calibrate.ledger.ledger import Ledger
from pdp_calibrate.show.opening import assumed, opening, table_words, unprotected
from pdp_calibrate.show.summary import versions
from pdp_calibrate.show.words import (
    anyone,
    error_of_learning,
    is_clamped,
    kind_of_noise,
    miss_of,
)

Sector = Literal["Technology", "Healthcare", "Education", "Government", "Energy", "Finance"]

_TEXT: dict[str, Any] = {"type": "string", "minLength": 1}
_TEXTS: dict[str, Any] = {"type": "array", "items": _TEXT, "minItems": 1}


def _fields(required: Sequence[str] = (), /, **fields: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": list(required),
        "properties": fields,
    }


def _one_of(*words: str) -> dict[str, Any]:
    return {"enum": list(words)}


ENTRY: dict[str, Any] = _fields(
    ("url_slug", "status", "tier", "deployment"),
    url_slug={"type": "string", "pattern": "^[a-z0-9_]+$"},
    status=_one_of("Draft", "Pending"),
    tier={"enum": [1, 2, 3]},
    deployment=_fields(
        ("basic", "administrative"),
        basic=_fields(
            (
                "name", "data_curators", "description", "intended_use", "data_product_type",
                "data_product_region", "publication_date",
            ),
            name=_TEXT,
            data_curators=_TEXTS,
            intended_use=_TEXT,
            data_product_type=_one_of(
                "Summary statistics", "Machine learning model", "Dataset", "Synthetic data",
                "Interactive API", "SQL queries",
            ),
            data_product_region=_TEXT,
            description=_TEXT,
            publication_date={"type": "string", "pattern": r"^\d{4}-\d{2}-\d{2}$"},
            data_product_sector=_one_of(*Sector.__args__),  # type: ignore[attr-defined]
        ),
        dp_variant=_fields(
            variant_name=_one_of(
                "Pure DP", "Approximate DP", "Zero-concentrated DP", "Renyi DP", "Custom"
            ),
            data_domain=_TEXT,
            unprotected_quantities=_TEXT,
        ),
        privacy_loss=_fields(
            privacy_unit=_TEXT,
            privacy_unit_details=_TEXT,
            privacy_parameters=_fields(
                epsilon={"type": "number"},
                delta={"type": ["number", "string"]},
                rho={"type": "number"},
            ),
            privacy_parameters_details=_TEXT,
        ),
        deployment_model=_fields(
            model_name=_one_of("Local", "Central", "Shuffle", "Federated", "Varies"),
            model_name_details=_TEXT,
            actors=_TEXT,
            release_type=_one_of("One release", "Many releases"),
            release_type_details=_TEXT,
            data_source_type=_one_of("Static", "Dynamic"),
            data_source_type_details=_TEXT,
            access_type=_one_of("Interactive", "Non-interactive"),
            access_type_details=_TEXT,
        ),
        accounting=_fields(post_processing=_TEXT, composition=_TEXT),
        implementation=_fields(
            preprocessing_and_hyperparameter_tuning=_TEXT, mechanisms=_TEXT, justification=_TEXT
        ),
        administrative=_fields(
            ("registry_authors",), sources=_TEXT, notes=_TEXT, registry_authors=_TEXTS
        ),
    ),
)  # fmt: skip
"""The fields of the registry's schema, tiers 1 to 3, and what they may hold."""


def registry_entry(
    subject: AnyCalibration | AnyRelease,
    *,
    name: str,
    curators: Sequence[str],
    intended_use: str,
    region: str,
    authors: Sequence[str],
    description: str | None = None,
    published: str | None = None,
    sector: Sector | None = None,
    sources: str | None = None,
    justification: str | None = None,
    ledger: Ledger | None = None,
) -> dict[str, Any]:
    """Return the entry of the registry about a release, of tier 3 where a reason is given.

    What the library knows is filled in; what only people know is said.

    Parameters
    ----------
    subject
        A release, or the calibration of one that is planned.
    name, curators, intended_use, region, sector
        What the data product is called, who publishes it, what for, whom it is about.
    authors
        Who wrote the entry.
    description
        What it is; by default the first sentence of the report.
    published
        The date, as YYYY-MM-DD; by default today.
    sources
        Where more can be read.
    justification
        Why these choices were made. Without it the entry is of tier 2.
    ledger
        The ledger that counts all releases about these people, if there is one.
    """
    calibration = subject.calibration if isinstance(subject, Release) else subject
    layout = subject.layout if isinstance(subject, Release) else None
    total = calibration.total_epsilon if ledger is None else max(
        ledger.spent, calibration.total_epsilon
    )  # fmt: skip
    said = opening(subject, data=None, layout=layout, total=total)
    basic = {
        "name": name,
        "data_curators": list(curators),
        "intended_use": intended_use,
        "data_product_type": "Summary statistics",
        "data_product_region": region,
        "description": description or said[0],
        "publication_date": _date(published),
        **({} if sector is None else {"data_product_sector": sector}),
    }
    implementation = _implementation(calibration)
    if justification is not None:
        implementation["justification"] = justification
    entry = {
        "url_slug": re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_") or "deployment",
        "status": "Draft",
        "tier": 2 if justification is None else 3,
        "deployment": {
            "basic": basic,
            "dp_variant": _variant(subject, calibration, layout),
            "privacy_loss": _loss(calibration, layout, total, said),
            "deployment_model": _model(ledger),
            "accounting": _accounting(ledger),
            "implementation": implementation,
            "administrative": {
                **({} if sources is None else {"sources": sources}),
                "notes": "Written by pdp-calibrate from its record of the release.",
                "registry_authors": list(authors),
            },
        },
    }
    check_entry(entry)
    return entry


def check_entry(entry: Mapping[str, Any]) -> None:
    """Raise where an entry has fields or values that the registry's schema does not know."""
    from jsonschema import Draft202012Validator

    error = next(iter(Draft202012Validator(ENTRY).iter_errors(entry)), None)
    if error is not None:
        place = ".".join(str(part) for part in error.absolute_path) or "the entry"
        raise PdpError(f"{place} does not fit the registry: {error.message}.")


def as_yaml(entry: Any, *, indent: int = 0) -> str:
    """Write an entry as YAML: names plain, text in quotes, as JSON writes it.

    Examples
    --------
    >>> print(as_yaml({"tier": 2, "basic": {"name": "Mean: income", "data_curators": ["Office"]}}))
    tier: 2
    basic:
      name: "Mean: income"
      data_curators:
        - "Office"
    """
    space = " " * indent
    lines = []
    for name, value in entry.items():
        if isinstance(value, Mapping):
            lines.append(f"{space}{name}:\n{as_yaml(value, indent=indent + 2)}")
        elif isinstance(value, list):
            items = "".join(f"\n{space}  - {json.dumps(one, ensure_ascii=False)}" for one in value)
            lines.append(f"{space}{name}:{items}")
        else:
            lines.append(f"{space}{name}: {json.dumps(value, ensure_ascii=False)}")
    return "\n".join(lines)


def _date(published: str | None) -> str:
    if published is None:
        return datetime.now(UTC).date().isoformat()
    try:
        return date.fromisoformat(published).isoformat()
    except ValueError:
        raise PdpError(f"the date is written YYYY-MM-DD, got {published!r}.") from None


def _variant(
    subject: AnyCalibration | AnyRelease, calibration: AnyCalibration, layout: Layout | None
) -> dict[str, Any]:
    sizes = subject.sizes if isinstance(subject, Release) else None
    return {
        "variant_name": "Custom",
        "data_domain": f"All data sets of {table_words(calibration, layout, sizes)}, with values in"
        " the declared domains.",
        "unprotected_quantities": " ".join(unprotected(subject, layout)),
    }


def _loss(
    calibration: AnyCalibration, layout: Layout | None, total: float, said: Sequence[str]
) -> dict[str, Any]:
    law = assumed(calibration.model, layout, clamped=is_clamped(calibration))
    delta = calibration.total_delta
    return {
        "privacy_unit": "One entry (one person's value), with all that correlated entries reveal"
        " about it.",
        "privacy_unit_details": "Prior differential privacy (arXiv 1906.02606). For every entry i"
        " and every set K of other entries that an adversary may know exactly, the probability of"
        " any output given x_i and x_K differs by at most a factor exp(epsilon) between two values"
        " of x_i, under the stated model of how entries are correlated. With all adversaries"
        f" allowed this implies pure DP for substituting one entry. Model: {law}. Adversaries:"
        f" {anyone(calibration.adversaries)}.",
        "privacy_parameters": {"epsilon": total} | ({"delta": delta} if delta else {}),
        "privacy_parameters_details": said[-1],
    }


def _model(ledger: Ledger | None) -> dict[str, Any]:
    return {
        "model_name": "Central",
        "actors": "The curator holds the table and is trusted with it. Everybody else sees what is"
        " published, and may know the model, the amount of noise and other entries.",
        "release_type": "One release" if ledger is None else "Many releases",
        "data_source_type": "Static",
        "access_type": "Non-interactive",
    }


def _accounting(ledger: Ledger | None) -> dict[str, Any]:
    joint = (
        "Releases about correlated data do not compose by adding up. A ledger bounds what all of"
        " them leak jointly and refuses what would exceed its budget."
        if ledger is not None
        else "One release. Another about the same people would have to be bounded jointly with it."
    )
    return {"composition": joint}


def _implementation(calibration: AnyCalibration) -> dict[str, Any]:
    found = versions()
    made = ", ".join(
        f"{name} {found[name]}" for name in ("pdp-calibrate", "opendp") if name in found
    )
    learned = calibration.estimation_epsilon
    spent = "" if learned is None else f" Learning cost epsilon = {learned:g}, which is counted."
    error = error_of_learning(calibration.model, miss=miss_of(calibration), delta=calibration.delta)
    spent += f" {error}" if error else ""
    each = zip(calibration.scales, calibration.scale_units, strict=True)
    scales = ", ".join(f"{scale:.6g} (in {unit})" for scale, unit in each)
    clamped = " Values are clamped to a stated public range." if is_clamped(calibration) else ""
    return {
        "preprocessing_and_hyperparameter_tuning": f"The model's provenance is"
        f" '{calibration.model.provenance}'.{spent}{clamped} Domains and ranges were stated, not"
        " read from the data.",
        "mechanisms": f"{kind_of_noise(calibration)} noise of scale"
        f" {scales}, drawn by OpenDP's exact"
        f" samplers without a seed ({made}). Rounding of the answer is charged to epsilon; every"
        " bound is rounded up. Timing is not hidden.",
    }
