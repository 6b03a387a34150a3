"""Against another library: the default beside SciPy's L-BFGS, and beside the global optimum."""

import numpy as np
import pytest
from scipy.optimize import minimize

import mercer as mc
from mercer import Status
from mercer.preimages import gradient_bound


def problems(count):
    """Random mixed-sign Gaussian problems, as many of each dimension and length scale."""
    rng = np.random.default_rng(7)
    for i in range(count):
        d, scale = (2, 4, 10)[i % 3], (0.7, 1.5, 3.0)[i // 3 % 3]
        yield scale, rng.normal(size=(60, d)), rng.normal(size=60), rng.normal(size=d)


def lbfgs(scale, X, a, start):
    """psi at the end of SciPy's L-BFGS."""

    def negative(x):
        gap = x - X
        w = a * np.exp(-np.sum(gap**2, axis=1) / (2 * scale**2))
        return -w.sum(), w @ gap / scale**2

    options = {"gtol": 1e-12, "ftol": 1e-15, "maxiter": 2000}
    return -minimize(negative, start, jac=True, method="L-BFGS-B", options=options).fun


@pytest.mark.parametrize("count", [120, pytest.param(600, marks=pytest.mark.slow)])
def test_the_default_is_nearer_more_often_than_farther(count):
    nearer = farther = 0
    for scale, X, a, start in problems(count):
        psi = mc.Element(mc.Gaussian(scale), X, a)
        back = mc.preimage(psi, start=start, eigenvalues=False)
        squared = float(psi.norm()) ** 2
        other = np.sqrt(1.0 - 2.0 * lbfgs(scale, X, a, start) + squared)
        farther += back.distance[0] > other * (1 + 1e-6)
        nearer += back.distance[0] < other * (1 - 1e-6)
        small = back.gradient_norm[0] < 1e-8 * gradient_bound(psi)
        assert small or back.status[0] is Status.ESCAPED
    assert farther <= 0.04 * count
    assert farther <= nearer


@pytest.mark.parametrize("dim", [1, 2])
def test_several_starts_meet_the_global_optimum(dim):
    rng = np.random.default_rng(dim)
    met = count = 0
    for scale in (0.5, 1.0, 2.0):
        psi = mc.Element(mc.Gaussian(scale), rng.normal(size=(40, dim)), rng.normal(size=(40, 20)))
        best = mc.preimage(psi, mc.Global(gap=1e-7))
        back = mc.preimage(psi, n_starts=12)
        proved = best.status == Status.PROVED
        size = np.abs(psi.coef.array).sum(axis=0)
        met += np.sum(back.objective[proved] <= best.objective[proved] + 2e-7 * size[proved])
        count += proved.sum()
    assert count >= 50
    assert met >= 0.95 * count
