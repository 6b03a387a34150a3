"""What all plots have in common: axes, pyplot, names of columns, settings left alone."""

import inspect
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.cluster import MeanShift

import mercer as mc
from mercer.methods import scale_space
from mercer.plot import (
    plot_basins,
    plot_coefficients,
    plot_convexity,
    plot_descent,
    plot_element,
    plot_gap,
    plot_gram,
    plot_images,
    plot_kernel,
    plot_learning_curve,
    plot_modes,
    plot_null,
    plot_path,
    plot_scale_space,
    plot_surrogate,
    plot_weights,
    plot_witness,
)
from mercer.theory.first_order import gradient_descent

POINTS = np.array([[0.0, 0.0], [1.0, 0.5], [5.0, 5.0]])
MODEL = mc.MeanShift(bandwidth=1.0).fit(POINTS)
TEST = mc.mmd_test(POINTS, POINTS + 1.0, n_permutations=19, random_state=0)
PSI = mc.mean_embedding(mc.Gaussian(2.0), POINTS)
RUN = gradient_descent(lambda x: x @ x, lambda x: 2.0 * x, [3.0], 9, smoothness=4.0)
PLOTS = {
    plot_basins: ((MODEL,), 1),
    plot_coefficients: ((PSI,), 1),
    plot_convexity: ((PSI,), 1),
    plot_descent: ((RUN,), 1),
    plot_element: ((PSI, POINTS), 1),
    plot_gap: (([mc.SVC().fit(POINTS, [0, 1, 1]).certificate_],), 1),
    plot_gram: ((mc.Linear(), POINTS), 2),
    plot_images: (({"given": np.eye(4)},), 1),
    plot_kernel: ((mc.Gaussian(1.0),), 3),
    plot_learning_curve: (([0.3, 0.1], [10, 100]), 1),
    plot_modes: ((MODEL,), 1),
    plot_null: ((TEST,), 1),
    plot_path: ((mc.preimage(PSI, history=True), PSI), 1),
    plot_scale_space: ((scale_space(POINTS, [0.1, 1.0, 9.0]),), 1),
    plot_surrogate: ((PSI, POINTS[1]), 1),
    plot_weights: ((PSI, POINTS), 1),
    plot_witness: ((TEST,), 1),
}


def test_every_plot_is_listed():
    assert [plot.__name__ for plot in PLOTS] == mc.plot.__all__


def test_every_plot_is_in_the_gallery():
    gallery = Path(__file__).parents[2] / "docs" / "gallery"
    scripts = {path.stem: path.read_text("utf-8") for path in gallery.rglob("*.py")}
    assert set(scripts) == set(mc.plot.__all__)
    assert [
        name for name, text in scripts.items() if f"\n{name}(" not in text.replace(" ", "")
    ] == []


@pytest.mark.parametrize("plot", PLOTS)
def test_figures_belong_to_pyplot_unless_axes_are_given(plot):
    args, count = PLOTS[plot]
    settings = mpl.rcParams.copy()
    drawn = plot(*args)
    assert plt.gcf() is np.ravel(drawn)[0].figure
    plt.close("all")
    figure = Figure()
    axes = figure.subplots(1, count)
    again = plot(*args, ax=axes)
    assert list(np.ravel(again)) == list(np.ravel(axes))
    assert isinstance(again, mpl.axes.Axes) == (count == 1)
    assert plt.get_fignums() == []
    assert mpl.rcParams.copy() == settings


@pytest.mark.parametrize("plot", PLOTS)
def test_the_thing_comes_first_then_points_and_the_rest_by_name(plot):
    given = list(inspect.signature(plot).parameters.values())
    assert all(p.kind is p.KEYWORD_ONLY for p in given[2:])
    assert [p.name for p in given if p.kind is not p.KEYWORD_ONLY][1:] in (
        [],
        ["X"],
        ["x"],
        ["at"],
        ["element"],
        ["points"],
        ["sizes"],
    )
    assert given[-1].name == "ax"


