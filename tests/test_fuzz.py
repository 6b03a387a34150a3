"""The fuzzer (`make fuzz`): what counts as a finding, and a sample of its cases."""

import pytest

from tools.fuzz import worker
from tools.fuzz.cases import PACKAGES, case, targets
from tools.fuzz.worker import Worker, run

BROKEN = """
import mercer

class Broken(mercer.Radial):
    def profile(self, u):
        {line}

Broken()([[0.0]])
"""


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("import mercer; mercer.Gaussian(1.0)", None),
        ("import mercer; mercer.Gaussian(-1.0)", None),
        ("1 / 0", None),  # the case is wrong, not mercer
        (BROKEN.format(line="return 1 / 0"), "ZeroDivisionError"),
        (BROKEN.format(line="import warnings; warnings.warn('leaked')"), "UserWarning"),
        ("from tools.fuzz.checks import call; call([3].append, 4)", None),
        ("from tools.fuzz.checks import call; call(lambda x: x.append(4), [3])", "AssertionError"),
        ("import warnings; warnings.warn('of the case')", None),
        ("while True: pass", "TooSlow"),
    ],
)
def test_findings(source, kind, monkeypatch):
    monkeypatch.setattr(worker, "SECONDS", 1)
    found = run(source)
    assert (found and found.kind) == kind


def test_cases_are_determined_by_their_numbers():
    assert case(3, 5) == case(3, 5) != case(3, 6)
    assert {name.split(".", 1)[1].rpartition(".")[0] for name, _ in targets()} == set(PACKAGES)


def test_a_crash_is_a_finding_and_the_next_case_runs():
    own = Worker()
    try:
        assert own.run("import os\n\nos.abort()").kind == "crash"
        assert own.run("pass") is None
    finally:
        own.stop()


def test_a_sample_has_no_findings():
    own = Worker()
    try:
        found = {n: own.run(case(6, n)) for n in range(200)}
    finally:
        own.stop()
    assert {n: f for n, f in found.items() if f} == {}


def test_products_of_zero_and_infinity_are_not_findings():
    kernel = "mercer.NegativeDistance(1.0) * mercer.Exponential(0.001)"
    points = "np.random.default_rng(4).normal(size=(8, 7))"
    source = "import mercer, numpy as np\nfrom tools.fuzz.checks import check_kernel\n"
    assert run(f"{source}check_kernel({kernel}, {points}, {points})") is None
