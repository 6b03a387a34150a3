"""Folders of images: each image is a row, each pixel (or its red, green and blue) a column."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from mercer._array import Array
from mercer.cli._csv import as_text, escape_formulas, write_table
from mercer.cli._data import Data, Selection, check_expansion
from mercer.cli._output import Output
from mercer.cli._terminal import DataError, Progress, UsageError, require

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".webp", ".pgm", ".ppm")
_FORMATS = ("PNG", "JPEG", "BMP", "TIFF", "WEBP", "PPM")  # Pillow runs Ghostscript for others
_GREY = ("1", "L", "I", "I;16", "I;16B", "I;16L")
_WHITE = {"I": 65535.0, "I;16": 65535.0, "I;16B": 65535.0, "I;16L": 65535.0}
_LOSSY = (".jpg", ".jpeg", ".webp")
_OPAQUE = (".jpg", ".jpeg", ".bmp", ".pgm", ".ppm")


@dataclass(frozen=True, eq=False)
class ImageFolder(Data):
    """Images of one size, grey or colour, with values in [0, 1]."""

    files: tuple[str, ...]
    shape: tuple[int, ...]  # (height, width, 1 or 3)
    alpha: dict[str, Array]  # opacity by file name; it is written unchanged
    progress: Progress

    row_word: ClassVar[str] = "image"

    @property
    def size(self) -> str:
        return _size(self.shape)

    def label(self, row: int) -> str:
        return self.files[row]

    def write(self, values: Array, output: Output) -> None:
        """Images of the same names, with 8 bits per channel."""
        with output.folder() as folder:
            for row, name in enumerate(self.progress.each(self.files, "writing")):
                save_image(folder / name, values[row].reshape(self.shape), self.alpha.get(name))

    def write_columns(self, columns: dict[str, Array], output: Output) -> None:
        """A table of file names and columns."""
        cells = [np.array(escape_formulas(self.files)), *map(as_text, columns.values())]
        write_table(output, ("file", *columns), cells)


def read_images(path: Path, selection: Selection, progress: Progress) -> ImageFolder:
    """Read the images of a folder, without its subfolders."""
    if selection.columns or selection.skip:
        raise UsageError("--columns and --skip are for tables, not for images")
    inside = sorted(entry for entry in path.iterdir() if not entry.name.startswith("."))
    files = [entry for entry in inside if entry.suffix.lower() in SUFFIXES and entry.is_file()]
    if not files:
        raise DataError(f"{path} contains no images ({', '.join(SUFFIXES)})")
    first, _ = read_image(files[0])
    stored = sum(file.stat().st_size for file in files)
    check_expansion(path, 4 * len(files) * first.size, stored, selection)
    values = np.empty((len(files), first.size), dtype=np.float32)
    alpha = {}
    for i, file in enumerate(progress.each(files, "reading")):
        pixels, opacity = read_image(file)
        if pixels.shape != first.shape:
            raise DataError(
                f"the images of {path} differ: {files[0].name} has {_size(first.shape)}, "
                f"{file.name} has {_size(pixels.shape)}; convert them to one size and mode"
            )
        values[i] = pixels.ravel()
        if opacity is not None:
            alpha[file.name] = opacity
    unused = {entry.name: "not an image" for entry in inside if entry not in files}
    names = tuple(file.name for file in files)
    shape = first.shape
    return ImageFolder(path, values, (), unused, (), names, shape, alpha, progress, same_unit=True)


def read_image(file: Path) -> tuple[Array, Array | None]:
    """Values in [0, 1] of shape (height, width, 1 or 3), and the opacity if there is one."""
    picture = _open(file)
    if picture.mode == "P" or "transparency" in picture.info:
        picture = picture.convert("RGBA" if "transparency" in picture.info else "RGB")
    alpha = None
    if picture.mode in ("LA", "RGBA"):
        alpha = np.asarray(picture.getchannel("A"))
        picture = picture.convert(picture.mode[:-1])
    if picture.mode not in (*_GREY, "RGB"):
        raise DataError(f"{file} has mode {picture.mode}; convert it to grey or RGB")
    if picture.mode == "1":
        picture = picture.convert("L")
    values = np.asarray(picture, dtype=np.float32) / _WHITE.get(picture.mode, 255.0)
    if values.min(initial=0.0) < 0.0 or values.max(initial=0.0) > 1.0:
        raise DataError(f"{file} has values outside 0 to 65,535; convert it to 8 or 16 bits")
    return values.reshape(*values.shape[:2], -1), alpha


def save_image(path: Path, values: Array, alpha: Array | None) -> None:
    """Write values in [0, 1] with 8 bits, and the opacity if the format supports it."""
    pixels = np.rint(255.0 * np.clip(values, 0.0, 1.0)).astype(np.uint8)
    suffix = path.suffix.lower()
    if alpha is not None and suffix not in _OPAQUE:
        pixels = np.concatenate([pixels, alpha[:, :, None]], axis=2)
    elif pixels.shape[2] == 1:
        pixels = pixels[:, :, 0]
    image = require("PIL.Image", "images")
    image.fromarray(pixels).save(path, **({"quality": 95} if suffix in _LOSSY else {}))


def _open(file: Path) -> Any:
    """Decode an image with Pillow, whose decoders raise errors of many types on damaged files."""
    image = require("PIL.Image", "images")
    try:
        with image.open(file, formats=_FORMATS) as opened:
            frames = getattr(opened, "n_frames", 1)
            opened.load()
            picture = opened.copy()
    except MemoryError:
        raise
    except Exception as error:
        raise DataError(f"{file} cannot be read as an image; remove it") from error
    if frames != 1:
        raise DataError(f"{file} contains {frames} images; save each in its own file")
    return picture


def _size(shape: tuple[int, ...]) -> str:
    height, width, colours = shape
    return f"{width} x {height} pixels in {'grey' if colours == 1 else 'colour'}"
