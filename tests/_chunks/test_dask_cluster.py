"""What a cluster is for: rows stay on the workers, and a worker may die."""

import os
import signal
import threading
import time

import numpy as np
import pytest

import mercer as mc
from mercer._chunks import _dask, _samples

da = pytest.importorskip("dask.array")

rng = np.random.default_rng(0)
k = mc.Gaussian(3.0)


@pytest.fixture
def gathered(monkeypatch):
    """The bytes of all results that came to this process."""
    sizes, compute = [], _dask.dask.compute

    def counted(*arguments):
        results = compute(*arguments)
        sizes.append(len(_pickled(results)))
        return results

    monkeypatch.setattr(_dask.dask, "compute", counted)
    monkeypatch.setattr(_samples, "SAMPLE_ROWS", 200)
    return sizes


def _pickled(value):
    from pickle import dumps

    return dumps(value)


def test_rows_are_not_collected(cluster, gathered):
    """At most a sample and four numbers per row (of fifty) come here; 400 bytes per row would."""
    n, d = 1600, 50
    rows = da.random.default_rng(0).normal(size=(n, d), chunks=(800, d))
    y = rows[:, 0]
    options = {"n_landmarks": 20, "random_state": 0, "kernel": k}
    fits = (
        lambda: mc.mean_embedding(k, rows)(np.zeros((3, d))),
        lambda: mc.KernelPCA(3, **options).fit(rows).transform(rows),
        lambda: mc.KernelRidge(**options).fit(rows, y).predict(rows),
        lambda: mc.KernelDensity(bandwidth=2.0).fit(rows).score_samples(np.zeros((3, d))),
        lambda: mc.methods.mmd(k, rows, rows + 0.1),
        lambda: mc.mmd_test(rows[:800], rows[800:], kernel=k, n_permutations=9),
    )
    for fit in fits:
        gathered.clear()
        fit()
        assert 0 < sum(gathered) < 0.16 * 8 * n * d


def test_tasks_have_names_in_the_dashboard(cluster):
    rows = da.from_array(rng.normal(size=(50, 2)), chunks=(25, 2))
    mc.mean_embedding(k, rows)(np.zeros((1, 2)))
    names = {name.split("-0")[0] for name in cluster.run_on_scheduler(_seen)}
    assert any(name.startswith("mercer-kernel-sum") for name in names)


def _seen(dask_scheduler):
    return [str(t[0]) for t in dask_scheduler.transition_log]


def _slow(block):
    time.sleep(0.4)
    return block


def test_a_worker_is_killed_in_the_middle_of_a_fit(cluster):
    array = rng.normal(size=(240, 2))
    rows = da.from_array(array, chunks=(40, 2)).map_blocks(_slow, dtype=float)
    options = {"n_landmarks": 30, "random_state": 0, "kernel": k}
    known = mc.KernelPCA(4, **options).fit(array)
    pids, found = cluster.run(os.getpid), []
    fit = threading.Thread(target=lambda: found.append(mc.KernelPCA(4, **options).fit(rows)))
    fit.start()
    time.sleep(1.0)
    assert fit.is_alive()
    os.kill(min(pids.values()), signal.SIGKILL)
    fit.join(60.0)
    assert not fit.is_alive()
    np.testing.assert_allclose(found[0].eigenvalues_, known.eigenvalues_, rtol=1e-9)
    cluster.wait_for_workers(2, timeout=60)
    assert set(cluster.run(os.getpid).values()) != set(pids.values())
