"""Ctrl-C ends a long factorisation within a second, and the process exits cleanly."""

import os
import select
import signal
import subprocess
import sys
import time

import pytest

START = """
import sys
import numpy as np
import mercer as mc
from mercer import linalg
from mercer.linalg import _dense
from mercer.methods.machines._ridge_uncertainty import inverse_diagonal

X = np.random.default_rng(0).normal(size=(6000, 3))
k = mc.Gaussian(0.3)

def announced(function):
    def run(*arguments, **named):
        print("computing", flush=True)
        return function(*arguments, **named)
    return run

_dense._lapack = announced(_dense._lapack)
try:
    {call}
except KeyboardInterrupt:
    print("interrupted", flush=True)
    print("and the last words")
    sys.exit(7)
else:
    print("finished", flush=True)
"""
CALLS = {
    "all eigenpairs": "linalg.eigenpairs(k, X[:2500], 2000)",
    "some eigenpairs": 'linalg.eigenpairs(k, X[:3500], 20, method="dense")',
    "the pseudo-inverse": 'linalg.solve(k, X[:2500], X[:2500, 0], 0.0, method="eigen")',
    "Cholesky": "linalg.solve(k, X, X[:, 0], 1.0)",
    "many right-hand sides": "linalg.solve(k, X[:1000], np.ones((1000, 20_000)), 1.0)",
    "leave-one-out": "inverse_diagonal(k, k.points(X), np.ones(6000), 1.0, fit_intercept=True)",
    "the largest correlation": "mc.methods.coco(k, X[:2048], k, X[:2048])",
}


@pytest.mark.skipif(sys.platform == "win32", reason="SIGINT cannot be sent to one process")
@pytest.mark.parametrize("name", CALLS)
def test_an_interrupt_is_honoured_within_a_second(name):
    one = dict(os.environ, OPENBLAS_NUM_THREADS="1")  # slower, so that there is time to interrupt
    command = [sys.executable, "-c", START.format(call=CALLS[name])]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=one) as child:
        try:
            assert child.stdout.readline() == "computing\n"
            time.sleep(0.2)
            sent = time.monotonic()
            child.send_signal(signal.SIGINT)
            assert select.select([child.stdout], [], [], 10.0)[0], "no answer in ten seconds"
            assert child.stdout.readline() == "interrupted\n"
            assert time.monotonic() - sent < 2.0  # a second, and another for a busy machine
            assert child.stdout.readline() == "and the last words\n"
            assert child.wait(10.0) == 7  # not a crash of the thread that computes on
        finally:
            child.kill()
