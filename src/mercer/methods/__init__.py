"""Methods: functions that return elements, subspaces and results."""

from mercer.methods._ascent import ClimbStatus
from mercer.methods._denoise import Denoiser, SteinRisk, held_out_risk, stein_risk
from mercer.methods._filters import EarlyStopping, Filter, HardCut, Tikhonov
from mercer.methods._fit_denoiser import fit_denoiser
from mercer.methods._impute import Completion, Imputed, ImputeStatus, impute
from mercer.methods._mean_shift import Modes, mean_shift
from mercer.methods._noise import noise_energy, noise_level
from mercer.methods._pca import kernel_pca
from mercer.methods._readout import Readout

__all__ = [
    "ClimbStatus",
    "Completion",
    "Denoiser",
    "EarlyStopping",
    "Filter",
    "HardCut",
    "ImputeStatus",
    "Imputed",
    "Modes",
    "Readout",
    "SteinRisk",
    "Tikhonov",
    "fit_denoiser",
    "held_out_risk",
    "impute",
    "kernel_pca",
    "mean_shift",
    "noise_energy",
    "noise_level",
    "stein_risk",
]
