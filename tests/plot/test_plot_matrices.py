"""Heat maps: Gram matrices of any points, weights, coefficients."""

import numpy as np
import pytest
from matplotlib.figure import Figure

import mercer as mc
from mercer.plot import plot_coefficients, plot_gram, plot_weights

WORDS = ["banana", "bandana", "ananas", "husky"]


def titles(axes):
    return [axis.get_title() for axis in axes]


def eigenvalues(axis, label):
    """The sizes of those of one sign."""
    found = [line for line in axis.lines if line.get_label() == label]
    return found[0].get_ydata() if found else np.empty(0)


def names(axis):
    return [label.get_text() for label in axis.get_yticklabels()]


def cells(axis):
    return [text.get_text() for text in axis.texts]


def test_gram_matrix_with_its_values():
    axes = plot_gram(mc.Spectrum(2), WORDS)
    left, right = axes
    assert titles(axes) == ["k(xᵢ, xⱼ)", "eigenvalues"]
    assert names(left) == WORDS
    K = mc.Spectrum(2)(WORDS)
    np.testing.assert_array_equal(left.images[0].get_array(), K)
    assert cells(left) == [f"{v:.0f}" for v in K.ravel()]
    np.testing.assert_allclose(
        eigenvalues(right, "positive"), np.linalg.eigvalsh(K)[::-1] / 4, rtol=1e-10
    )
    axes[0].figure.canvas.draw()


@pytest.mark.parametrize(
    ("kernel", "points", "expected"),
    [
        (mc.kernels.Hamming(), [["red", 1], ["blue", 2]], ["red, 1", "blue, 2"]),
        (mc.kernels.Overlap(), ["red", "blue"], ["red", "blue"]),
        (mc.Jaccard(), [{"tea", "milk"}, set()], ["{milk, tea}", "{}"]),
        (mc.Spectrum(1), [["a", "b"], ["$b$"]], ["a, b", "$b$"]),
        (mc.Gaussian(), [[1.0, 2.0], [0.25, -3.14]], ["1, 2", "0.25, -3.1"]),
        (mc.Precomputed(np.eye(3)), [0, 2], ["0", "2"]),
    ],
    ids=lambda v: type(v).__name__,
)
def test_points_that_read_short_are_their_own_names(kernel, points, expected):
    axes = plot_gram(kernel, points)
    assert names(axes[0]) == expected
    axes[0].figure.canvas.draw()


def test_many_or_long_points_are_counted_unless_named(rng):
    many = rng.normal(size=(30, 2))
    axes = plot_gram(mc.Gaussian(), many)
    assert cells(axes[0]) == []
    assert len(axes[0].figure.axes) == 3  # with a colour bar
    labels = [f"point {i}" for i in range(30)]
    left = plot_gram(mc.Gaussian(), many, labels=labels)[0]
    assert names(left) == labels
    assert left.get_xticks().size == 0
    long = ["a very long text indeed, longer than a name", "another"]
    left = plot_gram(mc.Spectrum(2), long)[0]
    assert not any(text in long for text in names(left))


def test_rows_of_a_table_have_the_names_that_are_given():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"age": [1.0, 2.0, 4.0], "city": ["Bonn", "Rome", "Bonn"]})
    kernel = mc.kernels.Table({"age": mc.Gaussian(1.0), "city": mc.kernels.Hamming(1.0)})
    axes = plot_gram(kernel, frame, labels=frame.city)
    assert names(axes[0]) == ["Bonn", "Rome", "Bonn"]
    plot_gram(kernel, frame)[0].figure.canvas.draw()


def test_negative_values_have_another_colour_and_zero_is_white():
    K = np.array([[0.0, -1.0], [-1.0, 0.5]])
    image = plot_gram(mc.Precomputed(K), [0, 1])[0].images[0]
    zero, negative, positive = (image.cmap(image.norm(v)) for v in (0.0, -1.0, 0.5))
    assert min(zero[:3]) > 0.95
    assert negative[0] > negative[2]
    assert positive[2] > positive[0]
    assert cells(plot_gram(mc.Precomputed(K), [0, 1])[0]) == ["0.00", "-1.00", "-1.00", "0.50"]


