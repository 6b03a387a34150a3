"""`mercer test`: what the functions of the library find, in words or as JSON, and exit codes."""

import json

import numpy as np
import pytest
from scipy import stats

import mercer as mc

from .conftest import write_images
from .test_errors import refused

SHORT = ["--permutations", "99"]


def numbers(folder, name):
    """The columns x and y of a file."""
    return np.genfromtxt(folder / name, delimiter=",", skip_header=1, usecols=(-2, -1))


def assert_same(found, expected):
    for name, value in expected.to_dict().items():
        if isinstance(value, float):
            assert found[name] == pytest.approx(value, rel=1e-9), name
        elif name != "kernel":  # its digits
            assert found[name] == value, name


@pytest.fixture
def tables(tmp_path, rng):
    """a.csv and b.csv differ, a.csv and same.csv do not; y is a function of x."""
    shift = {"a": 0.0, "b": 1.5, "same": 0.0}
    for name, mean in shift.items():
        x = rng.normal(size=60)
        rows = [f"{i},{u:.5f},{100 * (u**2 + mean):.4f}" for i, u in enumerate(x, 7)]
        (tmp_path / f"{name}.csv").write_text("id,x,y\n" + "\n".join(rows) + "\n")
    return tmp_path


def test_two_samples_as_the_library_tests_them(run, tables):
    X, Y = numbers(tables, "a.csv"), numbers(tables, "b.csv")
    spread = np.concatenate([X, Y]).std(axis=0)
    expected = mc.mmd_test(X / spread, Y / spread, n_permutations=99, random_state=5)
    ran = run("test", "two-sample", "a.csv", "b.csv", "--json", "--seed", "5", *SHORT)
    found = json.loads(ran.out)
    assert (ran.code, ran.err) == (0, "")
    assert_same(found, expected)
    assert (found["columns"], found["inputs"]) == (["x", "y"], ["a.csv", "b.csv"])
    assert (found["columns_scaled"], found["level"], found["rejected"]) == (True, 0.05, True)


def test_two_samples_in_words(run, tables):
    ran = run("test", "two-sample", "a.csv", "b.csv", *SHORT)
    question, *lines = ran.out.splitlines()
    facts = dict(line.split("  ", 1) for line in lines)
    facts = {name: text.strip() for name, text in facts.items()}
    assert question == "Do the samples come from the same distribution?"
    assert facts["p-value"] == "0.01 (permutation, 99 draws, seed 0, 20 kernels combined)"
    assert (facts["rows"], facts["columns"]) == ("60 and 60", "x, y")
    assert facts["statistic"].endswith("of columns with unit variance")
    low, high = (float(facts[f"more of {name}.csv near"].split("y ")[1]) for name in "ab")
    assert low < high
    same = run("test", "two-sample", "a.csv", "same.csv", *SHORT).out
    assert "near" not in same  # nothing to be seen there but chance


def test_options_reach_the_tests(run, tables):
    X, Y = numbers(tables, "a.csv"), numbers(tables, "same.csv")
    words = ["test", "two-sample", "a.csv", "same.csv", "--json", *SHORT]
    options = {"n_permutations": 99, "random_state": 0}
    kernel = mc.Gaussian(2.0)
    cases = {
        ("--kernel", "gaussian:2"): mc.mmd_test(X, Y, kernel=kernel, **options),
        ("--kernel", "median"): mc.mmd_test(X, Y, kernel="median", **options),
        ("--no-scale", "--paired"): mc.mmd_test(X, Y, paired=True, **options),
        ("--no-scale", "--dependence", "5"): mc.mmd_test(X, Y, dependence=5.0, **options),
        ("--columns", "y", "--no-scale"): mc.mmd_test(X[:, 1:], Y[:, 1:], **options),
    }
    for added, expected in cases.items():
        found = json.loads(run(*words, *added).out)
        assert_same(found, expected)
        assert found["columns_scaled"] is False


def test_exit_codes(run, tables):
    words = ["test", "two-sample", "a.csv"]
    assert run(*words, "b.csv", *SHORT).code == 0
    assert run(*words, "b.csv", "--fail", *SHORT).code == 3
    assert run(*words, "b.csv", "--fail", "--level", "0.001", *SHORT).code == 0
    assert run(*words, "same.csv", "--fail", *SHORT).code == 0
    quiet = run(*words, "b.csv", "--fail", "-q", *SHORT)
    assert (quiet.code, quiet.out, quiet.err) == (3, "", "")


def test_a_process_exits_with_3(spawn, tables):
    ran = spawn("test", "two-sample", "a.csv", "b.csv", "--fail", *SHORT)
    assert (ran.code, ran.err) == (3, "")


def test_independence(run, tables):
    Z = numbers(tables, "a.csv")
    Z /= Z.std(axis=0)
    expected = mc.hsic_test(Z[:, :1], Z[:, 1:], n_permutations=99, random_state=0)
    words = ["test", "independence", "a.csv", "--x", "x", "--y", "y", *SHORT]
    found = json.loads(run(*words, "--json").out)
    assert_same(found, expected)
    assert (found["x"], found["y"], found["pvalue"]) == (["x"], ["y"], 0.01)
    assert "Are the variables independent?\np-value      0.01" in run(*words).out
    assert run(*words, "--fail", "--kernel", "gaussian:1").code == 3
    both = run("test", "independence", "a.csv", "--x", "id,x", "--y", "y", "--json", *SHORT)
    assert json.loads(both.out)["x"] == ["id", "x"]


