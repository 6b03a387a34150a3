"""One run of a command: check and read the files, fit a model, and print a summary."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np

from mercer._array import Array
from mercer.cli._arrays import read_array
from mercer.cli._csv import read_csv
from mercer.cli._data import Data, Selection, check_rows
from mercer.cli._images import SUFFIXES, read_images
from mercer.cli._output import Output
from mercer.cli._parquet import read_parquet
from mercer.cli._terminal import DataError, Progress, UsageError, counted, echo_facts, listed

_BLOCK = 1000  # rows per step of a progress bar
_TEXT, _PARQUET, _ARRAYS = (".csv", ".tsv"), (".parquet", ".pq"), (".csv", ".npz")
# for each input: its reader, and what can be written with new values and with new columns
_FILES: dict[str, tuple[Callable[..., Data], tuple[str, ...], tuple[str, ...]]] = {
    ".csv": (read_csv, _TEXT, _TEXT),
    ".tsv": (read_csv, _TEXT, _TEXT),
    ".parquet": (read_parquet, _PARQUET, _PARQUET),
    ".pq": (read_parquet, _PARQUET, _PARQUET),
    ".npy": (read_array, (".npy",), _ARRAYS),
    ".npz": (read_array, (".npz",), _ARRAYS),
}


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

    def read(self, *, new_columns: bool = False, complete: bool = True) -> tuple[Data, Data]:
        """Check the files, then read the rows to work on and those to learn from.

        `new_columns` says that the output has additional columns, instead of new values;
        `complete` that missing values, and rows that are all equal, are refused.
        """
        self._check_files(new_columns)
        train = self._read_one(self.inputs[-1], self.selection)
        check_rows(train, at_least=3, complete=complete)
        if complete and not (train.values != train.values[0]).any():
            what = f"all {train.row_word}s of {train.path} are equal"
            raise DataError(f"{what}; there is nothing to learn")
        if self.train is None:
            return train, train
        data = self._read_one(self.source, replace(self.selection, like=train))
        check_rows(data, complete=complete)
        if data.size != train.size:
            raise DataError(
                f"the {data.row_word}s of {data.path} have {data.size}, those of {train.path} "
                f"{train.size}; the sizes must be equal"
            )
        return data, train

    def _check_files(self, new_columns: bool) -> None:
        """Refuse inputs that cannot be read and outputs that cannot be written, before any work."""
        for path in self.inputs:
            _check_readable(path)
        source, train, output = self.source, self.inputs[-1], self.output
        if train.is_dir() != source.is_dir():
            raise UsageError(
                f"{train} and {source} must both be files or both be folders of images"
            )
        if not source.is_dir():
            _, as_values, as_columns = _FILES[source.suffix.lower()]
            suffixes = as_columns if new_columns else as_values
            output.check_file(suffixes, f"the result for {source.name}")
        elif new_columns:
            output.check_file((".csv",), "results for images")
        elif output.path.exists() and not output.path.is_dir():
            raise UsageError(f"{output.path} is a file, but images are written into a folder")
        output.check(self.inputs)

    def _read_one(self, path: Path, selection: Selection) -> Data:
        """Read a table, an array or a folder of images."""
        if path.is_dir():
            return read_images(path, selection, self.progress)
        with self.progress.waiting(f"reading {path.name}"):
            return _FILES[path.suffix.lower()][0](path, selection)

    def scale_columns(self, train: Data) -> str:
        """The parameter `scale_columns` of estimators; a given kernel has the units of the data."""
        scaled = self.scale and self.kernel == "auto" and not train.same_unit
        return "std" if scaled else "none"

    def fit(self, model: Any, rows: Array) -> Any:
        """Fit a model to rows, with a message meanwhile."""
        with self.progress.waiting(f"learning from {counted(len(rows), 'row')}"):
            return model.fit(rows)

    def map_rows(self, function: Callable[[Array], Array], rows: Array, label: str) -> Array:
        """Apply a function to blocks of rows, with a progress bar."""
        blocks = [slice(i, i + _BLOCK) for i in range(0, len(rows), _BLOCK)]
        return np.concatenate([function(rows[b]) for b in self.progress.each(blocks, label)])

    def report(self, verb: str, data: Data, facts: dict[str, str]) -> None:
        """Print what was done, in a few aligned lines."""
        if self.quiet:
            return
        seconds = time.perf_counter() - self.start
        count = counted(len(data.values), data.row_word)
        lines = {verb: f"{count} of {data.size} ({seconds:.1f} s)", **facts}
        reasons: dict[str, list[str]] = {}
        for name, reason in data.unused.items():
            reasons.setdefault(reason, []).append(name or "(no name)")
        if reasons:
            lines["unchanged"] = "; ".join(f"{listed(n)} ({r})" for r, n in reasons.items())
        echo_facts({**lines, "written": str(self.output.path)})


def check_exists(path: Path) -> None:
    """Refuse a path that does not exist, and suggest one with a similar name."""
    if not path.exists():
        beside = path.parent if path.parent.is_dir() else Path()
        near = get_close_matches(path.name, [entry.name for entry in beside.iterdir()], 1)
        hint = f"; did you mean {path.parent / near[0]}?" if near else ""
        raise UsageError(f"{path} does not exist{hint}")


def _check_readable(path: Path) -> None:
    check_exists(path)
    suffix = path.suffix.lower()
    if path.is_dir() or (suffix in _FILES and not path.is_char_device()):
        return
    if suffix in SUFFIXES:
        raise UsageError(f"{path} is one image; give a folder, in which each image is a row")
    raise UsageError(f"cannot read {path}; give {', '.join(_FILES)} or a folder of images")
