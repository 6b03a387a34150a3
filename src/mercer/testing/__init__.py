"""Checks for your own kernels and methods: identities that objects must satisfy.

Each `check_*` function takes an object, tests the laws of its kind, and raises an AssertionError
that says which law is violated and by how much. Run `check_kernel` on a kernel of your own before
you build on it, and run a method that takes kernels on all `awkward_kernels()`.
"""

from mercer.testing._algebra import check_algebra
from mercer.testing._awkward import awkward_kernels
from mercer.testing._kernel import check_kernel
from mercer.testing._lattice import lattice
from mercer.testing._space import check_element, check_subspace

__all__ = [
    "awkward_kernels", "check_algebra", "check_element", "check_kernel", "check_subspace",
    "lattice",
]  # fmt: skip
