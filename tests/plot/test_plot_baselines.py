"""Each plot looks as it did: pictures without text are compared with those in baselines/.

`make baselines` draws those again; look at each one that changed before you commit it.
"""

from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import style
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.testing.compare import compare_images
from matplotlib.text import Text

import mercer as mc
from mercer import plot
from mercer._certificate import FitCertificate
from mercer.methods.modes._scale_space import ScaleSpace
from mercer.theory.first_order import constant_steps, subgradient_method
from mercer.theory.learning import RiskBound

BASELINES = Path(__file__).parent / "baselines"
TOLERANCE = 2.0  # root mean square, of 255: a missing mark counts 2.6, antialiasing less
PIXELS = 40  # per inch: small files, and lines still count

rng = np.random.default_rng(0)
LINE = np.concatenate([rng.normal(0.0, 1.0, (30, 1)), rng.normal(5.0, 0.7, (15, 1))])
PLANE = np.concatenate([rng.normal(c, 0.7, (20, 2)) for c in ((0, 0), (4, 1), (1, 4))])
WIDE = rng.normal(size=(30, 4))
SIX = np.array([[-1.4, 0.9], [-0.3, 1.2], [1.3, 1.0], [0.2, -0.1], [-1.1, -1.0], [0.9, -1.3]])
SIGNS = np.array([1.0, -0.6, 0.7, 0.5, 0.6, -0.7])
PSI = mc.Element(mc.Gaussian(0.7), SIX, SIGNS)
PSI_LINE = mc.Element(mc.Gaussian(0.8), [[2.0], [4.4], [5.6], [8.0]], [0.6, -0.7, -0.6, 0.8])
DENSITY, LINE_DENSITY = (mc.mean_embedding(mc.Gaussian(0.8), X) for X in (PLANE, LINE))
IMAGES = rng.random((6, 20))


def search(psi, starts):
    coef = np.asarray(psi.coef.tile(slice(None), slice(None)))
    batch = mc.Element(psi.kernel, psi.points, np.tile(coef, len(starts)))
    return mc.preimage(batch, mc.FixedPoint(), start=starts, history=True)


def two_samples(X):
    return mc.mmd_test(X[::2], X[1::2] + 1.0, n_permutations=199, random_state=0)


def descent():
    steps = constant_steps(60, 10**0.5, 5**0.5)
    args = lambda x: abs(x[0]) + 2 * abs(x[1]), lambda x: np.sign(x) * [1, 2], [3.0, 1.0], steps
    return subgradient_method(*args, lipschitz=5**0.5, minimiser=[0.0, 0.0])


def bounds():
    return [RiskBound(v, 0.1, v - 0.1, 1.0, 0.05, "", ()) for v in (2.0, 0.9, 0.4)]


def rounds(shrinking):
    return [FitCertificate(1.0, 1.0 - 0.9 * shrinking**t, 0.0, 0.0, 0.0) for t in range(8)]


