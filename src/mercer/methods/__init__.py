"""Methods: functions that return elements, subspaces and results."""

from mercer.methods.denoising._denoiser import Denoiser, fit_denoiser
from mercer.methods.denoising._noise import NoiseLevel, feature_noise, noise_level
from mercer.methods.density._bandwidth import density_scale
from mercer.methods.density._density import Density, adaptive_density, kernel_density
from mercer.methods.hypothesis_tests._chi_square_mixture import Tail, weighted_chi_square_tail
from mercer.methods.hypothesis_tests._coco import coco, coco_test, coco_witness
from mercer.methods.hypothesis_tests._goodness_of_fit import ksd_test
from mercer.methods.hypothesis_tests._hsic import hsic
from mercer.methods.hypothesis_tests._independence import hsic_test
from mercer.methods.hypothesis_tests._joint_independence import dhsic, dhsic_test
from mercer.methods.hypothesis_tests._ksd import SteinKernel, ksd, stein_operator
from mercer.methods.hypothesis_tests._mmd import mmd, witness
from mercer.methods.hypothesis_tests._power import mmd_power, mmd_sample_size, mmd_variance
from mercer.methods.hypothesis_tests._result import TestResult
from mercer.methods.hypothesis_tests._score import MomentCondition, moment_condition
from mercer.methods.hypothesis_tests._two_sample import mmd_test
from mercer.methods.imputation._imputer import Imputer, fit_imputer
from mercer.methods.machines._losses import (
    AbsoluteLoss,
    EpsilonInsensitiveLoss,
    HingeLoss,
    LogisticLoss,
    SquaredMarginLoss,
    SquareLoss,
    ZeroOneLoss,
)
from mercer.methods.modes._all_modes import ProvedModes, all_modes
from mercer.methods.modes._blurring import Blurred, blurring_mean_shift
from mercer.methods.modes._clustering_accuracy import Accuracy, clustering_accuracy
from mercer.methods.modes._convergence_bandwidth import ConvergenceBandwidth, convergence_bandwidth
from mercer.methods.modes._mean_shift import Modes, mean_shift
from mercer.methods.modes._scale_space import Plateau, ScaleSpace, scale_space
from mercer.methods.modes._significance import SignificantModes, significant_modes
from mercer.methods.pca._filters import Filter, Landweber, Tikhonov, Truncation
from mercer.methods.pca._kernel_pca import kernel_pca
from mercer.methods.segmentation._segment import Segments, segment

__all__ = [
    "AbsoluteLoss", "Accuracy", "Blurred", "ConvergenceBandwidth", "Denoiser", "Density",
    "EpsilonInsensitiveLoss", "Filter", "HingeLoss", "Imputer", "Landweber",
    "LogisticLoss", "Modes", "MomentCondition", "NoiseLevel", "Plateau", "ProvedModes",
    "ScaleSpace", "Segments", "SignificantModes", "SquareLoss", "SquaredMarginLoss",
    "SteinKernel", "Tail", "TestResult", "Tikhonov", "Truncation", "ZeroOneLoss",
    "adaptive_density", "all_modes", "blurring_mean_shift", "clustering_accuracy", "coco",
    "coco_test", "coco_witness", "convergence_bandwidth", "density_scale", "dhsic",
    "dhsic_test", "feature_noise", "fit_denoiser", "fit_imputer", "hsic",
    "hsic_test", "kernel_density", "kernel_pca", "ksd", "ksd_test", "mean_shift", "mmd",
    "mmd_power", "mmd_sample_size", "mmd_test", "mmd_variance", "moment_condition",
    "noise_level", "scale_space", "segment", "significant_modes", "stein_operator",
    "weighted_chi_square_tail", "witness",
]  # fmt: skip
