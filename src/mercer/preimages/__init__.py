"""Pre-images: maps from feature space back to data space."""

from mercer.preimages._certify import certify
from mercer.preimages._constraint import Ball, Box, Simplex
from mercer.preimages._diagnostics import (
    Surrogate,
    is_majorised,
    preimage_gradient,
    preimage_hessian,
    preimage_objective,
    surrogate,
)
from mercer.preimages._objective import Collinear, Nearest, Projected
from mercer.preimages._preimage import preimage
from mercer.preimages._result import Certificate, History, PreImage, Verdict
from mercer.preimages._solver import Solver, SolverResult
from mercer.preimages.compression._compress import Compressed, compress
from mercer.preimages.compression._methods import Compressor, Greedy, Pruning
from mercer.preimages.solvers._candidates import Candidates
from mercer.preimages.solvers._closed_form import ClosedForm
from mercer.preimages.solvers._distances import Alignment, Distances, procrustes
from mercer.preimages.solvers._fixed_point import MM, FixedPoint
from mercer.preimages.solvers._global import Global, global_minimum
from mercer.preimages.solvers._gradient_methods import LBFGS, GradientDescent, Newton
from mercer.preimages.solvers._regression import FittedMap, LearnedMap, LinearInverse
from mercer.rigor import (
    GlobalMinimum,
    WeylTest,
    gradient_bound,
    hessian_lipschitz,
    lipschitz,
    weyl_test,
)

__all__ = [
    "LBFGS", "MM", "Alignment", "Ball", "Box", "Candidates", "Certificate", "ClosedForm",
    "Collinear", "Compressed", "Compressor", "Distances", "FittedMap", "FixedPoint", "Global",
    "GlobalMinimum", "GradientDescent", "Greedy", "History", "LearnedMap",
    "LinearInverse", "Nearest", "Newton", "PreImage", "Projected", "Pruning", "Simplex",
    "Solver", "SolverResult", "Surrogate", "Verdict", "WeylTest", "certify", "compress",
    "global_minimum", "gradient_bound", "hessian_lipschitz", "is_majorised",
    "lipschitz", "preimage", "preimage_gradient", "preimage_hessian", "preimage_objective",
    "procrustes", "surrogate", "weyl_test",
]  # fmt: skip
