"""Arguments for fuzzed calls: Python expressions, plain or nasty, chosen by a parameter's name."""

from __future__ import annotations

import inspect
import re
from random import Random
from typing import Any

NUMBERS = ["0.0", "-1.0", "np.nan", "np.inf", "-np.inf", "5e-324", "1e-160", "1e-75", "1e75",
           "1e160", "1e300", "10**400", "np.float32(0.5)", "True", "'1'", "None", "[1.0]",
           "1j"]  # fmt: skip
COUNTS = ["0", "-1", "2**31", "2**63", "10**30", "1.5", "np.nan", "True", "None", "'2'",
          "np.int64(2)", "[2]"]  # fmt: skip
ANYTHING = ["None", "0", "'text'", "np.nan", "object()", "[]", "{}", "lambda x: x", "b'x'",
            "np.zeros((2, 2))", "mercer.Gaussian", "mercer.Gaussian(1.0)", "{1, 2}", "2**70",
            "(1, 'a')"]  # fmt: skip
FUNCTIONS = ["np.cos", "lambda x: 0 * x", "lambda x: x", "lambda x: 1.0", "lambda x: x * np.nan",
             "lambda x: None", "np.ones_like", "lambda x: 1.0 / (1 + np.square(x))"]  # fmt: skip
SOLVERS = ["mercer.FixedPoint()", "mercer.MM()", "mercer.Newton()", "mercer.LBFGS()",
           "mercer.GradientDescent()", "mercer.ClosedForm()", "mercer.Candidates()",
           "mercer.Distances()", "mercer.LearnedMap()", "None"]  # fmt: skip
COMPRESSORS = ["mercer.preimages.Greedy()", "mercer.preimages.Pruning()", "None", "'svd'"]
SCORES = ["lambda x: -x", "lambda x: 0 * x", "np.exp", "lambda x: None", "lambda x: x.sum()",
          "scipy.stats.norm(0.0, 1.0)", "scipy.stats.gamma(2.0)", "scipy.stats.uniform()",
          "scipy.stats.poisson(1.0)", "[scipy.stats.norm()]", "scipy.stats.norm"]  # fmt: skip
LOSSES = ["'hinge'", "'logistic'", "'absolute'", "'square'", "'nonsense'",
          "mercer.methods.SquaredMarginLoss()", "mercer.methods.EpsilonInsensitiveLoss(0.1)",
          "mercer.methods.ZeroOneLoss()", "mercer.methods.LogisticLoss()",
          "mercer.methods.AbsoluteLoss()", "mercer.methods.SquareLoss()",
          "mercer.methods.HingeLoss()", "mercer.methods.HingeLoss"]  # fmt: skip
VECTOR_KERNELS = [
    "Gaussian({x})", "Laplace({x})", "Matern({x}, 1.0)", "Matern(0.5, {x})", "Matern(2.5, {x})",
    "RationalQuadratic({x}, 1.0)", "InverseMultiquadric({x}, 0.5)", "Epanechnikov({x})",
    "NegativeDistance({x})", "NegativeDistance(1.0, {x})", "Uniform({x})", "Linear()", "Cosine()",
    "Polynomial(2, {x}, 1.0)", "Polynomial(3, 1.0, {x})", "Sigmoid({x}, 0.5)", "Exponential({x})",
    "ArcCosine(1)", "ChiSquare({x})", "Minimum()", "Harmonic()", "AdditiveChiSquare()",
    "Constant({x})", "Hamming({x})", "Periodic((1.0, {x}))", "PeriodicSobolev(1, {x})",
    "Gaussian.from_gamma({x})", "Gaussian.from_width({x})", "Laplace.from_gamma({x})",
    "Laplace.from_rate({x}, 1.0)", "LaplaceProduct.from_gamma({x})",
    "Polynomial.from_gamma(2, {x})", "Exponential.from_gamma({x})", "Sigmoid.from_gamma({x})",
    "JacobiTheta({x})", "Geometric({x})", "Taylor((1.0, 1.0, {x}))", "VovkPolynomial(2)",
]  # fmt: skip


