"""The score of regressors, also for rows in pieces."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin

from mercer._array import Array
from mercer._chunks import as_chunks, targets_in_pieces, weights_in_pieces
from mercer._frames import is_chunked
from mercer.methods._pieces import column_moments


class Regressor(RegressorMixin):  # type: ignore[misc]
    """A regressor of scikit-learn whose score takes rows in pieces."""

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R^2 = 1 - (mean squared error) / (variance of y), the mean over all outputs."""
        if not is_chunked(X):
            return float(super().score(X, y, sample_weight))
        targets, _ = targets_in_pieces(as_chunks(X), y)
        weights = None if sample_weight is None else weights_in_pieces(targets, sample_weight)
        predicted = targets.zip(self.predict(X))
        rows = predicted if weights is None else predicted.zip(weights)
        mass, _, variance = column_moments(targets, weights)
        error = rows.total(_squared_errors) / mass
        with np.errstate(all="ignore"):
            found = 1.0 - error / variance
        constant = np.where(error > 0.0, 0.0, 1.0)
        return float(np.where(variance > 0.0, found, constant).mean())


def _squared_errors(y: Array, predicted: Array, w: Array | None = None) -> Array:
    weights = np.ones(len(y)) if w is None else w[:, 0]
    return np.asarray(weights @ (y - np.reshape(predicted, y.shape)) ** 2)
