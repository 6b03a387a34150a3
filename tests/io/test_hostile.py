"""Files that somebody made to do harm: nothing runs, nothing is trusted."""

import builtins
import io
import os
import subprocess
import sys
import zipfile

import numpy as np
import pytest

import mercer as mc
from mercer.io import load, save
from tests.io.archives import PSI, edited, members, npy, rewrite


@pytest.fixture
def path(tmp_path):
    return tmp_path / "psi.mercer"


@pytest.mark.parametrize(
    "kind", ["os.system", "builtins.eval", "subprocess.Popen", "mercer.io.load", "this.s", ""]
)
def test_other_names_are_refused_without_being_imported(kind, path, monkeypatch):
    def change(document):
        document["objects"][0] = {"kind": kind, "parts": {"command": "exit 1"}}

    def called(*_):
        raise AssertionError("a file had code executed")

    edited(path, change)
    for module, function in ((os, "system"), (builtins, "eval"), (subprocess, "Popen")):
        monkeypatch.setattr(module, function, called)
    with pytest.raises(mc.InputError, match=r"not registered|lacks"):
        load(path)
    assert "this" not in sys.modules


@pytest.mark.parametrize(
    ("kind", "parts"),
    [
        ("mercer.kernels.Gaussian", {"length_scale": "__import__('os').getcwd()"}),
        ("mercer.kernels.Gaussian", {"length_scale": -1.0}),
        ("mercer.kernels.Gaussian", {"no": 1.0}),
        ("mercer.kernels.Gaussian", {"length_scale": {"enum": ["mercer.kernels.Gaussian", "x"]}}),
        (
            "mercer.kernels.Gaussian",
            {"length_scale": {"enum": ["mercer.kernels.Flags", "x"]}},
        ),
        ("mercer.kernels.Definiteness", {"value": "all of them"}),
        ("mercer.kernels.Sum", {"left": 1, "right": 2}),
        ("mercer.kernels.FromFunction", {"function": "os.system"}),
        ("mercer.kernels.Scales", {"array": 1, "more": 2}),
        ("mercer.kernels.Kernel", {}),
        ("mercer.space.feature", {"kernel": None, "X": None}),
    ],
)
def test_objects_that_cannot_be_built(kind, parts, path):
    def change(document):
        document["objects"][0] = {"kind": kind, "parts": parts}

    edited(path, change)
    with pytest.raises(mc.InputError, match="cannot be loaded"):
        load(path)


def test_pickled_arrays_are_refused(path):
    class Bomb:
        def __reduce__(self):
            return os.abort, ()

    save(PSI, path)
    parts = members(path)
    parts["0.npy"] = npy(np.array([[Bomb(), Bomb()]] * 2, dtype=object), allow_pickle=True)
    rewrite(path, parts)
    with pytest.raises(mc.InputError, match="not a plain array"):
        load(path)


@pytest.mark.parametrize(
    "root",
    [
        {},
        {"a": 1, "b": 2},
        {"eval": "1"},
        {"ref": -1},
        {"ref": 10**6},
        {"ref": True},
        {"ref": "0"},
        {"float": "1"},
        {"int": 3},
        {"complex": [1]},
        {"bytes": "?"},
        {"bytes": 1},
        {"tuple": 3},
        {"set": [[1]]},
        {"dict": [[1]]},
        {"dict": {"a": 1}},
        {"dict": [[[1], 2]]},
        {"scalar": ["object", 1]},
        {"scalar": ["float64", "x"]},
        {"scalar": ["int8", 1000]},
        {"scalar": ["S", 3]},
        {"scalar": ["float64", "1.5"]},
        {"scalar": ["float64", [1.0, 2.0]]},
        {"enum": "x"},
        {"enum": ["mercer.kernels.Definiteness", "NO"]},
        {"enum": [["x"], "NO"]},
    ],
    ids=str,
)
def test_values_that_mean_nothing(root, path):
    edited(path, lambda d: d.update(root=root))
    with pytest.raises(mc.InputError, match="cannot be loaded"):
        load(path)


@pytest.mark.parametrize(
    "node",
    [
        {},
        3,
        None,
        {"what": 1},
        {"kind": 1, "parts": {}},
        {"kind": "mercer.kernels.Gaussian"},
        {"kind": "mercer.kernels.Gaussian", "parts": [1]},
        {"array": "0.npy"},
        {"array": "9.npy", "dtype": "<f8", "shape": [2, 2]},
        {"array": "mercer.json", "dtype": "<f8", "shape": [2, 2]},
        {"array": "../0.npy", "dtype": "<f8", "shape": [2, 2]},
        {"array": "0.npy", "dtype": "<f4", "shape": [2, 2]},
        {"array": "0.npy", "dtype": "<f8", "shape": [4]},
        {"array": "0.npy", "dtype": "<f8", "shape": [2, -2]},
        {"array": "0.npy", "dtype": "<f8", "shape": [2, 2.0]},
        {"array": "0.npy", "dtype": "<f8", "shape": 4},
        {"items": [1, 2], "shape": [3]},
        {"items": [1, 2], "shape": [2**70]},
        {"items": [], "shape": [0, 2**70]},
        {"items": 1, "shape": []},
        {"table": [2], "columns": []},
        {"table": [2], "columns": [["a", 1]]},
        {"table": [10**15], "columns": [["a", {"ref": 0}]]},
    ],
    ids=str,
)
def test_nodes_that_mean_nothing(node, path):
    def change(document):
        document["objects"].insert(0, node)

    edited(path, change)
    with pytest.raises(mc.InputError, match="cannot be loaded"):
        load(path)


