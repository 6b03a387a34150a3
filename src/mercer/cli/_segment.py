"""`mercer segment`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click
import numpy as np

from mercer._array import Array
from mercer.cli._bar import Bars
from mercer.cli._counting import counting
from mercer.cli._images import SUFFIXES, _pixels
from mercer.cli._job import examples
from mercer.cli._output import check_kind, check_output, replacing
from mercer.cli._problems import UsageProblem, counted, needed

_STEPS = 100
_MANY = 500_000  # pixels: minutes
_SHOWN = ("mean", "smooth", "edges")

EXAMPLES = (
    ("paint each region of an image in its mean colour",
     "mercer segment photo.png -o regions.png"),
    ("in larger regions, with lines between them",
     "mercer segment photo.png -o outlines.png --colour 0.3 --min-size 50 --show edges"),
    ("smooth it without blurring edges",
     "mercer segment photo.png -o smooth.png --spatial 4 --show smooth"),
    ("the numbers of the regions as an array",
     "mercer segment photo.png -o regions.npy --shrink 2"),
)  # fmt: skip


@click.command(epilog=examples(EXAMPLES))
@click.argument("source", metavar="INPUT", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(path_type=Path),
    metavar="OUTPUT",
    help="An image, or an .npy file for the region of each pixel.",
)
@click.option(
    "--spatial",
    type=float,
    default=8.0,
    show_default=True,
    metavar="PIXELS",
    help="Radius of the window in space.",
)
@click.option(
    "--colour",
    "--color",
    type=float,
    default=0.15,
    show_default=True,
    metavar="SHARE",
    help="Radius of the window in colour, as a share of the range of each channel.",
)
@click.option(
    "--kernel",
    type=click.Choice(["epanechnikov", "gaussian"]),
    default="epanechnikov",
    show_default=True,
    help="The gaussian takes several times longer.",
)
@click.option(
    "--min-size",
    type=click.IntRange(1),
    default=20,
    show_default=True,
    metavar="PIXELS",
    help="Smaller regions are given to their neighbour of the nearest colour.",
)
@click.option(
    "--show",
    type=click.Choice(_SHOWN),
    default="mean",
    show_default=True,
    help="Regions in their mean colours, each pixel in the colour of its mode, or the "
    "image with lines between regions.",
)
@click.option(
    "--shrink",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    metavar="N",
    help="First replace squares of N x N pixels by their means.",
)
@click.option("--force", is_flag=True, help="Replace OUTPUT if it exists; never an input.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
@click.option("--debug", is_flag=True, help="Show where an error came from.")
def segment(source: Path, output: Path, **given: Any) -> None:
    """Divide an image into regions of similar colour.

    INPUT is one image, grey or in colour; opacity is carried through. Pixels that lie near each
    other in space and colour climb to the same peak of their density, and make up a region.
    """
    start = time.perf_counter()
    for name in ("spatial", "colour"):
        if not 0.0 < given[name] < np.inf:
            raise UsageProblem(f"--{name} {given[name]:g}: give a number above 0")
    _check_files(source, output, given["force"])
    bars, pillow = Bars(given["quiet"]), needed("PIL.Image", "images")
    values, alpha = _shrunk(*_pixels(pillow, source), given["shrink"])
    height, width = values.shape[:2]
    if height * width > _MANY and not given["quiet"]:
        click.echo(f"note: {height * width:,} pixels take minutes; --shrink 2 makes it a quarter",
                   err=True)  # fmt: skip
    found = _segmented(values, given, bars)
    if output.suffix.lower() == ".npy":
        with replacing(output) as part, part.open("xb") as file:
            np.save(file, found.labels)
    else:
        with replacing(output) as part:
            _save(pillow, _shown(values, found, given["show"]), alpha, part)
    if not given["quiet"]:
        seconds = time.perf_counter() - start
        click.echo(f"segmented  {width} x {height} pixels ({seconds:.1f} s)")
        regions = counted(found.n_segments, "region")
        click.echo(f"regions    {regions}, the largest {found.counts[0] / found.labels.size:.0%}")
        click.echo(f"written    {output}")


def _check_files(source: Path, output: Path, force: bool) -> None:
    """Refuse, before any work, what could not be read or written."""
    if not source.exists():
        raise UsageProblem(f"there is no {source}")
    if source.is_dir() or source.suffix.lower() not in SUFFIXES:
        raise UsageProblem(f"{source} is not one image ({', '.join(SUFFIXES)})")
    check_kind(output, False, (*SUFFIXES, ".npy"), "regions")
    check_output(output, [source], force)


def _segmented(values: Array, given: dict[str, Any], bars: Bars) -> Any:
    from mercer.methods.segmentation._segment import segment as segmented

    with counting(bars, _STEPS, "climbing") as step:
        return segmented(
            values,
            given["spatial"],
            given["colour"],
            kernel=given["kernel"],
            min_size=given["min_size"],
            max_iter=_STEPS,
            callback=step,
        )


def _shrunk(values: Array, alpha: Array | None, n: int) -> tuple[Array, Array | None]:
    """Means of squares of pixels; what is left over at the right and below is cut off."""
    if n == 1:
        return values, alpha
    height, width = (side // n for side in values.shape[:2])
    if min(height, width) == 0:
        size = f"{values.shape[1]} x {values.shape[0]}"
        raise UsageProblem(f"--shrink {n}: the image has only {size} pixels")

    def means(a: Array) -> Array:
        cut = a[: height * n, : width * n].astype(np.float64)
        return np.asarray(cut.reshape(height, n, width, n, -1).mean(axis=(1, 3)))

    return means(values), None if alpha is None else np.rint(means(alpha)[:, :, 0]).astype(np.uint8)


def _shown(values: Array, found: Any, show: str) -> Array:
    if show == "smooth":
        return np.asarray(found.filtered)
    if show == "mean":
        return np.asarray(found.painted())
    contrast = np.where(values.mean(axis=2, keepdims=True) < 0.5, 1.0, 0.0)
    return np.where(found.edges()[:, :, None], contrast, values)


def _save(pillow: Any, values: Array, alpha: Array | None, path: Path) -> None:
    """An image of 8 bits, with its opacity if it has one and the format can hold it."""
    pixels = np.rint(255.0 * np.clip(values, 0.0, 1.0)).astype(np.uint8)
    opaque = path.suffix.lower() in (".jpg", ".jpeg", ".bmp", ".pgm", ".ppm")
    if alpha is not None and not opaque:
        pixels = np.concatenate([pixels, alpha[:, :, None]], axis=2)
    elif pixels.shape[2] == 1:
        pixels = pixels[:, :, 0]
    lossy = path.suffix.lower() in (".jpg", ".jpeg", ".webp")
    pillow.fromarray(pixels).save(path, **({"quality": 95} if lossy else {}))
