"""Files as rows in pieces: the same rows, the same results, in bounded memory."""

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import mercer as mc
from mercer.exceptions import InputError
from mercer.io import open_rows

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


@pytest.fixture
def table(tmp_path, rng):
    columns = {
        "a": rng.normal(size=1000),
        "b": rng.normal(size=1000).astype(np.float32),
        "c": rng.integers(0, 9, 1000),
        "name": [str(i) for i in range(1000)],
    }
    path = tmp_path / "rows.parquet"
    parquet.write_table(pa.table(columns), path, row_group_size=90)
    return path, columns


@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", ">f8", ">f4", "bool", "float16"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_are_read_as_they_are(dtype, order, tmp_path, rng):
    X = np.asarray(rng.integers(0, 5, size=(700, 3)), dtype=dtype, order=order)
    np.save(tmp_path / "x.npy", X)
    with mc.options(working_memory=0.02):
        rows = open_rows(tmp_path / "x.npy")
        some = open_rows(tmp_path / "x.npy", [2, 0])
    assert len(rows.sizes) > 2
    assert rows.shape == X.shape
    assert rows.dtype == (np.float32 if dtype in ("float32", ">f4") else np.float64)
    np.testing.assert_array_equal(rows.collected(), X.astype(float))
    np.testing.assert_array_equal(rows.rows([699, 0, 350]), X[[699, 0, 350]].astype(float))
    np.testing.assert_array_equal(some.collected(), X[:, [2, 0]].astype(float))


def test_vectors_are_targets(tmp_path, rng):
    y = rng.normal(size=300)
    np.save(tmp_path / "y.npy", y)
    np.testing.assert_array_equal(open_rows(tmp_path / "y.npy").collected(), y)


def test_tables_are_read_by_row_groups(table):
    path, columns = table
    rows = open_rows(path, ["c", "a"])
    assert rows.shape == (1000, 2)
    assert len(rows.sizes) == 1  # small groups are read together
    np.testing.assert_array_equal(rows.collected(), np.column_stack([columns["c"], columns["a"]]))
    with mc.options(working_memory=0.01):
        rows = open_rows(path, ["a"])
    assert len(rows.sizes) > 2
    np.testing.assert_array_equal(rows.collected()[:, 0], columns["a"])
    assert open_rows(path, ["b"]).dtype == np.float32


def test_the_index_of_pandas_is_no_column(tmp_path, rng):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(rng.normal(size=(50, 2)), columns=["a", "b"])
    shuffled = rng.permutation(50)
    for index in (frame.index, pd.Index(shuffled), pd.Index(shuffled, name="id")):
        frame.set_axis(index).to_parquet(tmp_path / "rows.parquet")
        rows = open_rows(tmp_path / "rows.parquet")
        np.testing.assert_array_equal(rows.collected(), frame.to_numpy())
    chosen = open_rows(tmp_path / "rows.parquet", ["id", "a"])
    np.testing.assert_array_equal(chosen.collected()[:, 0], shuffled)


def test_bad_files_name_what_is_wrong(table, tmp_path, rng):
    path, _ = table
    cases = [
        (path, None, "'name'"),
        (path, ["d"], "'d'"),
        (path, [], "no columns"),
        (path, "a", "columns must be a list"),
        (path, 3, "columns must be a list"),
        (tmp_path / "none.npy", None, "does not exist"),
    ]
    np.save(tmp_path / "x.npy", rng.normal(size=(20, 2)))
    cases += [(tmp_path / "x.npy", columns, "column") for columns in ([2], [-1], ["a"], [], [True])]
    for name, array in (("c", np.ones((3, 2), complex)), ("t", np.array([["a"]]))):
        np.save(tmp_path / f"{name}.npy", array)
        cases.append((tmp_path / f"{name}.npy", None, "numbers"))
    np.save(tmp_path / "three.npy", np.zeros((2, 2, 2)))
    cases.append((tmp_path / "three.npy", None, "shape"))
    np.save(tmp_path / "empty.npy", np.zeros((0, 2)))
    cases.append((tmp_path / "empty.npy", None, "no rows"))
    np.save(tmp_path / "objects.npy", np.array([[None]]), allow_pickle=True)
    cases.append((tmp_path / "objects.npy", None, "npy"))
    for name in ("bad.npy", "bad.parquet", "a.csv"):
        (tmp_path / name).write_bytes(b"nothing of the kind")
        cases.append((tmp_path / name, None, name))
    whole = (tmp_path / "x.npy").read_bytes()
    (tmp_path / "cut.npy").write_bytes(whole[:-8])
    cases.append((tmp_path / "cut.npy", None, "cut.npy"))
    (tmp_path / "cut.parquet").write_bytes(path.read_bytes()[:-8])
    cases.append((tmp_path / "cut.parquet", None, "cut.parquet"))
    for file, columns, message in cases:
        with pytest.raises(InputError, match=message):
            open_rows(file, columns)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_missing_values_are_refused_by_row(bad, tmp_path):
    X = np.zeros((100, 2))
    X[77, 1] = bad
    np.save(tmp_path / "x.npy", X)
    with pytest.raises(InputError, match="row 77"):
        open_rows(tmp_path / "x.npy").collected()
    parquet.write_table(pa.table({"a": X[:, 1]}), tmp_path / "x.parquet", row_group_size=10)
    with mc.options(working_memory=0.001), pytest.raises(InputError, match="row 77"):
        open_rows(tmp_path / "x.parquet").collected()


