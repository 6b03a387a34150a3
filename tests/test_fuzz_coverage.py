"""The fuzzer reaches everything public: callables, methods, commands, options, questions."""

import importlib
import inspect
import re
from enum import Enum
from functools import cache
from random import Random

import pytest

import mercer as mc
from mercer.explore._views import Views
from mercer.testing import __all__ as KIT
from tests.test_surface import PUBLIC_MODULES
from tools.fuzz import arguments, cases, checks, edges, large, laws

# Functions and classes that no case names, and why.
LEFT_OUT = {
    "engine": "takes checked input; `check_engines` compares its engines",
    "rigor": "takes checked input; `check_enclosure`, `check_minimum` and `check_modes` use it",
    "exceptions": "errors are raised by the others",
    "cli.main": "by `run_command`",
    "explore.serve": "waits for requests; `check_views` asks, tests/explore sends requests",
    "explore.Table": "by `check_views`",
    "io.save": "by `load_damaged` and `fit_and_use`",
    "io.load": "by `load_damaged` and `fit_and_use`",
    "io.checkpoint": "by `check_checkpoint`",
    "io.open_rows": "by `check_file_of_rows` and `check_in_pieces`",
    "io.register": "takes a class of the user's; tests/io/test_refusals.py",
    "reports.Report": "by `check_report`",
    "reports.report": "by `check_report`",
    "reproduce": "runs whole experiments; by the command `reproduce`",
    "plot": "by `draw`, which takes each of `mercer.plot.__all__`",
}
# Methods with required arguments that no case calls, and why.
INTERNAL = {
    "Domain": "kernels call them, with points of the user's that they pass through",
    "Categories": "as Domain", "Objects": "as Domain", "OpenBall": "as Domain",
    "Sequences": "as Domain", "Sets": "as Domain", "Vectors": "as Domain",
    "Flags": "the algebra of kernels calls them",
    "Ball": "solvers call them, by `region`", "Box": "as Ball", "Simplex": "as Ball",
    "Collinear": "solvers call them", "Nearest": "as Collinear", "Projected": "as Collinear",
    "LBFGS": "the driver of searches calls them", "MM": "as LBFGS", "FixedPoint": "as LBFGS",
    "GradientDescent": "as LBFGS", "Newton": "as LBFGS", "Global": "as LBFGS",
    "Candidates": "`preimage` calls solve", "Distances": "as Candidates", "Solver": "as Candidates",
    "SolverResult": "solvers call them", "FittedMap.solve": "as Candidates",
    "LinearInverse.solve": "as Candidates", "LinearInverse.points_of": "as Candidates",
    "ClosedForm.solve": "as Candidates",
    "Compressor": "`compress` calls choose", "Greedy": "as Compressor", "Pruning": "as Compressor",
    "Denoiser.left_out": "takes row numbers", "Denoiser.project": "takes features",
    "Element.combine": "takes checked coefficients", "Element.fields": "takes checked points",
    "Element.queries": "takes checked points", "EigenPairs.of": "makes them",
    "RiskDecomposition.of": "makes it", "Atoms": "as MixingMeasure, of series",
    "JacobiTheta.log_coefficient": "coefficient calls it",
    "Scales": "kernels call them, with checked points", "Matrix": "as Scales",
    "Columns": "as Scales", "Monomials": "as Scales", "Features": "as Scales",
    "Filter": "`fit_denoiser` calls weights, with eigenvalues", "Tikhonov": "as Filter",
    "Truncation": "as Filter", "Landweber": "as Filter",
    "MixingMeasure.density": "takes an array of numbers; tests/kernels/test_measures.py",
    "MixingMeasure.spectral_density": "as density",
    "MixingMeasure.draw": "sample calls it", "SpectralMeasure.draw": "sample calls it",
}  # fmt: skip
DOUBLES = {  # classes that share their methods with one that cases make
    "EpsilonInsensitiveLoss": "HingeLoss", "AbsoluteLoss": "HingeLoss", "SquareLoss": "HingeLoss",
    "LogisticLoss": "HingeLoss", "SquaredMarginLoss": "HingeLoss", "ZeroOneLoss": "HingeLoss",
}  # fmt: skip


def public():
    """Every public class and function, by package and name."""
    for package in sorted(PUBLIC_MODULES | {p for p in cases.PACKAGES if "." in p}):
        module = importlib.import_module(f"mercer.{package}")
        names = getattr(module, "__all__", None) or [n for n in vars(module) if n[0].isupper()]
        for name in names:
            if callable(value := getattr(module, name)):
                yield f"{package}.{name}", value


@cache
def sources(kind: str, count: int) -> str:
    """The last lines of many cases of a kind."""
    return "\n".join(getattr(cases, kind)(Random(f"{kind} {i}")) for i in range(count))


def reached_by_name():
    text = sources("_call", 12_000) + sources("_estimator", 600) + sources("_plot", 600)
    text += inspect.getsource(checks) + inspect.getsource(laws) + inspect.getsource(edges)
    return set(re.findall(r"\w+", text))


