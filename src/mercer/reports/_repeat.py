"""Parameters of an object as text, and the code that recreates it."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from mercer import kernels, methods, preimages
from mercer.kernels._names import rounded
from mercer.methods import TestResult
from mercer.preimages import PreImage

_LONGEST = 2000  # characters of a parameter; longer ones are named in the code


def parameters_of(obj: Any) -> tuple[dict[str, str], dict[str, str]]:
    """The parameters that were given to an object, and its defaults, as text."""
    if isinstance(obj, TestResult):
        kernels = {f"kernel {i}": rounded(k) for i, k in enumerate(obj.kernels, 1)}
        draws = {"n_permutations": f"{obj.n_permutations}", "random_state": f"{obj.seed}"}
        return draws, kernels
    if not hasattr(obj, "get_params"):
        return {}, {}
    given = {k: _text(k, v) for k, v in _changed(obj).items()}
    every = obj.get_params(deep=False).items()
    return given, {k: _text(k, v) for k, v in every if k not in given}


def code_of(obj: Any) -> str:
    """A program that recreates the object from its data."""
    if isinstance(obj, TestResult):
        return _program(methods, obj.call.partition("(")[0], f"result = {obj.call}")
    if isinstance(obj, PreImage):
        lines = (
            "found = preimage(psi)  # with the solver, starts and options that you gave\n"
            "certify(psi, found.points)  # proves again what is proved, from the points alone"
        )
        return _program(preimages, "certify, preimage", lines)
    name = type(obj).__name__
    given = ", ".join(f"{k}={_text(k, v)}" for k, v in _changed(obj).items())
    rows = "X, y" if obj.__sklearn_tags__().target_tags.required else "X"
    lines = f"model = {name}({given})\nmodel.fit({rows})"
    if "random_state" in obj.get_params(deep=False) and obj.random_state is None:
        lines += "\n# random_state is None: landmarks or features, if any, differ from run to run"
    return _program("mercer.estimators", name, lines)


def _changed(obj: Any) -> dict[str, Any]:
    """The parameters of an estimator that are not the defaults."""
    plain = type(obj)().get_params(deep=False)
    given = obj.get_params(deep=False)
    return {k: v for k, v in given.items() if repr(v) != repr(plain[k])}


def _text(name: str, value: Any) -> str:
    """The repr of a parameter, or its name if it is an array."""
    text = name if isinstance(value, np.ndarray) else repr(value)
    return text if len(text) <= _LONGEST else name


def _program(package: Any, names: str, lines: str) -> str:
    """Lines of code after the imports that they need."""
    home = package if isinstance(package, str) else package.__name__
    imports = {home: {*names.split(", ")}}
    for module in (kernels, preimages, methods):
        used = {w for w in re.findall(r"\b[A-Z]\w+(?=\()", lines) if w in module.__all__}
        imports.setdefault(module.__name__, set()).update(used - imports[home])
    head = [f"from {m} import {', '.join(sorted(n))}" for m, n in sorted(imports.items()) if n]
    return "\n".join([*head, "", lines])
