"""Rows that come in pieces: too many for the memory, on disk or on the workers of a cluster."""

from mercer._chunks._base import Chunks, added
from mercer._chunks._choice import as_chunks
from mercer._chunks._local import LocalChunks

__all__ = ["Chunks", "LocalChunks", "added", "as_chunks"]
