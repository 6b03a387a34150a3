"""Rigorous numerics: everything that mercer calls proved is derived here, rounding included.

Interval arithmetic on recorded profiles, ranges of kernel sums over boxes, one branch and bound
(for global minima and for all modes), bounds on derivatives, and bounds on rounding errors.
"""

from mercer.rigor._box_bounds import BoxObjective
from mercer.rigor._branch_and_bound import negative_up_to
from mercer.rigor._derivative_bounds import (
    cusp_slope,
    gradient_bound,
    hessian_lipschitz,
    lipschitz,
    spectral_norms,
    upward_curvature,
)
from mercer.rigor._enclosure import Terms
from mercer.rigor._intervals import EPS, Interval, as_interval, up
from mercer.rigor._minimum_search import GlobalMinimum, minimise
from mercer.rigor._mode_search import FoundModes, find_modes
from mercer.rigor._profile_enclosure import enclose, profile_ranges, profile_ranges_in_distance
from mercer.rigor._rounding import RowSums, row_sums, supremum_errors
from mercer.rigor._search_region import objective_scale
from mercer.rigor._suprema import third_derivative_bounds
from mercer.rigor._weyl import WeylTest, all_sums, prepared, weyl_of_sums, weyl_test

__all__ = [
    "EPS", "BoxObjective", "FoundModes", "GlobalMinimum", "Interval", "RowSums", "Terms",
    "WeylTest", "all_sums", "as_interval", "cusp_slope", "enclose", "find_modes", "gradient_bound",
    "hessian_lipschitz", "lipschitz", "minimise", "negative_up_to", "objective_scale", "prepared",
    "profile_ranges", "profile_ranges_in_distance", "row_sums", "spectral_norms",
    "supremum_errors", "third_derivative_bounds", "up", "upward_curvature", "weyl_of_sums",
    "weyl_test",
]  # fmt: skip
