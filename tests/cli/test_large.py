"""Files too large for memory, and Ctrl-C with real signals."""

import gzip
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import mercer as mc
from mercer.cli import _large

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


@pytest.fixture
def small_memory(monkeypatch):
    monkeypatch.setattr(_large, "memory", lambda: 1000)
    monkeypatch.setattr(_large, "_PIECE", 1 << 12)


def write_table(path, rng, n=900, **more):
    x = rng.normal(size=(n, 2))
    columns = {"x": x[:, 0], "y": x[:, 1], "z": x[:, 0] - x[:, 1], "name": np.arange(n).astype(str)}
    parquet.write_table(pa.table(columns | more), path, row_group_size=200)
    return x


def test_predictions_piece_by_piece_are_those_at_once(run, tmp_path, rng, monkeypatch):
    write_table(tmp_path / "a.parquet", rng)
    assert run("fit", "a.parquet", "--target", "z", "-o", "m.mercer", "--skip", "name").code == 0
    for name in ("whole.parquet", "whole.csv"):
        assert run("predict", "a.parquet", "--model", "m.mercer", "-o", name).code == 0
    monkeypatch.setattr(_large, "memory", lambda: 1000)
    for name in ("pieces.parquet", "pieces.csv"):
        found = run("predict", "a.parquet", "--model", "m.mercer", "-o", name)
        assert found.code == 0, found.err
        assert "900 rows" in found.out
    one, two = (parquet.read_table(tmp_path / f"{n}.parquet") for n in ("whole", "pieces"))
    assert one.schema.equals(two.schema)
    assert one.drop_columns("predicted").equals(two.drop_columns("predicted"))
    np.testing.assert_allclose(one["predicted"], two["predicted"], rtol=1e-9, atol=1e-9)
    lines = [(tmp_path / f"{n}.csv").read_text().splitlines() for n in ("whole", "pieces")]
    assert [len(one) for one in lines] == [901, 901]
    assert lines[0][0] == lines[1][0]


@pytest.mark.parametrize("suffix", ["npy", "parquet"])
def test_denoising_piece_by_piece(suffix, run, tmp_path, rng, small_memory):
    t = rng.uniform(0.0, 2.0 * np.pi, 3000)
    clean = np.column_stack([np.cos(t), np.sin(t)])
    X = clean + 0.1 * rng.normal(size=clean.shape)
    if suffix == "npy":
        np.save(tmp_path / "a.npy", X)
    else:
        table = pa.table({"x": X[:, 0], "y": X[:, 1], "name": np.arange(3000).astype(str)})
        parquet.write_table(table, tmp_path / "a.parquet", row_group_size=700)
    out = f"b.{suffix}"
    found = run("denoise", f"a.{suffix}", "-o", out, "--noise", "0.1", "--no-scale")
    assert found.code == 0, found.err
    assert "3,000 rows were read and written in pieces" in found.err
    if suffix == "npy":
        Z = np.load(tmp_path / out)
    else:
        table = parquet.read_table(tmp_path / out)
        assert table["name"].to_pylist() == [str(i) for i in range(3000)]
        Z = np.column_stack([table["x"], table["y"]])
    assert np.mean((Z - clean) ** 2) < 0.7 * np.mean((X - clean) ** 2)


def test_text_made_of_pieces(run, tmp_path, rng, monkeypatch):
    """Compressed, and with a line break in the name of a column."""
    write_table(tmp_path / "a.parquet", rng, **{"a\nb": np.ones(900)})
    assert run("fit", "a.parquet", "--target", "z", "-o", "m.mercer", "-c", "x,y").code == 0
    words = ("predict", "a.parquet", "--model", "m.mercer", "-o")
    assert run(*words, "whole.csv").code == 0
    monkeypatch.setattr(_large, "memory", lambda: 1000)
    whole = (tmp_path / "whole.csv").read_bytes()
    for name in ("pieces.csv", "pieces.csv.gz"):
        assert run(*words, name).code == 0
        found = (tmp_path / name).read_bytes()
        found = gzip.decompress(found) if name.endswith("gz") else found
        assert found.count(b"\n") == whole.count(b"\n")
        assert found[:200] == whole[:200]


def test_denoising_a_small_table_learnt_from_a_large_one(run, tmp_path, rng, small_memory):
    x = write_table(tmp_path / "a.parquet", rng)
    np.savetxt(tmp_path / "b.csv", x[:50], delimiter=",", header="x,y", comments="")
    words = ("denoise", "b.csv", "--train", "a.parquet", "-c", "x,y", "--noise", "0.1")
    found = run(*words, "-o", "c.csv")
    assert found.code == 0, found.err
    assert len((tmp_path / "c.csv").read_text().splitlines()) == 51
    found = run(*words, "-o", "d.csv", "--report", "r.html")
    assert found.code == 2
    assert "--report" in found.err


@pytest.mark.parametrize("name", ["a.npy", "a.parquet"])
def test_scores_piece_by_piece_are_those_at_once(name, run, tmp_path, rng, monkeypatch):
    x = write_table(tmp_path / "a.parquet", rng)
    np.save(tmp_path / "a.npy", x)
    np.save(tmp_path / "some.npy", x[:100])
    np.savetxt(tmp_path / "some.csv", x[:100], delimiter=",", header="x,y", comments="")
    train = "some.npy" if name == "a.npy" else "some.csv"
    words = ("anomalies", name, "--train", train, "-o")
    assert run(*words, "whole.csv").code == 0
    monkeypatch.setattr(_large, "memory", lambda: 7500)
    monkeypatch.setattr(_large, "_PIECE", 1 << 12)
    found = run(*words, "pieces.csv")
    assert found.code == 0, found.err
    assert "900 rows were read and written in pieces" in found.err
    assert " marked as anomalies, " in found.err
    one, two = ((tmp_path / f"{n}.csv").read_text() for n in ("whole", "pieces"))
    assert one.splitlines()[0] == two.splitlines()[0]
    parts = ([line.split(",") for line in text.splitlines()[1:]] for text in (one, two))
    for a, b in zip(*parts, strict=True):
        assert (a[:-2], a[-1]) == (b[:-2], b[-1])
        assert float(a[-2]) == pytest.approx(float(b[-2]), rel=1e-9)
    for other in (("pieces.npz",), ("c.csv", "--report", "r.html")):
        found = run(*words, *other)
        assert found.code == 2
        assert not (tmp_path / other[0]).exists()


