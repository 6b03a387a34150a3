"""clustering_accuracy: brute force over matchings, SciPy's interval, orphans, refusals."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.stats import binomtest

import mercer as mc
from mercer.methods.modes._clustering_accuracy import clustering_accuracy

few = st.lists(st.tuples(st.integers(0, 3), st.integers(-1, 3)), min_size=1, max_size=30)


def brute(truth, labels):
    """The best of all injective maps from labels (without -1) to classes, by trying them."""
    clusters = sorted(set(labels) - {-1})
    classes = [*sorted(set(truth)), *["none"] * len(clusters)]
    return max(
        sum(
            dict(zip(clusters, p, strict=False)).get(b) == a
            for a, b in zip(truth, labels, strict=True)
        )
        for p in set(itertools.permutations(classes, len(clusters)))
    )


@given(few)
def test_best_of_all_matchings(pairs):
    truth, labels = (list(x) for x in zip(*pairs, strict=True))
    found = clustering_accuracy(truth, labels)
    assert found.correct == brute(truth, labels)
    assert found.total == len(truth)
    assert float(found) == found.accuracy == found.correct / found.total
    assert -1 not in [label for label, _ in found.matching]
    matched = dict(found.matching)
    again = sum(b in matched and matched[b] == a for a, b in pairs)
    assert again == found.correct


@given(st.integers(1, 400), st.data(), st.sampled_from([0.5, 0.9, 0.95, 0.999]))
def test_interval_is_that_of_scipy(total, data, confidence):
    correct = data.draw(st.integers(0, total))
    truth, labels = np.zeros(total, int), np.where(np.arange(total) < correct, 0, -1)
    found = clustering_accuracy(truth, labels, confidence=confidence)
    peer = binomtest(correct, total).proportion_ci(confidence, method="exact")
    assert_allclose(found.interval, (peer.low, peer.high), rtol=1e-9, atol=1e-12)


def test_labels_may_be_renamed(rng):
    truth = rng.integers(3, size=100)
    names = np.array(["setosa", "virginica", "versicolor"])
    found = clustering_accuracy(names[truth], 10 * truth + 7)
    assert found.correct == 100
    assert found.interval[1] == 1.0
    assert dict(found.matching) == {7: "setosa", 17: "virginica", 27: "versicolor"}
    assert clustering_accuracy(names[truth].astype(object), truth).correct == 100


def test_more_clusters_than_classes_and_the_reverse():
    assert clustering_accuracy([0] * 6, [0, 0, 0, 1, 1, 2]).correct == 3
    assert clustering_accuracy([0, 0, 0, 1, 1, 2], [4] * 6).correct == 3


def test_orphans_match_nothing_but_classes_may_be_called_minus_one():
    found = clustering_accuracy([-1, -1, 0], [-1, -1, -1])
    assert found.correct == 0
    assert found.interval[0] == 0.0
    assert found.matching == ()
    assert clustering_accuracy([-1, -1, 0], [5, 5, 6]).correct == 3


@pytest.mark.parametrize(
    ("truth", "labels", "match"),
    [
        ([], [], "at least one"),
        ([0, 1], [0], "2 entries"),
        ([[0], [1]], [0, 1], "vector"),
        ([0.0, np.nan], [0, 1], "finite"),
        (np.array([0, "a"], dtype=object), [0, 1], "numbers or strings"),
    ],
)
def test_refusals(truth, labels, match):
    with pytest.raises(mc.InputError, match=match):
        clustering_accuracy(truth, labels)


@pytest.mark.parametrize("confidence", [0.0, 1.0, -1.0, np.nan, "much"])
def test_confidence_is_a_share(confidence):
    with pytest.raises(mc.InputError, match="confidence"):
        clustering_accuracy([0], [0], confidence=confidence)
