"""Inputs that are rows in pieces, as `Chunks`."""

from __future__ import annotations

from typing import Any

from mercer._chunks._base import Chunks


def as_chunks(X: Any, name: str = "X") -> Chunks:
    """Return a Dask array, dataframe or series as `Chunks`."""
    if isinstance(X, Chunks):
        return X
    from mercer._chunks._dask import DaskChunks  # Dask is an optional package

    return DaskChunks.of(X, name)
