"""What tensors are refused, and what the refusal says."""

import array_api_strict as strict
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import mercer as mc
from mercer import methods
from mercer.methods import mmd, mmd_test
from tests.engine.tensors import LIBRARIES, data, needs_torch, numbers, tensor_of

X, Y, A = data()
k = mc.Gaussian(1.0)


def test_libraries_and_types_are_not_mixed():
    message = "X is a array_api_strict tensor of float64 on .*, but Y is a NumPy array; use one"
    with pytest.raises(mc.InputError, match=message):
        k(strict.asarray(X), Y)
    with pytest.raises(mc.InputError, match="tensor of float32"):
        k(strict.asarray(X), strict.asarray(Y, dtype=strict.float32))
    with pytest.raises(mc.InputError, match="but coef is a NumPy array"):
        mc.Element(k, strict.asarray(X), A)
    with pytest.raises(mc.InputError, match="points is a NumPy array, but coef"):
        mc.Element(k, X, strict.asarray(A))
    psi = mc.Element(k, strict.asarray(X), strict.asarray(A))
    for bad in (Y, strict.asarray(Y, dtype=strict.float32)):
        with pytest.raises(mc.InputError, match="use one library"):
            psi(bad)
    with pytest.raises(mc.InputError, match="use one library"):
        mmd(k, strict.asarray(X), Y)
    with pytest.raises(mc.InputError, match="use one library"):
        psi + mc.Element(k, X, A)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (np.ones(3), "must have shape"),
        (np.ones((0, 2)), "must have shape"),
        (np.ones((2, 2), dtype=int), "tensors must be float32 or float64"),
        (np.array([[1.0, np.nan]]), "contains NaN or infinity"),
        (np.array([[1e200]]), "whose squares overflow"),
    ],
)
def test_points_are_checked(bad, message):
    with pytest.raises(mc.InputError, match=message):
        k(strict.asarray(bad))


def test_domains_hold():
    with pytest.raises(mc.exceptions.DomainError, match="must lie inside the ball"):
        mc.kernels.Geometric(1.0)(strict.asarray(10.0 * X))
    with pytest.raises(mc.exceptions.DomainError, match="must be >= 0"):
        mc.kernels.Minimum()(strict.asarray(X))
    with pytest.raises(mc.exceptions.DomainError, match="k\\(x, x\\) = 0"):
        mc.kernels.Cosine()(strict.zeros((1, 2)))


def test_functions_of_numpy_arrays_are_refused():
    call = mc.kernels.FromFunction(lambda X, Y: X @ Y.T)
    mapped = k.transform(mc.kernels.Features(lambda X: X**2))
    for kernel in (call, mapped):
        with pytest.raises(mc.InputError, match="so it takes no tensors"):
            kernel(strict.asarray(X))
    with pytest.raises(mc.InputError, match="no logarithmic scale"):
        mc.feature(k, strict.asarray(X)).fields(strict.asarray(Y), shifted=True)
    with pytest.raises(mc.InputError, match="on tensors, and this function computes in NumPy"):
        mc.compress(mc.mean_embedding(k, strict.asarray(X)), 2)


def test_other_functions_read_tensors_as_arrays():
    assert mmd_test(strict.asarray(X), strict.asarray(Y), kernel=k, random_state=0).pvalue == (
        mmd_test(X, Y, kernel=k, random_state=0).pvalue
    )


@needs_torch
def test_nothing_is_moved_or_cut_off():
    import torch

    x = torch.tensor(X, requires_grad=True)
    with pytest.raises(mc.InputError, match="requires a gradient, and this function"):
        mmd_test(x, torch.tensor(Y), kernel=k)
    with pytest.raises(mc.InputError, match="is on meta"):
        mmd_test(torch.ones(3, 2, device="meta"), Y, kernel=k)
    with pytest.raises(mc.InputError, match="X is a torch tensor of float64 on cpu, but Y is"):
        k(torch.tensor(X), torch.ones((2, 4), dtype=torch.float64, device="meta"))


@needs_torch
def test_sums_stay_on_their_device():
    import torch

    x, y = (torch.ones(n, 5, device="meta", requires_grad=True) for n in (7, 3))
    a = torch.ones(7, 2, device="meta")
    psi = mc.Element(mc.Gaussian(1.0), x, a)
    for found, shape in (
        (mc.Gaussian(1.0)(x, y), (7, 3)),
        (psi(y), (3, 2)),
        (psi.gradient(y), (3, 2, 5)),
        (psi.hessian(y), (3, 2, 5, 5)),
        (mmd(mc.Gaussian(1.0), x, y, estimator="biased"), ()),
    ):
        assert found.device.type == "meta"
        assert found.dtype == torch.float32
        assert tuple(found.shape) == shape


@needs_torch
@pytest.mark.filterwarnings("ignore:.torch.jit.script:DeprecationWarning")  # of torch itself
def test_tangents_and_histories_are_not_lost():
    import torch

    x, y = torch.tensor(X), torch.tensor(Y)
    f = mc.mean_embedding(k, x)
    a = torch.ones(14, dtype=torch.float64)
    with pytest.raises(mc.InputError, match="X carries a tangent of forward-mode"):
        torch.autograd.functional.jacobian(
            lambda z: k(z, y), x, strategy="forward-mode", vectorize=True
        )
    for call in (
        lambda a: mc.Element(k, x, a)(y),
        lambda a: mc.mean_embedding(k, x, weights=a)(y),
        lambda a: (f * a[0])(y),
        lambda a: mc.feature(k, x).combine(a)(y),
    ):
        with pytest.raises(mc.InputError, match="carries a tangent of forward-mode"):
            torch.func.jvp(call, (a,), (a,))
    held = torch.tensor([0.5, np.nan, np.nan, np.nan], requires_grad=True)
    with pytest.raises(mc.InputError, match="fixed is a torch tensor that requires a gradient"):
        mc.preimage(f, fixed=held)
    with pytest.raises(mc.InputError, match="start is a torch tensor that requires a gradient"):
        mc.preimage(f, start=x[0].clone().requires_grad_())


@pytest.mark.parametrize("library", LIBRARIES)
def test_functions_that_compute_in_numpy(library):
    """Points are read as arrays; elements on tensors are refused."""
    make = tensor_of(library)
    C = mc.covariance(k, make(X), k, make(X))
    assert C.norm() == mc.covariance(k, X, k, X).norm()
    assert_array_equal(methods.adaptive_density(k, make(X))(Y), methods.adaptive_density(k, X)(Y))
    found = methods.blurring_mean_shift(k, make(X))
    assert_array_equal(found.points, methods.blurring_mean_shift(k, X).points)
    assert_array_equal(
        methods.scale_space(make(X), n_bandwidths=3).n_modes,
        methods.scale_space(X, n_bandwidths=3).n_modes,
    )
    f = mc.mean_embedding(k, make(X))
    for call in (f.merge, lambda: methods.Density(f), lambda: mc.space.tensor(f, f)):
        with pytest.raises(mc.InputError, match="on tensors, and this function computes in NumPy"):
            call()


@pytest.mark.parametrize("library", LIBRARIES)
def test_densities_out_of_range(library):
    make = tensor_of(library)
    for to in (np.asarray, make):
        with pytest.raises(mc.InputError, match="outside the range of float32"):
            mc.kernel_density(mc.Gaussian(1e-15), to(np.ones((5, 3), dtype=np.float32)))
    found = mc.kernel_density(k, make(X))(make(Y))
    assert_allclose(numbers(found), mc.kernel_density(k, X)(Y), rtol=1e-12)
