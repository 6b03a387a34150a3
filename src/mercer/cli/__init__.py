"""The command line: `mercer denoise`, `impute`, `cluster`, `test`, `explore` and others."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.util import find_spec

__all__ = ["main"]


def main(args: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    0 is success, 1 unusable data, 2 wrong usage, 3 a rejected hypothesis (`mercer test` with
    `--fail`), 130 an interrupt.

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
        sys.stderr.write("mercer: the command line needs click: pip install 'mercer[cli]'\n")
        return 2
    try:
        from mercer.cli._app import run
    except KeyboardInterrupt:  # during the import
        return 130
    return run(args)
