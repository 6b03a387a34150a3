"""Options hold inside a block, in one context, and nowhere else."""

import asyncio
import threading
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

import mercer as mc


def test_defaults():
    assert mc.get_options() == mc.Options()
    assert mc.Options().working_memory == 128.0
    assert mc.Options().n_jobs is None


def test_changes_hold_inside_the_block():
    before = mc.get_options()
    with mc.options(n_jobs=1, working_memory=32) as current:
        assert mc.get_options() is current
        assert (current.n_jobs, current.working_memory) == (1, 32)
    assert mc.get_options() == before


def test_blocks_nest_and_keep_what_they_do_not_change():
    with mc.options(n_jobs=1):
        with mc.options(working_memory=16):
            assert mc.get_options() == mc.Options(working_memory=16, n_jobs=1)
        assert mc.get_options() == mc.Options(n_jobs=1)


def test_an_error_ends_the_block():
    with pytest.raises(KeyError), mc.options(n_jobs=1):
        raise KeyError
    assert mc.get_options().n_jobs is None


def test_options_are_a_decorator_too():
    @mc.options(n_jobs=1)
    def inside():
        return mc.get_options().n_jobs

    assert inside() == inside() == 1
    assert mc.get_options().n_jobs is None


def test_other_threads_do_not_see_them():
    seen = []
    with mc.options(n_jobs=1):
        thread = threading.Thread(target=lambda: seen.append(mc.get_options().n_jobs))
        thread.start()
        thread.join()
    assert seen == [None]


def test_other_tasks_do_not_see_them():
    async def task(n_jobs, ready, go):
        with mc.options(n_jobs=n_jobs):
            ready.set()
            await go.wait()
            return mc.get_options().n_jobs

    async def both():
        first, second = asyncio.Event(), asyncio.Event()
        return await asyncio.gather(task(1, first, second), task(2, second, first))

    assert asyncio.run(both()) == [1, 2]


def test_options_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        mc.get_options().n_jobs = 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_jobs": 0}, "n_jobs must be None or a non-zero integer, got 0"),
        ({"n_jobs": 1.0}, "n_jobs must be None or a non-zero integer, got 1.0"),
        ({"n_jobs": True}, "got True"),
        ({"n_jobs": "2"}, "got '2'"),
        ({"working_memory": 0}, "working_memory must be > 0, got 0.0"),
        ({"working_memory": -1}, "working_memory must be > 0"),
        ({"working_memory": np.inf}, "working_memory must be finite"),
        ({"working_memory": "1G"}, "working_memory must be a real number"),
        ({"engine": "fast"}, "engine must be None or one of .*, got 'fast'"),
        ({"tolerance": -1e-3}, "tolerance must be >= 0, got -0.001"),
        ({"memory": 5}, "unknown option 'memory'; the options are working_memory, n_jobs"),
    ],
)
def test_what_is_no_option(changes, message):
    before = mc.get_options()
    with pytest.raises(mc.InputError, match=message), mc.options(**changes):
        pass
    assert mc.get_options() == before


def test_numpy_integers_are_integers():
    with mc.options(n_jobs=np.int64(2)):
        assert mc.get_options().n_jobs == 2
