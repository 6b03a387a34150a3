"""The command `mercer anomalies`."""

from __future__ import annotations

from typing import Any

import click
import numpy as np

from mercer._array import Array
from mercer._words import counted
from mercer.cli._data import Data
from mercer.cli._files import Output
from mercer.cli._large import is_large
from mercer.cli._options import data_command, number
from mercer.cli._run import Run
from mercer.cli._terminal import UsageError
from mercer.kernels._names import rounded

EXAMPLES = (
    ("score the rows of a table and mark anomalies",
     "mercer anomalies measured.csv -o scored.csv"),
    ("score the images of a folder and print the ten most unusual ones",
     "mercer anomalies scans -o scores.csv --top 10"),
    ("compare new rows with earlier ones",
     "mercer anomalies new.csv -o alarms.csv --train measured.csv --false-alarms 0.01"),
)  # fmt: skip

_rate = number("a share above 0 and at most 0.5", lambda x: 0.0 < x <= 0.5)


@data_command(
    EXAMPLES,
    click.option("--false-alarms", default="0.05", show_default=True, metavar="RATE",
                 callback=_rate,
                 help="Share of new rows like the training rows that is marked all the same, "
                 "at most 0.5."),
    click.option("--top", type=click.IntRange(0), default=5, show_default=True, metavar="N",
                 help="Number of rows to print, those with the highest scores."),
)  # fmt: skip
def anomalies(run: Run, false_alarms: float, top: int) -> None:
    """Score how unusual each row of INPUT is.

    INPUT is a table (.csv, .tsv, .csv.gz, .xlsx, .parquet), an array (.npy, .npz), a folder of
    images of the same size, or - for standard input. OUTPUT is the table with two more columns,
    score and is_anomaly. For arrays and images it is a .csv file with one line per row or image
    (for arrays also .npz).

    The score is a Mahalanobis distance to the training rows, in the feature space of a kernel.
    Higher scores are more unusual. Training rows are scored as if they had been left out.
    """
    if run.train is not None and is_large(run.source):
        _score_large(run, false_alarms)
        return
    data, train = run.read(new_columns=True)
    model = _fitted(run, train, false_alarms)
    score = -run.map_rows(model.score_samples, data.values, "scoring")
    marked = score > -model.offset_
    data.write_columns({"score": score, "is_anomaly": marked}, run.output)
    run.write_report(model, data)
    count = int(marked.sum())
    facts = {
        "anomalies": f"{counted(count, data.row_word)}, {count / len(score):.1%}",
        "threshold": f"{-model.offset_:.4g}; the median score is {np.median(score):.4g}",
        "kernel": rounded(model.kernel_),
    }
    run.report("scored", data, facts)
    if top > 0 and not run.quiet:
        _print_highest(run, data, score, marked, top)


def _score_large(run: Run, false_alarms: float) -> None:
    """The same for a file too large for memory, whose rows are scored and written in pieces."""
    if run.page is not None:
        raise UsageError("--report needs all rows in memory; leave it out for a file this large")
    train = run.read_train(new_columns=True)
    model, marked = _fitted(run, train, false_alarms), 0

    def write(data: Data, output: Output) -> None:
        nonlocal marked
        score = -model.score_samples(data.values)
        is_anomaly = score > -model.offset_
        marked += int(is_anomaly.sum())
        data.write_columns({"score": score, "is_anomaly": is_anomaly}, output)

    count = run.write_pieces(train, write)
    run.note(f"{counted(marked, 'row')} marked as anomalies, {marked / count:.1%}")


def _fitted(run: Run, train: Data, false_alarms: float) -> Any:
    from mercer.estimators import KernelNovelty

    return run.fit(
        KernelNovelty(
            kernel=run.kernel,
            false_alarm_rate=false_alarms,
            scale_columns=run.scale_columns(train),
            random_state=run.seed,
        ),
        train.values,
    )


def _print_highest(run: Run, data: Data, score: Array, marked: Array, top: int) -> None:
    order = np.argsort(-score, kind="stable")[:top].tolist()
    labels = [data.label(i) for i in order]
    width = max(map(len, labels)) + 2
    run.say("\nhighest scores" + (" (* anomaly)" if marked[order].any() else ""))
    for label, i in zip(labels, order, strict=True):
        star = "*" if marked[i] else " "
        run.say(
            f"  {label:<{width}}{score[i]:<10.4g} {star} {data.describe(data.values[i])}".rstrip()
        )
