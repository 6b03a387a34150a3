"""`mercer impute`."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._array import Array
from mercer.cli._data import Data
from mercer.cli._job import Job, job_command, shortened
from mercer.cli._problems import UsageProblem, counted, listed
from mercer.cli._scale import Scaling

EXAMPLES = (
    ("fill empty cells of the number columns of a table",
     "mercer impute gaps.csv -o filled.csv"),
    ("where -999 stands for a missing value",
     "mercer impute gaps.csv -o filled.csv --missing -999 --force"),
    ("fill an array, learning from another one that has fewer gaps",
     "mercer impute gaps.npy -o filled.npy --train complete.npy"),
)  # fmt: skip


@job_command(EXAMPLES)
def impute(job: Job) -> None:
    """Fill missing values of INPUT by what other columns and rows say about them.

    INPUT is a table (.csv, .tsv, .parquet) or an array (.npy, .npz). OUTPUT is of the same kind.
    Empty cells and NaN in columns of numbers are filled; everything else stays as it is, text
    included.

    How well that works is tested on values that are hidden on purpose, and reported: 0 is
    perfect, 1 no better than the mean of the column.
    """
    if job.source.is_dir():
        raise UsageProblem(
            f"{job.source} is a folder, and images have no missing values; give a table or an array"
        )
    data, train = job.read()
    missing = np.isnan(data.values)
    model, values = None, data.values
    if missing.any():
        model = job.fit(_model(job), train, Scaling())
        values = data.values.copy()
        for rows in job.in_blocks(data, "filling"):
            values[rows] = model.transform(data.values[rows])
    data.write(values, job.output)
    job.say("imputed", data, _facts(model, data, missing))


def _model(job: Job) -> Any:
    from mercer.estimators import KernelImputer

    return KernelImputer(
        kernel=job.kernel, scale_columns="auto" if job.scale else "none", random_state=job.seed
    )


def _facts(model: Any, data: Data, missing: Array) -> dict[str, str]:
    """How many cells were filled, where, and how well that can be done."""
    if model is None:
        return {"filled": "nothing, no value was missing"}
    counts = missing.sum(axis=0)
    rows = counted(int(missing.any(axis=1).sum()), data.row_word)
    facts = {
        "filled": f"{counted(int(counts.sum()), 'value')} in {rows}",
        "by column": listed(
            (f"{data.names[j]} {counts[j]:,}" for j in np.argsort(-counts, kind="stable")
             if counts[j]), most=12
        ),
    }  # fmt: skip
    if np.isfinite(model.error_):
        facts["test error"] = f"{model.error_:.2f} of that of column means"
    if model.kernel_ is not None:
        facts["kernel"] = shortened(model.kernel_)
    return facts
