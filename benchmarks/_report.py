"""What a suite returns, and how it is printed and saved.

`benchmarks/results/<suite>.json` holds the last full run with the machine it ran on;
`benchmarks/results/history.jsonl` gets one line per suite and run.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks._harness import Key, Race


@dataclass(frozen=True)
class Bar:
    """What a figure has to reach."""

    low: float | None = None
    high: float | None = None

    def holds(self, value: float) -> bool:
        above = self.low is None or value >= self.low
        return above and (self.high is None or value <= self.high)

    def __str__(self) -> str:
        return f">= {_number(self.low)}" if self.low is not None else f"<= {_number(self.high)}"


def at_least(value: float) -> Bar:
    return Bar(low=value)


def at_most(value: float) -> Bar:
    return Bar(high=value)


@dataclass(frozen=True)
class Figure:
    """One number of a case; without a bar it is only reported."""

    case: str
    quantity: str
    value: float | None
    bar: Bar | None = None

    @property
    def verdict(self) -> str:
        if self.bar is None:
            return "reported"
        if self.value is None:
            return "skipped"
        return "pass" if self.bar.holds(self.value) else "FAIL"


@dataclass(frozen=True)
class Row:
    """The times of one contender. Ratios are to mercer; share is of the limit."""

    case: str
    contender: str
    minimum: float
    median: float
    samples: int
    ratio: float | None = None
    ratio_of_medians: float | None = None
    share: float | None = None
    error: float | None = None


@dataclass
class Outcome:
    """All that a suite found."""

    title: str
    rows: list[Row] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def failures(self) -> int:
        return sum(figure.verdict == "FAIL" for figure in self.figures)

    def add_figures(
        self, case: str, values: Mapping[str, float | None], bars: Mapping[str, Bar]
    ) -> None:
        """Every quantity that has a value or a bar."""
        for quantity in dict.fromkeys([*bars, *values]):
            value, bar = values.get(quantity), bars.get(quantity)
            if value is not None or bar is not None:
                self.figures.append(Figure(case, quantity, value, bar))

    def add_rows(
        self,
        case: str,
        race: Race,
        ours: Key,
        *,
        limit: float | None = None,
        errors: Mapping[Key, float] | None = None,
    ) -> None:
        """The contenders of one group; `limit` in seconds adds the share each reaches."""
        base = race.timings.get(ours)
        for key, timing in race.timings.items():
            if key.group != ours.group:
                continue
            self.rows.append(
                Row(
                    case,
                    key.name,
                    timing.minimum,
                    timing.median,
                    len(timing.seconds),
                    timing.minimum / base.minimum if base else None,
                    timing.median / base.median if base else None,
                    limit / timing.minimum if limit else None,
                    (errors or {}).get(key),
                )
            )

    def add_notes(self, case: str, race: Race) -> None:
        """Contenders that did not run, and other work on the machine."""
        self.notes.extend(f"{case}, {key.name} left out: {e}" for key, e in race.failed.items())
        if race.others is not None and race.others > 0.1:
            busy = f"{race.others:.1f} cores"
            self.notes.append(f"{case}: other processes kept {busy} busy; do not trust the times")


def text(outcome: Outcome) -> str:
    """The printed tables: times, then figures against their bars."""
    parts = [outcome.title, "=" * len(outcome.title)]
    if outcome.rows:
        header = ("case", "contender", "min ms", "median ms", "n", "ratio", "(median)", "share")
        cells = [
            (
                row.case,
                row.contender,
                f"{1e3 * row.minimum:.1f}",
                f"{1e3 * row.median:.1f}",
                str(row.samples),
                _number(row.ratio),
                _number(row.ratio_of_medians),
                "" if row.share is None else f"{100 * row.share:.0f} %",
                "" if row.error is None else f"{row.error:.0e}",
            )
            for row in outcome.rows
        ]
        parts += ["", *_table((*header, "error"), cells, left=2)]
    if outcome.figures:
        lines = [
            (f.case, f.quantity, _number(f.value), "" if f.bar is None else str(f.bar), f.verdict)
            for f in outcome.figures
        ]
        parts += ["", *_table(("case", "figure", "value", "bar", ""), lines, left=2)]
    return "\n".join([*parts, *(f"note: {note}" for note in outcome.notes), ""])


def save(name: str, outcome: Outcome, machine: Mapping[str, Any], quick: bool, to: Path) -> None:
    """Replace the suite's JSON file and add its line to the history."""
    to.mkdir(parents=True, exist_ok=True)
    when = datetime.now(UTC).isoformat(timespec="seconds")
    record = {
        "suite": name,
        "title": outcome.title,
        "when": when,
        "quick": quick,
        "machine": dict(machine),
        "times": [asdict(row) for row in outcome.rows],
        "figures": [asdict(f) | {"verdict": f.verdict} for f in outcome.figures],
        "notes": outcome.notes,
    }
    (to / f"{name}.json").write_text(json.dumps(_rounded(record), indent=1) + "\n")
    verdicts = [f.verdict for f in outcome.figures]
    line = {
        "when": when,
        "suite": name,
        "quick": quick,
        "commit": machine.get("commit"),
        "cpu": machine.get("cpu"),
        "cores": machine.get("cores"),
        "load": machine.get("load_at_start"),
        "pass": verdicts.count("pass"),
        "fail": verdicts.count("FAIL"),
        "figures": {f"{f.case}, {f.quantity}": f.value for f in outcome.figures},
    }
    with (to / "history.jsonl").open("a") as history:
        history.write(json.dumps(_rounded(line)) + "\n")


def _rounded(value: Any) -> Any:
    """Four digits are more than a timing has."""
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, Mapping):
        return {key: _rounded(part) for key, part in value.items()}
    return [_rounded(part) for part in value] if isinstance(value, (list, tuple)) else value


def _number(value: float | None) -> str:
    if value is None:
        return ""
    if value and abs(value) < 1e-3:
        return f"{value:.0e}"
    return f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"


def _table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]], left: int) -> list[str]:
    """Columns of equal width, the first `left` of them to the left; empty ones are left out."""
    rows = list(rows)
    used = [i for i in range(len(header)) if any(row[i] for row in rows)]
    header, rows = tuple(header[i] for i in used), [tuple(row[i] for i in used) for row in rows]
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]

    def line(cells: tuple[str, ...]) -> str:
        padded = (
            cell.ljust(width) if i < left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(cells, widths, strict=True))
        )
        return "  ".join(padded).rstrip()

    out, last = [line(header), "  ".join("-" * width for width in widths)], ""
    for row in rows:
        out.append(line(("" if row[0] == last else row[0], *row[1:])))
        last = row[0]
    return out
