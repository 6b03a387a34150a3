"""`python -m benchmarks`: a suite without its data."""

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
