"""The command `mercer impute`."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._array import Array
from mercer._words import counted, listed
from mercer.cli._data import Data
from mercer.cli._options import data_command
from mercer.cli._run import Run
from mercer.cli._terminal import UsageError
from mercer.kernels._names import rounded

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

    INPUT is a table (.csv, .tsv, .csv.gz, .xlsx, .parquet), an array (.npy, .npz), or - for
    standard input. OUTPUT is of the same kind; tables can change their format. Empty cells and NaN
    in columns of numbers are filled. All other cells stay as they are.

    Every column is predicted from the others. The summary reports a test error, measured on known
    values that were hidden, in standard deviations: 0 is perfect, 1 is no better than the mean of
    the column.
    """
    from mercer.estimators import KernelImputer

    if run.source.is_folder:
        raise UsageError(
            f"{run.source} is a folder, but images have no missing values; give a file"
        )
    data, train = run.read(complete=False)
    missing = np.isnan(data.values)
    model, values = None, data.values
    if missing.any() or run.page is not None:
        if not run.scale and run.kernel == "auto":
            raise UsageError("--no-scale needs a kernel, in the units of the data; give --kernel")
        model = KernelImputer(kernel=run.kernel, random_state=run.seed)
        run.fit(model, train.values)
        values = run.map_rows(model.transform, data.values, "filling")
    data.write(values, run.output)
    run.write_report(model, data)
    run.report("imputed", data, _facts(model, data, missing))


def _facts(model: Any, data: Data, missing: Array) -> dict[str, str]:
    """How many cells were filled, where, and with what error."""
    if not missing.any():
        return {"filled": "nothing: no value is missing in the columns used"}
    counts = missing.sum(axis=0)
    rows = counted(int(missing.any(axis=1).sum()), data.row_word)
    order = [j for j in np.argsort(-counts, kind="stable") if counts[j]]
    facts = {
        "filled": f"{counted(int(counts.sum()), 'value')} in {rows}",
        "by column": listed((f"{data.names[j]} {counts[j]:,}" for j in order), most=12),
    }
    known = [(data.names[j], model.error_[j]) for j in order if np.isfinite(model.error_[j])]
    if known:
        facts["test error"] = listed((f"{name} {error:.2f}" for name, error in known), most=12)
    facts["kernel"] = rounded(model.kernel_)
    return facts
