"""Kernels on sequences: spectrum and gap-weighted subsequences, by every way they are computed."""

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.feature_extraction.text import CountVectorizer

import mercer as mc
from mercer import linalg
from mercer.engine._compiled import core
from mercer.engine.pairs import _subsequences
from mercer.kernels.structured._strings import Spectrum, Subsequences
from mercer.testing import check_element, check_kernel, check_subspace

WORDS = [
    "mercer",
    "kernel",
    "space",
    "moore",
    "aronszajn",
    "hilbert",
    "mercer",
    "ac",
    "",
    "reckoner",
]
KERNELS = [Spectrum(1), Spectrum(3), Subsequences(1), Subsequences(2, 0.8), Subsequences(3)]
WAYS = [
    pytest.param(None, True, id="native-features"),
    pytest.param(None, False, id="native-pairs"),
    pytest.param("blocked", False, id="blocked"),
]


def parts(s, p):
    return Counter(tuple(s[i : i + p]) for i in range(len(s) - p + 1))


def weights(s, p, d):
    """phi_u by listing all places."""
    out = Counter()
    for places in itertools.combinations(range(len(s)), p):
        out[tuple(s[i] for i in places)] += d ** (places[-1] - places[0] + 1)
    return out


def naive(feature, X, Y):
    X, Y = [feature(s) for s in X], [feature(t) for t in Y]
    return np.array([[float(sum(v * b[u] for u, v in a.items())) for b in Y] for a in X])


def random_strings(rng, n, alphabet, longest, shortest=0):
    lengths = rng.integers(shortest, longest + 1, n)
    return ["".join(rng.choice(list(alphabet), size=k)) for k in lengths]


# --- values ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("engine", "by_features"), WAYS)
@pytest.mark.parametrize("p", [1, 2, 3, 4, 6, 9])
@pytest.mark.parametrize("decay", [1.0, 0.5, 1e-3])
def test_subsequences_are_those_that_a_list_shows(rng, monkeypatch, engine, by_features, p, decay):
    X = random_strings(rng, 9, "abc", 10)
    Y = [*random_strings(rng, 10, "bcd", 10), "z", "abcabcabcab"]
    k, feature = Subsequences(p, decay), lambda s: weights(s, p, decay)
    monkeypatch.setattr(_subsequences, "_features_are_faster", lambda *_: by_features)
    with mc.options(engine=engine):
        assert_allclose(k(X, Y), naive(feature, X, Y), rtol=1e-12, atol=0)
        assert_allclose(k.diag(Y), np.diag(naive(feature, Y, Y)), rtol=1e-12, atol=0)


def test_features_in_parts(rng, monkeypatch):
    """Little memory: one prefix at a time."""
    X, Y = random_strings(rng, 9, "abcde", 12), random_strings(rng, 11, "abcde", 12)
    k = Subsequences(4, 0.7)
    monkeypatch.setattr(_subsequences, "_features_are_faster", lambda *_: True)
    expected = naive(lambda s: weights(s, 4, 0.7), X, Y)
    for memory in (128, 0.1, 0.01, 0.001):
        with mc.options(working_memory=memory):
            assert_allclose(k(X, Y), expected, rtol=1e-12, atol=0)


def test_beginnings_are_all_features_once():
    for room in (100.0, 1.0, 0.1, 0.02, 0.001):
        with mc.options(working_memory=room, n_jobs=1):
            begins = list(_subsequences._beginnings(5, 3, 300))
        firsts = Counter((*prefix, c) for prefix, r in begins for c in range(r.start, r.stop))
        assert set(firsts.values()) == {1}
        depth = {len(f) for f in firsts}.pop()
        assert len(firsts) == 5**depth
    assert depth == 3


