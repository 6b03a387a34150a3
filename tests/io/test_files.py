"""Files: written whole or not at all; damaged and hostile ones are refused, and nothing runs."""

import json
import os
import pickle
import stat
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import mercer as mc
from mercer.io import load, save
from tests.io.archives import PSI, edited, members, npy, rewrite


@pytest.fixture
def path(tmp_path):
    return tmp_path / "psi.mercer"


# --- writing --------------------------------------------------------------------------------------


def test_paths_may_be_strings_or_paths(path):
    save(PSI, str(path))
    assert load(str(path)).kernel == load(path).kernel == PSI.kernel


def test_description_is_strict_json_with_versions(path):
    save([mc.kernels.Taylor([1.0]), float("nan")], path)

    def no_constants(text):
        raise AssertionError(text)

    document = json.loads(members(path)["mercer.json"], parse_constant=no_constants)
    assert document["format"] == 1
    assert document["mercer"] == mc.__version__


def test_an_existing_file_is_replaced_and_keeps_its_mode(path):
    path.write_text("old")
    path.chmod(0o640)
    save(PSI, path)
    assert load(path).kernel == PSI.kernel
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_only_files_are_replaced(path, tmp_path):
    os.mkfifo(path)
    for other in (path, tmp_path):
        with pytest.raises(mc.InputError, match="is a folder or a device, not a file"):
            save(3, other)
    assert path.is_fifo()


def test_a_private_file_is_private_while_it_is_written(path, monkeypatch):
    path.touch(mode=0o600)
    write, seen = np.lib.format.write_array, []

    def look(*given, **named):
        seen.extend(stat.S_IMODE(p.stat().st_mode) for p in path.parent.glob(".*.part"))
        write(*given, **named)

    monkeypatch.setattr(np.lib.format, "write_array", look)
    save(np.zeros(3), path)
    assert seen == [0o600]


def test_a_new_file_has_the_mode_of_any_new_file(path):
    other = path.with_name("other")
    other.touch()
    save(PSI, path)
    assert path.stat().st_mode == other.stat().st_mode


def test_a_link_stays_a_link(path):
    target = path.with_name("target")
    save(1, target)
    path.symlink_to(target)
    save(PSI, path)
    assert path.is_symlink()
    assert load(target).kernel == PSI.kernel


def test_a_write_that_fails_leaves_the_old_file(path, monkeypatch):
    save(PSI, path)
    before = path.read_bytes()

    def full(*_, **__):
        raise OSError("no space left on device")

    monkeypatch.setattr(np.lib.format, "write_array", full)
    with pytest.raises(OSError, match="no space"):
        save(mc.feature(mc.Linear(), np.eye(3)), path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        save(PSI, tmp_path / "no" / "psi")
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "psi")


# --- no code --------------------------------------------------------------------------------------


