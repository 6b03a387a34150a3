"""Folders of images: each image is a row, each pixel (or each of its colour values) a column."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from mercer._array import Array
from mercer.cli._data import Data, Selection
from mercer.cli._files import Output, Source, check_expansion, refuse_damaged
from mercer.cli._terminal import DataError, Progress, UsageError, require
from mercer.cli._text import as_text, escape_formulas, write_table

SUFFIXES = (
    ".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".pgm", ".ppm",
)  # fmt: skip
_FORMATS = ("PNG", "JPEG", "BMP", "GIF", "TIFF", "WEBP", "PPM")  # Pillow runs Ghostscript for EPS
_WHITE = dict.fromkeys(("I", "I;16", "I;16B", "I;16L"), 65_535)  # 255 for other modes
_LOSSY = (".jpg", ".jpeg", ".webp")
_OPAQUE = (".jpg", ".jpeg", ".bmp", ".pgm", ".ppm")
_DEEP = (".png", ".tif", ".tiff", ".pgm")  # formats with 16 bits per pixel, in grey
_INK = (".jpg", ".jpeg", ".tif", ".tiff")  # formats with CMYK
_COLOURS = {1: "grey", 3: "colour", 4: "CMYK"}


@dataclass(frozen=True, eq=False)
class Look:
    """What an image has besides its colours; it is written unchanged."""

    white: int  # the largest value: 255, or 65,535 for 16 bits
    alpha: Array | None  # opacity
    info: dict[str, Any]  # colour profile and resolution


@dataclass(frozen=True, eq=False)
class ImageFolder(Data):
    """Images of one size with values in [0, 1]."""

    looks: dict[str, Look]  # by file name
    shape: tuple[int, ...]  # (height, width, channels), where 1 is grey, 3 is RGB and 4 is CMYK
    progress: Progress

    row_word: ClassVar[str] = "image"

    @property
    def size(self) -> str:
        return _size(self.shape)

    def label(self, row: int) -> str:
        return list(self.looks)[row]

    def write(self, values: Array, output: Output) -> None:
        """Images with the same names, depths and channels."""
        with output.folder() as folder:
            names = self.progress.each(list(self.looks), "writing")
            for row, name in enumerate(names):
                save_image(folder / name, values[row].reshape(self.shape), self.looks[name])

    def write_columns(self, columns: dict[str, Array], output: Output) -> None:
        """A table of file names and columns."""
        cells = [np.array(escape_formulas(self.looks)), *map(as_text, columns.values())]
        write_table(output, ("file", *columns), cells)


def read_images(source: Source, selection: Selection, progress: Progress) -> ImageFolder:
    """Read the images of a folder, without its subfolders."""
    if selection.columns or selection.skip or selection.include:
        raise UsageError("--columns, --include and --skip are for tables, not for images")
    inside = sorted(entry for entry in source.path.iterdir() if not entry.name.startswith("."))
    files = [entry for entry in inside if entry.suffix.lower() in SUFFIXES and entry.is_file()]
    if not files:
        raise DataError(f"{source} contains no images ({', '.join(SUFFIXES)})")
    first, _ = read_image(Source(files[0]))
    stored = sum(file.stat().st_size for file in files)
    check_expansion(source, 4 * len(files) * first.size, selection.max_expansion, stored=stored)
    values = np.empty((len(files), first.size), dtype=np.float32)
    looks = {}
    for i, file in enumerate(progress.each(files, "reading")):
        pixels, looks[file.name] = read_image(Source(file))
        if pixels.shape != first.shape:
            raise DataError(
                f"the images of {source} differ: {files[0].name} has {_size(first.shape)}, "
                f"{file.name} has {_size(pixels.shape)}; convert them to one size and mode"
            )
        values[i] = pixels.ravel()
    unused = {entry.name: "not an image" for entry in inside if entry not in files}
    return ImageFolder(source, values, (), unused, (), looks, first.shape, progress, same_unit=True)


def read_image(source: Source) -> tuple[Array, Look]:
    """Values in [0, 1] of shape (height, width, channels), upright, and how to write them."""
    picture = _open(source)
    look = {name: picture.info[name] for name in ("icc_profile", "dpi") if name in picture.info}
    if not all(0 < dpi < 2**16 for dpi in look.get("dpi", ())):  # not all formats can write it
        del look["dpi"]
    if picture.mode in ("1", "L", "P", "PA", "RGB", "YCbCr"):
        mode = "L" if picture.mode in ("1", "L") else "RGB"
        clear = "transparency" in picture.info or picture.mode == "PA"
        picture = picture.convert(f"{mode}A" if clear else mode)
    alpha = None
    if picture.mode in ("LA", "RGBA"):
        alpha = np.asarray(picture.getchannel("A"))
        picture = picture.convert(picture.mode[:-1])
    if picture.mode not in ("L", "RGB", "CMYK", *_WHITE):
        raise DataError(f"{source} has mode {picture.mode}; convert it to grey or RGB")
    white = _WHITE.get(picture.mode, 255)
    values = np.asarray(picture, dtype=np.float32) / np.float32(white)
    if values.min(initial=0.0) < 0.0 or values.max(initial=0.0) > 1.0:
        raise DataError(f"{source} has values outside 0 to 65,535; convert it to 8 or 16 bits")
    return values.reshape(*values.shape[:2], -1), Look(white, alpha, look)


def save_image(path: Path, values: Array, look: Look) -> None:
    """Write values in [0, 1], as far as the format can with depth, opacity and CMYK."""
    suffix = path.suffix.lower()
    deep = look.white > 255 and suffix in _DEEP
    white, kind = (look.white, np.uint16) if deep else (255, np.uint8)
    pixels = np.rint(white * np.clip(values, 0.0, 1.0)).astype(kind)
    channels = pixels.shape[2]
    if look.alpha is not None and suffix not in _OPAQUE and not deep:
        pixels = np.concatenate([pixels, look.alpha[:, :, None]], axis=2)
    picture = require("PIL.Image", "images").fromarray(
        pixels[:, :, 0] if pixels.shape[2] == 1 else pixels,
        **({"mode": "CMYK"} if channels == 4 else {}),
    )
    info = dict(look.info)
    if channels == 4 and suffix not in _INK:
        picture = picture.convert("RGB")
        info.pop("icc_profile", None)  # it describes inks
    picture.save(path, **info, **({"quality": 95} if suffix in _LOSSY else {}))


def _open(source: Source) -> Any:
    image = require("PIL.Image", "images")
    with (
        refuse_damaged(f"{source} cannot be read as an image; remove it"),
        image.open(source.content, formats=_FORMATS) as opened,
    ):
        # cameras store previews beside a photograph (MPO)
        frames = 1 if opened.format == "MPO" else getattr(opened, "n_frames", 1)
        opened.load()
        picture = require("PIL.ImageOps", "images").exif_transpose(opened)
    if frames != 1:
        raise DataError(f"{source} contains {frames} images; save each in its own file")
    return picture


def _size(shape: tuple[int, ...]) -> str:
    height, width, channels = shape
    return f"{width} x {height} pixels in {_COLOURS[channels]}"