def test_integers_that_float64_cannot_hold_are_refused(tmp_path):
    big = np.array([1, 2**53 + 1])
    np.save(tmp_path / "x.npy", big)
    parquet.write_table(pa.table({"a": big}), tmp_path / "x.parquet")
    for name, message in (("x.npy", r"above 2\*\*53"), ("x.parquet", "column 'a'")):
        with pytest.raises(InputError, match=message):
            open_rows(tmp_path / name).collected()


@pytest.mark.parametrize("values", [[1e308, 1e308], [np.inf, -np.inf]], ids=["huge", "inf"])
def test_checks_of_large_numbers_give_no_warning(values, tmp_path):
    np.save(tmp_path / "x.npy", np.array(values))
    if np.isfinite(values).all():
        np.testing.assert_array_equal(open_rows(tmp_path / "x.npy").collected(), values)
    else:
        with pytest.raises(InputError, match="row 0"):
            open_rows(tmp_path / "x.npy").collected()


@pytest.mark.parametrize("change", ["other numbers", "fewer", "another file", "none"])
@pytest.mark.parametrize("suffix", ["npy", "parquet"])
def test_a_file_that_was_changed_is_refused(suffix, change, tmp_path):
    """Its rows would be mixed with others; a mapped file that is truncated ends the process."""

    def write(name, column, values):
        if suffix == "npy":
            np.save(tmp_path / f"{name}.npy", values)
        else:
            parquet.write_table(pa.table({column: values}), tmp_path / f"{name}.parquet")

    path = tmp_path / f"x.{suffix}"
    write("x", "a", np.zeros(900))
    with mc.options(working_memory=0.001):
        rows = open_rows(path)
    assert rows.total(len) == 900
    if change == "none":
        path.unlink()
    elif change == "fewer":
        write("x", "a", np.zeros(8))
    elif change == "other numbers":
        write("x", "a", np.ones(900))
    else:
        write("y", "b", np.zeros(900))
        (tmp_path / f"y.{suffix}").replace(path)
    if path.exists():
        os.utime(path, ns=(0, 0))  # clocks of file systems are coarse
    with pytest.raises(InputError, match="was changed while it was used"):
        rows.total(len)


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_file_may_be_larger_than_the_address_space(order, tmp_path):
    if sys.platform != "linux":
        pytest.skip("the limit is that of Linux")
    with (tmp_path / "x.npy").open("wb") as file:  # a file with holes
        shape = (2_000_000_000, 2)
        head = {"descr": "<f8", "fortran_order": order == "F", "shape": shape}
        np.lib.format.write_array_header_1_0(file, head)
        file.truncate(file.tell() + 16 * shape[0])
    code = f"""
    import resource
    from mercer.io import open_rows
    resource.setrlimit(resource.RLIMIT_AS, (16 << 30, 16 << 30))
    print(open_rows({str(tmp_path / "x.npy")!r}).rows([5, 1_999_999_999]).tolist())
    """
    found = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert found.stdout.strip() == "[[0.0, 0.0], [0.0, 0.0]]", found.stderr


