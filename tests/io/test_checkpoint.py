"""Fits that are killed and go on, and Ctrl-C: with real signals, in processes of their own."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import textwrap
from functools import partial

import numpy as np
import pytest

import mercer as mc
from mercer._checkpoint import checkpointed, fingerprint
from mercer._progress import watched
from mercer.exceptions import InputError, MercerWarning
from mercer.io import _archive, checkpoint
from mercer.linalg._conjugate_gradients import ConjugateGradients

# each leaves its result in `out`, a list of arrays
FITS = {
    "conjugate gradients": """
        X = rng.normal(size=(2100, 2)); y = rng.normal(size=2100)
        s = linalg.solve(mc.Gaussian(0.5), X, y, 0.1, method="cg", random_state=0)
        out = [s.coef, s.residual, s.n_iter]
    """,
    "several right-hand sides, in float64": """
        X = rng.normal(size=(300, 2)); y = rng.normal(size=(300, 3))
        s = linalg.solve(mc.Gaussian(0.5), X, y, 0.1, method="cg", random_state=0,
                         preconditioner="none")
        out = [s.coef, s.residual, s.n_iter]
    """,
    "ridge by frequencies": """
        X = rng.uniform(size=(40_000, 1)); y = np.sin(9.0 * X[:, 0]) + rng.normal(size=40_000)
        m = mc.KernelRidge(mc.Gaussian(0.1), penalty=1e-3, solver="fourier").fit(X, y)
        out = [m.predict(X)]
    """,
    "eigenvectors": """
        X = rng.normal(size=(1600, 3))
        s = linalg.eigenpairs(mc.Laplace(1.0), X, 20, method="krylov", random_state=0)
        out = [s.values, s.vectors]
    """,
    "ascent": """
        X = rng.normal(size=(1200, 2))
        s = mc.mean_shift(mc.mean_embedding(mc.Gaussian(0.3), X))
        out = [s.points, s.labels, s.n_iter]
    """,
    "ascent in many columns": """
        X = rng.normal(size=(300, 30))
        s = mc.mean_shift(mc.mean_embedding(mc.Gaussian(3.0), X))
        out = [s.points, s.labels, s.n_iter]
    """,
    "dual": """
        X = rng.normal(size=(800, 2)); y = (X[:, 0] + rng.normal(size=800) > 0)
        m = mc.SVC(kernel=mc.Gaussian(0.5), C=10.0).fit(X, y)
        out = [m.dual_coef_, m.decision_function(X)]
    """,
    "dual of sums": """
        X = rng.normal(size=(800, 2)); y = (X[:, 0] + rng.normal(size=800) > 0)
        with mc.options(working_memory=0.1):
            m = mc.SVC(kernel=mc.Gaussian(0.5), C=10.0).fit(X, y)
        out = [m.dual_coef_, m.decision_function(X)]
    """,
    "Newton": """
        X = rng.normal(size=(300, 2)); y = (X[:, 0] + rng.normal(size=300) > 0) + (X[:, 1] > 1)
        m = mc.KernelLogisticRegression(C=100.0).fit(X, y)
        out = [m.dual_coef_, m.predict_proba(X)]
    """,
    "columns": """
        X = rng.normal(size=(300, 5)); X[:, 0] += X[:, 1]
        X[rng.random(X.shape) < 0.2] = np.nan
        m = mc.methods.fit_imputer(X, n_landmarks=50)
        out = [m(X), m.error, m.changes]
    """,
    "permutations": """
        X = rng.normal(size=(500, 2)); U = rng.normal(size=(160, 500))
        with mc.options(engine="spectral"):
            forms = mc.engine.spectral_forms(mc.Gaussian(0.5).program, X)
        out = list(forms(lambda some: U[some], len(U), U[:2].T))
    """,
    "permutations in float32": """
        X = rng.normal(size=(8500, 3)); U = rng.normal(size=(20, 8500)).astype(np.float32)
        forms = mc.engine.native_forms(mc.Gaussian(1.5).program, X)
        out = list(forms(lambda some: U[some], len(U), U[:2].T))
    """,
    "rows of a file": """
        with mc.options(working_memory=0.02):
            m = mc.KernelPCA(3, kernel=mc.Gaussian(1.0), n_landmarks=20, random_state=0)
            m.fit(rows(4000))
        out = [m.eigenvalues_, m.transform(np.eye(2))]
    """,
    "least squares of a file": """
        with mc.options(working_memory=0.02):
            X, y = rows(4000), mc.io.open_rows(path + ".npy", columns=[1])
            m = mc.KernelRidge(mc.Gaussian(1.0), n_landmarks=20, random_state=0).fit(X, y)
        out = [m.predict(np.eye(2))]
    """,
    "permutations of a file": """
        with mc.options(working_memory=0.02):
            s = mc.mmd_test(rows(2000), rows(2000), n_permutations=30, random_state=0)
        out = [s.statistic, s.pvalue, s.null_statistics]
    """,
}
_START = """
import os, signal, sys
import numpy as np
import mercer as mc
from mercer import linalg
from mercer._progress import watched

