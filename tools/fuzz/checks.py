"""What a fuzzed case calls: the call itself, and cheap checks of its answer."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import inspect
import io
import json
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np
from sklearn.base import clone

import mercer
import mercer.estimators
from mercer.cli import main

METHODS = ("transform", "predict", "score_samples", "decision_function", "predict_proba",
           "predict_log_proba", "predict_interval", "inverse_transform", "score")  # fmt: skip
# with cases of their own; `Points` may hold anything
KEPT = mercer.Element | mercer.Subspace | mercer.kernels.Points | mercer.estimators.KernelEstimator
WITHOUT_ROWS = ("get_feature_names_out", "loo_residuals")


def call(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Call twice: inputs stay as they are, and equal calls give equal answers."""
    before = _arrays(*args, *options.values())
    result = function(*args, **options)
    repr(result) if isinstance(function, type) else use(result)
    assert _arrays(*args, *options.values()) == before, "the call changed its arguments"
    seeded = options.get("random_state", 0) is not None
    if seeded and "random_state" not in _unset(function, options):
        assert _same(result, function(*args, **options)), "a repeated call gives another answer"
    return result


def use(result: Any) -> None:
    """Show a result, and call everything public of it that needs no arguments."""
    repr(result)
    kind = type(result)
    if not kind.__module__.startswith("mercer.") or isinstance(result, mercer.Kernel | KEPT):
        return
    for name in dir(kind):
        if name.startswith("_") or hasattr(mercer.estimators.KernelEstimator, name):
            continue
        value = getattr(result, name)
        if callable(value) and not isinstance(value, type) and not _required(value):
            value()
    if hasattr(result, "_repr_html_"):
        result._repr_html_()


def _required(function: Callable[..., Any]) -> list[str]:
    """Arguments without which a function cannot be called."""
    parameters = inspect.signature(function).parameters.values()
    many = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [p.name for p in parameters if p.default is p.empty and p.kind not in many]


def check_kernel(kernel: Any, X: Any, Y: Any) -> None:
    """Values agree with those of single pairs and of k(Y, X); claims of definiteness are true."""
    K, G = np.asarray(call(kernel, X, Y)), np.asarray(call(kernel, X))
    assert not np.isnan(K).any() or _overflows(kernel, X, Y), "k(X, Y) contains NaN"
    assert not np.isnan(G).any() or _overflows(kernel, X, X), "k(X) contains NaN"
    single = np.float32 in (K.dtype, G.dtype, np.asarray(X).dtype, np.asarray(Y).dtype)
    size = float(np.maximum(_largest(K), _largest(G)))  # NaN if one is
    if not np.isfinite(size):
        return  # an overflow
    tolerance = (1e-4 if single else 1e-9) * size + 1e-300  # denormal numbers have few digits
    assert np.allclose(K, np.asarray(kernel(Y, X)).T, 0.0, tolerance), "k(X, Y) is not k(Y, X)'"
    assert np.allclose(G, G.T, 0.0, tolerance), "k(X) is not symmetric"
    assert np.allclose(kernel.diag(X), np.diag(G), 0.0, tolerance), "the diagonal is another"
    for i, j in {(0, 0), (len(K) - 1, K.shape[1] - 1)} if K.size else ():
        pair = np.asarray(kernel(X[i : i + 1], Y[j : j + 1]))[0, 0]
        assert abs(pair - K[i, j]) <= tolerance, "a single pair has another value"
    if kernel.flags.is_positive_definite and len(G):
        least = np.linalg.eigvalsh(np.asarray(G, dtype=float))[0]
        assert least >= -10.0 * len(G) * tolerance, f"not positive definite: eigenvalue {least}"


