"""The command `mercer segment`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click
import numpy as np

from mercer._array import Array
from mercer._words import counted
from mercer.cli._arrays import save_array
from mercer.cli._files import PIPE, Source
from mercer.cli._images import SUFFIXES, read_image, save_image
from mercer.cli._options import CONTROLS, choose_output, command, number
from mercer.cli._run import check_exists
from mercer.cli._terminal import Progress, UsageError, echo_facts

_STEPS = 100  # of mean shift, at most

EXAMPLES = (
    ("paint each region of an image in its mean colour",
     "mercer segment photo.png -o regions.png"),
    ("find larger regions and draw lines between them",
     "mercer segment photo.png -o outlines.png --colour 0.3 --min-size 50 --show edges"),
    ("smooth an image but keep its edges",
     "mercer segment photo.png -o smooth.png --spatial 4 --show smooth"),
    ("write the region of each pixel as an array",
     "mercer segment photo.png -o regions.npy"),
)  # fmt: skip
_positive = number("a number above 0", lambda x: 0.0 < x < np.inf)
_OPTIONS = [
    click.argument("source", metavar="INPUT", type=click.Path(path_type=Path)),
    click.option("-o", "--output", type=click.Path(path_type=Path), metavar="OUTPUT",
                 help="Image to write, or an .npy file with the region of each pixel, or - for "
                 "standard output (PNG), which is the default if INPUT is -."),
    click.option("--spatial", callback=_positive, default="8", show_default=True, metavar="PIXELS",
                 help="Radius of the window in the plane."),
    click.option("--colour", "--color", callback=_positive, default="0.15",
                 show_default=True, metavar="SHARE",
                 help="Radius of the window in colour, as a share of the range of each channel."),
    click.option("--kernel", type=click.Choice(["epanechnikov", "gaussian"]),
                 default="epanechnikov", show_default=True,
                 help="gaussian takes several times longer."),
    click.option("--min-size", type=click.IntRange(1), default=20, show_default=True,
                 metavar="PIXELS",
                 help="Merge smaller regions into the neighbour of the most similar colour."),
    click.option("--show", type=click.Choice(["mean", "smooth", "edges"]), default="mean",
                 show_default=True,
                 help="Regions in their mean colours, each pixel in the colour of its mode, or the "
                 "image with lines between regions."),
]  # fmt: skip


@command(EXAMPLES, *_OPTIONS, *CONTROLS)
def segment(source: Path, output: Path | None, **given: Any) -> None:
    """Divide an image into regions of similar colour.

    INPUT is one image, grey or in colour, or - for standard input. Its opacity is kept. Pixels
    that are near each other in the plane and in colour climb to the same peak of their density;
    they form a region.
    """
    from mercer.methods import segment as find_segments

    start, quiet = time.perf_counter(), given["quiet"]
    target = choose_output(Source(source), output, given["force"], format="png")
    if source != PIPE:
        check_exists(source)
        if source.is_dir() or source.suffix.lower() not in SUFFIXES:
            raise UsageError(f"{source} is not an image ({', '.join(SUFFIXES)})")
    target.check_file((*SUFFIXES, ".npy"), "regions")
    target.check([source])
    values, look = read_image(Source(source))
    height, width = values.shape[:2]
    with Progress(quiet).waiting("segmenting"):
        found: Any = find_segments(
            values,
            given["spatial"],
            given["colour"],
            kernel=given["kernel"],
            min_size=given["min_size"],
            max_iter=_STEPS,
        )
    if target.suffix == ".npy":
        save_array(target, found.labels)
    else:
        with target.file() as path:
            save_image(path, _picture(values, found, given["show"]), look)
    if not quiet:
        largest = found.sizes[0] / found.labels.size
        seconds = time.perf_counter() - start
        facts = {
            "segmented": f"{width} x {height} pixels ({seconds:.1f} s)",
            "regions": f"{counted(found.n_segments, 'region')}, the largest {largest:.0%}",
        }
        if not target.is_pipe:
            facts["written"] = str(output)
        echo_facts(facts, err=target.is_pipe)


def _picture(values: Array, found: Any, show: str) -> Array:
    if show == "smooth":
        return np.asarray(found.filtered)
    if show == "mean":
        return np.asarray(found.painted())
    contrast = np.where(values.mean(axis=2, keepdims=True) < 0.5, 1.0, 0.0)
    return np.where(found.edges()[:, :, None], contrast, values)
