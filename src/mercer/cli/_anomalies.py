"""The command `mercer anomalies`."""

from __future__ import annotations

from typing import Any, NamedTuple

import click
import numpy as np

from mercer._words import counted
from mercer.cli._data import Data
from mercer.cli._files import Output
from mercer.cli._options import data_command, number
from mercer.cli._run import Run
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
    data, train = run.read(new_columns=True, in_pieces=True)
    model = _fitted(run, train, false_alarms)
    count, median, highest = 0, 0.0, list[_Scored]()

    def write(rows: Data, output: Output) -> None:
        nonlocal count, median
        score = -run.map_rows(model.score_samples, rows.values, "scoring")
        marked = score > -model.offset_
        rows.write_columns({"score": score, "is_anomaly": marked}, output)
        count, median = count + int(marked.sum()), float(np.median(score))
        order = np.argsort(-score, kind="stable")[:top].tolist()
        found = [_Scored(score[i], rows.label(i), marked[i], rows.describe(rows.values[i]))
                 for i in order]  # fmt: skip
        highest[:] = sorted([*highest, *found], key=lambda one: -one.score)[:top]

    run.write(data, train, write)
    run.write_report(model, data)
    facts = {
        "anomalies": f"{counted(count, data.row_word)}, {count / len(data.values):.1%}",
        "threshold": f"{-model.offset_:.4g}"
        + ("" if data.in_pieces else f"; the median score is {median:.4g}"),
        "kernel": rounded(model.kernel_),
    }
    run.report("scored", data, facts)
    if highest and not run.quiet:
        _print_highest(run, highest)


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


class _Scored(NamedTuple):
    score: float
    label: str
    is_anomaly: bool
    values: str


def _print_highest(run: Run, highest: list[_Scored]) -> None:
    width = max(len(one.label) for one in highest) + 2
    any_marked = any(one.is_anomaly for one in highest)
    run.say("\nhighest scores" + (" (* anomaly)" if any_marked else ""))
    for one in highest:
        star = "*" if one.is_anomaly else " "
        run.say(f"  {one.label:<{width}}{one.score:<10.4g} {star} {one.values}".rstrip())
