"""Help pages, and that what they say can be run."""

import importlib.metadata
import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from mercer import cli
from mercer.cli import (
    _anomalies,
    _app,
    _cluster,
    _denoise,
    _hypothesis_tests,
    _impute,
    _reproduce,
    _segment,
)

COMMANDS = {
    "denoise": _denoise,
    "impute": _impute,
    "anomalies": _anomalies,
    "cluster": _cluster,
    "segment": _segment,
    "test": _hypothesis_tests,
    "reproduce": _reproduce,
}
PAST = {
    "denoise": "denoised",
    "impute": "imputed",
    "anomalies": "scored",
    "cluster": "clustered",
    "segment": "segmented",
}
LINES = [line for m in (_app, *COMMANDS.values()) for _, line in m.EXAMPLES]
TESTS = {
    "two-sample": _hypothesis_tests.TWO_SAMPLE,
    "independence": _hypothesis_tests.INDEPENDENCE,
    "fit": _hypothesis_tests.FIT,
}


@pytest.mark.parametrize("line", LINES)
def test_examples_run(line, run, files):
    words = shlex.split(line)
    assert words[0] == "mercer"
    if "--force" in words:
        Path(words[words.index("-o") + 1]).touch()
    ran = run(*words[1:])
    assert ran.code == 0, ran.err
    assert ran.err == ""
    assert ran.out.splitlines()[-1 if words[1] != "anomalies" else 0]
    assert "-o" not in words or Path(words[words.index("-o") + 1]).exists()
    if "--plot" in words:
        assert Path("clusters.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("command", ["denoise", "segment"])
def test_first_examples_run_in_a_process(command, spawn, files):
    words = shlex.split(COMMANDS[command].EXAMPLES[0][1])
    ran = spawn(*words[1:])
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith(PAST[command])


@pytest.mark.parametrize("command", [None, *COMMANDS])
def test_help_has_the_examples(command, run):
    words = [command] if command else []
    ran = run(*words, "--help")
    assert (ran.code, ran.err) == (0, "")
    for what, line in (COMMANDS[command] if command else _app).EXAMPLES:
        assert f"# {what}\n    {line}\n" in ran.out
    assert max(map(len, ran.out.splitlines())) <= 100


@pytest.mark.parametrize("test", TESTS)
def test_examples_of_tests(test, run, files):
    shown = run("test", test, "--help").out
    for what, line in TESTS[test]:
        assert f"# {what}\n    {line}\n" in shown
        ran = run(*shlex.split(line)[1:])
        assert (ran.code in ((0, 3) if "--fail" in line else (0,)), ran.err) == (True, "")


def test_no_words_are_a_question_for_help(run):
    assert run().out == run("--help").out


def test_version(run):
    assert run("--version").out == f"mercer {importlib.metadata.version('mercer')}\n"


def test_the_script_is_the_same_program():
    script = Path(sysconfig.get_path("scripts")) / "mercer"
    if not script.exists():
        pytest.skip("mercer was installed before it had a script")
    ran = subprocess.run([script, "--version"], capture_output=True, text=True, check=True)
    assert ran.stdout.startswith("mercer ")


def test_script_is_declared():
    project = Path(__file__).resolve().parents[2] / "pyproject.toml"
    assert '[project.scripts]\nmercer = "mercer.cli:main"\n' in project.read_text("utf-8")


def test_without_click_one_sentence_says_what_to_install():
    code = "import sys; sys.modules['click'] = None; from mercer.cli import main; sys.exit(main())"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 2
    assert ran.stderr == "mercer: the command line needs click: pip install 'mercer[cli]'\n"


@pytest.mark.parametrize(("package", "name"), [("pyarrow", "t.parquet"), ("PIL.Image", "scans")])
def test_without_optional_packages_one_sentence(package, name, run, files, monkeypatch):
    (files["folder"] / "t.parquet").touch()
    monkeypatch.setitem(sys.modules, package, None)
    ran = run("denoise", name, "-o", "out" + Path(name).suffix)
    assert ran.code == 2
    assert "pip install 'mercer[cli]'" in ran.err
    assert len(ran.err.splitlines()) == 1


def test_surface():
    assert cli.__all__ == ["main"]
