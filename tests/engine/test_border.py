"""The border of the compiled core: what does not fit is refused, and nothing crashes."""

import threading

import numpy as np
import pytest

import mercer as mc
from mercer.engine._compiled import core
from mercer.engine.programs._tape import _OPS
from mercer.engine.sums import _choice
from tests.engine.isas import ISAS, compiled, core_program, each_isa, forced

pytestmark = compiled

STEPS = [(1, 1, 0, 0, -0.5, 0.0, 0.0)]
WRONG = (TypeError, ValueError)


@pytest.fixture(params=["float32", "float64"])
def dtype(request):
    return request.param


@pytest.fixture
def points(dtype, rng):
    return rng.normal(size=(10, 3)).astype(dtype)


@pytest.fixture
def program(dtype, points):
    made = core_program(dtype, points, STEPS, 1, 2, "")
    made.set_coef(0, np.ones((10, 2), dtype))
    return made


def unaligned(array):
    """The same numbers, one byte off where the processor wants them."""
    out = np.empty(array.nbytes + 1, np.uint8)[1:].view(array.dtype).reshape(array.shape)
    out[...] = array
    assert not out.flags.aligned
    return out


def unfit(array):
    """The array in every type and layout that the core does not read."""
    other = "float64" if array.dtype == np.float32 else "float32"
    wide = np.zeros((array.shape[0], 2 * array.shape[1]), array.dtype)
    return [
        array.astype(other),
        array.astype(np.int64),
        array.astype(complex),
        array.astype(array.dtype.newbyteorder()),
        np.asfortranarray(array),
        wide[:, ::2],
        array[::-1],
        array[:, 0],
        array[None],
        unaligned(array),
        array.tolist(),
        None,
    ]


def test_points_of_another_kind(points, dtype):
    for wrong in unfit(points):
        with pytest.raises(WRONG):
            core_program(dtype, wrong, STEPS, 1, 2, "")
    for empty in (points[:0], points[:, :0].copy()):
        with pytest.raises(ValueError, match="rows and columns"):
            core_program(dtype, empty, STEPS, 1, 2, "")


def test_arrays_that_may_not_be_written_are_read(points, dtype):
    points.flags.writeable = False
    made = core_program(dtype, points, STEPS, 1, 2, "")
    made.set_coef(0, points)
    made.sums(points, [np.empty((10, 3))])


@pytest.mark.parametrize(
    "step",
    [
        (-1, 1, 0, 0, 1.0, 0.0, 0.0),
        (len(_OPS), 1, 0, 0, 1.0, 0.0, 0.0),
        (1, 8, 0, 0, 1.0, 0.0, 0.0),
        (1, -1, 0, 0, 1.0, 0.0, 0.0),
        (1, 0, 0, 0, 1.0, 0.0, 0.0),  # the slot of the variable
        (1, 1, 8, 0, 1.0, 0.0, 0.0),
        (_OPS.index("add"), 1, 0, -1, 1.0, 0.0, 0.0),
        (_OPS.index("add"), 1, 0, 2, 1.0, 0.0, 0.0),  # a slot nobody wrote
        (_OPS.index("whole_power"), 1, 0, 0, 1.0, 0.0, 0.0),
        (_OPS.index("whole_power"), 1, 0, 0, 1.0, 0.0, 2.5),
        (_OPS.index("whole_power"), 1, 0, 0, 1.0, 0.0, 1e300),
        (_OPS.index("whole_power"), 1, 0, 0, 1.0, 0.0, np.nan),
        (1, 1, 0, 0, 1.0, 0.0),
        ("exp", 1, 0, 0, 1.0, 0.0, 0.0),
        None,
    ],
    ids=repr,
)
def test_steps_that_are_none(step, points, dtype):
    with pytest.raises(WRONG):
        core_program(dtype, points, [step], 1, 2, "")


@pytest.mark.parametrize(
    ("steps", "result", "form", "message"),
    [
        (STEPS * 25, 1, 2, "too long"),
        (STEPS, 2, 2, "no such slot"),
        (STEPS, 8, 2, "no such slot"),
        (STEPS, -1, 2, "no such slot"),
        (STEPS, 1, 3, "unknown form"),
        (STEPS, 1, -1, "unknown form"),
    ],
)
def test_tapes_and_forms_that_are_none(steps, result, form, message, points, dtype):
    with pytest.raises(ValueError, match=message):
        core_program(dtype, points, steps, result, form, "")


