"""Derivatives through kernels, elements, statistics and pre-images, against finite differences."""

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.testing import assert_allclose

import mercer as mc
from mercer.kernels import ArcCosine
from mercer.methods import hsic, ksd, mmd
from tests.engine.tensors import COMPOSITE, RADIAL, data, tensor_of

torch = pytest.importorskip("torch")
pytest.importorskip("array_api_compat")
from torch.autograd import gradcheck, gradgradcheck  # noqa: E402

ENGINES = [None, "blocked"]
KERNELS = [*(k for k in RADIAL if not isinstance(k, mc.Epanechnikov)), mc.Polynomial(3), *COMPOSITE]


@pytest.fixture(autouse=True)
def one_thread():
    torch.manual_seed(0)
    torch.set_num_threads(1)


def leaf(*shape):
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


@pytest.mark.sample(2)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_first_and_second_derivatives(kernel, engine):
    X, Y, A = leaf(4, 4), leaf(3, 4), leaf(4, 2)
    with mc.options(engine=engine):
        assert gradcheck(kernel, (X, Y))
        assert gradcheck(lambda X, Y, A: mc.Element(kernel, X, A)(Y), (X, Y, A))
        assert gradgradcheck(lambda X, Y, A: mc.Element(kernel, X, A)(Y), (X, Y, A))
        assert gradcheck(lambda X, Y, A: mc.Element(kernel, X, A).gradient(Y), (X, Y, A))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kernel", [mc.Gaussian(1.3), mc.Matern(1.5), mc.Laplace(1.0)], ids=repr)
def test_deeper_derivatives(kernel, engine):
    X, Y, A = leaf(3, 2), leaf(2, 2), leaf(3, 1)
    with mc.options(engine=engine):
        assert gradgradcheck(kernel, (X, Y))
        assert gradcheck(lambda X, Y, A: mc.Element(kernel, X, A).hessian(Y), (X, Y, A))
        assert gradgradcheck(lambda X, Y, A: mc.Element(kernel, X, A).gradient(Y), (X, Y, A))
        assert gradcheck(kernel.gradient, (X, Y))
        assert gradcheck(lambda X: kernel.mixed_derivative(X, Y.detach()), (X,))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("dim", [2, 5])
@pytest.mark.parametrize(
    "kernel",
    [k for k in KERNELS if "Scales" not in repr(k) and "Matrix" not in repr(k)]
    + [ArcCosine(1), ArcCosine(2)],
    ids=repr,
)
def test_where_points_coincide(kernel, dim, engine):
    """Backpropagation gives the derivatives of the engine, those of cusps included."""
    if "[1, 3]" in repr(kernel) and dim < 4:
        pytest.skip("the kernel looks at column 3")
    X = torch.randn(6, dim, dtype=torch.float64)
    psi = mc.Element(kernel, X, torch.randn(6, dtype=torch.float64))
    plain = mc.Element(kernel, X.numpy(), psi.coef.array[:, 0].numpy())
    Y = X.clone().requires_grad_()
    with mc.options(engine=engine):
        value = psi(Y).sum() + 0.0 * (Y**3).sum()
        (slope,) = torch.autograd.grad(value, Y, create_graph=True)
        assert_allclose(slope.detach(), plain.gradient(X.numpy()), rtol=1e-8, atol=1e-9)
        columns = [torch.autograd.grad(slope[:, c].sum(), Y, retain_graph=True)[0] for c in
                   range(dim)]  # fmt: skip
        of_gradient = psi.gradient(Y) + 0.0 * Y
        again = [torch.autograd.grad(of_gradient[:, c].sum(), Y, retain_graph=True)[0] for c in
                 range(dim)]  # fmt: skip
    expected = plain.hessian(X.numpy())
    for found in (torch.stack(columns, 1).numpy(), torch.stack(again, 1).numpy()):
        assert np.isfinite(found).all()
        known = np.isfinite(expected)
        assert_allclose(found[known], expected[known], rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("kernel", [mc.Gaussian(1.0), mc.Matern(1.5), mc.Linear()], ids=repr)
def test_norms_and_inner_products(kernel):
    X, Y, A = leaf(4, 2), leaf(3, 2), leaf(4, 2)
    assert gradcheck(lambda X, A: mc.Element(kernel, X, A).norm(), (X, A))
    assert gradcheck(lambda X, Y, A: mc.Element(kernel, X, A).inner(mc.feature(kernel, Y)),
                     (X, Y, A))  # fmt: skip
    assert gradcheck(lambda X, Y: mc.feature(kernel, X).distance(mc.mean_embedding(kernel, Y)),
                     (X, Y))  # fmt: skip
    w = leaf(4).detach().abs().requires_grad_()
    assert gradcheck(lambda w: mc.mean_embedding(kernel, X.detach(), weights=w)(Y.detach()), (w,))
    f = mc.Element(kernel, X, A)
    (slope,) = torch.autograd.grad((f - f).norm().sum(), A)
    assert torch.isfinite(slope).all()  # zero, not NaN


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("estimator", ["biased", "unbiased", "incomplete"])
def test_statistics(estimator, engine):
    X, Y, Z = leaf(6, 2), leaf(6, 2), leaf(6, 2)
    k, other = mc.Gaussian(1.0), mc.Matern(1.5)
    how = {"estimator": estimator, "random_state": 0}
    with mc.options(engine=engine):
        assert gradcheck(lambda X, Y: mmd(k, X, Y, **how), (X, Y))
        assert gradcheck(lambda X, Z: hsic(k, X, other, Z, **how), (X, Z))
        if estimator != "incomplete":
            c = leaf(1)
            assert gradcheck(lambda X, c: ksd(k, X, lambda X: -c * X, estimator=estimator), (X, c))


def test_mmd_trains_a_generator():
    target = torch.randn(200, 2, dtype=torch.float64) * torch.tensor([1.0, 0.3]) + 2.0
    net = torch.nn.Linear(2, 2).double()
    adam = torch.optim.Adam(net.parameters(), lr=0.1)
    losses = []
    for _ in range(60):
        loss = mmd(mc.Gaussian(1.0), net(torch.randn(200, 2).double()), target)
        adam.zero_grad()
        loss.backward()
        adam.step()
        losses.append(loss.item())
    assert losses[0] > 0.3
    assert np.mean(losses[-5:]) < 0.02
    shift = net(torch.zeros(1, 2).double()).detach().numpy()
    assert_allclose(shift, 2.0, atol=0.5)


# --- pre-images -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kernel",
    [mc.Gaussian(1.5), mc.RationalQuadratic(1.0, 1.5), mc.Matern(2.5, 2.0), mc.Polynomial(3)],
    ids=repr,
)
def test_implicit_gradients(kernel):
    X = leaf(6, 2)
    a = torch.rand(6, 2, dtype=torch.float64).add(0.2).div(6.0).requires_grad_()
    start = mc.preimage(mc.Element(kernel, X, a)).points.detach()

    def back(X, a):
        return mc.preimage(mc.Element(kernel, X, a), start=start).points

    assert gradcheck(back, (X, a), eps=1e-5, atol=1e-5)


