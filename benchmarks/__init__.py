"""mercer beside other libraries and beside the limit of the machine: `python -m benchmarks`.

A suite is a module with a `TITLE` and a function `run(settings)` that returns an `Outcome`; its
bars stand as data next to its cases. To add one, write the module and name it in `SUITES`.
"""

SUITES = (
    "sums",
    "profiles",
    "gram",
    "coordinates",
    "strings",
    "isa",
    "memory",
    "spectral",
    "linalg",
    "preimages",
    "kernel_pca",
    "denoising",
    "imputation",
    "mean_shift",
    "clustering",
)
