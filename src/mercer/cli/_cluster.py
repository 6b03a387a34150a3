"""`mercer cluster`."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import numpy as np

from mercer._array import Array
from mercer.cli._counting import counting
from mercer.cli._data import Data, check_complete, check_varies
from mercer.cli._job import Job, job_command, shortened
from mercer.cli._labels import write_labels
from mercer.cli._output import check_kind, check_output, replacing
from mercer.cli._problems import DataProblem, UsageProblem, counted, listed
from mercer.cli._scale import Scaling

_RULES = ("modes", "silverman", "scott", "likelihood")
_PLOTS = (".png", ".pdf", ".svg")
_LISTED = 10  # clusters

EXAMPLES = (
    ("give each row of a table the number of its cluster, and draw them",
     "mercer cluster measured.csv -o clusters.csv --plot clusters.png"),
    ("with the bandwidth at which the number of clusters is most stable",
     "mercer cluster measured.csv -o clusters.csv --bandwidth stable --columns x,y"),
    ("with a window of our choice, in the units of the file; small groups belong to none",
     "mercer cluster complete.npy -o clusters.npz --flat --bandwidth 2 --no-scale --min-size 3"),
)  # fmt: skip


@job_command(
    EXAMPLES,
    click.option("--bandwidth", metavar="H",
                 help="The length scale of the kernel, in units of the scaled columns, or how to "
                 f"find it: {', '.join(_RULES)} (rules of thumb, and the likelihood of rows left "
                 "out) or stable (in the middle of the longest range in which the number of "
                 "clusters, more than one, stays the same). By default modes, unless --kernel "
                 "says it."),
    click.option("--flat", is_flag=True,
                 help="A window of radius H instead of a Gaussian: steps go to plain means."),
    click.option("--min-size", type=click.IntRange(1), default=1, show_default=True, metavar="N",
                 help="Clusters of fewer rows are dropped, and their rows get -1."),
    click.option("--nearest", is_flag=True,
                 help="Rows belong to the nearest centre, not to the one they climb to."),
    click.option("--bins", is_flag=True,
                 help="Climb from the cells of a grid, not from every row, to find the centres."),
    click.option("--plot", type=click.Path(path_type=Path), metavar="FILE",
                 help=f"Draw the clusters ({', '.join(_PLOTS)}), in the first two columns used."),
)  # fmt: skip
def cluster(job: Job, **given: Any) -> None:
    """Find clusters: rows that climb to the same peak of the density of rows.

    INPUT is a table (.csv, .tsv, .parquet), an array (.npy, .npz) or a folder of images of one
    size. Tables are written with one more column, cluster; for arrays and images OUTPUT is a
    .csv file with a line for each row or image (for arrays also .npz). Clusters are numbered from
    0, the largest first; rows that belong to none have -1.

    How many clusters there are follows from the bandwidth: the wider, the fewer.
    """
    plot = given["plot"]
    bandwidth = _bandwidth(job, given["bandwidth"], given["flat"])
    if plot is not None:
        _check_plot(job, plot)
    data, train = job.read(scores=True)
    check_complete(data)
    check_complete(train)
    check_varies(train)
    scaling = job.scaling(train)
    rows = scaling.there(train.values)
    if bandwidth == "stable":
        bandwidth = _stable(job, rows, given["flat"])
    elif isinstance(bandwidth, str):
        _check_columns(train)
    model = job.fit(_model(job, bandwidth, given), train, scaling)
    labels = model.labels_ if data is train else _predicted(job, model, data, scaling)
    write_labels(data, labels, job.output)
    centres = scaling.back(np.asarray(model.cluster_centers_, dtype=np.float64))
    if plot is not None:
        _draw(job, plot, data, labels, centres, lambda X: model.density_(scaling.there(X)))
    job.say("clustered", data, _facts(model, labels, data) | ({"drawn": str(plot)} if plot else {}))
    _list_clusters(job, data, labels, centres)


def _bandwidth(job: Job, text: str | None, flat: bool) -> Any:
    """A number, a rule, "stable", or "auto" where the kernel says it."""
    if flat and job.kernel != "auto":
        raise UsageProblem("--flat and --kernel both say what the kernel is; give one of them")
    if text is None:
        return "auto"
    if job.kernel != "auto":
        raise UsageProblem("--kernel and --bandwidth both say a length; give one of them")
    if text in (*_RULES, "stable"):
        return text
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0.0 < number < np.inf:
        raise UsageProblem(
            f"--bandwidth {text}: give a number above 0, or one of {', '.join(_RULES)}, stable"
        )
    return number


def _check_plot(job: Job, plot: Path) -> None:
    if find_spec("matplotlib") is None:
        raise UsageProblem("plots need matplotlib: pip install 'mercer[plot]'")
    check_kind(plot, False, _PLOTS, "plots")
    inputs = [job.source] if job.train is None else [job.source, job.train]
    check_output(plot, inputs, job.force)
    if plot.resolve() == job.output.resolve():
        raise UsageProblem(f"{plot} cannot be both the output and the plot")


def _check_columns(train: Data) -> None:
    """Refuse columns along which there is no density for a rule to go by."""
    constant = np.ptp(train.values, axis=0) == 0
    if constant.any():
        names = [train.names[j] if train.names else str(j) for j in np.flatnonzero(constant)]
        raise DataProblem(
            f"{train.path} has constant columns ({listed(names)}), by which no bandwidth can be "
            "found; leave them out with --skip, or give --bandwidth a number"
        )


def _stable(job: Job, rows: Array, flat: bool) -> float:
    """The bandwidth in the middle of the longest plateau, with a bar."""
    from mercer.kernels import Epanechnikov
    from mercer.methods.modes._scale_space import scale_space

    kernel = Epanechnikov(1.0) if flat else None
    count = 25
    with counting(job.bars, count, "counting clusters") as step:
        return scale_space(rows, kernel=kernel, n_bandwidths=count, callback=step).best


def _model(job: Job, bandwidth: Any, given: dict[str, Any]) -> Any:
    from mercer.estimators import MeanShift

    return MeanShift(
        kernel="flat" if given["flat"] else job.kernel,
        bandwidth=bandwidth,
        bin_seeding=given["bins"],
        labels="nearest" if given["nearest"] else "basin",
        min_cluster_size=given["min_size"],
    )


def _predicted(job: Job, model: Any, data: Data, scaling: Scaling) -> Array:
    labels = np.empty(len(data.values), dtype=np.intp)
    for rows in job.in_blocks(data, "labelling"):
        labels[rows] = model.predict(scaling.there(data.values[rows]))
    return labels


def _draw(
    job: Job,
    plot: Path,
    data: Data,
    labels: Array,
    centres: Array,
    density: Callable[[Array], Array],
) -> None:
    from mercer.plot._modes import plot_modes

    with job.bars.waiting("drawing"), replacing(plot) as part:
        found = SimpleNamespace(cluster_centers_=centres, labels_=labels)
        d = data.values.shape[1]
        names = data.names or [f"pixel {j}" for j in range(d)]
        curve = density if d <= 2 else None
        figure = plot_modes(found, data.values, density=curve, names=names)
        if d == 1:
            figure.axes[0].set_yticks([])  # the density is known up to a factor
        figure.savefig(part, dpi=150)


def _facts(model: Any, labels: Array, data: Data) -> dict[str, str]:
    count, none = len(model.cluster_centers_), int(np.sum(labels < 0))
    facts = {"clusters": f"{count:,}"}
    if none:
        facts["without"] = f"{counted(none, data.row_word)}, cluster -1"
    return facts | {"kernel": shortened(model.kernel_)}


def _list_clusters(job: Job, data: Data, labels: Array, centres: Array) -> None:
    """The largest clusters: how many rows, and where."""
    if job.quiet:
        return
    counts = np.bincount(labels[labels >= 0], minlength=len(centres))
    order = np.argsort(-counts, kind="stable")[:_LISTED].tolist()
    width = max((len(counted(int(counts[k]), data.row_word)) for k in order), default=0) + 2
    click.echo("\nlargest clusters, and their centres")
    for k in order:
        rows = counted(int(counts[k]), data.row_word)
        click.echo(f"  {k:<4}{rows:<{width}}{_centre(data, centres[k])}".rstrip())


def _centre(data: Data, centre: Array) -> str:
    if not data.has_names:
        return listed([f"{value:.4g}" for value in centre], 5) if len(centre) <= 20 else ""
    return listed([f"{name} {v:.4g}" for name, v in zip(data.names, centre, strict=True)], 5)
