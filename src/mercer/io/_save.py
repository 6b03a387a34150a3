"""The verb `save`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from mercer._array import Array
from mercer.exceptions import InputError
from mercer.io._decode import decode
from mercer.io._encode import encode
from mercer.io._file import write


def save(thing: Any, path: str | os.PathLike[str]) -> None:
    """Write an object to a file, without pickle.

    Kernels, elements, subspaces, solvers, results and estimators, fitted or not; also numbers,
    strings, arrays (dense or CSR), and lists, tuples, sets and dicts of all these. The file holds
    arrays and a description of how they belong together, and nothing that could be executed; what
    stands for code (functions, random generators) is refused by the name of the parameter.

    Parameters
    ----------
    thing : object
        What to save. Classes of your own (kernels, solvers, estimators) must be registered with
        `mercer.io.register`.
    path : str or path-like
        Where to; a file that is there is replaced, once the new one is complete.

    Raises
    ------
    InputError
        If the object holds something that is not saved; it names the parameter.

    See Also
    --------
    load : read it back.
    mercer.io.register : for classes of your own.

    Notes
    -----
    The file is an uncompressed zip of arrays in the .npy format, which `numpy.load` opens, and
    `mercer.json`, which names the classes, their parameters and their arrays. An array that is
    used twice is stored once, and is one array again after `load`. Caches are not stored.

    Examples
    --------
    >>> import tempfile
    >>> import mercer as mc
    >>> psi = mc.mean_embedding(mc.Gaussian(2.0), [[0.0], [1.0]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     mc.save(psi, f"{folder}/mean.mercer")
    ...     print(mc.load(f"{folder}/mean.mercer"))
    <Element of Gaussian(length_scale=2.0) on 2 points in 1 dimensions>
    """
    encoded = encode(thing, _version())
    arrays = encoded.arrays

    def in_memory(name: str, *_: Any) -> Array:
        return arrays[name]

    try:  # what could not be built again is refused now, not when it is needed
        decode(encoded.document, in_memory)
    except InputError as error:
        raise InputError(
            f"the object could not be loaded again, so it is not saved: {error}"
        ) from error
    write(Path(path), encoded)


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("mercer")
    except PackageNotFoundError:  # a copy that was not installed
        return "unknown"