class Draw:
    """Draws expressions for one case; most of its points have the same number of columns."""

    def __init__(self, random: Random, nasty: float = 0.15) -> None:
        self.random, self.nasty = random, nasty
        self.columns = random.choice([1, 1, 2, 2, 3, 7])
        self.rows = random.choice([1, 2, 3, 5, 5, 8, 30])

    def odd(self) -> bool:
        """Whether the next argument is a nasty one."""
        return self.random.random() < self.nasty

    def number(self) -> str:
        """A parameter of a kernel or a solver."""
        return self.random.choice(NUMBERS if self.odd() else ["1.0", "0.5", "2.0", "0.01", "30.0"])

    def count(self) -> str:
        """A number of components, iterations and the like."""
        return self.random.choice(COUNTS if self.odd() else ["1", "2", "3", "10"])

    def points(self) -> str:
        """Points or data."""
        n, d = self.rows, self.columns
        if self.odd():
            n, d = self.random.choice([0, 1, 2, 50]), self.random.choice([0, 1, 2, 3, 40])
        plain = f"np.random.default_rng({self.random.randrange(9)}).normal(size=({n}, {d}))"
        return self.random.choice(POINTS).format(X=plain) if self.odd() else plain

    def weights(self) -> str:
        """Sample weights, or coefficients."""
        n = self.rows
        common = ["None", f"np.ones({n})", f"np.arange(1.0, {n + 1})"]
        odd = [f"np.zeros({n})", f"-np.ones({n})", f"np.full({n}, np.nan)", f"1e300 * np.ones({n})",
               f"1e-200 * np.ones({n})", f"np.ones({n + 1})", "[]", "'x'",
               f"np.ones({n}, dtype=bool)", f"np.eye({n})", f"polars.Series([None] * {n})",
               f"polars.Series(np.arange({n}))"]  # fmt: skip
        return self.random.choice(odd if self.odd() else common)

    def targets(self, classes: bool) -> str:
        """Labels of classes, or numbers to predict."""
        n = self.rows
        numbers = [f"np.arange({n}) - 1.5", f"np.sin(np.arange({n}))", f"np.ones({n})"]
        labels = [f"np.arange({n}) % 2", f"np.arange({n}) % 3", f"np.arange({n}) % 2 * 2 - 1",
                  f"np.where(np.arange({n}) < 2, 'a', 'b')"]  # fmt: skip
        odd = [f"np.ones({n + 1})", f"np.full({n}, np.nan)", f"1e300 * np.arange({n})", "None",
               f"1e-300 * np.arange({n})", f"np.arange({n}) > 0", f"np.eye({n})", "[]", "'x'",
               f"np.arange({n}).astype(object)", f"np.arange({n}) * 1j", f"np.ones(({n}, 1))",
               f"pandas.Series(np.arange({n}) % 2)", f"np.arange({n}, dtype='f4') * 1e30",
               f"['a', None] * {n}"]  # fmt: skip
        return self.random.choice(odd if self.odd() else labels if classes else numbers)

    def kernel(self, depth: int = 2) -> str:
        """A kernel on vectors: a single one, or an expression of several."""
        single = "mercer.kernels." + self.random.choice(VECTOR_KERNELS).format(x=self.number())
        shape = self.random.choice(
            ["one"] * 5 + ["sum", "product", "scaled", "scales", "normalised"]
        )
        if depth == 0 or shape == "one":
            return single
        if shape in ("sum", "product"):
            return f"({single} {'+' if shape == 'sum' else '*'} {self.kernel(depth - 1)})"
        if shape == "scaled":
            return f"({self.number()} * {single})"
        if shape == "normalised":
            return f"mercer.kernels.Normalised({self.kernel(depth - 1)})"
        lengths = ", ".join(self.number() for _ in range(self.columns))
        return f"{single}.transform(mercer.Scales([{lengths}]))"

    def element(self) -> str:
        """An element of a space."""
        X, kernel = self.points(), self.kernel()
        return self.random.choice([
            f"mercer.mean_embedding({kernel}, {X})",
            f"mercer.feature({kernel}, {X})",
            f"mercer.kernel_density({kernel}, {X})",
            f"mercer.Element({kernel}, {X}, {self.weights().replace('None', '[1.0]')})",
            f"mercer.Element({kernel}, {X}, np.ones(({self.rows}, 3)))",
        ])  # fmt: skip

    def subspace(self) -> str:
        """A principal subspace."""
        return f"mercer.kernel_pca({self.kernel()}, {self.points()}, {self.count()})"

    def word(self, name: str, owner: Any) -> str:
        """A string option: a word in quotes in the parameter's paragraph of the docstring."""
        text = inspect.getdoc(owner) or ""
        own = re.search(rf"^(.*, )?{name}\b.* :.*(\n .*)*", text, re.MULTILINE)
        words = re.findall(r'"([a-z_]+)"', own[0] if own and not self.odd() else text)
        return repr(self.random.choice(words if words and not self.odd() else ["nonsense"]))

    def argument(self, parameter: inspect.Parameter, owner: Any) -> str:
        """An expression for a parameter, by its name and annotation."""
        name, kind = parameter.name, str(parameter.annotation)
        if self.random.random() < self.nasty / 3:
            return self.random.choice(ANYTHING)
        if isinstance(parameter.default, str) and self.random.random() < 0.3:
            return self.word(name, owner)
        if name == "solver" and isinstance(parameter.default, str):
            return self.word(name, owner)
        for pattern, draw in BY_NAME.items():
            if re.fullmatch(pattern, name):
                return draw(self)
        for part, draw in BY_ANNOTATION.items():
            if part in kind:
                return draw(self)
        if "str" in kind or name in ("kind", "rule", "method", "noise", "trust", "bandwidth"):
            return self.word(name, owner)
        return self.random.choice([self.points, self.number, self.count])()


