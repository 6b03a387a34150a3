"""The command `mercer denoise`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click
import numpy as np

from mercer._array import Array
from mercer.cli._data import Data
from mercer.cli._messages import UsageError, counted, listed, rounded
from mercer.cli._options import components_option, data_command, parse_components
from mercer.cli._run import Run
from mercer.preimages import LBFGS, ClosedForm, FixedPoint, LearnedMap, Newton

_MANY = 10_000  # rows; with more, a subspace of landmarks keeps time and memory bounded
_LANDMARKS = 1_000
_NOTHING = 0.005  # trust that is printed as 0.00
_SOLVERS: dict[str, Callable[[], Any]] = {
    "regression": lambda: None,
    "closed-form": ClosedForm,
    "fixed-point": FixedPoint,
    "newton": Newton,
    "lbfgs": LBFGS,
    "learned": LearnedMap,
}

EXAMPLES = (
    ("denoise the numeric columns of a table",
     "mercer denoise measured.csv -o clean.csv"),
    ("denoise a folder of images and print details",
     "mercer denoise scans -o restored --report"),
    ("denoise two columns with a given kernel, learning from earlier rows",
     "mercer denoise new.csv -o clean.csv --train measured.csv --columns x,y --kernel gaussian:2"),
)  # fmt: skip


@data_command(
    EXAMPLES,
    click.option("--noise", type=float, metavar="SD",
                 help="Standard deviation of the noise, as a multiple of each column's standard "
                 "deviation if columns are scaled, else in the units of the data (images: 1 is "
                 "white). By default it is estimated from the training rows."),
    components_option("Default: all, weighted by the noise."),
    click.option("--solver", type=click.Choice(list(_SOLVERS)), default="regression",
                 show_default=True, metavar="NAME",
                 help=f"How to find pre-images: {', '.join(_SOLVERS)}."),
    click.option("--report", is_flag=True, help="Print details of the model and the changes."),
)  # fmt: skip
def denoise(
    run: Run, noise: float | None, components: str | None, solver: str, report: bool
) -> None:
    """Remove noise from the rows of INPUT with kernel PCA.

    INPUT is a table (.csv, .tsv, .parquet), an array (.npy, .npz) or a folder of images of the
    same size. OUTPUT is of the same kind: tables keep their other columns, images their names.

    Each row moves towards what the rows have in common, as far as this is estimated to reduce
    the error. This needs many similar rows. If no change would help, rows stay as they are.
    """
    n_components = parse_components(components)
    if noise is not None and not 0.0 <= noise < np.inf:
        raise UsageError(f"--noise {noise:g}: give a standard deviation of at least 0")
    data, train = run.read_complete()
    model = run.fit(_model(run, train, n_components, noise, solver), train)
    values = data.values
    if model.trust_ > 0.0:
        values = run.map_rows(model.transform, data.values, "denoising")
    data.write(values, run.output)
    scaler = model.pca_.scaler_
    change = (values - data.values) / (1.0 if scaler is None else scaler.scale_)
    facts = _facts(model, noise, change, scaled=scaler is not None)
    run.report("denoised", data, facts | (_details(model, data, change) if report else {}))
    if model.trust_ < _NOTHING and noise != 0.0:
        run.print("note: a change would do more harm than good; rows stay nearly as they were",
                  err=True)  # fmt: skip


def _model(run: Run, train: Data, n_components: Any, noise: float | None, solver: str) -> Any:
    from mercer.estimators import KernelDenoiser

    n = len(train.values)
    count = n_components if isinstance(n_components, int) else 0
    if count >= n:
        raise UsageError(f"--components {count} is too many for {counted(n, train.row_word)}")
    landmarks = max(_LANDMARKS, 2 * count)
    return KernelDenoiser(
        n_components,
        kernel=run.kernel,
        scale_columns=run.scale_columns(train),
        noise="auto" if noise is None else noise,
        inverse=_SOLVERS[solver](),
        n_landmarks=landmarks if n > max(_MANY, landmarks) else None,
        random_state=run.seed,
    )


def _facts(model: Any, noise: float | None, change: Array, *, scaled: bool) -> dict[str, str]:
    """The noise, and what was changed."""
    unit = " of a column's standard deviation" if scaled else ""
    size = np.sqrt(np.mean(np.square(change, dtype=float)))
    return {
        "noise": f"{model.noise_:.3g}{unit} ({'estimated' if noise is None else 'given'})",
        "trust": f"{model.trust_:.2f} (the share of the change that is kept)",
        "change": f"{size:.3g}{unit}, root mean square",
    }


def _details(model: Any, data: Data, change: Array) -> dict[str, str]:
    """What --report adds."""
    weights = model.denoiser_.weights
    share = float(np.sum(model.pca_.explained_variance_ratio_))
    by_row = np.sqrt(np.mean(change**2, axis=1))
    facts = {
        "kernel": rounded(model.kernel_),
        "components": f"{len(weights):,} (effectively {weights.sum():.1f}), {share:.0%} of the "
        "variance",
    }
    if data.names:
        by_column = np.sqrt(np.mean(change**2, axis=0))
        facts["columns"] = listed(
            f"{data.names[j]} {by_column[j]:.2g}" for j in np.argsort(-by_column)
        )
    facts["most changed"] = listed(
        f"{data.label(int(i))} {by_row[i]:.2g}" for i in np.argsort(-by_row)[:5]
    )
    return facts
