"""What the commands have in common: options, reading, scaling, and a summary at the end."""

from __future__ import annotations

import functools
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import click
import numpy as np

from mercer._array import Array
from mercer.cli._bar import Bars
from mercer.cli._data import Choice, Data, check_alike, check_rows
from mercer.cli._files import check_files, check_score_files, read
from mercer.cli._kernels import FORMS, parse_kernel
from mercer.cli._problems import UsageProblem, counted, listed
from mercer.cli._scale import Scaling

_BLOCK = 1000  # rows between two steps of a bar


@dataclass(frozen=True, eq=False)
class Job:
    """One run of a command.

    Attributes
    ----------
    source, output : Path
    train : Path or None
        What to learn from, if not from the source itself.
    choice : Choice
    kernel : Kernel or "auto"
    scale : bool
        Whether columns are brought to unit variance.
    seed : int
    force, quiet : bool
    """

    source: Path
    output: Path
    train: Path | None
    choice: Choice
    kernel: Any
    scale: bool
    seed: int
    force: bool
    quiet: bool
    start: float = field(default_factory=time.perf_counter)

    @property
    def bars(self) -> Bars:
        """Progress, unless silence was asked for."""
        return Bars(self.quiet)

    def read(self, *, scores: bool = False) -> tuple[Data, Data]:
        """The rows to work on and those to learn from, after a look at the output."""
        check = check_score_files if scores else check_files
        check(self.source, self.output, self.train, force=self.force)
        train = read(self.train or self.source, self.choice, self.bars)
        check_rows(train, at_least=3)
        if self.train is None:
            return train, train
        data = read(self.source, replace(self.choice, like=train), self.bars)
        check_rows(data)
        check_alike(data, train)
        return data, train

    def scaling(self, train: Data) -> Scaling:
        """Of columns in different units; images are in one."""
        return Scaling.of(train.values) if self.scale and not train.one_unit else Scaling()

    def fit(self, model: Any, train: Data, scaling: Scaling) -> Any:
        """Fit, with a line that says what is being waited for."""
        with self.bars.waiting(f"learning from {counted(len(train.values), train.row_word)}"):
            return model.fit(scaling.there(train.values))

    def in_blocks(self, data: Data, label: str) -> Any:
        """Slices of the rows, with a bar."""
        starts = range(0, len(data.values), _BLOCK)
        return self.bars.over([slice(i, i + _BLOCK) for i in starts], label)

    def say(self, verb: str, data: Data, facts: dict[str, str]) -> None:
        """What was done, in a few aligned lines."""
        if self.quiet:
            return
        seconds = time.perf_counter() - self.start
        count = counted(len(data.values), data.row_word)
        lines = {verb: f"{count} of {data.size} ({seconds:.1f} s)"}
        lines |= facts
        if data.left_alone:
            lines["left alone"] = _grouped(data.left_alone)
        lines["written"] = str(self.output)
        width = max(map(len, lines)) + 2
        for name, text in lines.items():
            click.echo(f"{name:<{width}}{text}")

    def note(self, text: str) -> None:
        """Something the user should know, beside the summary."""
        if not self.quiet:
            click.echo(f"note: {text}", err=True)


def job_command(
    pairs: Sequence[tuple[str, str]], *own: Any
) -> Callable[[Callable[..., None]], click.Command]:
    """Make a function of a `Job` and of its own options a command, with examples in its help."""

    def decorate(function: Callable[..., None]) -> click.Command:
        @functools.wraps(function)
        def run(**given: Any) -> None:
            choice = Choice(**_taken(given, "columns", "skip", "array", "missing", "header"))
            given.pop("debug")  # the caller has seen it
            if given["seed"] < 0:
                raise UsageProblem(f"--seed {given['seed']}: give a number of at least 0")
            kernel = parse_kernel(given.pop("kernel"))
            rest = _taken(given, "source", "output", "train", "scale", "seed", "force", "quiet")
            function(Job(choice=choice, kernel=kernel, **rest), **given)

        for option in reversed([*_files_options(), *own, *_common_options()]):
            run = option(run)
        return click.command(epilog=examples(pairs))(run)

    return decorate


def _taken(given: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: given.pop(name) for name in names}


def examples(pairs: Sequence[tuple[str, str]]) -> str:
    """The end of a help page; its lines keep their breaks."""
    lines = ["\b", "Examples:"]
    for what, line in pairs:
        lines += [f"  # {what}", f"  {line}"]
    return "\n".join(lines)


def _grouped(left: dict[str, str]) -> str:
    reasons: dict[str, list[str]] = {}
    for name, reason in left.items():
        reasons.setdefault(reason, []).append(name or "(no name)")
    return "; ".join(f"{listed(names)} ({reason})" for reason, names in reasons.items())


def _files_options() -> list[Any]:
    path = click.Path(path_type=Path)
    return [
        click.argument("source", metavar="INPUT", type=path),
        click.option("-o", "--output", required=True, type=path, metavar="OUTPUT",
                     help="Where to write; the folder must be there."),
        click.option("--train", type=path, metavar="FILE",
                     help="Learn from these rows instead of INPUT's. They must be of the same kind "
                     "and should be drawn alike, noise included."),
    ]  # fmt: skip


def _common_options() -> list[Any]:
    return [
        click.option("-c", "--columns", multiple=True, metavar="A,B",
                     help="Only these columns. By default all that hold numbers, except one that "
                     "just counts the rows."),
        click.option("--skip", multiple=True, metavar="A,B", help="Leave these columns alone."),
        click.option("--no-scale", "scale", flag_value=False, default=True, type=bool,
                     help="Take columns as they are. By default each is scaled to unit variance "
                     "for the computation, and back; images never are."),
        click.option("--kernel", default="auto", show_default=True, metavar="KERNEL",
                     help=f"{', '.join(FORMS[:-1])} or {FORMS[-1]}. Lengths are in units of the "
                     "scaled columns; auto is a Gaussian as wide as the data."),
        click.option("--array", metavar="NAME", help="Which array of an .npz file."),
        click.option("--missing", multiple=True, metavar="TEXT",
                     help="What stands for a missing value, besides nothing, NA, NaN, null and "
                     "none; may be given again."),
        click.option("--no-header", "header", flag_value=False, default=True, type=bool,
                     help="The first line of the CSV file is a row, not names."),
        click.option("--seed", default=0, show_default=True, type=int, metavar="N",
                     help="For what is drawn at random when rows are many."),
        click.option("--force", is_flag=True, help="Replace OUTPUT if it exists; never an input."),
        click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors."),
        click.option("--debug", is_flag=True, help="Show where an error came from."),
    ]  # fmt: skip


def components_option(default: str) -> Any:
    """How many principal components."""
    text = "Keep N principal components, or a share such as 0.9 of the scatter."
    return click.option("--components", metavar="N", help=f"{text} {default}")


def parse_components(text: str | None) -> int | float | None:
    """A number of components or a share."""
    if text is None:
        return None
    if text.isdecimal() and int(text) > 0:
        return int(text)
    try:
        share = float(text)
    except ValueError:
        share = 0.0
    if not 0.0 < share < 1.0:
        raise UsageProblem(
            f"--components {text}: give a number of components, or a share between 0 and 1"
        )
    return share


def shortened(value: object) -> str:
    """A kernel with its numbers in four digits."""
    return re.sub(r"\d+\.\d+(e[-+]\d+)?", lambda m: f"{float(m[0]):.4g}", repr(value))


def root_mean_square(X: Array) -> float:
    """Of all entries."""
    return float(np.sqrt(np.mean(np.square(X, dtype=np.float64))))
