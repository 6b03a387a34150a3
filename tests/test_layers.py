"""Imports go down only (the contracts are in pyproject.toml)."""

import re
from pathlib import Path

from importlinter.api import read_configuration, use_cases

ROOT = Path(__file__).resolve().parent.parent


def test_contracts_hold(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    held = use_cases.lint_imports(config_filename="pyproject.toml", cache_dir=None, no_logo=True)
    assert held, capsys.readouterr().out


def test_every_contract_is_read(monkeypatch):
    monkeypatch.chdir(ROOT)
    contracts = read_configuration("pyproject.toml")["contracts_options"]
    assert {c["id"] for c in contracts} == {"layers", "cycles", "root", "edges"}


def test_only_the_engine_sees_the_compiled_core():
    source = ROOT / "src" / "mercer"
    users = {
        path.relative_to(source).parts[0]
        for path in source.rglob("*.py")
        if re.search(r"^\s*(from|import)\b.*\b_core\b", path.read_text("utf-8"), re.MULTILINE)
    }
    assert users <= {"engine"}
