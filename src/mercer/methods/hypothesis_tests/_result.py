"""The result of a kernel test."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import Any, ParamSpec

import numpy as np

from mercer._array import Array, header
from mercer._frames import frame_of
from mercer._html import Check, Summarised, Summary
from mercer._words import counted, number
from mercer.kernels import Kernel
from mercer.kernels._names import rounded
from mercer.space import Element

P = ParamSpec("P")

_NORMAL = 1.959964  # 97.5 % quantile of the standard normal distribution
_LEVEL = 0.05  # the usual one
# for each question: its name, the answers yes and no, and what a yes does not show
_WORDS = {
    "Do the samples come from the same distribution?": (
        "Comparison of samples", "The samples differ", "No difference was found",
        "This does not show that the distributions are equal: a difference may be too small to be "
        "seen with so many rows.",
    ),
    "Are the variables independent?": (
        "Independence test", "The variables depend on each other", "No dependence was found",
        "This does not show that they are independent: a dependence may be too weak to be seen "
        "with so many rows.",
    ),
    "Are the variables jointly independent?": (
        "Joint independence test", "The variables depend on each other", "No dependence was found",
        "This does not show that they are independent: a dependence may be too weak to be seen "
        "with so many rows.",
    ),
    "Does the sample come from the model?": (
        "Goodness-of-fit test", "The sample does not fit the model", "No misfit was found",
        "This does not show that the model is right: a misfit may be too small to be seen with so "
        "many rows.",
    ),
}  # fmt: skip
_SMALL = "A small p-value does not say that the effect is large: look at the effect size."
_EXACT = ("permutation", "sign flips")
_NULLS = {
    "permutation": "The p-value is exact for any number of rows, if rows do not depend on each "
    "other: reshuffling them at random shows what chance alone does.",
    "sign flips": "The p-value is exact for any number of pairs, if pairs do not depend on each "
    "other: swapping at random within pairs shows what chance alone does.",
    "wild bootstrap": "The p-value comes from random signs (a wild bootstrap). It is right for "
    "many rows, and an approximation for few.",
    "weighted chi-squares": "The p-value comes from a formula. It is right for many rows, and an "
    "approximation for few.",
    "gamma approximation": "The p-value comes from an approximate formula. One near 0.01 can be "
    "too small; permutations are exact.",
}


@dataclass(frozen=True, eq=False, repr=False)
class TestResult(Summarised):
    """The result of a kernel test.

    Attributes
    ----------
    question : str
        What was tested, as a sentence.
    statistic : float
        That of the kernel with the largest standardised statistic, if several are combined.
    pvalue : float
        The upper end of `pvalue_bounds`.
    pvalue_bounds : (float, float)
        Both equal to `pvalue` if it is exact; if statistics were computed with a stated error,
        bounds on the p-value without that error.
    null : str
        How the p-value was found.
    kernels : tuple of Kernel or of pairs of kernels
        All that were combined; the one of `statistic` and `witness` comes first.
    n : tuple of int
        Rows of each sample.
    n_permutations : int
        Random draws; 0 if the null distribution is a formula.
    seed : int or None
        `random_state=seed` repeats the test.
    effect_size : float
        At least 0: an unbiased estimate below zero becomes 0, and only `statistic` shows its sign.
    effect_interval : (float, float)
        A 95 % confidence interval of the effect size.
    witness : Element or tuple of Element
    null_statistics : array
        The observed statistic and those of the draws, for `mercer.plot.plot_null`; if several
        kernels are combined, their combination. Empty if the null distribution is a formula.
    contributions : array or None
        Of a goodness-of-fit test: the share of each row in `statistic`, which is their mean. The
        rows with the largest fit worst.
    call : str
        The call that repeats the test, with the names of its arrays.

    Examples
    --------
    >>> import numpy as np
    >>> import mercer as mc
    >>> X = np.random.default_rng(0).normal(size=(50, 1))
    >>> mc.mmd_test(X, X + 2.0, kernel=mc.Gaussian(1.0), n_permutations=99, random_state=0)
    Do the samples come from the same distribution?
      p = 0.01 (permutation, 99 draws, seed 0)
      50 and 50 rows
      statistic 0.6163 with Gaussian(length_scale=1.0)
      effect size 1.54, 95 % interval 0.802 to 2.28
    """

    question: str
    statistic: float
    pvalue: float
    pvalue_bounds: tuple[float, float]
    null: str
    kernels: tuple[Any, ...]
    n: tuple[int, ...]
    n_permutations: int
    seed: int | None
    effect_size: float
    effect_interval: tuple[float, float]
    witness: Element | tuple[Element, ...] | None
    null_statistics: Array = field(repr=False)
    contributions: Array | None = field(default=None, repr=False)
    call: str = ""

    __test__ = False  # pytest: not a class of tests

    @property
    def kernel(self) -> Kernel:
        """The kernel of `statistic` and `witness`."""
        kernel: Kernel = self.kernels[0]
        return kernel

    def to_dict(self) -> dict[str, Any]:
        """The numbers and words of the result as plain types, for JSON."""
        return {
            "question": self.question,
            "statistic": self.statistic,
            "pvalue": self.pvalue,
            "pvalue_low": self.pvalue_bounds[0],
            "pvalue_high": self.pvalue_bounds[1],
            "effect_size": self.effect_size,
            "effect_low": self.effect_interval[0],
            "effect_high": self.effect_interval[1],
            "null": self.null,
            "rows": list(self.n),
            "kernel": repr(self.kernels[0]),
            "n_kernels": len(self.kernels),
            "n_permutations": self.n_permutations,
            "seed": self.seed,
        }

    def to_frame(self, library: str = "pandas") -> Any:
        """`to_dict` as one row of a frame.

        Parameters
        ----------
        library : {"pandas", "polars", "pyarrow", "modin", "cudf"}
        """
        return frame_of({name: [value] for name, value in self.to_dict().items()}, library)

    @property
    def how(self) -> str:
        """How the p-value was found, in words."""
        words = [self.null]
        if self.n_permutations:
            words.append(f"{self.n_permutations:,} draws")
        if self.seed is not None:
            words.append(f"seed {self.seed}")
        if len(self.kernels) > 1:
            words.append(f"{len(self.kernels)} kernels combined")
        low, high = (f"{end:.4g}" for end in self.pvalue_bounds)
        return ", ".join([*words, f"between {low} and {high}"] if low != high else words)

    def _summary(self) -> Summary:
        title, yes, no, caution = _WORDS[self.question]
        low, high = self.effect_interval
        rejected, p = self.pvalue <= _LEVEL, self.pvalue
        often = f"in about {100 * p:.0f} of 100" if p >= 0.01 else f"about once in {1 / p:,.0f}"
        checks = [Check("good" if self.null in _EXACT else "note", _NULLS[self.null])]
        if self.n_permutations and p * (self.n_permutations + 1) < 1.5:
            fewest = f"{counted(self.n_permutations, 'draw')} allow no smaller p-value."
            checks.append(Check("note", fewest))
        checks.append(Check("note", _SMALL if rejected else caution))
        return Summary(
            title=title,
            asked=self.question,
            found=f"{yes if rejected else no} at the usual level of {_LEVEL}: p = {number(p)}. "
            f"Chance alone would give a result at least this clear {often} repetitions.",
            facts={
                "p-value": f"{number(self.pvalue)} ({self.how})",
                "effect size": f"{self.effect_size:.3g}; between {low:.3g} and {high:.3g} with "
                "95 % confidence. 0 is no effect. It does not grow with the number of rows.",
                "rows": " and ".join(f"{n:,}" for n in self.n),
                "statistic": number(self.statistic),
                "kernel": rounded(self.kernels[0]),
            },
            checks=tuple(checks),
            page="hypothesis_tests",
        )

    def __repr__(self) -> str:
        low, high = self.effect_interval
        rows = ", ".join(f"{n:,}" for n in self.n[:-1])
        rows = f"{rows} and {self.n[-1]:,}" if rows else f"{self.n[0]:,}"
        worst = ""
        if self.contributions is not None:
            order = np.argsort(-self.contributions, kind="stable")[:3]
            worst = f"\n  rows that fit worst: {', '.join(map(str, order))}"
        return (
            f"{self.question}\n"
            f"  p = {self.pvalue:.4g} ({self.how})\n"
            f"  {rows} rows\n"
            f"  statistic {self.statistic:.4g} with {rounded(self.kernels[0])}\n"
            f"  effect size {self.effect_size:.3g}, 95 % interval {low:.3g} to {high:.3g}{worst}"
        )


def effect_interval(size: float, variance: float, unit: float, null_sd: float) -> dict[str, Any]:
    """Effect size and 95 % interval of a statistic that was divided by `unit`, for `TestResult`.

    The interval is normal. Its variance is that under the alternative plus that under the null, so
    that it is wide enough if the former vanishes. The effect itself is >= 0, so an unbiased
    estimate below zero is set to 0; `statistic` keeps its sign.
    """
    sd = float(np.sqrt(variance + (null_sd / unit) ** 2)) if unit > 0 else 0.0
    low, high = size - _NORMAL * sd, size + _NORMAL * sd
    return {"effect_size": max(size, 0.0), "effect_interval": (max(low, 0.0), max(high, 0.0))}


def recorded(test: Callable[P, TestResult]) -> Callable[P, TestResult]:
    """Record in the result of a test how it was called; arrays are named, not written out."""
    signature = inspect.signature(test)

    @wraps(test)
    def run(*samples: P.args, **options: P.kwargs) -> TestResult:
        result = test(*samples, **options)
        given = signature.bind(*samples, **options).arguments
        words, data = [], list[Any]()
        for name, value in given.items():
            kind = signature.parameters[name].kind
            if kind is inspect.Parameter.VAR_POSITIONAL:
                words.append(f"*{name.rstrip('_')}")
                data += value
            elif kind is not inspect.Parameter.KEYWORD_ONLY:
                words.append(name)
                data.append(value)
            elif name != "random_state":
                words.append(f"{name}={repr(value) if _is_short(value) else name}")
        if result.seed is not None:
            words.append(f"random_state={result.seed}")
        call, witness = f"{test.__name__}({', '.join(words)})", result.witness
        if isinstance(witness, Element):
            witness = replace(witness, header=header(data[0]))
        elif witness is not None:
            pairs = zip(witness, data, strict=True)
            witness = tuple(replace(psi, header=header(X)) for psi, X in pairs)
        return replace(result, call=call, witness=witness)

    return run


def _is_short(value: Any) -> bool:
    """Whether the repr of an option is short, unlike that of an array."""
    parts = value if isinstance(value, list | tuple) else [value]
    simple = Kernel if parts is value else str | int | float | Kernel | None
    return all(isinstance(part, simple) for part in parts)
