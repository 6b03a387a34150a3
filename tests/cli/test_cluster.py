"""`mercer cluster`: labels in every kind of file, plots, and what it refuses."""

import csv
from pathlib import Path

import numpy as np
import pytest

import mercer as mc


@pytest.fixture
def blobs(tmp_path, rng):
    """Three groups in two columns of different units, with names and text beside them."""
    centres = np.array([[0.0, 0.0], [6.0, 0.0], [0.0, 600.0]])
    truth = np.repeat([0, 1, 2], [30, 20, 10])
    X = centres[truth] + rng.normal(size=(60, 2)) * [1.0, 50.0]
    lines = [f"p{i},{x:.4f},{y:.3f}" for i, (x, y) in enumerate(X)]
    (tmp_path / "blobs.csv").write_text("name,x,y\n" + "\n".join(lines) + "\n")
    np.save(tmp_path / "blobs.npy", X)
    return X, truth


def labels_of(path):
    with Path(path).open() as file:
        return np.array([int(row["cluster"]) for row in csv.DictReader(file)])


def test_a_table_gets_one_more_column(run, blobs):
    _, truth = blobs
    ran = run("cluster", "blobs.csv", "-o", "out.csv")
    assert ran.code == 0
    np.testing.assert_array_equal(labels_of("out.csv"), truth)
    before, after = (Path(name).read_text().splitlines() for name in ("blobs.csv", "out.csv"))
    assert [line.rsplit(",", 1)[0] for line in after] == before
    assert ["clusters", "3"] in [line.split() for line in ran.out.splitlines()]
    assert "30 rows" in ran.out
    assert "x " in ran.out


def test_labels_are_those_of_the_estimator(run, blobs):
    X, _ = blobs
    run("cluster", "blobs.npy", "-o", "out.csv", "--no-scale", "--bandwidth", "40")
    model = mc.MeanShift(bandwidth=40.0).fit(X)
    np.testing.assert_array_equal(labels_of("out.csv"), model.labels_)
    run("cluster", "blobs.npy", "-o", "own.csv", "--bandwidth", "40")  # in the data's own units
    np.testing.assert_array_equal(labels_of("own.csv"), model.labels_)
    run("cluster", "blobs.npy", "-o", "flat.npz", "--no-scale", "--bandwidth", "90", "--flat",
        "--bins", "--min-size", "2")  # fmt: skip
    model = mc.MeanShift("flat", bandwidth=90.0, bin_seeding=True, min_cluster_size=2).fit(X)
    with np.load("flat.npz") as found:
        np.testing.assert_array_equal(found["cluster"], model.labels_)
        np.testing.assert_array_equal(found["array"], X)


def test_parquet(run, blobs):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    X, truth = blobs
    table = pa.table({"x": X[:, 0], "y": X[:, 1], "cluster": ["a"] * 60})
    parquet.write_table(table, "blobs.parquet")
    assert run("cluster", "blobs.parquet", "-o", "out.parquet").code == 0
    found = parquet.read_table("out.parquet")
    assert found.column_names == ["x", "y", "cluster", "cluster_2"]
    np.testing.assert_array_equal(found["cluster_2"].to_numpy(), truth)


