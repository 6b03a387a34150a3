"""Pictures of a report, by the functions of `mercer.plot`."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from functools import partial, singledispatch
from io import BytesIO
from typing import Any, NamedTuple

import numpy as np

from mercer import plot
from mercer._array import Array, plain
from mercer._frames import as_frame, is_number
from mercer.estimators import (
    KernelDenoiser,
    KernelDensity,
    KernelImputer,
    KernelNovelty,
    KernelPCA,
    KernelRidge,
    MeanShift,
    OneClassSVM,
)
from mercer.methods import TestResult
from mercer.preimages import PreImage
from mercer.reports import _charts as charts
from mercer.space import Element

_IMAGES = 10  # that fit side by side
_DOTS = 150  # per inch: sharp on telephones, small files


class Picture(NamedTuple):
    """A PNG file as text, and what it shows."""

    base64: str
    caption: str


class Asked(NamedTuple):
    """What a report was given besides the object."""

    data: Any
    target: Any
    names: list[str] | None
    shape: tuple[int, int] | None

    def column_names(self, count: int) -> list[str]:
        """The names of the columns, or x0, x1, ..."""
        return self.axis_names or [f"x{j}" for j in range(count)]

    @property
    def axis_names(self) -> list[str] | None:
        """The names of the columns, short enough for a picture."""
        return None if self.names is None else [charts.cut(name) for name in self.names]

    @property
    def rows(self) -> Array | None:
        """The rows as a matrix of numbers, if they are one."""
        frame = as_frame(self.data)
        if frame is not None and not all(is_number(t) for t in frame.schema.values()):
            return None
        array = None if self.data is None else np.asarray(plain(self.data, missing=True))
        return array if _is_numeric(array) else None


def _picture(draw: Callable[..., Any], caption: str, height: float = 3.4) -> Picture:
    """Draw on new axes, without pyplot and its global figures."""
    from matplotlib.figure import Figure  # after mercer.plot, which says how to install it

    figure = Figure(figsize=(6.4, height), layout="constrained", dpi=_DOTS)
    draw(ax=figure.subplots())
    file = BytesIO()
    figure.savefig(file, format="png")
    return Picture(b64encode(file.getvalue()).decode("ascii"), caption)


@singledispatch
def pictures(obj: Any, asked: Asked) -> list[Picture]:
    """Supervised estimators: predictions against targets. Others have no pictures."""
    rows, target = asked.rows, asked.target
    if asked.data is None or target is None or not hasattr(obj, "predict"):
        return []
    target = np.asarray(target)
    if target.ndim != 1:
        return []
    predicted = np.asarray(obj.predict(asked.data)).ravel()
    if hasattr(obj, "classes_"):
        draw = partial(charts.draw_confusion, obj.classes_, target, predicted)
        height = max(2.4, 1.2 + 0.35 * len(obj.classes_))
        return [_picture(draw, "Given rows: how many of each class were predicted as which. Those "
                         "on the diagonal are right.", height)]  # fmt: skip
    found = [_picture(partial(charts.draw_agreement, target, predicted), "Given rows: predicted "
                      "against true values. On the line they agree.")]  # fmt: skip
    if rows is not None and rows.shape[1] == 1:
        curve = partial(charts.draw_curve, obj, rows[:, 0], target, asked.column_names(1)[0])
        found.insert(0, _picture(curve, "The fitted function and the given rows."))
    return found


@pictures.register
def _(obj: TestResult, asked: Asked) -> list[Picture]:
    found, psi = [], obj.witness
    if obj.null_statistics.size > 1:
        caption = "What chance alone gives, and the statistic that was observed."
        found.append(_picture(partial(plot.plot_null, obj), caption))
    if isinstance(psi, Element) and obj.contributions is None and _is_numeric(psi.points):
        weights = psi.coef.tile(slice(None), slice(None))[:, 0]
        if weights.min() < 0.0 < weights.max():  # two samples, not the same rows twice
            columns = charts.telling_columns(psi.points, np.sign(weights) + 1.0)
            draw = partial(plot.plot_witness, obj, columns=columns, names=asked.axis_names)
            caption = "Where the samples differ: blue where there is more of the first, orange "
            found.append(_picture(draw, f"{caption}where there is more of the second."))
    return found


@pictures.register
def _(obj: PreImage, asked: Asked) -> list[Picture]:
    if not _is_numeric(obj.points):
        return []
    if asked.shape is not None:
        return [_images({"pre-image": obj.points}, asked.shape, "The points as images.")]
    psi = asked.data if isinstance(asked.data, Element) and asked.data.batch is None else None
    if obj.history is not None:
        draw = partial(plot.plot_path, obj, psi, names=asked.axis_names)
        return [
            _picture(draw, "The search: from the white circles to the squares. Dark is better.")
        ]
    if psi is not None and obj.points.shape[1] <= 2:
        draw = partial(plot.plot_element, psi, obj.points, names=asked.axis_names)
        return [_picture(draw, "The element as a function, and the points that were found.")]
    return []


@pictures.register
def _(obj: MeanShift, asked: Asked) -> list[Picture]:
    if not _is_numeric(obj.density_.points):
        return []
    X = np.asarray(obj.density_.points, dtype=float)
    columns = charts.telling_columns(X, obj.labels_)
    draw = partial(plot.plot_modes, obj, columns=columns, names=asked.axis_names)
    caption = "The rows, coloured by cluster, and the peaks of the density."
    found = [_picture(draw, caption + _two_of(X))]
    if X.shape[1] == 2 and len(X) <= 2000:  # 160 x 160 pixels climb, which takes a second
        draw = partial(plot.plot_basins, obj, names=asked.axis_names)
        found.append(_picture(draw, "To which cluster a new row at each place would belong."))
    return found


@pictures.register
def _(obj: KernelPCA, asked: Asked) -> list[Picture]:
    shares = partial(charts.draw_shares, obj.explained_variance_ratio_)
    found = [_picture(shares, "The share of the variation that each component keeps.", 2.4)]
    if asked.data is not None and len(obj.eigenvalues_) > 1:
        Z = obj.transform(asked.data)
        draw = partial(charts.draw_components, Z[:, :2], asked.target)
        found.append(_picture(draw, "The given rows by their first two components."))
        if asked.rows is not None and asked.shape is not None:
            both = {"given": asked.rows, "from components": obj.inverse_transform(Z[:_IMAGES])}
            caption = "Images, and what their components keep of them."
            found.append(_images(both, asked.shape, caption))
    return found


@pictures.register
def _(obj: KernelDenoiser, asked: Asked) -> list[Picture]:
    rows = asked.rows
    if rows is None:
        return []
    if asked.shape is not None:
        both = {"given": rows, "denoised": obj.transform(asked.data)}
        return [_images(both, asked.shape, "Images before and after denoising.")]
    if rows.shape[1] < 2:
        return []
    after, names = np.asarray(obj.transform(asked.data)), asked.column_names(rows.shape[1])
    columns = charts.telling_columns(rows - after)
    draw = partial(charts.draw_moves, rows, after, columns, names)
    return [_picture(draw, "Where the rows were (grey) and are (blue)." + _two_of(rows))]


@pictures.register
def _(obj: KernelImputer, asked: Asked) -> list[Picture]:
    draw = partial(charts.draw_errors, obj.error_, asked.column_names(len(obj.error_)))
    height = 1.0 + 0.25 * min(int(np.isfinite(obj.error_).sum()), charts.BARS)
    caption = "Error on known values that were hidden, in standard deviations of the column."
    return [_picture(draw, caption, height)] if np.isfinite(obj.error_).any() else []


@pictures.register(KernelNovelty)
@pictures.register(OneClassSVM)
def _(obj: Any, asked: Asked) -> list[Picture]:
    if asked.data is None:
        return []
    scores = -np.asarray(obj.score_samples(asked.data))
    draw = partial(charts.draw_scores, scores, -obj.offset_)
    return [_picture(draw, "The given rows: those beyond the line are outliers.", 2.6)]


@pictures.register
def _(obj: KernelRidge, asked: Asked) -> list[Picture]:
    found = pictures.dispatch(object)(obj, asked)
    if hasattr(obj, "loo_path_"):
        errors = np.sqrt(obj.loo_path_.mean(axis=1))
        draw = partial(charts.draw_choice, obj.path_penalties_, errors, obj.penalty_)
        found.append(_picture(draw, "How the penalty was chosen: by the error of predicting each "
                              "row from the others.", 2.8))  # fmt: skip
    return found


@pictures.register
def _(obj: KernelDensity, asked: Asked) -> list[Picture]:
    parts = obj.density_.elements
    if obj.n_features_in_ > 2 or len(parts) != 1 or not _is_numeric(parts[0].points):
        return []
    draw = partial(plot.plot_element, parts[0], names=asked.column_names(obj.n_features_in_))
    return [_picture(draw, "The density, up to a factor, and the rows.")]


def _images(rows: dict[str, Any], shape: tuple[int, int], caption: str) -> Picture:
    some = {name: np.asarray(images)[:_IMAGES] for name, images in rows.items()}
    count = max(len(next(iter(some.values()))), 4)
    height = 0.3 + 5.4 * len(some) * shape[0] / (count * shape[1])
    return _picture(partial(plot.plot_images, some, shape=shape), caption, height)


def _two_of(X: Array) -> str:
    return f" Two of {X.shape[1]} columns." if X.shape[1] > 2 else ""


def _is_numeric(points: Any) -> bool:
    return isinstance(points, np.ndarray) and points.ndim == 2 and points.dtype.kind in "fiu"
