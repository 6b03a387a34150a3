"""The command `mercer explore`."""

from __future__ import annotations

import threading
import webbrowser
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mercer.cli._data import Data, Selection, check_rows
from mercer.cli._files import Source
from mercer.cli._options import COLUMNS, CONTROLS, READING, command
from mercer.cli._run import check_readable, read_one
from mercer.cli._terminal import CommandError, UsageError, echo
from mercer.exceptions import InputError

if TYPE_CHECKING:
    from mercer.explore import Table

EXAMPLES = (
    ("look at a table in the browser", "mercer explore measured.csv"),
    ("print the address only, for a browser that you open yourself",
     "mercer explore measured.csv --no-browser --port 8765"),
)  # fmt: skip


@command(
    EXAMPLES,
    click.argument("source", metavar="INPUT", type=click.Path(path_type=Path)),
    *COLUMNS,
    click.option("--port", type=click.IntRange(0, 65535), default=0, metavar="N",
                 help="Port on this machine. Default: one that is free."),
    click.option("--no-browser", "browser", flag_value=False, default=True, type=bool,
                 help="Print the address; do not open a browser."),
    *READING, *CONTROLS[1:],
)  # fmt: skip
def explore(source: Path, port: int, browser: bool, quiet: bool, **reading: Any) -> None:
    """Explore the density of a table in the browser.

    INPUT is a table (.csv, .tsv, .csv.gz, .xlsx, .parquet), an array (.npy, .npz) or - for
    standard input.

    The page shows the density of one or two columns, its modes and their basins. You choose the
    columns and the kernel, and move the bandwidth. Click to see where mean shift goes from there.
    Load a second file to see where the two differ. Only this machine can open the page, by the
    address that is printed. Ctrl-C stops it.
    """
    from mercer.explore import serve

    selection = Selection(**reading)
    file = Source(source)
    check_readable(file)
    if file.is_folder:
        raise UsageError(f"{source} is a folder; give a table or an array")
    first = read_one(file, selection, quiet)
    check_rows(first, at_least=3, complete=False)

    def read(name: str, content: bytes) -> Table:
        try:
            return _table(read_second(Source(Path(Path(name).name), content), selection, first))
        except CommandError as error:
            raise InputError(str(error)) from error

    def ready(address: str) -> None:
        echo(f"{address}\nCtrl-C stops it")
        if browser:
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()

    try:
        serve(_table(first), read, port=port, ready=ready)
    except OSError as error:
        raise UsageError(
            f"port {port} cannot be used ({error.strerror}); choose another"
        ) from error


def read_second(source: Source, selection: Selection, first: Data) -> Data:
    """Read a file that was loaded on the page; it needs the columns of the first."""
    check_readable(source)
    second = read_one(source, replace(selection, like=first), quiet=True)
    check_rows(second, at_least=3, complete=False)
    return second


def _table(data: Data) -> Table:
    from mercer.explore import Table

    name = str(data.source) if data.source.path.name == "-" else data.source.path.name
    return Table(name, data.names, data.values, data.unused, data.notes)
