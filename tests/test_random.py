"""Randomness: every kind of `random_state`, converted in one place."""

import numpy as np
import pytest

import mercer as mc
from mercer._random import as_generator


def draw(random_state):
    return as_generator(random_state).random(5)


@pytest.mark.parametrize("seed", [0, 7, 2**40, np.int64(3), np.uint8(9)])
def test_equal_seeds_give_equal_numbers(seed):
    np.testing.assert_array_equal(draw(seed), draw(seed))
    np.testing.assert_array_equal(draw(seed), np.random.default_rng(int(seed)).random(5))


def test_different_seeds_give_different_numbers():
    assert not np.array_equal(draw(1), draw(2))


def test_a_generator_is_used_as_it_is():
    rng = np.random.default_rng(5)
    assert as_generator(rng) is rng
    assert not np.array_equal(draw(rng), draw(rng))


def test_none_is_fresh_each_time():
    assert not np.array_equal(draw(None), draw(None))


def test_a_random_state_gives_a_reproducible_sequence_of_streams():
    first, second = np.random.RandomState(3), np.random.RandomState(3)
    streams = [draw(first), draw(first)]
    np.testing.assert_array_equal(streams, [draw(second), draw(second)])
    assert not np.array_equal(*streams)


def test_the_global_state_is_left_alone():
    np.random.seed(0)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    draw(0), draw(None)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


@pytest.mark.parametrize("wrong", [-1, 1.0, "0", True, [1, 2], np.random.SeedSequence(1)], ids=str)
def test_what_is_no_random_state(wrong):
    with pytest.raises(mc.InputError, match="random_state must be None, an integer >= 0"):
        as_generator(wrong)
