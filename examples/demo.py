"""Handwritten digits with strong noise, denoised by several methods.

Prints a table of errors and seconds, and writes a contact sheet to build/demo.png. Run with
`make run`.
"""

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import matplotlib as mpl
import numpy as np
import sklearn.decomposition
import threadpoolctl
from sklearn.datasets import load_digits

import mercer as mc
from mercer.methods import feature_noise, fit_denoiser

mpl.use("agg")
import matplotlib.pyplot as plt

OUTPUT = Path("build/demo.png")
NOISE = (0.25, 0.5)
SPLITS = 5
TRAIN, VALIDATION, TEST = 500, 150, 200
Denoise = Callable[[np.ndarray], np.ndarray]


class Split(NamedTuple):
    """Noisy rows to fit to, and noisy rows with their clean versions to tune and to test on."""

    train: np.ndarray
    validation: np.ndarray
    clean_validation: np.ndarray
    test: np.ndarray
    clean: np.ndarray
    labels: np.ndarray


def draw(sd: float, seed: int, sizes: tuple[int, int, int] = (TRAIN, VALIDATION, TEST)) -> Split:
    """Digits with pixels in [0, 1] in random order, and noise on all of them."""
    digits = load_digits()
    rng = np.random.default_rng(seed)
    chosen = rng.permutation(len(digits.data))[: sum(sizes)]
    clean = digits.data[chosen] / 16.0
    noisy = clean + sd * rng.normal(size=clean.shape)
    a, b = sizes[0], sizes[0] + sizes[1]
    return Split(noisy[:a], noisy[a:b], clean[a:b], noisy[b:], clean[b:], digits.target[chosen][b:])


# --- contenders: each makes one denoiser, or one for every setting of its grid --------------------

SETTINGS = 24  # in every grid


def pca_grid(train: np.ndarray) -> Iterator[Denoise]:
    """Principal components: 24 numbers of them."""
    for q in (*range(1, 17), 18, 20, 24, 28, 32, 40, 48, 60):
        model = sklearn.decomposition.PCA(q).fit(train)
        yield lambda Y, m=model: m.inverse_transform(m.transform(Y))


def peer(train: np.ndarray, **settings: float) -> Denoise:
    """scikit-learn's kernel PCA with the inverse it learns."""
    model = sklearn.decomposition.KernelPCA(
        kernel="rbf", fit_inverse_transform=True, **settings
    ).fit(train)
    return lambda Y: model.inverse_transform(model.transform(Y))


def peer_grid(train: np.ndarray) -> Iterator[Denoise]:
    """Three widths, two numbers of components, four penalties: where it did best in trials."""
    for share in (0.5, 1.0, 2.0):
        gamma = 1.0 / (2.0 * share * mc.median_scale(train) ** 2)
        for q in (20, 80):
            for penalty in (2.5, 5.0, 10.0, 20.0):
                yield peer(train, gamma=gamma, n_components=q, alpha=penalty * gamma)


def ours(train: np.ndarray) -> Denoise:
    """Nothing to set: the width, the strength and the trust are chosen from the noisy rows."""
    return mc.KernelDenoiser().fit(train).transform


def our_grid(train: np.ndarray) -> Iterator[Denoise]:
    """Three widths, four strengths, two inverses: one decomposition for each width."""
    noise, length = mc.methods.noise_level(train).sd, mc.median_scale(train)
    for share in (0.25, 0.5, 1.0):
        kernel = mc.Gaussian(share**0.5 * length)
        plane = mc.kernel_pca(kernel, train)
        unit = share * feature_noise(kernel, train, noise)  # the same for every width
        for strength in (0.5, 1.0, 2.0, 4.0):
            for inverse in (None, mc.FixedPoint(tol=1e-4)):
                yield fit_denoiser(
                    plane, train, filter=mc.methods.Tikhonov(strength * unit), noise=noise,
                    trust=1.0,
                    inverse=inverse,
                )  # fmt: skip


CONTENDERS: dict[str, Callable] = {
    "noisy": lambda _: lambda Y: Y,
    "PCA, tuned": pca_grid,
    "scikit-learn KernelPCA, rbf": peer,
    "scikit-learn KernelPCA, tuned": peer_grid,
    "mercer KernelDenoiser()": ours,
    "mercer KernelDenoiser, tuned": our_grid,
}


def denoised(contender: Callable, split: Split) -> np.ndarray:
    """The test rows; where there is a grid, by the setting that is best on the validation rows."""
    made = contender(split.train)
    if callable(made):
        return made(split.test)
    best = min(made, key=lambda f: error(f(split.validation), split.clean_validation))
    return best(split.test)


def error(found: np.ndarray, clean: np.ndarray) -> float:
    """Mean squared error per pixel."""
    return float(np.mean((found - clean) ** 2))


# --- what is shown ------------------------------------------------------------------------------


@contextmanager
def progress(total: int) -> Iterator[Callable[[], object]]:
    """A bar by tqdm where it is installed, else a line on stderr that counts."""
    try:
        from tqdm import tqdm
    except ImportError:
        done = 0

        def step() -> None:
            nonlocal done
            done += 1
            shown = f"[{'#' * (30 * done // total):30}] {done}/{total}"
            if sys.stderr.isatty():
                end = "\n" if done == total else ""
                print(f"\r{shown}", end=end, file=sys.stderr, flush=True)
            elif done % 10 == 0:
                print(shown, file=sys.stderr, flush=True)

        yield step
    else:
        with tqdm(total=total, leave=False) as shown:
            yield shown.update


