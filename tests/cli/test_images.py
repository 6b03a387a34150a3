"""Folders of images keep names, sizes and modes."""

import struct

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
    np.testing.assert_array_equal(pixels(tmp_path / "a" / "2.png")[1], deep[2])
    for mode, kept in (("P", "RGB"), ("1", "L")):
        folder = tmp_path / mode
        folder.mkdir()
        for i in range(4):
            bits = rng.integers(0, 2, (6, 5, 3)).astype(np.uint8) * 255
            Image.fromarray(bits).convert(mode).save(folder / f"{i}.png")
        assert run("denoise", mode, "-o", mode + "out", "--noise", "0").code == 0
        assert pixels(tmp_path / (mode + "out") / "0.png")[0] == kept


def save_folder(folder, image, count=4, **options):
    """The same image under several names, turned a little darker each time."""
    folder.mkdir()
    for i in range(count):
        image.point(lambda v, i=i: v * (10 - i) // 10).save(
            folder / f"{i}{options.get('suffix', '.png')}",
            **{k: v for k, v in options.items() if k != "suffix"},
        )


def noise_of(rng, *shape):
    return rng.integers(0, 256, shape).astype(np.uint8)


def opened(path):
    with Image.open(path) as image:
        image.load()
        return image.copy()


@pytest.mark.parametrize("suffix", [".png", ".tif", ".pgm"])
def test_sixteen_bits_stay_sixteen_bits(suffix, run, tmp_path, rng):
    (tmp_path / "in").mkdir()
    deep = rng.integers(0, 65_536, (4, 6, 5)).astype(np.uint16)
    for i, array in enumerate(deep):
        write_image(tmp_path / "in" / f"{i}{suffix}", array)
    assert run("denoise", "in", "-o", "out", "--noise", "0").code == 0
    np.testing.assert_array_equal(pixels(tmp_path / "out" / f"1{suffix}")[1], deep[1])
    assert run("segment", f"in/1{suffix}", "-o", "one.png", "--show", "smooth").code == 0
    assert opened(tmp_path / "one.png").mode == "I;16"
    assert run("segment", f"in/1{suffix}", "-o", "one.jpg").code == 0
    assert opened(tmp_path / "one.jpg").mode == "L"


@pytest.mark.parametrize("suffix", [".jpg", ".tif"])
def test_cmyk(suffix, run, tmp_path, rng):
    image = Image.fromarray(noise_of(rng, 2, 2, 4), mode="CMYK").resize((16, 16))
    save_folder(tmp_path / "in", image, suffix=suffix)
    ran = run("denoise", "in", "-o", "out", "--noise", "0")
    assert ran.code == 0, ran.err
    assert "16 x 16 pixels in CMYK" in ran.out
    before, after = opened(tmp_path / "in" / f"2{suffix}"), opened(tmp_path / "out" / f"2{suffix}")
    assert after.mode == "CMYK"
    most = 0 if suffix == ".tif" else 25
    assert np.abs(np.asarray(before, int) - np.asarray(after, int)).max() <= most
    assert run("segment", f"in/2{suffix}", "-o", f"a{suffix}", "--show", "smooth").code == 0
    assert opened(tmp_path / f"a{suffix}").mode == "CMYK"
    assert run("segment", f"in/2{suffix}", "-o", "a.png", "--colour", "0.01", "--min-size", "1",
               "--show", "smooth").code == 0  # fmt: skip
    shown = np.asarray(opened(tmp_path / "a.png"), int)
    assert np.abs(shown - np.asarray(before.convert("RGB"), int)).mean() < 10


@pytest.mark.parametrize("orientation", range(1, 9))
def test_photographs_come_out_upright(orientation, run, tmp_path, rng):
    upright = Image.fromarray(noise_of(rng, 6, 4, 3))
    turned = {1: None, 2: 0, 3: 3, 4: 1, 5: 5, 6: 2, 7: 6, 8: 4}[orientation]
    stored = upright if turned is None else upright.transpose(Image.Transpose(turned))
    exif = Image.Exif()
    exif[0x0112] = orientation
    save_folder(tmp_path / "in", stored, exif=exif)
    ran = run("denoise", "in", "-o", "out", "--noise", "0")
    assert "4 x 6 pixels" in ran.out
    found = opened(tmp_path / "out" / "0.png")
    np.testing.assert_array_equal(np.asarray(found), np.asarray(upright))
    assert found.getexif().get(0x0112, 1) == 1
    assert run("segment", "in/0.png", "-o", "one.png").code == 0
    assert opened(tmp_path / "one.png").size == (4, 6)


