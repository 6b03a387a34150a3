"""NumPy's files: one array, or several by name."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mercer._array import Array
from mercer.cli._csv import as_text, as_truth, write_table
from mercer.cli._data import Choice, Data, choose_columns, without_markers
from mercer.cli._output import replacing
from mercer.cli._problems import DataProblem, UsageProblem, listed


@dataclass(frozen=True, eq=False)
class ArrayFile(Data):
    """An .npy or .npz file.

    Attributes
    ----------
    array : array of shape (n, ...)
        As it was read; `values` are columns of its rows, laid out flat.
    used : tuple of int
        Which columns.
    key : str or None
        Its name in an .npz file.
    others : dict
        What else is in that file.
    """

    array: Array = field(default_factory=lambda: np.empty((0, 0)), repr=False)
    used: tuple[int, ...] = ()
    key: str | None = None
    others: dict[str, Array] = field(default_factory=dict, repr=False)

    @property
    def one_unit(self) -> bool:
        """A stack of images or signals, not a table."""
        return self.array.ndim > 2

    def label(self, row: int) -> str:
        """As NumPy counts."""
        return f"row {row}"

    def write(self, values: Array, output: Path) -> None:
        """Floating-point arrays keep their type; integers that changed become float64."""
        array = self.array
        if not np.array_equal(values, self.values):
            kind = array.dtype if array.dtype.kind == "f" else np.float64
            rows = array.reshape(len(array), -1).astype(kind)
            rows[:, list(self.used)] = values
            array = rows.reshape(array.shape)
        if self.key is not None:
            _save_all(output, {**self.others, self.key: array})
            return
        with replacing(output) as part, part.open("xb") as file:
            np.save(file, array)

    def write_scores(self, score: Array, is_anomaly: Array, output: Path) -> None:
        """A table of rows and scores, or two more arrays."""
        if output.suffix.lower() == ".npz":
            arrays = {**self.others, self.key or "array": self.array}
            _save_all(output, {**arrays, "score": score, "is_anomaly": is_anomaly})
            return
        columns = (np.arange(len(score)).astype(str), as_text(score), as_truth(is_anomaly))
        write_table(output, ("row", "score", "is_anomaly"), columns)


def read_array(path: Path, choice: Choice) -> ArrayFile:
    """Read an .npy or .npz file; nothing in it is executed."""
    try:
        found: Any = np.load(path, allow_pickle=False)
        if isinstance(found, np.ndarray):
            key, others, array = None, {}, found
        else:
            with found:
                others = {name: found[name] for name in found.files}
            key = _pick(path, list(others), choice)
            array = others.pop(key)
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise DataProblem(
            f"{path} cannot be read as NumPy arrays of numbers; write it with numpy.save or "
            "numpy.savez, without objects"
        ) from error
    _check_array(path, array)
    flat = array.reshape(len(array), -1)
    kind = np.float32 if array.dtype.kind == "f" and array.dtype.itemsize <= 4 else np.float64
    names = tuple(map(str, range(flat.shape[1])))

    def numbers(i: int) -> Array | str:
        return without_markers(flat[:, i].astype(kind), choice.missing)

    used, values, left = choose_columns(path, names, choice, numbers)
    return ArrayFile(
        path, values, tuple(names[i] for i in used), left, array, used, key, others
    )  # fmt: skip


def _pick(path: Path, names: list[str], choice: Choice) -> str:
    if choice.array is not None:
        if choice.array not in names:
            raise UsageProblem(f"{path} has no array {choice.array!r}; it has {listed(names, 20)}")
        return choice.array
    if len(names) != 1:
        has = listed(names, 20) or "none"
        raise UsageProblem(f"{path} has several arrays ({has}); choose one with --array NAME")
    return names[0]


def _check_array(path: Path, array: Array) -> None:
    if array.dtype.kind not in "fiu" or array.dtype.itemsize > 8:
        raise DataProblem(f"{path} holds {array.dtype}; numbers of at most 64 bits are needed")
    if array.ndim < 2:
        raise DataProblem(
            f"the array of {path} has shape {array.shape}, and rows are needed, shape (n, d); "
            "reshape(-1, 1) makes one column"
        )
    if array.size == 0:
        raise DataProblem(f"the array of {path} is empty, shape {array.shape}")


def _save_all(output: Path, arrays: dict[str, Array]) -> None:
    with replacing(output) as part, part.open("xb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]