def test_coefficients_that_do_not_fit(program, dtype):
    good = np.ones((10, 2), dtype)
    for wrong in unfit(good):
        with pytest.raises(WRONG):
            program.set_coef(0, wrong)
    for wrong in (np.ones((9, 2), dtype), np.ones((10, 0), dtype)):
        with pytest.raises(ValueError, match="coefficients"):
            program.set_coef(0, wrong)
    for kind in (-1, 4):
        with pytest.raises(ValueError, match="kind of weight"):
            program.set_coef(kind, good)


def test_queries_that_do_not_fit(program, points, dtype):
    out = np.empty((10, 2))
    for wrong in unfit(points):
        with pytest.raises(WRONG):
            program.sums(wrong, [out])
        with pytest.raises(WRONG):
            program.gram(wrong, np.empty((10, 10), dtype), 0, 10)
    with pytest.raises(ValueError, match="another dimension"):
        program.sums(np.ones((10, 4), dtype), [out])
    with pytest.raises(ValueError, match="another dimension"):
        program.gram(np.ones((10, 4), dtype), np.empty((10, 10), dtype), 0, 10)


def test_outputs_that_do_not_fit(program, points, dtype):
    """A converted copy would be filled, and lost."""
    locked = np.empty((10, 2))
    locked.flags.writeable = False
    for wrong in (*unfit(np.zeros((10, 2))), locked):
        with pytest.raises(WRONG):
            program.sums(points, [wrong])
    wrong_shapes = ([np.empty((9, 2))], [np.empty((10, 3))], [], [np.empty((10, 2))] * 2)
    for outs in wrong_shapes:
        with pytest.raises(ValueError, match="output"):
            program.sums(points, outs)
    for wrong in unfit(np.zeros((10, 10), dtype)):
        with pytest.raises(WRONG):
            program.gram(points, wrong, 0, 10)
    with pytest.raises(ValueError, match="output shape"):
        program.gram(points, np.empty((10, 9), dtype), 0, 10)


def test_rows_of_a_gram_matrix_come_in_groups(program, points, dtype):
    out = np.zeros((10, 10), dtype)
    for first, last in ((1, 10), (0, 9), (0, 11), (program.group, 0)):
        with pytest.raises(ValueError, match="rows must"):
            program.gram(points, out, first, last)
    with pytest.raises(TypeError):
        program.gram(points, out, -program.group, 10)
    assert not out.any()


def test_sums_need_coefficients(points, dtype):
    made = core_program(dtype, points, STEPS, 1, 2, "")
    with pytest.raises(ValueError, match="set_coef first"):
        made.sums(points, [])


def test_boxes_that_do_not_fit(program, points, dtype):
    for wrong in (points[:9], points[:, :2].copy()):
        with pytest.raises(ValueError, match="other points"):
            program.set_boxes(wrong, 1.0)
    for wrong in unfit(points):
        with pytest.raises(WRONG):
            program.set_boxes(wrong, 1.0)
    with pytest.raises(ValueError, match="boxes need distances"):
        core_program(dtype, points, STEPS, 1, 0, "").set_boxes(points, 1.0)


def test_no_queries_are_no_work(program, dtype):
    program.sums(np.empty((0, 3), dtype), [np.empty((0, 2))])
    program.gram(np.empty((0, 3), dtype), np.empty((10, 0), dtype), 0, 10)


@pytest.mark.parametrize("name", ["exp", "log"])
def test_functions_that_do_not_fit(name, dtype):
    run = getattr(core(), name + dtype[-2:])
    x = np.ones(8, dtype)
    other = np.float64 if dtype == "float32" else np.float32
    with pytest.raises(ValueError, match="equal length"):
        run(x, np.empty(7, dtype), "")
    wrong = (x.astype(other), np.ones(16, dtype)[::2], x[:, None], x.tolist())
    for array in wrong:
        with pytest.raises(TypeError):
            run(array, np.empty(8, dtype), "")
        with pytest.raises(TypeError):
            run(x, array, "")


def test_unaligned_tiles_sums_and_letters_are_refused(points, dtype):
    profile, square = core().Profile(STEPS, 1, ""), np.zeros((10, 10), dtype)
    norms = np.ones(10, dtype)
    for call in (
        lambda: profile.values(unaligned(square)),
        lambda: profile.values(square, unaligned(norms), norms),
        lambda: core().coordinate_sums(0, unaligned(points), points, square, ""),
        lambda: core().coordinate_sums(0, points, points, unaligned(square), ""),
        lambda: getattr(core(), "exp" + dtype[-2:])(unaligned(norms), norms, ""),
    ):
        with pytest.raises(ValueError, match="aligned"):
            call()
    letters, start = np.zeros(4, np.int32), np.array([0, 4])
    for wrong in ((unaligned(letters), start), (letters, unaligned(start))):
        with pytest.raises(ValueError, match="aligned"):
            core().subsequence_diagonal(*wrong, 2, 0.5, np.empty(1), "")


