"""What is not saved, and says so; classes of the user's own."""

import functools
from dataclasses import dataclass
from enum import Enum

import numpy as np
import pytest
import scipy.sparse as sp

import mercer as mc
from mercer.io import _registry, load, register, save
from mercer.testing import awkward_kernels
from mercer.testing._awkward import OneMethod, Opaque

pytestmark = pytest.mark.usefixtures("own_table")


@dataclass(frozen=True)
class Cauchy(mc.Radial):
    scale: float = 1.0

    def profile(self, u):
        return 1.0 / (1.0 + u / self.scale**2)


class Colour(Enum):
    RED = 1


# --- classes of one's own -------------------------------------------------------------------------


def test_a_kernel_of_ones_own(tmp_path):
    psi = mc.mean_embedding(Cauchy(2.0) * mc.Linear(), [[1.0], [3.0]])
    with pytest.raises(mc.InputError, match=r"Element\.kernel\.left .*register\(Cauchy\)"):
        save(psi, tmp_path / "psi")
    assert not (tmp_path / "psi").exists()
    assert register(Cauchy) is Cauchy
    save(psi, tmp_path / "psi")
    back = load(tmp_path / "psi")
    assert back.kernel == psi.kernel
    assert np.array_equal(back([[2.0]]), psi([[2.0]]))


def test_a_kernel_that_is_not_registered_where_it_is_loaded(tmp_path, monkeypatch):
    register(Cauchy, name="my.Cauchy")
    save([Cauchy()], tmp_path / "k")
    monkeypatch.setattr(_registry, "_classes", {})
    with pytest.raises(
        mc.InputError, match=r"contains 'my.Cauchy', which is not registered; .*register"
    ):
        load(tmp_path / "k")


def test_a_kernel_that_is_no_dataclass(tmp_path):
    class Scaled(mc.DotProduct):
        def __init__(self, factor):
            self.factor = factor

        def profile(self, t):
            return self.factor * t

    register(Scaled)
    k = Scaled(3.0)
    k([[1.0]])
    save(k, tmp_path / "k")
    assert load(tmp_path / "k") == k
    assert load(tmp_path / "k")([[1.0]]) == 3.0


def test_a_class_that_was_renamed_is_found_under_its_old_name(tmp_path):
    register(Cauchy, name="Old")
    save(Cauchy(2.0), tmp_path / "k")
    _registry._classes.clear(), _registry._names.clear()
    register(Cauchy)
    register(Cauchy, name="Old")
    assert load(tmp_path / "k") == Cauchy(2.0)
    assert _registry.name_of(Cauchy) == "Cauchy"


def test_a_class_that_is_defined_again_replaces_itself(tmp_path):
    def define():
        @register
        @dataclass(frozen=True)
        class Mine(mc.Radial):
            def profile(self, u):
                return 1.0 - u

        return Mine

    old, new = define(), define()
    save(new(), tmp_path / "k")
    assert type(load(tmp_path / "k")) is new
    with pytest.raises(mc.InputError, match="register"):
        save(old(), tmp_path / "k")


def test_two_classes_of_one_name():
    register(Cauchy)

    class Other(Enum):
        A = 1

    with pytest.raises(mc.InputError, match=r"already the name of .*Cauchy"):
        register(Other, name="Cauchy")


def test_what_cannot_be_registered():
    with pytest.raises(mc.InputError, match="dataclass"):
        register(type("Plain", (), {}))
    with pytest.raises(mc.InputError, match="takes a class"):
        register(len)
    with pytest.raises(mc.InputError, match=r"does not start with 'mercer\.'"):
        register(Cauchy, name="mercer.kernels.Gaussian")
    with pytest.raises(mc.InputError, match="name must be"):
        register(Cauchy, name="")


def test_an_enum_of_ones_own(tmp_path):
    with pytest.raises(mc.InputError, match="Colour"):
        save({"c": Colour.RED}, tmp_path / "c")
    register(Colour)
    save({"c": Colour.RED}, tmp_path / "c")
    assert load(tmp_path / "c") == {"c": Colour.RED}


