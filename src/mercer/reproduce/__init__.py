"""Experiments of the source papers: run them, and compare with the printed results.

`mercer reproduce` is the command. Each `Experiment` returns a `Result`: a table, a figure, and the
claims of the paper, each with a number found here and the interval that confirms it. The
verdict follows from the claims.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path

from mercer._progress import tracked
from mercer.exceptions import InputError
from mercer.reproduce import (
    _honeine_2024,
    _honeine_richard_2011,
    _kwok_tsang_2004,
    _mika_1999,
    _pal_vepakomma_2025,
    _power,
    _sakulwongtana,
)
from mercer.reproduce._experiment import Claim, Experiment, Result, Verdict, verdict_of
from mercer.reproduce._pages import Outcome, write, write_index

__all__ = ["EXPERIMENTS", "Claim", "Experiment", "Outcome", "Result", "Verdict", "find", "run",
           "verdict_of"]  # fmt: skip

EXPERIMENTS = (
    *_honeine_2024.EXPERIMENTS,
    *_honeine_richard_2011.EXPERIMENTS,
    *_pal_vepakomma_2025.EXPERIMENTS,
    *_sakulwongtana.EXPERIMENTS,
    *_mika_1999.EXPERIMENTS,
    *_kwok_tsang_2004.EXPERIMENTS,
    *_power.EXPERIMENTS,
)


def find(name: str) -> Experiment:
    """Return the experiment with this name.

    Parameters
    ----------
    name : str
        Such as "thresholds"; `mercer reproduce --list` prints them.

    Examples
    --------
    >>> from mercer.reproduce import find
    >>> find("thresholds").shown
    'Remarks 73 to 77'
    """
    names = [experiment.name for experiment in EXPERIMENTS]
    if name not in names:
        near = get_close_matches(name, names, 1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(names)}"
        raise InputError(f"there is no experiment {name!r}; {hint}")
    return EXPERIMENTS[names.index(name)]


def run(
    experiments: Sequence[Experiment], folder: Path, data: Path | None = None
) -> Iterator[Outcome]:
    """Run experiments, write their figures, tables and pages, and an index of all at the end.

    Parameters
    ----------
    experiments : sequence of Experiment
    folder : Path
        Where to write; it must exist.
    data : Path, optional
        The folder of data files. Experiments that lack theirs are skipped.

    Yields
    ------
    Outcome
        After each experiment.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from mercer.reproduce import find, run
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     outcomes = list(run([find("subgradient")], Path(folder)))
    ...     sorted(path.name for path in Path(folder).iterdir())[:2]
    ['index.csv', 'index.html']
    """
    outcomes = []
    for experiment in tracked(experiments, "experiments"):
        missing = tuple(experiment.missing(data))
        outcome = Outcome(experiment, None if missing else experiment.run(data), missing)
        write(outcome, folder)
        outcomes.append(outcome)
        yield outcome
    write_index(outcomes, folder)
