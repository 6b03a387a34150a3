"""Arrays and images, filling and scoring, bars and options."""

import io
import sys
import zipfile

import numpy as np
import pytest
from PIL import Image

from mercer.cli import _progress
from mercer.cli._messages import listed
from mercer.cli._options import parse_kernel
from mercer.cli._progress import Progress
from mercer.estimators import KernelDenoiser, KernelImputer, KernelNovelty
from mercer.kernels import Gaussian, Laplace, Linear, Matern, Polynomial

from .conftest import write_image, write_images
from .test_tables import numbers, rows_of


@pytest.fixture
def stack(rng, tmp_path):
    """Noisy curves in twelve dimensions."""
    t = rng.uniform(0.0, 3.0, (80, 1))
    clean = np.sin(t + 0.3 * np.arange(12))
    return clean + 0.1 * rng.normal(size=clean.shape)


# --- arrays ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_arrays_keep_their_type(kind, run, stack):
    np.save("a.npy", stack.astype(kind))
    ran = run("denoise", "a.npy", "-o", "b.npy", "--no-scale")
    assert ran.code == 0, ran.err
    found = np.load("b.npy")
    assert found.dtype == kind
    expected = KernelDenoiser(random_state=0).fit(stack.astype(kind)).transform(stack.astype(kind))
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_integers_become_floating_point_only_where_they_change(run, stack):
    np.save("a.npy", np.rint(100.0 * stack).astype(np.int16))
    run("denoise", "a.npy", "-o", "b.npy")
    run("denoise", "a.npy", "-o", "c.npy", "--noise", "0")
    assert np.load("b.npy").dtype == np.float64
    np.testing.assert_array_equal(np.load("c.npy"), np.load("a.npy"))
    assert np.load("c.npy").dtype == np.int16


def test_stacks_are_laid_out_flat_and_not_scaled(run, stack):
    np.save("flat.npy", stack)
    np.save("stack.npy", stack.reshape(80, 3, 4))
    run("denoise", "flat.npy", "-o", "a.npy", "--no-scale")
    run("denoise", "stack.npy", "-o", "b.npy")
    assert np.load("b.npy").shape == (80, 3, 4)
    np.testing.assert_array_equal(np.load("b.npy").reshape(80, 12), np.load("a.npy"))


def test_columns_of_arrays_by_number(run, stack):
    np.save("a.npy", stack)
    ran = run("denoise", "a.npy", "-o", "b.npy", "--columns", "0,1,2,3,4")
    assert ran.code == 0, ran.err
    changed = (np.load("b.npy") != stack).any(axis=0)
    np.testing.assert_array_equal(changed, np.arange(12) < 5)


def test_other_arrays_of_an_archive_are_carried_through(run, stack):
    np.savez("a.npz", X=stack, labels=np.array(["a", "b"]), n=np.int8(7))
    assert run("denoise", "a.npz", "-o", "b.npz", "--array", "X").code == 0
    with np.load("b.npz") as found:
        assert sorted(found.files) == ["X", "labels", "n"]
        assert found["labels"].tolist() == ["a", "b"]
        assert found["n"].dtype == np.int8
        assert (found["X"] != stack).all()


@pytest.mark.parametrize("name", ["X", "file", "allow_pickle"])  # the last two are words of savez
def test_an_only_array_need_not_be_named(name, run, stack):
    with zipfile.ZipFile("a.npz", "w") as archive, archive.open(f"{name}.npy", "w") as file:
        np.save(file, stack)
    ran = run("denoise", "a.npz", "-o", "b.npz")
    assert ran.code == 0, ran.err
    with np.load("b.npz") as found:
        assert found.files == [name]


def test_many_rows_take_blocks_and_landmarks(run, rng, monkeypatch):
    from mercer.cli import _denoise, _run

    t = rng.uniform(0.0, 2.0 * np.pi, 400)
    X = np.column_stack([np.cos(t), np.sin(t)]) + 0.1 * rng.normal(size=(400, 2))
    monkeypatch.setattr(_denoise, "_MANY", 100)
    monkeypatch.setattr(_denoise, "_LANDMARKS", 50)
    monkeypatch.setattr(_run, "_BLOCK", 37)
    np.save("a.npy", X)
    ran = run("denoise", "a.npy", "-o", "b.npy", "--no-scale", "--report")
    assert ran.code == 0, ran.err
    expected = KernelDenoiser(random_state=0, n_landmarks=50).fit(X).transform(X)
    np.testing.assert_allclose(np.load("b.npy"), expected, rtol=1e-9)


# --- images ---------------------------------------------------------------------------------------


def pixels(path):
    with Image.open(path) as image:
        return image.mode, np.asarray(image)


