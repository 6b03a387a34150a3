"""
Risks and a bound on them
=========================

:func:`mercer.theory.bound` bounds the risk on new rows from the training rows alone. Here that risk
is measured on 20 samples of each size, and :func:`mercer.plot.plot_learning_curve` draws it below
the bound, which is far above it because it holds for all distributions.
"""

import numpy as np

import mercer as mc
from mercer.methods import HingeLoss
from mercer.plot import plot_learning_curve

rng = np.random.default_rng(0)


def sample(n):
    y = rng.choice([-1, 1], n)
    return rng.normal(size=(n, 2)) + 1.5 * y[:, None], y


def fit(n, X, y):
    return mc.SVC(mc.Gaussian(2.0), C=1 / (2 * 0.1 * n), fit_intercept=False).fit(X, y)


def risk(model, X, y):
    return HingeLoss()(y, model.decision_function(X)).mean()


sizes = [10, 30, 100, 300, 1000, 3000]
old, new = [], []
for n in sizes:
    samples = [sample(n) for _ in range(20)]
    models = [fit(n, *rows) for rows in samples]
    old.append([risk(model, *rows) for model, rows in zip(models, samples, strict=True)])
    new.append([risk(model, *sample(1000)) for model in models])
bounds = [mc.theory.bound(fit(n, *sample(n)), delta=0.05) for n in sizes]
plot_learning_curve({"new rows": new, "fitted rows": old}, sizes, bounds=bounds)
