"""`python -m benchmarks`: a suite without its data."""

import numpy as np
import pytest

main = pytest.importorskip("benchmarks.__main__")


def test_a_suite_without_its_data_says_so_and_keeps_its_results(tmp_path, monkeypatch, capsys):
    old = tmp_path / "clustering.json"
    old.write_text("the last full run")
    monkeypatch.setattr(main, "DATA", tmp_path)
    monkeypatch.setattr(main._machine, "describe", dict)
    monkeypatch.setattr(main._machine, "lines", lambda machine: [])
    monkeypatch.setattr(main._machine, "is_busy", lambda machine: False)
    assert main.main(["clustering", "--results", str(tmp_path)]) == 1
    said = capsys.readouterr().err
    assert "clustering: not run" in said
    assert "clustering_benchmark.npz not found" in said
    assert [file.read_text() for file in tmp_path.iterdir()] == ["the last full run"]


def test_counts_of_rejections_do_not_depend_on_interruptions(tmp_path, monkeypatch, capsys):
    replications = pytest.importorskip("benchmarks._replications")
    monkeypatch.setattr(replications, "_RESULTS", tmp_path)
    full, levels = replications.Settings(quick=False), (0.05, 0.5)
    seen = []

    def uniform(rng):
        seen.append(float(rng.uniform()))
        return seen[-1]

    def count(suite, n):
        return replications.rejections(suite, {"uniform": uniform}, n, levels, full)

    count("a", 30)
    interrupted = count("a", 80)
    assert len(seen) == 80  # the first 30 are not repeated
    assert interrupted == count("b", 80)
    assert seen[80:] == seen[:80]
    assert interrupted["uniform"] == [sum(p <= level for p in seen[:80]) / 80 for level in levels]
    assert capsys.readouterr().err.count("of 80") == 2


@pytest.mark.parametrize("dim", [1, 2])
def test_a_perturbed_uniform_has_its_density(dim):
    power = pytest.importorskip("mercer.reproduce._power")
    rng = np.random.default_rng(0)
    X = power.perturbed_uniform(40_000, dim, 1.0, rng)
    assert X.shape == (40_000, dim)
    assert X.min() >= 0.0
    assert X.max() <= 1.0
    # each cell has as much mass as under the uniform law, its halves do not
    cells = np.floor(2.0 * X) @ 2 ** np.arange(dim)
    np.testing.assert_allclose(np.bincount(cells.astype(int)) / 40_000, 0.5**dim, atol=0.01)
    signs = np.prod(np.where(np.mod(2.0 * X, 1.0) < 0.5, 1.0, -1.0), axis=1)
    share = [abs(signs[cells == cell].mean()) for cell in range(2**dim)]
    t = np.linspace(-1.0, 0.0, 100_001)
    expected = (np.e * np.abs(power._bump(t)).mean()) ** dim
    np.testing.assert_allclose(share, expected, atol=0.03)


def test_growth_leaves_out_sizes_that_take_too_long_or_too_much_memory():
    growth = pytest.importorskip("benchmarks.growth")

    def too_much(seconds, memory, size=100_000):
        runs = zip((1_000, 10_000), seconds, memory, strict=True)
        return growth._too_much({n: growth.Measured(s, b, 0) for n, s, b in runs}, size)

    assert growth._too_much({}, 10**9) == ""
    assert too_much((0.01, 1.0), (0, 0)) == ""  # n^2: 100 s
    assert too_much((0.01, 10.0), (0, 0)) == "about 10000 s"  # n^3
    assert too_much((1.0, 0.5), (0, 0)) == ""  # at least n: 5 s
    assert too_much((0.01, 0.1), (8e9, 8e11)) == "about 80000 GB"  # n^2
