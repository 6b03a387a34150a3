"""What a kernel test returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mercer._array import Array
from mercer.kernels import Kernel
from mercer.kernels._names import rounded
from mercer.space import Element

_NORMAL = 1.959964  # 97.5 % quantile of the standard normal law


@dataclass(frozen=True, eq=False, repr=False)
class TestResult:
    """The result of a kernel test.

    Attributes
    ----------
    question : str
        What was tested, as a sentence.
    statistic : float
        Of the kernel with the largest standardised statistic where several are combined.
    pvalue : float
        The upper end of `pvalue_bounds`.
    pvalue_bounds : (float, float)
        Both equal to `pvalue` where it is exact; where statistics were computed with a stated
        error, a bracket of the p-value without that error.
    null : str
        How the p-value was found.
    kernels : tuple of Kernel or of pairs of kernels
        All that were combined; the one of `statistic` and `witness` comes first.
    n : tuple of int
        Rows of each sample.
    n_permutations : int
        Random draws; 0 where the null is a formula.
    seed : int or None
        `random_state=seed` repeats the test.
    effect_size : float
        At least 0: an unbiased estimate below zero becomes 0, and only `statistic` shows its sign.
    effect_interval : (float, float)
        A 95 % confidence interval of the effect size.
    witness : Element or tuple of Element
    null_statistics : array
        The observed statistic and those of the draws, for `mercer.plot.plot_null`; where several
        kernels are combined, their combination. Empty where the null is a formula.
    contributions : array or None
        Of a goodness-of-fit test: the share of each row in `statistic`, which is their mean. The
        rows with the largest fit worst.

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

    __test__ = False  # pytest: not a class of tests

    @property
    def kernel(self) -> Kernel:
        """The kernel of `statistic` and `witness`."""
        kernel: Kernel = self.kernels[0]
        return kernel

    def to_dict(self) -> dict[str, Any]:
        """The numbers and words of the result, of plain types, for JSON."""
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

    def to_frame(self) -> Any:
        """`to_dict` as one row of a pandas frame."""
        import pandas as pd  # type: ignore[import-untyped]  # optional, and heavy

        return pd.DataFrame([self.to_dict()])

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
    that it is wide enough where the former vanishes. The effect itself is >= 0, so an unbiased
    estimate below zero is set to 0; `statistic` keeps its sign.
    """
    sd = float(np.sqrt(variance + (null_sd / unit) ** 2)) if unit > 0 else 0.0
    low, high = size - _NORMAL * sd, size + _NORMAL * sd
    return {"effect_size": max(size, 0.0), "effect_interval": (max(low, 0.0), max(high, 0.0))}
