"""Mean shift: against the plain iteration, its proofs, merging, cusps, windows, hard inputs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import make_blobs

import mercer as mc
from mercer import InputError
from mercer.methods.modes._density_sum import DensitySum
from mercer.methods.modes._mean_shift import assign_to_modes
from mercer.methods.modes._merging import merge_ends

GAUSS = mc.Gaussian(1.0)
SMOOTH = [
    mc.Gaussian(0.8),
    mc.InverseMultiquadric(0.5, 2.0),
    mc.RationalQuadratic(1.0, 0.8),
    mc.Matern(2.5, 0.8),
    mc.Gaussian(0.5) + 0.3 * mc.Gaussian(2.0),
]


def plain(kernel, X, starts, weights=None, tol=1e-11, max_iter=20_000):
    """x <- sum w x_i / sum w with w = -a k'(u), by the definition, to the end."""
    a = np.ones(len(X)) if weights is None else weights
    out = np.array(starts, dtype=float)
    for j in range(len(out)):
        for _ in range(max_iter):
            u = np.sum((X - out[j]) ** 2, axis=1)
            w = -a * slope(kernel, u)
            new = w @ X / w.sum()
            step = np.linalg.norm(new - out[j])
            out[j] = new
            if step <= tol:
                break
    return out


def slope(kernel, u):
    """k'(u) by definition for each kernel used here."""
    match kernel:
        case mc.Gaussian(length_scale=h):
            return -np.exp(-u / (2 * h**2)) / (2 * h**2)
        case mc.InverseMultiquadric(c=c, p=p):
            return -p * (c + u) ** (-p - 1)
        case mc.RationalQuadratic(alpha=al, length_scale=h):
            return -((1 + u / (2 * al * h**2)) ** (-al - 1)) / (2 * h**2)
        case mc.Matern(length_scale=h):  # nu = 5/2
            r = np.sqrt(5 * u) / h
            return -(5 / (6 * h**2)) * (1 + r) * np.exp(-r)
        case mc.Epanechnikov():
            return -(u < kernel.rho).astype(float)
    return slope(mc.Gaussian(0.5), u) + 0.3 * slope(mc.Gaussian(2.0), u)


def spread(rng, n=60, d=2):
    centres = rng.uniform(-4, 4, size=(4, d))
    return centres[rng.integers(0, 4, n)] + 0.5 * rng.normal(size=(n, d))


@pytest.mark.parametrize("kernel", SMOOTH, ids=repr)
@pytest.mark.parametrize("d", [1, 2, 5])
def test_labels_are_those_of_the_plain_iteration(kernel, d, rng):
    X = spread(rng, 40, d)
    found = mc.mean_shift(mc.mean_embedding(kernel, X))
    np.testing.assert_allclose(found.points[found.labels], plain(kernel, X, X), atol=1e-6)
    assert found.proved.all()
    assert (found.status == mc.Status.IN_BASIN).mean() > 0.9


@given(
    seed=st.integers(0, 2**31),
    n=st.integers(1, 25),
    d=st.integers(1, 3),
    length=st.floats(0.2, 3.0),
    decimals=st.sampled_from([0, 1, 6]),
)
def test_any_points(seed, n, d, length, decimals):
    """Duplicates and lattices, where maxima may be degenerate, included."""
    rng = np.random.default_rng(seed)
    X, w = rng.normal(size=(n, d)).round(decimals), rng.uniform(0.1, 2.0, n)
    kernel = mc.Gaussian(length)
    found = mc.mean_shift(mc.mean_embedding(kernel, X, weights=w), max_iter=20_000)
    assert (found.labels >= 0).all()
    ends = plain(kernel, X, X, w)
    psi = mc.mean_embedding(kernel, X, weights=w)
    sure = found.status == mc.Status.IN_BASIN
    np.testing.assert_allclose(found.points[found.labels][sure], ends[sure], atol=2e-5 * length)
    rise = psi(found.points[found.labels]) - psi(ends)
    assert rise.min() > -1e-8 * psi(ends).max()
    assert np.bincount(found.labels).tolist() == found.n_starts.tolist()


def test_spectral_native_and_blocked_agree(rng):
    X, _ = make_blobs(4000, centers=6, random_state=1)
    psi = mc.mean_embedding(mc.Gaussian(0.9), X)
    found = {}
    for engine in ("spectral", "native", "blocked"):
        with mc.options(engine=engine):
            found[engine] = mc.mean_shift(psi, X[:300])
    for other in ("native", "blocked"):
        np.testing.assert_allclose(found[other].points, found["spectral"].points, atol=1e-8)
        assert np.array_equal(found[other].labels, found["spectral"].labels)


