"""Options that the commands share, and how their text is parsed."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from mercer.cli._data import Selection
from mercer.cli._files import PIPE, Output, Source
from mercer.cli._run import Run
from mercer.cli._terminal import UsageError
from mercer.cli._text import as_float
from mercer.exceptions import InputError
from mercer.kernels._names import ALIASES, KERNELS

# the numbers that follow the name of a kernel, and how many of them are required
_NUMBERS = {
    "gaussian": ("LENGTH", 1),
    "laplace": ("LENGTH", 1),
    "matern": ("NU,LENGTH", 2),
    "polynomial": ("DEGREE[,SCALE,OFFSET]", 1),
    "linear": ("", 0),
    "cosine": ("", 0),
}
_FORMS = ("auto", *(f"{name}:{form}" if form else name for name, (form, _) in _NUMBERS.items()))
_PATH = click.Path(path_type=Path)

Examples = Sequence[tuple[str, str]]  # descriptions and command lines for a help page
Decorator = Callable[[Callable[..., int | None]], click.Command]


def data_command(examples: Examples, *own: Any) -> Decorator:
    """Make a command of a function of a `Run` and of the command's own options."""

    def decorate(function: Callable[..., int | None]) -> click.Command:
        @functools.wraps(function)
        def run(**given: Any) -> int | None:
            def take(*names: str) -> dict[str, Any]:
                return {name: given.pop(name) for name in names}

            selection = Selection(**take(*(f.name for f in fields(Selection) if f.name in given)))
            source, train = Source(given.pop("source")), given.pop("train")
            output = choose_output(source, **take("output", "force", "escape", "format"))
            page = choose_report(given.pop("page"), output.force, output.path)
            shared = take("kernel", "scale", "seed", "quiet", "state")
            train = train and Source(train)
            return function(Run(source, output, train, selection, page, **shared), **given)

        return command(examples, *_INPUTS, REPORT, *own, *_SHARED, *CONTROLS)(run)

    return decorate


def command(examples: Examples, *options: Any) -> Decorator:
    """Make a command of a function, with options in this order and examples in its help page."""

    def decorate(function: Callable[..., int | None]) -> click.Command:
        for option in reversed(options):
            function = option(function)
        return click.command(epilog=format_examples(examples))(function)

    return decorate


def choose_output(source: Source, output: Path | None, *options: Any, **named: Any) -> Output:
    """The output that is asked for; a command in a pipe need not name it."""
    if output is None and source.path != PIPE:
        raise UsageError("missing option -o OUTPUT; -o - writes to standard output")
    return Output(output or PIPE, *options, **named)


def choose_report(page: Path | None, force: bool, output: Path = PIPE) -> Output | None:
    """The report that is asked for, if it can be written beside the output."""
    if page is None:
        return None
    if find_spec("jinja2") is None or find_spec("matplotlib") is None:
        raise UsageError("reports need jinja2 and matplotlib: pip install 'mercer[report]'")
    if page == PIPE or page.resolve() == output.resolve():
        raise UsageError("--report needs a file of its own")
    found = Output(page, force)
    found.check_file((".html",), "a report")
    return found


def format_examples(examples: Examples) -> str:
    """Examples for the end of a help page; "backspace" tells click to keep the line breaks."""
    return "\n".join(["\b", "Examples:", *(f"  # {what}\n  {line}" for what, line in examples)])


def number(advice: str, is_valid: Callable[[float], bool], words: Sequence[str] = ()) -> Any:
    """A callback for an option that takes a number in some interval, or one of some words."""

    def parse(_: Any, option: click.Option, text: str | None) -> float | str | None:
        if text is None or text in words:
            return text
        value = as_float(text)
        if not is_valid(value):
            raise UsageError(f"{option.opts[0]} {text}: give {advice}")
        return value

    return parse


def _parse_separator(_: Any, __: Any, text: str | None) -> str | None:
    text = {"tab": "\t", "\\t": "\t", "space": " "}.get(text or "", text)
    if text is not None and (len(text) != 1 or text in '"\r\n'):
        raise UsageError(f"--separator {text}: give one character, or tab")
    return text


def _parse_encoding(_: Any, __: Any, text: str | None) -> str | None:
    try:
        "".encode(text or "utf-8")
    except (LookupError, ValueError) as error:
        raise UsageError(f"--encoding {text}: unknown; try utf-8, latin-1 or utf-16") from error
    return text


