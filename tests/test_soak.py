"""The soak test (`make soak`): what counts as growth, and a sample of its rounds."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tools.soak import trend

ROOT = Path(__file__).parent.parent
linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


@pytest.mark.parametrize("rounds", [3, 30, 1000])
def test_a_level_that_only_moves_does_not_grow(rounds):
    rng, t = np.random.default_rng(rounds), np.linspace(0.0, 3600.0, rounds)
    found = [trend(t, 300.0 + rng.normal(size=rounds), 2.0, 1.0) for _ in range(200)]
    assert not any(one.grows for one in found)
    covered = np.mean([one.low <= 0.0 <= one.high for one in found])
    assert 0.9 <= covered <= 0.99  # 95 % intervals
    assert found[0].allowed == 3.0


@pytest.mark.parametrize("gain", [5.0, 100.0])
def test_a_slope_is_growth_although_the_level_moves(gain):
    rng, t = np.random.default_rng(1), np.linspace(0.0, 3600.0, 1000)
    found = trend(t, 300.0 + rng.normal(size=1000) + gain * t / 3600.0, 2.0, 1.0)
    assert found.grows
    assert found.gain == pytest.approx(gain, abs=0.5)


def test_constants_have_no_trend():
    found = trend(np.arange(50.0), np.full(50, 7.0), 0.5, 0.5)
    assert (found.gain, found.low, found.high, found.grows) == (0.0, 0.0, 0.0, False)


def test_two_rounds_are_too_few():
    with pytest.raises(SystemExit, match="too few"):
        trend(np.arange(2.0), np.arange(2.0), 0.5, 0.5)


# --- a sample -------------------------------------------------------------------------------------

SAMPLE = """
import json, os, sys, tempfile, threading, warnings
from tools.soak import soak
from tools.soak_calls import CALLS

kept = []
LEAKS = {
    "nothing": lambda rng: None,
    "allocated MB": lambda rng: kept.append(rng.normal(size=100_000)),
    "objects": lambda rng: kept.extend([] for _ in range(5000)),
    "threads": lambda rng: threading.Thread(target=stop.wait, daemon=True).start(),
    "descriptors": lambda rng: kept.append(os.open(os.devnull, os.O_RDONLY)),
    "temporary files": lambda rng: tempfile.mkstemp(),
    "a failure": lambda rng: 1 / 0,
}
warnings.simplefilter("ignore")
stop = threading.Event()
# with fixed kernels only: new ones fill caches for a hundred rounds
steady = tuple(f for f in CALLS if f.__name__ in sys.argv[3:])
with tempfile.TemporaryDirectory() as folder:
    tempfile.tempdir = folder
    os.chdir(folder)
    found = soak(float(sys.argv[2]), (*steady, LEAKS[sys.argv[1]]))
    print(json.dumps([found.rounds, found.failed, [n for n, t in found.trends.items() if t.grows]]))
    stop.set()
    os.chdir("/")
"""


def sample(leak, seconds, *names):
    done = subprocess.run(
        [sys.executable, "-c", SAMPLE, leak, str(seconds), *names],
        capture_output=True, text=True, check=False, timeout=600, cwd=ROOT,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@linux
def test_twenty_seconds_without_growth():
    names = ("errors", "interrupts", "threads", "algebra", "hypothesis_tests")
    rounds, failed, grows = sample("nothing", 20.0, *names)
    assert rounds >= 8
    assert (failed, grows) == (0, [])


@linux
@pytest.mark.parametrize(
    "leak", ["allocated MB", "objects", "threads", "descriptors", "temporary files"]
)
def test_leaks_are_found(leak):
    rounds, failed, grows = sample(leak, 1.5, "errors")
    assert rounds >= 8
    assert failed == 0
    assert leak in grows


@linux
def test_failures_are_counted():
    rounds, failed, _ = sample("a failure", 0.5, "errors")
    assert failed > rounds


@linux
def test_every_call_of_a_round_runs():
    from tools.soak_calls import CALLS

    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c",
         "import numpy as np; from tools.soak_calls import CALLS\n"
         "for call in CALLS: call(np.random.default_rng(0))"],
        capture_output=True, text=True, check=False, timeout=600, cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert len(CALLS) >= 12
