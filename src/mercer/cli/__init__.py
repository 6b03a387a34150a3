"""The command line: `mercer denoise`, `impute`, `anomalies`, `cluster` and `segment`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.util import find_spec

__all__ = ["main"]


def main(args: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    0 is done, 1 bad data, 2 a command that cannot be run as it was given, 130 interrupted.

    Parameters
    ----------
    args : sequence of str, optional
        Words after `mercer`; by default those of the process.

    Examples
    --------
    >>> from mercer.cli import main
    >>> main(["--version"])
    mercer ...
    0
    """
    if find_spec("click") is None:
        sys.stderr.write("mercer: the command line needs more: pip install 'mercer[cli]'\n")
        return 2
    try:
        from mercer.cli._app import run
    except KeyboardInterrupt:  # while things are loaded
        return 130
    return run(args)
