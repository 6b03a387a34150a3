"""The power experiment: counts of an earlier run are used, and decide the verdict."""

import json

from mercer.reproduce import Verdict, find
from mercer.reproduce._power import COUNTS, REPETITIONS, _published, designs
from mercer.reproduce._replications import rejections


def write_counts(folder, change=0.0):
    """Counts as published, with the power of default tests changed."""
    published = _published()
    counts = {}
    for name in designs():
        share = published.get(name, (1.0, ""))[0]
        share += 0.0 if name.endswith("median rule") else change
        rejected = round(REPETITIONS * min(max(share, 0.0), 1.0))
        counts[name] = {"repetitions": REPETITIONS, "rejected": [rejected]}
    (folder / COUNTS).write_text(json.dumps(counts))


def test_published_powers_are_reproduced_and_lower_ones_are_not(tmp_path):
    for change, verdict in (
        (0.0, Verdict.REPRODUCED),
        (0.05, Verdict.REPRODUCED),
        (-0.3, Verdict.NOT_REPRODUCIBLE),
    ):
        write_counts(tmp_path, change)
        found = find("power").run(tmp_path)
        assert found.verdict is verdict
        assert len(found.rows) == 28  # samples of at most 500 rows


def test_simulations_do_not_depend_on_the_others():
    """The data of a repetition come from its name and number alone."""
    p = {"a": lambda rng: rng.uniform(), "b": lambda rng: rng.uniform()}
    both = rejections(p, 50, (0.2, 0.4, 0.6, 0.8), {})
    assert rejections({"b": p["b"]}, 50, (0.2, 0.4, 0.6, 0.8), {})["b"] == both["b"]
    assert both["a"] != both["b"]
