"""Engine tests run on every engine there is."""

import pytest

import mercer as mc
from tests.engine.isas import compiled


@pytest.fixture(params=["blocked", pytest.param(None, marks=compiled, id="native")])
def each_engine(request):
    """NumPy tiles, and what the library chooses: the compiled core wherever it can run."""
    with mc.options(engine=request.param):
        yield request.param or "native"
