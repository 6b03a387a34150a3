"""Arguments of a wrong type: the error names the parameter and what it takes."""

import numpy as np
import pytest
from scipy import sparse

import mercer as mc
from mercer import methods, preimages, space, theory

PSI = mc.Element(mc.Gaussian(1.0), [[0.0], [2.0]], [1.0, 1.0])
X = np.random.default_rng(0).normal(size=(8, 2))
OF_KERNELS = {
    "shadow": theory.shadow,
    "shadow_constant": lambda k: theory.shadow_constant(mc.Gaussian(1.0), k),
    "projective_conditions": theory.projective_conditions,
    "is_characteristic": lambda k: theory.is_characteristic(k, 1),
    "is_universal": lambda k: theory.is_universal(k, 1),
    "convergence_bandwidth": lambda k: mc.convergence_bandwidth(k, X),
    "bochner_norm": lambda k: theory.bochner_norm(k, np.cos),
}
OF_ELEMENTS = {
    "gradient_bound": preimages.gradient_bound,
    "lipschitz": preimages.lipschitz,
    "hessian_lipschitz": preimages.hessian_lipschitz,
    "weyl_test": lambda psi: preimages.weyl_test(psi, [[0.0]]),
    "all_modes": methods.all_modes,
    "global_minimum": preimages.global_minimum,
    "certify": lambda psi: preimages.certify(psi, [[0.0]]),
    "preimage_objective": lambda psi: preimages.preimage_objective(psi, [[0.0]]),
    "preimage_gradient": lambda psi: preimages.preimage_gradient(psi, [[0.0]]),
    "surrogate": lambda psi: preimages.surrogate(psi, [0.0]),
    "tensor": lambda psi: space.tensor(PSI, psi),
}
OTHERS = [3, None, "text", np.zeros((2, 2)), mc.Gaussian, {1, 2}]


@pytest.mark.parametrize("other", OTHERS, ids=repr)
@pytest.mark.parametrize("function", OF_KERNELS.values(), ids=OF_KERNELS)
def test_kernels(function, other):
    with pytest.raises(mc.InputError, match=r"(kernel|g) must be a Kernel such as .*, got \w+"):
        function(other)


@pytest.mark.parametrize("other", [*OTHERS, mc.Gaussian(1.0)], ids=repr)
@pytest.mark.parametrize("function", OF_ELEMENTS.values(), ids=OF_ELEMENTS)
def test_elements(function, other):
    with pytest.raises(mc.InputError, match=r"(psi|v) must be an Element, got \w+"):
        function(other)


WORDS = {
    "own": lambda own: methods.blurring_mean_shift(mc.Gaussian(1.0), X, own=own),
    "kernel": lambda kernel: methods.segment(np.zeros((4, 4, 3)), kernel=kernel),
    "rule": lambda rule: methods.density_scale(X, rule=rule),
    "labels": lambda labels: mc.MeanShift(labels=labels).fit(X),
}
CALLBACKS = {
    "mean_shift": lambda c: mc.mean_shift(PSI, callback=c),
    "blurring": lambda c: methods.blurring_mean_shift(mc.Gaussian(1.0), X, callback=c),
    "scale_space": lambda c: methods.scale_space(X, callback=c),
    "segment": lambda c: methods.segment(np.zeros((4, 4, 3)), callback=c),
    "compress": lambda c: mc.compress(PSI, 1, callback=c),
}


@pytest.mark.parametrize("other", ["nonsense", 3, None, np.ones(3)], ids=repr)
@pytest.mark.parametrize("name", WORDS)
def test_words(name, other):
    with pytest.raises(mc.InputError, match=f"{name} must be one of '"):
        WORDS[name](other)


@pytest.mark.parametrize("name", CALLBACKS)
def test_callbacks(name):
    with pytest.raises(mc.InputError, match="callback must be a function or None, got int"):
        CALLBACKS[name](3)


@pytest.mark.parametrize("density", OTHERS, ids=repr)
def test_densities(density):
    with pytest.raises(mc.InputError, match="density must be an Element or a Density, got"):
        mc.mean_shift(density)


@pytest.mark.parametrize("low", ["a", (1, "a"), 10**400, np.nan, np.zeros((2, 2)), [0, 1, 2], 3.0])
def test_boxes(low):
    with pytest.raises(mc.InputError, match="low"):
        mc.Box(low, [2.0, 2.0])


@pytest.mark.parametrize("count", [2**63, 10**30, 0, 1.5, True, "2"])
def test_counts(count):
    with pytest.raises(mc.InputError, match="n_terms must be"):
        theory.fourier_coefficients(np.cos, count)


def test_dimensions_and_complex_numbers():
    with pytest.raises(mc.InputError, match="dim must be at most 10000, got 2147483648"):
        theory.is_universal(mc.Laplace(1.0), 2**31)
    with pytest.raises(mc.InputError, match="X must hold real numbers"):
        methods.fit_imputer(1j * X)


@pytest.mark.parametrize("function", [3, "cos", None])
def test_functions(function):
    with pytest.raises(mc.InputError, match="must be"):
        theory.fourier_coefficients(function, 3)
    with pytest.raises(mc.InputError, match="transform must be"):
        theory.bochner_norm(mc.Gaussian(1.0), function)


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_matrix, sparse.coo_array])
def test_sparse_matrices_where_dense_points_are_needed(kind):

    density = mc.kernel_density(mc.Gaussian(1.0), X)
    for call in (
        lambda S: mc.MeanShift(seeds=S, bandwidth=1.0).fit(X),
        lambda S: mc.mean_shift(density, S),
        lambda S: mc.Gaussian(1.0).spectral_measure(2).density(S),
        lambda S: mc.datasets.ring().distance(S),
        lambda S: mc.methods.moment_condition(S, np.negative),
    ):
        with pytest.raises(mc.InputError, match="must be dense"):
            call(kind(X))
