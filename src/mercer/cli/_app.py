"""The command `mercer`: runs a subcommand, and turns errors into one sentence and an exit code."""

from __future__ import annotations

import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import click

from mercer.cli._anomalies import anomalies
from mercer.cli._cluster import cluster
from mercer.cli._denoise import denoise
from mercer.cli._explore import explore
from mercer.cli._fit import fit, predict
from mercer.cli._hypothesis_tests import test
from mercer.cli._impute import impute
from mercer.cli._options import format_examples
from mercer.cli._reproduce import reproduce
from mercer.cli._segment import segment
from mercer.cli._terminal import CommandError, echo
from mercer.exceptions import MercerError

EXAMPLES = (
    ("remove noise from a table", "mercer denoise measured.csv -o clean.csv --noise 0.2"),
    ("fill missing values", "mercer impute gaps.csv -o filled.csv"),
    ("find unusual images", "mercer anomalies scans -o scores.csv"),
    ("find clusters", "mercer cluster measured.csv -o clusters.csv --plot clusters.png"),
    ("learn a column of a table", "mercer fit measured.csv --target y -o model.mercer"),
    ("ask whether two samples differ", "mercer test two-sample measured.csv new.csv"),
)


@click.group(
    epilog=format_examples(EXAMPLES), context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(package_name="mercer", message="%(prog)s %(version)s")
def commands() -> None:
    """Kernel methods for files: tables, arrays and folders of images.

    Inputs are never overwritten. INPUT - is standard input, OUTPUT - is standard output. Exit
    codes: 0 success, 1 unusable data, 2 wrong usage, 3 a test that rejects (with --fail), 130
    interrupted.
    """


_COMMANDS = (
    denoise, impute, anomalies, cluster, segment, fit, predict, test, explore, reproduce,
)  # fmt: skip
for _command in _COMMANDS:
    commands.add_command(_command)


def run(args: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; errors are one sentence on stderr."""
    words = list(sys.argv[1:] if args is None else args)
    with warnings.catch_warnings(), _signals_as_exits():
        if not {"-q", "--quiet"} & set(words):
            warnings.showwarning = lambda message, *_, **__: echo(f"note: {message}", err=True)
        else:
            warnings.simplefilter("ignore")
        try:
            given = words or ["--help"]  # `obj` is for reports, which say how to repeat them
            result = commands.main(given, prog_name="mercer", standalone_mode=False, obj=given)
            return result if isinstance(result, int) else 0
        except BaseException as error:  # noqa: BLE001 (every error becomes a sentence)
            if "--debug" in words:
                traceback.print_exc()
            text, code = _explain(error)
            if text:
                echo(f"mercer: {' '.join(text.split())}", err=True)
            return code


def _explain(error: BaseException) -> tuple[str, int]:
    """The sentence to print (or none) and the exit code."""
    if isinstance(error, SystemExit):
        return "", error.code if isinstance(error.code, int) else 1
    if isinstance(error, (click.Abort, KeyboardInterrupt)):
        return "interrupted; nothing was written", 130
    if isinstance(error, click.UsageError):
        name = error.ctx.command_path if error.ctx else "mercer"
        return f"{error.format_message().rstrip('.')}; see {name} --help", 2
    if isinstance(error, CommandError):
        return str(error), error.exit_code
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror, 1
    if isinstance(error, (MercerError, OSError)):
        return str(error), 1
    if isinstance(error, MemoryError):
        return "not enough memory for so many rows and columns", 1
    return f"unexpected {type(error).__name__}: {error}; --debug prints a traceback", 1


@contextmanager
def _signals_as_exits() -> Iterator[None]:
    """Exit with an exception on SIGTERM and SIGHUP, so that temporary files are removed."""

    def leave(number: int, _: object) -> None:
        raise SystemExit(128 + number)

    names = ("SIGTERM", "SIGHUP") if threading.current_thread() is threading.main_thread() else ()
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    caught = [n for n in numbers if signal.getsignal(n) != signal.SIG_IGN]  # nohup ignores SIGHUP
    before = {number: signal.signal(number, leave) for number in caught}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