seen = []
def watch(step):
    # `tracked` reports before its items, others after them
    if step.task == task.split(" in ")[0].split(" of ")[0].split(", ")[0]:
        seen.append(step)
        if len(seen) == at:
            act()
def rows(n):
    X = rng.normal(size=(n, 2))
    if not os.path.exists(path + ".npy"):
        np.save(path + ".npy", X)
    return mc.io.open_rows(path + ".npy")
task, at, path = sys.argv[1], int(sys.argv[2]), sys.argv[3]
rng = np.random.default_rng(0)
"""


def run(body, *arguments, act="pass", every=0.0, code=0, whole=False):
    """Run lines in a process; `whole` adds a run without a checkpoint and its number of steps."""
    body = textwrap.indent(textwrap.dedent(body), "    ")
    lines = [_START, f"def act():\n    {act}\n"]
    lines.append(f"with watched(watch), mc.io.checkpoint(path, every={every}) as ctrl_c:\n{body}")
    lines.append("print(len(seen), ctrl_c.requested)\nwhole = {}")
    if whole:
        lines.append("again, rng, seen = out, np.random.default_rng(0), []")
        lines.append(f"with watched(watch):\n{body}\nprint(len(seen))")
        lines.append("out, whole = again, {f'whole_{i}': part for i, part in enumerate(out)}")
    lines.append("np.savez(sys.argv[4], *out, **whole)")
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines), *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == code, done.stderr
    return done


AT = {
    "ascent": 60,
    "columns": 8,
    "rows of a file": 20,
    "least squares of a file": 6,
    "permutations of a file": 6,
}  # else 3


@pytest.mark.parametrize("task", FITS)
def test_a_fit_that_is_killed_goes_on_to_the_same_result(task, tmp_path):
    path = tmp_path / "fit.checkpoint"
    name = task.replace("several right-hand sides, in float64", "linear system")
    name = name.replace("conjugate gradients", "linear system")
    name = name.replace("ridge by frequencies", "linear system")
    kill = "os.kill(os.getpid(), signal.SIGKILL)"
    run(FITS[task], name, AT.get(task, 3), path, tmp_path / "none", act=kill, code=-signal.SIGKILL)
    assert path.exists()
    assert not (tmp_path / "none.npz").exists()
    again = run(FITS[task], name, 0, path, tmp_path / "again.npz", whole=True)
    steps, _, whole = again.stdout.split()
    assert int(steps) < int(whole)
    assert not path.exists()
    with np.load(tmp_path / "again.npz") as found:
        for key in (key for key in found if key.startswith("arr")):
            np.testing.assert_array_equal(found[key], found[key.replace("arr", "whole")])


def small(**changes):
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = X[:, 0]
    settings = {"penalty": 1e-3, "method": "cg", "preconditioner": "none"} | changes
    return mc.linalg.solve(mc.Gaussian(1.0), X, y, **settings)


def interrupted_at(count):
    """A watcher that breaks off at a step."""
    seen = []

    def watch(step):
        seen.append(step)
        if len(seen) == count:
            raise RuntimeError("broken off")

    return watch


def break_off(path, count=5, fit=small):
    with pytest.raises(RuntimeError, match="broken off"), watched(interrupted_at(count)):  # noqa: SIM117
        with checkpoint(path, every=0.0):
            fit()
    assert path.exists()


def test_another_problem_is_refused_and_leaves_the_file(tmp_path):
    path = tmp_path / "fit.checkpoint"
    break_off(path)
    before = path.read_bytes()
    with pytest.raises(InputError, match="another computation"), checkpoint(path):
        small(penalty=1e-2)
    assert path.read_bytes() == before
    with checkpoint(path):
        small()
    assert not path.exists()


def test_another_number_of_iterations_is_another_problem(tmp_path):
    """The state of a run that ended early would be returned as the result of a longer one."""

    def fit():
        small(max_iter=3)
        raise RuntimeError("broken off")

    path = tmp_path / "fit.checkpoint"
    break_off(path, 99, fit)
    with pytest.raises(InputError, match="another computation"), checkpoint(path):
        small(max_iter=1000)


@pytest.mark.parametrize("at", range(1, 14))
def test_ctrl_c_while_some_columns_are_done_with_their_draft(at, tmp_path):
    """They wait for the others, and go on with them."""
    K = mc.Gaussian(1.0)(np.linspace(0.0, 30.0, 120)[:, None])
    rest = np.random.default_rng(0).normal(size=120)
    B = np.column_stack([np.linalg.eigh(K)[1][:, -2:].sum(axis=1) + 1e-7 * rest, rest])

    def fit(watch):
        def draft(V):
            return (K.astype(np.float32) @ V.astype(np.float32)).astype(float) + 0.01 * V

        cg = ConjugateGradients(
            lambda V: K @ V + 0.01 * V, np.copy, B, 1e-10, 1.0, draft, problem=("test",)
        )
        cg.run(500, watch)
        return cg

    known, path = fit(None), tmp_path / "fit.checkpoint"
    assert {s.name for s in known.status} == {"CONVERGED"}
    with checkpoint(path, every=0.0) as ctrl_c:
        found = fit(lambda step: setattr(ctrl_c, "requested", step.n_iter >= at))
    assert "STOPPED" in {s.name for s in found.status}
    assert found.n_iter.max() <= at + 1
    with checkpoint(path):
        again = fit(None)
    np.testing.assert_array_equal(again.coef, known.coef)
    assert list(again.status) == list(known.status)


def svc():
    """A classifier whose kernel matrix fits into the working memory, unless that is small."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 2))
    return mc.SVC(kernel=mc.Gaussian(0.3), C=100.0).fit(X, X[:, 0] + rng.normal(size=1000) > 0)


