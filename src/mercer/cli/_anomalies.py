"""`mercer anomalies`."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import click
import numpy as np

from mercer._array import Array
from mercer.cli._data import Data, check_complete
from mercer.cli._job import Job, job_command, shortened
from mercer.cli._problems import UsageProblem

EXAMPLES = (
    ("score the rows of a table, and mark the strangest twentieth",
     "mercer anomalies measured.csv -o scored.csv"),
    ("list the ten images that are least like the others",
     "mercer anomalies scans -o scores.csv --top 10"),
    ("score new rows by what earlier ones looked like",
     "mercer anomalies new.csv -o alarms.csv --train measured.csv --share 0.01"),
)  # fmt: skip


@job_command(
    EXAMPLES,
    click.option("--share", type=float, default=0.05, show_default=True, metavar="SHARE",
                 help="The share of the rows that are learned from to take for anomalies, at most "
                 "0.5."),
    click.option("--top", type=int, default=5, show_default=True, metavar="N",
                 help="How many of the strangest rows to print."),
)  # fmt: skip
def anomalies(job: Job, share: float, top: int) -> None:
    """Score how far each row of INPUT is from what rows have in common.

    INPUT is a table (.csv, .tsv, .parquet), an array (.npy, .npz) or a folder of images of one
    size. Tables are written with two more columns, score and is_anomaly; for arrays and images
    OUTPUT is a .csv file with a line for each row or image (for arrays also .npz).

    The score is the squared distance of a row to the principal subspace of the kernel: the
    larger, the stranger.
    """
    if not 0.0 < share <= 0.5:
        raise UsageProblem(f"--share {share:g}: give a share above 0 and at most 0.5")
    if top < 0:
        raise UsageProblem(f"--top {top}: give a number of at least 0")
    data, train = job.read(scores=True)
    check_complete(data)
    check_complete(train)
    scaling = job.scaling(train)
    model = job.fit(_model(job, share), scaling.there(train.values), train.row_word)
    score = np.empty(len(data.values))
    strange = np.empty(len(data.values), dtype=bool)
    for rows in job.in_blocks(data, "scoring"):
        Z = scaling.there(data.values[rows])
        score[rows] = -model.score_samples(Z)
        strange[rows] = model.predict(Z) < 0
    data.write_scores(score, strange, job.output)
    job.say("scored", data, _facts(model, data, score, strange))
    _list_strangest(job, data, score, strange, top)


def _model(job: Job, share: float) -> Any:
    novelty = import_module("mercer.estimators._novelty").KernelNovelty
    return novelty(contamination=share, kernel=job.kernel, random_state=job.seed)


def _facts(model: Any, data: Data, score: Array, strange: Array) -> dict[str, str]:
    count = int(strange.sum())
    return {
        "anomalies": f"{count:,} {data.row_word}, {count / len(score):.1%}",
        "threshold": f"{-model.offset_:.4g}; the median score is {np.median(score):.4g}",
        "kernel": shortened(model.kernel_),
    }


def _list_strangest(job: Job, data: Data, score: Array, strange: Array, top: int) -> None:
    """The rows with the largest scores, strangest first."""
    if job.quiet or top == 0:
        return
    order = np.argsort(-score, kind="stable")[:top].tolist()
    labels = [data.label(i) for i in order]
    width = max(map(len, labels)) + 2
    click.echo("\nmost anomalous, with scores" + (" (* marked):" if strange[order].any() else ":"))
    for label, i in zip(labels, order, strict=True):
        click.echo(f"  {label:<{width}}{score[i]:<10.4g}{'*' if strange[i] else ''}".rstrip())
