"""Random generators from the parameter `random_state`."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.exceptions import InputError


def as_generator(random_state: Any) -> np.random.Generator:
    """Return a Generator for None (fresh entropy), an int seed, a Generator or a RandomState.

    A RandomState is drawn from once to seed the generator, so a sequence of calls with the same
    RandomState gives a reproducible sequence of different streams.
    """
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(0, 2**32, size=4, dtype=np.uint32))
    is_seed = isinstance(random_state, int | np.integer) and not isinstance(random_state, bool)
    if random_state is None or (is_seed and random_state >= 0):
        return np.random.default_rng(random_state)
    raise InputError(
        "random_state must be None, an integer >= 0, a numpy Generator or a RandomState, "
        f"got {random_state!r}"
    )
