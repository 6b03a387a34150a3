"""One run of a command: read the data, scale it, fit a model, and print a summary."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from mercer._array import Array
from mercer.cli._data import (
    Data,
    Selection,
    check_complete,
    check_rows,
    check_same_size,
    check_varies,
)
from mercer.cli._files import check_files, read
from mercer.cli._messages import counted, echo, listed
from mercer.cli._output import Output
from mercer.cli._progress import Progress

_BLOCK = 1000  # rows per step of a progress bar


@dataclass(frozen=True, eq=False)
class Run:
    """One run of a command.

    Attributes
    ----------
    source : Path
    output : Output
    train : Path or None
        Where to learn from, if not from the source.
    selection : Selection
    kernel : Kernel or "auto"
    scale : bool
        Whether columns may be scaled to unit variance.
    seed : int
    quiet : bool
    """

    source: Path
    output: Output
    train: Path | None
    selection: Selection
    kernel: Any
    scale: bool
    seed: int
    quiet: bool
    start: float = field(default_factory=time.perf_counter)

    @property
    def inputs(self) -> list[Path]:
        """All files that are read."""
        return [self.source] if self.train is None else [self.source, self.train]

    @property
    def progress(self) -> Progress:
        """Progress bars."""
        return Progress(self.quiet)

    def read(self, *, new_columns: bool = False) -> tuple[Data, Data]:
        """Check the files, then read the rows to work on and those to learn from.

        Parameters
        ----------
        new_columns : bool
            Whether the output has additional columns, instead of new values.
        """
        check_files(self.source, self.train, self.output, new_columns=new_columns)
        train = read(self.train or self.source, self.selection, self.progress)
        check_rows(train, at_least=3)
        if self.train is None:
            return train, train
        data = read(self.source, replace(self.selection, like=train), self.progress)
        check_rows(data)
        check_same_size(data, train)
        return data, train

    def read_complete(self, *, new_columns: bool = False) -> tuple[Data, Data]:
        """Read, and refuse missing values and rows that are all equal."""
        data, train = self.read(new_columns=new_columns)
        check_complete(data)
        check_complete(train)
        check_varies(train)
        return data, train

    def scaler(self, train: Data, *, own_units: bool = False) -> Any:
        """A fitted `StandardScaler`, which does nothing if columns are not to be scaled.

        Parameters
        ----------
        train : Data
        own_units : bool
            Whether the user gave a length besides the kernel: lengths are in the data's own units,
            so columns are not scaled then.
        """
        from sklearn.preprocessing import StandardScaler

        given = own_units or self.kernel != "auto"
        scale = self.scale and not given and not train.same_unit
        return StandardScaler(with_mean=scale, with_std=scale).fit(train.values)

    def fit(self, model: Any, rows: Array, train: Data) -> Any:
        """Fit a model, with a message while it runs."""
        with self.progress.waiting(f"learning from {counted(len(rows), train.row_word)}"):
            return model.fit(rows)

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