def test_a_dual_problem_that_had_only_begun_goes_on(tmp_path):
    """No row of its kernel matrix had been computed."""
    path = tmp_path / "fit.checkpoint"
    break_off(path, 1, svc)
    with checkpoint(path):
        assert svc().certificate_.relative_gap < 1e-3


def test_a_dual_problem_goes_on_with_more_memory(tmp_path):
    path = tmp_path / "fit.checkpoint"
    with mc.options(working_memory=0.1):
        break_off(path, fit=svc)
    with checkpoint(path):
        found = svc()
    assert found.certificate_.relative_gap < 1e-3


def test_a_dual_problem_goes_on_after_ctrl_c_as_without_it(tmp_path):
    """The state is that of the round, not what is summed again to report the gap."""
    with mc.options(working_memory=0.1):
        known, path = svc(), tmp_path / "fit.checkpoint"
        with (
            checkpoint(path, every=0.0) as ctrl_c,
            watched(stops_at("dual", 4, ctrl_c)),
            pytest.warns(mc.MercerWarning, match="stopped"),
        ):
            assert svc().n_iter_ < known.n_iter_
        with checkpoint(path):
            found = svc()
    np.testing.assert_array_equal(found.dual_coef_, known.dual_coef_)


def stops_at(task, n_iter, ctrl_c):
    def watch(step):
        ctrl_c.requested |= step.task == task and step.n_iter >= n_iter

    return watch


def test_ctrl_c_when_nobody_reads_the_message(monkeypatch):
    """As in `mercer fit ... 2>&1 | tee log`, where the signal ends `tee` too."""

    class Broken:
        def write(self, _):
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stderr", Broken())
    with checkpoint(None) as ctrl_c:
        signal.raise_signal(signal.SIGINT)
    assert ctrl_c.requested


def test_a_block_that_computes_nothing_leaves_the_file(tmp_path):
    path = tmp_path / "fit.checkpoint"
    break_off(path)
    before = path.read_bytes()
    with checkpoint(path):
        pass
    assert path.read_bytes() == before


def test_a_finished_part_is_not_computed_again(tmp_path):
    path = tmp_path / "fit.checkpoint"

    def both():
        return small(), small(penalty=1e-4)

    first = len(steps_of(small))
    break_off(path, first + 3, both)
    with checkpoint(path):
        found = []
        again = len(steps_of(lambda: found.append(both())))
    assert again < len(steps_of(both)) - first
    for one, two in zip(found[0], both(), strict=True):
        np.testing.assert_array_equal(one.coef, two.coef)