# --- bombs ----------------------------------------------------------------------------------------


def test_compressed_members_are_refused(path):
    save(np.zeros(10**6), path)
    rewrite(path, members(path), zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 10**5
    with pytest.raises(mc.InputError, match="more than its size"):
        load(path)
    save(PSI, path)
    rewrite(path, members(path) | {"padding": os.urandom(10**4)}, zipfile.ZIP_DEFLATED)
    with pytest.raises(mc.InputError, match="compressed"):
        load(path)


def test_shapes_are_not_trusted(path):
    shape = 10**6, 10**6
    file = io.BytesIO()
    header = {"descr": "<f8", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)
    edited(path, lambda d: d["objects"][1].update(shape=shape))
    rewrite(path, members(path) | {"0.npy": file.getvalue() + 100 * b"x"})
    with pytest.raises(mc.InputError, match=r"array 0\.npy is too short or too long"):
        load(path)


def test_a_member_is_read_once(path):
    def change(document):
        document["objects"] += 1000 * [document["objects"][1]]

    edited(path, change)
    with pytest.raises(mc.InputError, match="refers to it twice"):
        load(path)


# --- what the engine would trust ------------------------------------------------------------------


def parts_of(document, kind):
    return next(o["parts"] for o in document["objects"] if o.get("kind", "").endswith(kind))


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("SingleFeatures", {"n_points": 2}),
        ("SingleFeatures", {"n_points": -3}),
        ("SingleFeatures", {"value": {"ref": 1}}),
        ("SingleFeatures", {"index": None}),
        ("Element", {"coef": {"ref": 0}}),
        ("Element", {"batch": 2}),
        ("Element", {"batch": None}),
        ("Element", {"batch": 0}),
        ("Element", {"batch": 3.0}),
        ("Element", {"coef": {"ref": 1}}),
        ("Element", {"kernel": {"ref": 1}}),
        ("Element", {"points": {"tuple": [1, 2, 3]}}),
    ],
    ids=str,
)
def test_elements_are_checked(kind, change, path):
    phi = mc.feature(mc.Gaussian(1.0), [[0.0], [1.0], [2.0]])
    edited(path, lambda d: parts_of(d, kind).update(change), phi)
    with pytest.raises(mc.InputError, match=f"{kind} cannot be built"):
        load(path)


def test_row_numbers_are_checked(path):
    save(mc.feature(mc.Gaussian(1.0), [[0.0], [1.0]]), path)
    for bad in ([0, 2], [-1, 0]):
        rewrite(path, members(path) | {"1.npy": npy(np.array(bad))})
        with pytest.raises(mc.InputError, match="beyond its 2 points"):
            load(path)


def test_points_are_checked(path):
    save(PSI, path)
    rewrite(path, members(path) | {"0.npy": npy(np.array([[0.0, np.nan], [1.0, 2.0]]))})
    with pytest.raises(mc.InputError, match="points contains NaN"):
        load(path)


@pytest.mark.parametrize(
    ("name", "bad"),
    [("1.npy", [0, 7, 1]), ("1.npy", [0, -1, 1]), ("2.npy", [0, 9, 3]), ("2.npy", [1, 2, 3])],
)
def test_sparse_indices_are_checked(name, bad, path):
    from scipy.sparse import csr_array

    save(csr_array([[1.0, 2.0], [0.0, 3.0]]), path)
    rewrite(path, members(path) | {name: npy(np.array(bad, dtype=np.int32))})
    with pytest.raises(mc.InputError, match="damaged"):
        load(path)


def test_stacked_and_low_rank_coefficients_are_checked(path):
    k, X = mc.Gaussian(1.0), np.eye(3)
    psi = mc.feature(k, X) - mc.mean_embedding(k, X + 1.0)
    edited(path, lambda d: parts_of(d, "Stacked").update(parts={"tuple": []}), psi)
    with pytest.raises(mc.InputError, match="equal numbers"):
        load(path)

    def swap(document):
        parts = parts_of(document, "LowRank")
        parts["left"] = parts["right"]

    edited(path, swap, psi)
    with pytest.raises(mc.InputError, match="no product"):
        load(path)


def test_booleans_are_booleans(path):
    save(np.array([True, False]), path)
    parts = members(path)
    rewrite(path, parts | {"0.npy": parts["0.npy"][:-1] + b"\x07"})
    with pytest.raises(mc.InputError, match="neither 0 nor 1"):
        load(path)
