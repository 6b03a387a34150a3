"""Inputs that are rows in pieces, as `Chunks`."""

from __future__ import annotations

from typing import Any

from mercer._chunks._base import Chunks
from mercer.exceptions import UnavailableError


def as_chunks(X: Any, name: str = "X") -> Chunks:
    """Return a Dask array, dataframe or series as `Chunks`."""
    if isinstance(X, Chunks):
        return X
    try:
        from mercer._chunks._dask import DaskChunks
    except ImportError as error:
        raise UnavailableError(f"{name} needs Dask: pip install 'mercer[dask]'") from error
    return DaskChunks.of(X, name)