def steps_of(call):
    seen = []
    with watched(seen.append):
        call()
    return seen


def test_the_same_computation_twice_has_two_places(tmp_path):
    path = tmp_path / "fit.checkpoint"
    first = len(steps_of(small))
    break_off(path, first + 3, lambda: (small(), small()))
    with checkpoint(path):
        a, b = small(), small()
    np.testing.assert_array_equal(a.coef, small().coef)
    np.testing.assert_array_equal(b.coef, small().coef)


@pytest.mark.parametrize("damage", ["truncated", "flipped", "empty", "other", "list", "states"])
def test_damaged_files_fail_cleanly(damage, tmp_path):
    path = tmp_path / "fit.checkpoint"
    break_off(path)
    data = path.read_bytes()
    if damage == "truncated":
        path.write_bytes(data[: len(data) // 2])
    elif damage == "flipped":
        middle = len(data) // 2
        path.write_bytes(data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :])
    elif damage == "empty":
        path.write_bytes(b"")
    else:
        mark = {"mercer checkpoint": 1, "begun": ["a"], "states": {"a": {}}}
        wrong = {"other": mc.Gaussian(1.0), "list": mark | {"begun": 3}}
        mc.save(wrong.get(damage, mark | {"states": {"b": {}}}), path)
    with pytest.raises(InputError), checkpoint(path):
        small()


@pytest.mark.parametrize("bad", [{}, {"coef": "x"}, {"coef": np.zeros(3)}])
def test_states_that_do_not_fit_are_refused(bad, tmp_path):
    path = tmp_path / "fit.checkpoint"
    break_off(path)
    stored = mc.load(path)
    (key,) = stored["states"]
    stored["states"][key] = stored["states"][key] | bad if bad else {}
    mc.save(stored, path)
    with pytest.raises(InputError, match="damaged"), checkpoint(path):
        small()


def test_a_full_disk_does_not_end_the_computation(tmp_path, monkeypatch):
    path, write = tmp_path / "fit.checkpoint", _archive._write

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    break_off(path)
    before = path.read_bytes()
    monkeypatch.setattr(_archive, "_write", full)
    with pytest.warns(MercerWarning, match="No space left"), checkpoint(path, every=0.0):
        found = small()
    np.testing.assert_array_equal(found.coef, small().coef)
    path.write_bytes(before)
    with pytest.warns(MercerWarning, match="No space left"), pytest.raises(RuntimeError):  # noqa: SIM117
        with watched(interrupted_at(2)), checkpoint(path, every=0.0):
            small()
    assert path.read_bytes() == before
    monkeypatch.setattr(_archive, "_write", write)
    with checkpoint(path):
        np.testing.assert_array_equal(small().coef, found.coef)


def test_folders_and_folders_without_rights_are_refused(tmp_path, monkeypatch):
    with pytest.raises(InputError, match="is a folder"), checkpoint(tmp_path):
        pass
    monkeypatch.setattr(os, "access", lambda *_: False)  # whoever runs the tests
    with pytest.raises(InputError, match="not writable"), checkpoint(tmp_path / "a"):
        pass


def test_an_interval_is_kept_and_the_parent_folder_must_exist(tmp_path):
    path = tmp_path / "fit.checkpoint"
    with pytest.raises(RuntimeError), watched(interrupted_at(5)), checkpoint(path, every=1e6):
        small()
    assert mc.load(path)["states"] == {}  # nothing was due
    with pytest.raises(InputError, match="folder"), checkpoint(tmp_path / "no" / "file"):
        pass
    with pytest.raises(InputError, match="every"), checkpoint(path, every=-1.0):
        pass


def test_fingerprints():
    X = np.arange(6.0).reshape(2, 3)
    same = [fingerprint(X, mc.Gaussian(1.0)), fingerprint(X.copy(), mc.Gaussian(1.0))]
    assert same[0] == same[1]
    others = [
        fingerprint(X.T, mc.Gaussian(1.0)),
        fingerprint(X.astype(np.float32), mc.Gaussian(1.0)),
        fingerprint(X, mc.Gaussian(2.0)),
        fingerprint(X, mc.Laplace(1.0)),
        fingerprint(np.where(X == 5.0, 6.0, X), mc.Gaussian(1.0)),
        fingerprint((X,), mc.Gaussian(1.0)),
        fingerprint("1"),
        fingerprint(1),
        fingerprint(1.0),
        fingerprint([1], 2),
        fingerprint([1, 2]),
    ]
    assert len({same[0], *others}) == 1 + len(others)


class Bump(mc.Radial):
    """A kernel that is no dataclass."""

    def __init__(self, width):
        object.__setattr__(self, "width", width)

    def get_params(self, deep=True):
        return {"width": self.width}

    def profile(self, u):
        return 1.0 / (1.0 + u / self.width**2)


class Scaled:
    def __init__(self, factor):
        self.factor = factor

    def __call__(self, x):
        return self.factor * x


def test_what_is_hashed_does_not_depend_on_the_process():
    """Sets have an order of their own in each process, and objects an address."""
    code = "from mercer._checkpoint import fingerprint; import numpy as np; print(fingerprint({}))"
    table = "np.array([(1.0, 'abc' * 9)], dtype=[('x', float), ('name', object)])"
    for value in ("frozenset(map(str, range(20)))", table):
        words = [sys.executable, "-c", code.format(value)]
        runs = [
            subprocess.run(
                words, capture_output=True, text=True, check=True,
                env=os.environ | {"PYTHONHASHSEED": seed},
            ).stdout
            for seed in ("1", "2")
        ]  # fmt: skip
        assert runs[0] == runs[1]


@pytest.mark.parametrize("make", [Bump, Scaled, lambda x: partial(max, x)])
def test_objects_that_can_be_called_count_by_their_parameters(make):
    assert fingerprint(make(1.0)) == fingerprint(make(1.0))
    assert fingerprint(make(1.0)) != fingerprint(make(2.0))


def test_nothing_is_kept_outside_of_a_checkpoint():
    place = checkpointed("anything", 1)
    assert place.found is None
    assert not place.is_kept
    place.keep(lambda: pytest.fail("asked for a state"))


# --- Ctrl-C -------------------------------------------------------------------------------------

_CTRL_C = "os.kill(os.getpid(), signal.SIGINT)"


@pytest.mark.parametrize("task", ["linear system", "eigenvectors", "ascent", "dual"])
def test_ctrl_c_gives_the_best_point_and_its_status(task, tmp_path):
    path = tmp_path / "fit.checkpoint"
    name = {"linear system": "several right-hand sides, in float64"}.get(task, task)
    body = FITS[name]
    if task != "dual":
        body += "\n        out.append(np.array(str(s.status)))"
    done = run(body, task, 2, path, tmp_path / "part.npz", act=_CTRL_C)
    assert done.stdout.split()[1] == "True"
    assert "Ctrl-C again" in done.stderr
    assert path.exists()
    with np.load(tmp_path / "part.npz") as part:
        stated = done.stderr if task == "dual" else str(part[part.files[-1]])
    assert "stopped by" in stated or "STOPPED" in stated
    # and it goes on from there
    run(FITS[name], task, 0, tmp_path / "other", tmp_path / "whole.npz")
    run(FITS[name], task, 0, path, tmp_path / "again.npz")
    with np.load(tmp_path / "whole.npz") as one, np.load(tmp_path / "again.npz") as two:
        for key in one:
            np.testing.assert_array_equal(one[key], two[key])


def test_a_second_ctrl_c_stops_at_once(tmp_path):
    act = f"{_CTRL_C}; {_CTRL_C}"
    done = run(FITS["ascent"], "ascent", 2, tmp_path / "a", tmp_path / "b", act=act, code=-2)
    assert "KeyboardInterrupt" in done.stderr


def test_loops_without_a_partial_result_end_with_keyboard_interrupt(tmp_path):
    done = run(FITS["columns"], "columns", 2, tmp_path / "a", tmp_path / "b", act=_CTRL_C, code=-2)
    assert "KeyboardInterrupt" in done.stderr


def test_the_handler_of_before_is_there_again():
    before = signal.getsignal(signal.SIGINT)
    with checkpoint(None) as ctrl_c:
        assert signal.getsignal(signal.SIGINT) is not before
        signal.raise_signal(signal.SIGINT)
        assert ctrl_c.requested
        assert signal.getsignal(signal.SIGINT) is before
    assert signal.getsignal(signal.SIGINT) is before


def test_ctrl_c_that_is_ignored_stays_ignored():
    """The shell lets jobs in the background ignore it."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with checkpoint(None) as ctrl_c:
            signal.raise_signal(signal.SIGINT)
        assert not ctrl_c.requested
    finally:
        signal.signal(signal.SIGINT, before)
