"""Pictures are judged by what is in them: titles, lines, marks, limits."""

import subprocess
import sys

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

import mercer as mc
from mercer.plot import plot_gram, plot_kernel
from mercer.plot._kernel import _root
from mercer.plot._spectra import parts
from mercer.plot._style import ORANGE


def titles(axes):
    return [axis.get_title() for axis in axes]


def curves(axis):
    """Lines with more than one point, as (x, y)."""
    return [line.get_xydata().T for line in axis.lines if len(line.get_xdata()) > 1]


def marks(axis, label):
    """The numbers and sizes of the eigenvalues of one sign."""
    found = [line for line in axis.lines if line.get_label() == label]
    return found[0].get_xydata().T if found else np.empty((2, 0))


def drawn_functions(axis):
    return [y for x, y in curves(axis) if len(x) > 2]


@pytest.mark.parametrize(
    ("kernel", "middle"),
    [
        (mc.Gaussian(1.0), "spectral density"),
        (mc.InverseMultiquadric(1.0, 0.5), "spectral density"),
        (mc.Gaussian(2.0).transform(mc.Scales([0.5])), "spectral density"),
        (mc.Gaussian(1.0) * mc.kernels.JacobiTheta(0.5), "spectral density"),
        (mc.Gaussian(1.0) + 0.5, "spectral density, and an atom"),
        (mc.Gaussian(1.0) + mc.Periodic((0.0, 1.0)), "spectral density, and an atom"),
        (mc.Gaussian(1.0) + mc.Periodic((1.0, 1.0)), "spectral density, and atoms"),
        (mc.kernels.JacobiTheta(0.5), "spectral measure: atoms"),
        (2.0 * mc.kernels.PeriodicSobolev(1), "spectral measure: atoms"),
        (mc.Periodic((1.0, 0.5)).transform(mc.Scales([3.0])), "spectral measure: atoms"),
        (mc.kernels.Constant(2.0), "spectral measure: atoms"),
        (mc.Gaussian(1.0) * mc.Matern(1.5), "spectral measure, sampled"),
        ((mc.Gaussian(1.0) + 1.0) * (mc.Laplace(1.0) + 1.0), "spectral measure, sampled"),
        (mc.Linear(), "eigenvalues"),
        (mc.kernels.Minimum(), "eigenvalues"),
        (mc.kernels.Uniform(1.0), "eigenvalues"),
        (mc.Gaussian(1.0).transform(mc.kernels.Features(np.sin)), "eigenvalues"),
    ],
    ids=repr,
)
def test_each_panel_says_what_it_shows(kernel, middle):
    axes = plot_kernel(kernel)
    assert len(axes) == 3
    assert titles(axes)[:2] == ["k(x₀, x)", middle]
    axes[0].figure.canvas.draw()  # nothing warns


@pytest.mark.parametrize(
    ("kernel", "words", "last"),
    [
        (mc.Gaussian(1.0), "positive definite", "functions"),
        (mc.NegativeDistance(1.0), "conditionally positive definite", "functions, zero at one x₀"),
        (
            mc.kernels.AdditiveChiSquare(),
            "conditionally positive definite",
            "functions, zero at one x₀",
        ),
        (mc.Epanechnikov(1.0), "not positive definite", "functions"),
        (mc.NegativeDistance(3.0), "not positive definite", "functions"),
        (mc.Sigmoid(), "definiteness unknown", "functions"),
    ],
    ids=repr,
)
def test_the_heading_says_what_is_claimed(kernel, words, last):
    axes = plot_kernel(kernel)
    assert axes[0].figure.get_suptitle().split("  ·  ") == [repr(kernel), words]
    assert titles(axes)[2] == last


def test_long_names_are_made_short():
    heading = plot_kernel(mc.Periodic((1.0,)) + mc.Gaussian(1 / 3))[0].figure.get_suptitle()
    assert "period=6.283) + Gaussian(length_s…" in heading
    heading = plot_kernel(mc.Gaussian(1 / 3).transform(mc.kernels.Features(np.sin)))[
        0
    ].figure.get_suptitle()
    assert "Gaussian(length_scale=0.3333).transform(Features(function=sin," in heading

    def curve(x):
        return x

    for function, name in ((curve, "curve"), (lambda x: x, "<lambda>")):
        heading = plot_kernel(mc.Linear().transform(mc.kernels.Features(function)))[
            0
        ].figure.get_suptitle()
        assert f"Features(function={name}, on=None)" in heading
    many = mc.Gaussian(1.0) + mc.Gaussian(2.0) + mc.Gaussian(3.0) + mc.Gaussian(4.0)
    assert "…  ·  positive definite" in plot_kernel(many)[0].figure.get_suptitle()


