"""What all tests share: hypothesis profiles, seeded randomness, the folder of real data."""

import importlib.util
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parent.parent

settings.register_profile("default", max_examples=50, deadline=None)
settings.register_profile("ci", parent=settings.get_profile("default"), derandomize=True)
settings.register_profile("thorough", parent=settings.get_profile("default"), max_examples=1000)
settings.load_profile(
    os.environ.get("HYPOTHESIS_PROFILE", "ci" if "CI" in os.environ else "default")
)


def pytest_configure(config: pytest.Config) -> None:
    """Without the compiled core everything works, and the warning that says so is no error."""
    if importlib.util.find_spec("mercer._core") is None:
        config.addinivalue_line("filterwarnings", "ignore:mercer was installed without")


@pytest.fixture
def rng() -> np.random.Generator:
    """A generator that gives every test the same numbers each time."""
    return np.random.default_rng(20_260_101)


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder with the real data sets, which are not part of the repository."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the data sets are not here (../shared/data)")
    return folder
