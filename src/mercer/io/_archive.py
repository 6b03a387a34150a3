"""The functions `save` and `load`: an uncompressed zip archive of `mercer.json` and .npy arrays."""

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
from mercer.io._decode import decode
from mercer.io._encode import encode, is_plain

if TYPE_CHECKING:
    from zipfile import ZipFile, ZipInfo

DESCRIPTION = "mercer.json"
_MOST_TEXT = 1 << 22  # bytes of a description: objects of Python take more time and memory than
_TEXT_SHARE = 50  # arrays, so beyond this a description has at most one byte for 50 of arrays
_BRACKET = 20  # a list or an object counts as this many bytes
_MOST_DIRECTORY = 1 << 23  # bytes of the list of members
_MAGIC = b"\x93NUMPY\x01\x00"
_HEADER = re.compile(
    r"\{'descr': '([<>|][a-zA-Z]\d+)', 'fortran_order': (True|False), "
    r"'shape': \(([\d, ]*)\), \} *\n"
)


def save(thing: Any, path: str | os.PathLike[str]) -> None:
    """Save an object to a file, without pickle.

    Kernels, elements, subspaces, solvers, results and estimators (fitted or not) can be saved, and
    so can numbers, strings, arrays (dense or CSR), and lists, tuples, sets and dicts of these. The
    file holds arrays and a description of the objects that they belong to, but no code. Objects
    that need code, such as functions and random generators, are refused; the error names the
    parameter.

    Parameters
    ----------
    thing : object
        The object to save. Register classes of your own (kernels, solvers, estimators) with
        `mercer.io.register` first.
    path : str or path-like
        The file. If it exists it is replaced once the new file is complete.

    Raises
    ------
    InputError
        If the object contains something that cannot be saved.

    Notes
    -----
    The file is an uncompressed zip archive. It contains arrays in the .npy format, which
    `numpy.load` can read, and `mercer.json`, which names the classes, their parameters and their
    arrays (see `mercer.io._encode`). An array that is used twice is stored once, and is one array
    again after `load`. Caches are not stored, nor are metadata requests (`set_fit_request`).

    Examples
    --------
    >>> import tempfile
    >>> import mercer as mc
    >>> psi = mc.mean_embedding(mc.Gaussian(2.0), [[0.0], [1.0]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     mc.save(psi, f"{folder}/mean.mercer")
    ...     print(mc.load(f"{folder}/mean.mercer"))
    <Element of Gaussian(length_scale=2.0) on 2 points in 1 dimensions>
    """
    from importlib.metadata import PackageNotFoundError, version

    try:
        own = version("mercer")
    except PackageNotFoundError:  # mercer is used without being installed
        own = "unknown"
    document, arrays = encode(thing, own)
    try:  # refuse now what could not be loaded later
        decode(document, lambda name, *_: arrays[name])
    except InputError as error:
        raise InputError(f"the object is not saved, since it cannot be loaded: {error}") from error
    _write(Path(path), document, arrays)


def load(path: str | os.PathLike[str]) -> Any:
    """Load an object that `save` wrote.

    Nothing in the file is executed, and the file cannot cause an import: classes are looked up in a
    table of names. Their constructors run, with all their checks.

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    object
        Equal to the object that was saved. On the same machine its values are equal to the last
        bit.

    Raises
    ------
    InputError
        If the file is damaged, was not written by `mercer.save`, has a newer format, or contains a
        class that is not registered (call `mercer.io.register` on your own classes first).

    Examples
    --------
    >>> import tempfile
    >>> import mercer as mc
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     mc.save(mc.Gaussian(2.0) + 0.5 * mc.Linear(), f"{folder}/kernel.mercer")
    ...     print(mc.load(f"{folder}/kernel.mercer"))
    Gaussian(length_scale=2.0) + 0.5 * Linear()
    """
    path = Path(path)
    with path.open("rb") as file:
        try:
            reader = _Reader(file)
            return decode(reader.document(), reader.array)
        except _damage() as error:
            raise InputError(f"{path} cannot be loaded: {error}") from error


