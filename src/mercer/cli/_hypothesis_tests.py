"""The commands `mercer test two-sample`, `mercer test independence` and `mercer test fit`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from mercer._array import Array
from mercer._chunks import Chunks, LocalChunks
from mercer._words import counted, listed
from mercer.cli._data import Data, Selection, check_rows
from mercer.cli._files import PIPE, Output, Source
from mercer.cli._large import refuse_whole
from mercer.cli._options import (
    CHECKPOINT,
    COLUMNS,
    CONTROLS,
    READING,
    REPORT,
    SCALE,
    choose_report,
    command,
    format_examples,
    number,
    parse_kernel,
)
from mercer.cli._run import check_readable, read_one, write_report
from mercer.cli._terminal import DataError, Progress, UsageError, echo, echo_facts
from mercer.cli._text import as_float
from mercer.io import checkpoint
from mercer.kernels._names import rounded

if TYPE_CHECKING:
    from mercer.methods import TestResult

REJECTED = 3  # exit code
_INCOMPLETE = "a test needs complete rows: leave out the rows with missing values"

TWO_SAMPLE = (
    ("ask whether two files hold rows of the same distribution",
     "mercer test two-sample measured.csv new.csv"),
    ("stop a script if they do not, and keep the numbers",
     "mercer test two-sample measured.csv new.csv --json --fail --level 0.001"),
    ("compare the same cases before and after, by two columns",
     "mercer test two-sample measured.csv after.csv --paired --columns x,y"),
)  # fmt: skip
INDEPENDENCE = (
    ("ask whether two columns of a table depend on each other in any way",
     "mercer test independence measured.csv --x x --y y"),
    ("compare groups of columns of a time series",
     "mercer test independence measured.csv --x id,x --y y --dependence 20"),
)  # fmt: skip
FIT = (
    ("ask whether a column is normal with mean 0 and standard deviation 1",
     "mercer test fit measured.csv --columns x --to norm:0,1"),
    ("give each column its distribution",
     "mercer test fit measured.csv --to norm:0,0.7 --to t:5,0,7"),
)  # fmt: skip
EXAMPLES = (TWO_SAMPLE[0], INDEPENDENCE[0], FIT[0])

_kernel = click.option(
    "--kernel", default="auto", show_default=True, metavar="KERNEL",
    callback=lambda *given: given[-1] if given[-1] == "median" else parse_kernel(given[-1]),
    help="auto combines kernels at several bandwidths, so that none has to be chosen; median is "
    "one Gaussian of the median distance of rows; or a kernel such as gaussian:2.")  # fmt: skip
_CONTROLS = [
    click.option("--dependence", metavar="N", callback=number("a number above 0", lambda x: x > 0),
                 help="Rows are a time series: N rows apart they are as good as independent. The "
                 "p-value is approximate then."),
    click.option("--permutations", "n_permutations", type=click.IntRange(1), default=2000,
                 show_default=True, metavar="N",
                 help="Random draws. The smallest possible p-value is 1 / (N + 1)."),
    click.option("--seed", default=0, show_default=True, type=click.IntRange(0), metavar="N",
                 help="Seed of the random draws."),
    click.option("--json", "as_json", is_flag=True, help="Print the result as JSON."),
    click.option("--fail", is_flag=True, help="Exit with code 3 if the p-value is at most LEVEL."),
    click.option("--level", default="0.05", show_default=True, metavar="LEVEL",
                 callback=number("a number between 0 and 1", lambda x: 0.0 < x < 1.0),
                 help="What --fail compares the p-value with."),
    CHECKPOINT,
    REPORT,
    *CONTROLS,
]  # fmt: skip


def _input(name: str = "source") -> Any:
    return click.argument(
        name, metavar="INPUT" if name == "source" else name.upper(),
        type=click.Path(path_type=Path),
    )  # fmt: skip


@click.group(
    epilog=format_examples(EXAMPLES),
    short_help="Do samples differ, do columns depend, does a sample fit?",
    no_args_is_help=False,
)
def test() -> None:
    """Kernel tests: do samples differ, do columns depend on each other, does a sample fit a model?

    A small p-value says that such data would be rare if samples had the same distribution, columns
    were independent, or the model were true. A large one does not show that they are.
    """


@command(
    TWO_SAMPLE, _input("a"), _input("b"), *COLUMNS,
    click.option("--paired", is_flag=True,
                 help="Row i of A belongs to row i of B: only rows of a pair are exchanged."),
    _kernel, SCALE, *READING, *_CONTROLS,
)  # fmt: skip
def two_sample(a: Path, b: Path, paired: bool, kernel: Any, scale: bool, **given: Any) -> int:
    """Test whether A and B hold rows of the same distribution.

    A and B are tables (.csv, .tsv, .csv.gz, .xlsx, .parquet), arrays (.npy, .npz), folders of
    images of the same size, or - for standard input. Columns are those of A.

    Any difference of the distributions is looked for. The p-value is exact: rows of both files are
    exchanged at random, and the statistic (the maximum mean discrepancy) is computed each time.
    """
    from mercer.methods import mmd_test

    run, selection = _Asked.of(given)
    if a == b == PIPE:
        raise UsageError("A and B cannot both be standard input")
    first = run.read(Source(a), selection)
    second = run.read(Source(b), replace(selection, like=first))
    if first.size != second.size:
        raise DataError(f"rows of {a} have {first.size}, those of {b} {second.size}")
    n = len(first.values)
    if paired and n != len(second.values):
        raise DataError(f"{a} has {counted(n, 'row')}, {b} {len(second.values):,}; pairs need both")
    scale = scale and _none(kernel) is None and not first.same_unit
    samples = _scaled([first.values, second.values], scale)
    result = run.test(mmd_test, *samples, kernel=_none(kernel), paired=paired)
    where = {}
    witness: Any = result.witness
    if result.pvalue <= run.level:
        values = np.concatenate([witness(sample) for sample in samples])
        short = a.name != b.name  # else their folders tell them apart
        for source, i in ((a, int(np.argmax(values))), (b, int(np.argmin(values)))):
            row = first.row(i) if i < n else second.row(i - n)
            if told := first.describe(row):
                where[f"more of {source.name if short else source} near"] = told
    return run.report(result, where, scale, columns=_names(first), inputs=(a, b))


@command(
    INDEPENDENCE, _input(),
    click.option("--x", multiple=True, required=True, metavar="A,B", help="Columns of the first."),
    click.option("--y", multiple=True, required=True, metavar="C", help="Columns of the second."),
    _kernel, SCALE, *READING, *_CONTROLS,
)  # fmt: skip
def independence(
    source: Path, x: tuple[str, ...], y: tuple[str, ...], kernel: Any, scale: bool, **given: Any
) -> int:
    """Test whether columns of INPUT are independent of others.

    INPUT is a table (.csv, .tsv, .csv.gz, .xlsx, .parquet) or - for standard input.

    Any dependence is looked for, not only lines. The p-value is exact: rows of one group of columns
    are permuted at random, and the statistic (the Hilbert-Schmidt independence criterion) is
    computed each time.
    """
    from mercer.methods import hsic_test

    run, selection = _Asked.of(given)
    file = Source(source)
    first = run.read(file, replace(selection, columns=x))
    second = replace(run, quiet=True).read(file, replace(selection, columns=y))
    if both := [name for name in first.names if name in second.names]:
        raise UsageError(f"--x and --y both have the column {both[0]!r}")
    scale = scale and _none(kernel) is None
    X, Y = (_scaled([d.values], scale)[0] for d in (first, second))
    pair = None if _none(kernel) is None else kernel if kernel == "median" else (kernel, kernel)
    result = run.test(hsic_test, X, Y, kernel=pair)
    return run.report(result, {}, scale, x=first.names, y=second.names, inputs=(source,))


@command(
    FIT, _input(), *COLUMNS,
    click.option("--to", multiple=True, required=True, metavar="NAME[:NUMBERS]",
                 help="A continuous distribution of scipy.stats and its parameters in the order of "
                 "SciPy (shapes, loc, scale): norm:MEAN,SD, t:DF,LOC,SCALE, gamma:SHAPE,0,SCALE. "
                 "One for all columns, or one per column, in the order of --columns (columns are "
                 "then independent)."),
    _kernel, *READING, *_CONTROLS,
)  # fmt: skip
def fit(source: Path, to: tuple[str, ...], kernel: Any, **given: Any) -> int:
    """Test whether rows of INPUT come from a distribution.

    INPUT is a table (.csv, .tsv, .csv.gz, .xlsx, .parquet), an array (.npy, .npz) or - for
    standard input.

    The parameters must be known beforehand: if they were estimated from the same rows, the p-value
    is too large. The statistic is the kernel Stein discrepancy. Its p-value comes from a wild
    bootstrap, which is right for large samples, not exact.
    """
    from mercer.methods import ksd_test

    run, selection = _Asked.of(given)
    models = [_model(text) for text in to]
    data = run.read(Source(source), selection)
    dim = data.values.shape[1]
    if len(models) not in (1, dim):
        raise UsageError(f"--to was given {len(models)} times for {data.size}; give one or {dim}")
    models = models * dim if len(models) == 1 else models
    result = run.test(ksd_test, data.values, models, kernel=_none(kernel))
    worst = np.argsort(-np.asarray(result.contributions), kind="stable")[:3].tolist()
    where = {"fit worst": "; ".join(f"{data.label(i)} ({data.describe(data.row(i))})"
                                    for i in worst)}  # fmt: skip
    return run.report(result, where, False, columns=_names(data), to=to, inputs=(source,))


for _command in (two_sample, independence, fit):
    test.add_command(_command)


@dataclass(frozen=True)
class _Asked:
    """The options that all tests share."""

    n_permutations: int
    seed: int
    dependence: float | None
    as_json: bool
    fail: bool
    level: float
    state: Path | None
    page: Path | None
    force: bool
    quiet: bool

    @classmethod
    def of(cls, given: dict[str, Any]) -> tuple[_Asked, Selection]:
        """The options of the test, and those of reading."""
        names = {f.name for f in fields(cls)}
        reading = {name: value for name, value in given.items() if name not in names}
        return cls(**{name: given[name] for name in names}), Selection(**reading)

    def read(self, source: Source, selection: Selection) -> Data:
        check_readable(source)
        if self._page is not None:
            self._page.check([source.path])
        data = read_one(source, selection, self.quiet, True)
        check_rows(data, at_least=4, complete=True, cure=_INCOMPLETE)
        if data.in_pieces:
            refuse_whole(self.page, "--report")
        return data

    @property
    def _page(self) -> Output | None:
        return choose_report(self.page, self.force)

    def test(self, function: Any, *data: Any, **options: Any) -> TestResult:
        if self.dependence is not None:
            options["dependence"] = self.dependence
        keeping: AbstractContextManager[Any] = nullcontext()
        if self.state is not None:  # outside of it Ctrl-C ends a test at once
            keeping = checkpoint(self.state)
        with Progress(self.quiet).waiting("testing"), keeping:
            result: TestResult = function(
                *data, n_permutations=self.n_permutations, random_state=self.seed, **options
            )
        return result

    def report(
        self, result: TestResult, where: dict[str, str], scaled: bool, **about: Sequence[Any]
    ) -> int:
        """Print the result; return the exit code."""
        if self._page is not None:
            unit = ", in standard deviations" if scaled else ""
            names = [f"{name}{unit}" for name in about.get("columns", ())]
            write_report(self._page, result, names=names or None)
        rejected = result.pvalue <= self.level
        if self.as_json:
            shown = {name: [str(part) for part in parts] for name, parts in about.items()}
            row = {**result.to_dict(), **shown, "columns_scaled": scaled}
            row |= {"level": self.level, "rejected": rejected}
            echo(json.dumps(row | ({"where": where} if where else {}), indent=1, allow_nan=False))
        elif not self.quiet:
            low, high = result.effect_interval
            echo(result.question)
            echo_facts(
                {
                    "p-value": f"{result.pvalue:.4g} ({result.how})",
                    "rows": " and ".join(f"{n:,}" for n in result.n),
                    **{name: listed(told) for name, told in about.items()
                       if name != "inputs" and told},
                    "statistic": f"{result.statistic:.4g} with {rounded(result.kernels[0])}"
                    + (" of columns with unit variance" if scaled else ""),
                    "effect size": f"{result.effect_size:.3g}, 95 % interval {low:.3g} to "
                    f"{high:.3g}",
                    **where,
                    **({"report": str(self.page)} if self.page else {}),
                }
            )  # fmt: skip
        return REJECTED if self.fail and rejected else 0


def _names(data: Data) -> tuple[str, ...]:
    return data.names if data.has_names else ()


def _none(kernel: Any) -> Any:
    return None if isinstance(kernel, str) and kernel == "auto" else kernel


def _scaled(samples: list[Any], scale: bool) -> list[Any]:
    """Samples whose columns together have unit variance, if asked for; constant ones are left."""
    from mercer.methods._pieces import column_moments

    if not scale:
        return samples
    if any(isinstance(rows, Chunks) for rows in samples):
        parts = [rows if isinstance(rows, Chunks) else LocalChunks.of(rows) for rows in samples]
        both: Any = parts[0] if len(parts) == 1 else parts[0].concat(parts[1])
        spread = np.sqrt(column_moments(both)[2])
    else:
        spread = np.concatenate(samples).std(axis=0)
    unit = np.where(spread > 0, spread, 1.0)
    return [
        rows.mapped(_divided, unit, tail=rows.tail, dtype=rows.dtype)
        if isinstance(rows, Chunks)
        else rows / unit
        for rows in samples
    ]


def _divided(rows: Array, unit: Array) -> Array:
    return np.asarray(rows / unit, dtype=rows.dtype)


def _model(text: str) -> Any:
    """A distribution of scipy.stats such as `gamma:5,0,2`."""
    from scipy import stats

    name, _, rest = text.strip().partition(":")
    law = getattr(stats, name, None)
    if not isinstance(law, stats.rv_continuous):
        raise UsageError(
            f"--to {text}: scipy.stats has no continuous distribution {name!r}; norm, t, gamma, "
            "lognorm, beta and logistic are some"
        )
    values = [as_float(part) for part in rest.split(",")] if rest else []
    shapes = [part.strip() for part in law.shapes.split(",")] if law.shapes else []
    form = f"{name}:{','.join([*shapes, 'loc', 'scale'])}"
    if not len(shapes) <= len(values) <= len(shapes) + 2 or not np.isfinite(values).all():
        raise UsageError(
            f"--to {text} does not have the form {form}; loc and scale may be left out"
        )
    frozen = law(*values)
    if not np.isfinite(frozen.median()):
        raise UsageError(f"--to {text}: these are no parameters of {form}")
    return frozen