def test_an_indefinite_matrix_shows_its_negative_eigenvalue():
    axes = plot_gram(mc.kernels.Uniform(1.0), [[0.0], [0.8], [1.6]])
    assert axes[0].figure.get_suptitle().endswith("not positive definite")
    assert eigenvalues(axes[1], "negative").size == 1


def test_a_matrix_of_zeros_can_be_drawn():
    plot_gram(mc.Spectrum(3), ["a", "b"])[0].figure.canvas.draw()


def test_given_axes_are_drawn_on():
    own = Figure()
    axes = own.subplots(2, 1)
    drawn = plot_gram(mc.Spectrum(2), WORDS, ax=axes)
    assert list(drawn) == list(axes) == own.axes
    assert titles(drawn) == ["k(xᵢ, xⱼ)", "eigenvalues"]
    assert own.get_suptitle() == ""


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: plot_gram(mc.Spectrum(2), ["banana"]), r"at least two"),
        (lambda: plot_gram(mc.Spectrum(2), "banana"), r"list of points"),
        (lambda: plot_gram(mc.Spectrum(2), WORDS, labels=["a"]), r"list of 4 names.*1 of them"),
        (lambda: plot_gram(mc.Spectrum(2), WORDS, labels="abcd"), r"list of 4 names.*one string"),
        (lambda: plot_gram(mc.Spectrum(2), WORDS, ax=Figure().subplots()), r"2 matplotlib axes"),
    ],
)
def test_refusals_say_what_to_do(call, message):
    with pytest.raises(mc.InputError, match=message):
        call()


@pytest.mark.parametrize("points", [None, [[0.5, 0.5], [3.0, 1.0]]])
@pytest.mark.parametrize("kernel", [mc.Gaussian(0.8), mc.RationalQuadratic(2.0, 1.0)])
def test_weights_are_those_of_the_next_step(kernel, points, rng):
    X, a = rng.normal(size=(12, 2)), rng.random(12)
    psi = mc.Element(kernel, X, a)
    axis = plot_weights(psi, points)
    W = np.asarray(axis.images[0].get_array())
    np.testing.assert_allclose(W.sum(axis=1), 1.0)
    Y = X if points is None else np.array(points)
    for y, w in zip(Y, W, strict=True):
        np.testing.assert_allclose(w @ X, mc.preimages.surrogate(psi, y).minimiser)


def test_rows_without_weight_are_zero_and_numbers_are_written():
    psi = mc.mean_embedding(mc.Epanechnikov(1.0), [[0.0], [0.5]])
    axis = plot_weights(psi, [[0.1], [9.0]], labels=["near", "far"])
    np.testing.assert_array_equal(axis.images[0].get_array()[1], 0.0)
    assert names(axis) == ["near", "far"]
    assert cells(axis) == ["0.50", "0.50", "0.00", "0.00"]


def test_coefficients_of_a_batch():
    A = np.array([[1.0, -2.0], [0.0, 0.5], [0.25, 1.0]])
    psi = mc.Element(mc.Spectrum(2), ["abc", "abd", "ac"], A)
    axis = plot_coefficients(psi, labels=psi.points)
    np.testing.assert_array_equal(axis.images[0].get_array(), A)
    assert axis.images[0].get_clim() == (-2.0, 2.0)
    assert names(axis) == ["abc", "abd", "ac"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: plot_weights(mc.mean_embedding(mc.Linear(), [[1.0]])), "kernel of the distance"),
        (lambda: plot_weights(mc.mean_embedding(mc.Laplace(1.0), [[1.0]])), "infinite weight"),
        (lambda: plot_weights(mc.mean_embedding(mc.Gaussian(1.0), [[1.0]]), [[1.0, 2.0]]), "has 2"),
        (lambda: plot_weights(None), "element must be an Element"),
        (lambda: plot_coefficients(None), "element must be an Element"),
        (
            lambda: plot_coefficients(mc.mean_embedding(mc.Linear(), [[1.0]]), labels="a"),
            "a list of 1 names, got one string",
        ),
    ],
)
def test_weights_and_coefficients_refuse(call, message):
    with pytest.raises(mc.InputError, match=message):
        call()
