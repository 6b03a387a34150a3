"""Arguments of the functions of `mercer.theory`, by function and parameter."""

from __future__ import annotations

import re
from collections.abc import Callable
from inspect import Parameter
from typing import Any

from tools.fuzz.arguments import LOSSES, Draw

VECTORS = ["1e-160 * {v}", "1e160 * {v}", "1e300 * {v}", "0 * {v}", "abs({v})", "{v}.tolist()",
           "{v}.astype(np.float32)", "np.round({v})", "{v}[1:]", "{v}[:, None]", "np.nan * {v}",
           "{v} * 1j", "np.round({v}).astype(int)", "np.where({v} > 0, np.inf, 0.0)", "'x'", "None",
           "[]", "1.0"]  # fmt: skip
VALUES = [
    "lambda x: x @ x",
    "lambda x: np.abs(x).sum()",
    "lambda x: 0.0",
    "np.linalg.norm",
    "abs",
    "lambda x: -(x @ x)",
    "lambda x: np.exp(np.sum(x))",
    "lambda x: 1e300 * np.sum(x)",
]
GRADIENTS = ["lambda x: 2 * x", "lambda x: np.sign(x)", "lambda x: np.cos(x)",
             "lambda x: 0 * x", "lambda x, rng: np.sign(x)", "lambda x: 1e200 * x"]  # fmt: skip
HESSIANS = ["lambda x: np.eye(len(x))", "lambda x: -np.outer(x, x)", "lambda x: [[1.0]]",
            "lambda x: 1e300 * np.ones((len(x), len(x)))"]  # fmt: skip
PROJECTIONS = ["None", "lambda x: np.clip(x, 0.0, 1.0)", "lambda x: x / (1 + np.linalg.norm(x))"]
STRANGE = ["lambda x: None", "lambda x: np.nan * x", "lambda x: np.nan", "lambda x: -np.inf",
           "lambda x: x", "lambda x: 'a'", "lambda x: 1j", "lambda x: np.sum(x)",
           "lambda x: [x, [x]]", "3", "None"]  # fmt: skip
EXPRESSIONS = ["cp.sum_squares", "cp.norm1", "lambda x: -cp.sum(cp.entr(x))", "cp.log_sum_exp",
               "lambda x: cp.max(x)", "cp.sum", "lambda x: cp.sum_squares(x) * 1e-9",
               "lambda x: cp.norm(x, 3)", "lambda x: 0"]  # fmt: skip
ODD_EXPRESSIONS = ["lambda x: x", "lambda x: None", "lambda x: -cp.norm1(x)", "3", "cp.sqrt",
                   "lambda x: np.nan * cp.sum(x)", "lambda x: cp.sum(x[1:])"]  # fmt: skip
MODELS = ["SVC({k}, C={x}, fit_intercept=False)", "SVR({k}, C={x}, fit_intercept=False)",
          "KernelLogisticRegression({k}, C={x}, fit_intercept=False)",
          "KernelMachine({k}, loss={loss}, C={x}, fit_intercept=False)",
          "KernelRidge({k}, penalty={x}, fit_intercept=False)",
          "KernelRidge({k}, penalty={x}, reduction='mean', fit_intercept=False)",
          "KernelGradientDescent({k}, loss={loss}, validation_fraction=None, fit_intercept=False)",
          "KernelRidge()", "KernelSGD()", "KernelPCA()"]  # fmt: skip


def argument(draw: Draw, function: Any, parameter: Parameter) -> str | None:
    """An expression for a parameter of a function of `mercer.theory`; None if any will do."""
    if not function.__module__.startswith("mercer.theory."):
        return None
    signature = f"{function.__name__}.{parameter.name}: {parameter.annotation}"
    for pattern, made in THEORY.items():
        if re.fullmatch(pattern, signature):
            return made(draw)
    return None


def vector(draw: Draw, n: int) -> str:
    """A vector of n numbers."""
    plain = f"np.random.default_rng({draw.random.randrange(9)}).normal(size={n})"
    return draw.random.choice(VECTORS).format(v=plain) if draw.odd() else plain


def matrices(draw: Draw, made: Callable[[Draw], str], n: int) -> str:
    """A list of n matrices."""
    return f"[{', '.join(made(draw) for _ in range(n))}]"


def symmetric(draw: Draw) -> str:
    """A symmetric matrix, definite or not."""
    shift = draw.random.choice(["1.0", "0.0", "-3.0", "1e-9"])
    plain = f"(lambda M: M.T @ M + {shift} * np.eye(M.shape[1]))"
    return draw.points() if draw.odd() else f"{plain}({Draw.points(_plain(draw))})"


def probabilities(draw: Draw) -> str:
    """Probabilities of as many atoms as there are rows."""
    n = draw.rows
    plain = [f"np.random.default_rng({draw.random.randrange(9)}).dirichlet(np.ones({n}))",
             f"np.full({n}, 1 / {n})", f"np.eye({n})[0]", f"np.eye({n})[-1]"]  # fmt: skip
    return vector(draw, n) if draw.odd() else draw.random.choice(plain)


