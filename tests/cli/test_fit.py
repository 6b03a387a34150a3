"""`mercer fit` and `mercer predict`: models of tables, and what they predict."""

import shlex

import numpy as np
import pandas as pd
import pytest

import mercer as mc
from mercer.cli import _fit
from mercer.estimators import KernelLogisticRegression, KernelMachine, KernelRidge

from .test_tables import numbers, rows_of


@pytest.fixture
def flowers(tmp_path, rng):
    """Two classes by name and by code, in a table with text."""
    X = rng.normal(size=(60, 2)) + np.repeat([[0.0, 0.0], [3.0, 2.0]], 30, axis=0)
    kinds = np.repeat(["lily", "rose"], 30)
    lines = [f"{x:.4f},{k},{y:.4f},{k == 'rose':d}" for (x, y), k in zip(X, kinds, strict=True)]
    (tmp_path / "flowers.csv").write_text("a,kind,b,code\n" + "\n".join(lines) + "\n")
    return tmp_path


def test_examples_run(run, files):
    for command, examples in (("fit", _fit.FIT), ("predict", _fit.PREDICT)):
        shown = run(command, "--help").out
        assert max(map(len, shown.splitlines())) <= 100
        for what, line in examples:
            assert f"# {what}\n    {line}\n" in shown
            ran = run(*shlex.split(line)[1:])
            assert (ran.code, ran.err) == (0, "")


def test_numbers_are_learned_with_squares(run, files):
    ran = run("fit", "measured.csv", "--target", "y", "-o", "m.mercer", "-C", "5")
    assert ran.code == 0, ran.err
    assert "target         y, numbers" in ran.out
    assert "relative duality gap" in ran.out
    X = numbers(files["folder"] / "measured.csv", "x", "y")
    model = KernelMachine(C=5.0).fit(X[:, :1], X[:, 1])
    assert run("predict", "new.csv", "--model", "m.mercer", "-o", "out.csv").code == 0
    header, *rows = rows_of(files["folder"] / "out.csv")
    assert header == ["id", "name", "x", "y", "predicted"]
    new = numbers(files["folder"] / "new.csv", "x")
    found = np.array([float(row[4]) for row in rows])
    np.testing.assert_allclose(found, model.predict(new), rtol=1e-9)


def test_square_losses_choose_their_penalty(run, files):
    ran = run("fit", "measured.csv", "--target", "y", "-o", "m.mercer")
    assert ran.code == 0, ran.err
    X = numbers(files["folder"] / "measured.csv", "x", "y")
    model = KernelRidge().fit(X[:, :1], X[:, 1])
    assert f"square, penalty {model.penalty_:.3g} by leave-one-out" in ran.out
    found = mc.load(files["folder"] / "m.mercer")["model"]
    np.testing.assert_allclose(found.predict(X[:, :1]), model.predict(X[:, :1]), rtol=1e-9)


@pytest.mark.parametrize("target", ["kind", "code"])
def test_classes_have_probabilities(target, run, flowers):
    other = "code" if target == "kind" else "kind"
    ran = run("fit", "flowers.csv", "--target", target, "--skip", other, "-o", "m.mercer")
    assert ran.code == 0, ran.err
    assert f"{target}, 2 classes" in ran.out
    assert run("predict", "flowers.csv", "--model", "m.mercer", "-o", "out.csv").code == 0
    header, *rows = rows_of(flowers / "out.csv")
    assert header[4:] == ["predicted", "probability"]
    truth = [row[header.index(target)] for row in rows]
    predicted = [row[4] for row in rows]
    assert np.mean(np.array(truth) == np.array(predicted)) > 0.9
    model = mc.load(flowers / "m.mercer")["model"]
    assert isinstance(model, KernelLogisticRegression)
    chance = model.predict_proba(numbers(flowers / "flowers.csv", "a", "b")).max(axis=1)
    np.testing.assert_allclose([float(row[5]) for row in rows], chance, rtol=1e-9)


def test_the_order_of_columns_does_not_matter(run, flowers):
    run("fit", "flowers.csv", "--target", "kind", "--skip", "code", "-o", "m.mercer")
    header, *rows = rows_of(flowers / "flowers.csv")
    swapped = [[row[2], row[0]] for row in [header, *rows]]
    (flowers / "swapped.csv").write_text("\n".join(map(",".join, swapped)) + "\n")
    for name in ("flowers", "swapped"):
        run("predict", f"{name}.csv", "--model", "m.mercer", "-o", f"{name}_out.csv")
    a, b = (rows_of(flowers / f"{name}_out.csv") for name in ("flowers", "swapped"))
    assert [row[-2:] for row in a] == [row[-2:] for row in b]


def test_parquet(run, flowers):
    pytest.importorskip("pyarrow")
    from pyarrow import csv, parquet

    parquet.write_table(csv.read_csv(flowers / "flowers.csv"), flowers / "t.parquet")
    for name in ("flowers.csv", "t.parquet"):
        ran = run("fit", name, "--target", "kind", "--loss", "hinge", "-o", f"{name}.mercer")
        assert ran.code == 0, ran.err
        out = f"{name}.out.parquet"
        assert run("predict", name, "--model", f"{name}.mercer", "-o", out).code == 0
    a, b = (parquet.read_table(f"{n}.out.parquet") for n in ("flowers.csv", "t.parquet"))
    assert a["predicted"].to_pylist() == b["predicted"].to_pylist()


def test_quiet_and_force(run, files):
    words = ("fit", "measured.csv", "--target", "y", "-o", "m.mercer", "-q")
    ran = run(*words)
    assert (ran.code, ran.out, ran.err) == (0, "", "")
    assert run(*words).code == 2
    assert run(*words, "--force").code == 0