def test_values_are_rows_of_the_gram_matrix():
    kernel, x = mc.Polynomial(3), np.linspace(-1.0, 2.0, 50)
    axis = plot_kernel(kernel, x)[0]
    shown = curves(axis)
    dots = [line.get_xydata()[0] for line in axis.lines if len(line.get_xdata()) == 1]
    assert len(shown) == len(dots) == 3
    for (at, values), (x0, top) in zip(shown, dots, strict=True):
        np.testing.assert_array_equal(at, x)
        np.testing.assert_allclose(values, kernel([[x0]], x[:, None])[0], rtol=1e-12)
        np.testing.assert_allclose(top, kernel.diag([[x0]])[0], rtol=1e-12)


@pytest.mark.parametrize("kernel", [mc.Gaussian(0.7), mc.Laplace(2.0), mc.Matern(2.5, 3.0)])
def test_the_density_is_that_of_the_kernel(kernel):
    ((w, density),) = curves(plot_kernel(kernel)[1])
    # twice its integral over w >= 0, the rest beyond the panel, is k(x, x)
    assert 0.9 < 2.0 * np.trapezoid(density, w) / kernel.diag([[0.0]])[0] < 1.001
    np.testing.assert_allclose(density, kernel.spectral_measure(1).density(w[:, None]))


@pytest.mark.parametrize(
    "kernel",
    [
        3.0 * mc.Periodic((1.0, 0.5, 0.0, 0.25), period=2.0),
        mc.Periodic((1.0, 0.5)) * mc.Periodic((0.3, 0.0, 1.0)),
        mc.Periodic((1.0, 0.5)) + mc.Periodic((0.0, 0.5, 1.0)) + 0.5,
        mc.Periodic((1.0, 0.5)).transform(mc.Scales([3.0])),
        mc.Periodic((1.0, 0.5)).transform(mc.kernels.Matrix([[-2.0]])),
        mc.Gaussian(1.0) + 0.5 * mc.Periodic((0.0, 1.0)),
        mc.Gaussian(1.0) * mc.Periodic((0.2, 1.0)),
        (mc.Gaussian(1.0) * mc.Laplace(1.0).transform(mc.Scales([2.0])) + mc.Matern(1.5, 2.0)),
        (mc.Matern(2.5) + mc.Periodic((0.5, 1.0))).transform(mc.Scales([0.5])),
    ],
    ids=repr,
)
def test_spectra_taken_apart_give_the_kernel_back(kernel):
    """k(x, 0) = sum m cos(w x) + int p(w) cos(w x) dw: Bochner's theorem, forwards."""
    try:
        found = parts(kernel.spectral_measure(1))
    except mc.exceptions.UnavailableError:
        assert "Laplace" in repr(kernel)  # a product of two densities
        return
    x = np.array([0.0, 0.3, 1.1, 2.9])
    values = np.cos(np.outer(x, found.w)) @ found.m
    if found.density is not None:
        w = np.linspace(-200.0, 200.0, 80_001)
        values = values + np.trapezoid(found.density(w) * np.cos(np.outer(x, w)), w, axis=1)
    np.testing.assert_allclose(values, kernel(x[:, None], [[0.0]])[:, 0], atol=2e-4)
    assert np.all(np.diff(found.w) > 0)


def test_atoms_are_those_of_the_measure():
    axis = plot_kernel(mc.Periodic((1.0, 0.5, 0.25), period=np.pi))[1]
    ((w, mass),) = curves(axis)
    np.testing.assert_allclose(w, [0.0, 2.0, 4.0])
    np.testing.assert_allclose(mass, [1.0, 0.5, 0.25])
    assert axis.get_yscale() == "log"


def test_a_sampled_measure_has_the_mass_of_the_kernel():
    kernel = 3.0 * mc.Gaussian(1.0) * mc.Matern(2.5)
    ((heights, edges, _),) = [p.get_data() for p in plot_kernel(kernel)[1].patches]
    assert 2.0 * heights @ np.diff(edges) == pytest.approx(3.0, rel=0.02)


def test_rounding_is_not_shown_as_eigenvalues():
    axis = plot_kernel(mc.Polynomial(3))[1]
    numbers, sizes = marks(axis, "positive")
    np.testing.assert_array_equal(numbers, [1, 2, 3, 4])
    assert axis.get_xlabel() == "number (4 above rounding)"
    x = np.linspace(-3.0, 3.0, 241)[:, None]
    expected = np.linalg.eigvalsh(mc.Polynomial(3)(x))[::-1][:4] / 241
    np.testing.assert_allclose(sizes, expected, rtol=1e-8)
    assert marks(axis, "negative").size == 0