def test_implicit_gradients_with_held_coordinates_and_angles():
    X, k = leaf(6, 2), mc.Gaussian(2.0)
    held = [[0.3, np.nan], [np.nan, -0.2]]
    collinear = mc.preimages.Collinear()
    for how in ({"fixed": held}, {"objective": collinear}):
        call = lambda X, how=how: mc.preimage(mc.mean_embedding(k, X), **how).points  # noqa: E731
        assert gradcheck(call, (X,), eps=1e-5, atol=1e-5)
    assert gradcheck(lambda X: mc.preimage(mc.feature(k, X)).points, (X,), eps=1e-5, atol=1e-5)


def test_rows_without_a_derivative_have_nan_and_spoil_no_others():
    X, _, _ = data()
    points = tensor_of("torch")(X[:, :2]).requires_grad_()
    k = mc.Laplace(1.0)
    at_cusp = mc.preimage(mc.feature(k, points[:1])).points
    assert torch.isnan(torch.autograd.grad(at_cusp.sum(), points)[0]).any()
    psi = mc.Element(mc.Gaussian(1.0), points, torch.ones(14, 2).double() / 14)
    stopped = mc.preimage(psi, mc.preimages.Newton(max_iter=1), start=[[3.0, 3.0], [0.0, 0.0]])
    assert not stopped.ok.all()
    (slope,) = torch.autograd.grad(stopped.points.sum(), points)
    assert torch.isnan(slope).any()
    both = mc.preimage(psi, mc.preimages.Candidates()).points  # no critical points
    assert torch.isnan(torch.autograd.grad(both.sum(), points)[0]).any()


def test_points_that_change_before_the_backward_pass_are_refused():
    X = leaf(6, 2)
    points = mc.preimage(mc.mean_embedding(mc.Gaussian(2.0), X)).points
    with torch.no_grad():
        X += 1.0
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        points.sum().backward()


