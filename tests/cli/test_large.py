"""Files too large for memory, and Ctrl-C with real signals."""

import gzip
import json
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import mercer as mc
from mercer.cli import _large
from mercer.cli._files import Source

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
    assert "900 rows of 2 columns" in found.out
    assert "highest scores (* anomaly)" in found.out
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
        ("impute", "a.npy", "-o", "b.npy"),
        ("anomalies", "a.npy", "-o", "b.csv"),
        ("fit", "a.parquet", "--target", "z", "-o", "m.mercer", "--loss", "absolute"),
        ("fit", "a.parquet", "--target", "z", "-o", "m.mercer", "-C", "3"),
        ("fit", "a.parquet", "--target", "kind", "-o", "m.mercer"),
    ],
)
def test_commands_that_need_all_rows_name_the_cure(words, run, tmp_path, rng, small_memory):
    np.save(tmp_path / "a.npy", rng.normal(size=(500, 2)))
    write_table(tmp_path / "a.parquet", rng, kind=["a", "b", "c"] * 300)
    found = run(*words)
    assert found.code == 1
    assert "open_rows" in found.err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.npy", "a.parquet"]


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (("cluster", "a.npy", "-o", "b.csv"), "--bandwidth"),
        (("cluster", "a.npy", "-o", "b.csv", "--bandwidth", "stable"), "--bandwidth"),
        (("cluster", "a.npy", "-o", "b.csv", "--bandwidth", "1", "--bins"), "--bins"),
        (("cluster", "a.npy", "-o", "b.csv", "--bandwidth", "1", "--plot", "c.png"), "--plot"),
        (("cluster", "a.npy", "-o", "b.csv", "--bandwidth", "1", "--report", "c.html"), "--report"),
        (("cluster", "a.npy", "-o", "b.csv", "--bandwidth", "1", "--missing", "-9"), "--missing"),
        (("cluster", "a.npy", "-o", "b.npz", "--bandwidth", "1"), "npz"),
        (("test", "two-sample", "a.npy", "a.npy", "--report", "c.html"), "--report"),
        (("fit", "a.parquet", "--target", "z", "-o", "b.mercer", "--report", "c.html"), "--report"),
    ],
)
def test_options_that_need_all_rows_are_refused(words, option, run, tmp_path, rng, small_memory):
    np.save(tmp_path / "a.npy", rng.normal(size=(500, 2)))
    write_table(tmp_path / "a.parquet", rng)
    found = run(*words)
    assert found.code == 2
    assert option in found.err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.npy", "a.parquet"]


def blobs(rng, n):
    """Two blobs in random order, and which rows are in the first."""
    first = rng.random(n) < 0.6
    return rng.normal(size=(n, 2)) + np.where(first[:, None], 0.0, 9.0), first


@pytest.mark.parametrize("suffix", ["npy", "parquet"])
@pytest.mark.parametrize("train", [(), ("--train", "some")])
def test_clusters_of_pieces(suffix, train, run, tmp_path, rng, small_memory, monkeypatch):
    X, first = blobs(rng, 2000)
    for name, rows in (("a", X), ("some", X[:300])):
        if suffix == "npy":
            np.save(tmp_path / f"{name}.npy", rows)
        else:
            table = pa.table({"x": rows[:, 0], "y": rows[:, 1], "name": [str(i) for i in rows]})
            parquet.write_table(table, tmp_path / f"{name}.parquet", row_group_size=450)
    if train:
        train = ("--train", f"some.{suffix}")
        monkeypatch.setattr(_large, "memory", lambda: 40_000)
    words = ("cluster", f"a.{suffix}", *train, "--bandwidth", "2", "-o")
    found = run(*words, "b.csv")
    assert found.code == 0, found.err
    assert "2,000 rows were read and written in pieces" in found.err
    lines = (tmp_path / "b.csv").read_text().splitlines()
    labels = np.array([line.rsplit(",", 1)[1] for line in lines[1:]], dtype=int)
    np.testing.assert_array_equal(labels, np.where(first, 0, 1))
    if suffix == "parquet":
        assert run(*words, "b.parquet").code == 0
        table = parquet.read_table(tmp_path / "b.parquet")
        np.testing.assert_array_equal(table["cluster"], labels)
        assert table["name"].to_pylist() == [str(i) for i in X]


