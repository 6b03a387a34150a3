"""Files that refer to one thing many times: loading costs no more than their size allows."""

import json
import time
import tracemalloc

import numpy as np
import pytest

import mercer as mc
from mercer.io import _archive, _decode, load, save
from tests.io.archives import members, npy, rewrite

POINTS = np.random.default_rng(0).normal(size=(500, 1000))  # 4 MB
GRAM = POINTS @ POINTS.T


@pytest.fixture
def path(tmp_path):
    return tmp_path / "t.mercer"


def write(path, objects, arrays, root=0):
    document = {"format": 1, "mercer": "0", "root": root, "objects": objects}
    parts = {f"{i}.npy": npy(array) for i, array in enumerate(arrays)}
    rewrite(path, {"mercer.json": json.dumps(document)} | parts)


def node(array, i=0):
    return {"array": f"{i}.npy", "dtype": array.dtype.str, "shape": list(array.shape)}


def kind(name, **parts):
    return {"kind": f"mercer.{name}", "parts": parts}


def refused(path, match):
    """Loading fails early."""
    start = time.process_time()
    with pytest.raises(mc.InputError, match=match):
        load(path)
    assert time.process_time() - start < 10.0


def refused_in_little_memory(path, match):
    """Loading fails with memory of a few times the file."""
    tracemalloc.start()
    with pytest.raises(mc.InputError, match=match):
        load(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 6 * path.stat().st_size + 50_000_000


@pytest.mark.parametrize(
    "repeated",
    [
        kind("kernels.Precomputed", K={"ref": 0}),
        kind("kernels.Matrix", array={"ref": 0}),
        {"table": [500, 500], "columns": [["a", {"ref": 0}], ["b", {"ref": 0}]]},
    ],
    ids=["precomputed", "map", "table"],
)
def test_one_array_in_many_objects(repeated, path):
    write(path, [node(GRAM), repeated], [GRAM], {"ref": 1})
    load(path)
    write(path, [node(GRAM), *(10_000 * [repeated])], [GRAM])
    refused_in_little_memory(path, "same arrays too often")


def test_one_array_in_many_columns_of_a_table(path):
    columns = [[f"c{i}", {"ref": 0}] for i in range(20_000)]
    write(path, [node(POINTS), {"table": [500, 1000], "columns": columns}], [POINTS])
    refused_in_little_memory(path, "same arrays too often")


def test_one_index_in_many_selections(path):
    index, value = np.arange(400_000), np.ones(400_000)
    nodes = [node(index), node(value, 1)]
    parts = {"index": {"ref": 0}, "value": {"ref": 1}, "n_points": 400_000}
    write(path, nodes + 20_000 * [kind("engine.SingleFeatures", **parts)], [index, value])
    refused_in_little_memory(path, "same arrays too often")


def test_elements_may_share_their_points(path):
    """A thousand of them cost no more than one: points are checked once."""
    k = mc.Gaussian(30.0)
    first = mc.Element(k, POINTS, np.ones(500))
    elements = [float(i) * first for i in range(1, 1001)]
    save(elements, path)
    start = time.process_time()
    found = load(path)
    assert time.process_time() - start < 5.0
    assert path.stat().st_size < 1.5 * (POINTS.nbytes + 1000 * 500 * 8)
    assert all(np.shares_memory(psi.points, found[0].points) for psi in found)
    np.testing.assert_array_equal(found[6](POINTS[:3]), elements[6](POINTS[:3]))


def test_points_that_are_not_shared_are_not_mixed_up(path):
    """Lists of the description are freed when they were read, and their ids are used again."""
    objects = [
        kind("kernels.Gaussian", length_scale=1.0), node(np.ones((1, 1))),
        kind("engine.Dense", array={"ref": 1}),
    ]  # fmt: skip
    objects += [
        kind("space.Element", kernel={"ref": 0}, points=[[float(i)]], coef={"ref": 2}, batch=None)
        for i in range(100)
    ]
    write(path, objects, [np.ones((1, 1))], [{"ref": i + 3} for i in range(100)])
    assert [float(psi.points[0, 0]) for psi in load(path)] == list(range(100))


def test_shared_points_are_checked_for_every_domain(path):
    """Accepted by one kernel, and refused by the next."""
    objects = [
        node(POINTS[:2, :3]), node(np.ones((2, 1)), 1), kind("kernels.Gaussian", length_scale=1.0),
        kind("kernels.ChiSquare", gamma=1.0), kind("engine.Dense", array={"ref": 1}),
    ]  # fmt: skip
    for k in (2, 3):
        element = kind("space.Element", kernel={"ref": k}, points={"ref": 0}, coef={"ref": 4},
                       batch=None)  # fmt: skip
        write(path, [*objects, element], [POINTS[:2, :3], np.ones((2, 1))], {"ref": 5})
        if k == 2:
            assert load(path).points.shape == (2, 3)
        else:
            with pytest.raises(mc.InputError, match="Element cannot be built"):
                load(path)


@pytest.mark.parametrize("name", ["Sum", "Product"])
@pytest.mark.parametrize("depth", [24, 60])
def test_kernels_that_contain_themselves_twice(name, depth, path):
    objects = [kind("kernels.Gaussian", length_scale=1.0)]
    objects += [kind(f"kernels.{name}", left={"ref": i}, right={"ref": i}) for i in range(depth)]
    write(path, objects, [], {"ref": depth})
    refused(path, "nested and shared too often|kernels is too large")


def test_many_objects_that_share_a_large_one(path):
    """None of them is large in the file."""
    objects = [kind("kernels.Gaussian", length_scale=1.0)]
    objects += [kind("kernels.Sum", left={"ref": i}, right={"ref": i}) for i in range(11)]
    objects += 20_000 * [kind("kernels.Sum", left={"ref": 11}, right={"ref": 11})]
    write(path, objects, [], {"ref": 0})
    refused(path, "nested and shared too often")


def test_many_objects(path, monkeypatch):
    """The limit is about repeated references, not about the number of objects."""
    monkeypatch.setattr(_decode, "_MOST_NODES", 100)
    write(path, 1000 * [{"items": [], "shape": [0]}], [], [{"ref": i} for i in range(1000)])
    assert len(load(path)) == 1000


def test_sums_of_many_kernels(path):
    k = mc.Gaussian(1.0)
    for i in range(100):
        k = k + mc.Gaussian(2.0 + i)
    save(k, path)
    assert load(path) == k


MODULUS = 2**61 - 1  # of hashes of numbers
COLLIDING = {
    "set": {"set": [i * MODULUS for i in range(1, 20_000)]},
    "frozenset": {"frozenset": [i * MODULUS for i in range(1, 20_000)]},
    "dict": {"dict": [[i * MODULUS, None] for i in range(1, 20_000)]},
    "long": {"set": [{"int": hex(i * MODULUS)} for i in range(1, 20_000)]},
    "tuples": {"set": [{"tuple": [i * MODULUS]} for i in range(1, 20_000)]},
}


@pytest.mark.parametrize("name", COLLIDING)
def test_members_with_equal_hashes(name, path):
    write(path, [], [], COLLIDING[name])
    refused(path, "equal hashes")


def test_sets_and_dicts_of_ordinary_size(path):
    thing = {"a": set(range(-5000, 5000)), 3: {float(i): str(i) for i in range(5000)}}
    save(thing, path)
    assert load(path) == thing
    assert "mercer.json" in members(path)


def test_descriptions_of_very_many_lists(path, monkeypatch):
    parts = {"mercer.json": '{"format": 1, "objects": [], "root": [' + "[]," * 3_000_000 + "1]}"}
    rewrite(path, parts)
    refused_in_little_memory(path, "description is too long")
    monkeypatch.setattr(_archive, "_MOST_TEXT", 1000)
    with pytest.raises(mc.InputError, match="too many parts"):
        save([[]] * 1000, path)


@pytest.mark.parametrize("large", [False, True])
def test_very_many_members(large, path):
    """`zipfile` needs seven times the memory of an archive of empty members."""
    entry = b"PK\1\2" + bytes(24) + (1).to_bytes(2, "little") + bytes(16) + b"a"
    directory = 400_000 * entry
    length = len(directory).to_bytes(8, "little")
    end = b"PK\5\6" + bytes(8) + length[:4] + bytes(6)
    if large:
        wide = b"PK\6\6" + bytes(36) + length + bytes(8)
        end = wide + b"PK\6\7" + bytes(16) + b"PK\5\6" + 12 * b"\xff" + bytes(6)
    path.write_bytes(directory + end)
    refused_in_little_memory(path, "too many members")


def test_devices_without_an_end():
    with pytest.raises(mc.InputError, match="not written by mercer"):
        load("/dev/zero")


@pytest.mark.parametrize("number", ["1,", "1.5e3,", '"ab",', "[],"])
def test_descriptions_of_numbers(number, path):
    """Twelve million bytes of them are refused at once."""
    text = '{"format": 1, "objects": [], "root": [' + number * (12_000_000 // len(number)) + "1]}"
    rewrite(path, {"mercer.json": text})
    tracemalloc.start()
    with pytest.raises(mc.InputError, match="description is too long"):
        load(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2 * len(text)


def test_lists_of_very_many_numbers_are_not_saved(path):
    with pytest.raises(mc.InputError, match="save arrays, not lists"):
        save(list(range(1_000_000)), path)
    assert not path.exists()


STRINGS = ["", "a", "äß∞", "\ud800", "x" * 300, "\x00"] * 50


@pytest.mark.parametrize("kind", [list, tuple, lambda s: np.array(s, dtype=object), set])
def test_many_strings(kind, path):
    thing = kind(STRINGS)
    save([thing, thing], path)
    one, _ = load(path)
    assert type(one) is type(thing)
    assert list(one) == list(thing) or set(one) == set(thing)
    document = members(path)["mercer.json"]
    assert isinstance(thing, set) or len(document) < 1000


def test_a_long_text_is_an_array(path):
    """Points of kernels on strings may need more than a description has room for."""
    words = [f"{i:>100}" for i in range(60_000)]
    save(words, path)
    start = time.process_time()
    assert load(path) == words
    assert time.process_time() - start < 2.0


@pytest.mark.parametrize(
    ("text", "lengths"),
    [
        (np.zeros(3, np.uint8), np.array([1, 1])),
        (np.zeros(3, np.uint8), np.array([4, -1])),
        (np.zeros(3, np.uint8), np.array([[3]])),
        (np.zeros(3, np.int8), np.array([3])),
        (np.zeros(3, np.uint8), np.array([3.0])),
        (np.full(3, 255, np.uint8), np.array([3])),
        (np.zeros(0, np.uint8), np.zeros(1_000_000, dtype=np.int64)),
        (np.zeros(0, np.uint8), np.array([2**62, 2**62, 2**62, 2**62])),
    ],
)
def test_damaged_strings(text, lengths, path):
    strings = {"strings": [{"ref": 0}, {"ref": 1}]}
    write(path, [node(text), node(lengths, 1)], [text, lengths], {"list": strings})
    with pytest.raises(mc.InputError, match="cannot be loaded"):
        load(path)
