"""The table of what is built is complete, true and up to date."""

from pathlib import Path

import pytest

from tools import spec

LINE = "{{ title = 'identity', statement = '$1 = 1$', source = 'here', public = {public} }}"


def test_table_has_no_problems():
    assert spec.problems() == []


def test_page_is_up_to_date():
    assert spec.PAGE.read_text(encoding="utf-8") == spec.render(spec.load()), "run `make spec`"


@pytest.fixture
def theorems(tmp_path: Path) -> Path:
    folder = tmp_path / "tests" / "theorems"
    folder.mkdir(parents=True)
    (folder / "test_kernels.py").write_text(
        "import pytest\n"
        "def test_A2_derivatives(): ...\n"
        "@pytest.mark.xfail\n"
        "def test_A3_not_yet(): ...\n"
        "class TestMore:\n"
        "    def test_J1b_moments(self): ...\n"
        "def test_something_else(): ...\n"
    )
    return folder


def table(tmp_path: Path, changes: dict[str, str], built: set[str]) -> Path:
    """A table in which everything is pending, but for `built` ids and lines in `changes`."""
    pending = sorted(spec.IDS - built)
    lines = [f"pending = {pending}", "[ids]"]
    lines += [f"{key} = " + changes.get(key, LINE.format(public=[])) for key in sorted(spec.IDS)]
    path = tmp_path / "spec.toml"
    path.write_text("\n".join(lines))
    return path


def test_tests_are_found_by_name_unless_disabled(theorems):
    found = spec.find_tests(theorems)
    assert found == {
        "A2": ["tests/theorems/test_kernels.py::test_A2_derivatives"],
        "J1b": ["tests/theorems/test_kernels.py::test_J1b_moments"],
    }


def test_built_ids_need_public_names_that_exist(tmp_path, theorems, monkeypatch):
    line = LINE.format(public=["Gaussian", "testing.check"])
    path = table(tmp_path, {"A2": line, "J1b": line}, {"A2", "J1b"})
    monkeypatch.setattr(spec, "resolves", lambda name: name == "Gaussian")
    assert spec.problems(path, theorems) == [
        "A2: mercer.testing.check does not exist",
        "J1b: mercer.testing.check does not exist",
    ]
    monkeypatch.setattr(spec, "resolves", lambda name: True)
    assert spec.problems(path, theorems) == []


def test_an_id_is_built_or_pending_never_both_or_neither(tmp_path, theorems):
    path = table(tmp_path, {}, {"A5", "J1b"})
    assert spec.problems(path, theorems) == [
        "A2: has the test tests/theorems/test_kernels.py::test_A2_derivatives; "
        "take it out of pending",
        "A5: not pending, and no public name delivers it",
        "A5: not pending, and no test_A5_... exists in tests/theorems/",
        "J1b: not pending, and no public name delivers it",
    ]


def test_part_built_ids_say_what_is_missing(tmp_path, theorems):
    line = LINE.format(public=["Gaussian"]).replace("}", ", missing = 'the rest' }")
    entries = spec.load(table(tmp_path, {"A2": line}, {"A2", "J1b"}), theorems)
    assert "*Still missing:* the rest" in spec.render(entries)
    assert "1 in part" in spec.render(entries)


def test_an_id_needs_a_formula_and_a_source(tmp_path, theorems):
    line = LINE.format(public=["Gaussian"]).replace("'$1 = 1$'", "''").replace("'here'", "''")
    path = table(tmp_path, {"A2": line}, {"A2", "J1b"})
    found = spec.problems(path, theorems)
    assert found[:2] == ["A2: the statement is empty", "A2: the source is empty"]


def test_every_id_has_a_section_with_its_formula():
    page = spec.PAGE.read_text(encoding="utf-8")
    for entry in spec.load().values():
        assert f"### {entry.id}: {entry.title}\n" in page
        assert entry.statement in page
        assert "$" in entry.statement or entry.id[0] in "NX", (
            entry.id
        )  # experiments have no formula


def test_private_names_do_not_count():
    assert not spec.resolves("_errors")
    assert not spec.resolves("no_such_name")
