"""Fitted estimators in other processes: `python -m tests.estimators.parallel spawn`.

Prints the estimators whose answers differ there, as JSON.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import warnings

import numpy as np
from sklearn.base import is_classifier
from sklearn.model_selection import GridSearchCV

import mercer as mc
from mercer import estimators

NAMES = tuple(name for name in estimators.__all__ if name != "KernelEstimator")
X = np.random.default_rng(0).normal(size=(60, 2))
LABELS = np.where(X[:, 0] + 0.3 * X[:, 1] ** 2 > 0.0, "a", "b")
METHODS = ("predict", "transform", "decision_function", "predict_proba", "score_samples")


def made(name):
    """An estimator that is not fitted, with a fixed seed."""
    model = getattr(estimators, name)()
    if name == "KernelDenoiser":
        model.set_params(noise=0.3)
    return model.set_params(random_state=0) if "random_state" in model.get_params() else model


def targets(model):
    return LABELS if is_classifier(model) else X[:, 0]


def fitted(name):
    model = made(name)
    return model.fit(X, targets(model))


def answers(model, rows=X):
    """What a fitted estimator says about some rows."""
    return {m: np.asarray(getattr(model, m)(rows)) for m in METHODS if hasattr(model, m)}


def differs(one, other):
    """What two lists of answers do not have in common, to rounding."""
    if one.keys() != other.keys():
        return "methods"
    close = {
        m: (one[m].dtype.kind not in "fc" and np.array_equal(one[m], other[m]))
        or (
            one[m].dtype.kind in "fc" and np.allclose(one[m], other[m], 1e-9, 1e-12, equal_nan=True)
        )
        for m in one
    }
    return ", ".join(m for m, same in close.items() if not same)


def inside(sent):
    """In another process: a model that was fitted elsewhere, and one that is fitted there."""
    name, model, expected = sent
    return name, differs(answers(model), expected) or differs(answers(fitted(name)), expected)


def score(model, rows, y=None):
    """A number that depends on every answer."""
    return float(sum(np.sin(v).sum() for v in answers(model, rows).values() if v.dtype.kind == "f"))


def searched(name):
    """A grid search in two processes, and in one."""
    scores = []
    for n_jobs in (1, 2):
        model = made(name)
        grid = {"kernel": [mc.Gaussian(0.5), mc.Gaussian(1.0)]}
        search = GridSearchCV(model, grid, scoring=score, cv=2, n_jobs=n_jobs, error_score="raise")
        scores.append(search.fit(X, targets(model)).cv_results_["mean_test_score"])
    return "" if np.allclose(*scores, 1e-9, 1e-12) else f"scores {scores}"


def in_a_child(sent):
    """After os.fork, while the pool of the parent has threads."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            found = inside(sent)[1]
        except BaseException as error:  # noqa: BLE001
            found = repr(error)
        os.write(write, found.encode()[:1000])
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        found = pipe.read()
    os.waitpid(child, 0)
    return found


def main(kind):
    """The estimators that fail, and how."""
    if kind == "loky":
        return {name: searched(name) for name in NAMES}
    with mc.options(n_jobs=2):  # the pool has threads now
        mc.Gaussian()(np.random.default_rng(0).normal(size=(600, 3)))
    models = {name: fitted(name) for name in NAMES}
    sent = [(name, model, answers(model)) for name, model in models.items()]
    if kind == "os.fork":
        with mc.options(n_jobs=2):
            return {one[0]: in_a_child(one) for one in sent}
    with multiprocessing.get_context(kind).Pool(1) as pool:
        return dict(pool.map(inside, sent))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    found = main(sys.argv[1])
    assert set(found) == set(NAMES)
    json.dump({name: how for name, how in found.items() if how}, sys.stdout)