def check_sums(kernel: Any, X: Any, coef: Any, Y: Any) -> None:
    """An element's values, gradients and norm agree with the Gram matrix."""
    psi = mercer.Element(kernel, X, coef)
    values, K = np.asarray(call(psi, Y), float), np.asarray(kernel(Y, X), float)
    a = np.asarray(coef, float)
    with np.errstate(all="ignore"):
        size = _largest(K) * np.abs(a).sum(axis=0).max(initial=0.0)
    single = np.float32 in (np.asarray(X).dtype, np.asarray(Y).dtype, np.asarray(coef).dtype)
    if np.isfinite(size):
        tolerance = (1e-4 if single else 1e-9) * size
        assert np.allclose(values, K @ a, 0.0, tolerance), "psi(Y) is not K a"
    with contextlib.suppress(mercer.MercerError):
        slopes = np.asarray(call(psi.gradient, Y))
        assert not np.isnan(slopes).any(), "the gradient contains NaN"
    if kernel.flags.is_positive_definite:
        assert not np.isnan(call(psi.norm)).any(), "the norm is NaN"


def fit_and_use(model: Any, X: Any, Y: Any, weights: Any = None, y: Any = None) -> None:
    """Fit an estimator, call what it has, and save it."""
    given = () if y is None else (y,)
    if "sample_weight" in inspect.signature(model.fit).parameters:
        call(model.fit, X, *given, sample_weight=weights)
    else:
        call(model.fit, X, *given)
    if hasattr(model, "certificate_"):
        check_certificates(model, y)
    answers = {}
    for name in METHODS:
        if hasattr(model, name):
            more = given if name == "score" else ()
            rows = model.transform(Y) if name == "inverse_transform" else Y
            answers[name] = call(getattr(model, name), rows, *more)
    if "predict_proba" in answers:
        check_probabilities(model, answers)
    _fit_again(model, X, Y, given)
    with tempfile.TemporaryDirectory() as folder:
        mercer.save(model, Path(folder, "model"))
        loaded = mercer.load(Path(folder, "model"))
    for name, answer in answers.items():
        if name not in ("inverse_transform", "score"):
            assert _same(answer, getattr(loaded, name)(Y)), f"{name} of a loaded model is another"


def _fit_again(model: Any, X: Any, Y: Any, given: tuple[Any, ...]) -> None:
    """The other ways to fit a model like this one, and what it answers without rows."""
    if hasattr(model, "sample"):
        call(model.sample, 3, random_state=0)
    for name in WITHOUT_ROWS:
        if hasattr(model, name):
            call(getattr(model, name))
    for name in ("fit_transform", "fit_predict"):
        if hasattr(model, name):
            made = getattr(clone(model), name)
            goes_on = getattr(model, "warm_start", False)  # a second fit may be better
            timed = getattr(model, "time_limit", None) is not None
            unseeded = getattr(model, "random_state", 0) is None
            made(X, *given) if goes_on or timed or unseeded else call(made, X, *given)
    if hasattr(model, "partial_fit"):
        with contextlib.suppress(mercer.MercerError):  # it needs landmarks
            check_partial_fit(clone(model), X, Y, given, getattr(model, "classes_", None))


def check_probabilities(model: Any, answers: dict[str, Any]) -> None:
    """Probabilities sum to one, and the predicted class has the largest."""
    P = answers["predict_proba"]
    assert np.all(P >= 0.0), "a negative probability"
    assert np.allclose(P.sum(axis=1), 1.0), "probabilities do not sum to one"
    index = np.searchsorted(model.classes_, answers["predict"])
    own = P[np.arange(len(P)), index]
    assert np.all(own >= P.max(axis=1) - 1e-9), "predict is not the most probable class"


