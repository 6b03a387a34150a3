"""What all tests share: hypothesis profiles, seeded randomness, data sets."""

import importlib.util
import os
import re
import signal
import zlib
from collections import defaultdict
from itertools import compress
from pathlib import Path

# Workers of pytest-xdist share the cores: one thread of BLAS each, set before NumPy is imported.
# Tests of threads ask for the number they need.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pytest
from hypothesis import settings
from sklearn.datasets import load_iris

ROOT = Path(__file__).resolve().parent.parent

# A shell that runs `make test &` ignores interrupts, and processes that tests start would inherit
# that; tests of interrupts would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("default", max_examples=50, deadline=None)
settings.register_profile("ci", parent=settings.get_profile("default"), derandomize=True)
settings.register_profile("thorough", parent=settings.get_profile("default"), max_examples=1000)
settings.load_profile(
    os.environ.get("HYPOTHESIS_PROFILE", "ci" if "CI" in os.environ else "default")
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--sample N`: about one test in N, the same ones every time."""
    parser.addoption("--sample", type=int, default=1, help="run about one test in this many")


@pytest.hookimpl(tryfirst=True)  # before `-m "not slow"` is applied
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Refuse names that differ between processes; draw samples."""
    unstable = [item.nodeid for item in items if re.search(r" at 0x[0-9a-f]+", item.nodeid)]
    if unstable:  # the workers of pytest-xdist must collect the same tests
        raise pytest.UsageError(f"give these parameters ids without an address: {unstable[:3]}")
    seen: dict[tuple[str, str], dict[int, int]] = defaultdict(dict)
    for item in items:
        mark = item.get_closest_marker("sample")
        if mark is not None:  # as in a Latin square: with every value of every parameter
            tables = [
                # scikit-learn's checks are partial functions, made anew for every estimator
                (seen[item.nodeid.split("[")[0], name], id(getattr(value, "func", value)))
                for name, value in item.callspec.params.items()
            ]
            if sum(table.setdefault(key, len(table)) for table, key in tables) % mark.args[0]:
                item.add_marker(pytest.mark.slow)
    share = config.getoption("--sample")
    if share > 1:
        chosen = [zlib.crc32(item.nodeid.encode()) % share == 0 for item in items]
        config.hook.pytest_deselected(items=list(compress(items, [not c for c in chosen])))
        items[:] = compress(items, chosen)


def pytest_configure(config: pytest.Config) -> None:
    """Ignore the warning about a missing compiled core: everything works without it."""
    if importlib.util.find_spec("mercer._core") is None:
        config.addinivalue_line("filterwarnings", "ignore:mercer was installed without")


@pytest.fixture
def rng() -> np.random.Generator:
    """A generator that gives every test the same numbers each time."""
    return np.random.default_rng(20_260_101)


@pytest.fixture(scope="session")
def faithful() -> np.ndarray:
    """Old Faithful: 272 eruptions, with their length and the wait before the next, in minutes."""
    return np.loadtxt(Path(__file__).parent / "data" / "faithful.csv", delimiter=",", skiprows=1)


@pytest.fixture(scope="session")
def iris() -> np.ndarray:
    """Fisher's iris: 150 flowers, 50 of each species in turn, in four columns."""
    return load_iris().data


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder with larger data sets, which are not part of the repository."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the data sets are not here (../shared/data)")
    return folder
