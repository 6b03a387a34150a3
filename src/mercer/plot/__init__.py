"""Pictures: what one would rather look at than read. Needs matplotlib (extra `plot`)."""

from mercer.plot._gram import plot_gram
from mercer.plot._kernel import plot_kernel

__all__ = ["plot_gram", "plot_kernel"]
