"""Methods: functions that return elements, subspaces and results."""

from mercer.methods.denoising._denoiser import Denoiser, fit_denoiser
from mercer.methods.denoising._noise import NoiseLevel, feature_noise, noise_level
from mercer.methods.density._bandwidth import density_scale
from mercer.methods.density._density import Density, adaptive_density, kernel_density
from mercer.methods.imputation._imputer import Imputer, fit_imputer
from mercer.methods.modes._all_modes import ProvedModes, all_modes
from mercer.methods.modes._blurring import Blurred, blurring_mean_shift
from mercer.methods.modes._clustering_accuracy import Accuracy, clustering_accuracy
from mercer.methods.modes._convergence_bandwidth import ConvergenceBandwidth, convergence_bandwidth
from mercer.methods.modes._enclosing_ball import EnclosingBall, enclosing_ball
from mercer.methods.modes._mean_shift import Modes, mean_shift
from mercer.methods.modes._scale_space import Plateau, ScaleSpace, scale_space
from mercer.methods.modes._significance import SignificantModes, significant_modes
from mercer.methods.pca._filters import Filter, Landweber, Tikhonov, Truncation
from mercer.methods.pca._kernel_pca import kernel_pca
from mercer.methods.segmentation._segment import Segments, segment

__all__ = [
    "Accuracy", "Blurred", "ConvergenceBandwidth", "Denoiser", "Density", "EnclosingBall",
    "Filter", "Imputer", "Landweber", "Modes", "NoiseLevel", "Plateau", "ProvedModes", "ScaleSpace",
    "Segments", "SignificantModes", "Tikhonov", "Truncation", "adaptive_density", "all_modes",
    "blurring_mean_shift", "clustering_accuracy", "convergence_bandwidth", "density_scale",
    "enclosing_ball", "feature_noise", "fit_denoiser", "fit_imputer", "kernel_density",
    "kernel_pca", "mean_shift", "noise_level", "scale_space", "segment",
    "significant_modes",
]  # fmt: skip
