"""Cases: short Python programs, each determined by a seed and a number."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from functools import cache
from random import Random
from typing import Any

import mercer
from mercer import datasets, kernels, linalg, methods, preimages, space, theory
from tools.fuzz.arguments import COMPRESSORS, LOSSES, SOLVERS, Draw
from tools.fuzz.edges import QUESTIONS
from tools.fuzz.large import PLACES
from tools.fuzz.theory import argument as theory_argument
from tools.fuzz.theory import probabilities

# Packages whose functions check their input. Those of engine and rigor take input that was checked,
# and those of testing fail on wrong input; the checks of `laws.py` and `_law` call them.
PACKAGES = [
    "kernels", "space", "preimages", "methods", "estimators", "linalg", "theory", "datasets",
    "theory.duality", "theory.first_order", "theory.learning",
]  # fmt: skip
RESULTS = ("RiskBound", "Sensitivity", "SmoothnessCheck")  # without arrays
HEADER = """\
import cvxpy as cp
import numpy as np
import pandas
import polars
import scipy.sparse
import scipy.stats

import mercer
import mercer.datasets
import mercer.estimators
import mercer.plot
import mercer.testing
import mercer.theory
from tools.fuzz.checks import *
from tools.fuzz.edges import *
from tools.fuzz.large import *
from tools.fuzz.laws import *

