"""Block Lanczos with full reorthogonalisation and thick restarts, on products with blocks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mercer._array import Array
from mercer._checkpoint import Place, State, generator_state, set_generator_state
from mercer._progress import Callback, report
from mercer._status import Status
from mercer._threads import interruptible
from mercer.linalg._blocked_products import matmul, transposed_matmul

Product = Callable[[Array], Array]

_EPS = float(np.finfo(np.float64).eps)
_CHECK, _FEW = 2, 8  # passes of a check for hidden eigenvalues, and vectors it starts from


def default_sizes(n: int, wanted: int) -> tuple[int, int]:
    """The number of columns of a block (a third of the wanted pairs, 8 to 64) and of the basis.

    The basis holds eight blocks beyond the wanted vectors, and up to four times as many as those:
    more room means fewer passes over the kernel, and larger matrices T.
    """
    block = min(n, max(8, min(64, -(-wanted // 3))))
    basis = max(wanted + 8 * block, min(4 * wanted, 2 * wanted + 400))
    return block, min(n, basis)


class BlockLanczos:
    """The largest eigenvalues of a symmetric operator, known by its products with (n, b) blocks.

    Holds an orthonormal basis Q and T = Q'SQ, for which S Q = Q T + N C E' with the next block N
    and E the last columns of the identity. Ritz pairs (theta, Q y) therefore have the residual
    |C y_last|, known without another product. A full basis is reduced to its best Ritz vectors,
    and the iteration continues with N.

    Attributes
    ----------
    values, vectors : the Ritz pairs found, largest first, after `run`
    n_iter : products done
    status : Status
    """

    def __init__(
        self,
        product: Product,
        n: int,
        wanted: int,
        rng: np.random.Generator,
        trace: float | None = None,
        sizes: tuple[int, int] | None = None,
    ) -> None:
        self.product, self.n, self.wanted, self.rng, self.trace = product, n, wanted, rng, trace
        self.block, self.basis = sizes or default_sizes(n, wanted)
        self.full_block = self.block
        room = min(n, self.basis + self.block)
        self.Q = np.empty((n, room), order="F")
        self.T = np.zeros((room, room))
        self.size = 0  # basis vectors whose images are known
        self.next = self._fresh(self.block, np.empty((n, 0)))
        self.n_iter = 0
        self.status = Status.MAX_ITER
        self._since, self._level = -1, 0.0  # passes since a check began, sum of the values then

    def run(
        self,
        tol: float,
        max_iter: int,
        callback: Callback | None = None,
        place: Place | None = None,
    ) -> None:
        """Iterate until the wanted pairs have residuals below tol times the largest value."""
        wanted, place = self.wanted, place or Place(None)
        if place.found is not None:
            self._take_up(place.found)
        while True:
            place.keep(self._state)
            coupling, last = self._extend()
            theta, Y = interruptible(np.linalg.eigh, self.T[: self.size, : self.size])
            theta, Y = theta[::-1], Y[:, ::-1]
            residual = np.linalg.norm(coupling @ Y[last, :wanted], axis=0)
            scale = float(np.abs(theta).max())
            settled = self.size >= wanted and residual.max() <= tol * scale
            if settled and self._is_complete(theta, tol * scale):
                self.status = Status.CONVERGED
                break
            worst = float(residual.max()) / scale if scale > 0 else 0.0
            if report("eigenvectors", self.n_iter, worst, callback=callback):
                self.status = Status.STOPPED
            if self.size >= wanted and (self.status is Status.STOPPED or self.n_iter >= max_iter):
                break
            if settled and self._since != 1:
                self._check(theta, Y)
            elif self._is_full:
                self._restart(theta, Y)
        self.values = theta[:wanted]
        self.vectors = matmul(self.Q[:, : self.size], Y[:, :wanted])
        if self.status is Status.STOPPED:
            if settled and self._since != 1:  # as without the interruption
                self._check(theta, Y)
            elif self._is_full:
                self._restart(theta, Y)
            place.keep(self._state, last=True)

    @property
    def _is_full(self) -> bool:
        return bool(self.size + self.next.shape[1] > self.basis)

    def _state(self) -> State:
        names = "size", "n_iter", "block", "_since", "_level"
        numbers = {name: getattr(self, name) for name in names}
        Q, T = self.Q[:, : self.size].copy(), self.T.copy()
        return numbers | {"Q": Q, "T": T, "next": self.next, "random": generator_state(self.rng)}

    def _take_up(self, found: State) -> None:
        """Resume from the state of an earlier run."""
        for name in ("size", "n_iter", "block", "_since", "_level"):
            setattr(self, name, found[name])
        self.Q[:, : self.size], self.T[:] = found["Q"], found["T"]
        self.next = np.array(found["next"])
        set_generator_state(self.rng, found["random"])

    def _is_complete(self, theta: Array, slack: float) -> bool:
        """Whether no larger eigenvalue can be missing from the values that were found.

        A block of b vectors finds at most b copies of an eigenvalue, so pairs may converge while
        others are hidden. For an operator S >= 0 a hidden eigenvalue is at most the next Ritz value
        plus the trace outside the basis. If that is too much, a check with fresh random vectors
        must have found nothing.
        """
        k = self.wanted
        if self.size == self.n:
            return True
        following = float(theta[k]) if self.size > k else 0.0
        if self.trace is not None and following + self.trace - theta.sum() <= theta[k - 1] + slack:
            return True
        return self._since >= _CHECK and float(theta[:k].sum()) <= self._level + slack

    def _check(self, theta: Array, Y: Array) -> None:
        """Go on with the settled pairs and a few random vectors, in case a pair is hidden."""
        k = self.wanted
        repeated, self._since, self._level = self._since >= _CHECK, 0, float(theta[:k].sum())
        self._restart(theta, Y, k)
        self.block = min(self.n - k, self.full_block if repeated else _FEW)
        self.next = self._fresh(self.block, self.Q[:, :k])

    def _extend(self) -> tuple[Array, slice]:
        """Add the next block to the basis; returns C, and the columns of the block."""
        last = slice(self.size, self.size + self.next.shape[1])
        self.Q[:, last] = self.next
        W = self.product(self.next)
        self.n_iter += 1
        if self._since >= 0:
            self._since += 1
        self.size = last.stop
        Q = self.Q[:, : self.size]
        H = transposed_matmul(Q, W)
        W = W - matmul(Q, H)
        G = transposed_matmul(Q, W)
        W -= matmul(Q, G)
        H += G
        H[last] = 0.5 * (H[last] + H[last].T)
        self.T[: self.size, last] = H
        self.T[last, : self.size] = H.T
        self.next, coupling = self._factored(W, Q, float(np.linalg.norm(H)))
        return coupling, last

    def _factored(self, W: Array, Q: Array, scale: float) -> tuple[Array, Array]:
        """W = N C with orthonormal N, completed by random directions where W is deficient."""
        room = min(self.block, self.n - self.size)
        if room == 0:
            return np.empty((self.n, 0)), np.zeros((0, W.shape[1]))
        N, R = interruptible(np.linalg.qr, W)
        U, s, Vt = np.linalg.svd(R)
        rank = min(room, int(np.sum(s > 10.0 * _EPS * np.sqrt(self.n) * scale)))
        N, C = matmul(N, U[:, :rank]), s[:rank, None] * Vt[:rank]
        # small columns of W are orthogonal to Q only before they are scaled up
        N -= matmul(Q, transposed_matmul(Q, N))
        N = _orthonormal(N)
        if rank < room:
            N = np.hstack([N, self._fresh(room - rank, np.hstack([Q, N]))])
            C = np.vstack([C, np.zeros((room - rank, W.shape[1]))])
        return N, C

    def _fresh(self, count: int, Q: Array) -> Array:
        """Random orthonormal vectors orthogonal to Q."""
        N = self.rng.standard_normal((self.n, count))
        for _ in range(2):
            N = _orthonormal(N - matmul(Q, transposed_matmul(Q, N)))
        return N

    def _restart(self, theta: Array, Y: Array, keep: int | None = None) -> None:
        """Keep the best Ritz vectors: the wanted ones, and half of the others there is room for."""
        if keep is None:
            room = self.basis - self.next.shape[1]
            keep = min(room, self.wanted + (room - self.wanted) // 2)
        self.Q[:, :keep] = matmul(self.Q[:, : self.size], Y[:, :keep])
        self.T[:] = 0.0
        self.T[range(keep), range(keep)] = theta[:keep]
        self.size = keep


def _orthonormal(N: Array) -> Array:
    """The Q of a QR decomposition, with signs such that an orthonormal N is returned unchanged."""
    if N.shape[1] == 0:
        return N
    Q, R = np.linalg.qr(N)
    return np.asarray(Q * np.where(R.diagonal() < 0, -1.0, 1.0))
