"""The commands `mercer fit` and `mercer predict`: learn a column of a table, and predict it."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np

from mercer._array import LARGEST, Array
from mercer._words import counted, listed
from mercer.cli._csv import TextTable
from mercer.cli._data import FEW_CODES, Data, Selection, check_rows
from mercer.cli._files import Output, Source
from mercer.cli._large import LANDMARKS, is_large, refuse_large, refuse_whole
from mercer.cli._options import (
    CHECKPOINT,
    COLUMNS,
    CONTROLS,
    READING,
    REPORT,
    SCALE,
    choose_output,
    choose_report,
    command,
    number,
    parse_kernel,
)
from mercer.cli._parquet import ParquetTable
from mercer.cli._run import (
    INTERRUPTED,
    TABLES,
    UNFINISHED,
    check_exists,
    check_readable,
    read_one,
    write_pieces,
    write_report,
)
from mercer.cli._terminal import DataError, Progress, UsageError, echo_facts
from mercer.cli._text import TEXT, as_numbers, escape_formulas, is_missing
from mercer.kernels._names import rounded

FIT = (
    ("learn a column of numbers from the other columns of a table",
     "mercer fit measured.csv --target y -o model.mercer"),
    ("learn it with an error that outliers change little",
     "mercer fit measured.csv --target y --loss absolute -C 10 -o model.mercer --force"),
)  # fmt: skip
PREDICT = (
    ("predict the column for the rows of another table",
     "mercer predict new.csv --model model.mercer -o predicted.csv"),
)  # fmt: skip

_PATH = click.Path(path_type=Path)
_CLASSES = ("logistic", "hinge", "squared_margin")
_NUMBERS = ("square", "absolute", "epsilon_insensitive")
_SEED = 0  # of the landmarks that are chosen at random in large files
_MODEL = {"columns", "target", "model"}
_input = click.argument("source", metavar="INPUT", type=_PATH)


@command(
    FIT, _input,
    click.option("-o", "--output", type=_PATH, required=True, metavar="MODEL",
                 help="File to write the model to; its name ends in .mercer."),
    click.option("--target", required=True, metavar="NAME", help="The column to learn."),
    click.option("--loss", type=click.Choice(["auto", *_CLASSES, *_NUMBERS]), default="auto",
                 show_default=True,
                 help="What a wrong prediction costs. auto is logistic, with probabilities, for a "
                 "target of text or integer codes, and square for a target of other numbers."),
    click.option("-C", "C", metavar="NUMBER",
                 callback=number("a number above 0", lambda x: 0.0 < x < np.inf),
                 help="Weight of the losses against the smoothness of the function. Default: 1; "
                 "square losses choose it by leave-one-out, with the kernel if that is auto."),
    click.option("--kernel", default="auto", show_default=True, metavar="KERNEL",
                 callback=lambda *given: parse_kernel(given[-1]),
                 help="auto is a Gaussian of the median distance of rows (see also -C); or such as "
                 "gaussian:2."),
    *COLUMNS, SCALE, *READING, CHECKPOINT, REPORT, *CONTROLS,
)  # fmt: skip
def fit(
    source: Path, output: Path, target: str, loss: str, C: float | None, kernel: Any, scale: bool,
    state: Path | None, page: Path | None, force: bool, quiet: bool, **reading: Any,
) -> int:  # fmt: skip
    """Learn a column of INPUT from its other columns.

    Columns of numbers are learnt from; --target names the column to learn, of numbers or classes.
    INPUT is a table (.csv, .tsv, .csv.gz, .xlsx, .parquet) or - for standard input. The model is
    written to a file for `mercer predict`; mercer.load reads it in Python.

    Parquet files too large for memory are read in pieces, for a target of numbers and the square
    loss without -C.

    The report names the relative duality gap: the objective of the fit is at most this share above
    the smallest possible one.
    """
    from mercer.io import checkpoint, open_rows, save

    start, selection = time.perf_counter(), Selection(**reading)
    file, result = Source(source), Output(output, force, format="mercer")
    check_readable(file)
    if result.is_pipe:
        raise UsageError("a model needs a file; give -o a name that ends in .mercer")
    result.check_file((".mercer",), "a model")
    written = choose_report(page, force, output)
    for one in (result, written):
        if one is not None:
            one.check([source])
    data = read_one(file, replace(selection, skip=(*selection.skip, target)), quiet, True)
    check_rows(data, at_least=3, complete=True)
    y: Any = _target(data, target, selection, loss)
    classes = y.dtype.kind != "f"
    loss = loss if loss != "auto" else "logistic" if classes else "square"
    if data.in_pieces:
        refuse_whole(page, "--report")
        if loss != "square" or C is not None:
            refuse_large(file)
        y = open_rows(source, [target]).mapped(np.ravel, dtype=np.float64)
    landmarks = min(len(y), LANDMARKS) if data.in_pieces else None
    model = _model(kernel, loss, C, "auto" if scale and kernel == "auto" else "none", landmarks)
    waiting = Progress(quiet).waiting(f"learning from {counted(len(y), 'row')}")
    with waiting, checkpoint(state) as ctrl_c:
        model.fit(data.values, y)
    with Progress(quiet).waiting("scoring"):
        right = model.score(data.values, y)
    with result.file() as path:
        save({"columns": list(data.names), "target": target, "model": model}, path)
    if written is not None:
        write_report(written, model, data, target=y)
    found = model.certificate_ if isinstance(model.certificate_, tuple) else (model.certificate_,)
    kind = f"{len(model.classes_)} classes" if classes else "numbers"
    chosen = loss == "square" and C is None
    weight = f"penalty {model.penalty_:.3g} by leave-one-out" if chosen else f"C {model.C:g}"
    seconds = time.perf_counter() - start
    if not quiet:
        echo_facts(
            {
                "fitted": f"{counted(len(y), 'row')} of {data.size} ({seconds:.1f} s)",
                "target": f"{target}, {kind}",
                "columns": listed(data.names),
                "loss": f"{loss}, {weight}",
                "kernel": rounded(model.kernel_),
                "gap": f"{max(c.relative_gap for c in found):.1e}, relative duality gap",
                "on these rows": f"{right:.1%} right" if classes else f"R^2 {right:.4g}",
                "written": str(output),
                **({"report": str(page)} if page else {}),
                **({"status": UNFINISHED} if ctrl_c.requested else {}),
            }
        )
    return INTERRUPTED if ctrl_c.requested else 0


def _model(kernel: Any, loss: str, C: float | None, scaled: str, landmarks: int | None) -> Any:
    """The estimator for a loss; landmarks are for rows in pieces."""
    from mercer.estimators import KernelLogisticRegression, KernelMachine, KernelRidge

    if loss == "square" and C is None:
        return KernelRidge(kernel, scale_columns=scaled, n_landmarks=landmarks, random_state=_SEED)
    if loss == "logistic":
        return KernelLogisticRegression(kernel, C=C or 1.0, scale_columns=scaled)
    return KernelMachine(kernel, loss=loss, C=C or 1.0, scale_columns=scaled)


@command(
    PREDICT, _input,
    click.option("--model", "model_file", type=_PATH, required=True, metavar="MODEL",
                 help="A file that mercer fit wrote."),
    click.option("-o", "--output", type=_PATH, metavar="OUTPUT",
                 help="Table to write, or - for standard output, which is the default if INPUT "
                 "is -."),
    *READING, *CONTROLS,
)  # fmt: skip
def predict(
    source: Path, model_file: Path, output: Path | None, force: bool, quiet: bool, **reading: Any
) -> None:
    """Predict the target of a model for the rows of INPUT.

    INPUT is a table with the columns that the model was fitted to, or - for standard input. OUTPUT
    is the table with a column predicted and, if the model has probabilities, a column
    probability: that of the predicted class.
    """
    from mercer.io import load

    start, file = time.perf_counter(), Source(source)
    result = choose_output(file, output, force)
    check_readable(file)
    check_exists(model_file)
    result.check_file(TABLES, f"the result for {file}")
    result.check([source, model_file])
    stored = load(model_file)
    if not isinstance(stored, dict) or set(stored) != _MODEL:
        raise DataError(f"{model_file} is not a model that mercer fit wrote")
    names, model = stored["columns"], stored["model"]
    selection = Selection(columns=tuple(names), **reading)

    def write(data: Data, output: Output) -> None:
        data.write_columns(_predicted(model, names, data, result), output)

    with Progress(quiet).waiting(f"predicting {file}"):
        if is_large(file):
            count = write_pieces(file, selection, result, write)
        else:
            data = read_one(file, selection, quiet)
            write(data, result)
            count = len(data.values)
    if not quiet:
        seconds = time.perf_counter() - start
        facts = {
            "predicted": f"{stored['target']} of {counted(count, 'row')} ({seconds:.1f} s)",
            "columns": listed(names),
            "written": "standard output" if result.is_pipe else str(result.path),
        }
        echo_facts(facts, err=result.is_pipe)


def _predicted(model: Any, names: list[str], data: Data, result: Output) -> dict[str, Array]:
    """The new columns for the rows of a table."""
    _check_table(data)
    if list(data.names) != names:
        raise DataError(f"{data.source} needs one column of each of these names: {listed(names)}")
    check_rows(data, complete=True)
    predicted = model.predict(data.values)
    if result.is_text and predicted.dtype.kind == "U":
        predicted = np.array(escape_formulas(predicted.tolist()))
    columns = {"predicted": predicted}
    if hasattr(model, "predict_proba"):
        columns["probability"] = model.predict_proba(data.values).max(axis=1)
    return columns


def _target(data: Data, name: str, selection: Selection, loss: str) -> Array:
    """The column to learn: numbers, or the names of classes."""
    _check_table(data)
    if isinstance(data, TextTable):
        names = list(data.header or map(str, range(1, len(data.cells) + 1)))
    else:
        assert isinstance(data, ParquetTable)
        names = data.table.column_names
    counts = Counter(names)
    for one in (name, *data.names):
        if counts[one] != 1:
            problem = "several columns" if one in names else "no column"
            raise UsageError(f"{data.source} has {problem} {one!r}; it has {listed(names, 20)}")
    if isinstance(data, TextTable):
        cells, decimal = data.cells[names.index(name)], data.dialect.decimal
    else:
        values = data.table[name].to_pylist()
        cells, decimal = np.array(["" if v is None else str(v) for v in values], dtype=TEXT), "."
    missing = is_missing(cells, selection.missing)
    if missing.any():
        raise DataError(
            f"the target {name!r} is missing in {counted(int(missing.sum()), data.row_word)}, the "
            f"first is {data.label(int(np.argmax(missing)))}; leave these out"
        )
    numbers, bad = as_numbers(cells, (), decimal)
    huge = np.abs(numbers) > LARGEST
    if loss in _NUMBERS and bad.any():
        raise UsageError(f"--loss {loss} needs a target of numbers, but {name!r} has text")
    distinct = len(np.unique(cells))
    codes = np.all(numbers == np.rint(numbers)) and 2 * distinct <= len(cells)
    if loss in _CLASSES or (loss == "auto" and (bad.any() or (codes and distinct <= FEW_CODES))):
        return np.array(cells.tolist())
    if huge.any():
        raise DataError(
            f"the target {name!r} has {counted(int(huge.sum()), 'huge value')}, the first is "
            f"{data.label(int(np.argmax(huge)))}; correct or rescale what is above {LARGEST:g}"
        )
    return numbers


def _check_table(data: Data) -> None:
    if not data.has_names:
        raise UsageError(f"{data.source} is not a table; a target has to be one of its columns")
