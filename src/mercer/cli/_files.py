"""Which files can be read, and what can be written from them."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path

from mercer.cli._arrays import read_array
from mercer.cli._csv import read_csv
from mercer.cli._data import Data, Selection
from mercer.cli._images import SUFFIXES as IMAGES
from mercer.cli._images import read_images
from mercer.cli._messages import UsageError
from mercer.cli._output import Output
from mercer.cli._parquet import read_parquet
from mercer.cli._progress import Progress

_READERS = {
    ".csv": read_csv, ".tsv": read_csv,
    ".parquet": read_parquet, ".pq": read_parquet,
    ".npy": read_array, ".npz": read_array,
}  # fmt: skip
_TEXT, _PARQUET = (".csv", ".tsv"), (".parquet", ".pq")
# what each input can be written as, with new values and with new columns
_VALUES = {
    ".csv": _TEXT, ".tsv": _TEXT, ".parquet": _PARQUET, ".pq": _PARQUET,
    ".npy": (".npy",), ".npz": (".npz",),
}  # fmt: skip
_COLUMNS = {**_VALUES, ".npy": (".csv", ".npz"), ".npz": (".csv", ".npz")}


def check_files(inputs: list[Path], output: Output, *, new_columns: bool) -> None:
    """Refuse inputs that cannot be read and outputs that cannot be written, before any work."""
    for path in inputs:
        _check_readable(path)
    source, train = inputs[0], inputs[-1]
    if train.is_dir() != source.is_dir():
        raise UsageError(f"{train} and {source} must both be files or both be folders of images")
    if not source.is_dir():
        allowed = (_COLUMNS if new_columns else _VALUES)[source.suffix.lower()]
        output.check_file(allowed, f"the result for {source.name}")
    elif new_columns:
        output.check_file((".csv",), "results for images")
    elif output.path.exists() and not output.path.is_dir():
        raise UsageError(f"{output.path} is a file, but images are written into a folder")
    output.check(inputs)


def read(path: Path, selection: Selection, progress: Progress) -> Data:
    """Read a table, an array or a folder of images."""
    if path.is_dir():
        return read_images(path, selection, progress)
    with progress.waiting(f"reading {path.name}"):
        return _READERS[path.suffix.lower()](path, selection)


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
    if path.is_dir() or suffix in _READERS:
        return
    if suffix in IMAGES:
        raise UsageError(f"{path} is one image; give a folder, in which each image is a row")
    raise UsageError(f"cannot read {path}; give {', '.join(_READERS)} or a folder of images")
