"""Written reports on fits, tests and pre-images: one HTML file each."""

from mercer.reports._report import Report, report

__all__ = ["Report", "report"]
