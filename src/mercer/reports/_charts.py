"""Small charts that only reports need: predictions, errors, scores, components."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._array import Array
from mercer.plot._panels import tidy
from mercer.plot._style import BLUE, COLOURS, GREY, MARKERS, ORANGE

BARS = 25  # columns or components at most
_MOST = 5000  # points of a scatter plot; more are evenly thinned
_LETTERS = 24  # of a name at the side of a picture
_CLASSES = 20  # whose counts are written


def cut(text: Any) -> str:
    """Text that is short enough to label an axis."""
    return str(text) if len(str(text)) <= _LETTERS else f"{str(text)[: _LETTERS - 1]}…"


def telling_columns(X: Array, labels: Array | None = None) -> tuple[int, int]:
    """The two columns that vary most: between groups in units of their spread, or overall."""
    if X.shape[1] < 2:
        return 0, 0
    size = np.std(X, axis=0)
    if labels is not None:
        groups = [X[labels == k].mean(axis=0) for k in np.unique(labels[labels >= 0])]
        size = np.std(groups, axis=0) / np.where(size > 0.0, size, np.inf)
    first, second = sorted(np.argsort(-size, kind="stable")[:2].tolist())
    return first, second


def draw_confusion(classes: Array, target: Array, predicted: Array, *, ax: Any) -> None:
    """Counts of true and predicted classes."""
    counts = np.array(
        [[np.sum((target == a) & (predicted == b)) for b in classes] for a in classes]
    )
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    ax.imshow(share, cmap="Blues", vmin=0.0, vmax=1.2)
    tidy(ax, "", "predicted", "true")
    if len(classes) <= _CLASSES:
        labels = [cut(c) for c in classes.tolist()]
        ax.set_xticks(range(len(labels)), labels, rotation=40, ha="right", parse_math=False)
        ax.set_yticks(range(len(labels)), labels, parse_math=False)
        for (i, j), n in np.ndenumerate(counts):
            colour = "white" if share[i, j] > 0.6 else "black"
            if n:
                ax.text(j, i, f"{n:,}", ha="center", va="center", fontsize=7.5, color=colour)
    ax.tick_params(length=0)


def draw_agreement(target: Array, predicted: Array, *, ax: Any) -> None:
    """Predicted against true values."""
    some = _thinned(len(target))
    ends = [min(target.min(), predicted.min()), max(target.max(), predicted.max())]
    ax.plot(ends, ends, color=GREY, lw=1.0)
    ax.plot(target[some], predicted[some], ".", ms=4, color=BLUE, alpha=0.7)
    tidy(ax, "", "true", "predicted")


def draw_curve(model: Any, x: Array, target: Array, name: str, *, ax: Any) -> None:
    """A function of one variable, and rows."""
    grid = np.linspace(x.min(), x.max(), 400)
    some = _thinned(len(x))
    ax.plot(x[some], target[some], ".", ms=4, color=GREY)
    ax.plot(grid, model.predict(grid[:, None]), color=BLUE)
    tidy(ax, "", name, "target")


def draw_choice(penalties: Array, errors: Array, chosen: float, *, ax: Any) -> None:
    """Errors along a path of penalties."""
    ax.plot(penalties, errors, color=BLUE)
    for axis, values in ((ax.set_xscale, penalties), (ax.set_yscale, errors)):
        usable = np.isfinite(values) & (values > 0.0)  # not where a constant is predicted exactly
        axis("log" if usable.any() else "linear")
    ax.axvline(chosen, color=ORANGE, lw=1.2, label="chosen")
    ax.legend(fontsize=7.5, frameon=False)
    ax.yaxis.set_major_formatter("{x:.3g}")
    ax.yaxis.set_minor_formatter("{x:.3g}")
    tidy(ax, "", "penalty", "error")


def draw_errors(errors: Array, names: list[str], *, ax: Any) -> None:
    """Bars of the errors of columns."""
    known = np.flatnonzero(np.isfinite(errors))
    order = known[np.argsort(errors[known], kind="stable")][:BARS][::-1]
    ax.barh(range(len(order)), errors[order], color=BLUE)
    ax.set_yticks(range(len(order)), [names[j] for j in order], parse_math=False)
    ax.axvline(1.0, color=ORANGE, lw=1.2, label="mean of the column")
    ax.legend(fontsize=7.5, frameon=False, loc="lower right", bbox_to_anchor=(1.0, 1.0))
    tidy(ax, "", "error in standard deviations")


def draw_shares(shares: Array, *, ax: Any) -> None:
    """Bars of the shares of components, in per cent."""
    some = shares[:BARS]
    ax.bar(range(1, len(some) + 1), 100.0 * some, color=BLUE)
    ax.xaxis.get_major_locator().set_params(integer=True)
    tidy(ax, "", "component", "share in %")


def draw_components(Z: Array, target: Any, *, ax: Any) -> None:
    """Rows by two components, with a colour and a marker for each class."""
    some = _thinned(len(Z))
    labels = np.zeros(len(Z), dtype=int) if target is None else np.asarray(target)
    classes = np.unique(labels)
    if len(classes) > len(COLOURS) * len(MARKERS) or labels.dtype.kind == "f":
        classes = classes[:0]
    if not len(classes):
        ax.scatter(*Z[some].T, s=8, c=labels[some], cmap="cividis")
    for k, c in enumerate(classes):
        on = some[labels[some] == c]
        marker = MARKERS[k // len(COLOURS)]
        ax.plot(*Z[on].T, marker, ms=3, color=COLOURS[k % len(COLOURS)], label=f"{k}")
    if len(classes) > 1:
        box = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)}
        texts = ax.legend(fontsize=7.5, frameon=False, **box).get_texts()
        for text, c in zip(texts, classes, strict=True):  # a label "_a" would be left out
            text.set(text=cut(c), parse_math=False)
    tidy(ax, "", "first component", "second component")


def draw_moves(before: Array, after: Array, columns: Any, names: list[str], *, ax: Any) -> None:
    """Rows before and after a change, in two columns."""
    some, (i, j) = _thinned(len(before)), columns
    ax.plot(before[some, i], before[some, j], ".", ms=4, color=GREY, label="before")
    ax.plot(after[some, i], after[some, j], ".", ms=4, color=BLUE, label="after")
    ax.legend(fontsize=7.5, frameon=False)
    tidy(ax, "", names[i], names[j])


def draw_scores(scores: Array, threshold: float, *, ax: Any) -> None:
    """A histogram of scores, and the threshold."""
    ax.hist(scores, bins=40, color=BLUE)
    ax.axvline(threshold, color=ORANGE, lw=1.2, label="threshold")
    ax.legend(fontsize=7.5, frameon=False)
    tidy(ax, "", "distance: the larger, the more unusual", "rows")


def _thinned(n: int) -> Array:
    return np.unique(np.linspace(0, n - 1, min(n, _MOST)).round().astype(int))
