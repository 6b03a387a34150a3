"""NumPy files: arrays keep their shapes and types."""

import zipfile

import numpy as np
import pytest

from mercer.estimators import KernelDenoiser


@pytest.fixture
def stack(rng, tmp_path):
    """Noisy curves in twelve dimensions."""
    t = rng.uniform(0.0, 3.0, (80, 1))
    clean = np.sin(t + 0.3 * np.arange(12))
    return clean + 0.1 * rng.normal(size=clean.shape)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_arrays_keep_their_type(kind, run, stack):
    np.save("a.npy", stack.astype(kind))
    ran = run("denoise", "a.npy", "-o", "b.npy", "--no-scale")
    assert ran.code == 0, ran.err
    found = np.load("b.npy")
    assert found.dtype == kind
    expected = KernelDenoiser(random_state=0).fit(stack.astype(kind)).transform(stack.astype(kind))
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_half_precision_does_not_overflow(run, files):
    """A change may lead out of the range of float16, which ends at 65,504."""
    t = np.linspace(0.0, 2.0 * np.pi, 60)
    X = np.column_stack([np.cos(t), np.sin(t)]) * 65_500.0
    X[:5, 0] *= 0.5
    np.save("a.npy", X.astype(np.float16))
    assert run("denoise", "a.npy", "-o", "b.npy", "--noise", "0.3").code == 0
    assert np.isfinite(np.load("b.npy")).all()


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
    ran = run("denoise", "a.npy", "-o", "b.npy", "--columns", "0,1,2,3,4", "--noise", "0.3")
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
    monkeypatch.setattr(_denoise, "LANDMARKS", 50)
    monkeypatch.setattr(_run, "_BLOCK", 37)
    np.save("a.npy", X)
    ran = run("denoise", "a.npy", "-o", "b.npy", "--no-scale", "--noise", "0.1")
    assert ran.code == 0, ran.err
    expected = KernelDenoiser(noise=0.1, random_state=0, n_landmarks=50).fit(X).transform(X)
    np.testing.assert_allclose(np.load("b.npy"), expected, rtol=1e-9)


def test_archives_with_other_things_are_refused(run, stack):
    with zipfile.ZipFile("a.npz", "w") as archive:
        archive.writestr("readme.txt", "about X")
        with archive.open("X.npy", "w") as file:
            np.save(file, stack)
    ran = run("denoise", "a.npz", "-o", "b.npz", "--array", "X")
    assert (ran.code, "a.npz also holds what is no array: readme.txt" in ran.err) == (1, True)
