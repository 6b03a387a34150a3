"""Generate docs/spec.md from docs/spec.toml and the tests in tests/theorems/.

`python tools/spec.py` writes docs/spec.md; with `--check` it writes nothing and exits with 1 if the
table is wrong or docs/spec.md is stale.
"""

import argparse
import ast
import importlib
import re
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "docs" / "spec.toml"
PAGE = ROOT / "docs" / "spec.md"
THEOREMS = ROOT / "tests" / "theorems"

COUNTS = {
    "A": 21, "B": 5, "C": 7, "D": 14, "E": 5, "F": 9, "G": 7, "H": 4, "I": 5, "J": 8, "K": 8,
    "L": 5, "M": 5, "N": 10, "O": 7, "P": 4, "Q": 3, "X": 12,
}  # fmt: skip
IDS = frozenset(f"{k}{i}" for k, n in COUNTS.items() for i in range(1, n + 1)) | {"J1b", "O6b"}

GROUPS = {
    "A": "Kernels", "B": "Elements", "C": "The pre-image problem", "D": "Solvers",
    "E": "Certificates", "F": "Mean shift", "G": "Convex optimisation", "H": "Kernel PCA",
    "I": "Ridge regression", "J": "Two-sample tests", "K": "Dependence", "L": "Goodness of fit",
    "M": "Support vector machines", "N": "Learning theory", "O": "First-order methods",
    "P": "Subgradient methods", "Q": "Linear algebra", "X": "Experiments",
}  # fmt: skip

INTRODUCTION = """\
Where a source has an error, the formula is the corrected one, and the entry says so.
Notation: points are rows $x_i$, $n$ of them in $d$ dimensions; $u = \\lVert x - y \\rVert^2$;
$k(u)$ is the profile of a radial kernel and $f(t)$ that of a kernel of the inner product
$t = \\langle x, y \\rangle$; $\\varphi(x) = k(x, \\cdot)$; $K$ is the Gram matrix,
$H = I - \\mathbf 1 \\mathbf 1^\\top / n$ and $\\tilde K = H K H$; $\\Xi$ is the objective of the
pre-image problem.

Sources:

- Honeine 2024: P. Honeine, [Theoretical insights on the pre-image resolution in machine
  learning](https://hal.science/hal-04648777), Pattern Recognition.
- Honeine and Richard 2011: P. Honeine and C. Richard, [A closed-form solution for the pre-image
  problem in kernel-based machines](https://hal.science/hal-01965585v1), Journal of Signal
  Processing Systems 65(3), 289-299.
- Pal and Vepakomma 2025: S. Pal and P. Vepakomma, Convergence of mean shift algorithms for large
  bandwidths and simultaneous accurate clustering.
- Sakulwongtana: P. Sakulwongtana, Advanced Topics in Machine Learning (lecture notes).
- Rudi and Gaillard 2021: A. Rudi and P. Gaillard, Kernel methods (lecture, March 29, 2021).
"""


@dataclass(frozen=True)
class Entry:
    """One id: its statement and source, the names that implement it, the tests that check it."""

    id: str
    title: str
    statement: str
    source: str
    public: tuple[str, ...]
    missing: str
    tests: tuple[str, ...]
    pending: bool


def find_tests(folder: Path = THEOREMS) -> dict[str, list[str]]:
    """Map each id to the tests `test_<ID>_...` in `folder`, skipped and xfailed ones left out."""
    found: dict[str, list[str]] = {}
    for path in sorted(folder.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.FunctionDef) or _is_disabled(node):
                continue
            match = re.match(r"test_([A-Z]\d+b?)(?:_|$)", node.name)
            if match:
                where = path.relative_to(folder.parent.parent).as_posix()
                found.setdefault(match[1], []).append(f"{where}::{node.name}")
    return found


def _is_disabled(node: ast.FunctionDef) -> bool:
    marks = " ".join(ast.unparse(d) for d in node.decorator_list)
    return re.search(r"mark\.(skip|xfail)\b", marks) is not None


def load(table: Path = TABLE, folder: Path = THEOREMS) -> dict[str, Entry]:
    """Read the table and join it with the tests that exist."""
    raw = tomllib.loads(table.read_text(encoding="utf-8"))
    tests = find_tests(folder)
    return {
        key: Entry(
            id=key,
            title=item["title"],
            statement=" ".join(item.get("statement", "").split()),
            source=item.get("source", ""),
            public=tuple(item["public"]),
            missing=item.get("missing", ""),
            tests=tuple(tests.get(key, ())),
            pending=key in raw["pending"],
        )
        for key, item in raw["ids"].items()
    }


