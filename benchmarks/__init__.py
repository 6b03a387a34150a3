"""mercer compared with other libraries and with the limit of the machine: `python -m benchmarks`.

A suite is a module with a `TITLE` and a function `run(settings)` that returns an `Outcome`. Its
bars (what a figure must reach) are listed next to its cases. To add a suite, write the module and
add its name to `SUITES`. `NEEDS` names its files of real data; a full run without them leaves it
out. `levels` and `power` take an hour each from the start, but continue from their counts in
`results`.
"""

SUITES = (
    "sums",
    "profiles",
    "gram",
    "coordinates",
    "strings",
    "isa",
    "memory",
    "torch",
    "spectral",
    "linalg",
    "preimages",
    "kernel_pca",
    "denoising",
    "denoising_tables",
    "imputation",
    "novelty",
    "mean_shift",
    "clustering",
    "hypothesis_tests",
    "support_vectors",
    "ridge",
    "online",
    "compression",
    "growth",
    "disk",
    "cluster",
    "mnist",
    "levels",
    "power",
)
