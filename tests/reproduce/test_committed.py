"""What the documentation shows is what the experiments give."""

import csv
import re
from pathlib import Path

import pytest

from mercer.reproduce import EXPERIMENTS, find, run
from tests.reproduce.conftest import FOLDER

NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?|inf")
CHEAP = ["centroids", "spiral-paths", "surrogate", "thresholds", "subgradient"]
WITH_DATA = ["faithful", "accuracies"]
COUNTS = FOLDER.parents[1] / "benchmarks" / "results"  # of the simulations of `power`
LARGEST = 150_000  # bytes of a figure


def assert_same(new: str, old: str) -> None:
    """Equal words, and numbers that differ by no more than instruction sets make a difference."""
    assert NUMBER.sub("#", new) == NUMBER.sub("#", old)
    for a, b in zip(NUMBER.findall(new), NUMBER.findall(old), strict=True):
        assert float(a) == pytest.approx(float(b), rel=0.01, abs=1e-9)


def check(names: list[str], folder: Path, data: Path | None) -> None:
    for outcome in run([find(name) for name in names], folder, data):
        for suffix in ("md", "csv"):
            file = f"{outcome.experiment.name}.{suffix}"
            assert_same((folder / file).read_text("utf-8"), (FOLDER / file).read_text("utf-8"))
        assert (folder / f"{outcome.experiment.name}.png").stat().st_size < LARGEST


def test_cheap_experiments_give_the_tables_that_are_shown(tmp_path):
    check(CHEAP, tmp_path, None)


def test_experiments_with_data_give_the_tables_that_are_shown(tmp_path, data_dir):
    check(WITH_DATA, tmp_path, data_dir)


def test_the_table_of_powers_has_the_counts_of_the_benchmark(tmp_path):
    check(["power"], tmp_path, COUNTS)


@pytest.mark.slow
def test_all_experiments_give_the_tables_that_are_shown(tmp_path, data_dir):
    done = {*CHEAP, *WITH_DATA}
    check([e.name for e in EXPERIMENTS if not e.full and e.name not in done], tmp_path, data_dir)


def test_a_changed_number_or_word_is_noticed():
    assert_same("| ring | 0.5758 | 1e-17 |", "| ring | 0.5759 | 3e-16 |")
    for old in ("| ring | 0.59 | 0 |", "| spiral | 0.5758 | 0 |", "| ring | 0.5758 |"):
        with pytest.raises(AssertionError):
            assert_same("| ring | 0.5758 | 0 |", old)


def test_the_index_has_the_verdict_of_every_page(committed):
    with (FOLDER / "index.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["experiment"] for row in rows] == [e.label for e in EXPERIMENTS]
    for row, experiment in zip(rows, EXPERIMENTS, strict=True):
        ending = f"**Verdict: {row['verdict']}.** {row['reason']}\n"
        assert committed[experiment.name].endswith(ending)
        assert (FOLDER / f"{experiment.name}.png").stat().st_size < LARGEST
        assert f'<img src="{experiment.name}.png"' in (FOLDER / "index.html").read_text("utf-8")


def test_the_documentation_shows_every_experiment():
    text = (FOLDER.parent / "reproductions.md").read_text("utf-8")
    shown = re.findall(r"\{include\} reproductions/(.+)\.md", text)
    assert shown == [e.name for e in EXPERIMENTS]
