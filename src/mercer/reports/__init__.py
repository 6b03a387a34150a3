"""Written reports: one HTML file that says what was asked, what was found, and how to repeat it."""

from mercer.reports._report import Report, report

__all__ = ["Report", "report"]
