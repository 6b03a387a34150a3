"""The command `mercer denoise`."""

from __future__ import annotations

import warnings
from typing import Any

import click
import numpy as np

from mercer._words import counted
from mercer.cli._data import Data
from mercer.cli._files import Output
from mercer.cli._large import LANDMARKS
from mercer.cli._options import data_command, number
from mercer.cli._run import Run
from mercer.cli._terminal import UsageError
from mercer.exceptions import MercerWarning
from mercer.kernels._names import rounded

_MANY = 10_000  # rows; with more, a subspace of landmarks keeps time and memory bounded
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
    data, train = run.read(in_pieces=True, learns_in_pieces=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MercerWarning)  # the note below says it for this command
        model = run.fit(_model(run, train, components, noise, len(train.values)), train.values)
    scale, changed = _scale(model), 0.0

    def write(rows: Data, output: Output) -> None:
        nonlocal changed
        values = rows.values
        if model.trust_ > 0.0:
            values = run.map_rows(model.transform, values, "denoising")
        change = (values - rows.values) / (1.0 if scale is None else scale)
        changed += float(np.sum(np.square(change, dtype=float)))
        rows.write(values, output)

    run.write(data, train, write)
    run.write_report(model, data)
    mean = changed / (len(data.values) * data.values.shape[1])
    run.report("denoised", data, _facts(model, noise, float(np.sqrt(mean))))
    if model.noise_error_ == np.inf:
        run.note(_UNKNOWN)
    elif model.trust_ < _NOTHING and noise != 0.0:
        run.note("a change would do more harm than good; rows stay nearly as they were")
    return run.exit_code


def _model(run: Run, train: Data, components: Any, noise: float | None, n: int) -> Any:
    from mercer.estimators import KernelDenoiser

    if components is not None and components >= 1.0:
        components = int(components)
    count = components if isinstance(components, int) else 0
    if count >= n:
        raise UsageError(f"--components {count} is too many for {counted(n, train.row_word)}")
    landmarks = min(n, max(LANDMARKS, 2 * count))
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


def _scale(model: Any) -> Any:
    """What columns are divided by; None if they are not, as for images."""
    return getattr(model.pca_.scaler_, "scale_", None)


def _facts(model: Any, noise: float | None, change: float) -> dict[str, str]:
    """The model, and what was changed."""
    weights = model.denoiser_.weights
    unit = "" if _scale(model) is None else " of a column's standard deviation"
    return {
        "kernel": rounded(model.kernel_),
        "components": f"{len(weights):,} (effectively {weights.sum():.1f})",
        "noise": _noise_fact(model, noise, unit),
        "trust": f"{abs(model.trust_):.2f} (the share of the change that is kept)",
        "change": f"{change:.3g}{unit}, root mean square",
    }
