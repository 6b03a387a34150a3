"""Experiments of papers: what was claimed, what was found, and the verdict that follows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, TypeAlias

Cell: TypeAlias = str | float | int


class Verdict(Enum):
    """Whether an experiment came out as printed.

    Examples
    --------
    >>> from mercer.reproduce import Verdict
    >>> Verdict.CORRECTED.value
    'reproduced after a correction'
    """

    REPRODUCED = "reproduced"
    CORRECTED = "reproduced after a correction"
    NOT_REPRODUCIBLE = "not reproducible"


@dataclass(frozen=True)
class Claim:
    """A statement of a paper, the number found here, and the interval that confirms it.

    Attributes
    ----------
    says : str
        The statement.
    printed : str
        What the paper prints for it.
    found : float
        The number computed here.
    low, high : float
        The statement holds if low <= found <= high.
    why : str
        Why it does not hold, and what was changed for `corrected`.
    corrected : Claim or None
        The same statement after a correction.

    Examples
    --------
    >>> from mercer.reproduce import Claim
    >>> Claim("errors fall", "0.10", found=0.11, high=0.12).holds
    True
    """

    says: str
    printed: str
    found: float
    low: float = -math.inf
    high: float = math.inf
    why: str = ""
    corrected: Claim | None = None

    @property
    def holds(self) -> bool:
        return self.low <= self.found <= self.high

    @property
    def holds_corrected(self) -> bool:
        """Whether the statement holds, if need be after its correction."""
        return self.holds or (self.corrected is not None and self.corrected.holds_corrected)


def verdict_of(claims: Sequence[Claim]) -> Verdict:
    """Return the verdict: all claims hold, all hold after corrections, or some do not.

    Parameters
    ----------
    claims : sequence of Claim
        All that an experiment claims.

    Examples
    --------
    >>> from mercer.reproduce import Claim, verdict_of
    >>> verdict_of([Claim("two clusters", "2", found=1, low=2, high=2)])
    <Verdict.NOT_REPRODUCIBLE: 'not reproducible'>
    """
    if all(claim.holds for claim in claims):
        return Verdict.REPRODUCED
    if all(claim.holds_corrected for claim in claims):
        return Verdict.CORRECTED
    return Verdict.NOT_REPRODUCIBLE


@dataclass(frozen=True, eq=False)
class Result:
    """What an experiment found: a table, the claims of the paper, and a figure.

    Attributes
    ----------
    columns : tuple of str
    rows : list of tuple
    claims : tuple of Claim
    figure : matplotlib Figure

    Examples
    --------
    >>> from mercer.reproduce import find
    >>> result = find("subgradient").run(None)
    >>> result.verdict.value
    'reproduced after a correction'
    """

    columns: tuple[str, ...]
    rows: list[tuple[Cell, ...]]
    claims: tuple[Claim, ...]
    figure: Any

    @property
    def verdict(self) -> Verdict:
        return verdict_of(self.claims)

    @property
    def reason(self) -> str:
        """Why the verdict is what it is: the reasons of the claims that do not hold as printed."""
        failed = list(dict.fromkeys(claim.why for claim in self.claims if not claim.holds))
        return " ".join(failed) or "Every claim holds."


@dataclass(frozen=True)
class Experiment:
    """One experiment of a paper, which runs from its stated parameters.

    Attributes
    ----------
    name : str
        One word for the command line; also the name of its files.
    title : str
    source : str
        The paper.
    shown : str
        The number of its figure or table.
    setting : str
        What the paper did, and what was chosen here if the paper does not say.
    function : callable
        Takes the folder of data files, returns a `Result`.
    seconds : int
        About how long it takes on two cores.
    files : tuple of str
        Data files that it reads.
    full : bool
        Whether it runs only when asked for by name or with --full.

    Examples
    --------
    >>> from mercer.reproduce import find
    >>> find("centroids").label
    'centroids (Fig. 3)'
    """

    name: str
    title: str
    source: str
    shown: str
    setting: str
    function: Callable[[Path | None], Result]
    seconds: int
    files: tuple[str, ...] = ()
    full: bool = False

    @property
    def label(self) -> str:
        """The name with the number of the figure or table."""
        return f"{self.name} ({self.shown})"

    def missing(self, data: Path | None) -> list[str]:
        """The data files that the folder does not have."""
        return [name for name in self.files if data is None or not (data / name).is_file()]

    def run(self, data: Path | None) -> Result:
        """Run it with the data files of a folder."""
        return self.function(data)
