"""Errors of the command line, and helpers that word and print messages."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib import import_module
from typing import Any, ClassVar

import click


class CommandError(Exception):
    """An error that is printed as one sentence."""

    exit_code: ClassVar[int] = 1


class DataError(CommandError):
    """The data cannot be used."""


class UsageError(CommandError):
    """The command cannot be run as given."""

    exit_code = 2


def require(module: str, what: str) -> Any:
    """Import an optional package, or say what to install."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0].replace("PIL", "pillow")
        raise UsageError(f"{what} need {package}: pip install 'mercer[cli]'") from error


def echo(text: str, *, err: bool = False) -> None:
    """Print text; control characters from files appear as escapes, so terminals ignore them."""
    safe = re.sub(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", lambda m: f"\\x{ord(m[0]):02x}", text)
    click.echo(safe.encode("utf-8", "backslashreplace").decode(), err=err)


def counted(number: int, word: str) -> str:
    """1 row, 2 rows."""
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def listed(words: Iterable[object], most: int = 8) -> str:
    """Words separated by commas; long lists are cut with "and 7 more"."""
    texts = [str(word) for word in words]
    if len(texts) <= most:
        return ", ".join(texts)
    return ", ".join(texts[: most - 1]) + f" and {len(texts) - most + 1} more"


def rounded(value: object) -> str:
    """The repr of a kernel with its numbers rounded to four digits."""
    return re.sub(r"\d+\.\d+(e[-+]\d+)?", lambda m: f"{float(m[0]):.4g}", repr(value))
