"""Kernel sums: `fields` for one set of queries, `prepare` for many, and Gram matrices."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from mercer._array import Array
from mercer._config import get_options, options
from mercer._tensors import is_tensor
from mercer.engine._sizes import as_float32, as_float64, n_columns, n_rows, pieces, tile_dtype
from mercer.engine.pairs._tiles import Pairs
from mercer.engine.programs._coef import Coef, Dense, LowRank, SingleFeatures, Stacked
from mercer.engine.programs._program import Program
from mercer.engine.sums import _blocked, _native, _tensor_sums
from mercer.engine.sums._choice import (
    GRAM_DIMENSIONS,
    NO_SPECTRUM,
    can_transform,
    native_elements,
    needs_float64,
    use_native,
)
from mercer.engine.sums._core_tensors import Host
from mercer.engine.sums._fields import Fields, in_float32, mixed, side_by_side, total
from mercer.engine.sums._native import CorePoints, NativeSum, gram_block
from mercer.engine.sums._pairwise import rowwise_fields
from mercer.engine.sums._spectral import SpectralSum, slope_ratio, spectral_sum
from mercer.exceptions import InputError

_SPECTRAL_PAIRS = 1e7  # fewer are summed in less time than a grid is made
_SELECTED = 64  # single features that are differentiated at once: an array of 64 x 64 coefficients
_NOISE = 1e3  # times the bound on the error: smaller sums have fewer than three digits
_SMALLEST = {"float32": 1e-30, "float64": 1e-290}  # 1e8 and 1e18 above the smallest normal number


def gram(program: Program, X: Any, Y: Any) -> Array:
    """The matrix k(x_i, y_j), shape (n, m); exactly symmetric when Y is X."""
    if is_tensor(X):
        return _tensor_sums.gram(program, X, Y, _HOST)  # type: ignore[no-any-return]
    with np.errstate(all="ignore"):  # overflows are seen in the result
        if tile_dtype(X, Y) == np.float32 and needs_float64(program, X, Y, 0):
            same = X is Y
            X = as_float64(X)
            return as_float32(gram(program, X, X if same else as_float64(Y)))
        run = _native.gram if use_native(program, X, Y, GRAM_DIMENSIONS) else _blocked.gram
        return run(program, X, Y)


class GramBlocks:
    """Blocks k(x_i, x_j) of the Gram matrix of points X in float64, which are prepared once.

    Examples
    --------
    >>> import numpy as np
    >>> import mercer as mc
    >>> from mercer.engine import GramBlocks
    >>> block = GramBlocks(mc.Linear().program, np.array([[1.0], [2.0], [3.0]]))
    >>> block(np.array([0, 2]), np.array([1, 2]))
    array([[2., 3.],
           [6., 9.]])
    """

    def __init__(self, program: Program, X: Any) -> None:
        self._program, self._X = program, X
        self._run: Callable[..., Array] = self._gram
        if use_native(program, X, X, GRAM_DIMENSIONS):
            placed = CorePoints(program, X, X.dtype).placed(X)
            self._run = partial(gram_block, program, placed)
        else:
            pairs = Pairs(program, X, X)
            if pairs.one_pass:
                self._run = pairs.values

    def __call__(self, rows: slice | Array, columns: slice | Array) -> Array:
        """The block of some rows and columns, given by their numbers."""
        with np.errstate(all="ignore"):
            return self._run(rows, columns)

    def _gram(self, rows: slice | Array, columns: slice | Array) -> Array:
        return gram(self._program, self._X[rows], self._X[columns])


def fields(
    program: Program,
    X: Any,
    Y: Any,
    coef: Coef,
    *,
    order: int = 0,
    paired: bool = False,
    shifted: bool = False,
) -> Fields:
    """Sums over points of coef times kernel, and derivatives in the query up to `order`.

    See `PreparedSum.fields`.
    """
    once = PreparedSum(program, X, coef, keep=False)
    return once.fields(Y, order=order, paired=paired, shifted=shifted)


def prepare(
    program: Program,
    X: Any,
    coef: Coef,
    *,
    n_queries: int = 0,
    tolerance: float | None = None,
    slopes: bool = False,
) -> PreparedSum:
    """Prepare sums over the same points for many sets of queries.

    What depends on the points alone is done once: they are packed for the compiled core, sorted
    in space so that far ones can be left out, or transformed to frequencies.

    Parameters
    ----------
    program : Program
    X : array of shape (n, d)
    coef : Coef
        Coefficients of shape (n, b).
    n_queries : int
        The approximate number of queries in all, to decide which preparations are worthwhile.
    tolerance : float, optional
        As in `options(tolerance=...)`, which it replaces.
    slopes : bool
        Whether `Fields.slopes` are needed: not every spectral sum has them.

    Examples
    --------
    >>> import numpy as np
    >>> import mercer as mc
    >>> from mercer.engine import Dense, prepare
    >>> X = np.array([[0.0], [1.0]])
    >>> density = prepare(mc.Gaussian(1.0).program, X, Dense(np.array([[0.5], [0.5]])))
    >>> density.fields(np.array([[0.5]]), order=1).gradient.ravel()
    array([0.])
    """
    return PreparedSum(program, X, coef, n_queries, tolerance, slopes)


@dataclass(eq=False)
class PreparedSum:
    """Elements sum_i a_i k(x_i, .) on fixed points, for many sets of queries; see `prepare`."""

    program: Program
    X: Any
    coef: Coef
    n_queries: int = 0
    tolerance: float | None = None
    slopes: bool = False
    keep: bool = True
    _kept: dict[Any, Any] = field(default_factory=dict)

    def fields(
        self,
        Y: Any,
        *,
        order: int = 0,
        paired: bool = False,
        shifted: bool = False,
        exact: bool = False,
    ) -> Fields:
        """Values and derivatives of the sums at the queries Y.

        Parameters
        ----------
        Y : array of shape (m, d)
        order : {0, 1, 2}
            The order of the derivatives in the query.
        paired : bool
            Take element j at query j only. Otherwise every element at every query, (m, b, ...).
        shifted : bool
            Give each query a logarithmic scale, so that sums that underflow keep their digits, and
            those in the tails have a small relative error.
        exact : bool
            Sum to rounding, whatever tolerance is allowed.
        """
        if is_tensor(self.X):
            if shifted:
                raise InputError("sums of tensors carry no logarithmic scale; use shifted=False")
            return _tensor_sums.fields(self.program, self.X, Y, self.coef, order, paired, _HOST)
        changes: dict[str, Any] = {} if self.tolerance is None else {"tolerance": self.tolerance}
        if get_options().engine == "spectral" and (exact or not self._has_spectrum):
            changes["engine"] = None
        if exact:
            changes["tolerance"] = 0.0
        with np.errstate(all="ignore"), options(**changes) if changes else nullcontext():
            return self._fields(Y, order, paired, shifted)

    def using(self, made: SpectralSum) -> PreparedSum:
        """The same sum, with a transform to frequencies that is known already."""
        self._kept["spectral", False, self.tolerance] = made
        return self

    def _fields(self, Y: Any, order: int, paired: bool, shifted: bool) -> Fields:
        program, X, coef = self.program, self.X, self.coef
        if isinstance(coef, Dense) and not paired and (f := self._by_frequencies(coef, Y, order)):
            return self._redone(f, Y, coef, order, False, shifted)
        if needs_float64(program, X, Y, order):
            wide = self._part("float64", as_float64(X), coef)
            return in_float32(wide._fields(as_float64(Y), order, paired, shifted))
        if isinstance(coef, SingleFeatures):
            if paired:
                return rowwise_fields(program, X[coef.index], Y, coef.value, order, shifted)
            return self._selected(coef, Y, order, shifted)
        if isinstance(coef, Stacked):
            parts = [
                self._part(rows.start, X[rows], part)._fields(Y, order, paired, shifted)
                for rows, part in coef.blocks()
            ]
            f = total(parts)
        elif paired:
            return self._paired(coef, Y, order, shifted)
        elif isinstance(coef, LowRank):
            inner = self._part("left", X, Dense(coef.left))._fields(Y, order, False, shifted)
            f = mixed(inner, coef.right)
        else:
            return self._dense(coef, Y, order, shifted)
        return f if f.bound is None else self._redone(f, Y, coef, order, False, shifted)

    def _by_frequencies(self, coef: Dense, Y: Any, order: int) -> Fields | None:
        """By the spectral engine, in float64 inside; None if this call is not for it."""
        made = self._spectral(coef, Y)
        return None if made is None else made.fields(Y, order)

    def _part(self, name: Any, X: Any, coef: Coef) -> PreparedSum:
        """A part of this sum: other points or coefficients, the same settings."""
        if name not in self._kept:
            self._kept[name] = replace(self, X=X, coef=coef, _kept={})
        return self._kept[name]  # type: ignore[no-any-return]

    def _dense(self, coef: Dense, Y: Any, order: int, shifted: bool) -> Fields:
        """Every element at every query, by the engine of choice."""
        if shifted:
            used = self._used_points
            if used is not None:  # other points must not set the scale
                part = self._part("used", self.X[used], Dense(coef.array[used]))
                return part._fields(Y, order, False, True)
        size = native_elements(n_columns(self.X), order)
        if not self._use_native(Y, order):
            return _blocked.fields(self.program, self.X, Y, coef, order, False, shifted)
        parts = [self._native(some, coef.array)(Y, order) for some in pieces(coef.shape[1], size)]
        f = parts[0] if len(parts) == 1 else side_by_side(parts)
        return self._redone(f, Y, coef, order, False, True) if shifted else f

    @cached_property
    def _used_points(self) -> Array | None:
        """Which points have a coefficient that is not zero; None if all (or none) have."""
        assert isinstance(self.coef, Dense)
        if self.coef.is_repeated:
            return None
        used = np.any(self.coef.array != 0, axis=1)
        return None if used.all() or not used.any() else used

    def _native(self, elements: slice, A: Array) -> NativeSum:
        """Some of the elements with coefficients A, by the compiled core."""
        key = "native", elements.start, elements.stop
        if key not in self._kept:
            A = A[:, elements]
            self._kept[key] = NativeSum(self.program, self.X, A, self.keep, self.n_queries)
        return self._kept[key]  # type: ignore[no-any-return]

    @property
    def _has_spectrum(self) -> bool:
        """Whether spectral sums have the slopes that are needed."""
        return not (self.slopes and math.isnan(slope_ratio(self.program)))

    def _spectral(self, coef: Dense, Y: Any) -> SpectralSum | None:
        """The transformed elements; None if this call is not for the spectral engine."""
        wanted, tolerance = get_options().engine, get_options().tolerance
        forced = wanted == "spectral"
        if not forced:
            if wanted is not None or tolerance == 0.0 or not self._has_spectrum:
                return None
            if float(n_rows(self.X)) * max(n_rows(Y), self.n_queries) < _SPECTRAL_PAIRS:
                return None
        key = "spectral", forced, tolerance
        if key not in self._kept:
            possible = can_transform(self.program, self.X, Y)
            self._kept[key] = possible and spectral_sum(
                self.program, self.X, Y, coef.array, tolerance, self.n_queries, forced=forced
            )
        made: SpectralSum | None = self._kept[key] or None
        if forced and made is None:
            raise InputError(NO_SPECTRUM)
        return made if forced or (made and made.is_worth_while(n_rows(Y))) else None

    def _use_native(self, Y: Any, order: int) -> bool:
        if order > 0 and self.program.has_hidden_slope:  # the core takes no limits
            return False
        few = native_elements(n_columns(self.X), order) > 0
        return few and use_native(self.program, self.X, Y)

    def _paired(self, coef: Dense | LowRank, Y: Any, order: int, shifted: bool) -> Fields:
        """Element j at query j."""
        X = self.X
        if not self._use_native(Y, order):
            return _blocked.fields(self.program, X, Y, coef, order, True, shifted)
        ones = np.ones((n_rows(X), 1), dtype=X.dtype)
        f = self._native(slice(None), ones)(Y, order, coef).only_element()
        return self._redone(f, Y, coef, order, True, shifted)

    def _selected(self, coef: SingleFeatures, Y: Any, order: int, shifted: bool) -> Fields:
        """All queries against elements that are single features."""
        if order == 0 and not shifted:
            value = gram(self.program, Y, self.X[coef.index])
            value *= coef.value.astype(value.dtype)
            return Fields(value)
        blocks = []
        for some in pieces(coef.index.shape[0], _SELECTED):
            points, values = self.X[coef.index[some]], np.diag(coef.value[some])
            part = self._part(some.start, points, Dense(values))
            blocks.append(part._fields(Y, order, False, shifted))
        return side_by_side(blocks)

    def _redone(
        self, f: Fields, Y: Any, coef: Coef, order: int, paired: bool, shifted: bool
    ) -> Fields:
        """Sum again the rows that are not accurate.

        With a bound, the allowed error is noise in the tails. Rows are summed again to rounding if
        they are NaN (outside the grid) or, where a small relative error is wanted, have an element
        not far above its bound; rows with a shift were computed again before.
        Without a bound, `shifted` rows that are tiny or not finite have no digits, and are summed
        again in log space. (Where they are tiny because terms cancel, that does no harm.)
        """
        if f.bound is not None:
            small = ~(np.abs(f.value) >= (_NOISE * f.bound if shifted else -np.inf))
            rows = np.flatnonzero(small.any(axis=1) & (f.shift == 0.0))
            if rows.size:
                with options(engine=None, tolerance=0.0):
                    f.put(rows, self._fields(Y[rows], order, paired, shifted))
        elif shifted and self.program.log_profile is not None and isinstance(coef, Dense | LowRank):
            scale = float(np.abs(coef.array).max()) if isinstance(coef, Dense) else 1.0
            sizes = [np.abs(a).reshape(len(a), -1).max(axis=1) for a in (f.value, *f.slopes)]
            size = np.max(sizes, axis=0)
            least = _SMALLEST[str(f.value.dtype)] * scale
            rows = np.flatnonzero(~((size > least) & np.isfinite(size)))
            if rows.size and scale > 0.0:
                queries, some = Y[rows], coef.columns(rows) if paired else coef
                log = _blocked.fields(self.program, self.X, queries, some, order, paired, True)
                f.put(rows, log)
        return f


_HOST = Host(gram, fields)