def test_unaligned_points_and_coefficients_are_copied(points):
    for k in (mc.Gaussian(1.0), mc.kernels.ChiSquare()):
        X = np.abs(points)
        np.testing.assert_array_equal(k(unaligned(X)), k(X))
        a = np.ones(10, points.dtype)
        there = mc.Element(k, unaligned(X), unaligned(a))(unaligned(X))
        np.testing.assert_array_equal(there, mc.Element(k, X, a)(X))


def test_more_columns_than_scratch_memory_is_made_for(dtype):
    """Products of sizes would leave 32 bits, and the memory of a panel would be gigabytes."""
    many, few = np.zeros((1, core().MAX_COLUMNS + 1), dtype), np.zeros((1, 2), dtype)
    with pytest.raises(ValueError, match="too many columns"):
        core_program(dtype, many, STEPS, 1, 2, "")
    with pytest.raises(ValueError, match="not too many"):
        core_program(dtype, few, STEPS, 1, 2, "").set_coef(0, many)
    with mc.options(engine="native"), pytest.raises(mc.InputError, match="use options"):
        mc.Gaussian(1.0)(many)
    for k, value in ((mc.Gaussian(1.0), 1.0), (mc.Laplace(1.0), 1.0), (mc.Linear(), 0.0)):
        assert k(many) == value
        assert mc.Element(k, many, [2.0])(many) == 2 * value
        if k != mc.Laplace(1.0):
            assert not mc.Element(k, many, [2.0]).gradient(many).any()


def test_many_elements_are_summed_in_parts(dtype, monkeypatch, rng):
    monkeypatch.setattr(_choice, "_VALUE_COLUMNS", 64)
    X, A = rng.normal(size=(3, 2)).astype(dtype), rng.normal(size=(3, 1000)).astype(dtype)
    psi = mc.Element(mc.Gaussian(1.0), X, A)
    expected = mc.Gaussian(1.0)(X).astype(float) @ A.astype(float)
    np.testing.assert_allclose(psi(X), expected, rtol=1e-5 if dtype == "float32" else 1e-13)


def test_sums_of_many_columns_are_sums_of_short_sums(rng):
    """float32 coordinates: the error must not grow like their number."""
    X = rng.normal(size=(20, 900)).astype("float32")
    X[10:] = X[:10] + np.float32(0.01) * rng.normal(size=(10, 900)).astype("float32")
    exact = np.sqrt(((X[:, None].astype(float) - X[None].astype(float)) ** 2).sum(axis=-1))
    got = mc.Element(mc.Laplace(30.0), X, np.eye(20, dtype="float32"))(X)
    np.testing.assert_allclose(got, np.exp(-exact / 30.0), rtol=1e-6)


def test_coefficients_may_be_set_while_sums_run(dtype, rng):
    """Those that a sum began with stay until it ends."""
    X = rng.normal(size=(4000, 3)).astype(dtype)
    program = core_program(dtype, X, STEPS, 1, 2, "")
    one, two = (np.full((4000, 8), c, dtype) for c in (1.0, 2.0))
    program.set_coef(0, one)
    single = np.empty((500, 8))
    program.sums(X[:500], [single])
    outs = [np.empty((500, 8)) for _ in range(20)]
    ends = threading.Event()

    def sums():
        for out in outs:
            program.sums(X[:500], [out])
        ends.set()

    worker = threading.Thread(target=sums)
    worker.start()
    while not ends.is_set():
        program.set_coef(0, two)
        program.set_coef(0, one)
    worker.join()
    for out in outs:
        factor = out[0, 0] / single[0, 0]
        assert round(factor) in (1, 2)
        np.testing.assert_allclose(out, round(factor) * single, rtol=1e-5)


def test_an_instruction_set_that_is_not_there(points):
    known = ", ".join(ISAS)
    for run in (
        lambda: mc.Gaussian(1.0)(points),
        lambda: core().exp64(np.ones(1), np.ones(1), "sse9"),
    ):
        with forced("sse9"), pytest.raises(ValueError, match=f"'sse9' is not available.*{known}"):
            run()


@each_isa
def test_the_forced_instruction_set_is_the_one_that_runs(isa, points, dtype):
    """Told by the number of points it works on at once."""
    groups = {"baseline": 4, "avx2": 4, "avx512": 8}
    assert core_program(dtype, points, STEPS, 1, 2, isa).group == groups[isa]
    assert core_program(dtype, points, STEPS, 1, 2, "").group == groups[ISAS[-1]]
    assert isa in core().describe()
