"""Results of pre-images: points, distances, certificates, and paths."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from mercer._array import Array
from mercer._frames import Framed, Header
from mercer._html import Check, Summarised, Summary
from mercer._words import number


class Verdict(Enum):
    """Verdicts of a `Certificate`: what is known about a point.

    Examples
    --------
    >>> import mercer as mc
    >>> psi = mc.Element(mc.Gaussian(1.0), [[0.0], [0.5]], [0.5, 0.5])
    >>> mc.preimage(psi).certificate.verdict[0].name
    'PROVED_MINIMUM'
    """

    PROVED_MINIMUM = "a local minimiser lies within `radius` of the point: proved, with rounding"
    POSITIVE_DEFINITE = "the Hessian is positive definite here, beyond rounding"
    NOT_A_MINIMUM = "not a local minimiser: proved"
    UNDECIDED = "nothing is proved"

    @property
    def plain(self) -> str:
        """The verdict in plain words, for readers who do not know the method."""
        return _PLAIN[self]


_PLAIN = {
    Verdict.PROVED_MINIMUM: "Proved, rounding errors included: close by lies a point that no point "
    "around it beats. Better points far away are not excluded.",
    Verdict.POSITIVE_DEFINITE: "The objective curves upwards in every direction, as it does at the "
    "best point of a neighbourhood. That one is close by is not proved.",
    Verdict.NOT_A_MINIMUM: "Proved: there are better points close by.",
    Verdict.UNDECIDED: "Nothing is proved about the point: it may be the best one near, or not.",
}
_SHOWN = 5  # numbers of a point that are shown


@dataclass(frozen=True, eq=False)
class Certificate:
    """What is proved about each pre-image; see `certify`, which computes it for any points.

    Attributes
    ----------
    verdict : object array of `Verdict`, shape (b,)
    radius : array of shape (b,)
        Radius of the ball that holds the true minimiser; NaN where none is proved.
    min_eigenvalue : array of shape (b,)
        A lower bound on the smallest eigenvalue of the Hessian of the objective, rounding included;
        NaN where it was not computed.

    Examples
    --------
    >>> import mercer as mc
    >>> psi = mc.Element(mc.Gaussian(1.0), [[0.0], [0.5]], [0.5, 0.5])
    >>> bool(mc.preimage(psi).certificate.radius[0] < 1e-7)
    True
    """

    verdict: Array
    radius: Array
    min_eigenvalue: Array

    def __repr__(self) -> str:
        return f"<Certificate: {_counted(self.verdict)}>"


@dataclass(frozen=True, eq=False)
class PreImage(Framed, Summarised):
    """Pre-images of one element or a batch; all attributes have one row per element.

    Attributes
    ----------
    points : array of shape (b, d), or row ids or a list for kernels on other objects
        A tensor if the element is on tensors; all other attributes are NumPy arrays. `to_frame`
        gives them the names of the columns of the data.
    distance : array of shape (b,)
        |k(x, .) - psi|, the distance in feature space; NaN where the kernel has no norm.
    objective : array of shape (b,)
        k(x, x) / 2 - psi(x), or what the problem minimises if the kernel has derivatives.
    gradient_norm : array of shape (b,)
        Norm of its gradient over the coordinates that are free; NaN without derivatives. At a cusp
        the smallest norm among the subgradients.
    status : object array of `Status`, shape (b,)
    n_iter : array of shape (b,)
    n_evaluations : array of shape (b,)
        The number of kernel sums (value and derivatives at once) that the search took.
    certificate : Certificate
    history : History or None
        The path, if `history=True`.
    header : Header or None
        The names of the columns, if the points of the element were given as a frame.

    Examples
    --------
    >>> import mercer as mc
    >>> back = mc.preimage(mc.Element(mc.Linear(), [[1.0, 0.0], [0.0, 2.0]], [0.5, 0.5]))
    >>> back.points, back.distance.round(12)
    (array([[0.5, 1. ]]), array([0.]))
    """

    points: Any
    distance: Array
    objective: Array
    gradient_norm: Array
    status: Array
    n_iter: Array
    n_evaluations: Array
    certificate: Certificate
    history: History | None = None
    header: Header | None = None

    def __len__(self) -> int:
        return len(self.status)

    @property
    def ok(self) -> Array:
        """Whether each search ended as its solver promises, shape (b,)."""
        return np.array([s.ok for s in self.status.tolist()])

    def _summary(self) -> Summary:
        good, far, radius = int(self.ok.sum()), self.distance, self.certificate.radius
        facts = {}
        if np.isfinite(far).any():
            note = "0 would be exact, which is rarely possible"
            facts["distance in feature space"] = f"{_range(far)}; {note}"
        if np.isfinite(radius).any():
            facts["distance to the exact best point"] = f"at most {number(np.nanmax(radius))}"
        facts["steps of the search"] = _range(self.n_iter)
        found = f"{good:,} of {len(self):,} searches found a point."
        if len(self) == 1 and good:
            found = "One point was found."
            if isinstance(self.points, np.ndarray) and self.points.ndim == 2:
                shown = ", ".join(map(number, self.points[0, :_SHOWN]))
                found = f"The point ({shown}{', ...' if self.points.shape[1] > _SHOWN else ''})."
        checks = [
            Check("good" if s.ok else "warning", _times(n, len(self)) + s.plain)
            for s, n in Counter(self.status.tolist()).items()
        ]
        kinds = {Verdict.PROVED_MINIMUM: "good", Verdict.NOT_A_MINIMUM: "warning"}
        checks += [
            Check(kinds.get(v, "note"), _times(n, len(self)) + v.plain)
            for v, n in Counter(self.certificate.verdict.tolist()).items()
        ]
        return Summary(
            title="Pre-image",
            asked="Which data point comes nearest to a given element of feature space?",
            found=found,
            facts=facts,
            checks=tuple(checks),
            page="preimages",
        )

    def __repr__(self) -> str:
        return f"<PreImage of {len(self)}: {_counted(self.status)}>"


@dataclass(frozen=True, eq=False)
class History:
    """The path of every search: one entry per iteration, NaN once a row has stopped.

    If the search restarted off a saddle or after an escape, this is the path of the first one.

    Attributes
    ----------
    points : array of shape (t, b, d)
    objective, gradient_norm : arrays of shape (t, b)

    Examples
    --------
    >>> import mercer as mc
    >>> psi = mc.mean_embedding(mc.Gaussian(1.0), [[0.0], [1.0], [1.5]])
    >>> path = mc.preimage(psi, start=[[3.0]], history=True).history
    >>> bool((path.objective[1:] <= path.objective[:-1]).all())
    True
    """

    points: Array
    objective: Array
    gradient_norm: Array


def _counted(members: Array) -> str:
    """How often each member of an enumeration occurs, in the order of their first occurrence."""
    counts = Counter(m.name for m in members.tolist())
    return ", ".join(f"{n} {name}" for name, n in counts.items())


def _range(values: Array) -> str:
    """A number, or the smallest, the middle and the largest of several."""
    low, middle, high = (number(q) for q in np.nanquantile(values, [0.0, 0.5, 1.0]))
    return middle if low == high else f"{low} to {high}, median {middle}"


def _times(count: int, total: int) -> str:
    return "" if total == 1 else f"{count:,} of {total:,}: "


def undecided(count: int) -> Certificate:
    verdict = np.full(count, Verdict.UNDECIDED, dtype=object)
    return Certificate(verdict, np.full(count, np.nan), np.full(count, np.nan))
