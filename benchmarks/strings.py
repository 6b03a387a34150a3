"""Gram matrices of strings: the spectrum and the gap-weighted subsequence kernel."""

from __future__ import annotations

import importlib.util
from typing import Any
from unittest import mock

import numpy as np

import mercer
from benchmarks._harness import Array, Contender, Key, Race, Settings, race
from benchmarks._peers import Peer
from benchmarks._report import Bar, Outcome, at_least, at_most
from mercer.engine.pairs import _subsequences as _sequences
from mercer.kernels.structured._strings import Spectrum, Subsequences

TITLE = "Strings: spectrum and gap-weighted subsequence kernels"

COUNT, LENGTH, P, DECAY = 2_000, 200, 3, 0.5
FEW = 40  # strings for libraries that take milliseconds per pair
SECONDS, BY_PAIRS = "seconds", "seconds by pairs"
FASTER = "times faster than scikit-learn's counts"
ALPHABETS: dict[str, tuple[str, dict[str, Bar]]] = {
    "DNA": ("ACGT", {SECONDS: at_most(0.5), BY_PAIRS: at_most(12)}),
    "proteins": ("ACDEFGHIKLMNPQRSTVWY", {SECONDS: at_most(3), BY_PAIRS: at_most(12)}),
    "text": ("abcdefghijklmnopqrstuvwxyz .,'", {SECONDS: at_most(6), BY_PAIRS: at_most(12)}),
}


def run(settings: Settings) -> Outcome:
    """Per alphabet one race of many strings, and one of few beside slower libraries."""
    outcome = Outcome(TITLE)
    if importlib.util.find_spec("strkernels") is None:
        outcome.notes.append("strkernels is not installed and was left out")
    for name, (letters, bars) in ALPHABETS.items():
        X = _strings(letters, settings.size(COUNT, 100))
        label = f"{name}, {len(X)} strings of {LENGTH}"
        raced = _race(label, _subsequences(X), settings, outcome)
        times = {key.name: timing.minimum for key, timing in raced.timings.items()}
        figures = {SECONDS: times["mercer"], BY_PAIRS: times["mercer, by pairs"]}
        outcome.add_figures(f"subsequences, {label}", figures, bars)
        raced = _race(f"spectrum, {label}", _spectra(X), settings, outcome)
        ours, theirs = Key(f"spectrum, {label}", "mercer"), Key(f"spectrum, {label}", "sklearn")
        faster = {FASTER: raced.ratio(theirs, ours)}
        outcome.add_figures(f"spectrum, {label}", faster, {FASTER: at_least(1)})
        _race(f"{name}, {FEW} strings of {LENGTH}", _up_to_three(X[:FEW]), settings, outcome)
    return outcome


def _race(label: str, calls: dict[str, Contender], settings: Settings, outcome: Outcome) -> Race:
    """All contenders must come to the same matrix as the first of them."""
    first: list[Array] = []
    errors: dict[Key, float] = {}

    def inspect(key: Key, K: Array) -> None:
        first.append(K)
        errors[key] = float(np.abs(K - first[0]).max() / np.abs(first[0]).max())

    contenders = {Key(label, name): call for name, call in calls.items()}
    raced = race(label, contenders, settings, inspect)
    outcome.add_notes(label, raced)
    outcome.add_rows(label, raced, Key(label, "mercer"), errors=errors)
    return raced


def _strings(letters: str, n: int) -> list[str]:
    """Letters of uneven frequencies, as texts have them."""
    rng = np.random.default_rng(0)
    often = 1.0 / (4.0 + np.arange(len(letters)))
    drawn = rng.choice(list(letters), size=(n, LENGTH), p=often / often.sum())
    return ["".join(row) for row in drawn]


def _subsequences(X: list[str]) -> dict[str, Contender]:
    k = Subsequences(P, DECAY)

    def forced(by_features: bool) -> Contender:
        def call() -> Array:
            with mock.patch.object(_sequences, "_features_are_faster", return_value=by_features):
                return k(X)

        return call

    return {
        "mercer": lambda: k(X),
        "mercer, by features": forced(True),
        "mercer, by pairs": forced(False),
    }


def _spectra(X: list[str]) -> dict[str, Contender]:
    from sklearn.feature_extraction.text import CountVectorizer

    def counted() -> Array:
        counter = CountVectorizer(
            analyzer=lambda s: [s[i : i + P] for i in range(len(s) - P + 1)], dtype=np.float64
        )
        C = counter.fit_transform(X)
        return np.asarray((C @ C.T).toarray())

    return {"mercer": lambda: Spectrum(P)(X), "sklearn": counted}


def _up_to_three(X: list[str]) -> dict[str, Contender]:
    """All lengths up to three, normalised: what strkernels computes."""
    k = mercer.kernels.Normalised(
        Subsequences(1, DECAY) + Subsequences(2, DECAY) + Subsequences(3, DECAY)
    )

    def numpy_only() -> Array:
        pairs = mock.patch.object(_sequences, "_features_are_faster", return_value=False)
        with mercer.options(engine="blocked"), pairs:
            return k(X)

    calls: dict[str, Contender] = {"mercer": lambda: k(X), "recursion in NumPy": numpy_only}
    if importlib.util.find_spec("strkernels") is not None:
        calls["strkernels"] = Peer(lambda: (_strkernels(X), ""))
    return calls


def _strkernels(X: list[str]) -> Contender:
    module: Any = importlib.import_module("strkernels")
    kernel, strings = module.SubsequenceStringKernel(maxlen=P, ssk_lambda=DECAY), np.array(X)
    return lambda: np.asarray(kernel(strings, strings))
