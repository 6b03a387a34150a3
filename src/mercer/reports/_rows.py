"""Facts that an estimator finds about given rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._array import is_sparse, plain
from mercer._words import counted, listed, number, percent
from mercer.estimators import KernelDenoiser, KernelImputer
from mercer.estimators._summaries import hidden_errors
from mercer.estimators._validation import check_labels, check_targets
from mercer.exceptions import InputError


def checked_target(model: Any, data: Any, target: Any) -> Any:
    """Classes or finite numbers, if the model predicts them; a single column as a vector."""
    if target is None or data is None:
        return target
    if len(target) != len(data):
        raise InputError(f"target has {len(target)} entries, data has {len(data)} rows")
    if not _predicts(model):
        return target
    if hasattr(model, "classes_"):
        classes, index = check_labels(model, target)
        return classes[index]
    numbers, _ = check_targets(model, target)
    return numbers[:, 0] if numbers.shape[1] == 1 else numbers


def on_rows(model: Any, data: Any, target: Any, names: list[str] | None) -> dict[str, str]:
    """Scores, flags, filled values or changes of the given rows."""
    if data is None or not hasattr(model, "get_params"):
        return {}
    if target is not None and _predicts(model):
        return _score(model, data, target)
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


def _predicts(model: Any) -> bool:
    return hasattr(model, "predict") and hasattr(model, "score")


def _score(model: Any, data: Any, target: Any) -> dict[str, str]:
    name = "on the given rows"
    caution = "too optimistic if these are the rows of the fit"
    predicted = np.asarray(model.predict(data))
    if predicted.size != target.size:
        columns, outputs = target.size // len(target), predicted.size // len(target)
        raise InputError(f"target has {counted(columns, 'column')}, the model predicts {outputs}")
    predicted = predicted.reshape(target.shape)
    if hasattr(model, "classes_"):
        right = float(np.mean(predicted == target))
        return {name: f"{percent(right)} of the classes are right; {caution}"}
    return {
        name: f"predictions are off by {number(_rms(predicted - target))} (root mean square), the "
        f"targets themselves vary by {number(_rms(target - target.mean(axis=0)))}; {caution}"
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
    scale = np.max(np.abs(values), initial=0.0) or 1.0  # squares may overflow
    return float(scale * np.sqrt(np.mean(np.square(values / scale, dtype=float))))
