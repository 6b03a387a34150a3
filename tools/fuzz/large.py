"""Rows in files, on a cluster and in tensors, as in memory; and fits that are broken off."""

from __future__ import annotations

import contextlib
import importlib
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import mercer
from mercer._progress import watched
from tools.fuzz.checks import _largest, _same, damaged

PLACES = ("npy", "parquet", "dask")


def check_file_of_rows(X: Any, suffix: str, columns: Any, seed: int) -> None:
    """A file, damaged or not, has the rows that were written, or is refused."""
    random, X = Random(seed), _table(X)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"rows.{suffix}")
        _write(path, X)
        whole = random.random() < 0.5
        if not whole:
            path.write_bytes(damaged(path.read_bytes(), random))
        with mercer.options(working_memory=random.choice([128.0, 0.001])):
            rows = mercer.io.open_rows(path, columns)
        found = np.asarray(rows.collected())
        chosen = rows.rows([0, len(rows) - 1])
    assert np.array_equal(found[[0, -1]], chosen), "chosen rows are others"
    if whole and columns is None:
        assert np.array_equal(found, np.asarray(X, found.dtype)), "other rows than were written"


def check_in_pieces(place: str, kernel: Any, X: Any, Y: Any, weights: Any, n_rows: Any) -> None:
    """Sums over rows in pieces are those in memory; methods that take pieces end as they should."""
    truth = mercer.mean_embedding(kernel, X, weights=weights)
    values = np.asarray(truth(Y), float)
    with _in_pieces(place, X, n_rows) as rows:
        psi = mercer.mean_embedding(kernel, rows, weights=weights)
        size = _largest(kernel(Y, X))
        if np.isfinite(size) and np.isfinite(values).all():
            single = np.float32 in (np.asarray(X).dtype, np.asarray(Y).dtype)
            tolerance = (1e-4 if single else 1e-9) * size
            assert np.allclose(np.asarray(psi(Y), float), values, 0.0, tolerance), "other sums"
        y, settings = np.sin(np.arange(len(X))), {"kernel": kernel, "n_landmarks": 3}
        for call in (
            lambda: mercer.KernelPCA(2, **settings, random_state=0).fit(rows).transform(Y),
            lambda: (
                mercer.KernelRidge(**settings, penalty=0.1, random_state=0)
                .fit(rows, y, sample_weight=weights)
                .predict(Y)
            ),
            lambda: mercer.KernelRidge(kernel, penalty=0.1, solver="cg").fit(rows, y).predict(Y),
            lambda: mercer.KernelDensity(kernel).fit(rows).score_samples(Y),
            lambda: mercer.MeanShift(kernel=kernel, seeds=Y, max_iter=20).fit(rows).labels_,
        ):
            with contextlib.suppress(mercer.MercerError):
                assert len(np.asarray(call())), "no answer"
        with contextlib.suppress(mercer.MercerError):
            other = mercer.mmd_test(rows, rows, kernel=kernel, n_permutations=19, random_state=0)
            assert 0.0 < other.pvalue <= 1.0


def check_tensors(kernel: Any, X: Any, Y: Any, coef: Any) -> None:
    """Values and gradients of tensors are those of arrays."""
    torch: Any = importlib.import_module("torch")
    x, y, a = (torch.from_numpy(np.array(Z, float)) for Z in (X, Y, coef))
    y.requires_grad_()
    value = mercer.Element(kernel, x, a)(y)
    psi = mercer.Element(kernel, X, coef)
    truth, K = np.asarray(psi(Y), float), np.abs(np.asarray(kernel(Y, X), float))
    assert _close(kernel(y, x).detach().numpy(), kernel(Y, X), _largest(K)), "another matrix"
    size = float((K @ np.abs(np.asarray(coef, float))).max(initial=0.0))
    assert _close(value.detach().numpy(), truth, size), "other values"
    with contextlib.suppress(mercer.MercerError):
        if not value.requires_grad:
            return  # a constant
        (slope,) = torch.autograd.grad(value.sum(), y, allow_unused=True)
        expected = np.asarray(psi.gradient(Y), float)
        if slope is not None and np.isfinite(expected).all():
            size = max(size, float(np.abs(expected).max(initial=0.0)))
            assert _close(slope.numpy(), expected, size), "another gradient"


def check_checkpoint(compute: Callable[[], Any], steps: int, seed: int) -> None:
    """What is broken off goes on to the same answer, unless its file is damaged."""
    random, truth = Random(seed), compute()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "checkpoint")
        with contextlib.suppress(_BrokenOffError), watched(_break_after(steps)):
            with mercer.io.checkpoint(path, every=0.0):
                assert _same(compute(), truth), "another answer with a checkpoint"
            assert not path.exists(), "the file remains"
        if path.exists() and random.random() < 0.3:
            path.write_bytes(damaged(path.read_bytes(), random))
        with mercer.io.checkpoint(path, every=random.choice([0.0, 60.0])):
            assert _same(compute(), truth), "another answer after an interruption"


class _BrokenOffError(Exception):
    """A computation was broken off."""


def _break_after(steps: int) -> Callable[[Any], None]:
    left = [steps]

    def watch(_: Any) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise _BrokenOffError

    return watch


def _close(a: Any, b: Any, size: float) -> bool:
    """Whether numbers are equal to rounding, or overflow."""
    return not np.isfinite(size) or bool(np.allclose(a, b, 1e-7, 1e-9 * size + 1e-300))


def _table(X: Any) -> Any:
    """Rows of numbers as files and Dask arrays hold them; others are no business of theirs."""
    X = X.toarray() if hasattr(X, "toarray") else np.asarray(X)
    if X.ndim != 2 or X.dtype.kind not in "fiub":
        raise mercer.InputError("not rows of numbers")
    return X


def _write(path: Path, X: Any) -> None:
    if path.suffix == ".npy":
        np.save(path, X)
        return
    import pyarrow as pa
    from pyarrow import parquet

    table = pa.table({f"x{j}": X[:, j] for j in range(X.shape[1])})
    parquet.write_table(table, path, row_group_size=7)


@contextmanager
def _in_pieces(place: str, X: Any, n_rows: int) -> Iterator[Any]:
    """Rows in pieces of about so many rows."""
    X = _table(X)
    if place == "dask":
        dask, size = importlib.import_module("dask"), max(n_rows, len(X) // 4)  # tasks are slow
        chunked = importlib.import_module("dask.array").from_array(X, chunks=(size, -1))
        with dask.config.set(scheduler="synchronous"):
            yield chunked
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"rows.{place}")
        _write(path, X)
        wanted = 4 * n_rows * X.shape[1] * X.dtype.itemsize / 2**20
        with mercer.options(working_memory=max(wanted, 1e-4)):
            rows = mercer.io.open_rows(path)
        yield rows
