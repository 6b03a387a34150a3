"""Scripts in examples/ run without a warning; benchmarks and pages use names that exist."""

import ast
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples"
GALLERY = ROOT / "docs" / "gallery"
OUTSIDE = sorted(
    [*ROOT.glob("benchmarks/*.py"), *EXAMPLES.glob("*.py"), *ROOT.glob("docs/*.md"),
     *GALLERY.rglob("*.py")]
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("script", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_example_runs(script, tmp_path):
    run = subprocess.run(
        [sys.executable, "-W", "error", str(script)],
        cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert run.stdout


def python_of(path: Path) -> str:
    """The code of a script, or of the cells of a page."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        return text
    cells = re.findall(r"^```\{code-cell\}[^\n]*\n((?:^:[^\n]*\n)*)(.*?)^```", text, re.M | re.S)
    return "\n".join(re.sub(r"^[!%].*$", "pass", code, flags=re.M) for _, code in cells)


def names_of_mercer(code: str) -> set[str]:
    """What a script takes from mercer: `mc.kernels.Table`, `from mercer.plot import plot_gram`."""
    found, aliases = set(), {}
    tree = ast.parse(code)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for name in node.names:
                if name.name.split(".")[0] == "mercer":
                    aliases[name.asname or "mercer"] = name.name if name.asname else "mercer"
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "mercer":
            for name in node.names:
                found.add(f"{node.module}.{name.name}")
                aliases[name.asname or name.name] = f"{node.module}.{name.name}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            chain = ast.unparse(node).split(".")
            if chain[0] in aliases and all(part.isidentifier() for part in chain):
                found.add(".".join([aliases[chain[0]], *chain[1:]]))
    return found


def exists(name: str) -> bool:
    """Whether a dotted name can be reached; parts below a class are looked up too."""
    parts = name.split(".")
    obj = importlib.import_module(parts[0])
    for i, part in enumerate(parts[1:], 2):
        if not hasattr(obj, part):
            try:
                obj = importlib.import_module(".".join(parts[:i]))
                continue
            except ImportError:
                return False
        obj = getattr(obj, part)
        if not isinstance(obj, type | type(ast)):  # a function or a value
            return True
    return True


@pytest.mark.parametrize("path", OUTSIDE, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_names_exist(path):
    assert [name for name in sorted(names_of_mercer(python_of(path))) if not exists(name)] == []


def test_missing_names_are_found():
    code = "import mercer as mc\nfrom mercer import kernels as ks\nmc.Gaussian\nmc.no(ks.none.x)"
    missing = {name for name in names_of_mercer(code) if not exists(name)}
    assert missing == {"mercer.no", "mercer.kernels.none", "mercer.kernels.none.x"}
