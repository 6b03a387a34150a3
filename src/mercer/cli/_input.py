"""Inputs: a file or folder, or standard input."""

from __future__ import annotations

import gzip
import math
import sys
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from pathlib import Path

from mercer.cli._terminal import CommandError, DataError

PIPE = Path("-")
_MAGIC = {b"PAR1": ".parquet", b"\x93NUMPY": ".npy", b"\x1f\x8b": ".csv.gz"}


@dataclass(frozen=True)
class Source:
    """What a command reads; the path - is standard input."""

    path: Path

    def __str__(self) -> str:
        return "standard input" if self.path == PIPE else str(self.path)

    @cached_property
    def _piped(self) -> bytes | None:
        """Everything that a pipe holds, which can be read only once."""
        if self.path == PIPE:
            return sys.stdin.buffer.read()
        return self.path.read_bytes() if self.path.is_fifo() else None

    @property
    def content(self) -> Path | BytesIO:
        """What file readers take: the path, or a file in memory."""
        return self.path if self._piped is None else BytesIO(self._piped)

    @property
    def size(self) -> int:
        """The number of bytes."""
        return self.path.stat().st_size if self._piped is None else len(self._piped)

    @property
    def is_folder(self) -> bool:
        return self.path.is_dir() and self.path != PIPE

    @cached_property
    def suffix(self) -> str:
        """The ending of the file's name; what comes from a pipe is recognised."""
        named = suffix_of(self.path)
        if named or self._piped is None:
            return named
        if self._piped.startswith(b"PK") and zipfile.is_zipfile(BytesIO(self._piped)):
            with zipfile.ZipFile(BytesIO(self._piped)) as archive:
                return ".xlsx" if "xl/workbook.xml" in archive.namelist() else ".npz"
        found = (suffix for magic, suffix in _MAGIC.items() if self._piped.startswith(magic))
        return next(found, ".csv")

    def read(self, limit: float) -> bytes:
        """All bytes, decompressed if they are a gzip file of at most `limit` gigabytes."""
        data = self.path.read_bytes() if self._piped is None else self._piped
        if not data.startswith(b"\x1f\x8b"):
            return data
        most = max(int(1e9 * limit), 4 * len(data))
        try:
            with gzip.open(BytesIO(data)) as file:
                found = file.read(most + 1)
        except (OSError, EOFError, zlib.error) as error:
            raise DataError(f"{self} is not a gzip file, or is damaged: {error}") from error
        if len(found) > most:
            check_expansion(self, len(found), limit, "more than ")
        return found


def suffix_of(path: Path) -> str:
    """The ending of a file's name in lower case, such as .csv or .csv.gz."""
    suffix = path.suffix.lower()
    return Path(path.stem).suffix.lower() + suffix if suffix == ".gz" else suffix


@contextmanager
def refuse_damaged(sentence: str) -> Iterator[None]:
    """Raise a DataError for any other error: readers of damaged files raise many types."""
    try:
        yield
    except (CommandError, MemoryError):
        raise
    except Exception as error:
        raise DataError(sentence) from error


def check_archive(source: Source, limit: float) -> None:
    """Refuse a zip archive that needs much more memory than disk."""
    with zipfile.ZipFile(source.content) as archive:
        check_expansion(source, sum(info.file_size for info in archive.infolist()), limit)


def check_expansion(
    source: Source, size: int, limit: float, about: str = "", stored: int | None = None
) -> None:
    """Refuse data of `size` bytes in memory, if that is much more than the bytes on disk."""
    if size > 1e9 * limit and size > 4 * (source.size if stored is None else stored):
        raise DataError(
            f"{source} needs {about}{size / 1e9:.1f} GB of memory, much more than its size on "
            f"disk; allow it with --max-expansion {math.ceil(size / 1e9)}"
        )