REPORT = click.option(
    "--report", "page", type=_PATH, metavar="FILE",
    help="Write a report to this .html file: what was found, how far to trust it, and pictures.",
)  # fmt: skip
CHECKPOINT = click.option(
    "--checkpoint", "state", type=_PATH, metavar="FILE",
    help="Keep the state of a long computation in this file. If it is interrupted, the same "
    "command continues from there.",
)  # fmt: skip
CONTROLS = [
    click.option("--force", is_flag=True,
                 help="Replace OUTPUT if it exists. Inputs are never replaced."),
    click.option("-q", "--quiet", is_flag=True, help="Print errors only."),
    click.option("--debug", is_flag=True, expose_value=False,
                 help="Print a traceback after an error."),
]  # fmt: skip
_INPUTS = [
    click.argument("source", metavar="INPUT", type=_PATH),
    click.option("-o", "--output", type=_PATH, metavar="OUTPUT",
                 help="File or folder to write, or - for standard output, which is the default if "
                 "INPUT is -."),
    click.option("--train", type=_PATH, metavar="FILE",
                 help="Learn from this file or folder instead of INPUT. It needs the same columns, "
                 "or images of the same size, and for denoising the same noise."),
]  # fmt: skip
COLUMNS = [
    click.option("-c", "--columns", multiple=True, metavar="A,B",
                 help="Use only these columns. Default: all columns of numbers, except row "
                 "numbers and integer codes (whole numbers of at most 20 different values)."),
    click.option("--include", multiple=True, metavar="A,B",
                 help="Use these columns too, although they look like row numbers or codes."),
    click.option("--skip", multiple=True, metavar="A,B", help="Leave these columns unchanged."),
]  # fmt: skip
READING = [
    click.option("--array", "--sheet", "part", metavar="NAME",
                 help="The array of an .npz file to use, or the sheet of an .xlsx file."),
    click.option("--missing", multiple=True, metavar="TEXT",
                 help="Text that marks a missing value, besides empty cells, NA, NaN, null and "
                 "none. Can be repeated."),
    click.option("--no-header", "header", flag_value=False, default=True, type=bool,
                 help="The first line of the table holds data, not column names."),
    click.option("--separator", metavar="CHAR", callback=_parse_separator,
                 help="Sign between the cells of a CSV file, or tab. Default: found in the file."),
    click.option("--decimal", type=click.Choice([".", ","]),
                 help="Decimal sign of a CSV file. Default: found in the file."),
    click.option("--encoding", metavar="NAME", callback=_parse_encoding,
                 help="Encoding of a CSV file, such as latin-1. Default: found in the file (UTF-8, "
                 "UTF-16 or Windows-1252)."),
    click.option("--max-expansion", default="1", show_default=True, metavar="GB",
                 callback=number("a number of gigabytes", lambda x: 0.0 <= x < math.inf),
                 help="Refuse compressed files that need more memory than this."),
]  # fmt: skip
SCALE = click.option(
    "--no-scale", "scale", flag_value=False, default=True, type=bool,
    help="Do not scale columns to unit variance. By default they are scaled for the computation, "
    "unless you give a kernel, which is in the units of the data. Images are never scaled.",
)  # fmt: skip
_SHARED = [
    *COLUMNS,
    SCALE,
    click.option("--kernel", default="auto", show_default=True, metavar="KERNEL",
                 callback=lambda *given: parse_kernel(given[-1]),
                 help=f"{', '.join(_FORMS[:-1])} or {_FORMS[-1]}. auto is a Gaussian whose "
                 "length follows the median distance of rows."),
    *READING,
    click.option("--format", type=click.Choice(["csv", "tsv", "parquet", "npy", "npz"]),
                 default="csv", show_default=True, help="Format of standard output."),
    click.option("--escape", is_flag=True,
                 help="Put an apostrophe before text in a CSV output that a spreadsheet would run "
                 "as a formula. File names are always escaped."),
    click.option("--seed", default=0, show_default=True, type=click.IntRange(0), metavar="N",
                 help="Seed for random subsets of large data."),
    CHECKPOINT,
]  # fmt: skip


def parse_kernel(text: str) -> Any:
    """Parse a kernel such as `gaussian:0.5`, or "auto"."""
    name, _, numbers = text.strip().lower().partition(":")
    if name == "auto" and not numbers:
        return "auto"
    name = ALIASES.get(name, name)
    if name not in _NUMBERS:
        raise UsageError(f"unknown kernel {text!r}; choose one of {', '.join(_FORMS)}")
    form, least = _NUMBERS[name]
    most = form.count(",") + 1 if form else 0
    values = [as_float(number) for number in numbers.split(",")] if numbers else []
    if not least <= len(values) <= most or any(map(math.isnan, values)):
        expected = f"{name}:{form}" if form else name
        raise UsageError(f"--kernel {text} does not have the form {expected}")
    if name == "polynomial" and values[0].is_integer():
        values[0] = int(values[0])
    try:
        return KERNELS[name](*values)
    except InputError as error:
        raise UsageError(f"--kernel {text}: {error}") from error
