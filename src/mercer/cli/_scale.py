"""Columns in units of their own spread."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from mercer._array import Array


@dataclass(frozen=True, eq=False)
class Scaling:
    """x -> (x - mean) / spread, column by column; missing values stay missing.

    Attributes
    ----------
    mean, spread : arrays of shape (d,), or None
        None changes nothing.
    """

    mean: Array | None = field(default=None, repr=False)
    spread: Array | None = field(default=None, repr=False)

    @classmethod
    def of(cls, X: Array) -> Scaling:
        """To unit variance, over the values that are there; constant columns are only moved."""
        mean = np.asarray(np.nanmean(X, axis=0, dtype=np.float64))
        spread = np.sqrt(np.nanmean((X - mean) ** 2, axis=0, dtype=np.float64))
        return cls(mean, np.where(spread > 1e-10 * np.abs(mean), spread, 1.0))

    def there(self, X: Array) -> Array:
        """Scaled rows."""
        if self.mean is None:
            return X
        return np.asarray((X - self.mean) / self.spread)

    def back(self, Z: Array) -> Array:
        """Rows as they were measured."""
        if self.mean is None:
            return Z
        return np.asarray(Z * self.spread + self.mean)