def test_images(run, files):
    ran = run("cluster", "scans", "-o", "out.csv")
    assert ran.code == 0, ran.err
    with Path("out.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["file"] for row in rows] == [f"{i:02d}.png" for i in range(30)]


@pytest.mark.parametrize("rule", ["modes", "silverman", "scott", "likelihood", "stable"])
def test_rules(rule, run, blobs):
    ran = run("cluster", "blobs.csv", "-o", "out.csv", "--bandwidth", rule, "--min-size", "5")
    assert (ran.code, ran.err) == (0, "")
    assert labels_of("out.csv").max() == 2


def test_the_default_is_that_of_the_estimator(run, blobs):
    X, _ = blobs
    assert "most significant peaks" in " ".join(run("cluster", "--help").out.split())
    ran = run("cluster", "blobs.csv", "-o", "out.csv")
    model = mc.MeanShift(scale_columns="std").fit(X.round(4))
    np.testing.assert_array_equal(labels_of("out.csv"), model.labels_)
    assert model.significant_.message in ran.out


def test_columns_that_are_not_to_be_scaled(run, blobs):
    X, _ = blobs
    run("cluster", "blobs.npy", "-o", "out.csv", "--no-scale")
    model = mc.MeanShift(scale_columns="none").fit(X)
    np.testing.assert_array_equal(labels_of("out.csv"), model.labels_)


def test_one_cloud_is_said_to_have_no_clusters(run, tmp_path, rng):
    np.save(tmp_path / "cloud.npy", rng.normal(size=(200, 15)))
    ran = run("cluster", "cloud.npy", "-o", "out.csv")
    assert ran.code == 0
    assert "no clusters" in ran.out
    assert "principal components" in ran.out
    assert set(labels_of("out.csv")) == {0}


@pytest.mark.parametrize("rule", [None, "silverman", "likelihood", "stable"])
def test_constant_columns(rule, run, tmp_path, rng):
    X = np.repeat([0.0, 20.0], 30) + rng.normal(size=60)
    np.save(tmp_path / "constant.npy", np.stack([X, np.full(60, 5.0)], axis=1))
    words = [] if rule is None else ["--bandwidth", rule, "--min-size", "5"]
    assert run("cluster", "constant.npy", "-o", "out.csv", *words).code == 0
    assert labels_of("out.csv").max() == 1


def test_stable_with_a_window(run, blobs):
    ran = run("cluster", "blobs.csv", "-o", "out.csv", "--bandwidth", "stable", "--flat")
    assert (ran.code, ran.err) == (0, "")
    assert "Epanechnikov" in ran.out


def test_new_rows_belong_to_clusters_of_the_training_rows(run, blobs):
    Path("new.csv").write_text("x,y\n5.8,10\n0.2,610\n0.1,-5\n")
    ran = run("cluster", "new.csv", "-o", "out.csv", "--train", "blobs.csv")
    assert ran.code == 0, ran.err
    assert labels_of("out.csv").tolist() == [1, 2, 0]


@pytest.mark.parametrize("suffix", [".png", ".pdf", ".svg"])
@pytest.mark.parametrize("columns", ["x", "x,y"])
def test_plots(suffix, columns, run, blobs):
    ran = run("cluster", "blobs.csv", "-o", "out.csv", "-c", columns, "--plot", f"p{suffix}")
    assert (ran.code, ran.err) == (0, "")
    assert Path(f"p{suffix}").stat().st_size > 1000
    assert ["drawn", f"p{suffix}"] in [line.split() for line in ran.out.splitlines()]


def test_quiet(run, blobs):
    ran = run("cluster", "blobs.csv", "-o", "out.csv", "-q")
    assert (ran.code, ran.out, ran.err) == (0, "", "")


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["blobs.csv", "-o", "blobs.csv"], 2, "never overwritten"),
        (["blobs.csv", "-o", "out.csv", "--plot", "blobs.csv"], 2, "cannot write plots"),
        (["blobs.csv", "-o", "out.csv", "--plot", "there/p.png"], 2, "does not exist"),
        (["blobs.csv", "-o", "out.csv", "--bandwidth", "-1"], 2, "a number above 0"),
        (["blobs.csv", "-o", "out.csv", "--bandwidth", "nan"], 2, "a number above 0"),
        (["blobs.csv", "-o", "out.csv", "--bandwidth", "wide"], 2, "stable"),
        (["blobs.csv", "-o", "out.csv", "--min-size", "0"], 2, "--min-size"),
        (["blobs.csv", "-o", "out.csv", "--flat", "--kernel", "laplace:1"], 2, "one of them"),
        (["blobs.csv", "-o", "out.csv", "--bandwidth", "1", "--kernel", "laplace:1"], 2,
         "one of them"),
        (["blobs.csv", "-o", "out.csv", "--kernel", "linear"], 1, "convex"),
        (["gaps.csv", "-o", "out.csv"], 1, "missing value"),
    ],
)  # fmt: skip
def test_refusals(words, code, message, run, blobs):
    Path("gaps.csv").write_text("a,b\n1,5\n2,\n4,5\n")
    before = Path("blobs.csv").read_bytes()
    ran = run("cluster", *words)
    assert ran.code == code
    assert message in ran.err
    assert len(ran.err.splitlines()) == 1
    assert Path("blobs.csv").read_bytes() == before
    assert not Path("out.csv").exists()
