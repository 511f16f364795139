"""The report of a calibration: what was found, as one HTML file that opens offline."""

from jetsel.calibrate.report.page import render

__all__ = ["render"]