@pytest.mark.parametrize("decay", [0.9, 0.3, 1e-11])
@pytest.mark.parametrize("p", [2, 3, 7])
def test_ways_agree_on_long_strings(rng, decay, p):
    """Longer than scaled sums can be: the core starts its scale again, SciPy its strips."""
    X, Y = random_strings(rng, 3, "ab", 700), random_strings(rng, 9, "ab", 700, 600)
    x, y = (_subsequences.Letters(*_letters(Z), 2) for Z in (X, Y))
    with mc.options(engine="blocked"):
        expected = _subsequences._by_pairs(x, y, p, decay)
    ways = [_subsequences._by_pairs] + ([_subsequences._by_features] if core() else [])
    for way in ways:
        assert_allclose(way(x, y, p, decay), expected, rtol=1e-11, atol=0)


def _letters(strings):
    letters = np.frombuffer("".join(strings).encode(), np.uint8).astype(np.int32) - ord("a")
    return letters, np.concatenate([[0], np.cumsum([len(s) for s in strings])])


@pytest.mark.skipif(core() is None, reason="needs the compiled core")
def test_every_instruction_set_agrees(rng, monkeypatch):
    X = random_strings(rng, 37, "abcdef", 60)
    for p, by_features in itertools.product((1, 2, 3, 4, 5, 6, 8), (True, False)):
        monkeypatch.setattr(_subsequences, "_features_are_faster", lambda *_, by=by_features: by)
        if 6**p > 10_000 and by_features:
            continue
        k, found = Subsequences(p, 0.6), []
        for isa in core().instruction_sets():
            monkeypatch.setenv("MERCER_ISA", isa)
            found.append((k(X[:9], X), k.diag(X)))
        for K, diagonal in found:
            assert_allclose(K, found[0][0], rtol=1e-12, atol=0)
            assert_allclose(diagonal, found[0][1], rtol=1e-12, atol=0)


def test_tiny_decay_and_great_length():
    """Beyond what the core takes SciPy answers: gaps hardly count, only contiguous parts do."""
    X = ["abcab", "xabcx", "cab"]
    tiny = Subsequences(3, 1e-20)
    assert_allclose(tiny(X) / 1e-120, Spectrum(3)(X), rtol=1e-12)
    s = "ab" * 17
    assert_allclose(Subsequences(34, 0.5)([s]), [[0.5**68]], rtol=1e-12)
    assert Subsequences(35, 0.5)([s]) == 0.0


def test_many_letters_are_compared_in_pairs(rng):
    """A vocabulary of words: no table of all features."""
    docs = [[f"w{i}" for i in rng.integers(0, 50, 30)] for _ in range(12)]
    assert_allclose(
        Subsequences(3, 0.5)(docs), naive(lambda s: weights(s, 3, 0.5), docs, docs), rtol=1e-12
    )
    assert not _subsequences._features_are_faster(*_sizes(12, 30, 5000), 3)
    assert _subsequences._features_are_faster(*_sizes(256, 200, 4), 3)


def _sizes(count, length, alphabet):
    one = _subsequences.Letters(
        np.zeros(count * length, np.int32), np.arange(count + 1) * length, alphabet
    )
    return one, one


@pytest.mark.parametrize("p", [1, 2, 3, 5, 20])
@pytest.mark.parametrize("alphabet", ["ab", "abcdefghijklmnopqrstuvwxyz", "aβ中😀"])
def test_spectrum_counts_parts(rng, p, alphabet):
    X, Y = random_strings(rng, 15, alphabet, 60), random_strings(rng, 12, alphabet + "!", 60)
    k = Spectrum(p)
    assert np.array_equal(k(X, Y), naive(lambda s: parts(s, p), X, Y))
    assert np.array_equal(k.diag(X), np.diag(k(X)))


def test_spectrum_of_repetitive_strings():
    """Few parts that occur often, many parts that occur once, and both together."""
    X = ["a" * 300, "ab" * 150, "".join(chr(40 + i) for i in range(300)), "b" * 200 + "a" * 99]
    for p in (1, 2, 4, 15):
        assert np.array_equal(Spectrum(p)(X), naive(lambda s, p=p: parts(s, p), X, X))


