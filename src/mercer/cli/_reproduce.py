"""The command `mercer reproduce`."""

from __future__ import annotations

import time
from pathlib import Path

import click

from mercer._words import counted
from mercer.cli._files import Output
from mercer.cli._options import CONTROLS, command
from mercer.cli._terminal import Progress, UsageError, echo, require
from mercer.exceptions import InputError

EXAMPLES = (
    ("list the experiments", "mercer reproduce --list"),
    ("run two of them", "mercer reproduce surrogate subgradient -o results"),
)
_FOLDER = click.Path(path_type=Path, file_okay=False)


@command(
    EXAMPLES,
    click.argument("names", nargs=-1, metavar="[NAMES]..."),
    click.option("-o", "--output", type=_FOLDER, metavar="FOLDER", help="Folder to write."),
    click.option("--data", type=_FOLDER, metavar="FOLDER",
                 help="Folder of the data files that some experiments need. Those whose file is "
                 "missing are skipped, and say where to get it."),
    click.option("--all", "everything", is_flag=True,
                 help="Run all experiments of the source papers; about five minutes."),
    click.option("--full", is_flag=True,
                 help="Run all of them and the long ones of other papers; about an hour."),
    click.option("--list", "listing", is_flag=True,
                 help="Print the names of the experiments, and about how long they take."),
    *CONTROLS,
)  # fmt: skip
def reproduce(
    names: tuple[str, ...],
    output: Path | None,
    data: Path | None,
    everything: bool,
    full: bool,
    listing: bool,
    force: bool,
    quiet: bool,
) -> None:
    """Run experiments of the literature and compare the numbers.

    Each experiment runs from the parameters that its paper states and writes a figure (.png), a
    table (.csv) and a page (.md) with the claims of the paper, the numbers found here and a
    verdict: reproduced, reproduced after a correction, or not reproducible. index.html shows all
    of them. Seeds are fixed.
    """
    require("matplotlib", "experiments", "plot")
    from mercer.reproduce import EXPERIMENTS, find, run

    if listing:
        for one in EXPERIMENTS:
            when = "  --full" if one.full else ""
            echo(f"{one.label:<44}{_duration(one.seconds):>8}{when}")
        return
    if names and (everything or full):
        raise UsageError("name experiments, or give --all or --full, not both")
    try:
        chosen = [find(name) for name in dict.fromkeys(names)]
    except InputError as error:
        raise UsageError(str(error)) from error
    chosen = chosen or [one for one in EXPERIMENTS if full or (everything and not one.full)]
    if not chosen:
        raise UsageError("name experiments (--list lists them), or add --all")
    if output is None:
        raise UsageError("missing option -o FOLDER")
    target = Output(output, force)
    target.check([data] if data else [])
    start, width = time.perf_counter(), max(len(one.label) for one in chosen) + 2
    with target.folder() as folder, Progress(quiet).waiting(""):
        for outcome in run(chosen, folder, data):
            if not quiet:
                echo(f"{outcome.experiment.label:<{width}}{outcome.verdict}")
                if outcome.result is None:
                    echo(f"note: {outcome.reason}", err=True)
    if not quiet:
        seconds = time.perf_counter() - start
        echo(f"{counted(len(chosen), 'experiment')} ({seconds:.1f} s), written to {output}")


def _duration(seconds: int) -> str:
    return f"{seconds} s" if seconds < 120 else f"{round(seconds / 60)} min"