def problems(table: Path = TABLE, folder: Path = THEOREMS) -> list[str]:
    """List everything that is wrong with the table, as sentences."""
    raw = tomllib.loads(table.read_text(encoding="utf-8"))
    found = [f"{key}: not an id" for key in sorted(set(raw["ids"]) - IDS)]
    found += [f"{key}: has no entry" for key in sorted(IDS - set(raw["ids"]))]
    found += [f"{key}: pending, but no such id" for key in raw["pending"] if key not in IDS]
    found += [f"{key}: a test exists, but no such id" for key in set(find_tests(folder)) - IDS]
    for key, item in raw["ids"].items():
        extra = sorted(set(item) - {"title", "statement", "source", "public", "missing"})
        found += [f"{key}: unknown key {name!r}" for name in extra]
    for entry in load(table, folder).values():
        found += _problems_of(entry)
    return found


def _problems_of(entry: Entry) -> list[str]:
    key = entry.id
    found = [
        f"{key}: the {name} is empty"
        for name in ("title", "statement", "source")
        if not getattr(entry, name)
    ]
    if entry.pending:
        if entry.public:
            found.append(f"{key}: names public functions; take it out of pending")
        if entry.tests:
            found.append(f"{key}: has the test {entry.tests[0]}; take it out of pending")
        if entry.missing:
            found.append(f"{key}: `missing` is for ids built in part; this one is pending")
        return found
    if not entry.public:
        found.append(f"{key}: not pending, and no public name delivers it")
    if not entry.tests:
        found.append(f"{key}: not pending, and no test_{key}_... exists in tests/theorems/")
    return found + [
        f"{key}: mercer.{name} does not exist" for name in entry.public if not resolves(name)
    ]


def resolves(name: str) -> bool:
    """Tell whether `mercer.<name>` exists and is public."""
    if any(part.startswith("_") for part in name.split(".")):
        return False
    obj: object = importlib.import_module("mercer")
    path = "mercer"
    for part in name.split("."):
        path = f"{path}.{part}"
        try:
            obj = getattr(obj, part)
        except AttributeError:
            try:
                obj = importlib.import_module(path)
            except ImportError:
                return False
    return True


def render(entries: dict[str, Entry]) -> str:
    """Write the page as Markdown."""
    built = [e for e in entries.values() if not e.pending]
    part = [e for e in built if e.missing]
    summary = (
        f"{len(entries)} entries: {len(built) - len(part)} complete, {len(part)} in part, "
        f"{len(entries) - len(built)} pending. Each names the public functions that implement it, "
        "and the tests in `tests/theorems/` that check it."
    )
    lines = [
        "<!-- Generated by tools/spec.py (`make spec`). Edit docs/spec.toml instead. -->",
        "", "# Theorems and experiments", "", summary, "", INTRODUCTION,
    ]  # fmt: skip
    for letter, group in GROUPS.items():
        lines += [f"## {group}", ""]
        for entry in entries.values():
            if entry.id[0] == letter:
                lines += _section(entry)
    return "\n".join(lines)


def _section(entry: Entry) -> list[str]:
    lines = [f"### {entry.id}: {entry.title}" + (" (pending)" * entry.pending)]
    lines += ["", entry.statement, "", f"*Source:* {entry.source}."]
    if entry.public:
        lines += ["", "*Public:* " + ", ".join(f"`{name}`" for name in entry.public)]
    if entry.tests:
        names = dict.fromkeys(name.split("::")[1] for name in entry.tests)
        lines += ["", "*Tests:* " + ", ".join(f"`{name}`" for name in names)]
    if entry.missing:
        lines += ["", f"*Still missing:* {entry.missing}"]
    return [*lines, ""]


def main(argv: list[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description="Generate docs/spec.md.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if stale")
    options = parser.parse_args(argv)
    found = problems()
    for line in found:
        print(line, file=sys.stderr)
    page = render(load())
    if not options.check:
        PAGE.write_text(page, encoding="utf-8")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != page:
        print("docs/spec.md is stale: run `make spec`", file=sys.stderr)
        return 1
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
