"""The group of commands, and what becomes of errors: one sentence, and an exit code."""

from __future__ import annotations

import sys
import traceback
import warnings
from collections.abc import Sequence
from typing import Any

import click

from mercer.cli._anomalies import anomalies
from mercer.cli._cluster import cluster
from mercer.cli._denoise import denoise
from mercer.cli._impute import impute
from mercer.cli._job import examples
from mercer.cli._problems import Problem
from mercer.cli._segment import segment
from mercer.exceptions import MercerError

_INTERRUPTED = 130

EXAMPLES = (
    ("take noise out of a table", "mercer denoise measured.csv -o clean.csv"),
    ("fill its gaps", "mercer impute gaps.csv -o filled.csv"),
    ("find images that are unlike the others", "mercer anomalies scans -o scores.csv"),
    ("find clusters", "mercer cluster measured.csv -o clusters.csv --plot clusters.png"),
)


@click.group(epilog=examples(EXAMPLES), context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="mercer", message="%(prog)s %(version)s")
def commands() -> None:
    """Kernel methods for files: tables, arrays and folders of images.

    Inputs are never overwritten. Exit codes: 0 done, 1 the data cannot be used, 2 the command
    cannot be run as it was given, 130 interrupted.
    """


for _command in (denoise, impute, anomalies, cluster, segment):
    commands.add_command(_command)


def run(args: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; errors are one sentence on stderr."""
    words = list(sys.argv[1:] if args is None else args)
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning
        try:
            result = commands.main(words or ["--help"], prog_name="mercer", standalone_mode=False)
            return result if isinstance(result, int) else 0
        except BaseException as error:  # noqa: BLE001 (every error becomes a sentence)
            if "--debug" in words:
                traceback.print_exc()
            return _explain(error)


def _explain(error: BaseException) -> int:
    """Say what went wrong; return the exit code."""
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else 1
    if isinstance(error, (click.Abort, KeyboardInterrupt)):
        return _tell("stopped; nothing was written", _INTERRUPTED)
    if isinstance(error, click.UsageError):
        name = error.ctx.command_path if error.ctx else "mercer"
        text = error.format_message().rstrip(".")
        return _tell(f"{text}; see {name} --help", 2)
    if isinstance(error, Problem):
        return _tell(str(error), error.exit_code)
    if isinstance(error, (MercerError, OSError)):
        return _tell(_of_system(error), 1)
    if isinstance(error, MemoryError):
        return _tell("there is not enough memory for that many rows and columns", 1)
    return _tell(f"unexpected {type(error).__name__}: {error}; --debug shows where", 1)


def _of_system(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)


def _tell(text: str, code: int) -> int:
    click.echo(f"mercer: {text}", err=True)
    return code


def _show_warning(message: Any, *_: Any, **__: Any) -> None:
    click.echo(f"note: {message}", err=True)