def test_negative_eigenvalues_are_open_and_no_function_is_drawn():
    axes = plot_kernel(mc.Epanechnikov(1.0))
    middle, right = axes[1:]
    up, down = marks(middle, "positive"), marks(middle, "negative")
    assert down.size > 0
    np.testing.assert_array_equal(np.sort(np.append(up[0], down[0])), np.arange(1, 26))
    sizes = np.append(up[1], down[1])[np.argsort(np.append(up[0], down[0]))]
    assert np.all(np.diff(sizes) <= 0)  # by size, so that negative ones have their place
    (line,) = [line for line in middle.lines if line.get_label() == "negative"]
    assert (line.get_markerfacecolor(), to_hex(line.get_markeredgecolor())) == (
        "white", ORANGE.lower())  # fmt: skip
    assert [t.get_text() for t in middle.get_legend().get_texts()] == ["positive", "negative"]
    assert right.lines[:] == []
    assert "not positive definite" in right.texts[0].get_text()


def test_an_indefinite_kernel_may_be_definite_on_few_points():
    axes = plot_kernel(mc.kernels.Uniform(1.0), [0.0, 5.0, 10.0])  # out of each other's window
    assert axes[0].figure.get_suptitle().endswith("not positive definite")
    assert len(drawn_functions(axes[2])) == 4


def test_functions_have_the_covariance_of_the_kernel():
    x = np.array([-1.0, 0.0, 0.5])
    for kernel in (mc.Gaussian(1.0), mc.Polynomial(2)):
        K = kernel(x[:, None])
        root = _root(K, 1.0)
        np.testing.assert_allclose(root @ root.T, K, atol=1e-12)
        F = np.array(drawn_functions(plot_kernel(kernel, x, n_samples=400)[2]))
        assert F.shape == (400, 3)
        np.testing.assert_allclose(F.T @ F / 400, K, atol=0.2 * K.max())


def test_differences_of_functions_have_the_covariance_of_a_conditional_kernel():
    x = np.array([-1.0, 0.0, 2.0])
    axes = plot_kernel(mc.NegativeDistance(1.0), x, n_samples=400)
    F = np.array(drawn_functions(axes[2]))
    np.testing.assert_allclose(F[:, 1], 0.0, atol=1e-6)  # zero at the middle point
    # E (f(x) - f(y))^2 = k(x, x) + k(y, y) - 2 k(x, y) = 2 |x - y|
    squares = np.mean((F[:, :, None] - F[:, None, :]) ** 2, axis=0)
    np.testing.assert_allclose(squares, 2.0 * np.abs(x[:, None] - x), atol=1.2)


def test_functions_on_a_circle_close():
    for kernel in (
        mc.kernels.JacobiTheta(0.5),
        mc.kernels.PeriodicSobolev(1),
        mc.Periodic((1.0, 2.0), 24.0),
    ):
        for f in drawn_functions(plot_kernel(kernel)[2]):
            assert f[0] == pytest.approx(f[-1], abs=1e-5)


def test_random_state_and_n_samples():
    def draws(**options):
        axis = plot_kernel(mc.Gaussian(1.0), np.linspace(0.0, 1.0, 20), **options)[2]
        return np.array(drawn_functions(axis))

    np.testing.assert_array_equal(draws(), draws(random_state=0))
    assert not np.allclose(draws(), draws(random_state=1))
    assert draws(n_samples=7).shape == (7, 20)
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    draws(random_state=3)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


@pytest.mark.parametrize(
    ("kernel", "low", "high"),
    [
        (mc.Gaussian(1.0), -3.0, 3.0),
        (mc.Gaussian(0.01), -0.03, 0.03),
        (mc.Gaussian(2000.0), -6000.0, 6000.0),
        (mc.NegativeDistance(1.0), -3.0, 3.0),
        (mc.Linear(), -3.0, 3.0),
        (mc.kernels.JacobiTheta(0.5, period=24.0), -12.0, 12.0),
        (mc.kernels.JacobiTheta(0.5, period=24.0).transform(mc.Scales([2.0])), -24.0, 24.0),
        (mc.kernels.Geometric(4.0), -1.9, 1.9),
        (mc.kernels.Geometric(4.0) + mc.Linear(), -1.9, 1.9),
        (mc.kernels.Minimum(), 0.0, 3.0),
        (
            mc.kernels.Cosine(),
            -2.9875,
            3.0125,
        ),  # half a step off the origin, which has no direction
        (mc.Gaussian(1.0).transform(mc.kernels.Features(np.sqrt)), 0.0, 3.0),
        (mc.Gaussian(1.0).transform(mc.kernels.Features(np.arctanh)), -0.95, 0.95),
    ],
    ids=repr,
)
def test_the_interval_follows_the_domain(kernel, low, high):
    x, values = curves(plot_kernel(kernel)[0])[0]
    np.testing.assert_allclose((x[0], x[-1]), (low, high), rtol=1e-12)
    assert len(x) == 241
    assert np.isfinite(values).all()


