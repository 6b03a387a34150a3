"""A real cluster of two worker processes with one thread each, and data cut for it."""

import warnings

import pytest


@pytest.fixture(scope="session")
def cluster():
    distributed = pytest.importorskip("distributed")
    with warnings.catch_warnings():
        # distributed closes sockets and event loops late
        warnings.simplefilter("ignore", ResourceWarning)
        with (
            distributed.LocalCluster(
                n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
            ) as found,
            distributed.Client(found) as client,
        ):
            yield client


@pytest.fixture
def cut(cluster):
    """A function that cuts an array into uneven chunks on the cluster, one of them empty."""

    da = pytest.importorskip("dask.array")

    def chunked(array):
        n = len(array)
        return da.from_array(array, chunks=((n // 3, 0, n - n // 3), *array.shape[1:]))

    return chunked