def test_density_never_falls(rng):
    X = spread(rng, 200)
    for kernel in [*SMOOTH, mc.Laplace(1.0), mc.Epanechnikov(1.0, 1.0), mc.Matern(1.5, 1.0)]:
        psi = mc.mean_embedding(kernel, X)
        density, Z = DensitySum.of(psi), X.copy()
        before = psi(Z)
        for _ in range(30):
            Z = Z + density.at(Z).fixed_point_step
            after = psi(Z)
            assert (after - before).min() >= -1e-12 * after.max()
            before = after


def test_iterates_stay_in_the_convex_hull(rng):
    from scipy.spatial import Delaunay

    X = spread(rng, 50)
    hull, Z = Delaunay(X), X.copy()
    density = DensitySum.of(mc.mean_embedding(GAUSS, X))
    inward = X.mean(axis=0)
    for _ in range(20):
        Z = Z + density.at(Z).fixed_point_step
        assert (hull.find_simplex(Z + 1e-9 * (inward - Z)) >= 0).all()


# --- cusps and windows ----------------------------------------------------------------------------


def test_every_mode_of_a_laplace_density_on_the_line_is_a_data_point(rng):
    X = rng.normal(size=(60, 1))
    found = mc.mean_shift(mc.mean_embedding(mc.Laplace(0.3), X))
    distance = np.abs(found.points - X.T).min(axis=1)
    assert distance.max() == 0.0
    assert found.proved.all()
    assert np.isneginf(found.eigenvalues).all()
    grid = np.linspace(-4, 4, 200_001)[:, None]
    f = mc.mean_embedding(mc.Laplace(0.3), X)(np.sort(np.vstack([grid, X]), axis=0))
    tops = np.sum((f[1:-1] > f[:-2]) & (f[1:-1] > f[2:]))
    assert len(found) <= tops


def test_windows_end_after_finitely_many_steps(rng):
    X = spread(rng, 80)
    kernel = mc.Epanechnikov(1.0, 1.0)
    found = mc.mean_shift(mc.mean_embedding(kernel, X))
    np.testing.assert_allclose(
        found.points[found.labels], plain(kernel, X, X, tol=0.0, max_iter=200), atol=1e-9
    )


def test_a_start_out_of_reach_of_a_window_has_no_mode():
    found = mc.mean_shift(
        mc.mean_embedding(mc.Epanechnikov(1.0, 1.0), [[0.0], [0.5]]), [[0.2], [9.0]]
    )
    assert found.labels.tolist() == [0, -1]
    assert found.status[1] is mc.Status.EMPTY


def test_a_start_where_every_weight_underflows_finds_its_mode():
    psi = mc.mean_embedding(GAUSS, [[0.0, 0.0], [10.0, 0.0]])
    found = mc.mean_shift(psi, [[-500.0, 3.0], [800.0, -5.0]])
    np.testing.assert_allclose(found.points[found.labels], [[0.0, 0.0], [10.0, 0.0]], atol=1e-9)


# --- the rest -------------------------------------------------------------------------------------


def test_metrics_are_undone(rng):
    X, A = spread(rng, 50), np.array([[2.0, 0.3], [0.0, 0.5]])
    mapped = mc.mean_shift(mc.mean_embedding(GAUSS.transform(mc.kernels.Matrix(A)), X))
    plain_found = mc.mean_shift(mc.mean_embedding(GAUSS, X @ A.T))
    np.testing.assert_allclose(mapped.points @ A.T, plain_found.points, atol=1e-9)
    assert np.array_equal(mapped.labels, plain_found.labels)
    psi = mc.mean_embedding(GAUSS.transform(mc.kernels.Matrix(A)), X)
    curvature = np.linalg.eigvalsh(psi.hessian(mapped.points))
    np.testing.assert_allclose(mapped.eigenvalues, curvature, atol=1e-9)
    scaled = mc.mean_shift(mc.mean_embedding(GAUSS.transform(mc.Scales([2.0, 0.5])), X))
    again = mc.mean_shift(mc.mean_embedding(GAUSS, X / [2.0, 0.5]))
    np.testing.assert_allclose(scaled.points / [2.0, 0.5], again.points, atol=1e-9)


def test_weights_are_repetitions(rng):
    X, w = spread(rng, 30), rng.integers(1, 4, 30)
    weighted = mc.mean_shift(mc.mean_embedding(GAUSS, X, weights=w), X)
    repeated = mc.mean_shift(mc.mean_embedding(GAUSS, np.repeat(X, w, axis=0)), X)
    np.testing.assert_allclose(weighted.points, repeated.points, atol=1e-9)
    assert np.array_equal(weighted.labels, repeated.labels)


