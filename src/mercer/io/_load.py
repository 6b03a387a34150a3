"""The verb `load`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from mercer.exceptions import InputError
from mercer.io._decode import decode
from mercer.io._file import Reader, damage


def load(path: str | os.PathLike[str]) -> Any:
    """Read an object that `save` wrote.

    Nothing in the file is executed, and nothing is imported because the file asks for it: classes
    are looked up in a table of names, and built by their constructors, whose checks run.

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    object
        Equal to what was saved; its values are the same to the last bit on the same machine.

    Raises
    ------
    InputError
        If the file is damaged, was not written by `mercer.save`, was written in a newer format, or
        holds a class that is not registered here.

    See Also
    --------
    save : write it.
    mercer.io.register : classes of your own are registered before they are loaded.

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
