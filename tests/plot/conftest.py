"""Draw without a window, and close every figure after its test."""

import matplotlib as mpl
import pytest

mpl.use("agg")
import matplotlib.pyplot as plt


@pytest.fixture(autouse=True)
def _closed_figures():
    yield
    plt.close("all")
