"""One run of a command: check and read the files, fit a model, and print a summary."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np

from mercer._array import Array
from mercer._chunks import Chunks
from mercer._progress import Interruption
from mercer._words import counted, listed
from mercer.cli._arrays import read_array
from mercer.cli._csv import read_csv, read_excel
from mercer.cli._data import CODES, Data, Selection, check_rows
from mercer.cli._files import PIPE, Output, Source
from mercer.cli._images import SUFFIXES, read_images
from mercer.cli._large import (
    in_pieces,
    is_large,
    joined,
    pieces_of,
    refuse_large,
    refuse_whole,
)
from mercer.cli._parquet import read_parquet
from mercer.cli._terminal import DataError, Progress, UsageError, echo, echo_facts
from mercer.io import checkpoint

INTERRUPTED = 130  # the exit code of a command that was
UNFINISHED = "unfinished: Ctrl-C ended the search, and this is the best point so far"
_BLOCK = 1000  # rows per step of a progress bar
_TEXT = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz")
TABLES = (*_TEXT, ".parquet", ".pq")
_ARRAYS = (".csv", ".npz")
# for each input: its reader, and what can be written with new values and with new columns
_FILES: dict[str, tuple[Callable[..., Data], tuple[str, ...], tuple[str, ...]]] = {
    **dict.fromkeys(_TEXT, (read_csv, TABLES, TABLES)),
    **dict.fromkeys((".parquet", ".pq"), (read_parquet, TABLES, TABLES)),
    ".xlsx": (read_excel, TABLES, TABLES),
    ".npy": (read_array, (".npy",), _ARRAYS),
    ".npz": (read_array, (".npz",), _ARRAYS),
}


@dataclass(frozen=True, eq=False)
class Run:
    """One run of a command."""

    source: Source
    output: Output
    train: Source | None  # where to learn from, if not from the source
    selection: Selection
    page: Output | None  # a report, if one is asked for
    kernel: Any  # a Kernel, or "auto"
    scale: bool  # whether columns may be scaled to unit variance
    seed: int
    quiet: bool
    state: Path | None = None  # the file of a checkpoint
    start: float = field(default_factory=time.perf_counter)
    ctrl_c: Interruption = field(default_factory=Interruption)

    @property
    def inputs(self) -> list[Source]:
        """The source, and the file to learn from if there is one."""
        return [self.source] if self.train is None else [self.source, self.train]

    @property
    def progress(self) -> Progress:
        return Progress(self.quiet)

    def read(
        self,
        *,
        new_columns: bool = False,
        complete: bool = True,
        in_pieces: bool = False,
        learns_in_pieces: bool = False,
    ) -> tuple[Data, Data]:
        """Check the files, then read the rows to work on and those to learn from.

        `new_columns` says that the output has additional columns, instead of new values;
        `complete` that missing values, and rows that are all equal, are refused. Rows of files too
        large for memory may come in pieces if `in_pieces`, and those to learn from if
        `learns_in_pieces`; else such files are refused.
        """
        self.check_files(new_columns)
        train = read_one(self.inputs[-1], self.selection, self.quiet, learns_in_pieces)
        check_rows(train, at_least=3, complete=complete)
        if complete and not train.in_pieces and not (train.values != train.values[0]).any():
            what = f"all {train.row_word}s of {train.source} are equal"
            raise DataError(f"{what}; there is nothing to learn")
        data = train
        if self.train is not None:
            data = read_one(self.source, replace(self.selection, like=train), self.quiet, in_pieces)
            check_rows(data, complete=complete)
        if data.size != train.size:
            raise DataError(
                f"the {data.row_word}s of {data.source} have {data.size}, those of {train.source} "
                f"{train.size}; the sizes must be equal"
            )
        if data.in_pieces or train.in_pieces:
            refuse_whole(self.page, "--report")
        return data, train

    def check_files(self, new_columns: bool) -> None:
        """Refuse inputs that cannot be read and outputs that cannot be written, before any work."""
        source, output = self.source, self.output
        train = self.train or source
        if self.train and train.path == source.path == PIPE:
            raise UsageError("INPUT and --train cannot both be standard input")
        for one in self.inputs:
            check_readable(one)
        if train.is_folder != source.is_folder:
            raise UsageError(
                f"{train} and {source} must both be files or both be folders of images"
            )
        if not source.is_folder:
            _, as_values, as_columns = _FILES[source.suffix]
            suffixes = as_columns if new_columns else as_values
            output.check_file(suffixes, f"the result for {source}")
        elif new_columns:
            output.check_file((".csv",), "results for images")
        elif output.is_pipe or (output.path.exists() and not output.path.is_dir()):
            what = "standard output" if output.is_pipe else f"{output.path} is a file"
            raise UsageError(f"{what}, but images are written into a folder")
        for written in (output, self.page):
            if written is not None:
                written.check([one.path for one in self.inputs])

    def say(self, text: str) -> None:
        """Print text on standard output, or on standard error if the result goes there."""
        echo(text, err=self.output.is_pipe)

    def note(self, text: str) -> None:
        """Print a note on standard error, unless asked to be quiet."""
        if not self.quiet:
            echo(f"note: {text}", err=True)

    def scale_columns(self, train: Data) -> str:
        """The parameter `scale_columns` of estimators; a given kernel has the units of the data."""
        scaled = self.scale and self.kernel == "auto" and not train.same_unit
        return "std" if scaled else "none"

    def fit(self, model: Any, rows: Array | Chunks) -> Any:
        """Fit a model to rows, with a message meanwhile."""
        text = f"learning from {counted(len(rows), 'row')}"
        with self.progress.waiting(text), checkpoint(self.state) as ctrl_c:
            model.fit(rows)
        self.ctrl_c.requested |= ctrl_c.requested
        return model

    @property
    def exit_code(self) -> int:
        """130 after Ctrl-C, although there is a result."""
        return INTERRUPTED if self.ctrl_c.requested else 0

    def map_rows(self, function: Callable[[Array], Array], rows: Array, label: str) -> Array:
        """Apply a function to blocks of rows, with a progress bar."""
        blocks = [slice(i, i + _BLOCK) for i in range(0, len(rows), _BLOCK)]
        found = np.concatenate([function(rows[b]) for b in self.progress.each(blocks, label)])
        if not np.isfinite(found).all():
            raise DataError(f"{label} gave values that are not finite; rescale the columns")
        return found

    def write(self, data: Data, train: Data, write: Callable[[Data, Output], None]) -> None:
        """Write the result with `write(rows, output)`, once for each piece of a large file.

        The columns are those of `train`.
        """
        if data.in_pieces:
            selection = replace(self.selection, like=train)
            count = write_pieces(self.source, selection, self.output, write)
            self.note(f"{counted(count, 'row')} were read and written in pieces")
        else:
            write(data, self.output)

    def write_report(self, model: Any, data: Data) -> None:
        """Write the report on a fitted model, if one is asked for."""
        if self.page is not None:
            with self.progress.waiting("writing a report"):
                write_report(self.page, model, data)

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
        if self.ctrl_c.requested:
            lines["status"] = UNFINISHED
        if not self.output.is_pipe:
            lines["written"] = str(self.output.path)
        if self.page is not None:
            lines["report"] = str(self.page.path)
        echo_facts(lines, err=self.output.is_pipe)


def write_report(page: Output, found: Any, data: Data | None = None, **options: Any) -> None:
    """Write a report on a model and the rows it was applied to, or on a test."""
    from mercer.reports import report

    if data is not None:
        *shape, channels = getattr(data, "shape", (0, 0, 0))  # of images
        options["data"] = data.values
        options["names"] = data.names if data.has_names else None
        options["image_shape"] = tuple(shape) if channels == 1 else None
    words = click.get_current_context().find_root().obj
    written = replace(report(found, **options), code=shlex.join(["mercer", *words]))
    with page.file() as path:
        written.save(path)


def write_pieces(
    source: Source, selection: Selection, output: Output, write: Callable[[Data, Output], None]
) -> int:
    """Read and write a large file piece by piece; returns the number of its rows."""
    count = 0
    with joined(output, source) as append:
        for piece in pieces_of(source):
            data = read_one(piece, selection, quiet=True)
            check_rows(data, complete=True)
            append(partial(write, data))
            count += len(data.values)
    return count


def read_one(
    source: Source, selection: Selection, quiet: bool = False, may_be_large: bool = False
) -> Data:
    """Read a table, an array or a folder of images; print what is to be said about it.

    A file too large for memory is refused, or read in pieces if it `may_be_large`. Its first piece
    says which columns are used.
    """
    progress = Progress(quiet)
    if source.is_folder:
        return read_images(source, selection, progress)
    large = may_be_large and is_large(source)
    if not large:
        refuse_large(source)
    with progress.waiting(f"reading {source}"):
        part = next(pieces_of(source), source) if large else source
        data = _FILES[source.suffix][0](part, selection)
        if large:
            data = in_pieces(source, data, selection)
    codes = [name for name, why in data.unused.items() if why == CODES]
    notes = list(data.notes)
    if codes and selection.like is None:
        seem, are, them = ("seems", "is", "it") if len(codes) == 1 else ("seem", "are", "them")
        notes.insert(
            0,
            f"{listed(codes)} {seem} to hold integer codes, not quantities, and {are} not "
            f"used; to use {them}, add --include {shlex.quote(','.join(codes))}",
        )
    for text in [] if quiet else notes:
        echo(f"note: {text}", err=True)
    return data


def check_exists(path: Path) -> None:
    """Refuse a path that does not exist, and suggest one with a similar name."""
    if not path.exists():
        beside = path.parent if path.parent.is_dir() else Path()
        near = get_close_matches(path.name, [entry.name for entry in beside.iterdir()], 1)
        hint = f"; did you mean {path.parent / near[0]}?" if near else ""
        raise UsageError(f"{path} does not exist{hint}")


def check_readable(source: Source) -> None:
    """Refuse a path that does not exist or that no reader takes."""
    path = source.path
    if path == PIPE:
        return
    on_disk = source.given is None
    if on_disk:
        check_exists(path)
    if source.is_folder or (source.suffix in _FILES and not (on_disk and path.is_char_device())):
        return
    if source.suffix in SUFFIXES:
        raise UsageError(f"{path} is one image; give a folder, in which each image is a row")
    raise UsageError(f"cannot read {path}; give {', '.join(_FILES)} or a folder of images")
