"""
Gradient descent and its bound
==============================

Least squares on the diabetes data by gradient descent. Theory bounds how fast the error falls for
every function with this smoothness; :func:`mercer.plot.plot_descent` draws the run below
its bound.
"""

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import StandardScaler

from mercer.plot import plot_descent
from mercer.theory.first_order import gradient_descent

X, y = load_diabetes(return_X_y=True)
X, y = StandardScaler().fit_transform(X), y - y.mean()
n = len(y)


def f(w):
    return np.sum((X @ w - y) ** 2) / (2 * n)


def gradient(w):
    return X.T @ (X @ w - y) / n


best = np.linalg.lstsq(X, y)[0]
run = gradient_descent(
    f, gradient, np.zeros(10), 300, smoothness=np.linalg.norm(X, 2) ** 2 / n, minimiser=best
)
plot_descent(run, minimum=f(best))
