"""Try an installed mercer: `python -I tools/smoke.py`, in an environment with nothing else in it.

With `--pure` the compiled core must be absent, and mercer must say so once.
"""

import argparse
import importlib.util
import warnings
from importlib.resources import files
from pathlib import Path

import numpy as np


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description="Try an installed mercer.")
    parser.add_argument("--pure", action="store_true", help="the compiled core must be absent")
    pure = parser.parse_args().pure
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try_it()
    import mercer

    source = Path(mercer.__file__)
    assert "site-packages" in source.parts, f"{source} is not an installed copy"
    assert (importlib.util.find_spec("mercer._core") is None) == pure, "wrong kind of wheel"
    about = [str(w.message) for w in said if "mercer was installed without" in str(w.message)]
    assert len(about) == int(pure), [str(w.message) for w in said]
    print(f"mercer {mercer.__version__} works from {source.parent}")


def try_it() -> None:
    """A sum, a pre-image, an estimator, a file, and the files of the page."""
    import mercer as mc
    from mercer.explore._server import FILES

    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / 2)
    np.testing.assert_allclose(mc.Gaussian(1.0)(X), K, rtol=1e-10)
    np.testing.assert_allclose(mc.mean_embedding(mc.Gaussian(1.0), X)(X), K.mean(axis=0))
    found = mc.preimage(mc.feature(mc.Gaussian(1.0), X[:2]))
    np.testing.assert_allclose(found.points, X[:2], atol=1e-6)
    model = mc.KernelPCA(2).fit(X)
    mc.save(model, "smoke.mercer")
    np.testing.assert_array_equal(mc.load("smoke.mercer").transform(X), model.transform(X))
    Path("smoke.mercer").unlink()
    assert all(files("mercer.explore").joinpath(name).is_file() for name in FILES)


if __name__ == "__main__":
    main()
