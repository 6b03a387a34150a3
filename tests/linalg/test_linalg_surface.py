"""What `mercer.linalg` shows: a closed list, documented, light to import, frozen results."""

import dataclasses
import inspect
import re
import subprocess
import sys

import numpy as np
import pytest

import mercer as mc
from mercer import Status, linalg

X = np.random.default_rng(0).normal(size=(12, 2))
K = mc.Gaussian(1.0)
RESULTS = [
    linalg.GramOperator(K, X),
    linalg.solve(K, X, np.ones(12), 1.0),
    linalg.eigenpairs(K, X, 2),
    linalg.power_iteration(K, X),
    linalg.pivoted_cholesky(K, X),
    linalg.nystrom(K, X, 3),
    linalg.random_features(K, 2, 4),
]


def test_names_are_there_and_nothing_else_is():
    shown = {name for name in vars(linalg) if not name.startswith("_")}
    assert shown == set(linalg.__all__)


@pytest.mark.parametrize("name", linalg.__all__)
def test_everything_is_documented(name):
    thing = getattr(linalg, name)
    doc = inspect.getdoc(thing) or ""
    assert doc
    assert thing.__module__.startswith(("mercer.linalg._", "mercer._progress"))
    assert re.search(r"^Examples\n-{8}$", doc, re.MULTILINE)
    if inspect.isfunction(thing):
        assert re.search(r"^Returns\n-{7}$", doc, re.MULTILINE)


@pytest.mark.parametrize("result", RESULTS, ids=lambda r: type(r).__name__)
def test_results_are_frozen(result):
    name = dataclasses.fields(result)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(result, name, None)
    assert type(result).__name__ in linalg.__all__


@pytest.mark.parametrize("status", Status)
def test_statuses_are_sentences(status):
    assert len(status.value.split()) > 2
    assert isinstance(status.ok, bool)


def test_import_is_light():
    code = (
        "import sys, mercer.linalg; heavy = ('scipy.linalg', 'scipy.special', 'sklearn'); "
        "print([name for name in heavy if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


# --- nearly legal input ---------------------------------------------------------------------------

CALLS = {
    "solve": lambda kernel, Z, **o: linalg.solve(kernel, Z, np.ones(len(Z)), 0.1, **o),
    "solve by cg": lambda kernel, Z, **o: linalg.solve(
        kernel, Z, np.ones(len(Z)), **({"penalty": 0.1, "method": "cg"} | o)
    ),
    "solve by eigen": lambda kernel, Z: linalg.solve(
        kernel, Z, np.ones(len(Z)), 0.1, method="eigen"
    ),
    "eigenpairs": lambda kernel, Z, **o: linalg.eigenpairs(kernel, Z, 2, **o),
    "krylov": lambda kernel, Z, **o: linalg.eigenpairs(
        kernel, Z, 2, **({"method": "krylov", "random_state": 0} | o)
    ),
    "power iteration": lambda kernel, Z, **o: linalg.power_iteration(
        kernel, Z, random_state=0, **o
    ),
    "pivoted Cholesky": linalg.pivoted_cholesky,
    "leverage scores": lambda kernel, Z, **o: linalg.leverage_scores(
        kernel, Z, **({"penalty": 0.1} | o)
    ),
    **{
        f"nystrom, {rule}": lambda kernel, Z, rule=rule, **o: linalg.nystrom(
            kernel, Z, 3, **({"rule": rule, "random_state": 0} | o)
        )
        for rule in ("uniform", "kmeans", "leverage", "pivoted")
    },
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("kernel", [None, "rbf", 1.0, mc.Gaussian, [K]], ids=repr)
def test_a_kernel_must_be_a_kernel(name, kernel):
    with pytest.raises(mc.InputError, match="kernel must be a Kernel such as"):
        CALLS[name](kernel, X)
    with pytest.raises(mc.InputError, match="kernel must be a Kernel such as"):
        linalg.random_features(kernel, 2, 4)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("solve by cg", {"callback": 3}, "callback must be a function"),
        ("krylov", {"callback": "print"}, "callback must be a function"),
        ("power iteration", {"callback": []}, "callback must be a function"),
        ("eigenpairs", {"centred": "no"}, "centred must be True or False"),
        ("eigenpairs", {"centred": X}, "centred must be True or False"),
        ("eigenpairs", {"method": X}, "method must be one of"),
        ("solve by cg", {"preconditioner": X}, "preconditioner must be one of"),
        ("nystrom, uniform", {"rule": np.arange(3)}, "rule must be one of"),
    ],
)
def test_wrong_types_and_sizes_are_named(name, change, message):
    with pytest.raises(mc.InputError, match=message):
        CALLS[name](K, X, **change)


@pytest.mark.parametrize("B", [[[1.0, 2.0], [3.0]], 1e160 * X, "ab", None])
def test_right_hand_sides_are_checked(B):
    with pytest.raises(mc.InputError, match=r"B must|overflow"):
        linalg.solve(K, X, B, 0.1)
    with pytest.raises(mc.InputError, match=r"B must|overflow"):
        linalg.woodbury(X, B, 0.1)


@pytest.mark.parametrize("arguments", [(X, 5e-324), (1e150 * X, 1.0)], ids=["penalty", "factor"])
def test_woodbury_names_overflow(arguments):
    L, penalty = arguments
    with pytest.raises(mc.InputError, match="overflow"):
        linalg.woodbury(L, X[:, 0], penalty)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("scale", [1e-170, 1e-3, 30.0, 1e100, 1e149])
@pytest.mark.parametrize(
    "kernel",
    [mc.Linear(), mc.Polynomial(3), mc.Exponential(0.1), mc.Gaussian(1.0), mc.Sigmoid()],
    ids=repr,
)
def test_extreme_points_give_finite_numbers_or_an_error(name, scale, kernel):
    """Warnings are errors here, so this also says that none leaks."""
    try:
        result = CALLS[name](kernel, scale * X)
    except mc.InputError as error:
        result = error
    if isinstance(result, mc.InputError):
        assert re.search("overflow|infinite or NaN|not positive definite", str(result))
        return
    parts = [result] if isinstance(result, np.ndarray) else vars(result).values()
    assert all(np.isfinite(a).all() for a in parts if isinstance(a, np.ndarray))


INDEFINITE = [mc.Sigmoid(), mc.Sigmoid(1.0, -2.0), mc.Precomputed([[1.0, 2.0], [2.0, 1.0]])]


@pytest.mark.parametrize("kernel", INDEFINITE, ids=repr)
@pytest.mark.parametrize("rule", ["uniform", "leverage", "pivoted"])
def test_landmarks_of_a_kernel_that_is_not_positive_definite(kernel, rule):
    Z = np.array([0, 1]) if isinstance(kernel, mc.Precomputed) else X
    with pytest.raises(mc.InputError, match=r"is not positive definite on these points.*use a"):
        linalg.nystrom(kernel, Z, len(Z), rule=rule, random_state=0)
    assert linalg.pivoted_cholesky(kernel, Z).status is Status.INDEFINITE
    with pytest.raises(mc.InputError, match="positive definite"):
        linalg.solve(kernel, Z, np.ones(len(Z)), 1e-3, method="cholesky")
    assert linalg.solve(kernel, Z, np.ones(len(Z)), 1e-3, method="eigen").ok
