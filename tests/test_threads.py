"""Threads: one pool, one BLAS thread under it, one core in every worker process."""

import multiprocessing
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pytest
from threadpoolctl import OpenBLASController, ThreadpoolController

import mercer as mc
from mercer._threads import (
    available_cores,
    interruptible,
    map_threads,
    single_threaded_blas,
    thread_count,
)


def blas_threads() -> set[int]:
    """Threads of the BLAS of NumPy and SciPy; other packages may have loaded their own."""
    found = ThreadpoolController().select(user_api="blas").info()
    ours = [one for one in found if "numpy" in one["filepath"] or "scipy" in one["filepath"]]
    return {library["num_threads"] for library in ours or found}


# --- how many -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cores", "n_jobs", "threads"),
    [(8, None, 8), (8, -1, 8), (8, -2, 7), (8, -20, 1), (1, -2, 1), (2, 16, 16), (2, 2**70, 256)],
)
def test_n_jobs(cores, n_jobs, threads, monkeypatch):
    monkeypatch.setattr("mercer._threads.available_cores", lambda: cores)
    with mc.options(n_jobs=n_jobs):
        assert thread_count() == threads


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="no affinity here")
def test_cores_are_those_the_process_may_use():
    assert available_cores() == len(os.sched_getaffinity(0))
    code = (
        "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); "
        "from mercer._threads import thread_count; print(thread_count())"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "1"


# --- the pool -------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
@pytest.mark.parametrize("n", [0, 1, 2, 50])
def test_results_come_in_the_order_of_the_items(n, n_jobs):
    with mc.options(n_jobs=n_jobs):
        assert map_threads(lambda i: i * i, range(n)) == [i * i for i in range(n)]


def test_items_run_at_the_same_time():
    barrier = threading.Barrier(2, timeout=10)  # breaks unless two threads meet at it
    with mc.options(n_jobs=2):
        map_threads(lambda _: barrier.wait(), range(2))


def test_no_more_threads_than_asked_for():
    def job(_):
        time.sleep(0.005)
        return threading.get_ident()

    with mc.options(n_jobs=2):
        assert len(set(map_threads(job, range(12)))) <= 2
    with mc.options(n_jobs=1):
        assert set(map_threads(job, range(3))) == {threading.get_ident()}


def test_a_nested_call_runs_inline():
    def outer(i):
        inner = map_threads(lambda _: threading.get_ident(), range(4))
        return set(inner) == {threading.get_ident()}

    with mc.options(n_jobs=2):
        assert all(map_threads(outer, range(8)))


def test_options_hold_inside_the_workers():
    for n_jobs in (1, 2):
        with mc.options(n_jobs=n_jobs, working_memory=17):
            assert map_threads(lambda _: mc.get_options().working_memory, range(4)) == [17] * 4


def test_kernels_are_evaluated_inside_kernels(rng):
    """A kernel function that calls the library again, from the threads of the library."""
    X = rng.normal(size=(600, 2))
    inner = mc.Gaussian(1.0)
    with mc.options(n_jobs=2, working_memory=0.1):
        K = mc.kernels.FromFunction(inner)(X)
    np.testing.assert_allclose(K, inner(X), rtol=1e-12)


def test_users_may_call_from_their_own_threads(rng):
    X = rng.normal(size=(400, 3))
    expected = mc.Laplace(1.0)(X)
    results = [None] * 4

    def call(i):
        with mc.options(n_jobs=2):
            results[i] = mc.Laplace(1.0)(X)

    threads = [threading.Thread(target=call, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for K in results:
        np.testing.assert_array_equal(K, expected)


# --- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_error_in_a_worker_comes_out(n_jobs):
    def job(i):
        if i == 3:
            raise KeyError("three")
        return i

    with mc.options(n_jobs=n_jobs):
        with pytest.raises(KeyError, match="three"):
            map_threads(job, range(10))
        assert map_threads(lambda i: i, range(4)) == [0, 1, 2, 3]  # the pool still works


AT_EVERY_PLACE = """
import dis, faulthandler, sys, time
from functools import cache

import numpy as np
from mercer import _threads, options
from mercer._threads import interruptible, map_threads

@cache
def places(code):
    # after calls, on entry and in loops CPython looks for signals
    steps = list(dis.get_instructions(code))
    names = ("CALL", "RESUME", "JUMP_BACKWARD")
    return {two.offset for one, two in zip(steps, steps[1:]) if one.opname.startswith(names)}

def interrupted_at(place, call):
    count = 0
    def trace(frame, event, _):
        nonlocal count
        frame.f_trace_opcodes = True
        if event == "opcode" and frame.f_lasti in places(frame.f_code):
            count += 1
            if count == place:
                raise KeyboardInterrupt
        return trace
    sys.settrace(trace)
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(None)
    return False

def wait(i):
    time.sleep(0.0002)
    return i

faulthandler.dump_traceback_later(60, exit=True)  # a lock that stays locked
A = np.ones((600, 600))
for call in (lambda: map_threads(wait, range(4)), lambda: interruptible(np.sum, A)):
    place = 1
    with options(n_jobs=2):
        map_threads(wait, range(4))
        libraries = _threads._controller
        before = [library.num_threads for library in libraries]
        while interrupted_at(place, call):
            assert map_threads(wait, range(4)) == [0, 1, 2, 3]
            assert interruptible(np.sum, A) == 360_000
            assert _threads._blas_users == 0
            assert [library.num_threads for library in libraries] == before
            place += 1
    print(place)
"""


def test_an_interrupt_at_any_place_leaves_no_lock_behind():
    """The pool of `concurrent.futures` waited for ever after an interrupt inside its locks."""
    two = os.environ | {"OPENBLAS_NUM_THREADS": "2"}
    run = subprocess.run(
        [sys.executable, "-c", AT_EVERY_PLACE], env=two, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    pooled, alone = map(int, run.stdout.split())
    assert pooled > 50
    assert alone > 20


def test_the_first_item_with_an_error_decides():
    def job(i):
        time.sleep(0.02 if i == 1 else 0.0)
        raise KeyError(i) if i > 0 else ValueError(i)

    with mc.options(n_jobs=3):
        for _ in range(5):
            with pytest.raises(KeyError, match=r"^1$"):
                map_threads(lambda i: job(i) if i else 0, range(8))


def test_nothing_is_left_running_after_an_error():
    running = []

    def job(i):
        if i == 0:
            raise KeyError("zero")
        running.append(i)
        time.sleep(0.2)
        running.remove(i)

    with mc.options(n_jobs=2):
        with pytest.raises(KeyError):
            map_threads(job, range(6))
        left = list(running)
    time.sleep(0.3)  # not to disturb the next test
    assert left == []


def test_an_error_in_a_kernel_function_comes_out(rng):
    def broken(X, Y):
        raise ZeroDivisionError("in the kernel")

    with mc.options(n_jobs=2, working_memory=0.1), pytest.raises(ZeroDivisionError, match="kernel"):
        mc.kernels.FromFunction(broken)(rng.normal(size=(600, 2)))


# --- BLAS -----------------------------------------------------------------------------------------


def forget_who_controls_blas() -> None:
    """threadpoolctl >= 3.8 lets only the first thread that set a limit set another one."""
    if hasattr(OpenBLASController, "clear_controlling_thread"):
        OpenBLASController.clear_controlling_thread(force=True)


@pytest.fixture
def blas_before():
    """Two threads for BLAS, so that a limit of one can be seen."""
    forget_who_controls_blas()
    libraries = ThreadpoolController().select(user_api="blas").lib_controllers
    before = [library.num_threads for library in libraries]
    for library in libraries:
        library.set_num_threads(2)
    forget_who_controls_blas()
    yield {2}
    forget_who_controls_blas()
    for library, threads in zip(libraries, before, strict=True):
        library.set_num_threads(threads)
    forget_who_controls_blas()


def test_blas_has_one_thread_under_the_pool_and_its_own_again_after(blas_before):
    with mc.options(n_jobs=2):
        assert map_threads(lambda _: blas_threads(), range(2)) == [{1}, {1}]
    assert blas_threads() == blas_before


def test_the_limit_holds_for_the_blas_of_scipy_that_is_loaded_later():
    code = (
        "from threadpoolctl import ThreadpoolController\n"
        "from mercer._threads import single_threaded_blas\n"
        "with single_threaded_blas():\n"
        "    import scipy.linalg\n"
        "    info = ThreadpoolController().select(user_api='blas').info()\n"
        "    print({one['num_threads'] for one in info})"
    )
    two = os.environ | {"OPENBLAS_NUM_THREADS": "2"}
    run = subprocess.run(
        [sys.executable, "-c", code], env=two, capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "{1}"


def test_the_limit_is_counted(blas_before):
    with single_threaded_blas():
        with single_threaded_blas():
            assert blas_threads() == {1}
        assert blas_threads() == {1}
    assert blas_threads() == blas_before


def test_an_error_gives_blas_its_threads_back(blas_before):
    with mc.options(n_jobs=2), pytest.raises(ZeroDivisionError):
        map_threads(lambda i: 1 / (i - 1), range(4))
    assert blas_threads() == blas_before
    with pytest.raises(KeyError), single_threaded_blas():
        raise KeyError
    assert blas_threads() == blas_before


def test_every_thread_can_hold_blas(blas_before):
    """Not only the first that did."""
    seen = []

    def user():
        with single_threaded_blas():
            seen.append(blas_threads())
        seen.append(blas_threads())

    user()
    thread = threading.Thread(target=user)
    thread.start()
    thread.join()
    user()
    assert seen == [{1}, blas_before] * 3


@pytest.mark.parametrize("first_out", ["first in", "last in"])
def test_two_users_that_overlap(first_out, blas_before):
    """The limit holds until both have left, whoever leaves first, and is lifted then."""
    entered, leave, left, end = (threading.Event() for _ in range(4))

    def user():
        with single_threaded_blas():
            entered.set()
            leave.wait(10)
        left.set()
        end.wait(10)  # the thread lives on, as in a pool

    thread = threading.Thread(target=user)
    thread.start()
    entered.wait(10)
    with single_threaded_blas():
        if first_out == "first in":
            leave.set()
            left.wait(10)
        inside = blas_threads()
    between = blas_threads()
    leave.set()
    left.wait(10)
    after = blas_threads()
    end.set()
    thread.join()
    assert inside == {1}
    assert between == (blas_before if first_out == "first in" else {1})
    assert after == blas_before


# --- processes ------------------------------------------------------------------------------------

FORK = """
import os, warnings
import numpy as np
import mercer as mc
warnings.simplefilter("ignore", DeprecationWarning)  # forking a process with threads, on purpose

X = np.random.default_rng(0).normal(size=(600, 3))
with mc.options(n_jobs=2):
    before = mc.Gaussian()(X)  # the pool has threads now
    child = os.fork()
    if child == 0:
        after = mc.Gaussian()(X)
        os._exit(0 if np.array_equal(before, after) else 3)
    _, status = os.waitpid(child, 0)
    assert np.array_equal(mc.Gaussian()(X), before)  # the parent's pool is as it was
raise SystemExit(os.waitstatus_to_exitcode(status))
"""

FORK_INSIDE = """
import os, threading, warnings
from mercer import options
from mercer._threads import map_threads, single_threaded_blas
warnings.simplefilter("ignore", DeprecationWarning)

held, leave = threading.Event(), threading.Event()

def hold():
    with single_threaded_blas():
        held.set()
        leave.wait(30)

threading.Thread(target=hold, daemon=True).start()
held.wait(30)
child = os.fork()  # while another thread is in the pool's care
if child == 0:
    with options(n_jobs=2):
        done = map_threads(lambda i: i, range(4)) == [0, 1, 2, 3]
    os._exit(0 if done else 3)
_, status = os.waitpid(child, 0)
leave.set()
raise SystemExit(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("code", [FORK, FORK_INSIDE], ids=["idle", "busy"])
def test_a_forked_child_has_a_pool_of_its_own(code):
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert run.returncode == 0, run.stderr


WORKERS = """
import sys
from mercer._threads import map_threads, thread_count

def inside(i):
    import threading
    own = threading.get_ident()
    threads = map_threads(lambda _: threading.get_ident(), range(4))
    return thread_count(), set(threads) == {own}

def main(kind):
    if kind in ("loky", "multiprocessing"):
        import joblib
        with joblib.parallel_config(backend=kind):
            return joblib.Parallel(n_jobs=2)(joblib.delayed(inside)(i) for i in range(4))
    import multiprocessing
    if kind == "executor":
        from concurrent.futures import ProcessPoolExecutor
        with ProcessPoolExecutor(2) as pool:
            return list(pool.map(inside, range(4)))
    with multiprocessing.get_context(kind).Pool(2) as pool:
        return pool.map(inside, range(4))

if __name__ == "__main__":
    print(main(sys.argv[1]))
"""


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "kind", ["loky", "multiprocessing", "executor", *multiprocessing.get_all_start_methods()]
)
def test_worker_processes_use_one_core_each(kind, tmp_path):
    script = tmp_path / "workers.py"
    script.write_text(WORKERS)
    run = subprocess.run(
        [sys.executable, "-W", "ignore", str(script), kind],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == str([(1, True)] * 4)


def test_joblib_threads_share_the_pool(rng):
    X = rng.normal(size=(300, 3))
    calls = (joblib.delayed(mc.Gaussian())(X) for _ in range(4))
    for K in joblib.Parallel(n_jobs=2, backend="threading")(calls):
        np.testing.assert_array_equal(K, mc.Gaussian()(X))


# --- calls that a signal may end ------------------------------------------------------------------


def runs_in(matrix):
    """The thread that a function of this matrix runs in, and an option in force there."""
    return interruptible(lambda _: (threading.current_thread(), mc.get_options().n_jobs), matrix)


def test_long_calls_run_in_a_thread_of_their_own():
    large, small = np.zeros((600, 600)), np.zeros((3, 3))
    assert runs_in(small)[0] is threading.main_thread()
    with mc.options(n_jobs=3):
        thread, n_jobs = runs_in(large)
    assert thread is not threading.main_thread()
    assert n_jobs == 3
    with ThreadPoolExecutor(1) as pool:  # signals never reach other threads
        assert pool.submit(lambda: runs_in(large)[0] is threading.current_thread()).result()


def test_errors_of_long_calls_are_raised():
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        interruptible(np.linalg.cholesky, -np.eye(600))
