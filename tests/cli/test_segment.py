"""`mercer segment`: an image in, an image or an array out."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image


@pytest.fixture
def photo(tmp_path, rng):
    """A disc on a ground, in colour, with a little noise."""
    rows, columns = np.indices((40, 48))
    disc = (rows - 20.0) ** 2 + (columns - 20.0) ** 2 < 120.0
    colours = np.where(disc[:, :, None], [200.0, 60.0, 40.0], [40.0, 90.0, 160.0])
    noisy = np.clip(colours + 6.0 * rng.normal(size=colours.shape), 0.0, 255.0).astype(np.uint8)
    Image.fromarray(noisy).save(tmp_path / "photo.png")
    return noisy, disc


def opened(path):
    with Image.open(path) as image:
        image.load()
        return image.copy()


def pixels(path):
    return np.asarray(opened(path))


def test_regions_in_their_mean_colours(run, photo):
    noisy, disc = photo
    ran = run("segment", "photo.png", "-o", "out.png")
    assert ran.code == 0
    assert "48 x 40 pixels" in ran.out
    assert "2 regions" in ran.out
    out = pixels("out.png")
    assert len(np.unique(out.reshape(-1, 3), axis=0)) == 2
    np.testing.assert_array_equal(out[20, 20], np.rint(noisy[disc].mean(axis=0)))


def test_labels_as_an_array(run, photo):
    _, disc = photo
    assert run("segment", "photo.png", "-o", "out.npy").code == 0
    np.testing.assert_array_equal(np.load("out.npy"), disc)


def test_lines_between_regions_contrast_with_what_they_lie_on(run, photo):
    noisy, _ = photo
    assert run("segment", "photo.png", "-o", "out.png", "--show", "edges").code == 0
    changed = (pixels("out.png") != noisy).any(axis=2)
    assert 20 < changed.sum() < 120
    assert (pixels("out.png")[changed] == 255).all()  # both colours are dark


@pytest.mark.parametrize("mode", ["L", "LA", "RGBA", "P", "1", "I;16"])
@pytest.mark.parametrize("show", ["mean", "smooth", "edges"])
def test_modes_of_images(mode, show, run, photo):
    image = opened("photo.png").resize((14, 12))
    if mode == "I;16":
        image = Image.fromarray(np.asarray(image.convert("L")).astype(np.uint16) * 257)
    else:
        image = image.convert(mode)
    image.save("other.png")
    ran = run("segment", "other.png", "-o", "out.png", "--show", show, "--spatial", "3")
    assert (ran.code, ran.err) == (0, "")
    out = opened("out.png")
    assert out.size == (14, 12)
    assert out.mode == {"P": "RGB", "1": "L"}.get(mode, mode)


def test_opacity_is_dropped_where_the_format_has_none(run, photo):
    opened("photo.png").convert("RGBA").save("clear.png")
    assert run("segment", "clear.png", "-o", "out.jpg").code == 0
    assert opened("out.jpg").size == (48, 40)


def test_quiet(run, photo):
    ran = run("segment", "photo.png", "-o", "out.png", "-q", "--kernel", "gaussian")
    assert (ran.code, ran.out, ran.err) == (0, "", "")


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["photo.png", "-o", "photo.png"], 2, "never overwritten"),
        (["photo.png", "-o", "photo.png", "--force"], 2, "never overwritten"),
        (["photo.png", "-o", "taken.png"], 2, "--force"),
        (["photo.png", "-o", "out.csv"], 2, "must end in"),
        (["photo.png", "-o", "there/out.png"], 2, "does not exist"),
        (["none.png", "-o", "out.png"], 2, "none.png does not exist"),
        (["table.csv", "-o", "out.png"], 2, "is not an image"),
        (["broken.png", "-o", "out.png"], 1, "cannot be read as an image"),
        (["photo.png", "-o", "out.png", "--spatial", "0"], 2, "--spatial 0"),
        (["photo.png", "-o", "out.png", "--colour", "nan"], 2, "--colour nan"),
        (["photo.png", "-o", "out.png", "--min-size", "0"], 2, "--min-size"),
        (["photo.png", "-o", "out.png", "--kernel", "flat"], 2, "--kernel"),
    ],
)
def test_refusals(words, code, message, run, photo):
    for name in ("taken.png", "broken.png", "table.csv"):
        Path(name).write_text("not an image")
    before = Path("photo.png").read_bytes()
    ran = run("segment", *words)
    assert ran.code == code
    assert message in ran.err
    assert len(ran.err.splitlines()) == 1
    assert Path("photo.png").read_bytes() == before
    assert not Path("out.png").exists()
