"""Folders of images: each image is a row, each pixel (or its red, green and blue) a column."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from mercer._array import Array
from mercer.cli._bar import Bars
from mercer.cli._csv import as_text, as_truth, write_table
from mercer.cli._data import Choice, Data
from mercer.cli._output import replacing_folder
from mercer.cli._problems import DataProblem, UsageProblem, needed

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".webp", ".pgm", ".ppm")
_GREY = ("1", "L", "I", "I;16", "I;16B", "I;16L")
_WHITE = {"I": 65535.0, "I;16": 65535.0, "I;16B": 65535.0, "I;16L": 65535.0}


@dataclass(frozen=True, eq=False)
class ImageFolder(Data):
    """Images of one size, grey or colour, with values in [0, 1].

    Attributes
    ----------
    files : tuple of str
        Their names.
    shape : tuple of int
        (height, width, 1 or 3).
    alpha : dict
        Opacity by file name, which is carried through.
    bars : Bars
    """

    files: tuple[str, ...] = ()
    shape: tuple[int, ...] = ()
    alpha: dict[str, Array] = field(default_factory=dict, repr=False)
    bars: Bars = field(default_factory=Bars)

    row_word: ClassVar[str] = "image"

    @property
    def one_unit(self) -> bool:
        """Grey levels."""
        return True

    @property
    def size(self) -> str:
        """Of each row, in words."""
        height, width, colours = self.shape
        return f"{width} x {height} pixels, {'grey' if colours == 1 else 'colour'}"

    def label(self, row: int) -> str:
        """The file's name."""
        return self.files[row]

    def write(self, values: Array, output: Path) -> None:
        """Images of the same names, of 8 bits."""
        image = needed("PIL.Image", "images")
        with replacing_folder(output) as part:
            for row in self.bars.over(range(len(self.files)), "writing"):
                pixels = np.rint(255.0 * np.clip(values[row], 0.0, 1.0)).astype(np.uint8)
                pixels = pixels.reshape(self.shape)
                alpha = self.alpha.get(self.files[row])
                if alpha is not None:
                    pixels = np.concatenate([pixels, alpha[:, :, None]], axis=2)
                elif self.shape[2] == 1:
                    pixels = pixels[:, :, 0]
                path = part / self.files[row]
                lossy = path.suffix.lower() in (".jpg", ".jpeg", ".webp")
                image.fromarray(pixels).save(path, **({"quality": 95} if lossy else {}))

    def write_scores(self, score: Array, is_anomaly: Array, output: Path) -> None:
        """A table of names and scores."""
        columns = (np.array(self.files), as_text(score), as_truth(is_anomaly))
        write_table(output, ("file", "score", "is_anomaly"), columns)


def read_images(path: Path, choice: Choice, bars: Bars) -> ImageFolder:
    """Read all images of a folder, not of folders in it."""
    if choice.columns or choice.skip:
        raise UsageProblem("--columns and --skip are for tables; images have none to choose from")
    inside = sorted(entry for entry in path.iterdir() if not entry.name.startswith("."))
    files = [entry for entry in inside if entry.suffix.lower() in SUFFIXES and entry.is_file()]
    if not files:
        raise DataProblem(f"{path} holds no images ({', '.join(SUFFIXES)})")
    image = needed("PIL.Image", "images")
    first, _ = _pixels(image, files[0])
    values = np.empty((len(files), first.size), dtype=np.float32)
    alpha = {}
    for i, file in enumerate(bars.over(files, "reading")):
        pixels, opacity = _pixels(image, file)
        if pixels.shape != first.shape:
            raise DataProblem(
                f"the images of {path} differ: {files[0].name} has {_size(first)}, {file.name} "
                f"has {_size(pixels)}; bring them to one size and one mode"
            )
        values[i] = pixels.ravel()
        if opacity is not None:
            alpha[file.name] = opacity
    left = {entry.name: "not an image" for entry in inside if entry not in files}
    names = tuple(file.name for file in files)
    return ImageFolder(path, values, (), left, names, first.shape, alpha, bars)


def _pixels(image: Any, file: Path) -> tuple[Array, Array | None]:
    """Values in [0, 1] of shape (height, width, 1 or 3), and the opacity if there is one."""
    try:
        with image.open(file) as opened:
            frames = getattr(opened, "n_frames", 1)
            opened.load()
            picture = opened.copy()
    except (OSError, ValueError, SyntaxError, image.DecompressionBombError) as error:
        raise DataProblem(f"{file} is not an image that can be read; take it out") from error
    if frames != 1:
        raise DataProblem(f"{file} holds {frames} images; give each a file of its own")
    if picture.mode == "P" or "transparency" in picture.info:
        picture = picture.convert("RGBA" if "transparency" in picture.info else "RGB")
    alpha = None
    if picture.mode in ("LA", "RGBA"):
        alpha = np.asarray(picture.getchannel("A"))
        picture = picture.convert(picture.mode[:-1])
    if picture.mode not in (*_GREY, "RGB"):
        raise DataProblem(f"{file} has mode {picture.mode}; convert it to grey or RGB")
    if picture.mode == "1":
        picture = picture.convert("L")
    values = np.asarray(picture, dtype=np.float32) / _WHITE.get(picture.mode, 255.0)
    return values.reshape(*values.shape[:2], -1), alpha


def _size(pixels: Array) -> str:
    height, width, colours = pixels.shape
    return f"{width} x {height} pixels in {'grey' if colours == 1 else 'colour'}"