def check_partial_fit(model: Any, X: Any, Y: Any, given: tuple[Any, ...], classes: Any) -> None:
    """Rows come in two batches; the model can be saved in between."""
    more = {} if classes is None else {"classes": classes}
    half = max(1, len(X) // 2)
    model.partial_fit(X[:half], *(y[:half] for y in given), **more)
    with tempfile.TemporaryDirectory() as folder:
        mercer.save(model, Path(folder, "model"))
        loaded = mercer.load(Path(folder, "model"))
    for one in (model, loaded):
        one.partial_fit(X[half:], *(y[half:] for y in given))
    for name in ("predict", "transform"):
        if hasattr(model, name) and getattr(model, "random_state", 0) is not None:
            same = _same(getattr(model, name)(Y), getattr(loaded, name)(Y))
            assert same, "a loaded model goes on differently"


def check_certificates(model: Any, y: Any) -> None:
    """Weak duality, for positive definite kernels: no dual objective is above its primal one."""
    given, y = model.certificate_, np.asarray(1.0 if y is None else y)
    unit = np.abs(y.astype(float)).max() if y.dtype.kind in "biuf" else 1.0
    for one in given if isinstance(given, tuple) else (given,):
        repr(one)
        if not model.kernel_.flags.is_positive_definite:
            continue
        slack = 1e-9 * max(abs(one.primal), abs(one.dual))
        slack += 1e-12 * float(getattr(model, "C", 1.0)) * unit  # of losses that cancel
        assert one.dual <= one.primal + slack, f"dual {one.dual} is above primal {one.primal}"


def load_damaged(thing: Any, seed: int) -> None:
    """Save an object, damage the file and load it."""
    random = Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "thing.mercer")
        mercer.save(thing, path)
        if random.random() < 0.3:
            path.write_bytes(damaged(path.read_bytes(), random))
        else:  # inside the archive, with right checksums
            with zipfile.ZipFile(path) as archive:
                parts = {name: archive.read(name) for name in archive.namelist()}
            name = random.choice(list(parts))
            if name == "mercer.json" and random.random() < 0.7:
                parts[name] = json.dumps(_mixed(json.loads(parts[name]), random)).encode()
            else:
                parts[name] = damaged(parts[name], random)
            with zipfile.ZipFile(path, "w") as archive:
                for name, content in parts.items():
                    archive.writestr(name, content)
        repr(mercer.load(path))


def run_command(name: str, command: str, options: list[str], seed: int) -> None:
    """Run a command on a file, damaged or not: exit codes are 0 to 3, errors expected ones."""
    random, rng = Random(seed), np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        inside = Path("in.dir", name) if Path(name).suffix in (".png", ".tif") else Path(name)
        Path("in.dir").mkdir()
        WRITERS[inside.suffix](inside, rng)
        if command == "predict":
            _write_model(inside, random)
        if random.random() < 0.5:
            inside.write_bytes(damaged(inside.read_bytes(), random))
        segment = command == "segment"
        source = inside if segment or inside == Path(name) else Path("in.dir")
        output = {".npy": "out.npz", ".png": "out.csv", ".tif": "out.csv"}.get(inside.suffix)
        output = "out.png" if segment else output or f"out{inside.suffix}"
        output = "out.mercer" if command == "fit" else output
        words = [*command.split(), str(source), "--debug", *options]
        if command == "reproduce":
            name = random.choice(["surrogate", "subgradient", "nothing"])
            words[1] = name if "--list" not in words else "--list"
        if command == "explore":
            with patch("mercer.explore.serve"):  # it would wait for requests
                _check_exit(*_run([*words, "--no-browser"]))
            return
        if command == "test two-sample":
            WRITERS[inside.suffix](Path("b" + inside.suffix), rng)
            words.insert(2, "b" + inside.suffix)
        _check_exit(*_run(words if command.startswith("test") else [*words, "-o", output]))


def _check_exit(code: int, err: str) -> None:
    assert code in (0, 1, 2, 3), f"exit code {code}"
    last = err.rpartition("\nmercer: ")[2]
    assert not last.startswith("unexpected"), last + err


def _run(words: list[str]) -> tuple[int, str]:
    err = io.StringIO()
    with contextlib.redirect_stderr(err), contextlib.redirect_stdout(io.StringIO()):
        return main(words), err.getvalue()


def _write_model(table: Path, random: Random) -> None:
    """A model of the column b of a table, sometimes damaged."""
    code, _ = _run(["fit", str(table), "--target", "b", "--include", "a", "-o", "m.mercer"])
    if code == 0 and random.random() < 0.2:
        Path("m.mercer").write_bytes(damaged(Path("m.mercer").read_bytes(), random))


def damaged(content: bytes, random: Random) -> bytes:
    """Some bytes are changed, removed, repeated or cut off."""
    data = bytearray(content)
    for _ in range(random.choice([1, 1, 2, 5, 20])):
        i = random.randrange(len(data) + 1)
        j = i + random.choice([1, 1, 4, 50])
        data[i:j] = random.choice([
            bytes([random.randrange(256)]), b"", data[i:j] * 2, b"\xff" * (j - i), b"9" * (j - i),
            random.choice([b"nan", b"1e999", b'"', b",", b"\n", b"-", b"\x00", b"=1+1"]),
        ])  # fmt: skip
    return bytes(data[: random.randrange(len(data) + 1)] if random.random() < 0.1 else data)


