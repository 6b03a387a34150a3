"""X1 to X3: experiments that `mercer reproduce` runs, checked by their tables.

X4 to X12 stand beside the laws that they illustrate.
"""

import pytest

pytest.importorskip("matplotlib")

from mercer.reproduce import find


def test_X1_three_steps_bring_points_nearer_to_the_curve():
    found = find("centroids").run(None)
    assert len(found.rows) == 12
    assert all(ratio < 0.6 for *_, ratio in found.rows)
    (claim,) = [claim for claim in found.claims if "positive definite" in claim.says]
    assert claim.found == pytest.approx(-0.0061, abs=1e-4)  # at 0, 0.3, 0.6


def test_X2_the_third_step_hardly_changes_the_distance_to_the_spiral():
    for _, first, *_, second, third, one, two, three in find("spiral-paths").run(None).rows:
        assert third < 0.6 * first
        assert abs(third - second) < 0.02 * first
        assert three < two < one


def test_X3_the_surrogate_touches_majorises_and_has_the_step_as_its_minimum():
    for *_, touch, slopes, gap, at_step in find("surrogate").run(None).rows:
        assert max(touch, slopes, at_step) < 1e-13
        assert gap > -1e-15
