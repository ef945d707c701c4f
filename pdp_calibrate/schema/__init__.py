"""The JSON that this library writes, described by one JSON Schema, and how it is read back."""

from pdp_calibrate.schema.definitions import json_schema
from pdp_calibrate.schema.stored import Stored, explainable, load

__all__ = ["Stored", "explainable", "json_schema", "load"]