def _write(path: Path, document: dict[str, Any], arrays: dict[str, Array]) -> None:
    from zipfile import ZipFile, ZipInfo

    text = json.dumps(document, allow_nan=False).encode("ascii")
    if _is_too_long(text, sum(array.nbytes for array in arrays.values())):
        raise InputError("the object has too many parts to be saved; save arrays, not lists")
    with _replacing(path) as file, ZipFile(file, "w") as archive:
        with archive.open(ZipInfo(DESCRIPTION), "w", force_zip64=True) as member:
            member.write(text)
        for name, array in arrays.items():
            with archive.open(ZipInfo(name), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, version=(1, 0), allow_pickle=False)


@contextlib.contextmanager
def _replacing(path: Path) -> Iterator[BinaryIO]:
    """A new file that is moved into place at the end, so that an old one stays until then."""
    target = Path(os.path.realpath(path))  # replace the target of a link, not the link
    if target.exists() and not target.is_file():
        raise InputError(f"{path} is a folder or a device, not a file")
    part = target.with_name(f".{os.urandom(8).hex()}.part")
    try:
        with part.open("xb") as file:
            if target.exists():
                part.chmod(stat.S_IMODE(target.stat().st_mode))
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


class _Reader:
    """Reads members of an archive, each once.

    Members must not be compressed or overlap, so their sizes add up to at most that of the file.
    """

    def __init__(self, file: BinaryIO) -> None:
        from zipfile import BadZipFile, ZipFile

        size = os.fstat(file.fileno()).st_size
        try:
            _check_directory(file, size)
            self.archive: ZipFile = ZipFile(file)
        except BadZipFile as error:
            raise InputError("it is incomplete, or was not written by mercer.save") from error
        self.left = set(self.archive.namelist())
        self.size = sum(info.file_size for info in self.archive.infolist())
        if self.size > size:
            raise InputError("it claims to hold more than its size")

    def document(self) -> Any:
        if DESCRIPTION not in self.left:
            raise InputError(f"it contains no {DESCRIPTION}, so it was not written by mercer.save")
        with self._open(DESCRIPTION) as (member, info):
            text = member.read(info.file_size + 1)
        if _is_too_long(text, self.size - info.file_size):
            raise InputError("its description is too long; numbers belong into arrays")
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
            flat = np.empty(count, dtype=found)
            if member.readinto(flat.view(np.uint8)) != flat.nbytes:
                raise InputError(f"the array {name} is too short")
        if found.kind == "b" and flat.size and flat.view(np.uint8).max() > 1:
            raise InputError(f"the array {name} has booleans that are neither 0 nor 1")
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


def _is_too_long(text: bytes, array_bytes: int) -> bool:
    """Whether reading a description would cost much more than reading the arrays."""
    length = len(text) + _BRACKET * (text.count(b"[") + text.count(b"{"))
    return length > _MOST_TEXT + array_bytes // _TEXT_SHARE


def _check_directory(file: BinaryIO, size: int) -> None:
    """Refuse a list of very many members before `zipfile` reads it."""
    file.seek(max(0, size - 98))
    end = file.read(98)  # the last two records are 20 and 22 bytes long; for large files 56 before
    length = int.from_bytes(end[-10:-6], "little")
    if end[-42:-38] == b"PK\6\7":
        length = int.from_bytes(end[-58:-50], "little")
    if end[-22:-18] != b"PK\5\6" or length > _MOST_DIRECTORY:
        raise InputError(
            "it is incomplete, has too many members, or was not written by mercer.save"
        )


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


def _no_constant(text: str) -> Any:
    raise InputError(f"its description is not strict JSON: it contains {text}")


def _damage() -> tuple[type[Exception], ...]:
    """Errors that reading a damaged file, or one that is not a zip archive, may raise."""
    from zipfile import BadZipFile

    from_zip = BadZipFile, EOFError, NotImplementedError, RuntimeError, struct.error
    return *from_zip, OSError, OverflowError, ValueError
