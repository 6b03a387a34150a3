"""Status: why a computation stopped, one vocabulary for the whole library."""

from __future__ import annotations

from enum import Enum


class Status(Enum):
    """Why a computation stopped. The value says it in a sentence, with what to do about it.

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

    # the result is what was asked for
    CONVERGED = "converged to within tol"
    AT_POINT = "converged: at a point of the data, where the kernel has a cusp"
    IN_BASIN = "stopped early: checked to be in the basin of attraction of a known mode"
    SOLVED = "solved directly, to rounding"
    JITTERED = "solved with jitter on the diagonal, because the matrix is singular to rounding"
    TRUNCATED = "solved without the directions in which the matrix is singular to rounding"
    COMPUTED = "computed by a formula; the gradient norm says how far from stationary it is"
    CHOSEN = "the best of the candidates that were compared"
    COMPLETE = "complete: nothing is left beyond rounding"
    PROVED = "proved to be within the stated gap of the global optimum"
    N_STEPS = "the number of steps that was given, or chosen by held-out rows, is taken"
    N_POINTS = "the number of points asked for is used; more points would lower the error"

    # it is not
    MAX_ITER = "stopped at max_iter before reaching tol; raise max_iter or tol"
    MAX_RANK = "stopped at the largest rank or number of points allowed; raise it, or raise tol"
    STALLED = "stopped: rounding or a kink allows no more progress; raise tol, or the penalty"
    ESCAPED = "escaped: the search runs off to infinity and finds no minimum; try another start"
    EMPTY = "no point of the data is within reach, so the density is zero; start elsewhere"
    UNDEFINED = "undefined: the step is 0/0; use safeguard=True or another start"
    INDEFINITE = "stopped: the matrix is not positive definite, beyond rounding; check the kernel"
    TOO_FEW = "too few rows to learn from, so a simple default is returned; give more rows"
    STOPPED = "stopped by the callback"

    @property
    def ok(self) -> bool:
        """Whether the result is what was asked for."""
        return self not in _BAD


_BAD = {
    Status.MAX_ITER, Status.MAX_RANK, Status.STALLED, Status.ESCAPED, Status.EMPTY,
    Status.UNDEFINED, Status.INDEFINITE, Status.TOO_FEW, Status.STOPPED,
}  # fmt: skip
