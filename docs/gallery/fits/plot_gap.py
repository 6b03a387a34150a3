"""
The duality gap during a fit
============================

The certificate of a fit has a duality gap: the objective is at most that far above the minimum.
With ``max_iter=1`` and ``warm_start=True`` each call of ``fit`` does one more round of the solver,
and :func:`mercer.plot.plot_gap` draws the gap after each.
"""

import warnings

from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

import mercer as mc
from mercer.plot import plot_gap

X, y = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(X)
warnings.simplefilter("ignore", mc.MercerWarning)  # each round says that it is not finished


def certificates(model):
    """Of each round, until the gap is a millionth."""
    found = []
    while not found or found[-1].relative_gap > 1e-6:
        found.append(model.fit(X, y).certificate_)
    return found


rounds = {"C": 10.0, "tol": 1e-6, "max_iter": 1, "warm_start": True}
plot_gap(
    {
        "SVC": certificates(mc.SVC(**rounds)),
        "logistic regression": certificates(mc.KernelLogisticRegression(**rounds)),
    }
)