@pytest.mark.parametrize(
    ("words", "code", "match"),
    [
        ("fit measured.csv --target z -o m.mercer", 2, "no column 'z'"),
        ("fit measured.csv --target y -o m.csv", 2, ".mercer"),
        ("fit measured.csv --target y -o m.mercer -C 0", 2, "above 0"),
        ("fit measured.csv --target name --loss square -o m.mercer", 2, "needs a target of num"),
        ("fit gaps.csv --target y -o m.mercer", 1, "target 'y' is missing in"),
        ("fit complete.npy --target 1 -o m.mercer", 2, "not a table"),
        ("predict new.csv --model missing.mercer -o o.csv", 2, "does not exist"),
        ("predict new.csv --model kernel.mercer -o o.csv", 1, "not a model that mercer fit wrote"),
        ("predict new.csv --model new.csv -o o.csv", 1, "new.csv"),
        ("predict few.csv --model good.mercer -o o.csv", 2, "no column 'x'"),
        ("predict new.csv --model good.mercer", 2, "-o OUTPUT"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(words, code, match, run, files):
    folder = files["folder"]
    mc.save(mc.Gaussian(1.0), folder / "kernel.mercer")
    (folder / "few.csv").write_text("y\n1.5\n2.5\n")
    run("fit", "measured.csv", "--target", "y", "-o", "good.mercer")
    ran = run(*words.split())
    assert ran.code == code, ran.err
    assert match in ran.err
    assert len(ran.err.splitlines()) == 1


def test_targets_must_be_finite(run, files):
    path = files["folder"] / "inf.csv"
    path.write_text("a,b\n" + "".join(f"{i}.5,{i * i}.25\n" for i in range(9)) + "3.25,inf\n")
    ran = run("fit", "inf.csv", "--target", "b", "-o", "m.mercer")
    assert ran.code == 1
    assert "the target 'b' has 1 huge value, the first is line 11" in ran.err


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_predicted_classes_that_look_like_formulas_are_escaped_in_text(suffix, run, flowers):
    path = flowers / "flowers.csv"
    path.write_text(path.read_text().replace("rose", "=1+1"))
    assert run("fit", "flowers.csv", "--target", "kind", "-o", "m.mercer").code == 0
    assert run("predict", "flowers.csv", "--model", "m.mercer", "-o", "out" + suffix).code == 0
    if suffix == ".csv":
        header, *rows = rows_of(flowers / "out.csv")
        found = {row[header.index("predicted")] for row in rows}
        assert found == {"lily", "'=1+1"}
    else:
        assert set(pd.read_parquet(flowers / "out.parquet")["predicted"]) == {"lily", "=1+1"}


@pytest.mark.filterwarnings("default")
def test_a_class_for_every_row_is_a_note(run, tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n" + "".join(f"{i**1.5},name{i}\n" for i in range(22)))
    ran = run("fit", "t.csv", "--target", "b", "-o", "m.mercer", "--debug")
    assert ran.code == 0, ran.err
    assert ran.err.startswith("note: y has 22 classes in 22 rows; ")
    assert len(ran.err.splitlines()) == 1


def test_columns_of_a_model_are_found_by_name(run, tmp_path, rng):
    X = rng.normal(size=(40, 2)).round(3)
    rows = [f"{a},{b},{2 * a - b:.3f}" for a, b in X.tolist()]
    (tmp_path / "t.csv").write_text("x,y,t\n" + "\n".join(rows) + "\n")
    assert run("fit", "t.csv", "--target", "t", "-o", "m.mercer").code == 0
    swapped = [f"{b},{a}" for a, b in X.tolist()]
    (tmp_path / "new.csv").write_text("y,x\n" + "\n".join(swapped) + "\n")
    assert run("predict", "new.csv", "--model", "m.mercer", "-o", "out.csv").code == 0
    found = numbers(tmp_path / "out.csv", "predicted")[:, 0]
    np.testing.assert_allclose(found, 2 * X[:, 0] - X[:, 1], atol=0.05)


def test_columns_with_equal_names_are_refused(run, tmp_path, rng):
    """The first of them would have been used twice."""
    rows = "".join(f"{a:.3f},{b:.3f},{2 * a - b:.3f}\n" for a, b in rng.normal(size=(40, 2)))
    (tmp_path / "twice.csv").write_text("x,x,t\n" + rows)
    (tmp_path / "once.csv").write_text("x,y,t\n" + rows)
    ran = run("fit", "twice.csv", "--target", "t", "-o", "m.mercer")
    assert (ran.code, "twice.csv has several columns 'x'" in ran.err) == (2, True)
    ran = run("fit", "twice.csv", "--target", "x", "-o", "m.mercer")
    assert (ran.code, "twice.csv has several columns 'x'" in ran.err) == (2, True)
    run("fit", "once.csv", "--target", "t", "-o", "m.mercer", "--columns", "x")
    ran = run("predict", "twice.csv", "--model", "m.mercer", "-o", "out.csv")
    assert ran.code == 1
    assert "twice.csv needs one column of each of these names: x" in ran.err


@pytest.mark.parametrize(
    ("words", "match"),
    [
        ("--target id,x -o m.mercer", "measured.csv has no column 'id,x'; it has id, name, x, y"),
        ("--target y -o -", "a model needs a file; give -o a name that ends in .mercer"),
        ("--target y -o m.mercer --skip id,x --columns x", "no column of measured.csv is left"),
        ("--target y -o m.mercer --max-expansion inf", "--max-expansion inf: give a number"),
        ("--target y -o m.mercer --max-expansion nan", "--max-expansion nan: give a number"),
    ],
)
def test_wrong_use(words, match, run, files):
    ran = run("fit", "measured.csv", *words.split())
    assert (ran.code, match in ran.err) == (2, True), ran.err
