"""The shape of the source: small folders, files and functions; tests that mirror the packages."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "mercer"
TESTS = ROOT / "tests"
FILES = sorted(SOURCE.rglob("*.py"))
PACKAGES = sorted(path.parent.relative_to(SOURCE) for path in SOURCE.rglob("__init__.py"))

MODULES_PER_FOLDER = 25
LINES_PER_FILE = 400
LINES_PER_FUNCTION = 60

# Folders of tests that no package stands behind.
OTHER_TESTS = {"browser", "data", "theorems"}


def functions(path: Path) -> list[tuple[str, int]]:
    """Name and number of lines of each function, without decorators and docstring."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[1:2] if ast.get_docstring(node) else node.body[:1]
            start = first[0].lineno if first else node.end_lineno
            found.append((node.name, node.end_lineno - start + 1))
    return found


@pytest.mark.parametrize("package", PACKAGES, ids=str)
def test_folders_are_small(package):
    modules = [path.name for path in (SOURCE / package).glob("*.py") if path.stem != "__init__"]
    assert len(modules) <= MODULES_PER_FOLDER


def test_files_are_short():
    lines = {
        path.relative_to(SOURCE).as_posix(): len(path.read_text(encoding="utf-8").splitlines())
        for path in FILES
    }
    assert {name: n for name, n in lines.items() if n > LINES_PER_FILE} == {}


def test_functions_are_short():
    long = {
        f"{path.relative_to(SOURCE).as_posix()}::{name}": n
        for path in FILES
        for name, n in functions(path)
        if n > LINES_PER_FUNCTION
    }
    assert long == {}


def test_lines_of_a_function_are_counted_without_its_docstring(tmp_path):
    path = tmp_path / "example.py"
    path.write_text(
        '@dec\ndef f(\n    x,\n):\n    """Two\n    lines."""\n    y = x\n    return y\n'
    )
    assert functions(path) == [("f", 2)]


@pytest.mark.parametrize("package", PACKAGES[1:], ids=str)
def test_every_package_has_tests_of_its_own(package):
    folder = TESTS / package
    single = folder.parent / f"test_{folder.name}.py"
    assert any(folder.rglob("test_*.py")) or single.exists()


def test_every_folder_of_tests_has_its_package():
    folders = {path.parent.relative_to(TESTS) for path in TESTS.rglob("test_*.py")}
    assert {f for f in folders if f.parts[:1] and f.parts[0] not in OTHER_TESTS} <= set(PACKAGES)