@pytest.mark.parametrize("shape", [(6, 5), (6, 5, 3), (6, 5, 4)])
def test_images_keep_names_sizes_and_modes(shape, run, tmp_path, rng):
    write_images(tmp_path / "in", rng, 20, shape)
    before = {p.name: pixels(p) for p in (tmp_path / "in").iterdir()}
    ran = run("denoise", "in", "-o", "out", "--noise", "0.1")
    assert ran.code == 0, ran.err
    after = {p.name: pixels(p) for p in (tmp_path / "out").iterdir()}
    assert after.keys() == before.keys()
    for name, (mode, array) in after.items():
        assert (mode, array.shape, array.dtype) == (before[name][0], shape, np.uint8)
        if mode == "RGBA":
            np.testing.assert_array_equal(array[..., 3], before[name][1][..., 3])


def test_images_are_denoised_as_arrays_are(run, tmp_path, rng):
    write_images(tmp_path / "in", rng, 25)
    X = np.stack([pixels(p)[1].ravel() for p in sorted((tmp_path / "in").iterdir())])
    X = X.astype(np.float32) / 255.0
    expected = KernelDenoiser(noise=0.1, random_state=0).fit(X).transform(X)
    run("denoise", "in", "-o", "out", "--noise", "0.1")
    found = np.stack([pixels(p)[1].ravel() for p in sorted((tmp_path / "out").iterdir())])
    np.testing.assert_allclose(found, 255.0 * np.clip(expected, 0.0, 1.0), atol=0.51)


def test_without_noise_images_come_back_to_the_bit(run, tmp_path, rng):
    write_images(tmp_path / "in", rng, 5)
    assert run("denoise", "in", "-o", "out", "--noise", "0").code == 0
    for path in (tmp_path / "in").iterdir():
        np.testing.assert_array_equal(pixels(path)[1], pixels(tmp_path / "out" / path.name)[1])


def test_other_files_and_hidden_ones(run, tmp_path, rng):
    write_images(tmp_path / "in", rng, 5)
    (tmp_path / "in" / "notes.txt").touch()
    (tmp_path / "in" / ".hidden.png").touch()
    (tmp_path / "in" / "sub.png").mkdir()
    ran = run("denoise", "in", "-o", "out", "--noise", "0.1")
    assert "unchanged  notes.txt, sub.png (not an image)\n" in ran.out
    assert len(list((tmp_path / "out").iterdir())) == 5


@pytest.mark.parametrize("suffix", [".jpg", ".bmp", ".tif", ".pgm"])
def test_other_formats(suffix, run, tmp_path, rng):
    write_images(tmp_path / "in", rng, 5)
    for path in list((tmp_path / "in").iterdir()):
        with Image.open(path) as image:
            image.save(path.with_suffix(suffix))
        path.unlink()
    ran = run("denoise", "in", "-o", "out", "--noise", "0.1")
    assert ran.code == 0, ran.err
    assert {p.suffix for p in (tmp_path / "out").iterdir()} == {suffix}


def test_sixteen_bits_palettes_and_black_and_white(run, tmp_path, rng):
    deep = rng.integers(0, 65536, (4, 6, 5)).astype(np.uint16)
    folder = tmp_path / "deep"
    folder.mkdir()
    for i, array in enumerate(deep):
        write_image(folder / f"{i}.png", array)
    assert run("denoise", "deep", "-o", "a", "--noise", "0").code == 0
    np.testing.assert_allclose(pixels(tmp_path / "a" / "2.png")[1], deep[2] / 257.0, atol=0.51)
    for mode, kept in (("P", "RGB"), ("1", "L")):
        folder = tmp_path / mode
        folder.mkdir()
        for i in range(4):
            bits = rng.integers(0, 2, (6, 5, 3)).astype(np.uint8) * 255
            Image.fromarray(bits).convert(mode).save(folder / f"{i}.png")
        assert run("denoise", mode, "-o", mode + "out", "--noise", "0").code == 0
        assert pixels(tmp_path / (mode + "out") / "0.png")[0] == kept


# --- filling --------------------------------------------------------------------------------------


def test_filling_changes_only_missing_cells(run, files):
    ran = run("impute", "gaps.csv", "-o", "filled.csv")
    assert ran.code == 0, ran.err
    before, after = rows_of(files["folder"] / "gaps.csv"), rows_of(files["folder"] / "filled.csv")
    filled = 0
    for old, new in zip(before, after, strict=True):
        assert old[:3] == new[:3]
        if old[3]:
            assert old[3] == new[3]
        else:
            float(new[3])
            filled += 1
    assert filled == 13
    assert "filled      13 values in 13 rows\n" in ran.out
    assert "by column   y 13\n" in ran.out


