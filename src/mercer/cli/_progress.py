"""Progress bars on the terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import click

T = TypeVar("T")
_PATIENCE = 0.5  # seconds; shorter work needs no bar


@dataclass(frozen=True)
class Progress:
    """Progress bars on stderr, shown only on a terminal and without `--quiet`."""

    quiet: bool = False

    @property
    def shown(self) -> bool:
        """Whether bars are shown at all."""
        return not self.quiet and sys.stderr.isatty()

    def each(self, items: Sequence[T], label: str) -> Iterator[T]:
        """Yield the items, and show a bar if they take a while."""
        if not self.shown:
            yield from items
            return
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
    def steps(self, most: int, label: str) -> Iterator[Callable[[Any], None] | None]:
        """Yield a callback that advances a bar of at most `most` steps; None if none is shown."""
        if not self.shown:
            yield None
            return
        with click.progressbar(length=most, label=label, file=sys.stderr) as bar:
            yield lambda _: bar.update(1)
            bar.update(max(0, most - bar.pos))

    @contextmanager
    def waiting(self, text: str) -> Iterator[None]:
        """Show a line of text during one long step."""
        if self.shown:
            sys.stderr.write(f"{text} ...")
            sys.stderr.flush()
        try:
            yield
        finally:
            if self.shown:
                sys.stderr.write("\r\033[K")
                sys.stderr.flush()
