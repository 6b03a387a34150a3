"""Where results go: never onto what was read, and never half written."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mercer.cli._problems import UsageProblem


def check_output(output: Path, inputs: list[Path], force: bool) -> None:
    """Refuse to write onto an input, into a folder that is not there, or unasked onto a file."""
    for path in inputs:
        if _same(output, path):
            raise UsageProblem(
                f"{output} is the same file as the input {path}, which is never overwritten; "
                "choose another name"
            )
    if not output.parent.is_dir():
        raise UsageProblem(f"there is no folder {output.parent}; make it, or write elsewhere")
    if _is_taken(output) and not force:
        raise UsageProblem(f"{output} exists; choose another name, or add --force to replace it")


def check_kind(output: Path, folder: bool, suffixes: tuple[str, ...], what: str) -> None:
    """Refuse an output of another kind than what will be written."""
    if folder:
        if output.exists() and not output.is_dir():
            raise UsageProblem(f"{output} is a file, and {what} are written into a folder")
        return
    if output.is_dir():
        raise UsageProblem(f"{output} is a folder; name a file in it")
    if output.suffix.lower() not in suffixes:
        raise UsageProblem(
            f"{what} cannot be written to {output.name}; its name must end in "
            f"{' or '.join(suffixes)}"
        )


@contextmanager
def replacing(output: Path) -> Iterator[Path]:
    """A new file beside the output, which becomes the output if nothing goes wrong."""
    part = _part(output)
    try:
        yield part
        part.replace(output)  # a link is replaced, not followed
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def replacing_folder(output: Path) -> Iterator[Path]:
    """A new folder; its files move into the output, where others of that name are replaced."""
    part = _part(output)
    part.mkdir()
    try:
        yield part
        if output.is_dir():
            for path in sorted(part.iterdir()):
                path.replace(output / path.name)
        else:
            part.replace(output)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _part(output: Path) -> Path:
    return output.parent / f".{output.stem}.{os.getpid()}.part{output.suffix}"


def _same(a: Path, b: Path) -> bool:
    """Whether two paths are one file, however they are spelled or linked."""
    try:
        return a.samefile(b)
    except OSError:  # one of them does not exist
        return a.resolve() == b.resolve()


def _is_taken(output: Path) -> bool:
    if output.is_dir():
        return any(output.iterdir())
    return os.path.lexists(output)
