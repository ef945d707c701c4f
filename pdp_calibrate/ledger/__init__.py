"""Accounts of releases about the same data, where adding up is wrong."""

from pdp_calibrate.ledger.book import Ledger
from pdp_calibrate.ledger.entries import Entry

__all__ = ["Entry", "Ledger"]
