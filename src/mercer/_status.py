"""Status: why a computation stopped, one vocabulary for the whole library."""

from __future__ import annotations

from enum import Enum


class Status(Enum):
    """Why a computation stopped; the value is a sentence with advice.

    Examples
    --------
    >>> import mercer as mc
    >>> psi = mc.Element(mc.Gaussian(1.0), [[0.0], [0.5]], [0.5, 0.5])
    >>> mc.preimage(psi).status[0] is mc.Status.CONVERGED
    True
    >>> mc.Status.CONVERGED.ok, mc.Status.MAX_ITER.ok
    (True, False)
    >>> print(mc.Status.MAX_ITER.value)
    stopped at max_iter before reaching tol; raise max_iter or tol
    """

    # the result is as requested
    CONVERGED = "converged to within tol"
    AT_POINT = "converged: at a point of the data, where the kernel has a cusp"
    IN_BASIN = "stopped early: checked to be in the basin of attraction of a known mode"
    SOLVED = "solved directly, to rounding"
    JITTERED = "solved with jitter on the diagonal, because the matrix is singular to rounding"
    TRUNCATED = "solved without the directions in which the matrix is singular to rounding"
    COMPUTED = "computed by a formula; the gradient norm shows how far from stationary it is"
    CHOSEN = "the best of the candidates that were compared"
    COMPLETE = "complete: nothing is left beyond rounding"
    PROVED = "proved to be within the stated gap of the global optimum"
    N_STEPS = "the given number of steps, or the number chosen on held-out rows, was taken"
    N_POINTS = "the requested number of points is used; more points would lower the error"

    # the result is not as requested
    MAX_ITER = "stopped at max_iter before reaching tol; raise max_iter or tol"
    MAX_RANK = "stopped at the largest rank or number of points allowed; raise it, or raise tol"
    STALLED = "stopped: rounding or a kink allows no more progress; raise tol, or the penalty"
    ESCAPED = "escaped: the search diverges to infinity and finds no minimum; try another start"
    EMPTY = "no point of the data is within reach, so the density is zero; start elsewhere"
    UNDEFINED = "undefined: the step is 0/0; use safeguard=True or another start"
    INDEFINITE = "stopped: the matrix is not positive definite, beyond rounding; check the kernel"
    TOO_FEW = "too few rows to learn from, so a simple default is returned; give more rows"
    STOPPED = "stopped by the callback or by Ctrl-C"

    @property
    def plain(self) -> str:
        """The same sentence for readers who do not know the method."""
        return _PLAIN[self]

    @property
    def ok(self) -> bool:
        """Whether the result is as requested."""
        return self not in _BAD


_BAD = {
    Status.MAX_ITER, Status.MAX_RANK, Status.STALLED, Status.ESCAPED, Status.EMPTY,
    Status.UNDEFINED, Status.INDEFINITE, Status.TOO_FEW, Status.STOPPED,
}  # fmt: skip
_PLAIN = {
    Status.CONVERGED: "The search converged: more steps would change less than the tolerance.",
    Status.AT_POINT: "The search converged to a row of the data, where the function has a cusp.",
    Status.IN_BASIN: "The search stopped early, because it leads to a known peak.",
    Status.SOLVED: "Computed directly, exact up to rounding.",
    Status.JITTERED: "Computed after a tiny change that makes the problem solvable: some rows are "
    "equal, or equal up to rounding.",
    Status.TRUNCATED: "Computed without the directions in which the data differ by no more than "
    "rounding.",
    Status.COMPUTED: "Computed by a formula, without a search. Better points may be near.",
    Status.CHOSEN: "The best of a list of candidates. Nothing outside of the list was tried.",
    Status.COMPLETE: "Complete: what is left out is no larger than rounding errors.",
    Status.PROVED: "Proved: no other point is better by more than the stated gap.",
    Status.N_STEPS: "The given number of steps, or the number chosen on held-out rows, was taken.",
    Status.N_POINTS: "The requested number of points is used. More would be more accurate.",
    Status.MAX_ITER: "The search stopped before it converged. More steps may change the result.",
    Status.MAX_RANK: "The computation stopped at the largest allowed size, before it reached the "
    "requested accuracy.",
    Status.STALLED: "The search stopped before it reached the requested accuracy, because of "
    "rounding or a kink of the function.",
    Status.ESCAPED: "The search diverged to infinity. Do not use this point.",
    Status.EMPTY: "The start is so far from all rows that the density is zero there.",
    Status.UNDEFINED: "A step was 0 / 0, so the search stopped. Do not use this point.",
    Status.INDEFINITE: "The kernel is not positive definite on these data, so the computation "
    "stopped.",
    Status.TOO_FEW: "There were too few rows to learn from, so a simple default is used.",
    Status.STOPPED: "The user, or the user's own program, stopped the search.",
}