def _mixed(document: Any, random: Random) -> Any:
    """A description in which some values are replaced by others."""
    places = list(_places(document))
    for _ in range(random.choice([1, 1, 3])):
        holder, key = random.choice(places)
        other, other_key = random.choice(places)
        odd = [None, True, -1, 0, 2**70, 1e300, "x", [], {}, {"ref": 0}, {"float": "nan"}]
        with contextlib.suppress(LookupError):  # an earlier change removed it
            holder[key] = copy.deepcopy(random.choice([other[other_key], random.choice(odd)]))
    return document


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in items:
        yield value, key
        if isinstance(inner, dict | list):
            yield from _places(inner)


def _overflows(kernel: Any, X: Any, Y: Any) -> bool:
    """Whether a factor or a term is infinite: 0 * inf and inf - inf are NaN (docs/design.md)."""
    parts = [kernel.left, kernel.right] if hasattr(kernel, "left") else []
    return any(np.isinf(k(X, Y)).any() or _overflows(k, X, Y) for k in parts)


def _largest(K: Any) -> float:
    return float(np.abs(np.asarray(K, float)).max(initial=0.0))


def _unset(function: Callable[..., Any], options: dict[str, Any]) -> set[str]:
    """Parameters that are left at a default of None."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return set()
    return {p.name for p in parameters if p.default is None} - options.keys()


def _arrays(*things: Any) -> list[bytes]:
    """The contents of arrays and lists among the arguments."""
    found = []
    for thing in things:
        if isinstance(thing, np.ndarray) and thing.dtype != object:
            found.append(np.asarray(thing).tobytes())
        elif isinstance(thing, list):
            found.append(repr(thing).encode())
        elif hasattr(thing, "indptr"):
            found += _arrays(thing.data, thing.indices, thing.indptr)
    return found


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        kind = a.dtype.kind in "fc"
        return a.shape == b.shape and bool(np.array_equal(a, b, equal_nan=kind))
    if isinstance(a, float):
        return bool(a == b or (a != a and b != b))
    if dataclasses.is_dataclass(a) and type(a) is type(b):
        names = [field.name for field in dataclasses.fields(a)]
        return all(_same(getattr(a, name), getattr(b, name)) for name in names)
    return True


def _numbers(rng: Any) -> Any:
    """A small table; some columns are constant, large or whole numbers."""
    table = rng.normal(size=(rng.choice([1, 2, 9, 9, 30]), 2)).round(3)
    table[:, 0] *= rng.choice([1.0, 1.0, 1.0, 0.0, 1e300, 1e-300])
    return np.round(table) if rng.random() < 0.1 else table


def _write_text(path: Path, rng: Any) -> None:
    separator = "\t" if path.suffix == ".tsv" else ","
    rows = [["a", "b"], *_numbers(rng).astype(str).tolist()]
    for row in rows[1:]:
        if rng.random() < 0.1:
            row[rng.integers(2)] = rng.choice(["", "NA", "text", "=1+1", "inf"])
    path.write_text("\n".join(map(separator.join, rows)) + "\n")


def _write_parquet(path: Path, rng: Any) -> None:
    import pandas as pd

    pd.DataFrame(_numbers(rng), columns=["a", "b"]).to_parquet(path)


def _write_image(path: Path, rng: Any) -> None:
    from PIL import Image

    for i in range(3):
        pixels = rng.integers(0, 256, (6, 5)).astype(np.uint8)
        Image.fromarray(pixels).save(path.with_stem(f"{path.stem}{i or ''}"))


WRITERS: dict[str, Callable[[Path, Any], None]] = {
    ".csv": _write_text, ".tsv": _write_text, ".parquet": _write_parquet,
    ".npy": lambda path, rng: np.save(path, _numbers(rng)),
    ".npz": lambda path, rng: np.savez_compressed(path, a=_numbers(rng)),
    ".png": _write_image, ".tif": _write_image,
}  # fmt: skip
