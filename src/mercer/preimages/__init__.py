"""Pre-images: the way back from feature space to data space."""

from mercer.preimages._bounds import gradient_bound, hessian_lipschitz, lipschitz
from mercer.preimages._candidates import Candidates
from mercer.preimages._certify import WeylTest, certify, is_convex_at, weyl_test
from mercer.preimages._closed_form import ClosedForm
from mercer.preimages._compress import compress
from mercer.preimages._compress_methods import Compressor, Greedy, Landmarks, Pruning
from mercer.preimages._compress_result import Compressed, Outcome
from mercer.preimages._constraint import Ball, Box, Simplex
from mercer.preimages._diagnostics import (
    Surrogate,
    is_majorised,
    newton_gap,
    preimage_gradient,
    preimage_hessian,
    preimage_objective,
    surrogate,
)
from mercer.preimages._distances import Distances
from mercer.preimages._fixed_point import FixedPoint
from mercer.preimages._global import Global, GlobalMinimum, global_minimum
from mercer.preimages._gradient import GradientDescent
from mercer.preimages._lbfgs import LBFGS
from mercer.preimages._learned import FittedMap, LearnedMap
from mercer.preimages._mm import MM
from mercer.preimages._newton import Newton
from mercer.preimages._objective import Collinear, Nearest, Projected
from mercer.preimages._preimage import preimage
from mercer.preimages._procrustes import Alignment, procrustes
from mercer.preimages._result import Certificate, History, PreImage, Status, Verdict
from mercer.preimages._solver import Solver

__all__ = [
    "LBFGS",
    "MM",
    "Alignment",
    "Ball",
    "Box",
    "Candidates",
    "Certificate",
    "ClosedForm",
    "Collinear",
    "Compressed",
    "Compressor",
    "Distances",
    "FittedMap",
    "FixedPoint",
    "Global",
    "GlobalMinimum",
    "GradientDescent",
    "Greedy",
    "History",
    "Landmarks",
    "LearnedMap",
    "Nearest",
    "Newton",
    "Outcome",
    "PreImage",
    "Projected",
    "Pruning",
    "Simplex",
    "Solver",
    "Status",
    "Surrogate",
    "Verdict",
    "WeylTest",
    "certify",
    "compress",
    "global_minimum",
    "gradient_bound",
    "hessian_lipschitz",
    "is_convex_at",
    "is_majorised",
    "lipschitz",
    "newton_gap",
    "preimage",
    "preimage_gradient",
    "preimage_hessian",
    "preimage_objective",
    "procrustes",
    "surrogate",
    "weyl_test",
]
