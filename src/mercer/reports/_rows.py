"""What an estimator says about given rows, as facts."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._array import is_sparse, plain
from mercer._words import listed, number, percent
from mercer.estimators import KernelDenoiser, KernelImputer
from mercer.estimators._summaries import hidden_errors


def on_rows(model: Any, data: Any, target: Any, names: list[str] | None) -> dict[str, str]:
    """Scores, flags, filled values or changes of the given rows."""
    if data is None or not hasattr(model, "get_params"):
        return {}
    if target is not None and hasattr(model, "predict") and hasattr(model, "score"):
        return _score(model, data, np.asarray(target))
    if isinstance(model, KernelImputer):
        return hidden_errors(model, names) | _filled(data, names)
    if isinstance(model, KernelDenoiser) and not is_sparse(data):
        change = np.asarray(model.transform(data)) - np.asarray(plain(data))
        return {"change of the given rows": f"{number(_rms(change))} (root mean square)"}
    if hasattr(model, "offset_"):
        flagged = np.asarray(model.predict(data)) < 0
        rows = listed(np.flatnonzero(flagged), 12)
        return {"given rows that are outliers": f"{flagged.sum():,} of {len(flagged):,}: {rows}"}
    return {}


def _score(model: Any, data: Any, target: Any) -> dict[str, str]:
    name = "on the given rows"
    caution = "too optimistic if these are the rows of the fit"
    if hasattr(model, "classes_"):
        return {name: f"{percent(model.score(data, target))} of the classes are right; {caution}"}
    off = np.asarray(model.predict(data)) - target
    return {
        name: f"predictions are off by {number(_rms(off))} (root mean square), the targets "
        f"themselves vary by {number(np.std(target))}; {caution}"
    }


def _filled(data: Any, names: list[str] | None) -> dict[str, str]:
    missing = np.isnan(np.asarray(plain(data, missing=True), dtype=float))
    names = [f"x{j}" for j in range(missing.shape[1])] if names is None else names
    counts = missing.sum(axis=0)
    order = [j for j in np.argsort(-counts, kind="stable") if counts[j]]
    return {
        "missing in the given rows": f"{counts.sum():,} of {missing.size:,} values: "
        + listed((f"{names[j]} {counts[j]:,}" for j in order), 12)
    }


def _rms(values: Any) -> float:
    return float(np.sqrt(np.mean(np.square(values, dtype=float))))
