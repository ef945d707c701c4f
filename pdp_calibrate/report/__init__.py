"""Pictures and a page for people who must sign: everything here only draws and writes.

``pip install "pdp-calibrate[report]"`` brings matplotlib and jinja2; they load on first use.
"""

from pdp_calibrate.report import plots
from pdp_calibrate.report.page import report

__all__ = ["plots", "report"]
