"""Cases: short Python programs, each determined by a seed and a number."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from functools import cache
from random import Random
from typing import Any

from tools.fuzz.arguments import Draw

# Packages whose functions check their input; engine and rigor are for checked input.
PACKAGES = [
    "kernels",
    "space",
    "preimages",
    "methods",
    "estimators",
    "linalg",
    "theory",
    "datasets",
]
HEADER = """\
import numpy as np
import pandas
import scipy.sparse

import mercer
import mercer.datasets
import mercer.estimators
import mercer.theory
from tools.fuzz.checks import *

"""


def case(seed: int, number: int, kinds: str = "all") -> str:
    """The source of a case."""
    random = Random(f"{seed} {number}")
    weights = {_kernel: 3, _sums: 2}
    if kinds == "all":
        weights |= {_call: 8, _estimator: 4, _archive: 2, _command: 1}
    kind = random.choices(list(weights), list(weights.values()))[0]
    return HEADER + kind(random)


@cache
def targets() -> list[tuple[str, Any]]:
    """Public functions and classes, without abstract classes and results."""
    found = []
    for package in PACKAGES:
        module = importlib.import_module(f"mercer.{package}")
        for name in module.__all__:
            target = getattr(module, name)
            if callable(target) and not inspect.isabstract(target) and not _is_result(target):
                found.append((f"mercer.{package}.{name}", target))
    return found


def _is_result(target: Any) -> bool:
    """Results hold arrays that the library computed; enumerations have members only."""
    if not inspect.isclass(target) or target.__name__ in ("Element", "GramOperator"):
        return False
    parameters = inspect.signature(target).parameters.values()
    kinds = " ".join(str(p.annotation) for p in parameters)
    return any(word in kinds for word in ("Array", "Status", "_Term", "_empty"))


def _arguments(draw: Draw, target: Any) -> str:
    """Required arguments by position, and some of the others by name."""
    positional, named = [], []
    for parameter in inspect.signature(target).parameters.values():
        if parameter.default is parameter.empty:
            positional.append(draw.argument(parameter, target))
        elif parameter.name in ("random_state", "max_boxes") or draw.random.random() < 0.25:
            named.append(f"{parameter.name}={draw.argument(parameter, target)}")
    return "".join(f", {text}" for text in [*positional, *named])


def _call(random: Random) -> str:
    name, target = random.choice(targets())
    return f"call({name}{_arguments(Draw(random), target)})\n"


def _estimator(random: Random) -> str:
    name, target = random.choice([t for t in targets() if hasattr(t[1], "fit")])
    draw = Draw(random, random.choice([0.03, 0.15]))
    model = f"{name}({_arguments(draw, target)[2:]})"
    return f"fit_and_use({model}, {draw.points()}, {draw.points()})\n"


def _kernel(random: Random) -> str:
    draw = Draw(random, random.choice([0.0, 0.15]))
    return f"check_kernel({draw.kernel()}, {draw.points()}, {draw.points()})\n"


def _sums(random: Random) -> str:
    draw = Draw(random, random.choice([0.0, 0.15]))
    draw.rows, draw.columns = random.randrange(1, 90), random.choice([1, 2, 3, 16, 17, 40])
    coef = random.choice(
        [f"np.ones({draw.rows})", f"np.ones(({draw.rows}, 5), 'f4')", draw.weights()]
    )
    return f"check_sums({draw.kernel()}, {draw.points()}, {coef}, {draw.points()})\n"


def _archive(random: Random) -> str:
    draw = Draw(random, 0.0)
    thing: Callable[[], str] = random.choice([
        draw.kernel, draw.element, draw.subspace, draw.points,
        lambda: f"mercer.KernelPCA(2, random_state=0).fit({draw.points()})",
        lambda: "[{'a': 1.5, (2, 'b'): {3}}, np.arange(3), mercer.Newton()]",
        lambda: "mercer.Element(mercer.Spectrum(2), ['ab', 'ba'], [1.0, 2.0])",
    ])  # fmt: skip
    return f"load_damaged({thing()}, {random.randrange(10**9)})\n"


def _command(random: Random) -> str:
    file = random.choice(["a.csv", "a.tsv", "a.npy", "a.npz", "a.parquet", "a.png", "a.tif"])
    words = random.choice(
        [["anomalies"], ["cluster"], ["cluster", "--flat"], ["anomalies", "--escape"]]
    )
    if file.endswith(("png", "tif")):
        words = random.choice([words, ["segment"]])
    elif file != "a.npy" and random.random() < 0.4:
        words = random.choice([["denoise"], ["impute"], ["denoise", "--noise", "0.1"]])
    return f"run_command({file!r}, {words!r}, {random.randrange(10**9)})\n"