def test_given_points_are_sorted_and_may_be_a_column():
    x = np.array([3.0, 1.0, 2.0, 2.0])
    for given in (x, x[:, None], x.tolist(), x.astype(np.float32), x.astype(int)):
        at, _ = curves(plot_kernel(mc.Gaussian(1.0), given)[0])[0]
        np.testing.assert_array_equal(at, [1.0, 2.0, 2.0, 3.0])


def test_given_axes_are_drawn_on():
    own = Figure()
    axes = own.subplots(3, 2)
    assert list(plot_kernel(mc.Laplace(1.0), ax=axes[:, 1])) == list(axes[:, 1])
    assert [axis.get_title() for axis in axes[:, 0]] == ["", "", ""]
    assert [axis.get_title() for axis in axes[:, 1]] == [
        "k(x₀, x)", "spectral density", "functions"]  # fmt: skip
    assert own.get_suptitle() == ""


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: plot_kernel(mc.Spectrum(2)), r"not numbers.*plot_gram"),
        (lambda: plot_kernel(mc.kernels.Hamming(1.0)), r"not numbers.*plot_gram"),
        (lambda: plot_kernel(mc.Precomputed(np.eye(2))), r"not numbers.*plot_gram"),
        (lambda: plot_kernel(mc.Gaussian().transform(mc.Columns([1]))), r"give x, or.*plot_gram"),
        (lambda: plot_kernel(mc.Gaussian(), np.zeros((5, 2))), r"\(5, 2\).*Features.*plot_gram"),
        (lambda: plot_kernel(mc.Gaussian(), [1.0]), r"at least two points"),
        (lambda: plot_kernel(mc.Gaussian(), [0.0, np.nan]), r"x contains NaN"),
        (
            lambda: plot_kernel(mc.kernels.Geometric(1.0), [0.0, 1.5]),
            r"inside the ball.*scale the points",
        ),
        (lambda: plot_kernel(mc.kernels.Minimum(), [-1.0, 1.0]), r"must be >= 0"),
        (lambda: plot_kernel(mc.Exponential(1.0), [0.0, 100.0]), r"choose a shorter interval"),
        (lambda: plot_kernel(mc.Gaussian(), n_samples=0), r"n_samples must be an integer >= 1"),
        (lambda: plot_kernel(mc.Gaussian(), ax=Figure().subplots(1, 2)), r"3 matplotlib axes"),
        (lambda: plot_kernel(mc.Gaussian(), ax=[1, 2, 3]), r"3 matplotlib axes"),
    ],
)
def test_refusals_say_what_to_do(call, message):
    with np.errstate(over="ignore"), pytest.raises(mc.InputError, match=message):
        call()


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_on_given_axes_pyplot_is_not_imported():
    code = (
        "import sys, mercer as mc\n"
        "from matplotlib.figure import Figure\n"
        "mc.plot.plot_gram(mc.Linear(), [[1.0], [2.0]], ax=Figure().subplots(1, 2))\n"
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    assert run(code).stderr == ""


def test_without_matplotlib_the_cure_is_named():
    done = run("import sys; sys.modules['matplotlib'] = None; import mercer.plot")
    assert "ImportError: mercer.plot needs matplotlib: pip install 'mercer[plot]'" in done.stderr


@pytest.mark.parametrize("kernel", [None, "rbf", mc.Gaussian])
def test_a_kernel_must_be_a_kernel(kernel):
    for plot in (plot_kernel, lambda k: plot_gram(k, [[0.0], [1.0]])):
        with pytest.raises(mc.InputError, match="kernel must be a Kernel such as"):
            plot(kernel)


def test_x_must_be_an_array():
    with pytest.raises(mc.InputError, match="x must be a rectangular array of numbers"):
        plot_kernel(mc.Gaussian(1.0), [[1.0, 2.0], [3.0]])