def test_filling_does_what_the_estimator_does(run, files):
    holes = np.load(files["folder"] / "gaps.npy")
    run("impute", "gaps.npy", "-o", "filled.npy")
    found = np.load(files["folder"] / "filled.npy")
    np.testing.assert_allclose(found, KernelImputer().fit(holes).transform(holes), rtol=1e-9)
    np.testing.assert_array_equal(found[~np.isnan(holes)], holes[~np.isnan(holes)])


def test_rows_with_an_empty_column_are_filled_from_others(run, files):
    (files["folder"] / "t.csv").write_text("id,x,y\n1,0.5,\n2,0.1,\n")
    ran = run("impute", "t.csv", "-o", "out.csv", "--train", "measured.csv")
    assert ran.code == 0, ran.err
    assert np.isfinite(numbers(files["folder"] / "out.csv", "x", "y")).all()


def test_a_column_without_any_value_is_left_alone(run, files):
    text = (files["folder"] / "gaps.csv").read_text().splitlines()
    lines = [text[0] + ",z", *(line + "," for line in text[1:])]
    (files["folder"] / "t.csv").write_text("\n".join(lines))
    ran = run("impute", "t.csv", "-o", "out.csv")
    assert ran.code == 0, ran.err
    assert "z (empty)" in ran.out
    assert all(row[4] == "" for row in rows_of(files["folder"] / "out.csv")[1:])


def test_nothing_to_fill(run, files):
    ran = run("impute", "measured.csv", "-o", "out.csv")
    assert "nothing, no value was missing" in ran.out
    assert rows_of(files["folder"] / "out.csv") == rows_of(files["folder"] / "measured.csv")


def test_numbers_that_stand_for_missing_values(run, files):
    holes = np.load(files["folder"] / "gaps.npy")
    np.save(files["folder"] / "t.npy", np.where(np.isnan(holes), -99.0, holes))
    run("impute", "gaps.npy", "-o", "a.npy")
    run("impute", "t.npy", "-o", "b.npy", "--missing", "-99")
    np.testing.assert_array_equal(np.load("a.npy"), np.load("b.npy"))


# --- scoring --------------------------------------------------------------------------------------


def test_a_strange_row_has_the_highest_score(run, files):
    path = files["folder"] / "measured.csv"
    lines = path.read_text().splitlines()
    lines[40] = '40,"point, 40",0.0,0.0'  # the centre of the circle
    path.write_text("\n".join(lines) + "\n")
    ran = run("anomalies", "measured.csv", "-o", "scored.csv", "--top", "3")
    assert ran.code == 0, ran.err
    header, *rows = rows_of(files["folder"] / "scored.csv")
    assert header == ["id", "name", "x", "y", "score", "is_anomaly"]
    assert [row[:4] for row in rows] == rows_of(path)[1:]
    assert max(rows, key=lambda row: float(row[4]))[0] == "40"
    assert [row[5] for row in rows].count("true") == 6
    listing = ran.out.split("highest scores (* anomaly)\n")[1].splitlines()
    assert len(listing) == 3
    assert listing[0].split()[:2] == ["line", "41"]
    assert listing[0].endswith("* x 0, y 0")


@pytest.mark.parametrize("share", ["0.1", "auto"])
def test_scoring_does_what_the_estimator_does(share, run, files):
    X = np.load(files["folder"] / "complete.npy")
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    model = KernelNovelty(contamination=float(share) if share != "auto" else share).fit(Z)
    run("anomalies", "complete.npy", "-o", "out.npz", "--share", share)
    with np.load("out.npz") as found:
        np.testing.assert_allclose(found["score"], -model.score_samples(Z), rtol=1e-9)
        np.testing.assert_array_equal(found["is_anomaly"], model.predict(Z) < 0)
        np.testing.assert_array_equal(found["array"], X)


def test_scores_of_arrays_and_images_as_tables(run, files):
    for source, first in (("complete.npy", "row"), ("scans", "file")):
        assert run("anomalies", source, "-o", f"{first}.csv").code == 0
        header, *rows = rows_of(files["folder"] / f"{first}.csv")
        assert header == [first, "score", "is_anomaly"]
        assert len(rows) == (60 if first == "row" else 30)
    assert rows[0][0] == "00.png"


def test_scores_in_parquet(run, files):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    X = np.load(files["folder"] / "complete.npy")
    parquet.write_table(pa.table({"a": X[:, 0], "score": X[:, 1]}), files["folder"] / "t.parquet")
    assert run("anomalies", "t.parquet", "-o", "out.parquet").code == 0
    table = parquet.read_table("out.parquet")
    assert table.column_names == ["a", "score", "score_2", "is_anomaly"]
    assert table["score"].to_numpy().tolist() == X[:, 1].tolist()


