"""A conformance kit: the laws of kernels, elements and subspaces as checks that anyone can run.

Each `check_*` takes an object, tries the laws it must obey, and raises an AssertionError whose
sentence says which law failed and by how much. A kernel of your own passes `check_kernel` before
anything is built on it; a method that consumes kernels is run over `awkward_kernels()`.
"""

from mercer.testing._algebra import check_algebra
from mercer.testing._awkward import awkward_kernels
from mercer.testing._element import check_element
from mercer.testing._kernel import check_kernel
from mercer.testing._lattice import lattice
from mercer.testing._subspace import check_subspace

__all__ = [
    "awkward_kernels",
    "check_algebra",
    "check_element",
    "check_kernel",
    "check_subspace",
    "lattice",
]
