"""Inputs and outputs: files, folders, standard input and standard output.

Outputs are written to a temporary file, which becomes the output when it is complete.
"""

from __future__ import annotations

import gzip
import math
import os
import shutil
import stat
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from pathlib import Path

from mercer.cli._terminal import CommandError, DataError, UsageError

PIPE = Path("-")
_MAGIC = {b"PAR1": ".parquet", b"\x93NUMPY": ".npy", b"\x1f\x8b": ".csv.gz"}


@dataclass(frozen=True)
class Source:
    """What a command reads; the path - is standard input."""

    path: Path
    given: bytes | None = None  # the content, if there is no file
    first: int = 0  # the number of its first row, if it is a piece of a file

    def __str__(self) -> str:
        return "standard input" if self.path == PIPE else str(self.path)

    @cached_property
    def _piped(self) -> bytes | None:
        """Everything that a pipe holds, which can be read only once, or what was given."""
        if self.given is not None:
            return self.given
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
        return self.given is None and self.path.is_dir() and self.path != PIPE

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


@dataclass(frozen=True)
class Output:
    """A file or folder to write: never an input, and complete or absent; - is standard output."""

    path: Path
    force: bool = False  # whether an existing output may be replaced
    escape: bool = False  # whether text in a CSV file that looks like a formula gets an apostrophe
    format: str = "csv"  # of standard output

    @property
    def is_pipe(self) -> bool:
        return self.path == PIPE

    @property
    def suffix(self) -> str:
        """The ending of the file's name, in lower case."""
        return f".{self.format}" if self.is_pipe else suffix_of(self.path)

    @property
    def is_text(self) -> bool:
        return self.suffix.startswith((".csv", ".tsv", ".txt"))

    def check(self, inputs: Sequence[Path]) -> None:
        """Refuse to overwrite an input or, without `force`, anything else."""
        if self.is_pipe:
            return
        for path in inputs:
            if _same(self.path, path):
                raise UsageError(
                    f"{self.path} is the same file as the input {path}, which is never "
                    "overwritten; choose another name"
                )
        if not self.path.parent.is_dir():
            raise UsageError(
                f"the folder {self.path.parent} does not exist; create it or choose another"
            )
        if not os.access(self.path.parent, os.W_OK):
            raise UsageError(f"the folder {self.path.parent} is not writable; choose another")
        is_folder = self.path.is_dir()
        taken = any(self.path.iterdir()) if is_folder else os.path.lexists(self.path)
        if taken and not self.force:
            raise self._exists()

    def check_file(self, suffixes: Sequence[str], what: str) -> None:
        """Refuse a folder, or a file whose name does not end in one of the suffixes."""
        if self.is_pipe:
            where = f"standard output as {self.format}; choose --format for"
        elif self.path.is_dir():
            raise UsageError(f"{self.path} is a folder; give the name of a file in it")
        else:
            where = f"{self.path.name}; its name must end in"
        if self.suffix not in suffixes:
            raise UsageError(f"cannot write {what} to {where} {' or '.join(suffixes)}")

    @contextmanager
    def file(self) -> Iterator[Path]:
        """Yield a temporary file to write; it becomes the output if no error occurs."""
        if self.is_pipe:
            with tempfile.TemporaryDirectory() as folder:
                temporary = Path(folder) / f"output{self.suffix}"
                yield temporary
                with temporary.open("rb") as file:
                    shutil.copyfileobj(file, sys.stdout.buffer)
                sys.stdout.flush()
            return
        handle, name = tempfile.mkstemp(self.path.suffix, ".mercer-", self.path.parent)
        os.close(handle)
        temporary = Path(name)
        try:
            yield temporary
            self._publish(temporary)
        finally:
            temporary.unlink(missing_ok=True)

    @contextmanager
    def folder(self) -> Iterator[Path]:
        """Yield a temporary folder to fill; its files move to the output if no error occurs."""
        temporary = Path(tempfile.mkdtemp(prefix=".mercer-", dir=self.path.parent))
        try:
            yield temporary
            if self.path.is_dir():
                for path in sorted(temporary.iterdir()):
                    Output(self.path / path.name, self.force)._publish(path)
            else:
                temporary.chmod(0o777 & ~_umask())
                temporary.rename(self.path)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)

    def _publish(self, temporary: Path) -> None:
        """Move a finished file to its place, with the permissions of the file that it replaces."""
        old = self.path.lstat().st_mode if os.path.lexists(self.path) else 0
        temporary.chmod(stat.S_IMODE(old) if stat.S_ISREG(old) else 0o666 & ~_umask())
        if not self.force:
            try:
                os.link(temporary, self.path)  # unlike a rename, this never replaces a file
                return
            except OSError as error:
                if os.path.lexists(self.path):
                    raise self._exists() from error  # it was created in the meantime
        temporary.replace(self.path)  # a symbolic link is replaced, not followed

    def _exists(self) -> UsageError:
        return UsageError(
            f"{self.path} exists already; choose another name, or add --force to replace it"
        )


def _same(a: Path, b: Path) -> bool:
    """Whether two paths are one file, however they are spelled or linked."""
    try:
        return a.samefile(b)
    except OSError:  # one of them does not exist
        return a.resolve() == b.resolve()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
