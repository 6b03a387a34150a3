"""Pictures of modes, by what is in them: marks, colours, regions, words."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

import mercer as mc
from mercer.methods.modes._scale_space import ScaleSpace
from mercer.plot._modes import _basin_image, plot_basins, plot_modes, plot_scale_space
from mercer.plot._style import COLOURS


def blobs(rng, count=30):
    centres = np.array([[0.0, 0.0], [6.0, 1.0], [1.0, 6.0]])
    return np.concatenate([c + rng.normal(size=(count, 2)) for c in centres])


def found_in(X, scale=1.2):
    density = mc.mean_embedding(mc.Gaussian(scale), X)
    return density, mc.mean_shift(density)


def words(axis):
    return [text.get_text() for text in axis.texts]


def test_points_have_the_colour_of_their_mode(rng):
    X = blobs(rng)
    density, found = found_in(X)
    axis = plot_modes(found, X, density=density)
    assert axis.get_title() == "3 modes"
    drawn = {to_hex(line.get_color()).upper(): line.get_xydata() for line in axis.lines[1:4]}
    for k in range(3):
        np.testing.assert_array_equal(drawn[COLOURS[k]], X[found.labels == k])
    rings = [line for line in axis.lines if to_hex(line.get_markerfacecolor()) == "#ffffff"]
    np.testing.assert_array_equal(rings[0].get_xydata(), found.points)
    assert words(axis) == ["0", "1", "2"]
    axis.figure.canvas.draw()


def test_an_estimator_can_be_drawn_and_outliers_are_grey(rng):
    X = np.vstack([blobs(rng), [[20.0, 20.0]]])
    model = mc.MeanShift(bandwidth=1.2, min_cluster_size=2).fit(X)
    axis = plot_modes(model, X)
    assert axis.get_title() == "3 modes, 1 point without"
    np.testing.assert_array_equal(axis.lines[0].get_xydata(), [[20.0, 20.0]])


def test_many_modes_are_not_numbered_and_markers_tell_them_apart(rng):
    X = 10.0 * np.stack(np.meshgrid(np.arange(6.0), np.arange(5.0)), axis=-1).reshape(-1, 2)
    _, found = found_in(X)
    axis = plot_modes(found, X)
    assert words(axis) == []
    styles = {(to_hex(line.get_color()), line.get_marker()) for line in axis.lines[1:31]}
    assert len(styles) == 30


@pytest.mark.parametrize("with_density", [True, False])
def test_on_the_line(with_density, rng):
    x = np.concatenate([rng.normal(0.0, 1.0, (20, 1)), rng.normal(8.0, 1.0, (10, 1))])
    density, found = found_in(x)
    axis = plot_modes(found, x, density=density if with_density else None, names=["age"])
    assert axis.get_xlabel() == "age"
    tops = [line.get_xydata()[0] for line in axis.lines if len(line.get_xdata()) == 1]
    np.testing.assert_allclose(tops, np.column_stack([found.points[:, 0], found.density]))
    curves = [line.get_xydata() for line in axis.lines if len(line.get_xdata()) > 1]
    assert len(curves) == with_density
    if with_density:
        np.testing.assert_allclose(curves[0][:, 1], density(curves[0][:, :1]))
    axis.figure.canvas.draw()


def test_two_columns_of_more(rng):
    X = rng.normal(size=(20, 4))
    _, found = found_in(X, 5.0)
    axis = plot_modes(found, X, columns=(3, 1), names=list("abcd"))
    assert (axis.get_xlabel(), axis.get_ylabel()) == ("d", "b")
    np.testing.assert_array_equal(axis.lines[1].get_xydata(), X[:, [3, 1]])


def test_contours_turn_with_the_columns(rng):
    X = blobs(rng)
    density, found = found_in(X)
    axis = plot_modes(found, X, density=density, columns=(1, 0))
    lines = axis.collections[0]
    half = list(lines.levels / lines.levels[-1]).index(pytest.approx(0.5 / 0.95))
    on_it = density(lines.get_paths()[half].vertices[:, ::-1])
    np.testing.assert_allclose(on_it, lines.levels[half], rtol=0.02)


def test_basins_are_coloured_as_mean_shift_says(rng):
    X = blobs(rng)
    density, found = found_in(X)
    axis = plot_basins(density, resolution=24)
    assert axis.get_title() == "3 modes and their basins"
    image = axis.images[0]
    pixels, (left, right, low, high) = image.get_array(), image.get_extent()
    at = ((X - [left, low]) / [right - left, high - low] * 24).astype(int)
    colours = pixels[at[:, 1], at[:, 0]]
    for k in range(3):
        middle = np.linalg.norm(X[found.labels == k] - found.points[k], axis=1) < 1.0
        assert len(np.unique(colours[found.labels == k][middle], axis=0)) == 1
    assert len(np.unique(pixels.reshape(-1, 3), axis=0)) == 3
    axis.figure.canvas.draw()


def test_where_a_window_reaches_nobody_is_white():
    density = mc.mean_embedding(mc.Epanechnikov(1.0), [[0.0, 0.0], [5.0, 5.0]])
    pixels = plot_basins(density, resolution=20).images[0].get_array()
    assert (pixels[0, -1] == 1.0).all()
    assert (pixels[1, 1] < 1.0).any()


def test_a_part_of_the_plane_and_a_density_of_groups():
    f = mc.methods.adaptive_density(mc.Gaussian(1.0), [[0.0, 0.0], [1.0, 0.5], [5.0, 5.0]])
    axis = plot_basins(f, low=(-1.0, -1.0), high=(2.0, 3.0), resolution=10, names=["u", "v"])
    assert axis.get_xlim() == (-1.0, 2.0)
    assert axis.get_ylim() == (-1.0, 3.0)
    assert axis.get_ylabel() == "v"


def test_touching_basins_differ_in_colour(rng):
    labels = rng.permutation(12).reshape(3, 4).repeat(3, axis=0).repeat(3, axis=1)
    image = _basin_image(labels, 12)
    for a, b, p, q in (
        (labels[:, 1:], labels[:, :-1], image[:, 1:], image[:, :-1]),
        (labels[1:], labels[:-1], image[1:], image[:-1]),
    ):
        np.testing.assert_array_equal(a == b, (p == q).all(axis=2))


def test_scale_space_marks_the_plateau():
    space = ScaleSpace(np.array([1.0, 2.0, 4.0, 8.0, 16.0]), np.array([7, 3, 3, 3, 1]))
    axis = plot_scale_space(space)
    assert axis.get_title() == "3 modes from 1.414 to 11.31; in the middle 4"
    assert axis.get_xscale() == axis.get_yscale() == "log"
    assert axis.lines[0].get_xdata()[0] == pytest.approx(4.0)
    np.testing.assert_array_equal(axis.lines[1].get_ydata(), space.n_modes)
    box = axis.patches[0].get_extents().transformed(axis.transData.inverted())
    np.testing.assert_allclose([box.x0, box.x1], [2**0.5, 8 * 2**0.5], rtol=1e-6)
    assert [t.get_text() for t in axis.get_yticklabels()] == ["1", "2", "3", "4", "5", "7"]
    axis.figure.canvas.draw()


def test_given_axes_are_drawn_on(rng):
    own = Figure()
    first, second, third = own.subplots(1, 3)
    X = blobs(rng)
    density, found = found_in(X)
    assert plot_modes(found, X, ax=first) is first
    assert plot_basins(density, resolution=5, ax=second) is second
    space = ScaleSpace(np.array([1.0, 2.0]), np.array([2, 1]))
    assert plot_scale_space(space, ax=third) is third
    assert own.axes == [first, second, third]
    assert plt.get_fignums() == []


LINE = mc.mean_embedding(mc.Gaussian(1.0), [[0.0], [1.0]])
PLANE = mc.mean_embedding(mc.Gaussian(1.0), [[0.0, 0.0], [1.0, 0.0]])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: plot_modes(mc.mean_shift(LINE), [[0.0]]), r"shape \(2, 1\), got \(1, 1\)"),
        (lambda: plot_modes(7, [[0.0]]), "fitted MeanShift"),
        (lambda: plot_modes(mc.mean_shift(PLANE), PLANE.points, columns=(0, 2)), "below 2"),
        (lambda: plot_modes(mc.mean_shift(PLANE), PLANE.points, names=["a"]), "a list of 2"),
        (lambda: plot_modes(mc.mean_shift(PLANE), PLANE.points, columns=None), "two different"),
        (lambda: plot_modes(mc.mean_shift(PLANE), PLANE.points, columns=(0, 0.5)), "two different"),
        (lambda: plot_modes(mc.mean_shift(PLANE), PLANE.points, density=3), "density must be"),
        (
            lambda: plot_modes(
                mc.mean_shift(PLANE), PLANE.points, density=mc.feature(PLANE.kernel, PLANE.points)
            ),
            "not a batch",
        ),
        (lambda: plot_basins(None), "density must be an Element"),
        (lambda: plot_basins(PLANE, low="a"), "low must"),
        (lambda: plot_scale_space(PLANE), "result of scale_space"),
        (lambda: plot_basins(LINE), "two dimensions"),
        (lambda: plot_basins(PLANE, low=(0.0, 0.0), high=(0.0, 1.0)), "low < high"),
        (lambda: plot_basins(PLANE, ax=Figure().subplots(1, 2)), "1 matplotlib axes"),
    ],
)
def test_refusals_say_what_to_do(call, message):
    with pytest.raises(mc.InputError, match=message):
        call()
