"""The command `mercer impute`."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._array import Array
from mercer.cli._data import Data
from mercer.cli._options import data_command
from mercer.cli._run import Run
from mercer.cli._terminal import UsageError, counted, listed, rounded

EXAMPLES = (
    ("fill the empty cells of a table",
     "mercer impute gaps.csv -o filled.csv"),
    ("treat -999 as a missing value",
     "mercer impute gaps.csv -o filled.csv --missing -999 --force"),
    ("fill an array with what a more complete array shows",
     "mercer impute gaps.npy -o filled.npy --train complete.npy"),
)  # fmt: skip


@data_command(EXAMPLES)
def impute(run: Run) -> None:
    """Fill missing values of INPUT from the other columns and rows.

    INPUT is a table (.csv, .tsv, .parquet) or an array (.npy, .npz). OUTPUT is of the same kind.
    Empty cells and NaN in columns of numbers are filled. All other cells stay as they are.

    The summary reports a test error, measured on known values that were hidden: 0 is perfect, 1
    is no better than the mean of the column.
    """
    from mercer.estimators import KernelImputer

    if run.source.is_dir():
        raise UsageError(
            f"{run.source} is a folder, but images have no missing values; give a file"
        )
    data, train = run.read(complete=False)
    missing = np.isnan(data.values)
    model, values = None, data.values
    if missing.any():
        scale = "auto" if run.scale else "none"
        model = KernelImputer(kernel=run.kernel, scale_columns=scale, random_state=run.seed)
        run.fit(model, train.values)
        values = run.map_rows(model.transform, data.values, "filling")
    data.write(values, run.output)
    run.report("imputed", data, _facts(model, data, missing))


def _facts(model: Any, data: Data, missing: Array) -> dict[str, str]:
    """How many cells were filled, where, and with what error."""
    if model is None:
        return {"filled": "nothing, no value was missing"}
    counts = missing.sum(axis=0)
    rows = counted(int(missing.any(axis=1).sum()), data.row_word)
    order = [j for j in np.argsort(-counts, kind="stable") if counts[j]]
    facts = {
        "filled": f"{counted(int(counts.sum()), 'value')} in {rows}",
        "by column": listed((f"{data.names[j]} {counts[j]:,}" for j in order), most=12),
    }
    if np.isfinite(model.error_):
        facts["test error"] = f"{model.error_:.2f} of the error of column means"
    if model.kernel_ is not None:
        facts["kernel"] = rounded(model.kernel_)
    return facts
