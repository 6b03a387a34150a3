"""NumPy files: one array (.npy), or several with names (.npz)."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from mercer._array import Array
from mercer._words import listed
from mercer.cli._data import Data, Selection, choose_columns, choose_part, free_name
from mercer.cli._files import Output, Source, check_archive, refuse_damaged
from mercer.cli._terminal import DataError
from mercer.cli._text import as_text, write_table


@dataclass(frozen=True, eq=False)
class ArrayFile(Data):
    """An .npy or .npz file."""

    array: Array  # as read; `values` holds columns of its flattened rows
    key: str | None  # the name of the array in an .npz file
    others: dict[str, Array]  # the other arrays of that file

    def label(self, row: int) -> str:
        """The index, from 0 as in NumPy."""
        return f"row {self.source.first + row}"

    def write(self, values: Array, output: Output) -> None:
        """Floating-point arrays keep their type; integers that changed become float64."""
        array = self.array
        if not np.array_equal(values, self.values):
            fits = array.dtype.kind == "f" and np.abs(values).max() <= np.finfo(array.dtype).max
            kind = array.dtype if fits else np.float64
            rows = array.reshape(len(array), -1).astype(kind)
            rows[:, list(self.used)] = values
            array = rows.reshape(array.shape)
        if self.key is not None:
            self._save_all(output, {self.key: array})
        else:
            save_array(output, array)

    def write_columns(self, columns: dict[str, Array], output: Output) -> None:
        """A table of row numbers and columns, or additional arrays in an .npz file."""
        if output.suffix == ".npz":
            arrays = {self.key or "array": self.array}
            taken = self.others.keys() | arrays.keys()
            added = {free_name(name, taken): column for name, column in columns.items()}
            self._save_all(output, arrays | added)
            return
        numbers = np.arange(self.source.first, self.source.first + len(self.values))
        cells = [numbers.astype(str), *map(as_text, columns.values())]
        write_table(output, ("row", *columns), cells)

    def _save_all(self, output: Output, arrays: dict[str, Array]) -> None:
        with output.file() as path, zipfile.ZipFile(path, "w") as archive:
            for name, array in {**self.others, **arrays}.items():  # numpy.savez refuses some names
                with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                    np.lib.format.write_array(file, array, allow_pickle=False)


def save_array(output: Output, array: Array) -> None:
    with output.file() as path, path.open("wb") as file:
        # by its method: errors of `ndarray.tofile` do not say that the disk is full
        np.save(SimpleNamespace(write=file.write), array)


def read_array(source: Source, selection: Selection) -> ArrayFile:
    """Read an .npy or .npz file; pickled objects are refused."""
    with refuse_damaged(
        f"{source} cannot be read as NumPy arrays of numbers; write it with numpy.save or "
        "numpy.savez, without objects"
    ):
        if zipfile.is_zipfile(source.content):
            check_archive(source, selection.max_expansion)
        found: Any = np.load(source.content, allow_pickle=False)
        if isinstance(found, np.ndarray):
            key, others, array = None, {}, found
        else:
            with found:
                others = {name: found[name] for name in found.files}
            if strange := [name for name, x in others.items() if not isinstance(x, np.ndarray)]:
                raise DataError(f"{source} also holds what is no array: {listed(strange, 4)}")
            key = choose_part(source, list(others), "array", selection)
            array = others.pop(key)
    _check_array(source, array)
    flat = array.reshape(len(array), -1)
    kind = np.float32 if array.dtype.kind == "f" and array.dtype.itemsize <= 4 else np.float64
    names = tuple(map(str, range(flat.shape[1])))
    chosen = choose_columns(
        source, names, selection, lambda i: flat[:, i].astype(kind), may_be_codes=False
    )
    # stacks of images or signals have one unit, tables do not
    return ArrayFile(source, *chosen, array, key, others, same_unit=array.ndim > 2)


def _check_array(source: Source, array: Array) -> None:
    if array.dtype.kind not in "fiu" or array.dtype.itemsize > 8:
        raise DataError(f"{source} holds {array.dtype}; numbers of at most 64 bits are needed")
    if array.ndim < 2:
        raise DataError(
            f"the array of {source} has shape {array.shape}; rows, shape (n, d), are needed. "
            "reshape(-1, 1) makes one column"
        )
    if array.size == 0:
        raise DataError(f"the array of {source} is empty, shape {array.shape}")