def measure(splits: Iterable[Split], step: Callable[[], object]) -> tuple[dict, dict, list]:
    """Errors and seconds of every contender on every split, and all the denoised test rows."""
    errors: dict[str, list[float]] = {name: [] for name in CONTENDERS}
    seconds: dict[str, list[float]] = {name: [] for name in CONTENDERS}
    images = []
    for split in splits:
        images.append({"clean": split.clean})
        for name, contender in CONTENDERS.items():
            start = time.perf_counter()
            images[-1][name] = denoised(contender, split)
            seconds[name].append(time.perf_counter() - start)
            errors[name].append(error(images[-1][name], split.clean))
            step()
    return errors, seconds, images


def summary(values: Iterable[float], digits: int = 0) -> str:
    """Mean and standard error of the mean."""
    v = np.asarray(list(values))
    spread = v.std(ddof=1) / np.sqrt(len(v)) if len(v) > 1 else 0.0
    return f"{v.mean():.{digits}f} +- {spread:.{digits}f}"


def table(errors: dict[float, dict], seconds: dict[float, dict]) -> str:
    """One line per contender; errors times 1e4."""
    levels = list(errors)
    lines = [" " * 32 + "".join(f"{f'noise sd {sd}':>24}" for sd in levels)]
    lines += [" " * 32 + f"{'error':>14}{'seconds':>10}" * len(levels)]
    for name in CONTENDERS:
        cells = (
            f"{summary(1e4 * np.array(errors[sd][name]), 1):>14}{np.mean(seconds[sd][name]):10.2f}"
            for sd in levels
        )
        lines.append(f"{name:32}" + "".join(cells))
    return "\n".join(lines)


def contact_sheet(panels: dict[float, tuple[Split, dict]], output: Path) -> None:
    """Rows: clean, noisy, and what became of it. Columns: the ten digits, for each noise level."""
    rows = ["clean", *CONTENDERS]
    side, gap, left, top = 0.62, 0.5, 1.75, 0.42  # inches
    size = left + len(panels) * (10 * side + gap), top + len(rows) * side + 0.1
    fig = plt.figure(figsize=size, facecolor="white")
    for p, (sd, (split, images)) in enumerate(panels.items()):
        x0 = left + p * (10 * side + gap)
        ten = [int(np.flatnonzero(split.labels == digit)[0]) for digit in range(10)]
        fig.text((x0 + 5 * side) / size[0], 1 - 0.28 / size[1], f"noise sd {sd}", ha="center")
        for r, name in enumerate(rows):
            y0 = size[1] - top - (r + 1) * side
            for c, i in enumerate(ten):
                at = ((x0 + c * side) / size[0], y0 / size[1])
                ax = fig.add_axes((*at, 0.92 * side / size[0], 0.92 * side / size[1]))
                tile = images[name][i].reshape(8, 8)
                ax.imshow(tile, cmap="gray_r", vmin=0.0, vmax=1.0, interpolation="bicubic")
                ax.set(xticks=[], yticks=[])
                ax.spines[:].set(color="0.85", linewidth=0.6)
            mse = f"{1e4 * error(images[name], split.clean):.0f}" if r else "error\nx 1e4"
            where = (x0 + 10 * side + 0.03) / size[0], (y0 + 0.46 * side) / size[1]
            fig.text(*where, mse, size=8, va="center", color="0.35")
            if p == 0:
                style = {"ha": "right", "va": "center", "linespacing": 1.3}
                where = (left - 0.12) / size[0], (y0 + 0.46 * side) / size[1]
                fig.text(*where, name.replace(" Kernel", "\nKernel"), size=9, **style)
    output.parent.mkdir(exist_ok=True)
    fig.savefig(output, dpi=110)
    plt.close(fig)


def main() -> None:
    print(
        "Handwritten digits (8 x 8 pixels in [0, 1]) with Gaussian noise on every pixel.\n"
        f"Fitted to {TRAIN} noisy digits, tested on {TEST} others; 'tuned': the best of {SETTINGS}"
        f" settings\non {VALIDATION} digits whose clean versions are known. Mean squared error"
        f" x 1e4 over {SPLITS} splits\nwith its standard error, and seconds per split.\n",
        flush=True,
    )
    errors, seconds, panels = {}, {}, {}
    # matrices are small: threads of BLAS would only wait for each other
    one_thread = threadpoolctl.threadpool_limits(1, "blas")
    with one_thread, progress(len(NOISE) * SPLITS * len(CONTENDERS)) as step:
        for sd in NOISE:
            splits = [draw(sd, seed) for seed in range(SPLITS)]
            errors[sd], seconds[sd], images = measure(splits, step)
            panels[sd] = splits[0], images[0]
    print(table(errors, seconds))
    gaps = {
        sd: 1e4 * np.subtract(e["mercer KernelDenoiser, tuned"], e["scikit-learn KernelPCA, tuned"])
        for sd, e in errors.items()
    }
    said = ", ".join(f"{summary(gap, 1)} (sd {sd})" for sd, gap in gaps.items())
    print(f"\nTuned mercer less tuned scikit-learn, on the same split: {said}")
    contact_sheet(panels, OUTPUT)
    print(f"Picture: {OUTPUT}")


if __name__ == "__main__":
    main()
