"""`mercer anomalies`."""

from __future__ import annotations

from typing import Any

import click
import numpy as np

from mercer._array import Array
from mercer.cli._data import Data, check_complete, check_varies
from mercer.cli._job import Job, components_option, job_command, parse_components, shortened
from mercer.cli._problems import UsageProblem, counted

EXAMPLES = (
    ("score the rows of a table, and mark the strange ones",
     "mercer anomalies measured.csv -o scored.csv"),
    ("list the ten images that are least like the others",
     "mercer anomalies scans -o scores.csv --top 10"),
    ("score new rows by what earlier ones looked like",
     "mercer anomalies new.csv -o alarms.csv --train measured.csv --share 0.01"),
)  # fmt: skip


@job_command(
    EXAMPLES,
    click.option("--share", default="0.05", show_default=True, metavar="SHARE",
                 help="The score beyond which rows are marked is that of this share of the rows "
                 "that are learned from, at most 0.5; auto takes q3 + 1.5 (q3 - q1), with the "
                 "quartiles q1 and q3 of their scores."),
    click.option("--top", type=int, default=5, show_default=True, metavar="N",
                 help="How many of the strangest rows to print."),
    components_option("By default the number that predicts rows best which are left out."),
)  # fmt: skip
def anomalies(job: Job, share: str, top: int, components: str | None) -> None:
    """Score how far each row of INPUT is from what rows have in common.

    INPUT is a table (.csv, .tsv, .parquet), an array (.npy, .npz) or a folder of images of one
    size. Tables are written with two more columns, score and is_anomaly; for arrays and images
    OUTPUT is a .csv file with a line for each row or image (for arrays also .npz).

    The score is the squared distance of a row to the principal subspace of the kernel: the
    larger, the stranger.
    """
    kept = parse_components(components)
    marked = _share(share)
    if top < 0:
        raise UsageProblem(f"--top {top}: give a number of at least 0")
    data, train = job.read(scores=True)
    check_complete(data)
    check_complete(train)
    check_varies(train)
    scaling = job.scaling(train)
    model = job.fit(_model(job, marked, kept), train, scaling)
    score = np.empty(len(data.values))
    for rows in job.in_blocks(data, "scoring"):
        score[rows] = -model.score_samples(scaling.there(data.values[rows]))
    strange = score > -model.offset_
    data.write_scores(score, strange, job.output)
    job.say("scored", data, _facts(model, data, score, strange))
    _list_strangest(job, data, score, strange, top)


def _share(text: str) -> Any:
    """A share, or "auto"."""
    if text == "auto":
        return text
    try:
        share = float(text)
    except ValueError:
        share = 0.0
    if not 0.0 < share <= 0.5:
        raise UsageProblem(f"--share {text}: give a share above 0 and at most 0.5, or auto")
    return share


def _model(job: Job, share: Any, kept: float | None) -> Any:
    from mercer.estimators import KernelNovelty

    return KernelNovelty(
        kernel=job.kernel,
        n_components=kept,
        contamination=share,
        random_state=job.seed,
    )


def _facts(model: Any, data: Data, score: Array, strange: Array) -> dict[str, str]:
    count = int(strange.sum())
    return {
        "anomalies": f"{counted(count, data.row_word)}, {count / len(score):.1%}",
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
    click.echo("\nhighest scores" + (" (* anomaly)" if strange[order].any() else ""))
    for label, i in zip(labels, order, strict=True):
        star = "*" if strange[i] else " "
        click.echo(f"  {label:<{width}}{score[i]:<10.4g} {star} {data.glimpse(i)}".rstrip())
