"""Regions of images: known ones, a naive ascent, small regions, and images that are hardly any."""

import numpy as np
import pytest

import mercer as mc
from mercer.methods.segmentation._regions import joined_regions, without_small_regions
from mercer.methods.segmentation._segment import segment


def disc(size=32, radius=9.0):
    rows, columns = np.indices((size, size))
    middle = 0.5 * (size - 1)
    return (rows - middle) ** 2 + (columns - middle) ** 2 < radius**2


def naive_ends(image, spatial, colour, steps=100):
    """Plain means of the pixels in the window, pixel by pixel."""
    h, w = image.shape[:2]
    values = image.reshape(h * w, -1)
    Z = np.array([(i // w / spatial, i % w / spatial, *(values[i] / colour)) for i in range(h * w)])
    ends = Z.copy()
    for i in range(len(Z)):
        for _ in range(steps):
            inside = np.sum((Z - ends[i]) ** 2, axis=1) <= 1.0
            ends[i] = Z[inside].mean(axis=0)
    return ends


@pytest.mark.parametrize("kernel", ["epanechnikov", "gaussian"])
def test_a_noisy_disc(kernel, rng):
    noisy = disc() + 0.1 * rng.normal(size=(32, 32))
    found = segment(noisy, 5.0, 0.5, kernel=kernel)
    assert found.n_segments == 2
    np.testing.assert_array_equal(found.labels, disc())
    np.testing.assert_allclose(found.colours[:, 0], [0.0, 1.0], atol=0.03)
    assert np.abs(found.filtered - disc()).mean() < 0.5 * np.abs(noisy - disc()).mean()
    assert found.sizes.tolist() == [int((~disc()).sum()), int(disc().sum())]


def test_filtered_is_the_naive_ascent(rng):
    image = rng.uniform(size=(9, 11, 2))
    found = segment(image, 3.0, 0.4, tol=1e-9, min_size=1)
    ends = naive_ends(image, 3.0, 0.4)
    np.testing.assert_allclose(found.filtered, 0.4 * ends[:, 2:].reshape(9, 11, 2), atol=1e-7)
    np.testing.assert_array_equal(  # the same partition, whatever the numbers
        same(found.labels), same(joined_regions(ends[:, 2:], (9, 11), 0.25))
    )


def same(labels):
    return labels.ravel()[:, None] == labels.ravel()[None, :]


def test_colours_are_means_and_regions_are_connected(rng):
    image = rng.uniform(size=(20, 24, 3)).round(1)
    found = segment(image, 4.0, 0.3, min_size=3)
    for k in range(found.n_segments):
        inside = found.labels == k
        np.testing.assert_allclose(found.colours[k], image[inside].mean(axis=0))
        assert found.sizes[k] == inside.sum()
        parts = joined_regions(inside.reshape(-1, 1).astype(float), inside.shape, 0.5)
        assert len(np.unique(parts[inside])) == 1
    assert (found.sizes >= 3).all()
    assert (np.diff(found.sizes) <= 0).all()
    np.testing.assert_array_equal(found.painted(), found.colours[found.labels])


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32, np.float64, bool])
def test_types_mean_the_same_image(dtype):
    image = disc()
    top = np.iinfo(dtype).max if np.dtype(dtype).kind == "u" else 1
    found = segment((image * top).astype(dtype), 3.0)
    np.testing.assert_array_equal(found.labels, image)
    np.testing.assert_allclose(found.colours.ravel(), [0.0, 1.0])
    assert found.filtered.dtype == np.float64


@pytest.mark.parametrize("channels", [None, 1, 3, 5])
def test_channels(channels):
    image = disc().astype(float)
    stacked = image if channels is None else np.stack([image] * channels, axis=2)
    found = segment(stacked, 3.0)
    assert found.filtered.shape == stacked.shape
    assert found.painted().shape == stacked.shape
    assert found.colours.shape == (2, channels or 1)
    np.testing.assert_array_equal(found.labels, image)


@pytest.mark.parametrize("shape", [(1, 1), (1, 1, 3), (1, 30), (30, 1, 3), (24, 24)])
def test_constant_images_are_one_region(shape):
    found = segment(np.full(shape, 0.3), 4.0)
    assert found.n_segments == 1
    assert found.sizes.tolist() == [shape[0] * shape[1]]
    np.testing.assert_allclose(found.filtered, 0.3)
    assert not found.edges().any()


def test_edges_lie_between_regions():
    image = np.zeros((4, 6))
    image[:, 3:] = 1.0
    edges = segment(image, 2.0, min_size=1).edges()
    assert edges[:, 2].all()
    assert edges.sum() == 4


def test_small_regions_go_to_the_nearest_colour():
    regions = np.array([[0, 0, 0, 1, 2, 2], [0, 0, 0, 3, 2, 2]])
    values = np.array([0.0, 0.0, 0.0, 0.4, 1.0, 1.0, 0.0, 0.0, 0.0, 0.9, 1.0, 1.0])[:, None]
    labels, colours, counts = without_small_regions(regions, values, 2)
    # 1 goes first: nearest to 0 (0.4) rather than to 3 (0.5) or 2 (0.6); then 3 goes to 2
    assert labels.tolist() == [[0, 0, 0, 0, 1, 1], [0, 0, 0, 1, 1, 1]]
    np.testing.assert_allclose(colours[:, 0], [0.4 / 7.0, 4.9 / 5.0])
    assert counts.tolist() == [7, 5]


def test_small_regions_grow_together_and_an_image_of_them_is_one():
    regions = np.arange(9).reshape(3, 3)
    values = np.linspace(0.0, 1.0, 9)[:, None]
    labels, colours, counts = without_small_regions(regions, values, 100)
    assert counts.tolist() == [9]
    assert not labels.any()
    np.testing.assert_allclose(colours, [[0.5]])
    assert len(without_small_regions(regions, values, 1)[2]) == 9


def test_distances_join_along_the_image_only():
    ends = np.array([0.0, 0.4, 0.8, 5.0, 0.8])[:, None]
    assert joined_regions(ends, (1, 5), 0.5).tolist() == [[0, 0, 0, 1, 2]]
    assert joined_regions(ends, (1, 5), 0.3).max() == 4


def test_callback_can_stop(rng):
    steps = []
    image = rng.uniform(size=(12, 12))
    segment(image, callback=steps.append)
    assert [s.n_iter for s in steps] == list(range(len(steps)))
    assert len(steps) > 2
    found = segment(image, callback=lambda _: True)
    np.testing.assert_allclose(found.filtered, image, atol=1e-12)


@pytest.mark.parametrize(
    ("image", "options", "message"),
    [
        (np.full((3, 3), np.nan), {}, "NaN"),
        (np.full((3, 3), np.inf), {}, "infinite|finite"),
        (np.zeros(5), {}, r"shape \(h, w\)"),
        (np.zeros((0, 4)), {}, "not be empty"),
        (np.zeros((2, 2, 0)), {}, "not be empty"),
        (np.zeros((2, 2), dtype=int), {}, "unsigned"),
        (np.array([["a"]]), {}, "unsigned"),
        (np.zeros((2, 2)), {"spatial": 0.0}, "spatial must be > 0"),
        (np.zeros((2, 2)), {"colour": -1.0}, "colour must be > 0"),
        (np.zeros((2, 2)), {"kernel": "flat"}, "'epanechnikov', 'gaussian'"),
        (np.zeros((2, 2)), {"min_size": 0}, "min_size"),
        (np.zeros((2, 2)), {"join": -0.1}, "join"),
    ],
)
def test_refusals(image, options, message):
    with pytest.raises(mc.InputError, match=message):
        segment(image, **options)