# Names and annotations of parameters, and what they take; the first match counts.
BY_NAME = {
    "kernel|kernel_.|left|right|k": Draw.kernel,
    "X|Y|V|points|start|at|landmarks|centre|rows|elements|seeds|A|B|L|x": Draw.points,
    "queries|coordinates|P|Q": Draw.points,
    "y|t|s": lambda draw: draw.targets(draw.odd()),
    "score": lambda draw: draw.random.choice([*SCORES, draw.element()]),
    "loss": lambda draw: draw.random.choice(LOSSES),
    "class_weight": lambda draw: draw.random.choice(["None", "'balanced'", "{0: 2.0}", "{}"]),
    "blocks": lambda draw: draw.random.choice(["None", f"np.arange({draw.rows}) // 2", "[]"]),
    "kernels": lambda draw: f"[{draw.kernel()}, {draw.kernel()}]",
    "variables": lambda draw: f"[{draw.points()}, {draw.points()}]",
    "weights|coef|factors|labels|truth|phi_.|f|g": Draw.weights,
    "psi|density|u|v|origin|directions|pilot|found|other": Draw.element,
    "index|item": lambda draw: draw.random.choice(["0", "-1", "2**70", "[0]", "1.5", "slice(2)"]),
    "plane": Draw.subspace,
    "library": lambda draw: draw.random.choice(["'polars'", "'pyarrow'", "None", "'modin'", "3"]),
    "random_state": lambda draw: draw.random.choice(["0", "0", "0", "None", "-1", "'x'", "1.5"]),
    "callback": lambda draw: draw.random.choice(["None", "None", "lambda step: True", "3"]),
    "ax|names|history|n_jobs|filter": lambda _: "None",
    "penalty": lambda draw: draw.random.choice([draw.number(), draw.number(), "'auto'"]),
    "solver|inverse": lambda draw: draw.random.choice(SOLVERS),
    "region": lambda draw: f"mercer.Box({draw.number()}, {draw.number()})",
    "image": lambda draw: f"np.random.default_rng(0).random(({draw.count()}, 6, 3))",
    "max_boxes": lambda draw: draw.random.choice(["100", "1", "0", "-1", "1.5"]),
    "n_samples|resolution": lambda draw: draw.random.choice(["5", "1", "0", "-1", "2.5", "'x'"]),
    "indices": lambda draw: draw.random.choice(["[0]", "[2**63]", "[-1]", "[]", "[0, 0]", "0.5"]),
    "table": lambda draw: f"pandas.DataFrame({draw.points()}).rename(columns=str)",
}
BY_ANNOTATION = {
    "Compressor": lambda draw: draw.random.choice(COMPRESSORS),
    "Callable": lambda draw: draw.random.choice(FUNCTIONS),
    "bool": lambda draw: draw.random.choice(["True", "False", "None", "1"]),
    "int": Draw.count,
    "float": Draw.number,
}
POINTS = [
    "1e-160 * {X}", "1e160 * {X}", "1e300 * {X}", "1e12 + {X}", "1e17 + {X}", "0 * {X}", "abs({X})",
    "np.repeat({X}, 3, axis=0)", "np.where([True], {X}, {X}[:1])", "np.where({X} > 1, np.nan, {X})",
    "np.where({X} > 1, np.inf, {X})", "({X}).astype(np.float32)", "({X}).astype(np.float16)",
    "({X}).astype(int)", "({X}) > 0", "({X}).astype(object)", "({X}).astype(str)", "({X}).tolist()",
    "({X}).ravel()", "({X})[None]", "({X}) * 1j", "np.asfortranarray({X})", "({X})[::-1]",
    "np.ma.masked_array({X}, {X} > 0)", "scipy.sparse.csr_array({X})",
    "scipy.sparse.csc_matrix({X})", "scipy.sparse.coo_array({X})", "np.round({X})",
    "['ab', 'b', '']", "[{{1}}, {{2, 3}}]",
    "np.array(['2020-01-01', '2021-01-01'], dtype='datetime64[D]')", "'text'", "None", "3.0",
    "pandas.DataFrame({X}).assign(when=pandas.Timestamp(0))", "pandas.DataFrame({X})",
    "pandas.DataFrame({X}).assign(word='a')", "polars.DataFrame({X})", "polars.LazyFrame({X})",
    "polars.DataFrame({X}).with_columns(word=None)", "pandas.DataFrame({X}).astype('Float64')",
    "pandas.DataFrame({X}).rename(columns=str)", "polars.DataFrame({X}).to_arrow()",
    "pandas.DataFrame({X}).convert_dtypes()", "polars.Series(({X}).ravel())",
]  # fmt: skip
