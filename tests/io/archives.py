"""Files of mercer, opened and changed."""

import io
import json
import zipfile

import numpy as np

import mercer as mc
from mercer.io import save

PSI = mc.Element(mc.Gaussian(1.0), [[0.0, 1.0], [2.0, 3.0]], [1.0, -1.0])


def members(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def rewrite(path, parts, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)


def edited(path, change, thing=PSI):
    """Save a thing, and change its description."""
    save(thing, path)
    parts = members(path)
    document = json.loads(parts["mercer.json"])
    change(document)
    parts["mercer.json"] = json.dumps(document)
    rewrite(path, parts)


def npy(array, **options):
    file = io.BytesIO()
    np.lib.format.write_array(file, array, **options)
    return file.getvalue()