def test_gif(run, tmp_path, rng):
    image = Image.fromarray(noise_of(rng, 3, 3, 3)).resize((9, 12), Image.Resampling.NEAREST)
    save_folder(tmp_path / "in", image, suffix=".gif")
    ran = run("denoise", "in", "-o", "out", "--noise", "0")
    assert ran.code == 0, ran.err
    before, after = (opened(tmp_path / name / "2.gif").convert("RGB") for name in ("in", "out"))
    np.testing.assert_array_equal(np.asarray(before), np.asarray(after))
    assert run("segment", "in/0.gif", "-o", "a.gif").code == 0
    image.save(tmp_path / "in" / "3.gif", save_all=True, append_images=[image.rotate(90)] * 3)
    ran = run("denoise", "in", "-o", "b", "--noise", "0")
    assert ran.code == 1
    assert "3.gif contains 2 images; save each in its own file" in ran.err


@pytest.mark.parametrize("mode", ["P", "L", "RGB", "LA", "RGBA", "GIF"])
def test_transparency(mode, run, tmp_path, rng):
    colours = np.repeat(np.repeat(noise_of(rng, 3, 3, 3), 2, axis=0), 2, axis=1)
    image, suffix, options = Image.fromarray(colours), ".png", {}
    if mode in ("P", "GIF"):
        image, options = image.quantize(9), {"transparency": 3}
        suffix = ".png" if mode == "P" else ".gif"
    elif mode in ("LA", "RGBA"):
        image = image.convert(mode)
        image.putalpha(Image.fromarray(noise_of(rng, 6, 6)))
    else:
        image = image.convert(mode)
        options["transparency"] = image.getpixel((2, 2))
    (tmp_path / "in").mkdir()
    for i in range(4):
        image.save(tmp_path / "in" / f"{i}{suffix}", **options)
    image.rotate(90).save(tmp_path / "in" / f"4{suffix}", **options)
    ran = run("denoise", "in", "-o", "out", "--noise", "0")
    assert ran.code == 0, ran.err
    before, after = (opened(tmp_path / name / f"0{suffix}") for name in ("in", "out"))
    if mode not in ("P", "GIF"):
        assert after.mode.rstrip("A") == mode.rstrip("A")
    seen = [np.asarray(image.convert("RGBA")) for image in (before, after)]
    np.testing.assert_array_equal(seen[0][..., 3], seen[1][..., 3])
    shown = seen[0][..., 3] > 0
    np.testing.assert_array_equal(seen[0][shown], seen[1][shown])


def test_colour_profiles_and_resolutions_are_kept(run, tmp_path, rng):
    save_folder(tmp_path / "in", Image.fromarray(noise_of(rng, 6, 5, 3)), icc_profile=b"profile",
                dpi=(300, 300))  # fmt: skip
    assert run("denoise", "in", "-o", "out", "--noise", "0").code == 0
    found = opened(tmp_path / "out" / "0.png").info
    assert found["icc_profile"] == b"profile"
    assert round(float(found["dpi"][0])) == 300


def test_photographs_with_previews(run, tmp_path, rng):
    """Cameras store several images in one file (MPO); the first is the photograph."""
    image = Image.fromarray(noise_of(rng, 8, 8, 3))
    for name in ("a.jpg", "b.jpg", "c.jpg"):
        image = image.rotate(90)
        (tmp_path / "in").mkdir(exist_ok=True)
        with (tmp_path / "in" / name).open("wb") as file:
            image.save(file, "MPO", save_all=True, append_images=[image.resize((4, 4))])
    ran = run("anomalies", "in", "-o", "out.csv")
    assert ran.code == 0, ran.err
    assert "3 images of 8 x 8 pixels in colour" in ran.out


@pytest.mark.parametrize("stored", [(0, 0), (2**32 - 1, 1)])
def test_resolutions_that_cannot_be_written_are_dropped(stored, run, tmp_path, rng):
    """Some cameras write 0/0."""
    path = tmp_path / "a.tif"
    Image.fromarray(noise_of(rng, 12, 12)).save(path, dpi=(7, 7))
    content = path.read_bytes()
    assert struct.pack("<2I", 7, 1) in content
    path.write_bytes(content.replace(struct.pack("<2I", 7, 1), struct.pack("<2I", *stored)))
    for suffix in (".png", ".jpg", ".tif"):
        assert run("segment", "a.tif", "-o", "b" + suffix).code == 0
        assert opened(tmp_path / f"b{suffix}").info.get("dpi", (1, 1))[0] <= 1
