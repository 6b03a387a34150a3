"""Summaries of objects in plain words, and their short form in notebooks (`_repr_html_`)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from html import escape
from typing import NamedTuple


class Check(NamedTuple):
    """A sentence about how far a result can be trusted.

    `kind` is "good", "note" or "warning"; the last needs attention.
    """

    kind: str
    text: str

    @property
    def mark(self) -> str:
        """A sign for readers who do not see colours."""
        return {"good": "\N{CHECK MARK}", "note": "\N{BULLET}"}.get(self.kind, "\N{WARNING SIGN}")


@dataclass(frozen=True, kw_only=True)
class Summary:
    """What was asked and found, for readers who do not know the method.

    Attributes
    ----------
    title : str
        The usual name of the method.
    asked, found : str
        Sentences.
    facts : dict
        Numbers and words, by their names.
    checks : tuple of Check
    page : str
        The page of the documentation about it, such as "ridge".
    """

    title: str
    asked: str
    found: str
    facts: dict[str, str]
    checks: tuple[Check, ...] = ()
    page: str = "index"


class Summarised:
    """An object with a summary, which notebooks show."""

    @abstractmethod
    def _summary(self) -> Summary:
        """What was asked and found."""

    def _repr_html_(self) -> str:
        return short_form(self._summary())


def short_form(summary: Summary) -> str:
    """A few lines of HTML, in the colours of the page that shows them."""
    rows = "".join(
        f"<tr><th style='text-align: left'>{escape(name)}</th>"
        f"<td style='text-align: left'>{escape(text)}</td></tr>"
        for name, text in summary.facts.items()
    )
    checks = "".join(f"<li>{c.mark} {escape(c.text)}</li>" for c in summary.checks)
    address = docs_address(summary.page)
    link = f"<a href='{escape(address)}'>Documentation</a>" if address else ""
    return (
        f"<div><p><b>{escape(summary.title)}.</b> {escape(summary.found)}</p>"
        f"<table>{rows}</table><ul style='list-style: none; padding: 0'>{checks}</ul>{link}</div>"
    )


@cache
def docs_address(page: str = "") -> str:
    """The address of the documentation or of a page of it, or "" if it is not published."""
    from importlib.metadata import PackageNotFoundError, metadata  # imports much

    try:
        urls: Iterable[str] = metadata("mercer").get_all("Project-URL") or ()
    except PackageNotFoundError:  # the source without an installation
        urls = ()
    found = (url.partition(",")[2].strip() for url in urls if url.startswith("Documentation,"))
    base = next(found, "").rstrip("/")
    return f"{base}/{page}.html" if base and page else base
