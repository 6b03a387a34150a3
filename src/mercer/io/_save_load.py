"""The functions `save` and `load`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from mercer.exceptions import InputError
from mercer.io._archive import Reader, damage, write
from mercer.io._decode import decode
from mercer.io._encode import encode


def save(thing: Any, path: str | os.PathLike[str]) -> None:
    """Save an object to a file, without pickle.

    Kernels, elements, subspaces, solvers, results and estimators (fitted or not) can be saved, and
    so can numbers, strings, arrays (dense or CSR), and lists, tuples, sets and dicts of these. The
    file holds arrays and a description of the objects that they belong to, but no code. Objects
    that need code, such as functions and random generators, are refused; the error names the
    parameter.

    Parameters
    ----------
    thing : object
        The object to save. Register classes of your own (kernels, solvers, estimators) with
        `mercer.io.register` first.
    path : str or path-like
        The file. If it exists it is replaced once the new file is complete.

    Raises
    ------
    InputError
        If the object contains something that cannot be saved.

    Notes
    -----
    The file is an uncompressed zip archive. It contains arrays in the .npy format, which
    `numpy.load` can read, and `mercer.json`, which names the classes, their parameters and their
    arrays (see `mercer.io._encode`). An array that is used twice is stored once, and is one array
    again after `load`. Caches are not stored.

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
    from importlib.metadata import PackageNotFoundError, version

    try:
        own = version("mercer")
    except PackageNotFoundError:  # mercer is used without being installed
        own = "unknown"
    document, arrays = encode(thing, own)
    try:  # refuse now what could not be loaded later
        decode(document, lambda name, *_: arrays[name])
    except InputError as error:
        raise InputError(f"the object is not saved, since it cannot be loaded: {error}") from error
    write(Path(path), document, arrays)


def load(path: str | os.PathLike[str]) -> Any:
    """Load an object that `save` wrote.

    Nothing in the file is executed, and the file cannot cause an import: classes are looked up in a
    table of names. Their constructors run, with all their checks.

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    object
        Equal to the object that was saved. On the same machine its values are equal to the last
        bit.

    Raises
    ------
    InputError
        If the file is damaged, was not written by `mercer.save`, has a newer format, or contains a
        class that is not registered (call `mercer.io.register` on your own classes first).

    Examples
    --------
    >>> import tempfile
    >>> import mercer as mc
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     mc.save(mc.Gaussian(2.0) + 0.5 * mc.Linear(), f"{folder}/kernel.mercer")
    ...     print(mc.load(f"{folder}/kernel.mercer"))
    Gaussian(length_scale=2.0) + 0.5 * Linear()
    """
    path = Path(path)
    with path.open("rb") as file:
        try:
            reader = Reader(file)
            return decode(reader.document(), reader.array)
        except damage() as error:
            raise InputError(f"{path} cannot be loaded: {error}") from error
