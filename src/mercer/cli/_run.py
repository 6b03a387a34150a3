"""One run of a command: read the data, scale it, fit a model, and print a summary."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from mercer._array import Array
from mercer.cli._data import Data, Selection, check_complete, check_rows
from mercer.cli._files import check_files, read
from mercer.cli._messages import DataError, counted, echo, listed
from mercer.cli._output import Output
from mercer.cli._progress import Progress

_BLOCK = 1000  # rows per step of a progress bar


@dataclass(frozen=True, eq=False)
class Run:
    """One run of a command."""

    source: Path
    output: Output
    train: Path | None  # where to learn from, if not from the source
    selection: Selection
    kernel: Any  # a Kernel, or "auto"
    scale: bool  # whether columns may be scaled to unit variance
    seed: int
    quiet: bool
    start: float = field(default_factory=time.perf_counter)

    @property
    def inputs(self) -> list[Path]:
        """The source, and the file to learn from if there is one."""
        return [self.source] if self.train is None else [self.source, self.train]

    @property
    def progress(self) -> Progress:
        return Progress(self.quiet)

    def read(self, *, new_columns: bool = False) -> tuple[Data, Data]:
        """Check the files, then read the rows to work on and those to learn from.

        `new_columns` says that the output has additional columns, instead of new values.
        """
        check_files(self.inputs, self.output, new_columns=new_columns)
        train = read(self.train or self.source, self.selection, self.progress)
        check_rows(train, at_least=3)
        if self.train is None:
            return train, train
        data = read(self.source, replace(self.selection, like=train), self.progress)
        check_rows(data)
        if data.size != train.size:
            raise DataError(
                f"the {data.row_word}s of {data.path} have {data.size}, those of {train.path} "
                f"{train.size}; the sizes must be equal"
            )
        return data, train

    def read_complete(self, *, new_columns: bool = False) -> tuple[Data, Data]:
        """Read, and refuse missing values and rows that are all equal."""
        data, train = self.read(new_columns=new_columns)
        check_complete(data)
        check_complete(train)
        if not (train.values != train.values[0]).any():
            what = f"all {train.row_word}s of {train.path} are equal"
            raise DataError(f"{what}; there is nothing to learn")
        return data, train

    def scale_columns(self, train: Data) -> str:
        """The parameter `scale_columns` of estimators; a given kernel has the units of the data."""
        scaled = self.scale and self.kernel == "auto" and not train.same_unit
        return "std" if scaled else "none"

    def fit(self, model: Any, train: Data, rows: Array | None = None) -> Any:
        """Fit a model to the training data (or to rows made of it), with a message meanwhile."""
        with self.progress.waiting(f"learning from {counted(len(train.values), train.row_word)}"):
            return model.fit(train.values if rows is None else rows)

    def map_rows(self, function: Callable[[Array], Array], rows: Array, label: str) -> Array:
        """Apply a function to blocks of rows, with a progress bar."""
        blocks = [slice(i, i + _BLOCK) for i in range(0, len(rows), _BLOCK)]
        return np.concatenate([function(rows[b]) for b in self.progress.each(blocks, label)])

    def report(self, verb: str, data: Data, facts: dict[str, str]) -> None:
        """Print what was done, in a few aligned lines."""
        seconds = time.perf_counter() - self.start
        count = counted(len(data.values), data.row_word)
        lines = {verb: f"{count} of {data.size} ({seconds:.1f} s)", **facts}
        if data.unused:
            reasons: dict[str, list[str]] = {}
            for name, reason in data.unused.items():
                reasons.setdefault(reason, []).append(name or "(no name)")
            lines["unchanged"] = "; ".join(f"{listed(n)} ({r})" for r, n in reasons.items())
        lines["written"] = str(self.output.path)
        width = max(map(len, lines)) + 2
        for name, text in lines.items():
            self.print(f"{name:<{width}}{text}")

    def print(self, text: str, *, err: bool = False) -> None:
        """Print text, unless `--quiet`."""
        if not self.quiet:
            echo(text, err=err)