def test_spectrum_is_that_of_scikit_learn(rng):
    X = random_strings(rng, 40, "abcdefgh ", 80, 5)
    counter = CountVectorizer(analyzer="char", ngram_range=(4, 4), lowercase=False, dtype=float)
    # its analyzer puts runs of spaces together, so there are none here
    X = [" ".join(s.split()) for s in X]
    C = counter.fit_transform(X)
    assert np.array_equal(Spectrum(4)(X), (C @ C.T).toarray())


def test_subsequences_are_those_of_another_library():
    """A matrix printed in the documentation of strkernels: all lengths up to 3, normalised."""
    printed = [
        [1.0, 0.74037191, 0.91640867, 0.79256966],
        [0.74037191, 1.0, 0.68420576, 0.65356968],
        [0.91640867, 0.68420576, 1.0, 0.84210526],
        [0.79256966, 0.65356968, 0.84210526, 1.0],
    ]
    k = mc.kernels.Normalised(Subsequences(1) + Subsequences(2) + Subsequences(3))
    assert_allclose(k(["ATCG", "ATGG", "TACG", "GCTA"]), printed, atol=5e-9)


@given(
    st.lists(st.text("abé", max_size=8), min_size=1, max_size=6),
    st.lists(st.text("béc", max_size=8), min_size=1, max_size=6),
    st.integers(1, 5),
    st.floats(0.01, 1.0),
)
def test_any_strings(X, Y, p, decay):
    k = Subsequences(p, decay)
    assert_allclose(k(X, Y), naive(lambda s: weights(s, p, decay), X, Y), rtol=1e-12, atol=0)
    assert np.array_equal(Spectrum(p)(X, Y), naive(lambda s: parts(s, p), X, Y))
    assert np.array_equal(k(X), k(X).T)
    assert_allclose(k.diag(X), np.diag(k(X)), rtol=1e-12, atol=0)


@given(st.lists(st.lists(st.integers(-3, 3), max_size=8), min_size=1, max_size=6))
def test_any_tokens(X):
    for p in (1, 2, 3):
        assert np.array_equal(Spectrum(p)(X), naive(lambda s, p=p: parts(s, p), X, X))
        expected = naive(lambda s, p=p: weights(s, p, 0.5), X, X)
        assert_allclose(Subsequences(p)(X), expected, rtol=1e-12, atol=0)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_many_tiles(rng, kernel):
    """More strings than a tile: the matrix is that of its parts, and exactly symmetric."""
    X = random_strings(rng, 700, "abcd", 12)
    K = kernel(X)
    assert np.array_equal(K, K.T)
    some = [0, 255, 256, 511, 512, 699]
    assert_allclose(K[some], kernel([X[i] for i in some], X), rtol=1e-13, atol=0)
    assert_allclose(kernel.diag(X), np.diag(K), rtol=1e-13, atol=0)
    with mc.options(n_jobs=1, working_memory=1):
        assert_allclose(kernel(X), K, rtol=1e-13, atol=0)


# --- conformance ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_conformance(kernel):
    check_kernel(kernel, WORDS)
    check_kernel(kernel, [[*w, 1, None] for w in WORDS])
    check_kernel(2.0 * kernel + kernel * Spectrum(1), WORDS)
    with mc.options(engine="blocked"):
        check_kernel(kernel, WORDS)


def test_conformance_of_normalised():
    long_enough = [w for w in WORDS if len(w) >= 3]
    check_kernel(mc.kernels.Normalised(Subsequences(3)), long_enough)
    check_kernel(mc.kernels.Normalised(Spectrum(3)), long_enough)
    K = mc.kernels.Normalised(Subsequences(3))(long_enough)
    assert_allclose(np.diag(K), 1.0, rtol=1e-14)
    assert K.max() <= 1.0 + 1e-14


def test_strings_too_short_to_be_normalised():
    with pytest.raises(mc.exceptions.DomainError, match=r"k\(x, x\) = 0.0 \(row 1\)"):
        mc.kernels.Normalised(Subsequences(3))(["abc", "ab"])
    assert mc.kernels.Normalised(Subsequences(3) + 1.0)(["abc", "ab"])[0, 1] > 0