def test_local_length_scales(rng):
    X = spread(rng, 80)
    density = mc.methods.adaptive_density(mc.Gaussian(0.7), X)
    found = mc.mean_shift(density)
    slope = np.linalg.norm(density.gradient(found.points), axis=1)
    assert slope.max() < 1e-7 * density(found.points).max()
    assert (found.labels >= 0).all()


def test_far_from_the_origin(rng):
    X = spread(rng, 60)
    near = mc.mean_shift(mc.mean_embedding(GAUSS, X))
    far = mc.mean_shift(mc.mean_embedding(GAUSS, X + 1e6))
    np.testing.assert_allclose(far.points - 1e6, near.points, atol=1e-5)
    assert np.array_equal(far.labels, near.labels)


def test_ends_of_a_slow_ascent_are_one_mode():
    """Two points at twice the length scale: the maximum is degenerate, the ascent sublinear."""
    found = mc.mean_shift(mc.mean_embedding(GAUSS, [[-1.0], [1.0]]), max_iter=100_000)
    assert len(found) == 1
    assert not found.proved[0]
    np.testing.assert_allclose(found.points, 0.0, atol=0.05)


@pytest.mark.parametrize("d", [1, 2])
def test_a_start_on_a_saddle_leaves_it(d):
    """By symmetry the plain iteration would stay there for ever."""
    X = np.zeros((2, d))
    X[:, 0] = [-1.5, 1.5]
    psi = mc.mean_embedding(GAUSS, X)
    found = mc.mean_shift(psi, np.vstack([X, np.zeros((1, d))]))
    assert len(found) == 2
    assert found.labels[2] in (0, 1)
    assert (found.eigenvalues < 0).all()


def test_close_modes_with_a_dip_stay_apart():
    density = DensitySum.of(mc.mean_embedding(GAUSS, [[-1.1], [1.1]]))
    ends = plain(GAUSS, np.array([[-1.1], [1.1]]), [[-1.1], [1.1]])
    labels, modes = merge_ends(density, np.empty((0, 1)), ends)
    assert labels.tolist() == [0, 1]
    assert len(modes) == 2


def test_reached_by_others(rng):
    X = spread(rng, 60)
    for kernel in (GAUSS, mc.Laplace(0.7), mc.Epanechnikov(2.0, 2.0)):
        psi = mc.mean_embedding(kernel, X)
        found = mc.mean_shift(psi)
        assert np.array_equal(assign_to_modes(psi, found.points, X), found.labels)
        assert set(assign_to_modes(psi, found.points[1:], X)) <= {-1, *range(len(found) - 1)}


def test_a_callback_stops(rng):
    seen = []

    def stop(step):
        seen.append(step)
        return True

    found = mc.mean_shift(mc.mean_embedding(mc.Laplace(1.0), spread(rng, 50)), callback=stop)
    assert len(seen) == 1
    assert mc.Status.STOPPED in set(found.status)


def test_table(rng):
    import pandas as pd

    found = mc.mean_shift(mc.mean_embedding(GAUSS, spread(rng, 40)))
    frame = pd.DataFrame(found.table())
    assert list(frame) == ["x0", "x1", "density", "starts", "curvature", "proved"]
    assert frame["starts"].sum() == 40
    assert (frame["curvature"] < 0).all()


@pytest.mark.parametrize(
    ("density", "message"),
    [
        (mc.Element(GAUSS, [[0.0], [1.0]], [1.0, -0.5]), "coefficients >= 0"),
        (mc.mean_embedding(mc.Linear(), [[1.0]]), "convex, decreasing"),
        (mc.mean_embedding(mc.kernels.Uniform(1.0), [[1.0]]), "flat|convex"),
        (mc.feature(GAUSS, [[0.0], [1.0]]), "one element"),
        (mc.mean_embedding(GAUSS.transform(mc.Columns([0])), [[0.0, 1.0]]), "every direction"),
    ],
)
def test_what_cannot_be_climbed(density, message):
    with pytest.raises(InputError, match=message):
        mc.mean_shift(density)


def test_bad_starts():
    psi = mc.mean_embedding(GAUSS, [[0.0, 1.0]])
    with pytest.raises(InputError, match="2 features"):
        mc.mean_shift(psi, [[1.0]])
    with pytest.raises(ValueError, match=r"NaN|finite"):
        mc.mean_shift(psi, [[np.nan, 0.0]])


# --- far apart, outliers, many columns ---------------------------------------------------------


@pytest.mark.parametrize("extent", [1e3, 1e7, 1e9, 1e12, 1e15, 1e17])
def test_points_far_apart_in_bandwidths(extent):
    X = np.array([[0.0], [1.0], [extent], [1.1 * extent]])
    found = mc.mean_shift(mc.mean_embedding(mc.Gaussian(0.3), X))
    assert len(found) == 4
    assert len(mc.mean_shift(mc.mean_embedding(mc.Gaussian(1.0), X))) == 3
    counts = mc.methods.scale_space(X, [1e-2, 0.3, 1.0, 10.0]).n_modes
    assert counts.tolist() == [4, 4, 3, 3]


