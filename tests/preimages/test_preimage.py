"""The verb: shapes, defaults, starts, constraints, batches, and what users get wrong."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import mercer as mc
from mercer import Status
from mercer.preimages import Verdict, gradient_bound
from mercer.testing import awkward_kernels

SMOOTH = [
    mc.Gaussian(1.2), mc.Matern(1.5, 1.0), mc.Matern(2.5, 1.0), mc.RationalQuadratic(0.7, 1.0),
    mc.InverseMultiquadric(1.0, 0.7), mc.Gaussian(1.0) + mc.InverseMultiquadric(2.0, 0.5),
    mc.Gaussian(1.0).transform(mc.Scales([1.0, 3.0])), mc.Linear(), mc.Polynomial(2),
    mc.Polynomial(3, offset=0.5), mc.Exponential(2.0), mc.Gaussian(1.0) + mc.Linear(),
    mc.Gaussian(2.0) * mc.Polynomial(2),
]  # fmt: skip
CUSPS = [
    mc.Laplace(1.0), mc.NegativeDistance(), mc.NegativeDistance(0.7), mc.Matern(0.5, 2.0),
]  # fmt: skip
ROUGH = [*CUSPS, mc.Epanechnikov(4.0)]


@pytest.fixture
def X(rng):
    return rng.normal(size=(40, 2))


# --- defaults -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", SMOOTH + ROUGH, ids=repr)
def test_the_default_works_untuned_on_every_kernel(kernel, X):
    psi = mc.mean_embedding(kernel, X)
    back = mc.preimage(psi)
    assert back.ok.all()
    assert back.points.shape == (1, 2)
    Y = np.random.default_rng(1).normal(size=(2000, 2))
    others = 0.5 * kernel.diag(Y) - psi(Y)
    assert back.objective[0] <= others.min() + 1e-12


@pytest.mark.parametrize("kernel", [*SMOOTH, *CUSPS], ids=repr)
def test_mixed_signs_end_at_a_critical_point_or_escape(kernel, X, rng):
    psi = mc.Element(kernel, X, rng.normal(size=(40, 12)))
    back = mc.preimage(psi)
    assert set(back.status) <= {Status.CONVERGED, Status.AT_POINT, Status.ESCAPED}
    found = back.status == Status.CONVERGED
    gradient = 0.5 * _self_gradient(kernel, back.points) - _paired_gradient(psi, back.points)
    size = np.abs(_paired_gradient(psi, back.points)).max(axis=1) + np.abs(gradient_scale(psi))
    assert (np.linalg.norm(gradient[found], axis=1) <= 1e-7 * size[found]).all()


def test_minima_at_kinks_are_reported_as_such(X, rng):
    """With a < 0 the window of an Epanechnikov term ends in a kink that may be a minimum."""
    psi = mc.Element(mc.Epanechnikov(4.0), X, rng.normal(size=(40, 12)))
    back = mc.preimage(psi, mc.Newton(max_iter=30))
    assert np.isfinite(back.points).all()
    assert (back.ok == (back.gradient_norm <= 1e-8 * 4.0 * 40)).all()


def gradient_scale(psi):
    bound = np.asarray(gradient_bound(psi))
    return np.where(np.isfinite(bound), bound, 0.0)


def _paired_gradient(psi, Y):
    return psi.fields(Y, order=1, paired=True).gradient


def _self_gradient(kernel, Y, h=1e-6):
    out = np.zeros_like(Y)
    for k in range(Y.shape[1]):
        e = h * np.eye(Y.shape[1])[k]
        out[:, k] = (kernel.diag(Y + e) - kernel.diag(Y - e)) / (2 * h)
    return out


def test_a_kernel_without_derivatives_uses_its_points_as_candidates():
    words = ["kernel", "kernels", "colonel"]

    def common(A, B):
        return np.array([[len(set(a) & set(b)) for b in B] for a in A])

    k = mc.kernels.FromFunction(common, on=mc.kernels.Objects())
    back = mc.preimage(mc.feature(k, words))
    assert list(back.points) == words
    assert_array_equal(back.distance, 0.0)
    assert set(back.status) == {Status.CHOSEN}
    assert np.isnan(back.gradient_norm).all()
    assert set(back.certificate.verdict) == {Verdict.UNDECIDED}


# --- closed forms ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [k for k in SMOOTH if k.program.kind == "radial"], ids=repr)
def test_one_support_point_is_its_own_preimage(kernel):
    back = mc.preimage(mc.feature(kernel, [[1.0, -2.0]]), start=[[1.4, -1.8]])
    assert_allclose(back.points, [[1.0, -2.0]], atol=1e-6)
    assert_allclose(back.distance, 0.0, atol=1e-7)


def test_linear_kernel_returns_the_combination(X, rng):
    a = rng.normal(size=40)
    back = mc.preimage(mc.Element(mc.Linear(), X, a))
    assert_allclose(back.points[0], a @ X, rtol=1e-12)


def test_homogeneous_quadratic_returns_the_leading_eigenvector(X, rng):
    a = rng.uniform(size=40)
    values, vectors = np.linalg.eigh((X.T * a) @ X)
    back = mc.preimage(mc.Element(mc.Polynomial(2, offset=0.0), X, a))
    expected = np.sqrt(values[-1]) * vectors[:, -1]
    assert_allclose(np.abs(back.points[0]), np.abs(expected), rtol=1e-7)


@pytest.mark.parametrize(("gap", "modes"), [(1.9, 1), (2.1, 2)])
def test_two_gaussians_have_one_mode_up_to_two_sigma(gap, modes):
    psi = mc.mean_embedding(mc.Gaussian(1.0), [[0.0], [gap]])
    ends = mc.preimage(mc.Element(psi.kernel, psi.points, [[0.5] * 2] * 2), start=[[0.0], [gap]])
    assert (abs(ends.points[0, 0] - ends.points[1, 0]) > 1e-3) == (modes == 2)


def test_rotations_and_shifts_carry_over(X, rng):
    a = rng.normal(size=40)
    Q, _ = np.linalg.qr(rng.normal(size=(2, 2)))
    start = np.array([[0.3, 0.4]])
    one = mc.preimage(mc.Element(mc.Gaussian(1.0), X, a), start=start)
    two = mc.preimage(mc.Element(mc.Gaussian(1.0), X @ Q + 50.0, a), start=start @ Q + 50.0)
    assert_allclose(two.points, one.points @ Q + 50.0, atol=1e-7)


# --- far away -------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", [None, mc.FixedPoint(), mc.LBFGS(), mc.Newton()], ids=repr)
@pytest.mark.parametrize("far", [30.0, 1e3, 1e6])
def test_starts_where_every_weight_underflows(solver, far, X):
    psi = mc.mean_embedding(mc.Gaussian(0.5), X)
    back = mc.preimage(psi, solver, start=[[far, -far]])
    assert back.status[0] is Status.CONVERGED
    assert np.abs(back.points).max() < 4.0
    assert back.gradient_norm[0] < 1e-8 * gradient_bound(psi)


def test_where_psi_is_negative_there_is_nothing_to_find(X):
    back = mc.preimage(-mc.mean_embedding(mc.Gaussian(0.5), X), start=[[8.0, 8.0]])
    assert back.status[0] is Status.ESCAPED
    assert not back.ok[0]
    assert np.isfinite(back.points).all()


def test_an_unbounded_objective_is_reported(X):
    back = mc.preimage(-mc.mean_embedding(mc.NegativeDistance(), X), start=[[1.0, 1.0]])
    assert back.status[0] is Status.ESCAPED


def test_saddles_are_left():
    psi = mc.Element(mc.Gaussian(1.0), [[0.0], [3.0]], [1.0, 1.0])
    for solver in (None, mc.FixedPoint(), mc.LBFGS()):
        back = mc.preimage(psi, solver, start=[1.5])
        assert back.certificate.verdict[0] is Verdict.PROVED_MINIMUM
        assert min(abs(back.points[0, 0]), abs(back.points[0, 0] - 3.0)) < 0.1
    published = mc.preimage(psi, mc.FixedPoint(safeguard=False), start=[1.5])
    assert published.points[0, 0] == 1.5
    assert published.certificate.verdict[0] is Verdict.NOT_A_MINIMUM


def test_more_starts_are_tried_where_the_first_escape():
    rng = np.random.default_rng(5)
    X, a = rng.uniform(-2, 2, (8, 2)), rng.normal(size=8)
    back = mc.preimage(mc.Element(mc.Gaussian(0.8), X, a))
    assert back.status[0] is Status.CONVERGED


def test_newton_stays_in_its_valley():
    X = [[-1.4, 0.9], [-0.3, 1.2], [1.3, 1.0], [0.2, -0.1], [-1.1, -1.0], [0.9, -1.3]]
    psi = mc.Element(mc.Gaussian(0.7), X, [1.0, -0.6, 0.7, 0.5, 0.6, -0.7])
    one, two = (mc.preimage(psi, s, start=[1.9, 1.2]) for s in (mc.Newton(), mc.FixedPoint()))
    assert_allclose(one.points, two.points, atol=1e-6)


def test_lbfgs_accelerates_on_every_engine(rng):
    t = rng.uniform(0, 2 * np.pi, 60)
    X = np.column_stack([np.cos(t), np.sin(t)]) + 0.1 * rng.normal(size=(60, 2))
    psi = mc.Element(mc.Gaussian(0.3), X, rng.uniform(size=(60, 10)))
    for engine in (None, "blocked"):
        with mc.options(engine=engine):
            quick, slow = (mc.preimage(psi, s, start=X[:10]) for s in (mc.LBFGS(), mc.FixedPoint()))
        assert quick.n_evaluations.sum() < 0.6 * slow.n_evaluations.sum()


# --- starts ---------------------------------------------------------------------------------------


def test_several_starts_keep_the_best(rng):
    k = mc.Gaussian(0.4)
    psi = mc.Element(k, [[0.0], [5.0]], [0.3, 0.7])
    starts = np.array([0.2, 4.9])[:, None, None]
    assert_allclose(mc.preimage(psi, start=starts).points, [[5.0]], atol=1e-9)
    assert_allclose(mc.preimage(psi, start=starts[:1]).points, [[0.0]], atol=1e-9)


def test_more_starts_are_never_worse(rng):
    X = rng.normal(size=(60, 2))
    psi = mc.Element(mc.Gaussian(0.4), X, rng.normal(size=(60, 30)))
    few, many = mc.preimage(psi, n_starts=2), mc.preimage(psi, n_starts=12)
    assert (many.objective <= few.objective + 1e-12).all()
    assert (many.objective < few.objective - 1e-6).any()


def test_starts_are_checked(X):
    psi = mc.mean_embedding(mc.Gaussian(1.0), X)
    for bad in ([[0.0, 0.0, 0.0]], [0.0], [[0.0, 0.0]] * 3):
        with pytest.raises(mc.InputError, match="start must have shape"):
            mc.preimage(psi, start=bad)
    with pytest.raises(mc.InputError, match="NaN"):
        mc.preimage(psi, start=[[np.nan, 0.0]])
    with pytest.raises(mc.InputError, match="takes no start"):
        mc.preimage(psi, mc.ClosedForm(), start=[[0.0, 0.0]])


def test_many_points_are_sampled_for_starts_and_the_seed_counts(rng):
    X = rng.normal(size=(3000, 2))
    psi = mc.Element(mc.Gaussian(0.05), X, rng.normal(size=(3000, 4)))
    one, two = (mc.preimage(psi, random_state=3).points for _ in range(2))
    assert_array_equal(one, two)


# --- batches and types ----------------------------------------------------------------------------


def test_a_batch_is_its_elements_one_by_one(rng):
    X = rng.normal(size=(30, 2))
    psi = mc.Element(mc.Gaussian(0.8), X, rng.normal(size=(30, 7)))
    start = rng.normal(size=(7, 2))
    whole = mc.preimage(psi, start=start)
    assert len(whole) == 7
    for j in range(7):
        one = mc.preimage(psi[j], start=start[j])
        assert_allclose(one.points[0], whole.points[j], atol=1e-7)
        assert one.status[0] is whole.status[j]


def test_blocks_change_nothing(rng, monkeypatch):
    X = rng.normal(size=(30, 2))
    psi = mc.Element(mc.Gaussian(0.8), X, rng.normal(size=(30, 50)))
    held = np.where(rng.uniform(size=(50, 2)) < 0.2, 0.1, np.nan)
    whole = mc.preimage(psi, fixed=held, history=True)
    monkeypatch.setattr("mercer.preimages._preimage._BYTES", 0)
    blocks = mc.preimage(psi, fixed=held, history=True)
    assert_allclose(blocks.points, whole.points, atol=1e-9)
    assert blocks.history.points.shape[1:] == (50, 2)


def test_projections_of_noisy_points(rng):
    """The pipeline of kernel PCA denoising, low-rank coefficients throughout."""
    t = rng.uniform(0, 2 * np.pi, size=80)
    X = np.stack([np.cos(t), np.sin(t)], axis=1)
    k = mc.Gaussian(0.5)
    plane = mc.Subspace.span(mc.mean_embedding(k, X), mc.feature(k, X)).truncate(12)
    noisy = 1.15 * X[:20]
    back = mc.preimage(plane.project(mc.feature(k, noisy)), start=noisy)
    assert back.ok.all()
    radius = np.linalg.norm(back.points, axis=1)
    assert np.abs(radius - 1).max() < 0.05


def test_float32_in_float32_out(X):
    psi = mc.mean_embedding(mc.Gaussian(1.0), X.astype(np.float32))
    back = mc.preimage(psi)
    assert back.points.dtype == np.float32
    wide = mc.preimage(mc.mean_embedding(mc.Gaussian(1.0), X.astype(np.float32).astype(float)))
    assert_allclose(back.points, wide.points, rtol=1e-5)
    assert back.gradient_norm[0] < 1e-6  # at the rounded point


def test_sparse_points(rng):
    X = rng.normal(size=(30, 5)) * (rng.uniform(size=(30, 5)) < 0.4)
    one = mc.preimage(mc.mean_embedding(mc.Gaussian(2.0), sparse.csr_array(X)))
    two = mc.preimage(mc.mean_embedding(mc.Gaussian(2.0), X))
    assert_allclose(one.points, two.points, atol=1e-7)


def test_awkward_sets(rng):
    k = mc.Gaussian(1.0)
    assert mc.preimage(mc.feature(k, [[3.0]])).points[0, 0] == 3.0
    same = mc.preimage(mc.mean_embedding(k, [[1.0, 2.0]] * 5))
    assert_allclose(same.points, [[1.0, 2.0]])
    wide = rng.normal(size=(3, 50))
    assert mc.preimage(mc.mean_embedding(mc.Gaussian(9.0), wide)).ok.all()
    nothing = mc.preimage(mc.Element(k, [[1.0], [1.0]], [1.0, -1.0]))
    assert nothing.gradient_norm[0] == 0.0
    far = mc.preimage(mc.mean_embedding(k, 1e6 + rng.normal(size=(20, 2))))
    assert far.ok.all()
    assert np.abs(far.points - 1e6).max() < 3


@pytest.mark.parametrize("kernel", awkward_kernels(), ids=repr)
def test_awkward_kernels(kernel, rng):
    psi = mc.mean_embedding(kernel, rng.normal(size=(12, 3)))
    back = mc.preimage(psi)
    assert np.isfinite(back.points).all()
    program = kernel.program
    kinks = [v.maps for v, c in zip(program.variables, program.cusps, strict=True) if c]
    assert back.ok.all() or any(kinks)  # cusps along a whole plane are not treated exactly


# --- what comes with it ---------------------------------------------------------------------------


def test_distance_is_the_distance_in_feature_space(X, rng):
    psi = mc.Element(mc.Gaussian(1.0), X, rng.normal(size=(40, 5)))
    back = mc.preimage(psi)
    assert_allclose(back.distance, mc.feature(psi.kernel, back.points).distance(psi), rtol=1e-9)
    assert_allclose(back.objective, 0.5 * (back.distance**2 - psi.norm() ** 2), atol=1e-9)


def test_no_norm_no_distance(X):
    assert np.isnan(mc.preimage(mc.mean_embedding(mc.Epanechnikov(4.0), X)).distance).all()


def test_history_is_the_path(X):
    psi = mc.mean_embedding(mc.Gaussian(0.6), X)
    back = mc.preimage(psi, mc.FixedPoint(), start=[[3.0, 3.0]], history=True)
    path = back.history
    assert path.points.shape == (back.n_iter[0] + 1, 1, 2)
    assert_array_equal(path.points[0], [[3.0, 3.0]])
    assert_array_equal(path.points[-1], back.points)
    assert_allclose(path.objective[:, 0], 0.5 - psi(path.points[:, 0]), atol=1e-15)
    assert_allclose(path.objective[-1], back.objective, atol=1e-15)
    assert (np.diff(path.objective[:, 0]) <= 1e-15).all()
    assert mc.preimage(psi).history is None


def test_the_callback_sees_steps_and_can_stop(X):
    psi = mc.mean_embedding(mc.Gaussian(0.3), X)
    seen = []
    mc.preimage(psi, mc.FixedPoint(), start=[[2.0, 2.0]], callback=seen.append)
    assert [s.n_iter for s in seen] == list(range(len(seen)))
    stopped = mc.preimage(psi, start=[[2.0, 2.0]], callback=lambda step: step.n_iter >= 1)
    assert stopped.status[0] is Status.STOPPED
    assert stopped.n_iter[0] == 1


def test_max_iter_is_said(X):
    psi = mc.mean_embedding(mc.Gaussian(0.3), X)
    back = mc.preimage(psi, mc.FixedPoint(max_iter=2), start=[[2.0, 2.0]])
    assert back.status[0] is Status.MAX_ITER
    assert "max_iter" in back.status[0].value
    assert back.n_iter[0] == 2


def test_what_is_not_an_element_or_a_solver_is_refused(X):
    psi = mc.mean_embedding(mc.Gaussian(1.0), X)
    with pytest.raises(mc.InputError, match="psi must be an Element"):
        mc.preimage(X)
    with pytest.raises(mc.InputError, match="solver must be a solver"):
        mc.preimage(psi, "newton")
    with pytest.raises(mc.InputError, match="objective must be"):
        mc.preimage(psi, objective="distance")
    with pytest.raises(mc.exceptions.DerivativeError):
        mc.preimage(mc.Element(mc.Precomputed(np.eye(3)), [[0], [1]], [1.0, 1.0]), mc.Newton())


def test_no_warning_on_the_way(X):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mc.preimage(mc.Element(mc.Gaussian(0.05), X, np.resize([1.0, -1.0], 40)), n_starts=6)


@pytest.mark.parametrize("solver", [None, mc.FixedPoint(), mc.LBFGS()], ids=repr)
def test_kernels_on_a_ball_are_searched_inside_it(solver, rng):
    k = mc.kernels.Geometric(1.0)
    X = rng.uniform(-0.65, 0.65, size=(12, 2))
    psi = mc.Element(k, X, np.ones(12))  # longer than any feature: pulled towards the sphere
    back = mc.preimage(psi, solver)
    assert np.linalg.norm(back.points) < 1.0
    one = mc.preimage(mc.feature(k, X[:3]), solver)
    assert_allclose(one.points, X[:3], atol=1e-6)
    assert_allclose(one.distance, 0.0, atol=1e-6)


@pytest.mark.parametrize(
    "kernel",
    [
        mc.Gaussian(1.0).transform(mc.Columns([0])) * mc.Gaussian(2.0).transform(mc.Columns([1])),
        mc.Gaussian(1.0).transform(mc.Columns([0])) + mc.Laplace(2.0).transform(mc.Columns([1])),
    ],
    ids=["product", "sum"],
)
def test_distance_and_objective_of_kernels_of_several_distances(kernel, rng):
    """k(x, x)/2 is constant, left out of the search, and was missing from the result."""
    psi = mc.mean_embedding(kernel, rng.normal(size=(10, 2)))
    back = mc.preimage(psi)
    assert_allclose(back.distance, mc.feature(kernel, back.points).distance(psi), rtol=1e-8)
    assert_allclose(back.objective, mc.preimages.preimage_objective(psi, back.points), rtol=1e-10)


@pytest.mark.parametrize("s", [1e-200, 1e200])
@pytest.mark.parametrize(
    "solver", [None, mc.LBFGS(), mc.FixedPoint(), mc.GradientDescent(), mc.Candidates()], ids=repr
)
@pytest.mark.parametrize("kernel", [mc.Gaussian(1.0), mc.Matern(1.5), mc.Laplace(1.0)], ids=repr)
def test_the_scale_of_the_element_does_not_matter(kernel, solver, s):
    """Minimisers of -psi do not depend on it; nothing overflows, and no warning is given."""
    if kernel == mc.Laplace(1.0) and solver == mc.GradientDescent():
        pytest.skip("its gradient is not Lipschitz")
    X = [[0.0, 0.1], [1.0, 0.0], [0.2, -1.0]]
    a = np.array([1.0, -0.5, 0.4])
    one, other = (mc.preimage(mc.Element(kernel, X, t * a), solver) for t in (1.0, s))
    assert_allclose(other.points, one.points, atol=1e-6)
    wanted = mc.feature(kernel, other.points).distance(mc.Element(kernel, X, s * a))
    assert_allclose(other.distance, wanted, rtol=1e-12)


def test_a_linear_kernel_does_not_claim_to_have_converged_far_from_its_minimum():
    """The size of the gradient overflowed, so that any gradient was small against it."""
    back = mc.preimage(mc.Element(mc.Linear(), [[1.0]], [1e200]))
    assert not back.ok[0] or abs(back.points[0, 0] / 1e200 - 1.0) < 1e-6


def test_points_at_the_end_of_the_range_of_numbers():
    back = mc.preimage(mc.mean_embedding(mc.Gaussian(1.0), [[0.0], [1e149]]))
    assert back.ok.all()
    assert back.points[0, 0] in (0.0, 1e149)


def test_a_small_preimage_sums_once_per_evaluation(monkeypatch):
    """One sum for the norm, one for the starts, one for each evaluation, and none at the end."""
    calls = []
    fields = mc.engine.PreparedSum.fields
    monkeypatch.setattr(
        mc.engine.PreparedSum,
        "fields",
        lambda self, *a, **k: calls.append(1) or fields(self, *a, **k),
    )
    X = np.random.default_rng(0).normal(size=(20, 2))
    back = mc.preimage(mc.mean_embedding(mc.Gaussian(1.0), X))
    assert back.certificate.verdict[0] is mc.preimages.Verdict.PROVED_MINIMUM
    assert len(calls) <= 2 + back.n_evaluations[0]


@pytest.mark.parametrize(
    "kernel",
    [
        mc.NegativeDistance(1.0, 30.0),
        mc.Laplace(1.0) + mc.Laplace(2.0).transform(mc.Scales([1.0, 2.0])),
    ],
    ids=["one distance", "two distances"],
)
def test_sparse_points_with_a_cusp_are_as_dense_ones(kernel):
    X = np.random.default_rng(7).normal(size=(20, 2))
    found = [
        mc.preimage(mc.feature(kernel, points), mc.Candidates())
        for points in (X, sparse.csr_array(X))
    ]
    assert_allclose(found[1].points.toarray(), found[0].points)
    assert_allclose(found[1].gradient_norm, found[0].gradient_norm, atol=1e-9)
    assert [s.name for s in found[1].status] == [s.name for s in found[0].status]


def test_constant_kernels_have_a_gradient_of_their_own():
    constant = mc.kernels.Normalised(mc.kernels.Constant(0.01))
    X = np.random.default_rng(2).normal(size=(3, 3))
    assert_allclose(mc.preimage(mc.feature(constant, X), history=True).distance, 0.0)
    gradient = mc.feature(constant, X).gradient(X)
    gradient += 1.0  # an array of its own
    assert_allclose(gradient, 1.0)