@pytest.mark.parametrize("kernel", [(), ("--kernel", "gaussian:1"), ("--no-scale",)])
def test_samples_that_come_in_pieces(kernel, run, tmp_path, rng, monkeypatch):
    X = rng.normal(size=(400, 2)) * [1.0, 4.0]
    Y = rng.normal([1.0, 0.0], size=(300, 2)) * [1.0, 4.0]
    np.save(tmp_path / "a.npy", X)
    np.save(tmp_path / "b.npy", Y)
    words = ("test", "two-sample", "a.npy", "b.npy", "--json", "--permutations", "99", *kernel)
    known = json.loads(run(*words).out)
    for room in (1000, 20_000):  # both, or the first one only
        monkeypatch.setattr(_large, "memory", lambda room=room: room)
        with mc.options(working_memory=0.005):
            found = run(*words)
        assert found.code == 0, found.err
        told = json.loads(found.out)
        assert told["pvalue"] == known["pvalue"] == 0.01
        if "--kernel" in words:  # of several, random draws say which one is shown
            assert told["statistic"] == pytest.approx(known["statistic"], rel=1e-4)
            assert told["effect_size"] == pytest.approx(known["effect_size"], rel=1e-4)
        assert told["where"].keys() == known["where"].keys()
    found = run(*words, "--paired")
    assert found.code == 1


def test_dependence_of_columns_that_come_in_pieces(run, tmp_path, rng, small_memory):
    x = rng.normal(size=(600, 2))
    columns = {"x": x[:, 0], "y": x[:, 0] ** 2 + 0.1 * x[:, 1], "z": x[:, 1]}
    parquet.write_table(pa.table(columns), tmp_path / "a.parquet", row_group_size=200)
    words = ("test", "independence", "a.parquet", "--x", "x", "--permutations", "99", "--json")
    for column, dependent in (("y", True), ("z", False)):
        found = run(*words, "--y", column)
        assert found.code == 0, found.err
        assert json.loads(found.out)["rejected"] == dependent


def test_the_fit_of_rows_that_come_in_pieces(run, tmp_path, rng, monkeypatch):
    np.save(tmp_path / "a.npy", rng.normal(size=(500, 1)))
    words = ("test", "fit", "a.npy", "--permutations", "99", "--json", "--kernel", "gaussian:1")
    for law, known in (("norm:0,1", False), ("norm:0.5,1", True)):
        monkeypatch.setattr(_large, "memory", lambda: 1 << 30)
        whole = json.loads(run(*words, "--to", law).out)
        monkeypatch.setattr(_large, "memory", lambda: 1000)
        found = run(*words, "--to", law)
        assert found.code == 0, found.err
        told = json.loads(found.out)
        assert told["rejected"] == whole["rejected"] == known
        assert told["statistic"] == pytest.approx(whole["statistic"], rel=1e-4)
        assert told["where"] == whole["where"]


def test_a_model_of_rows_that_come_in_pieces(run, tmp_path, rng, small_memory):
    x = rng.normal(size=(3000, 2))
    columns = {"x": x[:, 0], "z": np.sin(x[:, 0]) + 0.1 * x[:, 1], "text": ["a"] * 3000}
    parquet.write_table(pa.table(columns), tmp_path / "a.parquet", row_group_size=700)
    kernel = ("--kernel", "gaussian:1")
    found = run("fit", "a.parquet", "--target", "z", "-o", "m.mercer", *kernel)
    assert found.code == 0, found.err
    assert "3,000 rows of 1 column" in found.out
    found = run("predict", "a.parquet", "--model", "m.mercer", "-o", "b.parquet")
    assert found.code == 0, found.err
    predicted = np.asarray(parquet.read_table(tmp_path / "b.parquet")["predicted"])
    assert np.sqrt(np.mean((predicted - np.sin(x[:, 0])) ** 2)) < 0.02