@pytest.mark.parametrize(("name", "row"), [("a.npy", 700), ("a.parquet", 701)])
def test_messages_about_pieces_have_the_rows_of_the_file(
    name, row, run, tmp_path, rng, monkeypatch
):
    monkeypatch.setattr(_large, "memory", lambda: 5000)
    monkeypatch.setattr(_large, "_PIECE", 1 << 12)
    x = rng.normal(size=(900, 2))
    np.savetxt(tmp_path / "some.csv", x[:20], delimiter=",", header="0,1", comments="")
    np.save(tmp_path / "some.npy", x[:20])
    x[700] = np.nan
    np.save(tmp_path / "a.npy", x)
    table = pa.table({"0": x[:, 0], "1": x[:, 1]})
    parquet.write_table(table, tmp_path / "a.parquet", row_group_size=200)
    train = "some" + (".npy" if name == "a.npy" else ".csv")
    found = run("denoise", name, "--train", train, "-o", "b." + name[2:], "--noise", "0.1")
    assert found.code == 1
    assert f"row {row};" in found.err


@pytest.mark.parametrize(
    "words",
    [
        ("cluster", "a.npy", "-o", "b.npz"),
        ("anomalies", "a.npy", "-o", "b.csv"),
        ("fit", "a.parquet", "--target", "z", "-o", "m.mercer"),
        ("test", "two-sample", "a.npy", "a.npy"),
    ],
)
def test_commands_that_need_all_rows_name_the_cure(words, run, tmp_path, rng, small_memory):
    np.save(tmp_path / "a.npy", rng.normal(size=(500, 2)))
    write_table(tmp_path / "a.parquet", rng)
    found = run(*words)
    assert found.code == 1
    assert "open_rows" in found.err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.npy", "a.parquet"]


def test_damage_in_the_middle_leaves_nothing_behind(run, tmp_path, rng, small_memory):
    X = rng.normal(size=(3000, 2))
    X[2500, 1] = np.nan
    np.save(tmp_path / "a.npy", X)
    found = run("denoise", "a.npy", "-o", "b.npy", "--noise", "0.1", "--no-scale")
    assert found.code == 1
    assert "2500" in found.err
    assert [p.name for p in tmp_path.iterdir()] == ["a.npy"]


def test_a_limit_of_the_address_space_is_seen(tmp_path):
    code = """
    import resource
    from mercer.cli import _large
    resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
    assert _large.memory() == 3 << 30
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True, timeout=120)


# --- Ctrl-C -------------------------------------------------------------------------------------

_INTERRUPTED = """
import os, signal, sys
from mercer._progress import watched
from mercer.cli import main
sent = []
def once(step):
    if step.task == sys.argv[1]:
        sent.append(step)
        if len(sent) == int(sys.argv[2]):
            os.kill(os.getpid(), signal.SIGINT)
with watched(once):
    sys.exit(main(sys.argv[3:]))
"""


def interrupted(task, step, *words, cwd):
    return subprocess.run(
        [sys.executable, "-c", _INTERRUPTED, task, str(step), *words],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )


@pytest.mark.parametrize("step", [1, 30])
def test_clusters_after_ctrl_c(step, tmp_path, rng):
    np.save(tmp_path / "a.npy", rng.normal(size=(800, 2)))
    words = "cluster", "a.npy", "-o", "b.npz", "--bandwidth", "0.3"
    found = interrupted("ascent", step, *words, cwd=tmp_path)
    assert found.returncode == 130, found.stderr
    if step == 1:  # no peak is known yet
        assert "nothing was written" in found.stderr
        return
    assert "unfinished" in found.stdout
    with np.load(tmp_path / "b.npz") as file:
        assert file["cluster"].shape == (800,)


def test_a_model_after_ctrl_c(tmp_path, rng):
    X = rng.normal(size=(600, 2))
    columns = {"x": X[:, 0], "y": X[:, 1], "z": np.abs(X[:, 0]) + rng.normal(size=600)}
    parquet.write_table(pa.table(columns), tmp_path / "a.parquet")
    words = ("fit", "a.parquet", "--target", "z", "--loss", "absolute", "-C", "100")
    found = interrupted("dual", 2, *words, "-o", "m.mercer", cwd=tmp_path)
    assert found.returncode == 130, found.stderr
    assert "unfinished" in found.stdout
    assert np.isfinite(mc.load(tmp_path / "m.mercer")["model"].predict(X)).all()


def test_without_a_partial_result_nothing_is_written(tmp_path, rng):
    X = rng.normal(size=(300, 4))
    X[rng.random(X.shape) < 0.2] = np.nan
    np.save(tmp_path / "a.npy", X)
    found = interrupted("rounds", 1, "impute", "a.npy", "-o", "b.npy", cwd=tmp_path)
    assert found.returncode == 130
    assert "nothing was written" in found.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["a.npy"]
