"""Theory: kernel spaces, learning theory, first-order methods, convex duality."""

from mercer.methods import ConvergenceBandwidth, convergence_bandwidth
from mercer.theory import duality, first_order, learning
from mercer.theory._bochner import BochnerNorm, bochner_norm
from mercer.theory._divergences import (
    chi_square_divergence,
    f_divergence,
    hellinger,
    integral_probability_metric,
    kl_divergence,
    largest_power,
    total_variation,
)
from mercer.theory._expansion import MercerExpansion
from mercer.theory._fourier import (
    characteristic_coefficients,
    fourier_coefficients,
    fourier_inner,
    fourier_mmd,
    fourier_norm,
    sobolev_norm,
)
from mercer.theory._membership import Membership, membership
from mercer.theory._projective import ProjectiveConditions, projective_conditions
from mercer.theory._separation import Separation, Witness, is_characteristic, is_universal
from mercer.theory._shadow import shadow, shadow_constant
from mercer.theory._spectral_mmd import SpectralMMD, spectral_mmd
from mercer.theory.duality import kkt
from mercer.theory.learning import bound

__all__ = [
    "BochnerNorm", "ConvergenceBandwidth", "Membership", "MercerExpansion",
    "ProjectiveConditions", "Separation", "SpectralMMD", "Witness", "bochner_norm", "bound",
    "characteristic_coefficients", "chi_square_divergence", "convergence_bandwidth", "duality",
    "f_divergence", "first_order", "fourier_coefficients", "fourier_inner", "fourier_mmd",
    "fourier_norm", "hellinger", "integral_probability_metric", "is_characteristic",
    "is_universal", "kkt", "kl_divergence", "largest_power", "learning", "membership",
    "projective_conditions", "shadow", "shadow_constant", "sobolev_norm", "spectral_mmd",
    "total_variation",
]  # fmt: skip
