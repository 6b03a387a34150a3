"""What is known about kernels and their spaces: norms, expansions, which kernels separate what."""

from mercer.theory._bochner import BochnerNorm, bochner_norm
from mercer.theory._expansion import MercerExpansion, gaussian_mercer
from mercer.theory._projective import ProjectiveConditions, projective_conditions
from mercer.theory._separation import Separation, Witness, is_characteristic, is_universal
from mercer.theory._shadow import shadow, shadow_constant

__all__ = [
    "BochnerNorm",
    "MercerExpansion",
    "ProjectiveConditions",
    "Separation",
    "Witness",
    "bochner_norm",
    "gaussian_mercer",
    "is_characteristic",
    "is_universal",
    "projective_conditions",
    "shadow",
    "shadow_constant",
]
