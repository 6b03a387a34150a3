"""Kernel density estimates: weighted sums of kernels that integrate to one."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from mercer._array import Array, instance, is_sparse, non_negative, positive_int, refuse_pieces
from mercer._chunks import Chunks
from mercer._config import get_options
from mercer._random import as_generator
from mercer._tensors import float_bits, host, is_tensor
from mercer.engine import Dense, Fields, by_row, n_columns, n_rows, tile_dtype, total
from mercer.exceptions import InputError
from mercer.kernels import Kernel, Scales
from mercer.methods.density._normaliser import draw, log_normaliser, log_peak
from mercer.space import Element, mean_embedding
from mercer.space._chunked import CoefInPieces

_SMALLEST = math.log(np.finfo(np.float64).tiny)


def kernel_density(kernel: Kernel, X: Any, *, weights: Any = None) -> Element:
    """Return the kernel density f(x) = sum_i w_i k(x, x_i) / Z, which integrates to one.

    Z is the integral of k(x, 0) over R^d. The density is an ordinary element with coefficients
    w_i / Z: evaluate it, differentiate it, add it to others, or look for its modes.

    Parameters
    ----------
    kernel : Kernel
        A radial kernel k >= 0 with a finite integral (an inverse multiquadric needs p > d/2), or a
        sum of such kernels. Linear maps in the kernel must be invertible.
    X : array_like or CSR matrix of shape (n, d)
    weights : array_like of shape (n,), optional
        Weights >= 0, scaled to sum to one; equal by default.

    See Also
    --------
    Density : logarithms, also where the density underflows or overflows; samples.
    density_scale : a bandwidth from the data.

    Examples
    --------
    >>> import mercer as mc
    >>> f = mc.kernel_density(mc.Gaussian(1.0), [[0.0], [2.0]])
    >>> f([[0.0], [1.0]]).round(4)
    array([0.2265, 0.242 ])
    """
    instance(kernel, Kernel, "kernel")
    mean = mean_embedding(kernel, X, weights=weights)
    log_Z = log_normaliser(kernel, n_columns(mean.points))
    used = np.log(_extremes(mean)) - log_Z
    X = mean.points
    single = float_bits(X) == 32 if is_tensor(X) else X.dtype == np.float32
    limits = np.finfo(np.float32 if single else np.float64)
    if used.min() < math.log(limits.tiny) or used.max() > math.log(limits.max):
        raise InputError(
            f"the coefficients of this density are outside the range of {limits.dtype} (log Z is "
            f"{log_Z:.6g}); use Density(mean_embedding(kernel, X)).log, or rescale X"
        )
    half = math.exp(-0.5 * log_Z)  # 1 / Z itself may overflow
    return (mean * half) * half


@dataclass(frozen=True, eq=False, repr=False)
class Density:
    """A density f(x) = sum_g sum_i w_gi k_g(x, x_gi) / Z_g, where Z_g is the integral of k_g.

    Each group g is an element whose coefficients are the weights of its points. Groups may have
    different kernels, for example different length scales. The integrals are kept as logarithms, so
    `log` is right in any dimension, even where all kernel values underflow.

    Parameters
    ----------
    elements : Element or sequence of Element
        Single elements with coefficients w_gi >= 0, such as `mean_embedding(kernel, X)`. All
        weights together are scaled to sum to one. The kernels are as for `kernel_density`.

    See Also
    --------
    kernel_density : a density of one kernel as an element.
    adaptive_density : length scales that follow the density.

    References
    ----------
    S. Pal and P. Vepakomma, Convergence of mean shift algorithms for large bandwidths, 2025,
    sections 2 and 7 (density, gradient and Hessian).

    Examples
    --------
    >>> import mercer as mc
    >>> f = mc.methods.Density(mc.mean_embedding(mc.Gaussian(1.0), [[0.0], [2.0]]))
    >>> f([[0.0], [1.0]]).round(4)
    array([0.2265, 0.242 ])
    >>> f.log([[100.0]]).round(2)
    array([-4803.61])
    >>> f.log_gradient([[100.0]]).round(2)
    array([[-98.]])
    """

    elements: Any  # a tuple of Element, once checked

    def __post_init__(self) -> None:
        given = [self.elements] if isinstance(self.elements, Element) else self.elements
        elements = tuple(given) if isinstance(given, list | tuple) else ()
        if not elements:
            raise InputError(
                "a density needs at least one element, such as mean_embedding(kernel, X), or "
                f"several in a list, got {given!r}"
            )
        for e in elements:
            if not isinstance(e, Element) or e.batch is not None:
                raise InputError(f"elements must be single elements, got {e!r}")
            instance(e, Element, "an element of the density")  # on arrays
            if n_columns(e.points) is None:
                raise InputError(f"a density needs points that are vectors; {e!r} has others")
            if n_columns(e.points) != n_columns(elements[0].points):
                raise InputError("the elements of a density must have the same number of features")
            if weight_range(e)[1] < 0.0:
                raise InputError(f"the weights of a density must be >= 0, but {e!r} has others")
        if not any(weight_range(e)[2] > 0.0 for e in elements):
            raise InputError("the weights of a density must not all be zero")
        object.__setattr__(self, "elements", elements)
        _ = self.log_scales  # raises if a kernel has no finite integral

    @cached_property
    def log_scales(self) -> Array:
        """-log Z_g - log(sum of all weights), shape (groups,)."""
        total = math.log(sum(weight_range(e)[2] for e in self.elements))
        return np.array([-log_normaliser(e.kernel, self.dim) - total for e in self.elements])

    @property
    def dim(self) -> int:
        """The number of features d."""
        return int(n_columns(self.elements[0].points))

    def __call__(self, Y: Any) -> Array:
        """Return f(y_j), shape (m,)."""
        return self._sum(Y, 0, "value")

    def log(self, Y: Any) -> Array:
        """Return log f(y_j), shape (m,); -inf outside the support of a window.

        It is also -inf where a kernel underflows, if its profile uses functions other than
        arithmetic, `exp`, `log`, `sqrt` and powers.
        """
        return self._of(_log, Y, 0)

    def gradient(self, Y: Any) -> Array:
        """Return the gradient of f at the rows of Y, shape (m, d); as `Element.gradient`."""
        return self._sum(Y, 1, "gradient")

    def hessian(self, Y: Any) -> Array:
        """Return the Hessian of f at the rows of Y, shape (m, d, d); NaN at a cusp."""
        return self._sum(Y, 2, "hessian")

    def log_gradient(self, Y: Any) -> Array:
        """Return the score, the gradient of log f, shape (m, d); NaN where f is zero."""
        return self._of(_log_gradient, Y, 1)

    def sample(self, n: int, random_state: Any = None) -> Array:
        """Return n independent draws from f, shape (n, d): a weighted point plus a draw from k."""
        n, rng = positive_int(n, "n"), as_generator(random_state)
        sizes = np.array([weight_range(e)[2] for e in self.elements])
        counts = rng.multinomial(n, sizes / sizes.sum())
        rows = []
        for e, count in zip(self.elements, counts, strict=True):
            if not count:
                continue
            w = weights_of(e)
            chosen = e.points[rng.choice(w.size, size=count, p=w / w.sum())]
            centres = chosen.toarray() if is_sparse(chosen) else chosen
            moved = centres + draw(e.kernel, int(count), self.dim, rng)
            rows.append(moved.astype(e.points.dtype))
        drawn = np.concatenate(rows)
        return drawn if len(rows) == 1 else np.asarray(rng.permutation(drawn))

    def _sum(self, Y: Any, order: int, name: str) -> Array:
        tops = [
            log_peak(e.kernel, self.dim) + math.log(mass) + log
            for e, log in zip(self.elements, self.log_scales, strict=True)
            if (mass := weight_range(e)[2]) > 0.0
        ]
        if max(tops) < _SMALLEST:  # it underflows everywhere
            raise _out_of_range(max(tops))
        # an allowed error is a share of the peak, so the tails need no shift
        shifted = get_options().tolerance == 0.0 or min(tops) < _SMALLEST
        return self._of(partial(_unshifted, name=name), Y, order, shifted)

    def _of(
        self, function: Callable[[Fields], Array], Y: Any, order: int, shifted: bool = True
    ) -> Array:
        """A function of the sum over groups; lazy for rows in pieces."""
        Y = self.elements[0].queries(Y)
        parts = [e.fields(Y, order=order, shifted=shifted) for e in self.elements]
        if not isinstance(Y, Chunks):
            return function(_joined(*parts, logs=self.log_scales))
        rows = parts[0].zip(*parts[1:])
        how: Any = {"tail": order * Y.tail, "dtype": tile_dtype(self.elements[0].points, Y)}
        found = rows.mapped(partial(_function_of, function=function, logs=self.log_scales), **how)
        return found.collected()  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        first, count = self.elements[0], sum(n_rows(e.points) for e in self.elements)
        groups = len(self.elements)
        what = repr(first.kernel) if groups == 1 else f"{groups} kernels such as {first.kernel!r}"
        return f"<Density of {what} on {count} points in {self.dim} dimensions>"


def adaptive_density(
    kernel: Kernel,
    X: Any,
    *,
    weights: Any = None,
    sensitivity: float = 0.5,
    n_groups: int = 32,
) -> Density:
    """Return a density with narrow kernels where points are dense and wide ones elsewhere.

    The kernel of point i is stretched by lambda_i = (p(x_i) / g)^-a, where p is the density of
    the kernel itself, g its geometric mean over the points, and a the sensitivity. The factors are
    rounded to `n_groups` values in a geometric sequence, so the density is a sum of that many
    elements.

    Parameters
    ----------
    kernel : Kernel
        As for `kernel_density`. lambda_i multiplies its `length_scale`; kernels without one are
        taken at x / lambda_i.
    X : array_like of shape (n, d)
    weights : array_like of shape (n,), optional
        Weights >= 0, scaled to sum to one; points of weight zero are left out.
    sensitivity : float
        a >= 0. 0 is one kernel for all points, 1/2 the choice of Abramson.
    n_groups : int
        The largest number of different factors; if there are no more, they are not rounded.

    References
    ----------
    I. S. Abramson, On bandwidth variation in kernel estimates, Annals of Statistics 10, 1982.

    Examples
    --------
    >>> import mercer as mc
    >>> X = [[0.0], [0.1], [0.2], [5.0]]
    >>> f = mc.methods.adaptive_density(mc.Gaussian(0.5), X)
    >>> [round(e.kernel.length_scale, 3) for e in f.elements]
    [0.434, 0.439, 0.748]
    """
    a, n_groups = non_negative(sensitivity, "sensitivity"), positive_int(n_groups, "n_groups")
    instance(kernel, Kernel, "kernel")
    mean = mean_embedding(kernel, kernel.points(X), weights=weights)
    if isinstance(mean.points, Chunks):
        if a > 0.0:
            raise InputError(
                "sensitivity must be 0 for rows in pieces: length scales that follow the density "
                "need all rows in memory"
            )
        return Density(mean)
    if a == 0.0 and weight_range(mean)[1] > 0.0:
        return Density(mean)
    used = np.flatnonzero(weights_of(mean) > 0)
    points, w = mean.support[used], weights_of(mean)[used]
    logs = np.zeros(len(w))
    if a > 0.0:
        logs = np.asarray(Density(mean).log(points), dtype=np.float64)
        logs = -a * (logs - float(w @ logs) / float(w.sum()))
    values, group = _rounded(logs, n_groups)
    return Density(
        tuple(
            Element(stretched(kernel, math.exp(v), mean.points.shape[1]), points[rows], w[rows])
            for g, v in enumerate(values)
            if (rows := np.flatnonzero(group == g)).size
        )
    )


def stretched(kernel: Kernel, factor: float, dim: int) -> Kernel:
    """The kernel k(x / factor, y / factor), by its length scale if it has one."""
    if factor == 1.0:
        return kernel
    if "length_scale" in kernel.get_params(deep=False):
        return kernel.replace(length_scale=factor * kernel.length_scale)  # type: ignore[attr-defined]
    return kernel.transform(Scales(np.full(dim, factor)))


def with_bandwidth(kernel: Kernel, h: float, dim: int) -> Kernel:
    """The kernel with length scale h; k(x / h, y / h) for kernels without one."""
    return stretched(kernel, h / float(getattr(kernel, "length_scale", 1.0)), dim)


def _rounded(logs: Array, count: int) -> tuple[Array, Array]:
    """Up to `count` values, and the nearest of them for each of the logarithms."""
    values, group = np.unique(logs, return_inverse=True)
    if values.size <= count:
        return values, group.reshape(-1)
    if count == 1:
        return np.array([0.5 * (values[0] + values[-1])]), np.zeros(logs.size, dtype=np.intp)
    even = np.linspace(values[0], values[-1], count)
    return even, np.rint((logs - even[0]) / (even[1] - even[0])).astype(np.intp)


def weight_range(element: Element) -> tuple[float, float, float]:
    """The smallest coefficient above zero (inf if none), the smallest, and the sum."""
    if isinstance(element.coef, CoefInPieces):
        return element.coef.range
    if _has_equal_weights(element):
        one = float(element.coef.arrays[0][0, 0])
        return one if one > 0.0 else np.inf, one, one * element.coef.shape[0]
    w = weights_of(element)
    return float(w.min(where=w > 0, initial=np.inf)), float(w.min()), float(w.sum())


def _has_equal_weights(element: Element) -> bool:
    """Whether one number in memory stands for the weights of all points."""
    return isinstance(element.coef, Dense) and element.coef.is_repeated


def _extremes(mean: Element) -> Array:
    """The smallest coefficient above zero and the largest; in pieces a bound on that."""
    least, _, total = weight_range(mean)
    if isinstance(mean.coef, CoefInPieces):
        return np.array([least, total])
    return np.array([least, least if _has_equal_weights(mean) else weights_of(mean).max()])


def _joined(*parts: Fields, logs: Array) -> Fields:
    """The sum over groups; Hessians are NaN at a cusp."""
    scaled = []
    for f, log in zip(parts, logs, strict=True):
        if f.hessian is not None and f.cusp is not None:
            f.hessian[f.cusp != 0] = np.nan
        scaled.append(replace(f, cusp=None, shift=f.shift + log))
    return total(scaled).only_element()


def _function_of(*parts: Fields, function: Callable[[Fields], Array], logs: Array) -> Array:
    return function(_joined(*parts, logs=logs))


def _log(f: Fields) -> Array:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(f.value) + f.shift).astype(f.value.dtype)


def _log_gradient(f: Fields) -> Array:
    value = np.where(f.value > 0, f.value, np.nan)
    return np.asarray(f.gradient / value[:, None])


def _unshifted(f: Fields, name: str) -> Array:
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        # in two steps: exp(shift) alone may overflow where the sum is small
        half = np.exp(0.5 * f.shift)
        out = by_row(by_row(getattr(f, name), half), half).astype(f.value.dtype)
    if np.any(np.isinf(out)):
        raise _out_of_range(float(np.max(f.shift)), out.dtype)
    return out


def weights_of(element: Element) -> Array:
    """The coefficients of a single element, shape (n,)."""
    refuse_pieces(element.points)
    return np.asarray(host(element.coef.tile(slice(None), slice(None))), dtype=np.float64)[:, 0]


def _out_of_range(log: float, dtype: Any = np.float64) -> InputError:
    return InputError(
        f"this density is outside the range of {np.dtype(dtype)} (about exp({log:.6g})); use its "
        "logarithm, Density.log, and log_gradient"
    )