def test_parameters_are_checked():
    for bad in (0, 2.0, True, "3"):
        with pytest.raises(mc.InputError, match="length must be an integer >= 1"):
            Spectrum(bad)
        with pytest.raises(mc.InputError, match="length must be an integer >= 1"):
            Subsequences(bad)
    for bad, message in ((0.0, "> 0"), (-1, "> 0"), (1.5, "<= 1"), (np.nan, "finite")):
        with pytest.raises(mc.InputError, match=f"decay must be {message}"):
            Subsequences(3, bad)
    assert Subsequences(np.int64(2), 1).decay == 1.0


def test_derivatives_and_maps_are_refused():
    with pytest.raises(mc.exceptions.DerivativeError):
        Spectrum(2).gradient(WORDS)
    with pytest.raises(mc.InputError, match="not vectors"):
        Spectrum(2).transform(mc.Columns([0]))
    with pytest.raises(mc.exceptions.DomainError, match="their points differ"):
        Spectrum(2) + mc.Gaussian(1.0)


@pytest.mark.skipif(core() is None, reason="needs the compiled core")
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"start": np.array([1, 3])}, "must start at 0"),
        ({"start": np.array([0, 4, 3])}, "must not fall"),
        ({"start": np.array([0, 2])}, "must end at the end"),
        ({"letters": np.array([0, 1, 7], np.int32)}, "no such letter"),
        ({"prefix": np.array([9], np.int32)}, "no such letter"),
        ({"prefix": np.array([0, 0], np.int32)}, "no features"),
        ({"last": 3}, "no features"),
        ({"length": 0}, "no such length"),
        ({"length": 33}, "no such length"),
        ({"decay": 1.5}, "no such decay"),
        ({"decay": float("nan")}, "no such decay"),
        ({"out": np.empty((1, 3))}, "output shape"),
        ({"out": np.empty((2, 4))}, "output shape"),
    ],
)
def test_the_border_of_the_core(change, message):
    given = {
        "letters": np.array([0, 1, 1], np.int32),
        "start": np.array([0, 3]),
        "alphabet": 2,
        "length": 2,
        "prefix": np.array([], np.int32),
        "first": 0,
        "last": 2,
        "decay": 0.5,
        "out": np.empty((1, 4)),
        "isa": "",
    }
    core().subsequence_features(*given.values())
    assert_allclose(given["out"], [[0.0, 0.0, 0.25 + 0.125, 0.25]])
    with pytest.raises(ValueError, match=message):
        core().subsequence_features(*(given | change).values())
    if "letter" not in message and "features" not in message and "output" not in message:
        case = given | change
        of = case["letters"], case["start"]
        rest = case["length"], case["decay"]
        with pytest.raises(ValueError, match=message):
            core().subsequence_pairs(*of, *of, *rest, np.empty((1, 1)), "")
        with pytest.raises(ValueError, match=message):
            core().subsequence_diagonal(*of, *rest, np.empty(1), "")
    of = given["letters"], given["start"]
    with pytest.raises(ValueError, match="output shape"):
        core().subsequence_pairs(*of, *of, 2, 0.5, np.empty((1, 2)), "")
    with pytest.raises(ValueError, match="output shape"):
        core().subsequence_diagonal(*of, 2, 0.5, np.empty(2), "")


# --- what is built on kernels ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "kernel", [Spectrum(2), mc.kernels.Normalised(Subsequences(2, 0.7))], ids=repr
)
def test_elements_and_subspaces(rng, kernel):
    X = WORDS[:8]
    psi = mc.Element(kernel, X, rng.normal(size=(8, 2)))
    check_element(psi)
    check_element(mc.feature(kernel, [list(s) for s in X]))
    assert len(psi.merge().points) == 7
    plane = mc.Subspace.span(mc.mean_embedding(kernel, X), mc.feature(kernel, X[:3]))
    check_subspace(plane, mc.feature(kernel, X))


