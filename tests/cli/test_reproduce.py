"""`mercer reproduce`."""

import pytest

pytest.importorskip("matplotlib")

from mercer.reproduce import EXPERIMENTS


def test_writes_a_figure_a_table_a_page_and_an_index(run, tmp_path):
    ran = run("reproduce", "surrogate", "subgradient", "-o", "out")
    assert (ran.code, ran.err) == (0, "")
    *lines, last = ran.out.splitlines()
    assert lines[0].split() == [
        "surrogate",
        "(Fig.",
        "5)",
        "reproduced",
        "after",
        "a",
        "correction",
    ]
    assert last.startswith("2 experiments (")
    names = {"index.md", "index.html", "index.csv"}
    names |= {f"{n}.{s}" for n in ("surrogate", "subgradient") for s in ("png", "csv", "md")}
    assert {path.name for path in (tmp_path / "out").iterdir()} == names
    assert (tmp_path / "out" / "surrogate.png").read_bytes().startswith(b"\x89PNG")


def test_results_are_the_same_each_time(run, tmp_path):
    for folder in ("one", "two"):
        assert run("reproduce", "subgradient", "-o", folder, "-q").out == ""
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()


def test_list_has_names_and_times(run):
    ran = run("reproduce", "--list")
    lines = ran.out.splitlines()
    assert [line.split()[0] for line in lines] == [e.name for e in EXPERIMENTS]
    assert all(" s" in line or " min" in line for line in lines)
    assert "centroids (Fig. 3)" in ran.out


@pytest.mark.parametrize("data", [(), ("--data", ".")])
def test_missing_data_are_skipped_and_say_where_to_get_them(run, tmp_path, data):
    ran = run("reproduce", "faithful", "-o", "out", *data)
    assert ran.code == 0
    assert ran.out.splitlines()[0].split()[-1] == "skipped"
    assert ran.err.startswith("note: faithful.csv is missing: Old Faithful: write")
    assert "skipped" in (tmp_path / "out" / "index.md").read_text()
    assert not (tmp_path / "out" / "faithful.png").exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("reproduce",), "name experiments (--list lists them), or add --all"),
        (("reproduce", "centroid", "-o", "out"), "did you mean centroids?"),
        (("reproduce", "no", "-o", "out"), "there is no experiment 'no'; there are centroids"),
        (("reproduce", "surrogate"), "missing option -o FOLDER"),
        (("reproduce", "surrogate", "--all", "-o", "out"), "not both"),
    ],
)
def test_wrong_usage(run, tmp_path, words, sentence):
    ran = run(*words)
    assert ran.code == 2
    assert sentence in ran.err
    assert not (tmp_path / "out").exists()


def test_existing_folders_are_kept_without_force(run, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "notes.txt").write_text("mine")
    ran = run("reproduce", "subgradient", "-o", "out")
    assert ran.code == 2
    assert "--force" in ran.err
    assert run("reproduce", "subgradient", "-o", "out", "--force").code == 0
    assert (tmp_path / "out" / "notes.txt").read_text() == "mine"
