"""``pdp-calibrate schema``: the JSON Schema of everything this library writes."""

from __future__ import annotations

from pdp_calibrate.cli.command import command
from pdp_calibrate.cli.options import AsJson
from pdp_calibrate.cli.output import print_json


@command()
def schema(*, json: AsJson = True) -> None:
    """Print the JSON Schema (draft 2020-12) of models, calibrations, releases, ledgers, plans."""
    from pdp_calibrate.show.json_schema import json_schema

    del json  # a schema is JSON anyway
    print_json(json_schema())
