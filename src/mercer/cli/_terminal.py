"""What appears on the terminal: errors, messages and progress bars."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar, TypeVar

import click

from mercer._progress import progress_bar, tracked

T = TypeVar("T")


class CommandError(Exception):
    """An error that is printed as one sentence."""

    exit_code: ClassVar[int] = 1


class DataError(CommandError):
    """The data cannot be used."""


class UsageError(CommandError):
    """The command cannot be run as given."""

    exit_code = 2


def require(module: str, what: str, extra: str = "cli") -> Any:
    """Import an optional package, or say what to install."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0].replace("PIL", "pillow")
        raise UsageError(f"{what} need {package}: pip install 'mercer[{extra}]'") from error


def echo(text: str, *, err: bool = False) -> None:
    """Print text; control characters from files appear as escapes, so terminals ignore them.

    So do those that change the direction of text.
    """
    strange = r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]"
    safe = re.sub(strange, lambda m: m[0].encode("unicode_escape").decode(), text)
    click.echo(safe.encode("utf-8", "backslashreplace").decode(), err=err)


def echo_facts(facts: dict[str, str], *, err: bool = False) -> None:
    """Print names and texts in two columns."""
    width = max(map(len, facts)) + 2
    for name, text in facts.items():
        echo(f"{name:<{width}}{text}", err=err)


@dataclass(frozen=True)
class Progress:
    """Progress bars on stderr, shown only on a terminal and without `--quiet`."""

    quiet: bool = False

    def each(self, items: Sequence[T], label: str) -> Iterator[T]:
        """Yield the items, with a bar."""
        with self.waiting(""):
            yield from tracked(items, label)

    def waiting(self, text: str) -> AbstractContextManager[None]:
        """Show a text, and the steps of what is computed, during one long task."""
        shown = not self.quiet and sys.stderr.isatty()
        return progress_bar(text, keep=False) if shown else nullcontext()
