"""Points that are sequences or sets: what is taken as one, and what is refused."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import mercer as mc
from mercer.kernels.structured._domains import Sequences, Sets
from mercer.kernels.structured._strings import Spectrum, Subsequences

KERNELS = [Spectrum(1), Spectrum(3), Subsequences(1), Subsequences(2, 0.8), Subsequences(3)]


def test_kinds_of_sequences_and_of_lists():
    pandas = pytest.importorskip("pandas")
    X = ["abca", "bc", "aab"]
    for k in KERNELS:
        K = k(X)
        kinds = [
            tuple(X),
            np.array(X),
            np.array(X, dtype=object),
            pandas.Series(X, index=[5, 7, 9]),
            [list(s) for s in X],
            [tuple(s) for s in X],
            ["abca", ("b", "c"), ["a", "a", "b"]],
            [np.array(list(s)) for s in X],
            [s.encode() for s in X],
            [list(s.encode()) for s in X],
            np.array([s.encode() for s in X]),
            [[("one", "two", "three")["abc".index(c)] for c in s] for s in X],
        ]
        for same in kinds:
            assert_allclose(k(same), K, rtol=1e-14)
    assert np.array_equal(Spectrum(1)(X, [s.encode() for s in X]), np.zeros((3, 3)))


def test_points_are_kept_as_they_are():
    X = np.array(["ab", ("a", 1), b"x"], dtype=object)
    points = Sequences().check(X, "X")
    assert np.shares_memory(points, X)
    assert not points.flags.writeable
    assert Sequences().check([["a", 1]], "X")[0] == ("a", 1)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ("word", r"X must be a list of points, got a str; use \[X\]"),
        (b"word", r"got a bytes; use \[X\]"),
        (3, "got int"),
        ({"a", "b"}, "got set"),
        ({"a": 1}, "got dict"),
        ((s for s in "ab"), "got generator"),
        ([], "X has no points"),
        (np.array([["a", "b"]]), r"array of shape \(1, 2\); use list\(X\)"),
        (["a", None], "X at position 1 has no sequence but None; drop"),
        (["a", float("nan")], "X at position 1 has no sequence but nan"),
        (["a", 3], r"X at position 1 is int \(3\), not a sequence"),
        (["a", {"b"}], "X at position 1 is a set, which has no order"),
        (["a", {"b": 1}], "X at position 1 is a dict, which has no order"),
        (["a", ["b", ["c"]]], r"position 1 has tokens that cannot be compared \(\['c'\]\); use"),
        (["a", ["b", (1, [2])]], r"position 1 has tokens that cannot be compared \(\(1, \[2\]\)\)"),
        (["a", [1.0, float("nan")]], r"tokens that cannot be compared \(nan\); drop it"),
    ],
)
def test_what_is_not_a_sequence_is_refused(X, message):
    with pytest.raises(mc.InputError, match=message):
        Spectrum(2)(X)


def test_frames_and_missing_values_are_refused():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"text": ["ab", None]})
    with pytest.raises(mc.exceptions.DomainError, match="got a table; use one of its columns"):
        Spectrum(2)(frame)
    with pytest.raises(mc.exceptions.DomainError, match="X at position 1 has no sequence"):
        Spectrum(2)(frame["text"])
    with pytest.raises(mc.exceptions.DomainError, match="X at position 0 has no sequence"):
        Spectrum(2)([pandas.NA, "a"])


def test_lone_surrogates_and_zeros_are_letters():
    X = ["a\ud800b", "\x00\x00", "\ud800b"]
    assert np.array_equal(Spectrum(2)(X), [[2, 0, 1], [0, 1, 0], [1, 0, 1]])


# --- sets -----------------------------------------------------------------------------------------


def test_kinds_of_sets():
    expected = [frozenset({1, 2}), frozenset({2}), frozenset()]
    kinds = [
        [{1, 2}, {2}, set()],
        [[1, 2, 1], (2, 2), []],
        [np.array([1, 2]), np.array([2]), np.array([], int)],
        [range(1, 3), iter([2]), {}.keys()],
        [(i for i in (1, 2)), frozenset({2}), frozenset()],
    ]
    for X in kinds:
        points = Sets().check(X, "X")
        assert points.shape == (3,)
        assert points.dtype == object
        assert list(points) == expected
    again = Sets().check(points, "X")
    assert np.shares_memory(again, points)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ("word", r"X must be a list of points, got a str; use \[X\]"),
        ({1, 2}, "got set"),
        ([], "X has no points"),
        (np.eye(2), r"array of shape \(2, 2\); use list\(X\)"),
        ([{1}, "ab"], r"X at position 1 is the str 'ab'; use \{x\} for a set of one element"),
        ([{1}, b"ab"], "X at position 1 is the bytes b'ab'"),
        ([{1}, {1: 2}], r"X at position 1 is a dict; use set\(x\) for its keys"),
        ([{1}, None], "X at position 1 has no set but None; drop"),
        ([{1}, float("nan")], "X at position 1 has no set but nan"),
        ([{1}, 3], r"X at position 1 is int \(3\), not a set"),
        ([{1}, np.eye(2)], "X at position 1 is an array of several dimensions, not a set"),
        ([{1}, [1, [2]]], r"X at position 1 has elements that cannot be compared \(\[2\]\)"),
        ([{1}, {1.0, float("nan")}], r"elements that cannot be compared \(nan\); drop it"),
    ],
)
def test_what_is_not_a_set_is_refused(X, message):
    with pytest.raises(mc.InputError, match=message):
        Sets().check(X, "X")


def test_sequences_are_not_sets():
    assert Sequences() != Sets()
    with pytest.raises(mc.exceptions.DomainError, match="their points differ"):
        Sequences().meet(Sets())
    with pytest.raises(mc.exceptions.DomainError, match="their points differ"):
        Sets().meet(mc.kernels.Objects())
