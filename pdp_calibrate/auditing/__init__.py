"""An attacker of our own: how much a mechanism that really runs can be shown to leak."""

from pdp_calibrate.auditing.attack import Audit, audit
from pdp_calibrate.auditing.events import Event

__all__ = ["Audit", "Event", "audit"]
