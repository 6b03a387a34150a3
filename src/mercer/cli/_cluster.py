"""The command `mercer cluster`."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import numpy as np

from mercer._array import Array
from mercer._words import counted
from mercer.cli._data import Data
from mercer.cli._files import Output
from mercer.cli._large import refuse_whole
from mercer.cli._options import data_command, number
from mercer.cli._run import Run
from mercer.cli._terminal import UsageError
from mercer.kernels._names import rounded

_RULES = ("silverman", "scott", "modes", "likelihood", "stable")
_PLOTS = (".png", ".pdf", ".svg")
_QUICK = _RULES[:3]  # those for files too large for memory
_SEEDS = 500  # rows from which such files are searched; each step is a pass over the file
_LISTED = 10  # clusters in the summary

EXAMPLES = (
    ("number the cluster of each row of a table, and draw the clusters",
     "mercer cluster measured.csv -o clusters.csv --plot clusters.png"),
    ("choose the bandwidth at which the number of clusters is most stable",
     "mercer cluster measured.csv -o clusters.csv --bandwidth stable --columns x,y"),
    ("use a flat window of radius 2, and leave out clusters of fewer than 3 rows",
     "mercer cluster complete.npy -o clusters.npz --flat --bandwidth 2 --min-size 3"),
)  # fmt: skip

_bandwidth = number(
    f"a number above 0, or one of {', '.join(_RULES)}", lambda x: 0.0 < x < np.inf, _RULES
)


@data_command(
    EXAMPLES,
    click.option("--bandwidth", metavar="H", callback=_bandwidth,
                 help="Length scale of the kernel, in the units of the data (columns are not "
                 f"scaled then), or a rule to choose it: {', '.join(_RULES[:3])} (rules of "
                 "thumb), likelihood (of left-out rows), or stable (the widest range of "
                 "bandwidths with the same number of clusters, at least 2). By default the one "
                 "with the most significant peaks; peaks that may be chance are joined to others, "
                 "and many columns are reduced to principal components."),
    click.option("--flat", is_flag=True,
                 help="Use a flat window of radius H (steps go to plain means), not a Gaussian."),
    click.option("--min-size", type=click.IntRange(1), default=1, show_default=True, metavar="N",
                 help="Drop clusters with fewer rows; their rows get the number -1."),
    click.option("--bins", is_flag=True,
                 help="Start from the cells of a grid instead of from every row. Faster."),
    click.option("--plot", type=click.Path(path_type=Path), metavar="FILE",
                 help=f"Draw the clusters ({', '.join(_PLOTS)}) over the first two columns used."),
)  # fmt: skip
def cluster(
    run: Run, bandwidth: Any, flat: bool, min_size: int, bins: bool, plot: Path | None
) -> int:
    """Find clusters with mean shift.

    Each row climbs to a peak of the density of rows; rows that reach the same peak are a cluster.

    INPUT is a table (.csv, .tsv, .csv.gz, .xlsx, .parquet), an array (.npy, .npz), a folder of
    images of the same size, or - for standard input. OUTPUT is the table with one more column,
    cluster. For arrays and images it is a .csv file with one line per row or image (for arrays
    also .npz). Clusters are numbered from 0, the largest first; rows without a cluster have -1.

    By default a peak makes a cluster only if it is significant, so that data without clusters
    are one cluster, and the summary says so. With --bandwidth every peak is a cluster: a larger
    bandwidth gives fewer. Files too large for memory need --bandwidth or --kernel; their peaks are
    searched from 500 rows drawn at random.
    """
    from mercer.estimators import MeanShift

    if flat and run.kernel != "auto":
        raise UsageError("--flat and --kernel both choose the kernel; give one of them")
    if bandwidth is not None and run.kernel != "auto":
        raise UsageError("--kernel and --bandwidth both give a length; give one of them")
    drawing = None if plot is None else Output(plot, run.output.force)
    if drawing is not None:
        _check_plot(run, drawing)
    data, train = run.read(new_columns=True, in_pieces=True, learns_in_pieces=True)
    if data.in_pieces or train.in_pieces:
        refuse_whole(plot, "--plot")
    seeds = _seeds(run, train, bandwidth, bins)
    model: Any = MeanShift(
        kernel="flat" if flat else run.kernel,
        bandwidth=bandwidth or "auto",
        scale_columns="none" if isinstance(bandwidth, float) else run.scale_columns(train),
        bin_seeding=bins,
        seeds=seeds,
        labels="basin" if seeds is None else "nearest",
        min_cluster_size=min_size,
    )
    labels = run.fit(model, train.values).labels_
    labels = labels if data is train else _predicted(run, model, data)

    def write(rows: Data, output: Output) -> None:
        first = rows.source.first
        rows.write_columns({"cluster": labels[first : first + len(rows.values)]}, output)

    run.write(data, train, write)
    if drawing is not None:
        _draw(run, drawing, data, model, labels)
    run.write_report(model, train)
    facts = _facts(model, data, labels, seeds)
    run.report("clustered", data, facts | ({"drawn": str(plot)} if plot else {}))
    if not run.quiet:
        _print_largest(run, data, labels, model.cluster_centers_)
    return run.exit_code


def _facts(model: Any, data: Data, labels: Array, seeds: Array | None) -> dict[str, str]:
    """What was found, and from what."""
    from mercer.kernels import Transformed

    facts = {"clusters": f"{len(model.cluster_centers_):,}"}
    if without := int(np.sum(labels < 0)):
        facts["without"] = f"{counted(without, data.row_word)}, cluster -1"
    if seeds is not None:
        facts["found from"] = f"{counted(len(seeds), 'row')} drawn at random"
    if model.significance_ is not None:
        facts["peaks"] = model.significant_.message
    if (reduced := model.components_) is not None:
        facts["seen"] = f"{len(reduced)} principal components"
    kernel = model.kernel_  # of scaled columns or of principal components
    facts["kernel"] = rounded(kernel.kernel if isinstance(kernel, Transformed) else kernel)
    return facts


def _seeds(run: Run, train: Data, bandwidth: Any, bins: bool) -> Array | None:
    """Rows of a file too large for memory from which its peaks are searched; None for others."""
    if not train.in_pieces:
        return None
    refuse_whole(bins, "--bins")
    if run.kernel == "auto" and not (isinstance(bandwidth, float) or bandwidth in _QUICK):
        raise UsageError(
            "the bandwidth of a file this large must be given: --bandwidth with a number, "
            f"{', '.join(_QUICK[:-1])} or {_QUICK[-1]}; or give --kernel"
        )
    n, rng = len(train.values), np.random.default_rng(run.seed)
    return train.values.rows(rng.choice(n, min(n, _SEEDS), replace=False))  # type: ignore[no-any-return]


def _predicted(run: Run, model: Any, data: Data) -> Array:
    """The clusters of rows that were not learnt from."""
    if data.in_pieces:
        return np.asarray(model.predict(data.values))
    return run.map_rows(model.predict, data.values, "labelling")


def _check_plot(run: Run, plot: Output) -> None:
    if find_spec("matplotlib") is None:
        raise UsageError("plots need matplotlib: pip install 'mercer[plot]'")
    if plot.is_pipe:
        raise UsageError("--plot needs a file, not standard output")
    plot.check_file(_PLOTS, "plots")
    plot.check([one.path for one in run.inputs])
    if plot.path.resolve() == run.output.path.resolve():
        raise UsageError(f"{plot.path} cannot be both the output and the plot")


def _draw(run: Run, plot: Output, data: Data, model: Any, labels: Array) -> None:
    from matplotlib.figure import Figure

    from mercer.plot import plot_modes

    found = SimpleNamespace(cluster_centers_=model.cluster_centers_, labels_=labels)
    with run.progress.waiting("drawing"), plot.file() as path:
        d = data.values.shape[1]
        names = data.names or [f"pixel {j}" for j in range(d)]
        density = model.density_ if d <= 2 else None
        figure = Figure(figsize=(4.6, 2.8 if d == 1 else 3.9), layout="constrained")  # no pyplot
        axis = figure.subplots()
        plot_modes(found, data.values, density=density, names=names, ax=axis)
        if d == 1:
            axis.set_yticks([])  # the density is known up to a factor
        figure.savefig(path, dpi=150)


def _print_largest(run: Run, data: Data, labels: Array, centres: Array) -> None:
    counts = np.bincount(labels[labels >= 0], minlength=len(centres))
    order = np.argsort(-counts, kind="stable")[:_LISTED].tolist()
    rows = [counted(int(counts[k]), data.row_word) for k in order]
    width = max(map(len, rows), default=0) + 2
    run.say("\nlargest clusters and their centres")
    for k, text in zip(order, rows, strict=True):
        run.say(f"  {k:<4}{text:<{width}}{data.describe(centres[k])}".rstrip())
