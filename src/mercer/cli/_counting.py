"""A bar for work that tells a callback of each step."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from mercer.cli._bar import Bars


@contextmanager
def counting(bars: Bars, most: int, label: str) -> Iterator[Callable[[Any], None] | None]:
    """A callback that moves a bar on; None if nobody would see it.

    Parameters
    ----------
    bars : Bars
    most : int
        Steps; where fewer are needed the bar jumps to its end.
    label : str
    """
    if not bars.shown:
        yield None
        return
    with click.progressbar(length=most, label=label, file=sys.stderr) as bar:
        done = 0

        def step(_: Any) -> None:
            nonlocal done
            done += 1
            bar.update(1)

        yield step
        bar.update(max(0, most - done))
