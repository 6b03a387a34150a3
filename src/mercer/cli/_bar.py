"""Progress on the terminal, for work that takes its time."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")
_PATIENCE = 0.5  # seconds before a bar is worth looking at


@dataclass(frozen=True)
class Bars:
    """Bars on stderr, if it is a terminal and nobody asked for silence."""

    quiet: bool = False

    @property
    def shown(self) -> bool:
        """Whether anybody would see them."""
        return not self.quiet and sys.stderr.isatty()

    def over(self, items: Sequence[T], label: str) -> Iterator[T]:
        """The items, with a bar once they have taken a while."""
        if not self.shown:
            yield from items
            return
        import click

        start, done = time.monotonic(), 0
        for item in items:
            if time.monotonic() - start > _PATIENCE:
                break
            yield item
            done += 1
        if done == len(items):
            return
        with click.progressbar(length=len(items), label=label, file=sys.stderr) as bar:
            bar.update(done)
            for item in items[done:]:
                yield item
                bar.update(1)

    @contextmanager
    def waiting(self, text: str) -> Iterator[None]:
        """A line that stands while one long step is taken."""
        if self.shown:
            sys.stderr.write(f"{text} ...")
            sys.stderr.flush()
        try:
            yield
        finally:
            if self.shown:
                sys.stderr.write("\r\033[K")
                sys.stderr.flush()