def frame(d=2):
    pandas = pytest.importorskip("pandas")
    names = ["age", "income ($)", "height"][:d]
    return pandas.DataFrame(np.pad(POINTS, ((0, 0), (0, 1)))[:, :d], columns=names)


def labels(axis):
    return axis.get_xlabel(), axis.get_ylabel()


def test_columns_of_a_frame_name_the_axes():
    data = frame()
    model = mc.MeanShift(bandwidth=1.0).fit(data)
    expected = ("age", "income ($)")
    assert labels(plot_modes(MODEL, data)) == expected
    assert labels(plot_modes(model)) == expected
    assert labels(plot_basins(model, resolution=8)) == expected
    assert labels(plot_basins(mc.KernelDensity().fit(data), resolution=8)) == expected
    assert labels(plot_modes(model, names=["u", "v"])) == ("u", "v")
    assert labels(plot_modes(MODEL)) == ("x0", "x1")
    three = mc.MeanShift(bandwidth=1.0).fit(frame(3))
    assert labels(plot_modes(three, columns=("height", "age"))) == ("height", "age")
    with pytest.raises(mc.InputError, match="or names of columns"):
        plot_modes(three, columns=("height", "weight"))
    assert plot_kernel(mc.Gaussian(1.0), data["age"])[2].get_xlabel() == "age"
    assert plot_kernel(mc.Gaussian(1.0), data[["age"]])[0].get_xlabel() == "age"
    for axis in map(plt.figure, plt.get_fignums()):
        axis.canvas.draw()  # a dollar sign is no formula


def test_a_fitted_model_is_drawn_with_its_own_clusters(rng):
    X = np.concatenate([rng.normal(c, 0.5, (n, 2)) for c, n in ((0.0, 10), (6.0, 40))])
    X = np.vstack([X, [[-9.0, 9.0]]])
    model = mc.MeanShift(bandwidth=0.8, min_cluster_size=2).fit(X)
    axis = plot_basins(model, resolution=30)
    assert axis.get_title() == "2 modes and their basins"
    rings = [line.get_xydata() for line in axis.lines][-1]
    np.testing.assert_array_equal(rings, model.cluster_centers_)
    pixels = axis.images[0].get_array()
    assert (pixels[-1, 0] == 1.0).all()  # the cluster of the outlier was dropped: white
    assert pixels[-1, -1, 2] > pixels[-1, -1, 0]  # cluster 0, the largest, is blue
    assert len(plot_modes(model).collections) == 1  # the contours of its density


def test_a_line_shows_the_density_of_the_model():
    model = mc.MeanShift(bandwidth=1.0).fit(POINTS[:, :1])
    axis = plot_modes(model)
    tops = [line.get_xydata()[0] for line in axis.lines if len(line.get_xdata()) == 1]
    np.testing.assert_allclose(
        tops, np.column_stack([model.cluster_centers_, model.density_(model.cluster_centers_)])
    )
    assert axis.get_yticks().size == 0  # known up to a factor
    density = mc.kernel_density(mc.Gaussian(1.0), POINTS[:, :1])
    assert plot_modes(model, density=density).get_yticks().size > 0


def test_the_clusters_of_scikit_learn_can_be_drawn():
    theirs = MeanShift(bandwidth=2.0).fit(POINTS)
    assert plot_modes(theirs, POINTS).get_title() == "2 modes"
    on_a_line = plot_modes(MeanShift(bandwidth=2.0).fit(POINTS[:, :1]), POINTS[:, :1])
    assert labels(on_a_line) == ("x0", "")  # no density is known
    with pytest.raises(mc.InputError, match="X is missing"):
        plot_modes(theirs)
    with pytest.raises(mc.InputError, match="a Density or a fitted MeanShift"):
        plot_basins(theirs)
