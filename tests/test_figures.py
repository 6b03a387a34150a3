"""Measured numbers that README.md and the pages quote are those of their source.

`docs/figures.toml` lists them. Numbers that pages compute when they are built need no entry.
"""

import json
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
QUOTES = tomllib.loads((ROOT / "docs" / "figures.toml").read_text(encoding="utf-8"))["quote"]
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
# Decisions with the experiments behind them, and pages made from other files.
NOT_CHECKED = {"design.md", "spec.md", "errata.md"}
PAGES = [
    ROOT / "README.md",
    *(p for p in sorted(ROOT.glob("docs/*.md")) if p.name not in NOT_CHECKED),
]


def source(path: str) -> float:
    """The value at "suite | case | quantity or contender", or "demo | row | column".

    "min | suite | pattern | quantity", or max, is that over the cases which a pattern matches.
    """
    if path.startswith(("min | ", "max | ")):
        which, suite, pattern, name = path.split(" | ")
        results = json.loads((ROOT / f"benchmarks/results/{suite}.json").read_text("utf-8"))
        figures = [f for f in results["figures"] if f["quantity"] == name]
        return {"min": min, "max": max}[which](
            f["value"] for f in figures if re.search(pattern, f["case"])
        )
    suite, case, name = path.split(" | ")
    if suite == "demo":
        text = (ROOT / "docs" / "demo.txt").read_text(encoding="utf-8")
        row = next(line for line in text.splitlines() if line.startswith(case))
        cells = re.sub(r"± \S+", "", row.removeprefix(case))
        return float(NUMBER.findall(cells)[int(name)])
    results = json.loads((ROOT / f"benchmarks/results/{suite}.json").read_text(encoding="utf-8"))
    found = [f["value"] for f in results["figures"] if (f["case"], f["quantity"]) == (case, name)]
    found += [t["minimum"] for t in results["times"] if (t["case"], t["contender"]) == (case, name)]
    assert found, f"no {path}"
    return float(found[0])


def differences(text: str, values: list[float]) -> list[str]:
    """Quoted numbers that are not their value, rounded to the digits that are quoted."""
    quoted = NUMBER.findall(text)
    assert len(quoted) == len(values), f"{len(quoted)} numbers in {text!r}, {len(values)} sources"
    return [
        f"{number} for {value}"
        for number, value in zip(quoted, values, strict=True)
        if abs(float(number.replace(",", "")) - value) > 0.5001 * 10.0 ** -decimals(number)
    ]


def decimals(number: str) -> int:
    return len(number.partition(".")[2])


def unlisted(page: str, texts: list[str]) -> list[str]:
    """Rows of tables with a number beside the first column that no quote covers."""
    page = re.sub(r"^```.*?^```", "", page, flags=re.MULTILINE | re.DOTALL)
    found = []
    for row in re.findall(r"^\|.*\|$", page, re.MULTILINE):
        rest = re.sub(r"`[^`]*`|\$[^$]*\$|\]\([^)]*\)", "", row)
        for text in texts:
            rest = rest.replace(re.sub(r"`[^`]*`", "", text), "")
        cells = rest.strip("|").split("|")[1:]
        figure = r"^\W*\d[\d,]*\W*$|\d\.\d|\d (?:s|%|times|GB|MB)(?!\w)"
        if any(re.search(figure, cell) for cell in cells):
            found.append(row)
    return found


@pytest.mark.parametrize("quote", QUOTES, ids=lambda quote: quote["text"])
def test_a_quote_is_on_its_page_and_equals_its_source(quote):
    page = (ROOT / quote["page"]).read_text(encoding="utf-8")
    assert quote["text"] in " ".join(page.split()), "not on the page"
    assert differences(quote["text"], [source(path) for path in quote["sources"]]) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_tables_hold_no_unlisted_figures(page):
    name = page.relative_to(ROOT).as_posix()
    texts = [quote["text"] for quote in QUOTES if quote["page"] == name]
    assert unlisted(page.read_text(encoding="utf-8"), texts) == []


def test_the_checks_themselves():
    assert differences("0.034 s, 39 s", [0.03447, 38.87]) == []
    assert differences("1.8 s", [1.849]) == []
    assert differences("1.9 s", [1.849]) == ["1.9 for 1.849"]
    table = "| a 0.5 | **1.2 s** | `k(0.5)` |\n|---|---|---|\n```\n| a | 1.3 s |\n```\n"
    assert unlisted(table, []) == ["| a 0.5 | **1.2 s** | `k(0.5)` |"]
    assert unlisted(table, ["1.2 s"]) == []