def is_result(value) -> bool:
    """Results, abstract classes and errors are not called by users."""
    if not inspect.isclass(value) or issubclass(value, BaseException):
        return inspect.isclass(value)
    return inspect.isabstract(value) or cases._is_result(value)


def test_every_function_and_class_is_called():
    reached = reached_by_name()
    missing = [
        name
        for name, value in public()
        if not {name, name.partition(".")[0]} & LEFT_OUT.keys()
        and not is_result(value)
        and name.rpartition(".")[2] not in reached
    ]
    assert missing == []
    roots = {n for n in mc.__all__ if callable(getattr(mc, n)) and not is_result(getattr(mc, n))}
    known = {name.rpartition(".")[2] for name, _ in public()} | reached
    assert roots <= known, roots - known
    assert set(KIT) <= reached


def test_every_result_is_what_something_returns():
    """`use` then calls what they have."""
    returned = " ".join(
        str(inspect.signature(value).return_annotation)
        for name, target in public()
        if not {name, name.partition(".")[0]} & LEFT_OUT.keys()
        for value in ([target] if not inspect.isclass(target) else methods(target).values())
    )
    parts = {"Alignment", "Certificate", "History", "Verdict", "SolverResult", "Witness"}
    results = {v.__name__ for n, v in public() if is_result(v) and not inspect.isabstract(v)
               and not issubclass(v, Enum) and n.partition(".")[0] not in LEFT_OUT}  # fmt: skip
    missing = {name for name in results if not re.search(rf"\b{name}\b", returned)}
    assert missing <= parts | {"ConjugatePair"}


def methods(kind) -> dict:
    """The public methods of a class that mercer defines."""
    found = {n: getattr(kind, n) for n in dir(kind) if not n.startswith("_")}
    return {
        name: f
        for name, f in found.items()
        if inspect.isroutine(f) and str(getattr(f, "__module__", "")).startswith("mercer.")
    }


def made_by(kind) -> set[str]:
    """Class methods that make kernels in the list of the fuzzer."""
    text = " ".join(arguments.VECTOR_KERNELS)
    return {name for name in methods(kind) if f"{kind.__name__}.{name}(" in text}


def test_every_method_is_called():
    made = {kind.__name__: set(cases.methods_of(kind)) for kind in cases.OBJECTS}
    with_rows = {*checks.METHODS, *checks.WITHOUT_ROWS, "fit", "partial_fit", "sample",
                 "fit_transform", "fit_predict", "get_params", "set_params"}  # fmt: skip
    missing = []
    for where, kind in public():
        own = where.rpartition(".")[2]
        if {where, where.split(".")[0]} & LEFT_OUT.keys() or not inspect.isclass(kind):
            continue
        if issubclass(kind, mc.Kernel):
            known = made["Kernel"] | made["Circular"] | made_by(kind) | set(cases.INTERNAL)
        elif where.startswith("estimators."):
            known = with_rows | {n for n in methods(kind) if n.startswith("set_")}
        else:
            known = made.get(DOUBLES.get(own, own), set())
            known |= {n for n, f in methods(kind).items() if set(checks._required(f)) <= {"self"}}
            known |= set(cases.INTERNAL)
        left = {n for n in methods(kind) if n not in known and f"{own}.{n}" not in INTERNAL}
        missing += [f"{own}.{n}" for n in left if own not in INTERNAL]
    assert sorted(missing) == []


def test_every_plot_is_drawn():
    drawn = set(re.findall(r"mercer\.plot\.(\w+)", sources("_plot", 600)))
    assert drawn == set(importlib.import_module("mercer.plot").__all__)


def test_every_option_of_every_command_is_given():
    """Except those that are always given or would only print help."""
    found = re.findall(r"run_command\('[\w.]+', '([\w -]+)', \[(.*)\], \d+\)",
                       sources("_command", 6000))  # fmt: skip
    given = {(name, word) for name, words in found for word in re.findall(r"'([^']*)'", words)}
    wanted = {
        (name, option.opts[-1])
        for name, command in cases._commands()
        for option in command.params
        if option.param_type_name == "option" and option.name not in ("output", "debug", "help")
    }
    assert len(wanted) > 100
    assert wanted - given == set()


def test_every_question_of_the_page_is_asked():
    names = {n for n in vars(Views) if not n.startswith("_")}
    asked = {q for q in edges.QUESTIONS if f"{q!r}," in sources("_explore", 1000)}
    assert asked == names


def test_every_kind_of_case_is_drawn():
    text = "".join(cases.case(0, i).removeprefix(cases.HEADER) for i in range(400))
    used = {n for n in [*dir(checks), *dir(laws), *dir(edges), *dir(large)] if f"{n}(" in text}
    assert {"call", "check_kernel", "check_sums", "check_engines", "fit_and_use", "load_damaged",
            "run_command", "draw", "check_views", "check_report", "check_file_of_rows",
            "check_in_pieces", "check_tensors", "check_checkpoint"} <= used  # fmt: skip


@pytest.mark.parametrize("name", sorted(LEFT_OUT))
def test_what_is_left_out_exists(name):
    assert name in PUBLIC_MODULES or name in dict(public())
