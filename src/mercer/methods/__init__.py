"""Methods: functions that return elements, subspaces and results."""

from mercer.methods._accuracy import Accuracy, clustering_accuracy
from mercer.methods._adaptive_density import adaptive_density
from mercer.methods._all_modes import ProvedModes, all_modes
from mercer.methods._ascent import ClimbStatus
from mercer.methods._blurring import Blurred, blurring_mean_shift
from mercer.methods._convergence import ConvergenceBandwidth, convergence_bandwidth
from mercer.methods._denoise import Denoiser, SteinRisk, held_out_risk, stein_risk
from mercer.methods._density import Density, kernel_density
from mercer.methods._density_scale import density_scale
from mercer.methods._enclosing_ball import EnclosingBall, enclosing_ball
from mercer.methods._filters import EarlyStopping, Filter, HardCut, Tikhonov
from mercer.methods._fit_denoiser import fit_denoiser
from mercer.methods._impute import Completion, Imputed, ImputeStatus, impute
from mercer.methods._mean_shift import Modes, mean_shift
from mercer.methods._noise import noise_energy, noise_level
from mercer.methods._pca import kernel_pca
from mercer.methods._readout import Readout
from mercer.methods._scale_space import Plateau, ScaleSpace, scale_space
from mercer.methods._segment import Segments, segment

__all__ = [
    "Accuracy",
    "Blurred",
    "ClimbStatus",
    "Completion",
    "ConvergenceBandwidth",
    "Denoiser",
    "Density",
    "EarlyStopping",
    "EnclosingBall",
    "Filter",
    "HardCut",
    "ImputeStatus",
    "Imputed",
    "Modes",
    "Plateau",
    "ProvedModes",
    "Readout",
    "ScaleSpace",
    "Segments",
    "SteinRisk",
    "Tikhonov",
    "adaptive_density",
    "all_modes",
    "blurring_mean_shift",
    "clustering_accuracy",
    "convergence_bandwidth",
    "density_scale",
    "enclosing_ball",
    "fit_denoiser",
    "held_out_risk",
    "impute",
    "kernel_density",
    "kernel_pca",
    "mean_shift",
    "noise_energy",
    "noise_level",
    "scale_space",
    "segment",
    "stein_risk",
]
