"""Mean shift clustering of rows in pieces: ascents from seeds, labels by the nearest mode."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._array import Array, Points
from mercer._chunks import Chunks
from mercer.engine import Maps, apply_all
from mercer.estimators._kernel_parameter import density_kernel, is_auto
from mercer.estimators._validation import fit_column_scaler, float_type, scaled
from mercer.exceptions import InputError
from mercer.kernels import Kernel, Scales
from mercer.methods._rows import nearest, renumbered
from mercer.methods.modes._merging import kept_clusters
from mercer.space import mean_embedding


def fit_in_pieces(model: Any, X: Chunks, w: Chunks | None) -> None:
    """Climb from all seeds at once; each step is a pass over the rows."""
    given = not isinstance(model.bandwidth, str) or (
        is_auto(model.bandwidth) and isinstance(model.kernel, Kernel)
    )
    if is_auto(model.bandwidth) and not given:
        raise InputError(
            'bandwidth="auto" needs all rows in memory; for rows in pieces give a number, '
            "'silverman', 'scott' or 'modes'"
        )
    if model.seeds is None or model.labels != "nearest" or model.blurring or model.bin_seeding:
        raise InputError(
            "rows in pieces are clustered from seeds and labelled by the nearest mode: give "
            'seeds, such as a sample of the rows, and labels="nearest"; climbing from every row '
            "needs all rows in memory"
        )
    scaler = fit_column_scaler(model.scale_columns, X, w, in_data_units=given)
    args = (model.kernel, model.bandwidth, scaled(scaler, X), w)
    kernel = density_kernel(*args, for_mean_shift=True)
    model.kernel_ = kernel if scaler is None else kernel.transform(Scales(scaler.scale_))
    model.significant_ = model.significance_ = model.components_ = None
    points = X.mapped(_double, tail=X.tail, dtype=np.float64)
    checked = Points(points, model.kernel_.domain)
    model.density_ = model._density = mean_embedding(model.kernel_, checked, weights=w)
    modes, labels = model._climbed(points)
    rows = labels.each([None] * len(X.sizes)) if w is None else labels.zip(w)
    mass = rows.total(_sizes, len(modes), task="clusters")
    keep = kept_clusters(mass, modes, model.min_cluster_size)
    model._modes = modes[keep]
    model.cluster_centers_ = model._modes.astype(float_type(X))
    model.labels_ = labels.mapped(renumbered, keep, len(modes), dtype=np.intp).collected()


def nearest_of_piece(X: Array, maps: Maps, centres: Array) -> Array:
    """The number of the centre nearest to each row."""
    return nearest(centres, np.asarray(apply_all(maps, X), dtype=np.float64))[1]


def _sizes(labels: Array, w: Array | None, count: int) -> Array:
    found = labels >= 0
    weights = np.ones(len(labels)) if w is None else w[:, 0]
    return np.bincount(labels[found], weights[found], minlength=count)


def _double(X: Array) -> Array:
    return np.asarray(X, dtype=np.float64)
