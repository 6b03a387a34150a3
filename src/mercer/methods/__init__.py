"""Methods: functions that return elements, subspaces and results."""

from mercer.methods._denoise import Denoiser, SteinRisk, held_out_risk, stein_risk
from mercer.methods._filters import EarlyStopping, Filter, HardCut, Tikhonov
from mercer.methods._fit_denoiser import fit_denoiser
from mercer.methods._impute import Completion, Imputed, ImputeStatus, impute
from mercer.methods._noise import noise_energy, noise_level
from mercer.methods._pca import kernel_pca
from mercer.methods._readout import Readout

__all__ = [
    "Completion",
    "Denoiser",
    "EarlyStopping",
    "Filter",
    "HardCut",
    "ImputeStatus",
    "Imputed",
    "Readout",
    "SteinRisk",
    "Tikhonov",
    "fit_denoiser",
    "held_out_risk",
    "impute",
    "kernel_pca",
    "noise_energy",
    "noise_level",
    "stein_risk",
]
