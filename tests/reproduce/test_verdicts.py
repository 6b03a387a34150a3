"""Verdicts follow from numbers: they change when the numbers do."""

import math
from dataclasses import replace

import pytest

pytest.importorskip("matplotlib")

from mercer.reproduce import EXPERIMENTS, Claim, Result, Verdict, find, verdict_of
from mercer.reproduce._pages import Outcome, as_text, page

HOLDS = Claim("errors fall", "0.5", found=0.4, high=0.5)
FAILS = Claim("two clusters", "2", found=1, low=2, high=2, why="There is one.")


def test_a_claim_holds_inside_its_interval_ends_included():
    for found, holds in ((2, True), (1.999, False), (2.001, False), (math.nan, False)):
        assert replace(FAILS, found=found).holds is holds
    assert replace(HOLDS, found=0.5).holds
    assert Claim("finite", "finite", found=math.inf, high=1e300).holds is False


def test_one_claim_that_fails_is_enough():
    assert verdict_of([HOLDS]) is Verdict.REPRODUCED
    assert verdict_of([HOLDS, FAILS]) is Verdict.NOT_REPRODUCIBLE


def test_a_correction_counts_only_if_it_holds():
    good = replace(FAILS, corrected=replace(FAILS, found=2))
    bad = replace(FAILS, corrected=replace(FAILS, found=3))
    assert verdict_of([HOLDS, good]) is Verdict.CORRECTED
    assert verdict_of([good, bad]) is Verdict.NOT_REPRODUCIBLE
    assert verdict_of([replace(good, found=2)]) is Verdict.REPRODUCED
    twice = replace(FAILS, corrected=replace(bad, corrected=replace(FAILS, found=2)))
    assert verdict_of([twice]) is Verdict.CORRECTED


def test_reasons_are_those_of_the_claims_that_fail():
    result = Result(("x",), [(1,)], (HOLDS, FAILS, FAILS), None)
    assert result.reason == "There is one."
    assert replace(result, claims=(HOLDS,)).reason == "Every claim holds."


@pytest.mark.parametrize("name", ["surrogate", "subgradient", "thresholds"])
def test_worse_numbers_flip_the_verdict_of_an_experiment(name):
    found = find(name).run(None)
    assert found.verdict is Verdict.CORRECTED
    for i, claim in enumerate(found.claims):
        broken = replace(claim, found=math.nan, corrected=None)
        claims = (*found.claims[:i], broken, *found.claims[i + 1 :])
        assert replace(found, claims=claims).verdict is Verdict.NOT_REPRODUCIBLE
    as_printed = tuple(claim for claim in found.claims if claim.holds)
    assert replace(found, claims=as_printed).verdict is Verdict.REPRODUCED


def test_every_claim_can_fail_and_failures_say_why(committed):
    """An interval without ends would hold whatever is found."""
    for name in committed:
        text = committed[name]
        assert "| >= -inf |" not in text
        assert "| <= inf |" not in text
        verdict = text.split("**Verdict: ")[1]
        assert (verdict.startswith("reproduced.**")) == ("| no |" not in text), name


def test_names_are_unique_and_pages_tell_what_is_missing(tmp_path):
    names = [experiment.name for experiment in EXPERIMENTS]
    assert len(set(names)) == len(names)
    lacking = [experiment for experiment in EXPERIMENTS if experiment.files]
    assert lacking
    for experiment in lacking:
        missing = experiment.missing(tmp_path)
        assert missing == list(experiment.files)
        text = page(Outcome(experiment, None, tuple(missing)))
        assert "**Verdict: skipped.**" in text
        assert all(f"{name} is missing: " in text for name in missing)


def test_cells():
    cells = ("a|b", 20, 0.123456, 1e-20, math.inf, True)
    assert [as_text(cell) for cell in cells] == ["a\\|b", "20", "0.1235", "1e-20", "inf", "True"]