def test_a_subclass_is_not_its_parent(tmp_path):
    class Sub(mc.Gaussian):
        pass

    with pytest.raises(mc.InputError, match="Sub"):
        save(Sub(1.0), tmp_path / "k")


def test_an_object_that_could_not_be_built_again_is_refused_at_once(tmp_path):
    @register
    @dataclass(frozen=True)
    class Half(mc.Radial):
        scale: float

        def __post_init__(self):
            if isinstance(self.scale, str):
                raise ValueError("scale must be a number")
            object.__setattr__(self, "scale", str(self.scale))

        def profile(self, u):
            return 1.0 - u

    with pytest.raises(mc.InputError, match=r"cannot be loaded.*Half.*scale must be a number"):
        save(Half(1.0), tmp_path / "k")
    assert list(tmp_path.iterdir()) == []


def test_awkward_kernels_of_the_kit(tmp_path):
    register(OneMethod)
    register(Opaque)
    for k in awkward_kernels():
        save(k, tmp_path / "k")
        assert load(tmp_path / "k") == k


# --- code and other things ------------------------------------------------------------------------


def _function(X, Y):
    return X @ Y.T


@pytest.mark.parametrize(
    ("thing", "where"),
    [
        (mc.kernels.FromFunction(_function), r"FromFunction\.function is a callable \(_function\)"),
        (
            mc.kernels.FromFunction(functools.partial(_function)),
            r"FromFunction\.function is a callable",
        ),
        (mc.Linear() + mc.kernels.FromFunction(_function), r"Sum\.right\.function is a callable"),
        (
            mc.Linear().transform(mc.kernels.Features(np.abs)),
            r"Transformed\.point_map\.function is a callable \(absolute\)",
        ),
        ({"f": [1, len]}, r"dict\['f'\]\[1\] is a callable \(len\)"),
        ([mc.Gaussian], r"list\[0\] is a callable \(Gaussian\)"),
        (np.array([1, print], dtype=object), r"ndarray\[1\] is a callable"),
    ],
    ids=lambda x: str(x)[:30],
)
def test_callables(thing, where, tmp_path):
    with pytest.raises(mc.InputError, match=where + ".*execute code"):
        save(thing, tmp_path / "x")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "random_state", [np.random.default_rng(0), np.random.RandomState(0), np.random.PCG64(0)]
)  # fmt: skip
def test_random_states(random_state, tmp_path):
    with pytest.raises(mc.InputError, match=r"\['random_state'\] is a .*use an int or None"):
        save({"random_state": random_state}, tmp_path / "x")


@pytest.mark.parametrize(
    "thing",
    [
        object(),
        np.ma.masked_array([1.0]),
        np.array(["2020-01-01"], dtype="datetime64[D]"),
        np.datetime64("2020-01-01"),
        np.array([1.0], dtype=np.longdouble),
        np.longdouble(1.0),
        sp.csc_array(np.eye(2)),
        np.zeros(2, dtype=[("a", float, (2,))]),
        slice(3),
        type("Words", (str,), {})("word"),
        mc.mean_embedding(mc.kernels.FromFunction(_function, on=mc.kernels.Objects()), [object()]),
    ],
    ids=lambda x: type(x).__name__,
)
def test_other_things(thing, tmp_path):
    with pytest.raises(mc.InputError):
        save([thing], tmp_path / "x")
    assert list(tmp_path.iterdir()) == []


def test_things_that_contain_themselves(tmp_path):
    ring = []
    ring.append(ring)
    with pytest.raises(mc.InputError, match="contains itself"):
        save(ring, tmp_path / "x")
    ring = np.empty(1, dtype=object)
    ring[0] = ring
    with pytest.raises(mc.InputError, match="contains itself"):
        save(ring, tmp_path / "x")