def test_what_has_no_implicit_gradient_is_refused():
    X = leaf(5, 2)
    psi = mc.mean_embedding(mc.Gaussian(1.0), X)
    with pytest.raises(mc.InputError, match="gradients of a pre-image are known for"):
        mc.preimage(psi, region=mc.preimages.Ball([0.0, 0.0], 1.0))
    points = mc.preimage(psi).points
    (slope,) = torch.autograd.grad((points**2).sum(), X, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        slope.sum().backward()
    detached = mc.mean_embedding(mc.Gaussian(1.0), X.detach())
    assert not mc.preimage(detached).points.requires_grad


# --- where points coincide ------------------------------------------------------------------------


@dataclass(frozen=True)
class Cubic(mc.Radial):
    """exp(-|x - y|^3), whose slope in the squared distance is 0 times infinity at 0."""

    def profile(self, u):
        return np.exp(-u * np.sqrt(u))


@pytest.mark.parametrize(
    "kernel",
    [
        Cubic() + mc.Linear(),
        Cubic() * mc.Polynomial(2),
        mc.NegativeDistance() * mc.NegativeDistance() + mc.Linear(),
        mc.NegativeDistance() * mc.NegativeDistance() * mc.Polynomial(2),
    ],
    ids=repr,
)
@pytest.mark.parametrize("dim", [2, 5])
def test_slopes_of_several_variables_that_are_limits(dim, kernel):
    X = torch.randn(4, dim, dtype=torch.float64)
    Y = X.clone().requires_grad_()
    assert torch.equal(kernel(Y).detach(), kernel(X))
    psi = mc.Element(kernel, X, torch.ones(4, dtype=torch.float64))
    (slope,) = torch.autograd.grad(psi(Y).sum(), Y, create_graph=True)
    assert_allclose(slope.detach(), psi.gradient(X), rtol=1e-10, atol=1e-10)
    h = 1e-6 * torch.eye(dim, dtype=torch.float64)[0]
    expected = (psi.gradient(X + h) - psi.gradient(X - h)) / 2e-6
    (second,) = torch.autograd.grad(slope[:, 0].sum(), Y)
    assert_allclose(second, expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    "kernel", [mc.Matern(2.5) * mc.Polynomial(3), mc.Matern(1.5) + mc.Polynomial(3)], ids=repr
)
def test_unknown_derivatives_are_nan(kernel):
    """Third derivatives of several variables, where a point coincides, and nowhere else."""
    X = torch.randn(4, 2, dtype=torch.float64)
    Y = torch.cat([X[:1], torch.randn(1, 2, dtype=torch.float64)]).requires_grad_()
    a = torch.ones(4, dtype=torch.float64, requires_grad=True)
    psi = mc.Element(kernel, X, a)
    hessian = psi.hessian(Y.detach()).detach()
    for slope in (torch.autograd.grad(psi(Y).sum(), Y, create_graph=True)[0], psi.gradient(Y)):
        (second,) = torch.autograd.grad(slope[:, 0].sum(), Y, create_graph=True)
        assert_allclose(second.detach(), hessian[:, 0], rtol=1e-9, atol=1e-9)
        assert torch.isfinite(torch.autograd.grad(second.sum(), a, retain_graph=True)[0]).all()
        (third,) = torch.autograd.grad(second[:, 1].sum(), Y)
        assert torch.isnan(third[0]).all()
        assert torch.isfinite(third[1]).all()


@pytest.mark.parametrize("kernel", [mc.Matern(2.5), mc.Matern(2.5) + mc.Linear()], ids=repr)
def test_third_derivatives_of_one_distance(kernel):
    """They are zero where points coincide, because the kernel is even; the next are not known."""
    X = torch.randn(3, 2, dtype=torch.float64)
    Y = X[:2].clone().requires_grad_()
    psi = mc.feature(kernel, X[:1])[0]

    def hessians():
        (slope,) = torch.autograd.grad(psi(Y).sum(), Y, create_graph=True)
        yield torch.autograd.grad(slope[:, 0].sum(), Y, create_graph=True)[0]
        yield torch.autograd.grad(psi.gradient(Y)[:, 0].sum(), Y, create_graph=True)[0]
        yield psi.hessian(Y)[:, 0]

    found = [torch.autograd.grad(h[:, 1].sum(), Y, create_graph=True)[0] for h in hessians()]
    for third in found:
        assert_allclose(third[0].detach(), 0.0, atol=1e-12)
        assert_allclose(third[1].detach(), found[2][1].detach(), rtol=1e-9)
        (fourth,) = torch.autograd.grad(third[:, 1].sum(), Y)
        assert torch.isnan(fourth[0]).all()
        assert torch.isfinite(fourth[1]).all()


def test_hessians_with_the_history_of_coefficients():
    X, a = torch.randn(3, 2, dtype=torch.float64), leaf(3)
    assert gradcheck(lambda a: mc.Element(mc.Matern(1.5) * mc.Linear(), X, a).hessian(X), (a,))


@pytest.mark.parametrize("engine", [None, "blocked"])
def test_options_may_end_before_the_backward_pass(engine):
    X, Y, w = leaf(20, 2), leaf(20, 2), torch.rand(20, dtype=torch.float64)
    k = mc.Gaussian(1.0).transform(mc.Scales([1.0, 2.0]))

    def losses():
        return hsic(k, X, k, Y) + ksd(k, X, lambda X: -X, weights=w) + k(X, Y).sum()

    (expected,) = torch.autograd.grad(losses(), X)
    with mc.options(engine=engine, working_memory=0.05):
        loss = losses()
    other = "blocked" if engine is None else None
    with mc.options(engine=other):
        assert_allclose(torch.autograd.grad(loss, X)[0], expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("engine", ENGINES)
def test_mixed_precision_is_off(engine):
    X, B, k = torch.randn(50, 10), torch.randn(2, 2), mc.Gaussian(3.0) + mc.Linear()
    psi = mc.Element(k, X, torch.randn(50, 2))

    def results():
        f = psi.combine(B)
        return k(X), psi(X), f.gradient(X), f.norm(), k.gradient(X, X), mmd(k, X[:30], X[20:])

    with mc.options(engine=engine):
        expected = results()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            found = results()
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == torch.float32
        assert torch.equal(a, b)
