"""The command `mercer anomalies`."""

from __future__ import annotations

from typing import Any

import click
import numpy as np

from mercer._array import Array
from mercer.cli._data import Data
from mercer.cli._options import components_option, data_command, number
from mercer.cli._run import Run
from mercer.cli._terminal import counted, rounded

EXAMPLES = (
    ("score the rows of a table and mark anomalies",
     "mercer anomalies measured.csv -o scored.csv"),
    ("score the images of a folder and print the ten most unusual ones",
     "mercer anomalies scans -o scores.csv --top 10"),
    ("compare new rows with earlier ones",
     "mercer anomalies new.csv -o alarms.csv --train measured.csv --share 0.01"),
)  # fmt: skip

_share = number("a share above 0 and at most 0.5, or auto", lambda x: 0.0 < x <= 0.5, ["auto"])


@data_command(
    EXAMPLES,
    click.option("--share", default="0.05", show_default=True, metavar="SHARE", callback=_share,
                 help="Share of the training rows to mark, at most 0.5; this sets the threshold "
                 "for all rows. auto sets it to q3 + 1.5 (q3 - q1), where q1 and q3 are the "
                 "quartiles of the training scores."),
    click.option("--top", type=click.IntRange(0), default=5, show_default=True, metavar="N",
                 help="Number of rows to print, those with the highest scores."),
    components_option("Default: the number that predicts left-out rows best."),
)  # fmt: skip
def anomalies(run: Run, share: Any, top: int, components: float | None) -> None:
    """Score how unusual each row of INPUT is.

    INPUT is a table (.csv, .tsv, .csv.gz, .xlsx, .parquet), an array (.npy, .npz), a folder of
    images of the same size, or - for standard input. OUTPUT is the table with two more columns,
    score and is_anomaly. For arrays and images it is a .csv file with one line per row or image
    (for arrays also .npz).

    The score is the squared distance of a row to the principal subspace in feature space. Higher
    scores are more unusual.
    """
    from mercer.estimators import KernelNovelty

    data, train = run.read(new_columns=True)
    model = KernelNovelty(
        kernel=run.kernel,
        n_components=components,
        contamination=share,
        scale_columns=run.scale_columns(train),
        random_state=run.seed,
    )
    run.fit(model, train.values)
    score = -run.map_rows(model.score_samples, data.values, "scoring")
    marked = score > -model.offset_
    data.write_columns({"score": score, "is_anomaly": marked}, run.output)
    count = int(marked.sum())
    facts = {
        "anomalies": f"{counted(count, data.row_word)}, {count / len(score):.1%}",
        "threshold": f"{-model.offset_:.4g}; the median score is {np.median(score):.4g}",
        "kernel": rounded(model.kernel_),
    }
    run.report("scored", data, facts)
    if top > 0 and not run.quiet:
        _print_highest(run, data, score, marked, top)


def _print_highest(run: Run, data: Data, score: Array, marked: Array, top: int) -> None:
    """Print the rows with the highest scores."""
    order = np.argsort(-score, kind="stable")[:top].tolist()
    labels = [data.label(i) for i in order]
    width = max(map(len, labels)) + 2
    run.say("\nhighest scores" + (" (* anomaly)" if marked[order].any() else ""))
    for label, i in zip(labels, order, strict=True):
        star = "*" if marked[i] else " "
        run.say(
            f"  {label:<{width}}{score[i]:<10.4g} {star} {data.describe(data.values[i])}".rstrip()
        )
