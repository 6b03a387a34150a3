"""Long strings: one pair of them can be interrupted."""

import signal
import subprocess
import sys
import time

import pytest

INTERRUPTED = """
import mercer as mc
from mercer.engine.pairs import _subsequences
k = mc.kernels.Subsequences({length}, 0.9)
k(["ab", "ba"])
text = "abcdefghij" * {size}
_subsequences._features_are_faster = lambda *_: {by_features}
print("ready", flush=True)
try:
    with mc.options(n_jobs={n_jobs}):
        {call}
except KeyboardInterrupt:
    print("interrupted", flush=True)
else:
    print("finished", flush=True)
"""


@pytest.mark.parametrize(
    ("length", "size", "by_features", "n_jobs", "call"),
    [
        (3, 50_000, False, 1, "k([text])"),
        (8, 20_000, False, 2, "k([text] * 40, [text])"),  # on the pool
        (3, 50_000, False, 1, "k.diag([text])"),
        (6, 100_000, True, 2, "k([text])"),
    ],
)
def test_an_interrupt_is_honoured_inside_one_pair(length, size, by_features, n_jobs, call):
    code = INTERRUPTED.format(
        length=length, size=size, by_features=by_features, n_jobs=n_jobs, call=call
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        try:
            assert child.stdout.readline() == "ready\n", child.stderr.read()
            time.sleep(0.7)
            child.send_signal(signal.SIGINT)
            start = time.monotonic()
            assert child.stdout.readline() == "interrupted\n", child.stderr.read()
            assert time.monotonic() - start < 5.0  # a second where nothing else runs
        finally:
            child.kill()
