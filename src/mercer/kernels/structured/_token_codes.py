"""Integer codes of the tokens of sequences: letters, bytes or any hashable objects."""

from __future__ import annotations

from collections.abc import Hashable
from itertools import chain
from typing import Any

import numpy as np

from mercer._array import Array
from mercer.engine.pairs._subsequences import Letters


def encoded(*blocks: Any) -> list[Letters]:
    """Number the tokens that occur in every block; others match nothing and become -1.

    Only tokens count, so "ab" and ("a", "b") are the same sequence. Strings are converted to code
    points at once; only sequences of other objects need a loop in Python.
    """
    codes = _codes(blocks)
    size = max((int(c.max()) for c in codes if c.size), default=-1) + 1
    shared = np.ones(size, dtype=bool)
    for c in codes:
        seen = np.zeros(size, dtype=bool)
        seen[c] = True
        shared &= seen
    number = np.full(size, -1, dtype=np.int32)
    alphabet = int(np.count_nonzero(shared))
    number[shared] = np.arange(alphabet, dtype=np.int32)
    return [Letters(number[c], _start(b), alphabet) for c, b in zip(codes, blocks, strict=True)]


def _codes(blocks: tuple[Any, ...]) -> list[Array]:
    if all(isinstance(s, str) for s in chain(*blocks)):
        texts = ("".join(block).encode("utf-32-le", "surrogatepass") for block in blocks)
        return [np.frombuffer(text, dtype=np.uint32) for text in texts]
    if all(isinstance(s, bytes) for s in chain(*blocks)):
        return [np.frombuffer(b"".join(block), dtype=np.uint8) for block in blocks]
    number: dict[Hashable, int] = {}
    return [
        np.array([number.setdefault(t, len(number)) for s in block for t in s], dtype=np.intp)
        for block in blocks
    ]


def _start(block: Any) -> Array:
    lengths = np.fromiter(map(len, block), dtype=np.int64, count=len(block))
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])