def test_rows_and_targets_of_two_files(tmp_path, rng):
    """Their pieces have different sizes, because their rows have."""
    X, k = rng.normal(size=(900, 4)), mc.Gaussian(1.0)
    y = np.sin(X[:, 0])
    for name, array in (("X", X), ("y", y)):
        np.save(tmp_path / f"{name}.npy", array)
    with mc.options(working_memory=0.02):
        rows, targets = (open_rows(tmp_path / f"{name}.npy") for name in "Xy")
    assert rows.sizes != targets.sizes
    options = {"n_landmarks": 30, "random_state": 0, "penalty": 0.1}
    found, known = (mc.KernelRidge(k, **options).fit(*a) for a in ((rows, targets), (rows, y)))
    np.testing.assert_array_equal(found.predict(X[:9]), known.predict(X[:9]))


def test_damage_inside_a_table_is_found_when_it_is_read(table):
    path, _ = table
    data = bytearray(path.read_bytes())
    data[4:2000] = bytes(1996)
    path.write_bytes(bytes(data))
    with pytest.raises(InputError, match="damaged"):
        open_rows(path, ["a"]).collected()


@pytest.mark.parametrize(
    "replace", [(b"}", b"("), (b"<f8", b"\xff\xff\xff"), (b"(3, 2)", b"(9,9e9"), (b"{", b"[")]
)
def test_damaged_headers_of_arrays_are_refused(replace, tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, np.zeros((3, 2)))
    path.write_bytes(path.read_bytes().replace(*replace, 1))
    with pytest.raises(InputError, match=r"is not an \.npy file of numbers"):
        open_rows(path)


def test_an_archive_with_the_name_of_an_array_is_refused(tmp_path):
    np.savez(tmp_path / "x.npz", x=np.zeros(3))
    (tmp_path / "x.npz").rename(tmp_path / "x.npy")
    with pytest.raises(InputError, match="is an archive of arrays"):
        open_rows(tmp_path / "x.npy")


@pytest.mark.parametrize("suffix", ["npy", "parquet"])
def test_estimators_give_the_same_as_in_memory(suffix, tmp_path, rng):
    X = rng.normal(size=(900, 2))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=900)
    path = tmp_path / f"rows.{suffix}"
    if suffix == "npy":
        np.save(path, X)
    else:
        parquet.write_table(pa.table({"a": X[:, 0], "b": X[:, 1]}), path, row_group_size=100)
    with mc.options(working_memory=0.02):
        rows = open_rows(path)
    assert len(rows.sizes) > 2
    k = mc.Gaussian(1.0)
    f, g = mc.kernel_density(k, rows), mc.kernel_density(k, X)
    np.testing.assert_allclose(f(X[:20]), g(X[:20]), rtol=1e-12)
    settings = {"kernel": k, "n_landmarks": 60, "random_state": 0}
    one, two = mc.KernelPCA(3, **settings).fit(rows), mc.KernelPCA(3, **settings).fit(X)
    np.testing.assert_allclose(one.eigenvalues_, two.eigenvalues_, rtol=0.05)
    model = mc.KernelRidge(**settings, penalty=1e-3).fit(rows, y)
    assert model.score(X, y) > 0.9


def test_memory_is_bounded(tmp_path):
    """400 MB of rows with at most 250 MB more address space than an idle process."""
    path = tmp_path / "rows.npy"
    out = np.lib.format.open_memmap(path, "w+", "float32", (25_000_000, 4))
    out[:] = np.random.default_rng(0).normal(size=(1000, 4)).repeat(25_000, axis=0)
    del out
    code = f"""
    import numpy as np, mercer as mc
    from pathlib import Path
    from mercer.io import open_rows
    def status(name):
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(l.split()[1]) for l in lines if l.startswith(name)) / 1024
    k = mc.Gaussian(2.0)
    settings = dict(kernel=k, n_landmarks=20, random_state=0)
    mc.KernelPCA(2, **settings).fit(np.random.default_rng(0).normal(size=(200, 4)))
    before = status("RssAnon")
    rows = open_rows({str(path)!r})
    most = []
    from mercer._progress import watched
    with watched(lambda step: most.append(status("RssAnon")) and None):
        model = mc.KernelPCA(2, **settings).fit(rows)
    print(max(most) - before)
    """
    if sys.platform != "linux":
        pytest.skip("needs /proc")
    found = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert found.returncode == 0, found.stderr
    assert float(found.stdout) < 250


def test_decimal_columns(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from decimal import Decimal

    import pyarrow.parquet as pq

    column = pa.array([Decimal("0.10"), Decimal("-12.34")], pa.decimal128(6, 2))
    pq.write_table(pa.table({"price": column}), tmp_path / "a.parquet")
    rows = mc.io.open_rows(tmp_path / "a.parquet")
    assert rows.rows([0, 1]).tolist() == [[0.1], [-12.34]]
