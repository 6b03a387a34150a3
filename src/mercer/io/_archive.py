"""The file format: an uncompressed zip archive of `mercer.json` and .npy arrays."""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import stat
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from mercer._array import Array
from mercer.exceptions import InputError
from mercer.io._encode import is_plain

if TYPE_CHECKING:
    from zipfile import ZipFile, ZipInfo

DESCRIPTION = "mercer.json"
_MAGIC = b"\x93NUMPY\x01\x00"
_HEADER = re.compile(
    r"\{'descr': '([<>|][a-zA-Z]\d+)', 'fortran_order': (True|False), "
    r"'shape': \(([\d, ]*)\), \} *\n"
)
_CHUNK = 1 << 24  # bytes read at a time, to keep the copy of each part small


def write(path: Path, document: dict[str, Any], arrays: dict[str, Array]) -> None:
    """Write a new file and move it to its place, so that an old one stays until it is complete."""
    from zipfile import ZipFile, ZipInfo

    text = json.dumps(document, allow_nan=False)
    target = Path(os.path.realpath(path))  # replace the target of a link, not the link
    with _replacing(target) as file, ZipFile(file, "w") as archive:
        with archive.open(ZipInfo(DESCRIPTION), "w", force_zip64=True) as member:
            member.write(text.encode("ascii"))
        for name, array in arrays.items():
            with archive.open(ZipInfo(name), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, version=(1, 0), allow_pickle=False)


@contextlib.contextmanager
def _replacing(target: Path) -> Iterator[BinaryIO]:
    part = target.with_name(f".{os.urandom(8).hex()}.part")
    try:
        with part.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            part.chmod(stat.S_IMODE(target.stat().st_mode))
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


class Reader:
    """Reads members of an archive, each once.

    Members must not be compressed or overlap, so their sizes add up to at most that of the file.
    """

    def __init__(self, file: BinaryIO) -> None:
        from zipfile import BadZipFile, ZipFile

        try:
            self.archive: ZipFile = ZipFile(file)
        except BadZipFile as error:
            raise InputError("it is incomplete, or was not written by mercer.save") from error
        self.left = set(self.archive.namelist())
        size = os.fstat(file.fileno()).st_size
        if sum(info.file_size for info in self.archive.infolist()) > size:
            raise InputError("it claims to hold more than its size")

    def document(self) -> Any:
        """Read the description."""
        if DESCRIPTION not in self.left:
            raise InputError(f"it contains no {DESCRIPTION}, so it was not written by mercer.save")
        with self._open(DESCRIPTION) as (member, info):
            text = member.read(info.file_size + 1)
        return json.loads(text.decode("utf-8"), parse_constant=_no_constant)

    def array(self, name: str, dtype: str, shape: tuple[int, ...]) -> Array:
        """Read an array, which must have this type and shape."""
        with self._open(name) as (member, info):
            found, in_columns, lengths = _read_header(member, name)
            if (found.str, *shape) != (dtype, *lengths):
                raise InputError(
                    f"the array {name} is {found.str} of shape {lengths}, but the "
                    f"description says {dtype} of shape {shape}"
                )
            count = math.prod(shape)
            if count * found.itemsize != info.file_size - member.tell():
                raise InputError(f"the array {name} is too short or too long")
            flat = _read_items(member, np.empty(count, dtype=found), name)
        flat = flat if found.isnative else flat.astype(found.newbyteorder("="))
        return flat.reshape(shape[::-1]).T if in_columns else flat.reshape(shape)

    @contextlib.contextmanager
    def _open(self, name: str) -> Iterator[tuple[Any, ZipInfo]]:
        from zipfile import ZIP_STORED

        if name not in self.left:
            raise InputError(f"it has no member {name!r}, or refers to it twice")
        self.left.discard(name)
        info = self.archive.getinfo(name)
        plain = info.compress_type == ZIP_STORED and info.compress_size == info.file_size
        if not plain or info.flag_bits & 0x1:
            raise InputError(
                f"its member {name!r} is compressed or encrypted; mercer writes neither"
            )
        with self.archive.open(info) as member:
            yield member, info
            if member.read(1):  # at the end the checksum is compared
                raise InputError(f"its member {name!r} is longer than it says")


def _read_header(member: Any, name: str) -> tuple[np.dtype[Any], bool, tuple[int, ...]]:
    """The type, whether the order is Fortran's, and the shape, as NumPy writes plain arrays."""
    start = member.read(len(_MAGIC) + 2)
    length = int.from_bytes(start[len(_MAGIC) :], "little")
    match = _HEADER.fullmatch(member.read(length).decode("latin-1"))
    if not start.startswith(_MAGIC) or match is None:
        raise InputError(f"the array {name} is not a plain array of numbers or strings")
    dtype = np.dtype(match[1])
    if not is_plain(dtype):
        raise InputError(f"the array {name} has dtype {dtype}, which cannot be loaded")
    shape = tuple(int(length) for length in match[3].split(",") if length.strip())
    return dtype, match[2] == "True", shape


def _read_items(member: Any, flat: Array, name: str) -> Array:
    raw = flat.view(np.uint8)
    for start in range(0, raw.size, _CHUNK):
        part = member.read(min(_CHUNK, raw.size - start))
        raw[start : start + len(part)] = np.frombuffer(part, dtype=np.uint8)
        if start + len(part) < min(start + _CHUNK, raw.size):
            raise InputError(f"the array {name} is too short")
    if flat.dtype == bool and raw.size and raw.max() > 1:
        raise InputError(f"the array {name} has booleans that are neither 0 nor 1")
    return flat


def _no_constant(text: str) -> Any:
    raise InputError(f"its description is not strict JSON: it contains {text}")


def damage() -> tuple[type[Exception], ...]:
    """Errors that reading a damaged file, or one that is no zip archive, may raise."""
    from zipfile import BadZipFile

    from_zip = BadZipFile, EOFError, NotImplementedError, RuntimeError, struct.error
    return *from_zip, OSError, OverflowError, ValueError
