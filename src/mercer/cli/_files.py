"""Reading by the name of a file, and what may be written from it."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path

from mercer.cli._arrays import read_array
from mercer.cli._bar import Bars
from mercer.cli._csv import read_csv
from mercer.cli._data import Choice, Data
from mercer.cli._images import SUFFIXES as IMAGES
from mercer.cli._images import read_images
from mercer.cli._output import check_kind, check_output
from mercer.cli._parquet import read_parquet
from mercer.cli._problems import UsageProblem

_READERS = {
    ".csv": read_csv,
    ".tsv": read_csv,
    ".parquet": read_parquet,
    ".pq": read_parquet,
    ".npy": read_array,
    ".npz": read_array,
}
# what each may be written as: itself, and with scores
_TEXT, _PARQUET = (".csv", ".tsv"), (".parquet", ".pq")
_VALUES = {
    ".csv": _TEXT, ".tsv": _TEXT, ".parquet": _PARQUET, ".pq": _PARQUET,
    ".npy": (".npy",), ".npz": (".npz",),
}  # fmt: skip
_SCORES = {**_VALUES, ".npy": (".csv", ".npz"), ".npz": (".csv", ".npz")}


def check_files(source: Path, output: Path, train: Path | None, *, force: bool) -> None:
    """Refuse, before any work, what could not be written in the end."""
    _check_writing(source, output, train, force, scores=False)


def check_score_files(source: Path, output: Path, train: Path | None, *, force: bool) -> None:
    """The same for scores."""
    _check_writing(source, output, train, force, scores=True)


def read(path: Path, choice: Choice, bars: Bars) -> Data:
    """Read a table, an array or a folder of images."""
    _check_readable(path)
    if path.is_dir():
        return read_images(path, choice, bars)
    with bars.waiting(f"reading {path.name}"):
        return _READERS[path.suffix.lower()](path, choice)


def _check_writing(
    source: Path, output: Path, train: Path | None, force: bool, scores: bool
) -> None:
    inputs = [source] if train is None else [source, train]
    for path in inputs:
        _check_readable(path)
    if train is not None and train.is_dir() != source.is_dir():
        raise UsageProblem(f"{train} must be of the same kind as {source}: a table or a folder")
    if source.is_dir():
        check_kind(output, not scores, (".csv",), "scores of images" if scores else "images")
    else:
        allowed = (_SCORES if scores else _VALUES)[source.suffix.lower()]
        check_kind(output, False, allowed, f"what is read from {source.name}")
    check_output(output, inputs, force)


def _check_readable(path: Path) -> None:
    if not path.exists():
        beside = path.parent if path.parent.is_dir() else Path()
        near = get_close_matches(path.name, [entry.name for entry in beside.iterdir()], 1)
        hint = f"; did you mean {path.parent / near[0]}?" if near else ""
        raise UsageProblem(f"there is no {path}{hint}")
    suffix = path.suffix.lower()
    if path.is_dir() or suffix in _READERS:
        return
    if suffix in IMAGES:
        raise UsageProblem(f"{path} is one image; give the folder: each image in it is a row")
    raise UsageProblem(
        f"{path} is of no kind that can be read: {', '.join(_READERS)}, or a folder of images"
    )