def posynomial(draw: Draw) -> str:
    """Coefficients and exponents of a posynomial."""
    if draw.odd():
        return draw.random.choice(["([-1.0], [[1.0]])", "1.0", "([], [])", "([1.0], [1.0])"])
    coef = draw.random.choice([f"np.ones({draw.rows})", f"np.arange(1.0, {draw.rows + 1})"])
    return f"({coef}, {draw.points()})"


def model(draw: Draw) -> str:
    """A fitted machine."""
    made = draw.random.choice(MODELS).format(
        k=draw.kernel(), x=draw.number(), loss=draw.random.choice(LOSSES)
    )
    return (
        f"mercer.estimators.{made}.fit({draw.points()}, {draw.targets(draw.random.random() < 0.5)})"
    )


def _plain(draw: Draw) -> Draw:
    own = Draw(draw.random, 0.0)
    own.rows, own.columns = draw.rows, draw.columns
    return own


def _of(choices: list[str], odd: list[str] = STRANGE) -> Callable[[Draw], str]:
    return lambda draw: draw.random.choice(odd if draw.odd() else choices)


def _rows(draw: Draw) -> str:
    return vector(draw, draw.rows)


def _columns(draw: Draw) -> str:
    return vector(draw, draw.columns)


# function.parameter: annotation; the first match counts
THEORY: dict[str, Callable[[Draw], str]] = {
    r".*\.(delta|level|eta|power): float.*": _of(
        ["0.05", "0.5", "0.9"], ["0.0", "1.0", "5e-324", "2", "'a'", "np.nan", "None"]
    ),
    r".*: float( \| None)?": Draw.number,
    r".*: int( \| None)?": Draw.count,
    r"(trust_region|perron_frobenius)\.A.*|quadratic_program\.P.*|.*\.W.*|semi.*\.G.*": symmetric,
    r"robust_lp\.P.*": lambda draw: matrices(draw, symmetric, draw.rows),
    r".*\.covariances.*": lambda draw: matrices(draw, symmetric, draw.rows),
    r"minimise_eigenvalue\.A.*": lambda draw: matrices(draw, symmetric, draw.random.randrange(4)),
    r"semi.*\.F.*": lambda draw: matrices(draw, symmetric, draw.columns),
    r"minimise_spectral_norm\.A.*": lambda draw: matrices(draw, Draw.points, 3),
    r"geometric_program\.objective.*": posynomial,
    r"geometric_program\..*": lambda draw: f"[{posynomial(draw)}]",
    r"scalarise\.objectives.*": lambda draw: f"expressions({draw.random.randrange(99)})",
    r"scalarise\.weights.*": lambda draw: vector(draw, 2),
    r".*\.problem: Any": lambda draw: f"problem({draw.random.randrange(999)})",
    r".*\.(multipliers|changes): Seq.*": lambda draw: draw.random.choice(
        ["None", "[0.1]", "[1.0, 0.0]", f"[{_rows(draw)}]", f"[{_rows(draw)}, 0.5]", "[]"]
    ),
    r".*\.pair: .*": lambda draw: (
        f"mercer.theory.duality.CONJUGATES['{draw.random.choice(CONJUGATES)}']"
    ),
    r"conjugate\.f: .*": _of(EXPRESSIONS, ODD_EXPRESSIONS),
    r"trust_region\.b: .*|.*\.([cewxau]|minimiser|start|centre): Any": _columns,
    r"optimality_residual\.gradient: Any": _columns,
    r"risk_diff.*\.[fg]: Any|.*\.([bhdy]|predictions|widths|changes): Any": _rows,
    r".*\.steps: Any": lambda draw: _rows(draw) if draw.odd() else f"abs({_rows(draw)})",
    r".*\.[pq]: Any": probabilities,
    r".*\.([ACG]|functions): Any": Draw.points,
    r".*\.model: Any": model,
    r".*\.log_mgf: .*": _of(["lambda s: s**2 / 2", "lambda s: -np.log1p(-s)", "np.exp"]),
    r".*\.feasible: .*": _of(["lambda t: t if t > 0.5 else None", "lambda t: 1.0"]),
    r"f_divergence\.f: .*": _of(["lambda t: (t - 1) ** 2", "lambda t: t * np.log(t)", "np.abs"]),
    r".*\.f: (Callable|Function).*": _of(VALUES),
    r".*\.(gradient|subgradient): (Callable|Function).*": _of(GRADIENTS),
    r".*\.hessian: .*": _of(HESSIANS),
    r".*\.project: .*": _of(PROJECTIONS),
}
CONJUGATES = ["half squared norm", "negative entropy", "exponential", "negative logarithm",
              "log-sum-exp", "sum of absolute values"]  # fmt: skip
