"""`mercer denoise`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click
import numpy as np

from mercer._array import Array
from mercer.cli._data import Data, check_complete, check_varies
from mercer.cli._job import (
    Job,
    components_option,
    job_command,
    parse_components,
    root_mean_square,
    shortened,
)
from mercer.cli._problems import UsageProblem, counted, listed
from mercer.preimages import LBFGS, ClosedForm, FixedPoint, LearnedMap, Newton

_MANY = 10_000  # rows beyond which the work is done in the span of landmarks
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
    ("take the noise out of the number columns of a table",
     "mercer denoise measured.csv -o clean.csv"),
    ("of a folder of images, and say more about it",
     "mercer denoise scans -o restored --report"),
    ("of two columns, learning from earlier rows, with a kernel of our choice",
     "mercer denoise new.csv -o clean.csv --train measured.csv --columns x,y --kernel gaussian:2"),
)  # fmt: skip


@job_command(
    EXAMPLES,
    click.option("--noise", type=float, metavar="SD",
                 help="Standard deviation of the noise: in units of a column's standard "
                 "deviation, for images of the way from black to white. By default it is "
                 "estimated from the rows that are learned from."),
    components_option("By default all are kept and weighed by the noise."),
    click.option("--solver", type=click.Choice(list(_SOLVERS)), default="regression",
                 show_default=True, metavar="NAME",
                 help=f"The way back from the kernel's space to data: {', '.join(_SOLVERS)}."),
    click.option("--report", is_flag=True, help="Print more about the model and the changes."),
)  # fmt: skip
def denoise(
    job: Job, noise: float | None, components: str | None, solver: str, report: bool
) -> None:
    """Take noise out of the rows of INPUT with kernel PCA.

    INPUT is a table (.csv, .tsv, .parquet), an array (.npy, .npz) or a folder of images of one
    size. OUTPUT is of the same kind: tables keep their other columns, images their names.

    Each row is brought nearer to what rows have in common, as far as that is estimated to be
    worth it: rows should be many and alike. Where that is nothing, nothing is changed.
    """
    kept = parse_components(components)
    if noise is not None and not (noise >= 0.0 and np.isfinite(noise)):
        raise UsageProblem(f"--noise {noise:g}: give a standard deviation of at least 0")
    data, train = job.read()
    check_complete(data)
    check_complete(train)
    check_varies(train)
    scaling = job.scaling(train)
    model = _model(job, train, kept, noise, solver)
    job.fit(model, train, scaling)
    values = data.values
    if model.trust_ > 0.0:
        values = np.empty_like(data.values)
        for rows in job.in_blocks(data, "denoising"):
            values[rows] = scaling.back(model.transform(scaling.there(data.values[rows])))
    data.write(values, job.output)
    change = scaling.there(values) - scaling.there(data.values)
    facts = _facts(model, noise, change, "column" if scaling.mean is not None else "")
    job.say("denoised", data, facts | (_more(model, data, change) if report else {}))
    if model.trust_ < _NOTHING and noise != 0.0:
        job.note("changes would do more harm than good, so the rows are left nearly as they were")


def _model(job: Job, train: Data, kept: Any, noise: float | None, solver: str) -> Any:
    from mercer.estimators import KernelDenoiser

    n = len(train.values)
    if isinstance(kept, int) and kept >= n:
        raise UsageProblem(
            f"--components {kept} is too many for {counted(n, train.row_word)}; give less, or none"
        )
    landmarks = max(_LANDMARKS, 2 * kept if isinstance(kept, int) else 0)
    return KernelDenoiser(
        kept,
        kernel=job.kernel,
        noise="auto" if noise is None else noise,
        inverse=_SOLVERS[solver](),
        n_landmarks=landmarks if n > max(_MANY, landmarks) else None,
        random_state=job.seed,
    )


def _facts(model: Any, noise: float | None, change: Array, unit: str) -> dict[str, str]:
    """What was found and done."""
    facts = {}
    of = " of a column's standard deviation" if unit else ""
    facts["noise"] = f"{model.noise_:.3g}{of} ({'estimated' if noise is None else 'given'})"
    trust = model.trust_
    facts["trust"] = f"{trust:.2f} (the share of the change that is kept)"
    facts["change"] = f"{root_mean_square(change):.3g}{of}, root mean square"
    return facts


def _more(model: Any, data: Data, change: Array) -> dict[str, str]:
    """What --report adds."""
    weights = model.denoiser_.weights
    share = float(np.sum(model.pca_.explained_variance_ratio_))
    by_row = np.sqrt(np.mean(change**2, axis=1))
    facts = {
        "kernel": shortened(model.kernel_),
        "components": f"{len(weights):,}, in effect {weights.sum():.1f}; "
        f"{share:.0%} of the scatter",
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
