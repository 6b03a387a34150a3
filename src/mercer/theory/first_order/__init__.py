"""First-order methods: gradient descent and subgradient methods, with guaranteed rates."""

from mercer.theory.first_order._descent import Run, gradient_descent, subgradient_method
from mercer.theory.first_order._inequalities import (
    SmoothnessCheck,
    check_smoothness,
    l1_subdifferential,
    subdifferential,
    subgradient_slack,
    tikhonov_step,
)
from mercer.theory.first_order._rates import (
    constant_steps,
    decreasing_steps,
    matching_steps,
    ridge_cost,
    smooth_rate,
    strongly_convex_rate,
    subgradient_rate,
    tail_rate,
)

__all__ = [
    "Run", "SmoothnessCheck", "check_smoothness", "constant_steps", "decreasing_steps",
    "gradient_descent", "l1_subdifferential", "matching_steps", "ridge_cost", "smooth_rate",
    "strongly_convex_rate", "subdifferential", "subgradient_method", "subgradient_rate",
    "subgradient_slack", "tail_rate", "tikhonov_step",
]  # fmt: skip
