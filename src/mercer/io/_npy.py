"""Rows of .npy files, read without mapping the file into memory.

A mapped file counts in full against limits of the address space (`ulimit -v`), and ends the process
if it is truncated while it is read.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mercer._array import Array
from mercer.exceptions import InputError


@dataclass(frozen=True)
class NpyFile:
    """An array on disk: its header, and where its numbers begin."""

    path: Path
    shape: tuple[int, ...]
    dtype: Any
    is_fortran: bool
    start: int

    @classmethod
    def of(cls, path: Path) -> NpyFile:
        """Read the header; ValueError if it is damaged or the file too short."""
        with path.open("rb") as file:
            version = np.lib.format.read_magic(file)
            form = np.lib.format
            read = form.read_array_header_1_0 if version == (1, 0) else form.read_array_header_2_0
            shape, is_fortran, dtype = read(file)
            found = cls(path, shape, dtype, is_fortran, file.tell())
            size = file.seek(0, 2) - found.start
        needed = math.prod(shape) * dtype.itemsize
        if min(shape, default=0) < 0 or (size < needed and not dtype.hasobject):
            raise ValueError(f"it has {size} bytes of numbers, but shape {shape} needs {needed}")
        return found

    def read(self, start: int, stop: int) -> Array:
        """Rows as an array of the type in the file."""
        n, *tail = self.shape
        width = math.prod(tail)
        if not self.is_fortran:
            return self._numbers(start * width, (stop - start) * width).reshape(stop - start, *tail)
        columns = [self._numbers(j * n + start, stop - start) for j in range(width)]
        return np.reshape(columns, -1).reshape((stop - start, *tail), order="F")

    def _numbers(self, at: int, count: int) -> Array:
        found = np.fromfile(
            self.path, self.dtype, count, offset=self.start + at * self.dtype.itemsize
        )
        if len(found) != count:
            raise InputError(f"{self.path} was changed while it was used")
        return found