@pytest.mark.parametrize("far", [1e6, 1e12, 1e18, 1e100])
@pytest.mark.parametrize("dim", [2, 20])
def test_one_outlier_leaves_the_labels_of_the_others(far, dim, rng):
    X = np.concatenate([rng.normal(0.0, 1.0, (150, dim)), rng.normal(9.0, 1.0, (150, dim))])
    width = mc.Gaussian(1.5 * dim**0.5)
    alone = mc.mean_shift(mc.mean_embedding(width, X)).labels
    beside = mc.mean_shift(mc.mean_embedding(width, np.vstack([X, np.full((1, dim), far)]))).labels
    assert alone.max() == 1
    assert (beside >= 0).all()
    assert (beside[:-1] == alone).all() or (beside[:-1] == 1 - alone).all()
    assert beside[-1] == 2


def test_too_many_places_far_apart_are_refused(rng):
    psi = mc.mean_embedding(mc.Gaussian(1e-11), rng.normal(size=(3000, 1)))
    with pytest.raises(mc.InputError, match="too far for mean shift"):
        mc.mean_shift(psi)


def test_many_columns_need_no_hessians_and_little_memory(rng):
    import tracemalloc

    X = rng.normal(size=(400, 1500)) + 20.0 * (np.arange(400) % 2)[:, None]
    tracemalloc.start()
    try:
        found = mc.mean_shift(mc.mean_embedding(mc.Gaussian(60.0), X))
        assert tracemalloc.get_traced_memory()[1] < 200e6  # all Hessians are 7 GB
    finally:
        tracemalloc.stop()
    assert len(found) == 2
    assert (found.labels == found.labels[np.arange(400) % 2]).all()
    assert np.isnan(found.eigenvalues).all()
    assert not found.proved.any()


def test_eigenvalues_and_proofs_are_there_if_asked_for(rng):
    X = rng.normal(size=(40, 25)) + 10.0 * (np.arange(40) % 2)[:, None]
    psi = mc.mean_embedding(mc.Gaussian(5.0), X)
    asked = mc.mean_shift(psi, eigenvalues=True)
    np.testing.assert_allclose(
        asked.eigenvalues, np.linalg.eigvalsh(psi.hessian(asked.points)), rtol=1e-6, atol=1e-9
    )
    assert asked.proved.all()
    few = mc.mean_shift(mc.mean_embedding(mc.Gaussian(5.0), X[:, :3]), eigenvalues=False)
    assert np.isnan(few.eigenvalues).all()
    assert not few.proved.any()


def test_scale_space_in_many_columns(rng):
    X = rng.normal(size=(60, 200)) + 20.0 * (np.arange(60) % 2)[:, None]
    counts = mc.methods.scale_space(X, [1.0, 30.0, 1000.0]).n_modes
    assert counts.tolist() == [60, 2, 1]


@pytest.mark.parametrize("unit", [1e-70, 1e-17, 1e-9, 1e20, 1e60])
def test_nothing_depends_on_units(unit, rng):
    X = np.concatenate([rng.normal(m, 0.3, (20, 2)) for m in (0.0, 3.0, 6.0)])
    for kernel in (mc.Gaussian, mc.Laplace, lambda s: mc.Matern(1.5, s)):
        psi = mc.mean_embedding(kernel(0.8 * unit), X * unit)
        assert len(mc.mean_shift(psi)) == 3
        found = mc.methods.all_modes(mc.mean_embedding(kernel(0.8 * unit), X[:20] * unit))
        assert found.complete
    plain, scaled = (mc.convergence_bandwidth(mc.Gaussian(s), X * s).value for s in (1.0, unit))
    assert scaled == pytest.approx(plain * unit, rel=1e-6)


def test_no_start_has_reached_a_mode():
    psi = mc.mean_embedding(mc.RationalQuadratic(0.5, 1.0), [[0.0, 0.0], [1.0, 0.0]])
    found = mc.mean_shift(psi, [[40.0, 3.0]], max_iter=1)
    assert found.points.shape == (0, 2)
    assert found.labels.tolist() == [-1]


@pytest.mark.parametrize("kernel", [mc.Laplace(30.0), mc.RationalQuadratic(1.0, 2.0)], ids=repr)
def test_an_outlier_and_heavy_tails_or_cusps(kernel, rng):
    X = np.vstack([rng.normal(size=(40, 1)), [[1e25]]])
    labels = mc.mean_shift(mc.mean_embedding(kernel, X)).labels
    assert (labels[:-1] == labels[0]).all()
    assert labels[-1] not in (-1, labels[0])
