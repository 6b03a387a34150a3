"""Convex duality: Lagrangians, closed-form duals, conjugates, optimality, reformulations."""

from mercer.theory.duality._bisection import Bisection, bisection
from mercer.theory.duality._closed_duals import (
    PrimalDual,
    box_lp,
    conjugate_form,
    inequality_lp,
    least_norm,
    norm_approximation,
    norm_minimisation,
    quadratic_program,
    semidefinite_program,
    standard_lp,
)
from mercer.theory.duality._conjugates import (
    CONJUGATES,
    ConjugatePair,
    conjugate,
)
from mercer.theory.duality._convexity import (
    ConvexityCheck,
    first_order_convexity,
    jensen,
    log_concavity,
    quasiconvexity,
    second_order_convexity,
)
from mercer.theory.duality._kkt import kkt
from mercer.theory.duality._lagrangian import (
    Sensitivity,
    dual_function,
    lagrangian,
    sensitivity,
)
from mercer.theory.duality._nonconvex_duals import trust_region, two_way_partition
from mercer.theory.duality._projections import (
    optimality_residual,
    project_affine,
    project_ball,
    project_halfspace,
)
from mercer.theory.duality._reformulations import (
    chance_lp,
    chebyshev_centre,
    geometric_program,
    linear_fractional,
    minimise_eigenvalue,
    minimise_spectral_norm,
    norm_lmi,
    perron_frobenius,
    robust_lp,
    scalarise,
)
from mercer.theory.duality._solve import Optimum

__all__ = [
    "CONJUGATES", "Bisection", "ConjugatePair", "ConvexityCheck", "Optimum", "PrimalDual",
    "Sensitivity", "bisection", "box_lp", "chance_lp", "chebyshev_centre", "conjugate",
    "conjugate_form", "dual_function", "first_order_convexity", "geometric_program",
    "inequality_lp", "jensen", "kkt", "lagrangian", "least_norm", "linear_fractional",
    "log_concavity", "minimise_eigenvalue", "minimise_spectral_norm", "norm_approximation",
    "norm_lmi", "norm_minimisation", "optimality_residual", "perron_frobenius",
    "project_affine", "project_ball", "project_halfspace", "quadratic_program",
    "quasiconvexity", "robust_lp", "scalarise", "second_order_convexity",
    "semidefinite_program", "sensitivity", "standard_lp", "trust_region", "two_way_partition",
]  # fmt: skip
