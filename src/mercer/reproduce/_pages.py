"""Write results: a figure, a table and a page for each experiment, and an index of all."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from io import BytesIO
from pathlib import Path
from typing import Any

from mercer.reproduce._data import ORIGINS
from mercer.reproduce._experiment import Cell, Claim, Experiment, Result

DPI = 100  # the figures are 7 inches wide: 700 pixels
_CLAIMS = ("the paper says", "printed", "found", "holds if", "holds")
_INDEX = ("experiment", "source", "verdict", "reason")
_STYLE = (
    "body{font:16px/1.5 sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
    "table{border-collapse:collapse;font-size:.85rem;display:block;overflow-x:auto}"
    "td,th{border:1px solid #ccc;padding:.25rem .5rem;text-align:left}img{max-width:100%}"
)


@dataclass(frozen=True, eq=False)
class Outcome:
    """An experiment with its result, or with the data files that it lacks.

    Attributes
    ----------
    experiment : Experiment
        The experiment.
    result : Result or None
        Its result; None if it was skipped.
    missing : tuple of str
        Names of data files that were not found.

    Examples
    --------
    >>> from mercer.reproduce import Outcome, find
    >>> Outcome(find("faithful"), None, ("faithful.csv",)).verdict
    'skipped'
    """

    experiment: Experiment
    result: Result | None
    missing: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        return "skipped" if self.result is None else self.result.verdict.value

    @property
    def reason(self) -> str:
        if self.result is not None:
            return self.result.reason
        return " ".join(f"{name} is missing: {ORIGINS[name]}." for name in self.missing)


def write(outcome: Outcome, folder: Path) -> None:
    """Write the figure, the table (.csv) and the page (.md) of one experiment."""
    name, result = outcome.experiment.name, outcome.result
    if result is not None:
        _write_png(folder / f"{name}.png", result.figure)
        _write_csv(folder / f"{name}.csv", result.columns, result.rows)
    (folder / f"{name}.md").write_text(page(outcome), encoding="utf-8")


def write_index(outcomes: Sequence[Outcome], folder: Path) -> None:
    """Write index.md, index.html and index.csv: all experiments with their verdicts."""
    rows = [(o.experiment.label, _where(o), o.verdict, o.reason) for o in outcomes]
    _write_csv(folder / "index.csv", _INDEX, rows)
    linked = [
        (f"[{label}]({o.experiment.name}.md)", *rest)
        for o, (label, *rest) in zip(outcomes, rows, strict=True)
    ]
    text = f"# Experiments of the literature\n\n{markdown_table(_INDEX, linked)}"
    (folder / "index.md").write_text(text, encoding="utf-8")
    body = "\n".join(map(_section, outcomes))
    linked = [
        (f'<a href="#{o.experiment.name}">{escape(label)}</a>', *(escape(part) for part in rest))
        for o, (label, *rest) in zip(outcomes, rows, strict=True)
    ]
    html = (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>mercer reproduce'
        f"</title><style>{_STYLE}</style></head><body>\n<h1>Experiments of the literature</h1>\n"
        f"{_html_table(_INDEX, linked)}\n{body}\n</body></html>\n"
    )
    (folder / "index.html").write_text(html, encoding="utf-8")


def page(outcome: Outcome) -> str:
    """The page of an experiment: what was done, figure, table, claims and verdict, as Markdown."""
    experiment, result = outcome.experiment, outcome.result
    parts = [f"# {experiment.title}", f"*{_where(outcome)}.* {experiment.setting}"]
    if result is not None:
        parts += [f"![{experiment.title}]({experiment.name}.png)"]
        parts += [markdown_table(result.columns, result.rows)]
        parts += [markdown_table(_CLAIMS, _claim_rows(result.claims))]
    return "\n\n".join([*parts, f"**Verdict: {outcome.verdict}.** {outcome.reason}"]) + "\n"


def markdown_table(columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    """A Markdown table; numbers have four digits."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(as_text(cell) for cell in line)} |" for line in lines)


def as_text(cell: Cell) -> str:
    """Text as it is (bars are escaped, because they end a cell), numbers with four digits."""
    if isinstance(cell, str):
        return cell.replace("|", "\\|")
    if isinstance(cell, int) or math.isinf(cell):
        return str(cell)
    return f"{cell:.4g}"


def _where(outcome: Outcome) -> str:
    return f"{outcome.experiment.source}, {outcome.experiment.shown}"


def _claim_rows(claims: Sequence[Claim], prefix: str = "") -> list[tuple[Cell, ...]]:
    """One row per claim; a correction follows its claim."""
    rows: list[tuple[Cell, ...]] = []
    for claim in claims:
        holds = "yes" if claim.holds else "no"
        cells = (f"{prefix}{claim.says}", claim.printed, float(claim.found), _interval(claim))
        rows.append((*cells, holds))
        if claim.corrected is not None:
            rows += _claim_rows([claim.corrected], "corrected: ")
    return rows


def _interval(claim: Claim) -> str:
    low, high = as_text(float(claim.low)), as_text(float(claim.high))
    if low == high:
        return f"= {low}"
    if math.isinf(claim.low):
        return f"<= {high}"
    return f">= {low}" if math.isinf(claim.high) else f"{low} to {high}"


def _write_png(path: Path, figure: Any) -> None:
    """Save a figure with 128 colours, which makes the file several times smaller."""
    from PIL import Image

    drawn = BytesIO()
    figure.savefig(drawn, dpi=DPI)
    with Image.open(drawn) as image:
        image.convert("RGB").quantize(128, dither=Image.Dither.NONE).save(path, optimize=True)


def _write_csv(path: Path, columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        for row in rows:  # six digits: more would differ between machines
            writer.writerow([f"{cell:.6g}" if isinstance(cell, float) else cell for cell in row])


def _section(outcome: Outcome) -> str:
    """The page of an experiment as HTML."""
    experiment, result = outcome.experiment, outcome.result
    title = escape(experiment.title)
    parts = [f'<h2 id="{experiment.name}">{title}</h2>']
    parts += [f"<p><em>{escape(_where(outcome))}.</em> {escape(experiment.setting)}</p>"]
    if result is not None:
        parts += [f'<p><img src="{experiment.name}.png" alt="{title}"></p>']
        for columns, rows in (
            (result.columns, result.rows),
            (_CLAIMS, _claim_rows(result.claims)),
        ):
            parts += [_html_table(columns, [[escape(as_text(c)) for c in row] for row in rows])]
    verdict = f"<strong>Verdict: {outcome.verdict}.</strong> {escape(outcome.reason)}"
    return "\n".join([*parts, f"<p>{verdict}</p>"])


def _html_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    body = "\n".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table>\n<tr>{head}</tr>\n{body}\n</table>"