def test_no_pickle(path, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("pickle was used")

    for name in ("dump", "dumps", "load", "loads", "Pickler", "Unpickler"):
        monkeypatch.setattr(pickle, name, refuse)
    words = mc.mean_embedding(mc.Spectrum(1), ["ab", "c"])
    save([PSI, words], path)
    assert load(path)[1](["ab"]) == words(["ab"])


def test_nothing_is_compiled_imported_or_run_while_loading(path):
    """Watched by the interpreter itself; a second load, so that our own modules are there."""
    save([PSI, mc.feature(mc.Jaccard(), [{1}, {2}])], path)
    code = f"""
import sys
import mercer.io
mercer.io.load({str(path)!r})
seen = []
sys.addaudithook(lambda event, args: seen.append(event))
mercer.io.load({str(path)!r})
bad = {{"compile", "exec", "import", "pickle", "os", "subprocess"}}
print(*{{event.split(".")[0] for event in seen}} & bad)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == ""


# --- damage ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("content", [b"", b"PK", b"PK\x05\x06" + 18 * b"\x00", b"not a zip" * 99])
def test_not_a_file_of_ours(content, path):
    path.write_bytes(content)
    with pytest.raises(mc.InputError, match=r"not written by mercer\.save"):
        load(path)


def test_files_of_numpy_have_no_description(path):
    with path.open("wb") as file:
        np.savez(file, X=np.eye(2))
    with pytest.raises(mc.InputError, match=r"no mercer\.json"):
        load(path)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.99])
def test_files_that_were_cut_short(share, path):
    save(PSI, path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(mc.InputError, match="incomplete"):
        load(path)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(at=st.integers(0, 10**6), byte=st.integers(0, 255), cut=st.booleans())
@example(at=0, byte=0, cut=False)
def test_a_wrong_byte_is_noticed_or_harmless(at, byte, cut, tmp_path):
    path = tmp_path / "psi"
    save([PSI, frozenset({"a", 1}), np.arange(3)], path)
    whole = bytearray(path.read_bytes())
    at %= len(whole)
    whole[at] = byte
    path.write_bytes(whole[:at] if cut else whole)
    try:
        psi, words, numbers = load(path)
    except mc.InputError:
        return
    assert np.array_equal(psi.points, PSI.points)
    assert np.array_equal(psi.coef.array, PSI.coef.array)
    assert words == {"a", 1}
    assert numbers.tolist() == [0, 1, 2]


def test_a_changed_number_fails_its_checksum(path):
    save(PSI, path)
    whole = path.read_bytes()
    number = PSI.points.tobytes()
    path.write_bytes(whole.replace(number, number[:-1] + b"\x00"))
    with pytest.raises(mc.InputError, match="CRC"):
        load(path)


def test_newer_formats(path):
    edited(path, lambda d: d.update(format=2, mercer="7.0"))
    with pytest.raises(mc.InputError, match=r"mercer 7\.0 in format 2.*newer mercer"):
        load(path)


@pytest.mark.parametrize("number", [None, "1", True, 1.0])
def test_no_format_number(number, path):
    edited(path, lambda d: d.update(format=number))
    with pytest.raises(mc.InputError, match="no format number"):
        load(path)


@pytest.mark.parametrize(
    "text",
    ["", "[", "[]", "null", "NaN", '{"format": 1}', "[" * 100_000, '{"format": ' + "1" * 5000 + "}",
     '{"format": 1, "objects": [], "root": NaN}', '{"format": 1, "objects": 3, "root": 1}', "\xff"],
    ids=range(11),
)  # fmt: skip
def test_descriptions_that_are_none(text, path):
    rewrite(path, {"mercer.json": text.encode("latin-1")})
    with pytest.raises(mc.InputError, match="cannot be loaded"):
        load(path)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.ones((2, 2), dtype=np.float32), "description says"),
        (np.ones((2, 3)), "description says"),
        (np.ones((2, 2), dtype=[("a", float)]), "not a plain array"),
        (np.ones((2, 2), dtype=np.longdouble), "dtype"),
        (np.array(["2020"] * 4, dtype="datetime64[Y]"), "not a plain array|dtype"),
    ],
    ids=lambda x: str(getattr(x, "dtype", x))[:20],
)
def test_arrays_of_another_type_or_shape(array, message, path):
    save(PSI, path)
    rewrite(path, members(path) | {"0.npy": npy(array)})
    with pytest.raises(mc.InputError, match=message):
        load(path)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        npy(np.ones((2, 2)))[:-1],
        npy(np.ones((2, 2))) + b"x",
        npy(np.ones((2, 2))).replace(b"(2, 2)", b"(2,)  "),
        npy(np.ones((2, 2))).replace(b"NUMPY\x01", b"NUMPY\x09"),
        npy(np.ones((2, 2))).replace(b"(2, 2), }", b"(2, 9**9), }"),
        npy(np.ones((2, 2))).replace(b"<f8", b"|O8"),
    ],
    ids=range(7),
)
def test_arrays_that_are_damaged(content, path):
    save(PSI, path)
    rewrite(path, members(path) | {"0.npy": content})
    with pytest.raises(mc.InputError, match=r"array 0\.npy"):
        load(path)


def test_a_missing_array(path):
    save(PSI, path)
    parts = members(path)
    del parts["0.npy"]
    rewrite(path, parts)
    with pytest.raises(mc.InputError, match=r"no member '0\.npy'"):
        load(path)


def test_importing_io_is_light():
    code = "import sys, mercer.io; print('zipfile' in sys.modules, 'sklearn' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["False", "False"]


def test_saving_kernels_does_not_import_scikit_learn(path):
    code = (
        "import sys, mercer as mc, mercer.io\n"
        f"mercer.io.save(mc.mean_embedding(mc.Gaussian(1.0), [[0.0]]), {str(path)!r})\n"
        f"mercer.io.load({str(path)!r})\nprint('sklearn' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"