def test_row_groups_without_rows_are_left_out(run, tmp_path, rng, small_memory):
    X, _ = blobs(rng, 900)
    schema = pa.schema([("x", pa.float64()), ("y", pa.float64())])
    with parquet.ParquetWriter(tmp_path / "a.parquet", schema) as file:
        for rows in (X[:0], X[:1], X[:0], X[1:]):
            file.write_table(pa.table(list(rows.T), schema=schema))
    found = run("cluster", "a.parquet", "-o", "b.parquet", "--bandwidth", "2")
    assert found.code == 0, found.err
    assert parquet.read_table(tmp_path / "b.parquet").num_rows == 900


def test_small_integers_count_as_the_floats_that_they_become(tmp_path, monkeypatch):
    np.save(tmp_path / "a.npy", np.zeros((100, 2), dtype=np.int8))
    parquet.write_table(pa.table({"a": ["x" * 5000, "y" * 5000]}), tmp_path / "a.parquet")
    monkeypatch.setattr(_large, "memory", lambda: 6000)
    assert _large.is_large(Source(tmp_path / "a.npy"))
    assert _large.is_large(Source(tmp_path / "a.parquet"))


@pytest.mark.slow
def test_memory_of_commands_is_bounded(tmp_path, rng):
    """A file of 256 MB takes at most 150 MB more than an idle process."""
    if sys.platform != "linux":
        pytest.skip("needs /proc")
    names = [f"x{j}" for j in range(80)]
    schema = pa.schema([(name, pa.float64()) for name in names])
    with parquet.ParquetWriter(tmp_path / "a.parquet", schema, compression="none") as file:
        for _ in range(50):
            rows = rng.normal(size=(8000, 80))
            file.write_table(pa.table(list(rows.T), schema=schema))
    code = """
    import os, sys
    from pathlib import Path
    import mercer as mc
    from mercer.cli import _cluster, _fit, _large, main
    from mercer._progress import watched
    _large.memory, _large._PIECE, _cluster._SEEDS = lambda: 1 << 20, 1 << 22, 20
    _fit.LANDMARKS = 20
    def anonymous():
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(l.split()[1]) for l in lines if l.startswith("RssAnon")) / 1024
    import mercer.estimators, mercer.methods, pyarrow.parquet
    before, most = anonymous(), []
    with watched(lambda _: most.append(anonymous())), mc.options(working_memory=32):
        code = main(sys.argv[1:])
    most.append(anonymous())
    print(code, max(most) - before)
    """
    for words in (
        ("cluster", "a.parquet", "-o", "b.parquet", "--bandwidth", "30"),
        ("fit", "a.parquet", "--target", "x0", "-o", "m.mercer", "--kernel", "gaussian:9"),
    ):
        found = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(code), *words, "-q"],
            cwd=tmp_path, capture_output=True, text=True, check=False, timeout=600,
        )  # fmt: skip
        ended, most = found.stdout.split()
        assert ended == "0", found.stderr
        assert float(most) < 150, words


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("suffix", ["npy", "parquet"])
def test_a_full_disk_is_named_and_leaves_nothing_behind(large, suffix, tmp_path, rng):
    pytest.importorskip("resource")
    x = write_table(tmp_path / "a.parquet", rng, 500)
    np.save(tmp_path / "a.npy", x)
    code = """
    import resource, sys
    from mercer.cli import _large, main
    if sys.argv.pop(1) == "True":
        _large.memory, _large._PIECE = lambda: 1000, 4096
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
    sys.exit(main(sys.argv[1:]))
    """
    words = ("denoise", f"a.{suffix}", "-o", f"b.{suffix}", "--noise", "0.1", "--kernel")
    words += ("gaussian:1", "--components", "2")
    found = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), str(large), *words],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert found.returncode == 1, found.stderr
    assert "File too large" in found.stderr
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


@pytest.mark.parametrize(("text", "expected"), [("12345\n", 12345), ("max\n", None), (None, None)])
def test_the_memory_of_a_container(text, expected, tmp_path, monkeypatch):
    path = tmp_path / "memory.max"
    if text is not None:
        path.write_text(text)
    monkeypatch.setattr(_large, "_CONTAINER", ())
    machine = _large.memory()
    monkeypatch.setattr(_large, "_CONTAINER", (str(path),))
    assert _large.memory() == (expected or machine)
