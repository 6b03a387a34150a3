"""Truncated and tampered files of every kind of object: an `InputError`, or what was saved."""

from random import Random

import numpy as np
import pytest

import mercer as mc
from mercer import methods
from tests.estimators.parallel import NAMES, X, answers, differs, fitted
from tools.fuzz.checks import load_damaged

PSI = mc.mean_embedding(mc.Gaussian(1.0), X[:9])
OTHERS = {
    "kernel": lambda: mc.Gaussian(1.0).transform(mc.Scales([1.0, 2.0])) + mc.Linear(),
    "matrix": lambda: mc.Precomputed(np.eye(4)),
    "words": lambda: mc.Element(mc.Spectrum(2), ["ab", "ba"], [1.0, 2.0]),
    "element": lambda: PSI,
    "subspace": lambda: mc.kernel_pca(mc.Gaussian(1.0), X[:9], 3),
    "operator": lambda: mc.covariance(mc.Gaussian(1.0), X[:9], mc.Linear(), X[:9]),
    "pre-image": lambda: mc.preimage(PSI),
    "modes": lambda: mc.mean_shift(PSI),
    "test": lambda: mc.mmd_test(X[:20], X[20:], random_state=0),
    "density": lambda: methods.adaptive_density(mc.Gaussian(1.0), X[:9]),
    "solver": lambda: mc.FixedPoint(max_iter=7),
    "box": lambda: mc.Box(0.0, 1.0),
    "values": lambda: {"a": [1.5, (2, "b")], "c": np.arange(3)},
}


def made(name):
    return OTHERS[name]() if name in OTHERS else fitted(name)


@pytest.mark.filterwarnings("ignore::mercer.MercerWarning")
@pytest.mark.parametrize("name", [*OTHERS, *NAMES])
def test_damaged_files(name, tmp_path):
    thing, path, random = made(name), tmp_path / "thing.mercer", Random(name)
    mc.save(thing, path)
    content = path.read_bytes()
    for share in (0.0, 0.1, 0.5, 0.9, 0.999):
        path.write_bytes(content[: int(share * len(content))])
        with pytest.raises(mc.InputError):
            mc.load(path)
    for _ in range(20):  # the checksums of the archive see it, or it was of no importance
        data = bytearray(content)
        data[random.randrange(len(data))] ^= 1 << random.randrange(8)
        path.write_bytes(data)
        try:
            loaded = mc.load(path)
        except mc.InputError:
            continue
        assert type(loaded) is type(thing)
        if name in NAMES:
            assert differs(answers(thing), answers(loaded)) == ""
    for seed in range(10):  # with right checksums
        try:
            load_damaged(thing, seed)
        except mc.MercerError:
            continue
