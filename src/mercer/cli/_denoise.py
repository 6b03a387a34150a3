"""The command `mercer denoise`."""

from __future__ import annotations

import warnings
from typing import Any

import click
import numpy as np

from mercer._array import Array
from mercer._words import counted
from mercer.cli._data import Data, check_rows
from mercer.cli._files import Output
from mercer.cli._large import is_large, pieces_of
from mercer.cli._options import data_command, number
from mercer.cli._run import Run, read_one
from mercer.cli._terminal import UsageError
from mercer.exceptions import MercerWarning
from mercer.kernels._names import rounded

_MANY = 10_000  # rows; with more, a subspace of landmarks keeps time and memory bounded
_LANDMARKS = 1_000
_NOTHING = 0.005  # trust that is printed as 0.00
_UNKNOWN = (
    "the rows do not tell how noisy they are, so nothing was changed; give the standard deviation "
    "of the noise with --noise"
)

EXAMPLES = (
    ("denoise the numeric columns of a table, noise 0.2 of their standard deviations",
     "mercer denoise measured.csv -o clean.csv --noise 0.2"),
    ("denoise a folder of images, noise 0.1 of the range from black to white",
     "mercer denoise scans -o restored --noise 0.1"),
    ("denoise two columns, learning from earlier rows",
     "mercer denoise new.csv -o clean.csv --train measured.csv --columns x,y --noise 0.1"),
)  # fmt: skip

_noise = number("a standard deviation of at least 0", lambda x: 0.0 <= x < np.inf)
_components = number(
    "a number of components, or a share between 0 and 1",
    lambda x: 0.0 < x < 1.0 or (x.is_integer() and 1.0 <= x < 2.0**31),
)


@data_command(
    EXAMPLES,
    click.option("--noise", callback=_noise, metavar="SD",
                 help="Standard deviation of the noise, as a multiple of each column's standard "
                 "deviation if columns are scaled, else in the units of the data (images: 1 is "
                 "white). Default: estimated where that is possible; for most tables it is not."),
    click.option("--components", callback=_components, metavar="N",
                 help="Number of principal components, or the share of variance to keep, such as "
                 "0.9. Default: all, weighted by the noise."),
)  # fmt: skip
def denoise(run: Run, noise: float | None, components: float | None) -> int:
    """Remove noise from the rows of INPUT with kernel PCA.

    INPUT is a table (.csv, .tsv, .csv.gz, .xlsx, .parquet), an array (.npy, .npz), a folder of
    images of the same size, or - for standard input. OUTPUT is of the same kind: tables keep
    their other columns, images their names. Tables can change their format.

    Each row moves towards what the rows have in common, as far as this is estimated to reduce
    the error. This needs many similar rows. If no change would help, rows stay as they are. They
    also stay if you do not give the noise and it cannot be estimated: for images it can, for most
    tables it cannot.
    """
    if any(map(is_large, run.inputs)):
        return _denoise_large(run, noise, components)
    data, train = run.read()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MercerWarning)  # the note below says it for this command
        model = run.fit(_model(run, train, components, noise, len(train.values)), train.values)
    values = data.values
    if model.trust_ > 0.0:
        values = run.map_rows(model.transform, data.values, "denoising")
    data.write(values, run.output)
    run.write_report(model, data)
    run.report("denoised", data, _facts(model, noise, values - data.values))
    if model.noise_error_ == np.inf:
        run.note(_UNKNOWN)
    elif model.trust_ < _NOTHING and noise != 0.0:
        run.note("a change would do more harm than good; rows stay nearly as they were")
    return run.exit_code


def _denoise_large(run: Run, noise: float | None, components: float | None) -> int:
    """The same for files too large for memory: rows are read and written in pieces.

    The first piece of the rows to learn from says which columns are used.
    """
    from mercer.io import open_rows

    if run.page is not None:
        raise UsageError("--report needs all rows in memory; leave it out for a file this large")
    file = run.inputs[-1]
    if is_large(file):
        run.check_files(new_columns=False)
        first = read_one(next(pieces_of(file)), run.selection, run.quiet)
        check_rows(first, at_least=3, complete=True)
        rows: Any = open_rows(file.path, first.used if file.suffix == ".npy" else first.names)
    else:
        first = run.read_train()
        rows = first.values
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MercerWarning)
        model = run.fit(_model(run, first, components, noise, len(rows)), rows)

    def write(data: Data, output: Output) -> None:
        data.write(model.transform(data.values) if model.trust_ > 0.0 else data.values, output)

    run.write_pieces(first, write)
    if model.noise_error_ == np.inf:
        run.note(_UNKNOWN)
    return run.exit_code


def _model(run: Run, train: Data, components: Any, noise: float | None, n: int) -> Any:
    from mercer.estimators import KernelDenoiser

    if components is not None and components >= 1.0:
        components = int(components)
    count = components if isinstance(components, int) else 0
    if count >= n:
        raise UsageError(f"--components {count} is too many for {counted(n, train.row_word)}")
    landmarks = min(n, max(_LANDMARKS, 2 * count))
    return KernelDenoiser(
        components,
        kernel=run.kernel,
        scale_columns=run.scale_columns(train),
        noise="auto" if noise is None else noise,
        n_landmarks=landmarks if n > _MANY else None,
        random_state=run.seed,
    )


def _noise_fact(model: Any, noise: float | None, unit: str) -> str:
    if noise is not None:
        return f"{noise:.3g}{unit} (given)"
    if model.noise_error_ == np.inf:
        return "unknown"
    return f"{model.noise_:.3g} +- {model.noise_error_:.1g}{unit} (estimated)"


def _facts(model: Any, noise: float | None, change: Array) -> dict[str, str]:
    """The model, and what was changed."""
    scaler, weights = model.pca_.scaler_, model.denoiser_.weights
    scale = None if scaler is None else scaler.scale_
    unit = "" if scale is None else " of a column's standard deviation"
    scaled = change / (1.0 if scale is None else scale)
    size = np.sqrt(np.mean(np.square(scaled, dtype=float)))
    return {
        "kernel": rounded(model.kernel_),
        "components": f"{len(weights):,} (effectively {weights.sum():.1f})",
        "noise": _noise_fact(model, noise, unit),
        "trust": f"{abs(model.trust_):.2f} (the share of the change that is kept)",
        "change": f"{size:.3g}{unit}, root mean square",
    }
