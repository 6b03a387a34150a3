"""Pictures of tests, by what is in them: bars, lines, marks, words."""

import numpy as np
import pytest
from matplotlib.colors import to_hex

import mercer as mc
from mercer.methods import coco_test, dhsic_test, witness
from mercer.plot import plot_null, plot_witness
from mercer.plot._style import BLUE, GREY, ORANGE


def samples(rng, d=1, shift=1.0):
    return rng.normal(size=(30, d)), rng.normal(size=(20, d)) + shift


def colour(patch):
    return to_hex(patch.get_facecolor()[:3]).upper()


@pytest.mark.parametrize("kernel", [None, "median"])
@pytest.mark.parametrize("shift", [0.0, 0.6, 3.0])
def test_the_share_of_orange_bars_is_the_p_value(kernel, shift, rng):
    options = {"kernel": kernel, "n_permutations": 199, "random_state": 1}
    result = mc.mmd_test(*samples(rng, shift=shift), **options)
    axis = plot_null(result)
    bars = {c: sum(p.get_height() for p in axis.patches if colour(p) == c) for c in (BLUE, ORANGE)}
    grey = sum(p.get_height() for p in axis.patches if colour(p) == GREY.upper())
    assert bars[BLUE] == 0
    assert grey + bars[ORANGE] == 199
    assert (bars[ORANGE] + 1) / 200 == pytest.approx(result.pvalue)
    assert axis.get_title() == f"p = {result.pvalue:.4g} (permutation)"
    line = axis.lines[0].get_xdata()[0]
    assert line == result.null_statistics[0]
    for p in axis.patches:  # bars end at the observed statistic
        left, right = p.get_x(), p.get_x() + p.get_width()
        if p.get_height():
            assert left >= line - 1e-9 if colour(p) == ORANGE else right <= line + 1e-9
    combined = kernel is None
    assert axis.get_xlabel() == ("statistic, 20 kernels combined" if combined else "statistic")
    if not combined:
        assert line == pytest.approx(result.statistic)
    axis.figure.canvas.draw()


def test_every_test_can_be_drawn(rng):
    x, y = rng.normal(size=(2, 25, 1))
    options = {"n_permutations": 49, "random_state": 0}
    for result in (
        mc.mmd_test(x, y, y + 1.0, **options),
        mc.mmd_test(x, y, paired=True, **options),
        mc.hsic_test(x, y, **options),
        mc.hsic_test(x, y, kernel="median", **options),
        coco_test(x, y, **options),
        dhsic_test(x, y, x * y, **options),
        mc.ksd_test(x, lambda X: -X, **options),
        mc.mmd_test(
            np.ones((5, 1)), np.ones((4, 1)), kernel=mc.Gaussian(1.0), **options
        ),  # all statistics are equal
    ):
        axis = plot_null(result, bins=10)
        assert sum(p.get_height() for p in axis.patches) == 49
        assert np.mean(result.null_statistics >= result.null_statistics[0]) <= result.pvalue


def test_on_the_line(rng):
    X, Y = samples(rng)
    result = mc.mmd_test(X, Y, n_permutations=49, random_state=0)
    axis = plot_witness(result, names=["age"], labels=("control", "treated"))
    assert axis.get_xlabel() == "age"
    curve = axis.lines[0].get_xydata()
    np.testing.assert_allclose(curve[:, 1], result.witness(curve[:, :1]))
    ticks = {c.get_label(): c for c in axis.collections if c.get_label() in ("control", "treated")}
    for S, name, expected in ((X, "control", BLUE), (Y, "treated", ORANGE)):
        at = [segment[0, 0] for segment in ticks[name].get_segments()]
        np.testing.assert_array_equal(at, S[:, 0])
        assert to_hex(ticks[name].get_color()[0]).upper() == expected
    axis.figure.canvas.draw()


@pytest.mark.parametrize("columns", [(0, 1), (1, 0)])
def test_in_the_plane(columns, rng):
    X, Y = samples(rng, 2)
    f = witness(mc.Gaussian(1.0), X, Y)
    axis = plot_witness(f, columns=columns)
    assert (axis.get_xlabel(), axis.get_ylabel()) == tuple(f"x{j}" for j in columns)
    shades, lines, *points = axis.collections
    for drawn, S, expected in zip(points, (X, Y), (BLUE, ORANGE), strict=True):
        np.testing.assert_array_equal(drawn.get_offsets(), S[:, columns])
        assert to_hex(drawn.get_facecolor()[0]).upper() == expected
    level = len(lines.levels) - 3
    on_it = f(lines.get_paths()[level].vertices[:, columns])
    np.testing.assert_allclose(on_it, lines.levels[level], rtol=0.02)
    np.testing.assert_allclose(shades.levels, -shades.levels[::-1])
    axis.figure.canvas.draw()


def test_more_columns_have_the_colour_of_the_witness(rng):
    X, Y = samples(rng, 4)
    f = witness(mc.Gaussian(1.0), X, Y)
    axis = plot_witness(f, columns=("c", "a"), names=list("abcd"))
    assert axis.get_title() == "witness at the rows: 2 of 4 columns"
    assert (axis.get_xlabel(), axis.get_ylabel()) == ("c", "a")
    for drawn, S in zip(axis.collections, (X, Y), strict=True):
        np.testing.assert_array_equal(drawn.get_offsets(), S[:, [2, 0]])
        rgb, values = drawn.get_facecolor(), f(S)
        assert (
            np.sign(rgb[:, 2] - rgb[:, 0])[np.abs(values) > 0.01]
            == np.sign(values[np.abs(values) > 0.01])
        ).all()
    axis.figure.canvas.draw()


LINE = [[0.0], [1.0], [2.0], [2.5]]
PLAIN = {"n_permutations": 9, "random_state": 0}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: plot_null(3.0), "what a test returned"),
        (lambda: plot_null(mc.mmd_test(LINE, LINE, kernel="median", null="gamma")), "is a formula"),
        (lambda: plot_witness(mc.hsic_test(LINE, LINE, **PLAIN)), "TestResult with the .* tuple"),
        (lambda: plot_witness(mc.mmd_test(LINE, LINE, LINE, **PLAIN)), "with the .* NoneType"),
        (lambda: plot_witness(mc.mean_embedding(mc.Gaussian(1.0), LINE)), "a single sample"),
        (lambda: plot_witness(witness(mc.Gaussian(1.0), *([np.array(LINE)] * 2))), "the same rows"),
        (lambda: plot_witness(witness(mc.Spectrum(2), ["abc"], ["abd"])), "not dense arrays"),
        (lambda: plot_witness(witness(mc.Gaussian(1.0), LINE, LINE[:2]), labels="ab"), "two names"),
        (
            lambda: plot_witness(witness(mc.Gaussian(1.0), LINE, LINE[:2]), names=["a", "b"]),
            "list of 1",
        ),
    ],
)
def test_refusals_say_what_to_do(call, message):
    with pytest.raises(mc.InputError, match=message):
        call()
