"""The Stein kernel of a model and a kernel, and the kernel Stein discrepancy of a sample.

With the score s = grad log p of the model,

    h(x, y) = s(x)'s(y) k + s(y)'grad_x k + s(x)'grad_y k + tr(grad_x grad_y' k).

A kernel is a profile of variables v (squared distances, inner products), and the gradient of each
is a field of x plus a field of y: grad_x v = P(x) + Q(y), grad_y v = R(y) + T(x). So a tile of h is
made of matrix products of such fields, whatever the dimension, and never of a tile per coordinate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from mercer import engine
from mercer._array import Array, as_weights, instance, one_of
from mercer._frames import is_chunked
from mercer._tensors import as_double, constant, host, is_tensor, namespace
from mercer.engine import Distance, Dot, Gap, Norm, as_float64, n_rows
from mercer.engine.pairs._tensor_tiles import middle
from mercer.engine.pairs._tiles import Pairs, rowwise_variables, tile_jet, without_cusps
from mercer.engine.programs._jets import is_zero
from mercer.engine.programs._maps import apply_all, pull_all
from mercer.engine.programs._program import Variable
from mercer.engine.sums._tensor_sums import pairs_of as tensor_pairs
from mercer.exceptions import InputError
from mercer.kernels import Kernel
from mercer.kernels._bandwidth import SQUARED_DISTANCE
from mercer.kernels._flags import Definiteness, Flags
from mercer.kernels._precomputed import OfBlocks
from mercer.linalg._inputs import refuses_overflow
from mercer.methods.hypothesis_tests._forms_in_pieces import within_in_pieces
from mercer.methods.hypothesis_tests._quadratic_forms import quadratic_forms
from mercer.methods.hypothesis_tests._score import score_at
from mercer.methods.hypothesis_tests._tensor_statistics import quadratic_form, tensor_scores
from mercer.space import Element

_ESTIMATORS = ("unbiased", "biased")


@refuses_overflow
def ksd(
    kernel: Kernel, X: Any, score: Any, *, weights: Any = None, estimator: str = "unbiased"
) -> Any:
    """Return the squared kernel Stein discrepancy between a sample and a model.

    With the score s = grad log p of the model and the Stein kernel

        h(x, y) = s(x)'s(y) k + s(y)'grad_x k + s(x)'grad_y k + tr(grad_x grad_y' k),

    it is E h(x, x') over independent draws of the distribution of the sample: zero if that is the
    model. The normalising constant of the model is not needed.

    - "unbiased": mean_{i != j} h(x_i, x_j), below zero about half of the time if the model fits;
    - "biased": mean_{ij} h(x_i, x_j), >= 0.

    For tensors the result is a tensor with a gradient in X and in the parameters of the score.

    Parameters
    ----------
    kernel : Kernel
        Positive definite, with derivatives and without a cusp: `InverseMultiquadric`, which detects
        every difference even in high dimensions, `Gaussian`, or `Matern` with nu >= 1.5.
    X : array_like of shape (n, d)
    score : callable, distribution of scipy.stats, list of them, Density or Element
        The model p. A function takes X and returns grad log p, shape (n, d). A distribution is
        frozen, and has one dimension or is a `multivariate_normal` or `multivariate_t`; its density
        must vanish at the ends of its support. A list has independent distributions, one per
        column. An element is a density up to a factor.
    weights : array_like of shape (n,), optional
        Weights >= 0 of the rows, equal by default.
    estimator : {"unbiased", "biased"}, default="unbiased"

    References
    ----------
    Liu, Lee, Jordan, A kernelized Stein discrepancy for goodness-of-fit tests, ICML 2016.
    Chwialkowski, Strathmann, Gretton, A kernel test of goodness of fit, ICML 2016. Gorham, Mackey,
    Measuring sample quality with kernels, ICML 2017 (the inverse multiquadric).

    Examples
    --------
    >>> import numpy as np
    >>> import mercer as mc
    >>> from mercer.methods import ksd
    >>> X = np.random.default_rng(0).normal(size=(200, 1))
    >>> round(ksd(mc.Gaussian(1.0), X, lambda X: -X), 4)
    -0.0066
    >>> round(ksd(mc.Gaussian(1.0), X, lambda X: 1.0 - X), 4)
    0.5258
    """
    one_of(estimator, _ESTIMATORS, "estimator")
    check_stein(kernel)
    if is_chunked(X):
        rows, h = kernel.points(X).array, SteinKernel(kernel, score)
        return within_in_pieces(h, rows, weights, unbiased=estimator == "unbiased")
    points = kernel.points(X, tensors=True).array
    if is_tensor(points):
        return _of_tensors(kernel, points, score, weights, estimator)
    points = stein_points(kernel, X)
    w = as_weights(weights, n_rows(points))
    tiles = SteinTiles(kernel, points, score_at(score, points))
    (form,) = quadratic_forms([tiles], lambda rows: w[None, rows], np.zeros((len(w), 0)))
    if estimator == "biased":
        return float(form.values[0] + w**2 @ tiles.diagonal())
    if np.count_nonzero(w) < 2:
        raise InputError("the unbiased estimator needs two rows with positive weight")
    return float(form.values[0]) / (1.0 - float(w @ w))


def _of_tensors(kernel: Kernel, X: Any, score: Any, weights: Any, estimator: str) -> Any:
    """The same for tensors, computed in float64."""
    weights = as_weights(weights, n_rows(X), like=X)
    w = as_double(weights)
    w = w / namespace(w).sum(w)  # one in float64, too
    tiles = SteinTiles(kernel, as_double(X), as_double(tensor_scores(score, X)))
    value = quadratic_form(tiles, w, tiles.X, tiles.S)
    if estimator == "unbiased":
        if np.count_nonzero(host(w)) < 2:
            raise InputError("the unbiased estimator needs two rows with positive weight")
        value = (value - w**2 @ tiles.diagonal()) / (1.0 - w @ w)
    return namespace(X).astype(value, X.dtype, copy=False)


def stein_operator(psi: Element, score: Any, X: Any) -> Array:
    """Return grad psi(x) + psi(x) s(x) at the rows of X.

    s = grad log p is the score of a model p. Under the model the mean is zero.

    Parameters
    ----------
    psi : Element
        One element, or a batch of b.
    score : callable, distribution of scipy.stats, list of them, Density or Element
        The model p, as for `ksd`.
    X : array_like of shape (n, d)
        Where to evaluate.

    Returns
    -------
    ndarray of shape (n, d), or (n, b, d) for a batch

    Examples
    --------
    >>> import mercer as mc
    >>> from mercer.methods import stein_operator
    >>> psi = mc.Element(mc.Gaussian(1.0), [[0.0]], [1.0])
    >>> stein_operator(psi, lambda X: -X, [[0.0], [1.0]]).round(4)
    array([[ 0.    ],
           [-1.2131]])
    """
    instance(psi, Element, "psi")
    f = psi.fields(psi.queries(X), order=1)
    total = f.gradient + np.asarray(f.value)[:, :, None] * score_at(score, X)[:, None, :]
    return np.asarray(total if psi.batch is not None else total[:, 0])


@dataclass(frozen=True)
class SteinKernel(OfBlocks):
    """The Stein kernel h(x, y) of a kernel k and a model p, a positive definite kernel.

    h(x, y) = s(x)'s(y) k + s(y)'grad_x k + s(x)'grad_y k + tr(grad_x grad_y' k) with the score s =
    grad log p. Every function of its space has mean zero under p: E_p h(x, .) = 0. The squared
    norm of `mean_embedding(SteinKernel(kernel, score), X)` is the biased `ksd`.

    Parameters
    ----------
    kernel : Kernel
    score : as for `ksd`

    Examples
    --------
    >>> import mercer as mc
    >>> from scipy.stats import norm
    >>> h = mc.methods.SteinKernel(mc.Gaussian(1.0), norm())
    >>> h([[0.0], [1.0]])
    array([[ 1.        , -0.60653066],
           [-0.60653066,  2.        ]])
    """

    kernel: Kernel
    score: Any

    flags = Flags(Definiteness.POSITIVE)

    def __post_init__(self) -> None:
        check_stein(self.kernel)
        if isinstance(self.score, list):  # kernels can be hashed
            object.__setattr__(self, "score", tuple(self.score))

    @property
    def domain(self) -> Any:  # type: ignore[override]
        """That of the kernel."""
        return self.kernel.domain

    def _block(self, X: Any, Y: Any = None) -> Array:
        both = as_float64(X) if Y is None else np.concatenate([as_float64(X), as_float64(Y)])
        tiles = SteinTiles(self.kernel, both, score_at(self.score, both))
        n = n_rows(X)
        return tiles.diagonal() if Y is None else tiles(slice(0, n), slice(n, len(both)))


def check_stein(kernel: Any) -> None:
    """Raise unless the kernel has what a Stein kernel needs."""
    instance(kernel, Kernel, "kernel")
    cure = "use InverseMultiquadric, Gaussian, or Matern(2.5, length_scale)"
    engine.require_derivatives(kernel.program)
    if any(kernel.program.cusps):
        raise InputError(f"{kernel!r} has a cusp at x = y and no second derivative there; {cure}")
    if kernel.flags.definiteness in (Definiteness.CONDITIONAL, Definiteness.INDEFINITE):
        raise InputError(f"{kernel!r} is not positive definite; {cure}")


def stein_points(kernel: Kernel, X: Any) -> Array:
    """The points of a Stein kernel: dense vectors in float64."""
    check_stein(kernel)
    points = kernel.points(X).array
    if not isinstance(points, np.ndarray):
        raise InputError("Stein kernels need dense points; use X.toarray()")
    return np.asarray(as_float64(points))


class _Fields(NamedTuple):
    """grad_x v = P(x) + Q(y) and grad_y v = R(y) + T(x), and tr(d^2 v / dx dy'); None is zero."""

    P: Array | None
    Q: Array | None
    R: Array | None
    T: Array | None
    trace: float


class _At(NamedTuple):
    """Where fields are multiplied: all pairs of rows x and columns y, or pairs row by row."""

    x: slice
    y: slice
    paired: bool = False

    def xy(self, a: Array | None, b: Array | None) -> Any:
        """a(x)'b(y)."""
        if a is None or b is None:
            return 0.0
        return _rowwise(a, b) if self.paired else a[self.x, :] @ b[self.y, :].T

    def xx(self, a: Array | None, b: Array | None) -> Any:
        """a(x)'b(x)."""
        if a is None or b is None:
            return 0.0
        return _rowwise(a, b) if self.paired else _rowwise(a[self.x, :], b[self.x, :])[:, None]

    def yy(self, a: Array | None, b: Array | None) -> Any:
        """a(y)'b(y)."""
        if a is None or b is None:
            return 0.0
        return _rowwise(a, b) if self.paired else _rowwise(a[self.y, :], b[self.y, :])


class SteinTiles:
    """Tiles of h on the rows of X, for `quadratic_forms`, and its diagonal.

    Points are centred and so are scores where only their differences count, so that products do
    not cancel far from the origin.
    """

    def __init__(self, kernel: Kernel, X: Array, S: Array) -> None:
        self.program, self.X, self.S = kernel.program, X, S
        if is_tensor(X):
            self.pairs: Any = tensor_pairs(self.program, X, X, 2)
        else:
            self.pairs = Pairs(self.program, X, X, order=2)
        self.fields = [_fields(v, X) for v in self.program.variables]
        self.centred = S - middle(S)

    def __call__(self, rows: slice, columns: slice) -> Array:
        """A tile of the matrix h(x_i, x_j)."""
        if is_tensor(self.X):
            points = [z[columns, :] for z in self.pairs.points]
            inputs = self.pairs.tile(points, [z[rows, :] for z in self.pairs.queries])
        else:
            inputs = self.pairs.tile(rows, columns)
        shape = rows.stop - rows.start, columns.stop - columns.start
        return self._values(_At(rows, columns), inputs, shape)

    def diagonal(self) -> Array:
        """h(x_i, x_i)."""
        every = slice(0, n_rows(self.X))
        variables = self.pairs.rowwise if is_tensor(self.X) else rowwise_variables
        inputs = variables(self.program, self.X, self.X)
        return self._values(_At(every, every, paired=True), inputs, (n_rows(self.X),))

    @np.errstate(all="ignore")  # overflows are seen in the result
    def _values(self, at: _At, inputs: list[Any], shape: tuple[int, ...]) -> Array:
        if is_tensor(self.X):
            jet, _ = self.pairs.jet(inputs, shape)
        else:
            jet = tile_jet(self.program.profile, inputs, 2, shape, np.float64)
            jet, _ = without_cusps(self.program, jet, inputs)
        h: Any = jet.value * at.xy(self.S, self.S)
        for v, f in enumerate(self.fields):
            if is_zero(jet.first[v]):
                continue
            S = self.centred if isinstance(self.program.variables[v], Distance) else self.S
            slope = f.trace + at.xy(f.P, S) + at.yy(f.Q, S) + at.xy(S, f.R) + at.xx(f.T, S)
            h = h + jet.first[v] * slope
            for w, g in enumerate(self.fields):
                if not is_zero(jet.second[v][w]):
                    h = h + jet.second[v][w] * self._product(at, inputs, v, w, f, g)
        if is_tensor(h):
            return h  # type: ignore[no-any-return]
        if not np.isfinite(h).all():
            raise InputError(
                "the Stein kernel overflows: scores or points are too large; rescale X"
            )
        return np.asarray(h)

    def _product(self, at: _At, inputs: list[Any], v: int, w: int, f: _Fields, g: _Fields) -> Any:
        """grad_x v ' grad_y w."""
        kind = self.program.variables[v]
        if v == w and isinstance(kind, Distance):
            if not kind.maps or at.paired:  # the same distance; zero on the diagonal
                return -4.0 * inputs[v]
            assert f.P is not None
            return -engine.gram(SQUARED_DISTANCE, f.P[at.x, :], f.P[at.y, :])
        return at.xy(f.P, g.R) + at.xx(f.P, g.T) + at.yy(f.Q, g.R) + at.xy(g.T, f.Q)


def _fields(v: Variable, X: Array) -> _Fields:
    """The gradients of a variable, with the linear maps A in front of it: b = A'A x."""
    n, d = X.shape
    match v:
        case Distance(maps=maps):
            b = pull_all(maps, apply_all(maps, X - middle(X)), d)
            return _Fields(2.0 * b, -2.0 * b, 2.0 * b, -2.0 * b, -2.0 * _trace(maps, d))
        case Dot(maps=maps):
            b = pull_all(maps, apply_all(maps, X), d)
            return _Fields(None, b, None, b, _trace(maps, d))
        case Norm(of=of, maps=maps):
            b = 2.0 * pull_all(maps, apply_all(maps, X), d)
            row = of == "row"
            return _Fields(b if row else None, None, None if row else b, None, 0.0)
        case Gap(maps=maps):
            a = constant(np.tile(pull_all(maps, np.ones((1, 1)), d), (n, 1)), X)
            return _Fields(a, None, -a, None, 0.0)
    raise AssertionError("checked: every variable has derivatives")


def _trace(maps: Any, d: int) -> float:
    """tr(A'A) of the composition A of linear maps."""
    return float(np.sum(np.square(apply_all(maps, np.eye(d)))))


def _rowwise(a: Array, b: Array) -> Array:
    return namespace(a).sum(a * b, axis=1)  # type: ignore[no-any-return]
