"""A kernel sum on a Dask cluster of one and of two worker processes with one thread each."""

from __future__ import annotations

from functools import partial

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

import mercer as mc
from benchmarks._harness import Array, Key, Settings, race
from benchmarks._report import Outcome, at_least

TITLE = "A kernel sum on one and two workers"
SPEEDUP = "time of one worker over that of two"
CHUNKS = 16
OURS = Key("cluster", "mercer, two workers")
ONE = Key("cluster", "mercer, one worker")


def run(settings: Settings) -> Outcome:
    """Both clusters run at the same time, and take turns."""
    outcome = Outcome(TITLE)
    n, m, d = settings.size(400_000, 20_000), settings.size(20_000, 500), 10
    rng = np.random.default_rng(0)
    queries, kernel = rng.normal(size=(m, d)), mc.Gaussian(d**0.5)
    case = f"sum over {n:,} points at {m:,} queries, d = {d}"
    quiet = {"threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    with (
        LocalCluster(n_workers=1, **quiet) as single,
        LocalCluster(n_workers=2, **quiet) as double,
        Client(single, set_as_default=False) as one,
        Client(double, set_as_default=False) as two,
    ):
        calls = {
            key: partial(_sum, client, _rows(client, n, d), kernel, queries)
            for key, client in ((ONE, one), (OURS, two))
        }
        found: dict[Key, Array] = {}
        timed = race(case, calls, settings, found.__setitem__)
    np.testing.assert_allclose(found[ONE], found[OURS], rtol=1e-12)
    outcome.add_rows(case, timed, OURS)
    outcome.add_figures(case, {SPEEDUP: timed.ratio(ONE, OURS)}, {SPEEDUP: at_least(1.6)})
    outcome.add_notes(case, timed)
    return outcome


def _rows(client: Client, n: int, d: int) -> da.Array:
    """Points that are in the memory of the workers already."""
    rows = da.random.default_rng(0).normal(size=(n, d), chunks=(n // CHUNKS, d))
    with client.as_current():
        return rows.persist()


def _sum(client: Client, rows: da.Array, kernel: mc.Kernel, queries: Array) -> Array:
    with client.as_current():
        return mc.mean_embedding(kernel, rows)(queries)
