"""A real cluster of two worker processes with one thread each, and data cut for it."""

import warnings

import numpy as np
import pytest

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="session")
def cluster():
    with warnings.catch_warnings():
        # distributed closes sockets and event loops late
        warnings.simplefilter("ignore", ResourceWarning)
        warnings.simplefilter("ignore", DeprecationWarning)
        with (
            distributed.LocalCluster(
                n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
            ) as found,
            distributed.Client(found) as client,
        ):
            yield client


@pytest.fixture
def cut(cluster):
    """A function that cuts an array into uneven chunks on the cluster, one of them empty."""

    def chunked(array, rows=()):
        n = len(array)
        sizes = rows or (n // 2, 0, n // 3, n - n // 2 - n // 3)
        return da.from_array(array, chunks=(sizes, *array.shape[1:]))

    return chunked


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)
