"""Folders of images keep names, sizes and modes."""

import numpy as np
import pytest
from PIL import Image

from mercer.estimators import KernelDenoiser

from .conftest import write_image, write_images


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
    assert "unchanged   notes.txt, sub.png (not an image)\n" in ran.out
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