RISKS = {"new": 0.3 / np.sqrt([[1], [10], [100]]) * [0.8, 1.0, 1.2], "old": [0.05, 0.04, 0.03]}
# what is drawn, given the axes; the number of axes where it is not one
CASES = {
    "basins": lambda ax: plot.plot_basins(DENSITY, resolution=40, ax=ax),
    "coefficients": lambda ax: plot.plot_coefficients(
        mc.kernel_pca(mc.Gaussian(1.0), SIX, 3).directions, ax=ax
    ),
    "convexity_line": lambda ax: plot.plot_convexity(PSI_LINE, ax=ax),
    "convexity_plane": lambda ax: plot.plot_convexity(PSI, low=(-3, -3), high=(3, 3), ax=ax),
    "descent": lambda ax: plot.plot_descent(descent(), ax=ax),
    "element_line": lambda ax: plot.plot_element(PSI_LINE, [[2.0], [8.1]], ax=ax),
    "element_plane": lambda ax: plot.plot_element(PSI, [[-1.5, 0.8]], ax=ax),
    "element_rows": lambda ax: plot.plot_element(
        mc.Element(mc.Gaussian(1.0), WIDE, np.sin(np.arange(30))), columns=(2, 1), ax=ax
    ),
    "gap": lambda ax: plot.plot_gap({"a": rounds(0.1), "b": rounds(0.3)}, ax=ax),
    "gram": lambda ax: plot.plot_gram(mc.Epanechnikov(1.5), LINE[::4], ax=ax),
    "images": lambda ax: plot.plot_images(
        {"given": IMAGES, "found": np.where(IMAGES > 0.9, np.nan, IMAGES**2)},
        difference=True, shape=(5, 4), ax=ax,
    ),
    "kernel": lambda ax: plot.plot_kernel(mc.Matern(1.5), ax=ax),
    "learning_curve": lambda ax: plot.plot_learning_curve(
        RISKS, [100, 1000, 10_000], bounds=bounds(), ax=ax
    ),
    "modes_line": lambda ax: plot.plot_modes(
        mc.mean_shift(LINE_DENSITY), LINE, density=LINE_DENSITY, ax=ax
    ),
    "modes_plane": lambda ax: plot.plot_modes(
        mc.mean_shift(DENSITY), PLANE, density=DENSITY, ax=ax
    ),
    "null": lambda ax: plot.plot_null(two_samples(LINE), ax=ax),
    "path_line": lambda ax: plot.plot_path(
        search(PSI_LINE, np.array([[3.6], [6.1]])), PSI_LINE, ax=ax
    ),
    "path_plane": lambda ax: plot.plot_path(
        search(PSI, np.array([[-2.0, -0.2], [1.8, -0.6]])), PSI, ax=ax
    ),
    "scale_space": lambda ax: plot.plot_scale_space(
        ScaleSpace(np.array([1.0, 2.0, 4.0, 8.0, 16.0]), np.array([7, 3, 3, 3, 1])), ax=ax
    ),
    "surrogate_line": lambda ax: plot.plot_surrogate(PSI_LINE, [6.1], ax=ax),
    "surrogate_plane": lambda ax: plot.plot_surrogate(PSI, [-0.5, 0.2], ax=ax),
    "weights": lambda ax: plot.plot_weights(DENSITY, ax=ax),
    "witness_line": lambda ax: plot.plot_witness(two_samples(LINE), ax=ax),
    "witness_plane": lambda ax: plot.plot_witness(two_samples(PLANE), ax=ax),
}  # fmt: skip
PANELS = {"gram": 2, "kernel": 3}
WITH_IMAGES = {"basins", "coefficients", "gram", "images", "weights"}


def draw(name, path):
    """Save the picture of a case, without text and legends, whose size depends on fonts."""
    with style.context("default"):
        count = PANELS.get(name, 1)
        figure = Figure(figsize=(2.6 * count, 2.2), dpi=PIXELS)
        axes = figure.subplots(1, count)
        CASES[name](axes)
        figure.draw_without_rendering()  # makes the ticks, so that their labels can be hidden
        for part in [*figure.findobj(Text), *figure.findobj(Legend)]:
            part.set_visible(False)
        figure.savefig(path, metadata={"Software": None}, pil_kwargs={"optimize": True})


@pytest.mark.parametrize("name", CASES)
def test_the_picture_is_the_same(name, tmp_path):
    if name in WITH_IMAGES and mpl.__version_info__ < (3, 11):
        pytest.skip("matplotlib before 3.11 places images elsewhere, by a part of a pixel")
    drawn = tmp_path / f"{name}.png"
    draw(name, drawn)
    assert compare_images(str(BASELINES / f"{name}.png"), str(drawn), TOLERANCE) is None


def test_every_plot_has_a_small_picture():
    assert {path.stem for path in BASELINES.iterdir()} == set(CASES)
    stems = {f"plot_{name}" for name in CASES} | {f"plot_{n.rsplit('_', 1)[0]}" for n in CASES}
    assert set(plot.__all__) <= stems
    assert max(path.stat().st_size for path in BASELINES.iterdir()) <= 10_000


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("element_line", lambda ax: plot.plot_element(PSI_LINE, [[8.1]], ax=ax)),
        ("gap", lambda ax: plot.plot_gap({"a": rounds(0.1), "b": rounds(0.2)}, ax=ax)),
        (
            "path_plane",
            lambda ax: plot.plot_path(search(PSI, np.array([[-2.0, -0.2]])), PSI, ax=ax),
        ),
        ("surrogate_line", lambda ax: plot.plot_surrogate(PSI_LINE, [6.3], ax=ax)),
    ],
)
def test_small_changes_are_noticed(name, changed, tmp_path, monkeypatch):
    monkeypatch.setitem(CASES, name, changed)
    with pytest.raises(AssertionError):
        test_the_picture_is_the_same(name, tmp_path)


if __name__ == "__main__":  # make baselines
    BASELINES.mkdir(exist_ok=True)
    for case in CASES:
        draw(case, BASELINES / f"{case}.png")