def test_fit(run, tables):
    x = numbers(tables, "a.csv")[:, :1]
    words = ["test", "fit", "a.csv", "--columns", "x", "--json", *SHORT]
    for text, law in {"norm": stats.norm(), "t:5,0.5,2": stats.t(5, 0.5, 2)}.items():
        expected = mc.ksd_test(x, law, n_permutations=99, random_state=0)
        found = json.loads(run(*words, "--to", text).out)
        assert found["pvalue"] == expected.pvalue
        assert found["to"] == [text]
    told = run("test", "fit", "a.csv", "-c", "x,y", "--to", "norm", "--to", "norm:100,9", *SHORT)
    worst = int(told.out.split("fit worst    line ")[1].split()[0])
    assert 2 <= worst <= 61


def test_arrays_images_and_pipes(run, tables, rng, monkeypatch):
    np.save("a.npy", rng.normal(size=(30, 3)))
    np.save("b.npy", rng.normal(size=(20, 3)))
    found = json.loads(run("test", "two-sample", "a.npy", "b.npy", "--json", *SHORT).out)
    assert (found["rows"], found["columns"]) == ([30, 20], [])
    for name in ("left", "right"):
        write_images(tables / name, rng, 12)
    found = json.loads(run("test", "two-sample", "left", "right", "--json", *SHORT).out)
    assert (found["rows"], found["columns_scaled"]) == ([12, 12], False)
    with (tables / "a.csv").open() as file:
        monkeypatch.setattr("sys.stdin", file)
        ran = run("test", "independence", "-", "--x", "x", "--y", "y", *SHORT)
    assert (ran.code, ran.err) == (0, "")


@pytest.mark.parametrize(
    ("words", "code", "parts"),
    [
        (["two-sample", "-", "-"], 2, ["cannot both be standard input"]),
        (["two-sample", "a.csv", "bb.csv"], 2, ["bb.csv does not exist"]),
        (["two-sample", "a.csv", "short.csv", "--paired"], 1, ["60 rows", "pairs need both"]),
        (["two-sample", "a.csv", "gaps.csv"], 1, ["1 missing value", "leave out the rows"]),
        (["two-sample", "a.csv", "few.csv"], 1, ["1 row", "at least 4"]),
        (["two-sample", "a.csv", "other.csv"], 1, ["no column 'y'"]),
        (["two-sample", "a.csv", "b.csv", "--level", "2"], 2, ["between 0 and 1"]),
        (["two-sample", "a.csv", "b.csv", "--kernel", "gauss"], 2, ["unknown kernel"]),
        (["two-sample", "a.csv", "b.csv", "--dependence", "0"], 2, ["above 0"]),
        (["independence", "a.csv", "--x", "x"], 2, ["Missing option '--y'"]),
        (["independence", "a.csv", "--x", "x", "--y", "z"], 2, ["no column 'z'"]),
        (["independence", "a.csv", "--x", "x", "--y", "x,y"], 2, ["both have the column 'x'"]),
        (["fit", "a.csv", "--to", "nrm"], 2, ["no continuous distribution 'nrm'"]),
        (["fit", "a.csv", "--to", "poisson:3"], 2, ["no continuous distribution"]),
        (["fit", "a.csv", "--to", "gamma"], 2, ["the form gamma:a,loc,scale"]),
        (["fit", "a.csv", "--to", "norm:0,one"], 2, ["the form norm:loc,scale"]),
        (["fit", "a.csv", "--to", "norm:0,-1"], 2, ["no parameters of norm"]),
        (["fit", "a.csv", *(["--to", "norm"] * 3)], 2, ["3 times for 2 columns"]),
        (["fit", "a.csv", "--to", "expon"], 1, ["Stein's identity does not hold"]),
        (["fit", "a.csv", "-c", "x", "--to", "gamma:5"], 1, ["the density is zero there"]),
    ],
)
def test_refusals(words, code, parts, run, tables):
    lines = (tables / "b.csv").read_text().splitlines()
    (tables / "short.csv").write_text("\n".join(lines[:40]) + "\n")
    (tables / "few.csv").write_text("\n".join(lines[:2]) + "\n")
    (tables / "gaps.csv").write_text("\n".join([*lines[:40], "99,,3.5"]) + "\n")
    (tables / "other.csv").write_text("\n".join(line.rsplit(",", 1)[0] for line in lines) + "\n")
    refused(run("test", *words), code, *parts)


def test_samples_of_equal_names_are_told_apart(run, tables):
    for name in ("a", "b"):
        (tables / f"in-{name}").mkdir()
        (tables / f"{name}.csv").rename(tables / f"in-{name}" / "t.csv")
    ran = run("test", "two-sample", "in-a/t.csv", "in-b/t.csv", *SHORT)
    assert "more of in-a/t.csv near" in ran.out
    assert "more of in-b/t.csv near" in ran.out


def test_distributions_go_to_columns_in_the_order_they_are_named(run, tmp_path, rng):
    X = rng.normal([0.0, 50.0], size=(100, 2))
    np.savetxt(tmp_path / "t.csv", X, delimiter=",", header="x,y", comments="")
    words = ["test", "fit", "t.csv", "--columns", "y,x", "--to", "norm:50,1", "--to", "norm:0,1"]
    ran = run(*words, *SHORT, "--json")
    found = json.loads(ran.out)
    assert found["columns"] == ["y", "x"]
    assert found["pvalue"] > 0.05


def test_without_a_test_one_sentence(run):
    ran = run("test")
    assert (ran.code, ran.err) == (2, "mercer: Missing command; see mercer test --help\n")