def test_linear_algebra(rng):
    X = random_strings(rng, 60, "abc", 20, 4)
    k = mc.kernels.Normalised(Subsequences(3, 0.6))
    K, V = k(X), rng.normal(size=(60, 3))
    assert_allclose(linalg.GramOperator(k, X) @ V, K @ V, rtol=1e-11, atol=1e-12)
    values = np.linalg.eigvalsh(K)[::-1][:5]
    for method in ("dense", "krylov"):
        pairs = linalg.eigenpairs(k, X, 5, method=method, random_state=0)
        assert_allclose(pairs.values, values, rtol=1e-8)
    L = linalg.pivoted_cholesky(k, X, tol=1e-12).factor
    assert_allclose(L @ L.T, K, atol=1e-6)
    low = linalg.nystrom(k, X, 60, rule="leverage", random_state=0)
    assert_allclose(low.map(X[:5]) @ low.factor.T, K[:5], atol=1e-6)
    assert set(low.landmarks) <= set(X)


def test_kernel_principal_components_of_strings(rng):
    """Two families of noisy strings; the pre-image of a projected string is of its family."""
    seeds = ["abcabcabcabcabc", "zyxwzyxwzyxwzyx"]

    def noisy(seed):
        letters = np.array(list(seed))
        letters[rng.integers(0, len(seed))] = rng.choice(list("abcxyz"))
        return "".join(letters)

    X = [noisy(seeds[i % 2]) for i in range(40)]
    k = mc.kernels.Normalised(Subsequences(3, 0.5))
    mean = mc.mean_embedding(k, X)
    pairs = linalg.eigenpairs(k, X, 2, centred=True)
    A = pairs.vectors / np.sqrt(pairs.values)
    plane = mc.Subspace(mean, mc.Element(k, X, A - A.mean(axis=0)))
    assert_allclose(plane.directions.inner(plane.directions), np.eye(2), atol=1e-10)
    new = [noisy(s) for s in seeds]
    shadow = plane.project(mc.feature(k, new))
    result = mc.preimage(shadow, mc.Candidates([*X, *seeds]))
    assert [set(p) & set("abc") > set(p) & set("xyzw") for p in result.points] == [True, False]
    distances = [shadow.distance(mc.feature(k, [c] * 2)) for c in [*X, *seeds]]
    assert_allclose(result.distance, np.min(distances, axis=0), rtol=1e-9)
    assert np.all(plane.distance(mc.feature(k, new)) < 1.0)


@pytest.mark.parametrize("length", [1, 2, 3, 7, 20, 41])
def test_long_parts_of_a_large_alphabet(length, rng):
    """Numbers of parts would overflow; equal parts are found all the same."""
    tokens = rng.integers(0, 10**6, 60).tolist()
    k = Spectrum(length)
    s, t = tokens + tokens[:50], tokens[5:55]
    parts = [tuple(s[i : i + length]) for i in range(len(s) - length + 1)]
    others = [tuple(t[i : i + length]) for i in range(len(t) - length + 1)]
    assert k([s], [t])[0, 0] == sum(a == b for a in parts for b in others)


def test_parts_longer_than_any_sequence_cost_nothing():
    words = ["banana", "ananas"]
    for length in (7, 10**7, 2**53):
        assert np.array_equal(Spectrum(length)(words), np.zeros((2, 2)))
        assert np.array_equal(Spectrum(length).diag(words), np.zeros(2))
        assert np.array_equal(Subsequences(length)(words), np.zeros((2, 2)))
        assert np.array_equal(Subsequences(length).diag(words), np.zeros(2))


def test_spectrum_of_very_long_parts(rng, monkeypatch):
    """The number of steps is that of the binary digits of the length, not the length."""
    calls, unique = [], np.unique
    monkeypatch.setattr(np, "unique", lambda *a, **k: calls.append(1) or unique(*a, **k))
    text = "".join(rng.choice(list("abcd"), 30_000))
    assert Spectrum(20_000)([text, text[1:]])[0].tolist() == [10_001.0, 10_000.0]
    assert len(calls) < 100
