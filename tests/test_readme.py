"""The code in README.md runs, and prints what README.md says it prints."""

import contextlib
import doctest
import io
import re
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

import pytest

README = Path(__file__).resolve().parent.parent / "README.md"
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    language: str
    text: str
    line: int


def blocks(text: str) -> list[Block]:
    return [Block(m[1], m[2], text.count("\n", 0, m.start(2)) + 1) for m in FENCE.finditer(text)]


def failures(text: str) -> list[str]:
    """Run the blocks in order in one namespace; return what differs, as text."""
    scope: dict[str, object] = {"__name__": "readme"}
    found = []
    listing = blocks(text)
    for block, following in zip_longest(listing, listing[1:]):
        if block.language != "python":
            continue
        if ">>> " in block.text:
            found += _doctest(block, scope)
        else:
            expected = following if following and following.language == "text" else None
            found += _script(block, expected, scope)
    return found


def _doctest(block: Block, scope: dict[str, object]) -> list[str]:
    test = doctest.DocTestParser().get_doctest(
        block.text, scope, "README.md", str(README), block.line - 1
    )
    test.globs = scope  # the parser copies it; later blocks need what this one defines
    report = io.StringIO()
    runner = doctest.DocTestRunner(optionflags=FLAGS, verbose=False)
    runner.run(test, out=report.write, clear_globs=False)
    return [report.getvalue()] if report.getvalue() else []


def _script(block: Block, expected: Block | None, scope: dict[str, object]) -> list[str]:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile("\n" * (block.line - 1) + block.text, str(README), "exec"), scope)
    if expected is None or doctest.OutputChecker().check_output(
        expected.text, printed.getvalue(), FLAGS
    ):
        return []
    return [f"line {expected.line}: expected\n{expected.text}got\n{printed.getvalue()}"]


def test_readme_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = failures(README.read_text(encoding="utf-8"))
    if found:
        pytest.fail("\n".join(found), pytrace=False)


def test_readme_has_examples():
    assert any(b.language == "python" for b in blocks(README.read_text(encoding="utf-8")))


def test_the_check_itself(tmp_path):
    good = "```python\n>>> a = 2\n>>> a\n2\n```\n\n```python\nprint(a + 1)\n```\n```text\n3\n```\n"
    assert failures(good) == []
    assert len(failures(good.replace("a\n2", "a\n5"))) == 1
    assert failures(good.replace("text\n3", "text\n4")) == ["line 11: expected\n4\ngot\n3\n"]