"""


def case(seed: int, number: int, kinds: str = "all") -> str:
    """The source of a case."""
    random = Random(f"{seed} {number}")
    weights = {_kernel: 3, _sums: 2, _engines: 1}
    if kinds == "all":
        weights |= {_call: 8, _method: 6, _estimator: 5, _law: 4}
        weights |= {_archive: 2, _command: 2, _plot: 1, _explore: 1, _edge: 1, _large: 1}
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
    if target.__name__ in RESULTS:
        return True
    parameters = inspect.signature(target).parameters.values()
    kinds = " ".join(str(p.annotation) for p in parameters)
    return any(word in kinds for word in ("Array", "Status", "_Term", "_empty"))


def _arguments(draw: Draw, target: Any) -> str:
    """Required arguments by position, and some of the others by name."""
    positional: list[str] = []
    named: list[str] = []
    share = 0.4 if inspect.isclass(target) else 0.25
    for parameter in inspect.signature(target).parameters.values():
        if parameter.name == "self" or parameter.kind is parameter.VAR_KEYWORD:
            continue
        if parameter.kind is parameter.VAR_POSITIONAL:
            positional += [draw.points() for _ in range(draw.random.choice([0, 0, 1, 3]))]
            continue
        required = parameter.default is parameter.empty
        if required and parameter.kind is not parameter.KEYWORD_ONLY:
            positional.append(_argument(draw, parameter, target))
        elif required or parameter.name in ALWAYS or draw.random.random() < share:
            named.append(f"{parameter.name}={_argument(draw, parameter, target)}")
    return "".join(f", {text}" for text in [*positional, *named])


def _argument(draw: Draw, parameter: inspect.Parameter, target: Any) -> str:
    return theory_argument(draw, target, parameter) or draw.argument(parameter, target)


def _call(random: Random) -> str:
    name, target = random.choice(targets())
    return f"call({name}{_arguments(Draw(random), target)})\n"


def _method(random: Random) -> str:
    """A public method of an object that is made of plain arguments."""
    draw = Draw(random, 0.03)
    kind, made = random.choice(list(OBJECTS.items()))
    thing = made(draw)
    draw.nasty = random.choice([0.05, 0.2])
    name = random.choice(methods_of(kind))
    return f"call({thing}.{name}{_arguments(draw, getattr(kind, name))})\n"


def methods_of(kind: type) -> list[str]:
    """Public methods and operations of a class, without internal ones."""
    names = [name for name in dir(kind) if name in OPERATIONS or not name.startswith("_")]
    return [name for name in names if callable(getattr(kind, name))
            and not {name, f"{kind.__name__}.{name}"} & set(INTERNAL)]  # fmt: skip


def _estimator(random: Random) -> str:
    name, target = random.choice(
        [t for t in targets() if ".estimators." in t[0] and hasattr(t[1], "fit")]
    )
    draw = Draw(random, random.choice([0.03, 0.15]))
    model = f"{name}({_arguments(draw, target)[2:]})"
    given = [draw.points(), draw.points(), draw.weights()]
    if inspect.signature(target.fit).parameters["y"].default is inspect.Parameter.empty:
        any_loss = "loss" in inspect.signature(target).parameters
        classes = random.random() < 0.5 if any_loss else hasattr(target, "decision_function")
        given.append(draw.targets(classes))
    return f"fit_and_use({model}, {', '.join(given)})\n"


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


def _engines(random: Random) -> str:
    draw = Draw(random, 0.0)
    draw.rows = random.randrange(1, 60)
    coef = random.choice([f"np.ones({draw.rows})", f"np.linspace(-1.0, 2.0, {draw.rows})"])
    return f"check_engines({draw.kernel()}, {draw.points()}, {coef}, {draw.points()})\n"


def _law(random: Random) -> str:
    """A check of `laws.py` or of `mercer.testing`."""
    draw, plain = Draw(random, random.choice([0.0, 0.1])), Draw(random, 0.0)
    psi, kernel, Y = draw.element(), draw.kernel(), draw.points()
    density = f"mercer.mean_embedding({kernel}, {draw.points()})"
    own, dual = random.choice([t for t in targets() if _returns(t[1], "PrimalDual")])
    return random.choice([
        f"check_kernel_laws({plain.kernel()}, {plain.columns})",
        f"check_element_laws({plain.element()})",
        f"check_subspace_laws({plain.subspace()})",
        f"check_bounds({psi})",
        f"check_enclosure({kernel}, {Y})",
        f"check_minimum({psi}, {Y}, {draw.number()}, {random.choice([1, 50, 500])})",
        f"check_preimage({psi}, {random.choice(SOLVERS)})",
        f"check_modes({density}, {random.choice(['None', 'None', Y])})",
        check_structured(draw),
        f"check_duality({own}{_arguments(plain, dual)})",
        f"check_problem({random.randrange(10**6)})",
        f"check_divergences({probabilities(draw)}, {probabilities(draw)})",
        f"check_compressed({plain.element()}, {plain.count()}, {random.choice(COMPRESSORS[:3])}, "
        f"{random.choice(['None', '0.0', '0.1', '1e-6', draw.number()])})",
    ]) + "\n"  # fmt: skip


def _returns(target: Any, kind: str) -> bool:
    return inspect.signature(target).return_annotation == kind


def check_structured(draw: Draw) -> str:
    """A check of a kernel on strings, sets or tables."""
    kernel, X, Y = draw.random.choice(STRUCTURED)
    kernel = kernel.format(n=draw.count(), x=draw.number())
    return f"check_kernel({kernel}, {X}, {Y})"


def _plot(random: Random) -> str:
    draw = Draw(random, random.choice([0.0, 0.15]))
    plot = importlib.import_module("mercer.plot")
    name = random.choice(plot.__all__)
    found = "preimage({}, history=True)" if name == "plot_path" else "mean_shift({})"
    made = {"found": "mercer." + found.format(draw.element()),
            "space": f"mercer.methods.scale_space({draw.points()})",
            "element": draw.element(),
            "at": f"np.zeros({draw.columns})",
            "rows": f"{{'a': {draw.points()}, 'b': {draw.points()}}}",
            "risks": draw.weights(),
            "sizes": draw.weights()}  # fmt: skip
    target = getattr(plot, name)
    words = []
    for p in inspect.signature(target).parameters.values():
        if p.default is p.empty:
            words.append(made.get(p.name) or draw.argument(p, target))
        elif p.name == "resolution" or random.random() < 0.25:
            words.append(f"{p.name}={draw.argument(p, target)}")
    return f"draw(mercer.plot.{name}, {', '.join(words)})\n"


def _explore(random: Random) -> str:
    """A question of the interactive page, about one table or two."""
    draw = Draw(random, 0.0)
    draw.rows, draw.columns = random.choice([2, 3, 8, 30]), random.choice([1, 2, 3])
    X = draw.points()
    X = random.choice([X, X, X, f"np.round({X})", f"1e300 * {X}", f"1e-300 * {X}", f"1e12 + {X}",
                       f"np.where({X} > 1, np.nan, {X})", f"0 * {X}"])  # fmt: skip
    odd = ["None", "-1", "0", "2**70", "1e300", "5e-324", "np.inf", "'x'", "[]", "[0, 9]", "{}"]
    asked = {"columns": random.choice(["[0]", "[0, 1]", "[1, 0]"]),
             "kernel": random.choice(["'gaussian'", "'laplace'", "'matern'"]),
             "bandwidth": random.choice(["0.4", "1", "1e-5", "1e5"]),
             "point": random.choice(["[0.5]", "[0.5, 1]", "[1e300, 0]"]),
             "components": random.choice(["1", "5", "50"])}  # fmt: skip
    if random.random() < 0.2:
        asked[random.choice(list(asked))] = random.choice(odd)
    text = ", ".join(f"{name!r}: {value}" for name, value in asked.items())
    second = random.choice(["None", draw.points(), X])
    rare = [0.1 if question == "fine" else 1.0 for question in QUESTIONS]  # it takes seconds
    question = random.choices(QUESTIONS, rare)[0]
    return f"check_views({X}, {second}, {question!r}, {{{text}}})\n"


def _edge(random: Random) -> str:
    """Options, reports, and laws of several kernels."""
    draw, plain = Draw(random, random.choice([0.0, 0.15])), Draw(random, 0.0)
    engine = random.choice(["None", "'blocked'", "'native'", "'spectral'", draw.number()])
    jobs, X = random.choice(["1", "2", "-1", "0", "None", "1.5", "'x'"]), plain.points()
    return random.choice([
        f"check_options({draw.kernel()}, {X}, engine={engine}, n_jobs={jobs}, "
        f"working_memory={draw.number()})",
        f"check_report(mercer.KernelDensity().fit({X}), {draw.points()})",
        f"check_report(mercer.KernelPCA(2, random_state=0).fit({X}), {X})",
        f"check_report(mercer.KernelRidge().fit({X}, {plain.targets(classes=False)}), {X})",
        f"check_report(mercer.SVC().fit({X}, {plain.targets(classes=True)}), {X}, "
        f"{draw.targets(classes=True)})",
        f"check_report(mercer.mmd_test({X}, {draw.points()}, random_state=0))",
        f"check_report(mercer.preimage({plain.element()}))",
        f"check_kit([{plain.kernel()}, {plain.kernel()}], {random.randrange(9)})",
    ]) + "\n"  # fmt: skip


def _large(random: Random) -> str:
    """Rows in files, on a cluster or in tensors, and fits that are broken off."""
    draw, plain = Draw(random, random.choice([0.0, 0.1])), Draw(random, 0.0)
    draw.rows, X = random.choice([5, 30, 90]), plain.points()
    seed, some = random.randrange(10**9), random.choice(["None", "None", "[0]", "['x0']", "[9]"])
    compute = random.choice(
        [
            f"mercer.MeanShift(bandwidth={draw.number()}).fit({X}).cluster_centers_",
            f"mercer.KernelPCA(2, {draw.kernel()}, random_state=0).fit({X}).eigenvalues_",
            f"mercer.SVC({draw.kernel()}).fit({X}, {plain.targets(classes=True)}).dual_coef_",
            f"mercer.linalg.solve({draw.kernel()}, {X}, np.ones({plain.rows}), {draw.number()}, "
            "method='cg').coef",
            f"mercer.mmd_test({X}, 1 + {X}, random_state=0).pvalue",
        ]
    )
    return random.choice([
        f"check_file_of_rows({draw.points()}, {random.choice(PLACES[:2])!r}, {some}, {seed})",
        f"check_in_pieces({random.choice(PLACES)!r}, {draw.kernel()}, {draw.points()}, "
        f"{draw.points()}, {draw.weights()}, {random.choice([2, 7, 40])})",
        f"check_tensors({draw.kernel()}, {draw.points()}, {draw.points()}, "
        f"np.linspace(-1.0, 2.0, {draw.rows}))",
        f"check_checkpoint(lambda: {compute}, {random.choice([0, 1, 3, 10, 100])}, {seed})",
    ]) + "\n"  # fmt: skip


def _archive(random: Random) -> str:
    draw = Draw(random, 0.0)
    thing: Callable[[], str] = random.choice([
        draw.kernel, draw.element, draw.subspace, draw.points,
        lambda: f"mercer.KernelPCA(2, random_state=0).fit({draw.points()})",
        lambda: f"mercer.SVC().fit({draw.points()}, {draw.targets(classes=True)})",
        lambda: f"mercer.KernelRidge().fit({draw.points()}, {draw.targets(classes=False)})",
        lambda: "[{'a': 1.5, (2, 'b'): {3}}, np.arange(3), mercer.Newton()]",
        lambda: "mercer.Element(mercer.Spectrum(2), ['ab', 'ba'], [1.0, 2.0])",
    ])  # fmt: skip
    return f"load_damaged({thing()}, {random.randrange(10**9)})\n"


def _command(random: Random) -> str:
    """A command with some of its options."""
    file = random.choice(["a.csv", "a.tsv", "a.npy", "a.npz", "a.parquet", "a.png", "a.tif"])
    image = file.endswith(("png", "tif"))
    name, command = random.choice([c for c in _commands() if image or c[0] != "segment"])
    words = []
    for option in command.params:
        usual = USUAL.get(option.name) if option.required else None
        if option.param_type_name == "argument" or option.name in ("output", "debug", "help"):
            continue
        if usual is None and random.random() < 0.9:
            continue
        words.append(option.opts[-1])
        if usual and random.random() < 0.9:
            words.append(usual)
        elif not option.is_flag:
            words.append(random.choice([*getattr(option.type, "choices", ()), *OPTIONS]))
    return f"run_command({file!r}, {name!r}, {words!r}, {random.randrange(10**9)})\n"


def _commands() -> list[tuple[str, Any]]:
    """All commands, and those of groups, as `test two-sample`."""
    from mercer.cli._app import commands

    found: list[tuple[str, Any]] = []
    for name, command in sorted(commands.commands.items()):
        inner = sorted(getattr(command, "commands", {}).items())
        found += [(f"{name} {own}", c) for own, c in inner] or [(name, command)]
    return found


USUAL = {"target": "b", "model_file": "m.mercer", "x": "a", "y": "b", "to": "norm:0,1"}
OPTIONS = ["1", "2", "0", "-1", "0.5", "nan", "inf", "1e-300", "1e300", "auto", "silverman", "a",
           "b", "a,b", "nothing", "", "gaussian:1", "laplace:1e-300", "matern:0.5,1", "poly:2",
           "linear", "polynomial:1000,1,1", "a.csv", "gamma:0", "t:1e300", "uniform", "median",
           "in.dir", "p.png", "p.xyz", "99999999999999999999", "\x1b[31m"]  # fmt: skip
ALWAYS = ("random_state", "max_boxes")
OPERATIONS = ("__call__", "__add__", "__sub__", "__mul__", "__getitem__", "__matmul__", "__len__")
# for checked input, or without an answer that can be compared
INTERNAL = ("lower", "points", "profile", "profile_derivatives", "replace", "get_params",
            "queries", "fields", "tangent", "count", "index", "combine", "written", "left_out",
            "solve", "points_of", "draw", "Denoiser.project", "MixingMeasure.density",
            "spectral_density")  # fmt: skip
STRUCTURED = [
    ("mercer.Spectrum({n})", "['abc', 'ab', '', 'aaaa']", "['b', 'abcabc']"),
    ("mercer.Subsequences({n}, {x})", "['abc', 'ab', '', 'aaaa']", "['b', 'abcabc']"),
    ("mercer.Jaccard({x})", "[{{1}}, {{1, 2}}, set()]", "[{{2}}, {{3, 'a'}}]"),
    ("mercer.kernels.Normalised(mercer.Spectrum({n}))", "['abc', 'ab']", "['b', 'abc']"),
    ("mercer.Precomputed(np.eye(5))", "np.arange(3)", "[4, 0]"),
    ("mercer.Precomputed({x} * np.ones((3, 3)))", "np.arange({n})", "[0, 2]"),
    ("mercer.kernels.LaplaceProduct({x})", "np.arange(12.0).reshape(6, 2)", "np.ones((2, 2))"),
    ("mercer.kernels.Overlap()", "[['a', 'b'], ['c', 'b']]", "[['a', 'x']]"),
    ("mercer.table_kernel(pandas.DataFrame({{'a': [1.0, {x}, 2.0], 'b': ['u', 'v', 'u']}}))",
     "pandas.DataFrame({{'a': [1.0, 2.0], 'b': ['u', 'w']}})",
     "pandas.DataFrame({{'a': [{x}], 'b': ['v']}})"),
]  # fmt: skip
OBJECTS: dict[type, Callable[[Draw], str]] = {
    mercer.Kernel: Draw.kernel,
    mercer.Element: Draw.element,
    mercer.Subspace: Draw.subspace,
    space.Operator: lambda draw: (
        f"mercer.covariance({draw.kernel()}, {draw.points()}, {draw.kernel()}, {draw.points()})"
    ),
    methods.Density: lambda draw: (
        f"mercer.methods.adaptive_density({draw.kernel()}, {draw.points()})"
    ),
    methods.Denoiser: lambda draw: (
        f"mercer.methods.fit_denoiser({draw.subspace()}, {draw.points()})"
    ),
    methods.Imputer: lambda draw: f"mercer.methods.fit_imputer({draw.points()})",
    methods.Segments: lambda _: (
        "mercer.methods.segment(np.random.default_rng(0).random((9, 6, 3)))"
    ),
    preimages.FittedMap: lambda draw: (
        f"mercer.LearnedMap().fit({draw.subspace()}, {draw.points()})"
    ),
    preimages.LinearInverse: lambda draw: (
        f"mercer.preimages.LinearInverse.fit({draw.subspace()}, {draw.points()})"
    ),
    linalg.GramOperator: lambda draw: (
        f"mercer.linalg.GramOperator({draw.kernel()}, {draw.points()}, centred=True)"
    ),
    linalg.Nystrom: lambda draw: (
        f"mercer.linalg.nystrom({draw.kernel()}, {draw.points()}, {draw.count()}, random_state=0)"
    ),
    methods.SteinKernel: lambda draw: (
        f"mercer.methods.SteinKernel({draw.kernel()}, lambda x: -x, {draw.columns})"
    ),
    methods.TestResult: lambda draw: (
        f"mercer.methods.mmd_test({draw.points()}, {draw.points()}, random_state=0)"
    ),
    methods.HingeLoss: lambda draw: draw.random.choice(LOSSES[5:-1]),
    kernels.MixingMeasure: lambda draw: f"{draw.kernel()}.mixing_measure()",
    kernels.SpectralMeasure: lambda draw: f"{draw.kernel()}.spectral_measure({draw.columns})",
    kernels.Circular: lambda draw: draw.random.choice(
        [f"mercer.kernels.{k}({draw.number()})" for k in ("PeriodicSobolev", "JacobiTheta")]
        + [f"mercer.kernels.Periodic((1.0, {draw.number()}))"]
    ),
    preimages.Alignment: lambda draw: (
        f"mercer.preimages.procrustes({draw.points()}, {draw.points()})"
    ),
    preimages.ClosedForm: lambda _: "mercer.ClosedForm()",
    preimages.LearnedMap: lambda _: "mercer.LearnedMap()",
    datasets.Sample: lambda draw: draw.random.choice(
        ["mercer.datasets.spiral(20)", "mercer.datasets.ring(5)"]
    ),
    linalg.RandomFeatures: lambda draw: (
        f"mercer.linalg.random_features({draw.kernel()}, {draw.columns}, {draw.count()}, "
        "random_state=0)"
    ),
    theory.learning.Thresholds: lambda draw: f"mercer.theory.learning.Thresholds({draw.count()})",
    theory.MercerExpansion: lambda draw: (
        f"mercer.theory.MercerExpansion({draw.number()}, {draw.number()}, {draw.count()})"
    ),
}
