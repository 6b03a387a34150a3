"""Rows in pieces (chunks): too many for memory, on disk or on the workers of a cluster."""

from mercer._chunks._base import Chunks, added
from mercer._chunks._choice import as_chunks
from mercer._chunks._local import LocalChunks
from mercer._chunks._samples import SAMPLE_ROWS, sampled, targets_in_pieces, weights_in_pieces

__all__ = [
    "SAMPLE_ROWS", "Chunks", "LocalChunks", "added", "as_chunks", "sampled", "targets_in_pieces",
    "weights_in_pieces",
]  # fmt: skip
