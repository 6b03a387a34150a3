"""Pictures of pre-image searches: paths, surrogates, regions of convexity."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex

import mercer as mc
from mercer.plot import plot_convexity, plot_path, plot_surrogate
from mercer.plot._style import ORANGE
from mercer.preimages import preimage_hessian, preimage_objective, surrogate

SIX = np.array([[-1.4, 0.9], [-0.3, 1.2], [1.3, 1.0], [0.2, -0.1], [-1.1, -1.0], [0.9, -1.3]])
SIGNS = np.array([1.0, -0.6, 0.7, 0.5, 0.6, -0.7])
PSI = mc.Element(mc.Gaussian(0.7), SIX, SIGNS)
LINE = mc.Element(mc.Gaussian(0.8), [[2.0], [4.4], [5.6], [8.0]], [0.6, -0.7, -0.6, 0.8])
POSITIVE = mc.mean_embedding(mc.Gaussian(0.8), [[0.0], [1.5], [4.0]])


def search(psi, starts):
    coef = np.asarray(psi.coef.tile(slice(None), slice(None)))
    batch = mc.Element(psi.kernel, psi.points, np.tile(coef, len(starts)))
    return mc.preimage(batch, mc.FixedPoint(), start=starts, history=True)


def paths(axis):
    return [line.get_xydata() for line in axis.lines if line.get_marker() == "."]


def marked(axis, marker):
    (line,) = [line for line in axis.lines if line.get_marker() == marker]
    return line.get_xydata()


@pytest.mark.parametrize("columns", [(0, 1), (1, 0)])
def test_paths_over_the_landscape(columns):
    starts = np.array([[-2.0, -0.2], [1.8, -0.6]])
    back = search(PSI, starts)
    axis = plot_path(back, PSI, columns=columns)
    for path, row in zip(paths(axis), back.history.points.swapaxes(0, 1), strict=True):
        np.testing.assert_array_equal(path, row[~np.isnan(row[:, 0])][:, columns])
    np.testing.assert_array_equal(marked(axis, "o"), starts[:, columns])
    np.testing.assert_array_equal(marked(axis, "s"), back.points[:, columns])
    lines = axis.collections[1]
    level = len(lines.levels) // 2
    on_it = preimage_objective(PSI, lines.get_paths()[level].vertices[:, columns])
    np.testing.assert_allclose(on_it, lines.levels[level], atol=0.01)
    axis.figure.canvas.draw()


def test_on_the_line_iterates_lie_on_the_objective():
    back = search(LINE, np.array([[3.6], [6.1]]))
    axis = plot_path(back, LINE)
    assert axis.get_title() == "2 searches, 2 converged"
    for drawn in (*paths(axis), marked(axis, "s"), marked(axis, "o"), axis.lines[0].get_xydata()):
        np.testing.assert_allclose(drawn[:, 1], preimage_objective(LINE, drawn[:, :1]))


def test_a_search_that_escapes_leaves_the_picture():
    back = search(PSI, np.array([[-2.0, -0.2], [0.9, -4.0]]))
    assert back.ok.tolist() == [True, False]
    axis = plot_path(back, PSI)
    assert axis.get_title() == "2 searches, 1 converged"
    assert len(marked(axis, "s")) == 1
    assert -6.0 < axis.get_ylim()[0] < axis.get_ylim()[1] < 6.0


def test_two_columns_of_more(rng):
    psi = mc.mean_embedding(mc.Gaussian(2.0), rng.normal(size=(9, 4)))
    back = mc.preimage(psi, start=rng.normal(size=(1, 4)), history=True)
    axis = plot_path(back, psi, columns=(3, 1))
    assert (axis.get_xlabel(), axis.get_ylabel()) == ("x3", "x1")
    np.testing.assert_array_equal(paths(axis)[0], back.history.points[:, 0, [3, 1]])
    assert len(axis.collections) == 0
    assert paths(plot_path(back))[0].shape == paths(axis)[0].shape


@pytest.mark.parametrize(
    ("psi", "at", "above"), [(POSITIVE, 1.0, True), (LINE, 6.1, False), (LINE, 2.5, False)]
)
def test_the_surrogate_touches_and_its_stationary_point_is_the_next_iterate(psi, at, above):
    axis = plot_surrogate(psi, [at])
    assert axis.get_title() == (
        f"the surrogate {'lies' if above else 'does not lie'} above the objective"
    )
    objective, parabola = (axis.lines[k].get_xydata() for k in (0, 1))
    np.testing.assert_allclose(objective[:, 1], preimage_objective(psi, objective[:, :1]))
    q = surrogate(psi, [at])
    np.testing.assert_allclose(parabola[:, 1], q(parabola[:, :1]))
    assert (parabola[:, 1] >= objective[:, 1] - 1e-12).all() == above
    np.testing.assert_allclose(axis.lines[2].get_xydata()[0], [at, q.value])
    back = mc.preimage(psi, mc.FixedPoint(safeguard=False, max_iter=1), start=[[at]], history=True)
    step = back.history.points[1, 0]
    np.testing.assert_allclose(
        axis.lines[-1].get_xydata()[0], [step[0], preimage_objective(psi, [step])[0]]
    )


def test_the_surrogate_along_the_line_to_the_next_iterate():
    at = np.array([-0.5, 0.2])
    axis = plot_surrogate(PSI, at)
    q = surrogate(PSI, at)
    t, values = axis.lines[0].get_data()
    np.testing.assert_allclose(
        values, preimage_objective(PSI, at + t[:, None] * (q.minimiser - at)), atol=1e-12
    )
    np.testing.assert_allclose(axis.lines[1].get_ydata(), q(at + t[:, None] * (q.minimiser - at)))
    assert axis.lines[2].get_xdata()[0] == 0.0
    assert axis.lines[-1].get_xdata()[0] == 1.0
    assert axis.get_xlabel() == "t in x + t (next iterate - x)"


def test_at_a_stationary_point_the_line_is_the_first_axis():
    psi = mc.mean_embedding(mc.Gaussian(1.0), [[-1.0, 0.0], [1.0, 0.0]])
    axis = plot_surrogate(psi, [0.0, 0.0])
    assert axis.get_xlabel() == "x0"
    t, values = axis.lines[0].get_data()
    np.testing.assert_allclose(values, preimage_objective(psi, np.c_[t, 0.0 * t]))


def least_curvature(psi, X):
    return np.linalg.eigvalsh(preimage_hessian(psi, X))[:, 0]


def test_the_hessian_is_positive_definite_in_the_shaded_region():
    axis = plot_convexity(PSI, low=(-3.0, -3.0), high=(3.0, 3.0))
    region = axis.collections[0].get_paths()[0]
    grid = np.stack(np.meshgrid(*2 * [np.linspace(-2.9, 2.9, 40)]), axis=-1).reshape(-1, 2)
    least = least_curvature(PSI, grid)
    inside = region.contains_points(grid)
    clear = np.abs(least) > 0.05
    np.testing.assert_array_equal(inside[clear], least[clear] > 0.0)
    assert inside.any()


@pytest.mark.parametrize("psi", [PSI, mc.mean_embedding(mc.Polynomial(3), SIX)])
def test_the_hessian_is_singular_on_the_border(psi):
    axis = plot_convexity(psi, low=(-3.0, -3.0), high=(3.0, 3.0))
    border = axis.collections[1].get_paths()[0].vertices
    np.testing.assert_allclose(least_curvature(psi, border), 0.0, atol=0.02)


def test_convex_intervals():
    axis = plot_convexity(LINE, low=[0.0], high=[10.0])
    inside = axis.collections[0].get_paths()
    x = np.linspace(0.1, 9.9, 200)
    shaded = np.zeros(200, dtype=bool)
    for part in inside:
        shaded |= (x > part.vertices[:, 0].min()) & (x < part.vertices[:, 0].max())
    second = preimage_hessian(LINE, x[:, None])[:, 0, 0]
    clear = np.abs(second) > 0.05
    np.testing.assert_array_equal(shaded[clear], second[clear] > 0.0)


def test_nowhere_convex_and_cusps():
    plot_convexity(-1.0 * mc.mean_embedding(mc.Gaussian(5.0), SIX)).figure.canvas.draw()
    cusp = mc.mean_embedding(mc.Laplace(1.0), [[0.0, 0.0]])
    plot_convexity(cusp, low=(-1.0, -1.0), high=(1.0, 1.0)).figure.canvas.draw()
    plt.close("all")


def test_paths_are_orange():
    assert to_hex(plot_path(search(LINE, np.array([[3.6]]))).lines[0].get_color()).upper() == ORANGE


WIDE = mc.mean_embedding(mc.Gaussian(1.0), np.eye(3))
STEEP = mc.Element(
    mc.Exponential(2.0), np.random.default_rng(8).normal(size=(30, 2)), np.arange(30)
)
WORDS = mc.preimage(mc.mean_embedding(mc.Spectrum(2), ["abc", "abd"]))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: plot_path(PSI), "found must be a PreImage"),
        (lambda: plot_path(mc.preimage(PSI)), r"history=True"),
        (lambda: plot_path(WORDS), "history=True"),
        (lambda: plot_path(search(LINE, np.array([[1.0]])), PSI), "2 columns, but found has 1"),
        (lambda: plot_surrogate(PSI, [1.0]), "at must have 2 entries"),
        (lambda: plot_surrogate(mc.Element(mc.Gaussian(1.0), [[0.0]], [0.0]), [1.0]), "constant"),
        (lambda: plot_surrogate(STEEP, [0.0, 0.0]), "the objective overflows"),
        (lambda: plot_surrogate(3, [1.0]), "element must be an Element"),
        (lambda: plot_convexity(WIDE), "one or two dimensions"),
        (lambda: plot_convexity(PSI, low=[0.0]), "must be pairs with low < high"),
        (lambda: plot_convexity(LINE, low=[9.0], high=[1.0]), "of length 1 with low < high"),
    ],
)
def test_refusals_say_what_to_do(call, message):
    with pytest.raises(mc.InputError, match=message):
        call()
