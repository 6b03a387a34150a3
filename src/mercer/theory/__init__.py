"""Theory of kernels and their spaces: norms, expansions, characteristic and universal kernels."""

from mercer.methods import ConvergenceBandwidth, convergence_bandwidth
from mercer.theory import duality
from mercer.theory._bochner import BochnerNorm, bochner_norm
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

__all__ = [
    "BochnerNorm", "ConvergenceBandwidth", "Membership", "MercerExpansion",
    "ProjectiveConditions", "Separation", "SpectralMMD", "Witness", "bochner_norm",
    "characteristic_coefficients", "convergence_bandwidth", "duality", "fourier_coefficients",
    "fourier_inner", "fourier_mmd", "fourier_norm", "is_characteristic",
    "is_universal", "kkt", "membership", "projective_conditions", "shadow", "shadow_constant",
    "sobolev_norm", "spectral_mmd",
]  # fmt: skip
