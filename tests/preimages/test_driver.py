"""The driver: rows retire on their own, callbacks stop all, paths and states are in order."""

import numpy as np
import pytest

from mercer import Status
from mercer.preimages._driver import Search, State, Stop, row_norms, smallest_subgradients, walk


class Halving(Search):
    """x <- x / 2 until |x| < 1, or |x| > 100, which is hopeless; remembers its rows."""

    max_iter = 6

    def __init__(self, count: int) -> None:
        self.memory = np.arange(count)

    def at(self, points, rows):
        value = np.einsum("ij,ij->i", points, points)
        return State(points, value, 2.0 * points, shift=np.zeros(len(points)))

    def step(self, state, rows):
        np.testing.assert_array_equal(self.memory, rows)
        return self.at(state.points / 2.0, rows)

    def stop(self, state, rows, iteration):
        size = np.abs(state.points[:, 0])
        return Stop(size, [(Status.CONVERGED, size < 1.0), (Status.ESCAPED, size > 100.0)])

    def keep(self, going):
        self.memory = self.memory[going]


STARTS = np.array([[3.0], [0.5], [200.0], [90.0], [7.0]])


def test_rows_end_on_their_own_and_in_order():
    found = walk(Halving(5), STARTS)
    names = [s.name for s in found.status]
    assert names == ["CONVERGED", "CONVERGED", "ESCAPED", "MAX_ITER", "CONVERGED"]
    np.testing.assert_array_equal(found.n_iter, [2, 0, 0, 6, 3])
    np.testing.assert_allclose(found.state.points[:, 0], [0.75, 0.5, 200.0, 90.0 / 64, 0.875])
    np.testing.assert_allclose(found.state.value, found.state.points[:, 0] ** 2)
    np.testing.assert_array_equal(STARTS[:, 0], [3.0, 0.5, 200.0, 90.0, 7.0])


def test_callbacks_hear_of_the_rows_that_go_on_and_stop_them():
    steps = []

    def stop_after_two(step):
        steps.append((step.n_iter, step.residual))
        return step.n_iter == 2

    found = walk(Halving(5), STARTS, callback=stop_after_two)
    assert steps == [(0, 90.0), (1, 45.0), (2, 22.5)]
    names = [s.name for s in found.status]
    assert names == ["CONVERGED", "CONVERGED", "ESCAPED", "STOPPED", "STOPPED"]
    np.testing.assert_array_equal(found.n_iter, [2, 0, 0, 2, 2])


def test_paths_are_kept_on_request():
    assert walk(Halving(5), STARTS).path == []
    path = walk(Halving(5), STARTS, record=True).path
    assert [rows.tolist() for rows, *_ in path[:3]] == [[0, 1, 2, 3, 4], [0, 3, 4], [0, 3, 4]]
    np.testing.assert_array_equal(path[1][1][:, 0], [1.5, 45.0, 3.5])


@pytest.mark.parametrize("size", [1e-300, 1e-160, 1.0, 1e160, 1e300])
def test_norms_of_rows_neither_underflow_nor_overflow(size):
    rows = np.array([[3.0, 4.0], [0.0, 0.0], [0.0, -1.0]]) * size
    np.testing.assert_allclose(row_norms(rows), np.array([5.0, 0.0, 1.0]) * size, rtol=1e-14)


def test_subgradients_at_cusps():
    """The smallest of rest + pull * (unit ball), by a search over the ball."""
    rng = np.random.default_rng(0)
    rest, pull = rng.normal(size=(5, 2)), np.array([0.0, 0.3, 0.7, 5.0, 1.0])
    angle = np.linspace(0.0, 2.0 * np.pi, 2000)
    circle = np.column_stack([np.cos(angle), np.sin(angle)])
    found = smallest_subgradients(rest, np.linalg.norm(rest, axis=1), pull)
    for r, p, g in zip(rest, pull, found, strict=True):
        ball = r + p * (np.linspace(0.0, 1.0, 200)[:, None, None] * circle).reshape(-1, 2)
        best = np.linalg.norm(ball, axis=1).min()
        np.testing.assert_allclose(np.linalg.norm(g), best, atol=1e-2)
