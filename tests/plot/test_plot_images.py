"""Contact sheets of images: pixels, scales, names."""

import numpy as np
import pytest
from matplotlib.colors import to_rgb

import mercer as mc
from mercer.plot import plot_images
from mercer.plot._style import ORANGE


def sheet(axis):
    return np.asarray(axis.images[0].get_array())


def pixel(picture, row, image, i, j, tall, wide):
    return picture[row * (tall + 1) + i, image * (wide + 1) + j]


def test_images_share_a_grey_scale_and_differences_are_centred(rng):
    given = rng.random((3, 12))
    found = given.copy()
    found[1, 5] += 0.5
    found[2, 0] -= 0.25
    axis = plot_images({"given": given, "found": found}, difference=True, shape=(3, 4))
    assert [t.get_text() for t in axis.get_yticklabels()] == ["given", "found", "difference"]
    picture = sheet(axis)
    assert picture.shape == (3 * 4 - 1, 3 * 5 - 1, 3)
    low, high = np.percentile([given, found], (1, 99))
    for row, images in enumerate((given, found)):
        for (n, p), value in np.ndenumerate(images):
            grey = np.clip((value - low) / (high - low), 0.0, 1.0)
            np.testing.assert_allclose(pixel(picture, row, n, *divmod(p, 4), 3, 4), grey)
    np.testing.assert_allclose(pixel(picture, 2, 0, 0, 0, 3, 4), 1.0)  # no difference is white
    more, less = pixel(picture, 2, 1, 1, 1, 3, 4), pixel(picture, 2, 2, 0, 0, 3, 4)
    assert more[2] > more[0]
    assert less[0] > less[2]
    assert (picture[3] == 1.0).all()  # white between the rows
    axis.figure.canvas.draw()


def test_missing_pixels_are_orange():
    images = np.arange(8.0).reshape(2, 2, 2)
    images[1, 0, 1] = np.nan
    picture = sheet(plot_images({"holes": images}, difference=True))
    np.testing.assert_allclose(pixel(picture, 0, 1, 0, 1, 2, 2), to_rgb(ORANGE))
    np.testing.assert_allclose(pixel(picture, 1, 1, 0, 1, 2, 2), 1.0)


def test_constant_images_can_be_drawn():
    picture = sheet(plot_images({"one": np.ones((1, 4))}, difference=True))
    assert np.isfinite(picture).all()


@pytest.mark.parametrize(
    ("rows", "shape", "message"),
    [
        (np.ones((2, 4)), None, "must be a dict"),
        ({}, None, "must be a dict"),
        ({"a": np.ones((2, 5))}, None, r"got \(2, 5\) and shape=None"),
        ({"a": np.ones((2, 6))}, (4, 2), r"shape=\(4, 2\)"),
        ({"a": np.ones((2, 6))}, 3, "shape=3"),
        ({"a": np.ones(4)}, None, "must be finite images"),
        ({"a": np.full((1, 4), np.inf)}, None, "must be finite images"),
        ({"a": np.full((1, 4), np.nan)}, None, "must be finite images"),
        ({"a": np.ones((2, 4)), "b": np.ones((1, 4))}, None, "same number of images"),
        ({"a": [["x"]]}, None, "a must"),
    ],
)
def test_refusals_say_what_to_do(rows, shape, message):
    with pytest.raises(mc.InputError, match=message):
        plot_images(rows, shape=shape)