# --- the rest -------------------------------------------------------------------------------------


def test_quiet(run, files):
    for command in ("denoise", "impute", "anomalies"):
        ran = run(command, "measured.csv", "-o", f"{command}.csv", "--quiet")
        assert (ran.code, ran.out, ran.err) == (0, "", "")


def test_the_same_seed_gives_the_same_file(run, files):
    for name in ("a.csv", "b.csv"):
        run("denoise", "measured.csv", "-o", name, "--seed", "3")
    assert (files["folder"] / "a.csv").read_bytes() == (files["folder"] / "b.csv").read_bytes()


def test_it_is_said_where_denoising_is_of_no_use(run, files):
    ran = run("denoise", "measured.csv", "-o", "a.csv", "--noise", "1e-4")
    assert ran.code == 0, ran.err
    assert "trust      0.00" in ran.out
    assert ran.err.startswith("note: a change would do more harm than good")
    assert run("denoise", "measured.csv", "-o", "b.csv", "--noise", "0").err == ""


@pytest.mark.parametrize("solver", ["regression", "closed-form", "fixed-point", "newton", "lbfgs"])
def test_solvers(solver, run, files):
    ran = run("denoise", "measured.csv", "-o", "out.csv", "--solver", solver, "--components", "5")
    assert ran.code == 0, ran.err
    X = numbers(files["folder"] / "out.csv", "x", "y") / [1.0, 10.0]
    assert np.abs(np.linalg.norm(X, axis=1) - 1.0).mean() < 0.1


def test_a_given_kernel_is_in_the_units_of_the_data(run, files):
    X = np.load(files["folder"] / "complete.npy") * [1.0, 10.0, 1.0, 0.1]
    np.save("t.npy", X)
    run("anomalies", "t.npy", "-o", "a.npz", "--kernel", "gaussian:3")
    run("denoise", "t.npy", "-o", "b.npy", "--kernel", "laplace:30", "--noise", "0.5")
    novelty = KernelNovelty(Gaussian(3.0), random_state=0).fit(X)
    with np.load("a.npz") as found:
        np.testing.assert_allclose(found["score"], -novelty.score_samples(X), rtol=1e-9)
    model = KernelDenoiser(kernel=Laplace(30.0), noise=0.5, random_state=0).fit(X)
    np.testing.assert_allclose(np.load("b.npy"), model.transform(X), rtol=1e-9)


def test_constant_columns_are_scaled_without_dividing_by_zero(run, files):
    X = np.load(files["folder"] / "complete.npy")
    X[:, 2] = 0.1  # its standard deviation is rounding, not 0
    np.save("t.npy", X)
    ran = run("denoise", "t.npy", "-o", "out.npy", "--noise", "0.3")
    assert (ran.code, ran.err) == (0, "")
    np.testing.assert_allclose(np.load("out.npy")[:, 2], 0.1, rtol=1e-12)


def test_kernels_as_words():
    assert parse_kernel("auto") == "auto"
    assert parse_kernel("Gaussian:0.5") == Gaussian(0.5)
    assert parse_kernel("matern:2.5,3") == Matern(2.5, 3.0)
    assert parse_kernel("polynomial:2") == Polynomial(2)
    assert parse_kernel("polynomial:2,1,0") == Polynomial(2, 1.0, 0.0)
    assert parse_kernel("linear") == Linear()
    assert parse_kernel("rbf:2") == Gaussian(2.0)


def test_lists_of_many():
    assert listed("abc") == "a, b, c"
    assert listed(range(10), 4) == "0, 1, 2 and 7 more"


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_bars_on_a_terminal_only(monkeypatch):
    monkeypatch.setattr(_progress, "_PATIENCE", -1.0)
    for stream, quiet, shown in (
        (Terminal(), False, True), (Terminal(), True, False), (io.StringIO(), False, False)
    ):  # fmt: skip
        monkeypatch.setattr(sys, "stderr", stream)
        assert list(Progress(quiet).each([1, 2, 3], "working")) == [1, 2, 3]
        with Progress(quiet).waiting("learning"):
            pass
        assert ("working" in stream.getvalue()) == shown
        assert ("100%" in stream.getvalue()) == shown
        assert ("learning ..." in stream.getvalue()) == shown


@pytest.mark.parametrize("count", [0, 3, 5, 9])
def test_bars_of_callbacks_end_full(count, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with Progress().steps(5, "climbing") as step:
        for _ in range(count):
            step(None)
    assert "100%" in terminal.getvalue()
    with Progress(quiet=True).steps(5, "climbing") as step:
        assert step is None


def test_short_work_has_no_bar(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    assert list(Progress().each([1, 2, 3], "working")) == [1, 2, 3]
    assert terminal.getvalue() == ""
