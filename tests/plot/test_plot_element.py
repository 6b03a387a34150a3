"""Pictures of elements: values, signs of coefficients, marks, names."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex

import mercer as mc
from mercer.plot import plot_element
from mercer.plot._style import BLUE, ORANGE

LINE = mc.Element(mc.Gaussian(0.8), [[2.0], [4.4], [5.6], [8.0]], [0.6, -0.7, -0.6, 0.8])
PLANE = mc.Element(mc.Gaussian(0.7), [[-1.0, 0.9], [0.3, 1.2], [1.3, -1.0]], [1.0, -0.6, 0.7])
WORDS = mc.mean_embedding(mc.Spectrum(2), ["abc", "abd"])


def marks(axis):
    (line,) = [line for line in axis.lines if to_hex(line.get_markerfacecolor()) == "#ffffff"]
    return line.get_xydata()


def test_a_curve_with_its_marks():
    axis = plot_element(LINE, [[3.0], [8.1]], names=["age"])
    curve = axis.lines[0].get_xydata()
    np.testing.assert_allclose(curve[:, 1], LINE(curve[:, :1]))
    np.testing.assert_allclose(marks(axis), np.c_[[3.0, 8.1], LINE([[3.0], [8.1]])])
    assert axis.get_xlabel() == "age"
    for sign, colour in ((1, BLUE), (-1, ORANGE)):
        label = f"coefficient {'>' if sign > 0 else '<'} 0"
        (ticks,) = [c for c in axis.collections if c.get_label() == label]
        at = [segment[0, 0] for segment in ticks.get_segments()]
        np.testing.assert_array_equal(at, np.array([2.0, 8.0] if sign > 0 else [4.4, 5.6]))
        assert to_hex(ticks.get_color()[0]).upper() == colour


@pytest.mark.parametrize("columns", [(0, 1), (1, 0)])
def test_contours_in_the_plane(columns):
    axis = plot_element(PLANE, PLANE.points[:1], columns=columns)
    assert (axis.get_xlabel(), axis.get_ylabel()) == tuple(f"x{j}" for j in columns)
    shades, lines, *points = axis.collections
    np.testing.assert_allclose(shades.levels, -shades.levels[::-1])  # centred at zero
    level = int(np.argmin(np.abs(lines.levels - 0.4)))
    on_it = PLANE(lines.get_paths()[level].vertices[:, columns])
    np.testing.assert_allclose(on_it, lines.levels[level], atol=0.01)
    up, down = PLANE.points[[0, 2]], PLANE.points[[1]]
    for drawn, rows in zip(points, (up, down), strict=True):
        np.testing.assert_array_equal(drawn.get_offsets(), rows[:, columns])
    np.testing.assert_array_equal(marks(axis), PLANE.points[:1, columns])


def test_one_sign_needs_no_legend_and_half_a_colour_bar():
    axis = plot_element(mc.mean_embedding(mc.Gaussian(1.0), PLANE.points))
    assert axis.get_legend() is None
    assert axis.figure.axes[1].get_ylim()[0] == 0.0
    below = plot_element(-1.0 * mc.mean_embedding(mc.Gaussian(1.0), PLANE.points))
    assert below.figure.axes[1].get_ylim()[1] == 0.0


def test_more_columns_have_the_colour_of_the_value(rng):
    X = rng.normal(size=(20, 3))
    psi = mc.Element(mc.Gaussian(1.0), X, rng.normal(size=20))
    axis = plot_element(psi, columns=("c", "a"), names=list("abc"))
    assert "2 of 3 columns" in axis.get_title()
    coef = np.asarray(psi.coef.tile(slice(None), slice(None)))[:, 0]
    for drawn, rows in zip(axis.collections, (X[coef > 0], X[coef < 0]), strict=True):
        np.testing.assert_array_equal(drawn.get_offsets(), rows[:, [2, 0]])
        rgb, values = drawn.get_facecolor(), psi(rows)
        clear = np.abs(values) > 0.05
        assert (np.sign(rgb[:, 2] - rgb[:, 0])[clear] == np.sign(values[clear])).all()


def test_names_of_a_frame():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame([[0.0, 0.0]], columns=["age", "income ($)"])
    axis = plot_element(PLANE, frame)
    assert (axis.get_xlabel(), axis.get_ylabel()) == ("age", "income ($)")
    axis.figure.canvas.draw()


@pytest.mark.parametrize(
    "psi",
    [
        mc.feature(mc.Gaussian(1.0), [[0.0, 1.0]])[0],  # one point
        mc.Element(mc.Gaussian(1.0), [[0.0, 1.0]], [0.0]),  # zero
        mc.mean_embedding(mc.Gaussian(1.0), [[1.0, 2.0]] * 3),  # duplicates
        mc.mean_embedding(mc.Gaussian(1.0), [[1.0, 2.0], [1.0, 3.0]]),  # a constant column
        mc.mean_embedding(mc.Gaussian(1.0), 1e9 + PLANE.points),
        mc.mean_embedding(mc.Gaussian(1.0), PLANE.points.astype(np.float32)),
        mc.mean_embedding(mc.Laplace(1.0), LINE.points),
        mc.Element(mc.Gaussian(1.0), [[0.0]], [1e-300]),
    ],
)
def test_awkward_elements_can_be_drawn(psi):
    plot_element(psi).figure.canvas.draw()
    plt.close("all")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: plot_element(3.0), "element must be an Element, got float"),
        (lambda: plot_element(mc.feature(mc.Gaussian(1.0), [[0.0], [1.0]])), "a batch of 2; index"),
        (lambda: plot_element(WORDS), "not dense arrays of numbers"),
        (lambda: plot_element(LINE, [[0.0, 1.0]]), "element has 1 features, but points has 2"),
        (lambda: plot_element(PLANE, columns=(0, 2)), "below 2"),
        (lambda: plot_element(PLANE, names=["a"]), "a list of 2 names"),
    ],
)
def test_refusals_say_what_to_do(call, message):
    with pytest.raises(mc.InputError, match=message):
        call()


def test_values_that_overflow_at_the_points_are_refused():
    psi = mc.Element(mc.kernels.Exponential.from_gamma(300.0), 3.0 * np.ones((1, 3)), [1.0])
    with pytest.raises(mc.InputError, match="the values at the points overflow; scale"):
        mc.plot.plot_element(psi)
