"""The MMD from characteristic functions: inputs, and what is refused."""

import numpy as np
import pytest
from scipy.sparse import csr_array

import mercer as mc
from mercer.exceptions import InputError, UnavailableError
from mercer.theory import spectral_mmd

X = np.random.default_rng(0).normal(size=(20, 2))


def test_a_sample_and_its_characteristic_function_are_the_same():
    def phi(w):
        return np.exp(-1j * X @ w.T).mean(axis=0)

    for P in (phi, csr_array(X)):
        assert spectral_mmd(mc.Gaussian(1.0), P, X, random_state=0).value < 1e-25
    first, again = (spectral_mmd(mc.Laplace(1.0), X, X + 1, random_state=1) for _ in range(2))
    assert first == again


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: spectral_mmd(mc.Gaussian(1.0), X, X[:, :1]), InputError, "columns"),
        (lambda: spectral_mmd(mc.Gaussian(1.0), abs, abs), InputError, "dim"),
        (lambda: spectral_mmd(mc.Gaussian(1.0), X, abs), InputError, "finite numbers"),
        (lambda: spectral_mmd(mc.Gaussian(1.0), X, X, dim=3), InputError, "columns"),
        (lambda: spectral_mmd(mc.Gaussian(1.0), X, X, n_frequencies=0), InputError, "n_freq"),
        (lambda: spectral_mmd(mc.Linear(), X, X), UnavailableError, "spectral"),
        (lambda: spectral_mmd("gaussian", X, X), (TypeError, InputError), "kernel"),
    ],
)
def test_refusals_name_the_cure(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_functions_whose_squares_overflow_are_refused():
    with pytest.raises(mc.InputError, match="overflow"):
        spectral_mmd(mc.Gaussian(1.0), lambda w: 1e300 * np.ones(len(w)), [[0.0]], random_state=0)
